"""The centre of asynchronous elastic averaging: kept by one worker, at first that of rank 0, and moved by the pushes of all."""

import logging
import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from oxigrad.distributed.communicator import Buffer, Communicator
from oxigrad.distributed.decisions.elastic import Action, Apply, Centre, Give, Repeat
from oxigrad.distributed.decisions.training import Admission, Training, admission, ended
from oxigrad.distributed.decisions.watch import Action as Wait
from oxigrad.distributed.decisions.watch import Watch
from oxigrad.distributed.errors import CommunicationError, Excluded, Refused, TimedOut, WorkerLost
from oxigrad.distributed.messages import agreement
from oxigrad.distributed.messages.message import Header, Layout
from oxigrad.distributed.messages.refusals import encoded, refusal_of

# Tags of messages, and the kinds of requests and replies; `ASK` is answered by `HERE` at once. A request begins with its kind and the number of the push; that of `JOIN`
# is followed by the description of the model, and has the digest `ANY` and the identity of the training as its step, as its answers
# `LATER` and `TELL` have. A reply has the count of applied pushes as well; that of `WRONG` is followed by a text, and `LATER` and
# `TELL` have the identity of the training of the centre in its place.
REQUEST, REPLY = 11, 12
JOIN, PUSH, LEAVE, ASK = range(4)
CENTRE, REFUSED, WRONG, LATER, TELL, HERE = range(6)
NOTICES: dict[int, Admission] = {LATER: "later", TELL: "tell"}
ANY = bytes(8)
_ASKED, _ANSWERED = 16, 24
_MOST_DESCRIPTION = 1 << 24
_POLL = 0.05

_log = logging.getLogger("oxigrad.distributed")


class CentreReply(NamedTuple):
    """A reply: its kind, the number of the push, the centre before it, and the count of pushes that are applied with it."""

    kind: int
    number: int
    bufs: list[np.ndarray]
    applied: int = 0


def moved(centre: np.ndarray, position: np.ndarray, rate: float) -> np.ndarray:
    """The elastic move ``rate * (position - centre)``: a worker moves by minus it, the centre by it."""
    return centre.dtype.type(rate) * (position - centre)


class CentreServer:
    """Keeps the centre, and answers the requests of the workers in a thread of its own until `stop`.

    Each request is of one worker and is answered by the centre before its move, from which worker and server compute the same
    move. ``rate`` is the moving rate, ``machine`` decides the order, ``count`` is the number of pushes applied by a former
    centre. Workers whose description differs from ``description`` are refused.
    """

    count: int
    buffers: list[np.ndarray]

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
    ) -> None:
        self._communicator, self._layout, self._machine, self._rate = communicator, layout, machine, rate
        self._description, self.count, self._training = description, count, training
        self.buffers = list(buffers)
        self._positions: dict[int, list[np.ndarray]] = {}
        self._answers: dict[int, CentreReply] = {}
        self._changed = threading.Condition()
        self._sending = threading.Lock()
        self._alive = frozenset(range(communicator.size))  # those that were lost before are not waited for
        self._stopped = False
        self._error: BaseException | None = None
        self._begin = time.monotonic()
        self._thread = threading.Thread(target=self._serve, name="elastic-centre", daemon=True)
        self._thread.start()

    # --- the worker of the same rank -----------------------------------------------------------------------------------

    def request(self, kind: int, number: int, bufs: Sequence[np.ndarray], timeout: float) -> CentreReply:
        """The answer to a request of the worker of this rank."""
        rank = self._communicator.rank
        self._communicator.alive()  # which raises `Excluded`
        with self._changed:
            if kind != PUSH or not self._has_answered(rank, number):
                self._answers.pop(rank, None)
                self._handle(rank, kind, number, [b.copy() for b in bufs])
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

    def stop(self, timeout: float) -> None:
        """Ends the thread after all workers have left, or after the time-out."""
        with self._changed:
            self._changed.wait_for(lambda: not self._machine.applied or self._stopped, timeout)
            self._stopped = True
        self._thread.join(timeout)

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
            while not self._stopped:
                self._receive()
        except BaseException as error:  # noqa: BLE001 - the worker raises it
            self._error = error
        finally:
            with self._changed:
                self._stopped = True
                self._changed.notify_all()

    def _receive(self) -> None:
        payload: list[np.ndarray] = []
        refused: list[tuple[Header, Refused]] = []

        def memory(header: Header) -> list[np.ndarray]:
            try:
                payload[:] = [np.empty(2, np.int64), *self._memory(header)]
            except Refused as error:
                refused.append((header, error))
                raise
            return payload

        header = self._communicator.recv_any(memory, tag=REQUEST, timeout=_POLL)
        for request, error in refused:
            self._tell(request, error)
        with self._changed:
            if header is not None:
                kind, number = map(int, payload[0])
                self._take(header, kind, number, payload[1:])
            before, self._alive = self._alive, self._communicator.alive()
            for rank in sorted(before - self._alive):
                self._act(self._machine.leave(rank))
            self._act(self._machine.clock(time.monotonic() - self._begin))
            self._changed.notify_all()

    def _take(self, header: Header, kind: int, number: int, bufs: list[np.ndarray]) -> None:
        """Handles a request of another worker, which is told where that is malformed."""
        rank = header.rank
        if kind == ASK:
            self._send(rank, Header(REPLY, number, self._layout.digest), CentreReply(HERE, number, []))
        elif kind not in (JOIN, PUSH, LEAVE) or (kind == PUSH and not bufs):
            error = Refused("kind", f"a request has the kind {kind} and {len(bufs)} buffers")
            self._communicator.refused.add(error)
            self._tell(header, error)
        elif kind != JOIN or self._admits(header, bufs):
            self._handle(rank, kind, number, bufs)

    def _tell(self, request: Header, error: Refused) -> None:
        """Tells a worker that its request is refused."""
        self._send(request.rank, Header(REPLY, request.step, request.digest), CentreReply(WRONG, 0, [encoded(error)]))

    def _memory(self, header: Header) -> list[np.ndarray]:
        """The memory for what follows the first two integers of a request."""
        size = header.payload_bytes - _ASKED
        if header.digest == ANY and 0 < size <= _MOST_DESCRIPTION:
            return [np.empty(size, np.uint8)]
        if header.digest != self._layout.digest:
            raise Refused("digest", f"rank {header.rank} has other parameters than the centre")
        if size not in (0, self._layout.nbytes):
            raise Refused("length", f"a request has {header.payload_bytes} bytes")
        return self._layout.empty() if size else []

    def _admits(self, request: Header, bufs: list[np.ndarray]) -> bool:
        """Whether a worker that joins is of this training and has the same model; otherwise it is told what differs."""
        rank, asked = request.rank, Training.of_code(request.step)
        decision = admission(self._training, asked)
        if decision in ("later", "tell"):
            kind = LATER if decision == "later" else TELL
            self._send(rank, Header(REPLY, request.step, ANY), CentreReply(kind, 0, [], self._training.code))
            self._act(self._machine.leave(rank) if decision == "later" else ())
            return False
        description = bufs[0] if bufs else np.empty(0, np.uint8)
        wrong = agreement.difference(self._description, description, f"rank {rank}")
        wrong = ended(rank, asked, self._training) if decision == "over" else wrong
        if wrong is None:
            return True
        _log.error("rank %d is refused: %s", rank, wrong)
        self._communicator.refused[wrong.reason] += 1
        self._tell(request, wrong)
        self._act(self._machine.leave(rank))
        return False

    def _handle(self, rank: int, kind: int, number: int, bufs: list[np.ndarray]) -> None:
        now = time.monotonic() - self._begin
        if kind == JOIN:
            self._answers.pop(rank, None)
            self._act(self._machine.join(rank, now))
        elif kind == LEAVE:
            self._act(self._machine.leave(rank))
        elif kind == PUSH and bufs:
            self._positions[rank] = bufs
            self._act(self._machine.push(rank, number, now))

    def _act(self, actions: tuple[Action, ...]) -> None:
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
            self._answer(rank, answer)
        self._changed.notify_all()

    def _answer(self, rank: int, answer: CentreReply) -> None:
        self._answers[rank] = answer
        if rank != self._communicator.rank:
            self._send(rank, Header(REPLY, answer.number, self._layout.digest), answer)

    def _send(self, rank: int, head: Header, answer: CentreReply) -> None:
        words = np.array([answer.kind, answer.number, answer.applied], np.int64)
        try:
            with self._sending:
                self._communicator.send(rank, head, [words, *answer.bufs])
        except CommunicationError:  # it has died or left, which the next receive sees
            return


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

    watch = Watch(timeout)
    while True:
        begun = time.monotonic()
        if communicator.recv_any(memory, tag=REPLY, source=root, timeout=watch.part) is None:
            _waited(watch.waited(time.monotonic() - begun), communicator, layout, kind, root, timeout)
            continue
        found, answered, count = map(int, payload[0])
        if found == WRONG:
            raise refusal_of(payload[1])
        if found in NOTICES:
            return CentreReply(found, answered, [], count)
        if answered == number and found != HERE:  # else it is the second answer to an earlier request
            return CentreReply(found, answered, payload[1:], count)
        if watch.heard() == "late":
            raise TimedOut(f"the centre did not answer within {timeout:g} s: other workers are slow or stopped")


def _waited(
    action: Wait | None, communicator: Communicator, layout: Layout, kind: int, root: int, timeout: float
) -> None:
    """Does what a `Watch` says. Before a worker is admitted, nothing is known of that which keeps the centre."""
    if action == "ask" and kind == PUSH:
        communicator.send(root, Header(REQUEST, 0, layout.digest), [np.array([ASK, 0], np.int64)])
    elif action == "lost":
        if kind != PUSH:
            raise TimedOut(f"the centre did not answer within {timeout:g} s")
        communicator.exclude(root)
        raise WorkerLost({root}, "an exchange with the centre")
