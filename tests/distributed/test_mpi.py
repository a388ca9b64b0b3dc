"""Workers as processes of MPI."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import jobs
import pytest

from oxigrad import distributed, launch

pytest.importorskip("mpi4py")
pytestmark = pytest.mark.xdist_group("processes")

#: MPICH ends a job in which a process dies, and its launcher listens on all addresses of a host.
needs_open_mpi = pytest.mark.skipif(
    not launch._is_open_mpi(launch._version(launch.find_launcher())), reason="what Open MPI does for its processes"
)


def test_every_operation_gives_the_bits_that_threads_give() -> None:
    run = jobs.launched(3, "exchange")
    assert run.returncode == 0, run.stderr
    assert jobs.results(run.stdout) == sorted(distributed.run(jobs.exchange, workers=3))


@pytest.mark.slow
def test_sixteen_processes() -> None:
    run = jobs.launched(16, "exchange")
    assert run.returncode == 0, run.stderr
    assert jobs.results(run.stdout) == sorted(distributed.run(jobs.exchange, workers=16))


def test_run_gives_this_process_its_result(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from oxigrad import distributed\n"
        "def worker(comm):\n"
        "    assert distributed.current() is comm\n"
        "    return comm.rank + 10\n"
        "print(distributed.run(worker, engine='mpi', workers=2), distributed.communicator('mpi').size, flush=True)\n"
        "assert distributed.run(worker, engine='mpi') == distributed.run(worker, engine='mpi', workers=2)\n"
        "try:\n"
        "    distributed.run(worker, engine='mpi', workers=5)\n"
        "except ValueError as error:\n"
        "    assert 'workers is 5, but MPI runs 2' in str(error), error\n"
        "else:\n"
        "    raise AssertionError\n"
    )
    line = [sys.executable, "-m", "oxigrad.launch", "--quiet", "-n", "2", str(program)]
    run = jobs.completed(line)
    assert run.returncode == 0, run.stderr
    assert sorted(run.stdout.split("\n")[:2]) == ["[10, None] 2", "[None, 11] 2"]


@pytest.mark.parametrize("work", ["disagree", "divide_otherwise"])
def test_an_operation_that_others_do_not_call_is_refused_by_all(work: str) -> None:
    run = jobs.launched(3, work)
    assert run.returncode == 0, run.stderr
    assert jobs.results(run.stdout) == ["collective"] * 3


def test_a_wait_ends_by_its_time_out() -> None:
    run = jobs.launched(2, "late")
    assert jobs.results(run.stdout) == ["timed out"]
    assert run.returncode != 0
    assert "ends the processes that wait" in run.stderr


@needs_open_mpi
def test_a_process_that_dies_before_its_communicator_ends_the_job() -> None:
    run = jobs.launched(2, "killed_before_start")
    assert run.returncode != 0
    assert "Timeout (0:00:02)!" in run.stderr
    assert "in _wait_for_all_processes" in run.stderr
    assert jobs.results(run.stdout) == []


def test_an_uncaught_exception_ends_the_job() -> None:
    run = jobs.launched(3, "train", "[1]", '"fail"')
    assert run.returncode != 0
    assert "ArithmeticError: the loss diverged" in run.stderr
    assert "rank 1 ends the job after an uncaught exception" in run.stderr
    assert jobs.results(run.stdout) == []


@needs_open_mpi
def test_the_launcher_prints_what_listens() -> None:
    line = [sys.executable, "-m", "oxigrad.launch", "-n", "2", jobs.__file__, "mpi", "listening_names"]
    run = jobs.completed(line)
    assert run.returncode == 0, run.stderr
    printed = [line for line in run.stderr.splitlines() if line.startswith("oxigrad.launch: ")]
    assert printed, run.stderr
    assert not any("python" in line for line in printed)
    assert jobs.results(run.stdout) == [[], []]  # the workers themselves listen nowhere


@needs_open_mpi
@pytest.mark.parametrize(
    ("imports", "status"),
    [
        ("", 3),
        ("from mpi4py import MPI", 1),
        ("import mpi4py; mpi4py.rc.finalize = False; from mpi4py import MPI", 3),
    ],
    ids=["the engine first", "mpi4py first", "mpi4py first, without finalization"],
)
def test_the_status_of_survivors_is_reported(tmp_path: Path, imports: str, status: int) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        f"{imports}\nimport sys\nsys.path.insert(0, {str(Path(jobs.__file__).parent)!r})\nimport jobs\n"
        "jobs.train(jobs.distributed.communicator('mpi'), [1])\n"
        "sys.exit(3)\n"
    )
    run = jobs.completed([sys.executable, "-m", "oxigrad.launch", "--quiet", "-n", "3", str(program)])
    assert run.returncode == status, run.stderr
    assert ("mpi4py.MPI was imported before the engine" in run.stderr) == (status == 1)


def test_the_job_ends_with_its_launcher(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "oxigrad.launch", "--quiet", "-n", "2", jobs.__file__, "mpi", "wait_for_nothing"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        pids = sorted(int(process.stdout.readline().split()[1]) for _ in range(2))
        process.terminate()
        assert process.wait(jobs.DEADLINE) != 0
    ended = time.monotonic() + jobs.DEADLINE
    while any(Path(f"/proc/{pid}/exe").exists() for pid in pids):
        assert time.monotonic() < ended, pids
        time.sleep(0.05)


def test_messages_of_several_threads_arrive_in_order() -> None:
    run = jobs.launched(2, "send_by_threads")
    assert run.returncode == 0, run.stderr
    assert [400, {}] in jobs.results(run.stdout)


def test_a_message_of_more_bytes_than_mpi_counts_comes_whole() -> None:
    run = jobs.launched(3, "send_in_blocks")
    assert run.returncode == 0, run.stderr
    assert [[0] * 5 + [1] * 5 + [2] * 5, {"length": 2}] in jobs.results(run.stdout)


def test_the_command_of_each_mpi(tmp_path: Path) -> None:
    def fake(version: str) -> str:
        path = tmp_path / "mpiexec"
        path.write_text(f"#!/bin/sh\necho '{version}'\n")
        path.chmod(0o755)
        return str(path)

    open_mpi = launch.command(fake("mpirun (Open MPI) 5.0.11"), 4, ["python", "p.py"])
    assert open_mpi[1:3] == ["-n", "4"] and open_mpi[-2:] == ["python", "p.py"]
    assert "self,sm" in open_mpi and "ulfm" in open_mpi
    assert "ulfm" not in launch.command(fake("mpirun (Open MPI) 4.1.4"), 4, ["p.py"])
    assert "ulfm" not in launch.command(fake("mpirun (Open MPI) 5.0.11"), 4, ["p.py"], fault_tolerant=False)
    hosts = launch.command(fake("mpirun (Open MPI) 5.0.11"), 4, ["p.py"], hostfile="hosts")
    assert "self,sm" not in hosts and hosts[-3:] == ["--hostfile", "hosts", "p.py"]
    assert "--allow-run-as-root" not in hosts
    mpich = launch.command(fake("HYDRA build details: Version: 5.0.2"), 4, ["p.py"])
    assert mpich[1:] == ["-n", "4", "p.py"]


def test_a_missing_launcher_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(launch.shutil, "which", lambda *args, **kwargs: None)
    with pytest.raises(SystemExit):
        launch.main(["-n", "2", "p.py"])
    assert "pip install 'oxigrad[mpi]'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        launch.main(["-n", "0", "p.py"])
    assert "expected at least one worker" in capsys.readouterr().err


def test_every_method_gives_the_bits_that_it_gives_on_threads() -> None:
    run = jobs.launched(3, "every_method")
    assert run.returncode == 0, run.stderr
    assert jobs.results(run.stdout) == sorted(distributed.run(jobs.every_method, workers=3), key=str)


def test_gradients_of_a_module_leave_during_the_backward() -> None:
    pytest.importorskip("torch")
    run = jobs.launched(2, "module_in_buckets")
    assert run.returncode == 0, run.stderr
    assert jobs.results(run.stdout) == distributed.run(jobs.module_in_buckets, workers=2)


def test_gradients_of_minimize_leave_during_the_replay() -> None:
    run = jobs.launched(2, "minimize_in_buckets")
    assert run.returncode == 0, run.stderr
    found = jobs.results(run.stdout)
    assert found == distributed.run(jobs.minimize_in_buckets, workers=2) and found[0][0]


def test_reports_and_time_lines_are_gathered() -> None:
    run = jobs.launched(3, "reported")
    assert run.returncode == 0, run.stderr
    assert jobs.results(run.stdout) == sorted(distributed.run(jobs.reported, workers=3), key=str)


@needs_open_mpi
@pytest.mark.parametrize("stage", ["_states_of", "_split", "_channels"])
def test_a_death_that_one_process_is_told_of_while_a_generation_forms(stage: str) -> None:
    """The others do not wait for this process in an operation that it has given up; all try again."""
    run = jobs.launched(5, "fail_while_forming", f'"{stage}"')
    assert jobs.results(run.stdout) == [[4, 4]] * 4, run.stderr


ENDINGS = """
import os, sys
import numpy as np
from oxigrad import distributed, optim
from oxigrad.distributed.engines.mpi.library import MPI

comm = distributed.communicator("mpi", timeout=150.0)

def forked(end):
    child = os.fork()
    if child == 0:
        end()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

class Lost:
    '''A matched message whose sender has died.'''
    def __init__(self, code):
        self.code = code
    def Recv(self, into):
        raise MPI.Exception(self.code)

with distributed.DataParallel(optim.SGD(1.0)) as opt:
    model = opt.start({"w": np.zeros(1)})
    while opt.step < 6:
        if comm.rank == 1 and opt.step == 2:
            assert forked(sys.exit) == 0
            assert forked(lambda: 1 / 0) == 1
        if comm.rank == 0 and opt.step == 2:
            membership = comm._membership
            assert [membership.receive(Lost(code), []) for code in (MPI.ERR_PROC_FAILED, MPI.ERR_REVOKED)] == [False] * 2
        if comm.rank == 2 and opt.step == 4:
            os._exit(int(sys.argv[1]))
        model = opt.update(model, {"w": np.ones(1)})
print(opt.communicator.size, opt.step, model["w"].tolist(), flush=True)
"""


@needs_open_mpi
@pytest.mark.parametrize("status", [0, 3])
def test_the_others_go_on_after_a_worker_that_ends_itself_and_forks_that_end(status: int, tmp_path: Path) -> None:
    """They are told at once, whatever its status is; what a fork does at its end is not the end of its parent."""
    program = tmp_path / "program.py"
    program.write_text(ENDINGS)
    begun = time.monotonic()
    run = jobs.completed([sys.executable, "-m", "oxigrad.launch", "--quiet", "-n", "3", str(program), str(status)])
    assert run.stdout.splitlines() == ["2 6 [-6.0]"] * 2, run.stderr
    assert run.returncode == 0
    assert time.monotonic() - begun < 120.0, "the survivors have waited for their time-out"
