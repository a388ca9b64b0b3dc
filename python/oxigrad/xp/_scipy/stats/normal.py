"""The distributions whose distribution functions are of the error function, named as in SciPy."""

import math
from typing import Any

from oxigrad import xp as ops
from oxigrad._core import plain
from oxigrad._typing import Array, Function
from oxigrad.xp import special
from oxigrad.xp._scipy import guarded
from oxigrad.xp._scipy.guarded import array_beside, branch, log1p_square, log_of, unless
from oxigrad.xp._scipy.stats.derived import symmetric
from oxigrad.xp._scipy.stats.distribution import LOG_2_PI, Continuous
from oxigrad.xp._scipy.stats.integrals import integral

__all__ = ["fatiguelife", "halfnorm", "johnsonsb", "johnsonsu", "levy", "lognorm", "moyal", "norm", "truncnorm"]

_LOG_2, _ROOT_HALF, _TWO_PI = math.log(2.0), math.sqrt(0.5), 2.0 / math.pi

# Below, the series is accurate in float64; above, `erfc` is in float32.
_FAR = -12.0


def log_density(z: Array) -> Array:
    """The logarithm of the normal density."""
    return -0.5 * z * z - 0.5 * LOG_2_PI


def lower(z: Array) -> Array:
    """The normal distribution function."""
    return 0.5 * special.erfc(z * -_ROOT_HALF)


def _log_tail(z: Array) -> Array:
    # Abramowitz and Stegun 26.2.12.
    down, series = -ops.square(1.0 / z), 1.0
    for odd in range(19, 0, -2):
        series = 1.0 + odd * down * series
    return log_density(z) - ops.log(-z) + ops.log(series)


def log_lower(z: Array) -> Array:
    """Its logarithm."""
    return branch(z < _FAR, _log_tail, lambda z: log_of(lower(z), lower(-z)), (z, _FAR, _FAR))


def log_twice(z: Array) -> Array:
    """``log(2 * lower(z))`` for negative ``z``."""
    near = lambda z: log_of(special.erfc(z * -_ROOT_HALF), special.erf(z * -_ROOT_HALF))  # noqa: E731
    return branch(z < _FAR, lambda z: _LOG_2 + _log_tail(z), near, (z, _FAR, _FAR))


norm: Continuous = symmetric("norm", log_density, lower, log_lower, special.ndtri)
halfnorm: Continuous = Continuous(
    "halfnorm",
    "",
    lambda z: log_density(z) + _LOG_2,
    lambda z: special.erf(z * _ROOT_HALF),
    lambda z: special.erfc(z * _ROOT_HALF),
    log_upper=lambda z: log_twice(-z),
    quantile=lambda q: math.sqrt(2.0) * special.erfinv(q),
    upper_quantile=lambda q: math.sqrt(2.0) * special.erfcinv(q),
    low=0.0,
    inner=0.5,
)
# In both, an argument of the error function that would overflow is cut off far beyond the point where the result is
# constant.
levy: Continuous = Continuous(
    "levy",
    "",
    lambda z: -0.5 * LOG_2_PI - 1.5 * ops.log(z) - 0.5 / z,
    lambda z: unless(z < 1e-50, 0.0, lambda z: special.erfc(ops.sqrt(0.5 / z)), z, 1.0),
    lambda z: unless(z < 1e-50, 1.0, lambda z: special.erf(ops.sqrt(0.5 / z)), z, 1.0),
    log_lower=lambda z: log_twice(-1.0 / ops.sqrt(z)),
    quantile=lambda q: 0.5 / ops.square(special.erfcinv(q)),
    upper_quantile=lambda q: 0.5 / ops.square(special.erfinv(q)),
    low=0.0,
    inner=1.0,
    is_open=True,
)
moyal: Continuous = Continuous(
    "moyal",
    "",
    lambda z: -0.5 * (z + ops.exp(-z) + LOG_2_PI),
    lambda z: unless(z < -20.0, 0.0, lambda z: special.erfc(ops.exp(-0.5 * z) * _ROOT_HALF), z, 0.0),
    lambda z: unless(z < -20.0, 1.0, lambda z: special.erf(ops.exp(-0.5 * z) * _ROOT_HALF), z, 0.0),
    log_lower=lambda z: unless(z < -1400.0, -math.inf, lambda z: log_twice(-ops.exp(-0.5 * z)), z, 0.0),
    log_upper=lambda z: branch(
        z > 40.0,
        lambda z: 0.5 * (math.log(_TWO_PI) - z),
        lambda z: unless(
            z < -20.0,
            0.0,
            lambda z: log_of(*(of(ops.exp(-0.5 * z) * _ROOT_HALF) for of in (special.erf, special.erfc))),
            z,
            0.0,
        ),
        (z, 41.0, 0.0),
    ),
    quantile=lambda q: -_LOG_2 - 2.0 * ops.log(special.erfcinv(q)),
    upper_quantile=lambda q: -_LOG_2 - 2.0 * ops.log(special.erfinv(q)),
)


# --- by a function with a normal distribution ------------------------------------------------------------------------


def _of_normal(
    name: str,
    shapes: str,
    to: Function,
    log_slope: Function,
    back: Function,
    **edges: Any,
) -> Continuous:
    """A distribution by the normal number ``to(z, *shapes)``, the logarithm of its derivative, and its inverse."""
    return Continuous(
        name,
        shapes,
        lambda z, *s: log_density(to(z, *s)) + log_slope(z, *s),
        lambda z, *s: lower(to(z, *s)),
        lambda z, *s: lower(-to(z, *s)),
        lambda z, *s: log_lower(to(z, *s)),
        lambda z, *s: log_lower(-to(z, *s)),
        lambda q, *s: back(special.ndtri(q), *s),
        upper_quantile=lambda q, *s: back(-special.ndtri(q), *s),
        **edges,
    )


def _is_johnson(a: Array, b: Array) -> Array:
    return ops.logical_and(ops.abs(a) < math.inf, ops.logical_and(b > 0.0, b < math.inf))


def _birnbaum_saunders(n: Array, c: Array) -> Array:
    half = 0.5 * c * n
    root = lambda half: half + ops.sqrt(half * half + 1.0)  # noqa: E731
    return branch(half < 0.0, lambda h: 1.0 / ops.square(root(-h)), lambda h: ops.square(root(h)), (half, -1.0, 1.0))


lognorm: Continuous = _of_normal(
    "lognorm",
    "s",
    lambda z, s: ops.log(z) / s,
    lambda z, s: -ops.log(s) - ops.log(z),
    lambda n, s: ops.exp(s * n),
    low=0.0,
    inner=1.0,
    is_open=True,
)
johnsonsu: Continuous = _of_normal(
    "johnsonsu",
    "a b",
    lambda z, a, b: a + b * ops.asinh(z),
    lambda z, _, b: ops.log(b) - 0.5 * log1p_square(z),
    lambda n, a, b: ops.sinh((n - a) / b),
    is_valid=_is_johnson,
)
johnsonsb: Continuous = _of_normal(
    "johnsonsb",
    "a b",
    lambda z, a, b: a + b * special.logit(z),
    lambda z, _, b: ops.log(b) - ops.log(z) - ops.log1p(-z),
    lambda n, a, b: special.expit((n - a) / b),
    low=0.0,
    high=1.0,
    inner=0.5,
    is_open=True,
    is_open_above=True,
    is_valid=_is_johnson,
)
fatiguelife: Continuous = _of_normal(
    "fatiguelife",
    "c",
    lambda z, c: (ops.sqrt(z) - 1.0 / ops.sqrt(z)) / c,
    lambda z, c: ops.log1p(z) - 1.5 * ops.log(z) - _LOG_2 - ops.log(c),
    _birnbaum_saunders,
    low=0.0,
    inner=1.0,
    is_open=True,
)


# --- the normal distribution between two numbers ----------------------------------------------------------------------

# A number below is as good as minus infinity.
_LOWEST = -1e100


def _is_narrow(a: Array, b: Array) -> Array:
    """Whether the density varies so little from ``a`` to ``b`` that probabilities of the tails would cancel."""
    half = 0.5 * (plain(b) - plain(a))
    return ops.logical_and(half < 1.0, half * ops.abs(plain(a) + half) < 1.0)


def _narrow(a: Array, b: Array) -> tuple[Array, Array, Array]:
    """The logarithm of the density at the midpoint, ``b - a``, and the mean density relative to the midpoint's."""
    half = 0.5 * (b - a)
    middle = a + half
    relative = lambda u: ops.exp(-(2.0 * u - 1.0) * half * (middle + (u - 0.5) * half))  # noqa: E731
    return log_density(middle), b - a, integral(relative, 14, a, b)


def _log_wide(a: Array, b: Array) -> Array:
    """The logarithm of the probability between ``a`` and ``b``, far from each other."""
    is_right = a > 0.0
    low, high = ops.where(is_right, -b, a), ops.where(is_right, -a, b)
    low = ops.where(low < _LOWEST, _LOWEST, low)

    def tails(low: Array, high: Array) -> Array:
        apart = log_lower(high) - log_lower(low)
        return log_lower(high) + guarded.log1mexp(apart, ops.log(apart))

    around = lambda low, high: ops.log1p(-lower(low) - lower(-high))  # noqa: E731
    return branch(high > 0.0, around, tails, (low, -1.0, -2.0), (high, 1.0, -1.0))


def _log_between(a: Array, b: Array) -> Array:
    """The logarithm of the probability between ``a`` and ``b``."""

    def narrow(a: Array, b: Array) -> Array:
        at, width, mean = _narrow(a, b)
        return at + ops.log(width) + ops.log(mean)

    return branch(_is_narrow(a, b), narrow, _log_wide, (a, 0.0, -1.0), (b, 1.0, 1.0))


def _share(start: Array, end: Array, a: Array, b: Array) -> Array:
    """The probability from ``start`` to ``end`` in units of that from ``a`` to ``b``."""
    whole = _log_between(a, b)

    def narrow(start: Array, end: Array) -> Array:
        at, width, mean = _narrow(start, end)
        return ops.exp(at - whole) * width * mean

    wide = lambda start, end: ops.exp(_log_wide(start, end) - whole)  # noqa: E731
    inner = _between(plain(a), plain(b))
    return branch(_is_narrow(start, end), narrow, wide, (start, inner, -1.0), (end, inner, 1.0))


def _log_share(start: Array, end: Array, rest: Array, a: Array, b: Array) -> Array:
    """The logarithm of `_share`, whose complement is ``rest``."""
    far = lambda _, start, end: _log_between(start, end) - _log_between(a, b)  # noqa: E731
    edges = (start, plain(a), plain(a)), (end, plain(b), plain(b))
    return branch(plain(rest) < 0.5, lambda rest, *_: ops.log1p(-rest), far, (rest, 0.25, 0.75), *edges)


def _truncated_quantile(q: Array, rest: Array, a: Array, b: Array) -> Array:
    def left(q: Array, rest: Array, a: Array, b: Array) -> Array:
        a = ops.where(a < _LOWEST, _LOWEST, a)
        share = q + rest * ops.exp(log_lower(a) - log_lower(b))
        at_edge = lambda q, _: a + ops.sqrt(q)  # noqa: E731
        inside = lambda _, share: special.ndtri_exp(log_lower(b) + ops.log(share))  # noqa: E731
        return branch(share == 0.0, at_edge, inside, (q, 1.0, 1.0), (share, 0.5, 0.5))

    bare = tuple(map(plain, (q, rest, a, b)))
    is_left = bare[1] * lower(bare[2]) + bare[0] * lower(bare[3]) < 0.5
    a, b = array_beside(a, q, b), array_beside(b, q, a)
    a, b = (ops.where(is_left, a, -b), ops.where(is_left, b, -a))
    x = left(ops.where(is_left, q, rest), ops.where(is_left, rest, q), a, b)
    return ops.where(is_left, x, -x)


def _between(a: Array, b: Array) -> Array:
    """A number from ``a`` to ``b``."""
    low, high = (ops.where(ops.abs(edge) == math.inf, ops.where(ops.abs(other) == math.inf, 0.0, other + by), edge)
                 for edge, other, by in ((a, b, -2.0), (b, a, 2.0)))  # fmt: skip
    return 0.5 * low + 0.5 * high


truncnorm: Continuous = Continuous(
    "truncnorm",
    "a b",
    lambda z, a, b: log_density(z) - _log_between(a, b),
    lambda z, a, b: _share(a, z, a, b),
    lambda z, a, b: _share(z, b, a, b),
    lambda z, a, b: _log_share(a, z, _share(z, b, a, b), a, b),
    lambda z, a, b: _log_share(z, b, _share(a, z, a, b), a, b),
    lambda q, a, b: _truncated_quantile(q, 1.0 - q, a, b),
    upper_quantile=lambda q, a, b: _truncated_quantile(1.0 - q, q, a, b),
    low=lambda a, b: a,
    high=lambda a, b: b,
    inner=_between,
    is_valid=lambda a, b: a < b,
)
