"""Model averaging: checkpoints, deaths, workers that join, and exchanges that run in a thread."""

from __future__ import annotations

import copy
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_model_average import STEPS, WORKERS, digest

from oxigrad import StateError, distributed
from oxigrad.distributed.engines.threads import ThreadJob
from oxigrad.distributed.methods.model_average import ModelAverage
from oxigrad.optim import SGD, Adam, AdamW
from workers import Turns, accuracy, quadratics, train_digits, trained

# --- checkpoints, membership and determinism ---------------------------------------------------------------------------

STREAMING = {"fragments": 3, "delay": 2, "exchange": "8bit"}


def streaming() -> ModelAverage:
    return ModelAverage(Adam(0.05), 6, outer=SGD(0.7, momentum=0.9, nesterov=True), **STREAMING)


@pytest.mark.parametrize("stop", range(9))
def test_a_run_resumes_to_the_bit_from_a_checkpoint(stop: int, tmp_path: Path) -> None:
    problem = quadratics(2, 14)

    def run(comm: distributed.Communicator, stops: bool) -> Any:
        opt, model = streaming(), problem.model()
        for step in range(14):
            if stops and step == stop:
                opt.save(tmp_path / f"{comm.rank}.safetensors")
                opt, model = streaming(), {k: v.copy() for k, v in model.items()}
                opt.load(tmp_path / f"{comm.rank}.safetensors")
            model = opt.update(model, problem.gradient(comm.rank, step, model))
        return model, opt.state_dict()["remembered"]

    whole = distributed.run(lambda comm: run(comm, False), workers=2)
    parts = distributed.run(lambda comm: run(comm, True), workers=2)
    assert digest([m for m, _ in whole]) == digest([m for m, _ in parts])
    assert [s for _, s in whole] == [s for _, s in parts]


def test_a_state_of_other_fragments_is_refused_and_changes_nothing() -> None:
    model = {"a": np.ones(2), "b": np.ones(2)}
    one = ModelAverage(SGD(0.1), 4, outer=SGD(1.0), fragments=2)
    one.update(model, {"a": np.ones(2), "b": np.ones(2)})
    other = ModelAverage(SGD(0.1), 4, outer=SGD(1.0))
    with pytest.raises(StateError, match="2 outer optimizers, expected 1"):
        other.load_state_dict(one.state_dict())
    assert other.state_dict()["step"] == 0
    state = one.state_dict()
    state["remembered"]["ModelAverage"]["pending"] = [["push", 0]]
    with pytest.raises(StateError, match="malformed"):
        one.load_state_dict(state)


@pytest.mark.parametrize("starts", [False, True])
def test_a_worker_that_joins_gets_parameters_and_state_before_its_first_step(starts: bool) -> None:
    problem = quadratics(3, 12)
    seen = {}

    def old(comm: distributed.Communicator) -> Any:
        opt, model = streaming(), problem.model()
        for step in range(12):
            if step == 5:
                joining.wait(60)
                model = opt.reform(model)
                seen[comm.rank] = {k: v.copy() for k, v in model.items()}, opt.state_dict()
            model = opt.update(model, problem.gradient(comm.rank, step, model))
        return model, opt

    def new(comm: distributed.Communicator) -> Any:
        opt, model = streaming(), {k: np.full_like(v, 9.0) for k, v in problem.model().items()}
        if starts:
            model = opt.start(model)
            seen["new"] = {k: v.copy() for k, v in model.items()}, opt.state_dict()
        for step in range(5, 12):
            model = opt.update(model, problem.gradient(2, step, model))
        return model, opt

    joining = threading.Event()
    job = ThreadJob(old, 2, accept_newcomers=True)
    job.join(new)
    joining.set()
    results = job.wait(120)
    assert [opt.communicator.size for _, opt in results] == [3, 3, 3]
    assert results[2][1].report()[0].dropped == (0 if starts else 1)
    if starts:
        assert digest([seen["new"][0]]) == digest([seen[0][0]])
        for path, slots in seen[0][1]["slots"].items():
            for name, slot in slots.items():
                np.testing.assert_array_equal(slot, seen["new"][1]["slots"][path][name])
    anchors = [opt.state_dict()["slots"]["a"]["average-anchor"] for _, opt in results]
    assert all(anchor.tobytes() == anchors[0].tobytes() for anchor in anchors)


def test_the_others_average_without_a_worker_that_has_died() -> None:
    def worker(comm: distributed.Communicator) -> Any:
        opt, model = ModelAverage(SGD(1.0), 2), {"w": np.zeros(2)}
        rank = comm.rank
        for step in range(4):
            if rank == 1 and step == 3:
                job.kill(1)
            model = opt.update(model, {"w": np.full(2, float(2 * rank))})
        return model["w"], opt.communicator.size

    ready = threading.Event()
    job = ThreadJob(lambda comm: ready.wait(60) and worker(comm), 3)
    ready.set()
    first, dead, last = job.wait(120)
    assert dead is None
    # The mean gradient is 2 with all three workers, 0 or 4 a step afterwards: their mean is 2 again.
    for found, size in (first, last):
        np.testing.assert_array_equal(found, [-8.0, -8.0])
        assert size == 2


def test_workers_with_another_model_are_refused_by_all() -> None:
    def worker(comm: distributed.Communicator) -> None:
        shape = 3 if comm.rank == 1 else 2
        with pytest.raises(distributed.Refused, match=r"w: shape \(3,\) on rank 1: expected \(2,\)"):
            ModelAverage(SGD(), 2).start({"w": np.ones(shape)})

    distributed.run(worker, workers=3)


def test_the_same_run_gives_the_same_bits_for_any_timing() -> None:
    problem = quadratics(WORKERS, STEPS)
    found = {
        digest(trained(problem, streaming, turns=turns))
        for turns in (None, None, *(Turns(3, STEPS, s) for s in range(3)))
    }
    assert len(found) == 1


def test_steps_go_on_while_an_exchange_is_held_up() -> None:
    """Worker 1 begins its part of each exchange only after worker 0 has taken the steps up to its merge."""
    steps, delay, interval = 12, 3, 4
    has_stepped = [threading.Event() for _ in range(steps + 1)]

    def worker(comm: distributed.Communicator) -> Any:
        opt = ModelAverage(SGD(0.5, momentum=0.9), interval, delay=delay, outer=SGD(0.7, momentum=0.9, nesterov=True))
        model: Any = opt.start({"w": np.zeros(3), "v": np.zeros(2)})
        for step in range(1, steps + 1):
            if comm.rank == 1 and step % interval == 0 and step + delay <= steps:
                assert has_stepped[step + delay - 1].wait(60)
            model = opt.update(model, {"w": model["w"] - comm.rank, "v": model["v"] - step})
            if comm.rank == 0:
                has_stepped[step].set()
        return digest(model), digest(opt.average(model))

    def digest(model: Any) -> list[float]:
        return [*model["w"].tolist(), *model["v"].tolist()]

    held = distributed.run(worker, workers=2)
    for event in has_stepped:
        event.set()
    assert held == distributed.run(worker, workers=2)
    assert held[0][0] != held[1][0] and held[0][1] == held[1][1]


def test_collective_operations_of_the_program_wait_for_an_exchange() -> None:
    def worker(comm: distributed.Communicator) -> Any:
        opt = ModelAverage(SGD(0.5), 3, delay=2, exchange="8bit", fragments=2)
        model, sums = {"w": np.zeros(300), "v": np.zeros(2)}, []
        for step in range(12):
            model = opt.update(model, {"w": model["w"] - comm.rank, "v": model["v"] - step})
            total = np.array([float(comm.rank + step)])
            comm.all_reduce([total], op="sum")
            sums.append(float(total[0]))
        return sums, opt.average(model)["w"].tolist()

    first, second = distributed.run(worker, workers=2)
    assert first == second and first[0] == [1.0 + 2 * step for step in range(12)]


def test_an_exchange_that_loses_a_worker_is_repeated_with_what_was_given() -> None:
    has_sent = threading.Event()

    def worker(comm: distributed.Communicator) -> Any:
        opt = ModelAverage(SGD(1.0), 4, delay=2, alpha=0.0)
        model: Any = opt.start({"w": np.zeros(2)})
        for step in range(1, 7):
            if step == 4 and comm.rank == 2:
                assert has_sent.wait(60)
                job.kill(2)
            model = opt.update(model, {"w": np.full(2, 1.0 + comm.rank)})
            if step == 4 and comm.rank == 0:
                has_sent.set()
        return model["w"].tolist()

    job = ThreadJob(worker, 3)
    first, second, lost = job.wait(120)
    assert lost is None
    assert first == second == [-6.0, -6.0]  # the mean of what both had after step 4, -4 and -8


def test_a_state_has_an_exchange_that_runs(tmp_path: Path) -> None:
    def worker(comm: distributed.Communicator) -> Any:
        def made() -> ModelAverage:
            return ModelAverage(SGD(0.5), 4, delay=2)

        def trained(opt: ModelAverage, model: Any, steps: range) -> Any:
            for step in steps:
                model = opt.update(model, {"w": model["w"] - comm.rank - step})
            return model

        whole, opt, again = made(), made(), made()
        expected = trained(whole, {"w": np.zeros(2)}, range(10))
        model = trained(opt, {"w": np.zeros(2)}, range(5))  # between the exchange and its merge
        copied = copy.deepcopy(opt)
        again.load_state_dict(opt.state_dict())
        found = [trained(each, {"w": model["w"].copy()}, range(5, 10))["w"].tolist() for each in (again, copied)]
        return found, expected["w"].tolist()

    for found, expected in distributed.run(worker, workers=2):
        assert found == [expected, expected]


def test_an_average_replaces_an_exchange_that_is_not_merged() -> None:
    def worker(comm: distributed.Communicator) -> Any:
        opt, model = ModelAverage(SGD(1.0), 4, delay=2, alpha=0.0), {"w": np.zeros(1)}
        for step in range(9):
            model = opt.update(model, {"w": np.array([1.0 + comm.rank])})
            if step == 4:
                model = opt.average(model)
                assert model["w"][0] == -7.5
        return float(model["w"][0])

    assert distributed.run(worker, workers=2) == [-11.5, -15.5]


# --- digits ------------------------------------------------------------------------------------------------------------

WRAPPERS = {
    "average": {},
    "block momentum": {"block_momentum": 0.5},
    "DiLoCo": {"outer": SGD(0.7, momentum=0.8, nesterov=True)},
    "Streaming DiLoCo": {
        "outer": SGD(0.7, momentum=0.8, nesterov=True),
        "fragments": 4,
        "delay": 2,
        "exchange": "8bit",
    },
}


@pytest.mark.parametrize("name", WRAPPERS)
@pytest.mark.one_in(4)
def test_four_workers_learn_digits(name: str) -> None:
    results = train_digits(
        lambda: ModelAverage(AdamW(4e-3, weight_decay=0.1), 10, **WRAPPERS[name]),
        epochs=25,
        finish=lambda opt, model: opt.average(model),
    )
    assert min(accuracy(model) for model, _ in results) >= 0.97
    assert len({digest([model]) for model, _ in results}) == 1
