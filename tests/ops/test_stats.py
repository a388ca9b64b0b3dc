"""Densities against SciPy's, and solutions of differential equations against exact ones; `cases` has their derivatives."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.stats

import oxigrad as ox
from cases_stats import CONTINUOUS, CONTINUOUS_METHODS, COUNTED, ONCE, ONLY_X, SLOW, WHOLE_PARAMETERS
from oxigrad import xp
from oxigrad.testing import check_grads

X = np.linspace(-30.0, 30.0, 61)
COUNTS = np.array([-1.0, 0.0, 1.0, 2.5, 3.0, 12.0])
SHARES = np.random.default_rng(0).dirichlet([1.5, 2.0, 3.0], 4).T
POINTS = np.random.default_rng(1).standard_normal((5, 3))
COVARIANCE = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 1.5]])
ALL = "logpdf pdf cdf logcdf sf logsf".split()
ROWS: list[tuple[str, list[str], tuple[Any, ...], dict[str, Any]]] = [
    ("norm", ALL, (X, 0.5, 1.3), {}),
    ("norm", ALL, (X,), {"scale": 2.0}),
    ("t", ALL, (X, 3.5, 0.5, 1.3), {}),
    ("beta", ALL, (np.linspace(0.02, 0.98, 25), 2.5, 0.7), {}),
    ("beta", ["logpdf", "pdf", "cdf", "sf"], (np.array([-1.0, 0.3, 2.0]), 2.5, 1.5), {"loc": -0.1, "scale": 1.2}),
    ("gamma", ALL, (np.linspace(0.1, 9.0, 30), 2.5), {"scale": 2.0}),
    ("gamma", ["logpdf", "pdf", "cdf", "sf"], (np.array([-1.0, 0.3]), 2.5), {}),
    ("chi2", ALL, (np.linspace(0.1, 9.0, 30), 2.5), {}),
    ("poisson", ["logpmf", "pmf", "cdf"], (COUNTS, 3.3), {}),
    ("poisson", ["logpmf", "pmf", "cdf"], (COUNTS, 3.3, 1), {}),
    ("dirichlet", ["logpdf", "pdf"], (SHARES, np.array([1.5, 2.0, 3.0])), {}),
    ("multivariate_normal", ["logpdf", "pdf"], (POINTS, np.arange(3.0), COVARIANCE), {}),
    ("multivariate_normal", ["entropy"], (np.arange(3.0), COVARIANCE), {}),
    ("dirichlet", ["logpdf", "pdf"], (SHARES[:-1], np.array([1.5, 2.0, 3.0])), {}),
    *[
        ("multivariate_normal", ["logpdf", "pdf"], args, {})
        for args in (
            (X,),
            (X, None, 2.0),
            (X, 0.5, 2.0),
            (X, np.ones(1), np.full((1, 1), 2.0)),
            (0.3, 0.1, 2.0),
            (0.3,),
            (X[:, None], None, 2.0),
            (POINTS[:, :1], np.arange(3.0), COVARIANCE),
            (POINTS, np.arange(3.0), 2.0),
            (POINTS[0], np.arange(3.0), np.array([1.0, 2.0, 3.0])),
            (POINTS[0], None, COVARIANCE),
        )
    ],
    *[
        ("multivariate_normal", ["entropy"], args, {})
        for args in ((), (0.0, 2.0), (np.arange(3.0), 2.0), (np.arange(3.0), np.array([1.0, 2.0, 3.0])))
    ],
]


@pytest.mark.parametrize(("name", "functions", "args", "named"), ROWS, ids=[row[0] for row in ROWS])
def test_distributions_are_scipy_s(name: str, functions: list[str], args: tuple[Any, ...], named: Any) -> None:
    for function in functions:
        expected = getattr(getattr(scipy.stats, name), function)(*args, **named)
        found = getattr(getattr(xp.stats, name), function)(*args, **named)
        np.testing.assert_allclose(found, expected, rtol=3e-13, err_msg=function)


@pytest.mark.parametrize(
    ("function", "args", "message"),
    [
        (xp.stats.dirichlet.logpdf, (np.array([0.3]), np.ones(3)), "found 1 proportions, expected 3 as in alpha, or 2"),
        (xp.stats.multivariate_normal.logpdf, (np.ones((4, 2)),), r"x of shape \(4, 2\), expected \(..., 1\)"),
        (xp.stats.multivariate_normal.logpdf, (np.ones(2), np.zeros(3), np.eye(2)), r"mean of shape \(3,\) and cov"),
        (xp.stats.multivariate_normal.entropy, (np.zeros(3), np.ones(2)), r"mean of shape \(3,\) and cov of shape"),
    ],
)
def test_vectors_of_other_sizes(function: Any, args: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ox.ShapeError, match=message):
        function(*args)


@pytest.mark.parametrize("name", CONTINUOUS)
@pytest.mark.one_in(8)
def test_a_continuous_distribution(name: str) -> None:
    shapes, z = CONTINUOUS[name]
    ours, theirs, (loc, scale) = getattr(xp.stats, name), getattr(scipy.stats, name), (0.3, 1.4)
    x, q = loc + scale * z, np.array([0.02, 0.3, 0.6, 0.97])
    edges = np.array([-60.0, -9.0, 0.3, 9.0, 60.0])
    for function in CONTINUOUS_METHODS:
        at = q if function in ("ppf", "isf") else x
        found, expected = (getattr(of, function)(at, *shapes, loc, scale) for of in (ours, theirs))
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-15, err_msg=function)
        f = lambda *args, function=function: getattr(ours, function)(*args)  # noqa: E731
        if function in ("pdf", "logpdf") or name not in ONLY_X:
            order = 1 if name in ONCE | SLOW and function not in ("pdf", "logpdf") else 2
            check_grads(f, (at, *shapes, loc, scale), order=order, tolerance=1e-5)
        else:
            check_grads(lambda x, f=f: f(x, *shapes, loc, scale), (at,), order=2)
    for function in ("cdf", "sf", "pdf"):  # beyond the support too
        found, expected = (getattr(of, function)(edges, *shapes) for of in (ours, theirs))
        where = np.isfinite(expected) & (edges != 0.3)
        np.testing.assert_allclose(found[where], expected[where], rtol=1e-9, atol=1e-14, err_msg=function)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # at zero
@pytest.mark.parametrize("name", CONTINUOUS)
@pytest.mark.one_in(3)
def test_derivatives_in_float32_are_those_in_float64(name: str) -> None:
    """At points inside, at zero and in the tails, where constants of float64 overflow or vanish."""
    shapes, z = CONTINUOUS[name]
    x = np.concatenate([z, [0.0, 1e-6, 90.0]]).astype(np.float32)
    count = 1 if name in ONLY_X else 1 + len(shapes)
    for function in CONTINUOUS_METHODS:
        points = np.array([1e-4, 0.3, 0.97], np.float32) if function in ("ppf", "isf") else x
        for point in points:

            def at(dtype: Any, function: str = function, point: Any = point) -> list[float]:
                args = (dtype(point), *map(dtype, shapes))
                grads = ox.grad(lambda *args: getattr(getattr(xp.stats, name), function)(*args), tuple(range(count)))
                return [float(each) for each in grads(*args)]

            for found, expected in zip(at(np.float32), at(np.float64), strict=True):
                if np.isfinite(expected) and abs(expected) < 1e37:
                    np.testing.assert_allclose(found, expected, rtol=1e-2, atol=1e-3, err_msg=f"{function} {point}")


@pytest.mark.parametrize("name", COUNTED)
def test_a_distribution_of_counts(name: str) -> None:
    shapes = COUNTED[name]
    ours, theirs = getattr(xp.stats, name), getattr(scipy.stats, name)
    for function in ["pmf", "logpmf", "cdf", *([] if name == "poisson" else ["sf"])]:
        whole = COUNTS if "pmf" in function else np.floor(COUNTS)  # SciPy does not round counts of logser and hypergeom
        for loc in (0, 1):
            found = getattr(ours, function)(COUNTS, *shapes, loc)
            expected = getattr(theirs, function)(whole, *shapes, loc)
            np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=function)
        k = np.array([1.0, 2.0, 4.0]) if name != "bernoulli" else np.array([0.0, 1.0])
        f = lambda p, function=function, k=k: getattr(ours, function)(k, *shapes[:-1], p)  # noqa: E731
        finite = (np.isfinite(f(shapes[-1])).all() and "log" in function) or function != "logpmf"
        if finite and name not in WHOLE_PARAMETERS:
            check_grads(f, (shapes[-1],), order=2)
    if name == "nbinom":
        check_grads(lambda n, p: ours.logpmf(np.arange(4.0), n, p), shapes, order=2)
    if name == "binom":
        for function in ("logcdf", "logsf"):
            found, expected = (getattr(of, function)(np.arange(5.0), *shapes) for of in (ours, theirs))
            np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_there_are_thirty_distributions() -> None:
    names = set(xp.stats.__all__)
    assert len(names) >= 30
    assert names - set(CONTINUOUS) - set(COUNTED) == {"dirichlet", "multivariate_normal"}


def test_tails_keep_their_digits() -> None:
    for z in (-1e3, -40.0, -12.5, -11.9, 5.0, 30.0):
        assert xp.stats.norm.logcdf(z) == pytest.approx(scipy.stats.norm.logcdf(z), rel=1e-13)
        assert xp.stats.norm.logsf(-z) == pytest.approx(scipy.stats.norm.logcdf(z), rel=1e-13)
    found = xp.stats.norm.logcdf(np.array([-20.0, -11.0, 3.0], np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, scipy.stats.norm.logcdf([-20.0, -11.0, 3.0]), rtol=1e-6)


@pytest.mark.parametrize("d", [1e-3, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("c", [0.01, 0.3, 2.0])
def test_the_logarithm_of_burr_s_distribution_function_above_one(c: float, d: float) -> None:
    """Where the hazard is small, since a shape parameter is."""
    z = np.array([0.3, 0.999, 1.0, 1.0000001, 1.5, 2.0, 100.0, 1e10])
    burr = xp.stats.burr12
    expected = np.log(-np.expm1(-d * np.log1p(z**c)))
    np.testing.assert_allclose(burr.logcdf(z, c, d), expected, rtol=1e-10, atol=1e-15)
    gradient = ox.grad(lambda z: xp.sum(burr.logcdf(z, c, d)))(z)
    np.testing.assert_allclose(gradient, burr.pdf(z, c, d) / burr.cdf(z, c, d), rtol=1e-9)
    by_c, by_d = ox.grad(lambda c, d: xp.sum(burr.logcdf(z, c, d)), (0, 1))(c, d)
    f = lambda c, d: np.sum(np.log(-np.expm1(-d * np.log1p(z**c))))  # noqa: E731
    np.testing.assert_allclose(by_c, (f(c * 1.00001, d) - f(c * 0.99999, d)) / (2e-5 * c), rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(by_d, (f(c, d * 1.00001) - f(c, d * 0.99999)) / (2e-5 * d), rtol=1e-5, atol=1e-8)


def test_shapes_must_be_there() -> None:
    with pytest.raises(TypeError, match="^beta.logpdf: b is missing: expected x, a, b, loc, scale"):
        xp.stats.beta.logpdf(0.5, 2.0)


@pytest.mark.parametrize("tolerance", [1e-4, 1e-7, 1e-10])
def test_solutions_are_as_exact_as_asked_for(tolerance: float) -> None:
    times = np.array([0.0, 0.1, 2.0, 7.0, 3.0])  # backwards at last

    def swing(y: Any, t: Any, rate: float) -> Any:
        return xp.stack([y[1], -rate * rate * y[0]])

    found = xp.integrate.odeint(swing, np.array([1.0, 0.0]), times, (2.0,), rtol=tolerance, atol=tolerance)
    exact = np.stack([np.cos(2.0 * times), -2.0 * np.sin(2.0 * times)], axis=1)
    np.testing.assert_allclose(found, exact, atol=100.0 * tolerance)


def test_a_time_alone_and_times_that_are_the_same() -> None:
    assert xp.integrate.odeint(lambda y, t: -y, np.ones(2), np.zeros(1)).shape == (1, 2)
    np.testing.assert_array_equal(xp.integrate.odeint(lambda y, t: -y, 2.0, np.ones(3)), [2.0, 2.0, 2.0])


@np.errstate(over="ignore", invalid="ignore")
def test_a_singularity_is_not_stepped_over() -> None:
    times = np.array([0.0, 0.5, 2.0, 3.0])
    with pytest.warns(
        RuntimeWarning, match=r"^odeint: at t = 1\.0.* would be smaller than .* from t = 2\.0 on are NaN"
    ):
        found = xp.integrate.odeint(lambda y, t: y * y, 1.0, times)
    np.testing.assert_allclose(found, [1.0, 2.0, np.nan, np.nan], rtol=1e-6)
    with pytest.warns(RuntimeWarning, match=r"^odeint: at t = 0\.0 the step size would be smaller"):
        found = xp.integrate.odeint(lambda y, t: y * np.nan, np.ones(2), np.array([0.0, 2.0]))
    np.testing.assert_array_equal(found, [[1.0, 1.0], [np.nan, np.nan]])
    with pytest.warns(RuntimeWarning, match="odeint"):
        slopes = ox.jacobian(lambda y: xp.integrate.odeint(lambda y, t: y * y, y, times))(1.0)
    np.testing.assert_allclose(slopes, [1.0, 4.0, np.nan, np.nan], rtol=1e-6)  # of y / (1 - y t)


@np.errstate(over="ignore", invalid="ignore")
def test_a_fit_goes_on_after_a_trial_step_beyond_a_singularity() -> None:
    times, data = np.linspace(0.0, 1.0, 5), 1.0 / (1.0 - 0.8 * np.linspace(0.0, 1.0, 5))

    def residual(p: Any) -> Any:
        return xp.integrate.odeint(lambda y, t: p[0] * y * y, 1.0, times) - data

    with pytest.warns(RuntimeWarning, match="odeint"):
        found = ox.scipy.least_squares(residual, np.array([-3.0]))
    np.testing.assert_allclose(found.x, [0.8], rtol=1e-6)


def test_normal_vectors_of_singular_and_diagonal_covariances() -> None:
    rng = np.random.default_rng(0)
    x, mean, factor = rng.standard_normal((5, 4)), rng.standard_normal(4), rng.standard_normal((4, 2))
    ours, theirs = xp.stats.multivariate_normal, scipy.stats.multivariate_normal
    singular, inside = factor @ factor.T, mean + x[:, :2] @ factor.T
    for args, named in (
        ((x, mean), {}),
        ((x, mean, 2.5), {}),
        ((x[0], mean, np.arange(1.0, 5.0)), {}),
        ((x, mean, singular + np.eye(4)), {"allow_singular": True}),
        ((inside, mean, singular), {"allow_singular": True}),
        ((x, mean, singular), {"allow_singular": True}),  # outside: minus infinity
    ):
        np.testing.assert_allclose(ours.logpdf(*args, **named), theirs.logpdf(*args, **named), rtol=1e-9)
        np.testing.assert_allclose(ours.pdf(*args, **named), theirs.pdf(*args, **named), rtol=1e-9)
    check_grads(
        lambda z, mean, b: ours.logpdf(mean + z @ b.T, mean, b @ b.T, allow_singular=True),
        (x[0, :2], mean, factor),
        order=1,
    )
    check_grads(lambda x, variances: ours.logpdf(x, None, variances), (x, np.arange(1.0, 5.0)))
    check_grads(lambda x, variance: ours.logpdf(x, cov=variance), (x[:, 0], 1.3))


@pytest.mark.parametrize(
    ("function", "point", "invalid"),
    [
        (xp.stats.norm.logpdf, (1.0, 0.0, -1.0), 2),
        (xp.stats.uniform.cdf, (0.5, 0.0, -1.0), 2),
        (xp.stats.gamma.pdf, (1.0, -2.0), 1),
        (xp.stats.truncnorm.cdf, (0.5, 1.0, -1.0), 1),
        (xp.stats.norm.ppf, (1.5,), 0),
        (xp.stats.poisson.logpmf, (1.0, -2.0), 1),
        (xp.stats.binom.sf, (1.0, 3.0, 1.5), 2),
    ],
)
def test_derivatives_by_an_invalid_parameter_are_nan(function: Any, point: tuple[float, ...], invalid: int) -> None:
    value, slope = ox.value_and_grad(function, argnums=invalid)(*point)
    assert np.isnan(value)
    assert np.isnan(slope)


@pytest.mark.parametrize(
    ("name", "function", "x", "args", "named"),
    [
        ("norm", "logpdf", 0.3, (1.0, 2.0), {}),
        ("gamma", "cdf", np.asarray([1.0, 2.0]), (2.0,), {"scale": 3.0}),
        ("poisson", "pmf", 2, (3.0,), {"loc": 1}),
        ("dirichlet", "logpdf", np.asarray([0.3, 0.7]), (np.asarray([1.0, 2.0]),), {}),
        ("multivariate_normal", "logpdf", np.ones(2), (), {"cov": 2.0 * np.eye(2)}),
    ],
)
def test_a_frozen_distribution_is_scipy_s(name: str, function: str, x: Any, args: Any, named: Any) -> None:
    frozen = getattr(xp.stats, name)(*args, **named)
    expected = getattr(getattr(scipy.stats, name)(*args, **named), function)(x)
    np.testing.assert_allclose(getattr(frozen, function)(x), expected, rtol=1e-13)
    assert function in dir(frozen)
    again = pickle.loads(pickle.dumps(frozen))  # noqa: S301
    np.testing.assert_array_equal(getattr(again, function)(x), getattr(frozen, function)(x))


def test_parameters_of_a_frozen_distribution_are_differentiated_and_checked() -> None:
    assert ox.grad(lambda m: xp.stats.norm(m, 2.0).logpdf(0.5))(0.1) == pytest.approx(0.1)
    assert repr(xp.stats.gamma(2.0, scale=3.0)) == "xp.stats.gamma(a=2.0, scale=3.0)"
    for wrong, message in [
        (lambda: xp.stats.norm(1.0, 2.0, 3.0), "norm: found 3 arguments, expected loc, scale"),
        (lambda: xp.stats.gamma(), "gamma: a is missing: expected a, loc, scale"),
        (lambda: xp.stats.norm(mu=2.0), "norm: mu is unknown: expected loc, scale"),
    ]:
        with pytest.raises(TypeError, match=message):
            wrong()
    frozen = xp.stats.norm(1.0)
    frozen.parameters["loc"] = 2.0  # the one place of a parameter
    assert frozen.logpdf(2.0) == xp.stats.norm.logpdf(2.0, 2.0)
    for name in ("rvs", "low", "_shapes"):
        with pytest.raises(AttributeError, match=name):
            getattr(xp.stats.norm(1.0), name)
