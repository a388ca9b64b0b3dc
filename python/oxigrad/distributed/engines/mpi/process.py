"""Workers as processes of an MPI job, through mpi4py.

Only buffers are sent, never objects: no message is pickled. Waits test for completion and pause between the tests, and
every one of them has a time-out. An uncaught exception ends the whole job. Where the MPI library implements user-level
failure mitigation (Open MPI 5 under ``--with-ft ulfm``), the survivors of a lost worker continue by
`MPICommunicator.reform`.
"""

import atexit
import contextlib
import faulthandler
import os
import secrets
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from oxigrad.distributed.communicator import TIMEOUT, Communicator, results_of
from oxigrad.distributed.engines.mpi.library import FINALIZES, MPI
from oxigrad.distributed.engines.mpi.membership import Membership
from oxigrad.distributed.engines.mpi.transport import MPICommunicator, abort, tell_parent
from oxigrad.distributed.errors import CommunicationError, Excluded
from oxigrad.distributed.messages.agreement import VERSION_BYTES, check_versions, version
from oxigrad.launch import worker

# The membership of this process, once it is a worker.
_membership: list[Membership] = []


def communicator(
    *, timeout: float = TIMEOUT, spares: int | None = None, accept_newcomers: bool = False
) -> MPICommunicator:
    """The communicator of this process of an MPI job; the same one at each call.

    The last ``spares`` processes (``OXIGRAD_SPARES``, which ``python -m oxigrad.launch --spares`` sets) wait here until
    they replace lost workers, and end where that does not happen. They are processes of the job from the start: no
    other process can join it, whatever ``accept_newcomers`` is, which is there for programs that run on every engine.
    Raises `Refused` on all processes where they run other versions of the package. Ends the process, with a traceback,
    where another one does not come here within the time-out.
    """
    if _membership:
        return _membership[0].communicator
    if spares is None:
        spares = int(os.environ.get("OXIGRAD_SPARES", "0"))
    with _limited(timeout):
        membership, job, versions = _wait_for_all_processes(spares)
    check_versions(versions)
    tell_parent(worker.BEGUN)
    atexit.register(_finish, membership)
    if not membership.is_worker and not membership.stand_by():
        sys.exit(0)
    comm = MPICommunicator(membership, job, timeout)
    _membership.append(membership)
    return comm


def _wait_for_all_processes(spares: int) -> tuple[Membership, bytes, np.ndarray]:
    """Initializes MPI, which all processes do.

    Returns what they agree on: the membership, the job, and the version of each.
    """
    if not MPI.Is_initialized():
        MPI.Init_thread(MPI.THREAD_MULTIPLE)
    if MPI.Query_thread() < MPI.THREAD_SERIALIZED:
        raise CommunicationError("MPI was initialized without threads: expected MPI_THREAD_SERIALIZED or more")
    _end_job_on_exceptions()
    membership = Membership(MPI.COMM_WORLD, spares)
    job = np.frombuffer(secrets.token_bytes(16), np.uint8).copy()
    membership.base.Bcast([job, MPI.BYTE], 0)
    versions = np.empty(membership.base.size * VERSION_BYTES, np.uint8)
    membership.base.Allgather([version(), MPI.BYTE], [versions, MPI.BYTE])
    return membership, job.tobytes(), versions


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """A context that ends the process where it takes longer.

    MPI waits in its initialization for every process that was started, also for one that has died, holds the
    interpreter lock meanwhile, and has no time-out: only a thread that needs no interpreter can end it.
    """
    if sys.__stderr__ is None:
        yield
        return
    faulthandler.dump_traceback_later(seconds, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def run(worker: Callable[[Communicator], Any], workers: int | None = None, **options: Any) -> list[Any]:
    """Runs ``worker(communicator)`` in this process, which MPI has started. See `oxigrad.distributed.run`.

    The list returned has this worker's result at its rank, and None at the others: results may be any objects, and
    objects are not exchanged between processes.
    """
    comm = communicator(**options)
    if workers not in (None, comm.size) and comm.generation == 0:
        raise ValueError(
            f"workers is {workers}, but MPI runs {comm.size}: expected the number of processes; "
            f"python -m oxigrad.launch -n {workers} starts as many"
        )
    return results_of(worker, comm)


def _finish(membership: Membership) -> None:
    """Ends this process's part. The others see it leave, and it joins their `reform` until they have ended too."""
    if os.getpid() != membership.process:  # of which this one is a fork
        return
    if membership.is_stuck or not all(request.Test() for request in membership.unfinished):
        abort("oxigrad.distributed: an operation never completed: ends the processes that wait for it")
    if not membership.peers.is_excluded:
        if membership.communicator is not None:
            membership.communicator.trainings.end()  # an uncaught exception has ended the job before
            membership.communicator.leave()
        membership.stand_by()
    tell_parent(worker.ENDED)
    sys.stdout.flush()
    sys.stderr.flush()
    if membership.has_lost:
        if not FINALIZES:
            sys.stderr.write(
                "oxigrad.distributed: a worker has died, and mpi4py.MPI was imported before the engine: the status "
                "of this program is not known, and is reported as 1. To keep it, import mpi4py.MPI after "
                "oxigrad.distributed.engines.mpi, or set mpi4py.rc.finalize = False before\n"
            )
            sys.stderr.flush()
            os._exit(1)
    elif FINALIZES:
        MPI.Finalize()


def _end_job_on_exceptions() -> None:
    """Makes an uncaught exception in any thread end all processes, which otherwise wait until they time out."""
    shown, shown_in_thread, process = sys.excepthook, threading.excepthook, os.getpid()

    def end_job(kind: type[BaseException]) -> None:
        # The others go on after an error of a fork, and without an excluded worker.
        if not issubclass(kind, (SystemExit, Excluded)) and os.getpid() == process:
            abort(f"oxigrad.distributed: rank {MPI.COMM_WORLD.rank} ends the job after an uncaught exception")

    sys.excepthook = lambda kind, value, trace: (shown(kind, value, trace), end_job(kind))
    threading.excepthook = lambda args: (shown_in_thread(args), end_job(args.exc_type))
