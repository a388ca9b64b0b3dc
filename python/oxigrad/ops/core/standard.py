"""Functions of the standard that are composed of primitives, so that they have derivatives of any order.

On plain values the array library's own functions are called.
"""

import builtins
import functools
import math
import operator
from typing import Any, cast

import numpy as np

from oxigrad._core import BatchLevel, ShapeError, Variable, plain
from oxigrad._typing import Array, Device, Dtype, F
from oxigrad.ops.backends import (
    array_of,
    device_of,
    dtype_in,
    dtype_of,
    is_array,
    is_complex,
    is_of_kind,
    namespace,
    standard_namespace,
)
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core.composite import composite, of_numpy
from oxigrad.ops.core.guarded import clipped
from oxigrad.ops.core.primitives import (
    Axis,
    along,
    astype,
    broadcast_to,
    concat,
    copied,
    index,
    mean,
    permute_dims,
    require_device,
    reshape,
    stack,
    sum,
    take_along_axis,
    zeros_like,
)
from oxigrad.ops.core.shapes import position

__all__ = [
    "asarray",
    "broadcast_arrays",
    "clip",
    "copysign",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "moveaxis",
    "prod",
    "repeat",
    "roll",
    "sort",
    "std",
    "take",
    "tile",
    "tril",
    "triu",
    "unstack",
    "var",
]


# --- elementwise ------------------------------------------------------------------------------------------------------


def as_floats(value: Array) -> Array:
    """An array of integers as one of the default floating-point dtype of its library; None for anything else."""
    if not is_array(value) or not is_of_kind(value.dtype, "integral", namespace(value)):
        return None
    return astype(value, namespace(value).zeros(()).dtype)


def _in_native_order(function: F) -> F:
    """Decorates a function whose version in array_api_compat fails of NumPy arrays in the other byte order."""

    @functools.wraps(function)
    def called(x: Array, /, *args: Any, **named: Any) -> Any:
        if isinstance(x, np.ndarray) and not x.dtype.isnative:
            x = x.astype(x.dtype.newbyteorder("="))
        return function(x, *args, **named)

    return cast(F, called)


@_in_native_order
@composite
def clip(x: Array, /, min: Array | None = None, max: Array | None = None) -> Array:
    """``x`` clipped to ``[min, max]``; at a bound the gradient is shared evenly with the bound."""
    return clipped(x, min, max)


@composite
def copysign(x1: Array, x2: Array, /) -> Array:
    """The magnitude of ``x1`` with the sign of ``x2``. The gradients of ``x2``, and of ``x1`` at zero, are zero."""
    sign = plain(x2)
    if not is_array(sign):
        return ops.abs(x1) * math.copysign(1.0, sign)
    one = namespace(sign).ones_like(sign)
    if isinstance(sign, BatchLevel):
        return ops.abs(x1) * ops.where(namespace(sign).signbit(sign), -one, one)
    return ops.abs(x1) * namespace(sign).copysign(one, sign)


# --- reductions -------------------------------------------------------------------------------------------------------


def axes_of(axis: Axis | list[int], ndim: int) -> tuple[int, ...]:
    """The axes of a reduction, counted from the front; all axes if ``axis`` is None."""
    chosen = range(ndim) if axis is None else axis if isinstance(axis, (list, tuple)) else (axis,)
    if ndim == 0 and chosen in ((0,), (-1,)):  # NumPy accepts these axes for 0-d arrays, too
        return ()
    return tuple(position(a, ndim) for a in chosen)


def _size(x: Array, axis: Axis) -> int:
    return math.prod(x.shape[a] for a in axes_of(axis, x.ndim))


@composite
def var(x: Array, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """Variance over ``axis``, or over everything; ``correction`` is subtracted from the number of elements."""
    count = _size(x, axis)
    free = builtins.max(count - correction, 0)
    apart = x - mean(x, axis=axis, keepdims=True)
    squares = ops.real(apart * ops.conj(apart)) if is_complex(x) else ops.square(apart)
    return mean(squares, axis=axis, keepdims=keepdims) * (count / free if free else math.inf)


@composite
def std(x: Array, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """Standard deviation; its gradient is zero where the deviation is zero."""
    return ops.root_or_zero(var(x, axis=axis, correction=correction, keepdims=keepdims))


@composite
def prod(x: Array, /, *, axis: Axis = None, dtype: Dtype = None, keepdims: bool = False) -> Array:
    """Product over ``axis``, or over all elements, computed pairwise; derivatives are exact at zero elements.

    >>> import oxigrad as ox
    >>> ox.grad(prod)(np.array([2.0, 0.0, 5.0]))
    array([ 0., 10.,  0.])
    """
    x = x if dtype is None else astype(x, dtype)
    axes = axes_of(axis, x.ndim)
    outer = tuple(a for a in range(x.ndim) if a not in axes)
    factors = reshape(permute_dims(x, outer + axes), (*(x.shape[a] for a in outer), _size(x, axes)))
    shape = tuple(1 if a in axes else size for a, size in enumerate(x.shape))
    product = _fold(factors)
    return reshape(product, shape) if keepdims else product


def _fold(x: Array) -> Array:
    """The product along the last axis."""
    if x.shape[-1] == 0:
        return ops.ones_like(sum(x, axis=-1))
    while x.shape[-1] > 1:
        half = x.shape[-1] // 2
        pairs = x[..., :half] * x[..., half : 2 * half]
        x = concat([pairs, x[..., 2 * half :]], axis=-1) if x.shape[-1] % 2 else pairs
    return x[..., 0]


# --- cumulative -------------------------------------------------------------------------------------------------------


def _of_dimensions(function: F) -> F:
    """Decorates a cumulative function to reject 0-d arrays, on which libraries disagree."""

    @functools.wraps(function)
    def called(*args: Any, **named: Any) -> Any:
        if args and tuple(getattr(args[0], "shape", (1,))) == ():
            raise ShapeError(f"{function.__name__}: found an array of no dimensions, expected one or more")
        return function(*args, **named)

    return cast(F, called)


def _only_axis(x: Array, axis: int | None) -> int:
    if axis is None and x.ndim != 1:
        raise ShapeError(f"axis is None: expected an axis, for an array of {x.ndim} dimensions")
    return position(0 if axis is None else axis, x.ndim)


def _initial(x: Array, axis: int, value: float) -> Array:
    shape = tuple(1 if a == axis else size for a, size in enumerate(x.shape))
    return namespace(x).full(shape, value, dtype=dtype_of(x), device=device_of(plain(x)))


@_of_dimensions
@composite
def cumulative_sum(
    x: Array, /, *, axis: int | None = None, dtype: Dtype = None, include_initial: bool = False
) -> Array:
    """Cumulative sums along ``axis``, which is optional for an array of one dimension."""
    x = x if dtype is None else astype(x, dtype)
    axis = _only_axis(x, axis)
    sums = ops.cumulative_sum(x, axis=axis)
    sums = sums if dtype is None else astype(sums, dtype, copy=False)  # NumPy sums small integers in a larger one
    return concat([_initial(x, axis, 0.0), sums], axis=axis) if include_initial else sums


@_of_dimensions
@composite
def cumulative_prod(
    x: Array, /, *, axis: int | None = None, dtype: Dtype = None, include_initial: bool = False
) -> Array:
    """Cumulative products along ``axis``; derivatives are exact where elements are zero."""
    x = x if dtype is None else astype(x, dtype)
    axis = _only_axis(x, axis)
    width, products = 1, x
    while width < x.shape[axis]:
        first, rest, before = (along(axis, part) for part in (slice(width), slice(width, None), slice(-width)))
        products = concat([products[first], products[rest] * products[before]], axis=axis)
        width *= 2
    return concat([_initial(x, axis, 1.0), products], axis=axis) if include_initial else products


@composite
def diff(
    x: Array, /, *, axis: int = -1, n: int = 1, prepend: Array | None = None, append: Array | None = None
) -> Array:
    """The ``n``-th differences of neighbours along ``axis``."""
    axis = position(axis, x.ndim)
    if n < 0:
        raise ValueError(f"diff: n is {n}: expected zero or more")
    if n and (prepend is not None or append is not None):
        one = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
        parts = (
            part if part is None or getattr(part, "shape", ()) else full(one, part) for part in (prepend, x, append)
        )
        x = concat([part for part in parts if part is not None], axis=axis)
    for _ in range(n):
        x = x[along(axis, slice(1, None))] - x[along(axis, slice(None, -1))]
    return x


# --- shapes -----------------------------------------------------------------------------------------------------------


@composite
def moveaxis(x: Array, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Array:
    """The dimensions ``source`` moved to ``destination``; the others keep their order."""
    sources, destinations = ([position(a, x.ndim) for a in _tuple(axes)] for axes in (source, destination))
    order = [a for a in range(x.ndim) if a not in sources]
    for to, a in sorted(zip(destinations, sources, strict=True)):
        order.insert(to, a)
    return permute_dims(x, tuple(order))


@composite
def roll(x: Array, /, shift: int | tuple[int, ...], *, axis: Axis = None) -> Array:
    """The elements shifted along ``axis``, circularly."""
    if axis is None:
        return reshape(roll(reshape(x, (-1,)), builtins.sum(_tuple(shift)), axis=0), x.shape)
    axes, shifts = [position(a, x.ndim) for a in _tuple(axis)], _tuple(shift)
    # as in NumPy, a single shift or a single axis applies to all of the others
    count = len(shifts) if len(axes) == 1 else len(axes)
    axes, shifts = axes * count if len(axes) == 1 else axes, shifts * count if len(shifts) == 1 else shifts
    for by, a in zip(shifts, axes, strict=True):
        if x.shape[a]:
            cut = -by % x.shape[a]
            x = concat([x[along(a, slice(cut, None))], x[along(a, slice(cut))]], axis=a)
    return x


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


@composite
def repeat(x: Array, repeats: Array, /, *, axis: int | None = None) -> Array:
    """Each element repeated ``repeats`` times; flattened first if ``axis`` is None or ``x`` is 0-d."""
    if axis is None or (not x.ndim and axis in (0, -1)):
        x, axis = reshape(x, (-1,)), 0
    axis = position(axis, x.ndim)
    library = standard_namespace(x)
    places = library.arange(x.shape[axis], device=device_of(plain(x)))
    repeats = array_of(repeats, [places]) if isinstance(repeats, (list, tuple)) else plain(repeats)
    return take(x, library.repeat(places, repeats), axis=axis)


@composite
def tile(x: Array, repetitions: int | tuple[int, ...], /) -> Array:
    """``x`` repeated ``repetitions`` times along each axis; fewer repetitions apply to the last axes."""
    counts = tuple(map(operator.index, _tuple(repetitions)))
    if any(count < 0 for count in counts):
        raise ShapeError(f"tile: repetitions is {counts}: expected non-negative counts")
    shape = (1,) * (len(counts) - x.ndim) + tuple(x.shape)
    counts = (1,) * (len(shape) - len(counts)) + counts
    apart = tuple(size for size in shape for size in (1, size))
    copies = tuple(size for pair in zip(counts, shape, strict=True) for size in pair)
    whole = tuple(count * size for count, size in zip(counts, shape, strict=True))
    return copied(reshape(broadcast_to(reshape(x, apart), copies), whole))


@composite
def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The subarrays along ``axis``, without that axis."""
    axis = position(axis, x.ndim)
    return tuple(x[along(axis, i)] for i in range(x.shape[axis]))


@composite
def broadcast_arrays(*arrays: Array) -> tuple[Array, ...]:
    """The arrays broadcast to one shape."""
    shape = np.broadcast_shapes(*(tuple(getattr(x, "shape", ())) for x in arrays))
    return tuple(broadcast_to(x, shape) for x in arrays)


@composite
def meshgrid(*arrays: Array, indexing: str = "xy") -> tuple[Array, ...]:
    """Coordinate arrays with a dimension per argument; the first two are swapped unless ``indexing`` is "ij"."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing is {indexing!r}: expected 'xy' or 'ij'")
    order = list(range(len(arrays)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = 1, 0
    shape = [1] * len(arrays)
    return broadcast_arrays(
        *(reshape(x, (*shape[: order[i]], -1, *shape[order[i] + 1 :])) for i, x in enumerate(arrays))
    )


def _below(x: Array, k: int) -> Array:
    """A mask of the elements on or below the ``k``-th diagonal; a vector is treated as a matrix of equal rows."""
    library, (rows, columns) = namespace(x), (*x.shape, *x.shape)[-2:]
    row, column = (library.arange(size, device=device_of(plain(x))) for size in (rows, columns))
    return library.reshape(column, (1, -1)) - library.reshape(row, (-1, 1)) <= k


@composite
def tril(x: Array, /, *, k: int = 0) -> Array:
    """The matrix on and below the ``k``-th diagonal, zero above."""
    return ops.where(_below(x, k), x, 0.0)


@composite
def triu(x: Array, /, *, k: int = 0) -> Array:
    """The matrix on and above the ``k``-th diagonal, zero below."""
    return ops.where(_below(x, k - 1), 0.0, x)


# --- elements ---------------------------------------------------------------------------------------------------------


@composite
def take(x: Array, indices: Array, /, *, axis: int | None = None) -> Array:
    """The elements at ``indices`` along ``axis``, or of the flattened array if ``axis`` is None."""
    x, axis = (reshape(x, (-1,)), 0) if axis is None else (x, position(axis, x.ndim))
    return index(x, along(axis, indices))


@composite
def sort(x: Array, /, *, axis: int | None = -1, descending: bool = False, stable: bool = True) -> Array:
    """The elements sorted along ``axis``, or flattened first if ``axis`` is None; the sort is stable.

    The gradient is permuted like the elements.
    """
    x, axis = (reshape(x, (-1,)), -1) if axis is None else (x, axis)
    axis = position(axis, x.ndim)
    order = standard_namespace(x).argsort(plain(x), axis=axis, descending=descending, stable=stable)
    return take_along_axis(x, order, axis=axis)


# --- creation ---------------------------------------------------------------------------------------------------------


@composite
def full(shape: int | tuple[int, ...], fill_value: Array, *, dtype: Dtype = None, device: Device = None) -> Array:
    """An array filled with one number, which may be a variable."""
    require_device("full", fill_value, device)
    shape = tuple(map(operator.index, _tuple(shape)))
    if any(size < 0 for size in shape):
        raise ShapeError(f"full: shape is {shape}: expected non-negative sizes")
    filled = broadcast_to(_array(fill_value), shape)
    return astype(filled, filled.dtype if dtype is None else dtype)


@composite
def full_like(x: Array, /, fill_value: Array, *, dtype: Dtype = None, device: Device = None) -> Array:
    """An array of the shape and dtype of ``x``, filled with one number, which may be a variable."""
    if not isinstance(fill_value, Variable):
        library = namespace(x)
        return library.full_like(plain(x), fill_value, dtype=dtype_in(library, dtype), device=device)
    require_device("full_like", fill_value, device)
    # Created in the library of ``x``; a variable that holds a number belongs to no library.
    filled = broadcast_to(fill_value + zeros_like(plain(x)), tuple(x.shape))
    return astype(filled, dtype_of(x) if dtype is None else dtype)


@of_numpy  # the standard's takes numbers alone
def linspace(
    start: Array, stop: Array, /, num: int = 50, *, dtype: Dtype = None, device: Device = None, endpoint: bool = True
) -> Array:
    """``num`` evenly spaced numbers from ``start`` to ``stop``; for arrays along a new first axis, as in NumPy."""
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"num is {num}: expected at least 0")
    steps = num - 1 if endpoint else num
    like = next((plain(x) for x in (start, stop) if is_array(plain(x))), 0.0)
    require_device("linspace", like, device)
    library = namespace(like)
    places = library.arange(num, device=device_of(like))
    ndim = builtins.max(len(getattr(x, "shape", ())) for x in (start, stop))
    fractions = library.astype(places, dtype_of(like)) / builtins.max(steps, 1)
    fractions = library.reshape(fractions, (num,) + (1,) * ndim) if ndim else fractions
    spaced = ops.add(ops.multiply(start, 1.0 - fractions), ops.multiply(stop, fractions))
    if dtype is not None and is_of_kind(dtype_in(library, dtype), "integral", library):
        spaced = ops.floor(spaced)  # as NumPy rounds
    return spaced if dtype is None else astype(spaced, dtype)


@composite
def asarray(obj: Any, /, *, dtype: Dtype = None, device: Device = None, copy: bool | None = None) -> Array:
    """An array; a list with variables is stacked. A variable is returned itself, unless ``copy`` is true.

    Raises `ValueError` if ``copy=False`` and a copy is needed, or if ``device`` differs from a variable's device.

    >>> import oxigrad as ox
    >>> ox.grad(lambda x: sum(asarray([x, 2.0, x * x])))(3.0)
    7.0
    """
    is_list = isinstance(obj, (list, tuple))
    obj = stack([asarray(item) for item in obj]) if is_list else obj
    require_device("asarray", obj, device)
    if copy is False and (is_list or (dtype is not None and obj.dtype != dtype)):
        raise ValueError("asarray: copy=False: a list, or another dtype, requires a copy")
    copy = copy and not is_list
    obj = copied(obj) if copy else obj
    return obj if dtype is None else astype(obj, dtype, copy=False)


def _array(value: Array) -> Array:
    return value if is_array(value) or isinstance(value, Variable) else np.asarray(value)
