"""Operations that run in a thread, while the worker goes on, or waits for them no longer than it should."""

import contextvars
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from oxigrad.distributed.engines.backoff import Backoff
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
        self._context = contextvars.copy_context()
        self._result: Any = None
        self._error: BaseException | None = None
        self._thread = _Exchange(target=self._main, name="exchange", daemon=True)
        self._thread.start()

    @staticmethod
    def is_here() -> bool:
        """Whether the present thread is the one of an operation."""
        return isinstance(threading.current_thread(), _Exchange)

    def _main(self) -> None:
        try:
            if self._former is not None:
                self._former.wait()
                self._former = None
            self._result = self._context.run(self._operation)
        except BaseException as error:  # noqa: BLE001 - raised by `result`
            self._error = error

    def wait(self, seconds: float | None = None) -> bool:
        """Waits until the operation has ended, or for so many seconds; whether it has ended.

        The time-outs of its collective operations limit the wait otherwise.
        """
        with waiting():
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def result(self) -> Any:
        """Waits for the result. Raises the error of the operation."""
        self.wait()
        if self._error is not None:
            raise self._error
        return self._result


_late: list[Running] = []


def in_time(call: Callable[[], _Result], seconds: float, late: CommunicationError) -> _Result:
    """The result of a call that may take longer than is wanted, as for a stopped process.

    Raises ``late`` after the time-out.
    """
    running = Running(call)
    if not running.wait(seconds):
        _late.append(running)
        raise late
    return running.result()


def await_late(seconds: float) -> None:
    """Waits at a program's end for calls that took too long. A call that returns during the exit may abort it."""
    end = Backoff(seconds)
    while _late:
        _late.pop().wait(end.remaining())
