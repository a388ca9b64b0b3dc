"""NumPy's functions that make arrays, of variables too: ``np.array([x, 1.0], like=x)`` and spaced numbers."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oxigrad._core import is_inexact, plain
from oxigrad._typing import Array, Device, Dtype, Results, Shape
from oxigrad.ops.backends import (
    array_of,
    beneath,
    blank_like,
    device_of,
    dtype_in,
    dtype_of,
    has_variable,
    is_array,
    namespace,
)
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core import standard
from oxigrad.ops.core.array_like import array as as_array
from oxigrad.ops.core.array_like import values
from oxigrad.ops.core.in_place import of_library
from oxigrad.ops.core.primitives import arrays_of, copied
from oxigrad.ops.numpy.extras import atleast_1d, cast_joined
from oxigrad.ops.numpy.moves import moved
from oxigrad.ops.numpy.numpy_signatures import numpy_signature


def array(
    object: Any,
    dtype: Dtype = None,
    *,
    copy: bool | None = True,
    order: str | None = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: int = 0,
    like: None = None,
) -> Array:
    """An array, or a list with variables, as an array of at least ``ndmin`` dimensions."""
    result = as_array(object, dtype)
    result = copied(result) if copy and result is object else result
    return ops.reshape(result, (1,) * (ndmin - result.ndim) + tuple(result.shape)) if ndmin > result.ndim else result


def asarray(
    a: Array,
    dtype: Dtype = None,
    order: str | None = None,
    *,
    device: Device = None,
    copy: bool | None = None,
    like: None = None,
) -> Array:
    """A variable itself, or a list with variables as an array."""
    result = as_array(a, dtype)
    return copied(result) if copy and result is a else result


def ascontiguousarray(a: Array, dtype: Dtype = None, *, like: None = None) -> Array:
    """A variable itself, or a list with variables as an array; of at least one dimension."""
    return atleast_1d(as_array(a, dtype))


def require(a: Array, dtype: Dtype = None, requirements: Any = None, *, like: None = None) -> Array:
    """Returns a variable unchanged: requirements on memory apply to its plain array."""
    return as_array(a, dtype)


@numpy_signature(np.full)
def full(shape: int | Shape, fill_value: Array, dtype: Dtype = None, device: Device = None) -> Array:
    """An array filled with a value, which is broadcast."""
    standard.require_device("full", fill_value, device)
    shape = tuple(shape) if isinstance(shape, (list, tuple)) else (operator.index(shape),)
    filled = copied(ops.broadcast_to(as_array(fill_value), shape))
    return filled if dtype is None else ops.astype(filled, dtype, copy=False)


@numpy_signature(np.full_like)
def full_like(
    a: Array, fill_value: Array, dtype: Dtype = None, shape: int | Shape | None = None, device: Device = None
) -> Array:
    """An array of the shape and dtype of ``a``, filled with a value, which is broadcast."""
    like = plain(a)
    shape = tuple(np.shape(like)) if shape is None else shape
    return full(shape, fill_value, dtype_of(like) if dtype is None and is_array(like) else dtype, device=device)


def _like(name: str) -> Callable[..., Any]:
    """The NumPy function that creates an array of the shape and dtype of another, possibly a list of variables."""

    # Before NumPy 2.4, its empty_like has no signature.
    @numpy_signature(np.ones_like, {"a": "prototype"} if name == "empty_like" else {})
    def like(dtype: Dtype = None, shape: int | Shape | None = None, device: Device = None, **named: Any) -> Array:
        a = as_array(*named.values())  # whose name differs
        if shape is None:
            return blank_like(name, a, dtype, device)
        library = namespace(bare := beneath(a))
        function = getattr(library, name.removesuffix("_like"))
        return function(shape, dtype=bare.dtype if dtype is None else dtype_in(library, dtype), device=device)

    return like


empty_like: Callable[..., Any] = _like("empty_like")
ones_like: Callable[..., Any] = _like("ones_like")
zeros_like: Callable[..., Any] = _like("zeros_like")


def arange(
    start: Array, stop: Array = None, step: Array = 1, dtype: Dtype = None, *, device: Device = None, like: None = None
) -> Array:
    """The numbers from ``start``, in steps of ``step``, before ``stop``, which only decides how many there are."""
    start, stop = (0, start) if stop is None else (start, stop)
    reference = next((plain(x) for x in (start, stop, step) if is_array(plain(x))), 0.0)
    library, device = namespace(reference), device or device_of(reference)
    first, last, by = (_number(x) for x in (start, stop, step))
    spaced = library.arange(first, last, by, dtype=dtype_in(library, dtype), device=device)
    if not has_variable((start, step)) or not is_inexact(spaced):
        return spaced
    # Zeros that carry the derivatives of the start and of the step; the numbers come from the library.
    places = library.arange(spaced.shape[0], dtype=spaced.dtype, device=device)
    return spaced + ((start - plain(start)) + (step - plain(step)) * places)


def _number(x: Array) -> float:
    """An argument of `arange` as a plain number."""
    return x if type(x) in (int, float) else values(x).item()


@numpy_signature(np.linspace)
def linspace(
    start: Array, stop: Array, num: int = 50, endpoint: bool = True, retstep: bool = False, axis: int = 0, **named: Any
) -> Results:
    """Evenly spaced numbers along ``axis``; with ``retstep``, a tuple of them and their distance."""
    start, stop = (x if type(x) in (int, float, complex) else as_array(x) for x in (start, stop))
    spaced = standard.linspace(start, stop, num, endpoint=endpoint, **named)
    spaced = standard.moveaxis(spaced, 0, axis) if axis != 0 else spaced
    steps = num - 1 if endpoint else num
    return (spaced, (stop - start) / steps if steps > 0 else np.nan) if retstep else spaced


def logspace(
    start: Array,
    stop: Array,
    num: int = 50,
    endpoint: bool = True,
    base: Array = 10.0,
    dtype: Dtype = None,
    axis: int = 0,
) -> Array:
    """``base`` to the power of evenly spaced numbers."""
    spaced = ops.pow(base, linspace(start, stop, num, endpoint, axis=axis))
    return spaced if dtype is None else ops.astype(spaced, dtype)


def geomspace(
    start: Array, stop: Array, num: int = 50, endpoint: bool = True, dtype: Dtype = None, axis: int = 0
) -> Array:
    """Numbers of constant ratio along ``axis``."""
    start, stop = (as_array(x) for x in (start, stop))
    start, stop = start + 0.0, stop + 0.0
    ratio = ops.divide(stop, start)
    exponents = linspace(ops.log(ratio) * 0.0, ops.log(ratio), num, endpoint)
    spaced = start * ops.exp(exponents)
    spaced = standard.moveaxis(spaced, 0, axis) if axis != 0 else spaced
    return spaced if dtype is None else ops.astype(spaced, dtype)


def meshgrid(*xi: Array, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Results:
    """Coordinates as arrays with a dimension for each argument; of size 1 in the other dimensions if ``sparse``."""
    return moved(np.meshgrid, *map(atleast_1d, xi), sparse=sparse, indexing=indexing)


def concatenate(
    arrays: Sequence[Array], axis: int | None = 0, out: None = None, *, dtype: Dtype = None, casting: str = "same_kind"
) -> Array:
    """Arrays joined along ``axis``, or flattened first if ``axis`` is None."""
    parts = arrays_of(arrays, "concatenate")
    return cast_joined("concatenate", ops.concat(parts, axis=axis), parts, dtype, casting)


def stack(
    arrays: Sequence[Array], axis: int = 0, out: None = None, *, dtype: Dtype = None, casting: str = "same_kind"
) -> Array:
    """Arrays joined along a new ``axis``."""
    parts = arrays_of(arrays, "stack")
    return cast_joined("stack", ops.stack(parts, axis=axis), parts, dtype, casting)


# --- elements ---------------------------------------------------------------------------------------------------------


def ediff1d(ary: Array, to_end: Array = None, to_begin: Array = None) -> Array:
    """Differences of neighbours of the flattened array, between ``to_begin`` and ``to_end``."""
    ary = as_array(ary)
    parts = [
        None if part is None else ops.ravel(ops.astype(array_of(part, [ary]), dtype_of(plain(ary)), copy=False))
        for part in (to_begin, to_end)
    ]
    inside = standard.diff(ops.ravel(ary))
    joined = [part for part in (parts[0], inside, parts[1]) if part is not None]
    return ops.concat(joined) if len(joined) > 1 else inside


def unwrap(p: Array, discont: Array = None, axis: int = -1, *, period: Array = 2.0 * np.pi) -> Array:
    """Phases without jumps of a period: each is moved by whole periods, which are plain values."""
    p = as_array(p)
    bare, size = values(p), plain(period)
    jumps = np.round((np.unwrap(bare, plain(discont), axis, period=size) - bare) / size)
    return p + ops.where(of_library(np.isinf(bare), p), 0.0, of_library(jumps, p) * period)
