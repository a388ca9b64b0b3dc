"""Continuous distributions by integrals without a closed form, named as in SciPy.

An integral goes from the point into the smaller tail, until the integrand falls to exp(-40), by the Gauss-Legendre
rule. Its terms are positive and relative to the density at the point. Tails therefore keep their digits, and so do
their logarithms where the tails underflow.
"""

import math
from collections.abc import Callable
from typing import Any

from oxigrad import xp as ops
from oxigrad._core import plain
from oxigrad._typing import Array, Function
from oxigrad.ops.backends import without_variables
from oxigrad.xp import special
from oxigrad.xp._scipy import guarded
from oxigrad.xp._scipy.guarded import branch, unless
from oxigrad.xp._scipy.stats.distribution import LOG_2_PI, Continuous
from oxigrad.xp._scipy.stats.integrals import integral
from oxigrad.xp._scipy.stats.inverses import quantile
from oxigrad.xp._scipy.stats.normal import log_density, log_lower, log_twice

__all__ = ["invgauss", "rice", "skewnorm", "vonmises"]

_LOG_2, _NODES, _FALL = math.log(2.0), 40, 40.0
_TINY, _HUGE = 1e-300, 1e300


def _mills(x: Array) -> Array:
    """Mills' ratio of the normal distribution, ``ndtr(-x)`` by the density."""
    return math.sqrt(0.5 * math.pi) * special.erfcx(x * math.sqrt(0.5))


def _reach(slope: Array, curvature: Array = 1.0) -> Array:
    """The width in which ``exp(-curvature * (slope * u + u**2 / 2))`` is above exp(-40), as a plain value."""
    slope, level = without_variables(slope), 2.0 * _FALL / without_variables(curvature)
    return level / (slope + ops.sqrt(slope * slope + level))


def _complement(log_p: Array) -> Array:
    return guarded.log1mexp(-log_p, ops.log(-log_p))


def _inverse(
    distribution: str, density: Function, lower: Function, upper: Function, bounds: Function
) -> dict[str, Any]:
    """The quantiles by the logarithms of the density and of both distribution functions."""
    of = quantile(f"stats.{distribution}.ppf", density, lower, upper, bounds)
    return {"quantile": lambda q, *s: of(q, 1.0 - q, *s), "upper_quantile": lambda q, *s: of(1.0 - q, q, *s)}


def _log_rest(log_tail: Function) -> Function:
    return lambda *args: ops.log1p(-ops.exp(log_tail(*args)))


def _rest(share: Function) -> Function:
    return lambda *args: 1.0 - share(*args)


# --- skew normal ------------------------------------------------------------------------------------------------------


def _log_least_tail(w: Array, a: Array) -> Array:
    """The logarithm of the probability of less than ``-w``, for ``w`` and ``a`` of at least zero."""
    precision = 1.0 + a * a
    reach = _reach(w, precision)

    def relative(share: Array) -> Array:
        u = reach * share
        return ops.exp(-precision * u * (w + 0.5 * u)) * _mills(a * (w + u))

    peak = _LOG_2 - LOG_2_PI - 0.5 * w * w - 0.5 * ops.square(a * w)
    return peak + ops.log(reach) + ops.log(integral(relative, _NODES, w, a))


def _skewed(below: Function, above: Function) -> Function:
    """A function of ``z`` and the skewness ``a``: ``below(-z, a)`` for negative ``z``, else ``above(z, -a)``."""
    return lambda z, a: branch(
        z < 0.0, lambda z, a: below(-z, a), lambda z, a: above(z, -a), (z, -1.0, 1.0), (a, 1.0, 1.0)
    )


def _by_direction(same: Function, other: Function) -> Function:
    return lambda w, b: branch(b >= 0.0, same, lambda w, b: other(w, -b), (w, 1.0, 1.0), (b, 1.0, -1.0))


def _least_tail(w: Array, a: Array) -> Array:
    return ops.exp(_log_least_tail(w, a))


def _log_most_tail(w: Array, a: Array) -> Array:
    # Both tails together are the tails of the normal distribution.
    both = log_twice(-w)
    return both + ops.log1p(-ops.exp(_log_least_tail(w, a) - both))


def _beside_most(w: Array, a: Array) -> Array:
    return special.erf(w * math.sqrt(0.5)) + _least_tail(w, a)


_log_skew_lower = _skewed(
    _by_direction(_log_least_tail, _log_most_tail),
    _by_direction(
        lambda w, a: ops.log1p(-_least_tail(w, a)),
        lambda w, a: guarded.log_of(_beside_most(w, a), ops.exp(_log_most_tail(w, a))),
    ),
)
_skew_lower = _skewed(
    _by_direction(_least_tail, lambda w, a: ops.exp(_log_most_tail(w, a))),
    _by_direction(lambda w, a: 1.0 - _least_tail(w, a), _beside_most),
)


def _log_skew_density(z: Array, a: Array) -> Array:
    return _LOG_2 + log_density(z) + log_lower(a * z)


def _log_skew_upper(z: Array, a: Array) -> Array:
    return _log_skew_lower(-z, -a)


skewnorm: Continuous = Continuous(
    "skewnorm",
    "a",
    _log_skew_density,
    _skew_lower,
    lambda z, a: _skew_lower(-z, -a),
    _log_skew_lower,
    _log_skew_upper,
    is_valid=lambda a: ops.abs(a) < math.inf,
    **_inverse("skewnorm", _log_skew_density, _log_skew_lower, _log_skew_upper, lambda a: (-_HUGE, _HUGE, 0.0)),
)


# --- inverse Gaussian -------------------------------------------------------------------------------------------------

# Uses Mills' ratios of ``(z - mu) / (mu * sqrt(z))``, a normal number, and of ``(z + mu) / (mu * sqrt(z))`` (Chhikara
# and Folks 1974).


def _normal_of(z: Array, mu: Array) -> Array:
    is_near = ops.logical_and(plain(z) > 0.5 * plain(mu), plain(z) < 2.0 * plain(mu))
    near = lambda z, mu: (z - mu) / ops.sqrt(z) / mu  # noqa: E731
    return branch(is_near, near, lambda z, mu: ops.sqrt(z) / mu - 1.0 / ops.sqrt(z), (z, 1.0, 1.0), (mu, 1.0, 2.0))


def _log_sum_of_tails(z: Array, mu: Array) -> Array:
    """The logarithm of the probability of less than ``z`` below the mean."""
    below = -_normal_of(z, mu)
    return log_density(below) + ops.log(_mills(below) + _mills(below + 2.0 * ops.sqrt(z) / mu))


def _log_difference_of_tails(z: Array, mu: Array) -> Array:
    """The logarithm of the probability of more than ``z`` above the mean."""
    above, apart = _normal_of(z, mu), 2.0 / ops.sqrt(z)
    reach = _reach(above)

    def near(above: Array, apart: Array) -> Array:
        def relative(share: Array) -> Array:
            u = reach * share
            return -guarded.expm1_of(-apart * u) * ops.exp(-u * (above + 0.5 * u))

        return ops.log(reach) + ops.log(integral(relative, _NODES, above, apart))

    far = lambda above, apart: ops.log(_mills(above) - _mills(above + apart))  # noqa: E731
    is_near = plain(apart) < ops.where(plain(above) > 1.0, plain(above), 1.0)
    return log_density(above) + branch(is_near, near, far, (above, 1.0, 1.0), (apart, 0.5, 2.0))


_SURE = 2e3


def _by_mean(low: Function, high: Function) -> Function:
    return lambda z, mu: branch(
        z < mu, lambda z: low(z, mu), lambda z: high(z, mu), (z, 0.5 * plain(mu), 2.0 * plain(mu))
    )


_log_gauss_lower = _by_mean(_log_sum_of_tails, _log_rest(_log_difference_of_tails))
_log_gauss_upper = _by_mean(_log_rest(_log_sum_of_tails), _log_difference_of_tails)


def _log_gauss_density(z: Array, mu: Array) -> Array:
    return log_density(_normal_of(z, mu)) - 1.5 * ops.log(z)


def _sure(log_p: Function) -> Function:
    """The probability by its logarithm; zero, with its derivatives, if it is far below the range of floats."""

    def of(z: Array, mu: Array) -> Array:
        is_zero = log_p(plain(z), plain(mu)) < -_SURE
        return unless(is_zero, 0.0, lambda z: ops.exp(log_p(z, mu)), z, plain(mu))

    return of


_below_mean, _above_mean = _sure(_log_sum_of_tails), _sure(_log_difference_of_tails)
invgauss: Continuous = Continuous(
    "invgauss",
    "mu",
    _log_gauss_density,
    _by_mean(_below_mean, _rest(_above_mean)),
    _by_mean(_rest(_below_mean), _above_mean),
    _log_gauss_lower,
    _log_gauss_upper,
    low=0.0,
    inner=lambda mu: mu,
    is_open=True,
    **_inverse("invgauss", _log_gauss_density, _log_gauss_lower, _log_gauss_upper, lambda mu: (_TINY, _HUGE, mu)),
)


# --- by the modified Bessel function of order zero --------------------------------------------------------------------


def _scaled_i0(x: Array) -> Array:
    """``exp(-x) * i0(x)`` for ``x`` of at least zero, with the derivative at zero that `special.i0e` has not."""
    return branch(x < 1.0, lambda x: ops.exp(-x) * special.i0(x), special.i0e, (x, 0.0, 2.0))


# Below the mean, or below about the median of Rayleigh's distribution, the lower tail is integrated.
_MEDIAN = 1.2


def _rice_lower_tail(z: Array, b: Array) -> tuple[Array, Array, Array]:
    """Three factors of the lower tail of the Rice distribution.

    The logarithm of the probability at ``z`` relative to the noncentrality; the reach below ``z``; the mean of the
    density by ``z``.
    """
    apart = b - z
    far = _reach(ops.where(plain(apart) > 0.0, plain(apart), 0.0))
    is_whole = plain(z) < far
    reach = ops.where(is_whole, z, far)
    part = ops.where(is_whole, 1.0, far / ops.where(is_whole, 1.0, z))

    def relative(share: Array) -> Array:
        u = reach * share
        return (1.0 - part * share) * _scaled_i0(b * (z - u)) * ops.exp(-u * (apart + 0.5 * u))

    return -0.5 * apart * apart, reach, integral(relative, _NODES, z, b)


def _log_rice_lower_tail(z: Array, b: Array) -> Array:
    peak, reach, mean = _rice_lower_tail(z, b)
    return peak + ops.log(z) + ops.log(reach) + ops.log(mean)


def _share_of_rice(z: Array, b: Array) -> Array:
    peak, reach, mean = _rice_lower_tail(z, b)
    return ops.exp(peak) * z * reach * mean


def _log_rice_upper_tail(z: Array, b: Array) -> Array:
    apart = z - b
    reach = _reach(apart)

    def relative(share: Array) -> Array:
        u = reach * share
        return (z + u) * _scaled_i0(b * (z + u)) * ops.exp(-u * (apart + 0.5 * u))

    return -0.5 * apart * apart + ops.log(reach) + ops.log(integral(relative, _NODES, z, b))


def _rice_by_side(low: Function, high: Function) -> Function:
    def of(z: Array, b: Array) -> Array:
        edge = ops.where(plain(b) > _MEDIAN, plain(b), _MEDIAN)
        return branch(z < edge, lambda z: low(z, b), lambda z: high(z, b), (z, 0.5 * edge, 2.0 * edge))

    return of


def _rice_rest(z: Array, b: Array) -> Array:
    """The density divided by ``z``."""
    return ops.exp(-0.5 * ops.square(z - b)) * _scaled_i0(b * z)


def _log_rice_density(z: Array, b: Array) -> Array:
    return ops.log(z) - 0.5 * ops.square(z - b) + ops.log(_scaled_i0(b * z))


def _share_beyond_rice(z: Array, b: Array) -> Array:
    return ops.exp(_log_rice_upper_tail(z, b))


_log_rice_lower = _rice_by_side(_log_rice_lower_tail, _log_rest(_log_rice_upper_tail))
_log_rice_upper = _rice_by_side(lambda z, b: ops.log1p(-_share_of_rice(z, b)), _log_rice_upper_tail)


def _with_edge(inverse: Function, edge: float, root: Callable[[Array], Array]) -> Function:
    """An inverse with the infinite derivative of ``root`` at the ``edge``, where the value is zero."""
    return lambda q, b: branch(q == edge, root, lambda q: inverse(q, b), (q, 0.5, 0.5))


_of_rice = _inverse("rice", _log_rice_density, _log_rice_lower, _log_rice_upper, lambda b: (_TINY, _HUGE, b + 1.0))
rice: Continuous = Continuous(
    "rice",
    "b",
    _log_rice_density,
    _rice_by_side(_share_of_rice, _rest(_share_beyond_rice)),
    _rice_by_side(_rest(_share_of_rice), _share_beyond_rice),
    _log_rice_lower,
    _log_rice_upper,
    density=lambda z, b: z * _rice_rest(z, b),
    low=0.0,
    inner=lambda b: b + 1.0,
    is_valid=lambda b: ops.logical_and(b >= 0.0, b < math.inf),
    quantile=_with_edge(_of_rice["quantile"], 0.0, ops.sqrt),
    upper_quantile=_with_edge(_of_rice["upper_quantile"], 1.0, lambda q: ops.sqrt(1.0 - q)),
)


# --- von Mises --------------------------------------------------------------------------------------------------------


def _circle_tail(z: Array, kappa: Array) -> tuple[Array, Array]:
    """The reach and the mean of the tail of the von Mises distribution from ``z >= 0``.

    The reach goes to pi, or to where the density is negligible. The mean is the density's, relative to the density at
    ``z``.
    """
    height = ops.square(ops.sin(0.5 * plain(z)))
    top = height + 0.5 * _FALL / ops.where(plain(kappa) > 1.0, plain(kappa), 1.0)
    reach = 2.0 * ops.asin(ops.sqrt(ops.where(top < 1.0, top, 1.0))) - z

    def relative(share: Array) -> Array:
        u = reach * share
        return ops.exp(-2.0 * kappa * ops.sin(z + 0.5 * u) * ops.sin(0.5 * u))

    return reach, integral(relative, _NODES, z, kappa)


def _log_circle_tail(z: Array, kappa: Array) -> Array:
    reach, mean = _circle_tail(z, kappa)
    return _log_circle_density(z, kappa) + ops.log(reach) + ops.log(mean)


def _share_of_circle(z: Array, kappa: Array) -> Array:
    reach, mean = _circle_tail(z, kappa)
    return ops.exp(_log_circle_density(z, kappa)) * reach * mean


def _log_circle_density(z: Array, kappa: Array) -> Array:
    return -2.0 * kappa * ops.square(ops.sin(0.5 * z)) - LOG_2_PI - ops.log(_scaled_i0(kappa))


def _turns(z: Array) -> Array:
    return ops.round(plain(z) / (2.0 * math.pi))


def _circle(z: Array, kappa: Array) -> Array:
    """The distribution function, to which each turn adds one."""
    turns = _turns(z)
    around = z - 2.0 * math.pi * turns
    above = lambda z: 1.0 - _share_of_circle(z, kappa)  # noqa: E731
    share = branch(around < 0.0, lambda z: _share_of_circle(-z, kappa), above, (around, -1.0, 1.0))
    return ops.where(turns == 0.0, share, share + turns)


def _log_circle(z: Array, kappa: Array) -> Array:
    """The logarithm of the distribution function, or NaN if that is negative."""
    inside = lambda z: branch(  # noqa: E731
        z < 0.0, lambda z: _log_circle_tail(-z, kappa), lambda z: ops.log1p(-_share_of_circle(z, kappa)), (z, -1.0, 1.0)
    )
    return branch(ops.abs(z) < math.pi, inside, lambda z: ops.log(_circle(z, kappa)), (z, 1.0, 4.0))


# Less by two units in the last place, as the tail from pi on has no logarithm.
_NEARLY_PI = math.pi - 2.0**-50
_of_circle = _inverse(
    "vonmises",
    _log_circle_density,
    _log_circle,
    lambda z, kappa: _log_circle(-z, kappa),
    lambda kappa: (-_NEARLY_PI, _NEARLY_PI, 0.0),
)
vonmises: Continuous = Continuous(
    "vonmises",
    "kappa",
    _log_circle_density,
    _circle,
    lambda z, kappa: _circle(-z, kappa),
    _log_circle,
    lambda z, kappa: _log_circle(-z, kappa),
    is_valid=lambda kappa: ops.logical_and(kappa >= 0.0, kappa < math.inf),
    **_of_circle,
)
