"""The state that workers share if one process keeps it: membership, mailboxes and collective operations.

Its methods are coroutines, which wait by a condition alone: that of an event loop, or one of threads
(`engines.threads.hub`), by which they run in the caller's. It knows nothing of how they are called; they return plain
data, and raise the errors of communication.
"""

import asyncio
import contextlib
import copy
import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oxigrad.distributed.communicator import Place
from oxigrad.distributed.engines.mailbox import Mailbox
from oxigrad.distributed.errors import (
    Aborted,
    CommunicationError,
    Excluded,
    NotSupported,
    Refused,
    TimedOut,
    WorkerLost,
)
from oxigrad.distributed.messages.reduction import reduce_in_order

_log = logging.getLogger("oxigrad.distributed")


def check_accepts(job: str, *, accept_newcomers: bool) -> None:
    """Raises `NotSupported` where a job does not accept newcomers; otherwise one joins, which is logged."""
    if not accept_newcomers:
        raise NotSupported(f"{job} accepts no newcomers: expected accept_newcomers=True where it is started")
    _log.info("a further worker joins %s", job)


class Condition(asyncio.Condition):
    """The condition by which a hub waits, here of an event loop: a lock, held in an ``async with`` block."""

    async def wait_until(self, is_done: Callable[[], bool], timeout: float) -> bool:
        """Waits until ``is_done()``, tested with the lock held; False after the time-out."""
        try:
            await asyncio.wait_for(self.wait_for(is_done), max(timeout, 0.001))
        except TimeoutError:
            return False
        return True


class Round:
    """One collective operation: its kind, what each worker contributes, and how many have the result."""

    def __init__(self, kind: tuple[Any, ...]) -> None:
        self.kind = kind
        self.contributed: dict[int, list[np.ndarray]] = {}
        self.result: Any = None
        self.ended = 0
        self.failure: CommunicationError | None = None


class Hub:
    """The shared state of the job ``job``.

    ``keep`` turns the result of an operation on all workers into what each of them gets.

    Members are named by ``uid``, a text that is new for each process. A new hub has no members: it forms a generation
    when all those that `supervise` names are `entering` or `reform`, which is also how a job goes on after its hub was
    lost.
    """

    def __init__(
        self,
        expected: Sequence[str] = (),
        keep: Callable[[list[np.ndarray]], Any] = list,
        *,
        job: bytes = b"",
        version: str = "",
        condition: Condition | None = None,
    ) -> None:
        self.job: bytes = job
        self._keep, self._version = keep, version
        self._changed: Condition = condition or Condition()
        self._generation = -1
        self._members: list[str] = []
        self._expected = set(expected)
        self._gone: set[str] = set()
        #: The rank and the generation of each process that others have excluded, and these places.
        self._excluded: dict[str, tuple[int, int]] = {}
        self._fenced: set[tuple[int, int]] = set()
        self._admitted: set[str] = set()
        self._latest = -1
        self._ready: dict[str, tuple[int, int]] = {}
        #: The last step of each process whose work ended within a training.
        self._unfinished: dict[str, int] = {}
        self._failure: str | None = None
        self._has_finished = False
        self._mail: list[Mailbox] = []
        self._rounds: dict[int, Round] = {}

    # --- membership ---------------------------------------------------------------------------------------------------

    async def supervise(self, alive: Sequence[str], number: int) -> None:
        """Told by who starts the processes, which of them live: those that do not are lost.

        ``number`` grows with each call: one that a later call has overtaken tells nothing.
        """
        async with self._changed:
            if number <= self._latest:
                return
            self._latest = number
            lost = (self._expected | set(self._members)) - set(alive)
            self._expected = set(alive)
            if lost - self._gone or self._generation < 0:
                self._gone |= lost
                self._advance()
                self._changed.notify_all()

    async def enter(self, uid: str, job: bytes, version: str, timeout: float) -> Place | None:
        """The place of a new process, which waits for it; None where the others have ended before.

        A first generation begins when all expected processes enter. Raises `Refused` for a process of another job, or
        of another version of the package.
        """
        if job != self.job:
            raise Refused("job", f"a worker is of the job {job.hex()}: expected {self.job.hex()}")
        if version != self._version:
            text = f"a worker runs oxigrad {version}, the program {self._version}: expected one version on every worker"
            raise Refused("version", text)
        return await self._join(uid, (-1, 0), timeout)

    async def reform(self, uid: str, place: Sequence[int], timeout: float) -> Place | None:
        """The place of a process in the next generation, which all survivors and those that enter wait for."""
        rank, _, generation = place
        self._check_included(uid)
        # A restarted hub learns of its members by this call.
        if self._generation >= 0 and uid not in {*self._members, *self._admitted, *self._expected}:
            raise Refused("member", f"{uid!r} asks to form the next generation: expected a worker of this job")
        return await self._join(uid, (generation, rank), timeout)

    async def exclude(self, place: Sequence[int], rank: int) -> None:
        """A worker declares another one of its generation lost, though its process lives."""
        async with self._changed:
            self._check_fence(place)
            if place[2] == self._generation and 0 <= rank < len(self._members):
                self._excluded[uid := self._members[rank]] = here = rank, self._generation
                self._fenced.add(here)
                self._lose(uid)

    async def excluded(self) -> list[str]:
        """The processes that were excluded."""
        return sorted(self._excluded)

    def _check_included(self, uid: str) -> None:
        """Raises `Excluded` for a process that others have excluded."""
        if uid in self._excluded:
            raise Excluded(*self._excluded[uid])

    def _check_fence(self, place: Sequence[int]) -> None:
        """Raises `Excluded` for a worker whose place was taken from it."""
        if (place[0], place[2]) in self._fenced:
            raise Excluded(place[0], place[2])

    def _check_place(self, place: Sequence[int], what: str) -> None:
        """Raises an error for a caller that is in no place of this generation."""
        rank, size, generation = place
        if (rank, generation) in self._fenced:
            raise Excluded(rank, generation)
        if generation != self._generation:
            raise WorkerLost((), what)
        if size != len(self._members) or not 0 <= rank < size:
            text = f"a caller is the worker {rank} of {size}: expected a worker of {len(self._members)}"
            raise Refused("rank", text)

    async def _join(self, uid: str, former: tuple[int, int], timeout: float) -> Place | None:
        async with self._changed:
            self._ready[uid] = former
            self._advance()
            self._changed.notify_all()
            return await self._placed(uid, timeout)

    async def _placed(self, uid: str, timeout: float) -> Place | None:
        """Waits until a process that is ready has a place."""
        try:
            await self._wait(lambda: uid not in self._ready or self._is_over(), timeout, "reform")
            if uid not in self._ready:
                return self.place_of(uid)
            if self._has_finished:
                return None
            raise self._loss(self._lost(), "reform")
        finally:
            self._ready.pop(uid, None)

    def place_of(self, uid: str) -> Place:
        """The place of a member in the present generation."""
        return Place(self._members.index(uid), len(self._members), self._generation)

    def _is_ending(self) -> bool:
        """Whether the generation is about to end, so that nothing in it is waited for."""
        return bool(self._ready)

    def _is_over(self) -> bool:
        """Whether the members of the last generation have all died or left: a new process cannot get their state."""
        return self._generation >= 0 and not set(self._members) - self._gone

    def _advance(self) -> None:
        """Forms the next generation if all processes that have a part in it are ready."""
        members = [uid for uid in self._members if uid not in self._gone]
        old = members if self._generation >= 0 else list(self._expected - self._gone)
        if not self._ready or (not old and self._generation >= 0) or not set(old) <= set(self._ready):
            return
        generation = max(former for former, _ in self._ready.values())
        # Survivors come first, by generation and rank; then new processes, by name.
        order = sorted(self._ready, key=lambda uid: (-self._ready[uid][0], self._ready[uid][1], uid))
        self._generation = max(generation, self._generation) + 1
        self._members, self._gone, self._ready = order, set(), {}
        self._admitted |= set(order)
        self._open_mail()
        self._rounds = {}

    def _open_mail(self) -> None:
        """Gives the members of a new generation their mailboxes."""
        size = len(self._members)
        self._mail = [Mailbox(self.job, self._generation, size) for _ in range(size)]

    def _lose(self, uid: str) -> None:
        """Notes that a process has died, has left, or was excluded: nothing is kept for it."""
        self._gone.add(uid)
        self._ready.pop(uid, None)
        if uid in self._members:
            self._mail[self._members.index(uid)].clear()
        self._advance()
        self._changed.notify_all()

    async def was_admitted(self, uid: str) -> bool:
        """Whether a process has been a member of any generation of this hub."""
        return uid in self._admitted

    async def leave(self, uid: str, unfinished: int | None = None) -> None:
        """The process ends its work, or has failed; ``unfinished`` is its last step of a training not left."""
        async with self._changed:
            if unfinished is not None:
                self._unfinished[uid] = unfinished
            is_known = uid in self._members or uid in self._expected
            self._expected.discard(uid)
            if is_known:
                self._has_finished = True
                self._lose(uid)
            self._ready.pop(uid, None)

    async def abort(self, reason: str) -> None:
        """Ends the job."""
        async with self._changed:
            self._failure = reason
            self._changed.notify_all()

    async def alive(self, uid: str, generation: int) -> list[int]:
        """The ranks of the workers of a generation that have neither died nor left."""
        self._check_included(uid)
        if generation != self._generation:
            return [self._members.index(uid)] if uid in self._members else []
        return [rank for rank, member in enumerate(self._members) if member not in self._gone]

    def _lost(self, generation: int | None = None) -> list[int]:
        """The ranks of this generation that have died or left; none of another one, which has ended."""
        is_present = generation in (None, self._generation)
        return [rank for rank, member in enumerate(self._members) if is_present and member in self._gone]

    def _loss(self, ranks: Sequence[int], what: str) -> WorkerLost:
        """The error of an operation that cannot complete without these workers."""
        steps = {rank: self._unfinished[uid] for rank, uid in enumerate(self._members) if uid in self._unfinished}
        return WorkerLost(ranks, what, steps=steps)

    # --- operations on all workers ------------------------------------------------------------------------------------

    async def collect(
        self, place: Sequence[int], number: int, kind: tuple[Any, ...], bufs: list[np.ndarray], timeout: float
    ) -> Any:
        """Gives a worker's buffers to an operation, and waits for its result."""
        rank, size, generation = place
        async with self._changed:
            self._check_place(place, kind[0])
            entered = self._rounds.setdefault(number, Round(kind))
            if entered.kind != kind:
                text = f"workers called {_shown(entered.kind)} and {_shown(kind)} at the same time"
                entered.failure = Refused("collective", text)
            entered.contributed[rank] = bufs
            if len(entered.contributed) == size and entered.failure is None:
                entered.result = self._result_of(entered)
            self._changed.notify_all()

            def is_decided() -> bool:
                waits = entered.result is None and entered.failure is None
                return not waits or bool(self._gone) or self._is_ending() or generation != self._generation

            try:
                await self._wait(is_decided, timeout, kind[0])
            except (Aborted, TimedOut) as error:
                if entered.result is None:
                    entered.failure = entered.failure or error
                    self._changed.notify_all()
            return self._end(number, entered, place)

    def _result_of(self, entered: Round) -> Any:
        """The result of an operation that all workers have entered, as each of them is answered."""
        return self._keep(_result(entered))

    def _end(self, number: int, entered: Round, place: Sequence[int]) -> Any:
        _, size, generation = place
        entered.ended += 1
        if entered.ended == size and self._rounds.get(number) is entered:  # not that of a later generation
            del self._rounds[number]
        if entered.failure is not None:
            raise copy.copy(entered.failure)  # each worker raises its own error
        if entered.result is None:
            raise self._loss(self._lost(generation), entered.kind[0])
        return entered.result

    # --- messages -----------------------------------------------------------------------------------------------------

    async def post(self, place: Sequence[int], dest: int, message: np.ndarray) -> None:
        """Puts a message into a mailbox, which refuses a stranger."""
        async with self._changed:
            self._check_place(place, "send")
            if not 0 <= dest < len(self._members) or self._members[dest] in self._gone:
                raise self._loss([dest], "send")
            self._mail[dest].put(message, place[0])
            self._changed.notify_all()

    async def take(self, place: Sequence[int], tag: int, source: int | None, timeout: float) -> np.ndarray | None:
        """Waits for a message with this tag, and takes it out of the mailbox; None after the time-out."""
        rank, _, generation = place
        message: np.ndarray | None = None

        def is_over() -> bool:
            nonlocal message
            if generation != self._generation or (rank, generation) in self._fenced:
                return True
            taken = self._mail[rank].take(tag, source)
            message = None if taken is None else taken.data
            is_lost = bool(self._gone) and source in self._lost()
            return message is not None or is_lost or self._is_ending()

        async with self._changed:
            self._check_place(place, "recv_any")
            with contextlib.suppress(TimedOut):
                await self._wait(is_over, timeout, "recv_any")
                self._check_fence(place)
                if message is None:
                    lost = self._lost(generation)
                    raise self._loss([source] if source in lost else lost, "recv_any")
            return message

    async def _wait(self, is_done: Callable[[], bool], timeout: float, what: str) -> None:
        """Waits for a condition, with the lock held. Raises `TimedOut`, and `Aborted` where the job has ended."""
        if not await self._changed.wait_until(lambda: self._failure is not None or is_done(), timeout):
            raise TimedOut(f"{what} took longer than {timeout:g} s")
        if self._failure is not None:
            raise Aborted(self._failure)


def _result(entered: Round) -> list[np.ndarray]:
    """The result of an operation for all workers: the reduced buffers, those of the root, or those of each worker."""
    name, detail = entered.kind[:2]
    if name == "broadcast":
        return list(entered.contributed[detail])
    by_rank = [entered.contributed[rank] for rank in sorted(entered.contributed)]
    if name == "all_gather_v":
        return [bufs[0] for bufs in by_rank]
    result = []
    for contributions in zip(*by_rank, strict=True):
        out = np.empty_like(contributions[0])
        reduce_in_order(contributions, detail, out)
        result.append(out)
    return result


def _shown(kind: tuple[Any, ...]) -> str:
    return " ".join(map(str, kind))
