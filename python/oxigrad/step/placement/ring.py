"""A ring buffer of host memory, and the one thread that works on it.

A step is cut into pieces. Each piece is copied down into a place of the ring, used there, and copied up again, while
others are copied. Pieces pass these stages in their order.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic, NamedTuple, TypeVar

from oxigrad import _core
from oxigrad.ops.backends import detached
from oxigrad.ops.backends.memory.transfers import Copies, Event
from oxigrad.ops.backends.memory.worker import Future, Worker
from oxigrad.step.plan.announcements import Assignments, named

Item = TypeVar("Item")
#: The least and the largest number of bytes of a piece by default.
SMALLEST, LARGEST = 1 << 25, 1 << 27


def piece_size(nbytes: int) -> int:
    """The bytes of a piece: a sixteenth of ``nbytes``, so that pieces overlap, but not too few.

    >>> piece_size(1 << 20), piece_size(1 << 30), piece_size(1 << 40)
    (33554432, 67108864, 134217728)
    """
    return min(max(nbytes // 16, SMALLEST), LARGEST)


def packed(items: Iterable[tuple[Item, int]], size: int, device: Callable[[Item], Any]) -> Iterator[list[Item]]:
    """Items with their bytes in lists of at most ``size`` bytes and one ``device``, in order; larger ones alone."""
    together: list[Item] = []
    filled = 0
    for item, count in items:
        if together and (filled + count > size or device(together[0]) != device(item)):
            yield together
            together, filled = [], 0
        together.append(item)
        filled += count
    if together:
        yield together


class HostArray(NamedTuple):
    """An array on a device, ``there``, and one in host memory, ``here``; ``copies`` are between them."""

    there: Any
    here: Any
    copies: Copies

    def down(self) -> Event:
        """Begins the copy from the device."""
        return self.copies.copy_down(detached(self.there), detached(self.here))

    def up(self) -> Event:
        """Begins the copy to the device."""
        return self.copies.copy_up(detached(self.here), detached(self.there))


class Piece:
    """Parameters that are updated together, by ``update``.

    The update begins after copies down that were begun before, the ends of which are ``coming``. Arrays in host memory
    that are ``leaving`` are then copied up. The ``paths`` name the parameters. A subclass has ``size`` bytes of a
    place, for the ``device``.
    """

    device: Any = None
    size: int = 0

    def __init__(
        self,
        paths: Sequence[str],
        update: Callable[[], Any] = lambda: None,
        *,
        coming: Sequence[Event] = (),
        leaving: Sequence[HostArray] = (),
    ) -> None:
        self.paths: Sequence[str] = paths
        self._update, self._coming, self._leaving = update, coming, leaving

    def down(self, copies: Any, memory: Any) -> list[Event]:
        """Begins the copies into the place."""
        return [*self._coming]

    def land(self, memory: Any) -> None:
        """Uses what is down, before the update of any piece of the step. A second call changes nothing."""

    def measure(self, memory: Any) -> None:
        """Measures what is down, without a write."""

    def use(self, memory: Any) -> None:
        """Updates the parameters."""
        self._update()

    def up(self, copies: Any, memory: Any) -> list[Event]:
        """Begins the copies out of the place."""
        return [array.up() for array in self._leaving]


AnyPiece = TypeVar("AnyPiece", bound=Piece)


class Ring(Generic[AnyPiece]):
    """Places of host memory, and the pieces of one step on their way through them.

    Args:
        copies: the copies of a device, for pieces that have one.
        threads: the number of threads that updates use at most; None for that of all steps.
        within: a block around all work.
    """

    def __init__(
        self,
        copies: Callable[[Any], Copies],
        *,
        threads: int | None = None,
        within: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext,
    ) -> None:
        self._copies_of, self._threads, self._within = copies, threads, within
        self._copies: dict[Any, Copies] = {}
        self._memory: dict[tuple[Any, int], Any] = {}
        self.worker: Worker = Worker()
        self.begin(None)

    def release(self) -> None:
        """Gives the memory of the places back, of which later steps make their own."""
        self._memory.clear()

    def begin(self, places: int | None, *, size: int = 0, fold: Callable[[], bool] | None = None) -> None:
        """Begins a step without pieces.

        Args:
            places: the number of places; None for one for each piece.
            size: the least bytes of one of so many places.
            fold: function to call when all pieces are measured, after `close`: whether they are to be measured again.
                All of them are used after that. By default, pieces are not measured.
        """
        self._places, self._size, self._fold = places, size, fold
        #: The pieces by number, in their order. Those whose gradients become final are added meanwhile.
        self.pieces: dict[int, AnyPiece] = {}
        # How many pieces were begun, are down, and were used; and the numbers of those that are up.
        self._begun = self._landed = self._used = 0
        self._up: set[int] = set()
        self._events: dict[int, list[Event] | None] = {}
        self._rising: list[tuple[int, list[Event]]] = []
        self._failed: list[int] = []
        self._error: Exception | None = None
        self._is_closed = self._is_stopped = False
        self._ahead = 0
        self._beside: Future | None = None

    # --- what has happened --------------------------------------------------------------------------------------------

    @property
    def ahead(self) -> list[str]:
        """The names of the parameters that are updated, or may be: the update of one has begun and not failed."""
        return [*dict.fromkeys(path for number in range(self._ahead) for path in self.pieces[number].paths)]

    @property
    def is_used(self) -> bool:
        """Whether all pieces were used."""
        return self._used == len(self.pieces)

    @property
    def is_finished(self) -> bool:
        """Whether the copies up of all pieces are done."""
        return len(self._up) == len(self.pieces)

    @property
    def failed(self) -> list[AnyPiece]:
        """The pieces that were updated, and whose copy up failed."""
        return [self.pieces[number] for number in self._failed]

    # --- pieces -------------------------------------------------------------------------------------------------------

    def additions(self, pieces: Sequence[AnyPiece]) -> Assignments:
        """The assignments that add pieces, in one thread at a time."""
        return [(self.pieces, number, piece) for number, piece in enumerate(pieces, len(self.pieces))]

    def add(self, pieces: Sequence[AnyPiece]) -> None:
        """Adds pieces, in one thread at a time."""
        self.pieces |= dict(enumerate(pieces, len(self.pieces)))

    def prepare(self, pieces: Sequence[AnyPiece]) -> None:
        """Lets the copies of pieces, which are added later, begin after the work that their devices were given."""
        for piece in pieces:
            self._copies_for(piece)
        for copies in self._copies.values():
            copies.mark()

    def _copies_for(self, piece: Piece) -> Any:
        if piece.device is not None and piece.device not in self._copies:
            self._copies[piece.device] = self._copies_of(piece.device)
        return self._copies.get(piece.device)

    def _place(self, number: int) -> Any:
        """The memory of the place of a piece; None for a piece without one."""
        piece = self.pieces[number]
        if piece.device is None:
            return None
        key = piece.device, number if self._places is None else number % self._places
        size = piece.size if self._places is None else max(piece.size, self._size)
        memory = self._memory.get(key)
        if memory is None or memory.numel() < size:
            try:
                memory = self._memory[key] = self._copies_for(piece).memory(size)
            except RuntimeError as error:
                raise MemoryError(f"{piece.paths[0]}: no host memory of {size:,} bytes for copies: {error}") from error
        return memory

    # --- the stages ---------------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """Lets the pieces that are there go on, until none is on its way.

        An error of a copy up ends no other work, and is raised at the end. Any other error leaves its piece as it was
        before the stage, and the others whole. To call it again continues. Raises `RuntimeError` after an interrupt.
        """
        if self._is_stopped:
            paths = self.ahead or [path for piece in self.pieces.values() for path in piece.paths]
            raise RuntimeError(f"an update of {named(paths)} was interrupted: expected a state that was saved before")
        self._is_stopped = True
        try:
            with self._within(), _limited(self._threads):
                self._go()
        except Exception:
            self._is_stopped = False
            raise
        except BaseException:
            self._end_copies()  # so that none overwrites a state that is restored
            raise
        self._is_stopped = False

    def _go(self) -> None:
        again, self._failed, self._error = self._failed, [], None
        for number in again:
            self._send(number)
        while True:
            while self._rising and self._settle(wait=False):
                pass
            if self._begun in self.pieces and self._has_place(self._begun):
                self._events[self._begun] = self._down(self._begun)
                self._begun += 1
            elif self._used < self._landed:
                self._use(self._used)
            elif self._landed < self._begun:
                self._land(self._landed)
            elif not (self._rising and self._settle(wait=True)) and not self._has_folded():
                break
        if self._error is not None:
            raise self._error

    def _has_place(self, number: int) -> bool:
        return self._places is None or number < self._places or number - self._places in self._up

    def _has_folded(self) -> bool:
        """Folds what was measured of all pieces, which then pass all stages again; whether it has."""
        if self._fold is None or not self._is_closed or not self.is_used:
            return False
        if not self._fold():
            self._fold = None
        self._begun = self._landed = self._used = 0
        self._up.clear()
        return True

    def _down(self, number: int) -> list[Event]:
        piece, memory = self.pieces[number], self._place(number)
        return piece.down(self._copies_for(piece), memory)

    def _land(self, number: int) -> None:
        """Waits for the copies down of a piece, which begin again after an error."""
        events = self._events[number]
        if events is None:
            events = self._events[number] = self._down(number)
        try:
            for event in events:
                event.wait()
        except Exception:
            self._events[number] = None
            raise
        self.pieces[number].land(self._place(number))
        del self._events[number]
        self._landed += 1

    def _use(self, number: int) -> None:
        if self._fold is not None:
            self.pieces[number].measure(self._place(number))
            self._used += 1
            self._up.add(number)  # The place is free.
            return
        self._ahead = number + 1
        try:
            self.pieces[number].use(self._place(number))
        except Exception:
            self._ahead = number
            raise
        self._used += 1
        self._send(number)

    def _send(self, number: int) -> None:
        """Begins the copies up of a piece, whose error is noted."""
        piece = self.pieces[number]
        try:
            self._rising.append((number, piece.up(self._copies_for(piece), self._place(number))))
        except Exception as error:  # noqa: BLE001 - raised at the end
            self._fail(number, error)

    def _settle(self, *, wait: bool) -> bool:
        """Takes note of the end of the first copies up, if they are done, or with ``wait``; whether it has."""
        number, events = self._rising[0]
        try:
            if not wait and not all(event.is_done() for event in events):
                return False
            for event in events:
                event.wait()
        except Exception as error:  # noqa: BLE001 - raised at the end
            self._fail(number, error)
        else:
            self._up.add(number)
        del self._rising[0]
        return True

    def _fail(self, number: int, error: Exception) -> None:
        self._failed.append(number)
        self._error = self._error or error

    # --- the end of a step --------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Tells that there are no further pieces."""
        self._is_closed = True

    def join_devices(self) -> None:
        """Lets work that devices are given from now on begin after the copies up."""
        for copies in self._copies.values():
            copies.join()

    # --- threads ------------------------------------------------------------------------------------------------------

    def advance_beside(self) -> None:
        """As `advance`, in the thread of the worker, if it is not at it. Raises the error of the time before, once."""
        if self._beside is None or self._beside.is_done():
            self.join()
            self._beside = Future(self.advance)
            self.worker.begin(self._beside)

    def join(self, *, raises: bool = True) -> None:
        """Waits for `advance_beside`, and raises its error, once."""
        if self._beside is not None:
            self._beside.wait()
            if raises:
                self._beside.result()

    def abandon(self) -> None:
        """Waits for the thread and for copies that have begun, even failed ones: their memory is used again."""
        self.join(raises=False)
        self._end_copies()

    def _end_copies(self) -> None:
        for events in [*self._events.values(), *(events for _, events in self._rising)]:
            for event in events or ():
                with contextlib.suppress(Exception):
                    event.wait()


@contextlib.contextmanager
def _limited(threads: int | None) -> Iterator[None]:
    """A block in which updates of this thread use at most so many threads."""
    before = _core.limit_threads(threads)
    try:
        yield
    finally:
        _core.limit_threads(before)
