"""The centre of asynchronous elastic averaging, which a coordinator moves by the pushes of the workers."""

import dataclasses
import threading
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from oxigrad.distributed.communicator import Communicator
from oxigrad.distributed.coordination.coordinator import Coordinator
from oxigrad.distributed.coordination.service import (
    ANY,
    JOIN,
    MOST_DESCRIPTION,
    NOTHING,
    REQUEST_WORDS,
    STATE,
    Reply,
    ReplyHead,
    Service,
    serve,
)
from oxigrad.distributed.decisions.elastic import Elastic
from oxigrad.distributed.decisions.events import Event, Join, Pull, Step
from oxigrad.distributed.decisions.training import Training, admission, ended
from oxigrad.distributed.engines.backoff import Backoff
from oxigrad.distributed.errors import Refused, TimedOut
from oxigrad.distributed.messages import agreement
from oxigrad.distributed.messages.message import Header, size_of


def moved(centre: np.ndarray, position: np.ndarray, rate: float) -> np.ndarray:
    """The elastic move ``rate * (position - centre)``: a worker moves by minus it, the centre by it."""
    return centre.dtype.type(rate) * (position - centre)


@dataclasses.dataclass
class Centre:
    """The parameters of the centre by key path, in place of the replica of a coordinator."""

    arrays: dict[str, np.ndarray]


class ElasticCoordinator(Coordinator):
    """Moves the centre by each push, a worker's parameters, and answers it by the centre before its move.

    Worker and coordinator compute the same move from it. ``rate`` is the moving rate; see `Coordinator` for the other
    arguments.
    """

    def __init__(
        self, centre: Centre, decisions: Elastic, rate: float, config: Any, description: np.ndarray, training: Training
    ) -> None:
        replica: Any = centre
        super().__init__(replica, decisions, config, description, training=training)
        self.lock: AbstractContextManager[Any] = threading.RLock()
        self._centre, self._rate = centre, rate
        #: The centre before the last push of each worker, or when it joined, encoded, and the number of pushes applied
        #: with that one.
        self._before: dict[int, tuple[int, list[np.ndarray]]] = {}

    def copies(self) -> dict[str, np.ndarray]:
        """Copies of the arrays of the centre, by key path."""
        with self.lock:
            return {path: array.copy() for path, array in self._centre.arrays.items()}

    def _handle(self, event: Event) -> list[Reply]:
        if isinstance(event, Join | Pull):
            self._before[event.worker[0]] = self.decisions.step, self.codec.encode(self._centre.arrays, copy=True)
        return super()._handle(event)

    def _take(self, step: Step) -> None:
        (key,) = step.gradients
        position, payload = self._held.pop(key)
        self._before[key[0][0]] = step.step, self.codec.encode(self._centre.arrays, copy=True)
        for path, centre in self._centre.arrays.items():
            np.add(centre, moved(centre, np.asarray(position[path]), self._rate), out=centre)
        self._spare.give(payload)

    def _content(self, rank: int) -> tuple[int, list[int], list[np.ndarray]]:
        encoded = self._before[rank][1]
        return STATE, [size_of(encoded)], encoded

    def _step_of(self, rank: int) -> int:
        return self._before[rank][0] if rank in self._before else super()._step_of(rank)


class Greeting(Service):
    """The begin of synchronous exchanges: hears each worker's description, and answers by its difference, or to begin.

    Workers ask as they ask an asynchronous centre, so that either kind of rank 0 refuses workers of the other kind.
    """

    def __init__(self, communicator: Communicator, description: np.ndarray, training: Training) -> None:
        super().__init__(training, description)
        self._others = [rank for rank in range(communicator.size) if rank != communicator.rank]
        self.awaited: set[int] = {*self._others}
        self.error: Refused | None = None

    def memory(self, header: Header) -> list[np.ndarray]:
        """See `Service.memory`."""
        if header.digest != ANY or not 8 * REQUEST_WORDS < header.payload_bytes <= MOST_DESCRIPTION:
            raise Refused("kind", f"rank {header.rank} asks for something else than to begin synchronous exchanges")
        return [np.empty(header.payload_bytes, np.uint8)]

    def receive(self, header: Header, *payload: np.ndarray) -> list[Reply]:
        """See `Service.receive`."""
        (data,) = payload
        if (kind := int(data[:8].view(np.int64)[0])) != JOIN:
            raise Refused("kind", f"rank {header.rank} asks for {kind}: expected to begin synchronous exchanges")
        asked = Training.of_code(header.step)
        decision = admission(self.training, asked)
        if decision == "over":
            return [self.refusal(header, ended(header.rank, asked, self.training))]
        if decision != "serve":
            return [self._notice(header, decision)]
        difference = agreement.difference(self._description, data[8 * REQUEST_WORDS :], f"rank {header.rank}")
        self.error = self.error or difference
        return self.lost([header.rank])

    def lost(self, ranks: Iterable[int]) -> list[Reply]:
        """See `Service.lost`: the answers to all workers, once none is waited for."""
        was_done = self.is_done
        self.awaited -= {*ranks}
        if was_done or not self.is_done:
            return []
        requests = [Header(0, self.training.code, ANY, rank=rank) for rank in self._others]
        if self.error is not None:
            return [self.refusal(request, self.error) for request in requests]
        words = np.array(ReplyHead(0, NOTHING), np.int64)
        return [Reply(request.rank, request.step, [words], ANY) for request in requests]

    @property
    def is_done(self) -> bool:
        """Whether all workers have asked, or were lost."""
        return not self.awaited


def greet(communicator: Communicator, description: np.ndarray, training: Training, seconds: float) -> None:
    """Waits until all workers have asked to begin synchronous exchanges.

    Raises `Refused`, as they do, where they differ, and `TimedOut`.
    """
    greeting = Greeting(communicator, description, training)
    serve(greeting, communicator, Backoff(seconds).is_over)
    if greeting.error is not None:
        raise greeting.error
    if greeting.awaited:
        raise TimedOut(f"rank {min(greeting.awaited)} has not begun synchronous exchanges within {seconds:g} s")
