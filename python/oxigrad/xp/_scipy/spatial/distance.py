"""The distances of `oxigrad.xp.spatial.distance`, by a table of metrics."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from oxigrad import DerivativeError, ShapeError, Variable
from oxigrad import xp as ops
from oxigrad import xp as standard
from oxigrad._core import plain
from oxigrad._typing import Array
from oxigrad.ops.backends import array_of, beneath, dtype_of, namespace, on_host
from oxigrad.ops.core.in_place import of_library, written
from oxigrad.ops.linalg.standard import norm_of_powers
from oxigrad.ops.scipy_signatures import scipy_signature
from oxigrad.xp import isdtype, linalg, special

__all__ = ["cdist", "pdist"]

_COUNTS = "dice hamming jaccard kulczynski1 matching rogerstanimoto russellrao sokalsneath yule".split()


# --- metrics ----------------------------------------------------------------------------------------------------------


def _sum(x: Array, w: Array) -> Array:
    """The sum along the last axis, with weights."""
    return ops.sum(x if w is None else x * w, axis=-1)


def _euclidean(u: Array, v: Array, w: Array) -> Array:
    return ops.root_or_zero(_sqeuclidean(u, v, w))


def _sqeuclidean(u: Array, v: Array, w: Array) -> Array:
    return _sum(ops.square(u - v), w)


def _cityblock(u: Array, v: Array, w: Array) -> Array:
    return _sum(ops.abs(u - v), w)


def _chebyshev(u: Array, v: Array, w: Array) -> Array:
    apart = ops.abs(u - v)
    return ops.max(apart if w is None else ops.where(w > 0.0, apart, 0.0), axis=-1)


def _minkowski(u: Array, v: Array, w: Array, p: float = 2.0) -> Array:
    if isinstance(p, Variable):
        raise DerivativeError("minkowski is not differentiable with respect to p")
    if not p > 0:
        raise ValueError(f"minkowski: p is {p!r}: expected a number above zero")
    if p in (1, 2):
        return (_cityblock if p == 1 else _euclidean)(u, v, w)
    if p == math.inf:
        return _chebyshev(u, v, w)
    apart = ops.abs(u - v)
    same = apart == 0.0  # where a power below 2 has no second derivative
    total = _sum(ops.where(same, 0.0, ops.where(same, 1.0, apart) ** float(p)), w)
    return norm_of_powers(u - v, total, p, axis=-1)


def _canberra(u: Array, v: Array, w: Array) -> Array:
    total = ops.abs(u) + ops.abs(v)
    zero = total == 0.0
    return _sum(ops.where(zero, 0.0, ops.abs(u - v) / ops.where(zero, 1.0, total)), w)


def _braycurtis(u: Array, v: Array, w: Array) -> Array:
    return _cityblock(u, v, w) / _sum(ops.abs(u + v), w)


def _cosine(u: Array, v: Array, w: Array) -> Array:
    squares = _sum(ops.square(u), w) * _sum(ops.square(v), w)
    return 1.0 - _sum(u * v, w) / ops.sqrt(squares)


def _correlation(u: Array, v: Array, w: Array) -> Array:
    count = u.shape[-1] if w is None else ops.sum(w)
    u, v = (x - ops.expand_dims(_sum(x, w) / count, axis=-1) for x in (u, v))
    return _cosine(u, v, w)


def _jensenshannon(u: Array, v: Array, w: None) -> Array:
    u, v = (x / ops.sum(x, axis=-1, keepdims=True) for x in (u, v))
    middle = (u + v) / 2.0
    return ops.root_or_zero(ops.sum(special.rel_entr(u, middle) + special.rel_entr(v, middle), axis=-1) / 2.0)


def _seuclidean(u: Array, v: Array, w: None, V: Array) -> Array:
    return ops.root_or_zero(ops.sum(ops.square(u - v) / V, axis=-1))


def _mahalanobis(u: Array, v: Array, w: None, VI: Array) -> Array:
    apart = u - v
    return ops.root_or_zero(ops.sum(ops.matmul(apart, VI) * apart, axis=-1))


class _Metric(NamedTuple):
    """A function of two arrays of observations along the last axis, and the names of its further arguments."""

    function: Callable[..., Any]
    arguments: tuple[str, ...] = ("w",)


_METRICS = {
    "braycurtis": _Metric(_braycurtis),
    "canberra": _Metric(_canberra),
    "chebyshev": _Metric(_chebyshev),
    "cityblock": _Metric(_cityblock),
    "correlation": _Metric(_correlation),
    "cosine": _Metric(_cosine),
    "euclidean": _Metric(_euclidean),
    "jensenshannon": _Metric(_jensenshannon, ()),
    "mahalanobis": _Metric(_mahalanobis, ("VI",)),
    "minkowski": _Metric(_minkowski, ("p", "w")),
    "seuclidean": _Metric(_seuclidean, ("V",)),
    "sqeuclidean": _Metric(_sqeuclidean),
}


# --- functions --------------------------------------------------------------------------------------------------------


@scipy_signature('XA, XB, metric="euclidean", *, out=None, **kwargs')
def cdist(XA: Array, XB: Array, /, metric: Any, out: Array | None, **kwargs: Any) -> Array:
    """The distances (m, n) of each of the observations ``XA`` (m, k) to each of ``XB`` (n, k), in their dtype.

    ``metric`` is "euclidean", "sqeuclidean", "cityblock", "chebyshev", "minkowski" (with ``p``), "canberra",
    "braycurtis", "cosine", "correlation", "jensenshannon", "seuclidean" (variances ``V``), "mahalanobis" (the inverse
    ``VI`` of a covariance), or a function of two observations. Weights ``w`` (k,), ``V`` and ``VI`` are differentiable;
    by default ``V`` and ``VI`` are computed from all observations. Differences (m, n, k) are held in memory. Raises
    `DerivativeError` for a metric that counts elements, and `ShapeError` for the default ``VI`` of at most k
    observations.
    """
    a = _observations("cdist", "XA", XA)
    b = _observations("cdist", "XB", XB)
    if a.shape[1] != b.shape[1]:
        raise ShapeError(f"cdist: found shapes {tuple(a.shape)} and {tuple(b.shape)}, expected (m, k) and (n, k)")
    kwargs = _arguments("cdist", metric, kwargs, lambda: ops.concat([a, b], axis=0))
    if callable(metric):
        rows = [ops.stack([metric(a[i], b[j], **kwargs) for j in range(b.shape[0])]) for i in range(a.shape[0])]
        return _in_out("cdist", ops.stack(rows), out)
    return _in_out("cdist", _METRICS[metric].function(a[:, None, :], b[None, :, :], **kwargs), out)


@scipy_signature('X, metric="euclidean", *, out=None, **kwargs')
def pdist(X: Array, /, metric: Any, out: Array | None, **kwargs: Any) -> Array:
    """The pairwise distances of the observations ``X`` (m, k), as a vector (m (m - 1) / 2,).

    Pairs are ordered as 0 and 1, 0 and 2, ..., 1 and 2, ... The arguments are as in `cdist`.
    """
    x = _observations("pdist", "X", X)
    kwargs = _arguments("pdist", metric, kwargs, lambda: x)
    first, second = np.triu_indices(x.shape[0], 1)
    if callable(metric):
        pairs = zip(first, second, strict=True)
        return _in_out("pdist", ops.stack([metric(x[int(i)], x[int(j)], **kwargs) for i, j in pairs]), out)
    u, v = (standard.take(x, of_library(at, x), axis=0) for at in (first, second))
    return _in_out("pdist", _METRICS[metric].function(u, v, **kwargs), out)


def _in_out(name: str, result: Array, out: Array | None) -> Array:
    """The distances, assigned to ``out`` if it is an array."""
    return result if out is None else written(name, result, out)


def _observations(function: str, name: str, x: Array) -> Array:
    """An array of observations (m, k) in floating point."""
    x = array_of(x)
    if len(x.shape) != 2:
        raise ShapeError(f"{function}: found {name} of shape {tuple(x.shape)}, expected (m, k)")
    return x if isdtype(dtype_of(x), "real floating") else ops.astype(x, namespace(plain(x)).float64)


def _arguments(name: str, metric: Any, arguments: dict[str, Any], observations: Callable[[], Any]) -> dict[str, Any]:
    """The further arguments of a metric, with its defaults. Raises an error for unknown arguments."""
    if callable(metric):
        return arguments
    if metric in _COUNTS:
        raise DerivativeError(f"{name}: metric is {metric!r}, which counts elements and has no derivative")
    if metric not in _METRICS:
        raise ValueError(f"{name}: metric is {metric!r}: expected one of {', '.join(map(repr, _METRICS))}")
    accepted = _METRICS[metric].arguments
    if unknown := sorted(arguments.keys() - set(accepted)):
        expected = ", ".join(accepted) or "none"
        raise TypeError(f"{name}: metric {metric!r} takes no argument {unknown[0]!r}; its arguments: {expected}")
    bare = beneath(arguments.get("w"))
    if bare is not None and on_host(bare) and namespace(bare).any(bare < 0):
        raise ValueError(f"{name}: w has a negative weight: expected weights of zero or more")
    w = arguments.pop("w", None)
    for key in set(accepted) & {"V", "VI"}:
        if arguments.get(key) is None:
            arguments[key] = _spread(name, observations(), key)
    return {key: array_of(value) if key != "p" else value for key, value in arguments.items()} | {
        "w": None if w is None else array_of(w)
    }


def _spread(name: str, x: Array, key: str) -> Array:
    """The variances of observations, or the inverse of their covariance.

    The covariance is singular if there are no more observations than elements.
    """
    count, size = x.shape
    if key == "VI" and count <= size:
        raise ShapeError(
            f"{name}: found {count} observations of {size} elements, expected at least {size + 1}: their covariance "
            "is singular; or VI"
        )
    centered = x - ops.mean(x, axis=0, keepdims=True)
    free = x.shape[0] - 1
    if key == "V":
        return ops.sum(ops.square(centered), axis=0) / free
    return linalg.inv(ops.matmul(ops.permute_dims(centered, (1, 0)), centered) / free)
