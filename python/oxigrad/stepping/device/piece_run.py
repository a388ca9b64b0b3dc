"""A step by pieces: copies and updates that `oxigrad.stepping.device.transfers` begins, and end in any order."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from oxigrad import _core
from oxigrad.ops.backends.memory.transfers import Event
from oxigrad.ops.backends.memory.worker import Future, Worker
from oxigrad.stepping.device.transfers import Action, Schedule

Item = TypeVar("Item")
#: The least and the largest number of bytes of a piece by default.
SMALLEST, LARGEST = 1 << 25, 1 << 27


def piece_size(nbytes: int) -> int:
    """The bytes of a piece: a sixteenth of those to copy, so that pieces overlap, but not too few.

    >>> piece_size(1 << 20), piece_size(1 << 30), piece_size(1 << 40)
    (33554432, 67108864, 134217728)
    """
    return min(max(nbytes // 16, SMALLEST), LARGEST)


class PieceRun:
    """The driver of a schedule. A subclass begins the actions of a piece, and ends the step.

    All actions are in the thread of the worker, which alone changes the schedule once pieces are added.

    Args:
        schedule: the schedule, without pieces.
        threads: the number of threads that updates use at most; None for that of all steps.
        worker: the worker of all steps of an optimizer.
    """

    def __init__(self, schedule: Schedule, threads: int | None, worker: Worker) -> None:
        self.schedule: Schedule = schedule
        self._threads, self._worker = threads, worker
        #: The copies in flight with the events of their ends, in the order in which they began.
        self._flying: list[tuple[Action, Sequence[Event]]] = []
        self._beside: Future | None = None

    def _begin(self, opt: Any, action: Action) -> Sequence[Event] | None:
        """Begins a copy, and returns the events of its ends; None after an action of the host, which is done."""
        raise NotImplementedError

    def _land(self, action: Action) -> None:
        """Takes note that a copy down is done."""

    def _complete(self, opt: Any) -> None:
        """Completes the step, in which nothing is in flight."""
        raise NotImplementedError

    def _take_in(self) -> None:
        """Adds the pieces that have come since to the schedule."""

    def _within(self) -> AbstractContextManager[Any]:
        """A block around all actions."""
        return contextlib.nullcontext()

    def advance(self, opt: Any) -> None:
        """Begins what may begin, and takes note of what is done, until nothing is in flight.

        An error leaves the piece that it is about as it was before the action, and the others whole: to call it again
        continues the step.
        """
        with self._within(), _limited(self._threads):
            self.schedule.resume()
            while True:
                self._take_in()
                begun = self.schedule.begin()
                for number, action in enumerate(begun):
                    self._perform(opt, action, begun[number + 1 :])
                done = [flying for flying in self._flying if all(event.is_done() for event in flying[1])]
                if not (begun or done):
                    if not self._flying:
                        return
                    done = self._flying[:1]
                for flying in done:
                    self._end(*flying)

    def _perform(self, opt: Any, action: Action, others: Sequence[Action]) -> None:
        """Begins an action, and ends it where it is the host's. After an error, ``others`` do not begin."""
        try:
            events = self._begin(opt, action)
        except Exception:  # Nothing was written.
            for failed in reversed((action, *others)):
                self.schedule.fail(failed)
            raise
        if events is not None:
            self._flying.append((action, events))
        else:
            self.schedule.finish(action)

    def _end(self, action: Action, events: Sequence[Event]) -> None:
        self._flying = [flying for flying in self._flying if flying[0] is not action]
        try:
            for event in events:
                event.wait()
        except Exception:
            self.schedule.fail(action)
            raise
        if action.kind == "down":
            self._land(action)
        self.schedule.finish(action)

    def begin_finish(self, opt: Any) -> None:
        """Tells that all gradients are there, lets copies up begin, and advances."""
        self._take_in()
        self.schedule.close()
        self.schedule.release()
        self.advance(opt)

    def finish(self, opt: Any) -> None:
        """Waits for all copies and updates, and completes the step."""
        self.begin_finish(opt)
        self._complete(opt)

    # --- threads ------------------------------------------------------------------------------------------------------

    def advance_beside(self, opt: Any) -> None:
        """As `advance`, in the thread of the worker, if it is not at it. Raises the error of the time before, once."""
        if self._beside is None or self._beside.is_done():
            self.join()
            self._beside = Future(lambda: self.advance(opt))
            self._worker.begin(self._beside)

    def join(self, *, raises: bool = True) -> None:
        """Waits for `advance_beside`, and raises its error, once."""
        if self._beside is not None:
            self._beside.wait()
            if raises:
                self._beside.result()

    def abandon(self) -> None:
        """Waits for the thread and for copies that have begun, even failed ones: their memory is used again."""
        self.join(raises=False)
        for _, events in self._flying:
            for event in events:
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
