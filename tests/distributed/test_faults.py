"""Workers that die, stop, are slow, leave or send what they should not, and files that cannot be written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jobs
import numpy as np
import pytest

import oxigrad as ox
from oxigrad import distributed
from oxigrad.distributed.engines.threads import ThreadJob

STEPS, SUM = 12, 12 * 20_000.0
REFUSED, STRAGGLED = jobs.REFUSED, jobs.STRAGGLED


@pytest.fixture
def mpi() -> Iterator[Any]:
    """A function that runs a job under MPI."""
    pytest.importorskip("mpi4py")
    return jobs.launched


processes = pytest.mark.xdist_group("processes")


@processes
@pytest.mark.parametrize(
    ("victims", "count"), [([1], 3), ([0], 3), ([1, 2], 4)], ids=["a worker", "the first worker", "two workers"]
)
def test_the_survivors_go_on_after_kill_9(mpi: Any, victims: list[int], count: int) -> None:
    run = mpi(count, "train", str(victims))
    left = count - len(victims)
    assert jobs.results(run.stdout) == [[rank, left, 1, SUM, STEPS] for rank in range(left)], run.stderr


@processes
def test_a_spare_process_replaces_a_killed_worker(mpi: Any) -> None:
    run = mpi(3, "train", "[1]", options=("--spares", "1"))
    assert jobs.results(run.stdout) == [[rank, 3, 1, SUM, STEPS] for rank in range(3)], run.stderr


@processes
def test_a_job_without_fault_tolerance_ends_with_its_worker(mpi: Any) -> None:
    run = mpi(2, "train", "[1]", options=("--no-fault-tolerance",))
    assert run.returncode != 0
    assert jobs.results(run.stdout) == []


@processes
def test_the_others_wait_for_a_worker_that_stops_and_continues(mpi: Any) -> None:
    run = mpi(2, "train", "[1]", '"continue"')
    assert run.returncode == 0, run.stderr
    assert jobs.results(run.stdout) == [[0, 2, 0, SUM, STEPS], [1, 2, 0, SUM, STEPS]]


@processes
def test_a_worker_that_leaves_is_not_waited_for(mpi: Any) -> None:
    run = mpi(3, "train", "[0]", '"leave"')
    assert run.returncode == 0, run.stderr
    assert jobs.results(run.stdout) == [[0, 2, 1, SUM, STEPS], [1, 2, 1, SUM, STEPS]]


def test_no_malformed_message_is_received_from_a_thread() -> None:
    assert distributed.run(jobs.receive_from_hostile, workers=2) == [{}, REFUSED]


def test_a_request_of_another_tree_is_answered_by_its_refusal() -> None:
    assert distributed.run(jobs.ask_with_another_tree, workers=2) == jobs.ASKED


def test_refused_messages_are_counted_over_generations() -> None:
    def worker(comm: Any) -> dict[str, int]:
        comm.refused.add(distributed.Refused("job", "a message is of another job"))
        return dict(comm.reform().refused)

    assert distributed.run(worker, workers=2) == [{"job": 1}] * 2


@processes
def test_a_request_of_another_tree_is_answered_by_its_refusal_under_mpi(mpi: Any) -> None:
    run = mpi(2, "ask_with_another_tree")
    assert jobs.results(run.stdout) == sorted(jobs.ASKED, key=str), run.stderr


@processes
def test_no_malformed_message_is_received_from_a_process_of_mpi(mpi: Any) -> None:
    run = mpi(2, "receive_from_hostile")
    assert run.returncode == 0, run.stderr
    assert REFUSED in jobs.results(run.stdout)
    warnings = [line for line in run.stderr.splitlines() if line.startswith("a message is refused: ")]
    assert len(warnings) == len(REFUSED)
    assert any("is of the job" in line for line in warnings)


def test_workers_run_out_of_data_at_different_times() -> None:
    reports = distributed.run(jobs.run_out, workers=3)
    assert sorted(reports[0]) == [[0, 9], [1, 3], [2, 6]]


@processes
def test_processes_run_out_of_data_at_different_times(mpi: Any) -> None:
    run = mpi(3, "run_out")
    assert run.returncode == 0, run.stderr
    assert [[0, 9], [1, 3], [2, 6]] in [sorted(result) for result in jobs.results(run.stdout) if result]


@pytest.mark.parametrize("method", jobs.SURVIVING)
def test_the_others_go_on_after_the_work_of_the_coordinators_rank(method: str) -> None:
    assert distributed.run(lambda comm: jobs.finish_first(comm, method), workers=3) == [[0, 1], [1, 1], [2, 1]]


@processes
@pytest.mark.parametrize("method", jobs.SURVIVING)
def test_the_others_go_on_after_the_process_of_the_coordinators_rank(mpi: Any, method: str) -> None:
    run = mpi(3, "finish_first", f'"{method}"')
    assert run.returncode == 0, run.stderr
    assert jobs.results(run.stdout) == [[0, 1], [1, 1], [2, 1]]


def test_the_others_go_on_after_the_work_of_the_rank_with_the_centre() -> None:
    assert distributed.run(jobs.finish_keeping_the_centre, workers=3) == [[0, 3], [1, 30], [2, 30]]


@processes
def test_the_others_go_on_after_the_process_of_the_rank_with_the_centre(mpi: Any) -> None:
    run = mpi(3, "finish_keeping_the_centre")
    assert run.returncode == 0, run.stderr
    assert jobs.results(run.stdout) == [[0, 3], [1, 30], [2, 30]]


@processes
def test_the_coordinator_goes_on_without_a_killed_worker(mpi: Any) -> None:
    run = mpi(3, "replicas", "1")
    assert [2, 10] in jobs.results(run.stdout), run.stderr


@processes
def test_workers_are_told_that_the_coordinator_was_killed(mpi: Any) -> None:
    run = mpi(3, "replicas", "0")
    assert jobs.results(run.stdout) == ["lost [0]", "lost [0]"], run.stderr


def test_the_others_go_on_without_a_slow_worker() -> None:
    assert distributed.run(jobs.straggle, workers=3) == STRAGGLED


@processes
def test_the_others_go_on_without_a_slow_process(mpi: Any) -> None:
    run = mpi(3, "straggle")
    assert run.returncode == 0, run.stderr
    assert jobs.results(run.stdout) == STRAGGLED


@processes
def test_a_coordinator_stops_and_continues(mpi: Any) -> None:
    run = mpi(3, "stopped_coordinator")
    assert run.returncode == 0, run.stderr
    assert jobs.results(run.stdout) == [[0, 6], [1, 6], [2, 6]]


def test_a_checkpoint_on_a_full_disk_keeps_the_old_one(tmp_path: Path) -> None:
    assert distributed.run(lambda comm: jobs.save_on_a_full_disk(comm, str(tmp_path)), workers=2) == jobs.FULL_DISK


@processes
def test_a_checkpoint_of_a_process_on_a_full_disk_keeps_the_old_one(mpi: Any, tmp_path: Path) -> None:
    run = mpi(2, "save_on_a_full_disk", f'"{tmp_path}"')
    assert run.returncode == 0, run.stderr
    assert jobs.results(run.stdout) == jobs.FULL_DISK


def test_a_worker_with_another_model_is_refused() -> None:
    def worker(comm: Any) -> Any:
        model = {"w": np.zeros(3 + comm.rank)}
        opt = distributed.SyncReplicas(ox.optim.SGD(0.1), 1, 1)
        if comm.rank == 1:
            with pytest.raises(distributed.Refused, match=r"w: shape \(4,\) on rank 1: expected \(3,\)"):
                opt.update(model, {"w": np.ones(4)})
            return model["w"].tolist()
        for _ in range(3):
            opt.update(model, {"w": np.ones(3)})
        while not comm.refused:
            comm.recv_any([np.empty(0)], tag=99, timeout=0.05)
        return model["w"].tolist(), dict(comm.refused)

    (first, refused), second = ThreadJob(worker, 2).wait(jobs.DEADLINE)
    assert np.allclose(first, -0.3) and second == [0.0] * 4
    assert refused == {"tree": 1}
