"""The differentiable Array API namespace: the standard's functions, recorded on the tape of their arguments.

The elementwise functions come from the op table of the core. What follows them here are the functions with signatures of
their own. Any other function of the standard is passed on to the arguments' array library, and gives plain values.

>>> from oxigrad import xp
>>> round(float(xp.log(2.0)), 6)
0.693147
"""

import functools
import math
import zlib
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from oxigrad import _core
from oxigrad._core import DerivativeError, ShapeError, is_inexact, plain

_record = _core.record

for _function in _core.elementwise_functions():
    globals()[_function.__name__] = _function


# --- array libraries ---------------------------------------------------------------------------------------------------


_NUMBERS = (bool, int, float, complex)
_namespaces: dict[type, Any] = dict.fromkeys(_NUMBERS)


def namespace(*values: Any) -> Any:
    """The namespace, of the standard, of the first value that is an array; NumPy's where none is.

    >>> import numpy as np
    >>> namespace(2.0, np.ones(3)).__name__
    'numpy'
    """
    for value in map(plain, values):
        kind = type(value)
        if kind not in _namespaces:
            _namespaces[kind] = _namespace_of(value)
        if _namespaces[kind] is not None:
            return _namespaces[kind]
    return np


def _namespace_of(value: Any) -> Any:
    if isinstance(value, np.generic):
        return np
    if isinstance(value, _NUMBERS):
        return None
    if hasattr(value, "__array_namespace__"):
        return value.__array_namespace__()
    from array_api_compat import array_namespace  # for libraries whose arrays do not bring their namespace themselves

    return array_namespace(value)


def is_array(value: Any) -> bool:
    """Whether the value is an array of some library: it has a shape and a dtype."""
    return hasattr(value, "dtype") and hasattr(value, "shape")


def is_smooth(value: Any) -> bool:
    """Whether the value can have a derivative: a float, an array of floating-point dtype, or a variable."""
    return isinstance(value, (float, _core.Variable)) or is_inexact(value)


def implementation(name: str, array: Any) -> Callable[..., Any]:
    """What computes an op on plain arrays of this library."""
    if name in _unshaped:
        return _unshaped[name]
    library = namespace(array)
    if name in _irregular:
        return functools.partial(_irregular[name], library)
    return getattr(library, name)


# --- what the core asks of this module ---------------------------------------------------------------------------------


def namespace_module(api_version: str | None) -> ModuleType:
    """The module itself, for ``__array_namespace__``."""
    import sys

    if api_version is not None and api_version > np.__array_api_version__:
        raise ValueError(f"version {api_version!r} of the Array API standard is not supported")
    return sys.modules[__name__]


def seed(value: Any, cotangent: Any) -> Any:
    """What a replay starts from: ``cotangent``, or one where the value is a scalar."""
    shape, expected = tuple(getattr(cotangent, "shape", ())), tuple(getattr(value, "shape", ()))
    if cotangent is None and expected != ():
        raise ShapeError(f"the target has shape {expected}: expected a scalar, or a cotangent of that shape")
    if cotangent is not None and shape != expected:
        raise ShapeError(f"the cotangent has shape {shape}, the target {expected}")
    if not is_array(plain(value)):
        return 1.0 if cotangent is None else cotangent
    if cotangent is None:
        return type(value)(1) if isinstance(value, np.generic) else ones_like(value)
    return cotangent if is_array(plain(cotangent)) else ones_like(value) * cotangent


def fit(g: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """The cotangent ``g`` summed over what broadcasting repeated, in the dtype of the argument."""
    added = len(g.shape) - len(shape)
    axes = [axis for axis, size in enumerate(g.shape) if axis < added or shape[axis - added] != size]
    if axes:
        g = reshape(sum(g, axis=tuple(axes)), tuple(shape))
    return g if g.dtype == dtype else astype(g, dtype)


def fit_number(g: Any) -> Any:
    """The cotangent ``g`` summed to one number."""
    total = sum(g) if len(getattr(g, "shape", ())) else g
    return total if isinstance(total, _core.Variable) else float(total)


def spread(t: Any, y: Any, batch: int | None) -> Any:
    """The tangent ``t`` of an argument, repeated to the shape of the result ``y``, in its dtype."""
    if not is_array(plain(y)):
        return t
    shape = tuple(y.shape)
    if batch is not None:
        own = tuple(t.shape)[1:]
        t, shape = reshape(t, (batch, *(1,) * (len(shape) - len(own)), *own)), (batch, *shape)
    t = broadcast_to(t, shape) if is_array(plain(t)) else ones_like(y) * t
    return t if t.dtype == y.dtype else astype(t, y.dtype)


def zero_tangent(value: Any, batch: int | None) -> Any:
    """The tangent of what nothing flows to; ``batch`` of them along a leading axis."""
    shape = tuple(getattr(value, "shape", ()))
    if batch is not None:
        return namespace(value).zeros((batch, *shape), dtype=dtype_of(value), device=device_of(plain(value)))
    return zeros_like(value) if is_array(plain(value)) else 0.0


class Parts(dict[int, Any]):
    """Cotangents or tangents of some items of a tuple, by position; they add up where two meet."""

    def __add__(self, other: "Parts") -> "Parts":
        """The items of both."""
        return Parts({**self, **{at: self[at] + item if at in self else item for at, item in other.items()}})


def items(parts: Any) -> tuple[Any, ...]:
    """The items of a tuple, which may be the value of a variable."""
    if not isinstance(parts, _core.Variable):
        return parts
    each = enumerate(plain(parts))
    return tuple(_record("item", [parts], {"position": at}) if is_smooth(leaf) else leaf for at, leaf in each)


def part(tangents: Any, at: int) -> Any:
    """One of the tangents that go forwards together; None where there is none."""
    return None if tangents is None else index(tangents, at)


def stack_parts(tangents: Sequence[Any]) -> Any:
    """Tangents together again; None where there is none."""
    known = next((tangent for tangent in tangents if tangent is not None), None)
    if known is None:
        return None
    if isinstance(known, Parts):
        return Parts({at: stack_parts([each.get(at) if each else None for each in tangents]) for at in known})
    zero = zero_tangent(known, None)
    return stack([zero if tangent is None else tangent for tangent in tangents])


def fingerprint(value: Any) -> int | None:
    """A number that tells what is in an array of the host's memory; None for anything else."""
    value = plain(value)
    return zlib.crc32(np.ascontiguousarray(value).data) if isinstance(value, np.ndarray) else None


def dtype_of(value: Any) -> Any:
    """The dtype of an array; that of a Python number as an array."""
    return value.dtype if is_array(value) else np.float64


def device_of(value: Any) -> Any:
    """Where an array lives."""
    return value.device if hasattr(value, "device") else "cpu"


def size_of(shape: tuple[int, ...]) -> int:
    """How many elements an array of this shape has."""
    return math.prod(shape)


def transpose(x: Any) -> Any:
    """The transpose of a matrix."""
    if x.ndim != 2:
        raise ShapeError(f"x.T is of a matrix, and x has {x.ndim} dimensions: x.mT transposes a stack of matrices")
    return permute_dims(x, (1, 0))


def iterate(x: Any) -> Any:
    """The items along the first axis."""
    if x.ndim == 0:
        raise TypeError("a variable without dimensions cannot be iterated over")
    return (index(x, i) for i in range(x.shape[0]))


_ufuncs = {
    "power": "pow",
    "absolute": "abs",
    "true_divide": "divide",
    "arctan2": "atan2",
    "fabs": "abs",
}
_functions = {
    "amax": "max",
    "amin": "min",
    "concatenate": "concat",
    "transpose": "permute_dims",
    "ravel": "ravel",
}


def array_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], named: dict[str, Any] | None) -> Any:
    """NumPy's protocol: ``np.sin(x)`` of a variable is ``xp.sin(x)``."""
    name = _ufuncs.get(ufunc.__name__, ufunc.__name__)
    if method != "__call__" or named:
        raise DerivativeError(f"np.{ufunc.__name__} on a variable takes no method and no keyword arguments")
    if name in globals():
        return globals()[name](*inputs)
    return _undifferentiated(ufunc, f"np.{ufunc.__name__}", inputs, {})


def array_function(function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """NumPy's protocol: ``np.sum(x)`` of a variable is ``xp.sum(x)``."""
    name = _functions.get(function.__name__, function.__name__)
    if name in globals():
        return globals()[name](*args, **named)
    return _undifferentiated(function, f"np.{function.__name__}", args, named)


def _undifferentiated(function: Callable[..., Any], name: str, args: Sequence[Any], named: dict[str, Any]) -> Any:
    """A function without a derivative: plain values are fine, unless a derivative would be lost."""

    def has_variable(value: Any) -> bool:
        if isinstance(value, (list, tuple)):
            return any(map(has_variable, value))
        return isinstance(value, _core.Variable)

    def strip(value: Any) -> Any:
        return type(value)(map(strip, value)) if type(value) in (list, tuple) else plain(value)

    result = function(*map(strip, args), **{key: strip(value) for key, value in named.items()})
    lost = any(map(has_variable, (*args, *named.values())))
    if lost and name.rpartition(".")[2] not in _constant and is_inexact(result):
        raise DerivativeError(f"{name} has no derivative: use another function, or ox.stop_gradient on its arguments")
    return result


_constant = {"zeros_like", "ones_like", "full_like", "empty_like", "round", "ceil", "trunc", "nextafter", "sign"}


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    found = getattr(np, name)
    if not callable(found) or isinstance(found, type):
        return found

    def function(*args: Any, **named: Any) -> Any:
        def of_library(*args: Any, **named: Any) -> Any:
            arrays = [x for arg in args for x in (arg if isinstance(arg, (list, tuple)) else [arg]) if is_array(x)]
            return getattr(namespace(*arrays), name)(*args, **named)

        return _undifferentiated(of_library, f"xp.{name}", args, named)

    function.__name__ = name
    return function


# --- functions with a signature of their own ---------------------------------------------------------------------------

Axis = int | tuple[int, ...] | None


def sum(x: Any, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Sum over ``axis``, or over everything."""
    total = _record("sum", [x], {"axis": axis, "keepdims": keepdims})
    return total if dtype is None else astype(total, dtype)


def mean(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """Arithmetic mean over ``axis``, or over everything."""
    return _record("mean", [x], {"axis": axis, "keepdims": keepdims})


def max(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """Largest element along ``axis``; where several are, the gradient is shared evenly among them."""
    return _record("max", [x], {"axis": axis, "keepdims": keepdims})


def min(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """Smallest element along ``axis``; where several are, the gradient is shared evenly among them."""
    return _record("min", [x], {"axis": axis, "keepdims": keepdims})


def matmul(x1: Any, x2: Any, /) -> Any:
    """Matrix product, over stacks of matrices and with vectors as in the standard."""
    return _record("matmul", [x1, x2])


def matrix_transpose(x: Any, /) -> Any:
    """The transpose of each matrix of a stack."""
    ndim = len(x.shape)
    return permute_dims(x, (*range(ndim - 2), ndim - 1, ndim - 2))


def reshape(x: Any, /, shape: int | tuple[int, ...], *, copy: bool | None = None) -> Any:
    """The elements of ``x`` in another shape; one size may be -1."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    named = {"shape": shape} if copy is None else {"shape": shape, "copy": copy}
    return _record("reshape", [x], named)


def ravel(x: Any, /) -> Any:
    """The elements of ``x`` in one dimension."""
    return reshape(x, (-1,))


def permute_dims(x: Any, /, axes: tuple[int, ...] | None = None) -> Any:
    """The dimensions in another order; reversed where ``axes`` is not given, as NumPy does."""
    ndim = len(x.shape)
    axes = tuple(reversed(range(ndim))) if axes is None else tuple(axis % ndim for axis in axes)
    return _record("permute_dims", [x], {"axes": axes})


def expand_dims(x: Any, /, axis: int = 0) -> Any:
    """A new dimension of size 1 at ``axis``."""
    return _record("expand_dims", [x], {"axis": axis})


def squeeze(x: Any, /, axis: int | tuple[int, ...]) -> Any:
    """The dimensions of size 1 at ``axis`` taken away."""
    return _record("squeeze", [x], {"axis": axis})


def broadcast_to(x: Any, /, shape: tuple[int, ...]) -> Any:
    """``x`` repeated to a larger shape."""
    return _record("broadcast_to", [x], {"shape": tuple(shape)})


def concat(arrays: Sequence[Any], /, *, axis: int | None = 0) -> Any:
    """Arrays one after the other along ``axis``; flattened first where it is None."""
    if axis is None:
        return concat([ravel(x) for x in arrays], axis=0)
    axis = axis % len(arrays[0].shape)
    ends = [0]
    for x in arrays:
        ends.append(ends[-1] + x.shape[axis])
    return _record("concat", list(arrays), {"axis": axis, "ends": tuple(ends)})


def stack(arrays: Sequence[Any], /, *, axis: int = 0) -> Any:
    """Arrays along a new ``axis``."""
    return _record("stack", list(arrays), {"axis": axis % (len(getattr(arrays[0], "shape", ())) + 1)})


def astype(x: Any, dtype: Any, /, *, copy: bool = True) -> Any:
    """``x`` in another dtype; a plain array where that dtype is not of floating point."""
    library = namespace(x)
    if not library.isdtype(dtype, ("real floating", "complex floating")):
        return library.astype(plain(x), dtype, copy=copy)
    if not is_array(x):
        return library.asarray(x, dtype=dtype)
    return _record("astype", [x], {"dtype": dtype, "copy": copy})


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    """The elements at ``indices`` along ``axis``; ``indices`` has the dimensions of ``x``."""
    return _record("take_along_axis", [x], {"indices": plain(indices), "axis": axis})


def index(x: Any, key: Any, /) -> Any:
    """``x[key]``, for every kind of key."""
    key = tuple(map(plain, key)) if isinstance(key, tuple) else plain(key)
    return _record("index", [x], {"key": key})


def scatter_add(g: Any, key: Any, shape: tuple[int, ...], /) -> Any:
    """Zeros of ``shape`` with ``g`` added at ``key``: what indexing is the transpose of. Repeated elements add up."""
    return _record("scatter_add", [g], {"key": key, "shape": tuple(shape)})


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Zeros of the shape of ``x``: a plain array."""
    return namespace(x).zeros_like(plain(x), dtype=dtype, device=device)


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Ones of the shape of ``x``: a plain array."""
    return namespace(x).ones_like(plain(x), dtype=dtype, device=device)


# --- how array libraries do what the standard has no single function for -----------------------------------------------


def _is_basic(key: Any) -> bool:
    parts = key if isinstance(key, tuple) else (key,)
    return all(part is None or part is Ellipsis or isinstance(part, (int, slice)) for part in parts)


def _scatter_add(library: Any, g: Any, *, key: Any, shape: tuple[int, ...]) -> Any:
    import array_api_extra as xpx

    if isinstance(g, (np.ndarray, np.generic)):
        sums = np.zeros(shape, g.dtype)
        if _is_basic(key):
            sums[key] = g
        else:
            np.add.at(sums, key, g)
        return sums
    zeros = library.zeros(shape, dtype=g.dtype, device=g.device)
    if _is_basic(key):
        return xpx.at(zeros, key).set(g)
    positions = library.reshape(library.arange(size_of(shape), device=g.device), shape)[key]
    return library.reshape(_sum_at(library, library.reshape(zeros, (-1,)), positions, g), shape)


def _sum_at(library: Any, zeros: Any, positions: Any, values: Any) -> Any:
    """Adds ``values`` at flat ``positions``, repeated ones too: one round for each time that a position comes again."""
    import array_api_extra as xpx

    positions = library.reshape(positions, (-1,))
    values = library.reshape(values, (-1,))
    total = zeros
    while positions.shape[0]:
        found = library.unique_all(positions)
        total = xpx.at(total, found.values).add(values[found.indices])
        left = library.ones(positions.shape, dtype=library.bool, device=positions.device)
        left = xpx.at(left, found.indices).set(False)
        positions, values = positions[left], values[left]
    return total


_unshaped: dict[str, Callable[..., Any]] = {  # what knows no array library
    "call": lambda *args, function, pull, push: function(*args),
    "item": lambda parts, *, position: parts[position],
}


def _where(library: Any, condition: Any, x1: Any, x2: Any) -> Any:
    if not is_array(condition):
        condition = library.asarray(condition, device=device_of(x1 if is_array(x1) else x2))
    if not is_array(x1) and not is_array(x2):  # the standard takes one number, not two
        x1 = library.asarray(x1, device=condition.device)
    return library.where(condition, x1, x2)


def _broadcast_to(library: Any, x: Any, *, shape: tuple[int, ...]) -> Any:
    if library is np and type(x) is not np.ndarray and isinstance(x, np.generic):
        x = np.asarray(x)
    if library is np and type(x) is np.ndarray and x.ndim == 0:
        repeated = np.ndarray(
            shape, x.dtype, x, 0, (0,) * len(shape)
        )  # what np.broadcast_to makes, in a tenth of the time
        repeated.flags.writeable = False
        return repeated
    return library.broadcast_to(x, shape)


_irregular: dict[str, Callable[..., Any]] = {
    "broadcast_to": _broadcast_to,
    "where": _where,
    "concat": lambda library, *arrays, axis, ends: library.concat(arrays, axis=axis),
    "stack": lambda library, *arrays, axis: library.stack(arrays, axis=axis),
    "index": lambda library, x, *, key: x[key],
    "scatter_add": _scatter_add,
    "astype": lambda library, x, *, dtype, copy: library.astype(x, dtype, copy=copy),
    "take_along_axis": lambda library, x, *, indices, axis: library.take_along_axis(x, indices, axis=axis),
}
