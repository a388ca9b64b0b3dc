"""Functions of NumPy beyond the standard, composed of functions of the standard."""

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from oxigrad._core import ShapeError, plain
from oxigrad._typing import Array, Dtype, Results
from oxigrad.ops.backends import array_of, beneath, dtype_of, is_array, is_complex, namespace, size_of
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core import standard
from oxigrad.ops.core.array_like import array
from oxigrad.ops.core.composite import accepts_array_likes, composite
from oxigrad.ops.core.dtypes import floating
from oxigrad.ops.core.in_place import check_cast, of_examples
from oxigrad.ops.core.primitives import (
    Axis,
    along,
    arrays_of,
    astype,
    concat,
    copied,
    expand_dims,
    flip,
    permute_dims,
    reshape,
)
from oxigrad.ops.core.shapes import position
from oxigrad.ops.core.standard import copysign, cumulative_prod, cumulative_sum

__all__ = [
    "angle",
    "array_split",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "column_stack",
    "copy",
    "cumprod",
    "cumsum",
    "deg2rad",
    "dsplit",
    "dstack",
    "exp2",
    "fabs",
    "fliplr",
    "flipud",
    "float_power",
    "fmax",
    "fmin",
    "gradient",
    "hsplit",
    "hstack",
    "nan_to_num",
    "partition",
    "rad2deg",
    "real_if_close",
    "rollaxis",
    "rot90",
    "sinc",
    "split",
    "swapaxes",
    "vsplit",
    "vstack",
]


# --- elementwise ------------------------------------------------------------------------------------------------------


@composite
def angle(z: Array, /) -> Array:
    """The angle of complex numbers, in radians."""
    if is_complex(z):
        return ops.atan2(ops.imag(z), ops.real(z))
    return ops.where(ops.isnan(z), z, ops.where(_sign(z) < 0.0, np.pi, ops.zeros_like(z)))


def _sign(x: Array) -> Array:
    """One, or minus one where the sign bit is set, as in -0.0: plain values."""
    return copysign(ops.ones_like(x), plain(x))


@functools.partial(composite, by_core=True)
def exp2(x: Array, /) -> Array:
    """2 to the power ``x``."""
    return ops.pow(2.0, x)


@composite
def fabs(x: Array, /) -> Array:
    """Absolute value."""
    return ops.abs(x)


@composite
def deg2rad(x: Array, /) -> Array:
    """Degrees as radians."""
    return x * (np.pi / 180.0)


@composite
def rad2deg(x: Array, /) -> Array:
    """Radians as degrees."""
    return x * (180.0 / np.pi)


@composite
def float_power(x1: Array, x2: Array, /) -> Array:
    """``x1`` to the power ``x2``, in double precision."""
    x1, x2 = (_double(x) for x in (x1, x2))
    return ops.pow(x1, x2)


def _double(x: Array) -> Array:
    """``x`` in float64 or complex128; a number unchanged."""
    if not is_array(x):
        return x
    library = namespace(x)
    return astype(x, library.complex128 if is_complex(x) else library.float64, copy=False)


@accepts_array_likes
def sinc(x: Array, /) -> Array:
    """``sin(pi x) / (pi x)``, and one at zero, where derivatives are computed by its series."""
    if is_complex(x):
        none = x == 0.0
        z = ops.where(none, 1.0, x) * np.pi
        return ops.where(none, 1.0, ops.sin(z) / z)
    near = ops.abs(x) < 0.015
    away = ops.where(near, 1.0, x)
    z = ops.where(near, ops.square(x * np.pi), 0.0)
    series = 1.0 - z / 6.0 * (1.0 - z / 20.0 * (1.0 - z / 42.0 * (1.0 - z / 72.0)))
    whole = ops.round(away)  # the zeros are integers, which are exact as floats, while their multiples of pi are not
    sine = ops.sin((away - whole) * np.pi) * (1.0 - 2.0 * ops.remainder(whole, 2.0))
    return ops.where(near, series, sine / (away * np.pi))


@composite
def fmax(x1: Array, x2: Array, /) -> Array:
    """The larger element, or the other one if one is NaN. Equal elements share the gradient evenly."""
    return ops.where(ops.isnan(x1), x2, ops.where(ops.isnan(x2), x1, ops.maximum(x1, x2)))


@composite
def fmin(x1: Array, x2: Array, /) -> Array:
    """The smaller element, or the other one if one is NaN. Equal elements share the gradient evenly."""
    return ops.where(ops.isnan(x1), x2, ops.where(ops.isnan(x2), x1, ops.minimum(x1, x2)))


@composite
def nan_to_num(
    x: Array, /, *, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Array:
    """``x`` with NaN and infinities replaced by finite numbers, with a zero gradient; in place if not ``copy``.

    The real and imaginary parts of complex numbers are replaced separately.
    """
    if not copy and is_array(plain(x)):
        x[...] = nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)
        return x
    if is_complex(x):
        parts = (nan_to_num(part, nan=nan, posinf=posinf, neginf=neginf) for part in (ops.real(x), ops.imag(x)))
        return next(parts) + 1j * next(parts)
    limits = namespace(x).finfo(dtype_of(x)) if is_array(x) else np.finfo(np.float64)
    x = ops.where(ops.isnan(x), nan, x)
    x = ops.where(x == np.inf, float(limits.max) if posinf is None else posinf, x)
    return ops.where(x == -np.inf, float(limits.min) if neginf is None else neginf, x)


@accepts_array_likes
def real_if_close(x: Array, /, tol: float = 100) -> Array:
    """The real part if all imaginary parts are negligible, else ``x``.

    Negligible means below ``tol`` times the machine epsilon, or below ``tol`` itself if ``tol`` is at most 1.
    """
    if not is_complex(x):
        return x
    space, imaginary = namespace(x), plain(ops.imag(x))
    limit = tol if tol <= 1 else float(space.finfo(dtype_of(x)).eps) * tol
    return ops.real(x) if bool(space.all(space.abs(imaginary) < limit)) else x


@accepts_array_likes
def copy(x: Array, /) -> Array:
    """A copy of ``x``."""
    return copied(x)


# --- cumulative -------------------------------------------------------------------------------------------------------


@accepts_array_likes
def cumsum(x: Array, /, *, axis: int | None = None, dtype: Dtype = None) -> Array:
    """Cumulative sums along ``axis``; of the flattened array if ``axis`` is None or ``x`` is 0-d."""
    x, axis = _flattened(x, axis)
    return cumulative_sum(x, axis=axis, dtype=dtype)


@accepts_array_likes
def cumprod(x: Array, /, *, axis: int | None = None, dtype: Dtype = None) -> Array:
    """Cumulative products along ``axis``, or of the flattened array if ``axis`` is None or ``x`` is 0-d."""
    x, axis = _flattened(x, axis)
    return cumulative_prod(x, axis=axis, dtype=dtype)


def _flattened(x: Array, axis: int | None) -> tuple[Array, int]:
    if axis is None or (axis in (0, -1) and not len(getattr(x, "shape", ()))):
        return reshape(x, (-1,)), 0
    return x, axis


@accepts_array_likes
def gradient(f: Array, /, *spacing: Array, axis: Axis = None, edge_order: int = 1) -> Results:
    """The gradient by finite differences, of second order in the interior and of ``edge_order``, 1 or 2, at the ends.

    ``spacing`` is one number, one number for each axis, or the coordinates along each axis. Returns an array for one
    axis, and a tuple of arrays for several.
    """
    if edge_order not in (1, 2):
        raise ValueError(f"edge_order is {edge_order!r}: expected 1 or 2")
    f = floating(f)  # differences of unsigned integers would wrap
    axes = tuple(range(f.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    steps = spacing * len(axes) if len(spacing) == 1 else spacing or (1.0,) * len(axes)
    slopes = tuple(_slope(f, position(a, f.ndim), h, edge_order) for a, h in zip(axes, steps, strict=True))
    return slopes[0] if len(slopes) == 1 else slopes


def _slope(f: Array, axis: int, h: Array, edge_order: int) -> Array:
    if f.shape[axis] < edge_order + 1:
        raise ShapeError(f"gradient: found size {f.shape[axis]} along axis {axis}, expected at least {edge_order + 1}")
    d = standard.diff(f, axis=axis)
    h = array_of(h, [f]) if isinstance(h, (list, tuple)) else h
    if getattr(h, "shape", ()):
        return _slope_between(d, f.shape[axis], axis, h, edge_order)
    inside = 0.5 * (f[along(axis, slice(2, None))] - f[along(axis, slice(None, -2))])
    first, second, before, last = (d[along(axis, part)] for part in _ENDS)
    if edge_order == 2:
        first, last = 1.5 * first - 0.5 * second, 1.5 * last - 0.5 * before
    return concat([first, inside, last], axis=axis) / h


# The first two and the last two elements along an axis, each of size 1.
_ENDS = (slice(0, 1), slice(1, 2), slice(-2, -1), slice(-1, None))


def _slope_between(d: Array, size: int, axis: int, places: Array, edge_order: int) -> Array:
    """The differences of unevenly spaced elements (Fornberg 1988)."""
    if tuple(places.shape) != (size,):
        raise ShapeError(
            f"gradient: found coordinates of shape {tuple(places.shape)}, expected ({size},), the size of axis {axis}"
        )
    h = reshape(standard.diff(floating(places)), (-1,) + (1,) * (d.ndim - 1 - axis))
    d = d / h
    near, far = h[: size - 2, ...], h[1:, ...]
    inside = (far * d[along(axis, slice(None, -1))] + near * d[along(axis, slice(1, None))]) / (near + far)
    first, second, before, last = (d[along(axis, part)] for part in _ENDS)
    if edge_order == 2:
        first = first + (first - second) * h[:1, ...] / (h[:1, ...] + h[1:2, ...])
        last = last + (last - before) * h[-1:, ...] / (h[-1:, ...] + h[-2:-1, ...])
    return concat([first, inside, last], axis=axis)


# --- shapes -----------------------------------------------------------------------------------------------------------


@accepts_array_likes
def swapaxes(x: Array, axis1: int, axis2: int, /) -> Array:
    """``x`` with two axes interchanged."""
    order = list(range(x.ndim))
    a, b = position(axis1, x.ndim), position(axis2, x.ndim)
    order[a], order[b] = b, a
    return permute_dims(x, tuple(order))


@accepts_array_likes
def rollaxis(x: Array, axis: int, start: int = 0, /) -> Array:
    """``x`` with ``axis`` moved to before ``start``."""
    axis = position(axis, x.ndim)
    start = start + x.ndim if start < 0 else start
    return standard.moveaxis(x, axis, start - 1 if axis < start else start)


@accepts_array_likes
def flipud(x: Array, /) -> Array:
    """Rows in reverse order."""
    return flip(x, axis=0)


@accepts_array_likes
def fliplr(x: Array, /) -> Array:
    """Columns in reverse order."""
    return flip(x, axis=1)


@accepts_array_likes
def rot90(x: Array, /, *, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """``x`` rotated by 90 degrees ``k`` times, from the first of the axes towards the second."""
    first, second = (position(a, x.ndim, "rot90") for a in axes)
    if first == second:
        raise ValueError(f"rot90: axes is {axes}: expected two different axes")
    for _ in range(k % 4):
        x = flip(swapaxes(x, first, second), axis=first)
    return x


def atleast_1d(*arrays: Array) -> Results:
    """Arrays with at least one dimension: one, or a tuple of several."""
    return _each(lambda x: x if x.ndim else expand_dims(x, axis=0), arrays)


def atleast_2d(*arrays: Array) -> Results:
    """Arrays with at least two dimensions, new ones in front: one, or a tuple of several."""
    return _each(lambda x: x if x.ndim > 1 else reshape(x, (1,) * (2 - x.ndim) + tuple(x.shape)), arrays)


def atleast_3d(*arrays: Array) -> Results:
    """Arrays with at least three dimensions, as NumPy adds them, (n,) becomes (1, n, 1): one, or a tuple of several."""
    return _each(lambda x: x if x.ndim > 2 else expand_dims(atleast_2d(x), axis=2), arrays)


def _each(function: Callable[[Array], Array], arrays: Sequence[Array]) -> Results:
    results = tuple(function(array(x)) for x in arrays)
    return results[0] if len(results) == 1 else results


def vstack(arrays: Sequence[Array], /, *, dtype: Dtype = None, casting: str = "same_kind") -> Array:
    """Arrays joined vertically, along the first axis."""
    parts = [atleast_2d(x) for x in arrays_of(arrays, "vstack")]
    return cast_joined("vstack", concat(parts, axis=0), parts, dtype, casting)


def hstack(arrays: Sequence[Array], /, *, dtype: Dtype = None, casting: str = "same_kind") -> Array:
    """Arrays joined horizontally: along the second axis, or the only one."""
    parts: list[Array] = [atleast_1d(x) for x in arrays_of(arrays, "hstack")]
    return cast_joined("hstack", concat(parts, axis=0 if parts[0].ndim == 1 else 1), parts, dtype, casting)


def cast_joined(called: str, joined: Array, parts: Sequence[Array], dtype: Dtype, casting: str) -> Array:
    """The arrays joined, cast to ``dtype`` (if not None) by NumPy's rule ``casting``."""
    if dtype is None:
        return joined
    for x in parts:
        if isinstance(x.dtype, np.dtype):
            check_cast(called, x, np.empty(0, dtype), casting)
    return astype(joined, dtype, copy=False)


@accepts_array_likes
def dstack(arrays: Sequence[Array], /) -> Array:
    """Arrays joined along the third axis."""
    return concat([atleast_3d(x) for x in arrays_of(arrays, "dstack")], axis=2)


@accepts_array_likes
def column_stack(arrays: Sequence[Array], /) -> Array:
    """Arrays as columns of a matrix."""
    columns: list[Array] = [atleast_1d(x) for x in arrays_of(arrays, "column_stack")]
    return concat([expand_dims(x, axis=1) if x.ndim == 1 else x for x in columns], axis=1)


@accepts_array_likes
def array_split(x: Array, sections: int | Sequence[int], /, *, axis: int = 0) -> list[Array]:
    """Subarrays along ``axis``: ``sections`` is their number, for nearly equal ones, or the positions of the cuts."""
    axis = position(axis, x.ndim)
    size = x.shape[axis]
    if (count := _count(sections)) is not None:
        if count < 1:
            raise ValueError(f"sections is {count}: expected at least 1")
        small, larger = divmod(size, count)
        cuts = np.cumsum([0] + [small + 1] * larger + [small] * (count - larger)).tolist()
    else:
        cuts = [0, *(int(cut) for cut in cast("Sequence[int]", sections)), size]
    return [x[along(axis, slice(start, end))] for start, end in itertools.pairwise(cuts)]


def _count(sections: Any) -> int | None:
    """The number of sections if ``sections`` is a number; None for a list of positions."""
    return operator.index(sections) if hasattr(sections, "__index__") and not getattr(sections, "shape", ()) else None


@accepts_array_likes
def split(x: Array, sections: int | Sequence[int], /, *, axis: int = 0) -> list[Array]:
    """As `array_split`; a number of sections must divide the axis into equal parts."""
    count = _count(sections)
    if count and x.shape[position(axis, x.ndim)] % count:
        raise ValueError(f"sections is {sections}: expected a divisor of {x.shape[axis]}, the size of axis {axis}")
    return array_split(x, sections, axis=axis)


@accepts_array_likes
def vsplit(x: Array, sections: int | Sequence[int], /) -> list[Array]:
    """As `split`, along the first axis of two or more."""
    if x.ndim < 2:
        raise ShapeError(f"vsplit: found shape {tuple(x.shape)}, expected two dimensions or more")
    return split(x, sections, axis=0)


@accepts_array_likes
def hsplit(x: Array, sections: int | Sequence[int], /) -> list[Array]:
    """As `split`, along the second axis, or the only one."""
    return split(x, sections, axis=0 if x.ndim == 1 else 1)


@accepts_array_likes
def dsplit(x: Array, sections: int | Sequence[int], /) -> list[Array]:
    """As `split`, along the third axis."""
    return split(x, sections, axis=2)


# --- elements ---------------------------------------------------------------------------------------------------------


@accepts_array_likes
def partition(x: Array, kth: int, /, *, axis: int | None = -1) -> Array:
    """The elements partitioned around the ``kth`` smallest, in NumPy's order; other libraries sort fully.

    Raises `ValueError` for a ``kth`` out of range.
    """
    count = size_of(x.shape)
    size = count if axis is None else x.shape[position(axis, x.ndim, "partition")]
    for each in np.ravel(kth).tolist():
        if count and not -size <= each < size:
            raise ValueError(f"partition: kth is {each}, expected a position among {size} elements")
    bare = beneath(x)
    if namespace(bare) is not np or not count:
        return standard.sort(x, axis=axis)
    x, axis = (ops.reshape(x, (-1,)), 0) if axis is None else (x, position(axis, x.ndim))
    bare, last = beneath(x), axis - x.ndim  # axes of examples are in front
    partitioned = np.argsort(np.partition(bare, kth, axis=last), axis=last, kind="stable")
    ranks = np.argsort(partitioned, axis=last)
    places = np.take_along_axis(np.argsort(bare, axis=last, kind="stable"), ranks, axis=last)
    return ops.take_along_axis(x, of_examples(places, x), axis=axis)
