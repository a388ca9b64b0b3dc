"""The engine of threads: the workers of a job are threads of this process. It needs nothing installed and opens no socket."""

import contextlib
import copy
import secrets
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

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
from oxigrad.distributed.errors import Aborted, CommunicationError, Excluded, Refused, TimedOut, WorkerLost
from oxigrad.distributed.message import Guard, Header, scatter
from oxigrad.distributed.refusals import Refusals

__all__ = ["ThreadCommunicator", "ThreadJob", "run"]

__dir__ = __all__.copy


# Bytes up to which all workers reduce copies of all buffers; each reduces a slice of larger ones.
_SMALL = 1 << 15
# Seconds between two looks at the threads.
_POLL = 0.5


class Killed(BaseException):
    """Ends the thread of a worker that was killed; user code that catches `Exception` does not catch it."""


class _Round:
    """One collective operation: what each worker contributes, and how far it is."""

    def __init__(self, kind: tuple[Any, ...]) -> None:
        self.kind = kind
        self.given: dict[int, Any] = {}
        self.result: list[Buffer] = []
        self.reduced: set[int] = set()
        self.ended: set[int] = set()
        self.failure: CommunicationError | None = None


class _Joiner:
    """A worker that waits to be admitted to the next generation."""

    def __init__(self) -> None:
        self.place: tuple[_Group, int] | None = None


class _Group:
    """The state that the workers of one generation share; all of it is guarded by ``changed``."""

    def __init__(self, job: bytes, size: int, generation: int, changed: threading.Condition) -> None:
        self.job, self.size, self.generation, self.changed = job, size, generation, changed
        self.gone: set[int] = set()
        self.broken: set[int] = set()  # as ``gone``, with those that were restarted: no collective operation completes
        self.killed: set[tuple[int, int]] = set()
        self.excluded: set[tuple[int, int]] = set()
        #: The thread of each worker, and those of workers that were excluded from this generation or a former one.
        self.threads: dict[tuple[int, int], threading.Thread] = {}
        self.hung: set[threading.Thread] = set()
        self.incarnations = [0] * size
        self.failure: str | None = None
        self.mail: list[dict[int, deque[tuple[bytes, list[Buffer]]]]] = [{} for _ in range(size)]
        self.rounds: dict[int, _Round] = {}
        self.reforming: set[int] = set()
        self.joiners: list[_Joiner] = []
        self.next: tuple[_Group, dict[int, int]] | None = None

    def wait(self, who: tuple[int, int], is_done: Callable[[], bool], timeout: float, what: str) -> None:
        """Waits until ``is_done()``; raises `TimedOut` after ``timeout`` seconds, and where this worker or the job has ended."""
        end = time.monotonic() + timeout
        while True:
            self.check(who)
            if is_done():
                return
            if (left := end - time.monotonic()) <= 0:
                raise TimedOut(f"{what} of the worker of rank {who[0]} took longer than {timeout:g} s")
            self.changed.wait(left)

    def check(self, who: tuple[int, int]) -> None:
        """Ends a worker, given by rank and incarnation, that was killed or excluded, or whose job was aborted."""
        if who in self.killed:
            raise Killed
        if who in self.excluded:
            raise Excluded(who[0], self.generation)
        if self.failure is not None:
            raise Aborted(self.failure)

    def alive(self) -> frozenset[int]:
        """The ranks of the workers that have neither died nor left."""
        return frozenset(range(self.size)) - self.gone

    def lose(self, who: tuple[int, int]) -> None:
        """Notes that a worker has died or left."""
        rank, incarnation = who
        if incarnation != self.incarnations[rank]:
            return
        self.gone.add(rank)
        self.broken.add(rank)
        self.mail[rank].clear()
        self.advance()
        self.changed.notify_all()

    def place_after(self, rank: int) -> "tuple[_Group, int]":
        """The next generation, and the rank in it of a survivor."""
        if self.next is None:
            raise RuntimeError("the next generation is not formed yet")
        following, ranks = self.next
        return following, ranks[rank]

    def advance(self) -> None:
        """Forms the next generation if all survivors have called ``reform``."""
        alive = sorted(self.alive())
        if self.next is not None or not alive or not self.reforming >= set(alive):
            return
        following = _Group(self.job, len(alive) + len(self.joiners), self.generation + 1, self.changed)
        following.hung = self.hung
        self.next = following, {old: new for new, old in enumerate(alive)}
        for number, joiner in enumerate(self.joiners, len(alive)):
            joiner.place = following, number
        self.changed.notify_all()


class ThreadCommunicator(InOrder):
    """The communicator of a worker that is a thread: see `Communicator`."""

    def __init__(self, group: _Group, rank: int, timeout: float) -> None:
        self._group, self.rank, self.timeout = group, rank, timeout
        self.size, self.generation, self.job = group.size, group.generation, group.job
        self.bytes_sent = 0
        self.refused = Refusals()
        self._guard = Guard(group.job, group.generation, group.size)
        self._who = rank, group.incarnations[rank]
        self.trainings = Trainings(is_known=group.generation == group.incarnations[rank] == 0)
        self._seen = list(group.incarnations)
        self._rounds = 0
        self._sent: Counter[int] = Counter()
        self._sending = threading.Lock()

    # --- operations on all workers -------------------------------------------------------------------------------------

    def all_reduce(
        self, bufs: Sequence[Buffer], *, op: Op = "mean", deterministic: bool = True, timeout: float | None = None
    ) -> None:
        """See `Communicator.all_reduce`."""
        kind = ("all_reduce", op, *((buffer.dtype, buffer.size) for buffer in bufs))
        size = sum(buffer.nbytes for buffer in bufs)
        is_small = size <= _SMALL
        with self._round(kind, [b.copy() for b in bufs] if is_small else list(bufs), timeout) as (given, entered):
            if is_small:
                for at, buffer in enumerate(bufs):
                    reduce_in_order([given[rank][at] for rank in range(self.size)], op, buffer)
            else:
                for target, source in zip(bufs, self._reduced(entered, given, op, timeout), strict=True):
                    np.copyto(target, source)
        self._count(size)

    def _reduced(self, entered: _Round, given: dict[int, list[Buffer]], op: Op, timeout: float | None) -> list[Buffer]:
        """The reduced buffers, of which each worker computes a slice."""
        with self._group.changed:
            if not entered.result:
                entered.result = [np.empty_like(buffer) for buffer in given[0]]
        for at, result in enumerate(entered.result):
            ends = [result.size * rank // self.size for rank in (self.rank, self.rank + 1)]
            part = slice(*ends)
            reduce_in_order([given[rank][at][part] for rank in range(self.size)], op, result[part])
        with self._group.changed:
            entered.reduced.add(self.rank)
            self._group.changed.notify_all()
            self._wait_for(entered, lambda: len(entered.reduced) == self.size, timeout)
        return entered.result

    def broadcast(self, bufs: Sequence[Buffer], root: int = 0, *, timeout: float | None = None) -> None:
        """See `Communicator.broadcast`."""
        self._check_rank(root)
        kind = ("broadcast", root, *((buffer.dtype, buffer.size) for buffer in bufs))
        own = [buffer.copy() for buffer in bufs] if self.rank == root else []
        with self._round(kind, own, timeout) as (given, _):
            for target, source in zip(bufs, given[root], strict=True):
                np.copyto(target, source)
        self._count(sum(buffer.nbytes for buffer in own))

    def all_gather_v(self, buf: Buffer, *, timeout: float | None = None) -> list[Buffer]:
        """See `Communicator.all_gather_v`."""
        with self._round(("all_gather_v", buf.dtype), buf.copy(), timeout) as (given, _):
            found = [given[rank] for rank in range(self.size)]
        for buffer in found:
            buffer.flags.writeable = False
        self._count(buf.nbytes)
        return found

    def _count(self, nbytes: int) -> None:
        with self._sending:
            self.bytes_sent += nbytes

    @contextlib.contextmanager
    def _round(self, kind: tuple[Any, ...], own: Any, timeout: float | None) -> Iterator[tuple[dict[int, Any], _Round]]:
        """A context in which all workers have given their contribution to the next collective operation."""
        self._await_turn()
        group, number = self._group, self._rounds
        with group.changed:
            group.check(self._who)
            if group.next is not None:
                raise WorkerLost((), kind[0])
            self._rounds += 1
            entered = group.rounds.setdefault(number, _Round(kind))
            if entered.kind != kind:
                entered.failure = Refused("collective", f"workers called {entered.kind} and {kind} at the same time")
            entered.given[self.rank] = own
            group.changed.notify_all()
            self._wait_for(entered, lambda: len(entered.given) == self.size, timeout)
        yield entered.given, entered
        with group.changed:
            entered.ended.add(self.rank)
            if len(entered.ended) == self.size:
                del group.rounds[number]

    def _wait_for(self, entered: _Round, is_done: Callable[[], bool], timeout: float | None) -> None:
        """Waits for the other workers in a collective operation, which fails for all of them or for none."""
        group, what = self._group, entered.kind[0]

        def is_decided() -> bool:
            return bool(entered.failure or group.broken or group.reforming) or is_done()

        try:
            group.wait(self._who, is_decided, self.timeout if timeout is None else timeout, what)
        except TimedOut as error:
            entered.failure = error
            group.changed.notify_all()
            raise
        if entered.failure:
            raise copy.copy(entered.failure)  # so that each thread has its own traceback
        if not is_done():
            raise WorkerLost(group.broken, what)

    # --- messages ------------------------------------------------------------------------------------------------------

    def send(self, dest: int, head: Header, bufs: Sequence[Buffer]) -> None:
        """See `Communicator.send`."""
        self._check_rank(dest)
        own = [buffer.copy() for buffer in bufs]
        with self._sending:  # messages arrive in the order of their sequence numbers
            sealed = head.sealed(
                own, job=self.job, generation=self.generation, rank=self.rank, sequence=self._sent[dest]
            )
            self._sent[dest] += 1
            self.deliver(dest, sealed.pack(), own)
            self.bytes_sent += sealed.payload_bytes

    def deliver(self, dest: int, header: bytes, bufs: list[Buffer]) -> None:
        """Puts a message of any bytes into the mailbox of a worker. For tests of what receivers refuse."""
        group = self._group
        with group.changed:
            group.check(self._who)
            if dest in group.gone or group.next is not None:
                raise WorkerLost(group.gone & {dest}, "send")
            tag = int.from_bytes(header[6:8], "little")
            group.mail[dest].setdefault(tag, deque()).append((header, bufs))
            group.changed.notify_all()

    def recv_any(
        self, bufs: Memory, *, tag: int, source: int | None = None, timeout: float | None = None
    ) -> Header | None:
        """See `Communicator.recv_any`."""
        end = time.monotonic() + (self.timeout if timeout is None else timeout)
        while (taken := self._take(tag, source, end)) is not None:
            try:
                return self._received(*taken, bufs)
            except Refused as error:
                self.refused.add(error)
        return None

    def _take(self, tag: int, source: int | None, end: float) -> tuple[bytes, list[Buffer]] | None:
        """The next message in the mailbox; None after the time ``end``."""
        group, found = self._group, None

        def is_found() -> bool:
            nonlocal found
            waiting = group.mail[self.rank].setdefault(tag, deque())
            for at, message in enumerate(waiting):
                if source is None or int.from_bytes(message[0][28:32], "little") == source:
                    found = message
                    del waiting[at]
                    return True
            return source in group.gone or bool(group.reforming)

        with group.changed:
            try:
                group.wait(self._who, is_found, end - time.monotonic(), "recv_any")
            except TimedOut:
                return None
            for rank, incarnation in enumerate(group.incarnations):
                if self._seen[rank] != incarnation:
                    self._seen[rank] = incarnation
                    self._guard.forget(rank)
        if found is None:
            raise WorkerLost({source} if source in self._group.gone else self._group.gone, "recv_any")
        return found

    def _received(self, data: bytes, payload: list[Buffer], bufs: Memory) -> Header:
        header = Header.unpack(data)
        self._guard.check(header)
        self._guard.check(header, payload)
        scatter(payload, bufs(header) if callable(bufs) else bufs)
        return header

    def _check_rank(self, rank: int) -> None:
        if not 0 <= rank < self.size:
            raise ValueError(f"the rank is {rank}: expected 0 to {self.size - 1}")

    # --- membership ----------------------------------------------------------------------------------------------------

    def alive(self) -> frozenset[int]:
        """See `Communicator.alive`."""
        with self._group.changed:
            self._group.check(self._who)
            return self._group.alive()

    def is_of(self, thread: threading.Thread) -> None:
        """Notes the thread of the worker."""
        with self._group.changed:
            self._group.threads[self._who] = thread

    def exclude(self, rank: int) -> None:
        """See `Communicator.exclude`."""
        self._check_rank(rank)
        group = self._group
        with group.changed:
            group.check(self._who)
            who = rank, group.incarnations[rank]
            if rank not in group.gone:
                group.excluded.add(who)
                group.hung.add(group.threads[who])
                group.lose(who)

    def reform(self, *, timeout: float | None = None) -> "ThreadCommunicator":
        """See `Communicator.reform`."""
        group = self._group
        with group.changed:
            group.check(self._who)
            group.reforming.add(self.rank)
            group.changed.notify_all()  # those that wait for a message of this worker end their wait
            group.advance()
            seconds = self.timeout if timeout is None else timeout
            group.wait(self._who, lambda: group.next is not None, seconds, "reform")
            made = type(self)(*group.place_after(self.rank), self.timeout)
            made.is_of(group.threads[self._who])
        succeed(self, made)
        return made

    def leave(self) -> None:
        """See `Communicator.leave`."""
        with self._group.changed:
            self._group.lose(self._who)

    def abort(self, reason: str) -> NoReturn:
        """See `Communicator.abort`."""
        with self._group.changed:
            self._group.failure = reason
            self._group.changed.notify_all()
        raise Aborted(reason)


class ThreadJob:
    """Workers as threads of this process, which can be killed, restarted and joined by others, as tests of faults need.

    Args:
        worker: called in each thread with its communicator.
        workers: the number of threads at the start.
        timeout: seconds that a wait of a worker takes at most.

    >>> job = ThreadJob(lambda comm: comm.rank * 10, 3)
    >>> job.wait()
    [0, 10, 20]

    The threads start in `start` or `wait`.
    """

    def __init__(self, worker: Callable[[Communicator], Any], workers: int, timeout: float = TIMEOUT) -> None:
        if workers < 1:
            raise ValueError(f"workers is {workers}: expected at least 1")
        self._worker, self._timeout = worker, timeout
        self._changed = threading.Condition()
        self._group = _Group(secrets.token_bytes(16), workers, 0, self._changed)
        self._hung = self._group.hung
        self._threads: list[threading.Thread] = []
        self._ends: list[tuple[Any, BaseException | None]] = []

    def start(self) -> None:
        """Starts the threads; `wait` does so as well."""
        if self._threads:
            return
        communicators = [ThreadCommunicator(self._group, rank, self._timeout) for rank in range(self._group.size)]
        for thread in [self._enter(self._worker, lambda made=made: made) for made in communicators]:
            thread.start()

    def _enter(
        self, worker: Callable[[Communicator], Any], admitted: Callable[[], ThreadCommunicator]
    ) -> threading.Thread:
        """A thread that is not started yet, in the order of which results are returned."""
        number = len(self._ends)
        self._ends.append((None, None))
        thread = threading.Thread(target=self._main, args=(number, worker, admitted), name=f"worker-{number}")
        thread.daemon = True  # a worker that hangs in the user's code does not keep the process
        self._threads.append(thread)
        return thread

    def _main(
        self, number: int, worker: Callable[[Communicator], Any], admitted: Callable[[], ThreadCommunicator]
    ) -> None:
        last = None
        try:
            with serving(made := admitted()):
                made.is_of(threading.current_thread())
                try:
                    self._ends[number] = worker(current()), None
                finally:
                    last = current()
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001 - it is raised by `wait`
            rank = getattr(last, "rank", number)
            error.add_note(f"raised by the worker of rank {rank}")
            self._ends[number] = None, error
        finally:
            if isinstance(last, ThreadCommunicator):
                last.leave()

    def _latest(self) -> _Group:
        while self._group.next is not None:
            self._group = self._group.next[0]
        return self._group

    def kill(self, rank: int) -> None:
        """Kills the worker of a rank of the latest generation: its thread ends at its next call of the communicator."""
        with self._changed:
            group = self._latest()
            who = rank, group.incarnations[rank]
            group.killed.add(who)
            group.lose(who)

    def restart(self, rank: int, worker: Callable[[Communicator], Any] | None = None) -> None:
        """Starts another worker with the rank of one that has died or left, in the same generation.

        It exchanges messages; collective operations raise `WorkerLost` until `Communicator.reform`.
        """
        with self._changed:
            group = self._latest()
            if rank not in group.gone:
                raise ValueError(f"the worker of rank {rank} is alive: expected one that has died or left")
            group.incarnations[rank] += 1
            group.gone.discard(rank)
            communicator = ThreadCommunicator(group, rank, self._timeout)
        self._enter(worker or self._worker, lambda: communicator).start()

    def join(self, worker: Callable[[Communicator], Any] | None = None) -> None:
        """Starts a further worker, which is admitted when the present ones next call `Communicator.reform`."""
        self.start()  # which does nothing once there is a thread
        joiner = _Joiner()
        with self._changed:
            group = self._latest()
            group.joiners.append(joiner)

        def admitted() -> ThreadCommunicator:
            with self._changed:
                while joiner.place is None:
                    self._check_admission(group)
                    self._changed.wait(self._timeout)
            return ThreadCommunicator(*joiner.place, self._timeout)

        self._enter(worker or self._worker, admitted).start()

    @staticmethod
    def _check_admission(group: _Group) -> None:
        if group.failure is not None or not group.alive():
            raise Aborted("the job ended before the worker was admitted")

    def wait(self, timeout: float | None = None) -> list[Any]:
        """Waits until all workers have ended; returns what they returned, in the order of their start, None for killed ones.

        Raises the error of the first worker that raised one, and `TimedOut` after ``timeout`` seconds. An interrupt aborts the job. A
        worker that the others have excluded counts as killed, and is not waited for.
        """
        end = None if timeout is None else time.monotonic() + timeout
        try:
            self.start()
            while running := [thread for thread in self._threads if thread.is_alive() and thread not in self._hung]:
                left = _POLL if end is None else end - time.monotonic()
                if left <= 0:
                    raise TimedOut(f"{running[0].name} did not end within {timeout:g} s")
                running[0].join(min(left, _POLL))
        except BaseException:
            with self._changed:
                self._latest().failure = "the job was interrupted"
                self._changed.notify_all()
            raise
        errors = [error for _, error in self._ends if not (error is None or isinstance(error, Excluded))]
        causes = [error for error in errors if not isinstance(error, CommunicationError)]
        for error in (causes or errors)[:1]:
            raise error
        return [result for result, _ in self._ends]


def run(worker: Callable[[Communicator], Any], workers: int = 4, *, timeout: float = TIMEOUT) -> list[Any]:
    """Runs ``worker(communicator)`` in threads; returns the results by rank. See `oxigrad.distributed.run`."""
    return ThreadJob(worker, workers, timeout).wait()
