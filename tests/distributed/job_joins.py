"""The work of workers in tests of processes that join a job while it trains."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from job_faults import FAULTS
from job_trainings import digest

import oxigrad as ox
from oxigrad import distributed
from oxigrad.distributed import WorkerLost
from oxigrad.distributed.communicator import serving

COLLECTIVE: dict[str, Any] = {
    "data_parallel": lambda: distributed.DataParallel(ox.optim.Adam(0.1)),
    "large_batch": lambda: distributed.LargeBatch(ox.optim.AdamW(0.1)),
    "compression": lambda: distributed.DeepGradientCompression(ox.optim.SGD(0.1), 1.0),
}
TOGETHER = 5
"""The steps that all workers take together after the last one has joined."""


def start() -> dict[str, np.ndarray]:
    return {"w": np.linspace(-1.0, 1.0, 40).reshape(8, 5), "b": np.ones(5, "f4")}


def gradient(rank: int, number: int) -> dict[str, np.ndarray]:
    """The gradient that a worker has in a step, or its gradient of a number."""
    rng = np.random.default_rng([rank, number])
    return {"w": rng.standard_normal((8, 5)), "b": rng.standard_normal(5).astype("f4")}


def whole(opt: Any, model: Any) -> str:
    """A digest of parameters and slots."""
    slots = opt.state_dict()["slots"]
    return digest({"model": model, **slots})


def join_collective(comm: Any, name: str, folder: str, size: int = 3, victim: int = -1) -> list[Any]:
    """Trains by a method of collective operations until ``size`` workers have taken some steps together.

    The worker of rank ``victim`` dies after the first of these. Returns how many workers took part in each step that this worker took, its
    first step, and a digest of parameters and slots.
    """
    sizes: list[int] = []
    with serving(comm):
        opt = COLLECTIVE[name]()
        with opt:
            model = opt.start(start())
            first = opt.step
            while sum(count == size for count in sizes) < TOGETHER:
                if len(sizes) == 3:
                    (Path(folder) / f"trains{comm.rank}").touch()
                if victim == opt.communicator.rank and sizes[-1:] == [size]:
                    FAULTS["kill"](comm)
                try:
                    model = opt.update(model, gradient(opt.communicator.rank, opt.step))
                except WorkerLost:
                    model = opt.reform(model)
                    continue
                sizes.append(opt.communicator.size)
                time.sleep(0.02)
            return [first, sizes, whole(opt, model)]


def transcribed(opt: Any, sizes: list[int], gradients: Any = gradient) -> str:
    """The digest of one process that takes steps by the means of so many gradients each: the first of ``gradients(rank, step)``."""
    model = start()
    for number, size in enumerate(sizes):
        parts = [gradients(rank, number) for rank in range(size)]
        means = {}
        for path in model:
            total = parts[0][path].copy()
            for part in parts[1:]:
                total += part[path]
            means[path] = total / total.dtype.type(size)
        model = opt.update(model, means)
    return whole(opt, model)


def join_coordinated(comm: Any, folder: str, size: int = 3, how: str = "") -> list[Any]:
    """Trains by synchronous replicas, by three gradients a step, until ``size`` workers have taken some steps together.

    All workers have the same gradient in a step. With a fault ``how``, that of rank 0, which has the coordinator, has it before the newcomer
    comes. Returns the number of gradients accepted, of steps, and a digest of parameters and slots.
    """
    updates = together = accepted = 0
    with serving(comm):
        opt: Any = distributed.SyncReplicas(ox.optim.Adam(0.1), 3)
        with opt:
            model = start()
            while together < TOGETHER:
                try:
                    model = opt.start(model)
                    model = opt.update(model, gradient(0, opt.step))
                except WorkerLost:
                    model = opt.reform(model)
                    continue
                accepted += sum(told.accepted for told in opt.verdicts)
                together += opt.communicator.size == size and opt.communicator.generation > 0
                updates += 1
                if updates == 3:
                    if how and comm.rank == 0 and comm.generation == 0:
                        FAULTS[how](comm)
                    (Path(folder) / f"trains{comm.rank}").touch()
                time.sleep(0.02)
            return [accepted, opt.step, whole(opt, model)]
