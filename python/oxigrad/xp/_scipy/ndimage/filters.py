"""Linear filters of images, named as in `scipy.ndimage`: by weights, by name, in the Fourier domain; label sums."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from oxigrad import ShapeError
from oxigrad import xp as ops
from oxigrad._core import plain
from oxigrad._typing import Array, Axis, PerAxis
from oxigrad.ops.backends import array_of, dtype_of, is_complex, namespace, zeros_of
from oxigrad.ops.backends.functions.scipy_functions import of_scipy
from oxigrad.ops.core.host_calls import computed, is_recorded
from oxigrad.ops.core.in_place import of_library
from oxigrad.ops.core.primitives import index
from oxigrad.ops.core.standard import axes_of
from oxigrad.ops.scipy_signatures import scipy_signature
from oxigrad.xp import isdtype
from oxigrad.xp._scipy.ndimage.extension import check_mode, extended_by, filtered, for_each_axis

__all__ = [
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
    "mean",
    "prewitt",
    "sobel",
    "sum",
    "sum_labels",
    "uniform_filter",
    "uniform_filter1d",
]


def _filter(
    name: str,
    x: Array,
    radii: Sequence[int],
    mode: PerAxis[str],
    cval: float,
    *args: Any,
    axis: int | None = None,
    axes: Axis = None,
    **named: Any,
) -> Array:
    """The filter of SciPy with further arguments: a linear filter, plus a constant if ``cval`` is not zero.

    The filter is along an ``axis``, whose mode is a text, or along ``axes``, which ``radii`` and ``mode`` belong to.
    """
    x, function = array_of(x), of_scipy("ndimage", name)
    ndim = len(x.shape)
    places = axes_of(axes if axis is None else axis, ndim)
    reach, modes = [0] * ndim, ["constant"] * ndim
    modes_of_axes: list[Any] = [mode] if axis is not None else for_each_axis(name, "mode", mode, len(places))
    for place, radius, each in zip(places, radii, modes_of_axes, strict=True):
        reach[place], modes[place] = radius, each
    named |= {key: value for key, value in (("axis", axis), ("axes", axes)) if value is not None}

    def of_modes(x: np.ndarray, modes: Sequence[str], cval: float = 0.0) -> np.ndarray:
        chosen = [modes[place] for place in places]
        modes_of_call: Any = chosen[0] if isinstance(mode, str) and chosen else chosen
        return function(x, *args, mode=modes_of_call, cval=cval, **named)

    for each in modes_of_axes:
        check_mode(name, each)
    if not is_recorded(x):
        return computed(name, lambda x: of_modes(x, modes, cval), (x,))[0]
    y = filtered(name, of_modes, x, reach, modes)
    if cval == 0.0:
        return y
    zeros = ops.zeros_like(x)
    return y + computed(name, lambda zeros: of_modes(zeros, modes, cval), (zeros,))[0]


# --- filters by weights -----------------------------------------------------------------------------------------------

_BY_WEIGHTS = 'input, weights, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None'
_BY_WEIGHTS_1D = 'input, weights, axis=-1, output=None, mode="reflect", cval=0.0, origin=0'


@scipy_signature(_BY_WEIGHTS)
def correlate(x: Array, weights: Array, /, mode: str, cval: float, origin: PerAxis[int], axes: Axis) -> Array:
    """The correlation of an array with weights, which have one dimension for each of ``axes``.

    Both are differentiable. Complex weights are conjugated. For variable weights, one product is recorded for each
    weight.
    """
    x, weights = array_of(x), array_of(weights)
    check_mode("correlate", mode)
    origins = for_each_axis("correlate", "origin", origin, len(weights.shape))
    if axes is not None or len(weights.shape) != len(x.shape):
        weights, origins = along_axes("correlate", x, weights, origins, axes)
    if not is_recorded(weights):
        w = np.asarray(computed("correlate", lambda w: w, (weights,))[0]) if weights.shape else weights
        radii = [size + abs(shift) for size, shift in zip(w.shape, origins, strict=True)]
        return _filter("correlate", x, radii, mode, cval, w, origin=origins)
    widths = [
        (size // 2 + shift, size - size // 2 - 1 - shift) for size, shift in zip(weights.shape, origins, strict=True)
    ]
    if any(width < 0 for pair in widths for width in pair):
        raise ValueError(f"correlate: origin is {origin!r}: expected the place of an element of the weights")
    whole, weights = extended_by(x, widths, [mode] * len(x.shape), cval), _conjugate(weights)
    total: Array = 0.0
    for at in itertools.product(*map(range, weights.shape)):
        part = tuple(slice(start, start + size) for start, size in zip(at, x.shape, strict=True))
        total = total + index(weights, at) * index(whole, part)
    return in_dtype_of(x, total)


def in_dtype_of(x: Array, result: Array) -> Array:
    """The result in the precision of an image of floating-point numbers, as SciPy's."""
    dtype, library = dtype_of(x), namespace(plain(x))
    if not isdtype(dtype, ("real floating", "complex floating")):
        return result
    dtype = library.result_type(dtype, library.complex64) if is_complex(result) else dtype
    return ops.astype(result, dtype, copy=False)


def _conjugate(weights: Array) -> Array:
    return ops.conjugate(weights) if is_complex(weights) else weights


def along_axes(
    name: str, x: Array, weights: Array, origins: list[int], axes: Axis, what: str = "weights"
) -> tuple[Array, list[int]]:
    """Weights for some axes of an array, and their origins, extended to all axes; ``what`` names them in errors."""
    places = axes_of(axes, len(x.shape))
    if len(places) != len(weights.shape):
        raise ShapeError(
            f"{name}: found {what} of {len(weights.shape)} dimensions, expected {len(places)}, one for each axis"
        )
    shape, whole = [1] * len(x.shape), [0] * len(x.shape)
    for place, size in zip(sorted(places), weights.shape, strict=True):  # in the order of the array, as SciPy's
        shape[place] = size
    for place, origin in zip(places, origins, strict=True):
        whole[place] = origin
    return ops.reshape(weights, tuple(shape)), whole


@scipy_signature(_BY_WEIGHTS)
def convolve(x: Array, weights: Array, /, mode: str, cval: float, origin: PerAxis[int], axes: Axis) -> Array:
    """The convolution of an array with weights: `correlate` with reversed weights.

    The weights have one dimension for each of ``axes``.
    """
    weights = array_of(weights)
    origins = [
        -shift - (1 - size % 2)
        for size, shift in zip(
            weights.shape, for_each_axis("convolve", "origin", origin, len(weights.shape)), strict=True
        )
    ]
    return correlate(x, _conjugate(ops.flip(weights)), mode=mode, cval=cval, origin=origins, axes=axes)


@scipy_signature(_BY_WEIGHTS_1D)
def correlate1d(x: Array, weights: Array, /, axis: int, mode: str, cval: float, origin: int) -> Array:
    """The correlation along an axis with weights (n,), both differentiable."""
    x, weights = array_of(x), array_of(weights)
    weights, origins = along_axes("correlate1d", x, weights, [origin], axis)
    return correlate(x, weights, mode=mode, cval=cval, origin=origins)


@scipy_signature(_BY_WEIGHTS_1D)
def convolve1d(x: Array, weights: Array, /, axis: int, mode: str, cval: float, origin: int) -> Array:
    """The convolution along an axis with weights (n,), both differentiable."""
    weights = array_of(weights)
    origin = -origin - (1 - weights.shape[0] % 2)
    return correlate1d(x, _conjugate(ops.flip(weights)), axis, mode=mode, cval=cval, origin=origin)


# --- filters by name --------------------------------------------------------------------------------------------------


def _count(x: Array, axes: Axis) -> int:
    """The number of axes that are filtered."""
    return len(axes_of(axes, len(array_of(x).shape)))


def _gaussian_radii(
    name: str, sigma: PerAxis[float], count: int, truncate: float, radius: PerAxis[int] | None
) -> list[int]:
    sigmas = for_each_axis(name, "sigma", sigma, count)
    if radius is not None:
        return [int(each) for each in for_each_axis(name, "radius", radius, count)]
    return [int(truncate * float(each) + 0.5) for each in sigmas]


@scipy_signature(
    'input, sigma, order=0, output=None, mode="reflect", cval=0.0, truncate=4.0, *, radius=None, axes=None'
)
def gaussian_filter(
    x: Array,
    /,
    sigma: PerAxis[float],
    order: PerAxis[int],
    mode: PerAxis[str],
    cval: float,
    truncate: float,
    radius: PerAxis[int] | None,
    axes: Axis,
) -> Array:
    """The Gaussian filter of deviation ``sigma``, or its derivative of some ``order``, along each of ``axes``."""
    count = _count(x, axes)
    radii = _gaussian_radii("gaussian_filter", sigma, count, truncate, radius)
    order = for_each_axis("gaussian_filter", "order", order, count)
    return _filter("gaussian_filter", x, radii, mode, cval, sigma, order, axes=axes, truncate=truncate, radius=radius)


@scipy_signature('input, sigma, axis=-1, order=0, output=None, mode="reflect", cval=0.0, truncate=4.0, *, radius=None')
def gaussian_filter1d(
    x: Array, /, sigma: float, axis: int, order: int, mode: str, cval: float, truncate: float, radius: int | None
) -> Array:
    """As `gaussian_filter`, along one axis."""
    radii, width = (
        _gaussian_radii("gaussian_filter1d", sigma, 1, truncate, radius),
        {"truncate": truncate, "radius": radius},
    )
    return _filter("gaussian_filter1d", x, radii, mode, cval, sigma, axis=axis, order=order, **width)


_BY_GAUSSIANS = 'input, sigma, output=None, mode="reflect", cval=0.0, *, axes=None, **kwargs'


@scipy_signature(_BY_GAUSSIANS)
def gaussian_laplace(
    x: Array,
    /,
    sigma: PerAxis[float],
    mode: PerAxis[str],
    cval: float,
    axes: Axis,
    truncate: float = 4.0,
    radius: PerAxis[int] | None = None,
) -> Array:
    """The Laplace operator of `gaussian_filter`."""
    radii = _gaussian_radii("gaussian_laplace", sigma, _count(x, axes), truncate, radius)
    return _filter("gaussian_laplace", x, radii, mode, cval, sigma, axes=axes, truncate=truncate, radius=radius)


@scipy_signature(_BY_GAUSSIANS)
def gaussian_gradient_magnitude(
    x: Array,
    /,
    sigma: PerAxis[float],
    mode: PerAxis[str],
    cval: float,
    axes: Axis,
    truncate: float = 4.0,
    radius: PerAxis[int] | None = None,
) -> Array:
    """The norm of the gradient of `gaussian_filter` along ``axes``, with a zero derivative where the norm is zero."""
    ndim, squares = len(array_of(x).shape), 0.0
    places = axes_of(axes, ndim)
    # As SciPy, smooth along all axes.
    for axis, each in zip(places, for_each_axis("gaussian_gradient_magnitude", "mode", mode, len(places)), strict=True):
        order = [int(at == axis) for at in range(ndim)]
        slope = gaussian_filter(x, sigma, order=order, mode=each, cval=cval, truncate=truncate, radius=radius)
        squares = squares + ops.square(slope)
    return ops.root_or_zero(squares)


@scipy_signature('input, output=None, mode="reflect", cval=0.0, *, axes=None')
def laplace(x: Array, /, mode: PerAxis[str], cval: float, axes: Axis) -> Array:
    """The Laplace operator by second differences."""
    return _filter("laplace", x, [1] * _count(x, axes), mode, cval, axes=axes)


_ALONG = 'input, axis=-1, output=None, mode="reflect", cval=0.0'


@scipy_signature(_ALONG)
def prewitt(x: Array, /, axis: int, mode: PerAxis[str], cval: float) -> Array:
    """Prewitt's filter: differences along an axis, averaged along the others."""
    return _filter("prewitt", x, [1] * _count(x, None), mode, cval, axis)


@scipy_signature(_ALONG)
def sobel(x: Array, /, axis: int, mode: PerAxis[str], cval: float) -> Array:
    """Sobel's filter: differences along an axis, smoothed along the others."""
    return _filter("sobel", x, [1] * _count(x, None), mode, cval, axis)


@scipy_signature('input, size=3, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None')
def uniform_filter(
    x: Array, /, size: PerAxis[int], mode: PerAxis[str], cval: float, origin: PerAxis[int], axes: Axis
) -> Array:
    """The mean over a box of ``size`` elements along each of ``axes``."""
    count = _count(x, axes)
    sizes, origins = (
        for_each_axis("uniform_filter", what, value, count) for what, value in (("size", size), ("origin", origin))
    )
    radii = [int(n) + abs(at) for n, at in zip(sizes, origins, strict=True)]
    return _filter("uniform_filter", x, radii, mode, cval, size, origin=origin, axes=axes)


@scipy_signature('input, size, axis=-1, output=None, mode="reflect", cval=0.0, origin=0')
def uniform_filter1d(x: Array, /, size: int, axis: int, mode: str, cval: float, origin: int) -> Array:
    """The mean over ``size`` elements along an axis."""
    return _filter("uniform_filter1d", x, [size + abs(origin)], mode, cval, size, axis=axis, origin=origin)


# --- Fourier domain ---------------------------------------------------------------------------------------------------


def _fourier(name: str, x: Array, parameter: str, value: Any, *args: Any) -> Array:
    """A filter of a transform: a product with its value for ones."""
    x = array_of(x)
    args = for_each_axis(name, parameter, value, len(x.shape)), *args
    factor = computed(name, lambda x: of_scipy("ndimage", name)(np.ones(x.shape, np.complex128), *args), (plain(x),))[0]
    return x * factor if name == "fourier_shift" else x * ops.real(factor)


@scipy_signature("input, sigma, n=-1, axis=-1, output=None")
def fourier_gaussian(x: Array, /, sigma: PerAxis[float], n: int, axis: int) -> Array:
    """The transform ``x`` filtered by a normal density of deviation ``sigma``."""
    return _fourier("fourier_gaussian", x, "sigma", sigma, n, axis)


@scipy_signature("input, size, n=-1, axis=-1, output=None")
def fourier_uniform(x: Array, /, size: PerAxis[float], n: int, axis: int) -> Array:
    """The transform ``x`` filtered by a box."""
    return _fourier("fourier_uniform", x, "size", size, n, axis)


@scipy_signature("input, size, n=-1, axis=-1, output=None")
def fourier_ellipsoid(x: Array, /, size: PerAxis[float], n: int, axis: int) -> Array:
    """The transform ``x`` filtered by an ellipsoid."""
    return _fourier("fourier_ellipsoid", x, "size", size, n, axis)


@scipy_signature("input, shift, n=-1, axis=-1, output=None")
def fourier_shift(x: Array, /, shift: PerAxis[float], n: int, axis: int) -> Array:
    """The transform ``x`` of an array that is shifted: a complex array."""
    return _fourier("fourier_shift", x, "shift", shift, n, axis)


# --- labels -----------------------------------------------------------------------------------------------------------


@scipy_signature("input, labels=None, index=None")
def sum_labels(x: Array, /, labels: Array | None, index: Array | None) -> Array:
    """The sum of the elements with each label of ``index``; of those with any label but zero without ``index``."""
    x = array_of(x)
    if labels is None:
        return ops.sum(x)
    labels = np.broadcast_to(np.asarray(plain(labels)), tuple(x.shape))
    if index is None:
        return ops.sum(ops.where(of_library(labels > 0, x), x, 0.0))
    index = np.asarray(index)
    sums = [ops.sum(ops.where(of_library(labels == each, x), x, 0.0)) for each in index.flat]
    return ops.reshape(ops.stack(sums), index.shape) if sums else zeros_of(index.shape, x)


sum = sum_labels


@scipy_signature("input, labels=None, index=None")
def mean(x: Array, /, labels: Array | None, index: Array | None) -> Array:
    """The mean of the elements with each label of ``index``; of those with any label but zero without ``index``."""
    x = array_of(x)
    places = labels if labels is None else np.asarray(plain(labels))
    counts = of_scipy("ndimage", "sum_labels")(np.ones(x.shape), places, index)
    return sum_labels(x, labels, index) / (of_library(counts, x) if np.ndim(counts) else float(counts))
