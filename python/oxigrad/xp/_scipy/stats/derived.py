"""Distributions by another one: of the negative of its number, or of its number with a sign."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, cast

from oxigrad import xp as ops
from oxigrad._typing import Array, Function
from oxigrad.ops.backends import without_variables
from oxigrad.xp._scipy.guarded import branch
from oxigrad.xp._scipy.stats.distribution import Continuous

_LOG_2 = math.log(2.0)


def mirrored(name: str, base: Continuous) -> Continuous:
    """The distribution of the negative of a number."""
    low, high, inner = (cast(float, edge) for edge in (base.low, base.high, base.inner))

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
        low=-high,
        high=-low,
        inner=-inner,
    )


def symmetric(name: str, log_density: Function, lower: Function, log_lower: Function, quantile: Function) -> Continuous:
    """A distribution without shape parameters that is symmetric around zero."""
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


def doubled(name: str, base: Continuous) -> Continuous:
    """The distribution of a positive number times a random sign, with probability 1/2 for each sign.

    At the centre its density has no derivative, or zero: that is the mean of both sides.
    """
    inner = cast(float, base.inner)

    def of_size(f: Any) -> Any:
        if f is None:
            return None
        return lambda z, *s: branch(
            z == 0.0, lambda z: f(without_variables(z), *s), lambda z: f(ops.abs(z), *s), (z, inner, inner)
        )

    def lower(z: Array, *s: Array) -> Array:
        above = lambda z: 0.5 + 0.5 * base.lower(z, *s)  # noqa: E731
        return branch(z < 0.0, lambda z: 0.5 * base.upper(-z, *s), above, (z, -inner, inner))

    def log_lower(z: Array, *s: Array) -> Array:
        below = lambda z: cast(Any, base.log_upper)(-z, *s) - _LOG_2  # noqa: E731
        above = lambda z: ops.log1p(-0.5 * base.upper(z, *s))  # noqa: E731
        return branch(z < 0.0, below, above, (z, -inner, inner))

    def quantile(q: Array, *s: Array) -> Array:
        below = lambda q: -cast(Any, base.upper_quantile)(2.0 * q, *s)  # noqa: E731
        above = lambda q: cast(Any, base.upper_quantile)(2.0 - 2.0 * q, *s)  # noqa: E731
        return branch(q < 0.5, below, above, (q, 0.25, 0.75))

    log_density, density = of_size(base.log_density), of_size(base.density)
    return Continuous(
        name,
        base.shapes,
        lambda z, *s: log_density(z, *s) - _LOG_2,
        lower,
        lambda z, *s: lower(-z, *s),
        log_lower,
        lambda z, *s: log_lower(-z, *s),
        quantile,
        density and (lambda z, *s: 0.5 * density(z, *s)),
        inner=base.inner,
        upper_quantile=lambda q, *s: -quantile(q, *s),
    )


_FUNCTIONS = "log_density density lower upper log_lower log_upper quantile upper_quantile".split()


def with_shapes(name: str, shapes: str, base: Continuous, of: Callable[..., tuple[Array, ...]]) -> Continuous:
    """The distribution ``base`` whose shape parameters are a function of others."""

    def changed(f: Any) -> Any:
        return f and (lambda z, *s: f(z, *of(*s)))

    functions = {field: changed(getattr(base, field)) for field in _FUNCTIONS}
    return dataclasses.replace(base, name=name, shapes=shapes, **functions)
