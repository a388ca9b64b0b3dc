"""Medians and quantiles of NumPy: combinations of the two elements whose ranks are next to a position.

NumPy's own function of the *ranks* gives the position, for every method of interpolation, with weights and with NaN; the
elements there are interpolated in the same proportion.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad._core import plain
from oxigrad._typing import Array
from oxigrad.ops.backends import has_variable
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core import standard
from oxigrad.ops.core.array_like import array, values
from oxigrad.ops.core.dtypes import floating
from oxigrad.ops.core.in_place import of_library
from oxigrad.ops.numpy.numpy_signatures import numpy_signature

# The derivative of the position with respect to the quantile, less the number of elements, of each continuous method
# (Hyndman & Fan 1996). The position of the other methods is a step.
_SLOPES = {
    "linear": -1.0,
    "weibull": 1.0,
    "hazen": 0.0,
    "median_unbiased": 1 / 3,
    "normal_unbiased": 1 / 4,
    "interpolated_inverted_cdf": 0.0,
}


@numpy_signature(np.median)
def median(a: Any, **over: Any) -> Any:
    """Median over ``axis``, or over everything."""
    return _of_ranks(np.median, a, **over)


@numpy_signature(np.nanmedian)
def nanmedian(a: Any, **over: Any) -> Any:
    """Median of the elements that are not NaN."""
    return _of_ranks(np.nanmedian, a, **over)


@numpy_signature(np.quantile)
def quantile(a: Any, q: Any, **named: Any) -> Any:
    """Quantiles of the probabilities ``q`` over ``axis``; the dimensions of ``q`` come first."""
    return _quantile(np.quantile, a, q, **named)


@numpy_signature(np.nanquantile)
def nanquantile(a: Any, q: Any, **named: Any) -> Any:
    """Quantiles of the elements that are not NaN."""
    return _quantile(np.nanquantile, a, q, **named)


@numpy_signature(np.percentile)
def percentile(a: Any, q: Any, **named: Any) -> Any:
    """Quantiles of the percentages ``q``."""
    return _quantile(np.quantile, a, array(q) / 100.0, **named)


@numpy_signature(np.nanpercentile)
def nanpercentile(a: Any, q: Any, **named: Any) -> Any:
    """Quantiles of the percentages ``q``, of the elements that are not NaN."""
    return _quantile(np.nanquantile, a, array(q) / 100.0, **named)


def _quantile(
    function: Callable[..., Any], a: Any, q: Any, method: str = "linear", weights: Any = None, **over: Any
) -> Any:
    bare = values(q)
    named: dict[str, Any] = {"method": method}

    def of_ranks(ranks: np.ndarray, axis: int, weights: Any = None) -> Any:
        return function(ranks, bare, axis=axis, weights=weights, **named)

    slope = _SLOPES.get(method) if has_variable((q,)) else None
    change = None if slope is None else (array(q) - plain(array(q)), slope)
    return _of_ranks(of_ranks, a, weights, change, **over)


def _of_ranks(
    function: Callable[..., Any],
    a: Any,
    weights: Any = None,
    change: Any = None,
    axis: Any = None,
    keepdims: bool = False,
) -> Any:
    """The elements at the positions that ``function`` of the ranks gives, interpolated.

    ``change`` moves the positions: a value that is zero, with the derivative of the quantile, and the slope of the method.
    """
    a = floating(array(a))
    axes = standard.axes_of(axis, a.ndim)
    others = tuple(place for place in range(a.ndim) if place not in axes)
    rows, leading = _as_rows(a, others, axes), tuple(a.shape[place] for place in others)
    bare = values(rows)
    order = np.argsort(bare, axis=-1, kind="stable")
    ranks = np.argsort(order, axis=-1).astype(float)
    ranks[np.isnan(bare)] = math.nan
    present = np.sum(~np.isnan(bare), axis=-1).reshape(leading)
    if weights is not None:
        weights = np.asarray(plain(weights))
        if weights.shape != tuple(a.shape):
            shape = tuple(size if place in axes else 1 for place, size in enumerate(a.shape))
            weights = np.broadcast_to(weights.reshape(shape), a.shape)
        positions = function(ranks, axis=-1, weights=_as_rows(weights, others, axes))
    else:
        positions = function(ranks, axis=-1)
    positions = np.reshape(positions, (*np.shape(positions)[:-1], *leading))
    result = _interpolated(
        ops.take_along_axis(rows, of_library(order, rows), axis=-1), positions, present, leading, change
    )
    if keepdims:
        reduced = tuple(1 if place in axes else count for place, count in enumerate(a.shape))
        result = ops.reshape(result, (*result.shape[: result.ndim - len(leading)], *reduced))
    return result


def _as_rows(a: Any, others: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """The elements along ``axes`` as rows of a matrix."""
    count = math.prod(a.shape[place] for place in axes)
    return ops.reshape(ops.permute_dims(a, others + axes), (math.prod(a.shape[place] for place in others), count))


def _interpolated(
    ordered: Array, positions: np.ndarray, present: np.ndarray, leading: tuple[int, ...], change: Any
) -> Any:
    size = ordered.shape[-1]
    missing = np.isnan(positions)
    positions = np.where(missing, 0.0, positions)
    low = np.clip(np.floor(positions).astype(int), 0, size - 1)
    high = np.minimum(low + 1, np.maximum(present - 1, 0))
    rows = np.broadcast_to(np.arange(math.prod(leading)).reshape(leading), positions.shape) * size
    flat = ops.reshape(ordered, (-1,))
    below, above = (ops.index(flat, of_library(rows + place, flat)) for place in (low, high))
    share: Any = of_library((positions - low).astype(values(flat[:0]).dtype), flat)
    if change is not None:
        moved, slope = change
        inside = (positions > 0.0) & (positions < present - 1)
        moved = ops.reshape(moved, tuple(moved.shape) + (1,) * len(leading))
        slopes = of_library(np.where(inside, present + slope, 0.0), flat)
        share = share + ops.astype(moved * slopes, share.dtype, copy=False)
    result = _between(below, above, share)
    return ops.where(of_library(missing, flat), math.nan, result) if missing.any() else result


def _between(below: Array, above: Array, share: Any) -> Any:
    """The element at ``share`` of the way from one to another. Infinite ones have no difference, and are kept."""
    apart = above - below
    is_infinite = ~np.isfinite(values(apart))
    if not is_infinite.any():
        return below + apart * share
    inner = below * (1.0 - share) + above * share
    ends = ops.where(share == 0.0, below, ops.where(share == 1.0, above, inner))
    infinite = of_library(is_infinite, apart)
    return ops.where(infinite, ends, below + ops.where(infinite, 0.0, apart) * share)
