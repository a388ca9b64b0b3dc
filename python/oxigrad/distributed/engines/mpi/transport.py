"""Workers as processes of an MPI job: the communicator."""

import contextlib
import itertools
import os
import sys
import threading
import traceback
from collections import deque
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np

from oxigrad.distributed.communicator import Buffer, Place
from oxigrad.distributed.engines.backoff import Backoff
from oxigrad.distributed.engines.collectives import ByteCollectives
from oxigrad.distributed.engines.mailbox import Message
from oxigrad.distributed.engines.mpi.library import MPI
from oxigrad.distributed.engines.mpi.membership import Membership
from oxigrad.distributed.errors import CommunicationError, Refused, TimedOut
from oxigrad.distributed.messages.message import HEADER_BYTES, Header
from oxigrad.distributed.messages.reduction import Op
from oxigrad.distributed.messages.spare import Spare
from oxigrad.launch import worker

PIECE = 1 << 30
"""Bytes of a longer message that travel at once: counts of MPI are 32-bit integers."""


class _Pending(NamedTuple):
    """A message that is being sent: its requests, and its memory."""

    requests: list[Any]
    message: np.ndarray


class MPICommunicator(ByteCollectives):
    """The workers of an MPI job; see `oxigrad.distributed.communicator.Communicator` for its methods."""

    _errors: ClassVar[tuple[type[Exception], ...]] = (MPI.Exception,)

    def __init__(self, membership: Membership, job: bytes, timeout: float) -> None:
        self._membership = membership
        membership.communicator = self
        self._collective, self._messages = membership.channels
        place = Place(self._collective.rank, self._collective.size, membership.generation)
        super().__init__(place, job, timeout, membership.peers)
        self._lock = threading.RLock()
        self._spare = Spare()
        self._pending: list[_Pending] = []
        #: The messages of each worker that are being received, and the first pieces of one.
        self._arriving: dict[int, deque[tuple[Any, np.ndarray]]] = {}
        self._begun: dict[int, list[np.ndarray]] = {}

    # --- operations on all workers ------------------------------------------------------------------------------------

    def _gather(self, data: np.ndarray, rows: np.ndarray, what: str, seconds: float) -> None:
        self._call("Iallgather", data, rows, what=what, seconds=seconds)

    def _transpose(self, data: np.ndarray, counts: list[int], rows: np.ndarray, what: str, seconds: float) -> None:
        equal = [counts[self.rank]] * self.size
        sent, received = ([*each[: self.rank], 0, *each[self.rank + 1 :]] for each in (counts, equal))
        parts, into = (data, (sent, _starts(counts)), MPI.BYTE), (rows, (received, _starts(equal)), MPI.BYTE)
        self._call("Ialltoallv", parts, into, what=what, seconds=seconds)

    def _share(self, data: np.ndarray, counts: list[int], what: str, seconds: float) -> None:
        parts = [data, (counts, _starts(counts)), MPI.BYTE]
        self._call("Iallgatherv", MPI.IN_PLACE, parts, what=what, seconds=seconds)

    def _reduce_natively(self, buffer: Buffer, op: Op, seconds: float) -> None:
        reduction = MPI.MAX if op == "max" else MPI.SUM
        self._call("Iallreduce", MPI.IN_PLACE, buffer, reduction, what="all_reduce", seconds=seconds)

    def _call(self, name: str, *args: Any, what: str, seconds: float) -> None:
        """Calls an operation of MPI that returns a request, and waits for it."""

        def begin() -> list[Any]:
            with self._lock:
                return [getattr(self._collective, name)(*args)]

        self._run(what, seconds, begin)

    def _look(self) -> None:
        self._membership.heed(self._lock)

    def _is_done(self, work: Any) -> bool:
        with self._lock:
            self._reap()
            return work.Test()

    def _lost(self, what: str) -> CommunicationError:
        """See `ByteCollectives._lost`; the other workers then get it too."""
        with self._lock:
            self._membership.revoke(self._collective)
        wait = Backoff(1.0)
        while not (lost := self._peers.lost()) and not wait.is_over():
            self._look()
            wait.pause()
        return self._peers.loss(lost, what)

    def _late(self, what: str, seconds: float) -> TimedOut:
        self._membership.unfinished += self._under_way
        return super()._late(what, seconds)

    # --- messages -----------------------------------------------------------------------------------------------------

    def _memory(self, nbytes: int) -> np.ndarray:
        with self._lock:
            self._reap()
            return self._spare.take(nbytes)

    def _free(self, message: np.ndarray) -> None:
        with self._lock:
            self._spare.give(message)

    def _dispatch(self, dest: int, message: np.ndarray) -> None:
        requests: list[Any] = []
        with self._lock:  # the pieces of one message follow each other
            self._pending.append(_Pending(requests, message))
            try:
                pieces = (message[start : start + PIECE] for start in range(0, len(message), PIECE))
                requests.extend(self._messages.Isend([piece, MPI.BYTE], dest) for piece in pieces)
            except MPI.Exception as error:
                raise self._peers.loss([dest], "send") from error

    def _reap(self) -> None:
        """Drops the messages that have been sent, and those to lost workers; the memory of the former is used again."""
        pending, self._pending = self._pending, []
        for each in pending:
            with contextlib.suppress(MPI.Exception):
                if MPI.Request.Testall(each.requests):
                    self._spare.give(each.message)
                else:
                    self._pending.append(each)

    def _taken(self, tag: int, source: int | None) -> Message | None:
        """The next message that has come whole."""
        status = MPI.Status()
        with self._lock:
            self._reap()
            while (matched := self._membership.probe(self._messages, MPI.ANY_SOURCE, MPI.ANY_TAG, status)) is not None:
                data = self._spare.take(status.Get_count(MPI.BYTE))
                self._arriving.setdefault(status.source, deque()).append((matched.Irecv([data, MPI.BYTE]), data))
            for sender, pieces in self._arriving.items():
                self._assemble(sender, pieces)
            return super()._taken(tag, source)

    def _assemble(self, sender: int, pieces: "deque[tuple[Any, np.ndarray]]") -> None:
        """Puts the messages of a worker that have come whole into the mailbox, in the order in which they were sent."""
        try:
            while pieces and pieces[0][0].Test():
                data = pieces.popleft()[1]
                former = self._begun.pop(sender, [])
                if (parts := [*former, data]) and len(data) == PIECE and _length(parts[0]) > sum(map(len, parts)):
                    self._begun[sender] = parts
                else:
                    self._deliver(np.concatenate(parts) if former else data, sender)
        except MPI.Exception:  # the sender has died
            pieces.clear()
            self.refused.add(Refused("lost", f"rank {sender} was lost while its message came"))

    # --- membership ---------------------------------------------------------------------------------------------------

    def _tell(self, words: np.ndarray) -> None:
        with self._lock:
            self._membership.tell(words)

    def _following(self, seconds: float) -> Self:
        """See `Communicator._following`. As many spare processes join as workers have died.

        Raises `NotSupported` after the death of a worker where MPI runs without fault tolerance, and `TimedOut` where a
        survivor does not call it.
        """
        with self._lock:
            self._membership.revoke(self._collective, self._messages)
            self._membership.reform(seconds)
            self._membership.received.append((self._arriving, self._under_way))
            return type(self)(self._membership, self.job, self.timeout)

    def leave(self) -> None:
        """See `Communicator.leave`.

        The process should end soon: it takes part in `reform` of the others only when it ends.
        """
        with self._lock:
            wait = Backoff(self.timeout)
            while self._pending and not wait.is_over():  # the messages to living workers are sent
                self._reap()
                wait.pause()
            self._membership.leave(self._calls, self.trainings.unfinished)

    def abort(self, reason: str) -> NoReturn:
        """Ends all processes of the job."""
        abort(f"oxigrad.distributed: rank {self.rank} aborts the job: {reason}")


def _starts(counts: list[int]) -> list[int]:
    return [0, *itertools.accumulate(counts[:-1])]


def _length(data: np.ndarray) -> int:
    """The bytes of the message that begins with these."""
    try:
        return HEADER_BYTES + Header.unpack(data[:HEADER_BYTES]).payload_bytes
    except Refused:
        return 0


def tell_parent(what: bytes) -> None:
    """Tells the process of `oxigrad.launch` that started this one, if any, that the worker has begun or ended."""
    if pipe := os.environ.get(worker.PIPE):
        with contextlib.suppress(OSError, ValueError):
            os.write(int(pipe), what)


def abort(reason: str) -> NoReturn:
    """Prints the reason and ends all processes of the job with status 1."""
    try:
        sys.stdout.flush()
        sys.stderr.write(reason + "\n")
        sys.stderr.flush()
    except OSError:
        traceback.print_exc()
    tell_parent(worker.ENDED)
    MPI.COMM_WORLD.Abort(1)
    os._exit(1)
