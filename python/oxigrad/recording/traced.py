"""The values that a function is recorded with: each knows its value in this call, and the entry that it came from.

A function that is called with one computes its result at once, on plain values, exactly as without recording, and appends an entry. What
turns a value into something that Python sees (a truth value, a number, an index, a plain array) appends a check instead: a replay in which it
would be another one does not count.
"""

import builtins
import functools
import operator
from collections.abc import Callable
from typing import Any, NoReturn, Protocol

import numpy as np

from oxigrad._core import BatchLevel, assignable, compute_in_rule, record
from oxigrad.ops.protocols import foreign_calls, numpy_protocols
from oxigrad.recording import targets
from oxigrad.recording.deferred import Deferred
from oxigrad.recording.targets import Target


class UnrecordableError(TypeError):
    """Raised where a function cannot be recorded; the reason is the text."""


class Recorder(Protocol):
    """The recording that a value belongs to: see `oxigrad.recording.trace.Trace`."""

    level: int

    def apply(self, target: Target, function: Callable[..., Any], args: Any, named: Any) -> Any:
        """The result of a function, as a traced value."""

    def check(self, traced: "Traced") -> Any:
        """The value, which Python sees from now on."""

    def constant(self, value: np.ndarray) -> Any:
        """A plain array as a traced value."""

    def is_permuted(self, args: Any) -> Any:
        """Whether an array may be in another order in memory than that of its indices."""

    def scattered(self, total: Any, g: "Traced", key: Any, shape: tuple[int, ...]) -> Any:
        """``total``, or zeros of ``shape`` where it is None, with ``g`` added at ``key``."""


@functools.cache
def _op(name: str) -> tuple[Target, Callable[..., Any]]:
    return Target("op", name), lambda *operands, **by_name: record(name, list(operands), by_name or None)


@functools.cache
def _rule(name: str) -> tuple[Target, Callable[..., Any]]:
    return Target("rule", name), lambda *operands: compute_in_rule(name, list(operands))


@functools.cache
def _of_python(name: str) -> tuple[Target, Callable[..., Any]]:
    return Target("operator", name), getattr(operator, name)


class Traced(BatchLevel):
    """A value of a recording. Immutable."""

    __slots__ = ("held", "id", "is_in_rule", "recorder")

    recorder: Recorder
    id: int
    # The value, which may be deferred.
    held: Any
    is_in_rule: bool

    def __new__(cls, trace: Recorder, identifier: int, value: Any, *, is_in_rule: bool = False) -> Any:
        """The value of the entry of this number."""
        self = super().__new__(cls, trace.level)
        self.recorder, self.id, self.held, self.is_in_rule = trace, identifier, value, is_in_rule
        return self

    @property
    def value(self) -> Any:
        """The value in this call."""
        held = self.held
        return held.value() if type(held) is Deferred else held

    @property
    def like(self) -> Any:
        """The value, or one of its shape and dtype where it is not computed."""
        held = self.held
        return held.like if type(held) is Deferred else held

    @property
    def in_rule(self) -> "Traced":
        """The same value as an operand of a derivative rule, whose ops are those of the core."""
        return self if self.is_in_rule else type(self)(self.recorder, self.id, self.held, is_in_rule=True)

    @property
    def out_of_rule(self) -> "Traced":
        """The same value outside of a derivative rule."""
        return type(self)(self.recorder, self.id, self.held) if self.is_in_rule else self

    @property
    def number(self) -> Any:
        """The value as a float of Python, which is traced too."""
        return self if type(self.like) is float else self.recorder.apply(Target("python", "float"), float, (self,), {})

    def lifted(self, x: Any) -> Any:
        """A plain array, which this value indexes, as a value of the recording; anything else as it is."""
        return self.recorder.constant(x) if isinstance(x, np.ndarray) else x

    def scattered_into(self, total: Any, key: Any, shape: tuple[int, ...]) -> Any:
        """The cotangent of ``x`` with this, that of ``x[key]``, added to ``total``, its sum so far or None."""
        return self.recorder.scattered(total, self, key, shape)

    def computed(self, name: str, args: Any, named: dict[str, Any] | None) -> Any:
        """An op, of which this is the argument with the highest level."""
        if name == "call":
            return (named or {})["function"](*args)
        if self.is_in_rule and not named and name not in _VECTORIZED:
            return self.recorder.apply(*_rule(name), tuple(args), {})
        return self.recorder.apply(*_op(name), tuple(args), named or {})

    def _operator(self, name: str, *args: Any) -> Any:
        if self.is_in_rule and name in targets.OPS_OF_OPERATORS:
            return self.computed(targets.OPS_OF_OPERATORS[name], args, None)
        return self.recorder.apply(*_of_python(name), args, {})

    def __bool__(self) -> bool:
        return bool(self.recorder.check(self.recorder.apply(Target("python", "bool"), bool, (self,), {})))

    def __float__(self) -> float:
        return float(self.recorder.check(self))

    def __int__(self) -> int:
        return int(self.recorder.check(self.recorder.apply(Target("python", "int"), int, (self,), {})))

    def __complex__(self) -> complex:
        return complex(self.recorder.check(self))

    def __index__(self) -> int:
        return operator.index(self.recorder.check(self))

    def __repr__(self) -> str:
        return repr(self.recorder.check(self))

    def __str__(self) -> str:
        return str(self.recorder.check(self))

    def __format__(self, specification: str) -> str:
        return format(self.recorder.check(self), specification)

    def __round__(self, digits: int | None = None) -> Any:
        return self.recorder.apply(Target("python", "round"), round, (self, digits), {})

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        if "out" in named or method == "at":
            raise UnrecordableError(f"np.{ufunc.__name__} writes to an array")
        target = targets.target_of(ufunc, method)
        if target is None:
            raise UnrecordableError(f"{ufunc.__name__} is a ufunc of neither NumPy nor SciPy")
        return self.recorder.apply(target, getattr(ufunc, method), inputs, named)

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        if function.__name__ in numpy_protocols.OF_TYPES and function.__module__ == "numpy":
            return function(*_likes(args), **_likes(named))
        if function in numpy_protocols.CREATION and not _has_traced(args[1:]):
            like = args[0].like if args and isinstance(args[0], Traced) and function not in _COPIES else None
            if like is not None or not _has_traced(args):
                return assignable(function(*(args if like is None else (like, *args[1:])), **named))
        target = targets.target_of(function)
        if target is None or named.get("out") is not None:
            raise UnrecordableError(f"np.{getattr(function, '__name__', function)} is not a function without effects")
        return self.recorder.apply(target, function, args, named)

    def __hash__(self) -> int:
        return object.__hash__(self)


def _likes(value: Any) -> Any:
    """The arguments with values of the shape and dtype of traced ones in their place, which need not be computed."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(_likes, value))
    if isinstance(value, dict):
        return {key: _likes(part) for key, part in value.items()}
    return value.like if isinstance(value, Traced) else value


# Functions that copy the elements of their argument.
_COPIES = (np.array, np.asanyarray, np.asarray)


def _has_traced(value: Any) -> bool:
    return isinstance(value, Traced) or (isinstance(value, (list, tuple)) and any(map(_has_traced, value)))


# Ops that the core computes everywhere: in a rule they are the same entries.
_VECTORIZED = ("exp", "expm1", "log", "log1p", "sin", "cos", "tanh", "expit")


def _binary(name: str) -> Callable[..., Any]:
    return lambda self, other: self._operator(name, self, other)


def _reflected(name: str) -> Callable[..., Any]:
    return lambda self, other: self._operator(name, other, self)


def _unary(name: str) -> Callable[..., Any]:
    return lambda self: self._operator(name, self)


for _name in "add sub mul truediv pow mod floordiv matmul and_ or_ xor lshift rshift".split():
    setattr(Traced, f"__{_name.rstrip('_')}__", _binary(_name))
    setattr(Traced, f"__r{_name.rstrip('_')}__", _reflected(_name))
for _name in "lt le gt ge eq ne".split():
    setattr(Traced, f"__{_name}__", _binary(_name))
for _name in "neg pos abs invert".split():
    setattr(Traced, f"__{_name}__", _unary(_name))


class TracedNumber(Traced):
    """A number of Python."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(self.recorder.check(self))

    def __trunc__(self) -> int:
        return int(self)

    def __getattr__(self, name: str) -> Any:
        getattr(self.value, name)  # raises the error of numbers
        if name in ("real", "imag"):
            return self.recorder.apply(Target("attribute", name), operator.attrgetter(name), (self,), {})
        if name == "conjugate":
            return lambda: self.recorder.apply(Target("method", name), builtins.type(self.value).conjugate, (self,), {})
        return getattr(self.recorder.check(self), name)


class TracedArray(Traced):
    """An array: `oxigrad.recording.library` has a class for each array library."""

    __slots__ = ()

    __hash__: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, which a replay checks."""
        return self.like.shape

    @property
    def dtype(self) -> Any:
        """The dtype, which a replay checks."""
        return self.like.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.like.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.like.size

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return self.like.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.like.nbytes

    @property
    def device(self) -> Any:
        """The device."""
        return self.like.device

    def __dlpack_device__(self) -> tuple[int, int]:
        """The memory of the host: what a function reads of the values there is checked, and no branch is that of another device."""
        return 1, 0

    @property
    def sample(self) -> np.ndarray:
        """The value, which lies in memory as in each replay; raises `UnrecordableError` for one that may lie otherwise."""
        if self.recorder.is_permuted(self):
            raise UnrecordableError("the function depends on the order in memory of an array that is not contiguous")
        return self.value

    __pandas_priority__ = foreign_calls.PANDAS_PRIORITY

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        if (left := foreign_calls.left_to_variable(self)) is not None:
            return left
        return np.array(self.recorder.check(self), dtype=dtype)

    def __len__(self) -> int:
        return len(self.like)

    def __iter__(self) -> Any:
        return (self[at] for at in range(len(self)))

    def __contains__(self, item: Any) -> bool:
        return item in self.recorder.check(self)

    def __getitem__(self, key: Any) -> Any:
        return self.recorder.apply(Target("operator", "getitem"), operator.getitem, (self, key), {})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # protocols that share memory
            raise AttributeError(f"a value of a recording has no attribute {name!r}", name=name, obj=self)
        attribute = getattr(self.like, name)  # which raises the error of arrays
        if name in targets.ATTRIBUTES:
            return self.recorder.apply(Target("attribute", name), operator.attrgetter(name), (self,), {})
        if name in targets.METHODS and callable(attribute):

            def method(*args: Any, **named: Any) -> Any:
                if named.get("out") is not None:
                    raise UnrecordableError(f"the method {name} writes to an array")
                target = Target("method", name)
                return self.recorder.apply(
                    target, lambda x, *rest, **by: getattr(x, name)(*rest, **by), (self, *args), named
                )

            return method
        if name == "tolist":
            return lambda: np.asarray(self.recorder.check(self)).tolist()
        raise UnrecordableError(f"arrays of the function are read by {name!r}, which has no entry")


def _refuse_write(self: TracedArray, *_: Any) -> NoReturn:
    raise UnrecordableError("the function writes to an array that it was given or has computed from one")


_WRITES = "setitem delitem iadd isub imul itruediv ipow imod ifloordiv imatmul iand ior ixor ilshift irshift"
for _name in _WRITES.split():
    setattr(TracedArray, f"__{_name}__", _refuse_write)
