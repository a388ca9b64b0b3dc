"""Programs of tests: the work of a worker in a process of MPI or torch, as ``python jobs.py mpi exchange 3``.

The work is in `job_messages`, `job_methods` and `job_trainings`. A program prints one line of JSON for the result of its worker; see
`results`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from job_faults import DEADLINE, FAULTS, die, reform_beside_a_stopped
from job_joins import join_collective, join_coordinated
from job_messages import (
    REFUSED,
    disagree,
    divide_otherwise,
    exchange,
    exit_alone,
    fail_alone,
    fail_while_forming,
    grow,
    late,
    late_once,
    listening_names,
    outlive,
    receive_from_hostile,
    send_by_threads,
    send_in_blocks,
    torch_faults,
    train,
    wait_for_nothing,
)
from job_methods import (
    ASKED,
    FOLDED,
    METHODS,
    ask_with_another_tree,
    check_overtaken,
    every_method,
    fully_sharded,
    lose_on_device,
    memory_of_gradients,
    minimize_in_buckets,
    model_on_device,
    module_in_buckets,
    overtaken_and_folds,
    reported,
    trained,
)
from job_soak import train_by, train_shards
from job_trainings import (
    FULL_DISK,
    STRAGGLED,
    SURVIVING,
    check_fenced,
    constant_gradient,
    digest,
    end_apart,
    fence,
    finish_first,
    finish_keeping_the_centre,
    pulled,
    replicas,
    run_out,
    save_on_a_full_disk,
    stopped_coordinator,
    straggle,
    survive,
    undisturbed,
    update_in_turn,
)

import oxigrad
from oxigrad import distributed, launch
from oxigrad.distributed import (
    Refused,
    TimedOut,
)

__all__ = [
    "ASKED",
    "DEADLINE",
    "FAULTS",
    "FOLDED",
    "FULL_DISK",
    "METHODS",
    "PROGRAMS",
    "REFUSED",
    "STRAGGLED",
    "SURVIVING",
    "FailsAtStart",
    "ask_with_another_tree",
    "check_fenced",
    "check_overtaken",
    "completed",
    "constant_gradient",
    "digest",
    "disagree",
    "divide_otherwise",
    "end_apart",
    "every_method",
    "exchange",
    "exit_alone",
    "fail_alone",
    "fail_while_forming",
    "fence",
    "finish_first",
    "finish_keeping_the_centre",
    "fully_sharded",
    "grow",
    "join_collective",
    "join_coordinated",
    "killed_before_start",
    "late",
    "late_once",
    "launched",
    "listening_names",
    "lose_on_device",
    "main",
    "memory_of_gradients",
    "minimize_in_buckets",
    "model_on_device",
    "module_in_buckets",
    "other_version",
    "outlive",
    "overtaken_and_folds",
    "pulled",
    "receive_from_hostile",
    "reform_beside_a_stopped",
    "replicas",
    "reported",
    "results",
    "run_again",
    "run_in_group",
    "run_out",
    "save_on_a_full_disk",
    "send_by_threads",
    "send_in_blocks",
    "stopped_coordinator",
    "straggle",
    "survive",
    "torch_faults",
    "train",
    "train_by",
    "train_shards",
    "trained",
    "undisturbed",
    "update_in_turn",
    "wait_for_nothing",
]

# --- programs -----------------------------------------------------------------------------------------------------------


def launched(
    count: int, *job: Any, options: tuple[str, ...] = (), timeout: float = DEADLINE
) -> subprocess.CompletedProcess[str]:
    """Runs a program under MPI, whose wheel the launcher finds."""
    line = [sys.executable, "-m", "oxigrad.launch", "--quiet", "-n", str(count), *options, __file__, "mpi", *job]
    return completed([str(part) for part in line], timeout)


def completed(line: list[str], timeout: float = DEADLINE) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end; after the time-out, it and all that it has started are killed."""
    with subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            output, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired as error:
            for pid in launch.descendants(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            output, errors = process.communicate()
            raise AssertionError(f"the program hangs\n{output}\n{errors}") from error
        return subprocess.CompletedProcess(line, process.returncode, output, errors)


def results(output: str) -> list[Any]:
    """The results that the programs have printed, in any order."""
    lines = [line for line in output.splitlines() if line.startswith("result ")]
    return sorted((json.loads(line.removeprefix("result ")) for line in lines), key=str)


def other_version(engine: str) -> str:
    """The error of a job in which rank 1 runs another version of the package."""
    if "1" in (os.environ.get("OMPI_COMM_WORLD_RANK"), os.environ.get("PMI_RANK"), os.environ.get("RANK")):
        oxigrad.__version__ = "0.0.1"
    try:
        distributed.communicator(engine, timeout=30.0)
    except Refused as error:
        return f"{error.reason}: {error}"
    return "accepted"


def killed_before_start(engine: str) -> str:
    """The error of a job in which the process of rank 1 dies before it makes its communicator."""
    if "1" in (os.environ.get("OMPI_COMM_WORLD_RANK"), os.environ.get("PMI_RANK"), os.environ.get("RANK")):
        die(None)
    try:
        distributed.communicator(engine, timeout=2.0)
    except TimedOut as error:
        return str(error)
    return "accepted"


def run_in_group(engine: str) -> list[Any]:
    """The rank of this process, and what `distributed.run` returns without a number of workers."""
    found = distributed.run(lambda comm: [comm.rank, comm.size], engine)
    return [next(rank for rank, result in enumerate(found) if result), found]


def run_again(engine: str) -> list[float]:
    """Runs one worker after another by one group of the program, and by groups that each run makes."""
    import torch.distributed

    def worker(comm: Any) -> float:
        total = np.full(1, float(comm.rank + 1))
        if comm.rank:
            time.sleep(0.3)  # the other one begins the next run before this one has ended
        comm.all_reduce([total], op="sum")
        return float(total[0])

    store = torch.distributed.distributed_c10d._get_default_store()
    found = []
    for number in range(5):
        if number == 2:
            torch.distributed.destroy_process_group()
        found += [each for each in distributed.run(worker, engine, timeout=20.0) if each is not None]
    del store
    return found


class FailsAtStart:
    """A worker function that the first process which receives it cannot load: it raises an error, exits or dies instead."""

    def __init__(self, folder: str, how: str) -> None:
        self.folder, self.how = folder, how

    def __reduce__(self) -> tuple[Any, ...]:
        return _loaded, (self.folder, self.how)

    def __call__(self, comm: Any) -> int:
        return comm.size


def _loaded(folder: str, how: str) -> FailsAtStart:
    try:
        os.mkdir(folder)  # by one process alone
    except FileExistsError:
        return FailsAtStart(folder, how)
    if how == "raise":
        raise ModuleNotFoundError("No module named 'data_of_this_worker'")
    if how == "exit":
        raise SystemExit("no data set")
    os._exit(3)


PROGRAMS = {
    "other_version": other_version,
    "killed_before_start": killed_before_start,
    "run_in_group": run_in_group,
    "run_again": run_again,
}


def main(engine: str, name: str, *arguments: str) -> None:
    given = [json.loads(argument) for argument in arguments]
    if name in PROGRAMS:
        sys.stdout.write(f"result {json.dumps(PROGRAMS[name](engine))}\n")
        sys.stdout.flush()
        return
    accepts = {"accept_newcomers": True} if "OXIGRAD_TOKEN" in os.environ else {}
    options: dict[str, Any] = {"join": True} if "JOIN" in os.environ else accepts
    comm = distributed.communicator(engine, timeout=float(os.environ.get("JOB_TIMEOUT", "60")), **options)
    result = globals()[name](comm, *given)
    sys.stdout.write(f"result {json.dumps(result)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    if sys.argv[1] == "torch" and "JOIN" not in os.environ:
        import torch.distributed

        torch.distributed.init_process_group("gloo")
    main(*sys.argv[1:])
