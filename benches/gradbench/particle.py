"""particle: where to put a charge so that a particle that flies by hits the origin, by a descent through the solver of its path.

A particle starts at (0, 8) with velocity (0.75, 0); two charges, at (10, 10 - w) and (10, 0), repel it with the potential that is the sum of
the inverse distances. Its acceleration is minus the gradient of the potential: a derivative in each step of Euler's method, of length 0.1,
until it crosses the first axis, where the place is interpolated. The result is the ``w`` that minimizes the square of that place
(Pearlmutter and Siskind, 2008; see `gradbench.descent`), from 0 on. The letters of a variant are the modes of the derivatives by ``w``
and by the position. HIPS autograd takes minutes, so that there is no peer.
"""

from typing import Any

import sizes
from gradbench.contest import compared
from gradbench.descent import MODES, Gradient, argmin
from measure import Contestant, Goal, Ready, Row

STEP = 0.1


def inverse_distance(x: Any, y: Any) -> Any:
    return ((x[0] - y[0]) ** 2 + (x[1] - y[1]) ** 2) ** -0.5


def miss(w: Any, gradient: Gradient) -> Any:
    """The square of the place where the particle crosses the first axis."""
    charges = [(10.0, 10.0 - w[0]), (10.0, 0.0)]
    slope = gradient(lambda x: inverse_distance(x, charges[0]) + inverse_distance(x, charges[1]))
    x, v = [0.0, 8.0], [0.75, 0.0]
    while True:
        force = slope(x)
        ahead = [a + STEP * b for a, b in zip(x, v, strict=True)]
        if ahead[1] > 0.0:
            x, v = ahead, [b - STEP * s for b, s in zip(v, force, strict=True)]
        else:
            return (x[0] - x[1] / v[1] * v[0]) ** 2


def control(outer: Gradient, inner: Gradient, start: float = 0.0) -> float:
    """The ``w`` that is found."""
    return float(argmin(lambda w: miss(w, inner), [start], outer)[0])


# The value that GradBench publishes, and derivatives by hand give.
EXPECTED = 0.207191875


def ours(variant: str) -> Ready:
    """oxigrad; where sizes are small, it begins near the end."""
    outer, inner = (MODES[letter] for letter in variant)
    start, tolerance = (0.2072, 1e-4) if sizes.is_small() else (0.0, 1e-6)
    return compared(lambda: control(outer, inner, start), EXPECTED, "the control", 0.0, tolerance)


ROWS = [
    Row(
        f"gradbench particle {variant}",
        lambda variant=variant: [Contestant("oxigrad", "ours", lambda: ours(variant))],
        goals,
        samples=3,
        warm=False,
    )
    for variant, goals in (("ff", ()), ("fr", ()), ("rf", ()), ("rr", (Goal(1.2),)))
]
