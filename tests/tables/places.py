"""Rows of the tables of special places, and functions in mpmath that several of them read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from mpmath import mp, mpf

Point = tuple[float, ...]
Function = Callable[..., Any]


class Row(NamedTuple):
    """A function in mpmath, and special points inside of its domain.

    ``error`` is the bound of relative errors, and ``why`` says what is inexact where it is above `EXACT`. ``without`` are the places
    of the arguments by which a derivative is refused. ``call`` is how `oxigrad.xp` is called, where it is not simply by the arguments.
    Arguments at ``whole`` are given as integers, which have no derivative.
    """

    f: Function
    points: Sequence[Point]
    error: float = 1e-12
    why: str = ""
    without: tuple[int, ...] = ()
    call: Function | None = None
    whole: tuple[int, ...] = ()


EXACT = 1e-12
"""The bound of relative errors that needs no reason."""


def at(*numbers: float) -> list[Point]:
    """Points of a function of one argument."""
    return [(x,) for x in numbers]


def gamma_p(a: Any, x: Any) -> Any:
    """The regularized lower incomplete gamma function."""
    if x > 20 and x > a + 1:
        return 1 - gamma_q(a, x)
    return x**a * mp.exp(-x) * mp.hyp1f1(1, a + 1, x) / mp.gamma(a + 1)


def gamma_q(a: Any, x: Any) -> Any:
    """The regularized upper incomplete gamma function, where it is small by Legendre's continued fraction."""
    if x <= 20 or x <= a + 1:
        with mp.extraprec(100):
            return 1 - gamma_p(a, x)
    fraction = mpf(0)
    for k in range(int((0.2 * mp.prec) ** 2 / x) + 20, 0, -1):
        fraction = k * (a - k) / (x + 2 * k + 1 - a + fraction)
    return x**a * mp.exp(-x) / (mp.gamma(a) * (x + 1 - a + fraction))


def beta_i(a: Any, b: Any, x: Any, rest: Any) -> Any:
    """The regularized incomplete beta function of ``x``, given ``rest = 1 - x``."""
    if a + b > 1000:
        return _beta_of_large(a, b, x, rest)
    if x > 0.5:
        return 1 - beta_i(b, a, rest, x)
    return x**a * mp.hyp2f1(a, 1 - b, a + 1, x) / (a * mp.beta(a, b))


def _beta_of_large(a: Any, b: Any, x: Any, rest: Any) -> Any:
    """By the series of positive terms (DLMF 8.17.8), of the side on which they fall."""
    if rest < 0.1 or (x > 0.1 and x * (a + b) > a + 1):
        return 1 - _beta_of_large(b, a, rest, x)
    total, term, k = mpf(0), mp.exp(a * mp.log(x) + b * mp.log(rest) - _log_beta(a, b)) / a, 0
    while term > total * mpf(2) ** -mp.prec:
        total += term
        term *= (a + b + k) / (a + 1 + k) * x
        k += 1
    return total


def _log_beta(a: Any, b: Any) -> Any:
    return mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)


def student(df: Any, t: Any) -> Any:
    """The distribution function of Student's t distribution."""
    tail = beta_i(df / 2, mpf(1) / 2, df / (df + t * t), t * t / (df + t * t)) / 2
    return tail if t < 0 else 1 - tail


def inverse(f: Function, start: Function) -> Function:
    """The inverse of ``f`` in its last argument, by the secant method from what a function of floats finds."""

    def of(*args: Any) -> Any:
        *parameters, p = args
        first = mpf(float(start(*map(float, args))))
        low, high = first, first * (1 - mpf(2) ** -40)
        below, above = (f(*parameters, x) - p for x in (low, high))
        while abs(high - low) > abs(high) * mpf(2) ** (20 - mp.prec) and above != below:
            low, high, below = high, high - above * (high - low) / (above - below), above
            above = f(*parameters, high) - p
        return high

    return of
