"""Workers as processes of an MPI job, through mpi4py.

Only buffers are sent, never objects: no message is pickled. Waits test for completion and pause between the tests, and every one of
them has a time-out. An uncaught exception ends the whole job. Where the MPI library implements user-level failure mitigation (Open
MPI 5 under ``--with-ft ulfm``), the survivors of a lost worker continue by `MPICommunicator.reform`.
"""

import atexit
import contextlib
import dataclasses
import faulthandler
import itertools
import os
import secrets
import sys
import threading
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from oxigrad.distributed.agreement import VERSION_BYTES, check_versions, version
from oxigrad.distributed.background import InOrder
from oxigrad.distributed.communicator import (
    TIMEOUT,
    Buffer,
    Communicator,
    Memory,
    Op,
    current,
    reduce_in_order,
    serving,
    succeed,
)
from oxigrad.distributed.decisions.training import Trainings
from oxigrad.distributed.engines.backoff import Backoff
from oxigrad.distributed.engines.envelope import BYTES, Envelope
from oxigrad.distributed.engines.mpi_membership import Membership
from oxigrad.distributed.engines.mpi_start import FINALIZES, MPI
from oxigrad.distributed.engines.spare import Spare
from oxigrad.distributed.errors import CommunicationError, Excluded, Refused, TimedOut, WorkerLost
from oxigrad.distributed.message import HEADER_BYTES, Guard, Header, as_bytes, copied, scatter, size_of
from oxigrad.distributed.refusals import Refusals

__all__ = ["MPICommunicator", "communicator"]

__dir__ = __all__.copy

INLINE = 1 << 14
"""Bytes of payload up to which a message travels in one piece, with its header; others follow their header without a copy by
the receiver."""

PIECE = 1 << 30
"""Bytes that one call of MPI transfers at most: counts are 32-bit integers."""

SMALL = 1 << 15
"""Bytes up to which a buffer is gathered whole and reduced by every worker, which takes one exchange instead of two."""

_OPS = {"sum": MPI.SUM, "mean": MPI.SUM, "max": MPI.MAX}


@dataclasses.dataclass(eq=False)
class _Arrived:
    """A header, and its payload: bytes that came with it, a matched message that waits to be received, or None before that comes."""

    source: int
    header: bytes
    payload: np.ndarray | Any
    nbytes: int = 0


class MPICommunicator(InOrder):
    """The workers of an MPI job. `communicator` makes it; see `oxigrad.distributed.communicator.Communicator` for its methods."""

    def __init__(self, membership: Membership, job: bytes, timeout: float) -> None:
        self._membership = membership
        self._collective, self._messages, self._payloads = membership.channels
        self.rank, self.size = self._collective.rank, self._collective.size
        self.generation = membership.generation
        self.job, self.timeout = job, timeout
        self.bytes_sent = 0
        self.refused, self.trainings = Refusals(), Trainings(is_known=self.generation == 0)
        self._lock = threading.RLock()
        self._guard = Guard(self.job, self.generation, self.size)
        self._sequence: Counter[int] = Counter()
        self._calls = 0
        self._staging: dict[int, np.ndarray] = {}
        self._spare = Spare()
        self._sending: list[tuple[list[Any], np.ndarray]] = []
        self._turns = [threading.Lock() for _ in range(self.size)]
        self._arrived: dict[int, deque[_Arrived]] = {}
        self._failure: CommunicationError | None = None

    # --- operations on all workers -------------------------------------------------------------------------------------

    def all_reduce(
        self, bufs: Sequence[Buffer], *, op: Op = "mean", deterministic: bool = True, timeout: float | None = None
    ) -> None:
        """See `Communicator.all_reduce`. After an error, the content of the buffers is undefined."""
        if op not in _OPS:
            raise ValueError(f"op is {op!r}: expected 'sum', 'mean' or 'max'")
        self._agree("all_reduce", bufs, f"{op} {deterministic}", timeout)
        if self.size == 1:
            return
        for buffer in bufs:
            self.bytes_sent += buffer.nbytes
            for piece in _pieces(buffer):
                if deterministic or not _has_mpi_type(piece):
                    self._reduce_in_order(piece, op, timeout)
                    continue
                with self._lock:
                    request = self._collective.Iallreduce(MPI.IN_PLACE, piece, _OPS[op])
                self._wait(request, "all_reduce", timeout)
                if op == "mean":
                    np.divide(piece, self.size, out=piece)

    def _reduce_in_order(self, buffer: Buffer, op: Op, timeout: float | None) -> None:
        raw, size = as_bytes(buffer), self.size
        if raw.nbytes <= SMALL:
            rows = self._stage(raw.nbytes * size)
            self._run("Iallgather", raw, rows, what="all_reduce", timeout=timeout)
            reduce_in_order(list(rows.view(buffer.dtype).reshape(size, -1)), op, buffer)
            return
        # Each worker reduces one part of the buffer, in the order of ranks, and sends it to the others.
        shares = [len(buffer) // size + (rank < len(buffer) % size) for rank in range(size)]
        counts = [share * buffer.itemsize for share in shares]
        starts = [sum(counts[:rank]) for rank in range(size)]
        mine = counts[self.rank]
        rows = self._stage(mine * size)
        sent = [raw, (counts, starts), MPI.BYTE]
        received = [rows, ([mine] * size, [rank * mine for rank in range(size)]), MPI.BYTE]
        self._run("Ialltoallv", sent, received, what="all_reduce", timeout=timeout)
        parts = list(rows.view(buffer.dtype).reshape(size, -1))
        reduce_in_order(parts, op, parts[0])
        gathered = [raw, (counts, starts), MPI.BYTE]
        self._run("Iallgatherv", [rows[:mine], MPI.BYTE], gathered, what="all_reduce", timeout=timeout)

    def broadcast(self, bufs: Sequence[Buffer], root: int = 0, *, timeout: float | None = None) -> None:
        """See `Communicator.broadcast`."""
        if not 0 <= root < self.size:
            raise ValueError(f"root is {root}: expected 0 to {self.size - 1}")
        self._agree("broadcast", bufs, str(root), timeout)
        for buffer in bufs:
            self.bytes_sent += buffer.nbytes if self.rank == root else 0
            for piece in _pieces(buffer):
                with self._lock:
                    request = self._collective.Ibcast([as_bytes(piece), MPI.BYTE], root)
                self._wait(request, "broadcast", timeout)

    def all_gather_v(self, buf: Buffer, *, timeout: float | None = None) -> list[Buffer]:
        """See `Communicator.all_gather_v`."""
        lengths = self._agree("all_gather_v", [buf], buf.dtype.str, timeout, any_length=True)
        self.bytes_sent += buf.nbytes
        starts = np.cumsum([0, *lengths]).tolist()
        gathered = np.empty(starts[-1], np.uint8)
        if starts[-1] > PIECE:
            raise ValueError(f"all_gather_v of {starts[-1]} bytes: expected at most {PIECE} from all workers together")
        received = [gathered, (lengths, starts[:-1]), MPI.BYTE]
        self._run("Iallgatherv", [as_bytes(buf), MPI.BYTE], received, what="all_gather_v", timeout=timeout)
        views = [gathered[start:end] for start, end in itertools.pairwise(starts)]
        return [
            view.copy().view(buf.dtype) if view.ctypes.data % buf.itemsize else view.view(buf.dtype) for view in views
        ]

    def _agree(
        self, kind: str, bufs: Sequence[Buffer], detail: str, timeout: float | None, *, any_length: bool = False
    ) -> list[int]:
        """Checks that all workers call the same operation on buffers of the same layout; returns their bytes by rank."""
        self._await_turn()
        if self._failure is not None:
            raise self._failure
        envelope = Envelope(self._calls, kind, bufs, detail, any_length=any_length)
        self._calls += 1
        rows = np.empty((self.size, BYTES), np.uint8)
        self._run("Iallgather", envelope.packed(), rows, what=kind, timeout=timeout)
        return envelope.check(rows)

    def _stage(self, nbytes: int) -> np.ndarray:
        """Memory that is kept between calls, since touching new pages costs as much as the reduction."""
        if nbytes not in self._staging:
            if len(self._staging) >= 8:
                self._staging.clear()
            self._staging[nbytes] = np.empty(nbytes, np.uint8)
        return self._staging[nbytes]

    def _run(self, name: str, *args: Any, what: str, timeout: float | None) -> None:
        try:
            with self._lock:
                request = getattr(self._collective, name)(*args)
        except MPI.Exception as error:
            raise self._lost(what) from error
        self._wait(request, what, timeout)

    # --- messages ------------------------------------------------------------------------------------------------------

    def send(self, dest: int, head: Header, bufs: Sequence[Buffer]) -> None:
        """See `Communicator.send`."""
        if not 0 <= dest < self.size:
            raise ValueError(f"the rank is {dest}: expected 0 to {self.size - 1}")
        if dest not in self.alive():
            raise WorkerLost([dest], "send")
        with self._turns[dest]:  # the messages to one worker are sent in the order of their sequence numbers
            with self._lock:
                self._reap()
                sequence, self._sequence[dest] = self._sequence[dest], self._sequence[dest] + 1
                data = self._spare.take(HEADER_BYTES + size_of(bufs))
            found = copied(bufs, data[HEADER_BYTES:])
            identity = {"job": self.job, "generation": self.generation, "rank": self.rank, "sequence": sequence}
            head = head.sealed(bufs, **identity, payload_checksum=found)
            data[:HEADER_BYTES] = np.frombuffer(head.pack(), np.uint8)
            try:
                self._post(dest, head.tag, data)
            except MPI.Exception as error:
                raise WorkerLost([dest], "send") from error
        self.bytes_sent += head.payload_bytes

    def _post(self, dest: int, tag: int, data: np.ndarray) -> None:
        with self._lock:
            if len(data) <= HEADER_BYTES + INLINE:
                requests = [self._messages.Isend([data, MPI.BYTE], dest, tag)]
            else:
                pair = _pair(data[:HEADER_BYTES].tobytes())
                requests = [
                    self._messages.Isend([data[:HEADER_BYTES], MPI.BYTE], dest, tag),
                    self._payloads.Isend([data[HEADER_BYTES:], MPI.BYTE], dest, pair),
                ]
            self._sending.append((requests, data))

    def _reap(self) -> None:
        """Drops the messages that have been sent, and those to lost workers; the memory of the former is used again."""
        kept = []
        for requests, data in self._sending:
            try:
                if not MPI.Request.Testall(requests):
                    kept.append((requests, data))
                    continue
            except MPI.Exception:
                continue
            self._spare.give(data)
        self._sending = kept

    def recv_any(
        self, bufs: Memory, *, tag: int, source: int | None = None, timeout: float | None = None
    ) -> Header | None:
        """See `Communicator.recv_any`."""
        wait = Backoff(self.timeout if timeout is None else timeout)
        while True:
            arrived = self._poll(tag, source)
            if arrived is not None:
                try:
                    return self._receive(arrived, bufs, wait)
                except Refused as refused:
                    self.refused.add(refused)
                    self._discard(arrived)
                continue
            alive = self.alive()
            if source is not None and source not in alive:
                raise WorkerLost([source], "recv_any")
            if self._membership.is_forming:
                raise WorkerLost(frozenset(range(self.size)) - alive, "recv_any")
            if wait.is_over():
                return None
            wait.pause()

    def _poll(self, tag: int, source: int | None) -> _Arrived | None:
        """The next message that has come whole, or whose payload can be received."""
        status, origin = MPI.Status(), MPI.ANY_SOURCE if source is None else source
        with self._lock:
            self._reap()
            found = self._membership.probe(self._messages, origin, tag, status)
            waiting = self._arrived.setdefault(tag, deque())
            if found is not None:
                data = np.empty(status.Get_count(MPI.BYTE), np.uint8)
                found.Recv([data, MPI.BYTE])
                head, payload = data[:HEADER_BYTES].tobytes(), data[HEADER_BYTES:]
                follows = len(data) == HEADER_BYTES and _payload_follows(head)
                waiting.append(_Arrived(status.source, head, None if follows else payload, payload.nbytes))
            return self._first_whole(waiting, source, status)

    def _first_whole(self, waiting: "deque[_Arrived]", source: int | None, status: Any) -> _Arrived | None:
        """Takes the first message whose payload has come; one of a worker does not overtake another of the same worker."""
        incomplete: set[int] = set()
        for arrived in list(waiting):
            origin = arrived.source
            if origin in incomplete or source not in (None, origin):
                continue
            if arrived.payload is None:
                arrived.payload = self._membership.probe(self._payloads, origin, _pair(arrived.header), status)
                arrived.nbytes = 0 if arrived.payload is None else status.Get_count(MPI.BYTE)
            if arrived.payload is not None:
                waiting.remove(arrived)
                return arrived
            if origin in self._membership.alive():
                incomplete.add(origin)
            else:
                waiting.remove(arrived)
                self.refused.add(Refused("lost", f"rank {origin} was lost before the payload of its message came"))
        return None

    def _receive(self, arrived: _Arrived, bufs: Memory, wait: Backoff) -> Header:
        header = Header.unpack(arrived.header)
        self._guard.check(header)
        if header.rank != arrived.source:
            raise Refused("rank", f"a message of the rank {arrived.source} says that it is of the rank {header.rank}")
        targets = bufs(header) if callable(bufs) else bufs
        expected = sum(buffer.nbytes for buffer in targets)
        if expected != arrived.nbytes:
            raise Refused("length", f"a message has {arrived.nbytes} bytes of payload: expected {expected}")
        if isinstance(arrived.payload, np.ndarray):
            scatter([arrived.payload], targets)
        elif len(targets) == 1:
            self._take(arrived.payload, as_bytes(targets[0]), wait)
        else:
            data = self._stage(expected)
            self._take(arrived.payload, data, wait)
            scatter([data], targets)
        self._guard.check(header, targets)
        return header

    def _take(self, message: Any, into: np.ndarray, wait: Backoff) -> None:
        with self._lock:
            request = message.Irecv([into, MPI.BYTE])
        try:
            # A payload whose transfer has begun is received whole, whatever time is left of a short wait.
            self._wait(request, "recv_any", max(wait.remaining(), self.timeout))
        except WorkerLost as error:
            raise Refused("lost", "the sender was lost before its payload came") from error

    def _discard(self, arrived: _Arrived) -> None:
        if isinstance(arrived.payload, MPI.Message) and arrived.payload != MPI.MESSAGE_NULL:
            self._take(arrived.payload, np.empty(arrived.nbytes, np.uint8), Backoff(self.timeout))

    # --- membership ----------------------------------------------------------------------------------------------------

    def alive(self) -> frozenset[int]:
        """See `Communicator.alive`."""
        self._membership.heed(self._lock)
        return self._membership.alive()

    def exclude(self, rank: int) -> None:
        """See `Communicator.exclude`."""
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
            self._membership.reform(self.timeout if timeout is None else timeout)
            made = type(self)(self._membership, self.job, self.timeout)
        succeed(self, made)
        _joined[:] = [made]
        return made

    def leave(self) -> None:
        """See `Communicator.leave`. The process should end soon: it takes part in `reform` of the others only when it ends."""
        with self._lock:
            self._flush()
            self._membership.leave(self._calls)

    def _flush(self) -> None:
        """Waits until the messages to living workers have been sent."""
        wait = Backoff(self.timeout)
        while self._sending and not wait.is_over():
            self._reap()
            wait.pause()

    def abort(self, reason: str) -> NoReturn:
        """Ends all processes of the job."""
        abort(f"oxigrad.distributed: rank {self.rank} aborts the job: {reason}")

    # --- waiting -------------------------------------------------------------------------------------------------------

    def _wait(self, request: Any, what: str, timeout: float | None) -> None:
        wait = Backoff(self.timeout if timeout is None else timeout)
        while True:
            if self._is_done(request, what):
                return
            self._membership.heed(self._lock)
            missing = len(self._membership.taking_part(self._calls)) < self.size or self._membership.is_forming
            if what != "recv_any" and missing:
                if self._is_done(request, what):  # it may have completed before
                    return
                raise self._lost(what)
            if wait.is_over():
                self._failure = TimedOut(
                    f"{what} took more than {self.timeout if timeout is None else timeout:g} s: a worker is stopped, slow, or "
                    "has not called it; this generation cannot be used further"
                )
                _broken.append(request)  # MPI may still write to its buffers
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


def _pieces(buffer: Buffer) -> Iterator[Buffer]:
    step = PIECE // buffer.itemsize
    return (buffer[start : start + step] for start in range(0, len(buffer), step))


def _pair(head: bytes) -> int:
    """The tag of MPI by which a payload belongs to its header: of the sequence number."""
    return int.from_bytes(head[56:60], "little") & 0x7FFF


def _payload_follows(head: bytes) -> bool:
    try:
        return Header.unpack(head).payload_bytes > INLINE
    except Refused:
        return False


def _has_mpi_type(buffer: Buffer) -> bool:
    return buffer.dtype.kind in "iuf" and buffer.itemsize in (4, 8)


# --- the process --------------------------------------------------------------------------------------------------------

_broken: list[Any] = []
_joined: list[MPICommunicator] = []


def communicator(*, timeout: float = TIMEOUT, spares: int | None = None) -> MPICommunicator:
    """The communicator of this process of an MPI job; the same one at each call.

    The last ``spares`` processes (``OXIGRAD_SPARES``, which ``python -m oxigrad.launch --spares`` sets) wait here until they replace lost
    workers, and end where that does not happen. Raises `Refused` on all processes where they run other versions of the package. Ends the
    process, with a traceback, where another one does not come here within the time-out.
    """
    if _joined:
        return _joined[0]
    if spares is None:
        spares = int(os.environ.get("OXIGRAD_SPARES", "0"))
    with _limited(timeout):
        membership, job, versions = _wait_for_all_processes(spares)
    check_versions(versions)
    atexit.register(_finish, membership)
    if not membership.is_worker and not membership.stand_by():
        sys.exit(0)
    made = MPICommunicator(membership, job, timeout)
    _joined.append(made)
    return made


def _wait_for_all_processes(spares: int) -> tuple[Membership, bytes, np.ndarray]:
    """Initializes MPI, which all processes do; returns what they agree on: the membership, the job, and the version of each."""
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

    MPI waits in its initialization for every process that was started, also for one that has died, holds the interpreter lock
    meanwhile, and has no time-out: only a thread that needs no interpreter can end it.
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

    The list returned has this worker's result at its rank, and None at the others: results may be any objects, and objects are not
    exchanged between processes.
    """
    made = communicator(**options)
    if workers not in (None, made.size) and made.generation == 0:
        raise ValueError(
            f"workers is {workers}, but MPI runs {made.size}: expected the number of processes; "
            f"python -m oxigrad.launch -n {workers} starts as many"
        )
    with serving(made):
        result = worker(made)
        last = current()
    results = [None] * last.size
    results[last.rank] = result
    return results


def _finish(membership: Membership) -> None:
    """Ends this process's part: the others see it leave, and it takes part in their `reform` until they have ended too."""
    if _broken and not all(request.Test() for request in _broken):
        abort("oxigrad.distributed: an operation never completed: ends the processes that wait for it")
    if not membership.is_excluded:
        for made in _joined:
            made.leave()
        membership.stand_by()
    sys.stdout.flush()
    sys.stderr.flush()
    if membership.has_lost:
        if not FINALIZES:
            sys.stderr.write(
                "oxigrad.distributed: a worker has died, and mpi4py.MPI was imported before the engine: the status of this "
                "program is not known, and is reported as 1. To keep it, import mpi4py.MPI after "
                "oxigrad.distributed.engines.mpi, or set mpi4py.rc.finalize = False before\n"
            )
            sys.stderr.flush()
            os._exit(1)
    elif FINALIZES:
        MPI.Finalize()


def _end_job_on_exceptions() -> None:
    """Makes an uncaught exception in any thread end all processes, which otherwise wait for this one until they time out."""
    shown, shown_in_thread = sys.excepthook, threading.excepthook

    def excepthook(kind: type[BaseException], value: BaseException, trace: Any) -> None:
        shown(kind, value, trace)
        if not isinstance(value, Excluded):  # the others go on
            abort(f"oxigrad.distributed: rank {MPI.COMM_WORLD.rank} ends the job after an uncaught exception")

    def threading_excepthook(args: threading.ExceptHookArgs) -> None:
        shown_in_thread(args)
        if args.exc_type not in (SystemExit, Excluded):
            abort(f"oxigrad.distributed: rank {MPI.COMM_WORLD.rank} ends the job after an uncaught exception")

    sys.excepthook, threading.excepthook = excepthook, threading_excepthook


def abort(reason: str) -> NoReturn:
    """Prints the reason and ends all processes of the job with status 1."""
    try:
        sys.stdout.flush()
        sys.stderr.write(reason + "\n")
        sys.stderr.flush()
    except OSError:
        traceback.print_exc()
    MPI.COMM_WORLD.Abort(1)
    os._exit(1)
