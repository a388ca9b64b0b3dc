"""Workers as processes of Ray. All tests use one Ray, which the first of them starts."""

from __future__ import annotations

import ipaddress
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import jobs
import pytest

from oxigrad import distributed, launch

pytest.importorskip("ray")
pytestmark = pytest.mark.xdist_group("processes")


@pytest.fixture(scope="module")
def engine() -> Iterator[ModuleType]:
    """The engine; Ray ends after the tests of this file."""
    import ray

    from oxigrad.distributed.engines import ray as engine

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(jobs.__file__).parent), prepend=os.pathsep)  # of Ray's processes
        yield engine
        ray.shutdown()


def test_every_operation_gives_the_bits_that_threads_give(engine: ModuleType) -> None:
    assert distributed.run(jobs.exchange, "ray", 3) == distributed.run(jobs.exchange, "threads", 3)


def test_all_that_ray_listens_on_is_loopback(engine: ModuleType) -> None:
    import ray

    assert distributed.run(jobs.exchange, "ray", 2)
    listening = launch.listening(os.getpid())
    if not listening:
        pytest.skip("sockets are read from /proc")
    assert any("gcs_server" in name for name, _, _ in listening)
    assert {ipaddress.ip_address(address).is_loopback for _, address, _ in listening} == {True}, listening
    assert ray.get_runtime_context().gcs_address.startswith("127.0.0.1:")


def test_survivors_and_a_new_worker_go_on_after_a_death(engine: ModuleType) -> None:
    job = engine.RayJob(lambda comm: jobs.train(comm, [1], wanted=3), 3, restarts=1)
    results = job.wait(jobs.DEADLINE)
    assert results[1] is None
    assert [result[0] for result in results if result] == [0, 1, 2]
    assert [result[1] for result in results if result] == [3, 3, 3]
    assert {tuple(result[3:]) for result in results if result} == {(12 * 20_000.0, 12)}


def test_the_workers_go_on_after_the_death_of_the_coordinator(engine: ModuleType) -> None:
    results = engine.RayJob(lambda comm: jobs.train(comm, [0], "coordinator"), 3).wait(jobs.DEADLINE)
    assert [result[1:] for result in results] == [[3, 1, 12 * 20_000.0, 12]] * 3
    assert sorted(result[0] for result in results) == [0, 1, 2]


def check_slots(results: list[Any], size: int) -> None:
    """Nothing that a worker was told is lost, and all slots are those of one worker without a fault."""
    assert [result[1] for result in results] == [size] * size
    for acknowledged, _, steps, digest in results:
        assert all(after >= before for before, after in zip(acknowledged[::2], acknowledged[1::2], strict=True))
        assert digest == jobs.undisturbed(steps)


def test_the_actor_is_restarted_and_slots_are_kept(engine: ModuleType) -> None:
    results = engine.RayJob(lambda comm: jobs.survive(comm, "sync_replicas", "coordinator"), 3).wait(jobs.DEADLINE)
    check_slots(results, 3)


def test_a_new_worker_replaces_the_one_that_decides(engine: ModuleType) -> None:
    job = engine.RayJob(lambda comm: jobs.survive(comm, "sync_replicas", "kill", 3), 3, restarts=1)
    first, *results = job.wait(jobs.DEADLINE)
    assert first is None
    check_slots(results, 3)


def test_a_worker_joins_and_one_leaves(engine: ModuleType) -> None:
    job = engine.RayJob(jobs.grow, 2, accept_newcomers=True)
    while not job.poll(0.1):
        if len(job.pids()) == 3:
            job.join()
            break
    results = job.wait(jobs.DEADLINE)
    assert results == [[0, 3, 3], [1, 3, 3], [2, 3, 3]]


def test_an_error_of_a_worker_is_raised(engine: ModuleType) -> None:
    with pytest.raises(ArithmeticError, match="the loss diverged"):
        engine.RayJob(jobs.fail_alone, 2).wait(jobs.DEADLINE)
    assert distributed.run(jobs.disagree, "ray", 3) == ["collective"] * 3
    assert distributed.run(jobs.late_once, "ray", 2) == ["timed out", "timed out"]


def test_no_malformed_message_is_received(engine: ModuleType) -> None:
    found, told = distributed.run(jobs.receive_from_hostile, "ray", 2)
    assert (found, told) == ({}, jobs.REFUSED)
    assert distributed.run(jobs.ask_with_another_tree, "ray", 2) == jobs.ASKED


def test_workers_run_out_of_data_at_different_times_and_one_is_slow(engine: ModuleType) -> None:
    assert sorted(distributed.run(jobs.run_out, "ray", 3)[0]) == [[0, 9], [1, 3], [2, 6]]
    assert distributed.run(jobs.straggle, "ray", 3) == jobs.STRAGGLED


def test_all_workers_die(engine: ModuleType) -> None:
    job = engine.RayJob(jobs.wait_for_nothing, 2)
    pids = job.pids()
    for name, pid in pids.items():
        if name != "coordinator":
            os.kill(pid, signal.SIGKILL)
    with pytest.raises(distributed.WorkerLost, match="the work of worker [01] cannot complete: its process died"):
        job.wait(jobs.DEADLINE)


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ("raise", Exception, "No module named 'data_of_this_worker'"),
        ("exit", distributed.WorkerLost, "work of worker [01] .* exit code no data set"),
        ("die", distributed.WorkerLost, "work of worker [01] cannot complete: its process died"),
    ],
)
def test_a_worker_that_fails_before_it_takes_part_is_named(
    engine: ModuleType, tmp_path: Path, how: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        engine.RayJob(jobs.FailsAtStart(str(tmp_path / "first"), how), 2).wait(jobs.DEADLINE)


def test_a_worker_that_dies_before_it_takes_part_is_replaced(engine: ModuleType, tmp_path: Path) -> None:
    job = engine.RayJob(jobs.FailsAtStart(str(tmp_path / "first"), "die"), 2, restarts=1)
    assert sorted(map(str, job.wait(jobs.DEADLINE))) == ["2", "2", "None"]


def test_a_worker_that_exits_ends_the_program(engine: ModuleType) -> None:
    """As under the engine of threads: Ray alone ends the process, and says nothing of it."""
    for name in ("threads", "ray"):
        with pytest.raises(SystemExit, match="no data set"):
            distributed.run(jobs.exit_alone, name, 2)


@pytest.mark.parametrize("address", ["10.1.2.3:6379", "ray://example.org:10001", "auto", "[fe80::1]:6379"])
def test_a_cluster_without_authentication_is_refused(
    engine: ModuleType, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    started: list[str] = []
    import ray

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda address, **options: started.append(address))
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(PermissionError, match="expected RAY_AUTH_MODE=token, or allow_insecure=True"):
        engine.connect(address, 2, allow_insecure=False)
    with pytest.raises(PermissionError, match="Ray that is started here"):
        engine.connect(None, 2, allow_insecure=False)
    assert not started
    engine.connect("127.0.0.1:6379", 2, allow_insecure=False)
    engine.connect(address, 2, allow_insecure=True)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    engine.connect(address, 2, allow_insecure=False)
    assert started == ["127.0.0.1:6379", address, address]


def test_every_method_gives_the_bits_that_it_gives_on_threads(engine: ModuleType) -> None:
    assert distributed.run(jobs.every_method, "ray", 3) == distributed.run(jobs.every_method, workers=3)


def test_gradients_of_minimize_leave_during_the_replay(engine: ModuleType) -> None:
    runs = distributed.run(jobs.minimize_in_buckets, "ray", 2)
    assert runs == distributed.run(jobs.minimize_in_buckets, workers=2) and runs[0][0]


def test_reports_and_time_lines_are_gathered(engine: ModuleType) -> None:
    assert distributed.run(jobs.reported, "ray", 2) == distributed.run(jobs.reported, workers=2)
