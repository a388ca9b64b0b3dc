"""The connection of a worker to the coordinator of its training, and the thread in which one worker serves it."""

import functools
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oxigrad.distributed.communicator import Communicator, SingleWorker
from oxigrad.distributed.coordination.coordinator import JOIN, Coordinator, DecodedReply
from oxigrad.distributed.coordination.enrolment import Enrolment
from oxigrad.distributed.coordination.service import (
    ANY,
    ASK,
    NOTHING,
    NOTICES,
    REPLY,
    REQUEST,
    Service,
    ServiceWait,
    serve_or_abort,
    wait_for_others,
)
from oxigrad.distributed.decisions.training import Admission, Training
from oxigrad.distributed.errors import Aborted, Refused, TimedOut
from oxigrad.distributed.messages.gradients import GradientCodec
from oxigrad.distributed.messages.message import Header, Layout, as_bytes


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

    def __init__(self, coordinator: Service) -> None:
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


class Server:
    """The thread of this process in which a coordinator answers the workers; none for a single worker, which calls it.

    ``leave`` is the method by which the worker of this process leaves the training at the end of its work.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        communicator: Communicator,
        enrolment: Enrolment,
        leave: Callable[[], Any],
        seconds: float,
    ) -> None:
        self.coordinator: Coordinator = coordinator
        self.failure: BaseException | None = None
        self._communicator, self._seconds, self._leave = communicator, seconds, leave
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="coordinator", daemon=True)
        if not isinstance(communicator, SingleWorker):
            enrolment.end_former()
            self._thread.start()
            enrolment.serve(self.end, leave)

    def _serve(self) -> None:
        self.failure = serve_or_abort(self.coordinator, self._communicator, self._stopped.is_set)

    def stop(self) -> None:
        """Ends the thread soon."""
        self._stopped.set()

    def end(self) -> None:
        """Ends the thread. Raises `TimedOut`."""
        self.stop()
        if self._thread.is_alive():
            self._thread.join(self._seconds)
            if self._thread.is_alive():
                raise TimedOut(f"the coordinator of this worker did not end within {self._seconds:g} s")

    def wait(self, seconds: float) -> None:
        """Waits until all other workers have left, at most for so many seconds."""
        if self._thread.is_alive():
            self._thread.join(seconds)

    def wait_for_others(self, seconds: float) -> None:
        """Waits until all other workers have left; those that send nothing for so many seconds are excluded.

        Raises the error of the thread.
        """
        if self._thread.is_alive():
            wait_for_others(self._thread, self._communicator, self.coordinator, seconds)
        if self.failure is not None:
            raise self.failure


class Connection:
    """The connection of a worker to the coordinator of its training, until it leaves or another generation forms.

    Args:
        communicator: the communicator of the worker.
        root: the rank of the worker that serves the coordinator.
        server: the server of this process, where it has the coordinator.
        enrolment: the training of the worker.
        layout: the layout of the parameters.
        codec_of: the codec of the messages of a training.
        seconds: the time that a wait takes at most.
    """

    def __init__(
        self,
        communicator: Communicator,
        root: int,
        server: Server | None,
        enrolment: Enrolment,
        layout: Layout,
        codec_of: Callable[[Training], GradientCodec],
        seconds: float,
    ) -> None:
        self._communicator, self._root, self._server = communicator, root, server
        self._enrolment, self._layout, self._codec_of, self._seconds = enrolment, layout, codec_of, seconds
        is_alone = isinstance(communicator, SingleWorker) and server is not None
        self.link: ToRank | ToItself = (
            ToItself(server.coordinator) if is_alone and server else ToRank(communicator, root)
        )
        self.codec: GradientCodec = codec_of(enrolment.training)
        #: The number of the last gradient that was sent.
        self.number: int = 0
        self._incarnation = 0
        self._is_admitted = False
        self._memory = np.empty(0, np.uint8)

    def join(self, step: int, description: np.ndarray, read: Callable[[], DecodedReply]) -> DecodedReply:
        """Asks the coordinator to admit this worker until it does; returns its answer, which ``read()`` waits for.

        Raises `Refused` where it does not, and `TimedOut`.
        """
        self._incarnation = time.time_ns()  # an earlier process of this rank has another one
        self.number = 0
        admitted: list[DecodedReply] = []

        def ask() -> tuple[Admission, int] | None:
            self.codec = self._codec_of(self._enrolment.training)
            self.request(JOIN, step, [description])
            answer = read()
            self._is_admitted = answer.kind not in NOTICES
            if self._is_admitted:
                admitted.append(answer)
                return None
            return NOTICES[answer.kind], answer.step

        self._enrolment.ask(ask, self._seconds)
        return admitted[0]

    def leave(self) -> None:
        """Ends the part of this worker in the training."""
        self._enrolment.end(self.codec.digest)

    def request(self, kind: int, step: int, bufs: Sequence[np.ndarray] = (), *, is_apart: bool = False) -> None:
        """Sends a request of a worker at a step.

        ``is_apart`` with `PULL` says that its replica differs from the coordinator's.
        """
        words = np.array([kind, self.number, self._incarnation, is_apart], np.int64)
        digest, step = (ANY, self._enrolment.training.code) if kind == JOIN else (self.codec.digest, step)
        self.link.send(Header(REQUEST, step, digest), [words, *bufs])

    def wait(self, step: int) -> ServiceWait:
        """A wait for an answer."""
        ask = functools.partial(self.request, ASK, step)
        places = self._communicator, self._root, self._seconds
        return ServiceWait(*places, "the coordinator", "a step", ask, self._is_admitted)

    def answer(self, wait: ServiceWait) -> DecodedReply:
        """The next answer, which may be one to an earlier request.

        Raises `TimedOut` where answers bring the worker no further.
        """
        while True:
            header = wait.receive(self._receive)
            if header is None or self._enrolment.has_left(header.digest):
                continue
            answer = DecodedReply.read(self._memory[: header.payload_bytes], self._layout, self._communicator.rank)
            is_late = wait.watch.heard(has_content=bool(answer.verdicts) or answer.kind != NOTHING) == "late"
            if is_late and answer.token < 0:
                raise TimedOut(
                    f"the coordinator gave no token within {self._seconds:g} s: other workers are slow or stopped"
                )
            return answer

    def _receive(self, seconds: float) -> Header | None:
        def memory(header: Header) -> list[np.ndarray]:
            is_answer_to_join = header.digest == ANY and header.step == self._enrolment.training.code
            is_known = header.digest == self.codec.digest or self._enrolment.has_left(header.digest)
            if not (is_known or is_answer_to_join):
                raise Refused("digest", "a reply is of other parameters, or of another training")
            if self._memory.size < header.payload_bytes:
                self._memory = np.empty(header.payload_bytes, np.uint8)
            return [self._memory[: header.payload_bytes]]

        header = self.link.receive(memory, seconds)
        failure = None if self._server is None else self._server.failure
        if header is None and failure is not None:
            raise Aborted(f"the coordinator failed: {failure}") from failure
        return header
