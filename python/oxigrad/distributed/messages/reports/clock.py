"""Times of a worker: how many steps it has taken, how long it waited in them, and the spans of a time line."""

import threading
import time
from collections import deque
from typing import Any, NamedTuple


class Span(NamedTuple):
    """A time span of a worker: "compute" between two steps, "step", or "wait" within a step.

    In seconds since the epoch.
    """

    kind: str
    begin: float
    end: float


class _Active(threading.local):
    clock: "Clock | None" = None


_active = _Active()


class Clock:
    """The times of one worker.

    The clock as a context is a step of the worker, whose waits in its thread it counts. A step that raises an error is
    not counted. Waits of a coordinator beside it do not count.

    >>> clock = Clock()
    >>> with clock, waiting():
    ...     pass
    >>> clock.steps, clock.waited >= 0.0, clock.rate
    (1, True, None)
    """

    def __init__(self) -> None:
        #: The steps that were completed, and the seconds that the worker waited for others in steps.
        self.steps: int = 0
        self.waited: float = 0.0
        self._first = self._last = self._begin = 0.0
        self._outer: Clock | None = None
        #: The spans that are kept; None where none are.
        self.kept: deque[Span] | None = None
        self._epoch = time.time() - time.perf_counter()

    @property
    def rate(self) -> float | None:
        """Steps per second, from the end of the first step to that of the last; None before the second one."""
        return (self.steps - 1) / (self._last - self._first) if self._last > self._first else None

    def record(self, limit: int) -> None:
        """Keeps the last ``limit`` spans from now on, and forgets those before; 0 keeps none."""
        self.kept = deque(maxlen=limit) if limit else None

    def spans(self) -> list[Span]:
        """The spans that are kept."""
        return [*self.kept] if self.kept is not None else []

    def __enter__(self) -> None:
        self._outer, self._begin, _active.clock = _active.clock, time.perf_counter(), self
        if self.kept is not None and self.steps:
            self.add("compute", self._last, self._begin)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        end, _active.clock = time.perf_counter(), self._outer
        self.steps += kind is None
        self._last, self._first, self._outer = end, self._first or end, None
        if self.kept is not None:
            self.add("step", self._begin, end)

    def add(self, kind: str, begin: float, end: float) -> None:
        """Keeps a span of the counter `time.perf_counter`, where spans are kept."""
        if self.kept is not None:
            self.kept.append(Span(kind, self._epoch + begin, self._epoch + end))


class waiting:
    """A context in which the worker waits for others, or exchanges messages; one within another counts once."""

    __slots__ = ("_begin", "_clock")

    def __enter__(self) -> None:
        self._clock = _active.clock
        if self._clock is not None:
            self._begin, _active.clock = time.perf_counter(), None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self._clock is not None:
            _active.clock, end = self._clock, time.perf_counter()
            self._clock.waited += end - self._begin
            if self._clock.kept is not None:
                self._clock.add("wait", self._begin, end)
