"""The number of steps in memory of a device, where kernels count: under a guard, and in CUDA graphs, which are replayed."""

import collections
from collections.abc import Sequence
from typing import Any, NamedTuple

from oxigrad.cuda import tables
from oxigrad.cuda.driver import Call, CaptureError, Driver, Pinned, run
from oxigrad.cuda.memory import DeviceBlock


class Counted(NamedTuple):
    """The numbers of steps that a device has taken and skipped."""

    step: int
    skipped: int


class Counter:
    """A count of steps on a device. The host learns it later, without waiting, or waits for it by `read`.

    ``is_ahead`` tells whether the device may have taken steps of which the host knows nothing, as by replays of a graph.
    """

    def __init__(self, driver: Driver, device: int, stream: int) -> None:
        self._driver, self._device = driver, device
        #: The stream of the last step.
        self.stream = stream
        self._block = DeviceBlock(driver, device, tables.CONTROL.size, stream)
        self._free: list[tuple[Pinned, Any]] = []
        self._pending: collections.deque[tuple[Pinned, Any]] = collections.deque()
        self._spare = self._made()
        self._known: Counted | None = None
        self.is_ahead = False
        self._kept: list[Any] = []

    @property
    def address(self) -> int:
        """The address of the count on the device."""
        return self._block.address

    def _made(self) -> tuple[Pinned, Any]:
        return self._driver.pinned(tables.CONTROL.size), self._driver.event()

    def keep(self, step: Any) -> None:
        """Keeps the memory of a step, which a graph reads as long as it may be replayed."""
        if not any(step is kept for kept in self._kept):
            self._kept.append(step)

    def begin(self, count: int) -> None:
        """Sets the count on the device, unless the device has counted these steps itself."""
        if self._known is None or (not self._pending and not self.is_ahead and self._known.step != count):
            self._driver.write(self._device, self.address, tables.CONTROL.pack(count, 0, 0))
            self._known = Counted(count, 0)

    def calls(self, stream: int) -> list[Call]:
        """The calls after the launches of a step, which copy the count to the host without waiting; `expect` follows."""
        pinned, event = self._spare
        size = tables.CONTROL.size
        if not self._free:
            self._free.append(self._made())
        return [
            self._driver.download(pinned.address, self.address, size, stream),
            self._driver.record(event, stream),
        ]

    def expect(self) -> None:
        """Notes that the calls of `calls` were made."""
        self._pending.append(self._spare)
        self._spare = self._free.pop()

    @property
    def is_pending(self) -> bool:
        """Whether there are steps whose count has not arrived."""
        return bool(self._pending)

    @property
    def count(self) -> int:
        """The number of steps as far as it is known, with those whose count has not arrived."""
        return (self._known.step if self._known else 0) + len(self._pending)

    def learn(self, device: int, *, wait: bool) -> Sequence[Counted]:
        """The changes of the counts by steps whose count has arrived, in order; with ``wait``, by all steps."""
        if not (self._pending or (self.is_ahead and wait)):
            return ()
        with self._driver.current(device):
            found = self._arrived(wait=wait)
            if self.is_ahead and wait:
                found.append(self._read(self.stream))
            return found

    def _arrived(self, *, wait: bool) -> list[Counted]:
        found: list[Counted] = []
        while self._pending:
            pinned, event = self._pending[0]
            if not self._driver.is_done(event):
                if not wait:
                    break
                self._driver.wait(event)
            self._pending.popleft()
            self._free.append((pinned, event))
            found.append(self._change(pinned))
        return found

    def _read(self, stream: int) -> Counted:
        """The change of the counts since they were known, after the work on the stream. Waits for it."""
        if self._driver.is_capturing(stream):
            raise CaptureError(
                f"cuda:{self._device}: the number of steps is in memory of the device: expected to be read after the capture"
            )
        pinned, event = self._spare
        size = tables.CONTROL.size
        run(self._driver, self._device, self._driver.download(pinned.address, self.address, size, stream))
        run(self._driver, self._device, self._driver.record(event, stream))
        self._driver.wait(event)
        return self._change(pinned)

    def _change(self, pinned: Pinned) -> Counted:
        step, _, skipped = tables.CONTROL.unpack_from(pinned.bytes)
        before = self._known or Counted(0, 0)
        self._known = Counted(step, skipped)
        return Counted(step - before.step, skipped - before.skipped)
