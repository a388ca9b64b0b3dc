"""CuPy: special functions in ``cupyx``, and ``cupy.add.at``."""

import functools
import importlib
from typing import Any

from oxigrad.ops.backends.arrays import device_of, dtype_name, is_basic
from oxigrad.ops.backends.generic import Adapter
from oxigrad.ops.backends.memory.cupy_transfers import CuPyTransfers
from oxigrad.ops.backends.memory.device_memory import DeviceMemory, dense_strides
from oxigrad.ops.backends.memory.transfers import Copies


class CuPyAdapter(Adapter):
    """CuPy's arrays."""

    special_modules: tuple[str, ...] = ("cupyx.scipy.special",)

    def device_memory(self, array: Any) -> DeviceMemory:
        """The memory of an array; CuPy's arrays always lie on a CUDA device."""
        is_plain, size = bool(array.flags.c_contiguous), array.itemsize
        strides = None if is_plain else dense_strides(array.shape, [stride // size for stride in array.strides])
        memory = array.data
        return DeviceMemory(memory.ptr, memory.device_id, dtype_name(array.dtype), array.shape, is_plain, strides)

    def current_stream(self, array: Any, device: int) -> int:
        """CuPy's current stream of the device."""
        return self.cupy.cuda.get_current_stream(device).ptr

    def transfers(self, array: Any) -> Copies:
        """By streams of the device, and page-locked host memory."""
        return CuPyTransfers(self, array.data.device_id)

    @functools.cached_property
    def cupy(self) -> Any:
        """The library."""
        return importlib.import_module("cupy")

    def op_polygamma(self, order: Any, x: Any) -> Any:
        """``cupyx.scipy.special.polygamma``, which takes arrays alone."""
        function: Any = self.special("polygamma")
        return self._of_arrays(function, order, x)

    def op_sign(self, x: Any) -> Any:
        """``cupy.sign`` with the standard's values for NaN and complex numbers.

        array-api-compat assigns these values through a mask, which synchronizes with the device.
        """
        cupy = self.cupy
        if self.is_complex(x):
            size = cupy.abs(x)
            return x / cupy.where(size == 0, 1, size)
        return cupy.where(cupy.isnan(x), x, cupy.sign(x))

    def op_scatter_add(self, g: Any, *, key: Any, shape: tuple[int, ...]) -> Any:
        """By assignment to a slice, else by ``cupy.add.at``."""
        if is_basic(key):
            return self.scattered_to_slice(g, key, shape)
        zeros = self.library.zeros(shape, dtype=g.dtype, device=device_of(g))
        self.library.add.at(zeros, key, g)
        return zeros


ADAPTER = CuPyAdapter
