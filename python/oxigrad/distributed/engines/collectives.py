"""Communicators of engines without a hub: operations on all workers over those on bytes, messages and membership."""

import hashlib
import itertools
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np

from oxigrad.distributed.communicator import Buffer, Communicator, Place
from oxigrad.distributed.decisions.training import check_exchange, number_of_exchange
from oxigrad.distributed.engines.backoff import Backoff
from oxigrad.distributed.engines.mailbox import Mailbox, Message
from oxigrad.distributed.engines.peers import EXCLUDED, NOTICE, NOTICE_WORDS, Peers, notice
from oxigrad.distributed.errors import CommunicationError, Refused, TimedOut, WorkerLost
from oxigrad.distributed.messages.message import HEADER_BYTES, as_bytes, scatter, size_of
from oxigrad.distributed.messages.reduction import Op, part_of, reduce_in_order

Works: TypeAlias = list[Any]
"""Operations of a library that have begun, as the library tells whether they have ended."""

PIECE = 1 << 30
"""Bytes that one operation transfers at most: counts of MPI are 32-bit integers."""

SMALL = 1 << 19
"""Bytes of all workers up to which every worker reduces whole buffers: one exchange instead of two."""


# What workers tell each other before an operation: its number, that of its training, the bytes of its buffers, and a
# digest of the operation and the layout.
_ENVELOPE = struct.Struct("<QQQ16s")


class ByteCollectives(Communicator):
    """Base class of communicators whose library has collective operations on bytes.

    Before each operation the workers tell each other which it is, so that all of them call the same one. An engine
    begins the operations on bytes, which `_run` waits for: `_gather`, `_transpose`, `_share` and `_reduce_natively`. It
    notes what it learns of other workers in `Peers`, puts their messages into the mailbox
    (`_deliver`), and sends (`_dispatch`). `_look` and `_pause` belong to waits.
    """

    #: The exceptions of the library.
    _errors: ClassVar[tuple[type[Exception], ...]] = ()

    def __init__(self, place: Place, job: bytes, timeout: float, peers: Peers) -> None:
        super().__init__(place, job, timeout)
        #: Guards the library, and what has come from other workers.
        self._lock = threading.RLock()
        self._peers = peers
        self.unfinished: dict[int, int] = peers.last_steps
        self._mail = Mailbox(job, self.generation, self.size)
        #: The number of operations on all workers that this one has called, and the error after which it calls no
        #: other.
        self._calls = 0
        self._failure: CommunicationError | None = None
        #: Operations that have not ended: after a loss, the library may still write to their buffers.
        self._under_way: Works = []
        self._staging: np.ndarray = np.empty(0, np.uint8)

    # --- primitives ---------------------------------------------------------------------------------------------------

    def _gather(self, data: np.ndarray, rows: np.ndarray) -> Works:
        """Fills ``rows`` with the bytes of all workers by rank, as many of each."""
        raise NotImplementedError

    def _transpose(self, data: np.ndarray, counts: list[int], rows: np.ndarray) -> Works:
        """Sends the k-th part of ``data``, of ``counts[k]`` bytes, to rank k.

        Fills ``rows`` with the parts received, by rank.

        The row of this worker is undefined: its part is in ``data``.
        """
        raise NotImplementedError

    def _share(self, data: np.ndarray, counts: list[int]) -> Works:
        """Fills ``data``, which holds this worker's part, with the parts of all: ``counts[k]`` bytes of rank k."""
        raise NotImplementedError

    def _reduce_natively(self, buffer: Buffer, op: Op) -> Works:
        """The sum or the maximum over all workers, in any order; a mean is a sum here."""
        raise NotImplementedError

    def _dispatch(self, dest: int, message: np.ndarray) -> None:
        """Sends a message to a worker that lives."""
        raise NotImplementedError

    def _tell(self, words: np.ndarray) -> None:
        """Notes a `notice`, and sends it to the other processes that live."""
        raise NotImplementedError

    def _look(self) -> None:
        """Notes what has become known of other workers. Raises `Excluded` for a worker that others have excluded."""
        self._peers.check_fence()

    def _pause(self, wait: Backoff) -> None:
        """Waits for a message or a notice."""
        wait.pause()

    def _taken(self, tag: int, source: int | None) -> Message | None:
        """The next message that has come."""
        return self._mail.take(tag, source)

    def _is_done(self, work: Any) -> bool:
        """Whether an operation that has begun has ended. Raises one of ``_errors`` where it has failed."""
        raise NotImplementedError

    def _lost(self, what: str) -> CommunicationError:
        """The error of an operation that has failed."""
        raise NotImplementedError

    def _run(self, what: str, seconds: float, begin: Callable[..., Works], *args: Any) -> None:
        """Begins operations of the library by ``begin(*args)``, and waits for them. ``what`` is the name in errors."""
        wait = Backoff(seconds)
        try:
            self._check(what)
            with self._lock:
                self._under_way.extend(begin(*args))
            while not self._are_done():
                try:
                    self._check(what)
                except WorkerLost:
                    if self._are_done():  # it was completed before the loss
                        break
                    raise
                if wait.is_over():
                    raise self._late(what, seconds)
                wait.pause()
        except (CommunicationError, *self._errors) as error:
            # An error of the library may be a base class of ours, which says what has happened unless a worker is lost.
            if isinstance(error, CommunicationError) and not isinstance(error, WorkerLost):
                self._failure = error
                raise
            self._failure = self._lost(what)
            raise self._failure from error
        self._under_way.clear()

    def _are_done(self) -> bool:
        return all(self._is_done(work) for work in self._under_way)

    def _late(self, what: str, seconds: float) -> TimedOut:
        """The error of an operation that has not ended in time."""
        return TimedOut(
            f"{what} took more than {seconds:g} s: a worker is stopped, slow, or has not called it; this "
            "communicator cannot be used further"
        )

    # --- messages and membership --------------------------------------------------------------------------------------

    def alive(self) -> frozenset[int]:
        """See `Communicator.alive`."""
        self._look()
        return self._peers.alive()

    def _exclude(self, rank: int) -> None:
        """See `Communicator.exclude`."""
        if rank in self.alive():
            self._tell(notice(EXCLUDED, self._peers.workers[rank]))

    def _check(self, what: str) -> None:
        """Raises an error if the job is aborted, this worker is excluded, or another one skips this operation."""
        self._look()
        self._peers.check(what, self._calls)

    def _post(self, dest: int, message: np.ndarray) -> None:
        if dest not in self.alive():
            raise self._peers.loss([dest], "send")
        self._dispatch(dest, message)

    def _deliver(self, message: np.ndarray, source: int) -> None:
        """Puts a message that has come into the mailbox, or notes the notice that it is."""
        try:
            self._mail.put(message, source)
            if (came := self._mail.take(NOTICE, source)) is not None:
                scatter(came.data[HEADER_BYTES:], [words := np.empty(NOTICE_WORDS, np.int64)])
                self._peers.note(source, *words.tolist())
        except Refused as error:
            self.refused.add(error)

    def _poll(self, tag: int, source: int | None, wait: Backoff) -> Message | None:
        while True:
            self._look()  # before the messages: what a worker sent before it left has come then
            if (message := self._taken(tag, source)) is not None:
                return message
            self._peers.check("recv_any", needed=source)
            if wait.is_over():
                return None
            self._pause(wait)

    # --- operations ---------------------------------------------------------------------------------------------------

    def _all_reduce(self, bufs: Sequence[Buffer], op: Op, seconds: float, *, deterministic: bool) -> None:
        self._agree("all_reduce", bufs, f"{op} {deterministic}", seconds)
        for piece in itertools.chain.from_iterable(map(_pieces, bufs)) if self.size > 1 else ():
            if deterministic or piece.dtype.kind not in "iuf" or piece.itemsize not in (4, 8):
                self._reduce_in_order(piece, op, seconds)
                continue
            self._run("all_reduce", seconds, self._reduce_natively, piece, op)
            if op == "mean":
                np.divide(piece, self.size, out=piece)

    def _reduce_in_order(self, buffer: Buffer, op: Op, seconds: float) -> None:
        data, size = as_bytes(buffer), self.size
        if data.nbytes * size <= SMALL:
            rows = self._stage(data.nbytes * size)
            self._run("all_reduce", seconds, self._gather, data, rows)
            reduce_in_order(list(rows.view(buffer.dtype).reshape(size, -1)), op, buffer)
            return
        # Each worker reduces one part of the buffer, in the order of ranks, and sends it to the others.
        ends = [buffer.size * rank // size for rank in range(size + 1)]
        counts = [end - start for start, end in itertools.pairwise(ends)]
        self._reduce_part(buffer, counts, op, "all_reduce", seconds)
        self._run("all_reduce", seconds, self._share, data, [count * buffer.itemsize for count in counts])

    def _reduce_part(self, buffer: Buffer, counts: Sequence[int], op: Op, what: str, seconds: float) -> None:
        """Reduces the part of this worker, of ``counts[self.rank]`` elements, in the order of ranks."""
        rows = self._stage(counts[self.rank] * buffer.itemsize * self.size)
        nbytes = [count * buffer.itemsize for count in counts]
        self._run(what, seconds, self._transpose, as_bytes(buffer), nbytes, rows)
        part = buffer[part_of(counts, self.rank, self.size, buffer.size)]
        contributions = list(rows.view(buffer.dtype).reshape(self.size, part.size))
        contributions[self.rank] = part
        reduce_in_order(contributions, op, part)

    def _reduce_scatter(self, buf: Buffer, counts: Sequence[int], op: Op, seconds: float) -> None:
        self._agree("reduce_scatter", [buf], f"{op} {[*counts]}", seconds)
        step = PIECE // (buf.itemsize * self.size)
        if self.size == 1:
            return
        if max(counts) <= step:
            self._reduce_part(buf, counts, op, "reduce_scatter", seconds)
            return
        starts = [part_of(counts, rank, self.size, buf.size).start for rank in range(self.size)]
        for at in range(0, max(counts), step):
            lengths = [min(max(count - at, 0), step) for count in counts]
            slices = [slice(start + at, start + at + length) for start, length in zip(starts, lengths, strict=True)]
            piece = np.concatenate([buf[each] for each in slices])
            self._reduce_part(piece, lengths, op, "reduce_scatter", seconds)
            buf[slices[self.rank]] = piece[part_of(lengths, self.rank, self.size, piece.size)]

    def _all_gather_v(self, buf: Buffer, seconds: float) -> list[Buffer]:
        counts = self._agree("all_gather_v", [buf], buf.dtype.str, seconds, any_length=True)
        data, step = as_bytes(buf), PIECE // self.size
        if max(counts) <= step:
            parts = self._gathered(data, counts, seconds)
        else:
            parts = [np.empty(count, np.uint8) for count in counts]
            for start in range(0, max(counts), step):
                lengths = [min(max(count - start, 0), step) for count in counts]
                for part, piece in zip(
                    parts, self._gathered(data[start : start + step], lengths, seconds), strict=True
                ):
                    part[start : start + step] = piece
        return [(part.copy() if part.ctypes.data % buf.itemsize else part).view(buf.dtype) for part in parts]

    def _gathered(self, data: np.ndarray, counts: list[int], seconds: float) -> list[np.ndarray]:
        """The bytes of all workers by rank, of ``counts[k]`` bytes of rank k."""
        ends = [0, *itertools.accumulate(counts)]
        gathered = np.empty(ends[-1], np.uint8)
        parts = [gathered[start:end] for start, end in itertools.pairwise(ends)]
        parts[self.rank][...] = data
        self._run("all_gather_v", seconds, self._share, gathered, counts)
        return parts

    def _agree(
        self, kind: str, bufs: Sequence[Buffer], detail: str, seconds: float, *, any_length: bool = False
    ) -> list[int]:
        """The bytes of all workers by rank, if all call one operation, on equal layouts unless ``any_length``."""
        if self._failure is not None:
            raise self._failure
        self._calls += 1
        layout = "" if any_length else " ".join(f"{buffer.dtype.str}{len(buffer)}" for buffer in bufs)
        nbytes, digest = size_of(bufs), hashlib.sha256(f"{kind} {detail} {layout}".encode()).digest()[:16]
        rows = np.empty(self.size * _ENVELOPE.size, np.uint8)
        training = number_of_exchange()
        packed = bytearray(_ENVELOPE.pack(self._calls, training, nbytes, digest))  # writable, as torch wants it
        self._run(kind, seconds, self._gather, np.frombuffer(packed, np.uint8), rows)
        envelopes = list(_ENVELOPE.iter_unpack(rows.tobytes()))
        check_exchange([each for _, each, _, _ in envelopes])
        for rank, (number, _, size, other) in enumerate(envelopes):
            if (number, other) != (self._calls, digest):
                raise Refused(
                    "collective",
                    f"{kind}: rank {rank} calls another operation, or one on buffers of another layout ({size} bytes, "
                    f"{nbytes} here): expected the same operation, model and configuration on every worker",
                )
        return [size for _, _, size, _ in envelopes]

    def _stage(self, nbytes: int) -> np.ndarray:
        """Memory for one operation on all workers, used again: touching new pages costs as much as the reduction."""
        if self._staging.size < nbytes:
            self._staging = np.empty(nbytes, np.uint8)
        return self._staging[:nbytes]


def _pieces(buffer: Buffer) -> Iterator[Buffer]:
    step = PIECE // buffer.itemsize
    return (buffer[start : start + step] for start in range(0, len(buffer), step))
