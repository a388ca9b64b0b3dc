"""Medians and quantiles of NumPy: combinations of the two elements with the ranks next to a position.

NumPy's own function of the *ranks* returns the position, for every method of interpolation, with weights and with NaN.
The elements there are interpolated in the same proportion.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad._core import plain
from oxigrad._typing import Array, Axis, Function
from oxigrad.ops.backends import beneath, has_variable
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core import standard
from oxigrad.ops.core.array_like import array, examples, values
from oxigrad.ops.core.dtypes import floating
from oxigrad.ops.core.in_place import of_examples, of_library
from oxigrad.ops.core.shapes import position
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


def _quantile(
    function: Function, a: Array, q: Array, method: str = "linear", weights: Array = None, **over: Any
) -> Array:
    bare = values(q)
    named: dict[str, Any] = {"method": method}

    def of_ranks(ranks: np.ndarray, axis: int, weights: Array = None) -> Array:
        return function(ranks, bare, axis=axis, weights=weights, **named)

    slope = _SLOPES.get(method) if has_variable((q,)) else None
    change = None if slope is None else (array(q) - plain(array(q)), slope)
    a = floating(array(a))
    if bare.ndim and weights is None and isinstance(beneath(a), np.ndarray):  # whose quantiles have another dtype
        a = ops.astype(a, function(np.zeros(1, a.dtype), bare, method=method).dtype, copy=False)
    return _of_ranks(of_ranks, a, weights, change, **over)


def _of_ranks(
    function: Function,
    a: Array,
    weights: Array = None,
    change: Any = None,
    axis: Axis = None,
    keepdims: bool = False,
) -> Array:
    """The interpolated elements at the positions that ``function`` returns for the ranks.

    ``change`` moves the positions. It is a pair: a zero that carries the derivative of the quantile, and the slope of
    the method.
    """
    a = floating(array(a))
    chosen = range(a.ndim) if axis is None else axis if isinstance(axis, (list, tuple)) else (axis,)
    axes = tuple(position(place, a.ndim) for place in chosen)
    others = tuple(place for place in range(a.ndim) if place not in axes)
    if not math.prod(a.shape[place] for place in axes):
        function(np.zeros((1, 0)), axis=-1)  # NumPy has NaN for a median of nothing, and no quantile
        nothing = np.full([1 if place in axes else size for place, size in enumerate(a.shape)], math.nan)
        a = standard.astype(of_library(nothing, a), a.dtype)
    rows, leading = _as_rows(a, others, axes), tuple(a.shape[place] for place in others)
    bare = examples(rows)
    order = np.argsort(bare, axis=-1, kind="stable")
    ranks = np.argsort(order, axis=-1).astype(float)
    ranks[np.isnan(bare)] = math.nan
    present = np.sum(~np.isnan(bare), axis=-1)
    if weights is not None:
        weights = np.asarray(plain(weights))
        if weights.shape != tuple(a.shape):
            shape = tuple(size if place in axes else 1 for place, size in enumerate(a.shape))
            weights = np.broadcast_to(weights.reshape(shape), a.shape)
        positions = function(ranks, axis=-1, weights=np.broadcast_to(_as_rows(weights, others, axes), ranks.shape))
    else:
        positions = function(ranks, axis=-1)
    # The quantile dimensions come first, then the dimensions of examples, then the rows.
    quantiles = np.shape(positions)[: np.ndim(positions) - present.ndim]
    positions = np.moveaxis(np.reshape(positions, (math.prod(quantiles), *present.shape)), 0, -1)
    ordered = ops.take_along_axis(rows, of_examples(order, rows), axis=-1)
    result = _interpolated(ordered, positions, present[..., None], change)
    shape = tuple(1 if place in axes else count for place, count in enumerate(a.shape)) if keepdims else leading
    return ops.reshape(ops.matrix_transpose(result), (*quantiles, *shape))


def _as_rows(a: Array, others: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    """The elements along ``axes`` as rows of a matrix."""
    count = math.prod(a.shape[place] for place in axes)
    return ops.reshape(ops.permute_dims(a, others + axes), (math.prod(a.shape[place] for place in others), count))


def _interpolated(ordered: Array, positions: np.ndarray, present: np.ndarray, change: Any) -> Array:
    """The values at ``positions`` in ordered rows with ``present`` elements that are not NaN."""
    missing = np.isnan(positions)
    positions = np.where(missing, 0.0, positions)
    low = np.clip(np.floor(positions).astype(int), 0, ordered.shape[-1] - 1)
    high = np.minimum(low + 1, np.maximum(present - 1, 0))
    below, above = (
        ops.take_along_axis(ordered, of_examples(place, ordered), axis=-1)
        for place in (low, np.broadcast_to(high, low.shape))
    )
    share: Any = of_examples((positions - low).astype(examples(ordered).dtype), ordered)
    if change is not None:
        moved, slope = change
        inside = (positions > 0.0) & (positions < present - 1)
        slopes = of_examples(np.where(inside, present + slope, 0.0), ordered)
        share = share + ops.astype(ops.reshape(moved, (-1,)) * slopes, share.dtype, copy=False)
    result = _between(below, above, share)
    return ops.where(of_examples(missing, ordered), math.nan, result) if missing.any() else result


def _between(below: Array, above: Array, share: Array) -> Array:
    """The element at ``share`` of the way from one to another. Infinite ones have no difference, and are kept."""
    apart = above - below
    is_infinite = ~np.isfinite(examples(apart))
    if not is_infinite.any():
        return below + apart * share
    inner = below * (1.0 - share) + above * share
    ends = ops.where(share == 0.0, below, ops.where(share == 1.0, above, inner))
    infinite = of_examples(is_infinite, apart)
    return ops.where(infinite, ends, below + ops.where(infinite, 0.0, apart) * share)


def _percentile(function: Function, a: Array, q: Array, **named: Any) -> Array:
    return _quantile(function, a, array(q) / 100.0, **named)


# The replacements of NumPy's functions, by name.
FORMS: dict[str, Callable[..., Any]] = {
    of.__name__: numpy_signature(of)(functools.partial(form, computes))
    for form, of, computes in (
        (_of_ranks, np.median, np.median),
        (_of_ranks, np.nanmedian, np.nanmedian),
        (_quantile, np.quantile, np.quantile),
        (_quantile, np.nanquantile, np.nanquantile),
        (_percentile, np.percentile, np.quantile),
        (_percentile, np.nanpercentile, np.nanquantile),
    )
}
