"""The state that the threads of a job share: membership, mailboxes and collective operations."""

import threading
import time
from collections.abc import Callable
from typing import Any

from oxigrad.distributed.communicator import Buffer
from oxigrad.distributed.engines.mailbox import Mailbox
from oxigrad.distributed.errors import Aborted, CommunicationError, Excluded, TimedOut


class Killed(BaseException):
    """Ends the thread of a worker that was killed; user code that catches `Exception` does not catch it."""


class Round:
    """One collective operation: what each worker contributes, and how far it is."""

    def __init__(self, kind: tuple[Any, ...]) -> None:
        self.kind = kind
        self.contributed: dict[int, list[Buffer]] = {}
        self.result: list[Buffer] = []
        self.reduced: set[int] = set()
        self.ended: set[int] = set()
        self.failure: CommunicationError | None = None


class Joiner:
    """A worker that waits to be admitted to the next generation."""

    def __init__(self) -> None:
        self.place: tuple[Group, int] | None = None


class Group:
    """The state that the workers of one generation share; all of it is guarded by ``changed``."""

    job: bytes
    size: int
    generation: int
    incarnations: list[int]
    mail: list[Mailbox]

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
        self.rounds: dict[int, Round] = {}
        self.reforming: set[int] = set()
        self.joiners: list[Joiner] = []
        self.next: tuple[Group, dict[int, int]] | None = None

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

    def place_after(self, rank: int) -> "tuple[Group, int]":
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
        following = Group(self.job, len(alive) + len(self.joiners), self.generation + 1, self.changed)
        following.hung = self.hung
        self.next = following, {old: new for new, old in enumerate(alive)}
        for number, joiner in enumerate(self.joiners, len(alive)):
            joiner.place = following, number
        self.changed.notify_all()
