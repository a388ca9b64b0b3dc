"""A process of a job of ``torch.distributed``: its communicator, from the start or from when it joins."""

import atexit
import os
import secrets
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import oxigrad
from oxigrad.distributed.communicator import TIMEOUT, Communicator, results_of
from oxigrad.distributed.engines.background import in_time
from oxigrad.distributed.engines.torch.admission import TOKEN, proof, token_of_environment
from oxigrad.distributed.engines.torch.library import Group, distributed, init_group, store_of_program
from oxigrad.distributed.engines.torch.rendezvous import Rendezvous
from oxigrad.distributed.engines.torch.transport import TorchCommunicator
from oxigrad.distributed.errors import CommunicationError, Refused, TimedOut
from oxigrad.distributed.messages.agreement import VERSION_BYTES, check_versions, version

_DIGEST = 64
"""Characters of a `proof`."""

# The rendezvous of the job of this process, once it has a communicator.
_rendezvous: list[Rendezvous] = []


def communicator(
    *, timeout: float = TIMEOUT, group: Any = None, join: bool = False, accept_newcomers: bool = False
) -> TorchCommunicator:
    """The communicator of this process; the same one at each call, until it has left.

    Args:
        timeout: seconds that a wait takes at most.
        group: the processes of ``torch.distributed`` that take part; by default all. All of them make a communicator at
            the same time.
        join: whether this process joins a job that runs, whose rendezvous ``MASTER_ADDR`` and ``MASTER_PORT`` name; it
            needs no group of torch. Its workers get `WorkerLost`, and admit it by `reform`. A job of a ``group`` cannot
            be joined.
        accept_newcomers: whether processes may join; the same on all workers. Workers and newcomers have a secret in
            common, the variable ``OXIGRAD_TOKEN`` of their environment.

    Raises `CommunicationError` where ``torch.distributed`` is not initialized, there is no job to join, or no token;
    `TimedOut` where a process does not make its own, or the workers do not admit this one; and `Refused` where the
    processes run other versions of the package, some of them accept newcomers alone, or the job does not accept this
    one.
    """
    if _rendezvous and _rendezvous[0].communicator.has_left:
        _close()
    if not _rendezvous:
        rendezvous = _joined(timeout) if join else _begun(timeout, group, accept_newcomers=accept_newcomers)
        _rendezvous.append(rendezvous)
        atexit.register(_close)
    return _rendezvous[0].communicator


def _begun(timeout: float, group: Any, *, accept_newcomers: bool) -> Rendezvous:
    """The rendezvous of a job that begins, with the communicator of this process."""
    if not distributed.is_initialized():
        raise CommunicationError("torch.distributed is not initialized: call init_process_group first")
    world = distributed.get_process_group_ranks(group or distributed.group.WORLD)
    token = token_of_environment("accept_newcomers=True") if accept_newcomers else None
    job = np.frombuffer(secrets.token_bytes(16), np.uint8).copy()
    rows = np.zeros((len(world), VERSION_BYTES + _DIGEST), np.uint8)

    def make() -> tuple[Group, Any]:
        group = Group.of_world(world)
        group.broadcast(job, 0).wait()
        digest = bytes(_DIGEST) if token is None else proof(token, job.tobytes(), "every worker").encode()
        row = np.concatenate([version(), np.frombuffer(digest, np.uint8)])
        group.all_gather(rows.reshape(-1), row).wait()
        return group, store_of_program()

    text = f"the communicator is not made within {timeout:g} s: a worker has ended before, or does not make its own"
    every, store = in_time(make, timeout, TimedOut(text))
    check_versions(rows[:, :VERSION_BYTES])
    _check_tokens(rows[:, VERSION_BYTES:])
    members = [str(rank) for rank in range(len(world))]
    rendezvous = Rendezvous(store, job.tobytes(), str(every.rank), members, token=token)
    if every.rank == 0 and len(world) == distributed.get_world_size():
        rendezvous.publish(oxigrad.__version__)
    TorchCommunicator(rendezvous, every, timeout, group or distributed.group.WORLD)
    return rendezvous


def _check_tokens(rows: np.ndarray) -> None:
    """Raises `Refused` if only some workers accept newcomers, or tokens differ: rows of zeros, or digests of tokens."""
    for rank, row in enumerate(rows):
        if row.any() != rows[0].any():
            does, does_not = (rank, 0) if row.any() else (0, rank)
            text = (
                f"accept_newcomers is True on rank {does}, False on rank {does_not}: expected one value on every worker"
            )
            raise Refused("newcomers", text)
        if (row != rows[0]).any():
            raise Refused("token", f"{TOKEN} of rank {rank} is another one than of rank 0: expected one for the job")


def _joined(timeout: float) -> Rendezvous:
    """The rendezvous of a job that this process joins, with its communicator."""
    try:
        host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    except (KeyError, ValueError) as error:
        raise CommunicationError(
            f"the job to join is not named: expected MASTER_ADDR and MASTER_PORT as its workers have them ({error})"
        ) from error
    rendezvous, group = Rendezvous.of_newcomer(host, port, oxigrad.__version__, timeout)
    TorchCommunicator(rendezvous, group, timeout)
    return rendezvous


def _close() -> None:
    """Ends this process's part in its job, where it has one."""
    while (
        _rendezvous and _rendezvous[0].process == os.getpid()
    ):  # and not that of a process of which this one is a fork
        communicator = _rendezvous.pop().communicator
        if not hasattr(sys, "last_value"):  # no uncaught exception ends the program
            communicator.trainings.end()
        communicator.close()


def run(
    worker: Callable[[Communicator], Any], workers: int | None = None, *, timeout: float = TIMEOUT, **options: Any
) -> list[Any]:
    """Runs ``worker(communicator)`` in this process. See `oxigrad.distributed.run`.

    Without a group, one of gloo is initialized from the environment, as torchrun sets it, unless the process joins a
    job (``join=True``; see `communicator` for the options). The list returned has this worker's result at its rank, and
    None at the others.
    """
    starts = not (distributed.is_initialized() or options.get("join"))
    if starts:
        init_group(timeout)
    try:
        _check_workers(workers, **options)
    except ValueError:
        if starts:
            distributed.destroy_process_group()
        raise
    comm = communicator(timeout=timeout, **options)
    try:
        results = results_of(worker, comm)
    finally:
        _rendezvous[0].communicator.leave()
    if starts:
        has_excluded = _rendezvous[0].communicator.has_excluded
        _close()
        if not has_excluded:  # a group with a stopped process cannot be destroyed
            distributed.destroy_process_group()
    return results


def _check_workers(
    workers: int | None, group: Any = None, *, join: bool = False, accept_newcomers: bool = False
) -> None:
    """Raises `ValueError` where the first generation of the job has another number of workers."""
    if workers is None or join or (_rendezvous and _rendezvous[0].communicator.generation > 0):
        return
    if workers != (size := distributed.get_world_size(group)):
        raise ValueError(
            f"workers is {workers}, but the group has {size}: expected the number of processes, or no number, which "
            "takes all"
        )
