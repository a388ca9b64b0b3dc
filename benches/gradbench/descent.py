"""Gradient descent as "particle" and "saddle" state it, and gradients in both modes, for nests of derivatives.

The algorithm (Pearlmutter and Siskind, "Using programming language theory to make automatic differentiation sound and efficient", 2008): from the
step size 1e-5 on, a step that lowers the function is taken, and after ten in a row the size is doubled; one that does not halves it. It ends where
the gradient, or a step, is no longer than 1e-5.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import oxigrad as ox

Point = Sequence[Any]
Function = Callable[[Point], Any]
Gradient = Callable[[Function], Callable[[Point], list[Any]]]
TOLERANCE = 1e-5


def forward(f: Function) -> Callable[[Point], list[Any]]:
    """The gradient of a function of a few numbers, by one call and a push of each unit vector."""

    def gradient(x: Point) -> list[Any]:
        _, derivative = ox.linearize(f, list(x))
        return [derivative([float(k == at) for k in range(len(x))]) for at in range(len(x))]

    return gradient


def reverse(f: Function) -> Callable[[Point], list[Any]]:
    """The gradient of a function of a few numbers, in one pass."""
    found = ox.grad(f)
    return lambda x: found(list(x))


MODES: dict[str, Gradient] = {"f": forward, "r": reverse}


def length(x: Point) -> Any:
    return math.sqrt(sum(float(each) ** 2 for each in x))


def argmin(f: Function, start: Point, gradient: Gradient, eta: float = 1e-5) -> list[Any]:
    """The end of the descent from ``start``. Its numbers may be variables of a derivative outside of it."""
    slope = gradient(f)
    x, value, downhill, successes = list(start), f(start), slope(start), 0
    while length(downhill) > TOLERANCE:
        if successes == 10:
            eta, successes = 2.0 * eta, 0
            continue
        ahead = [a - eta * d for a, d in zip(x, downhill, strict=True)]
        if length([a - b for a, b in zip(x, ahead, strict=True)]) <= TOLERANCE:
            break
        lower = f(ahead)
        if lower < value:
            x, value, downhill, successes = ahead, lower, slope(ahead), successes + 1
        else:
            eta, successes = 0.5 * eta, 0
    return x


def argmax(f: Function, start: Point, gradient: Gradient, eta: float = 1e-5) -> list[Any]:
    """The end of the ascent."""
    return argmin(lambda x: -f(x), start, gradient, eta)
