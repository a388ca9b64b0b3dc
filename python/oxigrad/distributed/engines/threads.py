"""The engine of threads: the workers of a job are threads of this process. It needs nothing installed and opens no socket."""

import contextlib
import copy
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from oxigrad.distributed.communicator import (
    TIMEOUT,
    Buffer,
    Communicator,
    Op,
    current,
    reduce_in_order,
    serving,
    succeed,
)
from oxigrad.distributed.decisions.training import Trainings
from oxigrad.distributed.engines.backoff import Backoff
from oxigrad.distributed.engines.base import Arrival, EngineCommunicator, Place
from oxigrad.distributed.engines.mailbox import Mailbox
from oxigrad.distributed.errors import Aborted, CommunicationError, Excluded, Refused, TimedOut, WorkerLost
from oxigrad.distributed.messages.message import size_of

__all__ = ["ThreadCommunicator", "ThreadJob", "run"]

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
        self.contributed: dict[int, list[Buffer]] = {}
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
        self.mail = [Mailbox() for _ in range(size)]
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


class ThreadCommunicator(EngineCommunicator):
    """The communicator of a worker that is a thread: see `Communicator`."""

    def __init__(self, group: _Group, rank: int, timeout: float) -> None:
        self._group, self._who = group, (rank, group.incarnations[rank])
        is_first = group.generation == group.incarnations[rank] == 0
        place = Place(rank, group.size, group.generation)
        super().__init__(place, group.job, timeout, Trainings(is_known=is_first))
        self._incarnations = list(group.incarnations)
        self._rounds = 0

    # --- operations on all workers -------------------------------------------------------------------------------------

    def _all_reduce(self, bufs: Sequence[Buffer], op: Op, seconds: float, *, deterministic: bool) -> None:
        kind = ("all_reduce", op, *((buffer.dtype, buffer.size) for buffer in bufs))
        is_small = size_of(bufs) <= _SMALL
        with self._round(kind, [b.copy() for b in bufs] if is_small else list(bufs), seconds) as entered:
            if is_small:
                for at, buffer in enumerate(bufs):
                    reduce_in_order([entered.contributed[rank][at] for rank in range(self.size)], op, buffer)
            else:
                for target, source in zip(bufs, self._reduced(entered, op, seconds), strict=True):
                    np.copyto(target, source)

    def _reduced(self, entered: _Round, op: Op, seconds: float) -> list[Buffer]:
        """The reduced buffers, of which each worker computes a slice."""
        contributed = entered.contributed
        with self._group.changed:
            if not entered.result:
                entered.result = [np.empty_like(buffer) for buffer in contributed[0]]
        for at, result in enumerate(entered.result):
            part = slice(*(result.size * rank // self.size for rank in (self.rank, self.rank + 1)))
            reduce_in_order([contributed[rank][at][part] for rank in range(self.size)], op, result[part])
        with self._group.changed:
            entered.reduced.add(self.rank)
            self._group.changed.notify_all()
            self._wait_for(entered, lambda: len(entered.reduced) == self.size, seconds)
        return entered.result

    def _broadcast(self, bufs: Sequence[Buffer], root: int, seconds: float) -> None:
        kind = ("broadcast", root, *((buffer.dtype, buffer.size) for buffer in bufs))
        with self._round(kind, [b.copy() for b in bufs] if self.rank == root else [], seconds) as entered:
            for target, source in zip(bufs, entered.contributed[root], strict=True):
                np.copyto(target, source)

    def _all_gather_v(self, buf: Buffer, seconds: float) -> list[Buffer]:
        with self._round(("all_gather_v", buf.dtype), [buf.copy()], seconds) as entered:
            gathered = [entered.contributed[rank][0] for rank in range(self.size)]
        for buffer in gathered:
            buffer.flags.writeable = False
        return gathered

    @contextlib.contextmanager
    def _round(self, kind: tuple[Any, ...], contribution: list[Buffer], seconds: float) -> Iterator[_Round]:
        """A context in which all workers have contributed to the next collective operation."""
        group, number = self._group, self._rounds
        with group.changed:
            group.check(self._who)
            if group.next is not None:
                raise WorkerLost((), kind[0])
            self._rounds += 1
            entered = group.rounds.setdefault(number, _Round(kind))
            if entered.kind != kind:
                entered.failure = Refused("collective", f"workers called {entered.kind} and {kind} at the same time")
            entered.contributed[self.rank] = contribution
            group.changed.notify_all()
            self._wait_for(entered, lambda: len(entered.contributed) == self.size, seconds)
        yield entered
        with group.changed:
            entered.ended.add(self.rank)
            if len(entered.ended) == self.size:
                del group.rounds[number]

    def _wait_for(self, entered: _Round, is_done: Callable[[], bool], seconds: float) -> None:
        """Waits for the other workers in a collective operation, which fails for all of them or for none."""
        group, what = self._group, entered.kind[0]

        def is_decided() -> bool:
            return bool(entered.failure or group.broken or group.reforming) or is_done()

        try:
            group.wait(self._who, is_decided, seconds, what)
        except TimedOut as error:
            entered.failure = error
            group.changed.notify_all()
            raise
        if entered.failure:
            raise copy.copy(entered.failure)  # so that each thread has its own traceback
        if not is_done():
            raise WorkerLost(group.broken, what)

    # --- messages ------------------------------------------------------------------------------------------------------

    def _post(self, dest: int, message: np.ndarray) -> None:
        group = self._group
        with group.changed:
            group.check(self._who)
            if dest in group.gone or group.next is not None:
                raise WorkerLost(group.gone & {dest}, "send")
            group.mail[dest].put(message)
            group.changed.notify_all()

    def _poll(self, tag: int, source: int | None, wait: Backoff) -> Arrival | None:
        group, message = self._group, None

        def is_over() -> bool:
            nonlocal message
            message = group.mail[self.rank].take(tag, source)
            return message is not None or source in group.gone or bool(group.reforming)

        with group.changed:
            try:
                group.wait(self._who, is_over, wait.remaining(), "recv_any")
            except TimedOut:
                return None
            for rank, incarnation in enumerate(group.incarnations):
                if self._incarnations[rank] != incarnation:
                    self._incarnations[rank] = incarnation
                    self._guard.forget(rank)
        if message is None:
            raise WorkerLost({source} if source in group.gone else group.gone, "recv_any")
        return Arrival.of(message)

    # --- membership ----------------------------------------------------------------------------------------------------

    def alive(self) -> frozenset[int]:
        """See `Communicator.alive`."""
        with self._group.changed:
            self._group.check(self._who)
            return self._group.alive()

    def run_in(self, thread: threading.Thread) -> None:
        """Notes the thread of the worker."""
        with self._group.changed:
            self._group.threads[self._who] = thread

    def exclude(self, rank: int) -> None:
        """See `Communicator.exclude`."""
        self._check_rank(rank, "the rank")
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
            group.wait(self._who, lambda: group.next is not None, self._limit(timeout), "reform")
            following = type(self)(*group.place_after(self.rank), self.timeout)
            following.run_in(group.threads[self._who])
        succeed(self, following)
        return following

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
                made.run_in(threading.current_thread())
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
