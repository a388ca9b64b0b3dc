"""Continuous distributions by incomplete gamma and beta functions, named as in SciPy.

These are their distribution functions.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, cast

from oxigrad import xp as ops
from oxigrad._core import plain
from oxigrad._typing import Array, Function
from oxigrad.ops.backends import without_variables
from oxigrad.xp import special
from oxigrad.xp._scipy import guarded
from oxigrad.xp._scipy.guarded import branch, log1p_square, log_by, power_exp, unless, xlogy
from oxigrad.xp._scipy.stats.derived import doubled, with_shapes
from oxigrad.xp._scipy.stats.deviance import is_deviant, log_poisson
from oxigrad.xp._scipy.stats.distribution import Continuous

__all__ = [
    "arcsine",
    "beta",
    "betaprime",
    "chi",
    "chi2",
    "dgamma",
    "f",
    "gamma",
    "invgamma",
    "maxwell",
    "nakagami",
    "t",
]

_LOG_2 = math.log(2.0)

# --- of the incomplete gamma function ---------------------------------------------------------------------------------


def _log_gamma(
    which: Function,
    other: Function,
    tail: Function,
    x: Callable[[Array], Array],
    log_x: Callable[[Array], Array],
    middle: Callable[[Array], Array],
) -> Function:
    """The logarithm of an incomplete gamma function ``which`` of ``a`` and ``x(z)``; ``x(middle(a))`` is ``a``."""

    def of(z: Array, a: Array) -> Array:
        safe = middle(plain(a))
        near = lambda z: log_by(lambda z: which(a, x(z)), lambda z: other(a, x(z)), (z, safe))  # noqa: E731
        far = lambda z: tail(a, x(z), log_x(z))  # noqa: E731
        value = which(a, x(z))
        return branch(value <= guarded.tiny(value), far, near, (z, safe, safe))

    return of


def _log_gammas(
    x: Callable[[Array], Array], log_x: Callable[[Array], Array], middle: Callable[[Array], Array]
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The logarithms of `gammainc` and of `gammaincc`, functions of ``z`` and ``a``."""
    lower, upper = special.gammainc, special.gammaincc
    return (
        _log_gamma(lower, upper, guarded.log_gammainc, x, log_x, middle),
        _log_gamma(upper, lower, guarded.log_gammaincc, x, log_x, middle),
    )


_log_lower, _log_upper = _log_gammas(lambda z: z, ops.log, lambda a: a)
gamma: Continuous = Continuous(
    "gamma",
    "a",
    lambda z, a: xlogy(a - 1.0, z) - z - special.gammaln(a),
    lambda z, a: special.gammainc(a, z),
    lambda z, a: special.gammaincc(a, z),
    _log_lower,
    _log_upper,
    lambda q, a: special.gammaincinv(a, q),
    lambda z, a: power_exp(z, a - 1.0, -z - special.gammaln(a)),
    upper_quantile=lambda q, a: special.gammainccinv(a, q),
    low=0.0,
    inner=0.5,
)


def _of_gamma(name: str, shapes: str, **functions: Any) -> Continuous:
    return Continuous(name, shapes, low=0.0, inner=0.5, **functions)


chi2: Continuous = _of_gamma(
    "chi2",
    "df",
    log_density=lambda z, df: gamma.log_density(0.5 * z, 0.5 * df) - _LOG_2,
    density=lambda z, df: 0.5 * cast(Any, gamma.density)(0.5 * z, 0.5 * df),
    lower=lambda z, df: gamma.lower(0.5 * z, 0.5 * df),
    upper=lambda z, df: gamma.upper(0.5 * z, 0.5 * df),
    log_lower=lambda z, df: cast(Any, gamma.log_lower)(0.5 * z, 0.5 * df),
    log_upper=lambda z, df: cast(Any, gamma.log_upper)(0.5 * z, 0.5 * df),
    quantile=lambda q, df: 2.0 * special.gammaincinv(0.5 * df, q),
    upper_quantile=lambda q, df: 2.0 * special.gammainccinv(0.5 * df, q),
)


def _root(x: Array, is_positive: Array) -> Array:
    """The square root, without a derivative if a positive ``x`` has underflowed to zero."""
    return unless(ops.logical_and(x == 0.0, is_positive), 0.0, ops.sqrt, x, 1.0)


def _chi_constant(df: Array) -> Array:
    return (0.5 * df - 1.0) * _LOG_2 + special.gammaln(0.5 * df)


def _chi_function(small: Function, f: Function) -> Function:
    """A function of ``z`` and ``df`` by ``df / 2`` and ``z**2 / 2``, or the series' first term if that underflows."""
    return lambda z, df: branch(z < 1e-9, lambda z: small(z, df), lambda z: f(0.5 * df, 0.5 * z * z), (z, 0.0, 1.0))


def _chi_small(z: Array, df: Array) -> Array:
    return power_exp(z, df, -_chi_constant(df + 2.0))


_log_chi = _log_gammas(lambda z: 0.5 * z * z, lambda z: 2.0 * ops.log(z) - _LOG_2, lambda a: ops.sqrt(2.0 * a))
chi: Continuous = _of_gamma(
    "chi",
    "df",
    log_density=lambda z, df: xlogy(df - 1.0, z) - 0.5 * z * z - _chi_constant(df),
    density=lambda z, df: power_exp(z, df - 1.0, -0.5 * z * z - _chi_constant(df)),
    lower=_chi_function(_chi_small, special.gammainc),
    upper=_chi_function(lambda z, df: 1.0 - _chi_small(z, df), special.gammaincc),
    log_lower=lambda z, df: branch(
        z < 1e-9,
        lambda z: df * ops.log(z) - _chi_constant(df + 2.0),
        lambda z: _log_chi[0](z, 0.5 * df),
        (z, 1e-9, 1.0),
    ),
    log_upper=lambda z, df: branch(
        z < 1e-9,
        lambda z: ops.log1p(-_chi_small(z, df)),
        lambda z: _log_chi[1](z, 0.5 * df),
        (z, 1e-9, 1.0),
    ),
    quantile=lambda q, df: _root(2.0 * special.gammaincinv(0.5 * df, q), q > 0.0),
    upper_quantile=lambda q, df: _root(2.0 * special.gammainccinv(0.5 * df, q), q < 1.0),
)


maxwell: Continuous = with_shapes("maxwell", "", chi, lambda: (3.0,))


def _nakagami_constant(nu: Array) -> Array:
    return _LOG_2 + nu * ops.log(nu) - special.gammaln(nu)


def _log_nakagami_density(z: Array, nu: Array) -> Array:
    def large(z: Array, nu: Array) -> Array:
        # The gamma density of shape nu at nu * z**2, by the Poisson probability of a count of nu.
        return _LOG_2 + ops.log(nu) - ops.log(z) + log_poisson(nu, nu * z * z)

    small = lambda z, nu: xlogy(2.0 * nu - 1.0, z) - nu * z * z + _nakagami_constant(nu)  # noqa: E731
    is_large = ops.logical_and(is_deviant(nu, nu * z * z), z < 1e100)
    return branch(is_large, large, small, (z, 1.0, 1.0), (nu, 16.0, 1.0))


def _nakagami_density(z: Array, nu: Array) -> Array:
    def near(z: Array, nu: Array) -> Array:
        constant = _nakagami_constant(nu)
        most = -0.8 * math.log(guarded.tiny(constant))  # whose exponential is finite
        return power_exp(z, 2.0 * nu - 1.0, ops.where(constant > most, most, constant))

    away = lambda z, nu: ops.exp(_log_nakagami_density(z, nu))  # noqa: E731
    return branch(z < guarded.reciprocal_limit(z), near, away, (z, 0.0, 1.0), (nu, 1.0, 1.0))


def _of_chi(f: Any) -> Function:
    def of(z: Array, nu: Array) -> Array:
        root = ops.sqrt(2.0 * nu)
        # At zero, where the derivative may be infinite, the argument is zero for all nu.
        at_edge = lambda z: f(z * without_variables(root), 2.0 * nu)  # noqa: E731
        return branch(z == 0.0, at_edge, lambda z: f(z * root, 2.0 * nu), (z, 0.5, 0.5))

    return of


nakagami: Continuous = _of_gamma(
    "nakagami",
    "nu",
    log_density=_log_nakagami_density,
    density=_nakagami_density,
    lower=_of_chi(chi.lower),
    upper=_of_chi(chi.upper),
    log_lower=_of_chi(chi.log_lower),
    log_upper=_of_chi(chi.log_upper),
    quantile=lambda q, nu: _root(special.gammaincinv(nu, q) / nu, q > 0.0),
    upper_quantile=lambda q, nu: _root(special.gammainccinv(nu, q) / nu, q < 1.0),
)
dgamma: Continuous = doubled("dgamma", gamma)


def _inverse(z: Array, constant: float, f: Callable[[Array], Array]) -> Array:
    """``f(1 / z)``, and the constant that it is where the derivative of ``1 / z`` overflows."""
    return unless(z < guarded.reciprocal_limit(z), constant, lambda z: f(1.0 / z), z, 1.0)


_log_inverse = _log_gammas(lambda z: 1.0 / z, lambda z: -ops.log(z), lambda a: 1.0 / a)
invgamma: Continuous = Continuous(
    "invgamma",
    "a",
    lambda z, a: -(a + 1.0) * ops.log(z) - special.gammaln(a) - 1.0 / z,
    lambda z, a: _inverse(z, 0.0, lambda x: special.gammaincc(a, x)),
    lambda z, a: _inverse(z, 1.0, lambda x: special.gammainc(a, x)),
    _log_inverse[1],
    _log_inverse[0],
    lambda q, a: 1.0 / special.gammainccinv(a, q),
    upper_quantile=lambda q, a: 1.0 / special.gammaincinv(a, q),
    low=0.0,
    inner=1.0,
    is_open=True,
)


# --- of the incomplete beta function ----------------------------------------------------------------------------------


def _beta_of(a: Array, b: Array, x: Array, rest: Array) -> Array:
    """`betainc` of ``x``, given ``rest = 1 - x``: evaluated at the smaller one, so that neither is rounded to one.

    Below the mean it is evaluated at ``x`` too, since the complement of its complement would be rounded.
    """
    total = plain(a) + plain(b)
    return branch(
        ops.logical_or(x <= 0.5, x * total < plain(a)),
        lambda x, _: special.betainc(a, b, x),
        lambda _, rest: 1.0 - special.betainc(b, a, rest),
        (x, 0.5, 0.0),
        (rest, 0.0, 0.5),
    )


def _log_beta_of(a: Array, b: Array, x: Array, rest: Array) -> Array:
    """The logarithm of `_beta_of`."""
    value = _beta_of(a, b, x, rest)
    mean = plain(a) / (plain(a) + plain(b))
    near = lambda x, rest: log_by(  # noqa: E731
        lambda x, rest: _beta_of(a, b, x, rest),
        lambda x, rest: _beta_of(b, a, rest, x),
        (x, mean),
        (rest, 1.0 - mean),
    )
    far = lambda x, rest: guarded.log_betainc(a, b, x, rest)  # noqa: E731
    return branch(value <= guarded.tiny(value), far, near, (x, 0.5 * mean, mean), (rest, 1.0 - 0.5 * mean, 1.0 - mean))


def _of_beta(name: str, shapes: str, arguments: Function, **functions: Any) -> Continuous:
    """A distribution by the arguments of its distribution function as a `_beta_of`."""

    def swapped(z: Array, *shape: Any) -> tuple[Array, ...]:
        a, b, x, rest = arguments(z, *shape)
        return b, a, rest, x

    return Continuous(
        name,
        shapes,
        lower=lambda *args: _beta_of(*arguments(*args)),
        upper=lambda *args: _beta_of(*swapped(*args)),
        log_lower=lambda *args: _log_beta_of(*arguments(*args)),
        log_upper=lambda *args: _log_beta_of(*swapped(*args)),
        **functions,
    )


def _beta_density(z: Array, a: Array, b: Array) -> Array:
    """The density, by the power of the distance from the nearer edge."""
    constant = special.betaln(a, b)
    low = lambda z: power_exp(z, a - 1.0, (b - 1.0) * ops.log1p(-z) - constant)  # noqa: E731
    high = lambda z: power_exp(1.0 - z, b - 1.0, (a - 1.0) * ops.log(z) - constant)  # noqa: E731
    return branch(z < 0.5, low, high, (z, 0.25, 0.75))


beta: Continuous = _of_beta(
    "beta",
    "a b",
    lambda z, a, b: (a, b, z, 1.0 - z),
    log_density=lambda z, a, b: special.xlogy(a - 1.0, z) + special.xlog1py(b - 1.0, -z) - special.betaln(a, b),
    density=_beta_density,
    quantile=lambda q, a, b: special.betaincinv(a, b, q),
    upper_quantile=lambda q, a, b: special.betainccinv(a, b, q),
    low=0.0,
    high=1.0,
    inner=0.5,
)


def _t_log_density(z: Array, df: Array) -> Array:
    constant = -special.betaln(0.5 * df, 0.5) - 0.5 * ops.log(df)
    return ops.subtract(constant, ops.multiply(0.5 * (df + 1.0), log1p_square(ops.divide(z, ops.sqrt(df)))))


def _t_arguments(z: Array, df: Array) -> tuple[Array, ...]:
    # By the beta function of equal arguments, which is smooth at zero; the formula DLMF 26.5.27 is not.
    root = ops.hypot(z, ops.sqrt(df))

    def share(z: Array) -> Array:
        small = lambda z: df / (root + z)  # noqa: E731
        return branch(z < 0.0, lambda z: small(-z), lambda z: root + z, (z, 0.0, 0.0)) / root * 0.5

    return 0.5 * df, 0.5 * df, share(z), share(-z)


def _t_log_tail(z: Array, df: Array) -> Array:
    """The logarithm of the probability of more than a large ``z``: the first term of the series of `betainc`."""
    a = 0.5 * df
    return a * (ops.log(0.25 * df) - 2.0 * ops.log(z)) - ops.log(a) - special.betaln(a, a)


def _t_function(f: Any, low: Function, high: Function) -> Function:
    """A function of ``z`` and ``df``; of the logarithm of a tail where shares of ``z**2`` would underflow."""

    def of(z: Array, df: Array) -> Array:
        far = 1e10 * ops.sqrt(df)
        inner = lambda z: branch(  # noqa: E731
            z > far, lambda z: high(_t_log_tail(z, df)), lambda z: f(z, df), (z, 2.0 * plain(far), 0.0)
        )
        return branch(z < -far, lambda z: low(_t_log_tail(-z, df)), inner, (z, -2.0 * plain(far), 0.0))

    return of


_t_near = _of_beta(
    "t",
    "df",
    _t_arguments,
    log_density=_t_log_density,
    quantile=lambda q, df: special.stdtrit(df, q),
    upper_quantile=lambda q, df: -special.stdtrit(df, q),
)
t: Continuous = dataclasses.replace(
    _t_near,
    lower=_t_function(_t_near.lower, ops.exp, lambda tail: 1.0 - ops.exp(tail)),
    upper=_t_function(_t_near.upper, lambda tail: 1.0 - ops.exp(tail), ops.exp),
    log_lower=_t_function(_t_near.log_lower, lambda tail: tail, lambda tail: ops.log1p(-ops.exp(tail))),
    log_upper=_t_function(_t_near.log_upper, lambda tail: ops.log1p(-ops.exp(tail)), lambda tail: tail),
)


def _f_log_density(z: Array, dfn: Array, dfd: Array) -> Array:
    return xlogy(0.5 * dfn - 1.0, z) + _f_rest(z, dfn, dfd)


def _f_rest(z: Array, dfn: Array, dfd: Array) -> Array:
    ratio = dfn / dfd
    constant = 0.5 * dfn * ops.log(ratio) - special.betaln(0.5 * dfn, 0.5 * dfd)
    return constant - 0.5 * (dfn + dfd) * ops.log1p(ratio * z)


def _f_arguments(z: Array, dfn: Array, dfd: Array) -> tuple[Array, ...]:
    # Neither a product nor a quotient of zero, at which the derivative of `betainc` may be infinite.
    log = ops.log1p(dfn / dfd * z)
    return 0.5 * dfn, 0.5 * dfd, -ops.expm1(-log), ops.exp(-log)


def _f_function(f: Any) -> Function:
    """A function of ``z`` and the shapes; of constant shapes at zero, where a derivative by ``z`` may be infinite."""
    return lambda z, dfn, dfd: branch(
        z == 0.0, lambda z: f(z, plain(dfn), plain(dfd)), lambda z: f(z, dfn, dfd), (z, 1.0, 1.0)
    )


_f_above = _of_beta(
    "f",
    "dfn dfd",
    _f_arguments,
    log_density=_f_log_density,
    density=lambda z, dfn, dfd: power_exp(z, 0.5 * dfn - 1.0, _f_rest(z, dfn, dfd)),
    quantile=lambda q, dfn, dfd: special.fdtri(dfn, dfd, q),
    upper_quantile=lambda q, dfn, dfd: branch(
        q < 0.5,
        lambda q: 1.0 / special.fdtri(dfd, dfn, q),
        lambda q: special.fdtri(dfn, dfd, 1.0 - q),
        (q, 0.25, 0.75),
    ),
    low=0.0,
    inner=1.0,
)
f: Continuous = dataclasses.replace(
    _f_above,
    lower=_f_function(_f_above.lower),
    upper=_f_function(_f_above.upper),
    log_lower=_f_function(_f_above.log_lower),
    log_upper=_f_function(_f_above.log_upper),
)


def _betaprime_arguments(z: Array, a: Array, b: Array) -> tuple[Array, ...]:
    log = ops.log1p(z)
    return a, b, -ops.expm1(-log), ops.exp(-log)


def _odds(share: Function, rest: Function, edge: float) -> Function:
    """The ratio of two inverses of ``q`` that sum to one.

    At the ``edge``, where the ratio is zero, it omits the infinite derivative of the second inverse.
    """
    return lambda q, a, b: branch(
        q == edge, lambda q: share(a, b, q), lambda q: share(a, b, q) / rest(b, a, q), (q, 0.5, 0.5)
    )


betaprime: Continuous = _of_beta(
    "betaprime",
    "a b",
    _betaprime_arguments,
    log_density=lambda z, a, b: xlogy(a - 1.0, z) - (a + b) * ops.log1p(z) - special.betaln(a, b),
    density=lambda z, a, b: power_exp(z, a - 1.0, -(a + b) * ops.log1p(z) - special.betaln(a, b)),
    quantile=_odds(special.betaincinv, special.betainccinv, 0.0),
    upper_quantile=_odds(special.betainccinv, special.betaincinv, 1.0),
    low=0.0,
    inner=1.0,
)
arcsine: Continuous = dataclasses.replace(
    with_shapes("arcsine", "", beta, lambda: (0.5, 0.5)),
    quantile=lambda q: ops.square(ops.sin(0.5 * math.pi * q)),
    upper_quantile=lambda q: branch(
        q < 0.5,
        lambda q: ops.square(ops.cos(0.5 * math.pi * q)),
        lambda q: ops.square(ops.sin(0.5 * math.pi * (1.0 - q))),
        (q, 0.25, 0.75),
    ),
)
