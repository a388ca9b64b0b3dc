"""The centre of asynchronous elastic averaging: kept by one worker, at first that of rank 0, and moved by the pushes of all."""

import contextlib
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, NamedTuple

import numpy as np

from oxigrad.distributed.communicator import Buffer, Communicator
from oxigrad.distributed.coordination.service import ANY, MOST_DESCRIPTION, Reply, Service, ServiceWait, deliver, serve
from oxigrad.distributed.decisions.elastic import Action, Apply, Centre, Give, Repeat
from oxigrad.distributed.decisions.training import Admission, Training, admission, ended
from oxigrad.distributed.errors import CommunicationError, Excluded, Refused, TimedOut, WorkerLost
from oxigrad.distributed.messages import agreement
from oxigrad.distributed.messages.message import Header, Layout
from oxigrad.distributed.messages.refusals import encoded, refusal_of

# Tags of messages, and the kinds of requests and replies; `ASK` is answered by `HERE` at once. A request begins with its kind and the number of the push; that of `JOIN`
# is followed by the description of the model. A reply has the count of applied pushes as well; that of `WRONG` is followed by a text, and
# `LATER` and `TELL` have the identity of the training of the centre in its place.
REQUEST, REPLY = 11, 12
JOIN, PUSH, LEAVE, ASK = range(4)
CENTRE, REFUSED, WRONG, LATER, TELL, HERE = range(6)
NOTICES: dict[int, Admission] = {LATER: "later", TELL: "tell"}
_ASKED, _ANSWERED = 16, 24


class CentreReply(NamedTuple):
    """A reply: its kind, the number of the push, the centre before it, and the count of pushes that are applied with it."""

    kind: int
    number: int
    bufs: list[np.ndarray]
    applied: int = 0

    def to(self, rank: int, step: int, digest: bytes) -> Reply:
        """The message with this reply."""
        return Reply(rank, step, [np.array([self.kind, self.number, self.applied], np.int64), *self.bufs], digest)


def moved(centre: np.ndarray, position: np.ndarray, rate: float) -> np.ndarray:
    """The elastic move ``rate * (position - centre)``: a worker moves by minus it, the centre by it."""
    return centre.dtype.type(rate) * (position - centre)


class ElasticService(Service):
    """Base class of what answers the workers of elastic averaging, asynchronous and synchronous ones."""

    tags: ClassVar[tuple[int, int]] = REQUEST, REPLY

    def refusal(self, request: Header, error: Refused) -> Reply:
        """See `Service.refusal`."""
        return CentreReply(WRONG, 0, [encoded(error)]).to(request.rank, request.step, request.digest)

    def _notice(self, request: Header, decision: Admission) -> Reply:
        kind = next(kind for kind, meaning in NOTICES.items() if meaning == decision)
        return CentreReply(kind, 0, [], self.training.code).to(request.rank, request.step, ANY)


class CentreServer(ElasticService):
    """Keeps the centre, and answers the requests of the workers in a thread of its own until `stop`.

    Each request is of one worker and is answered by the centre before its move, from which worker and server compute the same
    move. ``rate`` is the moving rate, ``machine`` decides the order, ``count`` is the number of pushes applied by a former
    centre. Workers whose description differs from ``description`` are refused.
    """

    def __init__(
        self,
        communicator: Communicator,
        layout: Layout,
        buffers: Sequence[Buffer],
        machine: Centre,
        rate: float,
        description: np.ndarray,
        count: int = 0,
        training: Training = Training(),  # noqa: B008 - it is immutable
        seconds: float | None = None,
    ) -> None:
        super().__init__(training, description)
        self._seconds = seconds
        self._communicator, self._layout, self._machine, self._rate = communicator, layout, machine, rate
        self.count: int = count
        self.buffers: list[Buffer] = list(buffers)
        self._positions: dict[int, Sequence[np.ndarray]] = {}
        self._answers: dict[int, CentreReply] = {}
        self._changed = threading.Condition()
        self.lock: AbstractContextManager[Any] = self._changed
        self._stopped = False
        self._error: BaseException | None = None
        self._begin = time.monotonic()
        self._thread = threading.Thread(target=self._serve, name="elastic-centre", daemon=True)
        self._thread.start()

    # --- the worker of the same rank -----------------------------------------------------------------------------------

    def request(self, kind: int, number: int, bufs: Sequence[np.ndarray], timeout: float | None) -> CentreReply:
        """The answer to a request of the worker of this rank."""
        rank = self._communicator.rank
        self._communicator.alive()  # which raises `Excluded`
        with self._changed:
            if kind != PUSH or not self._has_answered(rank, number):
                self._answers.pop(rank, None)
                replies = self._handle(rank, kind, number, [b.copy() for b in bufs])
                with contextlib.suppress(CommunicationError):  # the thread that serves sees it too
                    deliver(self, self._communicator, replies)
            if kind == LEAVE:
                return CentreReply(CENTRE, number, [])
            if not self._changed.wait_for(lambda: self._has_answered(rank, number) or self._stopped, timeout):
                raise TimedOut(f"the centre did not answer within {timeout:g} s")
            if not self._has_answered(rank, number):
                if isinstance(self._error, Excluded):
                    raise self._error
                raise WorkerLost({rank}, "an exchange with the centre") from self._error
            return self._answers[rank]

    def _has_answered(self, rank: int, number: int) -> bool:
        return rank in self._answers and self._answers[rank].number == number

    def copies(self) -> list[np.ndarray]:
        """Copies of the buffers of the centre."""
        with self._changed:
            return [buffer.copy() for buffer in self.buffers]

    def leave(self) -> None:
        """Lets the worker of this rank leave, and ends the thread after all others have left, or after the time-out ``seconds``."""
        if self._stopped:
            return
        self.request(LEAVE, 0, [], self._seconds)
        with self._changed:
            self._changed.wait_for(lambda: not self._machine.applied or self._stopped, self._seconds)
            self._stopped = True
        self._thread.join(self._seconds)

    def halt(self) -> None:
        """Ends the thread at once, as for another generation of workers."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        self._thread.join()

    def __deepcopy__(self, memo: dict[int, object]) -> "CentreServer":
        raise TypeError("the optimizer that keeps the centre cannot be copied: copy its state, by state_dict")

    # --- the thread ----------------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        try:
            serve(self, self._communicator, lambda: self._stopped)
        except BaseException as error:  # noqa: BLE001 - the worker raises it
            self._error = error
        finally:
            with self._changed:
                self._stopped = True
                self._changed.notify_all()

    def memory(self, header: Header) -> list[np.ndarray]:
        """See `Service.memory`: the first two integers of a request, and what follows them."""
        size = header.payload_bytes - _ASKED
        if header.digest == ANY and 0 < size <= MOST_DESCRIPTION:
            return [np.empty(2, np.int64), np.empty(size, np.uint8)]
        if header.digest != self._layout.digest:
            raise Refused("digest", f"rank {header.rank} has other parameters than the centre")
        if size not in (0, self._layout.nbytes):
            raise Refused("length", f"a request has {header.payload_bytes} bytes")
        return [np.empty(2, np.int64), *(self._layout.empty() if size == self._layout.nbytes else [])]

    def receive(self, header: Header, *payload: np.ndarray) -> list[Reply]:
        """See `Service.receive`."""
        rank, (kind, number), bufs = header.rank, map(int, payload[0]), payload[1:]
        if kind == ASK:
            return [CentreReply(HERE, number, []).to(rank, number, self._layout.digest)]
        if kind not in (JOIN, PUSH, LEAVE) or (kind == PUSH and not bufs):
            raise Refused("kind", f"a request has the kind {kind} and {len(bufs)} buffers")
        description = bufs[0] if bufs else np.empty(0, np.uint8)
        dismissed = self._dismissed(header, description) if kind == JOIN else []
        return dismissed or self._handle(rank, kind, number, bufs)

    def lost(self, ranks: Iterable[int]) -> list[Reply]:
        """See `Service.lost`."""
        return [reply for rank in ranks for reply in self._act(self._machine.leave(rank))]

    def expired(self) -> list[Reply]:
        """See `Service.expired`."""
        return self._act(self._machine.clock(time.monotonic() - self._begin))

    def _handle(self, rank: int, kind: int, number: int, bufs: Sequence[np.ndarray]) -> list[Reply]:
        now = time.monotonic() - self._begin
        if kind == JOIN:
            self._answers.pop(rank, None)
            return self._act(self._machine.join(rank, now))
        if kind == LEAVE:
            return self._act(self._machine.leave(rank))
        if kind == PUSH and bufs:
            self._positions[rank] = bufs
            return self._act(self._machine.push(rank, number, now))
        return []

    def _act(self, actions: tuple[Action, ...]) -> list[Reply]:
        """Does what the decisions say; returns the replies to other workers."""
        replies = []
        for action in actions:
            rank = action.worker
            if isinstance(action, Apply):
                self.count += 1
                answer = CentreReply(CENTRE, action.number, [buffer.copy() for buffer in self.buffers], self.count)
                for centre, position in zip(self.buffers, self._positions.pop(rank), strict=True):
                    np.add(centre, moved(centre, position, self._rate), out=centre)
            elif isinstance(action, Give):
                answer = CentreReply(CENTRE, action.number, [buffer.copy() for buffer in self.buffers], self.count)
            elif isinstance(action, Repeat) and rank in self._answers:
                answer = self._answers[rank]
            else:
                answer = CentreReply(REFUSED, action.number, [])
            self._answers[rank] = answer
            if rank != self._communicator.rank:
                replies.append(answer.to(rank, answer.number, self._layout.digest))
        self._changed.notify_all()
        return replies


class Greeting(ElasticService):
    """The begin of synchronous exchanges: hears the description of each worker, and then answers all: by its difference, or to begin.

    Workers ask as those of an asynchronous centre do, so that either kind of rank 0 refuses workers of the other kind.
    """

    def __init__(self, communicator: Communicator, layout: Layout, description: np.ndarray, training: Training) -> None:
        super().__init__(training, description)
        self._digest = layout.digest
        self._others = [rank for rank in range(communicator.size) if rank != communicator.rank]
        self.awaited: set[int] = {*self._others}
        self.error: Refused | None = None

    def memory(self, header: Header) -> list[np.ndarray]:
        """See `Service.memory`."""
        size = header.payload_bytes - _ASKED
        if header.digest != ANY or not 0 < size <= MOST_DESCRIPTION:
            raise Refused("kind", f"rank {header.rank} asks for something else than to begin synchronous exchanges")
        return [np.empty(2, np.int64), np.empty(size, np.uint8)]

    def receive(self, header: Header, *payload: np.ndarray) -> list[Reply]:
        """See `Service.receive`."""
        asked = Training.of_code(header.step)
        decision = admission(self.training, asked)
        if decision == "over":
            return [self.refusal(header, ended(header.rank, asked, self.training))]
        if decision != "serve":
            return [self._notice(header, decision)]
        difference = agreement.difference(self._description, payload[1], f"rank {header.rank}")
        self.error = self.error or difference
        return self.lost([header.rank])

    def lost(self, ranks: Iterable[int]) -> list[Reply]:
        """See `Service.lost`: the answers to all workers, once none is waited for."""
        was_done = self.is_done
        self.awaited -= {*ranks}
        if was_done or not self.is_done:
            return []
        answer = CentreReply(CENTRE, 0, []) if self.error is None else CentreReply(WRONG, 0, [encoded(self.error)])
        return [answer.to(rank, 0, self._digest) for rank in self._others]

    @property
    def is_done(self) -> bool:
        """Whether all workers have asked, or were lost."""
        return not self.awaited


def greet(
    communicator: Communicator, layout: Layout, description: np.ndarray, training: Training, seconds: float
) -> None:
    """Waits until all workers have asked to begin synchronous exchanges. Raises `Refused`, as they do, where they differ, and `TimedOut`."""
    greeting, end = Greeting(communicator, layout, description, training), time.monotonic() + seconds
    serve(greeting, communicator, lambda: time.monotonic() > end)
    if greeting.error is not None:
        raise greeting.error
    if greeting.awaited:
        raise TimedOut(f"rank {min(greeting.awaited)} has not begun synchronous exchanges within {seconds:g} s")


def request(
    communicator: Communicator,
    layout: Layout,
    kind: int,
    number: int,
    bufs: Sequence[np.ndarray],
    timeout: float,
    root: int = 0,
    training: Training = Training(),  # noqa: B008 - it is immutable
) -> CentreReply:
    """The answer of the centre, which the worker ``root`` keeps, to a request of another worker.

    The answer to `JOIN` may be `LATER` or `TELL`. Raises `WorkerLost` where ``root`` has died, or does not answer a push within the time-out:
    then it is excluded. Raises `Refused` where this worker has another model, and `TimedOut`, after which the same request may be repeated.
    """
    head = Header(REQUEST, training.code, ANY) if kind == JOIN else Header(REQUEST, number, layout.digest)
    communicator.send(root, head, [np.array([kind, number], np.int64), *bufs])
    if kind == LEAVE:
        return CentreReply(CENTRE, number, [])
    payload: list[np.ndarray] = []

    def memory(header: Header) -> list[np.ndarray]:
        if header.digest != layout.digest and (header.digest, header.step) != (ANY, training.code):
            raise Refused("digest", "the centre has other parameters, or is of another training")
        size = header.payload_bytes - _ANSWERED
        rest = (
            layout.empty() if header.digest == layout.digest and size == layout.nbytes else [np.empty(size, np.uint8)]
        )
        payload[:] = [np.empty(3, np.int64), *rest]
        return payload

    def ask() -> None:
        communicator.send(root, Header(REQUEST, 0, layout.digest), [np.array([ASK, 0], np.int64)])

    wait = ServiceWait(communicator, root, timeout, "the centre", "an exchange with the centre", ask, kind == PUSH)
    while True:
        if wait.receive(lambda part: communicator.recv_any(memory, tag=REPLY, source=root, timeout=part)) is None:
            continue
        answer, answered, count = map(int, payload[0])
        if answer == WRONG:
            raise refusal_of(payload[1])
        if answer in NOTICES:
            return CentreReply(answer, answered, [], count)
        if answered == number and answer != HERE:  # else it is the second answer to an earlier request
            return CentreReply(answer, answered, payload[1:], count)
        if wait.watch.heard() == "late":
            raise TimedOut(f"the centre did not answer within {timeout:g} s: other workers are slow or stopped")
