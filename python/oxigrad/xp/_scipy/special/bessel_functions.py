"""Rows of the Bessel, Struve, Kelvin and Airy functions."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from oxigrad import DerivativeError
from oxigrad import xp as ops
from oxigrad._typing import Array, Function
from oxigrad.ops.backends import is_complex
from oxigrad.xp import where
from oxigrad.xp._scipy.special.rows import INTEGER, ORDER, Row, f, polynomial, trunc


def _real(x: Array) -> Array:
    """``x``, for a function with a factor that is not holomorphic."""
    if is_complex(x):
        raise DerivativeError(
            "an exponentially scaled Bessel function is not differentiable with respect to a complex argument"
        )
    return x


def _half(sign: float, name: str) -> Callable[[Any, Array], Array]:
    """Half the sum, or the difference, of a Bessel function of the orders below and above (DLMF 10.6, 10.29)."""

    def slope(v: Array, x: Array) -> Array:
        return 0.5 * (getattr(f, name)(v - 1.0, x) + sign * getattr(f, name)(v + 1.0, x))

    return slope


def _scaled_slope(v: Array, x: Array, y: Array, sign: float, slope: Callable[[Array], Array]) -> Array:
    """The derivative of a scaled Bessel function: ``slope(x)``, or Hankel's expansion for large ``x``.

    There ``slope`` would cancel (DLMF 10.40). SciPy's `kve` and `ive` are NaN from 2**31 on.
    """
    size = ops.abs(x)
    is_far = size > 30.0 + 2.0 * v * v
    safe = where(is_far, x, 1e3 * (1.0 + v * v))
    term, total, weighted = 1.0, 1.0, 0.0
    for k in range(1, 21):
        term = term * (sign * (4.0 * v * v - (2 * k - 1) ** 2) / (8.0 * k)) / ops.abs(safe)
        total, weighted = total + term, weighted + k * term
    beyond = x > 1e9
    at = where(beyond, x, 1.0)
    leading = ops.sqrt(0.5 * math.pi / at) if sign > 0.0 else 1.0 / ops.sqrt(2.0 * math.pi * at)
    y = where(beyond, leading * total, y)
    return where(is_far, -y * (0.5 + weighted / total) / safe, slope(where(is_far, 1.0, x)))


def _kve_slope(y: Array, v: Array, x: Array) -> Array:
    slope = lambda x: y - _half(1.0, "kve")(v, x)  # noqa: E731
    return slope(x) if is_complex(x) else _scaled_slope(v, x, y, 1.0, slope)


def _kv_slope(v: Array, x: Array) -> Array:
    """The derivative of a function of the second kind, from scaled ones where SciPy's `kv` is zero (from 698)."""
    is_far = (ops.real(x) if is_complex(x) else x) > 600.0
    far = where(is_far, x, 600.0)
    return where(is_far, -ops.exp(-far) * _half(1.0, "kve")(v, far), -_half(1.0, "kv")(v, where(is_far, 1.0, x)))


def _struve_slope(name: str, sign: float) -> Function:
    """The derivative of a Struve function (DLMF 11.4.25, 11.4.29), near zero without quotient (11.4.27, 11.4.31)."""

    def slope(y: Array, v: Array, x: Array) -> Array:
        struve, is_near = getattr(f, name), ops.abs(x) < 1.0
        near, far = where(is_near, x, 0.5), where(is_near, 1.0, x)
        power = ops.pow(0.5 * near, v) / (math.sqrt(math.pi) * f.gamma(v + 1.5))
        at_near = 0.5 * (struve(v - 1.0, near) + sign * struve(v + 1.0, near) + power)
        return where(is_near, at_near, struve(v - 1.0, far) - v * (y / far))

    return slope


def _by_x(y: Array, x: Array, series: Sequence[float]) -> Array:
    """``y / x``, and its series in ``x**4`` near zero."""
    near = ops.abs(x) < 1e-3
    return where(near, polynomial(series, where(near, x, 0.0) ** 2), y / where(near, 1.0, x))


ROWS: dict[str, Row] = {
    "jv": ("v x", "Bessel function of the first kind and real order.", ORDER, _half(-1.0, "jv")),
    "yv": ("v x", "Bessel function of the second kind and real order.", ORDER, _half(-1.0, "yv")),
    "jve": ("v x", "`jv` of a real argument.", ORDER, lambda v, x: _half(-1.0, "jve")(v, _real(x))),
    "yve": ("v x", "`yv` of a real argument.", ORDER, lambda v, x: _half(-1.0, "yve")(v, _real(x))),
    "i0e": (
        "x",
        "``exp(-abs(x)) * i0(x)``.",
        lambda y, x: _scaled_slope(0.0, x, y, -1.0, lambda x: f.i1e(x) - ops.sign(x) * y),
    ),
    "i1e": (
        "x",
        "``exp(-abs(x)) * i1(x)``.",
        lambda y, x: _scaled_slope(1.0, x, y, -1.0, lambda x: _half(1.0, "ive")(1.0, x) - ops.sign(x) * y),
    ),
    "ive": (
        "v x",
        "``exp(-abs(x)) * iv(v, x)``.",
        ORDER,
        lambda y, v, x: _scaled_slope(v, _real(x), y, -1.0, lambda x: _half(1.0, "ive")(v, x) - ops.sign(x) * y),
    ),
    "k0": ("x", "Modified Bessel function of the second kind and order 0.", lambda x: -f.k1(x)),
    "k1": ("x", "Modified Bessel function of the second kind and order 1.", lambda x: _kv_slope(1.0, x)),
    "kn": (
        "n x",
        "Modified Bessel function of the second kind and integer order.",
        INTEGER,
        lambda n, x: _kv_slope(trunc(n), x),
    ),
    "kv": (
        "v x",
        "Modified Bessel function of the second kind and real order.",
        ORDER,
        lambda v, x: _kv_slope(v, x),
    ),
    "k0e": ("x", "``exp(x) * k0(x)``.", lambda y, x: _scaled_slope(0.0, x, y, 1.0, lambda x: y - f.k1e(x))),
    "k1e": (
        "x",
        "``exp(x) * k1(x)``.",
        lambda y, x: _scaled_slope(1.0, x, y, 1.0, lambda x: y - _half(1.0, "kve")(1.0, x)),
    ),
    "kve": ("v x", "``exp(x) * kv(v, x)``.", ORDER, lambda y, v, x: _kve_slope(y, v, x)),
    "struve": ("v x", "Struve function.", ORDER, _struve_slope("struve", -1.0)),
    "modstruve": ("v x", "Modified Struve function.", ORDER, _struve_slope("modstruve", 1.0)),
    "ber": ("x", "Kelvin function ber.", lambda x: f.berp(x)),
    "bei": ("x", "Kelvin function bei.", lambda x: f.beip(x)),
    "ker": ("x", "Kelvin function ker.", lambda x: f.kerp(x)),
    "kei": ("x", "Kelvin function kei.", lambda x: f.keip(x)),
    "berp": ("x", "Derivative of the Kelvin function ber.", lambda y, x: -f.bei(x) - _by_x(y, x, (0.0, -1.0 / 16.0))),
    "beip": (
        "x",
        "Derivative of the Kelvin function bei.",
        lambda y, x: f.ber(x) - _by_x(y, x, (0.5, 0.0, -1.0 / 384.0)),
    ),
    "kerp": ("x", "Derivative of the Kelvin function ker.", lambda y, x: -f.kei(x) - y / x),
    "keip": ("x", "Derivative of the Kelvin function kei.", lambda y, x: f.ker(x) - y / x),
    "airy": (
        "x",
        "Airy functions: Ai, its derivative, Bi, its derivative.",
        (lambda y: y[1], lambda y, x: x * y[0], lambda y: y[3], lambda y, x: x * y[2]),
    ),
}
