"""Interrupts of a thread that waits for a worker."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import pytest

from oxigrad.ops.backends.memory.worker import Future


@contextlib.contextmanager
def interrupted_waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A block in which each wait for work that has begun gets a `KeyboardInterrupt`."""

    def stopped(self: Future) -> None:
        while self._work is not None:
            time.sleep(0.001)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Future, "join", stopped)
        yield
