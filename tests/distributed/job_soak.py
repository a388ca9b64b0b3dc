"""The work of workers that are killed at random moments while they train: see `soak`."""

from __future__ import annotations

import hashlib
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from job_faults import die
from job_methods import METHODS

import oxigrad as ox
from oxigrad.distributed import ElasticAverage, WorkerLost
from oxigrad.distributed.communicator import serving


def train(comm: Any, stop: str) -> tuple[int, bool]:
    """Adds ones to parameters until the file ``stop`` exists; returns the steps, and whether the parameters are as many."""
    state, step, done = np.zeros(50_000), np.zeros(1, int), np.zeros(1, int)
    fresh = comm.generation > 0
    while True:
        try:
            if fresh:
                comm.broadcast([step, state])
                fresh = False
            done[0] = Path(stop).exists()
            comm.broadcast([done])
            if done[0]:
                return int(step[0]), bool(np.array_equal(state, np.full_like(state, step[0])))
            gradient = np.ones(50_000)
            comm.all_reduce([gradient])
        except WorkerLost:
            comm, fresh = comm.reform(), True
            continue
        state += gradient
        step += 1


# Those of the tests, but for the exchanges of elastic averaging in turns, in which a worker waits for one that has died, and for slots
# in shards, of which the part of a lost worker is lost.
WRAPPERS = {
    **{name: method for name, method in METHODS.items() if name != "shard_state"},
    "elastic": lambda size: ElasticAverage(ox.optim.Adam(0.1), 2, moving_rate=0.2),
}


#: Those whose workers have the same parameters after each update.
REPLICAS = {"compression", "data_parallel", "kfac", "large_batch"}


def train_by(comm: Any, name: str, deaths: Any = None, steps: int = 40) -> list[Any]:
    """Trains by one wrapper, through the losses of other workers.

    ``deaths`` maps ranks, as text, to an update and the seconds after its begin in which the process of this rank dies. Returns the number of updates, whether the
    parameters are finite, and a digest of them where all workers have the same.
    """
    rng, model = np.random.default_rng(comm.rank), {"w": np.linspace(-1, 1, 12).reshape(4, 3), "b": np.zeros(3)}
    death = (deaths or {}).get(str(comm.rank))
    with serving(comm):
        opt, updates = WRAPPERS[name](2), 0
        with opt:
            while updates < steps:
                x, y = rng.standard_normal((5, 4)), rng.standard_normal((5, 3))

                def loss(model: Any, x: Any = x, y: Any = y) -> Any:
                    return ox.xp.mean((x @ model["w"] + model["b"] - y) ** 2)

                if death is not None and updates == death[0]:
                    threading.Timer(death[1], die, (None,)).start()
                    death = None
                try:
                    model = opt.start(model)
                    opt.minimize(loss, model)
                except WorkerLost:
                    model = opt.reform(model)
                    continue
                updates += 1
                time.sleep(0.05)
    found = b"".join(array.tobytes() for array in model.values())
    digest = hashlib.sha256(found).hexdigest()[:16] if name in REPLICAS else ""
    return [updates, all(bool(np.isfinite(array).all()) for array in model.values()), digest]
