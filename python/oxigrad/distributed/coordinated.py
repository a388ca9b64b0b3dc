"""Base class of wrapper optimizers whose steps a coordinator takes, by the gradients of all workers."""

import dataclasses
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self

import numpy as np

from oxigrad._core import StateError
from oxigrad._typing import Array, Tree
from oxigrad.distributed import agreement
from oxigrad.distributed.communicator import Alone, Communicator
from oxigrad.distributed.coordinator import (
    ANY,
    JOIN,
    LEAVE,
    PULL,
    PUSH,
    REPLY,
    REQUEST,
    STATE,
    UPDATES,
    Answer,
    Coordinator,
    serve,
)
from oxigrad.distributed.decisions.events import Told
from oxigrad.distributed.decisions.membership import Decisions
from oxigrad.distributed.errors import Aborted, CommunicationError, Refused, TimedOut, WorkerLost
from oxigrad.distributed.gradients import GradientCodec, SparseMean
from oxigrad.distributed.message import Header, as_bytes
from oxigrad.distributed.replica import Replica
from oxigrad.distributed.wrapper import WorkerReport, Wrapper
from oxigrad.optim.optimizer import Optimizer
from oxigrad.rules.ranges import Domain

__all__ = ["Coordinated"]


def __dir__() -> list[str]:
    return list(__all__)


_SPARSE_MEAN = Domain(("replicas", "touches"))


class Link(Protocol):
    """The connection of a worker to the coordinator."""

    def send(self, head: Header, bufs: Sequence[np.ndarray]) -> None:
        """Sends a request."""
        ...

    def receive(self, memory: Callable[[Header], list[np.ndarray]], timeout: float) -> Header | None:
        """Receives a reply, as `Communicator.recv_any`."""
        ...


class _ToRank:
    """The connection to a coordinator that one of the workers serves."""

    def __init__(self, communicator: Communicator, root: int) -> None:
        self._communicator, self._root = communicator, root

    def send(self, head: Header, bufs: Sequence[np.ndarray]) -> None:
        self._communicator.send(self._root, head, bufs)

    def receive(self, memory: Callable[[Header], list[np.ndarray]], timeout: float) -> Header | None:
        return self._communicator.recv_any(memory, tag=REPLY, source=self._root, timeout=timeout)


class _ToItself:
    """The connection of a single worker, which has the coordinator in its own thread."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._replies: deque[tuple[Header, list[np.ndarray]]] = deque()

    def send(self, head: Header, bufs: Sequence[np.ndarray]) -> None:
        payload = np.concatenate([as_bytes(buffer) for buffer in bufs])
        for reply in self._coordinator.receive(head, payload):
            sealed = Header(REPLY, reply.step, reply.digest).sealed(reply.bufs)
            self._replies.append((sealed, reply.bufs))

    def receive(self, memory: Callable[[Header], list[np.ndarray]], timeout: float) -> Header | None:
        if not self._replies:
            return None
        header, bufs = self._replies.popleft()
        np.concatenate([as_bytes(buffer) for buffer in bufs], out=memory(header)[0])
        return header


class Coordinated(Wrapper):
    """Base class of wrappers whose steps a coordinator takes: a thread of the worker of rank 0, by the rank's own optimizer.

    Every other worker has a replica of the parameters, which its own optimizer updates by the same gradients: `slots` and the
    state are whole on each worker, as of its last step, and the others continue after the loss of any of them (`reform`).

    Each worker pushes its gradients in `update` or `minimize`, which return with new parameters. Workers take part from
    their first step, or from `join`, until `leave`, which the end of a ``with`` block calls: those that have no more data
    leave, and the others go on. The worker of rank 0 stays in `leave` until the others have left.

    The parameters at the start are those of rank 0. The first gradient of a worker whose parameters differ from those of
    the coordinator is not used: call `join` before, or use `minimize`, which does.

    Args:
        optimizer, communicator, timeout: see `Wrapper`.
        sparse_mean: the divisor of the sum of each row of `SparseRows` gradients: "replicas", the number of gradients of the
            step, as for dense arrays, or "touches", the number of those that have the row, as in TensorFlow 1.
        lease: seconds after which a worker that computes is no longer waited for; by default the time-out.

    Attributes:
        told: the decisions on this worker's gradients that came with the last step: `Told` has ``accepted``, ``staleness``,
            and the ``step`` that the gradient is in.
    """

    told: list[Told]

    def __init__(
        self,
        optimizer: Optimizer,
        *,
        communicator: Communicator | None = None,
        timeout: float | None = None,
        sparse_mean: SparseMean = "replicas",
        lease: float | None = None,
    ) -> None:
        super().__init__(optimizer, communicator=communicator, timeout=timeout)
        self.sparse_mean = _SPARSE_MEAN.check("sparse_mean", sparse_mean)
        self.lease = self._seconds if lease is None else lease
        self.told = []
        self._set_apart()

    _fixed = Wrapper._fixed | {"sparse_mean", "lease"}
    _transient = frozenset(
        {"_link", "_coordinator", "_server", "_failure", "_stopped", "_codec", "_replica", "_memory"}
    )

    def _set_apart(self) -> None:
        """The state of a worker that has not joined."""
        self._link: Link | None = None
        self._coordinator: Coordinator | None = None
        self._server: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._stopped = threading.Event()
        self._replica: Replica | None = None
        self._local_step = self._number = self._incarnation = self._root = 0
        self._memory = np.empty(0, np.uint8)

    # --- for subclasses ------------------------------------------------------------------------------------------------

    def _decisions(self, **options: Any) -> Decisions:
        """The state machine of the method, with the options ``step``, ``expected`` and ``lease``."""
        raise NotImplementedError

    # --- membership ----------------------------------------------------------------------------------------------------

    def join(self, model: Tree) -> Tree:
        """Joins the training: returns the model with the parameters of the coordinator, in place as `update` does.

        Raises `TimedOut` where the coordinator does not answer.
        """
        with self._lock.stepping():
            return self._join(model)

    def build(self, model: Tree) -> None:
        """As `join`. Raises `StructureError` for a model that `join` would have to replace."""
        with self._lock.stepping():
            self._parameters.check_replaceable(model)
            self._join(model)

    def reform(self, model: Tree) -> Tree:
        """Continues with the survivors, and the workers that wait to join: all of them call it, those that join call `join`.

        A step raises `WorkerLost` where the coordinator was lost, and where another worker has called `reform` or, on Ray, waits
        to join. The survivor whose replica is of the latest step becomes the coordinator: no gradient is lost that a survivor
        was told to be in a step, and the slots of the optimizer are those of that step. The others get its parameters and state.
        Returns the model, as `join`.
        """
        with self._lock.stepping():
            while True:
                self._detach()
                self._reform()
                try:
                    return self._join(model)
                except WorkerLost:  # another worker was lost, or waits to join
                    continue

    def _detach(self) -> None:
        """Ends the connection, and the coordinator where this worker has it; the replica is kept."""
        self._stopped.set()
        if self._server is not None:
            self._server.join()
        step = self._local_step if self._coordinator is None else self._coordinator.decisions.step
        replica = self._replica
        self._set_apart()
        self._local_step, self._replica = step, replica

    def leave(self) -> None:
        """Leaves the training: the others go on without this worker. On rank 0, returns when all others have left or died."""
        if self._link is None:
            return
        server, self._server = self._server, None
        try:
            self._request(LEAVE)
        except CommunicationError:
            self._stopped.set()  # nobody is left to serve
        if server is not None:
            server.join()
        self._link = None
        if self._failure is not None:
            raise self._failure

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.leave()
            return
        self._stopped.set()  # The others are told by the loss of this worker.
        self._link = None

    def _join(self, model: Tree) -> Tree:
        if self._link is not None:
            return model
        own = dict(zip(self._parameters.paths(model), self._parameters.read(model).values(), strict=True))
        config = [type(self).__name__, self._own_config()]
        if self._replica is None:
            self._replica = Replica(self.optimizer, own)
        arrays = self._replica.parameters()
        self._codec = GradientCodec(arrays, _text(config))
        self._root = self._elected()
        if self.communicator.rank == self._root:
            size, step = self.communicator.size, max(self.optimizer.step, self._local_step)
            decisions = self._decisions(step=step, expected=size, lease=self.lease)
            self._coordinator = Coordinator(self._replica, decisions, config, self.sparse_mean, self._root)
        if isinstance(self.communicator, Alone):
            self._link = _ToItself(self._running())
        else:
            if self._coordinator is not None:
                self._server = threading.Thread(target=self._serve, name="coordinator", daemon=True)
                self._server.start()
            self._link = _ToRank(self.communicator, self._root)
        self._incarnation = time.time_ns()  # unlike that of a process of this rank before
        try:
            self._request(JOIN, [agreement.described(arrays, config)])
            self._answered()
        except Refused:
            self._link = self._replica = None
            raise
        return self._parameters.write(model, self._replica.parameters())

    def _elected(self) -> int:
        """The rank of the coordinator: 0 at the start, later that of the latest step, which all workers tell each other."""
        if self.communicator.generation == 0:
            return 0
        steps = self.communicator.all_gather_v(np.array([self._local_step]), timeout=self._seconds)
        return max(range(len(steps)), key=lambda rank: (int(steps[rank][0]), -rank))

    def _running(self) -> Coordinator:
        if self._coordinator is None:
            raise StateError("the coordinator is on rank 0")
        return self._coordinator

    def _serve(self) -> None:
        try:
            serve(self._running(), self.communicator, self._stopped.is_set)
        except Exception as error:  # noqa: BLE001 - raised by `leave`, and to the others
            self._failure = error
            try:
                self.communicator.abort(f"the coordinator failed: {type(error).__name__}: {error}")
            except CommunicationError:
                pass
        except BaseException as error:  # noqa: BLE001 - the worker was killed; the others are told by its loss
            self._failure = error

    # --- steps ---------------------------------------------------------------------------------------------------------

    def minimize(self, loss: Callable[[Tree], Array], model: Tree) -> Array:
        """See `Optimizer.minimize`. Joins before the first gradient is computed."""
        if self._link is None:
            self.build(model)
        return super().minimize(loss, model)

    def _step(self, model: Tree, grads: Tree | None, *, keep_root: bool = False) -> Tree:
        gradients = self._parameters.gradients(model, grads)
        if keep_root:
            self._parameters.check_replaceable(model)
        if self._link is None:
            before = {path: array.copy() for path, array in self._parameters.read(model).items()}
            model = self._join(model)
            if any(not _is_same(array, before[path]) for path, array in self._parameters.read(model).items()):
                self.told = [Told(None, -1, False, self._local_step, self._local_step, "unknown")]
                self._report.dropped += 1
                return model
        self._number += 1
        self._request(PUSH, self._codec.encode(gradients))
        self._answered()
        return self._parameters.write(model, self._running_replica().parameters())

    def _request(self, kind: int, bufs: Sequence[np.ndarray] = (), *, is_apart: bool = False) -> None:
        """Sends a request; ``is_apart`` with `PULL` says that the replica differs from that of the coordinator."""
        if self._link is None:
            raise StateError(f"{type(self).__name__}: the worker has left: join again before a step")
        words = np.array([kind, self._number, self._incarnation, is_apart], np.int64)
        digest = ANY if kind == JOIN else self._codec.digest
        self._link.send(Header(REQUEST, self._local_step, digest), [words, *bufs])

    def _answered(self) -> None:
        """Waits for the answer with which the worker goes on, that with a token, and brings the replica to its step."""
        self.told, seconds, replica = [], self._seconds, self._running_replica()
        while True:
            header = self._receive(seconds)
            if header is None:
                if self._failure is not None:
                    raise Aborted(f"the coordinator failed: {self._failure}") from self._failure
                raise TimedOut(f"the coordinator did not answer within {seconds:g} s")
            answer = Answer.read(self._memory[: header.payload_bytes], replica.layout, self.communicator.rank)
            for told in answer.told:
                self._note(told)
            if not self._advance(replica, answer):
                self._request(PULL, is_apart=True)
            elif answer.token >= 0:
                return

    def _advance(self, replica: Replica, answer: Answer) -> bool:
        """Brings the replica to the step of an answer; False where it then differs from that of the coordinator."""
        if self._coordinator is not None:
            self._local_step = max(self._local_step, answer.token)
            return True  # whose replica this is
        if answer.kind == STATE:
            replica.load(answer.buffers, answer.parts[0])
            self._local_step = answer.step
        elif answer.kind == UPDATES:
            first = answer.step - len(answer.parts)
            if first > self._local_step:
                return False
            for part in answer.parts[self._local_step - first :]:
                replica.take(self._codec.decode(part))
                self._local_step += 1
            return self._local_step > answer.step or replica.checksum() == answer.checksum
        return True

    def _running_replica(self) -> Replica:
        if self._replica is None:
            raise StateError(f"{type(self).__name__}: the worker has not joined")
        return self._replica

    def _receive(self, seconds: float) -> Header | None:
        def memory(header: Header) -> list[np.ndarray]:
            if header.digest not in (self._codec.digest, ANY):
                raise Refused("digest", "a reply is of other parameters")
            if self._memory.size < header.payload_bytes:
                self._memory = np.empty(header.payload_bytes, np.uint8)
            return [self._memory[: header.payload_bytes]]

        if self._link is None:
            raise WorkerLost({0}, "a step")
        return self._link.receive(memory, seconds)

    def _note(self, told: Told) -> None:
        self.told.append(told)
        if told.accepted:
            self._report.accepted += 1
        else:
            self._report.dropped += 1
        self._report.stale[told.staleness] += 1

    @property
    def step(self) -> int:
        """The number of steps taken by all workers together, as far as this one knows."""
        return max(self._local_step, self.optimizer.step)

    def report(self) -> list[WorkerReport]:
        """See `Wrapper.report`. On rank 0, of all workers; elsewhere of this one."""
        own = super().report()[0]
        if self._coordinator is None:
            return [own]
        reports = {**self._coordinator.reports}
        if (mine := reports.get(own.rank)) is not None:
            reports[own.rank] = dataclasses.replace(mine, bytes_sent=own.bytes_sent, refused=own.refused)
        return [reports[rank] for rank in sorted(reports)]


def _is_same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.tobytes() == b.tobytes()


def _text(config: Any) -> str:
    return json.dumps(config)
