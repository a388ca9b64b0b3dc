"""Faults of workers: processes that die, leave, fail or are stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

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

    os.kill(ray.get(comm._coordinator.pid.remote()), signal.SIGKILL)


FAULTS = {
    "coordinator": _kill_coordinator,
    "kill": die,
    "leave": _leave,
    "fail": _fail,
    "continue": stop_and_continue,
    "stop": _stop,
    "fence": _stop_until,
}
