"""The service of one worker for all in a training: it admits or refuses workers, and answers their requests.

`Service` is free of transport: it is given requests, the time and the workers that were lost, and returns replies.
`serve` runs one over a `Communicator`. The identity of the training is part of the digest of every message; a request
to join has the digest `ANY`, the identity as its step, and the description of the model, as have its answers that say
to join later, or another training.
"""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from oxigrad.distributed.communicator import Communicator
from oxigrad.distributed.decisions.training import Admission, Training, admission, ended
from oxigrad.distributed.errors import CommunicationError, Refused, WorkerLost, log
from oxigrad.distributed.messages import agreement
from oxigrad.distributed.messages.message import Header
from oxigrad.distributed.messages.refusals import Refusals, encoded

ANY = bytes(8)
MOST_DESCRIPTION = 1 << 24

# Tags of messages.
REQUEST, REPLY = 1, 2
# Kinds of requests (`ASK` is answered at once, by nothing), the first of the four integers that a request begins with;
# then a number, an incarnation, and for `PULL` 1. `JOIN` is followed by the description of the model; its answers
# `LATER` and `TELL` have the digest `ANY` too.
JOIN, LEAVE, PULL, PUSH, ASK = range(5)
REQUEST_WORDS = 4
# Kinds of the content of replies. `LATER` and `TELL` have the identity of the training that the coordinator serves in
# place of the step.
NOTHING, UPDATES, STATE, REFUSED, LATER, TELL = range(6)
NOTICES = LATER, TELL
DECISION_WORDS = 5


class ReplyHead(NamedTuple):
    """The integers that a reply begins with: those of each decision follow, then the bytes of each part of its content.

    ``token`` is the step of the token, or -1, ``step`` the one that the reply brings the worker to, ``checksum`` of the
    parameters, ``number`` of the last gradient that the worker sent, and ``parts`` of a refusal the bytes of its text.
    """

    token: int
    kind: int
    decisions: int = 0
    step: int = 0
    checksum: int = 0
    number: int = 0
    parts: int = 0


REPLY_WORDS = len(ReplyHead._fields)


@dataclasses.dataclass
class Reply:
    """A message to a worker, given by rank."""

    rank: int
    step: int
    bufs: list[np.ndarray]
    digest: bytes


class Service:
    """Base class of the services of a training.

    ``description`` is that of the model, with which those of the workers are compared.
    """

    def __init__(self, training: Training, description: np.ndarray) -> None:
        self.training: Training = training
        self._description = description
        #: Held while requests are handled and replies are sent.
        self.lock: AbstractContextManager[Any] = contextlib.nullcontext()
        #: Counts the messages and the workers that were refused, by reason.
        self.refused: Refusals = Refusals()
        #: The time of the last message of each worker.
        self.heard: dict[int, float] = {}

    # --- for subclasses -----------------------------------------------------------------------------------------------

    def memory(self, header: Header) -> list[np.ndarray]:
        """The memory to receive a request into. Raises `Refused` for one that cannot be of these parameters."""
        raise NotImplementedError

    def receive(self, header: Header, *payload: np.ndarray) -> list[Reply]:
        """The replies that a request causes. Raises `Refused` for one that is malformed, before anything is changed."""
        raise NotImplementedError

    def lost(self, ranks: Iterable[int]) -> list[Reply]:
        """The replies after the loss of workers."""
        raise NotImplementedError

    def tick(self, now: float) -> list[Reply]:
        """The replies at a time, in seconds, before a request is handled."""
        return []

    @property
    def is_done(self) -> bool:
        """Whether there is nobody to serve any more."""
        return False

    def members(self) -> list[int]:
        """The ranks of the workers that take part."""
        return []

    # --- admission ----------------------------------------------------------------------------------------------------

    def refusal(self, request: Header, error: Refused) -> Reply:
        """The reply to a request by which a worker raises an error."""
        text = encoded(error)
        head = ReplyHead(-1, REFUSED, parts=text.nbytes)
        return Reply(request.rank, request.step, [np.array(head, np.int64), text], request.digest)

    def _notice(self, request: Header, decision: Admission) -> Reply:
        """The reply to a worker that is to join later, or is told the training."""
        head = ReplyHead(-1, TELL if decision == "tell" else LATER, step=self.training.code)
        return Reply(request.rank, request.step, [np.array(head, np.int64)], ANY)

    def _dismissed(self, request: Header, description: np.ndarray) -> list[Reply]:
        """The replies to a worker that is not admitted: an error, where it has another model or version.

        None for one that is.
        """
        rank, asked = request.rank, Training.of_code(request.step)
        decision = admission(self.training, asked)
        if decision == "tell":
            return [self._notice(request, decision)]
        if decision == "later":  # it has left this training, or does not take part in it
            return [self._notice(request, decision), *self.lost([rank])]
        wrong = agreement.difference(self._description, description, f"rank {rank}")
        wrong = ended(rank, asked, self.training) if decision == "over" else wrong
        if wrong is None:
            return []
        log.error("rank %d is refused: %s", rank, wrong)
        self.refused[wrong.reason] += 1
        return [self.refusal(request, wrong), *self.lost([rank])]  # it is not waited for


def serve(
    service: Service,
    communicator: Communicator,
    is_stopped: Callable[[], bool] = lambda: False,
    poll: float = 0.05,
) -> None:
    """Answers requests until all workers have left or died, or ``is_stopped()``.

    A request that cannot be of these parameters, or is malformed, is answered by its refusal. Raises `WorkerLost` where
    the workers form the next generation, and `Excluded`.
    """
    service.refused = communicator.refused
    start = time.monotonic()
    alive = frozenset(range(communicator.size))  # those that were lost before are not waited for
    while not (is_stopped() or service.is_done):
        payload: list[np.ndarray] = []
        replies: list[Reply] = []

        def memory(header: Header, to: list[np.ndarray] = payload, answers: list[Reply] = replies) -> list[np.ndarray]:
            try:
                to[:] = service.memory(header)
            except Refused as error:
                answers.append(service.refusal(header, error))
                raise
            return to

        header = communicator.recv_any(memory, tag=REQUEST, timeout=poll)
        before, alive = alive, communicator.alive()
        with service.lock:
            replies += service.tick(time.monotonic() - start)
            if header is not None:
                service.heard[header.rank] = time.monotonic()
                try:
                    replies += service.receive(header, *payload)
                except Refused as error:
                    service.refused.add(error)
                    replies.append(service.refusal(header, error))
            replies += service.lost(sorted(before - alive))
            try:
                for reply in replies:
                    try:
                        communicator.send(reply.rank, Header(REPLY, reply.step, reply.digest), reply.bufs)
                    except WorkerLost:
                        alive -= {reply.rank}
                        replies += service.lost([reply.rank])
            except CommunicationError:
                return
