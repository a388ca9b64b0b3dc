"""Splines and interpolation of images, as functions of `oxigrad.xp.ndimage`."""

import functools
import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from oxigrad import DerivativeError, ShapeError, Variable
from oxigrad import xp as ops
from oxigrad._core import plain
from oxigrad._typing import Array, PerAxis
from oxigrad.ops.backends import array_of, dtype_of, without_variables
from oxigrad.ops.backends.functions.scipy_functions import of_scipy
from oxigrad.ops.core.host_calls import computed, linear
from oxigrad.ops.core.in_place import of_library
from oxigrad.ops.core.primitives import index
from oxigrad.ops.core.standard import axes_of
from oxigrad.ops.scipy_signatures import scipy_signature
from oxigrad.xp import isdtype
from oxigrad.xp._scipy.ndimage.extension import check_mode, extended_by, for_each_axis

__all__ = [
    "affine_transform",
    "map_coordinates",
    "rotate",
    "shift",
    "spline_filter",
    "spline_filter1d",
    "zoom",
]

_SMALL = 64  # elements: beyond this number, one edge has no influence on the other


@scipy_signature('input, order=3, axis=-1, output=float64, mode="mirror"')
def spline_filter1d(x: Array, /, order: int, axis: int, mode: str) -> Array:
    """The coefficients of the spline of an ``order`` from 0 to 5 that interpolates ``x`` along an axis, in float64."""
    x = array_of(x)
    size = x.shape[axis]
    weights = np.ones(size)
    if (
        mode in ("mirror", "constant", "grid-constant", "wrap") and size > 1
    ):  # the matrix is symmetric with half the weight at both ends
        weights[[0, -1]] = 0.5
    weights = weights.reshape([-1 if at == axis % len(x.shape) else 1 for at in range(len(x.shape))])

    def forward(x: np.ndarray) -> np.ndarray:
        return of_scipy("ndimage", "spline_filter1d")(x, order, axis, mode=mode)

    def adjoint(g: np.ndarray) -> np.ndarray:
        if size > _SMALL:
            return weights * forward(g / weights)
        # SciPy's spline of few elements is not quite the exact one, whose matrix is symmetric.
        matrix = of_scipy("ndimage", "spline_filter1d")(np.eye(size), order, 0, mode=mode)
        return np.moveaxis(np.tensordot(matrix, g, axes=(0, axis)), 0, axis)

    return linear("spline_filter1d", forward, adjoint, x)


@scipy_signature('input, order=3, output=float64, mode="mirror"')
def spline_filter(x: Array, /, order: int, mode: str) -> Array:
    """The coefficients of the spline of an ``order`` from 2 to 5 that interpolates ``x``, in float64."""
    for axis in range(len(array_of(x).shape)):
        x = spline_filter1d(x, order, axis, mode=mode)
    return x


def _weights(order: int, at: Array, size: int, mode: str) -> tuple[np.ndarray, list[Array]]:
    """The first node of each spline at some coordinates along an axis, and the weights of its ``order + 1`` nodes."""
    bare = np.asarray(computed("map_coordinates", lambda x: x, (plain(at),))[0])
    first = np.floor(bare + 0.5) if order % 2 == 0 else np.floor(bare)
    if order == 0:  # by SciPy, which rounds after it has moved a coordinate into the array
        elements = np.arange(size, dtype=np.float64)
        first = of_scipy("ndimage", "map_coordinates")(elements, bare[None], order=0, mode=mode, cval=-1.0)
    u = at - of_library(first, at)
    if order == 0:
        weights: list[Any] = [1.0 + 0.0 * u]
    elif order == 1:
        weights = [1.0 - u, u]
    elif order == 2:
        weights = [0.5 * (0.5 - u) ** 2, 0.75 - u * u, 0.5 * (0.5 + u) ** 2]
    else:
        weights = [
            (1.0 - u) ** 3 / 6.0,
            2.0 / 3.0 - 0.5 * u * u * (2.0 - u),
            2.0 / 3.0 - 0.5 * (1.0 - u) ** 2 * (1.0 + u),
            u**3 / 6.0,
        ]
    return first.astype(np.int64) - order // 2, weights


def _nodes(node: np.ndarray, size: int, mode: str) -> tuple[np.ndarray, np.ndarray]:
    """The elements that nodes beyond the edges repeat, and whether there are any."""
    period = 2 * size - 2 if mode in ("mirror", "constant") else 2 * size
    if mode in ("mirror", "constant"):
        node = np.abs((node + size - 1) % period - (size - 1)) if size > 1 else 0 * node
    elif mode in ("reflect", "grid-mirror"):
        node = node % period
        node = np.where(node >= size, period - 1 - node, node)
    elif mode == "grid-wrap":
        node = node % size
    elif mode == "nearest":
        node = np.clip(node, 0, size - 1)
    is_inside = (node >= 0) & (node < size)
    return np.where(is_inside, node, 0), is_inside


_PADDING = 12  # as SciPy extends by before it filters for splines of the order 2 and 3


@scipy_signature('input, coordinates, output=None, order=3, mode="constant", cval=0.0, prefilter=True')
def map_coordinates(x: Array, coordinates: Array, /, order: int, mode: str, cval: float, prefilter: bool) -> Array:
    """Values of a spline of an ``order`` from 0 to 3 through an array, at ``coordinates`` (ndim, ...).

    Both arguments are differentiable. ``mode`` is one of SciPy's except "wrap"; a kink has one of its two derivatives.
    Raises `DerivativeError` for the orders 4 and 5, and `ShapeError` unless there is one coordinate for each axis.
    """
    x, coordinates = array_of(x), array_of(coordinates, [x])
    coordinates = coordinates if isinstance(coordinates, Variable) else of_library(np.asarray(coordinates), x)
    ndim = len(x.shape)
    check_mode("map_coordinates", mode)
    if order not in (0, 1, 2, 3) or mode == "wrap":
        raise DerivativeError(
            f"map_coordinates: order={order!r}, mode={mode!r} has no derivative here: expected an order from 0 to 3, "
            "and another mode than 'wrap', such as 'grid-wrap'"
        )
    if coordinates.shape[0] != ndim:
        raise ShapeError(
            f"map_coordinates: found coordinates of shape {tuple(coordinates.shape)}, expected ({ndim}, ...)"
        )
    y = _interpolated(x, [index(coordinates, (at, ...)) for at in range(ndim)], order, mode, cval, prefilter)
    dtype = dtype_of(x)
    return ops.astype(y, dtype, copy=False) if isdtype(dtype, ("real floating", "complex floating")) else y


def _interpolated(x: Array, coordinates: list[Array], order: int, mode: str, cval: float, prefilter: bool) -> Array:
    ndim, sizes = len(x.shape), tuple(x.shape)
    bare = [np.asarray(computed("map_coordinates", lambda at: at, (plain(at),))[0], np.float64) for at in coordinates]
    outside: Any = False
    if mode == "constant":
        bounds = zip(bare, sizes, strict=True)
        outside = functools.reduce(operator.or_, ((at < 0.0) | (at > size - 1.0) for at, size in bounds))
    if order > 1 and prefilter:
        if mode in ("nearest", "grid-constant"):
            beyond = cval if mode == "grid-constant" else 0.0
            x = extended_by(x, [(_PADDING, _PADDING)] * ndim, [mode] * ndim, beyond)
            coordinates = [at + float(_PADDING) for at in coordinates]
        x = spline_filter(x, order, mode=mode)
    if mode == "nearest":  # farther out, all nodes of a spline repeat the last element
        bounds = zip(coordinates, x.shape, strict=True)
        coordinates = [ops.minimum(ops.maximum(at, -2.0), size + 1.0) for at, size in bounds]
    parts = [_weights(order, at, size, mode) for at, size in zip(coordinates, x.shape, strict=True)]
    total: Array = 0.0
    for offsets in itertools.product(range(order + 1), repeat=ndim):
        nodes = [
            _nodes(first + offset, size, mode) for (first, _), offset, size in zip(parts, offsets, x.shape, strict=True)
        ]
        is_inside = functools.reduce(operator.and_, (inside for _, inside in nodes))
        value = index(x, tuple(of_library(node, x) for node, _ in nodes))
        value = value if is_inside.all() else ops.where(of_library(is_inside, x), value, cval)
        for (_, weights), offset in zip(parts, offsets, strict=True):
            value = value * weights[offset]
        total = total + value
    return ops.where(of_library(outside, x), cval, total) if np.any(outside) else total


@scipy_signature(
    'input, matrix, offset=0.0, output_shape=None, output=None, order=3, mode="constant", cval=0.0, prefilter=True'
)
def affine_transform(
    x: Array, matrix: Array, /, offset: Array, output_shape: tuple[int, ...] | None, **spline: Any
) -> Array:
    """The array whose element at ``index`` is the element of ``x`` at ``matrix @ index + offset``.

    ``x``, ``matrix`` (n, n) and ``offset`` are differentiable. A matrix (n,) is diagonal. The last column of a matrix
    (n, n + 1) is the offset; so is the last column of a homogeneous matrix (n + 1, n + 1), whose last row is 0, ..., 0,
    1. Otherwise as `map_coordinates`. Raises `ShapeError` for other shapes.
    """
    x, matrix = array_of(x), array_of(matrix, [x])
    ndim, shape = len(x.shape), tuple(x.shape) if output_shape is None else tuple(output_shape)
    places = np.indices(shape, np.float64)
    offset = array_of(offset, [x]) if isinstance(offset, (list, tuple)) else offset
    if tuple(matrix.shape) in ((ndim, ndim + 1), (ndim + 1, ndim + 1)):
        if matrix.shape[0] > ndim:
            last = np.asarray(computed("affine_transform", lambda row: row[ndim], (plain(matrix),))[0])
            if last.tolist() != [0.0] * ndim + [1.0]:
                raise ValueError(
                    f"affine_transform: found the last row {last.tolist()}, expected zeros, and 1 at its end"
                )
        matrix, offset = index(matrix, (slice(ndim), slice(ndim))), index(matrix, (slice(ndim), ndim))
    if tuple(matrix.shape) not in ((ndim,), (ndim, len(shape))):
        raise ShapeError(
            f"affine_transform: found a matrix of shape {tuple(matrix.shape)}, expected ({ndim}, {len(shape)})"
        )
    if tuple(getattr(offset, "shape", ())) not in ((), (ndim,)):
        raise ShapeError(f"affine_transform: found an offset of shape {tuple(offset.shape)}, expected ({ndim},)")
    coordinates = []
    for row in range(ndim):
        start = index(offset, row) if len(getattr(offset, "shape", ())) else offset
        if len(matrix.shape) == 1:
            coordinates.append(index(matrix, row) * of_library(places[row], x) + start)
            continue
        terms = [index(matrix, (row, column)) * of_library(places[column], x) for column in range(len(shape))]
        coordinates.append(functools.reduce(operator.add, terms) + start)
    return map_coordinates(x, ops.stack(coordinates), **spline)


@scipy_signature(
    'input, angle, axes=(1, 0), reshape=True, output=None, order=3, mode="constant", cval=0.0, prefilter=True'
)
def rotate(x: Array, /, angle: Array, axes: Sequence[int], reshape: bool, **spline: Any) -> Array:
    """An array rotated in the plane of two axes by an angle in degrees, both differentiable.

    With ``reshape`` the result has room for all of it.
    """
    x = array_of(x)
    ndim = len(x.shape)
    if ndim < 2 or len(axes) != 2 or len(plane := sorted(set(axes_of(tuple(axes), ndim)))) != 2:
        raise ShapeError(f"rotate: found shape {tuple(x.shape)}, axes={axes!r}, expected two axes of the array")
    if ndim == 2:
        return _rotated(x, angle, reshape, spline)
    order_of_axes = [*(axis for axis in range(ndim) if axis not in plane), *plane]
    moved = ops.permute_dims(x, tuple(order_of_axes))
    images = ops.reshape(moved, (-1, *moved.shape[-2:]))
    turned = ops.stack([_rotated(index(images, at), angle, reshape, spline) for at in range(images.shape[0])])
    turned = ops.reshape(turned, (*moved.shape[:-2], *turned.shape[-2:]))
    return ops.permute_dims(turned, tuple(np.argsort(order_of_axes).tolist()))


def _rotated(x: Array, angle: Array, reshape: bool, spline: dict[str, Any]) -> Array:
    """An image (m, n), rotated."""
    turn = angle * (math.pi / 180.0)
    # Without the rounding of the angle in radians, by which elements at the edges would be outside after quarter turns.
    c, s = (_exact(f(turn), exact, angle) for f, exact in ((ops.cos, "cosdg"), (ops.sin, "sindg")))
    sizes = np.array(x.shape, np.float64)
    shape = tuple(x.shape)
    if reshape:
        fixed = [float(np.asarray(plain(each))) for each in (c, s)]
        bounds = np.abs([fixed, fixed[::-1]]) @ sizes
        shape = tuple(int(size) for size in np.floor(bounds + 0.5))
    (down, right), (row, column) = (sizes - 1.0) / 2.0, ((size - 1.0) / 2.0 for size in shape)
    i, j = (of_library(index, x) for index in np.indices(shape, np.float64))
    # In the order of SciPy's sums, so that halves are rounded alike.
    coordinates = ops.stack(
        [down - (c * row + s * column) + i * c + j * s, right - (c * column - s * row) - i * s + j * c]
    )
    return map_coordinates(x, coordinates, **spline)


def _exact(value: Any, name: str, angle: Array) -> Array:
    """A function of an angle, with the value of SciPy's function of degrees."""
    return value + (computed(name, of_scipy("special", name), (plain(angle),))[0] - without_variables(value))


def _separable(name: str, x: Array, factors: PerAxis[float], cval: float, **named: Any) -> Array:
    """Interpolation on a grid, whose transpose is a product with a matrix for each axis."""
    x, function = array_of(x), of_scipy("ndimage", name)
    sizes = tuple(x.shape)
    args = for_each_axis(name, name, factors, len(sizes))

    def forward(x: np.ndarray, cval: float = 0.0) -> np.ndarray:
        return function(x, list(args), cval=cval, **named)

    def adjoint(g: np.ndarray) -> np.ndarray:
        for axis, (size, arg) in enumerate(zip(sizes, args, strict=True)):
            matrix = np.stack([function(row, arg, **named) for row in np.eye(size)])
            g = np.moveaxis(np.tensordot(matrix, g, axes=(1, axis)), 0, axis)
        return g

    y = linear(name, forward, adjoint, x)
    return y if cval == 0.0 else y + computed(name, lambda x: forward(np.zeros_like(x), cval), (plain(x),))[0]


@scipy_signature('input, shift, output=None, order=3, mode="constant", cval=0.0, prefilter=True')
def shift(x: Array, /, shift: PerAxis[float], **spline: Any) -> Array:
    """The array shifted by ``shift`` elements along each axis; its transpose is a dense matrix for each axis."""
    return _separable("shift", x, shift, **spline)


@scipy_signature('input, zoom, output=None, order=3, mode="constant", cval=0.0, prefilter=True, *, grid_mode=False')
def zoom(x: Array, /, zoom: PerAxis[float], **spline: Any) -> Array:
    """The array interpolated to another size along each axis; transposed by a dense matrix for each axis."""
    return _separable("zoom", x, zoom, **spline)
