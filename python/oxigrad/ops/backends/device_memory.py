"""Descriptions of arrays in the memory of CUDA devices."""

from typing import Any, NamedTuple

from oxigrad.ops.backends.arrays import REFUSALS, dtype_name

CUDA = 2  # kDLCUDA of DLPack
DEFAULT_STREAM = 0  # the legacy default stream


class DeviceMemory(NamedTuple):
    """The memory of an array on a CUDA device: address, number of the device, and layout.

    ``is_plain`` is whether the elements lie one after the other in row-major order and may be written.
    """

    address: int
    device: int
    dtype: str
    shape: tuple[int, ...]
    is_plain: bool


def device_number(array: Any) -> int | None:
    """The number of the CUDA device of an array, by DLPack; None where it is elsewhere, or the array does not tell."""
    told = getattr(array, "__dlpack_device__", None)
    try:
        kind, number = told() if told is not None else (None, 0)
    except RecursionError:
        raise
    except REFUSALS:
        return None
    return int(number) if kind is not None and int(kind) == CUDA else None


def interface_memory(array: Any) -> DeviceMemory | None:
    """The memory of an array by ``__cuda_array_interface__``; None where it has none, or has a mask."""
    number = device_number(array)
    if number is None:
        return None
    try:
        told = array.__cuda_array_interface__
    except REFUSALS:
        return None
    address, is_readonly = told["data"]
    shape = tuple(told["shape"])
    is_plain = not is_readonly and is_row_major(shape, told.get("strides"), int(told["typestr"][2:]))
    return (
        None
        if told.get("mask") is not None
        else DeviceMemory(address, number, dtype_name(array.dtype), shape, is_plain)
    )


def is_row_major(shape: tuple[int, ...], strides: tuple[int, ...] | None, size: int) -> bool:
    """Whether strides in bytes (None for these) are those of elements one after the other; an axis of one element has any."""
    if strides is None or 0 in shape:
        return True
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent > 1 and stride != size:
            return False
        size *= extent
    return True
