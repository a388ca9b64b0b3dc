"""The communicator of a process of ``torch.distributed``."""

import contextlib
import functools
import itertools
import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np

from oxigrad.distributed.communicator import Buffer, Place, succeed
from oxigrad.distributed.engines.background import await_late, in_time
from oxigrad.distributed.engines.backoff import Backoff
from oxigrad.distributed.engines.collectives import ByteCollectives
from oxigrad.distributed.engines.mailbox import Mailbox, Message
from oxigrad.distributed.engines.torch.library import Group, failures_of_store
from oxigrad.distributed.engines.torch.rendezvous import Rendezvous, patience_of
from oxigrad.distributed.engines.torch.tensors import TensorGroup
from oxigrad.distributed.errors import (
    Aborted,
    CommunicationError,
    Excluded,
    NotSupported,
    Refused,
)
from oxigrad.distributed.messages.message import HEADER_BYTES
from oxigrad.distributed.messages.reduction import Op

_LONGEST = 1 << 40
"""Bytes that no message has: a sender that announces more is given up."""

_LEFT, _ABORTED, _EXCLUDED, _FORMS = -1, -2, -3, -4
"""Announced in place of a message's length: the sender left, aborted the job, excludes a worker, or re-forms."""

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
        groups: those of operations on all workers, and of messages.
        timeout: seconds that a wait takes at most.
        program: the process group of the program, where it has the same processes.
    """

    _errors: ClassVar[tuple[type[Exception], ...]] = (RuntimeError,)

    def __init__(self, rendezvous: Rendezvous, groups: list[Group], timeout: float, program: Any = None) -> None:
        self._program = program
        self._rendezvous = rendezvous
        rendezvous.communicator = self
        self._group, self._channel = groups
        super().__init__(Place(self._group.rank, self._group.size, rendezvous.generation), rendezvous.job, timeout)
        self._changed = threading.Condition()
        self._dead: set[int] = set()
        self._excluded: set[int] = set()
        #: The workers that have left, and those that form the next generation, and how many operations on all
        #: workers they took part in before.
        self._left: dict[int, int] = {}
        self._forming: dict[int, int] = {}
        self._reason: str | None = None
        self._mail = Mailbox(self.job, self.generation, self.size)
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

    def _gather(self, data: np.ndarray, rows: np.ndarray, what: str, seconds: float) -> None:
        self._run(what, seconds, lambda: [self._group.all_gather(rows, data)])

    def _transpose(self, data: np.ndarray, counts: list[int], rows: np.ndarray, what: str, seconds: float) -> None:
        equal = [counts[self.rank]] * self.size
        self._run(what, seconds, lambda: [self._group.all_to_all(rows, data, equal, counts)])

    def _share(self, data: np.ndarray, counts: list[int], what: str, seconds: float) -> None:
        parts = np.split(data, list(itertools.accumulate(counts[:-1])))
        self._run(
            what,
            seconds,
            lambda: [self._group.broadcast(part, rank) for rank, part in enumerate(parts) if part.nbytes],
        )

    def _spread(self, data: np.ndarray, root: int, seconds: float) -> None:
        self._run("broadcast", seconds, lambda: [self._group.broadcast(data, root)])

    def _reduce_natively(self, buffer: Buffer, op: Op, seconds: float) -> None:
        self._run("all_reduce", seconds, lambda: [self._group.all_reduce(buffer, op)])

    def tensors(self, leaves: Sequence[Any]) -> TensorGroup | None:
        """The sums of such tensors by the program's process group.

        None where it has other processes, or they travel over the host.
        """
        return None if self._program is None or self.size == 1 else TensorGroup.of(self._program, leaves)

    def _run(self, what: str, seconds: float, begin: Callable[[], Iterable[Any]]) -> None:
        def checked() -> Iterable[Any]:
            self._check(what)
            return begin()

        super()._run(what, seconds, checked)

    def _is_done(self, work: Any) -> bool:
        return work.is_completed() and (work.wait() or True)

    def _lost(self, what: str) -> CommunicationError:
        """See `ByteCollectives._lost`: a connection is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._dead or self._left or self._forming, 1.0)
        try:
            self._check(what)
        except CommunicationError as error:
            return error
        return self._loss(self._gone(), what)

    def _check(self, what: str) -> None:
        """Raises an error where the job is aborted, or a worker takes no part in the present operation."""
        if self._reason is not None:
            raise Aborted(self._reason)
        self._check_fence()
        lost = self._absent(self._left) | self._dead | self._excluded
        if lost or self._absent(self._forming):
            raise self._loss(lost, what)

    def _absent(self, calls: dict[int, int]) -> set[int]:
        """The workers, of those whose operations are counted here, that take no part in the present one."""
        return {rank for rank, count in list(calls.items()) if count < self._calls}

    # --- messages -----------------------------------------------------------------------------------------------------

    def _post(self, dest: int, message: np.ndarray) -> None:
        if dest not in self.alive():
            raise self._loss([dest], "send")
        if dest == self.rank:
            self._deliver(message, dest)
            return
        self._outboxes[dest].put([np.array([len(message), self._calls]), message])

    def _announce(self, dest: int, notice: int, detail: int | None = None) -> None:
        self._outboxes[dest].put([np.array([notice, self._calls if detail is None else detail])])

    def _deliver_to(self, dest: int) -> None:
        """Sends a worker's outbox in order: gloo waits until a message is received, also by a stopped process."""
        try:
            while (message := self._outboxes[dest].get()) is not None:
                for part in message:
                    self._channel.send(part, dest)
        except RuntimeError:  # the connection is closed
            self._note_closed(dest)

    def _listen(self, source: int) -> None:
        """Receives the messages of one worker, until it leaves or dies."""
        length = np.empty(2, np.int64)
        try:
            while True:
                self._channel.receive(length, source)
                count, calls = length.tolist()
                if count == _EXCLUDED:
                    self._note_excluded(calls)
                    continue
                if count == _FORMS:
                    self._note_forming(source, calls)
                    continue
                if not HEADER_BYTES <= count < _LONGEST:
                    break
                data = np.empty(count, np.uint8)
                self._channel.receive(data, source)
                self._deliver(data, source)
            step = np.full(1, -1, np.int64)
            if count == _LEFT:
                self._channel.receive(step, source)
            with self._changed:
                if step[0] >= 0:
                    self.unfinished[source] = int(step[0])
                if count == _ABORTED:
                    self._reason = f"rank {source} aborted the job"
                self._left[source] = calls if count == _LEFT else 0
                self._changed.notify_all()
        except RuntimeError:  # the connection is closed
            self._note_closed(source)

    def _deliver(self, message: np.ndarray, source: int) -> None:
        with self._changed:
            try:
                self._mail.put(message, source)
            except Refused as error:
                self.refused.add(error)
            self._changed.notify_all()

    def _poll(self, tag: int, source: int | None, wait: Backoff) -> Message | None:
        message: Message | None = None

        def is_over() -> bool:
            nonlocal message
            message = self._mail.take(tag, source)
            is_ending = self._reason is not None or self._forming or self.rank in self._excluded
            return message is not None or bool(is_ending) or source in self._gone()

        with self._changed:
            self._changed.wait_for(is_over, wait.remaining())
            self._check_fence()
            if message is not None:
                return message
            if self._reason is not None:
                raise Aborted(self._reason)
            if source is not None and source in self._gone():
                raise self._loss([source], "recv_any")
            if self._forming:
                raise self._loss(self._gone(), "recv_any")
            return None

    # --- membership ---------------------------------------------------------------------------------------------------

    def _gone(self) -> set[int]:
        return {*self._dead, *self._left, *self._excluded}

    def alive(self) -> frozenset[int]:
        """See `Communicator.alive`."""
        self._check_fence()
        return frozenset(range(self.size)) - self._gone()

    @property
    def has_excluded(self) -> bool:
        """Whether a worker, which may be this one, was excluded."""
        return bool(self._excluded)

    def _check_fence(self) -> None:
        if self.rank in self._excluded:
            raise Excluded(self.rank, self.generation)

    def exclude(self, rank: int) -> None:
        """See `Communicator.exclude`."""
        self._check_rank(rank, "the rank")
        self._check_fence()
        if rank in self._gone():
            return
        self._note_excluded(rank)
        for dest in set(range(self.size)) - self._dead - set(self._left) - {self.rank}:
            self._announce(dest, _EXCLUDED, rank)

    def _note_closed(self, rank: int) -> None:
        """Notes that a worker is gone: it died, or formed the next generation without this one, which was stopped."""
        is_excluded = False
        with contextlib.suppress(RuntimeError):
            if not self._has_ended.is_set():
                ask = functools.partial(self._rendezvous.excludes_this, self.generation)
                is_excluded = in_time(ask, _BRIEF, CommunicationError(_NO_RENDEZVOUS))
        with self._changed:
            (self._excluded if is_excluded else self._dead).add(self.rank if is_excluded else rank)
            self._changed.notify_all()
        self._outboxes[rank].put(None)  # ends the thread that sends to it, which nobody tells that this worker leaves

    def _note_excluded(self, rank: int) -> None:
        with self._changed:
            self._excluded.add(rank)
            self._changed.notify_all()

    def _note_forming(self, rank: int, calls: int) -> None:
        with self._changed:
            self._forming.setdefault(rank, calls)
            self._changed.notify_all()

    def _announce_forming(self) -> None:
        """Tells all that this generation ends: their waits raise `WorkerLost`, except in operations that it joined."""
        if self.rank not in self._forming:
            self._note_forming(self.rank, self._calls - (self._failure is not None))
            for dest in set(range(self.size)) - self._gone() - {self.rank}:
                self._announce(dest, _FORMS, self._forming[self.rank])

    def _look_for_newcomers(self) -> None:
        """Ends the generation as soon as a process waits to join: the first worker that lives asks the rendezvous."""
        while self._rendezvous.accepts_newcomers and not self._has_ended.wait(_LOOK):
            if self.rank == min(set(range(self.size)) - self._gone(), default=None):
                try:
                    if self._rendezvous.newcomers():
                        self._announce_forming()
                        return
                except RuntimeError:  # the store has ended, so that no process can join
                    return

    def reform(self, *, timeout: float | None = None) -> "TorchCommunicator":
        """See `Communicator.reform`.

        Raises `NotSupported` where the process that has the rendezvous of the job has ended, or is stopped: that of
        rank 0 at the start, or torchrun's.
        """
        seconds = self._limit(timeout)
        self._check_fence()
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
                groups = in_time(connected, 6 * patience_of(seconds), late)
        except CommunicationError as error:
            self._failure = self._failure or error
            self._rendezvous.is_given_up = isinstance(error, NotSupported)
            raise
        following = type(self)(self._rendezvous, groups, self.timeout)
        succeed(self, following)
        return following

    def _await_notices(self, members: Sequence[str]) -> None:
        """Waits for the notices of workers that have left: another worker may have received them earlier."""
        gone = {rank for rank, uid in enumerate(self._rendezvous.members) if uid not in members}
        with self._changed:
            self._changed.wait_for(lambda: gone <= self._gone(), _BRIEF)

    def _end(self) -> None:
        """Ends the connections of this generation, so that late messages are not written to memory in use again."""
        self._has_ended.set()
        for group in (self._group, self._channel):
            group.close()
        wait = Backoff(_PATIENCE)
        for outbox in self._outboxes.values():
            outbox.put(None)
        for thread in (*itertools.chain.from_iterable(self._threads.values()), self._watch):
            if thread is not threading.current_thread():
                thread.join(wait.remaining())
        while not all(work.is_completed() for work in self._under_way) and not wait.is_over():
            wait.pause()

    def leave(self) -> None:
        """See `Communicator.leave`."""
        if self.rank not in self._left and not self._has_ended.is_set():
            self._has_ended.set()
            self._tell_rendezvous(lambda: self._rendezvous.leave(len(self._dead | self._excluded)))
            self._tell_all(_LEFT)

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
            is_excluded = not self._excluded.isdisjoint((rank, self.rank))
            for thread in threads:
                # One that returns from gloo while the interpreter ends would abort the process.
                thread.join((brief if is_excluded else wait).remaining())
        await_late(brief.remaining())

    def abort(self, reason: str) -> NoReturn:
        """See `Communicator.abort`. The other workers are told that the job ends, but not the reason."""
        self._reason = reason
        self._tell_rendezvous(lambda: self._rendezvous.end(f"rank {self.rank} aborted it"))
        self._tell_all(_ABORTED)
        raise Aborted(reason)

    def _tell_all(self, notice: int) -> None:
        if self.rank not in self._left:
            for dest in set(range(self.size)) - self._dead - {self.rank}:  # excluded ones too, which may go on again
                self._announce(dest, notice)
                if notice == _LEFT:
                    step = self.trainings.unfinished
                    self._outboxes[dest].put([np.array([-1 if step is None else step])])
                self._outboxes[dest].put(None)
            self._left[self.rank] = self._calls
