"""NumPy's reductions, with its keywords: ``where=``, ``initial=``, means and variances with weights, and those that skip NaN.

Each function has NumPy's signature; ``out`` is assigned by its caller.
"""

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad._core import ShapeError, plain
from oxigrad._typing import Array, Dtype
from oxigrad.ops.backends import device_of, dtype_of, is_array, is_complex, namespace
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core import standard
from oxigrad.ops.core.array_like import array
from oxigrad.ops.core.in_place import of_library
from oxigrad.ops.core.primitives import along
from oxigrad.ops.core.shapes import position
from oxigrad.ops.numpy.extras import atleast_2d

_NONE: Any = np._NoValue


def _given(value: Any) -> Any:
    """An argument, None where it is absent."""
    return None if value is _NONE else value


def _keeps(keepdims: Any) -> bool:
    return keepdims is not _NONE and bool(keepdims)


def _axis(axis: Any) -> Any:
    return tuple(map(operator.index, axis)) if isinstance(axis, (list, tuple)) else axis


def prod(
    a: Any,
    axis: Any = None,
    dtype: Dtype = None,
    out: None = None,
    keepdims: Any = _NONE,
    initial: Any = _NONE,
    where: Any = _NONE,
) -> Any:
    """Product of the elements that ``where`` selects, and of ``initial``."""
    chosen = ops.selected(array(a, dtype), _given(where), 1.0)
    product = standard.prod(chosen, axis=_axis(axis), keepdims=_keeps(keepdims))
    return product if _given(initial) is None else product * initial


def _count(a: Array, axis: Any, where: Any, keepdims: bool) -> Any:
    """The number of elements of each slice that ``where`` selects: plain numbers."""
    if where is True or _given(where) is None:
        return float(math.prod(a.shape[place] for place in standard.axes_of(axis, a.ndim)))
    ones = ops.ones_like(plain(a))
    return ops.sum(ops.selected(ones, where, 0.0), axis=axis, keepdims=keepdims)


def var(
    a: Any,
    axis: Any = None,
    dtype: Dtype = None,
    out: None = None,
    ddof: float = 0,
    keepdims: Any = _NONE,
    *,
    where: Any = _NONE,
    mean: Any = _NONE,
    correction: Any = _NONE,
) -> Any:
    """Variance of the elements that ``where`` selects, around ``mean`` if it is given."""
    a, axis = array(a), _axis(axis)
    a = a if dtype is None or dtype is _NONE else ops.in_floats("var", a, dtype)
    ddof = ddof if _given(correction) is None else correction
    center = ops.mean(a, axis=axis, keepdims=True, where=_given(where)) if _given(mean) is None else mean
    apart = a - center
    squares = ops.real(apart * ops.conj(apart)) if is_complex(apart) else ops.square(apart)
    total = ops.sum(ops.selected(squares, _given(where), 0.0), axis=axis, keepdims=_keeps(keepdims))
    free = _count(squares, axis, where, _keeps(keepdims)) - ddof
    if not is_array(free):
        variance = total / free if free > 0 else total * math.nan
    else:
        none = namespace(free).asarray(math.nan, dtype=dtype_of(free), device=device_of(free))
        variance = total / namespace(free).where(free > 0, free, none)
    return variance if _given(dtype) is None else ops.astype(variance, dtype, copy=False)


def std(
    a: Any,
    axis: Any = None,
    dtype: Dtype = None,
    out: None = None,
    ddof: float = 0,
    keepdims: Any = _NONE,
    *,
    where: Any = _NONE,
    mean: Any = _NONE,
    correction: Any = _NONE,
) -> Any:
    """Standard deviation, as `var`; its gradient is zero where it is zero."""
    named: dict[str, Any] = {"where": where, "mean": mean, "correction": correction}
    variance = var(a, axis, dtype, None, ddof, keepdims, **named)
    none = variance == 0.0
    return ops.where(none, 0.0, ops.sqrt(ops.where(none, 1.0, variance)))


def ptp(a: Any, axis: Any = None, out: None = None, keepdims: Any = _NONE) -> Any:
    """Largest element minus the smallest."""
    a, axis, keepdims = array(a), _axis(axis), _keeps(keepdims)
    return ops.max(a, axis=axis, keepdims=keepdims) - ops.min(a, axis=axis, keepdims=keepdims)


def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = _NONE) -> Any:
    """Weighted mean; with ``returned``, a tuple of it and the sum of the weights."""
    a, axis, keepdims = array(a), _axis(axis), _keeps(keepdims)
    if weights is None:
        average = ops.mean(a, axis=axis, keepdims=keepdims)
        scale: Any = _count(a, axis, True, keepdims)
    else:
        weights = _along_axes(array(weights), a, axis)
        scale = ops.sum(weights, axis=axis, keepdims=keepdims)
        if bool(np.any(np.asarray(plain(scale)) == 0.0)):
            raise ZeroDivisionError("average: the weights sum to zero")
        average = ops.sum(a * weights, axis=axis, keepdims=keepdims) / scale
    return (average, average * 0.0 + scale) if returned else average


def _along_axes(weights: Array, a: Array, axis: Any) -> Any:
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
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Dtype = None,
) -> Any:
    """Covariance matrix of the rows (columns, if not ``rowvar``) of ``m`` and ``y``."""
    x = _observations(array(m, dtype), rowvar)
    if y is not None:
        x = ops.concat([x, _observations(array(y, dtype), rowvar)], axis=0)
    ddof = (0 if bias else 1) if ddof is None else ddof
    weights = None if fweights is None else array(fweights) * 1.0
    if aweights is not None:
        weights = array(aweights) if weights is None else weights * aweights
    if weights is None:
        x, free = x - ops.mean(x, axis=1, keepdims=True), x.shape[1] - ddof
        weighted = x
    else:
        total = ops.sum(weights)
        x = x - ops.reshape(ops.sum(x * weights, axis=1) / total, (-1, 1))
        counted = ddof if aweights is None else ddof * ops.sum(weights * aweights) / total
        free, weighted = total - counted if ddof else total, x * weights
    return ops.squeeze(ops.matmul(x, ops.conj(ops.permute_dims(weighted))) / free)


def _observations(x: Array, rowvar: bool) -> Any:
    return atleast_2d(x) if rowvar or x.ndim == 1 else ops.permute_dims(atleast_2d(x))


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Dtype = None) -> Any:
    """Matrix of Pearson's correlation coefficients."""
    covariance = cov(x, y, rowvar, dtype=dtype)
    if not covariance.ndim:
        return covariance / covariance
    places = of_library(np.arange(covariance.shape[0]), covariance)
    deviation = ops.sqrt(ops.real(covariance[places, places]))
    return covariance / ops.reshape(deviation, (-1, 1)) / deviation


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integral along ``axis`` by the trapezoidal rule, over the points ``x`` or those ``dx`` apart."""
    y = array(y)
    axis = position(axis, y.ndim)
    if x is not None:
        x = array(x)
        dx = (
            ops.reshape(standard.diff(x), (-1,) + (1,) * (y.ndim - 1 - axis))
            if x.ndim == 1
            else standard.diff(x, axis=axis)
        )
    return ops.sum(dx * (y[along(axis, slice(1, None))] + y[along(axis, slice(None, -1))]) / 2.0, axis=axis)


# --- those that skip NaN -------------------------------------------------------------------------------------------------


def _present(a: Any, where: Any = _NONE, other: float = 0.0) -> tuple[Any, Any]:
    """The array with ``other`` in place of NaN, and the mask of its other elements."""
    a = array(a)
    missing = ops.isnan(a)
    chosen = True if _given(where) is None else plain(where)
    if chosen is not True and not (is_array(chosen) and namespace(chosen) is namespace(a)):
        chosen = of_library(np.asarray(chosen, dtype=bool), a)
    mask = ~missing & chosen
    return ops.where(missing, other, a), mask


def nansum(
    a: Any,
    axis: Any = None,
    dtype: Dtype = None,
    out: None = None,
    keepdims: Any = _NONE,
    initial: Any = _NONE,
    where: Any = _NONE,
) -> Any:
    """Sum, with zero in place of NaN."""
    filled = array(_present(a)[0], dtype)
    return ops.sum(filled, axis=_axis(axis), keepdims=_keeps(keepdims), initial=_given(initial), where=_given(where))


def nanprod(
    a: Any,
    axis: Any = None,
    dtype: Dtype = None,
    out: None = None,
    keepdims: Any = _NONE,
    initial: Any = _NONE,
    where: Any = _NONE,
) -> Any:
    """Product, with one in place of NaN."""
    return prod(_present(a, other=1.0)[0], axis, dtype, None, keepdims, initial, where)


def nanmax(
    a: Any, axis: Any = None, out: None = None, keepdims: Any = _NONE, initial: Any = _NONE, where: Any = _NONE
) -> Any:
    """Largest element that is not NaN; NaN where all are."""
    return _nanextreme(ops.max, -math.inf, a, axis, keepdims, initial, where)


def nanmin(
    a: Any, axis: Any = None, out: None = None, keepdims: Any = _NONE, initial: Any = _NONE, where: Any = _NONE
) -> Any:
    """Smallest element that is not NaN; NaN where all are."""
    return _nanextreme(ops.min, math.inf, a, axis, keepdims, initial, where)


def _nanextreme(
    reduce: Callable[..., Any], bound: float, a: Any, axis: Any, keepdims: Any, initial: Any, where: Any
) -> Any:
    filled, mask = _present(a, where, bound)
    axis, keepdims, initial = _axis(axis), _keeps(keepdims), _given(initial)
    if initial is not None:
        return reduce(filled, axis=axis, keepdims=keepdims, initial=initial, where=_given(where))
    if _given(where) is not None:
        raise ValueError("where= requires initial=, the result where no element is selected")
    return ops.where(
        _count(filled, axis, mask, keepdims) == 0.0, math.nan, reduce(filled, axis=axis, keepdims=keepdims)
    )


def nanmean(
    a: Any, axis: Any = None, dtype: Dtype = None, out: None = None, keepdims: Any = _NONE, *, where: Any = _NONE
) -> Any:
    """Arithmetic mean of the elements that are not NaN."""
    filled, mask = _present(a, where)
    return ops.mean(array(filled, dtype), axis=_axis(axis), keepdims=_keeps(keepdims), where=mask)


def nanvar(
    a: Any,
    axis: Any = None,
    dtype: Dtype = None,
    out: None = None,
    ddof: float = 0,
    keepdims: Any = _NONE,
    *,
    where: Any = _NONE,
    mean: Any = _NONE,
    correction: Any = _NONE,
) -> Any:
    """Variance of the elements that are not NaN."""
    filled, mask = _present(a, where)
    named: dict[str, Any] = {"where": mask, "mean": mean, "correction": correction}
    return var(filled, axis, dtype, None, ddof, keepdims, **named)


def nanstd(
    a: Any,
    axis: Any = None,
    dtype: Dtype = None,
    out: None = None,
    ddof: float = 0,
    keepdims: Any = _NONE,
    *,
    where: Any = _NONE,
    mean: Any = _NONE,
    correction: Any = _NONE,
) -> Any:
    """Standard deviation of the elements that are not NaN."""
    filled, mask = _present(a, where)
    named: dict[str, Any] = {"where": mask, "mean": mean, "correction": correction}
    return std(filled, axis, dtype, None, ddof, keepdims, **named)


def nancumsum(a: Any, axis: int | None = None, dtype: Dtype = None, out: None = None) -> Any:
    """Cumulative sums, with zero in place of NaN."""
    filled = array(_present(a)[0], dtype)
    return standard.cumulative_sum(ops.ravel(filled) if axis is None else filled, axis=0 if axis is None else axis)


def nancumprod(a: Any, axis: int | None = None, dtype: Dtype = None, out: None = None) -> Any:
    """Cumulative products, with one in place of NaN."""
    filled = array(_present(a, other=1.0)[0], dtype)
    return standard.cumulative_prod(ops.ravel(filled) if axis is None else filled, axis=0 if axis is None else axis)
