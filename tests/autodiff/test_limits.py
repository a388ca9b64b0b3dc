"""Derivatives at the edges of domains, where formulas divide zero by zero: limits, and the conventions of other libraries."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import oxigrad as ox
from oxigrad import rules, xp

special = xp.special
INF = np.inf


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ([-INF, -INF], [0.5, 0.5]),
        ([-INF] * 4, [0.25] * 4),
        ([INF, 1.0, INF], [0.5, 0.0, 0.5]),
        ([-INF, 2.0], [0.0, 1.0]),
    ],
    ids=repr,
)
def test_infinite_cells_of_logsumexp_share_its_derivative(x, expected):
    """As those of `logaddexp` do, which gives each of two equal cells one half."""
    x = np.array(x)
    rows = np.stack([x, np.zeros_like(x)])
    weights = ox.grad(lambda x: xp.sum(special.logsumexp(x, axis=1)))(rows)
    np.testing.assert_allclose(weights, [expected, np.full_like(x, 1.0 / x.size)])
    np.testing.assert_allclose(ox.grad(special.logsumexp)(x), expected)
    np.testing.assert_allclose(ox.jacobian(special.logsumexp, mode="forward")(x), expected)
    np.testing.assert_allclose(ox.vmap(ox.grad(special.logsumexp))(rows), weights)
    np.testing.assert_allclose(ox.record(ox.grad(special.logsumexp))(x), expected)
    if x.size == 2:
        np.testing.assert_allclose(ox.grad(lambda x: xp.logaddexp(x[0], x[1]))(x), expected)


def test_weights_of_infinite_cells_are_those_of_the_sum():
    x, b = np.array([-INF, -INF]), np.array([1.0, 3.0])
    assert special.logsumexp(x, b=b) == -INF
    np.testing.assert_allclose(ox.grad(lambda x: special.logsumexp(x, b=b))(x), [0.25, 0.75])
    assert ox.grad(special.logsumexp)(-INF) == 1.0


@pytest.mark.parametrize("clip", [xp.clip, np.clip], ids=["xp", "numpy"])
@pytest.mark.parametrize("make", [float, np.float32, lambda x: np.array([x, x])], ids=["number", "scalar", "array"])
@pytest.mark.parametrize("x", [-2.0, 0.0, 2.0])
def test_equal_bounds_have_the_derivatives_of_bounds_that_are_apart(x, make, clip):
    """The bound on the side of the argument has the derivative: the limit of an interval that becomes a point."""
    gradient = ox.grad(lambda x, low, high: xp.sum(clip(x, low, high)), argnums=(0, 1, 2))
    found = [np.max(np.abs(g)) for g in gradient(make(x), make(0.0), make(0.0))]
    assert found == {-2.0: [0.0, 1.0, 0.0], 0.0: [0.5, 0.25, 0.25], 2.0: [0.0, 0.0, 1.0]}[x]
    by_both = ox.grad(lambda size: xp.sum(clip(make(x), -size, size)))(0.0)
    assert by_both == np.sign(x) * np.size(make(x))


def test_the_hypergradient_of_ftrl_at_its_default():
    arrays = [np.array(values) for values in ([1.0, -1.0, 0.3], [2.0, -3.0, 0.5], [0.5, -0.5, 0.1], [0.1, 0.2, 0.3])]
    step = lambda l1: rules.ftrl(xp, *arrays, learning_rate=0.5, l1=l1)[0]  # noqa: E731
    differences = (step(1e-6) - step(0.0)) / 1e-6
    assert (differences != 0.0).all()
    np.testing.assert_allclose(ox.jacobian(step)(0.0), differences, rtol=1e-6)
    np.testing.assert_allclose(ox.jvp(step, (0.0,), (1.0,))[1], differences, rtol=1e-6)


@pytest.mark.parametrize("x", [31.0, 1e3, 3e9, 1e20, 1e80])
@pytest.mark.parametrize("name", ["i0e", "i1e", "k0e", "k1e"])
def test_scaled_bessel_functions_far_away(name, x):
    """By Hankel's expansion, DLMF 10.40."""
    f, order, sign = getattr(special, name), int(name[1]), -1 if name[0] == "i" else 1
    with mpmath.workdps(60):

        def expected(x):
            terms, term = mpmath.mpf(1), mpmath.mpf(1)
            for k in range(1, 20):
                term = term * sign * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k * x)
                terms += term
            return terms * (mpmath.sqrt(mpmath.pi / (2 * x)) if sign > 0 else 1 / mpmath.sqrt(2 * mpmath.pi * x))

        first = ox.grad(lambda x: xp.sum(f(x)))
        points, exact = np.array([x]), mpmath.mpf(x)
        slopes = [mpmath.diff(expected, exact, n, h=exact * mpmath.mpf(10) ** -15) for n in (1, 2)]
        assert float(first(points)[0]) == pytest.approx(float(slopes[0]), rel=1e-12)
        assert float(ox.grad(lambda x: xp.sum(first(x)))(points)[0]) == pytest.approx(float(slopes[1]), rel=1e-10)
