"""Rows of the exponential, trigonometric and hyperbolic integrals, and of the dilogarithm."""

import math
from collections.abc import Callable

from oxigrad import xp as ops
from oxigrad._typing import Array
from oxigrad.xp import cos, cosh, exp, log, sin, sinh, where
from oxigrad.xp._scipy.guarded import growth_by, unless
from oxigrad.xp._scipy.special.rows import INTEGER, Row, f, near_zero, polynomial, trunc


def _expn_slope(n: Array, x: Array) -> Array:
    n = trunc(n)
    return where(n == 0, -exp(-x) * (1.0 / x + 1.0 / (x * x)), -f.expn(n - (n > 0), x))


def _sine_quotient(x: Array) -> Array:
    """``sin(x) / x``."""
    series = [(-1.0) ** (k // 2) / math.factorial(k + 1) if k % 2 == 0 else 0.0 for k in range(15)]
    return near_zero(x, 0.5, series, lambda x: _by_large(sin, x))


def _by_large(wave: Callable[[Array], Array], x: Array) -> Array:
    """``wave(x) / x`` for a bounded function: zero at infinity."""
    return unless(ops.abs(x) == math.inf, 0.0, lambda x: wave(x) / x, x, 1.0)


def _sinhc(x: Array) -> Array:
    """``sinh(x) / x``."""
    series = [1.0 / math.factorial(k + 1) if k % 2 == 0 else 0.0 for k in range(15)]
    return near_zero(x, 0.5, series, lambda x: growth_by(sinh, x))


def _spence_slope(x: Array) -> Array:
    """``log(x) / (1 - x)``."""
    series = [(-1.0) ** (k + 1) / (k + 1) for k in range(14)]
    near = ops.abs(x - 1.0) < 0.05
    beyond = where(near, 2.0, x)
    return where(near, polynomial(series, where(near, x - 1.0, 0.0)), log(beyond) / (1.0 - beyond))


ROWS: dict[str, Row] = {
    "expi": ("x", "Exponential integral Ei.", lambda x: growth_by(exp, x)),
    "exp1": ("x", "Exponential integral E1.", lambda x: -exp(-x) / x),
    "expn": ("n x", "Exponential integral of integer order.", INTEGER, _expn_slope),
    "sici": ("x", "Sine and cosine integrals: the pair Si, Ci.", (_sine_quotient, lambda x: _by_large(cos, x))),
    "shichi": ("x", "Hyperbolic sine and cosine integrals: the pair Shi, Chi.", (_sinhc, lambda x: growth_by(cosh, x))),
    "spence": ("x", "Spence's function, the dilogarithm of ``1 - x``.", _spence_slope),
}
