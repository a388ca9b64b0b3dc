"""The values that a function is recorded with: each knows its value in this call, and the entry that it came from.

A function that is called with one computes its result at once, on plain values, exactly as without recording, and
appends an entry. What turns a value into something that Python sees (a truth value, a number, an index, a plain array)
appends a check instead: a replay in which it would be another one does not count. Each answers questions about its type
as its plain value does.
"""

import functools
import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad._core import BatchLevel, TracedValue, plain_of, traced_in
from oxigrad.ops.backends import standard_namespace
from oxigrad.ops.protocols import foreign_calls, numpy_protocols
from oxigrad.recording import targets, writes
from oxigrad.recording.targets import Target


class UnrecordableError(TypeError):
    """Raised where a function cannot be recorded; the reason is the text."""


# The refusal of what depends on strides.
OF_ORDER = "the function depends on the order in memory of an array that is not contiguous"


@functools.cache
def of_name(kind: str, name: str) -> tuple[Target, Callable[..., Any]]:
    """The target of this kind and name, with its function."""
    target = Target(kind, name)
    return target, targets.function_of(target)


class Traced(TracedValue):
    """A value of a recording, in a class that has the operators of its plain value. Immutable."""

    __slots__ = ("__weakref__",)

    # The class of the plain value.
    __class__: Any = property(lambda self: type(self.plain))

    @property
    def sample(self) -> Any:
        """The value, which lies in memory as in each replay: one that may lie otherwise is refused."""
        if self.recorder.is_permuted(self):
            self.recorder.refuse(OF_ORDER)
        return self.plain

    def note_buffer(self) -> None:
        """Notes that C code asks for the memory of the value, which it does not get."""
        self.recorder.requests[self.entry] += 1

    @property
    def number(self) -> Any:
        """The value as a float of Python, which is traced too."""
        return self if type(self.plain) is float else self.recorder.apply(*of_name("python", "float"), (self,), {})

    @property
    def _is_finite_number(self) -> bool:
        """Whether the value is a finite number of Python other than zero, which each replay checks."""
        number: Any = self
        is_finite = type(self.plain) is int or (type(self.plain) is float and bool(number * 0.0 == 0.0))
        return is_finite and bool(number != 0)

    def lifted(self, x: Any) -> Any:
        """A plain array, which this value indexes, as a value of the recording; anything else as it is."""
        return self.recorder.constant(x) if isinstance(x, np.ndarray) and not isinstance(x, BatchLevel) else x

    def scattered(self, total: Any, g: Any, key: Any, shape: tuple[int, ...]) -> Any:
        """The cotangent of ``x`` with ``g``, that of ``x[key]``, added to ``total``, its sum so far or None."""
        return self.recorder.scattered(total, g, key, shape)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        target = targets.target_of(ufunc, method)
        if "out" in named or method == "at":
            self.recorder.refuse(f"np.{ufunc.__name__} writes to an array")
        elif target is None:
            self.recorder.refuse(f"{ufunc.__name__} is no ufunc that a recording may call")
        return self.recorder.apply(target or UNKNOWN, getattr(ufunc, method), inputs, named)

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        if function.__name__ in numpy_protocols.OF_TYPES and function.__module__ == "numpy":
            return function(*plain_of(args), **plain_of(named))
        if function in numpy_protocols.CREATION and traced_in(args[1:]) is None:
            is_like = bool(args) and isinstance(args[0], Traced) and function not in _COPIES
            like = plain_of(args[0]) if is_like and not self.recorder.is_permuted(args[0]) else None
            if like is not None or traced_in(args) is None:
                return self.recorder.created(function(*(args if like is None else (like, *args[1:])), **named))
        target = targets.target_of(function)
        if target is None or named.get("out") is not None:
            name = getattr(function, "__name__", function)
            self.recorder.refuse(f"np.{name} is not a function without effects")
        return self.recorder.apply(target or UNKNOWN, function, args, named)

    def __getattr__(self, name: str) -> Any:
        if name in _OF_MEMORY and not (name in _OF_NUMPY and self.recorder.requests[self.entry]):
            self.recorder.refuse(f"the function reads {name} of an array")
            return getattr(self.plain, name)
        if name.startswith("_"):
            raise AttributeError(f"a value of a recording has no attribute {name!r}", name=name, obj=self)
        attribute = getattr(self.plain, name)  # which raises the error of the plain value
        if name in _OF_TYPES:
            return attribute
        if name in ("flags", "strides"):  # of an array that is contiguous in each replay
            self.recorder.lend(self)  # as flags can be set
            return getattr(self.sample, name)
        if name == "base":  # whose identity is asked for
            self.recorder.refuse_result("the function reads base of an array")
        if name in targets.ATTRIBUTES:
            return self.recorder.apply(*of_name("attribute", name), (self,), {})
        is_array = isinstance(self.plain, (np.ndarray, np.generic))
        if (name in targets.METHODS if is_array else name == "conjugate") and callable(attribute):
            return functools.partial(_called, self, name)
        if name == "tolist" or not is_array:
            return getattr(self.recorder.check(self), name)
        self.recorder.refuse(f"arrays of the function are read by {name!r}, which has no entry")
        return attribute


def single(value: Any) -> Any:
    """A float of Python, rounded to float32; anything else as it is."""
    with np.errstate(over="ignore"):
        if type(value) is float:
            return float(np.float32(value))
        return np.positive(value, dtype="f4") if isinstance(value, Traced) and type(value.plain) is float else value


# The target of a function that no recording has.
UNKNOWN = Target("", "")
# Attributes that shapes and dtypes tell, which a replay checks.
_OF_TYPES = set("shape dtype ndim size itemsize nbytes device".split())
# The protocols that share memory, and those by which NumPy asks for it between the buffer and `__array__`.
_OF_NUMPY = ("__array_struct__", "__array_interface__")
_OF_MEMORY = ("__buffer__", "__dlpack__", *_OF_NUMPY)
# Functions that copy the elements of their argument.
_COPIES = (np.array, np.asanyarray, np.asarray)


def _called(self: Traced, name: str, *args: Any, **named: Any) -> Any:
    """The result of a method."""
    if named.get("out") is not None:
        self.recorder.refuse(f"the method {name} writes to an array")
    return self.recorder.apply(*of_name("method", name), (self, *args), named)


# --- the operators of plain values ------------------------------------------------------------------------------------


INTEGERS = (int, np.integer)
# The types of real numbers of Python, whose power may be complex.
_REALS = ({float}, {float, int})
# What an integer repeats: Python asks for its index.
_REPEATED = (list, tuple, str, bytes, bytearray)


def _operator(self: Traced, name: str, *args: Any) -> Any:
    if name == "mul" and isinstance(self.plain, INTEGERS) and any(isinstance(arg, _REPEATED) for arg in args):
        return NotImplemented
    if name == "pow" and all(type(plain_of(arg)) is int for arg in args):
        bool(args[1] >= 0)  # by which the power is an integer or a float
    result = self.operate(name, targets.OPS_OF_OPERATORS.get(name), *args)
    if name == "pow" and not self.is_in_rule and {*map(type, map(plain_of, args))} in _REALS:
        is_whole = type(args[1]) is int or (type(args[1]) is float and args[1].is_integer())
        if not (is_whole or args[0] >= 0):  # a number of Python, real or complex
            self.recorder.check(self.recorder.apply(*of_name("numpy", "iscomplexobj"), (result,), {}))
    return result


# Operators of which more is asked: see `_operator`.
_ASKED = ("mul", "pow")


def _binary(name: str) -> Callable[..., Any]:
    op = targets.OPS_OF_OPERATORS.get(name)
    if name in _ASKED:
        return lambda self, other: _operator(self, name, self, other)
    return lambda self, other: self.operate(name, op, self, other)


def _reflected(name: str) -> Callable[..., Any]:
    op = targets.OPS_OF_OPERATORS.get(name)
    if name in _ASKED:
        return lambda self, other: _operator(self, name, other, self)
    return lambda self, other: self.operate(name, op, other, self)


def _unary(name: str) -> Callable[..., Any]:
    return lambda self: _operator(self, name, self)


def _positive(self: Traced) -> Any:
    return self if type(self.plain) in (float, int, complex) else _operator(self, "pos", self)


_OF_WRITE = "the function writes to an array that it was given, or to a view of one"


def _in_place(name: str) -> Callable[..., Any]:
    in_place: Any = getattr(operator, f"i{name}")

    def write(self: Traced, other: Any) -> Any:
        if writes.place_of(self) is None or self.recorder.refusal is not None:
            self.recorder.refuse(_OF_WRITE)
            return in_place(self.plain, plain_of(other))
        try:
            result = _operator(self, name, self, other)
        except Exception:
            in_place(self.plain, plain_of(other))  # which raises too, with another text
            raise
        its = plain_of(result)
        if result is NotImplemented:
            return result
        if np.shape(its) != self.plain.shape or not np.can_cast(its.dtype, self.plain.dtype, "same_kind"):
            in_place(self.plain, plain_of(other))  # which raises
        return self if writes.write(self, ..., result, plain_of, is_result=True) else _unwritten(self)

    return write


def _assign(self: Traced, key: Any, value: Any) -> None:
    if isinstance(value, Traced) and writes.is_exchange(value, self, sys._getframe(1)):
        self.recorder.refuse_result("C code assigns a part of an array to another part")
    if not writes.write(self, key, value, plain_of):
        _unwritten(self)


def _unwritten(self: Traced) -> Any:
    self.recorder.refuse(_OF_WRITE)
    return self.plain


def _delete(self: Traced, key: Any) -> None:
    operator.delitem(self.plain, plain_of(key))  # which raises


def _seen(name: str) -> Callable[..., Any]:
    """A method that Python calls for a plain value, which is checked."""
    return lambda self, *args: getattr(type(self.plain), name)(self.recorder.check(self), *args)


def _converted(kind: type) -> Callable[..., Any]:
    """A conversion to a truth value or an integer, which is checked."""
    return lambda self: kind(self.recorder.check(self.recorder.apply(*of_name("python", kind.__name__), (self,), {})))


def _array(self: Traced, dtype: Any = None, copy: Any = None) -> np.ndarray:
    if self.recorder.requests[self.entry]:
        self.recorder.requests[self.entry] -= 1
    if (left := foreign_calls.left_to_variable(self)) is not None:
        return left
    array = np.array(self.recorder.check(self), dtype=dtype, copy=copy)
    if np.may_share_memory(array, self.plain):
        self.recorder.lend(self)
        if array is self.plain and writes.compares_identity(sys._getframe(1)):
            self.recorder.refuse_result("the function may ask whether two arrays are one object")
    return array


# Other attributes of arrays that may be set.
_OF_ARRAYS = ("real", "imag", "flat", "strides")


def _attribute(name: str, get: Callable[[Any], Any]) -> property:
    def put(self: Traced, value: Any) -> None:
        self.recorder.refuse(f"the function sets {name} of an array")
        setattr(self.plain, name, plain_of(value))

    return property(get, put)


def _copied(self: Traced, _: Any = None) -> Any:
    return self.copy() if isinstance(self.plain, np.ndarray) else self


def _reduced(self: Traced, protocol: int) -> Any:
    """The parts of a pickle of a value; the pickle of a number is refused, as C code asks for its class."""
    if not isinstance(self.plain, (np.ndarray, np.generic)):
        self.recorder.refuse_result("the function pickles a number")
    return self.recorder.check(self).__reduce_ex__(protocol)


_BINARY = "add sub mul truediv pow mod floordiv matmul and_ or_ xor lshift rshift".split()
_METHODS: dict[str, Callable[..., Any]] = {
    **{f"__{name.rstrip('_')}__": _binary(name) for name in (*_BINARY, *"lt le gt ge eq ne getitem".split())},
    **{f"__r{name.rstrip('_')}__": _reflected(name) for name in _BINARY},
    **{f"__{name}__": _unary(name) for name in "neg abs invert".split()},
    **{f"__i{name.rstrip('_')}__": _in_place(name.rstrip("_")) for name in _BINARY},
    "__setitem__": _assign,
    "__delitem__": _delete,
    **{f"__{name}__": _seen(f"__{name}__") for name in "complex float index contains format trunc floor ceil".split()},
    "__pos__": _positive,
    "__bool__": _converted(bool),
    "__int__": _converted(int),
    "__round__": lambda self, digits=None: self.recorder.apply(*of_name("python", "round"), (self, digits), {}),
    "__divmod__": lambda self, other: (self // other, self % other),
    "__rdivmod__": lambda self, other: (other // self, other % self),
    "__len__": lambda self: len(self.plain),
    "__iter__": lambda self: (self[at] for at in range(len(self.plain))),
}
# Those of every value: `__array__` too, so that NumPy takes a list of numbers for one of numbers.
_OF_ALL: dict[str, Any] = {
    "__slots__": (),
    "__repr__": lambda self: repr(self.recorder.check(self)),
    "__str__": lambda self: str(self.recorder.check(self)),
    "__array__": _array,
    "__copy__": _copied,
    "__deepcopy__": _copied,
    "__reduce__": lambda self: _reduced(self, 0),
    "__reduce_ex__": lambda self, protocol: _reduced(self, protocol),
    "__pandas_priority__": foreign_calls.PANDAS_PRIORITY,
}


@functools.cache
def class_of(plain: type) -> type[Traced]:
    """The class of the traced values of a plain class, which has the methods that the plain class has."""
    methods: dict[str, Any] = {name: each for name, each in _METHODS.items() if getattr(plain, name, None) is not None}
    if "__getitem__" in methods:  # from which Python derives an iterator otherwise
        methods.setdefault("__iter__", None)
    methods["__hash__"] = None if plain.__hash__ is None else _seen("__hash__")
    if issubclass(plain, (np.ndarray, np.generic)):
        # The memory of the host: what a function reads of the values there is checked, and no branch is that of another
        # device.
        methods["__dlpack_device__"] = lambda self: (1, 0)
        methods["__array_namespace__"] = lambda self, *, api_version=None: standard_namespace(np.zeros(0))
        methods |= {name: _attribute(name, operator.attrgetter(f"plain.{name}")) for name in _OF_TYPES}
    if issubclass(plain, np.ndarray):
        methods |= {name: _attribute(name, lambda self, name=name: self.__getattr__(name)) for name in _OF_ARRAYS}
    names = {"__module__": plain.__module__, "__qualname__": plain.__qualname__}
    # The name in errors, with which C code names its classes.
    name = plain.__name__ if plain.__module__ == "builtins" else f"{plain.__module__}.{plain.__name__}"
    return type(name, (Traced,), {**_OF_ALL, **methods, **names})


def is_traced(value: Any) -> bool:
    """Whether a value is traced; no `__class__` of another object is read."""
    return issubclass(type(value), Traced)
