"""The communicator of a worker: what wrapper optimizers call, over the primitives of an engine.

A communicator belongs to one worker of a job. Buffers are one-dimensional contiguous NumPy arrays;
`oxigrad.distributed.messages.message` packs trees into them.
"""

import itertools
import operator
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn, Self, TypeAlias

import numpy as np

from oxigrad.distributed.decisions.training import Trainings
from oxigrad.distributed.engines.background import Running
from oxigrad.distributed.engines.backoff import Backoff
from oxigrad.distributed.engines.mailbox import Message
from oxigrad.distributed.errors import Aborted, NotSupported, Refused, TimedOut
from oxigrad.distributed.messages.message import HEADER_BYTES, Header, scatter, size_of
from oxigrad.distributed.messages.reduction import Op, check_op, part_of, reduce_in_order
from oxigrad.distributed.messages.refusals import Refusals
from oxigrad.distributed.messages.reports.clock import waiting
from oxigrad.extend import Domain
from oxigrad.optim import Interval

Buffer: TypeAlias = np.ndarray
"""A one-dimensional contiguous array in host memory."""

Memory: TypeAlias = Sequence[Buffer] | Callable[[Header], Sequence[Buffer]]
"""The buffers that a message is received into, or a function of its header that returns them, or raises `Refused`."""

TIMEOUT = 60.0
"""Seconds after which a wait raises `TimedOut`, unless a communicator or a call is given another number."""

SECONDS = Domain(interval=Interval("[0, inf)"))
"""The domain of the seconds that a wait takes at most."""

_BYTES = operator.methodcaller("view", np.uint8)
_DIMENSIONS = operator.attrgetter("ndim")

WORKERS = 4
"""The workers of a job whose engine starts them, unless it is given another number."""


class Place(NamedTuple):
    """The place of a worker in a generation."""

    rank: int
    size: int
    generation: int


class Communicator:
    """One worker's access to the others of its job.

    Every wait ends after ``timeout`` seconds; None is the communicator's own.

    Operations on all workers are called by all of them in the same order, and raise `WorkerLost` as soon as one of them
    has died or left. After an error, the content of their buffers is undefined. Methods of one communicator may be
    called by several threads of the worker as long as each collective operation, and each tag of `recv_any`, is called
    by one thread at a time.

    This class has the headers, checks, time-outs and counts. A subclass is an engine's: it implements `_all_gather_v`
    (and `_all_reduce` and `_reduce_scatter` if it can send less), membership (`alive`, `exclude`, `_following`,
    `leave`, `abort`), and the primitives of messages: `_post` sends one, and `_poll` waits for the next one with a tag
    in the `Mailbox` of this worker.

    Args:
        place: place of this worker in its generation.
        job: identity of the job.
        timeout: seconds that a wait takes at most, where the call does not say.
        trainings: count of the wrappers on former generations; by default a new one.
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
    unfinished: dict[int, int]
    """The last step, by rank, of workers whose work ended within a training, as far as is known."""
    trainings: Trainings
    """Counts the wrappers on a communicator and its former generations, to match messages with trainings."""

    def __init__(self, place: Place, job: bytes, timeout: float, trainings: Trainings | None = None) -> None:
        self.rank, self.size, self.generation = place
        self.job, self.timeout = job, SECONDS.check("timeout", timeout)
        self.bytes_sent = 0
        self.refused = Refusals()
        self.trainings = Trainings(is_known=self.generation == 0) if trainings is None else trainings
        self._counting = threading.Lock()
        self._running: Running | None = None
        self.unfinished = {}

    def claim(self, name: str, thing: Any) -> None:
        """Notes an object that this worker alone writes to, such as an array of its model.

        Raises `StructureError` if another worker of this process has it.
        """

    # --- primitives ---------------------------------------------------------------------------------------------------

    def _all_reduce(self, bufs: Sequence[Buffer], op: Op, seconds: float, *, deterministic: bool) -> None:
        """Reduces the buffers in place: by default each worker reduces all contributions."""
        for buffer in bufs:
            reduce_in_order(self._all_gather_v(buffer, seconds), op, buffer)

    def _reduce_scatter(self, buf: Buffer, counts: Sequence[int], op: Op, seconds: float) -> None:
        """Reduces this worker's part in place: by default all of the buffer, which needs no agreement on parts."""
        self._all_reduce([buf], op, seconds, deterministic=True)

    def _all_gather_v(self, buf: Buffer, seconds: float) -> list[Buffer]:
        raise NotImplementedError

    def _post(self, dest: int, message: np.ndarray) -> None:
        """Sends a message, bytes that begin with its header, and may keep the array.

        Raises `WorkerLost` where the worker has died or left.
        """
        raise NotImplementedError

    def _poll(self, tag: int, source: int | None, wait: Backoff) -> Message | None:
        """The next message; None when the wait is over. Raises as `recv_any` does."""
        raise NotImplementedError

    def _memory(self, nbytes: int) -> np.ndarray:
        """Memory for a message."""
        return np.empty(nbytes, np.uint8)

    def _free(self, message: np.ndarray) -> None:
        """Takes back the memory of a message that was received."""

    # --- operations on all workers ------------------------------------------------------------------------------------

    def all_reduce(
        self, bufs: Sequence[Buffer], *, op: Op = "mean", deterministic: bool = True, timeout: float | None = None
    ) -> None:
        """Replaces each buffer by its sum, mean or maximum over all workers, in place.

        With ``deterministic``, sums are taken in the order of ranks, as by
        `oxigrad.distributed.messages.reduction.reduce_in_order`, so that all engines give the same bits.
        """
        check_op(op)
        with waiting():
            self._all_reduce(bufs, op, self._turn(bufs, timeout), deterministic=deterministic)
        self._count(size_of(bufs))

    def reduce_scatter(
        self, buf: Buffer, counts: Sequence[int], *, op: Op = "mean", timeout: float | None = None
    ) -> Buffer:
        """The part of this worker of the sum, mean or maximum of ``buf`` over all workers: a view of ``buf``, in place.

        The part of rank k has ``counts[k]`` elements, after the parts of lower ranks. Sums are taken in the order of
        ranks. The other parts of ``buf`` are undefined afterwards. Raises `ValueError` where the counts do not divide
        the buffer.
        """
        check_op(op)
        with waiting():
            seconds = self._turn([buf], timeout)
            part = buf[part_of(counts, self.rank, self.size, buf.size)]
            self._reduce_scatter(buf, counts, op, seconds)
        self._count(buf.nbytes)
        return part

    def broadcast(self, bufs: Sequence[Buffer], root: int = 0, *, timeout: float | None = None) -> None:
        """Replaces the buffers by those of the worker ``root``, in place."""
        self._check_rank(root, "root")
        with waiting():
            seconds = self._turn(bufs, timeout)
            for buffer in bufs:
                parts = self._all_gather_v(buffer if self.rank == root else buffer[:0], seconds)
                if [part.size for part in parts] != [(rank == root) * buffer.size for rank in range(self.size)]:
                    text = f"broadcast of {buffer.size} elements from rank {root}: a worker has another root or size"
                    raise Refused("collective", f"{text}: expected the same on every worker")
                np.copyto(buffer, parts[root])
        self._count(size_of(bufs) if self.rank == root else 0)

    def all_gather_v(self, buf: Buffer, *, timeout: float | None = None) -> list[Buffer]:
        """The buffers of all workers by rank, of one dtype and any lengths; they are not to be written to."""
        with waiting():
            gathered = self._all_gather_v(buf, self._turn([buf], timeout))
        self._count(buf.nbytes)
        return gathered

    def begin(self, operation: Callable[[], Any]) -> Running:
        """Starts a thread for a function that calls collective operations.

        ``result()`` of the returned object waits for the function.

        All workers must begin it at the same place among their collective operations. Operations that are called later
        wait for it.
        """
        self._running = Running(operation, self._running)
        return self._running

    def _turn(self, bufs: Sequence[Buffer], timeout: float | None) -> float:
        """The seconds that a wait takes at most, after the wait for the operations that were begun before.

        Raises `TypeError` or `ValueError` unless ``bufs`` is a list of buffers.
        """
        if not isinstance(bufs, (list, tuple)) or not all(map(isinstance, bufs, itertools.repeat(np.ndarray))):
            kinds = [type(each).__name__ for each in bufs] if isinstance(bufs, (list, tuple)) else type(bufs).__name__
            raise TypeError(
                f"buffers: found {kinds}, expected a list of one-dimensional arrays of NumPy, as in [array]"
            )
        if not {*map(_DIMENSIONS, bufs)} <= {1}:
            shapes = [each.shape for each in bufs]
            raise ValueError(f"buffers: found the shapes {shapes}, expected one-dimensional arrays: array.reshape(-1)")
        # An operation in a thread has waited for those before it, and those that were begun after it wait for it.
        if self._running is not None and not Running.is_here():
            self._running.wait()
            self._running = None
        return self.timeout if timeout is None else self._limit(timeout)

    # --- messages -----------------------------------------------------------------------------------------------------

    def send(self, dest: int, head: Header, bufs: Sequence[Buffer]) -> None:
        """Sends a message to a worker, which may be this one; the buffers may be changed after the call.

        The header is completed, as `Header.sealed` does. Raises `WorkerLost` where the worker has died or left.
        """
        self._check_rank(dest, "the rank")
        self._post(dest, message := self._sealed(head, bufs))
        self._count(message.nbytes - HEADER_BYTES)

    def _sealed(self, head: Header, bufs: Sequence[Buffer]) -> np.ndarray:
        """A message from this worker."""
        sealed = head.sealed(bufs, job=self.job, generation=self.generation, rank=self.rank)
        message = self._memory(HEADER_BYTES + sealed.payload_bytes)
        return np.concatenate([np.frombuffer(sealed.pack(), np.uint8), *map(_BYTES, bufs)], out=message)

    def recv_any(
        self, bufs: Memory, *, tag: int, source: int | None = None, timeout: float | None = None
    ) -> Header | None:
        """Receives the next message with this tag, from any worker or from ``source``, into ``bufs``.

        Returns its header, or None after the time-out. Only messages that the `Mailbox` takes are received; others are
        discarded, and counted in ``refused``. Raises `WorkerLost` where ``source`` has died and left no message, and
        where another worker forms the next generation.
        """
        wait = Backoff(self.timeout if timeout is None else timeout)
        with waiting():
            while (message := self._poll(tag, source, wait)) is not None:
                try:
                    scatter(message.data[HEADER_BYTES:], bufs(message.header) if callable(bufs) else bufs)
                except Refused as error:
                    self.refused.add(error)
                else:
                    return message.header
                finally:
                    self._free(message.data)
        return None

    # --- membership ---------------------------------------------------------------------------------------------------

    def alive(self) -> frozenset[int]:
        """The ranks of the workers of this generation that have neither died nor left, as far as is known.

        Raises `Excluded` where the others have excluded this one, as every method does.
        """
        raise NotImplementedError

    def exclude(self, rank: int) -> None:
        """Declares a worker that does not answer lost, as by its death: no worker counts it as alive any more.

        When it goes on, its calls raise `Excluded`, and nothing that it sends is received in the next generation.
        Raises `ValueError` for this worker's own rank.
        """
        self._check_rank(rank, "the rank")
        if rank == self.rank:
            raise ValueError(
                f"the rank is {rank}, this worker's own: expected another worker's; leave() leaves the job"
            )
        self._exclude(rank)

    def _exclude(self, rank: int) -> None:
        """See `exclude`."""
        raise NotImplementedError

    def reform(self, *, timeout: float | None = None) -> Self:
        """The communicator of the next generation: survivors in the order of their ranks, then workers that join.

        All survivors call it. It also becomes the `current` one of a thread in which this one is. Raises `NotSupported`
        where the engine cannot continue after a loss.
        """
        following = self._following(self._limit(timeout))
        following.bytes_sent, following.refused, following.trainings = self.bytes_sent, self.refused, self.trainings
        if PRESENT.communicator is self:
            PRESENT.communicator = following
        return following

    def _following(self, seconds: float) -> Self:
        """The communicator of the next generation, without the counts of this one."""
        raise NotImplementedError

    def leave(self) -> None:
        """Leaves the job in good order: the other workers see this one as no longer alive."""
        raise NotImplementedError

    def abort(self, reason: str) -> NoReturn:
        """Ends the job: raises `Aborted` here, and in every wait of the other workers."""
        raise NotImplementedError

    # --- arguments and counts -----------------------------------------------------------------------------------------

    def _limit(self, timeout: float | None) -> float:
        """The seconds that a wait takes at most."""
        return self.timeout if timeout is None else SECONDS.check("timeout", timeout)

    def _check_rank(self, rank: int, name: str) -> None:
        if isinstance(rank, bool) or not isinstance(rank, int):
            raise TypeError(f"{name} is {rank!r}: expected a rank, 0 to {self.size - 1}")
        if not 0 <= rank < self.size:
            raise ValueError(f"{name} is {rank}: expected 0 to {self.size - 1}")

    def _count(self, nbytes: int) -> None:
        with self._counting:
            self.bytes_sent += nbytes


class SingleWorker(Communicator):
    """The communicator of a job with one worker, which sends nothing."""

    def __init__(self, timeout: float = TIMEOUT) -> None:
        super().__init__(Place(0, 1, 0), bytes(16), timeout)

    def _all_gather_v(self, buf: Buffer, seconds: float) -> list[Buffer]:
        return [buf]

    def _post(self, dest: int, message: np.ndarray) -> None:
        raise NotSupported("a job of one worker has nobody to send to: start several, by oxigrad.distributed.run")

    def _poll(self, tag: int, source: int | None, wait: Backoff) -> Message | None:
        raise TimedOut("a job of one worker receives no message")

    def _count(self, nbytes: int) -> None:
        pass

    def alive(self) -> frozenset[int]:
        """See `Communicator.alive`."""
        return frozenset({0})

    def exclude(self, rank: int) -> None:
        """Raises `NotSupported`."""
        raise NotSupported("a job of one worker has nobody to exclude")

    def _following(self, seconds: float) -> Self:
        self.generation: int = self.generation + 1
        return self

    def leave(self) -> None:
        """See `Communicator.leave`."""

    def abort(self, reason: str) -> NoReturn:
        """See `Communicator.abort`."""
        raise Aborted(reason)


class _Present(threading.local):
    communicator: Communicator | None = None


PRESENT = _Present()
"""The communicator of this thread's worker."""


def current() -> Communicator:
    """The communicator of this thread's worker, from `oxigrad.distributed.run` or `oxigrad.distributed.communicator`.

    Without one, a communicator of a single worker.

    >>> current().size
    1
    """
    return PRESENT.communicator or SingleWorker()


def adopt(communicator: Communicator) -> Communicator:
    """Makes the communicator the `current` one of this thread, and returns it."""
    PRESENT.communicator = communicator
    return communicator


@contextmanager
def serving(communicator: Communicator) -> Iterator[None]:
    """A context in which the communicator is the `current` one of this thread, for the work of a worker.

    At its end without an exception, the worker leaves the training that it still serves to others.
    """
    before, PRESENT.communicator = PRESENT.communicator, communicator
    communicator.trainings.has_ended = False
    try:
        yield
        current().trainings.end()
    finally:
        if before is communicator:  # the work around this one goes on
            current().trainings.has_ended = False
        PRESENT.communicator = before


def work_of(worker: Callable[[Communicator], Any], communicator: Communicator) -> Any:
    """The result of the work of a worker, which leaves the job at its end. An error has a note of the rank."""
    try:
        with serving(communicator):
            try:
                return worker(communicator)
            except BaseException as error:
                error.add_note(f"raised by the worker of rank {current().rank}")
                raise
    finally:
        communicator.leave()


def results_of(worker: Callable[[Communicator], Any], communicator: Communicator) -> list[Any]:
    """Runs the work of a worker that is this process: its result at its rank, and None at those of the others."""
    with serving(communicator):
        result = worker(communicator)
        last = current()
    return [result if rank == last.rank else None for rank in range(last.size)]
