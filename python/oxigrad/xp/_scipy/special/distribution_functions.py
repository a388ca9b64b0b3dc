"""Rows of the distribution functions, and of their inverses."""

from oxigrad import xp as ops
from oxigrad._typing import Array, Function
from oxigrad.ops.core.guarded import beta_density, gamma_density
from oxigrad.xp import exp, log, sqrt
from oxigrad.xp._scipy.guarded import log1p_square
from oxigrad.xp._scipy.special.gamma_functions import density_of, inverse_slope_by_a
from oxigrad.xp._scipy.special.rows import Row, f, trunc

_K, _N = "its count k", "its count n"


def _successes_density(k: Array, n: Array, p: Array) -> Array:
    """The derivative of `bdtrc`, which rounds ``k`` down, and ``n`` towards zero."""
    k, n = ops.floor(1.0 * k), trunc(n)
    return beta_density(k + 1.0, n - k, p)


def _bdtri_slope(k: Array, n: Array, p: Array, y: Array) -> Array:
    """The derivative of the inverse of `bdtr`, or of ``1 - y``, an inverse of `betainc`, if ``y`` rounds to one."""
    k, n = ops.floor(1.0 * k), trunc(n)
    return -1.0 / density_of(k + 1.0, n - k, y, f.betaincinv(n - k, k + 1.0, p))


def _t_density(df: Array, t: Array) -> Array:
    return exp(-0.5 * (df + 1.0) * log1p_square(t / sqrt(df)) - 0.5 * log(df) - f.betaln(0.5 * df, 0.5))


def _f_density(dfn: Array, dfd: Array, x: Array) -> Array:
    whole = dfn * x + dfd
    return density_of(0.5 * dfn, 0.5 * dfd, dfn * x / whole, dfd / whole) * (dfn / whole) * (dfd / whole)


def _beta_slopes(a: Array, b: Array, x: Array, rest: Array) -> tuple[Array, Array]:
    """The derivatives of `betainc` by ``a`` and ``b``, given ``rest = 1 - x``: by the smaller one."""
    is_small = x <= 0.5
    by_x = lambda slope: slope(a, b, ops.where(is_small, x, 0.25))  # noqa: E731
    by_rest = lambda slope: -slope(b, a, ops.where(is_small, 0.25, rest))  # noqa: E731
    return (
        ops.where(is_small, by_x(f.betainc_a), by_rest(f.betainc_b)),
        ops.where(is_small, by_x(f.betainc_b), by_rest(f.betainc_a)),
    )


def _f_slopes(dfn: Array, dfd: Array, x: Array) -> tuple[Array, Array]:
    """The derivatives of `fdtr` by both parameters."""
    whole, density = dfn * x + dfd, _f_density(dfn, dfd, x)
    by_a, by_b = _beta_slopes(0.5 * dfn, 0.5 * dfd, dfn * x / whole, dfd / whole)
    return 0.5 * by_a + density * x / dfn, 0.5 * by_b - density * x / dfd


def _inside(slope: Function, x: Array, at_edge: Array) -> Array:
    """The ``slope`` by a parameter at ``x``; zero at the edges of the support."""
    return ops.where(at_edge, 0.0, slope(ops.where(at_edge, 1.0, x)))


def _f_inside(slope: Function, x: Array) -> Array:
    return _inside(slope, x, ops.logical_or(x == 0.0, ops.isinf(x)))


def _t_slope(df: Array, t: Array) -> Array:
    """The derivative of `stdtr` by its parameter."""
    whole = df + t * t
    by_b = _beta_slopes(0.5 + 0.0 * df, 0.5 * df, t * t / whole, df / whole)[1]
    return 0.25 * ops.sign(t) * by_b - 0.5 * t / df * _t_density(df, t)


ROWS: dict[str, Row] = {
    "bdtr": (
        "k n p",
        "Probability of at most ``k`` successes in ``n`` trials.",
        _K,
        _N,
        lambda k, n, p: -_successes_density(k, n, p),
    ),
    "bdtrc": (
        "k n p",
        "Probability of more than ``k`` successes in ``n`` trials.",
        _K,
        _N,
        lambda k, n, p: _successes_density(k, n, p),
    ),
    "bdtri": (
        "k n p",
        "Inverse of `bdtr` in the probability of a success.",
        _K,
        _N,
        lambda k, n, p, y: _bdtri_slope(k, n, p, y),
    ),
    "nbdtr": (
        "k n p",
        "Probability of at most ``k`` failures before ``n`` successes.",
        _K,
        _N,
        lambda k, n, p: beta_density(trunc(n), trunc(k) + 1.0, p),
    ),
    "nbdtrc": (
        "k n p",
        "Probability of more than ``k`` failures before ``n`` successes.",
        _K,
        _N,
        lambda k, n, p: -beta_density(trunc(n), trunc(k) + 1.0, p),
    ),
    "chdtri": (
        "v p",
        "Inverse of `chdtrc` in its second argument.",
        lambda v, y: inverse_slope_by_a(0.5 * v, 0.5 * y),
        lambda v, y: -2.0 / gamma_density(0.5 * v, 0.5 * y),
    ),
    "pdtri": ("k p", "Inverse of `pdtr` in the mean.", _K, lambda k, y: -1.0 / gamma_density(trunc(k) + 1.0, y)),
    "stdtr": (
        "df t",
        "Cumulative distribution function of Student's t distribution.",
        lambda df, t: _inside(lambda t: _t_slope(df, t), t, ops.isinf(t)),
        lambda df, t: _t_density(df, t),
    ),
    "stdtrit": (
        "df p",
        "Inverse of `stdtr` in its second argument.",
        lambda df, y: _inside(lambda y: -_t_slope(df, y) / _t_density(df, y), y, ops.isinf(y)),
        lambda df, y: 1.0 / _t_density(df, y),
    ),
    "fdtr": (
        "dfn dfd x",
        "Cumulative distribution function of the F distribution.",
        lambda dfn, dfd, x: _f_inside(lambda x: _f_slopes(dfn, dfd, x)[0], x),
        lambda dfn, dfd, x: _f_inside(lambda x: _f_slopes(dfn, dfd, x)[1], x),
        lambda dfn, dfd, x: _f_density(dfn, dfd, x),
    ),
    "fdtrc": (
        "dfn dfd x",
        "Survival function of the F distribution.",
        lambda dfn, dfd, x: _f_inside(lambda x: -_f_slopes(dfn, dfd, x)[0], x),
        lambda dfn, dfd, x: _f_inside(lambda x: -_f_slopes(dfn, dfd, x)[1], x),
        lambda dfn, dfd, x: -_f_density(dfn, dfd, x),
    ),
    "fdtri": (
        "dfn dfd p",
        "Inverse of `fdtr`.",
        lambda dfn, dfd, y: _f_inside(lambda y: -_f_slopes(dfn, dfd, y)[0] / _f_density(dfn, dfd, y), y),
        lambda dfn, dfd, y: _f_inside(lambda y: -_f_slopes(dfn, dfd, y)[1] / _f_density(dfn, dfd, y), y),
        lambda dfn, dfd, y: 1.0 / _f_density(dfn, dfd, y),
    ),
}
