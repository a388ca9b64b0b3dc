"""CuPy: special functions in ``cupyx``, and ``cupy.add.at``."""

from typing import Any

from oxigrad.ops.backends.arrays import device_of
from oxigrad.ops.backends.generic import Adapter, is_basic


class CuPyAdapter(Adapter):
    """CuPy's arrays."""

    special_modules = ("cupyx.scipy.special",)

    def op_scatter_add(self, g: Any, *, key: Any, shape: tuple[int, ...]) -> Any:
        """By assignment to a slice, else by ``cupy.add.at``."""
        if is_basic(key):
            return self.scattered_to_slice(g, key, shape)
        zeros = self.library.zeros(shape, dtype=g.dtype, device=device_of(g))
        self.library.add.at(zeros, key, g)
        return zeros


ADAPTER = CuPyAdapter
