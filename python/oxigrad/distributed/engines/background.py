"""Operations that run in a thread, while the worker goes on, or waits for them no longer than it should."""

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from oxigrad.distributed.errors import CommunicationError
from oxigrad.distributed.messages.reports.clock import waiting

_Result = TypeVar("_Result")


class _Exchange(threading.Thread):
    """The thread of an operation."""


class Running:
    """An operation that runs in a thread of its own, after the one that was begun before it.

    >>> Running(lambda: 3).result()
    3
    """

    def __init__(self, operation: Callable[[], Any], former: "Running | None" = None) -> None:
        self._operation, self._former = operation, former
        self._result: Any = None
        self._error: BaseException | None = None
        self._thread = _Exchange(target=self._main, name="exchange", daemon=True)
        self._thread.start()

    def _main(self) -> None:
        try:
            if self._former is not None:
                self._former.wait()
                self._former = None
            self._result = self._operation()
        except BaseException as error:  # noqa: BLE001 - raised by `result`
            self._error = error

    def wait(self) -> None:
        """Waits until the operation has ended, which the time-outs of its collective operations limit."""
        with waiting():
            self._thread.join()

    def result(self) -> Any:
        """Waits for the result. Raises the error of the operation."""
        self.wait()
        if self._error is not None:
            raise self._error
        return self._result


class InOrder:
    """Base class of communicators: collective operations take place in the order in which they are begun.

    All workers begin the same operations in the same order, so that each belongs to the same ones of the others,
    whether it runs in a thread or not.
    """

    _running: Running | None = None

    def begin(self, operation: Callable[[], Any]) -> Running:
        """See `Communicator.begin`."""
        self._running = Running(operation, self._running)
        return self._running

    def _await_turn(self) -> None:
        """Waits for the operations that were begun before: each collective operation calls it first."""
        running = self._running
        # An operation in a thread has waited for those before it, and those that were begun after it wait for it.
        if running is not None and not isinstance(threading.current_thread(), _Exchange):
            running.wait()
            self._running = None


_late: list[threading.Thread] = []


def in_time(call: Callable[[], _Result], seconds: float, late: CommunicationError) -> _Result:
    """The result of a call that may take longer than is wanted, as for a stopped process.

    Raises ``late`` after the time-out.
    """
    results: list[_Result] = []
    failure: list[BaseException] = []

    def target() -> None:
        try:
            results.append(call())
        except BaseException as error:  # noqa: BLE001 - raised below
            failure.append(error)

    thread = threading.Thread(target=target, name="in time", daemon=True)
    thread.start()
    thread.join(seconds)
    if failure:
        raise failure[0]
    if not results:
        _late.append(thread)
        raise late
    return results[0]


def await_late(seconds: float) -> None:
    """Waits at a program's end for calls that took too long. A call that returns during the exit may abort it."""
    end = time.monotonic() + seconds
    while _late:
        _late.pop().join(max(end - time.monotonic(), 0.0))
