"""The connection of a worker to the coordinator of its training."""

import contextlib
import dataclasses
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from oxigrad.distributed.communicator import Communicator, SingleWorker
from oxigrad.distributed.coordination.coordinator import (
    ASK,
    DECISION_WORDS,
    PUSH,
    REPLY,
    REPLY_WORDS,
    REQUEST,
    UPDATES,
    Coordinator,
    codec_of,
)
from oxigrad.distributed.coordination.parts import Parts
from oxigrad.distributed.coordination.service import ANY
from oxigrad.distributed.decisions.training import Training
from oxigrad.distributed.errors import WorkerLost
from oxigrad.distributed.messages.divided import DividedCodec
from oxigrad.distributed.messages.gradients import GradientCodec
from oxigrad.distributed.messages.message import Header, as_bytes, size_of

_LOOK = 0.1
"""Seconds between two looks whether the processes that add up gradients are alive."""


class ToRank:
    """The connection to a coordinator that one of the workers serves."""

    def __init__(self, communicator: Communicator, root: int) -> None:
        self._communicator, self._root = communicator, root

    def send(self, head: Header, bufs: Sequence[np.ndarray]) -> None:
        """Sends a request."""
        self._communicator.send(self._root, head, bufs)

    def receive(self, memory: Callable[[Header], list[np.ndarray]], timeout: float) -> Header | None:
        """Receives a reply, as `Communicator.recv_any`."""
        return self._communicator.recv_any(memory, tag=REPLY, source=self._root, timeout=timeout)


class ToParts(ToRank):
    """The connection to a coordinator that only decides, while other processes add up the gradients.

    A reply has the bytes that it would have if the coordinator sent the means itself.
    """

    def __init__(self, communicator: Communicator, root: int, parts: Parts) -> None:
        super().__init__(communicator, root)
        self.parts: Parts = parts

    def send(self, head: Header, bufs: Sequence[np.ndarray]) -> None:
        """Sends a request; of one with a gradient, the parts first, until all of them have come."""
        words, *gradient = bufs
        if words[0] == PUSH:
            _, number, incarnation, _ = words.tolist()
            self.parts.put(number, incarnation, gradient)
        super().send(head, [words, *(() if words[0] == PUSH else gradient)])

    def receive(self, memory: Callable[[Header], list[np.ndarray]], timeout: float) -> Header | None:
        """Receives a reply, as `Communicator.recv_any`. Raises `WorkerLost` where a process that adds up a part was lost."""
        data = np.empty(0, np.uint8)

        def apart(header: Header) -> list[np.ndarray]:
            nonlocal data
            memory(header)  # which refuses replies of other trainings
            data = np.empty(header.payload_bytes, np.uint8)
            return [data]

        end = time.monotonic() + timeout
        while (header := super().receive(apart, max(min(_LOOK, end - time.monotonic()), 0.0))) is None:
            self.parts.check_alive()
            if time.monotonic() >= end:
                return None
        bufs = [data] if header.digest == ANY else self._completed(data)
        whole = dataclasses.replace(header, payload_bytes=size_of(bufs))
        np.concatenate([as_bytes(buffer) for buffer in bufs], out=memory(whole)[0])
        return whole

    def _completed(self, data: np.ndarray) -> list[np.ndarray]:
        """The buffers of a reply, with the means of its steps; without any where they are no longer kept, so that the worker asks for the state."""
        words = data[: 8 * REPLY_WORDS].view(np.int64).copy()
        _, kind, count, step, _, _, parts = words.tolist()
        if kind != UPDATES or not parts:
            return [data]
        steps = self.parts.take(step - parts + 1, step) or []
        words[-1] = len(steps)
        decisions = data[8 * REPLY_WORDS :][: 8 * DECISION_WORDS * count]
        sizes = np.array([size_of(bufs) for bufs in steps], np.int64)
        return [words, decisions, sizes, *(buffer for bufs in steps for buffer in bufs)]


class ToItself:
    """The connection of a single worker, which has the coordinator in its own thread."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._replies: deque[tuple[Header, list[np.ndarray]]] = deque()

    def send(self, head: Header, bufs: Sequence[np.ndarray]) -> None:
        """Sends a request."""
        payload = np.concatenate([as_bytes(buffer) for buffer in bufs])
        for reply in self._coordinator.receive(head, payload):
            sealed = Header(REPLY, reply.step, reply.digest).sealed(reply.bufs)
            self._replies.append((sealed, reply.bufs))

    def receive(self, memory: Callable[[Header], list[np.ndarray]], timeout: float) -> Header | None:
        """Receives a reply, as `Communicator.recv_any`."""
        if not self._replies:
            return None
        header, bufs = self._replies.popleft()
        np.concatenate([as_bytes(buffer) for buffer in bufs], out=memory(header)[0])
        return header


class RemoteCoordinator:
    """The coordinator of a training that this worker has left, whose end it waits for since it adds up a part of the gradients."""

    def __init__(self, communicator: Communicator, root: int, digest: bytes) -> None:
        self._communicator, self._root, self._digest = communicator, root, digest
        #: The time of its last answer; see `Service.heard`.
        self.heard: dict[int, float] = {}

    def members(self) -> list[int]:
        """Its rank. Notes the answers to former questions whether it lives, and asks again."""
        ask = np.array([ASK, 0, 0, 0], np.int64)
        with contextlib.suppress(WorkerLost):  # which ends what waits for it
            while self._communicator.recv_any(_anywhere, tag=REPLY, source=self._root, timeout=0.0) is not None:
                self.heard[self._root] = time.monotonic()
            self._communicator.send(self._root, Header(REQUEST, 0, self._digest), [ask])
        return [self._root]


def _anywhere(header: Header) -> list[np.ndarray]:
    return [np.empty(header.payload_bytes, np.uint8)]


Link = ToRank | ToItself


def connected(
    communicator: Communicator,
    ranks: list[int],
    coordinator: Coordinator | None,
    seconds: float,
    arrays: Mapping[str, np.ndarray],
    config: Any,
    training: Training,
) -> tuple[Link, GradientCodec]:
    """The connection of a worker to the coordinator of a training, whose gradients the workers ``ranks`` add up, and their codec.

    ``coordinator`` is that of this process, where it has one.
    """
    codec = codec_of(arrays, config, training, len(ranks))
    if isinstance(communicator, SingleWorker) and coordinator is not None:
        return ToItself(coordinator), codec
    if isinstance(codec, DividedCodec):
        return ToParts(communicator, ranks[0], Parts(communicator, ranks, codec, seconds / 2)), codec
    return ToRank(communicator, ranks[0]), codec
