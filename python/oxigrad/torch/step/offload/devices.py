"""Copies between host memory and the memory of a device, or a file."""

import mmap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

from oxigrad.ops.backends.memory.torch_transfers import CudaDevice, HostDevice, device_of
from oxigrad.ops.backends.memory.transfers import Event
from oxigrad.torch.library import torch
from oxigrad.torch.state.file import StateFile

__all__ = ["Device", "Event", "FileDevice", "device_of"]


class FileDevice:
    """Copies between the file of slots and host memory, by a thread in each direction.

    In place of a tensor of the device a copy takes the number of the first byte in the file. Its end raises `OSError`
    where the disk fails. Whole pages go past the page cache, where the file system can: a file that memory cannot hold
    would push all else out of it.
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
        future = self._threads[kind].submit(copy, start, memoryview(memory.numpy()))
        return Event(future.done, future.result)

    def join(self) -> None:
        """Ends the threads, after a step."""
        for threads in self._threads.values():
            threads.shutdown()
        self._threads = {}


# The copies of a device, or of the file, between its memory and bytes of host memory.
Device: TypeAlias = HostDevice | CudaDevice | FileDevice
