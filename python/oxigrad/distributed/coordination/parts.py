"""Several processes that add up the gradients of one training, each a part of them; one coordinator decides.

A worker sends each part of a gradient to the process that has this part, and the coordinator learns of the gradient when all of them have it: its
decisions are those on whole gradients. For a step, it tells the processes which gradients are in it, and they answer with the mean of their
part. The workers take it from them.
"""

import contextlib
import dataclasses
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from oxigrad.distributed.communicator import Communicator
from oxigrad.distributed.coordination.coordinator import Coordinator, Logged, Worker, codec_of
from oxigrad.distributed.coordination.service import Reply, Service
from oxigrad.distributed.decisions.events import Step
from oxigrad.distributed.decisions.training import Training
from oxigrad.distributed.errors import CommunicationError, Refused, WorkerLost
from oxigrad.distributed.messages.divided import DividedCodec, whole_payload
from oxigrad.distributed.messages.gradients import GradientCodec, Gradients, Reader, SparseMean, mean_of
from oxigrad.distributed.messages.message import Header, size_of
from oxigrad.distributed.messages.refusals import encoded, refusal_of

# Tags of messages: requests, the replies to workers, and the means for the coordinator.
PART_REQUEST, PART_REPLY, PART_MEAN = 13, 14, 15
# Kinds of requests. A request begins with four integers: its kind, a number that the reply has too, and two more: for `PUT`, number and
# incarnation of the gradient, whose part follows; for `TAKE`, the first and the last step whose means are asked for; for `REDUCE`, the
# oldest step that is kept and the number of gradients, each of which follows by rank, incarnation and number, then the weights, then the
# gradients that are dropped; the number is the step.
PUT, TAKE, REDUCE, END = range(4)
# Kinds of replies. A reply begins with four integers: its kind, the number of the request, how many buffers of bytes it has, and
# the bytes of the first; the bytes of the others follow. `GONE` says that a step is no longer kept.
HELD, MEANS, GONE, REFUSED = range(4)
WORDS = 4
_MOST_NAMES = 1 << 24

Key = tuple[int, int, int]
"""A gradient: rank and incarnation of its worker, and its number."""


class PartServer(Service):
    """Adds up one part of the gradients, as the coordinator of rank ``root`` says.

    Args:
        codec: that of the part.
        root, sparse_mean, training: see `Coordinator`.
    """

    tags: ClassVar[tuple[int, int]] = PART_REQUEST, PART_REPLY

    def __init__(self, codec: GradientCodec, root: int, sparse_mean: SparseMean, training: Training) -> None:
        super().__init__(training, np.empty(0, np.uint8))
        self._codec, self._root = codec, root
        self._sparse_mean: SparseMean = sparse_mean
        self._gradients: dict[Key, Gradients] = {}
        self._means: dict[int, list[np.ndarray]] = {}
        self._has_ended = False

    def memory(self, header: Header) -> list[np.ndarray]:
        """See `Service.memory`."""
        if header.digest != self._codec.digest:
            raise Refused("digest", f"rank {header.rank} has another part, other parameters or another training")
        if not 8 * WORDS <= header.payload_bytes <= 8 * WORDS + max(self._codec.most_bytes, _MOST_NAMES):
            raise Refused("length", f"a request to a part has {header.payload_bytes} bytes of payload")
        return [np.empty(header.payload_bytes, np.uint8)]

    def receive(self, header: Header, *payload: np.ndarray) -> list[Reply]:
        """See `Service.receive`; the payload is one array of bytes."""
        (data,) = payload
        kind, request, first, second = data[: 8 * WORDS].view(np.int64).tolist()
        rest = data[8 * WORDS :]
        if kind == PUT:
            self._gradients[header.rank, second, first] = self._codec.decode(rest)
            return [self._reply(header.rank, HELD, request, [])]
        if kind == TAKE and 0 <= second - first < 1 << 30:
            steps = range(first, second + 1)
            if not all(step in self._means for step in steps):
                return [self._reply(header.rank, GONE, request, [])]
            return [self._reply(header.rank, MEANS, request, [self._means[step] for step in steps])]
        if kind not in (REDUCE, END) or header.rank != self._root:
            raise Refused("kind", f"rank {header.rank} asks a part for {kind}, which it does not answer")
        self._has_ended = kind == END
        return [] if kind == END else [self._reduced(request, first, second, Reader(rest))]

    def _reduced(self, step: int, oldest: int, count: int, names: Reader) -> Reply:
        """The mean of this part in a step, for the coordinator."""
        keys = _keys(names.take(np.dtype(np.int64), 3 * count))
        weights = names.take(np.dtype(np.float64), count).tolist()
        dropped = _keys(names.take(np.dtype(np.int64), names.left // 8))
        if absent := [key for key in keys if key not in self._gradients]:
            raise Refused("gradient", f"the gradient {absent[0][2]} of rank {absent[0][0]} is not here")
        mean = mean_of([self._gradients[key] for key in keys], weights, self._sparse_mean)
        for key in (*keys, *dropped):
            self._gradients.pop(key, None)
        for former in [each for each in self._means if each < oldest]:
            del self._means[former]
        self._means[step] = self._codec.encode(mean)
        return dataclasses.replace(self._reply(self._root, MEANS, step, [self._means[step]]), tag=PART_MEAN)

    def _reply(self, rank: int, kind: int, request: int, parts: list[list[np.ndarray]]) -> Reply:
        sizes = [size_of(bufs) for bufs in parts]
        words = np.array([kind, request, len(parts), 0, *sizes], np.int64)
        return Reply(rank, 0, [words, *(buffer for bufs in parts for buffer in bufs)], self._codec.digest)

    def refusal(self, request: Header, error: Refused) -> Reply:
        """See `Service.refusal`."""
        text = encoded(error)
        tag = PART_MEAN if request.rank == self._root and error.reason == "gradient" else None
        words = np.array([REFUSED, 0, 1, 0, text.nbytes], np.int64)
        return Reply(request.rank, request.step, [words, text], request.digest, tag)

    def lost(self, ranks: Iterable[int]) -> list[Reply]:
        """See `Service.lost`: what is in a step is for the coordinator to say, without which there is none."""
        self._has_ended = self._has_ended or self._root in ranks
        return []

    @property
    def is_done(self) -> bool:
        """Whether the coordinator has ended the training."""
        return self._has_ended


class Parts:
    """One side's access to the processes that add up the parts: of a worker, or of the coordinator.

    Args:
        communicator: that of the worker.
        ranks: the process of each part.
        codec: that of the gradients.
        seconds: after which a process that does not answer is excluded: half of the time-out, so that nobody gives up the coordinator, or
            waits for its answer in vain, before.
    """

    def __init__(self, communicator: Communicator, ranks: list[int], codec: DividedCodec, seconds: float) -> None:
        self._communicator, self._seconds = communicator, seconds
        self.ranks: list[int] = ranks
        self.codec: DividedCodec = codec
        self._requests = 0

    def check_alive(self) -> None:
        """Raises `WorkerLost` where one of the processes has died or was excluded."""
        if lost := set(self.ranks) - self._communicator.alive():
            raise WorkerLost(lost, "a step")

    def put(self, number: int, incarnation: int, bufs: list[np.ndarray]) -> None:
        """Sends the parts of a gradient; returns when all processes have theirs."""
        self._requests += 1
        self._ask([[np.array([PUT, self._requests, number, incarnation]), *part] for part in self.codec.split(bufs)])
        self._answers(PART_REPLY, self._requests)

    def take(self, first: int, last: int) -> list[list[np.ndarray]] | None:
        """The buffers of the encoded mean of each step; None where one is no longer kept."""
        self._requests += 1
        self._ask([[np.array([TAKE, self._requests, first, last])]] * len(self.ranks))
        return self._steps(self._answers(PART_REPLY, self._requests))

    def reduce(self, step: Step, oldest: int, dropped: list[Key]) -> list[np.ndarray]:
        """The buffers of the encoded mean of a step."""
        words = [REDUCE, step.step, oldest, len(step.gradients)]
        keys = [key for (rank, incarnation), number in step.gradients for key in (rank, incarnation, number)]
        weights, rest = np.array(step.weights, np.float64), np.array(dropped, np.int64).reshape(-1)
        self._ask([[np.array([*words, *keys], np.int64), weights, rest]] * len(self.ranks))
        (bufs,) = self._steps(self._answers(PART_MEAN, step.step)) or [[]]
        return bufs

    def end(self) -> None:
        """Tells the processes that the training has ended."""
        for rank, part in zip(self.ranks, self.codec.parts, strict=True):
            with contextlib.suppress(CommunicationError):
                self._communicator.send(rank, Header(PART_REQUEST, 0, part.digest), [np.array([END, 0, 0, 0])])

    def _ask(self, requests: list[list[np.ndarray]]) -> None:
        for rank, part, bufs in zip(self.ranks, self.codec.parts, requests, strict=True):
            self._communicator.send(rank, Header(PART_REQUEST, 0, part.digest), bufs)

    def _answers(self, tag: int, request: int) -> list[list[np.ndarray] | None]:
        """The answer of each process to a request: bytes, or None where it no longer has them."""
        return [self._answer(rank, part, tag, request) for rank, part in zip(self.ranks, self.codec.parts, strict=True)]

    def _answer(self, rank: int, part: GradientCodec, tag: int, request: int) -> list[np.ndarray] | None:
        data = np.empty(0, np.uint8)

        def memory(header: Header) -> list[np.ndarray]:
            nonlocal data
            if header.digest != part.digest:
                raise Refused("digest", "an answer is of another part, other parameters or another training")
            data = np.empty(header.payload_bytes, np.uint8)
            return [data]

        while self._communicator.recv_any(memory, tag=tag, source=rank, timeout=self._seconds) is not None:
            reader = Reader(data)
            kind, answered, count, _ = reader.take(np.dtype(np.int64), WORDS).tolist()
            bufs = [reader.rest(size) for size in reader.take(np.dtype(np.int64), count).tolist()]
            if kind == REFUSED:
                raise refusal_of(bufs[0])
            if answered == request:  # and no late answer
                return None if kind == GONE else bufs
        self._communicator.exclude(rank)
        raise WorkerLost({rank}, "a step")

    @staticmethod
    def _steps(answers: list[list[np.ndarray] | None]) -> list[list[np.ndarray]] | None:
        """The buffers of each step, of what the processes have of it."""
        present = [answer for answer in answers if answer is not None]
        if len(present) < len(answers):
            return None
        return [whole_payload(parts) for parts in zip(*present, strict=True)]


class DividedCoordinator(Coordinator):
    """Decides on gradients whose parts are with other processes, and takes their mean from these; see `Coordinator`."""

    def __init__(self, *, parts: Parts, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.codec: GradientCodec = parts.codec
        self._parts = parts
        self._dropped: list[Key] = []

    def _decoded(self, data: np.ndarray) -> Gradients:
        if data.size:
            raise Refused("length", f"a gradient whose parts are sent elsewhere has {data.size} bytes: expected none")
        return {}

    def _release(self, key: tuple[Worker, int]) -> None:
        (rank, incarnation), number = key
        self._dropped.append((rank, incarnation, number))
        super()._release(key)

    def _take(self, step: Step) -> None:
        dropped, self._dropped = self._dropped, []
        try:
            bufs = self._parts.reduce(step, self._oldest(step.step), dropped)
        except CommunicationError:
            # Nobody was told of the step: the next coordinator goes on from the one before.
            self.decisions.step = step.step - 1
            raise
        self._adopt()
        self.replica.take(self.codec.decode(np.concatenate([buffer.view(np.uint8) for buffer in bufs])))
        self._log(Logged(step.step, [], size_of(bufs), None))
        for key in step.gradients:
            self._gradients.pop(key, None)

    def finish(self) -> None:
        """See `Service.finish`."""
        self._parts.end()


def coordinator(communicator: Communicator, ranks: list[int], seconds: float, **arguments: Any) -> Coordinator:
    """The coordinator of a training whose gradients these workers add up, the first of which has it; ``arguments`` are those of `Coordinator`."""
    codec = codec_of(arguments["replica"].parameters(), arguments["config"], arguments["training"], len(ranks))
    if not isinstance(codec, DividedCodec):
        return Coordinator(**arguments)
    return DividedCoordinator(parts=Parts(communicator, ranks, codec, seconds / 2), **arguments)


def _keys(words: np.ndarray) -> list[Key]:
    return [(rank, incarnation, number) for rank, incarnation, number in words.reshape(-1, 3).tolist()]
