# Printed by make generated.
from builtins import bool as _bool
from typing import Any

from oxigrad._typing import Array


def affine_transform(
    input: Any, matrix: Any, offset: Any = 0.0, output_shape: Any = None, output: Any = None, order: Any = 3,
    mode: str = 'constant', cval: Any = 0.0, prefilter: _bool = True,
) -> Array:
    """The array whose element at ``index`` is the element of ``x`` at ``matrix @ index + offset``."""
def black_tophat(
    input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
    mode: str = 'reflect', cval: Any = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Array:
    """The closing of the image less the image."""
def convolve(
    input: Any, weights: Any, output: Any = None, mode: str = 'reflect', cval: Any = 0.0, origin: Any = 0, *,
    axes: Any = None,
) -> Array:
    """The convolution of an array with weights: `correlate` with reversed weights."""
def convolve1d(
    input: Any, weights: Any, axis: Any = -1, output: Any = None, mode: str = 'reflect', cval: Any = 0.0,
    origin: Any = 0,
) -> Array:
    """The convolution along an axis with weights (n,), both differentiable."""
def correlate(
    input: Any, weights: Any, output: Any = None, mode: str = 'reflect', cval: Any = 0.0, origin: Any = 0, *,
    axes: Any = None,
) -> Array:
    """The correlation of an array with weights, which have one dimension for each of ``axes``."""
def correlate1d(
    input: Any, weights: Any, axis: Any = -1, output: Any = None, mode: str = 'reflect', cval: Any = 0.0,
    origin: Any = 0,
) -> Array:
    """The correlation along an axis with weights (n,), both differentiable."""
def fourier_ellipsoid(input: Any, size: Any, n: Any = -1, axis: Any = -1, output: Any = None) -> Array:
    """The transform ``x`` filtered by an ellipsoid."""
def fourier_gaussian(input: Any, sigma: Any, n: Any = -1, axis: Any = -1, output: Any = None) -> Array:
    """The transform ``x`` filtered by a normal density of deviation ``sigma``."""
def fourier_shift(input: Any, shift: Any, n: Any = -1, axis: Any = -1, output: Any = None) -> Array:
    """The transform ``x`` of an array that is shifted: a complex array."""
def fourier_uniform(input: Any, size: Any, n: Any = -1, axis: Any = -1, output: Any = None) -> Array:
    """The transform ``x`` filtered by a box."""
def gaussian_filter(
    input: Any, sigma: Any, order: Any = 0, output: Any = None, mode: str = 'reflect', cval: Any = 0.0,
    truncate: Any = 4.0, *, radius: Any = None, axes: Any = None,
) -> Array:
    """The Gaussian filter of deviation ``sigma``, or its derivative of some ``order``, along each of ``axes``."""
def gaussian_filter1d(
    input: Any, sigma: Any, axis: Any = -1, order: Any = 0, output: Any = None, mode: str = 'reflect', cval: Any = 0.0,
    truncate: Any = 4.0, *, radius: Any = None,
) -> Array:
    """As `gaussian_filter`, along one axis."""
def gaussian_gradient_magnitude(
    input: Any, sigma: Any, output: Any = None, mode: str = 'reflect', cval: Any = 0.0, *, axes: Any = None,
    **kwargs: Any,
) -> Array:
    """The norm of the gradient of `gaussian_filter` along ``axes``, with a zero derivative where the norm is zero."""
def gaussian_laplace(
    input: Any, sigma: Any, output: Any = None, mode: str = 'reflect', cval: Any = 0.0, *, axes: Any = None,
    **kwargs: Any,
) -> Array:
    """The Laplace operator of `gaussian_filter`."""
def grey_closing(
    input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
    mode: str = 'reflect', cval: Any = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Array:
    """The erosion of the dilation."""
def grey_dilation(
    input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
    mode: str = 'reflect', cval: Any = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Array:
    """The largest element of each reflected window, plus the elements of ``structure``, which is differentiable too."""
def grey_erosion(
    input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
    mode: str = 'reflect', cval: Any = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Array:
    """The smallest element of each window, less the elements of ``structure``, which is differentiable too."""
def grey_opening(
    input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
    mode: str = 'reflect', cval: Any = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Array:
    """The dilation of the erosion."""
def laplace(input: Any, output: Any = None, mode: str = 'reflect', cval: Any = 0.0, *, axes: Any = None) -> Array:
    """The Laplace operator by second differences."""
def map_coordinates(
    input: Any, coordinates: Any, output: Any = None, order: Any = 3, mode: str = 'constant', cval: Any = 0.0,
    prefilter: _bool = True,
) -> Array:
    """Values of a spline of an ``order`` from 0 to 3 through an array, at ``coordinates`` (ndim, ...)."""
def maximum_filter(
    input: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: str = 'reflect', cval: Any = 0.0,
    origin: Any = 0, *, axes: Any = None,
) -> Array:
    """The largest element of each window: a box of ``size``, or the elements that are true in ``footprint``."""
def maximum_filter1d(
    input: Any, size: Any, axis: Any = -1, output: Any = None, mode: str = 'reflect', cval: Any = 0.0, origin: Any = 0,
) -> Array:
    """The largest of ``size`` elements along an axis."""
def mean(input: Any, labels: Any = None, index: Any = None) -> Array:
    """The mean of the elements with each label of ``index``; of those with any label but zero without ``index``."""
def median_filter(
    input: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: str = 'reflect', cval: Any = 0.0,
    origin: Any = 0, *, axes: Any = None,
) -> Array:
    """The median of each window; of an even number of elements, the larger of the two in the middle."""
def minimum_filter(
    input: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: str = 'reflect', cval: Any = 0.0,
    origin: Any = 0, *, axes: Any = None,
) -> Array:
    """The smallest element of each window: a box of ``size``, or the elements that are true in ``footprint``."""
def minimum_filter1d(
    input: Any, size: Any, axis: Any = -1, output: Any = None, mode: str = 'reflect', cval: Any = 0.0, origin: Any = 0,
) -> Array:
    """The smallest of ``size`` elements along an axis."""
def morphological_gradient(
    input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
    mode: str = 'reflect', cval: Any = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Array:
    """The dilation less the erosion."""
def morphological_laplace(
    input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
    mode: str = 'reflect', cval: Any = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Array:
    """The dilation plus the erosion, less twice the image."""
def percentile_filter(
    input: Any, percentile: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: str = 'reflect',
    cval: Any = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Array:
    """The element of each window below which ``percentile`` of a hundred are; a negative one counts from 100."""
def prewitt(input: Any, axis: Any = -1, output: Any = None, mode: str = 'reflect', cval: Any = 0.0) -> Array:
    """Prewitt's filter: differences along an axis, averaged along the others."""
def rank_filter(
    input: Any, rank: Any, size: Any = None, footprint: Any = None, output: Any = None, mode: str = 'reflect',
    cval: Any = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Array:
    """The element of a ``rank`` in each window: 0 is the smallest, -1 the largest."""
def rotate(
    input: Any, angle: Any, axes: Any = (1, 0), reshape: _bool = True, output: Any = None, order: Any = 3,
    mode: str = 'constant', cval: Any = 0.0, prefilter: _bool = True,
) -> Array:
    """An array rotated in the plane of two axes by an angle in degrees, both differentiable."""
def shift(
    input: Any, shift: Any, output: Any = None, order: Any = 3, mode: str = 'constant', cval: Any = 0.0,
    prefilter: _bool = True,
) -> Array:
    """The array shifted by ``shift`` elements along each axis; its transpose is a dense matrix for each axis."""
def sobel(input: Any, axis: Any = -1, output: Any = None, mode: str = 'reflect', cval: Any = 0.0) -> Array:
    """Sobel's filter: differences along an axis, smoothed along the others."""
def spline_filter(input: Any, order: Any = 3, output: Any = ..., mode: str = 'mirror') -> Array:
    """The coefficients of the spline of an ``order`` from 2 to 5 that interpolates ``x``, in float64."""
def spline_filter1d(input: Any, order: Any = 3, axis: Any = -1, output: Any = ..., mode: str = 'mirror') -> Array:
    """The coefficients of the spline of an ``order`` from 0 to 5 that interpolates ``x`` along an axis, in float64."""
def sum(input: Any, labels: Any = None, index: Any = None) -> Array:
    """The sum of the elements with each label of ``index``; of those with any label but zero without ``index``."""
def sum_labels(input: Any, labels: Any = None, index: Any = None) -> Array:
    """The sum of the elements with each label of ``index``; of those with any label but zero without ``index``."""
def uniform_filter(
    input: Any, size: Any = 3, output: Any = None, mode: str = 'reflect', cval: Any = 0.0, origin: Any = 0, *,
    axes: Any = None,
) -> Array:
    """The mean over a box of ``size`` elements along each of ``axes``."""
def uniform_filter1d(
    input: Any, size: Any, axis: Any = -1, output: Any = None, mode: str = 'reflect', cval: Any = 0.0, origin: Any = 0,
) -> Array:
    """The mean over ``size`` elements along an axis."""
def white_tophat(
    input: Any, size: Any = None, footprint: Any = None, structure: Any = None, output: Any = None,
    mode: str = 'reflect', cval: Any = 0.0, origin: Any = 0, *, axes: Any = None,
) -> Array:
    """The image less its opening."""
def zoom(
    input: Any, zoom: Any, output: Any = None, order: Any = 3, mode: str = 'constant', cval: Any = 0.0,
    prefilter: _bool = True, *, grid_mode: _bool = False,
) -> Array:
    """The array interpolated to another size along each axis; transposed by a dense matrix for each axis."""

__all__ = [
    'affine_transform', 'black_tophat', 'convolve', 'convolve1d', 'correlate', 'correlate1d', 'fourier_ellipsoid',
    'fourier_gaussian', 'fourier_shift', 'fourier_uniform', 'gaussian_filter', 'gaussian_filter1d',
    'gaussian_gradient_magnitude', 'gaussian_laplace', 'grey_closing', 'grey_dilation', 'grey_erosion', 'grey_opening',
    'laplace', 'map_coordinates', 'maximum_filter', 'maximum_filter1d', 'mean', 'median_filter', 'minimum_filter',
    'minimum_filter1d', 'morphological_gradient', 'morphological_laplace', 'percentile_filter', 'prewitt',
    'rank_filter', 'rotate', 'shift', 'sobel', 'spline_filter', 'spline_filter1d', 'sum', 'sum_labels',
    'uniform_filter', 'uniform_filter1d', 'white_tophat', 'zoom',
]
