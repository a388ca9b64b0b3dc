"""The coordinator of methods in which one place decides which gradients are used, and takes the steps.

`Coordinator` is free of transport: it is given requests, the time and the workers that were lost, and returns replies. `serve`
runs one over a `Communicator`.
"""

import dataclasses
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from oxigrad._core import KeyPath
from oxigrad.distributed.communicator import Communicator
from oxigrad.distributed.decisions.events import Action, Clock, Event, Join, Leave, Pull, Push, Step, Token, Told
from oxigrad.distributed.decisions.membership import Decisions
from oxigrad.distributed.errors import CommunicationError, Refused, WorkerLost
from oxigrad.distributed.gradients import GradientCodec, Gradients, Reader, SparseMean, mean_of, padded
from oxigrad.distributed.message import Header, Layout
from oxigrad.distributed.wrapper import WorkerReport, take_step
from oxigrad.optim.optimizer import Optimizer

__all__ = ["Coordinator", "Reply", "serve"]


def __dir__() -> list[str]:
    return list(__all__)


# Tags of messages.
REQUEST, REPLY = 1, 2
# Kinds of requests, the first of the four integers that a request begins with; then a number and an incarnation.
JOIN, LEAVE, PULL, PUSH = range(4)
REQUEST_WORDS = 4
# A reply begins with the step of the token, or -1, and the number of decisions, then this many integers for each.
DECISION_WORDS = 5
REASONS = ("", "stale", "unknown", "future")

Worker = tuple[int, int]


@dataclasses.dataclass
class Reply:
    """A message to a worker, given by rank: decisions on its gradients and, with a token, the parameters."""

    rank: int
    step: int
    bufs: list[np.ndarray]


class Coordinator:
    """Takes the steps of an optimizer by the gradients of workers, as `decisions` has it.

    Args:
        optimizer: the optimizer that takes the steps, on a copy of the parameters.
        parameters: the initial parameters, by key path.
        decisions: the state machine, which sees workers as pairs of rank and incarnation.
        config: what all workers must agree on besides the parameters, as plain data.
        sparse_mean: see `mean_of`.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        parameters: Mapping[KeyPath, np.ndarray],
        decisions: Decisions,
        config: Any = None,
        sparse_mean: SparseMean = "replicas",
    ) -> None:
        arrays = {str(path): array for path, array in parameters.items()}
        self.optimizer, self.decisions = optimizer, decisions
        self.sparse_mean: SparseMean = sparse_mean
        self.codec = GradientCodec(arrays, json.dumps(config))
        self.layout = Layout(arrays)
        self._buffers = self.layout.pack(arrays, self.layout.empty())
        self._wire = [part for buffer in self._buffers for part in padded(buffer)]
        views = self.layout.views(self._buffers)
        self._model = nested({path: views[str(path)] for path in parameters})
        self._paths = {str(path): path for path in parameters}
        self._gradients: dict[tuple[Worker, int], Gradients] = {}
        self._spare: list[np.ndarray] = []
        self._held: dict[tuple[Worker, int], np.ndarray] = {}
        self.workers: dict[int, Worker] = {}
        self.reports: dict[int, WorkerReport] = {}

    def resume(self) -> None:
        """Counts the steps of the optimizer from that of the decisions, where another coordinator has taken them."""
        if self.optimizer.step < self.decisions.step:
            self.optimizer.build(self._model)
            self.optimizer.load_state_dict({**self.optimizer.state_dict(), "step": self.decisions.step})

    # --- messages ------------------------------------------------------------------------------------------------------

    def memory(self, header: Header) -> list[np.ndarray]:
        """The memory to receive a request into. Raises `Refused` for one that cannot be of these parameters."""
        if header.digest != self.codec.digest:
            raise Refused("digest", "a worker has other parameters, or another configuration of the optimizer")
        if not 8 * REQUEST_WORDS <= header.payload_bytes <= self.codec.most_bytes + 8 * REQUEST_WORDS:
            raise Refused("length", f"a request has {header.payload_bytes} bytes of payload")
        for at, buffer in enumerate(self._spare):
            if buffer.size == header.payload_bytes:
                return [self._spare.pop(at)]
        return [np.empty(header.payload_bytes, np.uint8)]

    def receive(self, header: Header, payload: np.ndarray) -> list[Reply]:
        """The replies that a request causes. Raises `Refused` for one that is malformed, before anything is changed."""
        kind, number, incarnation, _ = map(int, payload[: 8 * REQUEST_WORDS].view(np.int64))
        if kind not in (JOIN, LEAVE, PULL, PUSH) or number < 0:
            raise Refused("kind", f"a request has the kind {kind} and the number {number}")
        if kind == PUSH:
            gradients = self.codec.decode(payload[8 * REQUEST_WORDS :])
            return self._push((header.rank, incarnation), number, header.step, gradients, payload)
        self._spare = [*self._spare, payload][-4:]
        if kind == JOIN:
            return self._join((header.rank, incarnation))
        worker = header.rank, incarnation
        return self._handle(Leave(worker) if kind == LEAVE else Pull(worker))

    def lost(self, ranks: Iterable[int]) -> list[Reply]:
        """The replies after the loss of workers."""
        return [reply for rank in ranks for reply in self._handle(Leave(self.workers.get(rank, (rank, 0))))]

    def tick(self, now: float) -> list[Reply]:
        """The replies at a time, in seconds."""
        return self._handle(Clock(now))

    @property
    def is_done(self) -> bool:
        """Whether workers have joined, all have left, and none is waited for."""
        return self.decisions.is_done

    def _join(self, worker: Worker) -> list[Reply]:
        former, replies = self.workers.get(worker[0]), []
        if former is not None and former != worker:
            replies = self._handle(Leave(former))
        self.workers[worker[0]] = worker
        self.reports.setdefault(worker[0], WorkerReport(worker[0]))
        return replies + self._handle(Join(worker))

    def _push(self, worker: Worker, number: int, step: int, gradients: Gradients, payload: np.ndarray) -> list[Reply]:
        key = worker, number
        if key not in self._gradients:
            self._gradients[key], self._held[key] = gradients, payload
        replies = self._handle(Push(worker, number, step))
        if not any((waiting.worker, waiting.number) == key for waiting in self.decisions.waiting):
            self._release(key)
        return replies

    def _release(self, key: tuple[Worker, int]) -> None:
        self._gradients.pop(key, None)
        if (payload := self._held.pop(key, None)) is not None:
            self._spare = [*self._spare, payload][-8:]

    # --- decisions -----------------------------------------------------------------------------------------------------

    def _handle(self, event: Event) -> list[Reply]:
        """Does what the decisions on an event say."""
        told: dict[Worker, list[Told]] = {}
        tokens: dict[Worker, int] = {}
        for action in self.decisions.handle(event):
            self._do(action, told, tokens)
        return [self._reply(worker, told.get(worker, []), tokens.get(worker, -1)) for worker in {**told, **tokens}]

    def _do(self, action: Action, told: dict[Worker, list[Told]], tokens: dict[Worker, int]) -> None:
        if isinstance(action, Step):
            self._take(action)
        elif isinstance(action, Token):
            tokens[action.worker] = action.step
        else:
            told.setdefault(action.worker, []).append(action)
            self._count(action)

    def _count(self, told: Told) -> None:
        report = self.reports.setdefault(told.worker[0], WorkerReport(told.worker[0]))
        if told.accepted:
            report.accepted += 1
        else:
            report.dropped += 1
        report.stale[told.staleness] += 1

    def _take(self, step: Step) -> None:
        gradients = [self._gradients[worker, number] for worker, number in step.gradients]
        mean = mean_of(gradients, step.weights, self.sparse_mean)
        self._model = take_step(
            self.optimizer, self._model, nested({path: mean[text] for text, path in self._paths.items()})
        )
        for key in step.gradients:
            self._release(key)

    def _reply(self, worker: Worker, told: list[Told], token: int) -> Reply:
        words = [token, len(told)]
        for each in told:
            words += [each.number, each.accepted, each.staleness, each.step, REASONS.index(each.reason)]
        own = [np.array(words, np.int64), *(self._wire if token >= 0 else ())]
        return Reply(worker[0], self.decisions.step, own)

    def parameters(self) -> dict[str, np.ndarray]:
        """Copies of the parameters, by key path."""
        return {path: array.copy() for path, array in self.layout.views(self._buffers).items()}


@dataclasses.dataclass
class Answer:
    """The content of a reply: the step of the token, or -1; decisions as tuples; and the parameters with a token."""

    token: int
    told: list[Told]
    parameters: dict[str, np.ndarray]

    @classmethod
    def read(cls, payload: np.ndarray, layout: Layout, worker: Any) -> "Answer":
        """The answer in a payload of bytes. Raises `Refused` for a malformed one."""
        reader = Reader(payload)
        token, count = map(int, reader.take(np.dtype(np.int64), 2))
        if not 0 <= count <= reader.left // (8 * DECISION_WORDS):
            raise Refused("length", f"a reply has {count} decisions and {reader.left} bytes")
        words = reader.take(np.dtype(np.int64), count * DECISION_WORDS).reshape(count, DECISION_WORDS).tolist()
        told = [
            Told(worker, n, bool(a), stale, step, REASONS[reason % len(REASONS)]) for n, a, stale, step, reason in words
        ]
        if token < 0:
            return cls(token, told, {})
        buffers = [reader.take(dtype, size) for dtype, size in zip(layout.dtypes, layout.sizes, strict=True)]
        if reader.left:
            raise Refused("length", f"a reply has {reader.left} bytes too many")
        return cls(token, told, layout.views(buffers))


def nested(arrays: Mapping[KeyPath, Any]) -> dict[Any, Any]:
    """Nested dicts in which arrays have the given key paths."""
    made: dict[Any, Any] = {}
    for path, array in arrays.items():
        *parents, last = map(_name, path)
        place = made
        for key in parents:
            place = place.setdefault(key, {})
        place[last] = array
    return made


def _name(key: Any) -> Any:
    return next(getattr(key, name) for name in type(key).__match_args__)


def serve(
    coordinator: Coordinator,
    communicator: Communicator,
    is_stopped: Callable[[], bool] = lambda: False,
    poll: float = 0.05,
) -> None:
    """Answers requests until all workers have left or died, or ``is_stopped()``."""
    refused: Counter[str] = communicator.refused
    start = time.monotonic()
    alive = communicator.alive()
    while not (is_stopped() or coordinator.is_done):
        payload: list[np.ndarray] = []

        def memory(header: Header, payload: list[np.ndarray] = payload) -> list[np.ndarray]:
            payload[:] = coordinator.memory(header)
            return payload

        header = communicator.recv_any(memory, tag=REQUEST, timeout=poll)
        replies = coordinator.tick(time.monotonic() - start)
        if header is not None:
            try:
                replies += coordinator.receive(header, payload[0])
            except Refused as error:
                refused[error.reason] += 1
        before, alive = alive, communicator.alive()
        replies += coordinator.lost(before - alive)
        for reply in replies:
            try:
                head = Header(REPLY, reply.step, coordinator.codec.digest)
                communicator.send(reply.rank, head, reply.bufs)
            except WorkerLost:
                alive -= {reply.rank}
                replies += coordinator.lost([reply.rank])
            except CommunicationError:
                return
