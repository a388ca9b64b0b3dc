"""llsq: the sum of squares of a polynomial's distances from the sign function, and its gradient by the coefficients.

``y(x) = 1/2 sum_i (s_i - x_0 - x_1 t_i - x_2 t_i^2 - ...)^2`` with ``t_i = -1 + 2 i / (n - 1)`` and ``s_i = sign(t_i)`` (the problem
"llsq_obj" of Bell's cmpad). The polynomial is evaluated by Horner's rule.
"""

from typing import Any

import numpy as np

from gradbench.contest import gradient_row, size
from measure import Goal
from rows.gradients import Problem, constants


def problem(n: int, m: int) -> Problem:
    """The function of ``m`` coefficients at ``n`` places, and coefficients."""
    places = np.linspace(-1.0, 1.0, n)
    data = constants(places, np.sign(places))

    def objective(lib: Any, x: Any) -> Any:
        t, s = data(lib)
        value = x[m - 1]
        for at in range(m - 2, -1, -1):
            value = value * t + x[at]
        return 0.5 * lib.sum((s - value) ** 2)

    return objective, lambda: [np.random.default_rng(0).standard_normal(m)]


ROWS = [
    gradient_row(
        "gradbench llsq n16392 m128",
        lambda: problem(size(16_392, 16), size(128, 4)),
        (Goal(1.5, "jax, jit"),),
        samples=9,
    )
]
