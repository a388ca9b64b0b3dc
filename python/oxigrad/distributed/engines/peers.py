"""The workers of one generation, as a process knows them: which ones died, left, were excluded, or form the next.

Every engine has its membership here: those of MPI and torch in each process, those of Ray and threads in a `Hub`.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from oxigrad.distributed.errors import Aborted, Excluded, WorkerLost

LEFT, ABORTED, EXCLUDED, FORMS = -1, -2, -3, -4
"""Kinds of notices: the sender left, aborted the job, excludes a worker, or forms the next generation."""

NOTICE = 0xFFFF
"""The tag of a message that is a `notice`."""

NOTICE_WORDS = 3
"""The integers of a `notice`."""


def notice(kind: int, detail: int = 0, step: int | None = None) -> np.ndarray:
    """A notice as it is sent.

    ``detail`` is a number of operations, or the process that is excluded; ``step`` the last one of a training that the
    sender did not leave.
    """
    return np.array([kind, detail, -1 if step is None else step], np.int64)


class Peers:
    """The states of the processes of one generation, which notices change.

    Args:
        generation: the generation.
        workers: names of the processes that are workers, by rank: numbers, or texts.
        process: name of this process, where it has this object for itself.
    """

    def __init__(self, generation: int, workers: Iterable[Any], process: Any = None) -> None:
        self.generation: int = generation
        self.workers: list[Any] = list(workers)
        self._process = process
        self.dead: set[Any] = set()
        #: The processes that others have excluded since they do not answer.
        self.excluded: set[Any] = set()
        #: The processes that have left, and those that form the next generation, and how many operations on all
        #: workers they took part in before.
        self.left: dict[Any, int] = {}
        self.forming: dict[Any, int] = {}
        #: The last step, by rank, of workers whose work ended within a training.
        self.last_steps: dict[int, int] = {}
        #: Why the job was aborted.
        self.reason: str | None = None

    def note(self, source: Any, kind: int, detail: Any, step: int) -> None:
        """Changes the states by a `notice` from the process ``source``."""
        if kind == EXCLUDED:
            self.excluded.add(detail)
        elif kind == FORMS:
            self.forming.setdefault(source, detail)
        else:
            self.left[source] = detail if kind == LEFT else 0
            if kind == ABORTED:
                self.reason = self.reason or f"rank {source} aborted the job"
            if step >= 0 and source in self.workers:
                self.last_steps[self.workers.index(source)] = step

    def is_alive(self, rank: int, calls: float = math.inf) -> bool:
        """Whether there is such a worker, which lives or has left after ``calls`` operations on all workers."""
        if not 0 <= rank < len(self.workers):
            return False
        process = self.workers[rank]
        if process in self.dead or process in self.excluded:
            return False
        return process not in self.left or self.left[process] >= calls

    def alive(self, calls: float = math.inf) -> frozenset[int]:
        """The ranks of the workers for which `is_alive`."""
        return frozenset(rank for rank in range(len(self.workers)) if self.is_alive(rank, calls))

    def lost(self, calls: float = math.inf) -> frozenset[int]:
        """The ranks of the other workers."""
        return frozenset(range(len(self.workers))) - self.alive(calls)

    @property
    def has_lost(self) -> bool:
        """Whether any process has died, has left or was excluded."""
        return bool(self.dead or self.excluded or self.left)

    @property
    def absent(self) -> set[Any]:
        """The processes that died or were excluded."""
        return self.dead | self.excluded

    @property
    def is_excluded(self) -> bool:
        """Whether others have excluded this process."""
        return self._process in self.excluded

    # --- errors -------------------------------------------------------------------------------------------------------

    def loss(self, ranks: Iterable[int], what: str) -> WorkerLost:
        """The error of an operation that cannot complete without these workers."""
        return WorkerLost(ranks, what, steps=self.last_steps)

    def check(self, what: str, calls: float = math.inf, needed: int | None = None) -> None:
        """Raises an error where the job is aborted, a worker forms the next generation, or ``needed`` is lost.

        Workers that left, or form it, after ``calls`` operations take part in the present one.
        """
        if self.reason is not None:
            raise Aborted(self.reason)
        lost = self.lost(calls)
        if needed in lost:
            raise self.loss([needed], what)
        is_forming = any(count < calls for count in list(self.forming.values()))
        if is_forming or (calls < math.inf and lost):
            raise self.loss(lost, what)

    def check_fence(self) -> None:
        """Raises `Excluded` where others have excluded this process."""
        if self.is_excluded:
            rank = self.workers.index(self._process) if self._process in self.workers else -1
            raise Excluded(rank, self.generation)
