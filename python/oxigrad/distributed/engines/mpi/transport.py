"""Workers as processes of an MPI job: the communicator."""

import contextlib
import itertools
import os
import sys
import threading
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from oxigrad.distributed.communicator import Buffer, Memory, succeed
from oxigrad.distributed.engines.backoff import Backoff
from oxigrad.distributed.engines.base import Place, seal
from oxigrad.distributed.engines.collectives import ByteCollectives
from oxigrad.distributed.engines.mpi.library import MPI
from oxigrad.distributed.engines.mpi.membership import Membership
from oxigrad.distributed.engines.mpi.pieces import PAUSE, PIECE, Announced, Incoming
from oxigrad.distributed.engines.spare import Spare
from oxigrad.distributed.errors import Refused, TimedOut, WorkerLost
from oxigrad.distributed.messages.message import (
    CHECKSUM_BYTES,
    HEADER_BYTES,
    Address,
    Header,
    as_bytes,
    copied,
    in_pieces,
    scatter,
    size_of,
)
from oxigrad.distributed.messages.reduction import Op
from oxigrad.launch.worker import ENDED, PIPE

INLINE = 1 << 14
"""Bytes of payload up to which a message travels in one piece, with its header; others follow their header without a copy by
the receiver."""


class _Pending(NamedTuple):
    """A message that is being sent: its requests, and its memory."""

    requests: list[Any]
    message: np.ndarray


class MPICommunicator(ByteCollectives):
    """The workers of an MPI job; see `oxigrad.distributed.communicator.Communicator` for its methods."""

    def __init__(self, membership: Membership, job: bytes, timeout: float) -> None:
        self._membership = membership
        membership.communicator = self
        self._collective, self._messages, self._payloads = membership.channels
        super().__init__(Place(self._collective.rank, self._collective.size, membership.generation), job, timeout)
        self._lock = threading.RLock()
        self._spare = Spare()
        self._pending: list[_Pending] = []
        self._arrived: dict[int, deque[Announced]] = {}

    # --- operations on all workers -------------------------------------------------------------------------------------

    def _gather(self, data: np.ndarray, rows: np.ndarray, what: str, seconds: float) -> None:
        self._run("Iallgather", data, rows, what=what, seconds=seconds)

    def _transpose(self, data: np.ndarray, counts: list[int], rows: np.ndarray, what: str, seconds: float) -> None:
        equal = [counts[self.rank]] * self.size
        sent, received = ([*each[: self.rank], 0, *each[self.rank + 1 :]] for each in (counts, equal))
        parts, into = (data, (sent, _starts(counts)), MPI.BYTE), (rows, (received, _starts(equal)), MPI.BYTE)
        self._run("Ialltoallv", parts, into, what=what, seconds=seconds)

    def _share(self, data: np.ndarray, counts: list[int], what: str, seconds: float) -> None:
        parts = [data, (counts, _starts(counts)), MPI.BYTE]
        self._run("Iallgatherv", MPI.IN_PLACE, parts, what=what, seconds=seconds)

    def _spread(self, data: np.ndarray, root: int, seconds: float) -> None:
        self._run("Ibcast", [data, MPI.BYTE], root, what="broadcast", seconds=seconds)

    def _reduce_natively(self, buffer: Buffer, op: Op, seconds: float) -> None:
        reduction = MPI.MAX if op == "max" else MPI.SUM
        self._run("Iallreduce", MPI.IN_PLACE, buffer, reduction, what="all_reduce", seconds=seconds)

    def _run(self, name: str, *args: Any, what: str, seconds: float) -> None:
        try:
            with self._lock:
                request = getattr(self._collective, name)(*args)
        except MPI.Exception as error:
            raise self._lost(what) from error
        self._wait(request, what, seconds)

    # --- messages ------------------------------------------------------------------------------------------------------

    def _transmit(self, dest: int, head: Header, bufs: Sequence[Buffer]) -> None:
        with self._lock:
            self._reap()
            message = self._spare.take(HEADER_BYTES + head.payload_bytes)
        if head.payload_bytes > PIECE:
            self._post_pieces(dest, head, bufs, message)
        else:
            seal(message, head, copied(bufs, message[HEADER_BYTES:]))
            self._post(dest, message)

    def _post(self, dest: int, message: np.ndarray) -> None:
        tag, _, sequence = Address.of(message)
        end = len(message) if len(message) <= HEADER_BYTES + INLINE else HEADER_BYTES
        with self._sending(dest, message) as requests:
            self._isend(requests, self._messages, message[:end], dest, tag)
            if end < len(message):
                self._isend(requests, self._payloads, message[end:], dest, _payload_tag(sequence))

    def _post_pieces(self, dest: int, head: Header, bufs: Sequence[Buffer], message: np.ndarray) -> None:
        """Sends the header, each piece of the payload as soon as it is copied, and the checksum."""
        tag, crc, at = _payload_tag(head.sequence), 0, HEADER_BYTES
        with self._sending(dest, message) as requests:
            try:
                self._isend(requests, self._messages, head.pack(), dest, head.tag)
                for parts in in_pieces(bufs, PIECE):
                    piece = message[at : at + size_of(parts)]
                    crc = copied(parts, piece, crc)
                    self._isend(requests, self._payloads, piece, dest, tag)
                    at += piece.nbytes
            except BaseException:
                with contextlib.suppress(WorkerLost):  # an empty piece, with which the receiver refuses the message
                    self._isend(requests, self._payloads, b"", dest, tag)
                raise
            seal(message, head, crc)
            self._check_alive(dest)
            self._isend(requests, self._payloads, message[HEADER_BYTES - CHECKSUM_BYTES : HEADER_BYTES], dest, tag)

    @contextlib.contextmanager
    def _sending(self, dest: int, message: np.ndarray) -> Iterator[list[Any]]:
        """The list for the requests that send a message, whose memory stays until they are complete."""
        self._check_alive(dest)
        requests: list[Any] = []
        try:
            yield requests
        finally:
            with self._lock:
                self._pending.append(_Pending(requests, message))

    def _check_alive(self, dest: int) -> None:
        if dest not in self.alive():
            raise WorkerLost([dest], "send")

    def _isend(self, requests: list[Any], comm: Any, data: Any, dest: int, tag: int) -> None:
        """Begins to send bytes, and adds the request. Raises `WorkerLost` where the receiver was lost."""
        try:
            with self._lock:
                requests.append(comm.Isend([data, MPI.BYTE], dest, tag))
        except MPI.Exception as error:
            raise WorkerLost([dest], "send") from error

    def _reap(self) -> None:
        """Drops the messages that have been sent, and those to lost workers; the memory of the former is used again."""
        pending, self._pending = self._pending, []
        for each in pending:
            with contextlib.suppress(MPI.Exception):
                if MPI.Request.Testall(each.requests):
                    self._spare.give(each.message)
                else:
                    self._pending.append(each)

    def _poll(self, tag: int, source: int | None, wait: Backoff) -> Announced | None:
        while (arrival := self._arrival(tag, source)) is None:
            alive = self.alive()
            if source is not None and source not in alive:
                raise WorkerLost([source], "recv_any")
            if self._membership.is_forming:
                raise WorkerLost(frozenset(range(self.size)) - alive, "recv_any")
            if wait.is_over():
                return None
            wait.pause()
        return arrival

    def _arrival(self, tag: int, source: int | None) -> Announced | None:
        """The next message that has come whole, or whose payload can be received."""
        status = MPI.Status()
        with self._lock:
            self._reap()
            matched = self._membership.probe(self._messages, MPI.ANY_SOURCE if source is None else source, tag, status)
            waiting = self._arrived.setdefault(tag, deque())
            if matched is not None:
                message = np.empty(status.Get_count(MPI.BYTE), np.uint8)
                if self._membership.receive(matched, [message, MPI.BYTE]):
                    arrival = Announced.of(message, status.source)
                    if len(message) == HEADER_BYTES and (announced := _announced(arrival.header)) > INLINE:
                        arrival.payload, arrival.nbytes = None, announced
                    waiting.append(arrival)
                else:
                    self.refused.add(Refused("lost", f"rank {status.source} was lost while its message came"))
            return self._first_whole(waiting, source)

    def _first_whole(self, waiting: "deque[Announced]", source: int | None) -> Announced | None:
        """Takes the first message whose payload has come; one of a worker does not overtake another of the same worker."""
        incomplete: set[int] = set()
        for arrival in list(waiting):
            sender: Any = arrival.source
            if sender in incomplete or source not in (None, sender):
                continue
            try:
                has_come = self._has_come(arrival)
            except Refused as error:
                waiting.remove(arrival)
                self.refused.add(error)
                continue
            if has_come:
                waiting.remove(arrival)
                return arrival
            if sender in self._membership.alive():
                incomplete.add(sender)
            else:
                waiting.remove(arrival)
                self.refused.add(Refused("lost", f"rank {sender} was lost before the payload of its message came"))
        return None

    def _has_come(self, arrival: Announced) -> bool:
        """Whether a payload can be received: whole, or its first piece; one whose sender has paused, when it is whole."""
        if arrival.payload is None and (first := self._piece_of(arrival)) is not None:
            if arrival.nbytes > PIECE:
                arrival.payload = Incoming(
                    arrival.nbytes,
                    first,
                    lambda: self._piece_of(arrival),
                    lambda matched, into: self._transfer(matched, into, self.timeout),
                )
            else:
                arrival.payload, arrival.nbytes = first
        if isinstance(arrival.payload, Incoming) and arrival.payload.store is not None:
            if not arrival.payload.progress(arrival):
                return False
            arrival.payload = arrival.payload.store
        return arrival.payload is not None

    def _piece_of(self, arrival: Announced) -> tuple[Any, int] | None:
        """The next piece of a payload and its number of bytes; None before it has come."""
        status, tag = MPI.Status(), _payload_tag(Address.of(arrival.header).sequence)
        sender: Any = arrival.source
        with self._lock:
            matched = self._membership.probe(self._payloads, sender, tag, status)
        return None if matched is None else (matched, status.Get_count(MPI.BYTE))

    def _received(self, arrival: Announced, memory: Memory, wait: Backoff) -> Header | None:
        if isinstance(arrival.payload, np.ndarray):
            return super()._received(arrival, memory, wait)
        try:
            header = self._origin(arrival)
            targets = memory(header) if callable(memory) else memory
            if (expected := size_of(targets)) != arrival.nbytes:
                raise Refused("length", f"a message has {arrival.nbytes} bytes of payload: expected {expected}")
            if not self._receive_payload(arrival, targets, wait):
                return None
            header = Header.unpack(arrival.header)
            self._guard.check(header, targets, arrival.checksum)
        except Refused:
            self._discard(arrival)
            raise
        return header

    def _receive_payload(self, arrival: Announced, targets: Sequence[Buffer], wait: Backoff) -> bool:
        """Receives a payload, and completes a header that was sent before its checksum; False where the sender pauses."""
        if isinstance(incoming := arrival.payload, Incoming):
            incoming.fill(targets)
            if self._receive_pieces(arrival, incoming):
                return True
            incoming.keep()
            with self._lock:
                self._arrived[Address.of(arrival.header).tag].appendleft(arrival)
            return False
        # A payload whose transfer has begun is received whole, whatever time is left of a short wait.
        seconds = max(wait.remaining(), self.timeout)
        if len(targets) == 1:
            self._transfer(arrival.payload, as_bytes(targets[0]), seconds)
        else:
            data = np.empty(size_of(targets), np.uint8)
            self._transfer(arrival.payload, data, seconds)
            scatter([data], targets)
        return True

    def _receive_pieces(self, arrival: Announced, incoming: Incoming) -> bool:
        """Receives a payload until no further piece has come for `PAUSE` seconds; returns whether it is whole."""
        pause, received = Backoff(PAUSE), incoming.received
        while not incoming.progress(arrival):
            if arrival.source not in self.alive():
                raise Refused("lost", f"rank {arrival.source} was lost before the payload of its message came")
            if incoming.received != received:
                pause, received = Backoff(PAUSE), incoming.received
            if pause.is_over():
                return False
            pause.pause()
        return True

    def _discard(self, arrival: Announced) -> None:
        """Frees a message that was refused."""
        with contextlib.suppress(Refused):  # the sender was lost
            if isinstance(arrival.payload, Incoming):
                arrival.payload.drop()
                self._receive_pieces(arrival, arrival.payload)
            elif isinstance(arrival.payload, MPI.Message) and arrival.payload != MPI.MESSAGE_NULL:
                self._transfer(arrival.payload, np.empty(arrival.nbytes, np.uint8), self.timeout)

    def _transfer(self, matched: Any, into: np.ndarray, seconds: float) -> None:
        try:
            with self._lock:
                request = matched.Irecv([into, MPI.BYTE])
            self._wait(request, "recv_any", seconds)
        except (WorkerLost, MPI.Exception) as error:
            raise Refused("lost", "the sender was lost before its payload came") from error

    # --- membership ----------------------------------------------------------------------------------------------------

    def alive(self) -> frozenset[int]:
        """See `Communicator.alive`."""
        self._membership.heed(self._lock)
        return self._membership.alive()

    def exclude(self, rank: int) -> None:
        """See `Communicator.exclude`."""
        self._check_rank(rank, "the rank")
        if rank in self.alive():
            with self._lock:
                self._membership.exclude(rank)

    def reform(self, *, timeout: float | None = None) -> "MPICommunicator":
        """See `Communicator.reform`. As many spare processes join as workers have died.

        Raises `NotSupported` after the death of a worker where MPI runs without fault tolerance, and `TimedOut` where a survivor does
        not call it.
        """
        with self._lock:
            self._membership.revoke(self._collective, self._messages, self._payloads)
            self._membership.reform(self._limit(timeout))
            following = type(self)(self._membership, self.job, self.timeout)
        succeed(self, following)
        return following

    def leave(self) -> None:
        """See `Communicator.leave`. The process should end soon: it takes part in `reform` of the others only when it ends."""
        with self._lock:
            wait = Backoff(self.timeout)
            while self._pending and not wait.is_over():  # the messages to living workers are sent
                self._reap()
                wait.pause()
            self._membership.leave(self._calls)

    def abort(self, reason: str) -> NoReturn:
        """Ends all processes of the job."""
        abort(f"oxigrad.distributed: rank {self.rank} aborts the job: {reason}")

    # --- waiting -------------------------------------------------------------------------------------------------------

    def _wait(self, request: Any, what: str, seconds: float) -> None:
        wait = Backoff(seconds)
        while not self._is_done(request, what):
            self._membership.heed(self._lock)
            missing = len(self._membership.taking_part(self._calls)) < self.size or self._membership.is_forming
            if what != "recv_any" and missing:
                if self._is_done(request, what):  # it may have completed before
                    return
                raise self._lost(what)
            if wait.is_over():
                self._failure = TimedOut(
                    f"{what} took more than {seconds:g} s: a worker is stopped, slow, or "
                    "has not called it; this generation cannot be used further"
                )
                self._membership.unfinished.append(request)  # MPI may still write to its buffers
                raise self._failure
            wait.pause()

    def _is_done(self, request: Any, what: str) -> bool:
        try:
            with self._lock:
                self._reap()
                return request.Test()
        except MPI.Exception as error:
            raise self._lost(what) from error

    def _lost(self, what: str) -> WorkerLost:
        """The error of an operation that lost a worker; the other workers then get it too."""
        with self._lock:
            self._membership.revoke(self._collective)
        wait = Backoff(1.0)
        while not (lost := frozenset(range(self.size)) - self._membership.alive()) and not wait.is_over():
            self._membership.heed(self._lock)
            wait.pause()
        if self._failure is None:
            self._failure = WorkerLost(lost, what)
        return WorkerLost(lost, what)


def _starts(counts: list[int]) -> list[int]:
    return [0, *itertools.accumulate(counts[:-1])]


def _payload_tag(sequence: int) -> int:
    """The tag of MPI by which a payload belongs to its header."""
    return sequence & 0x7FFF


def _announced(head: bytes) -> int:
    """The bytes of payload in a header; none in one that is malformed."""
    try:
        return Header.unpack(head).payload_bytes
    except Refused:
        return 0


def tell_parent(what: bytes) -> None:
    """Tells the process of `oxigrad.launch` that has started this one, if there is one, whether the worker has begun or ended."""
    if pipe := os.environ.get(PIPE):
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
    tell_parent(ENDED)
    MPI.COMM_WORLD.Abort(1)
    os._exit(1)
