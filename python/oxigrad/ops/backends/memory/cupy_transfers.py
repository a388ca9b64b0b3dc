"""Copies between the memory of CUDA devices, as CuPy's arrays have it, and page-locked host memory."""

import ctypes
from typing import Any

import numpy as np

from oxigrad._typing import Array
from oxigrad.ops.backends.memory.transfers import DONE, BlockingTransfers, Copies, Event


class CuPyTransfers(Copies):
    """Copies by an ``adapter`` on two streams of the device ``number``, one in each direction.

    A non-contiguous array is copied at once, through memory that CuPy allocates.
    """

    def __init__(self, adapter: Any, number: int) -> None:
        self._adapter, self._cuda, self._number = adapter, adapter.cupy.cuda, number
        self._blocking = BlockingTransfers(adapter)
        with self._cuda.Device(number):
            self._down, self._up = (self._cuda.Stream(non_blocking=True) for _ in range(2))
        self.mark()

    def like(self, array: Array) -> Array:
        """A new array of NumPy's in page-locked memory, with the shape, dtype and order of an array."""
        count = int(array.nbytes)
        memory = self._cuda.alloc_pinned_memory(max(count, 1))
        strides = array.strides if self._is_dense(array) else None
        return np.ndarray(array.shape, array.dtype, np.frombuffer(memory, np.uint8, count), strides=strides)

    def mark(self) -> None:
        """Lets later copies begin after the work in the current stream."""
        with self._cuda.Device(self._number):
            self._marked = self._cuda.get_current_stream(self._number).record()

    def copy_down(self, source: Array, target: Array) -> Event:
        """Begins a copy on the stream down."""
        if not self._is_alike(source, target):
            return self._blocking.copy_down(source, target)
        return self._copied(self._down, source.data.copy_to_host_async, target)

    def copy_up(self, source: Array, target: Array) -> Event:
        """Begins a copy on the stream up."""
        if not self._is_alike(target, source):
            return self._blocking.copy_up(source, target)
        return self._copied(self._up, target.data.copy_from_host_async, source)

    def _copied(self, stream: Any, copy: Any, here: np.ndarray) -> Event:
        if not here.nbytes:
            return DONE
        with self._cuda.Device(self._number):
            stream.wait_event(self._marked)
            copy(ctypes.c_void_p(here.ctypes.data), here.nbytes, stream)
            end = stream.record()
            return Event(lambda: end.done, end.synchronize)

    def _is_alike(self, there: Array, here: np.ndarray) -> bool:
        """Whether both arrays are dense with the same order of axes."""
        return self._is_dense(there) and (here.strides == there.strides or here.size <= 1)

    def _is_dense(self, array: Array) -> bool:
        return self._adapter.device_memory(array).is_dense

    def join(self) -> None:
        """Lets the current stream wait for the copies up."""
        with self._cuda.Device(self._number):
            self._cuda.get_current_stream(self._number).wait_event(self._up.record())
