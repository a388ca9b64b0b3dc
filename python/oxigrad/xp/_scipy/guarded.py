"""Building blocks with derivatives at the edges of their domains, and only of the branches that are taken.

A derivative rule is one kernel, in which a zero cotangent times an infinite derivative is NaN. ``where`` around a
function is therefore not enough: its argument is replaced too if the branch is not taken. The functions of this file do
both.
"""

import math
from typing import Any

import numpy as np

from oxigrad import xp as ops
from oxigrad._core import plain
from oxigrad._typing import Array, Axis, Function
from oxigrad.ops.backends import beneath, dtype_name, dtype_of, is_array, namespace, on_host, without_variables


def tiny(x: Array) -> float:
    """A number near the smallest normal one of the dtype of ``x``: 1e-292 for float64.

    Its products with rounding errors are still normal numbers.
    """
    # By name, as a library need not have `finfo`; bfloat16 has the exponents of float32.
    name = dtype_name(dtype_of(beneath(x)))
    limits = np.finfo({"float16": np.float16, "bfloat16": np.float32, "float32": np.float32}.get(name, np.float64))
    return float(limits.smallest_normal) / float(limits.eps)


def reciprocal_limit(x: Array) -> float:
    """A bound above which powers of the reciprocal do not overflow in the dtype of ``x``.

    Such powers appear in second-order derivatives.
    """
    return tiny(x) ** (1.0 / 3.0)


def branch(condition: Array, taken: Function, other: Function, *args: tuple[Any, Any, Any]) -> Array:
    """``taken`` where the condition holds, and ``other`` elsewhere.

    Each argument is a triple: its value, and a value at which ``taken`` and one at which ``other`` is smooth.
    """
    args = tuple(
        (x if is_array(a) or is_array(b) else array_beside(x, *(x for x, *_ in args)), a, b) for x, a, b in args
    )
    first = taken(*(ops.where(condition, x, safe) for x, safe, _ in args))
    return ops.where(condition, first, other(*(ops.where(condition, safe, x) for x, _, safe in args)))


def array_beside(x: Array, *others: Array) -> Array:
    """``x``, and if it is a number an array of the dtype of the first array among the others.

    Of two numbers, some libraries would choose one in their default dtype, which may have fewer digits.
    """
    like = next((of for of in others if is_array(plain(of))), None)
    return x if like is None or is_array(plain(x)) else ops.zeros_like(like) + x


def unless(condition: Array, constant: float, f: Function, x: Array, safe: float) -> Array:
    """``f(x)``, and a constant where the condition holds; ``f`` is smooth at ``safe``."""
    return ops.where(condition, constant, f(ops.where(condition, safe, x)))


def growth_by(f: Function, x: Array) -> Array:
    """``f(x) / x`` of an exponential function. If ``f`` overflows, its derivatives are infinite, too."""
    is_infinite = ops.abs(f(without_variables(x))) == math.inf
    return branch(is_infinite, lambda x: ops.multiply(ops.sign(x), f(x)), lambda x: f(x) / x, (x, 1.0, 1.0))


def log_of(p: Array, rest: Array) -> Array:
    """``log(p)`` given ``p`` and ``rest = 1 - p``, accurate near 0 and 1."""
    is_large = p > 0.5
    large = ops.log1p(-ops.where(is_large, rest, 0.0))
    return ops.where(is_large, large, ops.log(ops.where(is_large, 0.5, p)))


def complementary(low: Array, high: Array) -> tuple[Array, Array]:
    """Both tails, the larger one as the complement of the other, which has all digits of its derivatives."""
    is_low = plain(low) < plain(high)
    return ops.where(is_low, low, 1.0 - high), ops.where(is_low, 1.0 - low, high)


def log_by(p: Function, rest: Function, *args: tuple[Any, Any]) -> Array:
    """`log_of` of two functions of the same arguments, each with a value at which both are smooth.

    Unlike `log_of`, it is differentiable where the derivatives of both functions are infinite.
    """
    near, far = (lambda *args: ops.log1p(-rest(*args))), (lambda *args: ops.log(p(*args)))
    return branch(p(*(x for x, _ in args)) > 0.5, near, far, *((x, safe, safe) for x, safe in args))


def expm1_of(x: Array) -> Array:
    """``expm1(x)``, with a derivative that is accurate even if small."""
    return branch(x > -0.7, ops.expm1, lambda x: ops.exp(x) - 1.0, (x, 0.0, -1.0))


def log1p_square(x: Array) -> Array:
    """``log(1 + x**2)``; the square does not overflow."""
    far = lambda x: 2.0 * ops.log(ops.abs(x)) + ops.log1p(ops.square(1.0 / x))  # noqa: E731
    return branch(ops.abs(x) > 1.0, far, lambda x: ops.log1p(x * x), (x, 2.0, 0.0))


def log1mexp(h: Array, log_h: Array) -> Array:
    """``log(1 - exp(-h))`` for positive ``h``, from the logarithm of ``h`` if ``h`` underflows."""
    near = lambda h, log_h: log_h + ops.log(_exprel_of_negative(h))  # noqa: E731
    return branch(h < 0.5, near, lambda h, _: ops.log1p(-ops.exp(-h)), (h, 0.0, 1.0), (log_h, 0.0, 0.0))


def _exprel_of_negative(h: Array) -> Array:
    """``(1 - exp(-h)) / h`` for small ``h``, by its series."""
    total: Array = 1.0
    for k in range(16, 1, -1):
        total = 1.0 - h * total / k
    return total


def power_exp(x: Array, power: Array, exponent: Array) -> Array:
    """``x**power * exp(exponent)`` for ``x`` of at least zero, with the derivatives at zero too.

    Away from zero it is one exponential, as both factors may overflow.
    """

    def near(x: Array, exponent: Array) -> Array:
        # An infinity must not meet the derivative of the other factor.
        is_infinite = ops.logical_and(x == 0.0, power < 0.0)
        product = lambda x, exponent: ops.multiply(ops.pow(x, power), ops.exp(exponent))  # noqa: E731
        return branch(is_infinite, lambda x, _: ops.pow(x, power), product, (x, 1.0, 1.0), (exponent, 0.0, 0.0))

    away = lambda x, exponent: ops.exp(ops.add(ops.multiply(power, ops.log(x)), exponent))  # noqa: E731
    return branch(x < reciprocal_limit(x), near, away, (x, 1.0, 1.0), (exponent, 0.0, 0.0))


def xlogy(x: Array, y: Array, /) -> Array:
    """``x * log(y)``, and zero where ``x`` is zero and the logarithm is not finite, as SciPy's."""
    nothing = ops.logical_and(x == 0.0, ops.logical_or(y <= 0.0, y == math.inf))
    return ops.multiply(x, ops.log(ops.where(nothing, 1.0, array_beside(y, x))))


def rgamma_away(x: Array) -> Array:
    """`rgamma` away from its zeros.

    Differentiated as an exponential, since the square of the reciprocal may overflow.
    """
    logarithm, bare = ops.gammaln(ops.minimum(x, 1e4)), without_variables(x)
    constant = without_variables(logarithm)
    # By the logarithm where the gamma function overflows; zero at infinity.
    is_large = ops.logical_and(bare > 1.0, ops.gamma(bare) == math.inf)
    value = ops.where(is_large, ops.exp(-constant), ops.reciprocal(ops.gamma(bare)))
    return value * ops.exp(constant - logarithm)


def infinite_mean(x: Array, axis: Axis, b: Array | None) -> tuple[Array, Array] | None:
    """A mask of the infinite maxima along ``axis``, and the mean of the elements that equal one.

    These elements share the derivative. None if no maximum is known to be infinite. Terms are left out if the weights
    ``b`` have both signs or are zero.
    """
    bare = plain(x)
    if not hasattr(bare, "shape"):
        return (True, x) if b is None and math.isinf(bare) else None
    library = namespace(bare)
    largest = library.max(bare, axis=axis, keepdims=True)
    is_infinite = library.isinf(largest)
    if on_host(largest) and not bool(library.any(is_infinite)):
        return None
    weights = ops.where(bare == largest, 1.0 if b is None else without_variables(b), ops.zeros_like(bare))
    total = ops.sum(weights, axis=axis, keepdims=True)
    is_infinite = ops.logical_and(
        is_infinite, ops.logical_and(ops.min(weights, axis=axis, keepdims=True) >= 0.0, total > 0.0)
    )
    is_term = ops.logical_and(is_infinite, weights > 0.0)
    weights = ops.where(is_term, weights / ops.where(is_infinite, total, 1.0), 1.0)
    return is_infinite, ops.sum(ops.where(is_term, weights * x, 0.0), axis=axis, keepdims=True)


# --- logarithms of distribution functions that underflow --------------------------------------------------------------

# Below `tiny`, a distribution function is replaced by a continued fraction for its logarithm; it converges fast in the
# tails.
_LEVELS = 16


def log_gammainc(a: Array, x: Array, log_x: Array) -> Array:
    """The logarithm of a small `gammainc` (DLMF 8.9.1)."""
    below: Array = a + (2.0 * _LEVELS + 1.0)
    for k in range(_LEVELS, 0, -1):
        below = a + 2.0 * k - (a + k) * x / below
        below = a + (2.0 * k - 1.0) + k * x / below
    return a * log_x - x - ops.gammaln(a + 1.0) - ops.log1p(-x / below)


def log_gammaincc(a: Array, x: Array, log_x: Array) -> Array:
    """The logarithm of a small `gammaincc` (DLMF 8.9.2)."""
    below: Array = x + (2.0 * _LEVELS + 1.0) - a
    for k in range(_LEVELS, 0, -1):
        below = x + (2.0 * k - 1.0) - a - k * (k - a) / below
    return a * log_x - x - ops.gammaln(a) - ops.log(below)


def log_betainc(a: Array, b: Array, x: Array, rest: Array) -> Array:
    """The logarithm of a small `betainc` of ``x = 1 - rest`` (DLMF 8.17.22)."""
    below: Array = 1.0
    for m in range(_LEVELS, -1, -1):
        below = 1.0 - (a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + (2.0 * m + 1.0)) * below)
        below = 1.0 + m * (b - m) * x / ((a + (2.0 * m - 1.0)) * (a + 2.0 * m) * below) if m else below
    return a * ops.log(x) + b * ops.log(rest) - ops.log(a) - ops.betaln(a, b) - ops.log(below)
