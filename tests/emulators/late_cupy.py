"""The part of CuPy that copies use: streams whose work is done when a host waits for it, or for what comes after it, and not before."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np


class Event:
    """A place among the work of a stream."""

    def __init__(self, stream: Stream, place: int) -> None:
        self.stream, self.place = stream, place

    @property
    def done(self) -> bool:
        return self.stream.finished >= self.place

    def synchronize(self) -> None:
        self.stream.run_until(self.place)


class Stream:
    """Work that is done in order."""

    def __init__(self, *, non_blocking: bool = False) -> None:
        self.is_blocking = not non_blocking
        self.work: list[Callable[[], Any]] = []
        self.finished = 0

    def record(self) -> Event:
        return Event(self, len(self.work))

    def wait_event(self, event: Event) -> None:
        self.work.append(event.synchronize)

    def run_until(self, place: int) -> None:
        while self.finished < place:
            self.finished += 1
            self.work[self.finished - 1]()


class Pointer:
    """The memory of an array of a device. A copy has the bytes that are there when it is done."""

    def __init__(self, array: np.ndarray, device_id: int) -> None:
        self.ptr, self.device_id = array.ctypes.data, device_id

    def copy_to_host_async(self, memory: ctypes.c_void_p, size: int, stream: Stream) -> None:
        stream.work.append(lambda: ctypes.memmove(memory, self.ptr, size))

    def copy_from_host_async(self, memory: ctypes.c_void_p, size: int, stream: Stream) -> None:
        stream.work.append(lambda: ctypes.memmove(self.ptr, memory, size))


class Array:
    """An array of a device, of numbers in the host's memory."""

    def __init__(self, array: np.ndarray, device_id: int = 0) -> None:
        self.array, self.data = array, Pointer(array, device_id)

    def __getattr__(self, name: str) -> Any:
        if name not in ("shape", "dtype", "strides", "nbytes", "itemsize", "flags", "size"):
            raise AttributeError(name)
        return getattr(self.array, name)


class CuPy:
    """The module: devices with a current stream each, and page-locked memory, of which ``pinned`` has the sizes."""

    def __init__(self) -> None:
        self.cuda = self
        self.current = {0: Stream(), 1: Stream()}
        self.streams: list[Stream] = []
        self.pinned: list[int] = []
        self.entered: list[int] = []

    def Device(self, number: int) -> CuPy:
        self.entered.append(number)
        return self

    def __enter__(self) -> CuPy:
        return self

    def __exit__(self, *_: Any) -> None:
        self.entered.pop()

    def Stream(self, *, non_blocking: bool = False) -> Stream:
        self.streams.append(Stream(non_blocking=non_blocking))
        return self.streams[-1]

    def get_current_stream(self, number: int) -> Stream:
        assert self.entered[-1:] == [number], "a stream of another device"
        return self.current[number]

    def alloc_pinned_memory(self, size: int) -> bytearray:
        self.pinned.append(size)
        return bytearray(size)
