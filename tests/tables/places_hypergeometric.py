"""Special places of hypergeometric functions, orthogonal polynomials, elliptic integrals and Lambert's function."""

from __future__ import annotations

from typing import Any

from mpmath import mp, mpf

from places import Function, Point, Row, at


def _degrees(*rest: Point) -> list[Point]:
    return [(n, *each) for n in (0.0, 1.0, 2.0, 5.0, 20.0) for each in rest]


def _radians(f: Function) -> Function:
    return lambda x: f(x / 180)


_INSIDE: list[Point] = at(-1.0, -0.3, 0.0, 1e-9, 0.7, 1.0, 1.5)
_REAL: list[Point] = at(-2.5, 0.0, 1e-9, 0.7, 30.0)


def _with(parameters: Point, points: list[Point]) -> list[Point]:
    return [(*parameters, *point) for point in points]


def _hermitenorm(n: Any, x: Any) -> Any:
    return mp.hermite(n, x / mp.sqrt(2)) / mp.sqrt(2) ** n


def _jacobi(n: Any, a: Any, b: Any, x: Any) -> Any:
    return mp.jacobi(int(n), a, b, x)


def _gegenbauer(n: Any, a: Any, x: Any) -> Any:
    """By the recurrence (DLMF 18.9.1)."""
    before, now = mpf(0), mpf(1)
    for k in range(int(n)):
        before, now = now, (2 * (k + a) * x * now - (k + 2 * a - 1) * before) / (k + 1)
    return now


def _laguerre(n: Any, a: Any, x: Any) -> Any:
    before, now = mpf(0), mpf(1)
    for k in range(int(n)):
        before, now = now, ((2 * k + 1 + a - x) * now - (k + a) * before) / (k + 1)
    return now


def _wright(z: Any) -> Any:
    if z < -100:
        return mp.exp(z)  # its relative error is that exponential
    y = z - mp.log(z) if z > 2 else mp.lambertw(mp.exp(z))
    for _ in range(12):
        y -= (y + mp.log(y) - z) * y / (1 + y)
    return y


def _w(k: int) -> Function:
    return lambda z: mp.re(mp.lambertw(z, k))


def _lambert(k: int) -> Function:
    return lambda xp, z: xp.real(xp.special.lambertw(z, k))


_ANGLES: list[Point] = [
    (phi, m) for phi in (0.0, 1e-9, 0.7, -1.5, 10.0) for m in (0.0, 1e-9, 0.0299, 0.0301, 0.9, -10.0, -1e4)
]

ROWS: dict[str, Row] = {
    "hyp0f1": Row(mp.hyp0f1, ((1.5, 0.0), (1.5, 1e-9), (1.5, -30.0), (0.5, 30.0), (2.0, 400.0), (-0.5, 1.0)), without=(0,)),
    "hyp1f1": Row(
        mp.hyp1f1,
        ((1.5, 2.5, 0.0), (1.5, 2.5, 1e-9), (1.5, 2.5, -50.0), (1.5, 2.5, 50.0), (-2.0, 3.0, 4.0), (0.0, 3.0, 4.0), (2.5, 2.5, 1.0), (0.5, -1.5, 2.0)),
        without=(0, 1),
    ),
    "hyperu": Row(
        mp.hyperu,
        ((1.5, 2.5, 1e-6), (1.5, 2.5, 0.7), (1.5, 2.5, 100.0), (1.5, 1.0, 0.5), (0.0, 1.5, 2.0), (-2.0, 1.5, 2.0), (1.0, 2.0, 3.0)),
        without=(0, 1),
    ),
    "hyp2f1": Row(
        mp.hyp2f1,
        ((1.5, 2.5, 0.7, 0.0), (1.5, 2.5, 0.7, 1e-9), (1.5, 2.5, 0.7, 0.89), (1.5, 2.5, 0.7, 0.999), (1.5, 2.5, 0.7, -0.99), (1.5, 2.5, 0.7, -5.0),
         (1.0, 1.0, 2.0, 0.5), (-3.0, 2.0, 1.5, 0.5), (0.0, 2.0, 1.5, 0.5), (0.5, 0.25, 3.5, 1.0 - 2.0**-20), (1.0, 2.0, 2.0, 0.3)),
        without=(0, 1, 2),
    ),
    "eval_legendre": Row(mp.legendre, _degrees(*_INSIDE), without=(0,), whole=(0,)),
    "eval_chebyt": Row(mp.chebyt, _degrees(*_INSIDE), without=(0,), whole=(0,)),
    "eval_chebyu": Row(mp.chebyu, _degrees(*_INSIDE), without=(0,), whole=(0,)),
    "eval_hermite": Row(mp.hermite, _degrees(*_REAL), without=(0,), whole=(0,)),
    "eval_hermitenorm": Row(_hermitenorm, _degrees(*_REAL), without=(0,), whole=(0,)),
    "eval_laguerre": Row(lambda n, x: _laguerre(n, 0, x), _degrees(*_REAL), without=(0,), whole=(0,)),
    "eval_genlaguerre": Row(_laguerre, _degrees(*_with((0.5,), _REAL)), without=(0, 1), whole=(0,)),
    "eval_gegenbauer": Row(_gegenbauer, _degrees(*_with((0.5,), _INSIDE), *_with((2.5,), _INSIDE)), without=(0, 1), whole=(0,)),
    "eval_jacobi": Row(_jacobi, _degrees(*_with((0.5, 1.5), _INSIDE)), without=(0, 1, 2), whole=(0,)),
    "ellipk": Row(mp.ellipk, at(0.0, 1e-9, 0.099, 0.101, -1e6, 1.0 - 2.0**-40)),
    "ellipe": Row(mp.ellipe, at(0.0, 1e-9, 0.099, 0.101, -1e6, 1.0 - 2.0**-40)),
    "ellipkm1": Row(lambda p: mp.ellipk(1 - p), at(1e-20, 0.5, 1.0, 0.89, 1.11)),
    "ellipkinc": Row(mp.ellipf, _ANGLES),
    "ellipkinc-one": Row(mp.ellipf, ((1.5, 1.0 - 2.0**-30), (1.5, 1.0), (0.7, 1.0), (-0.7, 1.0), (0.7, 0.96), (0.7, 0.98))),
    "ellipeinc": Row(mp.ellipe, [*_ANGLES, (1.5, 1.0 - 2.0**-30), (0.7, 1.0)]),
    "agm": Row(mp.agm, ((1.0, 1.0), (1.0, 1e-20), (3.0, 2.999), (2.0, 24.0), (1e150, 1.0), (1e200, 3e200), (1e-200, 3e-200))),
    "lambertw": Row(_w(0), at(0.0, 1e-300, 1.0, -0.25, -0.3675, 1e300), call=_lambert(0)),
    "lambertw-below": Row(_w(-1), at(-1e-300, -0.1, -0.3675), call=_lambert(-1)),
    "wrightomega": Row(_wright, at(0.0, 1.0, -1.9, 2.1, -49.0, -51.0, -700.0, 1e9, 1e21)),
    "zeta": Row(mp.zeta, ((3.0, 1e-9), (1.001, 2.0), (3.0, 1e6), (50.0, 1.0), (2.0, 9.5), (500.0, 100.0))),
    "zeta-riemann": Row(
        mp.zeta, at(2.0, 1.001, 50.0, 0.5, 0.0, -0.5, -1.5, -2.0, -20.5), call=lambda xp, x: xp.special.zeta(x)
    ),
    "zetac": Row(lambda x: mp.zeta(x) - 1, at(2.0, 1.001, 50.0, 0.5, -0.5, -1.5, -20.5)),
    "polygamma": Row(
        lambda n, x: mp.polygamma(int(n), x),
        [(n, x) for n in (0.0, 1.0, 3.0) for x in (1e-9, 1.0, 20.0, 1e9)],
        without=(0,),
    ),
    "sindg": Row(_radians(mp.sinpi), at(0.0, 1e-9, 30.0, -45.0, 180.0, 1e6 + 7.0)),
    "cosdg": Row(_radians(mp.cospi), at(0.0, 1e-9, 30.0, -45.0, 90.0, 1e6 + 7.0)),
    "tandg": Row(_radians(lambda x: mp.sinpi(x) / mp.cospi(x)), at(0.0, 1e-9, 30.0, -45.0, 1e6 + 7.0)),
    "cotdg": Row(_radians(lambda x: mp.cospi(x) / mp.sinpi(x)), at(30.0, -45.0, 90.0, 1e6 + 7.0)),
    "tandg-pole": Row(_radians(lambda x: mp.sinpi(x) / mp.cospi(x)), at(89.999), 1e-11, "SciPy rounds the distance from the pole"),
    "cotdg-pole": Row(_radians(lambda x: mp.cospi(x) / mp.sinpi(x)), at(1e-3, 179.999), 1e-10, "SciPy reads the tangent of 90 less the angle"),
    "radian": Row(lambda d, m, s: (d + m / 60 + s / 3600) * mp.pi / 180, ((0.0, 0.0, 0.0), (-30.0, 1e-9, 1e9))),
}  # fmt: skip
