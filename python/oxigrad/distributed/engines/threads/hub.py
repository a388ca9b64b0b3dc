"""The hub of a job of threads, on whose lock the workers wait."""

import contextlib
import threading
import weakref
from collections import Counter
from typing import Any

import numpy as np

import oxigrad
from oxigrad.distributed.communicator import Place
from oxigrad.distributed.engines.hub import Hub, Round
from oxigrad.distributed.errors import Aborted, WorkerLost

# Bytes up to which all workers reduce copies of all buffers; each reduces a slice of larger ones.
SMALL = 1 << 15


class Killed(BaseException):
    """Ends the thread of a worker that was killed; user code that catches `Exception` does not catch it."""


class ThreadHub(Hub):
    """The shared state of a job of threads, of which ``members`` are there from the start.

    A worker that was started in the place of another one of its generation has a name of its own. The workers reduce
    what each of them has contributed, each a part of it where it is large.
    """

    def __init__(self, members: list[str], job: bytes) -> None:
        super().__init__((), job, oxigrad.__version__)
        self._begin(0, members)
        #: How often another worker has taken a place, by generation and rank.
        self.restarts: Counter[tuple[int, int]] = Counter()
        self._owners: dict[int, tuple[weakref.ref[Any], str]] = {}

    @property
    def members(self) -> list[str]:
        """The names of the workers of the present generation by rank."""
        return [*self._peers.workers]

    def _result_of(self, entered: Round) -> Any:
        """See `Hub._result_of`.

        Of a reduction, the contributions by rank, and memory for the result where they are large.
        """
        if entered.kind[0] != "all_reduce":
            return super()._result_of(entered)
        by_rank = entered.by_rank()
        is_small = entered.kind[2]
        return by_rank, [] if is_small else [np.empty_like(buffer) for buffer in by_rank[0]]

    def claim(self, uid: str, thing: Any) -> int | None:
        """Gives an object to a worker; returns the rank of another one that has it and is alive, or None."""
        with self.lock:
            reference, owner = self._owners.get(id(thing), (None, uid))
            if owner != uid and owner in self._peers.workers and reference is not None and reference() is thing:
                rank = self._peers.workers.index(owner)
                if self._peers.is_alive(rank):
                    return rank
            self._owners[id(thing)] = weakref.ref(thing), uid
            return None

    def kill(self, rank: int) -> None:
        """Ends the worker of a rank: its thread ends at its next call."""
        with self.lock:
            self._ended[uid := self._peers.workers[rank]] = Killed()
            self._peers.dead.add(uid)
            self._lose(uid)

    def restart(self, rank: int, uid: str) -> None:
        """Gives the place of a worker that has died or left to another one. Raises `ValueError` where it is alive."""
        with self.lock:
            if self._peers.is_alive(rank):
                raise ValueError(f"the worker of rank {rank} is alive: expected one that has died or left")
            self._peers.workers[rank] = uid
            self._peers.last_steps.pop(rank, None)
            self.restarts[self._peers.generation, rank] += 1

    def expect(self, uid: str) -> None:
        """Adds a worker that is admitted when the others form the next generation."""
        with self.lock:
            self._ready[uid] = -1, 0

    def admitted(self, uid: str) -> Place:
        """The place of a worker that is expected, once it has one. Raises `Aborted` where the job ends before."""
        place = None
        with self.lock, contextlib.suppress(Aborted, WorkerLost):
            place = self._placed(uid, threading.TIMEOUT_MAX)
        if place is None:
            raise Aborted("the job ended before the worker was admitted")
        return place
