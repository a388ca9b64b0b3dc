"""NumPy's histograms and interpolation: the bins of the data are plain, weights and edges are recorded."""

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from oxigrad._core import ShapeError
from oxigrad._typing import Array
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core import standard
from oxigrad.ops.core.array_like import array, in_double, values
from oxigrad.ops.core.in_place import of_library


def histogram_bin_edges(a: Array, bins: Any = 10, range: Any = None, weights: Array | None = None) -> Array:
    """The edges of the bins: evenly spaced between the smallest and the largest element, or the ends of ``range``."""
    are_edges = isinstance(bins, (list, tuple)) or len(getattr(bins, "shape", ())) > 0
    bins = array(bins) if are_edges else bins
    ends: Any = None if range is None else tuple(float(values(end)) for end in range)
    # NumPy checks the arguments, and chooses the number of bins.
    count = len(
        np.histogram_bin_edges(
            values(a), values(bins) if are_edges else bins, ends, None if weights is None else values(weights)
        )
    )
    if are_edges:
        return bins
    a = ops.ravel(array(a))
    if range is not None:
        first, last = range
    elif math.prod(a.shape):
        first, last = ops.min(a), ops.max(a)
    else:
        first, last = 0.0, 1.0
    if values(first) == values(last):
        first, last = first - 0.5, last + 0.5
    return standard.linspace(first, last, count)


def _places(data: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The bin of each value; -1 outside of the edges. The last bin is closed."""
    places = np.searchsorted(edges, data, side="right") - 1
    places[data == edges[-1]] = len(edges) - 2
    places[(data < edges[0]) | (data > edges[-1]) | np.isnan(data)] = -1
    return places


def _counted(places: Sequence[np.ndarray], shape: tuple[int, ...], weights: Array) -> Array:
    """The number of elements, or the sum of their weights, in each bin."""
    flat = np.ravel_multi_index(tuple(np.maximum(each, 0) for each in places), shape)
    inside = functools.reduce(np.logical_and, [each >= 0 for each in places])
    size = math.prod(shape)
    if weights is None:
        return np.bincount(flat[inside], minlength=size).reshape(shape).astype(float)
    weights = ops.ravel(array(weights))
    if tuple(weights.shape) != flat.shape:
        raise ShapeError(f"found weights of shape {tuple(weights.shape)}, expected {flat.shape}, the shape of the data")
    (chosen,) = np.nonzero(inside)
    picked = ops.index(weights, of_library(chosen, weights))
    return ops.reshape(ops.scatter_add(picked, (of_library(flat[chosen], weights),), (size,)), shape)


def histogram(
    a: Array, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Array | None = None
) -> tuple[Array, Array]:
    """Counts, or sums of ``weights``, in bins, and the edges of the bins. With ``density`` their integral is one."""
    edges = histogram_bin_edges(a, bins, range, weights)
    counts = _counted([_places(np.ravel(values(a)), values(edges))], (edges.shape[0] - 1,), weights)
    if density:
        counts = of_library(counts, edges) if weights is None else counts
        return counts / standard.diff(edges) / ops.sum(counts), edges
    return counts if weights is not None else counts.astype(int), edges


def histogramdd(
    sample: Array, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Array | None = None
) -> tuple[Array, tuple[Array, ...]]:
    """Counts, or sums of ``weights``, of points of several coordinates, and the edges along each of them."""
    if isinstance(sample, (list, tuple)):
        columns = [array(each) for each in sample]
    else:
        sample = array(sample)
        sample = ops.expand_dims(sample, 1) if sample.ndim == 1 else sample
        columns = [sample[:, place] for place in np.arange(sample.shape[1]).tolist()]
    each = list(bins) if isinstance(bins, (list, tuple)) else [bins] * len(columns)
    if len(each) != len(columns):
        raise ValueError(f"found bins for {len(each)} dimensions, expected {len(columns)}")
    ranges = [None] * len(columns) if range is None else range
    edges = tuple(histogram_bin_edges(*arguments) for arguments in zip(columns, each, ranges, strict=True))
    places = [_places(values(column), values(edge)) for column, edge in zip(columns, edges, strict=True)]
    weights = None if weights is None else in_double(weights)
    counts = _counted(places, tuple(edge.shape[0] - 1 for edge in edges), weights)
    if density:
        counts = of_library(counts, edges[0]) if weights is None else counts
        counts = counts / ops.sum(counts)
        for place, edge in enumerate(edges):
            shape = tuple(-1 if place == other else 1 for other in np.arange(len(edges)))
            counts = counts / ops.reshape(standard.diff(edge), shape)
    return counts, edges


def histogram2d(
    x: Array, y: Array, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Array | None = None
) -> tuple[Array, Array, Array]:
    """Counts, or sums of ``weights``, of points of two coordinates, and the edges along both."""
    count = len(bins) if isinstance(bins, (list, tuple)) or len(getattr(bins, "shape", ())) else 1
    both = bins if count == 2 else [bins, bins]
    counts, (first, second) = histogramdd([x, y], list(both), range, density, weights)
    return counts, first, second


def bincount(x: Array, /, weights: Array | None = None, minlength: int = 0) -> Array:
    """Sums of ``weights`` by the whole numbers ``x``."""
    places = values(x)
    counts = np.bincount(places, minlength=minlength)  # which checks both
    if weights is None:
        return counts
    weights = in_double(weights)
    return ops.scatter_add(weights, (of_library(places.astype(np.intp), weights),), counts.shape)


def interp(
    x: Array, xp: Array, fp: Array, left: Array | None = None, right: Array | None = None, period: Array | None = None
) -> Array:
    """Piecewise linear interpolation between the points ``(xp, fp)``; ``left`` and ``right`` outside of them."""
    x, xp, fp = in_double(x), in_double(xp), in_double(fp)
    if period is not None:
        x, xp, fp = _periodic(x, xp, fp, period)
        left = right = None
    nodes, points = values(xp), values(x)
    if not nodes.size:
        raise ValueError("interp: found no points, expected at least one")
    if nodes.ndim != 1 or nodes.shape != tuple(fp.shape):
        raise ShapeError(f"interp: found xp of shape {nodes.shape} and fp of {tuple(fp.shape)}, expected (n,) and (n,)")
    if nodes.size == 1:
        inside: Array = fp[0] + ops.zeros_like(x)
    else:
        low = np.clip(np.searchsorted(nodes, points, side="right") - 1, 0, nodes.size - 2)
        first, second = of_library(low, xp), of_library(low + 1, xp)
        share = (x - xp[first]) / (xp[second] - xp[first])
        inside = fp[first] + (fp[second] - fp[first]) * share
    below, above = of_library(np.asarray(points < nodes[0]), xp), of_library(np.asarray(points > nodes[-1]), xp)
    inside = ops.where(below, fp[0] if left is None else left, inside)
    return ops.where(above, fp[-1] if right is None else right, inside)


def _periodic(x: Array, xp: Array, fp: Array, period: Array) -> tuple[Array, Array, Array]:
    if values(period) == 0:
        raise ValueError("interp: period is 0: expected another number")
    period = ops.abs(period)
    x, xp = ops.remainder(x, period), ops.remainder(xp, period)
    order = of_library(np.argsort(values(xp)), xp)
    xp, fp = xp[order], fp[order]
    nodes = ops.concat([xp[-1:] - period, xp, xp[:1] + period])
    return x, nodes, ops.concat([fp[-1:], fp, fp[:1]])
