"""The protocol that all wrappers have: start, steps, leave, and blocks of ``with``."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import jobs
import numpy as np
import pytest

import oxigrad as ox
from oxigrad import distributed
from oxigrad.distributed import Refused, WorkerLost
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


# Those whose workers update the same parameters in each step, without a coordinator that does.
REPLICAS = {"compression", "data_parallel", "kfac", "large_batch", "shard_state"}


def test_replicas_with_other_hyperparameters_are_refused_before_the_first_step(name: str) -> None:
    """They would become different models; workers of other wrappers may have their own rates."""

    def worker(comm: Any) -> None:
        opt, model = jobs.METHODS[name](comm.size), new_model()
        if comm.rank:
            opt.optimizer.learning_rate = 7.0
        if name in REPLICAS:
            with pytest.raises(Refused, match="learning_rate of the optimizer on rank 1 is 7.0: expected"):
                opt.start(model)
        else:
            opt.leave(opt.start(model))

    distributed.run(worker, workers=2)


@pytest.mark.parametrize("rate", [0.1, 7.0])
def test_a_replica_that_joins_with_other_hyperparameters_warns(name: str, rate: float) -> None:
    if name not in REPLICAS - {"shard_state"}:
        pytest.skip("no worker joins, or workers may have their own hyperparameters")

    def made(size: int) -> Any:
        opt = jobs.METHODS[name](size)
        opt.optimizer.learning_rate = 0.1
        return opt

    def old(comm: Any) -> None:
        opt, model = made(comm.size), new_model()
        model = opt.start(model)
        while opt.communicator.size < 2:
            model = opt.reform(model)

    def new(comm: Any) -> None:
        opt = made(comm.size)
        opt.optimizer.learning_rate = rate
        opt.start(new_model())

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        job = ThreadJob(old, 1)
        job.join(new)
        job.wait(jobs.DEADLINE)
    found = [str(each.message) for each in caught if each.category is RuntimeWarning]
    expected = f"learning_rate of the optimizer on this worker, which joins, is {rate}: expected 0.1, as on the others"
    assert found == ([] if rate == 0.1 else [expected])
