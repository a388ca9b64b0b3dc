"""The protocol between wrapper optimizers and engines.

A communicator belongs to one worker of a job. Buffers are one-dimensional contiguous NumPy arrays;
`oxigrad.distributed.messages.message` packs trees into them.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, Protocol, TypeAlias, runtime_checkable

import numpy as np

from oxigrad.distributed.decisions.training import Trainings
from oxigrad.distributed.engines.background import InOrder, Running
from oxigrad.distributed.errors import Aborted, NotSupported, TimedOut
from oxigrad.distributed.messages.message import Header
from oxigrad.distributed.messages.reduction import Op, part_of
from oxigrad.distributed.messages.refusals import Refusals

Buffer: TypeAlias = np.ndarray
"""A one-dimensional contiguous array in host memory."""

Memory: TypeAlias = Sequence[Buffer] | Callable[[Header], Sequence[Buffer]]
"""The buffers that a message is received into, or a function of its header that returns them, or raises `Refused`."""

TIMEOUT = 60.0
"""Seconds after which a wait raises `TimedOut`, unless a communicator or a call is given another number."""

WORKERS = 4
"""The workers of a job whose engine starts them, unless it is given another number."""


@runtime_checkable
class Communicator(Protocol):
    """One worker's access to the others of its job.

    Every wait ends after ``timeout`` seconds; None is the communicator's own.

    Operations on all workers are called by all of them in the same order, and raise `WorkerLost` as soon as one of them
    has died or left. Methods of one communicator may be called by several threads of the worker as long as each
    collective operation, and each tag of `recv_any`, is called by one thread at a time.
    """

    rank: int
    """The number of this worker, from 0 to ``size - 1``; it may change in `reform`."""
    size: int
    """The number of workers of this generation."""
    generation: int
    """Counts the changes of membership. Messages of other generations are refused."""
    job: bytes
    """The identity of the job, 16 bytes. Messages of other jobs are refused."""
    timeout: float
    """Seconds that a wait takes at most, where the call does not say."""
    bytes_sent: int
    """Bytes of payload that this worker has sent, and has contributed to collective operations."""
    refused: Refusals
    """Counts the messages that were refused, by reason, and logs the first of each reason."""
    trainings: Trainings
    """Counts the wrappers on a communicator and its former generations, to match messages with trainings."""

    def all_reduce(
        self, bufs: Sequence[Buffer], *, op: Op = "mean", deterministic: bool = True, timeout: float | None = None
    ) -> None:
        """Replaces each buffer by its sum, mean or maximum over all workers, in place.

        With ``deterministic``, sums are taken in the order of ranks, as by
        `oxigrad.distributed.messages.reduction.reduce_in_order`, so that all engines give the same bits.
        """
        ...

    def reduce_scatter(
        self, buf: Buffer, counts: Sequence[int], *, op: Op = "mean", timeout: float | None = None
    ) -> Buffer:
        """The part of this worker of the sum, mean or maximum of ``buf`` over all workers: a view of ``buf``, in place.

        The part of rank k has ``counts[k]`` elements, after those of the ranks below it. Sums are taken in the order of
        ranks. The other parts of ``buf`` are undefined afterwards. Raises `ValueError` where the counts do not divide
        the buffer.
        """
        ...

    def broadcast(self, bufs: Sequence[Buffer], root: int = 0, *, timeout: float | None = None) -> None:
        """Replaces the buffers by those of the worker ``root``, in place."""
        ...

    def all_gather_v(self, buf: Buffer, *, timeout: float | None = None) -> list[Buffer]:
        """The buffers of all workers by rank, of one dtype and any lengths; they are not to be written to."""
        ...

    def begin(self, operation: Callable[[], Any]) -> Running:
        """Starts a function that calls collective operations in a thread of its own.

        ``result()`` of what it returns waits for it.

        All workers begin it at the same place among their collective operations. Those that are called later wait for
        it.
        """
        ...

    def send(self, dest: int, head: Header, bufs: Sequence[Buffer]) -> None:
        """Sends a message to a worker, which may be this one; the buffers may be changed after the call.

        The engine completes the header, as `Header.sealed` does. Raises `WorkerLost` where the worker has died or left.
        """
        ...

    def recv_any(
        self, bufs: Memory, *, tag: int, source: int | None = None, timeout: float | None = None
    ) -> Header | None:
        """Receives the next message with this tag, from any worker or from ``source``, into ``bufs``.

        Returns its header, or None after the time-out. Only messages that pass `Guard.check` are received; others are
        discarded, and counted in ``refused``. Raises `WorkerLost` where ``source`` has died and left no message, and
        where another worker forms the next generation.
        """
        ...

    def alive(self) -> frozenset[int]:
        """The ranks of the workers of this generation that have neither died nor left, as far as is known.

        Raises `Excluded` where the others have excluded this one, as every method does.
        """
        ...

    def exclude(self, rank: int) -> None:
        """Declares a worker that does not answer lost, as by its death: no worker counts it as alive any more.

        When it goes on, its calls raise `Excluded`, and nothing that it sends is received in the next generation.
        """
        ...

    def reform(self, *, timeout: float | None = None) -> "Communicator":
        """The communicator of the next generation: survivors in the order of their ranks, then workers that join.

        All survivors call it. It also becomes the `current` one of a thread in which this one is. Raises `NotSupported`
        where the engine cannot continue after a loss.
        """
        ...

    def leave(self) -> None:
        """Leaves the job in good order: the other workers see this one as no longer alive."""
        ...

    def abort(self, reason: str) -> NoReturn:
        """Ends the job: raises `Aborted` here, and in every wait of the other workers."""
        ...


class SingleWorker(InOrder):
    """The communicator of a job with one worker."""

    rank: int
    size: int
    generation: int
    job: bytes
    timeout: float
    refused: Refusals
    trainings: Trainings

    rank, size = 0, 1

    def __init__(self, timeout: float = TIMEOUT) -> None:
        self.generation, self.job, self.timeout = 0, bytes(16), timeout
        self.bytes_sent = 0
        self.refused, self.trainings = Refusals(), Trainings()

    def all_reduce(
        self, bufs: Sequence[Buffer], *, op: Op = "mean", deterministic: bool = True, timeout: float | None = None
    ) -> None:
        """See `Communicator.all_reduce`."""

    def reduce_scatter(
        self, buf: Buffer, counts: Sequence[int], *, op: Op = "mean", timeout: float | None = None
    ) -> Buffer:
        """See `Communicator.reduce_scatter`."""
        return buf[part_of(counts, self.rank, self.size, buf.size)]

    def broadcast(self, bufs: Sequence[Buffer], root: int = 0, *, timeout: float | None = None) -> None:
        """See `Communicator.broadcast`."""

    def all_gather_v(self, buf: Buffer, *, timeout: float | None = None) -> list[Buffer]:
        """See `Communicator.all_gather_v`."""
        return [buf]

    def send(self, dest: int, head: Header, bufs: Sequence[Buffer]) -> None:
        """Raises `NotSupported`."""
        raise NotSupported("a job of one worker has nobody to send to: start several, by oxigrad.distributed.run")

    def recv_any(
        self, bufs: Memory, *, tag: int, source: int | None = None, timeout: float | None = None
    ) -> Header | None:
        """Raises `TimedOut`."""
        raise TimedOut("a job of one worker receives no message")

    def alive(self) -> frozenset[int]:
        """See `Communicator.alive`."""
        return frozenset({0})

    def exclude(self, rank: int) -> None:
        """Raises `NotSupported`."""
        raise NotSupported("a job of one worker has nobody to exclude")

    def reform(self, *, timeout: float | None = None) -> Communicator:
        """See `Communicator.reform`."""
        self.generation += 1
        return self

    def leave(self) -> None:
        """See `Communicator.leave`."""

    def abort(self, reason: str) -> NoReturn:
        """See `Communicator.abort`."""
        raise Aborted(reason)


class _Current(threading.local):
    communicator: Communicator | None = None


_current = _Current()


def current() -> Communicator:
    """The communicator of this thread's worker, from `oxigrad.distributed.run` or `oxigrad.distributed.communicator`.

    One of a single worker where there is none.

    >>> current().size
    1
    """
    return _current.communicator or SingleWorker()


def adopt(communicator: Communicator) -> Communicator:
    """Makes the communicator the `current` one of this thread, and returns it."""
    _current.communicator = communicator
    return communicator


@contextmanager
def serving(communicator: Communicator) -> Iterator[None]:
    """A context in which the communicator is the `current` one of this thread, for the work of a worker.

    At its end without an exception, the worker leaves the training that it still serves to others.
    """
    before, _current.communicator = _current.communicator, communicator
    try:
        yield
        current().trainings.end()
    finally:
        _current.communicator = before


def results_of(worker: Callable[[Communicator], Any], communicator: Communicator) -> list[Any]:
    """Runs the work of a worker that is this process: its result at its rank, and None at those of the others."""
    with serving(communicator):
        result = worker(communicator)
        last = current()
    return [result if rank == last.rank else None for rank in range(last.size)]


def succeed(former: Communicator, following: Communicator) -> None:
    """Hands the counts of a communicator to the next generation, which replaces it as the `current` one."""
    following.bytes_sent, following.refused = former.bytes_sent, former.refused
    following.trainings = former.trainings
    if _current.communicator is former:
        _current.communicator = following
