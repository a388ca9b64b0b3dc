"""The communicator of a worker that is a thread."""

import threading
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from oxigrad.distributed.communicator import Buffer, succeed
from oxigrad.distributed.decisions.training import Trainings
from oxigrad.distributed.engines.backoff import Backoff
from oxigrad.distributed.engines.base import Arrival, EngineCommunicator, Place
from oxigrad.distributed.engines.threads.hub import SMALL, ThreadHub
from oxigrad.distributed.errors import Aborted
from oxigrad.distributed.messages.message import size_of
from oxigrad.distributed.messages.reduction import Op, reduce_in_order


class ThreadCommunicator(EngineCommunicator):
    """The communicator of the worker ``uid``, which is a thread: see `Communicator`."""

    def __init__(self, hub: ThreadHub, uid: str, place: Place, timeout: float) -> None:
        self._hub, self._uid, self._place = hub, uid, place
        is_first = place.generation == hub.restarts[0, place.rank] == 0
        super().__init__(place, hub.job, timeout, Trainings(is_known=is_first))
        self._restarts = [hub.restarts[place.generation, rank] for rank in range(place.size)]
        self._calls = 0

    # --- operations on all workers -------------------------------------------------------------------------------------

    def _all_reduce(self, bufs: Sequence[Buffer], op: Op, seconds: float, *, deterministic: bool) -> None:
        kind = ("all_reduce", op, *((buffer.dtype, buffer.size) for buffer in bufs))
        is_small = size_of(bufs) <= SMALL
        contributions, reduced = self._collect(kind, [b.copy() for b in bufs] if is_small else [*bufs], seconds)
        if is_small:
            for at, buffer in enumerate(bufs):
                reduce_in_order([of_rank[at] for of_rank in contributions], op, buffer)
            return
        for at, result in enumerate(reduced):
            part = slice(*(result.size * rank // self.size for rank in (self.rank, self.rank + 1)))
            reduce_in_order([of_rank[at][part] for of_rank in contributions], op, result[part])
        self._collect(("all_reduce", "slices"), [], seconds)  # all have reduced theirs
        for target, source in zip(bufs, reduced, strict=True):
            np.copyto(target, source)

    def _broadcast(self, bufs: Sequence[Buffer], root: int, seconds: float) -> None:
        kind = ("broadcast", root, *((buffer.dtype, buffer.size) for buffer in bufs))
        contributions, _ = self._collect(kind, [b.copy() for b in bufs] if self.rank == root else [], seconds)
        for target, source in zip(bufs, contributions[root], strict=True):
            np.copyto(target, source)

    def _all_gather_v(self, buf: Buffer, seconds: float) -> list[Buffer]:
        contributions, _ = self._collect(("all_gather_v", buf.dtype), [buf.copy()], seconds)
        for (buffer,) in contributions:
            buffer.flags.writeable = False
        return [buffer for (buffer,) in contributions]

    def _collect(
        self, kind: tuple[Any, ...], contribution: list[Buffer], seconds: float
    ) -> tuple[list[list[Buffer]], list[Buffer]]:
        """The contributions of all workers by rank, and memory for the result where they are large."""
        self._calls += 1
        return self._ask(kind[0], self._hub.collect, self._place, self._calls, kind, contribution, seconds)

    # --- messages ------------------------------------------------------------------------------------------------------

    def _post(self, dest: int, message: np.ndarray) -> None:
        self._ask("send", self._hub.post, dest, self.generation, message)

    def _poll(self, tag: int, source: int | None, wait: Backoff) -> Arrival | None:
        with self._hub.lock:  # so that no worker is restarted between its message and the look at restarts
            message = self._ask("recv_any", self._hub.take, self._place, tag, source, wait.remaining())
            restarts = [self._hub.restarts[self.generation, rank] for rank in range(self.size)]
        before, self._restarts = self._restarts, restarts
        for rank in [rank for rank in range(self.size) if restarts[rank] != before[rank]]:
            self._guard.forget(rank)
        return None if message is None else Arrival.of(message)

    # --- membership ----------------------------------------------------------------------------------------------------

    def alive(self) -> frozenset[int]:
        """See `Communicator.alive`."""
        return frozenset(self._ask("alive", self._hub.alive, self._uid, self.generation))

    def run_in(self, thread: threading.Thread) -> None:
        """Notes the thread of the worker."""
        self._hub.threads[self._uid] = thread

    def exclude(self, rank: int) -> None:
        """See `Communicator.exclude`."""
        self._check_rank(rank, "the rank")
        self._ask("exclude", self._hub.exclude, self._place, rank)

    def reform(self, *, timeout: float | None = None) -> "ThreadCommunicator":
        """See `Communicator.reform`."""
        place = self._ask("reform", self._hub.reform, self._uid, self._place, self._limit(timeout))
        following = type(self)(self._hub, self._uid, place, self.timeout)
        succeed(self, following)
        return following

    def leave(self) -> None:
        """See `Communicator.leave`."""
        self._hub.call(self._uid, self._hub.leave, self._uid)

    def abort(self, reason: str) -> NoReturn:
        """See `Communicator.abort`."""
        self._hub.call(self._uid, self._hub.abort, reason)
        raise Aborted(reason)

    def _ask(self, what: str, method: Any, *args: Any) -> Any:
        """The value of the outcome of a method of the hub. Raises the error for a failure."""
        return self._hub.ask(self._uid, method, *args).read(what, self._place)
