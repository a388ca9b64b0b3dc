"""The connection of a worker to the coordinator of its training, and the thread in which one worker serves it."""

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from oxigrad._typing import Config
from oxigrad.distributed.communicator import Communicator, SingleWorker
from oxigrad.distributed.coordination.coordinator import JOIN, Coordinator, DecodedReply, codec_of
from oxigrad.distributed.coordination.enrolment import Enrolment
from oxigrad.distributed.coordination.service import ANY, ASK, NOTHING, NOTICES, REPLY, REQUEST, TELL, Reply, serve
from oxigrad.distributed.decisions.training import Training
from oxigrad.distributed.decisions.watch import Watch
from oxigrad.distributed.engines.backoff import Backoff
from oxigrad.distributed.errors import Aborted, CommunicationError, Excluded, Refused, TimedOut, WorkerLost, log
from oxigrad.distributed.messages.gradients import GradientCodec
from oxigrad.distributed.messages.message import Header, as_bytes

_POLL, _STOPPED = 0.5, 5.0
"""Seconds between two looks at the other workers, and after which this process itself was stopped in between."""

_PAUSE = 0.02
"""Seconds between two requests to join a training that has not begun."""


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
        """Answers the workers; an error ends the job, of which the other workers are told."""
        try:
            serve(self.coordinator, self._communicator, self._stopped.is_set)
        except (WorkerLost, Excluded):
            pass  # the workers form the next generation
        except Exception as error:  # noqa: BLE001 - raised by `leave`, and to the others
            with contextlib.suppress(CommunicationError):
                if not isinstance(error, Aborted):  # the job has ended
                    self._communicator.abort(f"the coordinator failed: {type(error).__name__}: {error}")
            self.failure = error
        except BaseException as error:  # noqa: BLE001 - the worker was killed; the others are told by its loss
            self.failure = error

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

        Raises the error of the thread, and `Excluded` where the others exclude this worker.
        """
        begun = before = time.monotonic()
        while self._thread.is_alive():
            self._thread.join(_POLL)
            self._communicator.alive()  # which raises `Excluded`
            now = time.monotonic()
            begun, before = (now if now - before > _STOPPED else begun), now
            for rank in self.coordinator.members():
                last = max(begun, self.coordinator.heard.get(rank, begun))
                if rank != self._communicator.rank and now - last > seconds:
                    text = "rank %d is excluded: it has sent nothing for %g s, while the others have left"
                    log.warning(text, rank, seconds)
                    self._communicator.exclude(rank)
        if self.failure is not None:
            raise self.failure


class Connection:
    """The connection of a worker to the coordinator of its training, until it leaves or another generation forms.

    Args:
        communicator: the communicator of the worker.
        root: the rank of the worker that serves the coordinator.
        server: the server of this process, where it has the coordinator.
        enrolment: the training of the worker.
        parameters: the parameters by key path, as the codec describes them.
        config: what the messages of all workers have in common besides the parameters, as plain data.
        seconds: the time that a wait takes at most.
    """

    def __init__(
        self,
        communicator: Communicator,
        root: int,
        server: Server | None,
        enrolment: Enrolment,
        parameters: Mapping[str, np.ndarray],
        config: Config,
        seconds: float,
    ) -> None:
        self._communicator, self._root, self._server = communicator, root, server
        self._enrolment, self._parameters, self._config = enrolment, parameters, config
        #: The time that a wait takes at most.
        self.seconds: float = seconds
        #: The replies of the coordinator to a single worker, which has it in its own thread.
        self._replies: deque[Reply] | None = deque() if isinstance(communicator, SingleWorker) else None
        self.codec: GradientCodec = codec_of(parameters, config, enrolment.training)
        #: The number of the last gradient that was sent.
        self.number: int = 0
        self._incarnation = 0
        self._is_admitted = False
        self._memory, self._watch = np.empty(0, np.uint8), Watch(seconds)

    def join(self, step: int, description: np.ndarray, read: Callable[[], DecodedReply]) -> DecodedReply:
        """Asks the coordinator to admit this worker until it does; returns its answer, which ``read()`` waits for.

        This worker waits until the others have left a former training. Raises `Refused` where the coordinator does not
        admit it, and `TimedOut`.
        """
        self._incarnation = time.time_ns()  # an earlier process of this rank has another one
        self.number, end = 0, Backoff(self.seconds)
        while True:
            self.codec = codec_of(self._parameters, self._config, self._enrolment.training)
            self.request(JOIN, step, [description])
            answer = read()
            self._is_admitted = answer.head.kind not in NOTICES
            if self._is_admitted:
                return answer
            served = Training.of_code(answer.head.step)
            if answer.head.kind == TELL:
                self._enrolment.adopt(served)
            elif end.is_over():
                raise TimedOut(f"{served} has not ended within {self.seconds:g} s: workers still take part in it")
            else:
                time.sleep(_PAUSE)

    def leave(self) -> None:
        """Ends the part of this worker in the training."""
        self._enrolment.end(self.codec.digest)

    def request(self, kind: int, step: int, bufs: Sequence[np.ndarray] = (), *, is_apart: bool = False) -> None:
        """Sends a request of a worker at a step.

        ``is_apart`` with `PULL` says that its replica differs from the coordinator's.
        """
        if kind != ASK:
            self._watch = Watch(self.seconds)
        words = np.array([kind, self.number, self._incarnation, is_apart], np.int64)
        digest, step = (ANY, self._enrolment.training.code) if kind == JOIN else (self.codec.digest, step)
        header = Header(REQUEST, step, digest)
        if self._replies is None:
            self._communicator.send(self._root, header, [words, *bufs])
        elif self._server is not None:
            payload = np.concatenate([*map(as_bytes, (words, *bufs))])
            self._replies.extend(self._server.coordinator.receive(header, payload))

    def answer(self, step: int) -> DecodedReply:
        """The next answer to a worker at a step, which may be one to an earlier request.

        Excludes a coordinator that does not answer, and raises `WorkerLost`. Raises `TimedOut` where answers bring the
        worker no further, before it is admitted, and for a coordinator of its own.
        """
        while True:
            begun = time.monotonic()
            header = self._receive(self._watch.part)
            if header is None:
                self._look(self._watch.waited(time.monotonic() - begun), step)
                continue
            if header.digest != self.codec.digest and self._enrolment.has_left(header.digest):
                continue
            answer = DecodedReply.read(self._memory[: header.payload_bytes], self._communicator.rank)
            is_late = self._watch.heard(has_content=bool(answer.verdicts) or answer.head.kind != NOTHING) == "late"
            if is_late and answer.head.token < 0:
                raise TimedOut(
                    f"the coordinator gave no token within {self.seconds:g} s: other workers are slow or stopped"
                )
            return answer

    def _look(self, action: str | None, step: int) -> None:
        """Does what a wait decides in which no message has come."""
        if action == "ask" and self._is_admitted:  # nothing is known of the coordinator before
            self.request(ASK, step)
        elif action == "lost":
            if not self._is_admitted or self._root == self._communicator.rank:
                raise TimedOut(f"the coordinator did not answer within {self.seconds:g} s")
            self._communicator.exclude(self._root)
            raise WorkerLost({self._root}, "a step")

    def _receive(self, seconds: float) -> Header | None:
        """Receives a reply, as `Communicator.recv_any`."""

        def memory(header: Header) -> list[np.ndarray]:
            is_answer_to_join = header.digest == ANY and header.step == self._enrolment.training.code
            is_known = header.digest == self.codec.digest or self._enrolment.has_left(header.digest)
            if not (is_known or is_answer_to_join):
                raise Refused("digest", "a reply is of other parameters, or of another training")
            if self._memory.size < header.payload_bytes:
                self._memory = np.empty(header.payload_bytes, np.uint8)
            return [self._memory[: header.payload_bytes]]

        header = None
        if self._replies is None:
            header = self._communicator.recv_any(memory, tag=REPLY, source=self._root, timeout=seconds)
        elif self._replies:
            reply = self._replies.popleft()
            header = Header(REPLY, reply.step, reply.digest).sealed(reply.bufs)
            np.concatenate([*map(as_bytes, reply.bufs)], out=memory(header)[0])
        failure = None if self._server is None else self._server.failure
        if header is None and failure is not None:
            raise Aborted(f"the coordinator failed: {failure}") from failure
        return header
