"""Copies between the memory of a device and that of the host, and the events of their ends."""

import mmap
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

from oxigrad.torch.library import torch
from oxigrad.torch.state.file import StateFile


class Event(Protocol):
    """The end of a copy."""

    def is_done(self) -> bool:
        """Whether the copy is done."""
        ...

    def wait(self) -> None:
        """Waits until the copy is done."""
        ...


class Device(Protocol):
    """The copies of a device. Those in one direction end in order; those down and those up overlap."""

    def memory(self, count: int) -> Any:
        """New host memory of so many bytes, a tensor of uint8, which copies read and write."""
        ...

    def mark(self) -> None:
        """Lets later copies begin after the work that the device was given so far."""
        ...

    def copy_down(self, source: Any, target: Any) -> Event:
        """Begins the copy of a tensor of the device into one in host memory."""
        ...

    def copy_up(self, source: Any, target: Any) -> Event:
        """Begins the copy of a tensor in host memory into one of the device."""
        ...

    def join(self) -> None:
        """Lets work that the device is given from now on begin after the copies up."""
        ...


class _Done:
    """The end of a copy that is done."""

    def is_done(self) -> bool:
        return True

    def wait(self) -> None:
        pass


_DONE = _Done()


class HostDevice:
    """Copies that are done at once: of parameters in host memory, and on devices without streams."""

    def memory(self, count: int) -> Any:
        """New host memory of so many bytes."""
        return torch.empty(count, dtype=torch.uint8)

    def mark(self) -> None:
        """Does nothing."""

    def copy_down(self, source: Any, target: Any) -> Event:
        """Copies a tensor."""
        target.copy_(source)
        return _DONE

    def copy_up(self, source: Any, target: Any) -> Event:
        """Copies a tensor."""
        target.copy_(source)
        return _DONE

    def join(self) -> None:
        """Does nothing."""


class _CudaEvent:
    """The end of a copy on a stream."""

    def __init__(self, event: Any) -> None:
        self._event = event

    def is_done(self) -> bool:
        return self._event.query()

    def wait(self) -> None:
        self._event.synchronize()


class CudaDevice:
    """Copies on two streams of a CUDA device, one in each direction, between its memory and page-locked host memory."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._down, self._up = torch.cuda.Stream(device), torch.cuda.Stream(device)
        self.mark()

    def memory(self, count: int) -> Any:
        """New page-locked host memory of so many bytes."""
        return torch.empty(count, dtype=torch.uint8, pin_memory=True)

    def mark(self) -> None:
        """Lets later copies begin after the work in the current stream."""
        self._marked = torch.cuda.current_stream(self._device).record_event()

    def copy_down(self, source: Any, target: Any) -> Event:
        """Begins a copy on the stream down."""
        return self._copied(self._down, source, target)

    def copy_up(self, source: Any, target: Any) -> Event:
        """Begins a copy on the stream up."""
        return self._copied(self._up, source, target)

    def _copied(self, stream: Any, source: Any, target: Any) -> Event:
        stream.wait_event(self._marked)
        with torch.cuda.stream(stream):
            target.copy_(source, non_blocking=True)
            return _CudaEvent(stream.record_event())

    def join(self) -> None:
        """Lets the current stream wait for the copies up."""
        torch.cuda.current_stream(self._device).wait_stream(self._up)


class _FutureEvent:
    """The end of a copy by a thread."""

    def __init__(self, future: "Future[None]") -> None:
        self._future = future

    def is_done(self) -> bool:
        return self._future.done()

    def wait(self) -> None:
        self._future.result()


class FileDevice:
    """Copies between the file of slots and host memory, by a thread in each direction.

    In place of a tensor of the device a copy takes the number of the first byte in the file. Its end raises `OSError` where the disk fails.
    Whole pages go past the page cache, where the file system can: a file that memory cannot hold would push all else out of it.
    """

    def __init__(self, file: StateFile) -> None:
        self._file = file  # open for as long as there are copies
        self._threads: dict[str, ThreadPoolExecutor] = {}

    def memory(self, count: int) -> Any:
        """New host memory of so many bytes, which begins at a page."""
        return torch.frombuffer(mmap.mmap(-1, max(count, 1)), dtype=torch.uint8)

    def mark(self) -> None:
        """Does nothing."""

    def copy_down(self, source: Any, target: Any) -> Event:
        """Begins a read."""
        return self._begun("read", self._file.read, source, target)

    def copy_up(self, source: Any, target: Any) -> Event:
        """Begins a write."""
        return self._begun("write", self._file.overwrite, target, source)

    def _begun(self, kind: str, copy: Callable[[int, memoryview], None], start: int, memory: Any) -> Event:
        if kind not in self._threads:
            self._threads[kind] = ThreadPoolExecutor(1, f"oxigrad state {kind}")
        return _FutureEvent(self._threads[kind].submit(copy, start, memoryview(memory.numpy())))

    def join(self) -> None:
        """Ends the threads, after a step."""
        for threads in self._threads.values():
            threads.shutdown()
        self._threads = {}


def device_of(device: Any) -> Device:
    """The copies of a device of PyTorch."""
    return CudaDevice(device) if device.type == "cuda" else HostDevice()
