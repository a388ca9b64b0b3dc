"""Communication of 3 workers under MPI, beside mpi4py's own calls on the same buffers, and steps of 2 and 4 workers, of one thread each.

A row starts a job; each call has it repeat an operation a few times, which hides the way of the command through pipes.
"""

import importlib.util
import os
import sys
from pathlib import Path

import sizes
from child import Child
from measure import Contestant, Goal, Ready, Row

REPEATS = 5
PROGRAM = Path(__file__).parent.parent / "mpi_job.py"


# The job of so many workers that runs, or ran last.
_JOBS: dict[int, Child] = {}


def job(workers: int) -> Child:
    """The job, which contestants of a row share."""
    if workers not in _JOBS or not _JOBS[workers].is_running:
        small = ["--small"] if sizes.is_small() else []
        line = [sys.executable, "-m", "oxigrad.launch", "--quiet", "-n", str(workers), str(PROGRAM), *small]
        given = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"} if workers != 3 else {}
        _JOBS[workers] = Child(line, {**os.environ, **given})
    return _JOBS[workers]


def contestant(title: str, role: str, name: str, workers: int = 3, needs: str = "mpi4py") -> Contestant:
    """A function of the job of so many workers."""

    def prepare() -> Ready:
        for library in ("mpi4py", needs):
            if importlib.util.find_spec(library) is None:
                raise ImportError(library)
        started = job(workers)
        return Ready(lambda: started.ask(f"{name} {REPEATS}"), lambda: started.ask(f"{name} 0"))

    return Contestant(title, role, prepare)


def row(name: str, prefix: str, raw: str, goals: tuple[Goal, ...], role: str = "peer") -> Row:
    """One operation by the protocol, and by mpi4py."""
    ours, theirs = contestant("oxigrad", "ours", f"{prefix}_ours"), contestant(raw, role, f"{prefix}_raw")
    return Row(name, lambda: [ours, theirs], goals, operations=REPEATS)


ROWS = [
    row("all-reduce of 10 MB, 3 workers", "reduce", "mpi4py Allreduce", (Goal(1 / 1.2, "mpi4py Allreduce"),)),
    row("push 10 MB and take the mean, 3 workers", "round", "mpi4py Send, Recv", (Goal(1 / 1.3, "mpi4py Send, Recv"),)),
    # Its ceiling neither copies gradients into a buffer, nor divides sums, nor updates parameters: seven more passes over the memory of the model.
    row("SGD step of 148 tensors, 3 workers", "model", "mpi4py Allreduce, flat", (), "ceiling"),
    Row(
        "transformer step with overlap, 2 workers",
        lambda: [
            contestant("oxigrad", "ours", "transformer_ours", 2),
            contestant("compute alone", "peer", "transformer_alone", 2),
        ],
        (Goal(1 / 1.15, "compute alone"),),
        operations=REPEATS,
    ),
    Row(
        "transformer of PyTorch, 4 workers",
        lambda: [
            contestant("oxigrad", "ours", "module_ours", 4, "torch"),
            contestant("torch DDP, gloo", "peer", "module_raw", 4, "torch"),
        ],
        (Goal(1.2, "torch DDP, gloo"),),
        operations=REPEATS,
    ),
]
