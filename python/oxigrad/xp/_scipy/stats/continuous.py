"""The continuous distributions whose distribution functions are elementary, named as in SciPy."""

import math

from oxigrad import xp as ops
from oxigrad._core import plain
from oxigrad._typing import Array, Function
from oxigrad.xp import special
from oxigrad.xp._scipy import guarded
from oxigrad.xp._scipy.guarded import branch, log1p_square, log_of, xlogy
from oxigrad.xp._scipy.stats.derived import doubled, symmetric
from oxigrad.xp._scipy.stats.distribution import Continuous
from oxigrad.xp._scipy.stats.hazard import weibull_min

__all__ = [
    "cauchy",
    "dweibull",
    "halfcauchy",
    "hypsecant",
    "laplace",
    "logistic",
    "loglaplace",
    "loguniform",
    "powerlaw",
    "reciprocal",
    "triang",
    "truncexpon",
    "uniform",
]

_LOG_2, _TWO_PI = math.log(2.0), 2.0 / math.pi


def _cauchy(z: Array) -> Array:
    far = lambda z: 0.5 + 0.5 * ops.sign(z) - ops.atan(1.0 / z) / math.pi  # noqa: E731
    return branch(ops.abs(z) > 1.0, far, lambda z: 0.5 + ops.atan(z) / math.pi, (z, 2.0, 0.0))


def _cotangent(q: Array) -> Array:
    return 1.0 / ops.tan(math.pi * q)


laplace: Continuous = symmetric(
    "laplace",
    lambda z: -ops.abs(z) - _LOG_2,
    lambda z: branch(z < 0.0, lambda z: 0.5 * ops.exp(z), lambda z: 1.0 - 0.5 * ops.exp(-z), (z, 0.0, 0.0)),
    lambda z: branch(z < 0.0, lambda z: z - _LOG_2, lambda z: ops.log1p(-0.5 * ops.exp(-z)), (z, 0.0, 0.0)),
    lambda q: branch(q < 0.5, lambda q: ops.log(2.0 * q), lambda q: -ops.log(2.0 - 2.0 * q), (q, 0.5, 0.5)),
)
logistic: Continuous = symmetric(
    "logistic",
    lambda z: special.log_expit(z) + special.log_expit(-z),
    special.expit,
    special.log_expit,
    special.logit,
)
cauchy: Continuous = symmetric(
    "cauchy",
    lambda z: -log1p_square(z) - math.log(math.pi),
    _cauchy,
    lambda z: log_of(_cauchy(z), _cauchy(-z)),
    lambda q: branch(
        ops.abs(q - 0.5) < 0.25,
        lambda q: ops.tan(math.pi * (q - 0.5)),
        lambda q: branch(q < 0.5, lambda q: -_cotangent(q), lambda q: _cotangent(1.0 - q), (q, 0.25, 0.75)),
        (q, 0.5, 0.25),
    ),
)
halfcauchy: Continuous = Continuous(
    "halfcauchy",
    "",
    lambda z: math.log(_TWO_PI) - log1p_square(z),
    lambda z: branch(
        z > 1.0, lambda z: 1.0 - _TWO_PI * ops.atan(1.0 / z), lambda z: _TWO_PI * ops.atan(z), (z, 2.0, 0.0)
    ),
    lambda z: branch(
        z > 1.0, lambda z: _TWO_PI * ops.atan(1.0 / z), lambda z: 1.0 - _TWO_PI * ops.atan(z), (z, 2.0, 0.0)
    ),
    quantile=lambda q: branch(
        q < 0.5, lambda q: ops.tan(0.5 * math.pi * q), lambda q: _cotangent(0.5 * (1.0 - q)), (q, 0.25, 0.75)
    ),
    upper_quantile=lambda q: branch(
        q < 0.5, lambda q: _cotangent(0.5 * q), lambda q: ops.tan(0.5 * math.pi * (1.0 - q)), (q, 0.25, 0.75)
    ),
    low=0.0,
    inner=0.5,
)
uniform: Continuous = Continuous(
    "uniform",
    "",
    lambda z: 0.0 * z,
    lambda z: z,
    lambda z: 1.0 - z,
    quantile=lambda q: q,
    low=0.0,
    high=1.0,
    inner=0.5,
)
powerlaw: Continuous = Continuous(
    "powerlaw",
    "a",
    lambda z, a: ops.log(a) + xlogy(a - 1.0, z),
    lambda z, a: ops.pow(z, a),
    lambda z, a: branch(z < 0.5, lambda z: 1.0 - ops.pow(z, a), lambda z: -ops.expm1(a * ops.log(z)), (z, 0.25, 0.75)),
    lambda z, a: a * ops.log(z),
    lambda z, a: branch(
        z < 0.5,
        lambda z: ops.log1p(-ops.pow(z, a)),
        lambda z: guarded.log1mexp(-a * ops.log(z), ops.log(a) + ops.log(-ops.log(z))),
        (z, 0.25, 0.75),
    ),
    quantile=lambda q, a: ops.pow(q, 1.0 / a),
    density=lambda z, a: a * ops.pow(z, a - 1.0),
    low=0.0,
    high=1.0,
    inner=0.5,
)


def _by_side(left: Function, right: Function) -> Function:
    """Evaluates ``left(z, c)`` for ``z < c`` and ``right(z, c)`` for ``z >= c``, with the mode ``c``."""

    def of(z: Array, c: Array) -> Array:
        is_left = ops.logical_or(plain(z) < plain(c), plain(c) == 1.0)
        return branch(is_left, left, right, (z, 0.25, 0.75), (c, 0.5, 0.5))

    return of


def _triangle_isf(q: Array, c: Array) -> Array:
    is_left = ops.logical_or(1.0 - plain(q) < plain(c), plain(c) == 1.0)
    left, right = (lambda q, c: ops.sqrt(c * (1.0 - q))), (lambda q, c: 1.0 - ops.sqrt((1.0 - c) * q))
    return branch(is_left, left, right, (q, 0.75, 0.25), (c, 0.5, 0.5))


triang: Continuous = Continuous(
    "triang",
    "c",
    _by_side(lambda z, c: _LOG_2 + ops.log(z) - ops.log(c), lambda z, c: _LOG_2 + ops.log1p(-z) - ops.log1p(-c)),
    _by_side(lambda z, c: z * z / c, lambda z, c: 1.0 - ops.square(1.0 - z) / (1.0 - c)),
    _by_side(lambda z, c: 1.0 - z * z / c, lambda z, c: ops.square(1.0 - z) / (1.0 - c)),
    _by_side(
        lambda z, c: 2.0 * ops.log(z) - ops.log(c),
        lambda z, c: ops.log1p(-ops.square(1.0 - z) / (1.0 - c)),
    ),
    _by_side(lambda z, c: ops.log1p(-z * z / c), lambda z, c: 2.0 * ops.log1p(-z) - ops.log1p(-c)),
    _by_side(lambda q, c: ops.sqrt(c * q), lambda q, c: 1.0 - ops.sqrt((1.0 - c) * (1.0 - q))),
    _by_side(lambda z, c: 2.0 * z / c, lambda z, c: 2.0 * (1.0 - z) / (1.0 - c)),
    low=0.0,
    high=1.0,
    inner=lambda c: ops.where(c < 0.5, 0.5 + 0.5 * c, 0.5 * c),
    upper_quantile=_triangle_isf,
    is_valid=lambda c: ops.logical_and(c >= 0.0, c <= 1.0),
)


def _log_laplace(z: Array, c: Array) -> Array:
    low = lambda z: xlogy(c - 1.0, z)  # noqa: E731
    high = lambda z: -ops.log(z) - c * ops.abs(ops.log(z))  # noqa: E731
    return ops.log(c) - _LOG_2 + branch(z < 0.5, low, high, (z, 0.25, 2.0))


def _by_size(low: Function, high: Function) -> Function:
    """A function of a number and of ``c``, which differs below one and above."""
    return lambda z, c: branch(z < 1.0, lambda z: low(z, c), lambda z: high(z, c), (z, 0.5, 2.0))


def _by_half(low: Function, high: Function) -> Function:
    """A function of a probability; ``high`` receives the complement if that is less than a half."""
    return lambda q, *s: branch(q < 0.5, lambda q: low(q, *s), lambda q: high(1.0 - q, *s), (q, 0.25, 0.75))


_RISE, _FALL = (lambda q, c, sign=sign: ops.pow(2.0 * q, sign / c) for sign in (1.0, -1.0))
loglaplace: Continuous = Continuous(
    "loglaplace",
    "c",
    _log_laplace,
    _by_size(lambda z, c: 0.5 * ops.pow(z, c), lambda z, c: 1.0 - 0.5 * ops.pow(z, -c)),
    _by_size(lambda z, c: 1.0 - 0.5 * ops.pow(z, c), lambda z, c: 0.5 * ops.pow(z, -c)),
    _by_size(lambda z, c: c * ops.log(z) - _LOG_2, lambda z, c: ops.log1p(-0.5 * ops.pow(z, -c))),
    _by_size(lambda z, c: ops.log1p(-0.5 * ops.pow(z, c)), lambda z, c: -c * ops.log(z) - _LOG_2),
    _by_half(_RISE, _FALL),
    lambda z, c: branch(
        z < 0.5,
        lambda z: 0.5 * c * ops.pow(z, c - 1.0),
        lambda z: ops.exp(_log_laplace(z, c)),
        (z, 0.25, 2.0),
    ),
    low=0.0,
    inner=0.5,
    upper_quantile=_by_half(_FALL, _RISE),
)


def _hypsecant(z: Array) -> Array:
    below = lambda z: _TWO_PI * ops.atan(ops.exp(z))  # noqa: E731
    return branch(z < 0.0, below, lambda z: 1.0 - below(-z), (z, -1.0, 1.0))


hypsecant: Continuous = symmetric(
    "hypsecant",
    lambda z: math.log(_TWO_PI) - ops.logaddexp(z, -z),
    _hypsecant,
    lambda z: branch(
        z < -20.0,
        lambda z: z + math.log(_TWO_PI),
        lambda z: log_of(_hypsecant(z), _hypsecant(-z)),
        (z, -21.0, 0.0),
    ),
    _by_half(
        lambda q: ops.log(ops.tan(0.5 * math.pi * q)),
        lambda q: -ops.log(ops.tan(0.5 * math.pi * q)),
    ),
)


# --- between two numbers ----------------------------------------------------------------------------------------------


def _truncated_sum(b: Array) -> Array:
    return -guarded.expm1_of(-b)


def _log_truncated_tail(z: Array, b: Array) -> Array:
    return guarded.log1mexp(b - z, ops.log(b - z)) - z - guarded.log1mexp(b, ops.log(b))


def _truncated_quantile(q: Array, rest: Array, b: Array) -> Array:
    small = lambda q, _: -ops.log1p(-q * _truncated_sum(b))  # noqa: E731

    def large(q: Array, rest: Array) -> Array:
        share = rest + q * ops.exp(-b)
        at_edge = lambda rest, _: b - ops.sqrt(rest)  # noqa: E731
        return branch(share == 0.0, at_edge, lambda _, share: -ops.log(share), (rest, 1.0, 0.5), (share, 0.5, 0.5))

    return branch(q < 0.5, small, large, (q, 0.25, 0.75), (rest, 0.75, 0.25))


truncexpon: Continuous = Continuous(
    "truncexpon",
    "b",
    lambda z, b: -z - guarded.log1mexp(b, ops.log(b)),
    lambda z, b: _truncated_sum(z) / _truncated_sum(b),
    lambda z, b: ops.exp(-z) * _truncated_sum(b - z) / _truncated_sum(b),
    log_upper=lambda z, b: branch(
        plain(z) < 0.5 * ops.where(plain(b) < 1.0, plain(b), 1.0),
        lambda z: ops.log1p(-_truncated_sum(z) / _truncated_sum(b)),
        lambda z: _log_truncated_tail(z, b),
        (z, 0.0, 0.5 * plain(b)),
    ),
    quantile=lambda q, b: _truncated_quantile(q, 1.0 - q, b),
    low=0.0,
    high=lambda b: b,
    inner=lambda b: 0.5 * b,
    upper_quantile=lambda q, b: _truncated_quantile(1.0 - q, q, b),
)
dweibull: Continuous = doubled("dweibull", weibull_min)


def _log_ratio(x: Array, y: Array) -> Array:
    """``log(x / y)`` of positive numbers, without cancellation if they are near each other."""
    near = lambda x, y: ops.log1p((x - y) / y)  # noqa: E731
    is_near = ops.abs(plain(x) - plain(y)) < 0.5 * plain(y)
    return branch(is_near, near, lambda x, y: ops.log(x) - ops.log(y), (x, 1.0, 2.0), (y, 1.0, 1.0))


def _log_shares(z: Array, a: Array, b: Array) -> tuple[Array, Array]:
    """The probabilities below and above ``z``, with accurate derivatives.

    The larger one is computed as the complement of the smaller one.
    """
    whole = _log_ratio(b, a)
    low, high = _log_ratio(z, a) / whole, -_log_ratio(z, b) / whole
    return guarded.complementary(low, high)


def _log_uniform(name: str) -> Continuous:
    return Continuous(
        name,
        "a b",
        lambda z, a, b: -ops.log(z) - ops.log(_log_ratio(b, a)),
        lambda z, a, b: _log_shares(z, a, b)[0],
        lambda z, a, b: _log_shares(z, a, b)[1],
        quantile=lambda q, a, b: a * ops.exp(q * _log_ratio(b, a)),
        upper_quantile=lambda q, a, b: b * ops.exp(-q * _log_ratio(b, a)),
        low=lambda a, b: a,
        high=lambda a, b: b,
        inner=lambda a, b: ops.sqrt(a) * ops.sqrt(b),
        is_valid=lambda a, b: ops.logical_and(a > 0.0, b > a),
    )


loguniform: Continuous = _log_uniform("loguniform")
reciprocal: Continuous = _log_uniform("reciprocal")
