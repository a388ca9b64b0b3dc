"""Memory of steps on a device: tables, and page-locked memory from which they are filled.

`Releases` frees unused memory without waiting for a device.
"""

import collections
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from oxigrad.cuda.driver import CaptureError, DeviceError, DeviceLostError, Driver, Pinned, run

_ALIGNMENT = 256
# The number of page-locked buffers that are kept for further copies, and their bytes.
MOST_BUFFERS = 64
MOST_BYTES = 32 * 2**20
# The least bytes of a buffer.
_PAGE = 4096


class Releases:
    """Unused memory and modules of a device, until they can be freed: not during a capture, and without waiting.

    Finalizers add to it, at any time and on any thread; nothing is locked.
    """

    def __init__(self, driver: Driver, device: int) -> None:
        self._driver, self._device = driver, device
        self._process = os.getpid()
        self._memory: collections.deque[tuple[int, int]] = collections.deque()
        self._modules: collections.deque[Any] = collections.deque()

    def add_memory(self, address: int, streams: list[int]) -> None:
        """Frees memory once the work on the last of these streams is done."""
        self._memory.append((address, streams[-1]))
        self.free(may_wait=False)

    def add_module(self, module: Any) -> None:
        """Frees a module later: that may wait for the device."""
        self._modules.append(module)

    def free(self, *, may_wait: bool) -> None:
        """Frees resources that can be freed now; with ``may_wait``, also those whose release makes the host wait.

        ``may_wait`` requires that no stream of the step is captured.
        """
        if os.getpid() != self._process:
            return  # a fork, in which the driver does not work
        try:
            with self._driver.current(self._device):
                _each(self._memory, lambda item: self._free_memory(*item, may_wait=may_wait))
                if may_wait:
                    _each(self._modules, self._unload)
        except DeviceLostError:
            self._memory.clear()  # with the device
            self._modules.clear()
        except DeviceError:
            pass  # the rest is freed later

    def _free_memory(self, address: int, stream: int, *, may_wait: bool) -> bool:
        """Whether memory was freed, or cannot be."""
        driver = self._driver
        try:
            if driver.is_capturing(stream) or (driver.free_waits() and not may_wait):
                return False
            driver.free(address, stream)
        except CaptureError:
            return False
        except DeviceLostError:
            raise
        except DeviceError:  # the stream is gone
            if stream:
                self._memory.append((address, 0))
        return True

    def _unload(self, module: Any) -> bool:
        self._driver.unload(module)
        return True


def _each(items: "collections.deque[Any]", take: Any) -> None:
    """Takes each current item and keeps items that cannot be taken. Any thread may add others meanwhile."""
    for _ in range(len(items)):
        try:
            item = items.popleft()
        except IndexError:
            return
        if not take(item):
            items.append(item)


class DeviceBlock:
    """Memory of a device, allocated on its first stream and freed on its last one, in stream order."""

    def __init__(self, driver: Driver, releases: Releases, size: int, stream: int) -> None:
        releases.free(may_wait=True)
        self.address: int = driver.allocate(size, stream) if size else 0
        self.size = size
        self._streams = [stream]
        if self.address:
            self._finalizer = weakref.finalize(self, releases.add_memory, self.address, self._streams)
            self._finalizer.atexit = False  # the driver may be gone

    def use_on(self, stream: int) -> None:
        """Notes the stream of the last work that uses the memory."""
        self._streams[0] = stream


class Arena:
    """Parts of one block of memory, laid out before it is allocated."""

    def __init__(self) -> None:
        self.size: int = 0

    def place(self, size: int) -> int:
        """The offset of a further part."""
        at = self.size
        self.size = -(-(at + size) // _ALIGNMENT) * _ALIGNMENT
        return at


class Buffer(NamedTuple):
    """Page-locked memory of a size in bytes, and the event after which it may be used again."""

    pinned: Pinned
    room: int
    event: Any


class Staging:
    """Page-locked buffers of a device, with the lifetime of the process. A buffer is reused after its last copy.

    Besides taken buffers, there are at most `MOST_BUFFERS`, of at most `MOST_BYTES` or one of the largest requested
    size. If copies are pending for all of them, the host waits for the oldest.
    """

    def __init__(self, driver: Driver, device: int) -> None:
        self._driver, self._device = driver, device
        self._buffers: collections.deque[Buffer] = collections.deque()

    def take(self, size: int) -> Buffer:
        """A buffer whose copies are done, for `give`."""
        room = max(_PAGE, 1 << (size - 1).bit_length())
        taken: list[Buffer] = []

        def take(buffer: Buffer) -> bool:
            if not taken and room <= buffer.room and self._driver.is_done(buffer.event):
                taken.append(buffer)
                return True
            return False

        _each(self._buffers, take)
        return taken[0] if taken else self._make_buffer(room)

    def give(self, buffer: Buffer) -> None:
        """Takes a buffer back, whose event is recorded after its last copy."""
        self._buffers.append(buffer)

    def give_all(self, buffers: list[Buffer]) -> None:
        """Takes these buffers back."""
        self._buffers.extend(buffers)

    def _make_buffer(self, room: int) -> Buffer:
        """A new buffer; it replaces others if there are too many."""
        while self._is_full(room):
            is_done = (each for each in [*self._buffers] if self._driver.is_done(each.event))
            oldest = next(is_done, self._buffers[0])
            self._buffers.remove(oldest)
            self._driver.wait(oldest.event)
            self._driver.unpin(oldest.pinned)
            self._driver.destroy(oldest.event)
        return Buffer(self._driver.pinned(room), room, self._driver.event())

    def _is_full(self, room: int) -> bool:
        rooms = [buffer.room for buffer in self._buffers]
        return bool(rooms) and (len(rooms) >= MOST_BUFFERS or sum(rooms) + room > MOST_BYTES)

    @contextmanager
    def buffer(self, size: int, stream: int) -> Iterator[Pinned]:
        """A buffer whose copies are enqueued on the stream while it is entered."""
        buffer = self.take(size)
        try:
            yield buffer.pinned
        finally:
            # If this fails, copies may still be pending: the buffer is not used again.
            run(self._driver, self._device, self._driver.record(buffer.event, stream))
            self.give(buffer)

    def upload_parts(self, parts: list[tuple[int, bytes | memoryview]], stream: int) -> None:
        """Enqueues copies of bytes, each to its address."""
        with self.buffer(sum(len(content) for _, content in parts), stream) as pinned:
            at = 0
            for to, content in parts:
                end = at + len(content)
                pinned.bytes[at:end] = content
                self._driver.upload(to, pinned.address + at, len(content), stream)
                at = end
