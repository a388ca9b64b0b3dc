"""Workers that end their work at different steps: an error names the worker and the step, unless it has left."""

from __future__ import annotations

from typing import Any

import jobs
import numpy as np
import pytest
from test_torch_engine import launched

from oxigrad import distributed, optim

EVERY_STEP = ["compression", "data_parallel", "kfac", "large_batch", "shard_state"]
COLLECTIVE = [*EVERY_STEP, "block_momentum", "diloco", "elastic_sync", "model_average", "streaming_diloco"]

processes = pytest.mark.xdist_group("processes")


def check(results: list[Any], short: int, workers: int, method: str) -> None:
    """All but one worker raise an error, which names that worker and its last step."""
    for result in results:
        if result[0] == short:
            assert result == [short, 6]
            continue
        assert f"the work of rank {short} ended after step {3 if method == 'large_batch' else 6}" in result[2]
        assert result[3:] == ([] if method == "shard_state" else [workers - 1])
        if method in EVERY_STEP:
            assert result[2].startswith(f"step {4 if method == 'large_batch' else 7} cannot complete")
            assert result[1] == (7 if method == "large_batch" else 6)


@pytest.mark.parametrize("short", [0, 2])
@pytest.mark.parametrize("method", COLLECTIVE)
def test_the_others_are_told_of_a_worker_that_ends_early(method: str, short: int) -> None:
    check(distributed.run(lambda comm: jobs.end_apart(comm, method, short), workers=3), short, 3, method)


@pytest.mark.parametrize("method", COLLECTIVE)
def test_the_others_continue_after_a_worker_that_leaves(method: str) -> None:
    if method == "shard_state":
        pytest.skip("the slots of a worker that leaves are lost")
    results = distributed.run(lambda comm: jobs.end_apart(comm, method, 1, leaves=True), workers=2)
    assert results == [[0, 20], [1, 6]]


@pytest.mark.parametrize("start", [True, False])
@pytest.mark.parametrize("method", COLLECTIVE)
def test_a_worker_whose_work_ends_before_the_training_is_told(method: str, start: bool) -> None:
    def worker(comm: Any) -> Any:
        if comm.rank:
            return None
        opt, model = jobs.METHODS[method](comm.size), {"w": np.ones((4, 3)), "b": np.ones(3)}
        with pytest.raises(distributed.WorkerLost, match=r"rank 1 ended before its first step, without leave\(\)"):
            opt.start(model) if start else opt.minimize(lambda m: (m["w"] ** 2).sum() + m["b"].sum(), model)
        assert model["w"].tolist() == np.ones((4, 3)).tolist()
        return opt.step

    assert distributed.run(worker, workers=2, timeout=10) == [0, None]


def test_a_worker_without_data_leaves_before_the_training() -> None:
    def worker(comm: Any) -> float:
        opt, model = distributed.DataParallel(optim.SGD(1.0)), {"w": np.zeros(1)}
        if comm.rank:
            opt.leave()
            return 0.0
        return float(opt.update(model, {"w": np.ones(1)})["w"][0])

    assert distributed.run(worker, workers=2, timeout=10) == [-1.0, 0.0]


@processes
def test_the_others_are_told_of_a_process_of_mpi_that_ends_early() -> None:
    pytest.importorskip("mpi4py")
    run = jobs.launched(3, "end_apart", '"data_parallel"', "1")
    results = jobs.results(run.stdout)
    assert len(results) == 3, run.stderr
    check(results, 1, 3, "data_parallel")


@processes
def test_the_others_are_told_of_a_process_of_torch_that_ends_early() -> None:
    runs = launched(3, "end_apart", '"data_parallel"', "1")
    results = [result for _, output, _ in runs for result in jobs.results(output)]
    assert len(results) == 3, runs
    check(results, 1, 3, "data_parallel")
