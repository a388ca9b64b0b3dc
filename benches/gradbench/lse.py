"""lse: the logarithm of a sum of exponentials, less the largest before and with it after, and its gradient."""

from typing import Any

import numpy as np

from gradbench.contest import gradient_row, size
from measure import Goal


def log_sum_exp(lib: Any, x: Any) -> Any:
    """``log sum exp x``, without overflow."""
    largest = lib.max(x)
    return largest + lib.log(lib.sum(lib.exp(x - largest)))


def numbers(count: int) -> list[np.ndarray]:
    """Numbers whose exponentials overflow."""
    return [1000.0 + 5.0 * np.random.default_rng(0).standard_normal(count)]


ROWS = [
    gradient_row(
        "gradbench lse n1280000",
        lambda: (log_sum_exp, lambda: numbers(size(1_280_000, 16))),
        (Goal(1.5, "jax, jit"),),
        samples=15,
    )
]
