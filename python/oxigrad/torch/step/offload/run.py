"""One step in host memory: the pieces of its gradients on their way, by the schedule of `oxigrad.stepping.device.transfers`."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from oxigrad import _core
from oxigrad.stepping.device.transfers import Action, Schedule
from oxigrad.stepping.plan.announcements import named
from oxigrad.torch.library import torch
from oxigrad.torch.step.norm import MeasuredNorm
from oxigrad.torch.step.offload.devices import Device, Event, device_of
from oxigrad.torch.step.offload.pieces import Pair
from oxigrad.torch.step.offload.plan import HostBatch


class HostPiece(Protocol):
    """A piece of a step: it is copied from a device into a place of ``size`` bytes, used there, and copied up again."""

    size: int

    @property
    def paths(self) -> list[str]:
        """The names of the parameters that it has parts of."""
        ...

    @property
    def device(self) -> Any:
        """The device of the copies."""
        ...

    def down(self, memory: Any) -> Iterator[Pair]:
        """The copies into its place."""
        ...

    def landed(self, memory: Any) -> None:
        """Takes note that these copies are done."""
        ...

    def measure(self, opt: Any, memory: Any, norm: MeasuredNorm) -> None:
        """Adds the norms of its gradients to ``norm``."""
        ...

    def update(self, memory: Any) -> None:
        """Updates what it is for, by what is in its place."""
        ...

    def up(self, memory: Any) -> Iterator[Pair]:
        """The copies out of its place."""
        ...


class Ring:
    """The host memory of places, each of at least ``size`` bytes once a piece was in it, and the devices of the copies, or the ``only`` one."""

    def __init__(self, size: int, only: Device | None = None) -> None:
        self._size, self._only = size, only
        self._places: dict[tuple[Any, int], Any] = {}
        self._devices: dict[Any, Device] = {}

    def device(self, of: Any) -> Device:
        """The copies of a device."""
        if of not in self._devices:
            self._devices[of] = self._only or device_of(of)
        return self._devices[of]

    def place(self, number: int, piece: HostPiece, *, exact: bool) -> Any:
        """The memory of a place, for a piece."""
        key, size = (piece.device, number), piece.size if exact else max(piece.size, self._size)
        found = self._places.get(key)
        if found is None or found.numel() < size:
            try:
                found = self._places[key] = self.device(piece.device).memory(size)
            except RuntimeError as error:
                raise MemoryError(f"{piece.paths[0]}: no host memory of {size:,} bytes for copies: {error}") from error
        return found

    @property
    def nbytes(self) -> int:
        """The bytes of all places."""
        return sum(memory.numel() for memory in self._places.values())

    def mark(self) -> None:
        """Lets later copies begin after the work that devices were given so far."""
        for device in self._devices.values():
            device.mark()

    def join(self) -> None:
        """Lets work that devices are given from now on begin after the copies up."""
        for device in self._devices.values():
            device.join()


@contextlib.contextmanager
def _limited(threads: int | None) -> Iterator[None]:
    """A block in which updates of this thread use at most so many threads."""
    before = _core.limit_threads(threads)
    try:
        yield
    finally:
        _core.limit_threads(before)


class HostRun:
    """A step in host memory that is on its way, of pieces that are added as their gradients become final.

    Args:
        ring: the memory of the places.
        places: their number; None for one for each piece.
        norm: collects the norm of all gradients, where they are scaled by it.
        measures: whether no update begins before all pieces have landed.
        holds: whether copies up wait for `release`.
        threads: the number of threads that updates use at most; None for that of all steps.
    """

    def __init__(
        self,
        ring: Ring,
        places: int | None,
        norm: MeasuredNorm | None,
        *,
        measures: bool = False,
        holds: bool = False,
        threads: int | None = None,
    ) -> None:
        self._ring, self._norm, self._threads = ring, norm, threads
        self.schedule: Schedule = Schedule(places, measures=measures or norm is not None, holds=holds)
        self._is_exact = places is None
        self.batches: list[HostBatch] = []
        self._pieces: list[HostPiece] = []
        #: The copies in flight with the events of their ends, in the order in which they began.
        self._flying: list[tuple[Action, Sequence[Event]]] = []
        # Hooks add pieces while a thread advances: the lock is of the schedule and the lists of pieces.
        self._lock, self._advancing = threading.Lock(), threading.Lock()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._is_counted = False

    def add(self, pieces: Sequence[HostPiece], batch: HostBatch | None = None) -> None:
        """Adds pieces whose gradients are final, of a ``batch`` that is counted with the step, if any."""
        with self._lock:
            for piece in pieces:
                self._ring.device(piece.device)
            self._ring.mark()
            self.batches += [] if batch is None else [batch]
            self._pieces += pieces
            for _ in pieces:
                self.schedule.add()

    @property
    def ahead(self) -> list[str]:
        """The names of the parameters with elements that were updated."""
        found = [path for number in self.schedule.ahead for path in self._pieces[number].paths]
        return [*dict.fromkeys(found)]

    @property
    def paths(self) -> list[str]:
        """The names of all parameters."""
        return [*dict.fromkeys(path for piece in self._pieces for path in piece.paths)]

    def advance(self, opt: Any, *, wait: bool = True) -> None:
        """Begins what may begin, and takes note of what is done; with ``wait``, until nothing is in flight.

        An error leaves the piece that it is about as it was before the action, and the others whole: to call it again continues the step.
        """
        with self._advancing, torch.no_grad(), _limited(self._threads):
            with self._lock:
                self.schedule.resume()
            while True:
                with self._lock:
                    begun = self.schedule.begin()
                for number, action in enumerate(begun):
                    self._begin(opt, action, begun[number + 1 :])
                done = [flying for flying in self._flying if all(event.is_done() for event in flying[1])]
                if not (begun or done):
                    if not (wait and self._flying):
                        return
                    done = self._flying[:1]
                for flying in done:
                    self._end(*flying)

    def advance_beside(self, opt: Any) -> None:
        """As `advance`, in a thread of its own, if none is at it. Raises the error of the thread before, once."""
        self._begin_thread(self.advance, opt)

    def finish_beside(self, opt: Any) -> None:
        """As `finish`, in a thread of its own, which no key stops: `join` waits for it."""
        self.join()
        self._begin_thread(self._complete, opt)

    def _begin_thread(self, work: Callable[[Any], None], opt: Any) -> None:
        if self._thread is None or not self._thread.is_alive():
            self.join()
            self._thread = threading.Thread(target=self._work, args=(work, opt), name="oxigrad-host-step", daemon=True)
            self._thread.start()

    def _work(self, work: Callable[[Any], None], opt: Any) -> None:
        try:
            work(opt)
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits for this one
            self._error = error

    def join(self, *, raises: bool = True) -> None:
        """Waits for the thread, and raises its error, once."""
        if self._thread is not None:
            self._thread.join()
        self._thread, error, self._error = None, self._error, None
        if error is not None and raises:
            raise error

    def abandon(self) -> None:
        """Waits for the thread and for the copies that have begun, whatever becomes of them: their memory is used again."""
        self.join(raises=False)
        for _, events in self._flying:
            for event in events:
                with contextlib.suppress(Exception):
                    event.wait()

    def _begin(self, opt: Any, action: Action, others: Sequence[Action]) -> None:
        """Begins an action, and ends it where it is the host's. After an error, ``others`` do not begin."""
        piece = self._pieces[action.piece]
        try:
            memory = self._ring.place(action.place, piece, exact=self._is_exact)
            if action.kind == "down":
                events = [self._ring.device(piece.device).copy_down(*pair) for pair in piece.down(memory)]
                self._flying.append((action, events))
            elif action.kind == "up":
                events = [self._ring.device(piece.device).copy_up(*pair) for pair in piece.up(memory)]
                self._flying.append((action, events))
            elif action.kind == "update":
                piece.update(memory)
            elif self._norm is not None:
                piece.measure(opt, memory, self._norm)
        except Exception:  # Nothing was written. After an interrupt, that is not known.
            with self._lock:
                for failed in reversed((action, *others)):
                    self.schedule.fail(failed)
            raise
        if action.kind in ("update", "measure"):
            with self._lock:
                self.schedule.finish(action)

    def _end(self, action: Action, events: Sequence[Event]) -> None:
        self._flying = [flying for flying in self._flying if flying[0] is not action]
        try:
            for event in events:
                event.wait()
        except Exception:
            with self._lock:
                self.schedule.fail(action)
            raise
        if action.kind == "down":
            piece = self._pieces[action.piece]
            piece.landed(self._ring.place(action.place, piece, exact=self._is_exact))
        with self._lock:
            self.schedule.finish(action)

    def close(self) -> None:
        """Tells that all gradients are there."""
        with self._lock:
            self.schedule.close()

    def release(self) -> None:
        """Lets copies up begin."""
        with self._lock:
            self.schedule.release()

    def finish(self, opt: Any) -> None:
        """Waits for all copies and updates, then counts the step."""
        self.join()
        self._complete(opt)

    def _complete(self, opt: Any) -> None:
        if self._is_counted:
            return
        self.advance(opt)
        if not self.schedule.is_finished:
            raise RuntimeError(
                f"an update of {named(self.ahead)} was interrupted: expected a state that was saved before"
            )
        self._ring.join()
        for batch in self.batches:
            batch.count(opt)
        self._is_counted = True
