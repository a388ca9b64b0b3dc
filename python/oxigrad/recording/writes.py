"""Arrays that a recorded function computes and writes to: each write is an entry, which gives the array after it.

The first call writes to the array itself, as the function does, so that its views change with it. The values of the
recording that share the memory are read again from the entry of the write.
"""

import operator
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from oxigrad._core import assigned
from oxigrad.recording.targets import Target, function_of

_ASSIGNED = Target("core", "assigned")
_GETITEM = Target("operator", "getitem")
_RESHAPE = Target("method", "reshape")
# The names of calls that give the elements in the order of their indices, in another shape.
_SHAPES = ("reshape", "ravel", "expand_dims", "squeeze")


class View(NamedTuple):
    """A call that gives a view of the argument at a position, in whose place is None: no value holds itself."""

    target: Target
    function: Callable[..., Any]
    args: tuple[Any, ...]
    named: Any
    position: int

    def of(self, trace: Any, source: Any) -> Any:
        """The view of another value."""
        args = (*self.args[: self.position], source, *self.args[self.position + 1 :])
        return trace.apply(self.target, self.function, args, self.named)

    @property
    def is_invertible(self) -> bool:
        """Whether the array follows from the view: an index, or a shape of elements in the order of their indices."""
        has_order = "order" in (self.named or {}) or any(type(arg) is str for arg in self.args)
        return self.target == _GETITEM or (self.target.name in _SHAPES and not has_order)

    def put(self, trace: Any, source: Any, new: Any) -> Any:
        """The other value with a new view."""
        if self.target == _GETITEM:
            return trace.write(_ASSIGNED, assigned, source, self.args[1], new)
        return trace.apply(_RESHAPE, function_of(_RESHAPE), (new, source.plain.shape), {})


class Memory:
    """The memory of an array that the function has computed: its entry, and the values that are the array or views."""

    def __init__(self, whole: Any) -> None:
        self.entry: int = whole.entry
        self.plain: np.ndarray = whole.plain
        self._values: list[tuple[weakref.ref[Any], tuple[View, ...]]] = []
        self.add(whole, ())

    def add(self, value: Any, views: tuple[View, ...]) -> None:
        """Notes a value that the views give, in their order."""
        value.memory = self
        self._values.append((weakref.ref(value.origin), views))

    def views(self, value: Any) -> tuple[View, ...]:
        """The views that give a value."""
        return next(views for reference, views in self._values if reference() is value.origin)

    def values(self) -> Iterator[tuple[Any, tuple[View, ...]]]:
        """The values that there are still, with their views."""
        self._values = [(reference, views) for reference, views in self._values if reference() is not None]
        for reference, views in list(self._values):
            if (value := reference()) is not None:
                yield value, views


def memory_of(value: Any) -> Memory | None:
    """The memory of a value; None for an array that the function has not computed, which it may not write to."""
    if value.memory is None:
        return Memory(value)
    return value.memory or None


def note_views(sources: list[Any], result: Any, call: tuple[Target, Callable[..., Any], tuple[Any, ...], Any]) -> None:
    """Notes that the result of a call may share the memory of arguments."""
    for source in sources:
        if source.memory is False or not np.may_share_memory(source.plain, result.plain):
            continue
        memory = memory_of(source)
        position = next((at for at, arg in enumerate(call[2]) if arg is source), None)
        if memory is None or position is None:
            source.memory = False
            break
        target, function, args, named = call
        args = (*args[:position], None, *args[position + 1 :])
        memory.add(result, (*memory.views(source), View(target, function, args, named, position)))
        return
    if not result.plain.flags.owndata:
        result.memory = False


def write(value: Any, key: Any, new: Any, plain: Callable[[Any], Any], *, is_result: bool = False) -> bool:
    """``value[key] = new``, with an entry for it; whether the function may write to it, and the entry is there.

    ``is_result`` tells that nobody else has the new array.
    """
    trace = value.recorder
    plain_key, plain_new = plain(key), plain(new)
    memory = memory_of(value)
    if memory is None or trace.refusal is not None:
        operator.setitem(value.plain, plain_key, plain_new)
        return False
    views = memory.views(value)
    is_item = type(plain_new) is np.ndarray and _is_part(value.plain, plain_key, plain_new)
    operator.setitem(value.plain, plain_key, plain_new)
    if is_item:  # the end of `value[key] += ...`
        return True
    source = trace.again(memory.entry, memory.plain)
    is_indexed = all(view.target == _GETITEM for view in views)
    if not (is_indexed or (all(view.is_invertible for view in views) and not trace.is_permuted(source))):
        return False
    # All elements at an index are assigned to the array itself.
    is_whole = key is ... and bool(views) and views[-1].target == _GETITEM
    parts = [source]
    for view in views[:-1] if is_whole else views:
        parts.append(view.of(trace, parts[-1]))
    if not (is_result and not views and trace.is_in_its_place(new, value)):
        if not is_whole:
            new = trace.write(_ASSIGNED, assigned, parts.pop(), key, new)
        for view in reversed(views):
            new = view.put(trace, parts.pop(), new)
    memory.entry = new.entry
    for other, its in memory.values():
        other.entry = new.entry
        again = new
        for view in its:
            again = view.of(trace, again)
        other.entry = again.entry
    return True


def _is_part(array: np.ndarray, key: Any, part: np.ndarray) -> bool:
    """Whether an array is the part of another at a key, in its memory."""
    if not np.may_share_memory(array, part):
        return False
    mine = array[key]
    return isinstance(mine, np.ndarray) and mine.__array_interface__ == part.__array_interface__
