"""The centre of asynchronous elastic averaging: kept by the worker of rank 0, and moved by the pushes of all."""

import threading
import time
from collections.abc import Sequence

import numpy as np

from oxigrad.distributed.communicator import Buffer, Communicator
from oxigrad.distributed.decisions.elastic import Action, Apply, Centre, Give, Repeat
from oxigrad.distributed.errors import CommunicationError, Refused, TimedOut, WorkerLost
from oxigrad.distributed.message import Header, Layout

__all__ = ["CentreServer", "request"]


def __dir__() -> list[str]:
    return list(__all__)


# Tags of messages, and the kinds of requests and replies, the first of the two integers that each begins with.
REQUEST, REPLY = 11, 12
JOIN, PUSH, LEAVE = range(3)
CENTRE, REFUSED = range(2)
_POLL = 0.05

# A reply: its kind, the number of the push, and the centre before it.
Answer = tuple[int, int, list[np.ndarray]]


def moved(centre: np.ndarray, position: np.ndarray, rate: float) -> np.ndarray:
    """The elastic move ``rate * (position - centre)``: a worker moves by minus it, the centre by it."""
    return centre.dtype.type(rate) * (position - centre)


class CentreServer:
    """Keeps the centre, and answers the requests of the workers in a thread of its own until `stop`.

    Each request is of one worker and is answered by the centre before its move, from which worker and server compute the same
    move. ``rate`` is the moving rate, ``machine`` decides the order.
    """

    def __init__(
        self, communicator: Communicator, layout: Layout, buffers: Sequence[Buffer], machine: Centre, rate: float
    ) -> None:
        self._communicator, self._layout, self._machine, self._rate = communicator, layout, machine, rate
        self.buffers = list(buffers)
        self._positions: dict[int, list[np.ndarray]] = {}
        self._answers: dict[int, Answer] = {}
        self._changed = threading.Condition()
        self._sending = threading.Lock()
        self._alive = communicator.alive()
        self._stopped = False
        self._error: BaseException | None = None
        self._begin = time.monotonic()
        self._thread = threading.Thread(target=self._serve, name="elastic-centre", daemon=True)
        self._thread.start()

    # --- the worker of the same rank -----------------------------------------------------------------------------------

    def request(self, kind: int, number: int, bufs: Sequence[np.ndarray], timeout: float) -> Answer:
        """The answer to a request of the worker of this rank."""
        rank = self._communicator.rank
        with self._changed:
            if kind != PUSH or not self._has_answered(rank, number):
                self._answers.pop(rank, None)
                self._handle(rank, kind, number, [b.copy() for b in bufs])
            if kind == LEAVE:
                return CENTRE, number, []
            if not self._changed.wait_for(lambda: self._has_answered(rank, number) or self._stopped, timeout):
                raise TimedOut(f"the centre did not answer within {timeout:g} s")
            if not self._has_answered(rank, number):
                raise WorkerLost({rank}, "an exchange with the centre") from self._error
            return self._answers[rank]

    def _has_answered(self, rank: int, number: int) -> bool:
        return rank in self._answers and self._answers[rank][1] == number

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

        def memory(header: Header) -> list[np.ndarray]:
            if header.digest != self._layout.digest:
                raise Refused("digest", "a worker has other parameters")
            whole = header.payload_bytes == 16 + self._layout.nbytes
            if not (whole or header.payload_bytes == 16):
                raise Refused("length", f"a request has {header.payload_bytes} bytes")
            payload[:] = [np.empty(2, np.int64), *(self._layout.empty() if whole else [])]
            return payload

        header = self._communicator.recv_any(memory, tag=REQUEST, timeout=_POLL)
        with self._changed:
            if header is not None:
                kind, number = map(int, payload[0])
                self._handle(header.rank, kind, number, payload[1:])
            before, self._alive = self._alive, self._communicator.alive()
            for rank in sorted(before - self._alive):
                self._act(self._machine.leave(rank))
            self._act(self._machine.clock(time.monotonic() - self._begin))
            self._changed.notify_all()

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
                answer = (CENTRE, action.number, [buffer.copy() for buffer in self.buffers])
                for centre, position in zip(self.buffers, self._positions.pop(rank), strict=True):
                    np.add(centre, moved(centre, position, self._rate), out=centre)
            elif isinstance(action, Give):
                answer = (CENTRE, action.number, [buffer.copy() for buffer in self.buffers])
            elif isinstance(action, Repeat) and rank in self._answers:
                answer = self._answers[rank]
            else:
                answer = (REFUSED, action.number, [])
            self._answer(rank, answer)
        self._changed.notify_all()

    def _answer(self, rank: int, answer: Answer) -> None:
        self._answers[rank] = answer
        if rank == self._communicator.rank:
            return
        kind, number, bufs = answer
        head = Header(REPLY, number, self._layout.digest)
        try:
            with self._sending:
                self._communicator.send(rank, head, [np.array([kind, number], np.int64), *bufs])
        except CommunicationError:  # it has died or left, which the next receive sees
            return


def request(
    communicator: Communicator, layout: Layout, kind: int, number: int, bufs: Sequence[np.ndarray], timeout: float
) -> Answer:
    """The answer of the centre at rank 0 to a request of another worker.

    Raises `WorkerLost` where rank 0 has died, and `TimedOut`, after which the same request may be repeated.
    """
    communicator.send(0, Header(REQUEST, number, layout.digest), [np.array([kind, number], np.int64), *bufs])
    if kind == LEAVE:
        return CENTRE, number, []
    payload: list[np.ndarray] = []

    def memory(header: Header) -> list[np.ndarray]:
        if header.digest != layout.digest:
            raise Refused("digest", "the centre has other parameters")
        whole = header.payload_bytes == 16 + layout.nbytes
        payload[:] = [np.empty(2, np.int64), *(layout.empty() if whole else [])]
        return payload

    end = time.monotonic() + timeout
    while (left := end - time.monotonic()) > 0:
        if communicator.recv_any(memory, tag=REPLY, source=0, timeout=left) is None:
            break
        found, answered = map(int, payload[0])
        if answered == number:  # else it is the second answer to an earlier request
            return found, answered, payload[1:]
    raise TimedOut(f"the centre did not answer within {timeout:g} s")
