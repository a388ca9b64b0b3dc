"""NumPy; functions that it lacks, or computes inaccurately near their roots, are kernels of the core."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad._core import is_inexact
from oxigrad._typing import Array, Dtype
from oxigrad.ops.backends.arrays import is_array
from oxigrad.ops.backends.functions import kernels
from oxigrad.ops.backends.generic import Adapter

# Functions that NumPy computes inaccurately near their roots.
_INACCURATE = {"logaddexp", "logaddexp2"}


class NumPyAdapter(Adapter):
    """NumPy's arrays and scalars, and Python's numbers without an array among the arguments."""

    def is_of_kind(self, dtype: Dtype, kind: str | tuple[str, ...]) -> bool:
        """Whether a dtype is of a kind, as `isdtype`, for anything that `numpy.dtype` accepts."""
        return super().is_of_kind(np.dtype(dtype), kind)

    def to_host(self, array: Array) -> np.ndarray:
        """The array itself; a scalar as an array."""
        return np.asarray(array)

    def is_apart(self, p: Array, g: Array) -> bool:
        """False: NumPy converts other arrays, or raises."""
        return False

    def in_order(self, array: Array) -> Array:
        """The array, or a copy of one of another memory order, or misaligned."""
        if not isinstance(array, np.ndarray) or (array.flags.c_contiguous and array.flags.aligned):
            return array
        return np.array(array, order="C")

    def from_host(self, array: np.ndarray, like: Array) -> np.ndarray:
        """A copy with the dtype and the memory order of ``like``."""
        copy = np.empty_like(like)
        copy[...] = array
        return copy

    copied_like = from_host

    def implementation(self, name: str) -> Callable[..., Any]:
        """NumPy's ufunc or function, or else the core's kernel."""
        if name in _INACCURATE:
            return functools.partial(_with_all_digits, name)
        function = getattr(self, f"op_{name}", None) or getattr(np, name, None)
        return super().implementation(name) if function is None else function

    def _by_kernel(self, name: str, *args: Array) -> Array:
        return kernels.compute(name, *args)

    def _missing(self, name: str, *args: Array) -> Array:
        return kernels.compute(name, *args)

    def _rounded_to(self, name: str, x: Array) -> Array:
        return kernels.compute(f"round_to_{name}", x)

    def op_broadcast_to(self, x: Array, *, shape: tuple[int, ...]) -> Array:
        """A read-only view; for a number, ten times faster than `numpy.broadcast_to`."""
        if type(x) is not np.ndarray and isinstance(x, np.generic):
            x = np.asarray(x)
        if type(x) is np.ndarray and x.ndim == 0:
            repeated = np.ndarray(shape, x.dtype, x, 0, (0,) * len(shape))
            repeated.flags.writeable = False
            return repeated
        return np.broadcast_to(x, shape)

    def op_eig(self, x: Array) -> tuple[Array, Array]:
        """Complex for any matrix, as the standard has it: NumPy's are real where all eigenvalues are."""
        eigenvalues, vectors = np.linalg.eig(x)
        dtype = np.result_type(eigenvalues, np.complex64)
        return eigenvalues.astype(dtype, copy=False), vectors.astype(dtype, copy=False)

    def op_where(self, condition: Array, x1: Array, x2: Array) -> Array:
        """`numpy.where`; a number if no argument is an array."""
        if not (is_array(x1) or is_array(x2) or is_array(condition)):
            return x1 if condition else x2
        return np.where(condition, x1, x2)

    def op_take_along_axis(self, x: Array, *, indices: Array, axis: int) -> Array:
        """Of rows by their indices: `numpy.take_along_axis` takes several times as long as the elements do."""
        are_rows = axis in (1, -1) and np.ndim(x) == np.ndim(indices) == 2 and len(x) == len(indices)
        if are_rows and type(x) is type(indices) is np.ndarray and indices.dtype.kind == "i":
            return x[np.arange(len(x))[:, None], indices]
        return super().op_take_along_axis(x, indices=indices, axis=axis)


def _with_all_digits(name: str, *args: Array) -> Array:
    """The core's kernel of floating-point arrays; NumPy's function of other dtypes."""
    return kernels.compute(name, *args) if all(map(is_inexact, args)) else getattr(np, name)(*args)


ADAPTER = NumPyAdapter
