"""Derivatives of both orders of elementwise functions against mpmath, over all exponents of float64 and float32.

A derivative may lose the digits that a rounded argument loses: its condition number is in the bound.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp

special = xp.special


class Row(NamedTuple):
    """A function, its first and its second derivative by mpmath, and the open interval of its arguments."""

    ours: Callable[..., Any]
    first: Callable[[Any], Any]
    second: Callable[[Any], Any]
    low: float = -mp.inf
    high: float = mp.inf
    # The arguments next to which the digits of the argument itself count: those of ``1 + x`` for ``log1p``.
    edges: tuple[float, ...] = ()
    # The size of terms that cancel next to a root of the second derivative.
    terms: Callable[[Any], Any] = lambda _: 0


def logistic(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def sech2(x: Any) -> Any:
    return mp.sech(x) ** 2


def logistic_slope(x: Any) -> Any:
    return logistic(x) * logistic(-x)


def logistic_bend(x: Any) -> Any:
    return -logistic_slope(x) * mp.tanh(x / 2)


def bell(x: Any) -> Any:
    return 2 / mp.sqrt(mp.pi) * mp.exp(-x * x)


def rgamma_slope(x: Any) -> Any:
    return -mp.digamma(x) * mp.rgamma(x)


ROWS = {
    "square": Row(xp.square, lambda x: 2 * x, lambda x: mp.mpf(2)),
    "sqrt": Row(xp.sqrt, lambda x: 1 / (2 * mp.sqrt(x)), lambda x: -1 / (4 * x * mp.sqrt(x)), 0),
    "reciprocal": Row(xp.reciprocal, lambda x: -(x**-2), lambda x: 2 * x**-3),
    "quotient": Row(lambda x: 3.0 / x, lambda x: -3 * x**-2, lambda x: 6 * x**-3),
    "cube": Row(lambda x: x**3.0, lambda x: 3 * x**2, lambda x: 6 * x),
    "power": Row(lambda x: x**0.25, lambda x: mp.sqrt(mp.sqrt(x)) / x / 4, lambda x: -3 * mp.sqrt(mp.sqrt(x)) / x**2 / 16, 0),
    "exponential": Row(lambda x: 0.5**x, lambda x: -mp.log(2) * mp.mpf(2) ** -x, lambda x: mp.log(2) ** 2 * mp.mpf(2) ** -x),
    "exp": Row(xp.exp, mp.exp, mp.exp),
    "exp2": Row(special.exp2, lambda x: mp.log(2) * 2**x, lambda x: mp.log(2) ** 2 * 2**x),
    "exp10": Row(special.exp10, lambda x: mp.log(10) * 10**x, lambda x: mp.log(10) ** 2 * 10**x),
    "expm1": Row(xp.expm1, mp.exp, mp.exp),
    "log": Row(xp.log, lambda x: 1 / x, lambda x: -1 / x**2, 0),
    "log2": Row(xp.log2, lambda x: 1 / x / mp.log(2), lambda x: -1 / x**2 / mp.log(2), 0),
    "log10": Row(xp.log10, lambda x: 1 / x / mp.log(10), lambda x: -1 / x**2 / mp.log(10), 0),
    "log1p": Row(xp.log1p, lambda x: 1 / (1 + x), lambda x: -1 / (1 + x) ** 2, -1, edges=(-1,)),
    "sin": Row(xp.sin, mp.cos, lambda x: -mp.sin(x)),
    "cos": Row(xp.cos, lambda x: -mp.sin(x), lambda x: -mp.cos(x)),
    "tan": Row(xp.tan, lambda x: mp.sec(x) ** 2, lambda x: 2 * mp.tan(x) * mp.sec(x) ** 2),
    "sinh": Row(xp.sinh, mp.cosh, mp.sinh),
    "cosh": Row(xp.cosh, mp.sinh, mp.cosh),
    "tanh": Row(xp.tanh, sech2, lambda x: -2 * mp.tanh(x) * sech2(x)),
    "asin": Row(xp.asin, lambda x: 1 / mp.sqrt(1 - x * x), lambda x: x / (1 - x * x) ** 1.5, -1, 1, (-1, 1)),
    "acos": Row(xp.acos, lambda x: -1 / mp.sqrt(1 - x * x), lambda x: -x / (1 - x * x) ** 1.5, -1, 1, (-1, 1)),
    "atan": Row(xp.atan, lambda x: 1 / (1 + x * x), lambda x: -2 * x / (1 + x * x) ** 2),
    "asinh": Row(xp.asinh, lambda x: 1 / mp.sqrt(1 + x * x), lambda x: -x / (1 + x * x) ** 1.5),
    "acosh": Row(xp.acosh, lambda x: 1 / mp.sqrt(x * x - 1), lambda x: -x / (x * x - 1) ** 1.5, 1, edges=(1,)),
    "atanh": Row(xp.atanh, lambda x: 1 / (1 - x * x), lambda x: 2 * x / (1 - x * x) ** 2, -1, 1, (-1, 1)),
    "cbrt": Row(special.cbrt, lambda x: mp.cbrt(x) / (3 * x), lambda x: -2 * mp.cbrt(x) / (9 * x * x), 0),
    "expit": Row(special.expit, logistic_slope, logistic_bend, terms=logistic_slope),
    "log_expit": Row(special.log_expit, lambda x: logistic(-x), lambda x: -logistic_slope(x)),
    "softplus": Row(special.softplus, logistic, logistic_slope),
    "logit": Row(special.logit, lambda x: 1 / (x * (1 - x)), lambda x: (2 * x - 1) / (x * (1 - x)) ** 2, 0, 1, (1,), lambda x: 4 + 0 * x),
    "erf": Row(special.erf, bell, lambda x: -2 * x * bell(x)),
    "erfc": Row(special.erfc, lambda x: -bell(x), lambda x: 2 * x * bell(x)),
    "sech": Row(lambda x: 1.0 / xp.cosh(x), lambda x: -mp.sech(x) * mp.tanh(x), lambda x: mp.sech(x) * (1 - 2 * sech2(x)), -80, 80, terms=mp.sech),
    "rgamma": Row(special.rgamma, rgamma_slope, lambda x: mp.rgamma(x) * (mp.digamma(x) ** 2 - mp.polygamma(1, x)), -170, 170, terms=lambda x: abs(mp.rgamma(x)) * (mp.digamma(x) ** 2 + mp.polygamma(1, x))),
    "hypot_with_one": Row(lambda x: xp.hypot(x, 1.0), lambda x: x / mp.sqrt(1 + x * x), lambda x: (1 + x * x) ** -1.5),
    "hypot_with_three": Row(lambda x: xp.hypot(3.0, x), lambda x: x / mp.sqrt(9 + x * x), lambda x: 9 * (9 + x * x) ** -1.5),
    "angle_of_sine": Row(lambda x: xp.atan2(x, 1.0), lambda x: 1 / (1 + x * x), lambda x: -2 * x / (1 + x * x) ** 2),
    "angle_of_cosine": Row(lambda x: xp.atan2(2.0, x), lambda x: -2 / (4 + x * x), lambda x: 4 * x / (4 + x * x) ** 2),
}  # fmt: skip

# What a rounding of the argument costs, beside which a rule may lose some units in the last place.
UNITS = 24.0


def arguments(row: Row, dtype: Any) -> np.ndarray:
    """Arguments of all exponents in the interval, of both signs, and next to the edges."""
    limits = np.finfo(dtype)
    exponents = np.linspace(float(np.log10(limits.smallest_normal)) * 0.98, float(np.log10(limits.max)) * 0.98, 25)
    sizes = [*(1.2345 * 10.0**exponents), *np.geomspace(1e-3, 700.0, 21)]
    points = [*sizes, *(-size for size in sizes)]
    for edge in row.edges:
        points += [edge + sign * abs(edge) * 10.0**-k for k in range(1, 15) for sign in (-1.0, 1.0)]
    points = np.array(points).astype(dtype)
    return np.unique(points[(points > float(row.low)) & (points < float(row.high)) & (points != 0)])


def condition(f: Callable[[Any], Any], x: Any, edges: tuple[float, ...]) -> Any:
    """The relative change of ``f`` by one of its argument; next to an edge, by one of the distance from it."""
    step = mp.mpf(2) ** -40
    size = min([abs(x), *(abs(x - edge) for edge in edges)])
    at = f(x)
    return abs(f(x + size * step) - at) / abs(at) / step if at else mp.mpf(0)


def misses(found: np.ndarray, points: np.ndarray, row: Row, order: int) -> Iterator[str]:
    limits = np.finfo(points.dtype)
    f = (row.first, row.second)[order - 1]
    for value, point in zip(found, points, strict=True):
        x = mp.mpf(float(point))
        expected = f(x)
        if abs(expected) > 0.99 * float(limits.max):
            continue
        allowed = abs(expected) * (1 + condition(f, x, row.edges)) + (row.terms(x) if order == 2 else 0)
        allowed = UNITS * float(limits.eps) * allowed + UNITS * float(limits.smallest_normal)
        if not abs(mp.mpf(float(value)) - expected) <= allowed:
            yield f"{float(point)!r}: found {float(value)!r}, expected {mp.nstr(expected, 17)}"


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ROWS)
def test_derivatives_keep_their_digits(name, dtype):
    row = ROWS[name]
    points = arguments(row, dtype)
    with mp.workprec(250), np.errstate(all="ignore"):
        first = ox.grad(lambda x: xp.sum(row.ours(x)))
        assert list(misses(first(points), points, row, 1)) == []
        assert list(misses(ox.grad(lambda x: xp.sum(first(x)))(points), points, row, 2)) == []


def total(x: Any, y: Any) -> Any:
    return x * x + y * y


class PairRow(NamedTuple):
    """A function of two arguments, and its gradient and Hessian (the upper triangle) by mpmath."""

    ours: Callable[..., Any]
    gradient: Callable[[Any, Any], tuple[Any, Any]]
    hessian: Callable[[Any, Any], tuple[Any, Any, Any]]


PAIRS = {
    "divide": PairRow(xp.divide, lambda x, y: (1 / y, -x / y**2), lambda x, y: (0, -1 / y**2, 2 * x / y**3)),
    "hypot": PairRow(
        xp.hypot,
        lambda x, y: (x / mp.sqrt(total(x, y)), y / mp.sqrt(total(x, y))),
        lambda x, y: tuple(t * total(x, y) ** -1.5 for t in (y * y, -x * y, x * x)),
    ),
    "atan2": PairRow(
        xp.atan2,
        lambda y, x: (x / total(x, y), -y / total(x, y)),
        lambda y, x: tuple(t / total(x, y) ** 2 for t in (-2 * x * y, (y - x) * (y + x), 2 * x * y)),
    ),
    "logaddexp": PairRow(
        xp.logaddexp,
        lambda x, y: (logistic(x - y), logistic(y - x)),
        lambda x, y: tuple(sign * logistic_slope(x - y) for sign in (1, -1, 1)),
    ),
}
SIZES = {
    "float64": (1e-200, 1e-100, 1e-10, 0.3, 1.0, 7.0, 1e8, 1e100, 1e200),
    "float32": (1e-30, 1e-9, 0.3, 1.0, 1e5, 1e30),
}


@pytest.mark.parametrize("dtype", SIZES)
@pytest.mark.parametrize("name", PAIRS)
def test_derivatives_by_two_arguments_keep_their_digits(name, dtype):
    row, limits = PAIRS[name], np.finfo(dtype)
    sizes = np.array([sign * size for size in SIZES[dtype] for sign in (-1.0, 1.0)])
    points = np.array(np.meshgrid(sizes, 1.2345 * sizes)).reshape(2, -1).astype(dtype)
    gradient = ox.grad(lambda x: xp.sum(row.ours(x[0], x[1])))
    with np.errstate(all="ignore"):
        first = gradient(points)
        second = [ox.grad(lambda x, i=i: xp.sum(gradient(x)[i]))(points) for i in range(2)]
    with mp.workprec(250):
        for at, (x, y) in enumerate(zip(*points.tolist(), strict=True)):
            expected = row.gradient(mp.mpf(x), mp.mpf(y)), row.hessian(mp.mpf(x), mp.mpf(y))
            found = (first[0][at], first[1][at]), (second[0][0][at], second[0][1][at], second[1][1][at])
            found, expected = [*found[0], *found[1]], [*expected[0], *expected[1]]
            if max(map(abs, expected)) > 0.99 * float(limits.max):
                continue  # the zero cotangent of one element meets an infinite derivative
            units = float(limits.eps) * UNITS * (1 + (abs(x - y) if name == "logaddexp" else 0.0))
            underflow = UNITS * float(limits.smallest_normal) / min(1.0, abs(x), abs(y))
            for f, e in zip(found, expected, strict=True):
                assert abs(mp.mpf(float(f)) - e) <= units * abs(e) + underflow, (x, y, float(f), mp.nstr(e, 17))


def test_the_angle_has_the_derivatives_of_pytorch_at_the_origin():
    torch = pytest.importorskip("torch")
    x, y = (torch.zeros(1, dtype=torch.float64, requires_grad=True) for _ in range(2))
    theirs = [g.tolist() for g in torch.autograd.grad(torch.atan2(x, y).sum(), (x, y))]
    ours = ox.grad(lambda z: xp.sum(xp.atan2(z[0], z[1])))(np.zeros((2, 1)))
    assert ours.tolist() == theirs
