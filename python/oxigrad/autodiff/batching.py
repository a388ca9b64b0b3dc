"""Batched values, which `oxigrad.vmap` passes to functions: arrays with a leading axis that the function does not see.

A `Batched` value has the shape of one example. An op on it is the same op on the whole array: see
`oxigrad.autodiff.rules.batching_rules`. Inside of derivatives, functions with a user-defined rule are called for each
example, and the results stacked (`examples`).

Levels: of two nested transforms the inner one acts first. The core compares the level of a value with the serial
number of tapes, which come from one counter, and calls `batched`.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oxigrad import xp
from oxigrad._core import BatchLevel, plain, record
from oxigrad._typing import Array, Axis
from oxigrad.autodiff.rules.batching_rules import aligned, on_examples
from oxigrad.autodiff.rules.jvp_rules import shifted_axes
from oxigrad.ops.backends import (
    Examples,
    UnbatchedError,
    adapter_of_library,
    beneath,
    device_of,
    dtype_in,
    has_batched,
    has_variable,
    is_of_kind,
    namespace,
    one_by_one,
    standard_namespace,
    zeros_of,
)
from oxigrad.ops.core import primitives
from oxigrad.ops.core.array_like import NO_VALUE
from oxigrad.ops.core.composite import accepts_array_likes
from oxigrad.ops.linalg.standard import recorded_qr, recorded_svd
from oxigrad.ops.protocols import array_methods, foreign_calls, numpy_protocols, undifferentiated


def _refuse(what: str) -> UnbatchedError:
    return UnbatchedError(f"vmap: {what}: the value differs between the examples of a batch")


class Batched(Examples):
    """An array of any library, or a variable, whose leading axis `vmap` hides. Immutable."""

    __jax_array__: Any = foreign_calls.JAXArray()
    __torch_function__: Any = classmethod(foreign_calls.refused_by_torch)

    def __new__(cls, level: int, value: Array) -> "Batched":
        """The examples ``value`` of the `vmap` of this level."""
        chosen: Any = _class_of(namespace(value)) if cls is Batched else cls
        self = super().__new__(chosen, level)
        self.value = value
        return self

    @classmethod
    def of(cls, level: int, value: Array) -> "Batched":
        """The examples ``value`` of the `vmap` of this level, in the class of their library."""
        return Batched(level, value)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an example."""
        return tuple(self.value.shape)[1:]

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self.value.dtype

    @property
    def device(self) -> Any:
        """The device of the array."""
        return device_of(plain(self.value))

    @property
    def ndim(self) -> int:
        """The number of dimensions of an example."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements of an example."""
        return int(np.prod(self.shape))

    @property
    def T(self) -> Any:
        """The dimensions of an example in reverse order."""
        return primitives.permute_dims(self)

    @property
    def mT(self) -> Any:
        """The transpose of each matrix of an example."""
        return primitives.matrix_transpose(self)

    @property
    def at(self) -> Any:
        """Indexed updates, as of variables."""
        return xp.at(self)

    @property
    def out_of_rule(self) -> Any:
        """The same value outside of a derivative rule, for a value of a recording."""
        value = getattr(self.value, "out_of_rule", self.value)
        return self if value is self.value else Batched(self.level, value)

    def computed(self, name: str, args: Sequence[Any], named: dict[str, Any] | None) -> Any:
        """An op, of which this is an argument with the highest level."""
        return batched(name, args, named)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        return xp

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        if method == "__call__" and not named and (name := numpy_protocols.op_of_ufunc(ufunc)):
            return record(name, list(inputs))
        return numpy_protocols.array_ufunc(xp, ufunc, method, inputs, named)

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        like = None if has_batched(args) else self
        return numpy_protocols.array_function(xp, function, args, named, like=like)

    def undifferentiated(self, function: Callable[..., Any], args: Sequence[Any], named: dict[str, Any]) -> Any:
        """The result of a function without a derivative: by its rule, else for each example."""
        name = numpy_protocols.name_of_function(function)
        named = {key: value for key, value in named.items() if value is not NO_VALUE}
        if name in numpy_protocols.OF_TYPES:
            return function(*map(_typical, args), **named)
        if isinstance(function, np.ufunc) and function.nout == 1:
            return _plain_elementwise(function)(*args, **named)
        rule = _PLAIN_RULES.get(name)
        if rule is not None and named.keys() <= numpy_protocols.parameters_of(rule).keys():
            return rule(*args, **named)
        return one_by_one(function, args, named)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            method = array_methods.method(xp, self, beneath(self), name)
            if method is not None:
                return method
        raise AttributeError(f"a batched value has no attribute {name!r}", name=name, obj=self)

    def __getitem__(self, key: Any) -> Any:
        return primitives.index(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise TypeError("vmap: a batched value is immutable: use x = x.at[key].set(value)")

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len of a batched value without dimensions")
        return self.shape[0]

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        raise _refuse("a branch on a batched value: use xp.where")

    def __float__(self) -> float:
        raise _refuse("a batched value is not one number")

    def __complex__(self) -> complex:
        raise _refuse("a batched value is not one number")

    def __int__(self) -> int:
        raise _refuse("a batched value is not one number")

    def __index__(self) -> int:
        raise _refuse("a batched index of an array that is not batched: use xp.take")

    __pandas_priority__ = foreign_calls.PANDAS_PRIORITY

    def __array__(self, *args: Any, **named: Any) -> Any:
        if (left := foreign_calls.left_to_variable(self)) is not None:
            return left
        raise _refuse(
            "a batched value does not turn into an array: use functions of xp, and xp.take for a batched index"
        )

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return record("floor_divide", [self, other]), record("remainder", [self, other])

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return record("floor_divide", [other, self]), record("remainder", [other, self])

    def __repr__(self) -> str:
        return f"Batched(shape={self.shape}, dtype={self.dtype}, examples={self.value.shape[0]})"

    def __hash__(self) -> int:
        return object.__hash__(self)


def _operator(name: str, *, reflected: bool = False) -> Callable[..., Any]:
    def method(self: Batched, *others: Any) -> Any:
        args = [*others, self] if reflected else [self, *others]
        return _PLAIN_RULES[name](*args) if name.startswith("bitwise_") else record(name, args)

    return method


# Maps method names of operators to ops; operators that may be reflected come first.
_BINARY = """add:add sub:subtract mul:multiply truediv:divide pow:pow mod:remainder floordiv:floor_divide matmul:matmul
    and:bitwise_and or:bitwise_or xor:bitwise_xor lshift:bitwise_left_shift rshift:bitwise_right_shift"""
_OTHERS = """ neg:negative pos:positive abs:abs invert:bitwise_invert eq:equal ne:not_equal lt:less le:less_equal
    gt:greater ge:greater_equal"""
for _pair in (_BINARY + _OTHERS).split():
    _method, _, _name = _pair.partition(":")
    setattr(Batched, f"__{_method}__", _operator(_name))
    if _pair in _BINARY.split():
        setattr(Batched, f"__r{_method}__", _operator(_name, reflected=True))


# --- ops --------------------------------------------------------------------------------------------------------------


def batched(name: str, args: Sequence[Any], named: dict[str, Any] | None) -> Any:
    """An op on batched values of the highest level among ``args``."""
    named = named or {}
    if name == "call":
        return named["function"](*args)
    level, values, flags = _unwrapped(args)
    result = on_examples(name, values, flags, named, level)
    if isinstance(plain(result), tuple):  # an op with several results
        return tuple(Batched(level, part) for part in primitives.items(result))
    return Batched(level, result)


def _unwrapped(args: Sequence[Any]) -> tuple[int, list[Any], list[bool]]:
    """The highest level among the arguments; their values, and whether each is batched by this level."""
    level = max(arg.level for arg in args if isinstance(arg, BatchLevel))
    flags = [isinstance(arg, Batched) and arg.level == level for arg in args]
    return level, [arg.value if flag else arg for arg, flag in zip(args, flags, strict=True)], flags


# --- functions without a derivative, and the namespace ----------------------------------------------------------------


def _truth_or_count(name: str) -> Callable[..., Any]:
    def function(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
        if not isinstance(x, Batched):
            return getattr(xp, name)(x, axis=axis, keepdims=keepdims)
        value = x.value
        if axis is None and name.startswith("arg"):
            result = getattr(xp, name)(xp.reshape(value, (value.shape[0], x.size)), axis=1)
            result = xp.reshape(result, (value.shape[0], *(1,) * x.ndim)) if keepdims else result
        else:
            result = getattr(xp, name)(value, axis=shifted_axes(axis, value), keepdims=keepdims)
        return Batched(x.level, result)

    return function


def _argsort(
    x: Any, axis: Any = -1, kind: Any = None, order: None = None, *, descending: bool = False, stable: bool = True
) -> Any:
    """As `xp.argsort`; each ``kind`` of NumPy's is stable here."""
    if not isinstance(x, Batched):
        return xp.argsort(x, axis=axis, descending=descending, stable=stable)
    x, axis = (primitives.reshape(x, (-1,)), -1) if axis is None else (x, axis)
    if isinstance(plain(x.value), Batched):
        order = _argsort(plain(x.value), shifted_axes(axis, x.value), descending=descending, stable=stable)
    else:
        order = standard_namespace(x.value).argsort(
            plain(x.value), axis=shifted_axes(axis, x.value), descending=descending, stable=stable
        )
    return Batched(x.level, order)


def _plain_elementwise(function: Callable[..., Any]) -> Callable[..., Any]:
    def called(*args: Any, **named: Any) -> Any:
        level, values, flags = _unwrapped(args)
        return Batched(level, function(*map(plain, aligned(values, flags)), **named))

    return called


def _typical(value: Any) -> Any:
    """Zeros of the shape and dtype of each example; anything else is unchanged."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(_typical, value))
    return zeros_of(value.shape, beneath(value)) if isinstance(value, Batched) else value


def _like(name: str) -> Callable[..., Any]:
    def function(x: Any, *args: Any, dtype: Any = None, device: Any = None) -> Any:
        x = xp.asarray(x) if isinstance(x, (list, tuple)) else x
        if not isinstance(x, Batched):
            return getattr(xp, name)(x, *args, dtype=dtype, device=device)
        return Batched(x.level, getattr(xp, name)(x.value, *args, dtype=dtype, device=device))

    return function


def _astype(x: Array, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    if _is_smooth(dtype, x) or not isinstance(x, Batched):
        return primitives.astype(x, dtype, copy=copy, device=device)
    return Batched(x.level, primitives.astype(x.value, dtype, copy=copy))


def _is_smooth(dtype: Any, x: Array) -> bool:
    library = namespace(plain(x))
    return is_of_kind(dtype_in(library, dtype), ("real floating", "complex floating"), library)


def _asarray(x: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Any:
    if not isinstance(x, Batched):
        return inspect.unwrap(xp.asarray)(x, dtype=dtype, device=device, copy=copy)
    return x if dtype is None or dtype == x.dtype else primitives.astype(x, dtype)


def _full_like(
    x: Array, /, fill_value: Any, *, dtype: Any = None, device: Any = None, shape: Any = None, **layout: Any
) -> Any:
    """As `numpy.full_like`, whose keywords for the layout in memory have no effect here."""
    if shape is not None:
        return xp.full(shape, fill_value, dtype=x.dtype if dtype is None else dtype)
    if not isinstance(fill_value, Batched):
        return _like("full_like")(x, fill_value, dtype=dtype, device=device)
    return primitives.astype(primitives.broadcast_to(fill_value, x.shape), x.dtype if dtype is None else dtype)


_PLAIN_RULES: dict[str, Callable[..., Any]] = {
    **{name: _truth_or_count(name) for name in "all any argmax argmin count_nonzero".split()},
    **{name: _like(name) for name in "empty_like ones_like zeros_like".split()},
    **{
        name: _plain_elementwise(getattr(xp, name))
        for name in "bitwise_and bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor "
        "iscomplex isneginf isposinf isreal nextafter signbit".split()
    },
    "argsort": _argsort,
    "asarray": _asarray,
    "astype": _astype,
    "full_like": _full_like,
}
# Functions and constants of the array library without batched arguments.
_OF_LIBRARY = set(
    """arange empty eye ones zeros isdtype finfo iinfo can_cast result_type e inf nan newaxis pi bool int8
    int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128""".split()
)


class _Namespace:
    """The functions of the standard for batched values of one array library."""

    __name__ = "vmap"

    def __init__(self, library: Any) -> None:
        self._library = library
        self.linalg, self.fft, self.special = (_Extension(part) for part in ("linalg", "fft", "special"))

    def asarray(self, x: Any, /, **named: Any) -> Any:
        """As `xp.asarray`, in the array library where the value has neither variables nor examples of a batch."""
        is_ours = has_variable((x,)) or has_batched((x,))
        return (_asarray if is_ours else self._library.asarray)(x, **named)

    def full(self, shape: Any, fill_value: Any, **named: Any) -> Any:
        """As `xp.full`, in the array library where the value is a number."""
        function = inspect.unwrap(xp.full) if isinstance(fill_value, Batched) else self._library.full
        return function(shape, fill_value, **named)

    def __getattr__(self, name: str) -> Any:
        if name in _PLAIN_RULES:
            return _PLAIN_RULES[name]
        if name in _OF_LIBRARY or isinstance(getattr(self._library, name, None), type):
            return getattr(self._library, name)
        return _undecorated(xp, name)


class _Extension:
    """An extension of the standard for batched values."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        decomposition = _DECOMPOSITIONS.get(name) if self._name == "linalg" else None
        return decomposition or _undecorated(getattr(xp, self._name), name)


def _undecorated(module: Any, name: str) -> Any:
    """The function of ops, without the decorator that looks it up in the array library."""
    if name not in vars(module):
        if module is xp and undifferentiated.stated(name) is None:
            raise AttributeError(f"vmap: {name} has no batching rule", name=name)
        return getattr(module, name)  # calls `Batched.undifferentiated`
    return _of_array_likes(inspect.unwrap(vars(module)[name]))


_of_array_likes = functools.lru_cache(maxsize=1024)(accepts_array_likes)
_DECOMPOSITIONS = {"svd": recorded_svd, "qr": recorded_qr}


@functools.lru_cache(maxsize=64)
def _class_of(library: Any) -> type[Batched]:
    """The class of batched values of a library, since a namespace belongs to a class."""
    space = _Namespace(library)

    def namespace_of(self: Batched, *, api_version: str | None = None) -> Any:
        return space

    # In-place operators are only for variables of mutable arrays. For an immutable batched value, ``x += y`` is ``x = x
    # + y``.
    names = () if adapter_of_library(library).is_immutable else _BINARY.split()
    in_place = {f"__i{name.partition(':')[0]}__": _operator(name.partition(":")[2]) for name in names}
    return type("Batched", (Batched,), {"__array_namespace__": namespace_of, "__module__": __name__, **in_place})
