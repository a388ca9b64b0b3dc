"""Descriptions of arrays in the memory of CUDA devices."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from oxigrad._typing import Array
from oxigrad.ops.backends.arrays import REFUSALS, dtype_name

CUDA = 2  # kDLCUDA of DLPack
DEFAULT_STREAM = 0  # the legacy default stream
LEGACY_STREAM = 1  # another handle of it


class DeviceMemory(NamedTuple):
    """The memory of an array on a CUDA device: address, number of the device, and layout.

    ``is_plain`` is whether the array is C-contiguous and writable. For a writable array that is dense in another order
    of axes, such as a channels-last tensor, ``strides`` are its strides in elements, and 0 for an axis of size 1.
    """

    address: int
    device: int
    dtype: str
    shape: tuple[int, ...]
    is_plain: bool
    strides: tuple[int, ...] | None = None
    is_writable: bool = True

    @property
    def is_dense(self) -> bool:
        """Whether the array is dense in some order of axes, and writable."""
        return self.is_plain or self.strides is not None


def device_number(array: Array) -> int | None:
    """The CUDA device number of an array, by DLPack; None if it lies elsewhere or does not say."""
    query = getattr(array, "__dlpack_device__", None)
    try:
        kind, number = query() if query is not None else (None, 0)
    except RecursionError:
        raise
    except REFUSALS:
        return None
    return int(number) if kind is not None and int(kind) == CUDA else None


def interface_memory(array: Array) -> DeviceMemory | None:
    """The memory of an array by ``__cuda_array_interface__``; None without it, or with a mask."""
    number = device_number(array)
    if number is None:
        return None
    try:
        interface = array.__cuda_array_interface__
    except REFUSALS:
        return None
    address, is_readonly = interface["data"]
    if interface.get("mask") is not None:
        return None
    shape, strides, size = tuple(interface["shape"]), interface.get("strides"), int(interface["typestr"][2:])
    elements = None if strides is None or any(stride % size for stride in strides) else [s // size for s in strides]
    is_plain = strides is None or (elements is not None and is_row_major(shape, elements))
    dtype = dtype_name(array.dtype)
    if is_readonly:
        return DeviceMemory(address, number, dtype, shape, False, is_writable=False)
    permuted = None if is_plain or elements is None else dense_strides(shape, elements)
    return DeviceMemory(address, number, dtype, shape, is_plain, permuted)


def is_row_major(shape: tuple[int, ...], strides: Sequence[int]) -> bool:
    """Whether strides in elements are C-contiguous; axes of size 1 may have any stride."""
    return 0 in shape or _is_adjacent(zip(reversed(shape), reversed(strides), strict=True))


def dense_strides(shape: tuple[int, ...], strides: Sequence[int]) -> tuple[int, ...] | None:
    """Strides in elements of an array that is dense in some order of axes, else None; 0 for axes of size 1.

    >>> dense_strides((2, 3, 1), (1, 2, 7)), dense_strides((2, 3), (1, 4))
    ((1, 2, 0), None)
    """
    element_strides = tuple([stride if extent > 1 else 0 for extent, stride in zip(shape, strides, strict=True)])
    ordered = sorted(zip(shape, strides, strict=True), key=lambda axis: axis[1])
    return element_strides if _is_adjacent(ordered) else None


def _is_adjacent(axes: Iterable[tuple[int, int]]) -> bool:
    """Whether axes, as pairs of extent and stride, each go over all elements of those before."""
    size = 1
    for extent, stride in axes:
        if extent > 1:
            if stride != size:
                return False
            size *= extent
    return True
