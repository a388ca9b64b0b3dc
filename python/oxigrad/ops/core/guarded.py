"""Functions of ops and of derivative rules, with derivatives at the edges of their domains.

A derivative rule is one kernel, in which a zero cotangent times an infinite derivative is NaN. ``where`` around a
function is therefore not enough: its argument is replaced too if the branch is not taken.
"""

import math

from oxigrad._core import Variable, plain
from oxigrad._typing import Array
from oxigrad.ops.core import primitives as ops


def gamma_density(a: Array, x: Array) -> Array:
    """The density of the gamma distribution of shape ``a``, for ``x`` of at least zero."""
    finite = ops.where(x == math.inf, 1.0, x)
    return ops.where(x == math.inf, 0.0, ops.exp(_log_power(finite, a - 1.0) - finite - ops.gammaln(a)))


def beta_density(a: Array, b: Array, x: Array) -> Array:
    """The density of the beta distribution at ``x`` between zero and one."""
    return ops.exp(_log_power(x, a - 1.0) + _log_power(1.0 - x, b - 1.0) - ops.betaln(a, b))


def beta_density_slope(a: Array, b: Array, x: Array) -> Array:
    """The derivative of `beta_density` by ``a``; zero where ``x`` and the density are zero."""
    # Without `digamma_rise`, as the core limits the length of a derivative rule.
    return beta_density(a, b, x) * (ops.log(ops.where(x == 0.0, 1.0, x)) + ops.digamma(a + b) - ops.digamma(a))


def _log_power(x: Array, power: Array) -> Array:
    # `xlogy` for nonnegative ``x``, in fewer ops: the core limits the length of a derivative rule. A scalar power meets
    # the elements of ``x`` in arithmetic alone, so it is not copied to their device.
    return ops.multiply(power, ops.log(ops.where(ops.add(ops.abs(power), x) == 0.0, 1.0, x)))


def digamma_rise(x: Array, by: Array) -> Array:
    """``digamma(x + by) - digamma(x)``, without cancellation.

    If the difference would cancel, it is the integral of the derivative by Gauss' two-point formula.
    """
    # In few ops, as the core limits the length of a derivative rule.
    near = ops.less(ops.abs(by), 2e-3 * x)
    half = ops.where(near, 0.5 * by, 0.0)
    middle, apart = ops.add(x, half), math.sqrt(1.0 / 3.0) * half
    integral = ops.multiply(
        half, ops.polygamma(1.0, ops.subtract(middle, apart)) + ops.polygamma(1.0, ops.add(middle, apart))
    )
    return ops.where(near, integral, ops.subtract(ops.digamma(ops.add(x, by)), ops.digamma(x)))


def clipped(x: Array, low: Array | None, high: Array | None) -> Array:
    """``x`` clipped to the bounds.

    If the bounds are equal, the bound on the side of ``x`` has the derivative, as for distinct bounds.
    """
    above = x if low is None else ops.maximum(x, low)
    result = above if high is None else ops.minimum(above, high)
    # A variable holds an array or a number; a symbol of an update rule is its own value.
    is_recorded = any(isinstance(bound, Variable) and not isinstance(plain(bound), Variable) for bound in (low, high))
    if low is None or high is None or not is_recorded:
        return result
    middle = 0.5 * x + (0.25 * low + 0.25 * high)
    point = ops.where(x < low, low, ops.where(x > high, high, middle))
    return ops.where(low == high, point, result)
