"""The end of a training: the worker that serves it has the last parameters and the last state, and waits with a limit."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path
from typing import Any

import jobs
import numpy as np
import pytest

from oxigrad import distributed, optim
from oxigrad.distributed.communicator import SingleWorker
from oxigrad.distributed.engines.threads import ThreadJob

MAKE: dict[str, Any] = {
    "sync_replicas": lambda: distributed.SyncReplicas(optim.SGD(1.0), 1, 4),
    "of_two": lambda: distributed.SyncReplicas(optim.SGD(1.0), 2, 4),
    "softsync": lambda: distributed.Softsync(optim.SGD(1.0), 2, scaled=False),
    "drop_stale": lambda: distributed.DropStale(optim.SGD(1.0), 1 << 20),
}
ONE_EACH = {"drop_stale", "sync_replicas"}


def trained(comm: Any, make: Any, seed: int, how: str, folder: Path) -> tuple[int, list[float], int, int]:
    """By gradients of ones, the parameters are minus the number of steps. Rank 0 is the first to have no more data.

    Returns the steps, the parameters, the steps of the state that is saved after leaving, and the gradients accepted.
    """
    draws = random.Random(10 * seed + comm.rank)
    model, file, accepted = {"w": np.zeros(2)}, folder / f"{seed}-{comm.rank}.safetensors", 0
    opt = make()

    def steps() -> None:
        nonlocal model, accepted
        model = opt.start(model)
        for _ in range(draws.randint(1, 3) if comm.rank == 0 else draws.randint(3, 9)):
            time.sleep(draws.random() * 0.002)
            model = opt.update(model, {"w": np.ones(2)})
            accepted += sum(told.accepted for told in opt.verdicts)

    if how == "block":
        with opt:
            steps()
    else:
        steps()
        model = opt.leave(model)
    opt.save(file)
    alone = distributed.Softsync(optim.SGD(1.0), communicator=SingleWorker())
    alone.load(file, strict=False)
    return opt.step, model["w"].tolist(), alone.step, accepted


@pytest.mark.parametrize("how", ["block", "leave"])
@pytest.mark.parametrize("name", MAKE)
def test_the_worker_that_serves_has_the_last_parameters(name: str, how: str, tmp_path: Path) -> None:
    for workers in (1, 2, 3):
        for seed in range(3):
            found = distributed.run(lambda comm, s=seed: trained(comm, MAKE[name], s, how, tmp_path), workers=workers)
            steps, parameters, saved, _ = found[0]
            assert steps == max(each[0] for each in found)
            assert parameters == [-steps, -steps]
            assert saved == steps
            if name in ONE_EACH:  # every accepted gradient is one step
                assert steps == sum(each[3] for each in found)


def test_a_step_that_nobody_is_left_to_complete_is_in_the_parameters() -> None:
    """One gradient of two: the step is taken when the last worker leaves."""

    def worker(comm: Any) -> float:
        with distributed.Softsync(optim.SGD(1.0), 2, scaled=False) as opt:
            model = opt.update(opt.start({"w": np.zeros(1)}), {"w": np.ones(1)})
            assert opt.step == 0
        return float(model["w"][0])

    assert distributed.run(worker, workers=1) == [-1.0]


def test_the_next_training_begins_from_the_last_parameters() -> None:
    def worker(comm: Any) -> list[float]:
        model, opt, seen = {"w": np.zeros(1)}, MAKE["drop_stale"](), []
        for _ in range(2):
            with opt:
                model = opt.start(model)
                seen.append(float(model["w"][0]))
                comm.all_reduce([np.zeros(1)])  # so that no worker joins after the first step
                for _ in range(1 + 4 * comm.rank):
                    model = opt.update(model, {"w": np.ones(1)})
        return [*seen, float(model["w"][0]), opt.step]

    assert distributed.run(worker, workers=2)[0] == [0.0, -6.0, -12.0, 12]


def test_a_model_that_must_be_replaced_is_returned(library: Any) -> None:
    """A tuple of JAX arrays cannot be written to: `leave` returns another one, and a block says so."""
    jnp = library("jax").numpy

    def worker(comm: Any, gives: bool) -> Any:
        opt, model = distributed.Softsync(optim.SGD(1.0), 2, scaled=False), (jnp.zeros(1),)
        model = opt.update(opt.start(model), (jnp.ones(1),))
        if gives:
            return float(opt.leave(model)[0][0])
        with pytest.warns(RuntimeWarning, match=r"expected leave\(model\)"):
            return opt.leave()

    assert distributed.run(lambda comm: worker(comm, True), workers=1) == [-1.0]
    assert distributed.run(lambda comm: worker(comm, False), workers=1) == [None]


def test_a_worker_that_is_silent_is_not_waited_for_without_end() -> None:
    resume = threading.Event()

    def worker(comm: Any) -> Any:
        opt, model = distributed.SyncReplicas(optim.SGD(1.0), 1, 2, timeout=1.0), {"w": np.zeros(1)}
        model = opt.start(model)
        model = opt.update(model, {"w": np.ones(1)})
        if comm.rank:
            resume.wait(jobs.DEADLINE)
            opt.update(model, {"w": np.ones(1)})
        begun = time.monotonic()
        opt.leave(model)
        return time.monotonic() - begun

    job = ThreadJob(worker, 2, timeout=jobs.DEADLINE)
    try:
        waited, excluded = job.wait(jobs.DEADLINE)
    finally:
        resume.set()
    assert 0.9 < waited < jobs.DEADLINE / 2
    assert excluded is None


def test_a_slow_worker_that_sends_is_waited_for() -> None:
    """It takes longer than the limit in all, and sends a gradient more often than it ends."""

    def worker(comm: Any) -> int:
        with distributed.Softsync(optim.SGD(1.0), timeout=2.0) as opt:
            model = opt.start({"w": np.zeros(1)})
            for _ in range(1 if comm.rank == 0 else 8):
                time.sleep(0.4 * comm.rank)
                model = opt.update(model, {"w": np.ones(1)})
        return opt.step

    assert distributed.run(worker, workers=2)[0] == 9
