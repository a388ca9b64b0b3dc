"""The recording of one call: entries, checks and constants, as data."""

import functools
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad._core import Entry, EntryId, Recorder, TargetTraits, plain_of, scatter_into, traced_in, with_leaves
from oxigrad._names import calling_frame, package_of
from oxigrad.recording import targets, writes
from oxigrad.recording.bits import is_repeated, is_same
from oxigrad.recording.targets import Target
from oxigrad.recording.traced import INTEGERS, OF_ORDER, Traced, UnrecordableError, class_of, of_name, single

# More entries, and larger arrays that Python sees, are not worth a recording.
MOST_ENTRIES: int = Recorder.MOST_ENTRIES
MOST_CHECKED = 1 << 12


# The packages whose frames are not lines of the user's.
_NOT_USERS = ("oxigrad", "numpy")
# The refusal of what is called after the recording.
_ENDED = "the call has ended"


class Trace(Recorder):
    """A record of the calls of one call of a function, from its inputs on."""

    # What the core calls.
    class_of: Any = staticmethod(class_of)
    single: Any = staticmethod(single)
    target_of: Any = staticmethod(of_name)
    entry_of: Any = staticmethod(writes.entry_of)
    is_same: Any = staticmethod(is_same)

    def __init__(self, line: Callable[[], str], *, has_truths: bool) -> None:
        self._line = line
        self.traits: Any = _traits
        self.has_type_of_values: Any = _has_type_of_values
        # How often C code has asked for the memory of a value, by its entry: NumPy copies the value next, other code
        # raises an exception, which the function may catch.
        self.requests: Counter[int] = Counter()
        # Whether a question was answered for the traced value instead of the plain one: the function runs again.
        self._is_void = False
        # The plain arrays that the function has, by their ids: whether each is writable, its check, and the line.
        self._loans: dict[int, tuple[np.ndarray, bool, str, EntryId | None]] = {}
        self._checked: dict[int, EntryId] = {}
        # The cotangent and the key of each array of zeros that a cotangent was added to.
        self._scattered: dict[int, tuple[Traced, Any]] = {}

    def refuse_result(self, reason: str) -> None:
        """Notes the same where the result of the call is not the function's: it runs again."""
        self.refuse(reason)
        self._is_void = True

    def require_result(self, results: list[Any]) -> None:
        """Raises `UnrecordableError` where traced values have given other answers than plain ones.

        Refuses a function that has written to the memory of one otherwise than by it, or has set a flag of an array
        among the ``results`` and the inputs: its result is right.
        """
        if any(self.requests.values()):
            self.refuse_result("the function reads the memory of an array by the buffer protocol")
        if self._is_void:
            raise UnrecordableError(str(self.refusal))
        for array, is_writable, line, check in self._loans.values():
            is_changed = check is not None and not is_same(array, self.entries[check.id].value)
            is_turned = array.flags.writeable != is_writable and any(array is each for each in results)
            if is_changed or is_turned:
                self.end(f"the function writes to an array that shares its memory ({line})")

    def lend(self, traced: Traced) -> None:
        """Notes that the function has the plain array of a value, or its flags."""
        array, check = traced.plain, self._checked.get(traced.entry)
        _, is_writable, line, before = self._loans.get(id(array)) or (array, array.flags.writeable, self._line(), None)
        self._loans[id(array)] = array, is_writable, line, before or check

    def text(self, error: Exception) -> str:
        """Why the function is not recorded, which has raised an error."""
        if self.refusal is not None and self.refusal != _ENDED:
            return str(self.refusal)
        frames = [each for each in traceback.walk_tb(error.__traceback__) if package_of(each[0]) not in _NOT_USERS]
        place = f" ({frames[-1][0].f_code.co_filename}:{frames[-1][1]})" if frames else ""
        return f"{type(error).__name__}: {error}{place}"

    def close(self) -> None:
        """Ends the recording: values that are left compute as plain ones."""
        self.end(_ENDED)
        self._scattered = {}

    @staticmethod
    def fail(error: Exception) -> None:
        """Raises the exception of a call of plain values: this frame tells that it is of a call of this package."""
        raise error

    @staticmethod
    def watched(target: Target) -> tuple[Target, Callable[..., Any]] | None:
        """A call under NumPy's present settings for errors, with its function; None where no file states them."""
        recorded = targets.watched(target)
        return None if recorded is None else (recorded, targets.function_of(recorded))

    def refuse_order(self) -> None:
        """Refuses a function that depends on the order of an array in memory."""
        self.refuse(OF_ORDER)

    def check_integers(self, args: Any, named: Any) -> None:
        """Checks the integers among arguments, by which the number of results is."""
        with_leaves((args, named), lambda leaf: self.check(leaf) if isinstance(plain_of(leaf), INTEGERS) else leaf)

    def check_types(self, result: Any) -> None:
        """Checks shapes, and which arrays are complex: Python may read these where no entry reads the array."""
        for array in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(array, Traced) and isinstance(array.plain, np.ndarray):
                is_complex = self.apply(Target("numpy", "iscomplexobj"), np.iscomplexobj, (array,), {})
                for each in (is_complex, *self.apply(Target("numpy", "shape"), np.shape, (array,), {})):
                    self.check(each)

    def note_views(self, result: Any, call: tuple[Target, Callable[..., Any], tuple[Any, ...], Any]) -> None:
        """Notes which arguments of a call the result may share memory with."""
        args: list[Any] = []
        with_leaves((*call[2], call[3]), lambda leaf: args.append(leaf) if type(plain_of(leaf)) is np.ndarray else None)
        if not isinstance(result, (tuple, list)):
            writes.note_views(args, result, call)
            return
        for part in (part for part in result if not any(part is arg for arg in args)):
            part.memory = False
            for each in args:
                if isinstance(each, Traced) and np.may_share_memory(each.plain, part.plain):
                    writes.close(each)

    def is_in_its_place(self, new: Any, old: Traced) -> bool:
        """Whether an array may stand in the place of another, of its type and with the order of its indices."""
        entries = [self.entries[each.entry] for each in (new, old)] if isinstance(new, Traced) else []
        return bool(entries) and entries[0].type == entries[1].type and not any(each.is_permuted for each in entries)

    def write(self, target: Target, function: Callable[..., Any], array: Traced, key: Any, value: Any) -> Any:
        """The array after ``value`` was assigned to its elements at a key."""
        args, is_permuted = self.ids((array, key, value)), self.entries[array.entry].is_permuted
        entry = Entry("call", target=target, function=function, args=args, is_permuted=is_permuted)
        return self.traced(self.append(entry).id, array.plain)

    def scattered(self, total: Any, g: Any, key: Any, shape: tuple[int, ...]) -> Any:
        """``total``, or zeros of ``shape`` where it is None, with ``g`` added at ``key``.

        A second cotangent of one slice is added to the first one, in the run that computes them, rather than to the
        elements of the slice: the bits are the same.
        """
        scattered = self._scattered.get(total.entry) if isinstance(total, Traced) and total.recorder is self else None
        if scattered is not None and _are_of_one_slice(scattered[0].plain, plain_of(g), scattered[1], key):
            total, g = None, scattered[0].computed("add", (scattered[0], g), None)
        result = self.apply(Target("core", "scatter_into"), scatter_into, (total, g, key, shape), {})
        if total is None:
            self._scattered[result.entry] = (g.in_rule, key)
        return result

    def check(self, traced: Traced) -> Any:
        """The value, which Python sees from now on."""
        if not isinstance(traced, Traced):  # of a call that is not recorded
            return traced
        value = traced.plain
        if getattr(value, "size", 1) > MOST_CHECKED:
            self.refuse(f"the function turns an array of shape {value.shape} into plain values")
        if self.refusal is None and traced.entry not in self._checked:
            snapshot = np.array(value) if isinstance(value, np.ndarray) else value
            check = Entry("check", args=self.ids((traced,)), value=snapshot, line=self._line())
            self._checked[traced.entry] = self.append(check)
        return value

    def outputs(self, leaves: list[Any]) -> list[EntryId]:
        """The ids of the leaves of a result."""
        return [self.id_of_argument(leaf) for leaf in leaves]

    @staticmethod
    def kept(array: np.ndarray) -> np.ndarray:
        """A copy of an array, which nobody writes to; one element that is repeated to a larger shape stays so."""
        if is_repeated(array):
            return np.broadcast_to(array[(0,) * array.ndim].copy(), array.shape)
        copy = np.array(array, order="K")
        copy.flags.writeable = False  # since a result may be a view of it
        return copy


# Functions that give a real number itself.
_SELVES = ("real", "conj", "conjugate")
_DISPATCHED = ("operator", "numpy", "numpy.linalg", "numpy.fft", "scipy.special")


# Kinds of other functions, whose results have a shape by the shapes of their arguments, and ops of this kind.
_OF_SHAPE = ("attribute", "core", "operator", "python", "rule")
# Those whose integers are parts of a key, which select an element each.
_OF_KEYS = ("getitem", "index", "scatter_add")


def _has_type_of_values(target: Target, args: Any, named: dict[str, Any] | None) -> bool:
    """Whether the type of a result depends on values: on integers, or on the elements that a call selects.

    The core asks for a target whose `_traits` do not answer it for all calls.
    """
    named = named or {}
    if target.name in _OF_KEYS:
        key = args[1] if target.name == "getitem" else named.get("key")
        parts = key if isinstance(key, tuple) else (key,)
        of_values = [part for part in parts if traced_in(part) is not None]
        return any(isinstance(part, slice) or np.asarray(plain_of(part)).dtype.kind == "b" for part in of_values)
    if target.name == "where":  # elementwise with three arguments
        return len(args) == 1
    if not targets.is_shaped(target):
        return True
    leaves: list[Any] = []
    with_leaves((*args, named), leaves.append)
    return any(isinstance(leaf, Traced) and isinstance(leaf.plain, INTEGERS) for leaf in leaves)


@functools.cache
def _is_ufunc(target: Target) -> bool:
    """Whether a target is a universal function of NumPy."""
    return target.kind == "numpy" and isinstance(getattr(np, target.name, None), np.ufunc)


@functools.cache
def _traits(target: Target) -> TargetTraits:
    kind, name = target
    if name in _OF_KEYS:
        values = "key"
    elif not targets.is_shaped(target) or (name == "where" and kind not in _OPS):
        values = "always"
    else:
        is_never = kind in _OF_SHAPE or _is_ufunc(target) or name in targets.ELEMENTWISE
        values = "never" if is_never else "numbers"
    return TargetTraits(
        takes_constants=kind in (*_OPS, "operator", "numpy"),
        is_dispatched=kind in _DISPATCHED,
        is_ufunc=_is_ufunc(target),
        is_shaped=targets.is_shaped(target),
        is_self=name in _SELVES,
        is_of_shapes=name in _OF_SHAPES,
        is_of_order=name == "empty_like",
        is_ordered=target == ("core", "scatter_into"),
        is_ordered_matrix=name == "matmul",
        values=values,
    )


_OPS = ("op", "rule")
# Functions whose result depends on the shape and dtype of their argument alone, which are those of the recording: it is
# a constant.
_OF_SHAPES = ("ones_like", "zeros_like", "full_like", "empty_like")


def _are_of_one_slice(one: np.ndarray, other: Any, key: Any, its: Any) -> bool:
    """Whether two cotangents are arrays alike of the same elements, which a key of slices and integers names."""
    parts, others = (each if type(each) is tuple else (each,) for each in (key, its))
    are_plain = all(is_plain_part(part) for part in (*parts, *others)) and any(type(part) is slice for part in parts)
    return (
        are_plain
        and parts == others
        and type(one) is type(other) is np.ndarray
        and (one.shape, one.dtype) == (other.shape, other.dtype)
    )


def is_plain_part(part: Any) -> bool:
    """Whether a part of a key is a slice of integers, an integer, None or an ellipsis."""
    if type(part) is slice:
        return all(bound is None or type(bound) is int for bound in (part.start, part.stop, part.step))
    return part is None or part is Ellipsis or type(part) is int


def line() -> str:
    """The line of the first frame outside of this package and NumPy."""
    frame = calling_frame(_NOT_USERS)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
