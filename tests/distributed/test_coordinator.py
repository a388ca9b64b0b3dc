"""The worker beside the coordinator is one like any other, trainings are kept apart, and a coordinator that is stopped is excluded."""

from __future__ import annotations

import copy
import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jobs
import numpy as np
import pytest

from oxigrad import distributed, optim
from oxigrad.distributed import DropStale, Excluded, Softsync, SyncReplicas
from oxigrad.distributed.decisions.training import Training
from oxigrad.distributed.engines.threads import ThreadJob

processes = pytest.mark.xdist_group("processes")


def on_threads(name: str, *arguments: Any) -> list[Any]:
    return distributed.run(lambda comm: getattr(jobs, name)(comm, *arguments), workers=3, timeout=60.0)


def on_mpi(name: str, *arguments: Any) -> list[Any]:
    pytest.importorskip("mpi4py")
    run = jobs.launched(3, name, *map(json.dumps, arguments))
    assert run.returncode == 0, run.stderr
    return jobs.results(run.stdout)


def on_torch(name: str, *arguments: Any) -> list[Any]:
    pytest.importorskip("torch")
    from test_torch_engine import launched

    runs = launched(3, name, *map(json.dumps, arguments))
    assert [status for status, *_ in runs] == [0] * 3, runs
    return [result for _, output, _ in runs for result in jobs.results(output)]


def on_ray(name: str, *arguments: Any) -> list[Any]:
    pytest.importorskip("ray")
    return distributed.run(lambda comm: getattr(jobs, name)(comm, *arguments), "ray", 3)


ENGINES = {"threads": on_threads, "mpi": on_mpi, "torch": on_torch, "ray": on_ray}


@pytest.fixture(scope="module", autouse=True)
def _paths() -> Iterator[None]:
    """Ray's processes find `jobs`; Ray ends after the tests of this file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(jobs.__file__).parent), prepend=os.pathsep)
        yield
        ray = __import__("sys").modules.get("ray")
        if ray is not None and ray.is_initialized():
            ray.shutdown()


def check(results: list[Any]) -> None:
    """No worker saw a step that was being taken, and no training another one."""
    overtaken, folds = zip(*results, strict=True)
    jobs.check_overtaken(list(overtaken), 3)
    assert sorted(folds) == [[rank, jobs.FOLDED, {}] for rank in range(3)]


def test_workers_beside_the_coordinator_and_trainings_back_to_back(tmp_path: Path) -> None:
    check(on_threads("overtaken_and_folds", str(tmp_path)))


@processes
@pytest.mark.parametrize("engine", ["mpi", "torch", "ray"])
def test_workers_and_trainings_of_processes(engine: str, tmp_path: Path) -> None:
    check(ENGINES[engine]("overtaken_and_folds", str(tmp_path)))


@processes
@pytest.mark.parametrize("engine", ["mpi", "ray"])
def test_a_stopped_process_is_excluded_and_fenced(engine: str, tmp_path: Path) -> None:
    jobs.check_fenced(ENGINES[engine]("fence", str(tmp_path)))


@processes
def test_a_stopped_process_of_torch_that_has_the_rendezvous_is_excluded(tmp_path: Path) -> None:
    """The others cannot go on without the rendezvous: they are told so."""
    fenced, *others = on_torch("fence", str(tmp_path))
    assert others == ["lost", "lost"]
    assert "the others have excluded it" in fenced[0]


@processes
@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("engine", "when", "expected", "limit"),
    [
        ("mpi", "before", "TimedOut", 2.0),
        ("mpi", "excluded", 2, 2.0),
        ("ray", "before", "TimedOut", 2.0),
        ("ray", "excluded", 2, 2.0),
        ("torch", "before", "NotSupported", 3.0),
        ("torch", "connect", "NotSupported", 12.0),
    ],
)
def test_survivors_do_not_wait_for_rank_0_that_is_stopped(
    engine: str, when: str, expected: Any, limit: float, tmp_path: Path
) -> None:
    """The time-out of `reform` is two seconds; on torch, rank 0 has the rendezvous."""
    results = ENGINES[engine]("reform_beside_a_stopped", str(tmp_path), 0, when)
    survivors = [each for each in results if each not in ("stopped", None)]  # None: Ray does not wait for one excluded
    assert [found for found, _ in survivors] == [expected] * 2
    assert all(seconds < limit + 5.0 for _, seconds in survivors)


@pytest.mark.parametrize("method", jobs.SURVIVING)
@pytest.mark.one_in(4)
def test_a_coordinator_whose_thread_hangs_is_excluded_and_fenced(method: str, tmp_path: Path) -> None:
    """Its worker's thread hangs too, as both do in a driver that does not return; the job does not wait for it to end."""
    hangs, goes_on = threading.Event(), threading.Event()

    def rate(step: Any) -> float:
        if hangs.is_set() and threading.current_thread().name == "coordinator":
            hangs.clear()
            assert goes_on.wait(jobs.DEADLINE)
        return 0.01

    def hang(file: Path) -> None:
        hangs.set()
        while not file.exists():
            time.sleep(0.01)
        goes_on.set()

    def worker(comm: Any) -> Any:
        found[comm.rank] = jobs.fence(comm, str(tmp_path), method, "hang", lambda: optim.Adam(rate))
        return found[comm.rank]

    found: dict[int, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(jobs.FAULTS, "hang", hang)
        job = ThreadJob(worker, 3)
        results = job.wait(jobs.DEADLINE)
    assert results[0] in (None, found.get(0))
    jobs.check_fenced(list(found.values()))


def test_a_job_does_not_wait_for_an_excluded_worker() -> None:
    never = threading.Event()

    def worker(comm: Any) -> Any:
        if comm.rank == 0:
            never.wait(jobs.DEADLINE)
            comm.alive()
        comm.exclude(0)
        assert comm.alive() == {1}
        with pytest.raises(distributed.WorkerLost):
            comm.send(0, distributed.Header(1), [])
        return comm.reform().size

    try:
        assert ThreadJob(worker, 2).wait(jobs.DEADLINE / 2) == [None, 1]
    finally:
        never.set()


def test_a_keeper_of_the_centre_that_hangs_is_excluded() -> None:
    """The process of rank 0 does nothing: neither its worker nor the thread that keeps the centre."""
    joined, hangs, goes_on, has_ended = (threading.Event() for _ in range(4))

    def worker(comm: Any) -> Any:
        opt: Any = distributed.ElasticAverage(optim.SGD(0.1), 1, moving_rate=0.5, communicator=comm, timeout=1.0)
        model = opt.start({"w": np.ones(2)})
        if comm.rank == 0:
            assert joined.wait(jobs.DEADLINE)  # else its request to join is not answered
            centre = opt._server.coordinator
            tick, centre.tick = centre.tick, lambda now: goes_on.wait(jobs.DEADLINE) and tick(now)
            hangs.set()
            goes_on.wait(jobs.DEADLINE)
            model = opt.update(model, {"w": np.ones(2)})  # the first one does not exchange
            with pytest.raises(Excluded):
                opt.update(model, {"w": np.ones(2)})
            has_ended.set()
            return "excluded"
        joined.set()
        assert hangs.wait(jobs.DEADLINE)
        for _ in range(4):
            try:
                model = opt.update(model, {"w": np.ones(2)})
            except distributed.WorkerLost:
                model = opt.update(opt.reform(model), {"w": np.ones(2)})
        goes_on.set()
        assert has_ended.wait(jobs.DEADLINE)
        opt.leave(model)
        return opt.communicator.size

    assert ThreadJob(worker, 2).wait(jobs.DEADLINE)[1] == 1


def test_hyperparameters_that_all_workers_set_are_those_of_the_steps() -> None:
    """Each worker sets its own, that of rank 0 the coordinator's."""

    def worker(comm: Any) -> Any:
        model, opt = {"w": np.zeros(3)}, SyncReplicas(optim.chain(optim.Adam(0.1), optim.EMA(0.9)), 3)
        with opt:
            for step in range(6):
                opt.learning_rate = 0.1 / (1 + step)
                opt.update(model, {"w": np.arange(3.0) + step})
        return model["w"].tolist(), opt.averaged_parameters()["w"].tolist(), opt.report()[0].bytes_sent

    model, opt = {"w": np.zeros(3)}, optim.chain(optim.Adam(0.1), optim.EMA(0.9))
    for step in range(6):
        opt.learning_rate = 0.1 / (1 + step)
        opt.update(model, {"w": np.arange(3.0) + step})
    for found in distributed.run(worker, workers=3):
        assert found[:2] == (model["w"].tolist(), opt.averaged_parameters()["w"].tolist())


@pytest.mark.parametrize(
    "make", [lambda opt: Softsync(opt), lambda opt: DropStale(opt, 1), lambda opt: SyncReplicas(opt, 1)]
)
def test_a_wrapper_inside_is_refused(make: Any) -> None:
    with pytest.raises(TypeError, match="found LargeBatch inside"):
        make(distributed.LargeBatch(optim.SGD(0.1)))


# --- trainings ---------------------------------------------------------------------------------------------------------


def test_a_training_goes_on_where_its_wrapper_joins_again() -> None:
    """By epochs, each a ``with`` block: the next one begins with the last step of all workers, or with the model that rank 0 gives."""

    def worker(comm: Any) -> Any:
        model, opt, found = {"w": np.zeros(2)}, Softsync(optim.SGD(1.0), scaled=False), []
        for epoch in range(3):
            with opt:
                model = opt.join(model)
                found.append(-float(model["w"][0]))
                for _ in range(2 + comm.rank):
                    opt.update(model, {"w": np.ones(2)})
            if epoch == 1:
                model["w"][...] = -100.0
        return found

    for _, second, third in distributed.run(worker, workers=3):
        assert second >= 9 - 6  # what others did before this worker joined is in it
        assert 100.0 <= third <= 109.0


def test_wrappers_that_are_not_made_on_every_worker_are_named() -> None:
    """Rank 1 has missed a wrapper, so that it takes part in a training that has ended."""
    first_ended, told = threading.Event(), threading.Event()

    def worker(comm: Any) -> Any:
        if comm.rank == 1:
            assert first_ended.wait(jobs.DEADLINE)
            opt = Softsync(optim.SGD(1.0), communicator=comm, timeout=5.0)
            try:
                opt.join({"w": np.ones(2)})
            except distributed.Refused as error:
                return error.reason
            finally:
                told.set()
            return "served"
        Softsync(optim.SGD(1.0), communicator=comm)
        with Softsync(optim.SGD(1.0), communicator=comm) as opt:
            opt.join({"w": np.ones(2)})
            first_ended.set()
            assert told.wait(jobs.DEADLINE)
        return "ended"

    assert distributed.run(worker, workers=2) == ["ended", "training"]


def test_a_former_training_that_goes_on_is_named_by_the_time_out() -> None:
    is_told = threading.Event()

    def worker(comm: Any) -> Any:
        with Softsync(optim.SGD(1.0), timeout=60.0) as opt:
            opt.join({"w": np.ones(2)})
            if comm.rank == 0:
                assert is_told.wait(jobs.DEADLINE)
        if comm.rank == 0:
            return None
        with pytest.raises(
            distributed.TimedOut, match=r"training 1 has not ended within 0.2 s: workers still take part"
        ):
            Softsync(optim.SGD(1.0), timeout=0.2).join({"w": np.ones(2)})
        is_told.set()
        return None

    distributed.run(worker, workers=2)


def test_copies_do_not_count_as_wrappers() -> None:
    def worker(comm: Any) -> Any:
        first = Softsync(optim.SGD(1.0))
        if comm.rank == 0:
            assert copy.deepcopy(first) is not first
        with first:
            first.join({"w": np.ones(2)})
        with Softsync(optim.SGD(1.0)) as second:
            second.join({"w": np.ones(2)})
        return second._enrolment.training

    assert set(distributed.run(worker, workers=2)) == {Training(2, 1)}
