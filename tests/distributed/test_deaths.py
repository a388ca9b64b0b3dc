"""A worker may die at any place of a step: each survivor takes every step once, and they have the same state.

It dies before it takes part in a collective operation, which nobody completes; or after it, so that one survivor learns of the death
in place of the result that the others have.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oxigrad import distributed, optim
from oxigrad.distributed import WorkerLost
from oxigrad.distributed.engines.threads import ThreadCommunicator, ThreadJob

DEADLINE = 60.0
STEPS = 8
DANGEROUS = 4  # steps: after a death in the last exchange nobody is there to help
WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "compression": lambda comm: distributed.DeepGradientCompression(
        optim.SGD(0.1), 0.25, momentum=0.5, min_size=1, communicator=comm
    ),
    "compression-off": lambda comm: distributed.DeepGradientCompression(optim.SGD(0.1), 1.0, communicator=comm),
    "large-batch": lambda comm: distributed.LargeBatch(optim.Adam(0.1), communicator=comm),
    "large-batch-of-2": lambda comm: distributed.LargeBatch(optim.SGD(0.1), local_batches=2, communicator=comm),
    "data-parallel": lambda comm: distributed.DataParallel(optim.Adam(0.1), bucket_bytes=1, communicator=comm),
    "elastic": lambda comm: distributed.ElasticAverage(optim.SGD(0.1), period=2, synchronous=True, communicator=comm),
    "elastic-1": lambda comm: distributed.ElasticAverage(optim.SGD(0.1), period=1, synchronous=True, communicator=comm),
    "average": lambda comm: distributed.ModelAverage(optim.SGD(0.1), 2, communicator=comm),
    "average-1": lambda comm: distributed.ModelAverage(optim.SGD(0.1), 1, communicator=comm),
    "average-outer": lambda comm: distributed.ModelAverage(
        optim.Adam(0.1), 2, outer=optim.SGD(0.7, momentum=0.9), fragments=2, communicator=comm
    ),
    "average-slots": lambda comm: distributed.ModelAverage(optim.Adam(0.1), 2, average_slots=True, communicator=comm),
}


def steps(opt: Any, model: Any, rank: int, numbers: range) -> Any:
    for number in numbers:
        gradient = np.random.default_rng([rank, number]).standard_normal((2, 6))
        model = opt.update(model, {"w": gradient[0], "b": gradient[1, :2]})
    return model


def survivors(name: str, last: int, monkeypatch: pytest.MonkeyPatch, *, completed: bool) -> list[Any]:
    """Each survivor's model and optimizer, where rank 1 dies before, or after, a worker's communication number ``last``."""

    def worker(comm: Any) -> Any:
        assert ready.wait(DEADLINE)
        opt = WRAPPERS[name](comm)
        model = steps(opt, {"w": np.zeros(6), "b": np.ones(2)}, comm.rank, range(DANGEROUS))
        if comm.rank == watched:
            is_safe.set()
        return steps(opt, model, comm.rank, range(DANGEROUS, STEPS)), opt

    def dying(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(comm: Any, *args: Any, **options: Any) -> Any:
            if comm.rank != watched or is_safe.is_set() or next(calls) != last:
                return method(comm, *args, **options)
            if not completed:
                job.kill(1)
                return method(comm, *args, **options)
            method(comm, *args, **options)
            job.kill(1)
            raise WorkerLost([1], "it died")

        return call

    watched = 2 if completed else 1
    ready, is_safe, calls = threading.Event(), threading.Event(), itertools.count()
    job = ThreadJob(worker, 4, timeout=DEADLINE)
    with monkeypatch.context() as patch:
        for method in ("all_reduce", "broadcast", "all_gather_v"):
            patch.setattr(ThreadCommunicator, method, dying(getattr(ThreadCommunicator, method)))
        ready.set()
        found = job.wait(DEADLINE)
    assert all(found[rank] is not None for rank in (0, 2, 3))
    return [each for each in found if each is not None]


@pytest.mark.parametrize("completed", [False, True])
@pytest.mark.parametrize("name", WRAPPERS)
def test_survivors_take_every_step_once(name: str, monkeypatch: pytest.MonkeyPatch, completed: bool) -> None:
    # A worker that misses the start joins those that have taken a local step.
    for last in itertools.count(2 if completed and ("elastic" in name or "average" in name) else 0):
        found = survivors(name, last, monkeypatch, completed=completed)
        model, opt = found[0]
        for other, its in found[1:]:
            assert its.step == opt.step, last
            for path in ("w", "b") if "elastic" not in name and name != "average-outer" else ():
                np.testing.assert_array_equal(other[path], model[path])
            if name == "average-outer":
                for path, anchor in opt._anchors.items():
                    np.testing.assert_array_equal(its._anchors[path], anchor)
            if "elastic" in name:
                for path, centre in opt._centre.items():
                    np.testing.assert_array_equal(its._centre[path], centre)
        if len(found) == 4:
            assert last >= 3
            return
