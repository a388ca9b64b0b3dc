"""Linear filters and interpolation of images, named as in `scipy.ndimage`, with its values: `oxigrad.xp.ndimage`.

A linear filter is one entry of a tape, whose rule is its transpose, in all boundary modes: derivatives of all orders follow, in
both modes. Arrays of other libraries are read in host memory, and `NotImplementedError` is raised where the host cannot read
them. Further parameters (sizes, deviations, modes) are constants; ``output`` is not taken. Filters of ranks (``median_filter``) and
morphology are not differentiable, and are not here.

>>> import oxigrad as ox
>>> x = np.array([0.0, 0.0, 1.0, 0.0])
>>> ox.grad(lambda x: uniform_filter1d(x, 3)[0])(x).round(3)
array([0.667, 0.333, 0.   , 0.   ])
"""

import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oxigrad._core import DerivativeError, ShapeError, Variable, plain
from oxigrad._typing import Array
from oxigrad.ops import primitives as ops
from oxigrad.ops.backends import array_of, device_of, namespace
from oxigrad.ops.backends.scipy_functions import of_scipy
from oxigrad.ops.extension import check_mode, extended, filtered
from oxigrad.ops.host_calls import computed, linear

__all__ = [
    "affine_transform",
    "convolve",
    "convolve1d",
    "correlate",
    "correlate1d",
    "fourier_ellipsoid",
    "fourier_gaussian",
    "fourier_shift",
    "fourier_uniform",
    "gaussian_filter",
    "gaussian_filter1d",
    "gaussian_gradient_magnitude",
    "gaussian_laplace",
    "laplace",
    "map_coordinates",
    "mean",
    "prewitt",
    "rotate",
    "shift",
    "sobel",
    "spline_filter",
    "spline_filter1d",
    "sum",
    "sum_labels",
    "uniform_filter",
    "uniform_filter1d",
    "zoom",
]


def __dir__() -> list[str]:
    return list(__all__)


def _each(value: Any, ndim: int) -> list[Any]:
    """A parameter for each axis."""
    return list(value) if isinstance(value, (list, tuple, np.ndarray)) else [value] * ndim


def _filter(
    name: str,
    x: Array,
    radii: Sequence[int],
    mode: Any,
    cval: float,
    call: Callable[..., np.ndarray],
    *,
    axis: int | None = None,
) -> Array:
    """The filter ``call(function, x, mode, cval)`` of SciPy: a linear one and, where ``cval`` is not zero, a constant."""
    x, function = array_of(x), of_scipy("ndimage", name)
    if axis is not None:
        radii = [radius if at == axis % len(x.shape) else 0 for at, radius in enumerate(_each(radii, len(x.shape)))]
    modes = _each(mode, len(x.shape))

    def of_modes(x: np.ndarray, modes: Sequence[str], cval: float = 0.0) -> np.ndarray:
        return call(function, x, modes[axis] if axis is not None else modes, cval)

    y = filtered(name, of_modes, x, radii, modes)
    if cval == 0.0:
        return y
    zeros = ops.zeros_like(x)
    return y + computed(name, lambda zeros: of_modes(zeros, modes, cval), (zeros,))[0]


# --- filters by weights ------------------------------------------------------------------------------------------------


def correlate(x: Array, weights: Array, /, *, mode: str = "reflect", cval: float = 0.0, origin: Any = 0) -> Array:
    """The correlation of an array with weights of as many dimensions, both differentiable.

    For variable weights, one product is recorded for each weight.
    """
    weights = array_of(weights)
    check_mode("correlate", mode)
    origins = _each(origin, len(weights.shape))
    if not isinstance(weights, Variable):
        w = np.asarray(computed("correlate", lambda w: w, (weights,))[0]) if weights.shape else weights
        radii = [size + abs(shift) for size, shift in zip(w.shape, origins, strict=True)]
        call = lambda f, x, modes, cval: f(x, w, mode=modes[0], cval=cval, origin=origins)  # noqa: E731
        return _filter("correlate", x, radii, mode, cval, call)
    x = array_of(x)
    widths = [
        (size // 2 + shift, size - size // 2 - 1 - shift) for size, shift in zip(weights.shape, origins, strict=True)
    ]
    if any(width < 0 for pair in widths for width in pair):
        raise ValueError(f"correlate: origin is {origin!r}: expected the place of an element of the weights")
    whole = (
        extended(x - cval, widths, [mode] * len(x.shape)) + cval if cval else extended(x, widths, [mode] * len(x.shape))
    )
    total: Any = 0.0
    for at in itertools.product(*map(range, weights.shape)):
        part = tuple(slice(start, start + size) for start, size in zip(at, x.shape, strict=True))
        total = total + ops.index(weights, at) * ops.index(whole, part)
    return total


def convolve(x: Array, weights: Array, /, *, mode: str = "reflect", cval: float = 0.0, origin: Any = 0) -> Array:
    """The convolution of an array with weights of as many dimensions, both differentiable: `correlate` with reversed weights."""
    weights = array_of(weights)
    origins = [
        -shift - (1 - size % 2) for size, shift in zip(weights.shape, _each(origin, len(weights.shape)), strict=True)
    ]
    return correlate(x, ops.flip(weights), mode=mode, cval=cval, origin=origins)


def correlate1d(
    x: Array, weights: Array, /, axis: int = -1, *, mode: str = "reflect", cval: float = 0.0, origin: int = 0
) -> Array:
    """The correlation along an axis with weights (n,), both differentiable."""
    x, weights = array_of(x), array_of(weights)
    shape = [1] * len(x.shape)
    shape[axis] = weights.shape[0]
    origins = [0] * len(x.shape)
    origins[axis] = origin
    return correlate(x, ops.reshape(weights, tuple(shape)), mode=mode, cval=cval, origin=origins)


def convolve1d(
    x: Array, weights: Array, /, axis: int = -1, *, mode: str = "reflect", cval: float = 0.0, origin: int = 0
) -> Array:
    """The convolution along an axis with weights (n,), both differentiable."""
    weights = array_of(weights)
    origin = -origin - (1 - weights.shape[0] % 2)
    return correlate1d(x, ops.flip(weights), axis, mode=mode, cval=cval, origin=origin)


# --- filters by name ---------------------------------------------------------------------------------------------------


def _gaussian_radii(sigma: Any, ndim: int, truncate: float, radius: Any = None) -> list[int]:
    if radius is not None:
        return [int(each) for each in _each(radius, ndim)]
    return [int(truncate * float(each) + 0.5) for each in _each(sigma, ndim)]


def gaussian_filter(
    x: Array,
    /,
    sigma: Any,
    *,
    order: Any = 0,
    mode: Any = "reflect",
    cval: float = 0.0,
    truncate: float = 4.0,
    radius: Any = None,
) -> Array:
    """The filter by a normal density of deviation ``sigma``, or its derivative of some ``order``, along each axis."""
    radii = _gaussian_radii(sigma, len(array_of(x).shape), truncate, radius)
    call = lambda f, x, mode, cval: f(x, sigma, order, mode=mode, cval=cval, truncate=truncate, radius=radius)  # noqa: E731
    return _filter("gaussian_filter", x, radii, mode, cval, call)


def gaussian_filter1d(
    x: Array,
    /,
    sigma: float,
    axis: int = -1,
    *,
    order: int = 0,
    mode: str = "reflect",
    cval: float = 0.0,
    truncate: float = 4.0,
    radius: int | None = None,
) -> Array:
    """As `gaussian_filter`, along one axis."""
    (radius_,) = _gaussian_radii(sigma, 1, truncate, radius)
    call = lambda f, x, mode, cval: f(x, sigma, axis, order, mode=mode, cval=cval, truncate=truncate, radius=radius)  # noqa: E731
    return _filter("gaussian_filter1d", x, [radius_] * len(array_of(x).shape), mode, cval, call, axis=axis)


def gaussian_laplace(
    x: Array, /, sigma: Any, *, mode: Any = "reflect", cval: float = 0.0, truncate: float = 4.0
) -> Array:
    """The Laplace operator of `gaussian_filter`."""
    radii = _gaussian_radii(sigma, len(array_of(x).shape), truncate)
    call = lambda f, x, mode, cval: f(x, sigma, mode=mode, cval=cval, truncate=truncate)  # noqa: E731
    return _filter("gaussian_laplace", x, radii, mode, cval, call)


def gaussian_gradient_magnitude(
    x: Array, /, sigma: Any, *, mode: Any = "reflect", cval: float = 0.0, truncate: float = 4.0
) -> Array:
    """The norm of the gradient of `gaussian_filter`; its derivative is zero where it is zero."""
    ndim, squares = len(array_of(x).shape), 0.0
    for axis in range(ndim):
        order = [int(at == axis) for at in range(ndim)]
        squares = squares + ops.square(gaussian_filter(x, sigma, order=order, mode=mode, cval=cval, truncate=truncate))
    zero = squares == 0.0
    return ops.where(zero, 0.0, ops.sqrt(ops.where(zero, 1.0, squares)))


def laplace(x: Array, /, *, mode: Any = "reflect", cval: float = 0.0) -> Array:
    """The Laplace operator by second differences."""
    call = lambda f, x, mode, cval: f(x, mode=mode, cval=cval)  # noqa: E731
    return _filter("laplace", x, [1] * len(array_of(x).shape), mode, cval, call)


def prewitt(x: Array, /, axis: int = -1, *, mode: Any = "reflect", cval: float = 0.0) -> Array:
    """Prewitt's filter: differences along an axis, averaged along the others."""
    call = lambda f, x, mode, cval: f(x, axis, mode=mode, cval=cval)  # noqa: E731
    return _filter("prewitt", x, [1] * len(array_of(x).shape), mode, cval, call)


def sobel(x: Array, /, axis: int = -1, *, mode: Any = "reflect", cval: float = 0.0) -> Array:
    """Sobel's filter: differences along an axis, smoothed along the others."""
    call = lambda f, x, mode, cval: f(x, axis, mode=mode, cval=cval)  # noqa: E731
    return _filter("sobel", x, [1] * len(array_of(x).shape), mode, cval, call)


def uniform_filter(x: Array, /, size: Any = 3, *, mode: Any = "reflect", cval: float = 0.0, origin: Any = 0) -> Array:
    """The mean over a box of ``size`` elements along each axis."""
    ndim = len(array_of(x).shape)
    radii = [int(n) + abs(at) for n, at in zip(_each(size, ndim), _each(origin, ndim), strict=True)]
    call = lambda f, x, mode, cval: f(x, size, mode=mode, cval=cval, origin=origin)  # noqa: E731
    return _filter("uniform_filter", x, radii, mode, cval, call)


def uniform_filter1d(
    x: Array, /, size: int, axis: int = -1, *, mode: str = "reflect", cval: float = 0.0, origin: int = 0
) -> Array:
    """The mean over ``size`` elements along an axis."""
    call = lambda f, x, mode, cval: f(x, size, axis, mode=mode, cval=cval, origin=origin)  # noqa: E731
    radii = [size + abs(origin)] * len(array_of(x).shape)
    return _filter("uniform_filter1d", x, radii, mode, cval, call, axis=axis)


# --- Fourier domain ----------------------------------------------------------------------------------------------------


def _fourier(name: str, x: Array, *args: Any) -> Array:
    """A filter of a transform: a product with its value for ones."""
    x = array_of(x)
    factor = computed(name, lambda x: of_scipy("ndimage", name)(np.ones(x.shape, np.complex128), *args), (plain(x),))[0]
    return x * factor if name == "fourier_shift" else x * ops.real(factor)


def fourier_gaussian(x: Array, /, sigma: Any, *, n: int = -1, axis: int = -1) -> Array:
    """The transform ``x`` filtered by a normal density of deviation ``sigma``."""
    return _fourier("fourier_gaussian", x, sigma, n, axis)


def fourier_uniform(x: Array, /, size: Any, *, n: int = -1, axis: int = -1) -> Array:
    """The transform ``x`` filtered by a box."""
    return _fourier("fourier_uniform", x, size, n, axis)


def fourier_ellipsoid(x: Array, /, size: Any, *, n: int = -1, axis: int = -1) -> Array:
    """The transform ``x`` filtered by an ellipsoid."""
    return _fourier("fourier_ellipsoid", x, size, n, axis)


def fourier_shift(x: Array, /, shift: Any, *, n: int = -1, axis: int = -1) -> Array:
    """The transform ``x`` of an array that is shifted: a complex array."""
    return _fourier("fourier_shift", x, shift, n, axis)


# --- splines and interpolation -----------------------------------------------------------------------------------------


_SMALL = 64  # elements: beyond this number, one edge has no influence on the other


def spline_filter1d(x: Array, /, order: int = 3, axis: int = -1, *, mode: str = "mirror") -> Array:
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


def spline_filter(x: Array, /, order: int = 3, *, mode: str = "mirror") -> Array:
    """The coefficients of the spline of an ``order`` from 2 to 5 that interpolates ``x``, in float64."""
    for axis in range(len(array_of(x).shape)):
        x = spline_filter1d(x, order, axis, mode=mode)
    return x


def _weights(order: int, at: Array) -> tuple[np.ndarray, list[Array]]:
    """The first node of each spline at some coordinates, and the weights of its ``order + 1`` nodes."""
    bare = np.asarray(computed("map_coordinates", lambda x: x, (plain(at),))[0])
    first = np.floor(bare + 0.5) if order % 2 == 0 else np.floor(bare)
    u = at - namespace(plain(at)).asarray(first, device=device_of(plain(at)))
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


def map_coordinates(
    x: Array,
    coordinates: Array,
    /,
    *,
    order: int = 3,
    mode: str = "constant",
    cval: float = 0.0,
    prefilter: bool = True,
) -> Array:
    """Values of a spline of an ``order`` from 0 to 3 through an array, at ``coordinates`` (ndim, ...), both differentiable.

    ``mode`` is one of SciPy's, but for "wrap"; a kink has one of its two derivatives. Raises `DerivativeError` for the orders 4
    and 5, and `ShapeError` where there is not one coordinate for each axis.
    """
    x, coordinates = array_of(x), array_of(coordinates, [x])
    coordinates = coordinates if isinstance(coordinates, Variable) else _like(x, coordinates)
    ndim = len(x.shape)
    check_mode("map_coordinates", mode)
    if order not in (0, 1, 2, 3) or mode == "wrap":
        raise DerivativeError(
            f"map_coordinates: order={order!r}, mode={mode!r} has no derivative here: expected an order from 0 to 3, and another "
            "mode than 'wrap', such as 'grid-wrap'"
        )
    if coordinates.shape[0] != ndim:
        raise ShapeError(
            f"map_coordinates: found coordinates of shape {tuple(coordinates.shape)}, expected ({ndim}, ...)"
        )
    return _interpolated(x, [ops.index(coordinates, (at, ...)) for at in range(ndim)], order, mode, cval, prefilter)


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
            x = extended(x - beyond, [(_PADDING, _PADDING)] * ndim, [mode] * ndim) + beyond
            coordinates = [at + float(_PADDING) for at in coordinates]
        x = spline_filter(x, order, mode=mode)
    if mode == "nearest":
        bounds = zip(coordinates, x.shape, strict=True)
        coordinates = [ops.minimum(ops.maximum(at, 0.0), size - 1.0) for at, size in bounds]
    parts = [_weights(order, at) for at in coordinates]
    total: Any = 0.0
    for offsets in itertools.product(range(order + 1), repeat=ndim):
        found = [
            _nodes(first + offset, size, mode) for (first, _), offset, size in zip(parts, offsets, x.shape, strict=True)
        ]
        is_inside = functools.reduce(operator.and_, (inside for _, inside in found))
        value = ops.index(x, tuple(_like(x, node) for node, _ in found))
        value = value if is_inside.all() else ops.where(_like(x, is_inside), value, cval)
        for (_, weights), offset in zip(parts, offsets, strict=True):
            value = value * weights[offset]
        total = total + value
    return ops.where(_like(x, outside), cval, total) if np.any(outside) else total


def _like(x: Array, values: Any) -> Array:
    return namespace(plain(x)).asarray(np.asarray(values), device=device_of(plain(x)))


def affine_transform(
    x: Array,
    matrix: Array,
    /,
    offset: Any = 0.0,
    *,
    output_shape: tuple[int, ...] | None = None,
    order: int = 3,
    mode: str = "constant",
    cval: float = 0.0,
    prefilter: bool = True,
) -> Array:
    """The array with elements of ``x`` at ``matrix @ index + offset``; ``x``, ``matrix`` (n, n) and ``offset`` are differentiable.

    A matrix (n,) is diagonal. Otherwise as `map_coordinates`.
    """
    x, matrix = array_of(x), array_of(matrix, [x])
    shape = tuple(x.shape) if output_shape is None else tuple(output_shape)
    index = np.indices(shape, np.float64)
    offset = array_of(offset, [x]) if isinstance(offset, (list, tuple)) else offset
    coordinates = []
    for row in range(len(x.shape)):
        start = ops.index(offset, row) if len(getattr(offset, "shape", ())) else offset
        if len(matrix.shape) == 1:
            coordinates.append(ops.index(matrix, row) * _like(x, index[row]) + start)
            continue
        terms = [ops.index(matrix, (row, column)) * _like(x, index[column]) for column in range(len(shape))]
        coordinates.append(functools.reduce(operator.add, terms) + start)
    return map_coordinates(x, ops.stack(coordinates), order=order, mode=mode, cval=cval, prefilter=prefilter)


def rotate(
    x: Array,
    /,
    angle: Any,
    *,
    reshape: bool = True,
    order: int = 3,
    mode: str = "constant",
    cval: float = 0.0,
    prefilter: bool = True,
) -> Array:
    """An image (m, n) rotated by an angle in degrees, both differentiable; with ``reshape`` the result has room for all of it."""
    x = array_of(x)
    if len(x.shape) != 2:
        raise ShapeError(f"rotate: found shape {tuple(x.shape)}, expected an image (m, n)")
    turn = angle * (math.pi / 180.0)
    c, s = ops.cos(turn), ops.sin(turn)
    sizes = np.array(x.shape, np.float64)
    shape = tuple(x.shape)
    if reshape:
        fixed = float(np.asarray(plain(turn)))
        bounds = np.abs([[math.cos(fixed), math.sin(fixed)], [math.sin(fixed), math.cos(fixed)]]) @ sizes
        shape = tuple(int(size) for size in np.floor(bounds + 0.5))
    (down, right), (row, column) = (sizes - 1.0) / 2.0, ((size - 1.0) / 2.0 for size in shape)
    index = np.indices(shape, np.float64)
    i, j = _like(x, index[0] - row), _like(x, index[1] - column)
    coordinates = ops.stack([i * c + j * s + down, j * c - i * s + right])
    return map_coordinates(x, coordinates, order=order, mode=mode, cval=cval, prefilter=prefilter)


def _separable(name: str, x: Array, args: Sequence[Any], cval: float, named: dict[str, Any]) -> Array:
    """Interpolation on a grid, whose transpose is a product with a matrix for each axis."""
    x, function = array_of(x), of_scipy("ndimage", name)

    def forward(x: np.ndarray, cval: float = 0.0) -> np.ndarray:
        return function(x, list(args), cval=cval, **named)

    def adjoint(g: np.ndarray) -> np.ndarray:
        for axis, arg in enumerate(args):
            size = x_shape[axis]
            matrix = np.stack([function(row, arg, **named) for row in np.eye(size)])
            g = np.moveaxis(np.tensordot(matrix, g, axes=(1, axis)), 0, axis)
        return g

    x_shape = tuple(x.shape)
    y = linear(name, forward, adjoint, x)
    return y if cval == 0.0 else y + computed(name, lambda x: forward(np.zeros_like(x), cval), (plain(x),))[0]


def shift(
    x: Array, /, shift: Any, *, order: int = 3, mode: str = "constant", cval: float = 0.0, prefilter: bool = True
) -> Array:
    """The array shifted by so many elements along each axis; transposed by a dense matrix for each axis."""
    ndim = len(array_of(x).shape)
    return _separable("shift", x, _each(shift, ndim), cval, {"order": order, "mode": mode, "prefilter": prefilter})


def zoom(
    x: Array,
    /,
    zoom: Any,
    *,
    order: int = 3,
    mode: str = "constant",
    cval: float = 0.0,
    prefilter: bool = True,
    grid_mode: bool = False,
) -> Array:
    """The array interpolated to another size along each axis; transposed by a dense matrix for each axis."""
    ndim = len(array_of(x).shape)
    named = {"order": order, "mode": mode, "prefilter": prefilter, "grid_mode": grid_mode}
    return _separable("zoom", x, _each(zoom, ndim), cval, named)


# --- labels ------------------------------------------------------------------------------------------------------------


def sum_labels(x: Array, /, labels: Any = None, index: Any = None) -> Array:
    """The sum of the elements with each label of ``index``; of those with any label but zero without ``index``."""
    x = array_of(x)
    if labels is None:
        return ops.sum(x)
    labels = np.broadcast_to(np.asarray(plain(labels)), tuple(x.shape))
    if index is None:
        return ops.sum(ops.where(_like(x, labels > 0), x, 0.0))
    sums = [ops.sum(ops.where(_like(x, labels == each), x, 0.0)) for each in np.atleast_1d(index)]
    return ops.stack(sums) if np.ndim(index) else sums[0]


sum = sum_labels


def mean(x: Array, /, labels: Any = None, index: Any = None) -> Array:
    """The mean of the elements with each label of ``index``; of those with any label but zero without ``index``."""
    counts = of_scipy("ndimage", "sum_labels")(np.ones(array_of(x).shape), labels, index)
    return sum_labels(x, labels, index) / (_like(x, counts) if np.ndim(counts) else float(counts))
