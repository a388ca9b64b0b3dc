"""The core's elementwise kernels as functions of NumPy arrays, for ops that an array library lacks."""

from typing import Any

import numpy as np

from oxigrad import _core


def compute(name: str, *args: Any) -> Any:
    """The op ``name`` of NumPy arrays and numbers, broadcast; computed in float32 or float64, whichever holds the dtype."""
    dtype = np.result_type(*args)
    is_real = dtype.kind == "f" or (dtype.kind == "V" and _core.is_inexact(np.empty(0, dtype)))
    dtype = dtype if is_real else np.dtype(np.float64)
    computing = dtype if dtype.itemsize in (4, 8) else np.dtype(np.float32)
    arrays = np.broadcast_arrays(*(np.asarray(value, computing) for value in args))
    return _core.compute(name, list(arrays)).astype(dtype, copy=False)[()]
