"""The reference of special places: values and derivatives in mpmath; and those of ours, by both modes, to be compared with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np
from mpmath import mp, mpf

import oxigrad as ox
from oxigrad import xp

TOLERANCE = 1e-10
Note = Callable[[str], Any]


def log_of(p: Any, rest: Any) -> Any:
    """The logarithm of a probability, given ``rest = 1 - p``."""
    return mp.log(p) if p < 0.5 else mp.log1p(-rest)


def partials(f: Callable[..., Any], args: tuple[Any, ...], steps: list[Any]) -> list[Any]:
    """The value, then the derivative by each argument by a central difference."""
    results = [f(*args)]
    for at, step in enumerate(steps):
        if not step:  # of a derivative that is refused
            results.append(mp.nan)
            continue
        up, down = ([*args[:at], args[at] + sign * step, *args[at + 1 :]] for sign in (1, -1))
        results.append((f(*up) - f(*down)) / (2 * step))
    return results


def limit(before: Any, after: Any) -> Any:
    """The limit of a sequence, from two late members."""
    if abs(after - before) <= abs(before) * mpf(10) ** -6:
        return after
    return mp.inf * mp.sign(after) if abs(after) > 1.5 * abs(before) else mpf(0)


def nearest(x: Any) -> float:
    """The nearest float to the real part."""
    return float(mpmath.re(x))


def close(result: float, expected: float, rounding: float, tolerance: float = TOLERANCE) -> bool:
    """Whether a result is within a relative tolerance and an absolute error of rounding; infinity is next to the largest floats."""
    if math.isinf(expected) or math.isinf(result):
        return result == expected or (abs(result) > 1e307 and abs(expected) > 1e307 and result * expected > 0)
    return abs(result - expected) <= tolerance * abs(expected) + rounding


def _first(results: Any) -> Any:
    """The first of several results; its real part."""
    return xp.real(results[0] if isinstance(results, tuple) else results)


def value_and_derivatives(f: Callable[..., Any], args: tuple[Any, ...]) -> Iterator[list[Any]]:
    """The value and the derivatives of an elementwise function of arrays by each argument, None where it is refused; by each mode."""
    places = range(len(args))

    def of(at: int) -> Callable[[Any], Any]:
        return lambda x: f(*args[:at], x, *args[at + 1 :])

    for mode in ("rev", "fwd"):
        results: list[Any] = [_first(f(*args))]
        for at in places:
            if args[at].dtype == np.int64:
                results.append(None)
                continue
            try:
                if mode == "rev":
                    results.append(ox.grad(lambda x, at=at: xp.sum(_first(of(at)(x))))(args[at]))
                else:
                    results.append(_first(ox.jvp(of(at), (args[at],), (np.ones_like(args[at]),))[1]))
            except ox.DerivativeError:
                results.append(None)
        yield results
