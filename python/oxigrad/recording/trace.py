"""The recording of one call: entries, checks and constants, as data."""

import functools
import operator
import struct
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from oxigrad._core import BatchLevel, EntryId, Variable, is_watched, new_batch_level, scatter_into
from oxigrad.recording import targets, writes
from oxigrad.recording.bits import is_repeated, is_same
from oxigrad.recording.targets import Target
from oxigrad.recording.traced import INTEGERS, OF_ORDER, Traced, UnrecordableError, plain_of, traced_in, with_leaves

# More entries, and larger arrays that Python sees, are not worth a recording.
MOST_ENTRIES = 1 << 20
MOST_CHECKED = 1 << 12


# The refusal of what is called after the recording.
_ENDED = "the call has ended"
# The arguments by name of calls that have none, which nobody changes.
_NOTHING: dict[str, Any] = {}


@dataclass(slots=True, eq=False, repr=False)
class Entry:
    """A step of a recording: ``kind`` is "input", "constant", "call" or "check"; ids are `EntryId`."""

    kind: str
    _: KW_ONLY
    target: Target = Target("", "")  # noqa: RUF009 - immutable
    function: Callable[..., Any] | None = None
    args: Any = ()
    named: Any = None
    value: Any = None
    line: str = ""
    #: The shape and dtype that a replay must find.
    type: tuple[tuple[int, ...], str] | None = None
    #: Whether the value is a float of Python.
    is_float: bool = False
    #: Whether it is an array that may be in another order in memory than that of its indices.
    is_permuted: bool = False

    def __post_init__(self) -> None:
        self.named = self.named or _NOTHING


class Trace:
    """A record of the calls of one call of a function, from its inputs on."""

    level: int

    def __init__(self, line: Callable[[], str] = str, *, has_truths: bool = False) -> None:
        self.level = new_batch_level()
        #: Whether the function may compare truth values of Python by identity, as `match` does: it gets checked ones.
        self.has_truths = has_truths
        self.alive = 0
        #: Why the function cannot be recorded, which no `try` of the function's catches.
        self.refusal: str | None = None
        #: Whether an input may be in any order in memory. Otherwise values lie in replays as they do here.
        self.has_any_order: bool = False
        self.entries: list[Entry] = []
        # How often C code has asked for the memory of a value, by its entry: NumPy copies the value next, other code
        # raises an exception, which the function may catch.
        self.requests: Counter[int] = Counter()
        # Whether a question was answered for the traced value instead of the plain one: the function runs again.
        self._is_void = False
        # The plain arrays that the function has, by their ids: whether each is writable, its check, and the line.
        self._loans: dict[int, tuple[np.ndarray, bool, str, EntryId | None]] = {}
        self._constants: dict[Any, tuple[Any, EntryId, Any]] = {}
        self._checked: dict[int, EntryId] = {}
        # The cotangent and the key of each array of zeros that a cotangent was added to.
        self._scattered: dict[int, tuple[Traced, Any]] = {}
        self._line = line
        # The ids of entries, and the types of arrays, each made once.
        self._identifiers: list[EntryId] = []
        self._types: dict[Any, tuple[tuple[int, ...], str]] = {}

    def refuse(self, reason: str) -> None:
        """Notes that the function cannot be recorded: the rest of the call computes on plain values."""
        self.refusal = self.refusal or f"{reason} ({self._line()})"

    def refuse_result(self, reason: str) -> None:
        """Notes the same where the result of the call is not the function's: it runs again."""
        self.refuse(reason)
        self._is_void = True

    def require_result(self) -> None:
        """Raises `UnrecordableError` where traced values have given other answers than plain ones.

        Refuses a function that has written to the memory of one otherwise than by it: its result is right.
        """
        if any(self.requests.values()):
            self.refuse_result("the function reads the memory of an array by the buffer protocol")
        if self._is_void:
            raise UnrecordableError(str(self.refusal))
        for array, is_writable, line, check in self._loans.values():
            is_changed = check is not None and not is_same(array, self.entries[check.id].value)
            if is_changed or array.flags.writeable != is_writable:
                self.refusal = self.refusal or f"the function writes to an array that shares its memory ({line})"

    def lend(self, traced: Traced) -> None:
        """Notes that the function has the plain array of a value, or its flags."""
        array, check = traced.plain, self._checked.get(traced.entry)
        _, is_writable, line, before = self._loans.get(id(array)) or (array, array.flags.writeable, self._line(), None)
        self._loans[id(array)] = array, is_writable, line, before or check

    def text(self, error: Exception) -> str:
        """Why the function is not recorded, which has raised an error."""
        is_refused = self.refusal is not None and self.refusal != _ENDED
        return str(self.refusal) if is_refused else f"{type(error).__name__}: {error}"

    def close(self) -> None:
        """Ends the recording: values that are left compute as plain ones."""
        self.refusal = self.refusal or _ENDED
        self._scattered = {}

    def input(self, value: Any) -> Any:
        """An input with its value in this call."""
        entry = Entry("input")
        # Contiguous arrays alone are replayed by a recording of a contiguous one: any other may be in any order.
        entry.is_permuted = isinstance(value, np.ndarray) and not value.flags.c_contiguous
        self.has_any_order = self.has_any_order or entry.is_permuted
        return self._unwritable(self._traced(self._append(entry), value))

    def constant(self, value: np.ndarray) -> Any:
        """A plain array as a traced value."""
        return self._unwritable(self._traced(self._constant(value), value))

    def created(self, array: Any) -> Any:
        """A floating-point array that the function makes, as a value that it may write to."""
        is_ours = type(array) is np.ndarray and array.dtype.kind in "fc" and self.refusal is None
        return self._traced(self._constant(array), array) if is_ours else array

    def _unwritable(self, value: Any) -> Any:
        if isinstance(value, Traced):
            value.memory = False
        return value

    def apply(self, target: Target, function: Callable[..., Any], args: Any, named: Any) -> Any:
        """The result of a function, traced; NotImplemented where another transform's values are among the arguments."""
        if self.refusal is not None:
            return function(*plain_of(args), **plain_of(named or {}))
        if any(_is_of_others(arg, self) for arg in args) or (named and _is_of_others(named, self)):
            if target.kind in ("operator", *_DISPATCHED):
                return NotImplemented
            self.refuse(f"{target} was called with values of an inner derivative or vmap")
            return function(*plain_of(args), **plain_of(named or {}))
        is_in_rule = next((arg.is_in_rule for arg in args if isinstance(arg, Traced) and arg.is_in_rule), False)
        is_permuted = any(map(self.is_permuted, args))
        # The result keeps the order of its argument where it is written to.
        if target.name == "empty_like" and is_permuted:
            self.refuse(OF_ORDER)
        if target.name in _OF_SHAPES and not is_permuted and traced_in((args[1:], named)) is None:
            return function(plain_of(args[0]), *args[1:], **named)
        # NumPy keeps the order of its arguments. Kernels of rules do not, and a sum depends on the order.
        if is_in_rule and is_permuted and _is_ufunc(target):
            named, is_permuted = {**(named or {}), "order": "C"}, False
        plain = [plain_of(arg) for arg in args]
        try:
            result = function(*plain, **plain_of(named)) if named else function(*plain)
        except Exception as error:  # the function may catch it, and go on
            self.refuse(f"{target} raises {type(error).__name__}")
            raise
        if result is NotImplemented:
            return result
        same = [arg for arg, its in zip(args, plain, strict=True) if its is result]
        if same and targets.is_shaped(target) and (type(result) is np.ndarray or target.name in _SELVES):
            return same[0]  # as `asarray` returns an array
        recorded = targets.watched(target) if is_watched() else target
        if recorded is None:
            self.refuse("the function searches for NaN, or calls a handler of floating-point errors")
            return result
        if isinstance(result, list):  # whose length depends on integers
            with_leaves((*args, named), lambda leaf: self.check(leaf) if isinstance(plain_of(leaf), INTEGERS) else leaf)
        is_argument = target.kind in _OF_ARRAYS
        ids = [self._ids(arg, is_argument=is_argument) for arg in args]
        function = function if recorded is target else targets.function_of(recorded)
        entry = Entry("call", target=recorded, function=function, args=tuple(ids), named=self._ids(named or None))
        entry.is_permuted = _may_permute(target, result, is_permuted=is_permuted and self.has_any_order)
        traced = self._traced(self._append(entry), result, is_in_rule=is_in_rule)
        if isinstance(traced, (tuple, list)) and targets.is_shaped(target):
            traced = with_leaves(traced, functools.partial(_argument, args))
        is_array = type(result) is np.ndarray
        if self.refusal is None and (result.base is not None if is_array else isinstance(result, (tuple, list))):
            self._note_views(traced, (target, function, tuple(args), named))
        # Values of variables are no complex numbers of Python.
        if self.refusal is None and _has_type_of_values(target, args, named or {}):
            self._check_types(traced)
        if type(result) is complex and target.kind in ("op", "rule"):
            return self.apply(Target("numpy", "positive"), np.positive, (traced,), {})
        return traced

    def _check_types(self, result: Any) -> None:
        """Checks shapes, and which arrays are complex: Python may read these where no entry reads the array."""
        for array in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(array, Traced) and isinstance(array.plain, np.ndarray):
                is_complex = self.apply(Target("numpy", "iscomplexobj"), np.iscomplexobj, (array,), {})
                for each in (is_complex, *self.apply(Target("numpy", "shape"), np.shape, (array,), {})):
                    self.check(each)

    def _note_views(self, result: Any, call: tuple[Target, Callable[..., Any], tuple[Any, ...], Any]) -> None:
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

    def again(self, entry: int, plain: Any) -> Any:
        """Another value of an entry."""
        return Traced(self, entry, plain)

    def is_in_its_place(self, new: Any, old: Traced) -> bool:
        """Whether an array may stand in the place of another, of its type and with the order of its indices."""
        entries = [self.entries[each.entry] for each in (new, old)] if isinstance(new, Traced) else []
        return bool(entries) and entries[0].type == entries[1].type and not any(each.is_permuted for each in entries)

    def write(self, target: Target, function: Callable[..., Any], array: Traced, key: Any, value: Any) -> Any:
        """The array after ``value`` was assigned to its elements at a key."""
        args = tuple(self._ids([array, key, value]))
        entry = Entry("call", target=target, function=function, args=args)
        entry.is_permuted = self.entries[array.entry].is_permuted
        return self._traced(self._append(entry), array.plain)

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
            entry = Entry("check", args=(self._identifiers[traced.entry],), value=snapshot, line=self._line())
            self._checked[traced.entry] = self._append(entry)
        return value

    def outputs(self, leaves: list[Any]) -> list[EntryId]:
        """The ids of the leaves of a result."""
        return [self._ids(leaf, is_argument=True) for leaf in leaves]

    def is_permuted(self, args: Any) -> bool:
        """Whether an argument may be in another order in memory than that of its indices."""
        if isinstance(args, Traced):
            return self.entries[args.entry].is_permuted
        if isinstance(args, np.ndarray):
            return not args.flags.c_contiguous and not is_repeated(args)
        return isinstance(args, (tuple, list)) and any(map(self.is_permuted, args))

    def _append(self, entry: Entry) -> EntryId:
        if len(self.entries) >= MOST_ENTRIES:
            self.refuse(f"the function has more than {MOST_ENTRIES} entries")
        identifier = EntryId(len(self.entries))
        self.entries.append(entry)
        self._identifiers.append(identifier)
        return identifier

    def _traced(self, identifier: EntryId, value: Any, *, is_in_rule: Any = False) -> Any:
        if isinstance(value, (np.ndarray, np.generic)):
            if type(value) is not np.ndarray and isinstance(value, np.ndarray):
                self.refuse(f"found a {type(value).__name__}: recordings hold plain arrays")
            if value.dtype == object:
                self.refuse("found an array of objects")
            key = value.shape, value.dtype
            self.entries[identifier.id].type = self._types.get(key) or self._types.setdefault(
                key, (value.shape, value.dtype.str)
            )
        elif isinstance(value, (bool, int, float, complex)):
            self.entries[identifier.id].is_float = type(value) is float
        elif isinstance(value, (tuple, list)):
            parts = [self._item(identifier, at, part) for at, part in enumerate(value)]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        else:
            self.refuse(f"a function returned {type(value).__name__}: expected arrays of NumPy and numbers")
        if self.refusal:
            return value
        traced = Traced(self, identifier.id, value, is_in_rule)
        return self.check(traced) if self.has_truths and type(value) is bool else traced

    def _item(self, of: EntryId, at: int, value: Any) -> Any:
        target = Target("operator", "getitem")
        item = Entry("call", target=target, function=operator.getitem, args=(of, self._ids(at, is_argument=True)))
        return self._traced(self._append(item), value)

    def _ids(self, value: Any, *, is_argument: bool = False) -> Any:
        """The value with the ids of traced ones in their place; an argument of an op that is plain is a constant."""
        if isinstance(value, Traced):
            return self._identifiers[value.entry]
        if isinstance(value, np.ndarray):
            return self._constant(value)
        if isinstance(value, (tuple, list, dict, slice)):
            return with_leaves(value, self._ids)
        return self._constant(value) if is_argument else value

    def _constant(self, value: Any) -> EntryId:
        # Equal numbers and arrays without dimensions are one constant, and so are calls that read them.
        is_array = isinstance(value, (np.ndarray, np.generic))
        if type(value) is float:
            key: Any = float, struct.pack("d", value)
        else:
            key = (type(value), value.dtype.str, value.tobytes()) if is_array and value.shape == () else id(value)
        constant = self._constants.get(key)
        if constant is not None and (not isinstance(value, np.ndarray) or is_same(constant[0], value)):
            return constant[1]
        snapshot = _kept(value) if isinstance(value, np.ndarray) else value
        if isinstance(snapshot, np.ndarray):
            snapshot.flags.writeable = False  # since a result may be a view of it
        identifier = self._append(Entry("constant", value=snapshot))
        # The object is kept alive, so that no other has its id.
        self._constants[key] = (snapshot, identifier, value)
        return identifier


# Functions that give a real number itself.
_SELVES = ("real", "conj", "conjugate")
_DISPATCHED = ("numpy", "numpy.linalg", "numpy.fft", "scipy.special")
_OF_ARRAYS = ("op", "rule", "operator", "numpy")


def _may_permute(target: Target, result: Any, *, is_permuted: bool) -> bool:
    """Whether the result of a call may be in another order in memory than that of its indices.

    ``is_permuted`` tells whether that may depend on an input's order.
    """
    if not isinstance(result, np.ndarray) or result.ndim < 2:
        return False
    if target == ("core", "scatter_into") or (result.ndim == 2 and target.name == "matmul"):
        return False
    return is_permuted or not result.flags.c_contiguous


# Kinds of other functions, whose results have a shape by the shapes of their arguments.
_OF_SHAPE = ("attribute", "operator", "python", "rule")


def _has_type_of_values(target: Target, args: Any, named: dict[str, Any]) -> bool:
    """Whether the type of a result depends on values: on integers, or on the elements that a call selects."""
    if target.name in ("getitem", "index"):
        key = named.get("key") if target.name == "index" else args[1]
        parts = key if isinstance(key, tuple) else (key,)
        of_values = [part for part in parts if traced_in(part) is not None]
        return any(isinstance(part, slice) or np.asarray(plain_of(part)).dtype.kind == "b" for part in of_values)
    if not targets.is_shaped(target) or (target.name == "where" and len(args) == 1):
        return True
    if target.kind in _OF_SHAPE or _is_ufunc(target) or target.name in targets.ELEMENTWISE:
        return False
    leaves: list[Any] = []
    if target.name in ("scatter_add", "scatter_into"):  # whose other integers are a key
        args, named = args[3:], {"shape": named.get("shape")}
    with_leaves((*args, named), leaves.append)
    return any(isinstance(leaf, Traced) and isinstance(leaf.plain, INTEGERS) for leaf in leaves)


@functools.cache
def _is_ufunc(target: Target) -> bool:
    """Whether a target is a universal function of NumPy."""
    return target.kind == "numpy" and isinstance(getattr(np, target.name, None), np.ufunc)


# Functions whose result depends on the shape and dtype of their argument alone, which are those of the recording: it is
# a constant.
_OF_SHAPES = ("ones_like", "zeros_like", "full_like", "empty_like")


def _argument(args: Any, part: Any) -> Any:
    """The argument that a part of a result is, as of `broadcast_arrays`, or the part."""
    array = plain_of(part)
    same = (arg for arg in args if isinstance(arg, Traced) and arg.plain is array)
    return next(same, part) if isinstance(array, np.ndarray) else part


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


def _kept(array: np.ndarray) -> np.ndarray:
    """A copy of an array; one element that is repeated to a larger shape stays so."""
    if is_repeated(array):
        return np.broadcast_to(array[(0,) * array.ndim].copy(), array.shape)
    return np.array(array, order="K")


def _is_of_others(value: Any, trace: Trace) -> bool:
    """Whether a variable, or a value of another recording or of a `vmap`, is among arguments."""
    if isinstance(value, Traced):
        return value.recorder is not trace
    if isinstance(value, (Variable, BatchLevel)):
        return True
    if isinstance(value, (tuple, list)):
        return any(_is_of_others(part, trace) for part in value)
    if isinstance(value, dict):
        return any(_is_of_others(part, trace) for part in value.values())
    return False


def is_plain_part(part: Any) -> bool:
    """Whether a part of a key is a slice of integers, an integer, None or an ellipsis."""
    if type(part) is slice:
        return all(bound is None or type(bound) is int for bound in (part.start, part.stop, part.step))
    return part is None or part is Ellipsis or type(part) is int


def line() -> str:
    """The line of the first frame outside of this package and NumPy."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("oxigrad", "numpy"):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
