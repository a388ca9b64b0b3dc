"""The work of workers in tests of several coordinators."""

from __future__ import annotations

from typing import Any

import numpy as np

from oxigrad import distributed, optim
from oxigrad.stepping.arrays.sparse_rows import SparseRows

SHAPES = {"w": (7, 3), "table": (50, 2), "b": (5,), "empty": (0, 4), "scalar": (), "none": (3, 0)}
DTYPES = {"b": np.float32, "scalar": np.float32}


def model() -> dict[str, np.ndarray]:
    return {path: np.ones(shape, DTYPES.get(path, np.float64)) for path, shape in SHAPES.items()}


def gradient(rng: np.random.Generator, *, is_sparse: bool = True) -> dict[str, Any]:
    """A gradient of `model`, that of the table of a few rows."""
    found: dict[str, Any] = {path: rng.standard_normal(a.shape).astype(a.dtype) for path, a in model().items()}
    if is_sparse:
        rows = np.sort(rng.choice(50, rng.integers(0, 9), replace=False))
        found["table"] = SparseRows(rows, found["table"][rows], (50, 2))
    return found


def train_divided(comm: Any, coordinators: int, steps: int = 6) -> list[str]:
    """Synchronous training by gradients of all kinds, in which no worker overtakes another; returns the bits of the parameters."""
    rng, own = np.random.default_rng(comm.rank), model()
    with distributed.SyncReplicas(optim.Adam(0.1), comm.size, communicator=comm, coordinators=coordinators) as opt:
        for _ in range(steps):
            own = opt.update(own, gradient(rng))
    return [array.tobytes().hex() for array in own.values()]
