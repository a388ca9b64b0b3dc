"""Rows of the error functions, the normal distribution and the Fresnel integrals."""

import math
from collections.abc import Callable

from oxigrad import xp as ops
from oxigrad._typing import Array, Function
from oxigrad.ops.backends import is_complex
from oxigrad.xp import cos, exp, sin
from oxigrad.xp._scipy.guarded import branch
from oxigrad.xp._scipy.special.rows import Row, f

_ROOT_PI, _ROOT_2PI = math.sqrt(math.pi), math.sqrt(2.0 * math.pi)


def _normal(x: Array) -> Array:
    # Zero beyond 40, where an infinity would meet the derivative of the square.
    near = x if is_complex(x) else ops.minimum(ops.maximum(x, -40.0), 40.0)
    return exp(-0.5 * near * near) / _ROOT_2PI


def _asymptotic(u: Array, sign: float) -> Array:
    """``u + sign 3 u**2 + 15 u**3 ...`` with double factorials of odd numbers: tails of error functions.

    ``u`` is ``1 / (2 x**2)``.
    """
    total: Array = 1.0
    for odd in range(33, 1, -2):
        total = 1.0 + sign * odd * u * total
    return u * total


def _far(x: Array, at: float, slope: Callable[[Array, Array], Array], sign: float, factor: complex, y: Array) -> Array:
    """``slope``, or its asymptotic series for ``x`` beyond ``at``, where the terms of ``slope`` cancel."""
    is_far = (ops.abs(x) if at < 0.0 else x) > abs(at)
    series = lambda x, _: factor * _asymptotic(0.5 * ops.square(1.0 / x), sign)  # noqa: E731
    return branch(is_far, series, slope, (x, 10.0, 0.0), (y, 0.0, 0.0))


def _erfcx_slope(y: Array, x: Array) -> Array:
    slope = lambda x, y: 2.0 * x * y - 2.0 / _ROOT_PI  # noqa: E731
    return slope(x, y) if is_complex(x) else _far(x, 8.0, slope, -1.0, -2.0 / _ROOT_PI, y)


def _log_ndtr_slope(y: Array, x: Array) -> Array:
    """The density by the probability; the reciprocal of `erfcx` is accurate in the lower tail."""
    lower = lambda x: ops.divide(math.sqrt(2.0 / math.pi), f.erfcx(x * -math.sqrt(0.5)))  # noqa: E731
    tail = lambda x, _: branch(x < -1e4, lambda x: -x - 1.0 / x, lower, (x, -1e4, -1.0))  # noqa: E731
    return branch(x < 0.0, tail, lambda x, y: _normal(x) * exp(-y), (x, -1.0, 0.0), (y, 0.0, 0.0))


def _dawsn_slope(y: Array, x: Array) -> Array:
    slope = lambda x, y: 1.0 - 2.0 * x * y  # noqa: E731
    return slope(x, y) if is_complex(x) else _far(x, -8.0, slope, 1.0, -1.0, y)


def _wofz_slope(y: Array, z: Array) -> Array:
    slope = lambda z, y: -2.0 * z * y + 2j / _ROOT_PI  # noqa: E731
    series = lambda z, _: (-2j / _ROOT_PI) * _asymptotic(0.5 / (z * z), 1.0)  # noqa: E731
    return branch(_is_far_above(z), series, slope, (z, 31.0, 0.0), (y, 0.0, 0.0))


def _is_far_above(z: Array) -> Array:
    """Mask of the domain of the asymptotic series of the Faddeeva function.

    No exponential of the real axis underflows there.
    """
    size, height = ops.abs(z), ops.imag(z)
    return ops.logical_or(ops.logical_and(size > 30.0, height >= 0.0), ops.logical_and(size > 8.0, height > 1e-9))


def _wofz_curve(z: Array) -> Array:
    """The second derivative of the Faddeeva function."""
    y = f.wofz(z)
    near = lambda z, y: -2.0 * y - 2.0 * z * (-2.0 * z * y + 2j / _ROOT_PI)  # noqa: E731

    def series(z: Array, _: Array) -> Array:
        u, total = 0.5 / (z * z), 0.0
        for k in range(16, 0, -1):
            total = (2 * k - 1) * u * (total + (2 * k + 1) * (2 * k + 2))
        return 1j / _ROOT_PI * (2.0 + total) / (z * z * z)

    return branch(_is_far_above(z), series, near, (z, 31.0, 0.0), (y, 0.0, 0.0))


def _voigt_slope(x: Array, sigma: Array, gamma: Array) -> Array:
    """The derivative by ``x + i gamma`` of the function whose real part is the Voigt profile."""
    near = lambda c, sigma: (  # noqa: E731
        _faddeeva_slope(c / (sigma * math.sqrt(2.0))) / (2.0 * _ROOT_PI * sigma * sigma)
    )
    return _almost_cauchy(near, lambda c, _: -1j / (math.pi * c * c), x, sigma, gamma)


def _faddeeva_slope(z: Array) -> Array:
    return _wofz_slope(f.wofz(z), z)


def _voigt_sigma(x: Array, sigma: Array, gamma: Array) -> Array:
    """The derivative of the Voigt profile by ``sigma``.

    The profile solves a heat equation: the derivative is ``sigma`` times the second derivative by ``x``.
    """
    near = lambda c, sigma: _wofz_curve(c / (sigma * math.sqrt(2.0))) / (2.0 * _ROOT_2PI * sigma * sigma)  # noqa: E731
    return ops.real(_almost_cauchy(near, lambda c, sigma: 2j * sigma / (math.pi * c * c * c), x, sigma, gamma))


def _almost_cauchy(near: Function, far: Function, x: Array, sigma: Array, gamma: Array) -> Array:
    """A function of ``x + i gamma`` and of the deviation, or its limit for a negligible deviation."""
    c = x + 1j * gamma
    return branch(sigma < 1e-9 * ops.abs(c), far, near, (c, 1.0, 1.0), (sigma, 0.0, 1.0))


def _fresnel_phase(x: Array) -> Array:
    """``pi / 2 * x**2``, of a real ``x`` less whole turns, which is exact before the product is rounded."""
    square = x * x
    return 0.5 * math.pi * (square if is_complex(x) else square - 4.0 * ops.round(0.25 * square))


ROWS: dict[str, Row] = {
    "erfcx": (
        "x",
        "Scaled complementary error function, ``exp(x**2) * erfc(x)``.",
        _erfcx_slope,
    ),
    "erfi": ("x", "Imaginary error function, ``-i erf(ix)``.", lambda x: 2.0 / _ROOT_PI * exp(x * x)),
    "dawsn": ("x", "Dawson's integral.", _dawsn_slope),
    "wofz": ("z", "Faddeeva function ``exp(-z**2) * erfc(-iz)``, complex.", _wofz_slope),
    "ndtr": ("x", "Cumulative distribution function of the standard normal distribution.", lambda x: _normal(x)),
    "ndtri": ("p", "Inverse of `ndtr`.", lambda y: _ROOT_2PI * exp(0.5 * y * y)),
    "log_ndtr": ("x", "Logarithm of `ndtr`.", lambda y, x: _log_ndtr_slope(y, x)),
    "ndtri_exp": ("p", "Inverse of `log_ndtr`.", lambda y: math.sqrt(0.5 * math.pi) * f.erfcx(y * -math.sqrt(0.5))),
    "owens_t": (
        "h a",
        "Owen's T function.",
        lambda h, a: -0.5 * _normal(h) * f.erf(a * h * math.sqrt(0.5)),
        lambda h, a: exp(-0.5 * h * h * (1.0 + a * a)) / (2.0 * math.pi * (1.0 + a * a)),
    ),
    "voigt_profile": (
        "x sigma gamma",
        "Voigt profile: the density of a normal number of deviation ``sigma`` plus a Cauchy number of scale ``gamma``.",
        lambda x, sigma, gamma: ops.real(_voigt_slope(x, sigma, gamma)),
        _voigt_sigma,
        lambda x, sigma, gamma: -ops.imag(_voigt_slope(x, sigma, gamma)),
    ),
    "fresnel": (
        "x",
        "Fresnel integrals: the pair S, C.",
        (lambda x: sin(_fresnel_phase(x)), lambda x: cos(_fresnel_phase(x))),
    ),
}
