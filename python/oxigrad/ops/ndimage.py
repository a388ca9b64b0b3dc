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

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oxigrad._core import Variable, plain
from oxigrad._typing import Array
from oxigrad.ops import primitives as ops
from oxigrad.ops.backends import array_of
from oxigrad.ops.backends.scipy_functions import of_scipy
from oxigrad.ops.extension import check_mode, extended, filtered, for_each_axis
from oxigrad.ops.host_calls import computed
from oxigrad.ops.interpolation import (
    affine_transform,
    asarray_like,
    map_coordinates,
    rotate,
    shift,
    spline_filter,
    spline_filter1d,
    zoom,
)

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
        radii = [
            radius if at == axis % len(x.shape) else 0 for at, radius in enumerate(for_each_axis(radii, len(x.shape)))
        ]
    modes = for_each_axis(mode, len(x.shape))

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
    origins = for_each_axis(origin, len(weights.shape))
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
        -shift - (1 - size % 2)
        for size, shift in zip(weights.shape, for_each_axis(origin, len(weights.shape)), strict=True)
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
        return [int(each) for each in for_each_axis(radius, ndim)]
    return [int(truncate * float(each) + 0.5) for each in for_each_axis(sigma, ndim)]


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
    radii = [int(n) + abs(at) for n, at in zip(for_each_axis(size, ndim), for_each_axis(origin, ndim), strict=True)]
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


# --- labels ------------------------------------------------------------------------------------------------------------


def sum_labels(x: Array, /, labels: Any = None, index: Any = None) -> Array:
    """The sum of the elements with each label of ``index``; of those with any label but zero without ``index``."""
    x = array_of(x)
    if labels is None:
        return ops.sum(x)
    labels = np.broadcast_to(np.asarray(plain(labels)), tuple(x.shape))
    if index is None:
        return ops.sum(ops.where(asarray_like(x, labels > 0), x, 0.0))
    sums = [ops.sum(ops.where(asarray_like(x, labels == each), x, 0.0)) for each in np.atleast_1d(index)]
    return ops.stack(sums) if np.ndim(index) else sums[0]


sum = sum_labels


def mean(x: Array, /, labels: Any = None, index: Any = None) -> Array:
    """The mean of the elements with each label of ``index``; of those with any label but zero without ``index``."""
    counts = of_scipy("ndimage", "sum_labels")(np.ones(array_of(x).shape), labels, index)
    return sum_labels(x, labels, index) / (asarray_like(x, counts) if np.ndim(counts) else float(counts))
