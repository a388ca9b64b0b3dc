"""The coordinator of methods in which one place decides which gradients are used, and takes the steps."""

import dataclasses
import json
from collections import deque
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from oxigrad.distributed.coordination.replica import Replica
from oxigrad.distributed.coordination.service import (
    ANY,
    ASK,
    DECISION_WORDS,
    JOIN,
    LEAVE,
    MOST_DESCRIPTION,
    NOTHING,
    PULL,
    PUSH,
    REFUSED,
    REPLY_WORDS,
    REQUEST_WORDS,
    STATE,
    UPDATES,
    Reply,
    ReplyHead,
    Service,
)
from oxigrad.distributed.decisions.events import Action, Clock, Event, Join, Leave, Pull, Push, Step, Token, Verdict
from oxigrad.distributed.decisions.membership import Decisions
from oxigrad.distributed.decisions.training import Training
from oxigrad.distributed.errors import Refused
from oxigrad.distributed.messages.gradients import GradientCodec, Gradients, Reader, RunningMean, SparseMean
from oxigrad.distributed.messages.message import Header, size_of
from oxigrad.distributed.messages.refusals import refusal_of
from oxigrad.distributed.messages.reports.table import WorkerReport
from oxigrad.distributed.messages.spare import Spare
from oxigrad.optim import Optimizer

_INT = np.dtype(np.int64)
REASONS = ("", "stale", "unknown", "future")
# Bytes of recent steps that are kept for workers that took no part in them, where the state of the optimizer is
# smaller.
_LOG_BYTES = 1 << 20

Worker = tuple[int, int]
Key = tuple[Worker, int]
"""A gradient: its worker, and its number."""


@dataclasses.dataclass
class Logged:
    """A step that was taken: the encoded gradient, and the memory that it may be in, which is used again later."""

    step: int
    bufs: list[np.ndarray]
    nbytes: int
    payload: np.ndarray | None


class Coordinator(Service):
    """Takes the steps of an optimizer by the gradients of workers, as `decisions` has it.

    Workers receive the gradient of each step, by which they update replicas of their own. Those that missed more steps
    than are logged, or whose replicas differ, receive parameters and the state of the optimizer instead.

    Args:
        replica: the parameters, and the optimizer that takes the steps on them.
        decisions: the state machine, which sees workers as pairs of rank and incarnation.
        config: what the messages of all workers have in common besides the parameters, as plain data.
        description: what those who ask to join must have alike; by default the parameters and ``config``.
        sparse_mean: see `RunningMean`.
        training: the identity of the training; workers that ask to join a later one wait, those of an earlier one are
            refused.

    The replica belongs to the coordinator alone: the worker in the same process has another one, as every worker.
    """

    def __init__(
        self,
        replica: Replica,
        decisions: Decisions,
        config: Any = None,
        description: np.ndarray | None = None,
        sparse_mean: SparseMean = "replicas",
        training: Training = Training(),  # noqa: B008 - it is immutable
    ) -> None:
        super().__init__(training, replica.description(config) if description is None else description)
        self.replica: Replica = replica
        self.decisions: Decisions = decisions
        #: The sum of the gradients of the next step that are settled, and the memory that it is in.
        self._mean = RunningMean(sparse_mean)
        self._memory_of_mean: tuple[np.ndarray, Gradients] | None = None
        self.codec: GradientCodec = codec_of(replica.arrays, config, training)
        self._offered: Optimizer | None = None
        self._spare = Spare(count=8, most=1 << 62)  # as many as gradients wait, of any size
        #: The gradients that wait for a step, and before which others may stand in its sum, with the memory that
        #: they are in.
        self._held: dict[Key, tuple[Gradients, np.ndarray]] = {}
        self._logged: deque[Logged] = deque()
        self._state: tuple[int, np.ndarray] | None = None
        self._checksum: tuple[int, int] | None = None
        #: The step of the replica of each worker, as far as is known.
        self._last_steps: dict[int, int] = {}
        self.workers: dict[int, Worker] = {}
        self.reports: dict[int, WorkerReport] = {}

    # --- messages -----------------------------------------------------------------------------------------------------

    def memory(self, header: Header) -> list[np.ndarray]:
        """See `Service.memory`."""
        if header.digest not in (self.codec.digest, ANY):
            text = "other parameters, another configuration of the optimizer, or another training, than the coordinator"
            raise Refused("digest", f"rank {header.rank} has {text}")
        most = MOST_DESCRIPTION if header.digest == ANY else self.codec.most_bytes + 8 * REQUEST_WORDS
        if not 8 * REQUEST_WORDS <= header.payload_bytes <= most:
            raise Refused("length", f"a request has {header.payload_bytes} bytes of payload")
        return [self._spare.take(header.payload_bytes)]

    def receive(self, header: Header, *payload: np.ndarray) -> list[Reply]:
        """See `Service.receive`; the payload is one array of bytes."""
        (data,) = payload
        kind, number, incarnation, without = map(int, data[: 8 * REQUEST_WORDS].view(np.int64))
        if kind not in (JOIN, LEAVE, PULL, PUSH, ASK) or number < 0 or (kind == JOIN) != (header.digest == ANY):
            raise Refused("kind", f"a request has the kind {kind} and the number {number}")
        worker = header.rank, incarnation
        if kind == PUSH:
            gradients = self.codec.decode(data[8 * REQUEST_WORDS :])
            self._last_steps[header.rank] = header.step
            return self._push(worker, number, header.step, gradients, data)
        if kind == JOIN:
            replies = self._dismissed(header, data[8 * REQUEST_WORDS :])
            return replies or self._join(worker)
        self._spare.give(data)
        if kind == ASK:
            return [self._reply(worker, [], -1)]
        if kind == PULL and without:
            self._last_steps.pop(header.rank, None)
        return self._handle(Leave(worker) if kind == LEAVE else Pull(worker))

    def lost(self, ranks: Iterable[int]) -> list[Reply]:
        """See `Service.lost`."""
        for rank in (ranks := list(ranks)):
            self._last_steps.pop(rank, None)
        return [reply for rank in ranks for reply in self._handle(Leave(self.workers.get(rank, (rank, 0))))]

    def tick(self, now: float) -> list[Reply]:
        """See `Service.tick`."""
        return self._handle(Clock(now))

    def members(self) -> list[int]:
        """See `Service.members`."""
        return [rank for rank, worker in list(self.workers.items()) if worker in self.decisions.members]

    @property
    def is_done(self) -> bool:
        """Whether workers have joined, all have left, and none is waited for."""
        return self.decisions.is_done

    def _join(self, worker: Worker) -> list[Reply]:
        self._last_steps.pop(worker[0], None)
        former, replies = self.workers.get(worker[0]), []
        if former is not None and former != worker:
            replies = self._handle(Leave(former))
        self.workers[worker[0]] = worker
        self.reports.setdefault(worker[0], WorkerReport(worker[0]))
        return replies + self._handle(Join(worker))

    def _push(self, worker: Worker, number: int, step: int, gradients: Gradients, payload: np.ndarray) -> list[Reply]:
        key = worker, number
        if not self._waits(key):  # else it has come twice
            self._held[key] = gradients, payload
        replies = self._handle(Push(worker, number, step))
        if not self._waits(key) and key in self._held:
            self._spare.give(self._held.pop(key)[1])
        return replies

    def _waits(self, key: Key) -> bool:
        return any((waiting.worker, waiting.number) == key for waiting in self.decisions.waiting)

    def _add(self, key: Key, weight: float) -> None:
        """Adds a gradient to the sum of the next step; the first one becomes the sum."""
        gradients, payload = self._held.pop(key)
        if self._mean.count == 0:
            self._memory_of_mean = payload, gradients
        self._mean.add(gradients, weight)
        if self._mean.count > 1:
            self._spare.give(payload)

    # --- decisions ----------------------------------------------------------------------------------------------------

    def _handle(self, event: Event) -> list[Reply]:
        """Does what the decisions on an event say."""
        verdicts: dict[Worker, list[Verdict]] = {}
        tokens: dict[Worker, int] = {}
        for action in self.decisions.handle(event):
            self._do(action, verdicts, tokens)
        for push, weight in self.decisions.settled():
            self._add((push.worker, push.number), weight)
        return [
            self._reply(worker, verdicts.get(worker, []), tokens.get(worker, -1)) for worker in {**verdicts, **tokens}
        ]

    def _do(self, action: Action, verdicts: dict[Worker, list[Verdict]], tokens: dict[Worker, int]) -> None:
        if isinstance(action, Step):
            self._take(action)
        elif isinstance(action, Token):
            tokens[action.worker] = action.step
        else:
            verdicts.setdefault(action.worker, []).append(action)
            report = self.reports.setdefault(action.worker[0], WorkerReport(action.worker[0]))
            report.count(accepted=action.accepted, staleness=action.staleness)

    def _take(self, step: Step) -> None:
        for key, weight in [*zip(step.gradients, step.weights, strict=True)][self._mean.count :]:
            self._add(key, weight)
        mean, memory = self._mean.result(), self._memory_of_mean
        self._mean, self._memory_of_mean = RunningMean(self._mean.sparse_mean), None
        self._adopt()
        self.replica.take(mean)
        payload, first = memory if memory is not None else (None, {})
        # A dense mean has taken the place of the first gradient, in the memory that it was received into.
        is_in_place = payload is not None and all(mean[path] is gradient for path, gradient in first.items())
        bufs = [payload[8 * REQUEST_WORDS :]] if payload is not None and is_in_place else self.codec.encode(mean)
        self._log(Logged(step.step, bufs, size_of(bufs), payload))

    def offer(self, optimizer: Optimizer) -> None:
        """Gives the coordinator an optimizer with other hyperparameters, which replaces its own before a step."""
        self._offered = optimizer

    def _adopt(self) -> None:
        offered, self._offered = self._offered, None
        if offered is not None:
            offered.load_state_dict(self.replica.optimizer.state_dict(copy=False), strict=False)
            self.replica.optimizer = offered

    def _log(self, taken: Logged) -> None:
        """Keeps a step for the workers, as long as the steps kept are smaller than the state."""
        self._logged.append(taken)
        most = max(_LOG_BYTES, 0 if self._state is None else self._state[1].nbytes + self.replica.layout.nbytes)
        total = sum(each.nbytes for each in self._logged)
        while len(self._logged) > 1 and total > most:
            dropped = self._logged.popleft()
            total -= dropped.nbytes
            if dropped.payload is not None:
                self._spare.give(dropped.payload)

    def _reply(self, worker: Worker, verdicts: list[Verdict], token: int) -> Reply:
        has_content = token >= 0 or any(each.accepted for each in verdicts)
        kind, sizes, content = self._content(worker[0]) if has_content else (NOTHING, [], [])
        member = self.decisions.members.get(worker)
        last = 0 if member is None else max(member.last, 0)
        checksum = self._sum() if kind == UPDATES else 0
        head = ReplyHead(token, kind, len(verdicts), self._step_of(worker[0]), checksum, last, len(sizes))
        answers = chain.from_iterable((*each[1:-1], REASONS.index(each.reason)) for each in verdicts)
        bufs = [np.array([*head, *answers, *sizes], np.int64), *content]
        return Reply(worker[0], self.decisions.step, bufs, self.codec.digest)

    def _step_of(self, rank: int) -> int:
        """The step that a reply brings a worker to."""
        return self.decisions.step

    def _content(self, rank: int) -> tuple[int, list[int], list[np.ndarray]]:
        """The content of a reply that brings a worker to the present step: kind, bytes of each part, and buffers."""
        step = self.decisions.step
        last = self._last_steps.get(rank, -1)
        self._last_steps[rank] = step
        oldest = self._logged[0].step if self._logged else step + 1
        if oldest - 1 <= last <= step:
            missed = [each for each in self._logged if each.step > last]
            return UPDATES, [each.nbytes for each in missed], [part for each in missed for part in each.bufs]
        if self._state is None or self._state[0] != step:
            self._state = step, self.replica.packed_state()
        encoded, state = self.codec.encode(self.replica.arrays), self._state[1]
        return STATE, [size_of(encoded), state.nbytes], [*encoded, state]

    def _sum(self) -> int:
        if self._checksum is None or self._checksum[0] != self.decisions.step:
            self._checksum = self.decisions.step, self.replica.checksum()
        return self._checksum[1]


def codec_of(parameters: Mapping[str, Any], config: Any, training: Training) -> GradientCodec:
    """The codec of a training. Its digest is unlike the digest of every other training."""
    return GradientCodec(parameters, f"{json.dumps(config)}\n{training.code}")


class DecodedReply(NamedTuple):
    """The content of a reply: its head, the decisions on gradients of the worker, and what brings it to a step."""

    head: ReplyHead
    verdicts: list[Verdict]
    #: Encoded parameters and the state of a replica, an encoded centre, or the encoded gradients of steps.
    parts: list[np.ndarray]

    @classmethod
    def read(cls, payload: np.ndarray, worker: Any) -> "DecodedReply":
        """The answer in a payload of bytes.

        Raises `Refused` for a malformed one, and where the coordinator refuses the worker.
        """
        reader = Reader(payload)
        head = ReplyHead(*reader.take(_INT, REPLY_WORDS).tolist())
        count, parts, end = head.decisions, head.parts, head.decisions * DECISION_WORDS
        if head.kind == REFUSED:
            raise refusal_of(reader.rest(parts))
        if not (count >= 0 and parts >= 0 and end + parts <= reader.data.size // 8):
            raise Refused("length", f"a reply has {count} decisions, {parts} parts and {reader.data.size} bytes")
        words = reader.take(_INT, end + parts).tolist()
        verdicts: list[Verdict] = []
        for at in range(0, end, DECISION_WORDS):
            sent, accepted, staleness, in_step, reason = words[at : at + DECISION_WORDS]
            text = REASONS[reason % len(REASONS)]
            verdicts.append(Verdict(worker, sent, bool(accepted), staleness, in_step, text))
        content = [*map(reader.rest, words[end:])]
        if reader.data.size:
            raise Refused("length", f"a reply has {reader.data.size} bytes too many")
        return cls(head, verdicts, content)
