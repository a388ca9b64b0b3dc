"""Errors of operations on all workers by engines whose library raises errors of a base class of ours."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from oxigrad.distributed.engines.collectives import ByteCollectives
from oxigrad.distributed.errors import Aborted, CommunicationError, Excluded, TimedOut, WorkerLost

LOST = WorkerLost([1])


class Operation(ByteCollectives):
    """A communicator whose operation does not end, of a library whose errors are those of PyTorch."""

    _errors = (RuntimeError,)

    def __init__(self, check: Callable[[], Any], is_done: Callable[[], bool]) -> None:
        self._failure, self._under_way, self._lock = None, [], threading.RLock()
        self._check = lambda what: check()  # type: ignore[method-assign]
        self._is_done = lambda work: is_done()  # type: ignore[method-assign]

    def _lost(self, what: str) -> CommunicationError:
        return LOST


def raising(error: Exception) -> Callable[[], Any]:
    def raises() -> Any:
        raise error

    return raises


CASES: dict[str, tuple[Callable[[], Any], Callable[[], bool], type[CommunicationError]]] = {
    "a time-out": (lambda: None, lambda: False, TimedOut),
    "an aborted job": (raising(Aborted("ended")), lambda: False, Aborted),
    "an excluded worker": (raising(Excluded(1, 0)), lambda: False, Excluded),
    "a lost worker": (raising(WorkerLost([1], cause="no answer")), lambda: False, WorkerLost),
    "an error of the library": (lambda: None, raising(RuntimeError("connection reset")), WorkerLost),
}


@pytest.mark.parametrize("name", CASES)
def test_the_error_of_an_operation_says_what_has_happened(name: str) -> None:
    check, is_done, expected = CASES[name]
    operation = Operation(check, is_done)
    with pytest.raises(CommunicationError) as caught:
        operation._run("all_reduce", 0.01, lambda: [object()])
    assert type(caught.value) is expected and operation._failure is caught.value
    assert (caught.value is LOST) == (expected is WorkerLost)
