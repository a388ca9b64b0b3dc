"""A device of PyTorch whose copies end late and out of order with those of the other direction, of parameters in host memory."""

from __future__ import annotations

import contextlib
import random
import weakref
from collections.abc import Iterator
from typing import Any

import torch
from late_event import LateEvent

from oxigrad.torch.step.offload import steps


class LateDevice:
    """A device of which parameters in host memory are the memory. Copies in one direction end in order, and late.

    Until then the memory that they are to write has numbers that are not in it: NaN, or other bytes.
    """

    def __init__(self, seed: int = 0) -> None:
        self.random = random.Random(seed)
        self.begun: list[tuple[Any, Any] | None] = []
        self.down: list[Any] = []
        self.failing: dict[str, int] = {}
        self.most = self.held = 0

    def memory(self, count: int) -> Any:
        self.fail("memory")
        self.held += count
        return torch.full((count,), 255, dtype=torch.uint8)

    def like(self, array: Any) -> Any:
        return torch.empty_like(array)

    def mark(self) -> None:
        pass

    def join(self) -> None:
        assert not any(self.begun), "a step ends before its copies"

    def fail(self, what: str) -> None:
        """Raises an error where one is due."""
        if what in self.failing:
            self.failing[what] -= 1
            if self.failing[what] < 0:
                del self.failing[what]
                raise RuntimeError(f"{what} failed")

    def copy_down(self, source: Any, target: Any) -> LateEvent:
        self.fail("down")
        self.down.append(weakref.ref(source))
        return self._copy(source, target)

    def copy_up(self, source: Any, target: Any) -> LateEvent:
        self.fail("up")
        return self._copy(source, target)

    def _copy(self, source: Any, target: Any) -> LateEvent:
        target.fill_(float("nan"))
        self.begun.append((source, target))
        number = len(self.begun) - 1
        return LateEvent(lambda: self.run_until(number), self.random.randrange(4))

    def run_until(self, number: int) -> None:
        for at in range(number + 1):
            if (pair := self.begun[at]) is not None:
                pair[1].copy_(pair[0])
                self.begun[at] = None


@contextlib.contextmanager
def late_device() -> Iterator[LateDevice]:
    """A block in which parameters in host memory are on such a device. Copies that have not ended after it fail."""
    made, before = LateDevice(), steps.device_of
    steps.device_of = lambda _: made
    try:
        yield made
    finally:
        steps.device_of = before
    assert not any(made.begun)
