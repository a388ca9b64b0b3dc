"""The continuous distributions whose distribution functions are elementary or of the error function, named as in SciPy."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, cast

from oxigrad._typing import Array
from oxigrad.ops import special
from oxigrad.ops.core import guarded
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core.guarded import branch, log1p_square, log_of, unless, xlogy
from oxigrad.ops.special.composed import log1prel
from oxigrad.ops.stats.distribution import LOG_2_PI, Continuous

_LOG_2, _ROOT_HALF, _TWO_PI = math.log(2.0), math.sqrt(0.5), 2.0 / math.pi

# --- of the normal distribution ----------------------------------------------------------------------------------------

# Below, the series is accurate in float64; above, `erfc` is in float32.
_FAR = -12.0


def _normal_density(z: Array) -> Array:
    return -0.5 * z * z - 0.5 * LOG_2_PI


def _normal(z: Array) -> Array:
    return 0.5 * special.erfc(z * -_ROOT_HALF)


def _log_normal_tail(z: Array) -> Array:
    # Abramowitz and Stegun 26.2.12.
    down, series = -ops.square(1.0 / z), 1.0
    for odd in range(19, 0, -2):
        series = 1.0 + odd * down * series
    return _normal_density(z) - ops.log(-z) + ops.log(series)


def _log_normal(z: Array) -> Array:
    return branch(z < _FAR, _log_normal_tail, lambda z: log_of(_normal(z), _normal(-z)), (z, _FAR, _FAR))


def _log_twice_normal(z: Array) -> Array:
    """``log(2 * _normal(z))`` for negative ``z``."""
    near = lambda z: log_of(special.erfc(z * -_ROOT_HALF), special.erf(z * -_ROOT_HALF))  # noqa: E731
    return branch(z < _FAR, lambda z: _LOG_2 + _log_normal_tail(z), near, (z, _FAR, _FAR))


norm: Continuous = Continuous(
    "norm",
    "",
    _normal_density,
    _normal,
    lambda z: _normal(-z),
    _log_normal,
    lambda z: _log_normal(-z),
    special.ndtri,
    upper_quantile=lambda q: -special.ndtri(q),
)
halfnorm: Continuous = Continuous(
    "halfnorm",
    "",
    lambda z: _normal_density(z) + _LOG_2,
    lambda z: special.erf(z * _ROOT_HALF),
    lambda z: special.erfc(z * _ROOT_HALF),
    log_upper=lambda z: _log_twice_normal(-z),
    quantile=lambda q: math.sqrt(2.0) * special.erfinv(q),
    upper_quantile=lambda q: math.sqrt(2.0) * special.erfcinv(q),
    low=0.0,
    inner=0.5,
)
lognorm: Continuous = Continuous(
    "lognorm",
    "s",
    lambda z, s: _normal_density(ops.log(z) / s) - ops.log(s) - ops.log(z),
    lambda z, s: _normal(ops.log(z) / s),
    lambda z, s: _normal(-ops.log(z) / s),
    lambda z, s: _log_normal(ops.log(z) / s),
    lambda z, s: _log_normal(-ops.log(z) / s),
    lambda q, s: ops.exp(s * special.ndtri(q)),
    upper_quantile=lambda q, s: ops.exp(-s * special.ndtri(q)),
    low=0.0,
    inner=1.0,
    is_open=True,
)
# In both, an argument of the error function that would overflow is cut off far beyond the place where the result is constant.
levy: Continuous = Continuous(
    "levy",
    "",
    lambda z: -0.5 * LOG_2_PI - 1.5 * ops.log(z) - 0.5 / z,
    lambda z: unless(z < 1e-50, 0.0, lambda z: special.erfc(ops.sqrt(0.5 / z)), z, 1.0),
    lambda z: unless(z < 1e-50, 1.0, lambda z: special.erf(ops.sqrt(0.5 / z)), z, 1.0),
    log_lower=lambda z: _log_twice_normal(-1.0 / ops.sqrt(z)),
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
    log_lower=lambda z: unless(z < -1400.0, -math.inf, lambda z: _log_twice_normal(-ops.exp(-0.5 * z)), z, 0.0),
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


# --- by their hazard ---------------------------------------------------------------------------------------------------

# A cumulative hazard above is as good as infinite: exponentials of its negative are zero, with their derivatives.
_SURE = 2e3


def _hazard(
    name: str,
    shapes: str,
    hazard: Callable[..., Any],
    log_hazard: Callable[..., Any],
    log_rate: Callable[..., Any],
    inverse: Callable[..., Any],
    *,
    rate: Callable[..., Any] | None = None,
    low: float = 0.0,
    inner: float = 0.5,
) -> Continuous:
    """A distribution on the numbers above ``low``, by its cumulative hazard ``-log(sf)``, the logarithm of its derivative, and its inverse."""

    def decayed(constant: float, f: Callable[..., Any]) -> Callable[..., Any]:
        """``f`` of the hazard, and the constant that it is where the hazard is as good as infinite."""
        return lambda z, *s: unless(hazard(z, *s) > _SURE, constant, lambda z: f(hazard(z, *s), z, *s), z, inner)

    log_lower = decayed(0.0, lambda h, z, *s: guarded.log1mexp(h, log_hazard(z, *s)))
    return Continuous(
        name,
        shapes,
        lambda z, *s: log_rate(z, *s) - hazard(z, *s),
        decayed(1.0, lambda h, *_: -guarded.expm1_of(-h)),
        decayed(0.0, lambda h, *_: ops.exp(-h)),
        lambda z, *s: branch(
            hazard(z, *s) < 1e-17, lambda z: log_hazard(z, *s), lambda z: log_lower(z, *s), (z, inner, inner)
        ),
        lambda z, *s: -hazard(z, *s),
        lambda q, *s: inverse(-ops.log1p(-q), *s),
        rate and decayed(0.0, lambda h, z, *s: cast(Any, rate)(z, *s) * ops.exp(-h)),
        low=low,
        inner=inner,
        upper_quantile=lambda q, *s: inverse(-ops.log(q), *s),
    )


def _power_hazard(z: Array, c: Array) -> Array:
    """``log1p(z**c)``; the power does not overflow."""
    large = lambda z: c * ops.log(z) + ops.log1p(ops.pow(z, -c))  # noqa: E731
    return branch(z > 1.0, large, lambda z: ops.log1p(ops.pow(z, c)), (z, 2.0, 0.5))


def _log_power_hazard(z: Array, c: Array) -> Array:
    """Its logarithm, which is read where it is small."""
    power = ops.pow(z, c)
    is_plain = ops.logical_or(z > 1.0, power < 1e-17)  # where the correction is of no account
    return c * ops.log(z) + unless(is_plain, 0.0, lambda z: ops.log(log1prel(ops.pow(z, c))), z, 0.5)


def _gompertz_hazard(z: Array, c: Array) -> Array:
    large = lambda z: ops.exp(z + ops.log(c)) - c  # noqa: E731
    return branch(z > 600.0, large, lambda z: c * ops.expm1(z), (z, 601.0, 0.0))


def _log_expm1(z: Array) -> Array:
    large = lambda z: z + ops.log1p(-ops.exp(-z))  # noqa: E731
    return branch(z > 1.0, large, lambda z: ops.log(ops.expm1(z)), (z, 2.0, 0.5))


def _half_logistic_hazard(z: Array) -> Array:
    large = lambda z: z + ops.log1p(ops.exp(-z)) - _LOG_2  # noqa: E731
    return branch(z > 1.0, large, lambda z: ops.log1p(0.5 * ops.expm1(z)), (z, 2.0, 0.5))


expon: Continuous = _hazard("expon", "", lambda z: z, ops.log, lambda z: 0.0 * z, lambda h: h)
rayleigh: Continuous = _hazard(
    "rayleigh",
    "",
    lambda z: 0.5 * z * z,
    lambda z: 2.0 * ops.log(z) - _LOG_2,
    ops.log,
    lambda h: ops.sqrt(2.0 * h),
    rate=lambda z: z,
)
weibull_min: Continuous = _hazard(
    "weibull_min",
    "c",
    ops.pow,
    lambda z, c: c * ops.log(z),
    lambda z, c: ops.log(c) + xlogy(c - 1.0, z),
    lambda h, c: ops.pow(h, 1.0 / c),
    rate=lambda z, c: c * ops.pow(z, c - 1.0),
)
pareto: Continuous = _hazard(
    "pareto",
    "b",
    lambda z, b: b * ops.log(z),
    lambda z, b: ops.log(b) + ops.log(ops.log(z)),
    lambda z, b: ops.log(b) - ops.log(z),
    lambda h, b: ops.exp(h / b),
    low=1.0,
    inner=2.0,
)
lomax: Continuous = _hazard(
    "lomax",
    "c",
    lambda z, c: c * ops.log1p(z),
    lambda z, c: ops.log(c) + ops.log(ops.log1p(z)),
    lambda z, c: ops.log(c) - ops.log1p(z),
    lambda h, c: ops.expm1(h / c),
)
gompertz: Continuous = _hazard(
    "gompertz",
    "c",
    _gompertz_hazard,
    lambda z, c: ops.log(c) + _log_expm1(z),
    lambda z, c: ops.log(c) + z,
    lambda h, c: ops.log1p(h / c),
)
gumbel_l: Continuous = _hazard("gumbel_l", "", ops.exp, lambda z: z, lambda z: z, ops.log, low=-math.inf, inner=0.0)
fisk: Continuous = _hazard(
    "fisk",
    "c",
    _power_hazard,
    _log_power_hazard,
    lambda z, c: ops.log(c) + xlogy(c - 1.0, z) - _power_hazard(z, c),
    lambda h, c: ops.pow(ops.expm1(h), 1.0 / c),
    rate=lambda z, c: branch(
        z > 1.0,
        lambda z: c / (z * (1.0 + ops.pow(z, -c))),
        lambda z: c * ops.pow(z, c - 1.0) / (1.0 + ops.pow(z, c)),
        (z, 2.0, 0.5),
    ),
)
halflogistic: Continuous = _hazard(
    "halflogistic",
    "",
    _half_logistic_hazard,
    lambda z: ops.log(_half_logistic_hazard(z)),
    special.log_expit,
    lambda h: h + ops.log1p(-ops.expm1(-h)),
)


def _mirrored(name: str, base: Continuous) -> Continuous:
    """The distribution of the negative of a number."""

    def negated(f: Any) -> Any:
        return f and (lambda z, *s: f(-z, *s))

    def opposite(f: Any) -> Any:
        return lambda q, *s: -f(q, *s)

    return dataclasses.replace(
        base,
        name=name,
        log_density=negated(base.log_density),
        density=negated(base.density),
        lower=negated(base.upper),
        upper=negated(base.lower),
        log_lower=negated(base.log_upper),
        log_upper=negated(base.log_lower),
        quantile=opposite(base.upper_quantile),
        upper_quantile=opposite(base.quantile),
        low=-base.high,
        high=-base.low,
        inner=-base.inner,
    )


gumbel_r: Continuous = _mirrored("gumbel_r", gumbel_l)
weibull_max: Continuous = _mirrored("weibull_max", weibull_min)


# --- of other shapes ---------------------------------------------------------------------------------------------------


def _symmetric(name: str, log_density: Any, lower: Any, log_lower: Any, quantile: Any) -> Continuous:
    return Continuous(
        name,
        "",
        log_density,
        lower,
        lambda z: lower(-z),
        log_lower,
        lambda z: log_lower(-z),
        quantile,
        upper_quantile=lambda q: -quantile(q),
    )


def _cauchy(z: Array) -> Array:
    far = lambda z: 0.5 + 0.5 * ops.sign(z) - ops.atan(1.0 / z) / math.pi  # noqa: E731
    return branch(ops.abs(z) > 1.0, far, lambda z: 0.5 + ops.atan(z) / math.pi, (z, 2.0, 0.0))


def _cotangent(q: Array) -> Array:
    return 1.0 / ops.tan(math.pi * q)


laplace: Continuous = _symmetric(
    "laplace",
    lambda z: -ops.abs(z) - _LOG_2,
    lambda z: branch(z < 0.0, lambda z: 0.5 * ops.exp(z), lambda z: 1.0 - 0.5 * ops.exp(-z), (z, 0.0, 0.0)),
    lambda z: branch(z < 0.0, lambda z: z - _LOG_2, lambda z: ops.log1p(-0.5 * ops.exp(-z)), (z, 0.0, 0.0)),
    lambda q: branch(q < 0.5, lambda q: ops.log(2.0 * q), lambda q: -ops.log(2.0 - 2.0 * q), (q, 0.5, 0.5)),
)
logistic: Continuous = _symmetric(
    "logistic",
    lambda z: special.log_expit(z) + special.log_expit(-z),
    special.expit,
    special.log_expit,
    special.logit,
)
cauchy: Continuous = _symmetric(
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
