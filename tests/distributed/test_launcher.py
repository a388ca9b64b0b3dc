"""Jobs whose launcher hangs end: it is told to, and then killed, with all that it has started."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import jobs
import pytest

from oxigrad import launch

# Shorter times than those of users, since every test waits for one of them.
LAUNCH = "import sys; from oxigrad import launch; launch.POLL, launch.ENDING, launch.IDLE = 0.1, 0.5, 1.0; sys.exit(launch.main())"
# A launcher that starts a process for each worker, and does not end by signals, or at all.
HANGS = """import signal, subprocess, sys, time
if sys.argv[1:] == ["--version"]:
    sys.exit()
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
worker = subprocess.Popen(sys.argv[3:])
print("started", worker.pid, flush=True)
worker.wait()
time.sleep(600)
"""
WAITS = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)\n"


def start(*arguments: str) -> subprocess.Popen[str]:
    line = [sys.executable, "-c", LAUNCH, "--quiet", "-n", "2", *arguments]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def assert_ended(pids: set[int]) -> None:
    deadline = time.monotonic() + jobs.DEADLINE
    while any(launch.stat(pid)[0] not in ("", "Z") for pid in pids):
        assert time.monotonic() < deadline, pids
        time.sleep(0.02)


@pytest.fixture
def hanging(tmp_path: Path) -> str:
    path = tmp_path / "mpiexec"
    path.write_text(f"#!{sys.executable}\n{HANGS}")
    path.chmod(0o755)
    return str(path)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, None])
def test_a_launcher_that_hangs_is_killed(hanging: str, tmp_path: Path, number: signal.Signals | None) -> None:
    """After a signal, or where all of its processes have ended."""
    program = tmp_path / "program.py"
    program.write_text(WAITS if number else "")
    with start("--mpiexec", hanging, str(program)) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("started")
        pids = launch.descendants(process.pid) - {process.pid}
        assert len(pids) >= (2 if number else 1)
        if number:
            process.send_signal(number)
        _, errors = process.communicate(timeout=jobs.DEADLINE)
    assert process.returncode == (128 + number if number else 1), errors
    why = f"{number.name} was 0.5 s ago" if number else "no process of it has run for 1 s"
    assert f"does not end, and {why}: killed with all its processes" in errors
    assert_ended(pids)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="the system has no such signals")
def test_a_signal_while_the_job_starts_is_not_lost(hanging: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(WAITS)
    signalled = """
        import os, signal, subprocess, sys
        from oxigrad import launch
        launch.POLL, launch.ENDING = 0.1, 0.5
        start = subprocess.Popen
        def started(*line, **named):
            job = start(*line, **named)
            if "env" in named:
                os.kill(os.getpid(), signal.SIGHUP)
            return job
        subprocess.Popen = started
        sys.exit(launch.main())
    """
    line = [sys.executable, "-c", textwrap.dedent(signalled), "--quiet", "-n", "1", "--mpiexec", hanging, str(program)]
    run = subprocess.run(line, capture_output=True, text=True, timeout=jobs.DEADLINE, check=False)
    # The launcher of the job may have ended by the signal, or not.
    assert run.returncode in (256 - signal.SIGTERM, 128 + signal.SIGHUP), run.stderr


def test_an_idle_connection_to_the_launcher_does_not_hang_it_for_ever(tmp_path: Path) -> None:
    """`prterun` reads from each connection to its port, for as long as nothing comes."""
    pytest.importorskip("mpi4py")
    go, program = tmp_path / "go", tmp_path / "program.py"
    program.write_text(
        "import os, sys, time\nprint(os.getpid(), flush=True)\n"
        f"while not os.path.exists({str(go)!r}):\n    time.sleep(0.05)\nfrom mpi4py import MPI\n"
    )
    with start(str(program)) as process:
        assert process.stdout is not None
        pids = {int(process.stdout.readline()) for _ in range(2)} | launch.descendants(process.pid)
        ports = [port for _, address, port in launch.listening(process.pid) if ":" not in address]
        idle = [socket.create_connection(("127.0.0.1", port)) for port in ports]
        assert idle
        time.sleep(0.2)  # until each of them is accepted
        go.touch()
        time.sleep(0.5)
        assert process.poll() is None
        process.terminate()
        _, errors = process.communicate(timeout=jobs.DEADLINE)
        for connection in idle:
            connection.close()
    assert process.returncode == 128 + signal.SIGTERM, errors
    assert "SIGTERM was 0.5 s ago: killed" in errors
    assert_ended(pids - {process.pid, os.getpid()})
