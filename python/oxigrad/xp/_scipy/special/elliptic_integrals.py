"""Rows of the elliptic integrals, and the arithmetic-geometric mean."""

import math
from collections.abc import Callable

from oxigrad import xp as ops
from oxigrad._core import plain
from oxigrad._typing import Array
from oxigrad.xp import cos, sin, sqrt, tan, where
from oxigrad.xp._scipy.guarded import array_beside, unless
from oxigrad.xp._scipy.special.rows import Row, f, near_zero, polynomial


def _elliptic_coefficients(power: float, count: int) -> list[float]:
    """The coefficients of ``(1 - u) ** power``."""
    coefficients = [1.0]
    for k in range(count - 1):
        coefficients.append(coefficients[-1] * (k - power) / (k + 1))
    return coefficients


# The averages of sin^2k over a quarter of a period.
_AVERAGES = [math.comb(2 * k, k) / 4.0**k for k in range(24)]


_K_SLOPES, _E_SLOPES = (
    [scale * math.pi * c * a for c, a in zip(_elliptic_coefficients(power, 22), _AVERAGES[1:], strict=False)]
    for power, scale in ((-1.5, 0.25), (-0.5, -0.25))
)


def _ellipk_slope(m: Array) -> Array:
    """The derivative of K (DLMF 19.4.1), by its series for small ``m``."""
    beyond = lambda m: (f.ellipe(m) / (1.0 - m) - f.ellipk(m)) / (2.0 * m)  # noqa: E731
    inside = lambda m: near_zero(m, 0.1, _K_SLOPES, beyond)  # noqa: E731
    return where(m == 1.0, math.inf, unless(ops.abs(m - 0.5) == math.inf, 0.0, inside, where(m == 1.0, 0.5, m), 0.5))


def _ellipe_slope(m: Array) -> Array:
    """The derivative of E (DLMF 19.4.2), by its series for small ``m``."""
    beyond = lambda m: (f.ellipe(m) - f.ellipk(m)) / (2.0 * m)  # noqa: E731
    return unless(m == -math.inf, 0.0, lambda m: near_zero(m, 0.1, _E_SLOPES, beyond), m, 0.5)


def _ellipkm1_slope(p: Array) -> Array:
    """The derivative of ``K(1 - p)``, accurate for small ``p``."""
    near, tiny = ops.abs(p - 1.0) < 0.1, p < 1e-17
    far = where(ops.logical_or(near, tiny), 0.5, p)
    beyond = (f.ellipkm1(far) - f.ellipe(1.0 - far) / far) / (2.0 * (1.0 - far))
    series = where(near, -polynomial(_K_SLOPES, where(near, 1.0 - p, 0.0)), beyond)
    return where(tiny, -0.5 / where(tiny, p, 1.0), series)


def _small_modulus(phi: Array, m: Array, power: float) -> Array:
    """The integral of ``sin(t)**2 * (1 - m sin(t)**2) ** power`` from 0 to ``phi`` for small ``m``, by its series."""
    sine, cosine, integral, odd_power = sin(phi), cos(phi), phi, sin(phi)
    total: Array = 0.0
    for k, coefficient in enumerate(_elliptic_coefficients(power, 12)):
        integral = ((2 * k + 1) * integral - cosine * odd_power) / (2 * k + 2)
        total = total + coefficient * integral * m**k
        odd_power = odd_power * sine * sine
    return total


def _incomplete(phi: Array, m: Array, power: float, beyond: Callable[[Array], Array]) -> Array:
    near = ops.abs(m) < 0.03
    return where(near, _small_modulus(phi, where(near, m, 0.0), power), beyond(where(near, 0.5, m)))


def _slope_near_one(phi: Array, m: Array) -> Array:
    """The integral of ``sin(t)**2 * (1 - m sin(t)**2) ** -1.5`` from 0 to ``phi``.

    It is computed by its series in ``(1 - m) tan(t)**2``.
    """
    tangent, secant = tan(phi), 1.0 / cos(phi)
    integral, odd_power = ops.asinh(tangent), tangent
    total: Array = 0.0
    for k, coefficient in enumerate(_elliptic_coefficients(-1.5, 12)):
        integral = (odd_power * secant - (2 * k + 1) * integral) / (2 * k + 2)
        total = total + coefficient * integral * (m - 1.0) ** k
        odd_power = odd_power * tangent * tangent
    return total


def _ellipkinc_slope(phi: Array, m: Array) -> Array:
    """The derivative of F with respect to ``m`` (DLMF 19.4.6)."""

    def beyond(m: Array) -> Array:
        root = sqrt(1.0 - m * sin(phi) ** 2)
        whole = f.ellipeinc(phi, m) / (1.0 - m) - f.ellipkinc(phi, m) - m * sin(2.0 * phi) / (2.0 * (1.0 - m) * root)
        return whole / m

    near = ops.logical_and(ops.abs(1.0 - m) * (1.0 + tan(phi) ** 2) < 0.05, ops.abs(phi) <= 0.5 * math.pi)
    inside = _slope_near_one(where(near, phi, 0.0), where(near, m, 1.0))
    return 0.5 * where(near, inside, _incomplete(phi, where(near, 0.5, m), -1.5, beyond))


def _ellipeinc_slope(phi: Array, m: Array) -> Array:
    """The derivative of E with respect to ``m`` (DLMF 19.4.7)."""
    return -0.5 * _incomplete(phi, m, -0.5, lambda m: (f.ellipkinc(phi, m) - f.ellipeinc(phi, m)) / m)


def agm(a: Array, b: Array, /) -> Array:
    """The arithmetic-geometric mean of two numbers of the same sign (DLMF 19.8.6)."""
    a, b = array_beside(a, b), array_beside(b, a)
    swap = ops.abs(a) < ops.abs(b)
    large, small = ops.where(swap, b, a), ops.where(swap, a, b)
    is_zero, is_infinite = small == 0.0, ops.abs(large) == math.inf
    is_apart = ops.logical_or(ops.logical_and(small < 0.0, large > 0.0), ops.logical_and(small > 0.0, large < 0.0))

    is_edge = ops.logical_or(is_zero, ops.logical_or(is_infinite, is_apart))
    infinite = ops.where(ops.logical_or(is_apart, is_zero), math.nan, plain(large))
    edge = ops.where(ops.logical_or(is_apart, is_infinite), infinite, _root_at_zero(a, b) + _root_at_zero(b, a))
    large, small = ops.where(is_edge, 1.0, large), ops.where(is_edge, 1.0, small)
    ratio, total = small / large, 1.0 + small / large
    return ops.where(is_edge, edge, large * (0.25 * math.pi * total / f.ellipkm1(4.0 * ratio / (total * total))))


def _root_at_zero(a: Array, b: Array) -> Array:
    """Zero, with an infinite derivative by ``a`` if ``a`` is zero and ``b`` is not."""
    is_root = ops.logical_and(a == 0.0, b != 0.0)
    return ops.where(is_root, ops.sqrt(ops.where(is_root, a + 0.0, 1.0)), 0.0)


ROWS: dict[str, Row] = {
    "ellipk": ("m", "Complete elliptic integral of the first kind, of the parameter ``m``.", _ellipk_slope),
    "ellipkm1": ("p", "``ellipk(1 - p)``, accurate for small ``p``.", _ellipkm1_slope),
    "ellipe": ("m", "Complete elliptic integral of the second kind.", _ellipe_slope),
    "ellipkinc": (
        "phi m",
        "Incomplete elliptic integral of the first kind.",
        lambda phi, m: 1.0 / sqrt(1.0 - m * sin(phi) ** 2),
        _ellipkinc_slope,
    ),
    "ellipeinc": (
        "phi m",
        "Incomplete elliptic integral of the second kind.",
        lambda phi, m: sqrt(1.0 - m * sin(phi) ** 2),
        _ellipeinc_slope,
    ),
}
