"""The communicator of a process of ``torch.distributed``."""

import contextlib
import functools
import itertools
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from oxigrad.distributed.communicator import Buffer, Place
from oxigrad.distributed.engines.background import await_late, in_time
from oxigrad.distributed.engines.backoff import Backoff
from oxigrad.distributed.engines.collectives import ByteCollectives, Works
from oxigrad.distributed.engines.mailbox import Message
from oxigrad.distributed.engines.peers import ABORTED, FORMS, LEFT, NOTICE, Peers, notice
from oxigrad.distributed.engines.torch.library import Group, failures_of_store
from oxigrad.distributed.engines.torch.rendezvous import Rendezvous, patience_of
from oxigrad.distributed.engines.torch.tensors import TensorGroup
from oxigrad.distributed.errors import (
    Aborted,
    CommunicationError,
    NotSupported,
)
from oxigrad.distributed.messages.message import Header
from oxigrad.distributed.messages.reduction import Op

_LOOK = 0.25
"""Seconds between two looks at the rendezvous for processes that wait to join."""

_NO_RENDEZVOUS = (
    "the workers cannot form the next generation: the process that has the rendezvous of the job, of rank 0 or of "
    "torchrun, has ended or is stopped; restart the job from its checkpoint"
)

_BRIEF = 1.0
"""Seconds for which the rendezvous is waited for where a worker has died."""

_PATIENCE = 5.0
"""Seconds that a program's end waits for an excluded worker, which may hang, and for operations that fail."""


class TorchCommunicator(ByteCollectives):
    """The communicator of a process of ``torch.distributed``; see `oxigrad.distributed.communicator.Communicator`.

    Args:
        rendezvous: the part of this process in the job.
        group: its connections to the others.
        timeout: seconds that a wait takes at most.
        program: the process group of the program, where it has the same processes.
    """

    _errors: ClassVar[tuple[type[Exception], ...]] = (RuntimeError,)

    def __init__(self, rendezvous: Rendezvous, group: Group, timeout: float, program: Any = None) -> None:
        self._program = program
        self._rendezvous = rendezvous
        rendezvous.communicator = self
        self._group = group
        place = Place(self._group.rank, self._group.size, rendezvous.generation)
        super().__init__(place, rendezvous.job, timeout, Peers(place.generation, range(place.size), place.rank))
        self._changed = threading.Condition(self._lock)
        self._has_ended = threading.Event()
        others = [rank for rank in range(self.size) if rank != self.rank]
        self._outboxes: dict[int, queue.SimpleQueue[Any]] = {rank: queue.SimpleQueue() for rank in others}
        #: The threads that send to each other worker, and receive from it.
        self._threads = {
            rank: [threading.Thread(target=f, args=(rank,), daemon=True) for f in (self._deliver_to, self._listen)]
            for rank in others
        }
        self._watch = threading.Thread(target=self._look_for_newcomers, name="rendezvous", daemon=True)
        for thread in (*itertools.chain.from_iterable(self._threads.values()), self._watch):
            thread.start()

    # --- operations on all workers ------------------------------------------------------------------------------------

    def _gather(self, data: np.ndarray, rows: np.ndarray) -> Works:
        return [self._group.all_gather(rows, data)]

    def _transpose(self, data: np.ndarray, counts: list[int], rows: np.ndarray) -> Works:
        return [self._group.all_to_all(rows, data, [counts[self.rank]] * self.size, counts)]

    def _share(self, data: np.ndarray, counts: list[int]) -> Works:
        parts = np.split(data, list(itertools.accumulate(counts[:-1])))
        return [self._group.broadcast(part, rank) for rank, part in enumerate(parts) if part.nbytes]

    def _reduce_natively(self, buffer: Buffer, op: Op) -> Works:
        return [self._group.all_reduce(buffer, op)]

    def tensors(self, leaves: Sequence[Any]) -> TensorGroup | None:
        """The sums of such tensors by the program's process group.

        None where it has other processes, or they travel over the host.
        """
        return None if self._program is None or self.size == 1 else TensorGroup.of(self._program, leaves)

    def _is_done(self, work: Any) -> bool:
        return work.is_completed() and (work.wait() or True)

    def _lost(self, what: str) -> CommunicationError:
        """See `ByteCollectives._lost`: a connection is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._peers.lost() or self._peers.forming, 1.0)
        try:
            self._check(what)
        except CommunicationError as error:
            return error
        return self._peers.loss(self._peers.lost(), what)

    # --- messages -----------------------------------------------------------------------------------------------------

    def _dispatch(self, dest: int, message: np.ndarray) -> None:
        if dest == self.rank:
            self._deliver(message, dest)
        else:
            self._outboxes[dest].put(message)

    def _tell(self, words: np.ndarray) -> None:
        is_last = words[0] in (LEFT, ABORTED)
        if is_last and self.rank in self._peers.left:
            return
        # An excluded worker may go on again: it is told of the end too.
        dests = set(range(self.size)) - self._peers.dead if is_last else self._peers.alive()
        message = self._sealed(Header(NOTICE), [words])
        self._deliver(message, self.rank)
        for dest in dests - {self.rank}:
            for item in (message, None) if is_last else (message,):  # None ends the thread that sends
                self._outboxes[dest].put(item)

    def _deliver_to(self, dest: int) -> None:
        """Sends a worker's outbox in order: gloo waits until a message is received, also by a stopped process."""
        try:
            while (message := self._outboxes[dest].get()) is not None:
                self._group.send(np.array([len(message)]), dest)
                self._group.send(message, dest)
        except RuntimeError:  # the connection is closed
            self._note_closed(dest)

    def _listen(self, source: int) -> None:
        """Receives the messages of one worker, until it leaves or dies."""
        length = np.empty(1, np.int64)
        try:
            while source not in self._peers.left:
                self._group.receive(length, source)
                data = np.empty(length[0], np.uint8)
                self._group.receive(data, source)
                self._deliver(data, source)
        except (RuntimeError, ValueError, MemoryError):  # the connection is closed, or the length is of no message
            self._note_closed(source)

    def _deliver(self, message: np.ndarray, source: int) -> None:
        with self._changed:
            super()._deliver(message, source)
            self._changed.notify_all()

    def _poll(self, tag: int, source: int | None, wait: Backoff) -> Message | None:
        with self._changed:
            return super()._poll(tag, source, wait)

    def _pause(self, wait: Backoff) -> None:
        self._changed.wait(wait.remaining())

    # --- membership ---------------------------------------------------------------------------------------------------

    @property
    def has_excluded(self) -> bool:
        """Whether a worker, which may be this one, was excluded."""
        return bool(self._peers.excluded)

    def _note_closed(self, rank: int) -> None:
        """Notes that a worker is gone: it died, or formed the next generation without this one, which was stopped."""
        is_excluded = False
        with contextlib.suppress(RuntimeError):
            if not self._has_ended.is_set():
                ask = functools.partial(self._rendezvous.excludes_this, self.generation)
                is_excluded = in_time(ask, _BRIEF, CommunicationError(_NO_RENDEZVOUS))
        with self._changed:
            (self._peers.excluded if is_excluded else self._peers.dead).add(self.rank if is_excluded else rank)
            self._changed.notify_all()
        self._outboxes[rank].put(None)  # ends the thread that sends to it, which nobody tells that this worker leaves

    def _announce_forming(self) -> None:
        """Tells all that this generation ends: their waits raise `WorkerLost`, except in operations that it joined."""
        if self.rank not in self._peers.forming:
            self._tell(notice(FORMS, self._calls - (self._failure is not None)))

    def _look_for_newcomers(self) -> None:
        """Ends the generation as soon as a process waits to join: the first worker that lives asks the rendezvous."""
        while self._rendezvous.accepts_newcomers and not self._has_ended.wait(_LOOK):
            if self.rank == min(self._peers.alive(), default=None):
                try:
                    if self._rendezvous.newcomers():
                        self._announce_forming()
                        return
                except RuntimeError:  # the store has ended, so that no process can join
                    return

    def _following(self, seconds: float) -> Self:
        """See `Communicator._following`.

        Raises `NotSupported` where the process that has the rendezvous of the job has ended, or is stopped: that of
        rank 0 at the start, or torchrun's.
        """
        self._look()
        if self._has_ended.is_set():
            raise self._failure or NotSupported("reform: this worker has left, or has another communicator since")
        self._announce_forming()
        try:
            with failures_of_store(NotSupported, _NO_RENDEZVOUS):
                late = NotSupported(_NO_RENDEZVOUS)
                decided = functools.partial(self._rendezvous.decided, self.alive, seconds)
                members = in_time(decided, seconds + _BRIEF, late)
                self._await_notices(members)
                self._end()
                connected = functools.partial(self._rendezvous.connect, members, seconds)
                group = in_time(connected, 6 * patience_of(seconds), late)
        except CommunicationError as error:
            self._failure = self._failure or error
            self._rendezvous.is_given_up = isinstance(error, NotSupported)
            raise
        return type(self)(self._rendezvous, group, self.timeout)

    def _await_notices(self, members: Sequence[str]) -> None:
        """Waits for the notices of workers that have left: another worker may have received them earlier."""
        gone = {rank for rank, uid in enumerate(self._rendezvous.members) if uid not in members}
        with self._changed:
            self._changed.wait_for(lambda: gone <= self._peers.lost(), _BRIEF)

    def _end(self) -> None:
        """Ends the connections of this generation, so that late messages are not written to memory in use again."""
        self._has_ended.set()
        self._group.close()
        wait = Backoff(_PATIENCE)
        for outbox in self._outboxes.values():
            outbox.put(None)
        for thread in (*itertools.chain.from_iterable(self._threads.values()), self._watch):
            if thread is not threading.current_thread():
                thread.join(wait.remaining())
        wait.until(lambda: all(work.is_completed() for work in self._under_way))

    def leave(self) -> None:
        """See `Communicator.leave`."""
        if self.rank not in self._peers.left and not self._has_ended.is_set():
            self._has_ended.set()
            self._tell_rendezvous(lambda: self._rendezvous.leave(len(self._peers.absent)))
            self._tell(notice(LEFT, self._calls, self.trainings.unfinished))

    @property
    def has_left(self) -> bool:
        """Whether this worker has left."""
        return self._has_ended.is_set()

    def _tell_rendezvous(self, tell: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # nobody can join where its process has ended, or is stopped
            in_time(tell, min(self.timeout, _PATIENCE), CommunicationError(_NO_RENDEZVOUS))

    def close(self) -> None:
        """Leaves, and waits until all other workers left or died: gloo requires this before groups are destroyed.

        It is called at the end of the program; call it before ``destroy_process_group``.
        """
        if self._rendezvous.communicator is not self:
            return
        self.leave()
        wait, brief = Backoff(self.timeout), Backoff(min(self.timeout, _PATIENCE))
        for rank, threads in self._threads.items():
            is_excluded = not self._peers.excluded.isdisjoint((rank, self.rank))
            for thread in threads:
                # One that returns from gloo while the interpreter ends would abort the process.
                thread.join((brief if is_excluded else wait).remaining())
        await_late(brief.remaining())

    def abort(self, reason: str) -> NoReturn:
        """See `Communicator.abort`. The other workers are told that the job ends, but not the reason."""
        self._peers.reason = reason
        self._tell_rendezvous(lambda: self._rendezvous.end(f"rank {self.rank} aborted it"))
        self._tell(notice(ABORTED))
        raise Aborted(reason)
