"""The workers of one generation, as one process knows them: which ones died, left, were excluded, or form the next."""

import math
from collections.abc import Sequence

import numpy as np

from oxigrad.distributed.errors import Excluded

LEFT, ABORTED, EXCLUDED, FORMS = -1, -2, -3, -4
"""Kinds of notices: the sender left, aborted the job, excludes a worker, or forms the next generation."""

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
        process: number of this process.
        workers: numbers of the processes that are workers, by rank.
    """

    def __init__(self, generation: int, process: int, workers: Sequence[int]) -> None:
        self._generation, self._process, self._workers = generation, process, list(workers)
        self.dead: set[int] = set()
        #: The processes that others have excluded since they do not answer.
        self.excluded: set[int] = set()
        #: The processes that have left, and those that form the next generation, and how many operations on all
        #: workers they took part in before.
        self.left: dict[int, int] = {}
        self.forming: dict[int, int] = {}
        #: The last step, by rank, of workers whose work ended within a training.
        self.last_steps: dict[int, int] = {}
        #: Why the job was aborted.
        self.reason: str | None = None

    def note(self, source: int, kind: int, detail: int, step: int) -> None:
        """Changes the states by a `notice` from the process ``source``."""
        if kind == EXCLUDED:
            self.excluded.add(detail)
        elif kind == FORMS:
            self.forming.setdefault(source, detail)
        else:
            self.left[source] = detail if kind == LEFT else 0
            if kind == ABORTED:
                self.reason = self.reason or f"rank {source} aborted the job"
            if step >= 0 and source in self._workers:
                self.last_steps[self._workers.index(source)] = step

    def process_of(self, rank: int) -> int:
        """The number of the process of a worker."""
        return self._workers[rank]

    def alive(self, calls: float = math.inf) -> frozenset[int]:
        """The ranks of the workers that live, or have left after ``calls`` operations on all workers."""
        return frozenset(
            rank
            for rank, process in enumerate(self._workers)
            if process not in self.dead
            and process not in self.excluded
            and (process not in self.left or self.left[process] >= calls)
        )

    def lost(self, calls: float = math.inf) -> frozenset[int]:
        """The ranks of the other workers."""
        return frozenset(range(len(self._workers))) - self.alive(calls)

    def is_forming(self, calls: float = math.inf) -> bool:
        """Whether a process forms the next generation, after fewer than ``calls`` operations on all workers."""
        return any(count < calls for count in list(self.forming.values()))

    @property
    def absent(self) -> set[int]:
        """The processes that died or were excluded."""
        return self.dead | self.excluded

    @property
    def is_excluded(self) -> bool:
        """Whether others have excluded this process."""
        return self._process in self.excluded

    def check_fence(self) -> None:
        """Raises `Excluded` where others have excluded this process."""
        if self.is_excluded:
            rank = self._workers.index(self._process) if self._process in self._workers else -1
            raise Excluded(rank, self._generation)
