"""The message engine: headers, checks, time-outs and counts of communicators, over each engine's primitives."""

import logging
import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from oxigrad.distributed.communicator import Buffer, Memory
from oxigrad.distributed.decisions.training import Trainings
from oxigrad.distributed.engines.background import InOrder
from oxigrad.distributed.engines.backoff import Backoff
from oxigrad.distributed.engines.mailbox import Message
from oxigrad.distributed.errors import NotSupported, Refused
from oxigrad.distributed.messages.message import HEADER_BYTES, Header, scatter, size_of
from oxigrad.distributed.messages.reduction import Op, check_op, part_of
from oxigrad.distributed.messages.refusals import Refusals
from oxigrad.distributed.messages.reports.clock import waiting

_log = logging.getLogger("oxigrad.distributed")


def check_accepts(job: str, *, accept_newcomers: bool) -> None:
    """Raises `NotSupported` where a job does not accept newcomers; otherwise one joins, which is logged."""
    if not accept_newcomers:
        raise NotSupported(f"{job} accepts no newcomers: expected accept_newcomers=True where it is started")
    _log.info("a further worker joins %s", job)


class Place(NamedTuple):
    """The place of a worker in a generation."""

    rank: int
    size: int
    generation: int


class EngineCommunicator(InOrder):
    """Base class of the communicators of all engines; see `oxigrad.distributed.communicator.Communicator`.

    An engine implements the operations on all workers (`_all_reduce`, `_broadcast`, `_all_gather_v`, and
    `_reduce_scatter` where it can send less), membership (`alive`, `exclude`, `reform`, `leave`, `abort`), and the
    primitives of messages: `_post` sends one, and `_poll` waits for the next one with a tag in the `Mailbox` of this
    worker.
    """

    rank: int
    size: int
    generation: int
    job: bytes
    timeout: float
    bytes_sent: int
    refused: Refusals
    trainings: Trainings

    def __init__(self, place: Place, job: bytes, timeout: float, trainings: Trainings | None = None) -> None:
        self.rank, self.size, self.generation = place
        self.job, self.timeout = job, timeout
        self.bytes_sent = 0
        self.refused = Refusals()
        self.trainings = Trainings(is_known=self.generation == 0) if trainings is None else trainings
        self._counting = threading.Lock()

    # --- primitives ---------------------------------------------------------------------------------------------------

    def _all_reduce(self, bufs: Sequence[Buffer], op: Op, seconds: float, *, deterministic: bool) -> None:
        raise NotImplementedError

    def _reduce_scatter(self, buf: Buffer, counts: Sequence[int], op: Op, seconds: float) -> None:
        """Reduces this worker's part in place: by default all of the buffer, which needs no agreement on parts."""
        self._all_reduce([buf], op, seconds, deterministic=True)

    def _broadcast(self, bufs: Sequence[Buffer], root: int, seconds: float) -> None:
        raise NotImplementedError

    def _all_gather_v(self, buf: Buffer, seconds: float) -> list[Buffer]:
        raise NotImplementedError

    def _post(self, dest: int, message: np.ndarray) -> None:
        """Sends a message, bytes that begin with its header, and may keep the array.

        Raises `WorkerLost` where the worker has died or left.
        """
        raise NotImplementedError

    def _poll(self, tag: int, source: int | None, wait: Backoff) -> Message | None:
        """The next message; None when the wait is over. Raises as `Communicator.recv_any` does."""
        raise NotImplementedError

    # --- operations on all workers ------------------------------------------------------------------------------------

    def all_reduce(
        self, bufs: Sequence[Buffer], *, op: Op = "mean", deterministic: bool = True, timeout: float | None = None
    ) -> None:
        """See `Communicator.all_reduce`. After an error, the content of the buffers is undefined."""
        check_op(op)
        with waiting():
            self._await_turn()
            self._all_reduce(bufs, op, self._limit(timeout), deterministic=deterministic)
        self._count(size_of(bufs))

    def reduce_scatter(
        self, buf: Buffer, counts: Sequence[int], *, op: Op = "mean", timeout: float | None = None
    ) -> Buffer:
        """See `Communicator.reduce_scatter`."""
        check_op(op)
        part = buf[part_of(counts, self.rank, self.size, buf.size)]
        with waiting():
            self._await_turn()
            self._reduce_scatter(buf, counts, op, self._limit(timeout))
        self._count(buf.nbytes)
        return part

    def broadcast(self, bufs: Sequence[Buffer], root: int = 0, *, timeout: float | None = None) -> None:
        """See `Communicator.broadcast`."""
        self._check_rank(root, "root")
        with waiting():
            self._await_turn()
            self._broadcast(bufs, root, self._limit(timeout))
        self._count(size_of(bufs) if self.rank == root else 0)

    def all_gather_v(self, buf: Buffer, *, timeout: float | None = None) -> list[Buffer]:
        """See `Communicator.all_gather_v`."""
        with waiting():
            self._await_turn()
            gathered = self._all_gather_v(buf, self._limit(timeout))
        self._count(buf.nbytes)
        return gathered

    # --- messages -----------------------------------------------------------------------------------------------------

    def send(self, dest: int, head: Header, bufs: Sequence[Buffer]) -> None:
        """See `Communicator.send`."""
        self._check_rank(dest, "the rank")
        sealed = head.sealed(bufs, job=self.job, generation=self.generation, rank=self.rank)
        message = self._memory(HEADER_BYTES + sealed.payload_bytes)
        message[:HEADER_BYTES] = np.frombuffer(sealed.pack(), np.uint8)
        scatter(bufs, [message[HEADER_BYTES:]])
        self._post(dest, message)
        self._count(sealed.payload_bytes)

    def _memory(self, nbytes: int) -> np.ndarray:
        """Memory for a message."""
        return np.empty(nbytes, np.uint8)

    def _free(self, message: np.ndarray) -> None:
        """Takes back the memory of a message that was received."""

    def recv_any(
        self, bufs: Memory, *, tag: int, source: int | None = None, timeout: float | None = None
    ) -> Header | None:
        """See `Communicator.recv_any`."""
        wait = Backoff(self._limit(timeout))
        with waiting():
            while (message := self._poll(tag, source, wait)) is not None:
                try:
                    scatter([message.payload], bufs(message.header) if callable(bufs) else bufs)
                except Refused as error:
                    self.refused.add(error)
                else:
                    return message.header
                finally:
                    self._free(message.data)
        return None

    # --- arguments and counts -----------------------------------------------------------------------------------------

    def _limit(self, timeout: float | None) -> float:
        """The seconds that a wait takes at most."""
        return self.timeout if timeout is None else timeout

    def _check_rank(self, rank: int, name: str) -> None:
        if not 0 <= rank < self.size:
            raise ValueError(f"{name} is {rank}: expected 0 to {self.size - 1}")

    def _count(self, nbytes: int) -> None:
        with self._counting:
            self.bytes_sent += nbytes
