"""ode: the last element of the solution of a system of differential equations by Runge and Kutta, and its gradient by the rates.

``y_0' = x_0`` and ``y_i' = x_i y_(i-1)`` with ``y(0) = 0`` (the problem "an_ode" of Bell's cmpad), by the classical method of order four with
``s`` steps up to the time 2. The exact solution is ``y_i(t) = x_0 ... x_i t^(i+1) / (i+1)!``, which the method has for ``i < 4``.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gradbench import cpp
from gradbench.contest import Arrays, gradient_row, size
from measure import Contestant, Goal
from rows.gradients import Objective, Problem

END = 2.0
STEPS = size(100, 3)


def solution(lib: Any, x: Any, steps: int) -> Any:
    """``y`` at the end."""
    first, rest, step = x[:1], x[1:], END / steps

    def change(y: Any) -> Any:
        return lib.concat([first, rest * y[:-1]])

    def after(y: Any) -> Any:
        k1 = change(y)
        k2 = change(y + 0.5 * step * k1)
        k3 = change(y + 0.5 * step * k2)
        k4 = change(y + step * k3)
        return y + step / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)

    return repeated(lib, after, 0.0 * x, steps)


def repeated(lib: Any, f: Callable[[Any], Any], y: Any, times: int) -> Any:
    """``f(f(... f(y)))``; in JAX by a scan, since it takes minutes to compile a program of all steps."""
    if lib.__name__ == "jax.numpy":
        import jax

        return jax.lax.scan(lambda y, _: (f(y), None), y, None, length=times)[0]
    for _ in range(times):
        y = f(y)
    return y


def problem(n: int, steps: int) -> Problem:
    """The last element of the solution, and rates."""
    return lambda lib, x: solution(lib, x, steps)[-1], lambda: [np.random.default_rng(0).uniform(0.5, 1.5, n)]


def by_hand(objective: Objective, args: Arrays) -> Contestant:
    """The objective in C++."""
    return cpp.contestant("ode", [*args, args[0].size, STEPS], lambda: float(objective(np, *args)))


ROWS = [
    gradient_row(
        f"gradbench ode n{n} s100", lambda n=n: problem(size(n, 4), STEPS), goals, by_hand=by_hand, samples=samples
    )
    for n, goals, samples in ((1000, (Goal(1.5, "jax, jit"), Goal(0.5, cpp.NAME)), 9), (100_000, (), 3))
]
