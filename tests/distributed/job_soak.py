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
from oxigrad.distributed import DataParallel, ElasticAverage, WorkerLost
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
# in shards, of which the part of a lost worker is lost: see `train_shards`.
WRAPPERS = {
    **{name: method for name, method in METHODS.items() if name != "shard_state"},
    "elastic": lambda size: ElasticAverage(ox.optim.Adam(0.1), 2, moving_rate=0.2),
}


#: Those whose workers have the same parameters after each update.
REPLICAS = {"compression", "data_parallel", "kfac", "large_batch", "shard_state"}

UPDATES = 40
"""The updates of each worker."""
SAVED_EVERY = 4


def new_model() -> dict[str, np.ndarray]:
    return {"w": np.linspace(-1, 1, 12).reshape(4, 3), "b": np.zeros(3)}


def train_by(comm: Any, name: str, deaths: Any = None, steps: int = UPDATES) -> list[Any]:
    """Trains by one wrapper, through the losses of other workers.

    ``deaths`` maps ranks, as text, to an update and the seconds after its begin in which the process of this rank dies. Returns the number of updates, whether the
    parameters are finite, and a digest of them where all workers have the same.
    """
    rng, model = np.random.default_rng(comm.rank), new_model()
    death = (deaths or {}).get(str(comm.rank))
    with serving(comm):
        opt, updates = WRAPPERS[name](2), 0
        with opt:
            while updates < steps:
                x, y = rng.standard_normal((5, 4)), rng.standard_normal((5, 3))

                def loss(model: Any, x: Any = x, y: Any = y) -> Any:
                    return ox.xp.mean((x @ model["w"] + model["b"] - y) ** 2)

                death = _begun(death, updates)
                try:
                    model = opt.start(model)
                    opt.minimize(loss, model)
                except WorkerLost:
                    model = opt.reform(model)
                    continue
                updates += 1
                time.sleep(0.05)
    return _result(updates, model, name)


def _begun(death: Any, updates: int) -> Any:
    """Begins the death of this process where it is its update; returns the death that is to come."""
    if death is None or updates < death[0]:
        return death
    threading.Timer(death[1], die, (None,)).start()
    return None


def _result(updates: int, model: Any, name: str) -> list[Any]:
    found = b"".join(array.tobytes() for array in model.values())
    digest = hashlib.sha256(found).hexdigest()[:16] if name in REPLICAS else ""
    return [updates, all(bool(np.isfinite(array).all()) for array in model.values()), digest]


def train_shards(comm: Any, folder: str, deaths: Any = None, steps: int = UPDATES) -> list[Any]:
    """As `train_by`, with the state in shards: after a loss the survivors go on from the last file that was saved.

    All workers have the same gradients, of few bits, so that their mean is exact and the parameters are those of `undisturbed` for any losses.
    """
    death = (deaths or {}).get(str(comm.rank))
    while True:
        try:
            with serving(comm):
                opt, model = DataParallel(_clipped(), shard_state=True), new_model()
                last = np.array([max((int(done.stem) for done in Path(folder).glob("*.done")), default=0)])
                comm.broadcast([last])
                if last[0]:
                    opt.load(Path(folder) / f"{last[0]}.safetensors")
                    model = dict(np.load(Path(folder) / f"{last[0]}.npz"))
                while opt.step < steps:
                    death = _begun(death, opt.step)
                    model = opt.update(model, _exact_gradient(opt.step))
                    if opt.step % SAVED_EVERY == 0:
                        _save(opt, model, Path(folder))
                    time.sleep(0.05)
                opt.leave()
                return _result(opt.step, model, "shard_state")
        except WorkerLost:
            comm = comm.reform()


def _save(opt: Any, model: Any, folder: Path) -> None:
    """Saves parameters and state; a file tells when both are whole."""
    if opt.communicator.rank == 0:
        np.savez(folder / f"{opt.step}.npz", **model)
    opt.save(folder / f"{opt.step}.safetensors")
    if opt.communicator.rank == 0:
        (folder / f"{opt.step}.done").touch()


def _exact_gradient(step: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(step)
    return {path: np.round(8 * rng.standard_normal(a.shape)) / 8 for path, a in new_model().items()}


def _clipped() -> Any:
    return ox.optim.chain(ox.optim.ClipByGlobalNorm(1.0), ox.optim.Adam(0.1))


def undisturbed(steps: int = UPDATES) -> list[Any]:
    """The result of `train_shards` on one worker, by the optimizer alone."""
    opt, model = _clipped(), new_model()
    for step in range(steps):
        model = opt.update(model, _exact_gradient(step))
    return _result(steps, model, "shard_state")
