"""Special places of the distributions, and their functions in mpmath.

A law gives the logarithm of the density and the distribution functions of the standardized number and of the shape parameters,
for numbers inside of the support; both distribution functions, so that logarithms and tails keep their digits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from mpmath import mp, mpf

from places import Function, beta_i, gamma_p, gamma_q, student


class Law(NamedTuple):
    """A distribution: the edges of its support, its functions, shape parameters to try, and places inside of the support."""

    low: float | Function
    high: float | Function
    log_density: Function
    lower: Function
    upper: Function
    shapes: Sequence[tuple[float, ...]] = ((),)
    places: Sequence[float] = ()
    # Those for which mpmath has no distribution function.
    only_density: Sequence[tuple[float, ...]] = ()
    # Parameters of which there is no distribution; by default, those of which one is negative.
    invalid: Sequence[tuple[float, ...]] | None = None
    # Whether edges are compared with limits: not where they are open, nor where logarithms of the far end of a tail are limits too slow to see.
    has_edges: Function = lambda *shapes: True

    def edges(self, shapes: tuple[float, ...]) -> tuple[float, float]:
        """The edges of the support for these shape parameters."""
        low, high = (float(edge(*shapes)) if callable(edge) else float(edge) for edge in (self.low, self.high))
        return low, high

    def inside(self, shapes: tuple[float, ...]) -> list[float]:
        """The places inside of the support."""
        low, high = self.edges(shapes)
        return [z for z in self.places if low < z < high]


def _erfc(x: Any) -> Any:
    if abs(x) < 1e4:
        return mp.erfc(x)
    u = 1 / (2 * x * x)
    return mpf(2) if x < 0 else mp.exp(-x * x) * (1 - u + 3 * u * u - 15 * u**3) / (x * mp.sqrt(mp.pi))


def _phi(z: Any) -> Any:
    return _erfc(-z / mp.sqrt(2)) / 2


def _log_phi_density(z: Any) -> Any:
    return -z * z / 2 - mp.log(2 * mp.pi) / 2


def _t_lower(z: Any, df: Any) -> Any:
    return student(df, z)


def _beta_lower(z: Any, a: Any, b: Any) -> Any:
    return beta_i(a, b, z, 1 - z)


def _f_lower(z: Any, n: Any, d: Any) -> Any:
    return beta_i(n / 2, d / 2, n * z / (n * z + d), d / (n * z + d))


def _f_upper(z: Any, n: Any, d: Any) -> Any:
    return beta_i(d / 2, n / 2, d / (n * z + d), n * z / (n * z + d))


def _log_f(z: Any, n: Any, d: Any) -> Any:
    return (n / 2 * mp.log(n / d) + (n / 2 - 1) * mp.log(z) - (n + d) / 2 * mp.log1p(n * z / d)
            - mp.log(mp.beta(n / 2, d / 2)))  # fmt: skip


def _hazard(low: float, hazard: Function, log_rate: Function, shapes: Any, places: Any) -> Law:
    return Law(
        low,
        mp.inf,
        lambda z, *s: log_rate(z, *s) - hazard(z, *s),
        lambda z, *s: -mp.expm1(-hazard(z, *s)),
        lambda z, *s: mp.exp(-hazard(z, *s)),
        shapes,
        places,
    )


def _mirrored(law: Law) -> Law:
    low, high = law.edges(law.shapes[0])
    return Law(
        -high,
        -low,
        lambda z, *s: law.log_density(-z, *s),
        lambda z, *s: law.upper(-z, *s),
        lambda z, *s: law.lower(-z, *s),
        law.shapes,
        [-z for z in law.places],
    )


def _softplus(z: Any) -> Any:
    return mp.log1p(mp.exp(-abs(z))) + max(z, 0)


_WHOLE = (0.0, 1e-8, -1e-8, 0.5, -0.5, 8.0, -8.0, 40.0, -40.0, 750.0, -750.0)
_FAR = (*_WHOLE, 1e8, -1e8, 1e160, -1e160, 1e190, -1e190)
_POSITIVE = (1e-190, 1e-160, 1e-20, 1e-8, 0.5, 1.0, 3.0, 30.0, 800.0)
_HEAVY = (*_POSITIVE, 1e160, 1e190)
_UNIT = (1e-190, 1e-160, 1e-8, 0.25, 0.5, 0.75, 1.0 - 2.0**-30, 1.0 - 2.0**-53)
# The density at an edge with these powers: infinite, finite, zero with a slope, with an infinite one, and without.
_POWERS = ((0.5,), (1.0,), (1.5,), (2.0,), (3.0,), (40.0,))

_gumbel_l = _hazard(-mp.inf, mp.exp, lambda z: z, ((),), (*_WHOLE, 7.0, 700.0, 720.0, -720.0, 2e3, -2e3))
_weibull = _hazard(0.0, lambda z, c: z**c, lambda z, c: mp.log(c) + (c - 1) * mp.log(z), _POWERS, (*_POSITIVE, 1e7))

LAWS: dict[str, Law] = {
    "norm": Law(-mp.inf, mp.inf, _log_phi_density, _phi, lambda z: _phi(-z), places=(*_FAR, -12.0, -13.0, 12.5)),
    "t": Law(
        -mp.inf,
        mp.inf,
        lambda z, df: -(df + 1) / 2 * mp.log1p(z * z / df) - mp.log(df) / 2 - mp.log(mp.beta(df / 2, mpf(1) / 2)),
        _t_lower,
        lambda z, df: _t_lower(-z, df),
        ((0.5,), (1.0,), (3.5,), (300.0,)),
        (*_FAR, 1e9, -1e9),
        ((1e10,),),
    ),
    "laplace": Law(
        -mp.inf,
        mp.inf,
        lambda z: -abs(z) - mp.log(2),
        lambda z: mp.exp(z) / 2 if z < 0 else 1 - mp.exp(-z) / 2,
        lambda z: mp.exp(-z) / 2 if z > 0 else 1 - mp.exp(z) / 2,
        places=_FAR,
    ),
    "logistic": Law(
        -mp.inf,
        mp.inf,
        lambda z: -_softplus(z) - _softplus(-z),
        lambda z: mp.exp(-_softplus(-z)),
        lambda z: mp.exp(-_softplus(z)),
        places=_FAR,
    ),
    "cauchy": Law(
        -mp.inf,
        mp.inf,
        lambda z: -mp.log1p(z * z) - mp.log(mp.pi),
        lambda z: mp.atan2(1, -z) / mp.pi,
        lambda z: mp.atan2(1, z) / mp.pi,
        places=_FAR,
    ),
    "moyal": Law(
        -mp.inf,
        mp.inf,
        lambda z: -(z + mp.exp(-z) + mp.log(2 * mp.pi)) / 2,
        lambda z: _erfc(mp.exp(-z / 2) / mp.sqrt(2)),
        lambda z: mp.erf(mp.exp(-z / 2) / mp.sqrt(2)),
        places=(*_WHOLE, -1400.0, -1430.0, 1480.0, 2e3, -2e3),
    ),
    "gumbel_l": _gumbel_l,
    "gumbel_r": _mirrored(_gumbel_l),
    "expon": _hazard(0.0, lambda z: z, lambda z: mpf(0), ((),), (*_POSITIVE, 1e160)),
    "rayleigh": _hazard(0.0, lambda z: z * z / 2, mp.log, ((),), (*_POSITIVE, 1e160, 1e190)),
    "weibull_min": _weibull,
    "weibull_max": _mirrored(_weibull),
    "pareto": _hazard(
        1.0, lambda z, b: b * mp.log(z), lambda z, b: mp.log(b / z), ((0.5,), (2.5,)), (1.0 + 2e-16, 2.0, 1e8, 1e190)
    ),
    "lomax": _hazard(
        0.0, lambda z, c: c * mp.log1p(z), lambda z, c: mp.log(c) - mp.log1p(z), ((0.5,), (2.5,)), _HEAVY
    ),
    "gompertz": _hazard(
        0.0,
        lambda z, c: c * mp.expm1(z),
        lambda z, c: mp.log(c) + z,
        ((1.7,), (1e-300,), (300.0,)),
        (*_POSITIVE, 695.0, 720.0, 2e3),
    ),
    "fisk": _hazard(
        0.0,
        lambda z, c: mp.log1p(z**c),
        lambda z, c: mp.log(c) + (c - 1) * mp.log(z) - mp.log1p(z**c),
        _POWERS,
        _HEAVY,
    ),
    "halflogistic": _hazard(
        0.0, lambda z: _softplus(z) - mp.log(2), lambda z: -_softplus(-z), ((),), (*_POSITIVE, 1e160)
    ),
    "uniform": Law(0.0, 1.0, lambda z: mpf(0) * z, lambda z: z, lambda z: 1 - z, places=_UNIT),
    "powerlaw": Law(
        0.0,
        1.0,
        lambda z, a: mp.log(a) + (a - 1) * mp.log(z),
        lambda z, a: z**a,
        lambda z, a: -mp.expm1(a * mp.log(z)),
        _POWERS,
        _UNIT,
    ),
    "beta": Law(
        0.0,
        1.0,
        lambda z, a, b: (a - 1) * mp.log(z) + (b - 1) * mp.log1p(-z) - mp.log(mp.beta(a, b)),
        _beta_lower,
        lambda z, a, b: beta_i(b, a, 1 - z, z),
        ((0.5, 0.5), (1.0, 1.0), (2.0, 3.0), (3.0, 2.0), (1.5, 40.0)),
        _UNIT,
    ),
    "gamma": Law(
        0.0, mp.inf, lambda z, a: (a - 1) * mp.log(z) - z - mp.loggamma(a), lambda z, a: gamma_p(a, z),
        lambda z, a: gamma_q(a, z), _POWERS, _POSITIVE,
    ),
    "chi2": Law(
        0.0,
        mp.inf,
        lambda z, k: (k / 2 - 1) * mp.log(z / 2) - z / 2 - mp.loggamma(k / 2) - mp.log(2),
        lambda z, k: gamma_p(k / 2, z / 2),
        lambda z, k: gamma_q(k / 2, z / 2),
        ((1.0,), (2.0,), (3.0,), (4.0,), (55.0,)),
        (*_POSITIVE, 1600.0),
    ),
    "chi": Law(
        0.0,
        mp.inf,
        lambda z, k: (k - 1) * mp.log(z) - z * z / 2 - (k / 2 - 1) * mp.log(2) - mp.loggamma(k / 2),
        lambda z, k: gamma_p(k / 2, z * z / 2),
        lambda z, k: gamma_q(k / 2, z * z / 2),
        ((0.5,), (1.0,), (2.0,), (5.0,)),
        (1e-190, 1e-160, 1e-20, 1e-8, 0.5, 1.0, 3.0, 40.0),
    ),
    "maxwell": Law(
        0.0,
        mp.inf,
        lambda z: 2 * mp.log(z) - z * z / 2 + mp.log(2 / mp.pi) / 2,
        lambda z: gamma_p(mpf(3) / 2, z * z / 2),
        lambda z: gamma_q(mpf(3) / 2, z * z / 2),
        places=(1e-190, 1e-160, 1e-20, 1e-8, 0.5, 1.0, 3.0, 40.0),
    ),
    "invgamma": Law(
        0.0,
        mp.inf,
        lambda z, a: -(a + 1) * mp.log(z) - mp.loggamma(a) - 1 / z,
        lambda z, a: gamma_q(a, 1 / z),
        lambda z, a: gamma_p(a, 1 / z),
        ((0.5,), (1.0,), (2.5,)),
        (1e-3, 1.4e-3, 0.02, 0.5, 1.0, 3.0, 1e8, 1e160, 1e190),
    ),
    "lognorm": Law(
        0.0,
        mp.inf,
        lambda z, s: _log_phi_density(mp.log(z) / s) - mp.log(s * z),
        lambda z, s: _phi(mp.log(z) / s),
        lambda z, s: _phi(-mp.log(z) / s),
        ((0.1,), (1.0,), (4.0,)),
        _HEAVY,
    ),
    "halfnorm": Law(
        0.0,
        mp.inf,
        lambda z: _log_phi_density(z) + mp.log(2),
        lambda z: mp.erf(z / mp.sqrt(2)),
        lambda z: _erfc(z / mp.sqrt(2)),
        places=(*_POSITIVE, 1e160),
    ),
    "halfcauchy": Law(
        0.0,
        mp.inf,
        lambda z: mp.log(2 / mp.pi) - mp.log1p(z * z),
        lambda z: 2 / mp.pi * mp.atan(z),
        lambda z: 2 / mp.pi * mp.atan(1 / z),
        places=_HEAVY,
    ),
    "levy": Law(
        0.0,
        mp.inf,
        lambda z: -(mp.log(2 * mp.pi) + 3 * mp.log(z) + 1 / z) / 2,
        lambda z: _erfc(mp.sqrt(1 / (2 * z))),
        lambda z: mp.erf(mp.sqrt(1 / (2 * z))),
        places=(1e-140, 1e-20, 1e-8, 5e-4, 0.5, 1.0, 30.0, 1e8, 1e160, 1e190),
    ),
    "f": Law(
        0.0,
        mp.inf,
        _log_f,
        _f_lower,
        _f_upper,
        ((1.0, 2.0), (2.0, 3.0), (3.0, 2.0), (4.0, 3.0), (6.0, 9.0)),
        (1e-190, 1e-160, 1e-8, 0.5, 1.0, 3.0, 1e8, 1e160, 1e190),
    ),
}  # fmt: skip


def _of_normal(to: Function, log_slope: Function, **fields: Any) -> Law:
    return Law(
        fields.pop("low", -mp.inf),
        fields.pop("high", mp.inf),
        lambda z, *s: _log_phi_density(to(z, *s)) + log_slope(z, *s),
        lambda z, *s: _phi(to(z, *s)),
        lambda z, *s: _phi(-to(z, *s)),
        **fields,
    )


def _doubled(law: Law, places: Sequence[float]) -> Law:
    return Law(
        -mp.inf,
        mp.inf,
        lambda z, *s: law.log_density(abs(z), *s) - mp.log(2),
        lambda z, *s: law.upper(-z, *s) / 2 if z < 0 else (1 + law.lower(z, *s)) / 2,
        lambda z, *s: law.upper(z, *s) / 2 if z > 0 else (1 + law.lower(-z, *s)) / 2,
        law.shapes,
        places,
    )


def _between(a: Any, b: Any) -> Any:
    return _phi(-a) - _phi(-b) if a > 0 else _phi(b) - _phi(a)


def _extreme(z: Any, c: Any) -> Any:
    return mp.exp(-z) if c == 0 else (1 - c * z) ** (1 / c)


_SIGNED = (1e-8, -1e-8, 0.5, -0.5, 8.0, -8.0, 30.0, -30.0)
_FURTHER: dict[str, Law] = {
    "betaprime": Law(
        0.0,
        mp.inf,
        lambda z, a, b: (a - 1) * mp.log(z) - (a + b) * mp.log1p(z) - mp.log(mp.beta(a, b)),
        lambda z, a, b: beta_i(a, b, z / (1 + z), 1 / (1 + z)),
        lambda z, a, b: beta_i(b, a, 1 / (1 + z), z / (1 + z)),
        ((0.5, 2.0), (1.0, 1.0), (2.0, 3.0), (3.0, 2.5)),
        (1e-160, 1e-8, 0.5, 1.0, 3.0, 1e8, 1e160),
    ),
    "burr12": _hazard(
        0.0,
        lambda z, c, d: d * mp.log1p(z**c),
        lambda z, c, d: mp.log(c * d) + (c - 1) * mp.log(z) - mp.log1p(z**c),
        ((0.5, 2.0), (1.0, 0.5), (1.5, 3.0), (2.0, 1.0), (3.0, 1.5)),
        _HEAVY,
    ),
    "genpareto": Law(
        0.0,
        lambda c: -1.0 / c if c < 0 else mp.inf,
        lambda z, c: -(1 + 1 / c) * mp.log1p(c * z),
        lambda z, c: -mp.expm1(-mp.log1p(c * z) / c),
        lambda z, c: mp.exp(-mp.log1p(c * z) / c),
        ((-2.0,), (-1.0,), (-0.3,), (1e-9,), (0.3,), (2.0,)),
        (1e-160, 1e-8, 0.25, 0.45, 1.0, 3.0, 100.0),
        invalid=((math.inf,),),
        has_edges=lambda c: False,
    ),
    "genextreme": Law(
        lambda c: 1.0 / c if c < 0 else -mp.inf,
        lambda c: 1.0 / c if c > 0 else mp.inf,
        lambda z, c: (1 - c) * mp.log(_extreme(z, c)) - _extreme(z, c),
        lambda z, c: mp.exp(-_extreme(z, c)),
        lambda z, c: -mp.expm1(-_extreme(z, c)),
        ((-2.0,), (-0.3,), (1e-9,), (0.3,), (1.0,), (2.0,)),
        (-30.0, -6.0, -0.4, -1e-8, 1e-8, 0.45, 0.9, 3.0, 30.0),
        invalid=((math.inf,),),
        has_edges=lambda c: False,
    ),
    "genlogistic": Law(
        -mp.inf,
        mp.inf,
        lambda z, c: mp.log(c) - _softplus(z) - c * _softplus(-z),
        lambda z, c: mp.exp(-c * _softplus(-z)),
        lambda z, c: -mp.expm1(-c * _softplus(-z)),
        ((0.5,), (1.0,), (3.0,)),
        _WHOLE,
    ),
    "hypsecant": Law(
        -mp.inf,
        mp.inf,
        lambda z: mp.log(mp.sech(z) / mp.pi),
        lambda z: 2 / mp.pi * mp.atan(mp.exp(z)),
        lambda z: 2 / mp.pi * mp.atan(mp.exp(-z)),
        places=_WHOLE,
    ),
    "arcsine": Law(
        0.0,
        1.0,
        lambda z: -mp.log(mp.pi) - (mp.log(z) + mp.log1p(-z)) / 2,
        lambda z: 2 / mp.pi * mp.asin(mp.sqrt(z)),
        lambda z: 2 / mp.pi * mp.acos(mp.sqrt(z)),
        places=_UNIT,
    ),
    "loglaplace": Law(
        0.0,
        mp.inf,
        lambda z, c: mp.log(c / 2) - mp.log(z) - c * abs(mp.log(z)),
        lambda z, c: z**c / 2 if z < 1 else 1 - z**-c / 2,
        lambda z, c: z**-c / 2 if z > 1 else 1 - z**c / 2,
        _POWERS[:-1],
        (1e-160, 1e-8, 0.25, 0.75, 3.0, 1e8, 1e100),
    ),
    "dweibull": _doubled(_weibull, _SIGNED),
    "dgamma": _doubled(LAWS["gamma"], _SIGNED),
    "fatiguelife": _of_normal(
        lambda z, c: (mp.sqrt(z) - 1 / mp.sqrt(z)) / c,
        lambda z, c: mp.log1p(z) - mp.log(2 * c) - 3 * mp.log(z) / 2,
        low=0.0,
        shapes=((0.3,), (1.0,), (4.0,)),
        places=(1e-8, 1e-3, 0.5, 1.0, 3.0, 30.0, 1e8),
    ),
    "johnsonsu": _of_normal(
        lambda z, a, b: a + b * mp.asinh(z),
        lambda z, a, b: mp.log(b) - mp.log1p(z * z) / 2,
        shapes=((-1.0, 0.5), (0.3, 1.7), (0.1, 3.0)),
        places=(0.0, 1e-8, -1e-8, 0.5, -0.5, 8.0, -8.0, 1e8, -1e8),
        invalid=((0.3, -1.0), (math.inf, 1.0)),
    ),
    "johnsonsb": _of_normal(
        lambda z, a, b: a + b * (mp.log(z) - mp.log1p(-z)),
        lambda z, a, b: mp.log(b) - mp.log(z) - mp.log1p(-z),
        low=0.0,
        high=1.0,
        shapes=((-1.0, 0.5), (0.3, 1.7)),
        places=(1e-100, 1e-8, 0.25, 0.5, 0.75, 1.0 - 2.0**-30),
        invalid=((0.3, -1.0), (math.inf, 1.0)),
    ),
    "triang": Law(
        0.0,
        1.0,
        lambda z, c: mp.log(2 * z / c) if z < c else mp.log(2 * (1 - z) / (1 - c)),
        lambda z, c: z * z / c if z < c else 1 - (1 - z) ** 2 / (1 - c),
        lambda z, c: 1 - z * z / c if z < c else (1 - z) ** 2 / (1 - c),
        ((0.01,), (0.6,), (0.3,)),
        (1e-160, 1e-8, 0.25, 0.5, 0.75, 1.0 - 2.0**-30),
        invalid=((-0.1,), (1.1,)),
    ),
    "truncnorm": Law(
        lambda a, b: a,
        lambda a, b: b,
        lambda z, a, b: _log_phi_density(z) - mp.log(_between(a, b)),
        lambda z, a, b: _between(a, z) / _between(a, b),
        lambda z, a, b: _between(z, b) / _between(a, b),
        ((-1.0, 2.5), (5.0, 5.1), (3.0, 40.0), (-40.0, -30.0), (-50.0, 50.0)),
        (-45.0, -31.0, -30.5, -0.5, 0.0, 1e-8, 2.0, 3.5, 5.001, 5.09, 30.0, 45.0),
        invalid=((2.0, 1.0), (1.0, 1.0)),
        has_edges=lambda a, b: b - a < 5.0,
    ),
    "truncexpon": Law(
        0.0,
        lambda b: b,
        lambda z, b: -z - mp.log(-mp.expm1(-b)),
        lambda z, b: mp.expm1(-z) / mp.expm1(-b),
        lambda z, b: mp.exp(-z) * mp.expm1(z - b) / mp.expm1(-b),
        ((1e-9,), (800.0,), (3.0,)),
        (1e-160, 3e-10, 1e-8, 0.5, 2.5, 30.0, 799.0),
        has_edges=lambda b: b < 100.0,
    ),
}
LAWS |= _FURTHER
