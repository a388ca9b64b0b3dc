"""The communicator of a worker that is a thread."""

import contextlib
import copy
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from oxigrad.distributed.communicator import Buffer, succeed
from oxigrad.distributed.decisions.training import Trainings
from oxigrad.distributed.engines.backoff import Backoff
from oxigrad.distributed.engines.base import Arrival, EngineCommunicator, Place
from oxigrad.distributed.engines.threads.group import Group, Round
from oxigrad.distributed.errors import Aborted, Refused, TimedOut, WorkerLost
from oxigrad.distributed.messages.message import size_of
from oxigrad.distributed.messages.reduction import Op, reduce_in_order

# Bytes up to which all workers reduce copies of all buffers; each reduces a slice of larger ones.
_SMALL = 1 << 15


class ThreadCommunicator(EngineCommunicator):
    """The communicator of a worker that is a thread: see `Communicator`."""

    def __init__(self, group: Group, rank: int, timeout: float) -> None:
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

    def _reduced(self, entered: Round, op: Op, seconds: float) -> list[Buffer]:
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
    def _round(self, kind: tuple[Any, ...], contribution: list[Buffer], seconds: float) -> Iterator[Round]:
        """A context in which all workers have contributed to the next collective operation."""
        group, number = self._group, self._rounds
        with group.changed:
            group.check(self._who)
            if group.next is not None:
                raise WorkerLost((), kind[0])
            self._rounds += 1
            entered = group.rounds.setdefault(number, Round(kind))
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

    def _wait_for(self, entered: Round, is_done: Callable[[], bool], seconds: float) -> None:
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
