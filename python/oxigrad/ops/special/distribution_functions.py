"""Rows of the distribution functions, and of their inverses."""

from typing import Any

from oxigrad._typing import Array
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core.guarded import beta_density, gamma_density, log1p_square
from oxigrad.ops.core.primitives import exp, log, sqrt
from oxigrad.ops.special.gamma_functions import density_of, inverse_slope_by_a
from oxigrad.ops.special.rows import NO_FORM, Row, f, trunc

_DF, _DFN, _DFD = (NO_FORM.format(name) for name in ("parameter df", "parameter dfn", "parameter dfd"))
_K, _N = "its count k", "its count n"


def _successes_density(k: Any, n: Any, p: Array) -> Array:
    """The derivative of `bdtrc`, which rounds ``k`` down, and ``n`` towards zero."""
    k, n = ops.floor(1.0 * k), trunc(n)
    return beta_density(k + 1.0, n - k, p)


def _bdtri_slope(k: Any, n: Any, p: Array, y: Array) -> Array:
    """The derivative of the inverse of `bdtr`, or of ``1 - y``, an inverse of `betainc`, if ``y`` rounds to one."""
    k, n = ops.floor(1.0 * k), trunc(n)
    return -1.0 / density_of(k + 1.0, n - k, y, f.betaincinv(n - k, k + 1.0, p))


def _t_density(df: Array, t: Array) -> Array:
    return exp(-0.5 * (df + 1.0) * log1p_square(t / sqrt(df)) - 0.5 * log(df) - f.betaln(0.5 * df, 0.5))


def _f_density(dfn: Array, dfd: Array, x: Array) -> Array:
    whole = dfn * x + dfd
    return density_of(0.5 * dfn, 0.5 * dfd, dfn * x / whole, dfd / whole) * (dfn / whole) * (dfd / whole)


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
        _DF,
        lambda df, t: _t_density(df, t),
    ),
    "stdtrit": ("df p", "Inverse of `stdtr` in its second argument.", _DF, lambda df, y: 1.0 / _t_density(df, y)),
    "fdtr": (
        "dfn dfd x",
        "Cumulative distribution function of the F distribution.",
        _DFN,
        _DFD,
        lambda dfn, dfd, x: _f_density(dfn, dfd, x),
    ),
    "fdtrc": (
        "dfn dfd x",
        "Survival function of the F distribution.",
        _DFN,
        _DFD,
        lambda dfn, dfd, x: -_f_density(dfn, dfd, x),
    ),
    "fdtri": ("dfn dfd p", "Inverse of `fdtr`.", _DFN, _DFD, lambda dfn, dfd, y: 1.0 / _f_density(dfn, dfd, y)),
}
