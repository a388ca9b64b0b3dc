"""Mistakes in programs of several workers: errors name the call, the worker and the step."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oxigrad import StructureError, distributed, optim, xp

MAKE: dict[str, Any] = {
    "data_parallel": lambda: distributed.DataParallel(optim.SGD(1.0)),
    "elastic": lambda: distributed.ElasticAverage(optim.SGD(1.0), 2),
    "kfac": lambda: distributed.KFAC(optim.SGD(1.0)),
    "model_average": lambda: distributed.ModelAverage(optim.SGD(1.0), 2),
    "sync_replicas": lambda: distributed.SyncReplicas(optim.SGD(1.0), 2),
}


def model_of() -> dict[str, np.ndarray]:
    return {"w": np.zeros((1, 1))}


def loss(model: Any) -> Any:
    return xp.sum(np.ones((2, 1)) @ model["w"])


CALLS: dict[str, tuple[str, Any]] = {
    "report": ("report(gather=True)", lambda opt, file: opt.report(gather=True)),
    "timeline": ("timeline()", lambda opt, file: opt.timeline()),
    "save in shards": ("save and state_dict with shard_state=True", lambda opt, file: opt.save(file)),
    "state in shards": ("save and state_dict with shard_state=True", lambda opt, file: opt.state_dict()),
    "gathered": ("save and state_dict with gather=True", lambda opt, file: opt.save(file, gather=True)),
}


@pytest.mark.parametrize("others", ["end", "step", "wait"])
@pytest.mark.parametrize("name", CALLS)
def test_a_call_of_all_workers_on_one_is_told(name: str, others: str, tmp_path: Path) -> None:
    call, act = CALLS[name]
    expected: Any = {"end": distributed.WorkerLost, "step": distributed.Refused, "wait": distributed.TimedOut}[others]
    has_ended = threading.Event()

    def worker(comm: Any) -> str:
        opt: Any = distributed.DataParallel(optim.Adam(0.1), shard_state="shards" in name)
        if name == "gathered":
            opt = distributed.DeepGradientCompression(optim.SGD(0.1), 0.5, min_size=1)
        model = opt.update({"w": np.zeros(4)}, {"w": np.ones(4)})
        if comm.rank == 0:
            with pytest.raises(expected) as caught:
                act(opt, tmp_path / "state.safetensors")
            has_ended.set()
            return str(caught.value)
        if others == "wait":
            has_ended.wait(20)
        elif others == "step":
            with pytest.raises(distributed.Refused):
                opt.update(model, {"w": np.ones(4)})
        return ""

    text = distributed.run(worker, workers=2, timeout=0.5 if others == "wait" else 20)[0]
    assert text.startswith(f"{call}, which all workers must call")
    assert others != "wait" or text.endswith("took longer than 0.5 s: rank 1 has not called it")


def test_a_time_out_names_the_step_and_the_missing_worker() -> None:
    has_ended = threading.Event()

    def worker(comm: Any) -> str:
        opt, model = distributed.DataParallel(optim.SGD(1.0)), model_of()
        opt.minimize(loss, model)
        if comm.rank != 1:
            with pytest.raises(distributed.TimedOut) as caught:
                opt.minimize(loss, model)
            has_ended.set()
            return str(caught.value)
        has_ended.wait(20)
        return ""

    first, _, last = distributed.run(worker, workers=3, timeout=0.5)
    for text in (first, last):
        assert text.startswith("step 2: all_reduce of the worker of rank ") and text.endswith(
            ": rank 1 has not called it"
        )


@pytest.mark.parametrize("leaves", [True, False])
@pytest.mark.parametrize("name", MAKE)
def test_a_wrapper_whose_worker_has_ended_is_told(name: str, leaves: bool) -> None:
    def worker(comm: Any) -> Any:
        opt, model = MAKE[name](), model_of()
        opt.minimize(loss, model)
        if leaves:
            opt.leave()
        return opt, model

    opt, model = distributed.run(worker, workers=2)[0]
    before = model["w"].copy()
    for act in (lambda: opt.start(model), lambda: opt.minimize(loss, model), lambda: opt.update(model, model)):
        with pytest.raises(
            distributed.CommunicationError, match="the work of its worker has ended: expected steps within"
        ):
            act()
    assert model["w"] == before


@pytest.mark.parametrize("act", ["start", "update", "minimize"])
@pytest.mark.parametrize("name", MAKE)
def test_a_wrapper_that_two_workers_share_is_told(name: str, act: str) -> None:
    shared: list[Any] = []
    has_made, has_failed = threading.Event(), threading.Event()

    def worker(comm: Any) -> str:
        if comm.rank == 0:
            shared.append(MAKE[name]())
            has_made.set()
            has_failed.wait(20)
            return ""
        has_made.wait(20)
        opt, model = shared[0], model_of()
        with pytest.raises(StructureError, match="workers of rank 0 and 1 share one object") as caught:
            {"start": lambda: opt.start(model), "update": lambda: opt.update(model, model)}.get(
                act, lambda: opt.minimize(loss, model)
            )()
        has_failed.set()
        return str(caught.value)

    assert distributed.run(worker, workers=2, timeout=20)[1]


def test_a_loss_without_layers_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    opt, model = distributed.KFAC(optim.SGD(0.1)), {"w": np.ones(3)}
    for _ in range(3):
        opt.minimize(lambda model: xp.sum(model["w"] ** 2), model)
    assert [each for each in caplog.messages if "the loss has no layer: expected x @ W" in each] == caplog.messages
    assert len(caplog.messages) == 1


BUFFERS: dict[str, tuple[Any, type[Exception], str]] = {
    "an array": (lambda: np.ones(3), TypeError, "found ndarray"),
    "an iterator": (lambda: iter([np.ones(3)]), TypeError, "found list_iterator"),
    "numbers": (lambda: [1.0, 2.0], TypeError, r"found \['float', 'float'\]"),
    "lists": (lambda: [[1.0, 2.0]], TypeError, r"found \['list'\]"),
    "a matrix": (lambda: [np.ones(3), np.ones((2, 2))], ValueError, r"found the shapes \[\(3,\), \(2, 2\)\]"),
    "a scalar": (lambda: [np.array(1.0)], ValueError, r"found the shapes \[\(\)\]"),
}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", BUFFERS)
def test_buffers_of_another_kind_are_told(name: str, workers: int) -> None:
    """Before anything is sent: the communicator does its next operation with the other workers."""
    make, expected, message = BUFFERS[name]

    def worker(comm: Any) -> float:
        for call in (comm.all_reduce, comm.broadcast):
            with pytest.raises(expected, match=message):
                call(make())
        if isinstance(given := make(), list):
            for call in (comm.all_gather_v, lambda last: comm.reduce_scatter(last, [1] * comm.size)):
                with pytest.raises(expected, match="expected"):
                    call(given[-1])
        total = np.ones(2)
        comm.all_reduce([total], op="sum")
        return float(total[0])

    assert distributed.run(worker, workers=workers) == [float(workers)] * workers


def test_an_operation_beside_an_update_of_another_worker_is_refused() -> None:
    """Both errors name both calls."""

    def worker(comm: Any) -> str:
        opt = distributed.DataParallel(optim.SGD(0.1))
        with pytest.raises(distributed.Refused) as caught:
            comm.all_reduce([np.ones(4)]) if comm.rank == 0 else opt.update({"w": np.zeros(4)}, {"w": np.ones(4)})
        return str(caught.value)

    for text in distributed.run(worker, workers=2):
        assert "all_reduce" in text and "all_gather_v" in text
