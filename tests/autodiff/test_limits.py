"""Derivatives at the edges of domains, where formulas divide zero by zero: limits, and the conventions of other libraries."""

from __future__ import annotations

import operator
from typing import Any

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


# --- derivatives of special functions where values are infinite, or zeros of another factor --------------------------------


def slope_and_bend(f: Any, x: float) -> list[Any]:
    """The first derivative, and the second one in each pair of modes."""
    first = ox.grad(f)
    along = lambda f, x: ox.jvp(f, (x,), (1.0,))[1]  # noqa: E731
    return [first(x), ox.grad(first)(x), along(first, x), along(lambda x: along(f, x), x)]


AT_INFINITY = {
    **{f"special.{name}": (0.0, 0.0) for name in "erf erfc ndtr dawsn erfcx cbrt zetac log_ndtr".split()},
    **{f"special.{name}": (INF, INF) for name in "expi exprel erfi".split()},
    **dict.fromkeys(["acosh", "asinh", "atan", "tanh"], (0.0, 0.0)),
    "special.wrightomega": (1.0, 0.0),
}
AT_MINUS_INFINITY = {
    **{f"special.{name}": (0.0, 0.0) for name in "erf erfc ndtr dawsn cbrt exprel ellipk ellipe".split()},
    **dict.fromkeys(["asinh", "atan", "tanh"], (0.0, 0.0)),
    "special.log_ndtr": (INF, -1.0),
    "special.erfcx": (-INF, INF),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        *((name, INF, expected) for name, expected in AT_INFINITY.items()),
        *((name, -INF, expected) for name, expected in AT_MINUS_INFINITY.items()),
        ("special.exprel", 800.0, (INF, INF)),
        ("special.expi", 800.0, (INF, INF)),
    ],
)
def test_derivatives_of_both_orders_at_infinity(name: str, x: float, expected: tuple[float, float]) -> None:
    f = operator.attrgetter(name)(xp)
    np.testing.assert_array_equal(slope_and_bend(f, x), [expected[0], *[expected[1]] * 3])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("at", "f"), [(0, lambda x: special.sici(x)[0]), (1, lambda x: special.sici(x)[1])])
def test_the_sine_and_cosine_integrals_at_infinity(at: int, f: Any) -> None:
    np.testing.assert_array_equal(slope_and_bend(f, INF), 0.0)
    np.testing.assert_array_equal(slope_and_bend(lambda x: special.shichi(x)[at], INF), INF)


@pytest.mark.parametrize("x", [1e-150, 1e-12, -1e-5, 3.0, 179.0])
def test_the_cotangent_of_degrees_near_its_pole(x: float) -> None:
    """SciPy's own value loses digits there."""
    with mpmath.workdps(50):
        degree, angle = mpmath.pi / 180, mpmath.mpf(x) * mpmath.pi / 180
        first, second = -degree * mpmath.csc(angle) ** 2, 2 * degree**2 * mpmath.csc(angle) ** 2 * mpmath.cot(angle)
    slope, *bends = slope_and_bend(special.cotdg, x)
    assert slope == pytest.approx(float(first), rel=1e-14)
    if abs(x) > 1e-100:
        np.testing.assert_allclose(bends, float(second), rtol=1e-12)


def test_a_small_complement_of_the_elliptic_integral() -> None:
    np.testing.assert_allclose(slope_and_bend(special.ellipkm1, 1e-20), [-5e19, *[5e39] * 3], rtol=1e-12)


def test_the_loss_of_large_residuals() -> None:
    for delta, r in ((1.0, 1e200), (1e-200, 3.0), (1e-3, -1e300)):
        by_delta, by_r = ox.grad(lambda d, r: special.pseudo_huber(d, r), (0, 1))(delta, r)
        assert (by_delta, by_r) == pytest.approx((abs(r), delta * np.sign(r)), rel=1e-12)


def binomial(n: Any, k: Any) -> Any:
    return mpmath.gamma(n + 1) * mpmath.rgamma(k + 1) * mpmath.rgamma(n - k + 1)


def rising(z: Any, m: Any) -> Any:
    return mpmath.gamma(z + m) * mpmath.rgamma(z)


@pytest.mark.parametrize(
    ("name", "f", "point"),
    [
        *(("binom", binomial, point) for point in ((2.0, 3.0), (0.0, 1.0), (3.0, 7.0), (2.0, 2.5), (2.5, 4.0), (400.0, 402.0))),
        *(("poch", rising, point) for point in ((0.0, 2.0), (-3.0, 5.0), (-3.0, 4.5), (-1.0, 0.5), (2.0, 3.0))),
    ],
)  # fmt: skip
def test_zeros_of_the_reciprocal_gamma_function_in_products(name: str, f: Any, point: tuple[float, float]) -> None:
    """Gradients and Hessians beside differences in many digits."""
    total = lambda x: xp.sum(getattr(special, name)(x[0], x[1]))  # noqa: E731
    x = np.array(point)
    with mpmath.workdps(60):
        h, at = mpmath.mpf(10) ** -15, list(map(mpmath.mpf, point))

        def moved(*steps: int) -> Any:
            return f(*(value + step * h for value, step in zip(at, steps, strict=True)))

        gradient = [(moved(*step) - moved(*(-each for each in step))) / (2 * h) for step in ((1, 0), (0, 1))]
        mixed = (moved(1, 1) - moved(1, -1) - moved(-1, 1) + moved(-1, -1)) / (4 * h * h)
        by_z = (moved(1, 0) - 2 * moved(0, 0) + moved(-1, 0)) / h**2
        by_m = (moved(0, 1) - 2 * moved(0, 0) + moved(0, -1)) / h**2
    np.testing.assert_allclose(ox.grad(total)(x), list(map(float, gradient)), rtol=1e-11, atol=1e-13)
    expected = [[float(by_z), float(mixed)], [float(mixed), float(by_m)]]
    for mode in (lambda x: ox.grad(lambda x: ox.grad(total)(x)[0])(x), lambda x: ox.hessian(total)(x)[0]):
        np.testing.assert_allclose(mode(x), expected[0], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(ox.hessian(total)(x), expected, rtol=1e-10, atol=1e-12)


def test_the_pochhammer_symbol_of_negative_factors_is_a_polynomial() -> None:
    poch = lambda z: xp.sum(special.poch(z, 2.0))  # noqa: E731 - z**2 + z
    assert ox.grad(poch)(np.array([-3.0])) == pytest.approx(-5.0)
    assert ox.grad(lambda z: xp.sum(ox.grad(poch)(z)))(np.array([-3.0])) == pytest.approx(2.0)


INVERSES = {
    **{("gammaincinv", a, 1.0): (INF, INF) for a in (0.5, 1.0, 2.5)},
    **{("gammainccinv", a, 0.0): (-INF, INF) for a in (0.5, 1.0, 2.5)},
    ("gammaincinv", 1.0, 0.0): (1.0, 1.0),
    ("gammaincinv", 0.5, 0.0): (0.0, np.pi / 2.0),
    ("gammaincinv", 0.3, 0.0): (0.0, 0.0),
    ("gammaincinv", 2.0, 0.0): (INF, -INF),
    ("gammainccinv", 1.0, 1.0): (-1.0, 1.0),
    ("gammainccinv", 2.0, 1.0): (-INF, -INF),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "a", "p"), INVERSES)
def test_inverses_of_the_incomplete_gamma_functions_at_their_edges(name: str, a: float, p: float) -> None:
    """Those of the power of ``p`` that the inverse begins with, and of an infinite quantile."""
    first, second = INVERSES[name, a, p]
    found = slope_and_bend(lambda p: getattr(special, name)(a, p), p)
    np.testing.assert_allclose(found, [first, *[second] * 3], rtol=1e-14)
