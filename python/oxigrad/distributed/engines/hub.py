"""The state that workers share if one process keeps it: membership, mailboxes and collective operations.

Each call of a worker runs in a thread: that of the worker, or one of Ray's actor. Calls wait by one condition. They
return plain data and messages, and raise the errors of communication.
"""

import contextlib
import copy
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from oxigrad.distributed.communicator import Place
from oxigrad.distributed.decisions.training import check_exchange
from oxigrad.distributed.engines.mailbox import Mailbox, Message
from oxigrad.distributed.engines.peers import FORMS, LEFT, Peers
from oxigrad.distributed.errors import (
    Aborted,
    CommunicationError,
    Excluded,
    NotSupported,
    Refused,
    TimedOut,
    WorkerLost,
    log,
)
from oxigrad.distributed.messages.agreement import check_version
from oxigrad.distributed.messages.reduction import reduce_in_order


def check_accepts(job: str, *, accept_newcomers: bool) -> None:
    """Raises `NotSupported` where a job does not accept newcomers; otherwise one joins, which is logged."""
    if not accept_newcomers:
        raise NotSupported(f"{job} accepts no newcomers: expected accept_newcomers=True where it is started")
    log.info("a further worker joins %s", job)


def results_of_ends(ends: Iterable[tuple[Any, BaseException | None]]) -> list[Any]:
    """The results of workers, in the order of their start, by their results and errors.

    Raises the first error, but for one of a worker that others have excluded; rather none of communication.
    """
    ends = list(ends)
    errors = [error for _, error in ends if not (error is None or isinstance(error, Excluded))]
    causes = [error for error in errors if not isinstance(error, CommunicationError)]
    for error in (causes or errors)[:1]:
        raise error
    return [result for result, _ in ends]


class Round:
    """One collective operation: its kind, what each worker contributes, and how many have the result."""

    def __init__(self, kind: tuple[Any, ...]) -> None:
        self.kind = kind
        self.contributed: dict[int, list[np.ndarray]] = {}
        self.result: Any = None
        self.ended = 0
        self.failure: CommunicationError | None = None

    def by_rank(self) -> list[list[np.ndarray]]:
        """The contributions in the order of ranks."""
        return [*map(self.contributed.__getitem__, sorted(self.contributed))]


class Hub:
    """The shared state of the job ``job``.

    Members are named by ``uid``, a text that is new for each process, and by which it is known in every call. A new hub
    has no members: it forms a generation when all those that `supervise` names are `entering` or `reform`, which is
    also how a job goes on after its hub was lost.
    """

    def __init__(self, expected: Sequence[str], job: bytes, version: str) -> None:
        self.job: bytes = job
        self._version = version
        self.lock: threading.Condition = threading.Condition()
        self._peers = Peers(-1, ())
        self._expected = set(expected)
        #: The errors of the processes whose work others have ended, which each of their calls raises.
        self._ended: dict[str, BaseException] = {}
        self._admitted: set[str] = set()
        self._latest = -1
        self._ready: dict[str, tuple[int, int]] = {}
        self._has_finished = False
        self._mail: list[Mailbox] = []
        self._rounds: dict[int, Round] = {}

    # --- membership ---------------------------------------------------------------------------------------------------

    def supervise(self, alive: Sequence[str], number: int) -> None:
        """Told by who starts the processes, which of them live: those that do not are lost.

        ``number`` grows with each call: one that a later call has overtaken tells nothing.
        """
        with self.lock:
            if number <= self._latest:
                return
            self._latest, self._expected = number, set(alive)
            lost = set(self._peers.workers) - self._expected
            if lost - self._peers.dead or self._peers.generation < 0:
                self._peers.dead |= lost
                self._advance()
                self.lock.notify_all()

    def enter(self, uid: str, job: bytes, version: str, timeout: float) -> Place | None:
        """The place of a new process, which waits for it; None where the others have ended before.

        A first generation begins when all expected processes enter. Raises `Refused` for a process of another job, or
        of another version of the package.
        """
        if job != self.job:
            raise Refused("job", f"a worker is of the job {job.hex()}: expected {self.job.hex()}")
        check_version("a worker", version, "the program", self._version)
        return self._join(uid, (-1, 0), timeout)

    def reform(self, uid: str, rank: int, generation: int, timeout: float) -> Place | None:
        """The place of a process in the next generation, which all survivors and those that enter wait for."""
        self._check(uid)
        # A restarted hub learns of its members by this call.
        if self._peers.generation >= 0 and uid not in {*self._peers.workers, *self._admitted, *self._expected}:
            raise Refused("member", f"{uid!r} asks to form the next generation: expected a worker of this job")
        return self._join(uid, (generation, rank), timeout)

    def exclude(self, uid: str, generation: int, rank: int) -> None:
        """A worker declares another one of its generation lost, though its process lives."""
        with self.lock:
            self._check(uid)
            if generation == self._peers.generation and self._peers.is_alive(rank):
                lost = self._peers.workers[rank]
                self._ended[lost] = Excluded(rank, generation)
                self._peers.excluded.add(lost)
                self._lose(lost)

    def excluded(self) -> list[str]:
        """The processes that were excluded."""
        return sorted(uid for uid, error in self._ended.items() if isinstance(error, Excluded))

    def _check(self, uid: str) -> None:
        """Raises the error of a process whose work, or whose job, others have ended."""
        if uid in self._ended:
            raise copy.copy(self._ended[uid])
        if self._peers.reason is not None:
            raise Aborted(self._peers.reason)

    def _rank(self, uid: str, generation: int, what: str) -> int:
        """The rank of a caller. Raises an error for one that is not of this generation."""
        self._check(uid)
        if generation != self._peers.generation:
            raise WorkerLost((), what)
        if uid not in self._peers.workers:
            raise Refused("member", f"{what}: the caller is {uid!r}: expected a worker of this job")
        return self._peers.workers.index(uid)

    def _join(self, uid: str, former: tuple[int, int], timeout: float) -> Place | None:
        with self.lock:
            self._ready[uid] = former
            self._peers.note(uid, FORMS, 0, -1)
            self._advance()
            self.lock.notify_all()
            return self._placed(uid, timeout)

    def _placed(self, uid: str, timeout: float) -> Place | None:
        """Waits until a process that is ready has a place."""
        try:
            self._wait(uid, lambda: uid not in self._ready or self._is_over(), timeout, "reform")
            if uid not in self._ready:
                return self.place_of(uid)
            if self._has_finished:
                return None
            raise self._peers.loss(self._peers.lost(), "reform")
        finally:
            self._withdraw(uid)

    def _withdraw(self, uid: str) -> None:
        """Forgets that a process is ready for the next generation."""
        self._ready.pop(uid, None)
        self._peers.forming.pop(uid, None)

    def place_of(self, uid: str) -> Place:
        """The place of a member in the present generation."""
        return Place(self._peers.workers.index(uid), len(self._peers.workers), self._peers.generation)

    def _is_over(self) -> bool:
        """Whether the members of the last generation have all died or left: a new process cannot get their state."""
        return self._peers.generation >= 0 and not self._peers.alive()

    def _advance(self) -> None:
        """Forms the next generation if all processes that have a part in it are ready."""
        peers, has_begun = self._peers, self._peers.generation >= 0
        old = {peers.workers[rank] for rank in peers.alive()} if has_begun else self._expected
        if not self._ready or (not old and has_begun) or not old <= self._ready.keys() or peers.reason is not None:
            return
        newest = max(former for former, _ in self._ready.values())
        # Survivors come first, by generation and rank; then new processes, by name.
        order = sorted(self._ready, key=lambda uid: (-self._ready[uid][0], self._ready[uid][1], uid))
        self._begin(max(newest, peers.generation) + 1, order)

    def _begin(self, generation: int, members: list[str]) -> None:
        """Begins a generation, whose members get new mailboxes."""
        self._peers, self._ready, self._rounds = Peers(generation, members), {}, {}
        self._admitted |= set(members)
        self._mail = [Mailbox(self.job, generation, len(members)) for _ in members]

    def _lose(self, uid: str) -> None:
        """Does what the loss of a process causes: nothing is kept for it."""
        self._withdraw(uid)
        if uid in self._peers.workers:
            self._mail[self._peers.workers.index(uid)].clear()
        self._advance()
        self.lock.notify_all()

    def was_admitted(self, uid: str) -> bool:
        """Whether a process has been a member of any generation of this hub."""
        return uid in self._admitted

    def leave(self, uid: str, unfinished: int | None = None) -> None:
        """The process ends its work, or has failed; ``unfinished`` is its last step of a training not left."""
        with self.lock:
            is_known = uid in self._peers.workers or uid in self._expected
            self._expected.discard(uid)
            if is_known:
                self._has_finished = True
                self._peers.note(uid, LEFT, 0, -1 if unfinished is None else unfinished)
                self._lose(uid)
            self._withdraw(uid)

    def abort(self, reason: str) -> None:
        """Ends the job."""
        with self.lock:
            self._peers.reason = reason
            self.lock.notify_all()

    def alive(self, uid: str, generation: int) -> list[int]:
        """The ranks of the workers of a generation that have neither died nor left."""
        self._check(uid)
        if generation != self._peers.generation:
            return [self._peers.workers.index(uid)] if uid in self._peers.workers else []
        return sorted(self._peers.alive())

    # --- operations on all workers ------------------------------------------------------------------------------------

    def collect(
        self, uid: str, generation: int, number: int, kind: tuple[Any, ...], bufs: list[np.ndarray], timeout: float
    ) -> Any:
        """Gives a worker's buffers to an operation, and waits for its result."""
        with self.lock:
            rank, peers = self._rank(uid, generation, kind[0]), self._peers
            entered = self._rounds.setdefault(number, Round(kind))
            if entered.kind != kind:
                entered.failure = _unlike(entered.kind, kind)
            entered.contributed[rank] = bufs
            if len(entered.contributed) == len(peers.workers) and entered.failure is None:
                entered.result = self._result_of(entered)
            self.lock.notify_all()

            def is_decided() -> bool:
                if entered.result is not None or entered.failure is not None:
                    return True
                return peers.has_lost or bool(peers.forming)

            try:
                self._wait(uid, is_decided, timeout, kind[0])
            except (Aborted, TimedOut) as error:
                if entered.result is None:
                    absent = ", ".join(str(r) for r in range(len(peers.workers)) if r not in entered.contributed)
                    late = TimedOut(f"{error}: rank {absent} has not called it") if absent else error
                    entered.failure = entered.failure or (late if isinstance(error, TimedOut) else error)
                    self.lock.notify_all()
            return self._end(number, entered, peers)

    def _result_of(self, entered: Round) -> Any:
        """The result of an operation that all workers have entered, as each of them is answered."""
        return _result(entered)

    def _end(self, number: int, entered: Round, peers: Peers) -> Any:
        entered.ended += 1
        if entered.ended == len(peers.workers) and self._rounds.get(number) is entered:  # not that of another one
            del self._rounds[number]
        if entered.failure is not None:
            raise copy.copy(entered.failure)  # each worker raises its own error
        if entered.result is None:
            raise peers.loss(peers.lost(), entered.kind[0])
        return entered.result

    # --- messages -----------------------------------------------------------------------------------------------------

    def post(self, uid: str, generation: int, dest: int, message: np.ndarray) -> None:
        """Puts a message into a mailbox, which refuses a stranger."""
        with self.lock:
            rank = self._rank(uid, generation, "send")
            if not self._peers.is_alive(dest):
                raise self._peers.loss([dest], "send")
            self._mail[dest].put(message, rank)
            self.lock.notify_all()

    def take(self, uid: str, generation: int, tag: int, source: int | None, timeout: float) -> Message | None:
        """Waits for a message with this tag, and takes it out of the mailbox; None after the time-out."""
        with self.lock:
            mail, peers = self._mail[self._rank(uid, generation, "recv_any")], self._peers
            message: Message | None = None

            def has_come() -> bool:
                nonlocal message
                message = mail.take(tag, source)
                if message is None:
                    peers.check("recv_any", needed=source)
                return message is not None

            with contextlib.suppress(TimedOut):
                self._wait(uid, has_come, timeout, "recv_any")
            return message

    def _wait(self, uid: str, is_done: Callable[[], bool], timeout: float, what: str) -> None:
        """Waits for a condition in a call of a process. Raises `TimedOut`, or the error by which its work has ended."""

        def is_over() -> bool:
            return uid in self._ended or self._peers.reason is not None or is_done()

        is_in_time = self.lock.wait_for(is_over, min(timeout, threading.TIMEOUT_MAX))
        self._check(uid)
        if not is_in_time:
            of = f" of the worker of rank {self._peers.workers.index(uid)}" if uid in self._peers.workers else ""
            raise TimedOut(f"{what}{of} took longer than {timeout:g} s")


def _result(entered: Round) -> list[np.ndarray]:
    """The result of an operation for all workers: the reduced buffers, or those of each worker."""
    name, detail = entered.kind[:2]
    by_rank = entered.by_rank()
    if name == "all_gather_v":
        return [bufs[0] for bufs in by_rank]
    result = []
    for contributions in zip(*by_rank, strict=True):
        out = np.empty_like(contributions[0])
        reduce_in_order(contributions, detail, out)
        result.append(out)
    return result


def _unlike(kind: tuple[Any, ...], other: tuple[Any, ...]) -> Refused:
    """The error of workers that call operations of different kinds at the same time."""
    try:
        check_exchange([kind[-1], other[-1]])
    except Refused as error:
        return error
    shown = " and ".join(" ".join(map(str, each[:-1])) for each in (kind, other))
    return Refused("collective", f"workers called {shown} at the same time: expected one operation, on equal buffers")
