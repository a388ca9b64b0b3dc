"""Arrays that a recorded function computes and writes to: each write is an entry, which gives the array after it.

The first call writes to the array itself, as the function does, so that its views change with it. The values of the
recording that share the memory are read again from the entry of the write.
"""

import dis
import functools
import itertools
import operator
import weakref
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from oxigrad._core import assigned
from oxigrad._names import package_of
from oxigrad.recording.targets import Target, function_of

_ASSIGNED = Target("core", "assigned")
_GETITEM = Target("operator", "getitem")
_RESHAPE = Target("method", "reshape")
# The names of calls that give the elements in the order of their indices, in another shape: the last are views in any
# order in memory.
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
        #: Whether values that no entry reads again are in it, so that the function may not write to it.
        self.is_closed: bool = False
        # The values whose entries are those after the last write.
        self._current: list[weakref.ref[Any]] = []
        self.add(whole, ())

    def add(self, value: Any, views: tuple[View, ...]) -> None:
        """Notes a value that the views give, in their order."""
        value.memory = Place(self, views)
        self._current.append(weakref.ref(value.origin))

    def renew(self, entry: int) -> None:
        """Notes the entry of a write. The next use of a view reads it again from this entry."""
        self.entry, current, self._current = entry, self._current, []
        for value in (reference() for reference in current):
            if value is None:
                continue
            value.entry = None if value.memory.views else entry
            if not value.memory.views:
                self._current.append(weakref.ref(value))


class Place(NamedTuple):
    """The place of a value: a memory, and the views that give it."""

    memory: Memory
    views: tuple[View, ...]


def entry_of(value: Any) -> int:
    """The entry of a view after a write to its memory."""
    memory, views = value.memory
    again = value.recorder.again(memory.entry, memory.plain)
    for view in views:
        again = view.of(value.recorder, again)
    if value.recorder.refusal is not None:
        return memory.entry
    value.entry = again.entry
    memory.add(value, views)
    return value.entry


def place_of(value: Any) -> Place | None:
    """The place of a value; None for an array that the function has not computed, which it may not write to."""
    if value.memory is None:
        Memory(value)
    return value.memory if value.memory and not value.memory.memory.is_closed else None


def close(value: Any) -> None:
    """Refuses later writes to the memory of a value."""
    if value.memory:
        value.memory.memory.is_closed = True
    value.memory = False


def note_views(args: list[Any], result: Any, call: tuple[Target, Callable[..., Any], tuple[Any, ...], Any]) -> None:
    """Notes that the result of a call may share the memory of arguments, some of which are plain arrays."""
    for source in args:
        is_plain = type(source) is np.ndarray
        if not np.may_share_memory(source if is_plain else source.plain, result.plain):
            continue
        place = None if is_plain else place_of(source)
        position = next((at for at, arg in enumerate(call[2]) if arg is source), None)
        if place is not None and position is not None:
            target, function, others, named = call
            others = (*others[:position], None, *others[position + 1 :])
            place.memory.add(result, (*place.views, View(target, function, others, named, position)))
            return
        if not is_plain:
            close(source)
        result.memory = False


def write(value: Any, key: Any, new: Any, plain: Callable[[Any], Any], *, is_result: bool = False) -> bool:
    """``value[key] = new``, with an entry for it; whether the function may write to it, and the entry is there.

    ``is_result`` tells that nobody else has the new array.
    """
    trace = value.recorder
    plain_key, plain_new = plain(key), plain(new)
    place = place_of(value)
    if place is None or trace.refusal is not None:
        operator.setitem(value.plain, plain_key, plain_new)
        return False
    memory, views = place
    is_item = type(plain_new) is np.ndarray and _is_part(value.plain, plain_key, plain_new)
    operator.setitem(value.plain, plain_key, plain_new)
    if is_item:  # the end of `value[key] += ...`
        return True
    source = trace.again(memory.entry, memory.plain)
    are_views = all(view.target == _GETITEM or view.target.name in _SHAPES[2:] for view in views)
    if not (are_views or (all(view.is_invertible for view in views) and not trace.is_permuted(source))):
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
    memory.renew(new.entry)
    return True


def _is_part(array: np.ndarray, key: Any, part: np.ndarray) -> bool:
    """Whether an array is the part of another at a key, in its memory."""
    if not np.may_share_memory(array, part):
        return False
    mine = array[key]
    return isinstance(mine, np.ndarray) and mine.__array_interface__ == part.__array_interface__


def is_exchange(value: Any, array: Any, frame: FrameType) -> bool:
    """Whether C code, called by a frame, assigns a part of an array to the array.

    NumPy's `shuffle` exchanges parts of traced arrays so, which are views. It copies parts of arrays.
    """
    is_part = np.ndim(value.plain) > 0 and np.may_share_memory(value.plain, array.plain)
    return is_part and not opcode(frame.f_code, frame.f_lasti).startswith("STORE_")


def opcode(code: CodeType, offset: int) -> str:
    """The name of an instruction."""
    return dis.opname[code.co_code[offset]]


def compares_identity(frame: FrameType | None) -> bool:
    """Whether a function under way, up to this package's, compares a variable or a result by ``is``."""
    while frame is not None and (package := package_of(frame)) != "oxigrad":
        if package != "numpy" and _has_identity(frame.f_code):
            return True
        frame = frame.f_back
    return False


# What loads classes and constants, with which programs compare types by ``is``.
_OF_CLASSES = {"LOAD_CONST", "LOAD_GLOBAL", "LOAD_ATTR", "LOAD_NAME"}


@functools.lru_cache(maxsize=64)
def _has_identity(code: CodeType) -> bool:
    names = [each.opname for each in dis.get_instructions(code)]
    is_here = any(b == "IS_OP" and a not in _OF_CLASSES for a, b in itertools.pairwise(names))
    return is_here or any(_has_identity(each) for each in code.co_consts if isinstance(each, CodeType))
