"""The memory of slots as kernels on devices take it."""

from collections.abc import Iterable
from typing import Any

from oxigrad.ops.backends import DeviceMemory, laid_out_like, memory_of
from oxigrad.step.arrays.quantized import CODECS, EIGHT, Quantized

# The dtypes of codes.
CODES = {codec.stored for codec in CODECS.values()}


def memory_of_slots(slots: Iterable[tuple[Any, Any]]) -> tuple[list[Any], list[Any], list[Any]]:
    """The memory of slots with their values: of arrays and codes, of scales of codes, and of numbers."""
    arrays: list[Any] = []
    scales: list[Any] = []
    numbers: list[Any] = []
    for slot, value in slots:
        if isinstance(value, Quantized):
            arrays.append(_memory_of_codes(value))
            scales.append(memory_of(value.scales))
        else:
            (numbers if slot.is_number else arrays).append(memory_of(value))
    return arrays, scales, numbers


def _memory_of_codes(slot: Quantized) -> DeviceMemory | None:
    """The memory of codes, of the shape of the numbers, and with their dtype in the programs of devices."""
    memory = memory_of(slot.codes)
    return (
        memory if memory is None or slot.codec is EIGHT else memory._replace(dtype=slot.codec.stored, shape=slot.shape)
    )


def are_codes(arrays: Iterable[DeviceMemory | None], scales: Iterable[DeviceMemory | None]) -> bool:
    """Whether the scales of slots are those of their codes, as many as there are arrays of codes."""
    of_scales = [*scales]
    codes = sum(memory is not None and memory.dtype in CODES for memory in arrays)
    return codes == len(of_scales) and all(memory is not None and memory.is_plain for memory in of_scales)


def are_numbers(memories: Iterable[DeviceMemory | None]) -> bool:
    """Whether kernels take memory as that of slots of one number: without axes, all float64 or all float32."""
    all_memories = [*memories]
    kinds = {(memory.dtype, memory.shape) for memory in all_memories if memory is not None and memory.is_plain}
    return None not in all_memories and kinds in (set(), {("float64", ())}, {("float32", ())})


def as_placed(slot: Any, array: Any) -> Any:
    """A slot of a parameter on a device, with its elements in the parameter's order if the shapes are equal."""
    memory, like = (None, None) if isinstance(slot, Quantized) else (memory_of(slot), memory_of(array))
    if memory is None or like is None or memory.shape != like.shape or memory.strides == like.strides:
        return slot
    return laid_out_like(slot, array)
