"""The core's elementwise kernels as functions of NumPy arrays, for ops that an array library lacks.

Kernels compute in real numbers; functions of complex numbers are SciPy's.
"""

from typing import Any

import numpy as np

from oxigrad import _core
from oxigrad._core import DtypeError
from oxigrad._typing import Array
from oxigrad.ops.backends.functions.scipy_functions import of_scipy

# Ops whose SciPy function of the same name supports complex numbers.
_OF_COMPLEX_NUMBERS = ("digamma", "erf", "erfc", "gamma")


def compute(name: str, *args: Array) -> Array:
    """Computes the op ``name`` for NumPy arrays and numbers, broadcast, in float32 or float64.

    The precision is the smaller one that holds the dtype.

    Raises `DtypeError` for complex arguments of an op of real numbers.
    """
    dtype = np.result_type(*args)
    if dtype.kind == "c":
        return _of_complex_numbers(name, dtype, args)
    is_real = dtype.kind == "f" or (dtype.kind == "V" and _core.is_inexact(np.empty(0, dtype)))
    dtype = dtype if is_real else np.dtype(np.float64)
    computing = np.dtype(np.float32 if dtype.itemsize <= 4 else np.float64)
    arrays = np.broadcast_arrays(*(np.asarray(value, computing) for value in args))
    return _core.compute(name, list(arrays)).astype(dtype, copy=False)[()]


def _of_complex_numbers(name: str, dtype: np.dtype[Any], args: tuple[Array, ...]) -> Array:
    """SciPy's function of complex numbers."""
    if name not in _OF_COMPLEX_NUMBERS:
        raise DtypeError(f"{name}: found dtype {dtype}, expected a real floating dtype")
    return of_scipy("special", name)(*args)
