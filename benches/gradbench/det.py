"""det: the determinant of a matrix by expansion by minors, and its gradient.

The minors of the last rows are sums over the columns of the row above, with alternating signs, of products with smaller minors (the problem
"det_by_minor" of Bell's cmpad). Each minor is computed once, all of one size together: ``n 2^(n-1)`` products in place of the ``n!``
of a recursion, with the same result.
"""

import itertools
from typing import Any

import numpy as np

from gradbench.contest import gradient_row, size
from measure import Goal
from rows.gradients import Problem, constants


def tables(n: int) -> list[np.ndarray]:
    """For each size of minors, the columns that they expand by and the smaller minors, of shape (2, minors, size)."""
    found = []
    smaller: dict[tuple[int, ...], int] = {(): 0}
    for count in range(1, n + 1):
        subsets = list(itertools.combinations(range(n), count))
        rest = [[smaller[(*columns[:at], *columns[at + 1 :])] for at in range(count)] for columns in subsets]
        found.append(np.array([subsets, rest]))
        smaller = {columns: at for at, columns in enumerate(subsets)}
    return found


def problem(n: int) -> Problem:
    """The determinant of a matrix of this size, and a matrix."""
    levels = tables(n)
    indices = constants(*(each for level in levels for each in level))
    signs = constants(*((-1.0) ** np.arange(count + 1) for count in range(n)))

    def determinant(lib: Any, matrix: Any) -> Any:
        index, sign = indices(lib), signs(lib)
        minors = matrix[n - 1][index[0]][:, 0]
        for count in range(2, n + 1):
            columns, rest = index[2 * count - 2 : 2 * count]
            minors = lib.sum(sign[count - 1] * matrix[n - count][columns] * minors[rest], axis=1)
        return minors[0]

    return determinant, lambda: [np.random.default_rng(0).uniform(-1.0, 1.0, (n, n))]


ROWS = [gradient_row("gradbench det 10", lambda: problem(size(10, 4)), (Goal(1.5, "jax, jit"),), samples=15)]
