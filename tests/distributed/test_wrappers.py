"""The protocol that all wrappers have: start, steps, leave, and blocks of ``with``."""

from __future__ import annotations

import threading
from typing import Any

import jobs
import numpy as np
import pytest

import oxigrad as ox
from oxigrad import distributed
from oxigrad.distributed import WorkerLost
from oxigrad.distributed.engines.threads import ThreadJob

SERVERS = {"coordinator", "elastic-centre"}

pytestmark = pytest.mark.parametrize("name", jobs.METHODS)


def loss(model: Any) -> Any:
    return ox.xp.sum((model["w"] - 1.0) ** 2) + ox.xp.sum(model["b"] ** 2)


def new_model() -> dict[str, np.ndarray]:
    return {"w": np.zeros((4, 3)), "b": np.ones(3)}


def test_every_wrapper_is_used_in_the_same_way(name: str) -> None:
    """The end of a block leaves, so that the next training can begin; leaving again does nothing."""

    def worker(comm: Any) -> Any:
        models = []
        for _ in range(2):
            model = new_model()
            with jobs.METHODS[name](comm.size) as opt:
                model = opt.start(model)
                for _ in range(3):
                    opt.minimize(loss, model)
            assert opt.leave() is None
            assert opt.leave(model) is model
            models.append(model)
        return [float(loss(model)) for model in models]

    initial = float(loss(new_model()))
    for losses in distributed.run(worker, workers=2):
        assert all(value < initial for value in losses)


def test_a_block_that_fails_waits_for_nobody_and_serves_no_more(name: str) -> None:
    before, lost = set(threading.enumerate()), []

    def worker(comm: Any) -> None:
        with jobs.METHODS[name](comm.size) as opt:
            opt.start(new_model())
            comm.all_reduce([np.zeros(1)])
            if comm.rank == 0:
                raise ZeroDivisionError("a mistake")
            try:
                comm.recv_any([], tag=99, source=0)
            except WorkerLost:
                lost.append(comm.rank)
                raise

    with pytest.raises(ZeroDivisionError, match="a mistake"):
        ThreadJob(worker, 2, timeout=20.0).wait(jobs.DEADLINE)
    assert lost == [1]
    for thread in set(threading.enumerate()) - before:
        if thread.name in SERVERS:
            thread.join(jobs.DEADLINE)
            assert not thread.is_alive()


def test_a_block_returns_the_optimizer_itself(name: str) -> None:
    opt = jobs.METHODS[name](1)
    with opt as entered:
        assert entered is opt
    assert opt.leave("any model") == "any model"
