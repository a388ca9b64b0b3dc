"""Memory of steps on a device: tables, and page-locked memory from which they are filled."""

import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from oxigrad.cuda.driver import DeviceError, DeviceLostError, Driver, Pinned, run

_ALIGNMENT = 256


class DeviceBlock:
    """Memory of a device, allocated and freed in the order of a stream."""

    def __init__(self, driver: Driver, device: int, size: int, stream: int) -> None:
        self.address = driver.allocate(size, stream) if size else 0
        self.size = size
        self._finalizer = weakref.finalize(self, _free, driver, device, self.address, stream, os.getpid())
        self._finalizer.atexit = False  # the driver may be gone


def _free(driver: Driver, device: int, address: int, stream: int, process: int) -> None:
    """Frees memory, unless this process is a fork of the one that allocated it."""
    if address and os.getpid() == process:
        try:
            with driver.current(device):
                driver.free(address, stream)
        except DeviceLostError:
            pass  # and its memory with it
        except DeviceError:
            with driver.current(device):
                driver.free(address, 0)  # the stream is gone


class Arena:
    """Parts of one block of memory, laid out before it is allocated."""

    def __init__(self) -> None:
        self.size = 0

    def place(self, size: int) -> int:
        """The offset of a further part."""
        at = self.size
        self.size = -(-(at + size) // _ALIGNMENT) * _ALIGNMENT
        return at


class Staging:
    """Page-locked buffers from which a device is filled. One is used again once its last copy is done; nothing waits for that."""

    def __init__(self, driver: Driver, device: int) -> None:
        self._driver, self._device = driver, device
        self._buffers: list[tuple[Pinned, int, Any]] = []
        self._finalizer = weakref.finalize(self, _unpin, driver, device, self._buffers, os.getpid())
        self._finalizer.atexit = False

    @contextmanager
    def buffer(self, size: int, stream: int) -> Iterator[Pinned]:
        """A buffer whose copies are enqueued on the stream while it is entered."""
        driver, at = self._driver, None
        for number, (_, room, event) in enumerate(self._buffers):
            if room >= size and driver.is_done(event):
                at = number
                break
        pinned, room, event = (driver.pinned(size), size, driver.event()) if at is None else self._buffers.pop(at)
        try:
            yield pinned
        finally:
            run(driver, self._device, driver.record(event, stream))
            self._buffers.append((pinned, room, event))

    def upload(self, to: int, content: bytes | memoryview, stream: int) -> None:
        """Enqueues a copy of these bytes to the device."""
        self.upload_parts([(to, content)], stream)

    def upload_parts(self, parts: list[tuple[int, bytes | memoryview]], stream: int) -> None:
        """Enqueues copies of bytes, each to its address."""
        with self.buffer(sum(len(content) for _, content in parts), stream) as pinned:
            at = 0
            for to, content in parts:
                end = at + len(content)
                pinned.bytes[at:end] = content
                self._driver.upload(to, pinned.address + at, len(content), stream)
                at = end


def _unpin(driver: Driver, device: int, buffers: list[tuple[Pinned, int, Any]], process: int) -> None:
    if buffers and os.getpid() == process:
        try:
            with driver.current(device):
                for pinned, _, event in buffers:
                    driver.wait(event)
                    driver.unpin(pinned)
        except DeviceLostError:
            pass
