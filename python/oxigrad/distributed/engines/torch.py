"""Workers as the processes of ``torch.distributed``, which torchrun or the program itself has started.

Buffers are NumPy arrays in host memory, which torch uses without a copy; they travel over groups of gloo that are made for them,
whatever the backend of the program's own group is. Such a group cannot change its members: after the death of a worker the
others get `WorkerLost`, and `TorchCommunicator.reform` raises `NotSupported`.
"""

import atexit
import contextlib
import datetime
import importlib
import itertools
import queue
import secrets
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

import numpy as np

from oxigrad.distributed.agreement import check_versions, version
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
)
from oxigrad.distributed.decisions.training import Trainings
from oxigrad.distributed.engines.backoff import Backoff
from oxigrad.distributed.engines.envelope import BYTES, Envelope
from oxigrad.distributed.errors import (
    Aborted,
    CommunicationError,
    Excluded,
    NotSupported,
    Refused,
    TimedOut,
    WorkerLost,
)
from oxigrad.distributed.message import HEADER_BYTES, Guard, Header, as_bytes, copied, scatter, size_of
from oxigrad.distributed.refusals import Refusals

torch: Any = importlib.import_module("torch")  # and not this module, which has the name too
distributed: Any = importlib.import_module("torch.distributed")

__all__ = ["TorchCommunicator", "communicator", "run"]

__dir__ = __all__.copy

_SMALL = 1 << 15
"""Bytes up to which a buffer is gathered whole and reduced by every worker."""

_LONGEST = 1 << 40
"""Bytes that no message has: a sender that announces more is given up."""

_LEFT, _ABORTED, _EXCLUDED = -1, -2, -3
"""Announced instead of the length of a message: its sender has left, has aborted the job, or excludes a worker."""


class TorchCommunicator(InOrder):
    """The communicator of a process of ``torch.distributed``; see `oxigrad.distributed.communicator.Communicator`.

    Args:
        timeout: seconds that a wait takes at most.
        group: the processes that take part; by default all. All of them make a communicator at the same time.

    Raises `CommunicationError` where ``torch.distributed`` is not initialized, `TimedOut` where a process does not make its own, and
    `Refused` on all processes where they run other versions of the package.
    """

    def __init__(self, timeout: float = TIMEOUT, group: Any = None) -> None:
        if not distributed.is_initialized():
            raise CommunicationError("torch.distributed is not initialized: call init_process_group first")
        self._world = distributed.get_process_group_ranks(group or distributed.group.WORLD)
        limit = datetime.timedelta(seconds=max(timeout, 1.0) * 2 + 3600)  # waits end by the time-outs of this class
        self._group, self._messages = _made_in_time(
            lambda: [distributed.new_group(self._world, timeout=limit, backend="gloo") for _ in range(2)], timeout
        )
        self.rank, self.size = self._world.index(distributed.get_rank()), len(self._world)
        self.generation, self.timeout = 0, timeout
        self.bytes_sent = 0
        self.refused, self.trainings = Refusals(), Trainings()
        self._calls = 0
        self._failure: CommunicationError | None = None
        self._changed = threading.Condition()
        self._dead: set[int] = set()
        self._excluded: set[int] = set()
        self._left: dict[int, int] = {}
        self._reason: str | None = None
        self._mail: dict[int, deque[tuple[bytes, np.ndarray]]] = {}
        self._sent: Counter[int] = Counter()
        self._sending = [threading.Lock() for _ in range(self.size)]
        self.job = bytes(16)
        job = np.frombuffer(secrets.token_bytes(16), np.uint8).copy()
        self.broadcast([job])
        self.job = job.tobytes()
        check_versions(np.concatenate(self.all_gather_v(version())))
        self.bytes_sent = 0
        self._guard = Guard(self.job, 0, self.size)
        others = [rank for rank in range(self.size) if rank != self.rank]
        self._outboxes: dict[int, queue.SimpleQueue[Any]] = {rank: queue.SimpleQueue() for rank in others}
        #: The threads that send to each other worker, and receive from it.
        self._threads = {
            rank: [threading.Thread(target=f, args=(rank,), daemon=True) for f in (self._deliver_to, self._listen)]
            for rank in others
        }
        for thread in itertools.chain.from_iterable(self._threads.values()):
            thread.start()
        atexit.register(self.close)

    # --- operations on all workers -------------------------------------------------------------------------------------

    def all_reduce(
        self, bufs: Sequence[Buffer], *, op: Op = "mean", deterministic: bool = True, timeout: float | None = None
    ) -> None:
        """See `Communicator.all_reduce`. After an error, the content of the buffers is undefined."""
        if op not in ("sum", "mean", "max"):
            raise ValueError(f"op is {op!r}: expected 'sum', 'mean' or 'max'")
        self._agree("all_reduce", bufs, f"{op} {deterministic}", timeout)
        for buffer in bufs if self.size > 1 else ():
            self.bytes_sent += buffer.nbytes
            if deterministic or buffer.dtype.kind not in "iuf" or buffer.itemsize not in (4, 8):
                self._reduce_in_order(buffer, op, timeout)
                continue
            kind = distributed.ReduceOp.MAX if op == "max" else distributed.ReduceOp.SUM
            tensor = torch.from_numpy(buffer)
            self._wait("all_reduce", timeout, [distributed.all_reduce(tensor, kind, self._group, async_op=True)])
            if op == "mean":
                np.divide(buffer, self.size, out=buffer)

    def _reduce_in_order(self, buffer: Buffer, op: Op, timeout: float | None) -> None:
        size, raw = self.size, as_bytes(buffer)
        if raw.nbytes <= _SMALL:
            rows = np.empty(size * raw.nbytes, np.uint8)
            self._gather(raw, rows, "all_reduce", timeout)
            reduce_in_order(list(rows.view(buffer.dtype).reshape(size, -1)), op, buffer)
            return
        # Each worker reduces one part of the buffer, in the order of ranks, and sends it to the others.
        ends = [buffer.size * rank // size * buffer.itemsize for rank in range(size + 1)]
        counts = [end - start for start, end in itertools.pairwise(ends)]
        mine = counts[self.rank]
        rows = np.empty(size * mine, np.uint8)
        work = distributed.all_to_all_single(
            torch.from_numpy(rows), torch.from_numpy(raw), [mine] * size, counts, self._group, async_op=True
        )
        self._wait("all_reduce", timeout, [work])
        parts = list(rows.view(buffer.dtype).reshape(size, -1))
        own = buffer[ends[self.rank] // buffer.itemsize : ends[self.rank + 1] // buffer.itemsize]
        reduce_in_order(parts, op, own)
        works = (
            distributed.broadcast(
                torch.from_numpy(raw[ends[rank] : ends[rank + 1]]), self._world[rank], self._group, async_op=True
            )
            for rank in range(size)
        )
        self._wait("all_reduce", timeout, works)

    def broadcast(self, bufs: Sequence[Buffer], root: int = 0, *, timeout: float | None = None) -> None:
        """See `Communicator.broadcast`."""
        if not 0 <= root < self.size:
            raise ValueError(f"root is {root}: expected 0 to {self.size - 1}")
        self._agree("broadcast", bufs, str(root), timeout)
        works = (
            distributed.broadcast(torch.from_numpy(as_bytes(buffer)), self._world[root], self._group, async_op=True)
            for buffer in bufs
        )
        self._wait("broadcast", timeout, works)
        self.bytes_sent += sum(buffer.nbytes for buffer in bufs) if root == self.rank else 0

    def all_gather_v(self, buf: Buffer, *, timeout: float | None = None) -> list[Buffer]:
        """See `Communicator.all_gather_v`."""
        lengths = self._agree("all_gather_v", [buf], buf.dtype.str, timeout, any_length=True)
        found = [np.empty(length // buf.itemsize, buf.dtype) for length in lengths]
        found[self.rank][...] = buf
        works = (
            distributed.broadcast(torch.from_numpy(as_bytes(part)), self._world[rank], self._group, async_op=True)
            for rank, part in enumerate(found)
            if part.nbytes
        )
        self._wait("all_gather_v", timeout, works)
        self.bytes_sent += buf.nbytes
        return found

    def _agree(
        self, kind: str, bufs: Sequence[Buffer], detail: str, timeout: float | None, *, any_length: bool = False
    ) -> list[int]:
        """Checks that all workers call the same operation on buffers of the same layout; returns their bytes by rank."""
        self._await_turn()
        if self._failure is not None:
            raise self._failure
        self._calls += 1
        envelope = Envelope(self._calls, kind, bufs, detail, any_length=any_length)
        rows = np.empty(self.size * BYTES, np.uint8)
        self._gather(envelope.packed(), rows, kind, timeout)
        return envelope.check(rows)

    def _gather(self, own: np.ndarray, rows: np.ndarray, what: str, timeout: float | None) -> None:
        with self._failures(what):
            work = distributed.all_gather_into_tensor(
                torch.from_numpy(rows), torch.from_numpy(own), self._group, async_op=True
            )
        self._wait(what, timeout, [work])

    def _wait(self, what: str, timeout: float | None, works: Iterable[Any]) -> None:
        """Waits for operations that have been started, or that this starts."""
        seconds = self.timeout if timeout is None else timeout
        wait = Backoff(seconds)
        with self._failures(what):
            for work in list(works):
                while not work.is_completed():
                    self._check(what)
                    if wait.is_over():
                        self._failure = TimedOut(
                            f"{what} took more than {seconds:g} s: a worker is stopped, slow, or has not called it; this "
                            "communicator cannot be used further"
                        )
                        raise self._failure
                    wait.pause()
                work.wait()

    @contextlib.contextmanager
    def _failures(self, what: str) -> Any:
        """A context in which the errors of gloo are raised as those of communication."""
        try:
            yield
        except CommunicationError:
            raise
        except RuntimeError as error:  # gloo: a connection is closed
            with self._changed:
                self._changed.wait_for(lambda: self._dead or self._left, 1.0)
            self._check(what)
            self._failure = WorkerLost(self._gone(), what)
            raise self._failure from error

    def _check(self, what: str) -> None:
        """Raises an error where the job is aborted, or a worker takes no part in the present operation."""
        if self._reason is not None:
            raise Aborted(self._reason)
        self._check_fence()
        left = {rank for rank, calls in list(self._left.items()) if calls < self._calls}
        if lost := left | self._dead | self._excluded:
            self._failure = WorkerLost(lost, what)
            raise self._failure

    # --- messages ------------------------------------------------------------------------------------------------------

    def send(self, dest: int, head: Header, bufs: Sequence[Buffer]) -> None:
        """See `Communicator.send`."""
        if not 0 <= dest < self.size:
            raise ValueError(f"the rank is {dest}: expected 0 to {self.size - 1}")
        with self._sending[dest]:
            data = np.empty(HEADER_BYTES + size_of(bufs), np.uint8)
            found = copied(bufs, data[HEADER_BYTES:])
            identity = {"job": self.job, "generation": self.generation, "rank": self.rank, "sequence": self._sent[dest]}
            head = head.sealed(bufs, **identity, payload_checksum=found)
            data[:HEADER_BYTES] = np.frombuffer(head.pack(), np.uint8)
            self._sent[dest] += 1
            self._post(dest, data)
        self.bytes_sent += head.payload_bytes

    def _post(self, dest: int, data: np.ndarray) -> None:
        if dest not in self.alive():
            raise WorkerLost([dest], "send")
        if dest == self.rank:
            self._deliver(data)
            return
        self._outboxes[dest].put([torch.tensor([len(data), self._calls]), torch.from_numpy(data)])

    def _announce(self, dest: int, notice: int, detail: int | None = None) -> None:
        self._outboxes[dest].put([torch.tensor([notice, self._calls if detail is None else detail])])

    def _deliver_to(self, dest: int) -> None:
        """Sends what is in the outbox of a worker, one after the other: gloo waits until it is received, also by a stopped process."""
        try:
            while (message := self._outboxes[dest].get()) is not None:
                for tensor in message:
                    distributed.send(tensor, self._world[dest], self._messages)
        except RuntimeError:  # the connection is closed
            with self._changed:
                self._dead.add(dest)
                self._changed.notify_all()

    def _listen(self, source: int) -> None:
        """Receives the messages of one worker, until it leaves or dies."""
        length = torch.empty(2, dtype=torch.int64)
        try:
            while True:
                distributed.recv(length, self._world[source], self._messages)
                count, calls = length.tolist()
                if count == _EXCLUDED:
                    self._note_excluded(calls)
                    continue
                if not HEADER_BYTES <= count < _LONGEST:
                    break
                data = np.empty(count, np.uint8)
                distributed.recv(torch.from_numpy(data), self._world[source], self._messages)
                self._deliver(data)
            with self._changed:
                if count == _ABORTED:
                    self._reason = f"rank {source} aborted the job"
                self._left[source] = calls if count == _LEFT else 0
                self._changed.notify_all()
        except RuntimeError:  # the connection is closed
            with self._changed:
                self._dead.add(source)
                self._changed.notify_all()

    def _deliver(self, data: np.ndarray) -> None:
        with self._changed:
            tag = int.from_bytes(data[6:8].tobytes(), "little")
            self._mail.setdefault(tag, deque()).append((data[:HEADER_BYTES].tobytes(), data[HEADER_BYTES:]))
            self._changed.notify_all()

    def recv_any(
        self, bufs: Memory, *, tag: int, source: int | None = None, timeout: float | None = None
    ) -> Header | None:
        """See `Communicator.recv_any`."""
        end = time.monotonic() + (self.timeout if timeout is None else timeout)
        while (found := self._take(tag, source, end)) is not None:
            try:
                header = Header.unpack(found[0])
                self._guard.check(header)
                self._guard.check(header, [found[1]])
                scatter([found[1]], bufs(header) if callable(bufs) else bufs)
                return header
            except Refused as error:
                self.refused.add(error)
        return None

    def _take(self, tag: int, source: int | None, end: float) -> tuple[bytes, np.ndarray] | None:
        """The next message in the mailbox; None after the time ``end``."""
        found: list[tuple[bytes, np.ndarray]] = []

        def is_over() -> bool:
            waiting = self._mail.setdefault(tag, deque())
            for at, message in enumerate(waiting):
                if source is None or int.from_bytes(message[0][28:32], "little") == source:
                    found.append(message)
                    del waiting[at]
                    return True
            is_over = self._reason is not None or self.rank in self._excluded
            return is_over or (source is not None and source in self._gone())

        with self._changed:
            self._changed.wait_for(is_over, max(0.0, end - time.monotonic()))
            self._check_fence()
            if found:
                return found[0]
            if self._reason is not None:
                raise Aborted(self._reason)
            if source is not None and source in self._gone():
                raise WorkerLost([source], "recv_any")
            return None

    # --- membership ----------------------------------------------------------------------------------------------------

    def _gone(self) -> set[int]:
        return {*self._dead, *self._left, *self._excluded}

    def alive(self) -> frozenset[int]:
        """See `Communicator.alive`."""
        self._check_fence()
        return frozenset(range(self.size)) - self._gone()

    @property
    def has_excluded(self) -> bool:
        """Whether a worker, which may be this one, was excluded."""
        return bool(self._excluded)

    def _check_fence(self) -> None:
        if self.rank in self._excluded:
            raise Excluded(self.rank, self.generation)

    def exclude(self, rank: int) -> None:
        """See `Communicator.exclude`."""
        self._check_fence()
        if rank in self._gone():
            return
        self._note_excluded(rank)
        for dest in set(range(self.size)) - self._dead - set(self._left) - {self.rank}:
            with self._sending[dest]:
                self._announce(dest, _EXCLUDED, rank)

    def _note_excluded(self, rank: int) -> None:
        with self._changed:
            self._excluded.add(rank)
            self._changed.notify_all()

    def reform(self, *, timeout: float | None = None) -> NoReturn:
        """Raises `NotSupported`: a group of torch cannot change its members."""
        raise NotSupported(
            "torch.distributed cannot continue without a lost worker: restart the job from its checkpoint"
        )

    def leave(self) -> None:
        """See `Communicator.leave`."""
        self._tell_all(_LEFT)

    def close(self) -> None:
        """Leaves, and waits until all other workers have left or died, which groups of gloo have to before they are destroyed.

        It is called at the end of the program; call it before ``destroy_process_group``.
        """
        self.leave()
        wait, brief = Backoff(self.timeout), Backoff(min(self.timeout, _PATIENCE))
        for rank, threads in self._threads.items():
            is_excluded = not self._excluded.isdisjoint((rank, self.rank))
            for thread in threads:
                # One that returns from gloo while the interpreter ends would abort the process.
                thread.join((brief if is_excluded else wait).remaining())

    def abort(self, reason: str) -> NoReturn:
        """See `Communicator.abort`. The other workers are told that the job ends, but not the reason."""
        self._reason = reason
        self._tell_all(_ABORTED)
        raise Aborted(reason)

    def _tell_all(self, notice: int) -> None:
        if self.rank not in self._left:
            for dest in set(range(self.size)) - self._dead - {self.rank}:  # excluded ones too, which may go on again
                with self._sending[dest]:
                    self._announce(dest, notice)
                    self._outboxes[dest].put(None)
            self._left[self.rank] = self._calls


def _made_in_time(make: Callable[[], list[Any]], seconds: float) -> list[Any]:
    """Groups that all processes make. Raises `TimedOut` where another one does not, for which torch waits as long as for any operation."""
    found: list[Any] = []
    failure: list[BaseException] = []

    def target() -> None:
        try:
            found.extend(make())
        except BaseException as error:  # noqa: BLE001 - raised below
            failure.append(error)

    thread = threading.Thread(target=target, name="groups", daemon=True)
    thread.start()
    thread.join(seconds)
    if failure:
        raise failure[0]
    if thread.is_alive():
        raise TimedOut(
            f"the communicator is not made within {seconds:g} s: a worker has ended before, or does not make its own"
        )
    return found


_PATIENCE = 5.0
"""Seconds for which the end of a program waits for a worker that was excluded, which may be stopped for ever."""

_made: list[TorchCommunicator] = []


def communicator(*, timeout: float = TIMEOUT, group: Any = None) -> TorchCommunicator:
    """The communicator of this process; the same one at each call. See `TorchCommunicator`."""
    if not _made:
        _made.append(TorchCommunicator(timeout, group))
    return _made[0]


def run(
    worker: Callable[[Communicator], Any], workers: int | None = None, *, timeout: float = TIMEOUT, **options: Any
) -> list[Any]:
    """Runs ``worker(communicator)`` in this process. See `oxigrad.distributed.run`.

    Without a group, one of gloo is initialized from the environment, as torchrun sets it. The list returned has this worker's result at
    its rank, and None at the others.
    """
    starts = not distributed.is_initialized()
    if starts:
        distributed.init_process_group("gloo", timeout=datetime.timedelta(seconds=timeout))
    made = communicator(timeout=timeout, **options)
    if workers not in (None, made.size):
        raise ValueError(f"workers is {workers}, but the group has {made.size}: expected the number of processes")
    try:
        with serving(made):
            result = worker(made)
            last = current()
    finally:
        made.leave()
    results = [None] * last.size
    results[last.rank] = result
    if starts:
        made.close()
        _made.clear()
        if not made.has_excluded:  # a group with a stopped process cannot be destroyed
            distributed.destroy_process_group()
    return results
