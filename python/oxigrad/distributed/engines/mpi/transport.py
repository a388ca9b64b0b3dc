"""Workers as processes of an MPI job: the communicator."""

import contextlib
import itertools
import os
import sys
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np

from oxigrad.distributed.communicator import Buffer, Place
from oxigrad.distributed.engines.backoff import Backoff
from oxigrad.distributed.engines.collectives import ByteCollectives, Works
from oxigrad.distributed.engines.mailbox import Message
from oxigrad.distributed.engines.mpi.library import MPI
from oxigrad.distributed.engines.mpi.membership import Membership
from oxigrad.distributed.engines.peers import LEFT, notice
from oxigrad.distributed.errors import CommunicationError, Refused, TimedOut
from oxigrad.distributed.messages.reduction import Op
from oxigrad.distributed.messages.spare import Spare
from oxigrad.launch import worker

BLOCK = 1 << 30
"""Bytes above which a message is sent as one element of blocks: counts of MPI are 32-bit integers."""


class _Moving(NamedTuple):
    """A message that is being sent or received: its request, and its memory."""

    request: Any
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
        self._spare = Spare()
        #: The messages that are being sent, and those of each worker that are being received.
        self._pending: list[_Moving] = []
        self._arriving: dict[int, deque[_Moving]] = {}

    # --- operations on all workers ------------------------------------------------------------------------------------

    def _gather(self, data: np.ndarray, rows: np.ndarray) -> Works:
        return [self._collective.Iallgather(data, rows)]

    def _transpose(self, data: np.ndarray, counts: list[int], rows: np.ndarray) -> Works:
        equal = [counts[self.rank]] * self.size
        sent, received = ([*each[: self.rank], 0, *each[self.rank + 1 :]] for each in (counts, equal))
        parts, into = (data, (sent, _starts(counts)), MPI.BYTE), (rows, (received, _starts(equal)), MPI.BYTE)
        return [self._collective.Ialltoallv(parts, into)]

    def _share(self, data: np.ndarray, counts: list[int]) -> Works:
        return [self._collective.Iallgatherv(MPI.IN_PLACE, [data, (counts, _starts(counts)), MPI.BYTE])]

    def _reduce_natively(self, buffer: Buffer, op: Op) -> Works:
        return [self._collective.Iallreduce(MPI.IN_PLACE, buffer, MPI.MAX if op == "max" else MPI.SUM)]

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
        Backoff(1.0).until(lambda: self._look() or self._peers.lost())
        return self._peers.loss(self._peers.lost(), what)

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
        with self._lock:
            try:
                self._pending.append(_moving(self._messages.Isend, message, dest))
            except MPI.Exception as error:
                raise self._peers.loss([dest], "send") from error

    def _reap(self) -> None:
        """Drops the messages that have been sent, and those to lost workers; the memory of the former is used again."""
        pending, self._pending = self._pending, []
        for each in pending:
            with contextlib.suppress(MPI.Exception):
                if each.request.Test():
                    self._spare.give(each.message)
                else:
                    self._pending.append(each)

    def _taken(self, tag: int, source: int | None) -> Message | None:
        """The next message that has come whole."""
        status = MPI.Status()
        with self._lock:
            self._reap()
            while (matched := self._membership.probe(self._messages, MPI.ANY_SOURCE, MPI.ANY_TAG, status)) is not None:
                data = self._spare.take(status.Get_elements(MPI.BYTE))
                self._arriving.setdefault(status.source, deque()).append(_moving(matched.Irecv, data))
            for sender, arriving in self._arriving.items():  # in the order in which they were sent
                try:
                    while arriving and arriving[0].request.Test():
                        self._deliver(arriving.popleft().message, sender)
                except MPI.Exception:  # the sender has died
                    arriving.clear()
                    self.refused.add(Refused("lost", f"rank {sender} was lost while its message came"))
            return super()._taken(tag, source)

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
            Backoff(self.timeout).until(lambda: self._reap() or not self._pending)  # as far as workers live
            if self._membership.is_worker and not self._peers.is_excluded:
                self._tell(notice(LEFT, self._calls, self.trainings.unfinished))

    def abort(self, reason: str) -> NoReturn:
        """Ends all processes of the job."""
        abort(f"oxigrad.distributed: rank {self.rank} aborts the job: {reason}")


def _starts(counts: list[int]) -> list[int]:
    return [0, *itertools.accumulate(counts[:-1])]


def _moving(begin: Callable[..., Any], message: np.ndarray, *to: int) -> _Moving:
    """A message that begins to be sent or received."""
    if len(message) <= BLOCK:
        return _Moving(begin([message, MPI.BYTE], *to), message)
    blocks, rest = divmod(len(message), BLOCK)
    block = MPI.BYTE.Create_contiguous(BLOCK)
    whole = MPI.BYTE.Create_struct([blocks, rest], [0, blocks * BLOCK], [block, MPI.BYTE]).Commit()
    try:
        return _Moving(begin([message, 1, whole], *to), message)
    finally:  # MPI keeps what the request needs
        block.Free()
        whole.Free()


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
