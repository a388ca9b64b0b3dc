"""The step counter in device memory, where kernels count: under a guard, and in replayed CUDA graphs."""

import collections
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

from oxigrad.cuda import tables
from oxigrad.cuda.device import Device
from oxigrad.cuda.driver import Call, CaptureError, Pinned, run
from oxigrad.cuda.memory import MOST_BUFFERS, Buffer


class Counted(NamedTuple):
    """The numbers of steps that a device has taken and skipped."""

    step: int
    skipped: int


class Counter:
    """A step counter on a device. The host learns it later, without waiting, or waits for it by `read`.

    ``is_ahead`` is whether the device may have taken steps that the host has not counted, as in replays of a graph.
    """

    def __init__(self, device: Device, stream: int, *, capturing: bool) -> None:
        self._driver, self._device, self._staging = device.driver, device.number, device.counts
        self._block = device.allocate(tables.CONTROL.size, stream, capturing=capturing)
        # Buffers are released with the counter, including buffers of pending copies.
        self._taken: list[Buffer] = []
        weakref.finalize(self, self._staging.give_all, self._taken).atexit = False
        self._free: list[Buffer] = []
        self._pending: collections.deque[Buffer] = collections.deque()
        self._spare = self._take()
        # The last copy to the device, or else the allocation: its event is that after which memory may be written.
        self._written = self._take()
        self.use_on(stream)
        self._record(self._written, stream)
        self._last_counted: Counted | None = None
        self.is_ahead = False
        self._captured_steps: list[Any] = []

    @property
    def address(self) -> int:
        """The address of the count on the device."""
        return self._block.address

    def use_on(self, stream: int) -> None:
        """Notes the stream of a step."""
        self.stream = stream
        self._block.use_on(stream)

    def _take(self) -> Buffer:
        self._taken.append(self._staging.take(tables.CONTROL.size))
        return self._taken[-1]

    def _record(self, buffer: Buffer, stream: int) -> None:
        run(self._driver, self._device, self._driver.record(buffer.event, stream))

    def keep(self, step: Any) -> None:
        """Keeps the memory of a step, which a graph reads as long as it may be replayed."""
        if not any(step is other for other in self._captured_steps):
            self._captured_steps.append(step)

    def begin(self, count: int, stream: int, *, capturing: bool) -> None:
        """Sets the count on the device, unless the device has counted these steps itself.

        It is set in stream order. During a capture, it is set before any replay, but after the work that uses the
        memory.
        """
        is_counted = self._last_counted is not None and (
            self._pending or self.is_ahead or self._last_counted.step == count
        )
        if is_counted:
            return
        content = tables.CONTROL.pack(count, 0, 0)
        if capturing:
            # No step is pending: the last use of the memory precedes this event, or is done.
            self._driver.write(self._device, self.address, content, self._written.event)
        else:
            if not self._driver.is_done(self._written.event):
                self._taken.remove(self._written)
                self._staging.give(self._written)
                self._written = self._take()
            pinned = self._written.pinned
            pinned.bytes[: len(content)] = content
            self._driver.upload(self.address, pinned.address, len(content), stream)
            self._record(self._written, stream)
        self._last_counted = Counted(count, 0)

    def calls(self, stream: int) -> list[Call]:
        """The calls after a step's launches, which copy the count to the host without waiting; `expect` follows."""
        pinned, _, event = self._spare
        size = tables.CONTROL.size
        if not self._free:
            self._free.append(self._take())
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
        """The known number of steps, plus the steps whose count has not arrived."""
        return (self._last_counted.step if self._last_counted else 0) + len(self._pending)

    def learn(self, device: int, *, wait: bool) -> Sequence[Counted]:
        """The changes of the counts by steps whose count has arrived, in order; with ``wait``, by all steps."""
        if not (self._pending or (self.is_ahead and wait)):
            return ()
        with self._driver.current(device):
            changes = self._arrived(wait=wait)
            if self.is_ahead and wait:
                changes.append(self._read(self.stream))
            return changes

    def _arrived(self, *, wait: bool) -> list[Counted]:
        changes: list[Counted] = []
        while self._pending:
            oldest = self._pending[0]
            if not self._driver.is_done(oldest.event):
                if not wait and len(self._pending) < MOST_BUFFERS:
                    break
                self._driver.wait(oldest.event)
            self._free.append(self._pending.popleft())
            changes.append(self._change(oldest.pinned))
        return changes

    def _read(self, stream: int) -> Counted:
        """The change of the counts since they were last known. Waits for all work on the device.

        A graph may be replayed on any stream.
        """
        if self._driver.is_capturing(stream):
            raise CaptureError(
                f"cuda:{self._device}: the number of steps is in memory of the device: expected to be read after the "
                "capture"
            )
        self._driver.synchronize()
        pinned, _, event = self._spare
        size = tables.CONTROL.size
        run(self._driver, self._device, self._driver.download(pinned.address, self.address, size, stream))
        self._record(self._spare, stream)
        self._driver.wait(event)
        return self._change(pinned)

    def _change(self, pinned: Pinned) -> Counted:
        step, _, skipped = tables.CONTROL.unpack_from(pinned.bytes)
        before = self._last_counted or Counted(0, 0)
        self._last_counted = Counted(step, skipped)
        return Counted(step - before.step, skipped - before.skipped)
