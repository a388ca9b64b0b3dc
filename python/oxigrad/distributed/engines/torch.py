"""Workers as the processes of ``torch.distributed``, which torchrun or the program itself has started.

Buffers are NumPy arrays in host memory, which torch uses without a copy; they travel over groups of gloo that are made for them,
whatever the backend of the program's own group is. Such a group cannot change its members: after the death of a worker the
others get `WorkerLost`, and `TorchCommunicator.reform` raises `NotSupported`.
"""

import atexit
import contextlib
import datetime
import importlib
import itertools
import queue
import secrets
import threading
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from oxigrad.distributed.communicator import TIMEOUT, Buffer, Communicator, current, serving
from oxigrad.distributed.engines.backoff import Backoff
from oxigrad.distributed.engines.base import Arrival, Place
from oxigrad.distributed.engines.collectives import ByteCollectives
from oxigrad.distributed.engines.mailbox import Mailbox
from oxigrad.distributed.errors import Aborted, CommunicationError, Excluded, NotSupported, TimedOut, WorkerLost
from oxigrad.distributed.messages.agreement import check_versions, version
from oxigrad.distributed.messages.message import HEADER_BYTES, Guard
from oxigrad.distributed.messages.reduction import Op

torch: Any = importlib.import_module("torch")  # and not this module, which has the name too
distributed: Any = importlib.import_module("torch.distributed")

__all__ = ["TorchCommunicator", "communicator", "run"]

_LONGEST = 1 << 40
"""Bytes that no message has: a sender that announces more is given up."""

_LEFT, _ABORTED, _EXCLUDED = -1, -2, -3
"""Announced instead of the length of a message: its sender has left, has aborted the job, or excludes a worker."""


class TorchCommunicator(ByteCollectives):
    """The communicator of a process of ``torch.distributed``; see `oxigrad.distributed.communicator.Communicator`.

    Args:
        timeout: seconds that a wait takes at most.
        group: the processes that take part; by default all. All of them make a communicator at the same time.

    Raises `CommunicationError` where ``torch.distributed`` is not initialized, `TimedOut` where a process does not make its own, and
    `Refused` on all processes where they run other versions of the package.
    """

    job: bytes

    def __init__(self, timeout: float = TIMEOUT, group: Any = None) -> None:
        if not distributed.is_initialized():
            raise CommunicationError("torch.distributed is not initialized: call init_process_group first")
        self._world = distributed.get_process_group_ranks(group or distributed.group.WORLD)
        limit = datetime.timedelta(seconds=max(timeout, 1.0) * 2 + 3600)  # waits end by the time-outs of this class
        self._group, self._channel = _made_in_time(
            lambda: [distributed.new_group(self._world, timeout=limit, backend="gloo") for _ in range(2)], timeout
        )
        super().__init__(Place(self._world.index(distributed.get_rank()), len(self._world), 0), bytes(16), timeout)
        self._changed = threading.Condition()
        self._dead: set[int] = set()
        self._excluded: set[int] = set()
        #: The workers that have left, and how many operations on all workers they took part in before.
        self._left: dict[int, int] = {}
        self._reason: str | None = None
        self._mail = Mailbox()
        job = np.frombuffer(secrets.token_bytes(16), np.uint8).copy()
        self.broadcast([job])
        self.job = job.tobytes()
        check_versions(np.concatenate(self.all_gather_v(version())))
        self.bytes_sent = 0
        self._guard = Guard(self.job, 0, self.size)
        others = [rank for rank in range(self.size) if rank != self.rank]
        self._outboxes: dict[int, queue.SimpleQueue[Any]] = {rank: queue.SimpleQueue() for rank in others}
        #: The threads that send to each other worker, and receive from it.
        self._threads = {
            rank: [threading.Thread(target=f, args=(rank,), daemon=True) for f in (self._deliver_to, self._listen)]
            for rank in others
        }
        for thread in itertools.chain.from_iterable(self._threads.values()):
            thread.start()
        atexit.register(self.close)

    # --- operations on all workers -------------------------------------------------------------------------------------

    def _gather(self, own: np.ndarray, rows: np.ndarray, what: str, seconds: float) -> None:
        tensors = torch.from_numpy(rows), torch.from_numpy(own)
        self._run(what, seconds, lambda: [distributed.all_gather_into_tensor(*tensors, self._group, async_op=True)])

    def _transpose(self, data: np.ndarray, counts: list[int], rows: np.ndarray, what: str, seconds: float) -> None:
        tensors, equal = (torch.from_numpy(rows), torch.from_numpy(data)), [counts[self.rank]] * self.size
        self._run(
            what,
            seconds,
            lambda: [distributed.all_to_all_single(*tensors, equal, counts, self._group, async_op=True)],
        )

    def _share(self, data: np.ndarray, counts: list[int], what: str, seconds: float) -> None:
        parts = np.split(data, list(itertools.accumulate(counts[:-1])))
        self._run(what, seconds, lambda: [self._begun(part, rank) for rank, part in enumerate(parts) if part.nbytes])

    def _spread(self, data: np.ndarray, root: int, seconds: float) -> None:
        self._run("broadcast", seconds, lambda: [self._begun(data, root)])

    def _begun(self, data: np.ndarray, root: int) -> Any:
        """A broadcast that has begun."""
        return distributed.broadcast(torch.from_numpy(data), self._world[root], self._group, async_op=True)

    def _reduce_natively(self, buffer: Buffer, op: Op, seconds: float) -> None:
        kind = distributed.ReduceOp.MAX if op == "max" else distributed.ReduceOp.SUM
        tensor = torch.from_numpy(buffer)
        self._run("all_reduce", seconds, lambda: [distributed.all_reduce(tensor, kind, self._group, async_op=True)])

    def _run(self, what: str, seconds: float, begin: Callable[[], list[Any]]) -> None:
        """Begins operations, and waits for them."""
        wait = Backoff(seconds)
        with self._failures(what):
            for work in begin():
                while not work.is_completed():
                    self._check(what)
                    if wait.is_over():
                        self._failure = TimedOut(
                            f"{what} took more than {seconds:g} s: a worker is stopped, slow, or has not called it; this "
                            "communicator cannot be used further"
                        )
                        raise self._failure
                    wait.pause()
                work.wait()

    @contextlib.contextmanager
    def _failures(self, what: str) -> Any:
        """A context in which the errors of gloo are raised as those of communication."""
        try:
            yield
        except CommunicationError:
            raise
        except RuntimeError as error:  # gloo: a connection is closed
            with self._changed:
                self._changed.wait_for(lambda: self._dead or self._left, 1.0)
            self._check(what)
            self._failure = WorkerLost(self._gone(), what)
            raise self._failure from error

    def _check(self, what: str) -> None:
        """Raises an error where the job is aborted, or a worker takes no part in the present operation."""
        if self._reason is not None:
            raise Aborted(self._reason)
        self._check_fence()
        left = {rank for rank, calls in list(self._left.items()) if calls < self._calls}
        if lost := left | self._dead | self._excluded:
            self._failure = WorkerLost(lost, what)
            raise self._failure

    # --- messages ------------------------------------------------------------------------------------------------------

    def _post(self, dest: int, message: np.ndarray) -> None:
        if dest not in self.alive():
            raise WorkerLost([dest], "send")
        if dest == self.rank:
            self._deliver(message)
            return
        self._outboxes[dest].put([torch.tensor([len(message), self._calls]), torch.from_numpy(message)])

    def _announce(self, dest: int, notice: int, detail: int | None = None) -> None:
        self._outboxes[dest].put([torch.tensor([notice, self._calls if detail is None else detail])])

    def _deliver_to(self, dest: int) -> None:
        """Sends what is in the outbox of a worker, one after the other: gloo waits until it is received, also by a stopped process."""
        try:
            while (message := self._outboxes[dest].get()) is not None:
                for tensor in message:
                    distributed.send(tensor, self._world[dest], self._channel)
        except RuntimeError:  # the connection is closed
            with self._changed:
                self._dead.add(dest)
                self._changed.notify_all()

    def _listen(self, source: int) -> None:
        """Receives the messages of one worker, until it leaves or dies."""
        length = torch.empty(2, dtype=torch.int64)
        try:
            while True:
                distributed.recv(length, self._world[source], self._channel)
                count, calls = length.tolist()
                if count == _EXCLUDED:
                    self._note_excluded(calls)
                    continue
                if not HEADER_BYTES <= count < _LONGEST:
                    break
                data = np.empty(count, np.uint8)
                distributed.recv(torch.from_numpy(data), self._world[source], self._channel)
                self._deliver(data)
            with self._changed:
                if count == _ABORTED:
                    self._reason = f"rank {source} aborted the job"
                self._left[source] = calls if count == _LEFT else 0
                self._changed.notify_all()
        except RuntimeError:  # the connection is closed
            with self._changed:
                self._dead.add(source)
                self._changed.notify_all()

    def _deliver(self, message: np.ndarray) -> None:
        with self._changed:
            self._mail.put(message)
            self._changed.notify_all()

    def _poll(self, tag: int, source: int | None, wait: Backoff) -> Arrival | None:
        message: np.ndarray | None = None

        def is_over() -> bool:
            nonlocal message
            message = self._mail.take(tag, source)
            return (
                message is not None or self._reason is not None or self.rank in self._excluded or source in self._gone()
            )

        with self._changed:
            self._changed.wait_for(is_over, wait.remaining())
            self._check_fence()
            if message is not None:
                return Arrival.of(message)
            if self._reason is not None:
                raise Aborted(self._reason)
            if source is not None and source in self._gone():
                raise WorkerLost([source], "recv_any")
            return None

    # --- membership ----------------------------------------------------------------------------------------------------

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
        self._check_fence()
        if rank in self._gone():
            return
        self._note_excluded(rank)
        for dest in set(range(self.size)) - self._dead - set(self._left) - {self.rank}:
            with self._turns[dest]:
                self._announce(dest, _EXCLUDED, rank)

    def _note_excluded(self, rank: int) -> None:
        with self._changed:
            self._excluded.add(rank)
            self._changed.notify_all()

    def reform(self, *, timeout: float | None = None) -> NoReturn:
        """Raises `NotSupported`: a group of torch cannot change its members."""
        raise NotSupported(
            "torch.distributed cannot continue without a lost worker: restart the job from its checkpoint"
        )

    def leave(self) -> None:
        """See `Communicator.leave`."""
        self._tell_all(_LEFT)

    def close(self) -> None:
        """Leaves, and waits until all other workers have left or died, which groups of gloo have to before they are destroyed.

        It is called at the end of the program; call it before ``destroy_process_group``.
        """
        self.leave()
        wait, brief = Backoff(self.timeout), Backoff(min(self.timeout, _PATIENCE))
        for rank, threads in self._threads.items():
            is_excluded = not self._excluded.isdisjoint((rank, self.rank))
            for thread in threads:
                # One that returns from gloo while the interpreter ends would abort the process.
                thread.join((brief if is_excluded else wait).remaining())

    def abort(self, reason: str) -> NoReturn:
        """See `Communicator.abort`. The other workers are told that the job ends, but not the reason."""
        self._reason = reason
        self._tell_all(_ABORTED)
        raise Aborted(reason)

    def _tell_all(self, notice: int) -> None:
        if self.rank not in self._left:
            for dest in set(range(self.size)) - self._dead - {self.rank}:  # excluded ones too, which may go on again
                with self._turns[dest]:
                    self._announce(dest, notice)
                    self._outboxes[dest].put(None)
            self._left[self.rank] = self._calls


def _made_in_time(make: Callable[[], list[Any]], seconds: float) -> list[Any]:
    """Groups that all processes make. Raises `TimedOut` where another one does not, for which torch waits as long as for any operation."""
    groups: list[Any] = []
    failure: list[BaseException] = []

    def target() -> None:
        try:
            groups.extend(make())
        except BaseException as error:  # noqa: BLE001 - raised below
            failure.append(error)

    thread = threading.Thread(target=target, name="groups", daemon=True)
    thread.start()
    thread.join(seconds)
    if failure:
        raise failure[0]
    if thread.is_alive():
        raise TimedOut(
            f"the communicator is not made within {seconds:g} s: a worker has ended before, or does not make its own"
        )
    return groups


_PATIENCE = 5.0
"""Seconds for which the end of a program waits for a worker that was excluded, which may be stopped for ever."""

_made: list[TorchCommunicator] = []


def communicator(*, timeout: float = TIMEOUT, group: Any = None) -> TorchCommunicator:
    """The communicator of this process; the same one at each call. See `TorchCommunicator`."""
    if not _made:
        _made.append(TorchCommunicator(timeout, group))
    return _made[0]


def run(
    worker: Callable[[Communicator], Any], workers: int | None = None, *, timeout: float = TIMEOUT, **options: Any
) -> list[Any]:
    """Runs ``worker(communicator)`` in this process. See `oxigrad.distributed.run`.

    Without a group, one of gloo is initialized from the environment, as torchrun sets it. The list returned has this worker's result at
    its rank, and None at the others.
    """
    starts = not distributed.is_initialized()
    if starts:
        distributed.init_process_group("gloo", timeout=datetime.timedelta(seconds=timeout))
    made = communicator(timeout=timeout, **options)
    if workers not in (None, made.size):
        raise ValueError(f"workers is {workers}, but the group has {made.size}: expected the number of processes")
    try:
        with serving(made):
            result = worker(made)
            last = current()
    finally:
        made.leave()
    results = [None] * last.size
    results[last.rank] = result
    if starts:
        made.close()
        _made.clear()
        if not made.has_excluded:  # a group with a stopped process cannot be destroyed
            distributed.destroy_process_group()
    return results
