"""Communication of 3 workers under MPI, beside mpi4py's own calls on the same buffers.

The job is started once; each call has it repeat an operation a few times, which hides the way of the command through pipes.
"""

import atexit
import functools
import importlib.util
import subprocess
import sys
from pathlib import Path

import sizes
from measure import Contestant, Goal, Ready, Row, WrongResultError

WORKERS, REPEATS = 3, 5
PROGRAM = Path(__file__).parent.parent / "mpi_job.py"


@functools.cache
def job() -> "subprocess.Popen[str]":
    """The job, which ends with this process."""
    small = ["--small"] if sizes.is_small() else []
    line = [sys.executable, "-m", "oxigrad.launch", "--quiet", "-n", str(WORKERS), str(PROGRAM), *small]
    made = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(made.terminate)  # and with it the processes that it has started
    return made


def ask(name: str, count: int) -> None:
    """Has the job run a function so many times, or check it for 0."""
    to, back = job().stdin, job().stdout
    if to is None or back is None:
        raise WrongResultError("the job has no pipes")
    to.write(f"{name} {count}\n")
    to.flush()
    if (answer := back.readline().strip()) != "done":
        raise WrongResultError(answer or "the job has ended")


def contestant(title: str, role: str, name: str) -> Contestant:
    """A function of the job."""

    def prepare() -> Ready:
        if importlib.util.find_spec("mpi4py") is None:
            raise ImportError("mpi4py")
        return Ready(lambda: ask(name, REPEATS), lambda: ask(name, 0))

    return Contestant(title, role, prepare)


def row(name: str, prefix: str, raw: str, goals: tuple[Goal, ...], role: str = "peer") -> Row:
    """One operation by the protocol, and by mpi4py."""
    ours, theirs = contestant("oxigrad", "ours", f"{prefix}_ours"), contestant(raw, role, f"{prefix}_raw")
    return Row(name, lambda: [ours, theirs], goals, operations=REPEATS)


ROWS = [
    row("all-reduce of 10 MB, 3 workers", "reduce", "mpi4py Allreduce", (Goal(1 / 1.2, "mpi4py Allreduce"),)),
    row("push 10 MB and take the mean, 3 workers", "round", "mpi4py Send, Recv", (Goal(1 / 1.3, "mpi4py Send, Recv"),)),
    row("SGD step of 148 tensors, 3 workers", "model", "mpi4py Allreduce, flat", (), "ceiling"),
]
