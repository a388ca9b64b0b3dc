"""Copies between a file and host memory."""

import mmap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from oxigrad._names import library
from oxigrad._typing import Array
from oxigrad.ops.backends.memory.transfers import Copies, Event

torch: Any = library("torch", "copies of tensors need PyTorch")


class FileDevice(Copies):
    """Copies by a thread in each direction, ``file.read(start, memory)`` and ``file.overwrite(start, memory)``.

    The number of the first byte in the file stands for the tensor of the device. The end of a copy raises `OSError`
    where the disk fails.
    """

    def __init__(self, file: Any) -> None:
        self._file = file  # open for as long as there are copies
        self._threads: dict[str, ThreadPoolExecutor] = {}

    def memory(self, count: int) -> Array:
        """New host memory of ``count`` bytes, which begins at a page."""
        return torch.frombuffer(mmap.mmap(-1, max(count, 1)), dtype=torch.uint8)

    def copy_down(self, source: int | Array, target: int | Array) -> Event:
        """Begins a read."""
        return self._begun("read", self._file.read, source, target)

    def copy_up(self, source: int | Array, target: int | Array) -> Event:
        """Begins a write."""
        return self._begun("write", self._file.overwrite, target, source)

    def _begun(self, kind: str, copy: Callable[[int, memoryview], None], start: int, memory: Array) -> Event:
        if kind not in self._threads:
            self._threads[kind] = ThreadPoolExecutor(1, f"oxigrad state {kind}")
        future = self._threads[kind].submit(copy, start, memoryview(memory.numpy()))
        return Event(future.done, future.result)

    def join(self) -> None:
        """Ends the threads, after a step."""
        for threads in self._threads.values():
            threads.shutdown()
        self._threads = {}
