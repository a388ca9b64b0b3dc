"""The distributions by their cumulative hazard, the negative logarithm of the survival function, named as in SciPy."""

import dataclasses
import math
from typing import Any, cast

from oxigrad import xp as ops
from oxigrad._typing import Array, Function
from oxigrad.xp import special
from oxigrad.xp._scipy import guarded
from oxigrad.xp._scipy.guarded import branch, unless, xlogy
from oxigrad.xp._scipy.special.composed import log1prel
from oxigrad.xp._scipy.stats.derived import mirrored, with_shapes
from oxigrad.xp._scipy.stats.distribution import Continuous, Edge, at

__all__ = [
    "burr12",
    "expon",
    "fisk",
    "genextreme",
    "genlogistic",
    "genpareto",
    "gompertz",
    "gumbel_l",
    "gumbel_r",
    "halflogistic",
    "lomax",
    "pareto",
    "rayleigh",
    "weibull_max",
    "weibull_min",
]

_LOG_2 = math.log(2.0)

# A cumulative hazard above is as good as infinite: exponentials of its negative are zero, with their derivatives.
_SURE = 2e3


def _hazard(
    name: str,
    shapes: str,
    hazard: Function,
    log_hazard: Function,
    log_rate: Function,
    inverse: Function,
    *,
    rate: Function | None = None,
    low: float = 0.0,
    inner: Edge = 0.5,
    **edges: Any,
) -> Continuous:
    """A distribution on the numbers above ``low``, defined by its cumulative hazard ``-log(sf)``.

    The logarithm of the hazard's derivative and the inverse of the hazard are passed too.
    """

    def decayed(constant: float, f: Function) -> Function:
        """``f`` of the hazard, and the constant that it is where the hazard is as good as infinite."""
        return lambda z, *s: unless(hazard(z, *s) > _SURE, constant, lambda z: f(hazard(z, *s), z, *s), z, inside(s))

    inside = lambda s: at(inner, s)  # noqa: E731
    log_lower = decayed(0.0, lambda h, z, *s: guarded.log1mexp(h, log_hazard(z, *s)))
    return Continuous(
        name,
        shapes,
        lambda z, *s: log_rate(z, *s) - hazard(z, *s),
        decayed(1.0, lambda h, *_: -guarded.expm1_of(-h)),
        decayed(0.0, lambda h, *_: ops.exp(-h)),
        lambda z, *s: branch(
            hazard(z, *s) < 1e-17, lambda z: log_hazard(z, *s), lambda z: log_lower(z, *s), (z, inside(s), inside(s))
        ),
        lambda z, *s: -hazard(z, *s),
        lambda q, *s: inverse(-ops.log1p(-q), *s),
        rate and decayed(0.0, lambda h, z, *s: cast(Any, rate)(z, *s) * ops.exp(-h)),
        low=low,
        inner=inner,
        upper_quantile=lambda q, *s: inverse(-ops.log(q), *s),
        **edges,
    )


def _power_hazard(z: Array, c: Array) -> Array:
    """``log1p(z**c)``; the power does not overflow."""
    large = lambda z: c * ops.log(z) + ops.log1p(ops.pow(z, -c))  # noqa: E731
    return branch(z > 1.0, large, lambda z: ops.log1p(ops.pow(z, c)), (z, 2.0, 0.5))


def _log_power_hazard(z: Array, c: Array) -> Array:
    """Its logarithm."""

    def small(z: Array) -> Array:
        is_plain = ops.pow(z, c) < 1e-17  # where the correction is of no account
        return c * ops.log(z) + unless(is_plain, 0.0, lambda z: ops.log(log1prel(ops.pow(z, c))), z, 0.5)

    return branch(z > 1.0, lambda z: ops.log(_power_hazard(z, c)), small, (z, 2.0, 0.5))


def _gompertz_hazard(z: Array, c: Array) -> Array:
    large = lambda z: ops.exp(z + ops.log(c)) - c  # noqa: E731
    return branch(z > 80.0, large, lambda z: c * ops.expm1(z), (z, 81.0, 0.0))


def _log_expm1(z: Array) -> Array:
    large = lambda z: z + ops.log1p(-ops.exp(-z))  # noqa: E731
    return branch(z > 1.0, large, lambda z: ops.log(ops.expm1(z)), (z, 2.0, 0.5))


def _log_softplus(z: Array) -> Array:
    small = lambda z: z - 0.5 * ops.exp(z)  # noqa: E731
    return branch(z < -37.0, small, lambda z: ops.log(ops.logaddexp(0.0, z)), (z, -40.0, 0.0))


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
burr12: Continuous = _hazard(
    "burr12",
    "c d",
    lambda z, c, d: d * _power_hazard(z, c),
    lambda z, c, d: ops.log(d) + _log_power_hazard(z, c),
    lambda z, c, d: ops.log(c) + ops.log(d) + xlogy(c - 1.0, z) - _power_hazard(z, c),
    lambda h, c, d: ops.pow(ops.expm1(h / d), 1.0 / c),
    rate=lambda z, c, d: (
        d
        * branch(
            z > 1.0,
            lambda z: c / (z * (1.0 + ops.pow(z, -c))),
            lambda z: c * ops.pow(z, c - 1.0) / (1.0 + ops.pow(z, c)),
            (z, 2.0, 0.5),
        )
    ),
)
fisk: Continuous = with_shapes("fisk", "c", burr12, lambda c: (c, 1.0))
halflogistic: Continuous = _hazard(
    "halflogistic",
    "",
    _half_logistic_hazard,
    lambda z: ops.log(_half_logistic_hazard(z)),
    special.log_expit,
    lambda h: h + ops.log1p(-ops.expm1(-h)),
)


gumbel_r: Continuous = mirrored("gumbel_r", gumbel_l)
weibull_max: Continuous = mirrored("weibull_max", weibull_min)


# --- of extremes, and beyond a threshold ------------------------------------------------------------------------------


def _is_finite(c: Array) -> Array:
    return ops.abs(c) < math.inf


def _log1p_by(z: Array, c: Array) -> Array:
    """``log1p(c * z) / c``."""
    return z * log1prel(c * z)


def _end(c: Array, limit: float) -> Array:
    """``-1 / c``, and ``limit`` where ``c`` has not its sign."""
    has_end = c * limit < 0.0
    return ops.where(has_end, -1.0 / ops.where(has_end, c, 1.0), limit)


genpareto: Continuous = dataclasses.replace(
    _hazard(
        "genpareto",
        "c",
        _log1p_by,
        lambda z, c: ops.log(z) + ops.log(log1prel(c * z)),
        lambda z, c: -ops.log1p(c * z),
        lambda h, c: h * special.exprel(c * h),
        rate=lambda z, c: 1.0 / (1.0 + c * z),
        inner=lambda c: ops.where(c < -1.0, -0.5 / ops.where(c < -1.0, c, -1.0), 0.5),
        high=lambda c: _end(c, math.inf),
        is_open_above=True,
        is_valid=_is_finite,
    ),
    quantile=lambda q, c: -special.boxcox1p(-q, -c),
    upper_quantile=lambda q, c: -special.boxcox(q, -c),
)


def _of_gumbel(f: Function) -> Function:
    return lambda z, c: f(_log1p_by(z, -c), c)


genextreme: Continuous = Continuous(
    "genextreme",
    "c",
    _of_gumbel(lambda y, c: gumbel_r.log_density(y) + c * y),
    _of_gumbel(lambda y, _: gumbel_r.lower(y)),
    _of_gumbel(lambda y, _: gumbel_r.upper(y)),
    _of_gumbel(lambda y, _: cast(Any, gumbel_r.log_lower)(y)),
    _of_gumbel(lambda y, _: cast(Any, gumbel_r.log_upper)(y)),
    lambda q, c: -special.boxcox(-ops.log(q), c),
    low=lambda c: _end(-c, -math.inf),
    high=lambda c: _end(-c, math.inf),
    is_open=True,
    is_open_above=True,
    upper_quantile=lambda q, c: -special.boxcox(-ops.log1p(-q), c),
    is_valid=_is_finite,
)
genlogistic: Continuous = mirrored(
    "genlogistic",
    _hazard(
        "",
        "c",
        lambda z, c: c * ops.logaddexp(0.0, z),
        lambda z, c: ops.log(c) + _log_softplus(z),
        lambda z, c: ops.log(c) + special.log_expit(z),
        lambda h, c: _log_expm1(h / c),
        low=-math.inf,
        inner=0.0,
    ),
)
