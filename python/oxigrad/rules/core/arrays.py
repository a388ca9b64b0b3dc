"""Array functions that rules share."""

import math

import numpy as np

from oxigrad._core import Variable
from oxigrad.ops.backends import beneath, device_of, dtype_name, is_array, namespace, widest_float


def zeros(xp, p, shape):
    """Zeros of the given shape, of the dtype and on the device of ``p``."""
    return namespace(p).zeros(tuple(shape), dtype=p.dtype, device=device_of(p))


def mean_over(xp, x, axis=None):
    """The mean over ``axis``, with dimensions kept; zero for an empty array."""
    axes = range(len(x.shape)) if axis is None else (axis,)
    count = math.prod(x.shape[a] for a in axes)
    return xp.sum(x, axis=axis, keepdims=True) / max(count, 1)


def wide_product(xp, x, y):
    """The elementwise product of two arrays in float64, as kernels compute terms of a sum.

    Products of float32 may overflow. A library without float64 on the device computes them in float32.
    """
    wide = _wide(xp, x)
    return wide * (wide if y is x else _wide(xp, y))


def _wide(xp, x):
    """An array in the most precise dtype; symbols and numbers are unchanged."""
    array = _array_beneath(xp, x)
    if array is None or dtype_name(array.dtype) == "float64":
        return x
    return xp.astype(x, widest_float(namespace(array), device_of(array)), copy=False)


def number_like(xp, number, x):
    """A number in the dtype of the array ``x``, to which a kernel rounds it when it meets the array."""
    array = _array_beneath(xp, x)
    if array is None or _array_beneath(xp, number) is None:
        return number
    return xp.astype(number, array.dtype, copy=False)


def _array_beneath(xp, x):
    """The array beneath variables and other wrappers that ``xp`` reads; None for a number or a symbol."""
    array = beneath(x)
    if isinstance(array, Variable) or not is_array(array):
        return None
    return array if type(array) is np.ndarray else beneath(xp.astype(x, array.dtype, copy=False))


def root_mean_square(xp, x):
    """The root mean square of all elements, with dimensions kept."""
    return number_like(xp, xp.sqrt(mean_over(xp, wide_product(xp, x, x))), x)


def count(xp, x):
    """The number of elements, as a sum that a kernel computes too, which cannot read shapes; 1 for an empty array."""
    ones = _wide(xp, xp.where(x < 0, 1.0, 1.0))  # numbers alone may be of float32, which counts up to 2**24
    return number_like(xp, xp.maximum(xp.sum(ones), 1.0), x)


def norm(xp, x):
    """The Euclidean norm of all elements."""
    return number_like(xp, xp.sqrt(xp.sum(wide_product(xp, x, x))), x)


def share_of_new(xp, beta):
    """The weight of a new term in a statistic with decay ``beta``: ``1 - beta``, or 1 without decay."""
    return xp.where(beta == 1.0, 1.0, 1.0 - beta)


def choose(xp, condition, these, those):
    """The results of ``these()`` if the condition holds, else of ``those()``; a traced program calls both."""
    if isinstance(condition, bool):
        return these() if condition else those()
    return [None if a is None else xp.where(condition, a, b) for a, b in zip(these(), those(), strict=True)]


def finite_only(xp, decomposed, x):
    """The factors of the matrix ``x``, or NaN if ``x`` is not finite.

    LAPACK would raise an error, while a guard may still drop the step.
    """
    is_finite = xp.all(xp.isfinite(x))
    return [xp.where(is_finite, factor, math.nan) for factor in decomposed(xp.where(is_finite, x, xp.zeros_like(x)))]


def along(shape, axis):
    """The shape in which a vector along ``axis`` broadcasts to ``shape``."""
    return [n if a == axis else 1 for a, n in enumerate(shape)]


def matrix_norm(xp, x):
    """The norm of each matrix of a stack, with dimensions kept."""
    return number_like(xp, xp.sqrt(xp.sum(wide_product(xp, x, x), axis=(-2, -1), keepdims=True)), x)
