"""Special places of incomplete gamma and beta functions, of the distribution functions that are such, and of their inverses."""

from __future__ import annotations

from typing import Any

import scipy.special
from mpmath import mp

from places import Function, Point, Row, beta_i, gamma_p, gamma_q, inverse, student


def _with(parameters: Point, *numbers: float) -> list[Point]:
    return [(*parameters, x) for x in numbers]


def _swapped(f: Function) -> Function:
    return lambda *args: f(*args[1::-1], *args[2:])


def _beta(a: Any, b: Any, x: Any) -> Any:
    return beta_i(a, b, x, 1 - x)


def _beta_rest(a: Any, b: Any, x: Any) -> Any:
    return beta_i(b, a, 1 - x, x)


def _at_most(k: Any, n: Any, p: Any) -> Any:
    return beta_i(n - mp.floor(k), mp.floor(k) + 1, 1 - p, p)


def _more_than(k: Any, n: Any, p: Any) -> Any:
    return beta_i(mp.floor(k) + 1, n - mp.floor(k), p, 1 - p)


def _failures(k: Any, n: Any, p: Any) -> Any:
    return beta_i(n, k + 1, p, 1 - p)


def _more_failures(k: Any, n: Any, p: Any) -> Any:
    return beta_i(k + 1, n, 1 - p, p)


def _f_lower(n: Any, d: Any, x: Any) -> Any:
    return beta_i(n / 2, d / 2, n * x / (n * x + d), d / (n * x + d))


def _f_upper(n: Any, d: Any, x: Any) -> Any:
    return beta_i(d / 2, n / 2, d / (n * x + d), n * x / (n * x + d))


def _chi_lower(v: Any, x: Any) -> Any:
    return gamma_p(v / 2, x / 2)


def _chi_upper(v: Any, x: Any) -> Any:
    return gamma_q(v / 2, x / 2)


def _chance(k: Any, n: Any, p: Any) -> Any:
    return 1 - inverse(_beta, scipy.special.betaincinv)(n - k, k + 1, p)


_GAMMA = ((1.0, 1e-9), (2.0, 1e-9), (0.5, 1e-200), (2.0, 50.0), (2.0, 700.0), (50.0, 49.0), (50.0, 10.0), (1e-9, 1.0))
_SHARE = (1e-300, 1e-9, 0.3, 0.7, 1.0 - 2.0**-30)
_BETA = [point for a, b in ((2.5, 0.7), (1.0, 1.0), (0.1, 50.0), (40.0, 30.0)) for point in _with((a, b), *_SHARE)]
_INVERSE_GAMMA = [(a, p) for a in (0.5, 2.0, 50.0) for p in (1e-100, 1e-9, 0.3, 1.0 - 2.0**-20)]
_INVERSE_BETA = [(2.5, 0.7, p) for p in (1e-100, 1e-9, 0.3, 1.0 - 2.0**-20)] + _with((40.0, 30.0), 1e-9, 0.3)
_P = (1e-9, 0.3, 0.7, 1.0 - 2.0**-30)
_BINOMIAL = [
    *_with((2.0, 5.0), *_P),
    *_with((0.0, 5.0), *_P),
    *_with((4.0, 5.0), *_P),
    *_with((30.0, 100.0), 1e-3, 0.3, 0.9),
]
_NEGATIVE = [*_with((2.0, 5.0), *_P), *_with((0.0, 1.0), *_P), *_with((30.0, 100.0), 0.1, 0.7)]
_F = [*_with((3.5, 2.5), 1e-100, 1e-9, 1.0, 1e9), *_with((1.0, 2.0), 1e-9, 3.0), *_with((60.0, 40.0), 0.3, 1.0, 9.0)]

ROWS: dict[str, Row] = {
    "gammainc": Row(gamma_p, _GAMMA),
    "gammaincc": Row(gamma_q, _GAMMA),
    "gammaincinv": Row(inverse(gamma_p, scipy.special.gammaincinv), _INVERSE_GAMMA),
    "gammainccinv": Row(inverse(gamma_q, scipy.special.gammainccinv), _INVERSE_GAMMA),
    "betainc": Row(_beta, _BETA),
    "betaincc": Row(_beta_rest, _BETA),
    "betaincinv": Row(inverse(_beta, scipy.special.betaincinv), _INVERSE_BETA),
    "betainccinv": Row(inverse(_beta_rest, scipy.special.betainccinv), _INVERSE_BETA[1:]),
    "bdtr": Row(_at_most, _BINOMIAL, without=(0, 1)),
    "bdtrc": Row(_more_than, _BINOMIAL, without=(0, 1)),
    "bdtri": Row(_chance, _with((2.0, 5.0), 1e-100, 1e-9, 0.3, 0.999), without=(0, 1)),
    "nbdtr": Row(_failures, _NEGATIVE, without=(0, 1)),
    "nbdtrc": Row(_more_failures, _NEGATIVE, without=(0, 1)),
    "chdtr": Row(_chi_lower, _GAMMA),
    "chdtrc": Row(_chi_upper, _GAMMA),
    "chdtri": Row(inverse(_chi_upper, scipy.special.chdtri), _INVERSE_GAMMA),
    "gdtr": Row(lambda a, b, x: gamma_p(b, a * x), [(3.0, *point) for point in _GAMMA]),
    "gdtrc": Row(lambda a, b, x: gamma_q(b, a * x), [(3.0, *point) for point in _GAMMA]),
    "pdtr": Row(lambda k, m: gamma_q(mp.floor(k) + 1, m), ((0.5, 1e-9), (3.5, 2.0), (3.5, 700.0), (100.5, 90.0))),
    "pdtrc": Row(lambda k, m: gamma_p(mp.floor(k) + 1, m), ((0.5, 1e-9), (3.5, 2.0), (3.5, 1e-30), (100.5, 90.0))),
    "pdtri": Row(inverse(lambda k, m: gamma_q(k + 1, m), scipy.special.pdtri), [(k, p) for k in (0.0, 3.0, 100.0) for p in (1e-9, 0.3, 0.999)], without=(0,)),
    "stdtr": Row(student, [(df, t) for df in (1.0, 3.5, 300.0) for t in (0.0, -1.0, 20.0, -1e6, -1e9)]),
    "stdtr-centre": Row(student, ((1.0, 1e-9), (3.5, -1e-9)), 1e-9, "SciPy has 0.5"),
    "stdtrit": Row(inverse(student, scipy.special.stdtrit), [(df, p) for df in (1.0, 3.5, 300.0) for p in (1e-100, 1e-9, 0.3, 0.999)]),
    "fdtr": Row(_f_lower, _F),
    "fdtrc": Row(_f_upper, _F),
    "fdtri": Row(inverse(_f_lower, scipy.special.fdtri), _with((3.5, 2.5), 1e-100, 1e-9, 0.3, 0.999)),
}  # fmt: skip
