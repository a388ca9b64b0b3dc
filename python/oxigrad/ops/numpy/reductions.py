"""NumPy's reductions with its keywords: ``where=``, ``initial=``, weighted means and variances, and NaN-skipping ones.

Each function has NumPy's signature (see `oxigrad.ops.numpy.numpy_signatures`); ``out`` is assigned by its caller.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad._core import ShapeError, plain
from oxigrad._typing import Array, Axis, Dtype, Function, Results
from oxigrad.ops.backends import array_of, device_of, dtype_of, is_array, is_complex, namespace
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core import standard
from oxigrad.ops.core.array_like import array, examples, in_double
from oxigrad.ops.core.in_place import of_library
from oxigrad.ops.core.primitives import along
from oxigrad.ops.core.shapes import position
from oxigrad.ops.numpy.extras import atleast_2d
from oxigrad.ops.numpy.numpy_signatures import numpy_signature


@numpy_signature(np.prod)
def prod(a: Array, dtype: Dtype = None, initial: Array = None, where: Array = None, **over: Any) -> Array:
    """Product of the elements that ``where`` selects, and of ``initial``."""
    product = standard.prod(ops.selected(array(a, dtype), where, 1), **over)
    return product if initial is None else product * initial


def _count(a: Array, axis: Axis, where: Array, keepdims: bool) -> Array:
    """The number of elements of each slice that ``where`` selects: plain numbers."""
    if where is True or where is None:
        return float(math.prod(a.shape[place] for place in standard.axes_of(axis, a.ndim)))
    ones = ops.ones_like(plain(a))
    return ops.sum(ops.selected(ones, where, 0.0), axis=axis, keepdims=keepdims)


def _variance(
    of_too_few: float,
    a: Array,
    dtype: Dtype = None,
    ddof: float = 0,
    where: Array = None,
    mean: Array = None,
    correction: float | None = None,
    axis: Axis = None,
    keepdims: bool = False,
) -> Array:
    a = array(a)
    if dtype is not None:  # of the result, which is real
        in_dtype = ops.in_floats("var", ops.real(a) if is_complex(a) else a, dtype)
        a = in_dtype + 1j * ops.in_floats("var", ops.imag(a), dtype) if is_complex(a) else in_dtype
    ddof = ddof if correction is None else correction
    center = ops.mean(a, axis=axis, keepdims=True, where=where) if mean is None else mean
    apart = a - center
    squares = ops.real(apart * ops.conj(apart)) if is_complex(apart) else ops.square(apart)
    total = ops.sum(ops.selected(squares, where, 0.0), axis=axis, keepdims=keepdims)
    free = _count(squares, axis, where, keepdims) - ddof
    if not is_array(free):
        variance = total / free if free > 0 else total * of_too_few
    else:
        library, few = namespace(free), free <= 0
        one, factor = (library.asarray(x, dtype=dtype_of(free), device=device_of(free)) for x in (1.0, of_too_few))
        variance = total / library.where(few, one, free) * library.where(few, factor, one)
    return variance if dtype is None else ops.astype(variance, dtype, copy=False)


@numpy_signature(np.var)
def var(a: Array, **named: Any) -> Array:
    """Variance of the elements that ``where`` selects, around ``mean`` if it is passed.

    It is infinite if no more than ``ddof`` elements are selected.
    """
    return _variance(math.inf, a, **named)


@numpy_signature(np.std)
def std(a: Array, **named: Any) -> Array:
    """Standard deviation, as `var`; its gradient is zero where the deviation is zero."""
    return ops.root_or_zero(var(a, **named))


@numpy_signature(np.ptp)
def ptp(a: Array, **over: Any) -> Array:
    """Largest element minus the smallest."""
    a = array(a)
    return ops.max(a, **over) - ops.min(a, **over)


@numpy_signature(np.average)
def average(
    a: Array, axis: Axis = None, weights: Array = None, returned: bool = False, keepdims: bool = False
) -> Results:
    """Weighted mean; with ``returned``, a tuple of it and the sum of the weights."""
    a = array(a)
    if weights is None:
        average = ops.mean(a, axis=axis, keepdims=keepdims)
        scale: Array = _count(a, axis, True, keepdims)
    else:
        weights = _along_axes(array_of(weights, [a]) if isinstance(weights, (list, tuple)) else array(weights), a, axis)
        scale = ops.sum(weights, axis=axis, keepdims=keepdims)
        if bool(np.any(examples(scale) == 0.0)):
            raise ZeroDivisionError("average: the weights sum to zero")
        average = ops.sum(a * weights, axis=axis, keepdims=keepdims) / scale
    return (average, ops.zeros_like(average) + scale) if returned else average


def _along_axes(weights: Array, a: Array, axis: Axis) -> Array:
    """Weights broadcast to ``a``, which may be given for the axes alone."""
    if tuple(weights.shape) == tuple(a.shape):
        return weights
    axes = standard.axes_of(axis, a.ndim) if axis is not None else ()
    expected = tuple(a.shape[place] for place in axes)
    if tuple(weights.shape) != expected:
        raise ShapeError(
            f"average: found weights of shape {tuple(weights.shape)}, expected {tuple(a.shape)} or {expected}"
        )
    ordered = ops.permute_dims(weights, tuple(np.argsort(axes).tolist())) if len(axes) > 1 else weights
    shape = tuple(size if place in axes else 1 for place, size in enumerate(a.shape))
    return ops.broadcast_to(ops.reshape(ordered, shape), tuple(a.shape))


def cov(
    m: Array,
    y: Array = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Array = None,
    aweights: Array = None,
    *,
    dtype: Dtype = None,
) -> Array:
    """Covariance matrix of the rows (columns, if not ``rowvar``) of ``m`` and ``y``."""
    of_dtype = in_double if dtype is None else functools.partial(array, dtype=dtype)
    x = _observations(of_dtype(m), rowvar)
    if y is not None:
        x = ops.concat(
            [x, _observations(of_dtype(array_of(y, [x]) if isinstance(y, (list, tuple)) else y), rowvar)], axis=0
        )
    ddof = (0 if bias else 1) if ddof is None else ddof
    for name, of_observations in (("fweights", fweights), ("aweights", aweights)):
        if of_observations is not None and (shape := tuple(array(of_observations).shape)) != (x.shape[1],):
            raise ShapeError(f"cov: {name} has the shape {shape}, expected ({x.shape[1]},), one of each observation")
        if of_observations is not None and (examples(of_observations) < 0).any():
            raise ValueError(f"cov: {name} has negative numbers: expected weights of zero or more")
    if ddof != int(ddof):
        raise ValueError(f"cov: ddof is {ddof!r}: expected a whole number")
    if fweights is not None and (examples(fweights) % 1).any():
        raise TypeError("cov: fweights has fractions: expected whole numbers, the counts of observations")
    weights = None if fweights is None else array(fweights) * 1.0
    if aweights is not None:
        weights = array(aweights) if weights is None else weights * aweights
    if weights is None:
        x, free = x - ops.mean(x, axis=1, keepdims=True), max(x.shape[1] - ddof, 0)
        weighted = x
    else:
        total = ops.sum(weights)
        x = x - ops.reshape(ops.sum(x * weights, axis=1) / total, (-1, 1))
        counted = ddof if aweights is None else ddof * ops.sum(weights * aweights) / total
        free, weighted = ops.maximum(total - counted, 0.0) if ddof else total, x * weights
    products = ops.matmul(x, ops.conj(ops.permute_dims(weighted)))
    return ops.squeeze(products / free if is_array(plain(free)) or free else products * math.inf)


def _observations(x: Array, rowvar: bool) -> Array:
    return atleast_2d(x) if rowvar or x.ndim == 1 else ops.permute_dims(atleast_2d(x))


def corrcoef(x: Array, y: Array = None, rowvar: bool = True, *, dtype: Dtype = None) -> Array:
    """Matrix of Pearson's correlation coefficients."""
    covariance = cov(x, y, rowvar, dtype=dtype)
    if not covariance.ndim:
        return covariance / covariance
    places = of_library(np.arange(covariance.shape[0]), covariance)
    deviation = ops.sqrt(ops.real(covariance[places, places]))
    return covariance / ops.reshape(deviation, (-1, 1)) / deviation


def trapezoid(y: Array, x: Array = None, dx: Array = 1.0, axis: int = -1) -> Array:
    """Integral along ``axis`` by the trapezoidal rule, over the points ``x`` or those ``dx`` apart."""
    y = array(y)
    axis = position(axis, y.ndim)
    return ops.sum(trapezoids(y, spacing("trapezoid", y, x, dx, axis), axis), axis=axis)


def trapezoids(y: Array, spacing: Array, axis: int) -> Array:
    """The integral from each point to the next by the trapezoidal rule."""
    return spacing * (y[along(axis, slice(1, None))] + y[along(axis, slice(None, -1))]) / 2.0


def spacing(name: str, y: Array, x: Array, dx: Array, axis: int) -> Array:
    """The distances of the points ``x``, along the axis or of all elements; ``dx`` without points.

    The shape broadcasts with ``y``.
    """
    if x is None:
        return dx
    x = array_of(x, [y]) if isinstance(x, (list, tuple)) else array(x)
    if x.ndim not in (1, y.ndim) or x.shape[axis if x.ndim > 1 else 0] != y.shape[axis]:
        expected = " or ".join(sorted({f"({y.shape[axis]},)", str(tuple(y.shape))}, key=len))
        raise ShapeError(f"{name}: found points of shape {tuple(x.shape)}, expected {expected}")
    if x.ndim > 1:
        return standard.diff(x, axis=axis)
    return ops.reshape(standard.diff(x), (1,) * axis + (-1,) + (1,) * (y.ndim - 1 - axis))


# --- NaN-skipping reductions -----------------------------------------------------------------------------------------


def _present(a: Array, where: Array = None, other: float = 0.0) -> tuple[Array, Array]:
    """The array with NaN replaced by ``other``, and the mask of its selected elements that are not NaN."""
    a = array(a)
    missing = ops.isnan(a)
    chosen = True if where is None else plain(where)
    if chosen is not True and not (is_array(chosen) and namespace(chosen) is namespace(a)):
        chosen = of_library(np.asarray(chosen, dtype=bool), a)
    mask = ~missing & chosen
    return ops.where(missing, other, a), mask


def _filled(reduce: Function, other: float, a: Array, dtype: Dtype = None, **named: Any) -> Array:
    """A reduction of the array with NaN replaced by a number."""
    return array(reduce(array(_present(a, other=other)[0], dtype), **named), dtype)


def _cumulative(function: Function, other: float, a: Array, axis: int | None = None, **named: Any) -> Array:
    if axis is None:
        a, axis = ops.ravel(array(a)), 0
    return _filled(functools.partial(function, axis=axis), other, a, **named)


def _masked(reduce: Function, a: Array, where: Array = None, **named: Any) -> Array:
    """A reduction of the elements that are not NaN."""
    filled, mask = _present(a, where)
    return reduce(filled, where=mask, **named)


def _mean(a: Array, dtype: Dtype = None, **named: Any) -> Array:
    return ops.mean(a if dtype is None else ops.in_floats("nanmean", a, dtype), **named)


def _nanextreme(
    reduce: Function,
    bound: float,
    a: Array,
    axis: Axis = None,
    keepdims: bool = False,
    initial: Array = None,
    where: Array = None,
) -> Array:
    """The largest or smallest element that is not NaN; NaN where all are."""
    filled, mask = _present(a, where, bound)
    if initial is not None:
        return reduce(filled, axis=axis, keepdims=keepdims, initial=initial, where=where)
    if where is not None:
        raise ValueError("where= requires initial=, the result where no element is selected")
    count = _count(filled, axis, mask, keepdims)
    return ops.where(count == 0.0, math.nan, reduce(filled, axis=axis, keepdims=keepdims))


# The replacements of NumPy's functions that skip NaN, by name.
WITHOUT_NAN: dict[str, Callable[..., Any]] = {
    of.__name__: numpy_signature(of)(functools.partial(form, *arguments))
    for of, form, *arguments in (
        (np.nansum, _filled, ops.sum, 0.0),
        (np.nanprod, _filled, prod, 1.0),
        (np.nancumsum, _cumulative, standard.cumulative_sum, 0.0),
        (np.nancumprod, _cumulative, standard.cumulative_prod, 1.0),
        (np.nanmax, _nanextreme, ops.max, -math.inf),
        (np.nanmin, _nanextreme, ops.min, math.inf),
        (np.nanmean, _masked, _mean),
        (np.nanvar, _masked, functools.partial(_variance, math.nan)),
        (np.nanstd, _masked, lambda a, **named: ops.root_or_zero(_variance(math.nan, a, **named))),
    )
}
