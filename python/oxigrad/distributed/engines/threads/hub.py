"""The hub of a job of threads, on whose lock the workers wait."""

import threading
import weakref
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import numpy as np

from oxigrad.distributed.communicator import Place
from oxigrad.distributed.engines.hub import Condition, Hub, Round
from oxigrad.distributed.errors import Aborted, Excluded, TimedOut, WorkerLost
from oxigrad.distributed.messages.message import size_of

# Bytes up to which all workers reduce copies of all buffers; each reduces a slice of larger ones.
SMALL = 1 << 15


class Killed(BaseException):
    """Ends the thread of a worker that was killed; user code that catches `Exception` does not catch it."""


class _ThreadCondition(Condition):
    """The condition of threads: its coroutines return at once, after the thread that runs them has waited."""

    def __init__(self, condition: threading.Condition) -> None:
        super().__init__()
        self._condition = condition

    def notify_all(self) -> None:
        self._condition.notify_all()

    async def __aenter__(self) -> None:
        self._condition.acquire()

    async def __aexit__(self, *error: object) -> None:
        self._condition.release()

    async def wait_until(self, is_done: Callable[[], bool], timeout: float) -> bool:
        """See `Condition.wait_until`."""
        return self._condition.wait_for(is_done, min(timeout, threading.TIMEOUT_MAX))


class ThreadHub(Hub):
    """The shared state of a job of threads, of which ``members`` are there from the start.

    A worker that was started in the place of another one of its generation has a name of its own. The workers reduce
    what each of them has contributed, each a part of it where it is large.
    """

    def __init__(self, members: list[str], job: bytes, changed: threading.Condition) -> None:
        super().__init__(condition=_ThreadCondition(changed), job=job)
        self._members, self._generation, self._admitted = members, 0, {*members}
        self._open_mail()
        self.lock: threading.Condition = changed
        self._caller = threading.local()
        self._killed: set[str] = set()
        #: How often another worker has taken a place, by generation and rank.
        self.restarts: Counter[tuple[int, int]] = Counter()
        #: The thread of each worker, and those of workers that were excluded.
        self.threads: dict[str, threading.Thread] = {}
        self.hung: set[threading.Thread] = set()
        self._owners: dict[int, tuple[weakref.ref[Any], str]] = {}

    @property
    def members(self) -> list[str]:
        """The names of the workers of the present generation by rank."""
        return [*self._members]

    # --- calls --------------------------------------------------------------------------------------------------------

    def call(self, uid: str, method: Callable[..., Coroutine[Any, Any, Any]], *args: Any) -> Any:
        """Runs a method in this thread, for the worker ``uid``; returns its result."""
        self._caller.uid = uid
        try:
            method(*args).send(None)
        except StopIteration as end:
            return end.value
        raise RuntimeError("a method of a hub of threads was suspended")

    def ask(self, uid: str, method: Callable[..., Coroutine[Any, Any, Any]], *args: Any) -> Any:
        """As `call`; ends a worker that was killed or excluded, or whose job was aborted."""
        with self.lock:
            self._check_worker(uid)
        return self.call(uid, method, *args)

    def _check_worker(self, uid: str) -> None:
        if uid in self._killed:
            raise Killed
        if uid in self._excluded:
            raise Excluded(*self._excluded[uid])
        if self._failure is not None:
            raise Aborted(self._failure)

    async def _wait(self, is_done: Callable[[], bool], timeout: float, what: str) -> None:
        uid = self._caller.uid
        if uid in self._members:
            what = f"{what} of the worker of rank {self._members.index(uid)}"
        try:
            await super()._wait(lambda: uid in self._killed or uid in self._excluded or is_done(), timeout, what)
        finally:
            self._check_worker(uid)

    # --- what only threads have ---------------------------------------------------------------------------------------

    def _is_ending(self) -> bool:
        return bool(self._ready) and any(generation >= 0 for generation, _ in self._ready.values())

    def _result_of(self, entered: Round) -> Any:
        """See `Hub._result_of`.

        Of a reduction, the contributions by rank, and memory for the result where they are large.
        """
        if entered.kind[0] != "all_reduce":
            return super()._result_of(entered)
        by_rank = [entered.contributed[rank] for rank in sorted(entered.contributed)]
        return by_rank, [np.empty_like(buffer) for buffer in by_rank[0]] if size_of(by_rank[0]) > SMALL else []

    async def exclude(self, place: Sequence[int], rank: int) -> None:
        """See `Hub.exclude`. The thread of the worker is not waited for; one that has died or left is not excluded."""
        with self.lock:
            if place[2] == self._generation and rank not in self._lost():
                self.hung.add(self.threads[self._members[rank]])
                await super().exclude(place, rank)

    def claim(self, uid: str, thing: Any) -> int | None:
        """Gives an object to a worker; returns the rank of another one that has it and is alive, or None."""
        with self.lock:
            reference, owner = self._owners.get(id(thing), (None, uid))
            if owner != uid and owner in self._members and reference is not None and reference() is thing:
                rank = self._members.index(owner)
                if rank not in self._lost():
                    return rank
            self._owners[id(thing)] = weakref.ref(thing), uid
            return None

    def kill(self, rank: int) -> None:
        """Ends the worker of a rank: its thread ends at its next call."""
        with self.lock:
            self._killed.add(uid := self._members[rank])
            self._lose(uid)

    def restart(self, rank: int, uid: str) -> None:
        """Gives the place of a worker that has died or left to another one. Raises `ValueError` where it is alive."""
        with self.lock:
            if rank not in self._lost():
                raise ValueError(f"the worker of rank {rank} is alive: expected one that has died or left")
            self._members[rank] = uid
            self._fenced.discard((rank, self._generation))
            self.restarts[self._generation, rank] += 1

    def expect(self, uid: str) -> None:
        """Adds a worker that is admitted to the next generation."""
        with self.lock:
            self._ready[uid] = -1, 0

    def admitted(self, uid: str) -> Place:
        """The place of a worker that is expected, once it has one. Raises `Aborted` where the job ends before."""

        async def placed() -> Place | None:
            async with self._changed:
                return await self._placed(uid, threading.TIMEOUT_MAX)

        try:
            place = self.call(uid, placed)
        except (Aborted, TimedOut, WorkerLost):
            place = None
        if place is None:
            raise Aborted("the job ended before the worker was admitted")
        return place
