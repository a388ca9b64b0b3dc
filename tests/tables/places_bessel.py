"""Special places of Bessel functions and their like, of integrals of exponentials, and of error functions of two arguments."""

from __future__ import annotations

from typing import Any

from mpmath import mp, mpf

from places import Function, Point, Row, at


def _orders(orders: tuple[float, ...], *numbers: float) -> list[Point]:
    return [(v, x) for v in orders for x in numbers]


def _scaled(f: Function, sign: int) -> Function:
    return lambda v, x: f(v, x) * mp.exp(sign * abs(x))


def _part(name: str, which: int) -> Function:
    """One of several results."""
    return lambda xp, x: getattr(xp.special, name)(x)[which]


def _slope_of(f: Function) -> Function:
    """The derivative of a Kelvin function of order zero."""
    return lambda x: mp.diff(lambda t: f(0, t), x)


def _fresnel(of: Function, *, is_sine: bool) -> Function:
    return lambda x: of(x) if abs(x) < 50 else _fresnel_far(is_sine, x)


def _fresnel_far(is_sine: bool, x: Any) -> Any:
    """By the auxiliary functions f and g (DLMF 7.5.3, 7.12.2)."""
    z = mp.pi * x * x / 2
    f = g = mpf(0)
    term = 1 / (mp.pi * x)
    for m in range(40):
        f, g = f + (-1) ** m * term, g + (-1) ** m * term * (4 * m + 1) / (2 * z)
        term *= (4 * m + 1) * (4 * m + 3) / (4 * z * z)
    sine, cosine = mp.sin(z), mp.cos(z)
    return mpf(1) / 2 - f * cosine - g * sine if is_sine else mpf(1) / 2 + f * sine - g * cosine


def _faddeeva(z: Any) -> Any:
    return mp.exp(-z * z) * mp.erfc(-1j * z)


def _voigt(x: Any, sigma: Any, gamma: Any) -> Any:
    z = (x + 1j * gamma) / (sigma * mp.sqrt(2))
    return mp.re(_faddeeva(z)) / (sigma * mp.sqrt(2 * mp.pi))


def _owens_t(h: Any, a: Any) -> Any:
    of = lambda x: mp.exp(-h * h * (1 + x * x) / 2) / (1 + x * x)  # noqa: E731
    return mp.quad(of, mp.linspace(0, a, 3)) / (2 * mp.pi)


def _log_probability_inverse(p: Any) -> Any:
    """The number whose `log_ndtr` is ``p``, by Newton's method."""
    x = mpf(-1) if p > -1 else -mp.sqrt(-2 * p)
    if p > -0.1:
        x = mp.sqrt(-2 * mp.log(-p))
    for _ in range(60):
        tail = mp.erfc(-x / mp.sqrt(2)) / 2
        density = mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)
        x -= (mp.log(tail) - p) * tail / density
    return x


_i, _k = _scaled(mp.besseli, -1), _scaled(mp.besselk, 1)
_HALVES = (0.0, 0.5, 2.5, 6.0)
_LARGE = (7.9, 8.1, 29.0, 31.0, 1e3, 1e6)
_WAVE = (1e-9, 1.0, 4.9, 5.1, 24.5, 26.0, -3.0, 1e3)
_POSITIVE = (1e-9, 1.0, 2.1, 24.5, 26.0, 300.0)
_KELVIN = at(1e-6, 2e-3, 0.5, 2.0, 5.0, 30.0)
_SMALL = _orders((0.5, 1.0, 2.3, 5.0), 1e-60, 0.99, 1.01)
_FAR = [*_SMALL, *_orders((0.5, 2.3, 5.0), 1e3, 3e4), (1.0, 1e3), (2.3, 1e8), (5.0, 1e12)]
_TEN = at(9.9, 10.1)
_KELVIN_TEN = "SciPy's series below 10 and its expansion above lose digits there"

ROWS: dict[str, Row] = {
    "j0": Row(lambda x: mp.besselj(0, x), at(0.0, *_WAVE)),
    "j1": Row(lambda x: mp.besselj(1, x), at(0.0, *_WAVE)),
    "y0": Row(lambda x: mp.bessely(0, x), at(*_POSITIVE)),
    "y1": Row(lambda x: mp.bessely(1, x), at(*_POSITIVE)),
    "jn": Row(mp.besselj, _orders((0.0, 1.0, 2.0, 30.0), 0.0, *_WAVE), without=(0,)),
    "yn": Row(mp.bessely, _orders((0.0, 1.0, 2.0, 30.0), *_POSITIVE), without=(0,)),
    "jv": Row(mp.besselj, _orders((0.0, 0.5, 2.5, -0.7), *_POSITIVE), without=(0,)),
    "yv": Row(mp.bessely, _orders((0.0, 0.5, 2.5, -0.7), *_POSITIVE), without=(0,)),
    "jve": Row(mp.besselj, _orders((0.0, 0.5, 2.5), *_POSITIVE), without=(0,)),
    "yve": Row(mp.bessely, _orders((0.0, 0.5, 2.5), *_POSITIVE), without=(0,)),
    "i0": Row(lambda x: mp.besseli(0, x), at(0.0, 1e-9, 1.0, -8.1, 30.0, 700.0)),
    "i1": Row(lambda x: mp.besseli(1, x), at(0.0, 1e-9, 1.0, -8.1, 30.0, 700.0)),
    "iv": Row(mp.besseli, _orders(_HALVES, 1e-9, 1.0, 8.1, 30.0, 700.0), without=(0,)),
    "k0": Row(lambda x: mp.besselk(0, x), at(1e-60, 1e-9, 1.9, 2.1, 30.0, 600.0)),
    "k1": Row(lambda x: mp.besselk(1, x), at(1e-60, 1e-9, 1.9, 2.1, 30.0, 600.0)),
    "kn": Row(mp.besselk, _orders((0.0, 1.0, 6.0), 1e-9, 1.9, 2.1, 30.0, 600.0), without=(0,)),
    "kv": Row(mp.besselk, _orders(_HALVES, 1e-9, 1.9, 2.1, 30.0, 600.0), without=(0,)),
    "i0e": Row(lambda x: _i(0, x), at(1e-9, 1.0, *_LARGE, -40.0)),
    "i1e": Row(lambda x: _i(1, x), at(1e-9, 1.0, *_LARGE, -40.0)),
    "ive": Row(_i, _orders((0.0, 2.5, 6.0), 1e-9, 1.0, *_LARGE), without=(0,)),
    "k0e": Row(lambda x: _k(0, x), at(1e-9, 1.0, *_LARGE)),
    "k1e": Row(lambda x: _k(1, x), at(1e-9, 1.0, *_LARGE)),
    "kve": Row(_k, _orders((0.0, 2.5, 6.0), 1e-9, *_LARGE), without=(0,)),
    "struve": Row(mp.struveh, ((0.0, 1e-6), (1.0, 1e-6), (0.5, 3.0), (0.0, 30.0), (1.5, 100.0), *_FAR), without=(0,)),
    "modstruve": Row(mp.struvel, ((0.0, 1e-6), (1.0, 1e-6), (0.5, 3.0), (1.5, 30.0), (0.0, 300.0), *_SMALL), without=(0,)),
    "ber": Row(lambda x: mp.ber(0, x), [(0.0,), *_KELVIN]),
    "bei": Row(lambda x: mp.bei(0, x), [(0.0,), *_KELVIN]),
    "ker": Row(lambda x: mp.ker(0, x), _KELVIN),
    "kei": Row(lambda x: mp.kei(0, x), _KELVIN),
    "berp": Row(_slope_of(mp.ber), _KELVIN),
    "beip": Row(_slope_of(mp.bei), _KELVIN),
    "kerp": Row(_slope_of(mp.ker), _KELVIN),
    "keip": Row(_slope_of(mp.kei), _KELVIN),
    "ber-ten": Row(lambda x: mp.ber(0, x), _TEN, 5e-9, _KELVIN_TEN),
    "bei-ten": Row(lambda x: mp.bei(0, x), _TEN, 5e-9, _KELVIN_TEN),
    "ker-ten": Row(lambda x: mp.ker(0, x), _TEN, 5e-9, _KELVIN_TEN),
    "kei-ten": Row(lambda x: mp.kei(0, x), _TEN, 5e-9, _KELVIN_TEN),
    "berp-ten": Row(_slope_of(mp.ber), _TEN, 5e-9, _KELVIN_TEN),
    "beip-ten": Row(_slope_of(mp.bei), _TEN, 5e-9, _KELVIN_TEN),
    "kerp-ten": Row(_slope_of(mp.ker), _TEN, 5e-9, _KELVIN_TEN),
    "keip-ten": Row(_slope_of(mp.kei), _TEN, 5e-9, _KELVIN_TEN),
    "airy": Row(mp.airyai, at(0.0, 1e-9, -1.0, 2.0, 10.0, 100.0, -30.0, -300.0)),
    "airy-slope": Row(
        lambda x: mp.airyai(x, derivative=1), at(0.0, 1e-9, -1.0, 10.0, 100.0, -30.0), call=_part("airy", 1)
    ),
    "airy-second": Row(mp.airybi, at(0.0, 1e-9, -1.0, 10.0, 100.0, -30.0), call=_part("airy", 2)),
    "airy-second-slope": Row(
        lambda x: mp.airybi(x, derivative=1), at(0.0, 1e-9, -1.0, 10.0, 100.0, -30.0), call=_part("airy", 3)
    ),
    "exp1": Row(mp.e1, at(1e-300, 0.99, 1.0, 1.01, 600.0)),
    "expi": Row(mp.ei, at(1e-300, 0.3, 1.0, -1e-9, -600.0, 39.0, 41.0, 600.0)),
    "expn": Row(mp.expint, _orders((0.0, 1.0, 2.0, 3.0, 60.0), 1e-9, 0.99, 1.01, 600.0), without=(0,)),
    "sici": Row(mp.si, at(0.0, 1e-300, 0.49, 0.51, 3.9, 4.1, -1.0, 1e3)),
    "sici-cosine": Row(mp.ci, at(1e-300, 0.5, 3.9, 4.1, 1e3), call=_part("sici", 1)),
    "shichi": Row(mp.shi, at(0.0, 1e-300, 0.49, 0.51, 7.9, 18.1, -1.0, 600.0)),
    "shichi-cosine": Row(mp.chi, at(1e-300, 0.6, 7.9, 18.1, 600.0), call=_part("shichi", 1)),
    "fresnel": Row(_fresnel(mp.fresnels, is_sine=True), at(1e-90, 1e-3, 1.0, -1.6, 1.61, 29.5, 1000.25)),
    "fresnel-cosine": Row(
        _fresnel(mp.fresnelc, is_sine=False), at(0.0, 1e-90, 1e-3, 1.1, -1.6, 1.61, 30.0, 1000.25), call=_part("fresnel", 1)
    ),
    "erfi": Row(mp.erfi, at(0.0, 1e-300, 0.5, 6.0, 20.0)),
    "wofz": Row(lambda x: mp.exp(-x * x), at(0.0, 1e-9, 1.0, -6.0, 25.0)),
    "wofz-imaginary": Row(
        lambda x: mp.im(_faddeeva(x)), at(0.0, 1e-9, 1.0, -6.0, 31.0, 1e3), call=lambda xp, x: xp.imag(xp.special.wofz(x))
    ),
    "wofz-complex": Row(
        lambda x, y: mp.re(_faddeeva(x + 1j * y)),
        ((0.0, 0.0), (0.5, 1.0), (1e-9, 40.0), (20.0, 1.0), (200.0, 300.0), (1.0, -2.0)),
        call=lambda xp, x, y: xp.real(xp.special.wofz(x + 1j * y)),
    ),
    "voigt_profile": Row(
        _voigt,
        ((0.0, 1.0, 1.0), (1.0, 1.0, 1e-9), (1.0, 1e-3, 0.5), (1.0, 1e-8, 0.5), (1.0, 1e-10, 0.5), (1.0, 1e-30, 0.5), (1e3, 1.0, 1e-6), (40.0, 1.0, 0.1), (1e4, 0.5, 2.0), (3.0, 1.0, 1e6)),
    ),
    "owens_t": Row(_owens_t, ((0.0, 0.5), (1e-9, 1.0), (1.0, 0.0), (1.0, -3.0), (6.0, 0.5), (-2.0, 1.5), (0.5, 30.0))),
    "ndtri_exp": Row(_log_probability_inverse, at(-1e-20, -1e-3, -0.5, -2.0, -40.0, -1e4)),
}  # fmt: skip
