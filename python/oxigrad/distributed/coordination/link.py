"""The connection of a worker to the coordinator of its training."""

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from oxigrad.distributed.communicator import Communicator, SingleWorker
from oxigrad.distributed.coordination.coordinator import REPLY, Coordinator
from oxigrad.distributed.messages.message import Header, as_bytes


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


Link = ToRank | ToItself


def connected(communicator: Communicator, root: int, coordinator: Coordinator | None) -> Link:
    """The connection of a worker to the coordinator that the worker ``root`` serves; ``coordinator`` is one of this process."""
    if isinstance(communicator, SingleWorker) and coordinator is not None:
        return ToItself(coordinator)
    return ToRank(communicator, root)
