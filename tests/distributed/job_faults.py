"""Faults of workers: processes that die, leave, fail or are stopped."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from oxigrad.distributed import CommunicationError

DEADLINE = 240
"""Seconds after which a test counts as hanging."""


def die(comm: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _leave(comm: Any) -> None:
    comm.leave()
    raise SystemExit


def _fail(comm: Any) -> None:
    raise ArithmeticError("the loss diverged")


def stop_and_continue(comm: Any) -> None:
    """Stops this process; another one, which it has started, continues it after a second."""
    resume = f"import os, time; time.sleep(1); os.kill({os.getpid()}, {int(signal.SIGCONT)})"
    with subprocess.Popen([sys.executable, "-c", resume]):
        os.kill(os.getpid(), signal.SIGSTOP)


def _stop(comm: Any) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _stop_until(goes_on: Path) -> None:
    """Stops this process; another one, which it has started, continues it as soon as a file exists."""
    resume = (
        f"import os, time\nwhile not os.path.exists({str(goes_on)!r}):\n    time.sleep(0.01)\n"
        f"os.kill({os.getpid()}, {int(signal.SIGCONT)})"
    )
    with subprocess.Popen([sys.executable, "-c", resume]):
        os.kill(os.getpid(), signal.SIGSTOP)


def _kill_coordinator(comm: Any) -> None:
    import ray

    os.kill(ray.get(comm._hub.pid.remote()), signal.SIGKILL)


FAULTS = {
    "coordinator": _kill_coordinator,
    "kill": die,
    "leave": _leave,
    "fail": _fail,
    "continue": stop_and_continue,
    "stop": _stop,
    "fence": _stop_until,
}


def reform_beside_a_stopped(comm: Any, folder: str, stopped: int, when: str = "before") -> Any:
    """A worker is stopped, and goes on when the others have ended; those form the next generation.

    They do so at once, or after they have excluded the worker, ``when`` is "excluded"; or it is stopped as the last one to "connect".
    Returns the size of the next generation or the name of the error, and the seconds that it took; "stopped" of the stopped one.
    """
    ended = [Path(folder) / f"ended {rank}" for rank in range(comm.size) if rank != stopped]
    comm.all_gather_v(np.zeros(1))
    if comm.rank == stopped:
        if when == "connect":
            comm._rendezvous.connect = lambda *_: _stop_until(Path(folder) / "goes on")
            with contextlib.suppress(AttributeError):  # it has no group
                comm.reform(timeout=10.0)
        else:
            _stop_until(Path(folder) / "goes on")
        return "stopped"
    time.sleep(0.5)
    begin = time.monotonic()
    try:
        if when == "excluded":
            comm.exclude(stopped)
        found: Any = comm.reform(timeout=2.0).size
    except CommunicationError as error:
        found = type(error).__name__
    seconds = time.monotonic() - begin
    (Path(folder) / f"ended {comm.rank}").touch()
    while not all(file.exists() for file in ended) and time.monotonic() < begin + DEADLINE:
        time.sleep(0.01)
    (Path(folder) / "goes on").touch()
    return found, seconds
