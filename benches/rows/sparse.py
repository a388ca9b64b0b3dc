"""Adam on an embedding table of a million rows, of which each step touches a thousand.

What a step costs should grow with the rows touched, not with the table: the ceiling is NumPy reading and writing those rows of the
parameter and both slots. Our own dense step is timed as well, for how much of the table a sparse one saves.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import oxigrad as ox
import sizes
from measure import Contestant, Goal, Ready, Row, close

ROWS_OF_TABLE, WIDTH, TOUCHED = sizes.numbers(1_000_000), 64, 1000
RATE, BETA1, BETA2, EPSILON = 1e-2, 0.9, 0.999, 1e-8
CHECKED_STEPS = 3
SHAPE = (ROWS_OF_TABLE, WIDTH)


class Problem:
    """A table, the rows that are touched (some twice, in no order), their gradients, and where three steps must lead."""

    def __init__(self, duplicates: bool) -> None:
        rng = np.random.default_rng(0)
        self.table = rng.standard_normal(SHAPE, dtype=np.float32)
        self.ids = rng.choice(ROWS_OF_TABLE, TOUCHED, replace=False)
        if duplicates:
            self.ids[: TOUCHED // 10] = self.ids[-TOUCHED // 10 :]
        self.values = rng.standard_normal((TOUCHED, WIDTH), dtype=np.float32)

    @functools.cached_property
    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """The indices, each once, and their gradients added up in float64."""
        indices, inverse = np.unique(self.ids, return_inverse=True)
        sums = np.zeros((len(indices), WIDTH))
        np.add.at(sums, inverse, self.values.astype(np.float64))
        return indices, sums

    def expected(self, epsilon: Callable[[int], float]) -> np.ndarray:
        """The touched rows after three steps as the paper writes them, in float64: all of them are touched by each."""
        indices, g = self.rows
        p, m, v = self.table[indices].astype(np.float64), np.zeros_like(g), np.zeros_like(g)
        for t in range(1, CHECKED_STEPS + 1):
            m = BETA1 * m + (1 - BETA1) * g
            v = BETA2 * v + (1 - BETA2) * g**2
            p -= RATE * (m / (1 - BETA1**t)) / (np.sqrt(v / (1 - BETA2**t)) + epsilon(t))
        return p

    def ready(
        self,
        call: Callable[[], Any],
        table: Callable[[], np.ndarray],
        epsilon: Callable[[int], float] = lambda t: EPSILON,
    ) -> Ready:
        """A contestant that updates `table()`, which no other rows of may change."""

        def check() -> None:
            for _ in range(CHECKED_STEPS):
                call()
            indices, _ = self.rows
            close(table()[indices], self.expected(epsilon), what="the rows touched", relative=4e-7, absolute=1e-6)
            others = np.setdiff1d(np.arange(ROWS_OF_TABLE), indices)
            close(table()[others], self.table[others], what="the other rows")

        return Ready(call, check)


def ours(problem: Problem, sparse: str) -> Ready:
    """Rows that are touched, by either family that leaves the others alone."""
    model, opt = {"table": problem.table.copy()}, ox.optim.Adam(RATE, BETA1, BETA2, EPSILON, sparse=sparse)

    def call() -> None:
        opt.update(model, {"table": ox.SparseRows(problem.ids, problem.values, SHAPE)})

    return problem.ready(call, lambda: model["table"])


def ours_dense(problem: Problem) -> Ready:
    """The dense gradient, which the call does not make: only rows with a gradient are compared."""
    model, opt = {"table": problem.table.copy()}, ox.optim.Adam(RATE, BETA1, BETA2, EPSILON)
    g = ox.SparseRows(problem.ids, problem.values, SHAPE).todense()
    return problem.ready(lambda: opt.update(model, {"table": g}), lambda: model["table"])


def torch_sparse_adam(problem: Problem) -> Ready:
    """torch.optim.SparseAdam on an uncoalesced gradient, as an embedding with sparse=True makes it."""
    import torch

    parameter = torch.tensor(problem.table, requires_grad=True)
    opt = torch.optim.SparseAdam([parameter], RATE, (BETA1, BETA2), EPSILON)
    indices, values = torch.tensor(problem.ids)[None], torch.tensor(problem.values)

    def call() -> None:
        parameter.grad = torch.sparse_coo_tensor(indices, values, SHAPE, check_invariants=False)
        opt.step()

    # It adds epsilon before it corrects the bias.
    return problem.ready(call, lambda: parameter.detach().numpy(), lambda t: EPSILON / (1 - BETA2**t) ** 0.5)


def numpy_rows(problem: Problem) -> Ready:
    """Adam in NumPy on the rows, which are added up first, read by index and assigned by index."""
    p, taken = problem.table.copy(), [0]
    m, v = np.zeros_like(p), np.zeros_like(p)

    def call() -> None:
        taken[0] += 1
        t, (indices, inverse) = taken[0], np.unique(problem.ids, return_inverse=True)
        g = np.zeros((len(indices), WIDTH), np.float32)
        np.add.at(g, inverse, problem.values)
        m_rows = BETA1 * m[indices] + (1 - BETA1) * g
        v_rows = BETA2 * v[indices] + (1 - BETA2) * g * g
        p[indices] -= RATE / (1 - BETA1**t) * m_rows / (np.sqrt(v_rows / (1 - BETA2**t)) + EPSILON)
        m[indices], v[indices] = m_rows, v_rows

    return problem.ready(call, lambda: p)


def streams(problem: Problem) -> Ready:
    """Reads and writes those rows of three tables, and nothing else."""
    tables = [problem.table.copy() for _ in range(3)]
    indices, _ = problem.rows

    def call() -> None:
        for table in tables:
            table[indices] = table[indices]

    def check() -> None:
        call()
        for table in tables:
            close(table[indices], problem.table[indices], what="the rows")

    return Ready(call, check)


def contestants(duplicates: bool) -> list[Contestant]:
    """Everybody."""
    problem = Problem(duplicates)
    return [
        Contestant("oxigrad, lazy", "ours", lambda: ours(problem, "lazy")),
        Contestant("torch SparseAdam", "peer", lambda: torch_sparse_adam(problem)),
        Contestant("numpy, by index", "peer", lambda: numpy_rows(problem)),
        Contestant("oxigrad, catch-up", "peer", lambda: ours(problem, "catch_up")),
        Contestant("oxigrad, dense gradient", "peer", lambda: ours_dense(problem)),
        Contestant("3 reads, 3 writes of rows in NumPy", "ceiling", lambda: streams(problem)),
    ]


ROWS = [
    Row("sparse adam 1M x 64, 1000 rows", lambda: contestants(False), (Goal(3, "torch SparseAdam"),)),
    Row("sparse adam 1M x 64, 100 rows twice", lambda: contestants(True), (Goal(3, "torch SparseAdam"),)),
]
