"""Waiting without a blocked call: a loop tests for completion, and pauses between the tests."""

import functools
import os
import time
from collections.abc import Callable
from typing import Any

_SHORTEST = 0.00005

# Before Python 3.13, ``time.sleep(0)`` sleeps for some 0.1 ms on Linux.
_yield_processor: Callable[[], None] = getattr(os, "sched_yield", functools.partial(time.sleep, 0))


class Backoff:
    """The pauses of a wait: the processor is yielded for ``spin`` seconds, then pauses grow to ``longest`` seconds.

    A pause is a twentieth of the time waited, so that a wait ends at most that much late. A blocking call of MPI keeps
    a core busy; a loop with these pauses takes a few percent of one.

    >>> Backoff(timeout=0.01).until(lambda: False)
    False
    """

    deadline: float

    def __init__(self, timeout: float, *, spin: float = 0.002, longest: float = 0.001) -> None:
        self._start = time.monotonic()
        self.deadline, self._spin, self._longest = self._start + timeout, spin, longest

    def is_over(self) -> bool:
        """Whether the time-out has passed."""
        return time.monotonic() >= self.deadline

    def remaining(self) -> float:
        """Seconds that are left, not less than zero."""
        return max(0.0, self.deadline - time.monotonic())

    def until(self, is_done: Callable[[], Any]) -> bool:
        """Waits until ``is_done()``; False after the time-out."""
        while not is_done():
            if self.is_over():
                return False
            self.pause()
        return True

    def pause(self) -> None:
        """Yields the processor, or sleeps."""
        waited = time.monotonic() - self._start
        if waited < self._spin:
            _yield_processor()
        else:
            time.sleep(min(max(_SHORTEST, waited / 20), self._longest))
