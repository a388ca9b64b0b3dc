"""Waiting without a blocked call: a loop tests for completion, and pauses between the tests."""

import time

__all__ = ["Backoff"]


class Backoff:
    """The pauses of one wait: the processor is yielded for ``spin`` seconds, then the pauses grow from 0.1 ms to ``longest``.

    A blocking call of MPI keeps a core busy; a loop with these pauses takes a few percent of one.

    >>> wait = Backoff(timeout=0.01)
    >>> while not wait.is_over():
    ...     wait.pause()
    """

    def __init__(self, timeout: float, *, spin: float = 0.01, longest: float = 0.001) -> None:
        now = time.monotonic()
        self.deadline, self._spun, self._longest = now + timeout, now + spin, longest
        self._next = 0.0001

    def is_over(self) -> bool:
        """Whether the time-out has passed."""
        return time.monotonic() >= self.deadline

    def remaining(self) -> float:
        """Seconds that are left, not less than zero."""
        return max(0.0, self.deadline - time.monotonic())

    def pause(self) -> None:
        """Yields the processor, or sleeps."""
        if time.monotonic() < self._spun:
            time.sleep(0)
            return
        time.sleep(min(self._next, self._longest))
        self._next *= 1.5
