"""saddle: the saddle point of a quadratic function, by a descent in a descent.

``min_x max_y f(x, y)`` with ``f(x, y) = x_1^2 + x_2^2 - y_1^2 - y_2^2``, from the point (1, 1) on for both (Pearlmutter and Siskind, 2008; see
`gradbench.descent`). The derivative of the outer descent goes through all steps of the inner one. The modes of outer and inner derivatives
are the letters of a variant: "fr" is forward over reverse.
"""

from typing import Any

import numpy as np

import sizes
from gradbench.contest import compared
from gradbench.descent import MODES, Gradient, argmax, argmin
from measure import Contestant, Goal, Ready, Row

START = (1.0, 1.0)
# The first step, as it is stated and where sizes are small.
STEP, LARGE_STEP = 1e-5, 0.04


def f(x: Any, y: Any) -> Any:
    return (x[0] * x[0] + x[1] * x[1]) - (y[0] * y[0] + y[1] * y[1])


def saddle_point(outer: Gradient, inner: Gradient, step: float = STEP) -> list[float]:
    """``x`` and ``y``, four numbers."""

    def highest(x: Any) -> Any:
        return f(x, argmax(lambda y: f(x, y), START, inner, step))

    x = argmin(highest, START, outer, step)
    y = argmax(lambda y: f(x, y), START, outer, step)
    return [float(each) for each in (*x, *y)]


def checked(outer: Gradient, inner: Gradient) -> Ready:
    """A contestant, which begins with a larger step where sizes are small."""
    step = LARGE_STEP if sizes.is_small() else STEP
    return compared(lambda: saddle_point(outer, inner, step), np.zeros(4), "the saddle point", 0.0, 1e-4)


def in_autograd() -> Ready:
    """HIPS autograd, reverse over reverse."""
    from autograd import grad

    def reverse(f: Any) -> Any:
        found = grad(f)
        return lambda x: found(list(x))

    return checked(reverse, reverse)


def contestants(variant: str) -> list[Contestant]:
    outer, inner = (MODES[letter] for letter in variant)
    peers = [Contestant("autograd", "peer", in_autograd)] if variant == "rr" else []
    return [Contestant("oxigrad", "ours", lambda: checked(outer, inner)), *peers]


ROWS = [
    Row(f"gradbench saddle {variant}", lambda variant=variant: contestants(variant), goals, samples=samples, warm=False)
    for variant, goals, samples in (("ff", (), 3), ("fr", (), 3), ("rf", (), 3), ("rr", (Goal(0.3),), 1))
]
