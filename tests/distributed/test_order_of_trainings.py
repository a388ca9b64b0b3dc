"""Trainings of several models by the same workers: arrays of two of them are never exchanged for each other."""

from __future__ import annotations

import copy
from typing import Any

import jobs
import numpy as np
import pytest
from test_step_counts import COLLECTIVE
from test_torch_engine import launched

from oxigrad import distributed, optim

SAME, OTHER = [[0, 1], [0, 1]], [[0, 1], [1, 0]]

processes = pytest.mark.xdist_group("processes")


def on_threads(method: str, turns: list[list[int]], starts: bool = True) -> list[Any]:
    return distributed.run(lambda comm: jobs.update_in_turn(comm, method, turns, starts), workers=2)


@pytest.mark.parametrize("method", COLLECTIVE)
def test_models_that_are_trained_in_turn_are_as_those_trained_alone(method: str) -> None:
    alone = [on_threads(method, [[which]] * 2)[0][which] for which in (0, 1)]
    assert on_threads(method, SAME) == [alone, alone]


@pytest.mark.parametrize("starts", [True, False], ids=["started", "not-started"])
@pytest.mark.parametrize("method", COLLECTIVE)
def test_an_order_of_steps_that_differs_is_refused_on_all_workers(method: str, starts: bool) -> None:
    if method == "elastic_sync" and not starts:
        pytest.skip("a worker that asks for a later training waits until the time-out")
    for reason, text in on_threads(method, OTHER, starts):
        assert reason == "training" and "training 1" in text and "training 2" in text
        assert text.endswith("in the same order on every worker")


@processes
def test_an_order_of_steps_that_differs_is_refused_by_mpi() -> None:
    pytest.importorskip("mpi4py")
    run = jobs.launched(2, "update_in_turn", '"data_parallel"', str(OTHER))
    results = jobs.results(run.stdout)
    assert [reason for reason, _ in results] == ["training", "training"], run.stderr


@processes
def test_an_order_of_steps_that_differs_is_refused_by_torch() -> None:
    runs = launched(2, "update_in_turn", '"model_average"', str(OTHER))
    results = [result for _, output, _ in runs for result in jobs.results(output)]
    assert [reason for reason, _ in results] == ["training", "training"], runs


def test_a_step_beside_the_start_of_another_training_is_refused() -> None:
    def worker(comm: Any) -> str:
        first, second = (distributed.DataParallel(optim.SGD(1.0)) for _ in range(2))
        model = first.start({"w": np.zeros(1)})
        with pytest.raises(distributed.Refused) as caught:
            first.update(model, {"w": np.ones(1)}) if comm.rank else second.start({"w": np.zeros(1)})
        assert model["w"] == 0
        return str(caught.value)

    assert all(
        "workers exchange arrays of no training and training 1" in each for each in distributed.run(worker, workers=2)
    )


def test_a_copied_wrapper_trains_another_model() -> None:
    def worker(comm: Any) -> list[float]:
        first = distributed.DataParallel(optim.SGD(1.0))
        second = copy.deepcopy(first)
        models = [{"w": np.zeros(1)}, {"w": np.zeros(1)}]
        for opt, model, gradient in ((first, models[0], 1.0), (second, models[1], 100.0)):
            opt.start(model)
            opt.update(model, {"w": np.array([gradient])})
        with pytest.raises(distributed.Refused, match="training 1 and training 2"):
            (first if comm.rank else second).update(models[0], {"w": np.ones(1)})
        return [float(model["w"][0]) for model in models]

    assert distributed.run(worker, workers=2) == [[-1.0, -100.0]] * 2
