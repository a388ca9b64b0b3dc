"""Distances between observations: values against SciPy's, derivatives by observations and arguments, zero distances, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from oxigrad import xp
from oxigrad.testing import check_grads

pytest.importorskip("scipy")
distance: Any = pytest.importorskip("scipy.spatial.distance")

RNG = np.random.default_rng(0)
A, B = RNG.uniform(0.2, 2.0, (6, 3)), RNG.uniform(0.2, 2.0, (3, 3))
W = np.array([0.5, 2.0, 1.5])
WEIGHTED = "braycurtis canberra chebyshev cityblock correlation cosine euclidean minkowski sqeuclidean".split()
METRICS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in [*WEIGHTED, "jensenshannon", "mahalanobis", "seuclidean"]},
    **{f"{name}-weights": (name, {"w": W}) for name in WEIGHTED},
    **{f"minkowski-{p}": ("minkowski", {"p": p}) for p in (1, 1.5, 2, 3, np.inf)},
    "seuclidean-V": ("seuclidean", {"V": W}),
    "mahalanobis-VI": ("mahalanobis", {"VI": A[:3].T @ A[:3]}),
}
ROOTS = ["euclidean", "jensenshannon", "mahalanobis-VI", "minkowski", "minkowski-1.5", "minkowski-3", "seuclidean-V"]
ours = xp.spatial.distance


@pytest.mark.parametrize("name", METRICS)
def test_values_and_derivatives(name: str) -> None:
    metric, named = METRICS[name]
    np.testing.assert_allclose(ours.cdist(A, B, metric, **named), distance.cdist(A, B, metric, **named), rtol=1e-10)
    np.testing.assert_allclose(ours.pdist(A, metric, **named), distance.pdist(A, metric, **named), rtol=1e-10)
    keys = [key for key, value in named.items() if isinstance(value, np.ndarray) and metric != "chebyshev"]
    fixed = {key: value for key, value in named.items() if key not in keys}
    given = [named[key] for key in keys]

    def cdist(a: Any, b: Any, *rest: Any) -> Any:
        return ours.cdist(a, b, metric, **fixed, **dict(zip(keys, rest, strict=True)))

    def pdist(a: Any, *rest: Any) -> Any:
        return ours.pdist(a, metric, **fixed, **dict(zip(keys, rest, strict=True)))

    check_grads(cdist, (A, B, *given), tolerance=1e-5)
    check_grads(pdist, (A, *given), tolerance=1e-5)


@pytest.mark.parametrize("name", ROOTS)
def test_zero_distances_have_the_gradient_zero(name: str) -> None:
    metric, named = METRICS[name]
    f = lambda x: xp.sum(ours.cdist(x, A, metric, **named)[0, 0])  # noqa: E731
    hessian = ox.hessian(f)(A[:1])  # a distance alone has no second derivative at zero
    assert np.isnan(hessian).any() and (np.isnan(hessian) | (hessian == 0.0)).all()
    np.testing.assert_array_equal(ox.grad(f)(A), 0.0)
    whole = ox.grad(lambda x: xp.sum(ours.cdist(x, x, metric, **named)))(A)
    np.testing.assert_allclose(whole, 2.0 * ox.grad(lambda x: xp.sum(ours.pdist(x, metric, **named)))(A), rtol=1e-10)


def test_a_metric_is_a_function() -> None:
    f = lambda u, v, scale=1.0: scale * xp.sum((u - v) ** 4)  # noqa: E731
    np.testing.assert_allclose(ours.cdist(A, B, f, scale=2.0), distance.cdist(A, B, f, scale=2.0))
    np.testing.assert_allclose(ours.pdist(A, f), distance.pdist(A, f))
    check_grads(lambda a, b: ours.cdist(a, b, f), (A[:2], B))


@pytest.mark.parametrize("name", ["euclidean", "minkowski-3", "correlation", "seuclidean-V"])
def test_observations_of_every_library(name: str, arrays: Any) -> None:
    metric, named = METRICS[name]
    given = {key: arrays.asarray(v.astype(np.float32)) if isinstance(v, np.ndarray) else v for key, v in named.items()}
    a, b = (arrays.asarray(x.astype(np.float32)) for x in (A, B))
    found = ox.grad(lambda a: xp.sum(ours.cdist(a, b, metric, **given)))(a)
    assert str(found.dtype).endswith("float32")
    expected = ox.grad(lambda a: xp.sum(ours.cdist(a, B, metric, **named)))(A)
    np.testing.assert_allclose(host(found), expected, rtol=1e-3, atol=1e-4)
    assert tuple(ours.pdist(a, metric, **given).shape) == (15,)


def test_lists_and_whole_numbers() -> None:
    x = [[0, 0], [3, 4], [0, 8]]
    np.testing.assert_array_equal(ours.pdist(x), [5.0, 8.0, 5.0])
    np.testing.assert_array_equal(ours.cdist(x, x[:1]), [[0.0], [5.0], [8.0]])
    assert ours.pdist(x[:1]).shape == (0,)
    out = np.zeros(3)
    assert ours.pdist(x, out=out) is out
    np.testing.assert_array_equal(out, [5.0, 8.0, 5.0])


def test_refusals() -> None:
    with pytest.raises(ox.ShapeError, match=r"^cdist: found shapes \(6, 3\) and \(3, 2\), expected \(m, k\)"):
        ours.cdist(A, B[:, :2])
    with pytest.raises(ox.ShapeError, match=r"^pdist: found X of shape \(3,\), expected \(m, k\)"):
        ours.pdist(W)
    with pytest.raises(ox.DerivativeError, match="^pdist: metric is 'hamming', which counts elements"):
        ours.pdist(A, "hamming")
    with pytest.raises(ValueError, match="^cdist: metric is 'manhattan': expected one of 'braycurtis', "):
        ours.cdist(A, B, "manhattan")
    with pytest.raises(TypeError, match="^cdist: metric 'euclidean' takes no argument 'p'; its arguments: w"):
        ours.cdist(A, B, p=3)
    with pytest.raises(ValueError, match="^cdist: w has a negative weight"):
        ours.cdist(A, B, w=-W)
    with pytest.raises(ValueError, match="^minkowski: p is 0: expected a number above zero"):
        ours.cdist(A, B, "minkowski", p=0)
    with pytest.raises(ox.ShapeError, match="^pdist: found 3 observations of 3 elements, expected at least 4"):
        ours.pdist(A[:3], "mahalanobis")
    with pytest.raises(ox.ShapeError, match="^cdist: found 3 observations of 3 elements, expected at least 4"):
        ours.cdist(A[:2], B[:1], "mahalanobis")
    with pytest.raises(ox.DerivativeError, match="^minkowski is not differentiable with respect to p"):
        ox.grad(lambda p: xp.sum(ours.cdist(A, B, "minkowski", p=p)))(3.0)
    with pytest.raises(ox.DerivativeError, match="cdist with out="):
        ox.grad(lambda a: xp.sum(ours.cdist(a, B, out=np.zeros((6, 3)))))(A)
    with pytest.raises(TypeError, match="xp.spatial.distance.cdist is scipy.spatial.distance.cdist for variables"):
        ox.grad(lambda a: distance.cdist(a, B))(A)
