"""CuPy: special functions in ``cupyx``, and ``cupy.add.at``."""

import functools
import importlib
from typing import Any

from oxigrad._typing import Array, Namespace
from oxigrad.ops.backends.arrays import dtype_name
from oxigrad.ops.backends.generic import Adapter
from oxigrad.ops.backends.memory.cupy_transfers import CuPyTransfers
from oxigrad.ops.backends.memory.device_memory import DeviceMemory, dense_strides
from oxigrad.ops.backends.memory.transfers import Copies


class CuPyAdapter(Adapter):
    """CuPy's arrays."""

    special_modules: tuple[str, ...] = ("cupyx.scipy.special",)

    def device_memory(self, array: Array) -> DeviceMemory:
        """The memory of an array; CuPy's arrays always lie on a CUDA device."""
        is_plain, size = bool(array.flags.c_contiguous), array.itemsize
        strides = None if is_plain else dense_strides(array.shape, [stride // size for stride in array.strides])
        memory = array.data
        return DeviceMemory(memory.ptr, memory.device_id, dtype_name(array.dtype), array.shape, is_plain, strides)

    def current_stream(self, array: Array, device: int) -> int:
        """CuPy's current stream of the device."""
        return self.cupy.cuda.get_current_stream(device).ptr

    def transfers(self, array: Array) -> Copies:
        """By streams of the device, and page-locked host memory."""
        return CuPyTransfers(self, array.data.device_id)

    @functools.cached_property
    def cupy(self) -> Namespace:
        """The library."""
        return importlib.import_module("cupy")

    def op_polygamma(self, order: int | Array, x: Array) -> Array:
        """``cupyx.scipy.special.polygamma``, which takes arrays alone."""
        function: Any = self.special("polygamma")
        return self._of_arrays(function, order, x)

    def op_sign(self, x: Array) -> Array:
        """``cupy.sign`` with the standard's values for NaN and complex numbers.

        array-api-compat assigns these values through a mask, which synchronizes with the device.
        """
        cupy = self.cupy
        if self.is_complex(x):
            size = cupy.abs(x)
            return x / cupy.where(size == 0, 1, size)
        return cupy.where(cupy.isnan(x), x, cupy.sign(x))


ADAPTER = CuPyAdapter
