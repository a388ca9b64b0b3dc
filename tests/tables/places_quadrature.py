"""Special places of further distributions, most of them by quadrature, and their functions in mpmath: by series of positive terms, or tanh-sinh quadrature."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

from mpmath import mp, mpf

from places import gamma_p, gamma_q
from places_stats import Law

_POSITIVE = (1e-190, 1e-160, 1e-20, 1e-8, 0.25, 0.5, 1.0, 3.0)


def _density(z: Any) -> Any:
    return mp.exp(-z * z / 2) / mp.sqrt(2 * mp.pi)


def _tail(z: Any) -> Any:
    return mp.erfc(z / mp.sqrt(2)) / 2


def _remembered(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that is not computed again for the methods that share it."""
    cached = functools.cache(lambda precision, *args: f(*args))
    return lambda *args: cached(mp.prec, *args)


# --- skew normal -------------------------------------------------------------------------------------------------------


@_remembered
def _least(w: Any, a: Any) -> Any:
    """The probability below ``-w``, for ``w`` and ``a`` of at least zero, by Owen's T: of the angles up to ``a``, or of those from it on."""
    if w < mpf("0.1"):
        angle = mp.quad(lambda t: mp.exp(-((w / mp.cos(t)) ** 2) / 2), mp.linspace(0, mp.atan(a), 7)) if a else 0
        return _tail(w) - angle / mp.pi
    end = mp.sqrt(mpf("0.7") * mp.prec + 40)
    # r**2 is the exponent beyond that at the angle of a.
    f = lambda r: 2 * r * mp.exp(-r * r) / ((1 + a * a + 2 * (r / w) ** 2) * w * mp.sqrt((w * a) ** 2 + 2 * r * r))  # noqa: E731
    return mp.exp(-w * w * (1 + a * a) / 2) * mp.quad(f, [0, 0.5, 1, 2, 4, 8, end]) / mp.pi


def _skew(z: Any, a: Any) -> Any:
    w, same = abs(z), (z < 0) == (a >= 0)
    least = _least(w, abs(a))
    if z < 0:
        return least if same else 2 * _tail(w) - least
    return 1 - least if a < 0 else 1 - 2 * _tail(w) + least


# --- Rice --------------------------------------------------------------------------------------------------------------


def _rice_series(z: Any, b: Any) -> tuple[Any, Any]:
    """The probabilities below and above ``z``: of fewer and of at least as many counts of one mean as of another."""
    x, mean = z * z / 2, b * b / 2
    here, there = mp.exp(-x), mp.exp(-mean)
    below, above, up_to_here, before_there = mpf(0), mpf(0), mpf(0), mpf(0)
    for k in itertools.count():
        if k > 4 * (x + mean) and here < below * mpf(2) ** -mp.prec and there < above * mpf(2) ** -mp.prec:
            break
        up_to_here += here
        below += here * before_there
        above += there * up_to_here
        before_there += there
        here, there = here * x / (k + 1), there * mean / (k + 1)
    return below, above


_rice = _remembered(_rice_series)


# --- inverse Gaussian --------------------------------------------------------------------------------------------------


def _gauss(z: Any, mu: Any, sign: int) -> Any:
    with mp.extraprec(400):
        below, above = (z / mu - 1) / mp.sqrt(z), (z / mu + 1) / mp.sqrt(z)
        return _tail(-sign * below) + sign * mp.exp(2 / mu) * _tail(above)


# --- von Mises ---------------------------------------------------------------------------------------------------------


def _circle_series(z: Any, kappa: Any) -> Any:
    """By the Fourier series, of Bessel functions from Miller's recurrence (DLMF 3.6.v)."""
    with mp.extraprec(int(6 * kappa) + 100):
        count = int(mp.sqrt(2 * kappa * mp.prec) + 2 * mp.sqrt(mp.prec)) + 60
        ratios = [mpf(0)] * (count + 1)  # of each order to the one below
        for n in range(count - 1, 0, -1):
            ratios[n] = 1 / (2 * n / kappa + ratios[n + 1])
        total, share = mpf(0), mpf(1)
        for n in range(1, count):
            share *= ratios[n]
            total += share * mp.sin(n * z) / n
        return mpf(1) / 2 + z / (2 * mp.pi) + total / mp.pi


_circle = _remembered(_circle_series)


def _log_ratio(b: Any, a: Any) -> Any:
    return mp.log(b) - mp.log(a)


_LOG_UNIFORM = Law(
    lambda a, b: a,
    lambda a, b: b,
    lambda z, a, b: -mp.log(z) - mp.log(_log_ratio(b, a)),
    lambda z, a, b: _log_ratio(z, a) / _log_ratio(b, a),
    lambda z, a, b: _log_ratio(b, z) / _log_ratio(b, a),
    ((0.25, 3.0), (1e-160, 1e160), (1.0, 1.0 + 2.0**-20), (2.0, 2.5)),
    (1e-150, 0.3, 1.0 + 2.0**-40, 1.0 + 2.0**-21, 2.0 + 2.0**-40, 2.25, 2.9, 1e150),
    invalid=((2.0, 1.0), (-1.0, 1.0), (1.0, 1.0)),
    has_edges=lambda a, b: b < 10.0,
)


def _nakagami(z: Any, nu: Any) -> Any:
    return mp.log(2) + nu * mp.log(nu) - mp.loggamma(nu) + (2 * nu - 1) * mp.log(z) - nu * z * z


LAWS: dict[str, Law] = {
    "loguniform": _LOG_UNIFORM,
    "reciprocal": _LOG_UNIFORM,
    "nakagami": Law(
        0.0,
        mp.inf,
        _nakagami,
        lambda z, nu: gamma_p(nu, nu * z * z),
        lambda z, nu: gamma_q(nu, nu * z * z),
        ((0.25,), (0.5,), (1.0,), (40.0,), (2.5,)),
        (1e-190, 1e-160, 1e-20, 1e-8, 0.5, 1.0, 1.25, 3.0, 12.0),
    ),
    "skewnorm": Law(
        -mp.inf,
        mp.inf,
        lambda z, a: mp.log(2) + mp.log(_density(z)) + mp.log(_tail(-a * z)),
        _skew,
        lambda z, a: _skew(-z, -a),
        ((-3.0,), (1e-9,), (1e3,), (2.0,)),
        (0.0, 1e-8, -1e-8, -1e-3, 1e-3, 0.5, -0.5, 8.0, -8.0, 40.0, -40.0),
        invalid=((math.inf,),),
    ),
    "invgauss": Law(
        0.0,
        mp.inf,
        lambda z, mu: -mp.log(2 * mp.pi * z**3) / 2 - (z / mu - 1) ** 2 / (2 * z),
        lambda z, mu: _gauss(z, mu, 1),
        lambda z, mu: _gauss(z, mu, -1),
        ((0.5,), (1e-4,), (1e6,), (2.0,)),
        (1e-100, 1e-8, 5e-4, 0.9e-4, 1e-4, 1.1e-4, 0.1, 0.5, 2.0, 2.1, 30.0, 800.0, 1e6),
    ),
    "rice": Law(
        0.0,
        mp.inf,
        lambda z, b: mp.log(z) - (z * z + b * b) / 2 + mp.log(mp.besseli(0, b * z)),
        lambda z, b: _rice(z, b)[0],
        lambda z, b: _rice(z, b)[1],
        ((3.0,), (1e-9,), (30.0,), (2.0,)),
        (*_POSITIVE, 1.19, 1.21, 2.01, 29.9, 30.5, 45.0),
        invalid=((-1.0,), (math.inf,)),
        has_edges=lambda b: b < 10.0,
    ),
    "vonmises": Law(
        -mp.inf,
        mp.inf,
        lambda z, kappa: kappa * mp.cos(z) - mp.log(2 * mp.pi * mp.besseli(0, kappa)),
        _circle,
        lambda z, kappa: _circle(-z, kappa),
        ((300.0,), (1e-9,), (40.0,), (2.0,)),
        (0.0, 1e-8, -1e-8, 1e-3, 0.5, -0.5, 2.0, 3.125, -3.125),
        invalid=((-1.0,), (math.inf,)),
    ),
}
