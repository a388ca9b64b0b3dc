"""New arrays like others: copies to NumPy, within a library, and from one library to another; zeros and ones."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from oxigrad._core import BatchLevel, Variable, plain
from oxigrad._typing import Array, Device, Dtype
from oxigrad.ops.backends.arrays import device_of
from oxigrad.ops.backends.dispatch import adapter_of, array_of, dtype_in, namespace, standard_namespace


def to_host(array: Array) -> np.ndarray:
    """An array of any library as NumPy's, of the same dtype; a copy only where necessary.

    Args:
        array: array of any library, on any device.

    A dtype that NumPy lacks (bfloat16) needs the package ml_dtypes. Raises `BufferError` for an array
    without memory, and `TypeError` for one that `vmap` has batched.
    """
    return np.asarray(array) if isinstance(array, BatchLevel) else adapter_of(array).to_host(array)


def copied(array: Array) -> Array:
    """A copy of an array, in the same library."""
    return np.array(array) if type(array) is np.ndarray else standard_namespace(array).asarray(array, copy=True)


def copied_like(value: Array, like: Array) -> Array:
    """A copy of any library's array in the library and on the device of ``like``, with its shape and dtype.

    Args:
        value: array of any library, which is copied.
        like: array whose library, device, shape and dtype the copy has.
    """
    if type(value) is type(like) is np.ndarray and value.dtype == like.dtype and like.flags.c_contiguous:
        return value.copy()
    adapter = adapter_of(like)
    if namespace(value) is namespace(like):
        return adapter.copied_like(value, like)
    return adapter.from_host(to_host(value), like)


def laid_out_like(value: Array, like: Array) -> Array:
    """A copy of an array in the memory layout of ``like``, which has the same library and shape."""
    copy = namespace(like).empty_like(like, dtype=value.dtype)
    adapter_of(like).assign(copy, value)
    return copy


def row_major(array: Array) -> Array:
    """A copy of an array, whose elements lie in memory in row-major order."""
    copy = namespace(array).empty(tuple(array.shape), dtype=array.dtype, device=device_of(array))
    adapter_of(array).assign(copy, array)
    return copy


def fingerprint(value: Any) -> int | None:
    """A checksum of the elements of a NumPy array; None for anything else."""
    import zlib  # here, since most programs compare no elements

    value = plain(value)
    return zlib.crc32(np.ascontiguousarray(value).data) if isinstance(value, np.ndarray) else None


def zeros_of(shape: Sequence[int], like: Array) -> Array:
    """Zeros of a shape, of the library and dtype and on the device of an array, which may be a variable's."""
    return namespace(like).zeros(tuple(shape), dtype=like.dtype, device=device_of(plain(like)))


def blank_like(name: str, x: Array, dtype: Dtype, device: Device) -> Array:
    """The result of ``zeros_like`` or ``ones_like``: a plain array. Raises `RuleError` for a symbol of a rule."""
    if type(x) is np.ndarray:
        return getattr(np, name)(x, dtype=dtype, device=device)
    x = plain(array_of(x))
    if isinstance(x, Variable):
        _ = x.dtype  # raises, since symbols have no dtype
    library = namespace(x)
    return getattr(library, name)(x, dtype=dtype_in(library, dtype), device=device)
