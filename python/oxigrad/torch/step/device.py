"""The order in which kernels on CUDA devices take the elements of tensors, and their state in that order."""

from typing import Any

from oxigrad.cuda.availability import FLOATING
from oxigrad.ops.backends import laid_out_like, memory_of
from oxigrad.step.parameters.device_kernels import PERMUTED, accepts, tell_inexpressible
from oxigrad.step.slots.memory import CODES, are_codes, are_numbers, memory_of_slots
from oxigrad.torch.group import TensorGroup
from oxigrad.torch.library import torch
from oxigrad.torch.state import conversion


def order_of_kernel(group: TensorGroup, tensor: Any, state: dict[str, Any]) -> str:
    """The order in which a kernel takes the elements of a tensor on a CUDA device, with this ``state``.

    Empty without a kernel.

    It is that of "memory"; or "row-major" for a copy of a tensor with its axes in another order, such as a
    channels-last one, where the rule sums elements, draws random numbers for them, or keeps codes. The state is put
    into that order.
    """
    memory = memory_of(conversion.local(tensor))
    slots = [(slot, conversion.memory(value)) for slot, value in conversion.slots_of(group, state)]
    arrays, scales, numbers = memory_of_slots(slots)
    if memory is None or not all(_is_like(array, memory) for array in arrays):
        return ""
    if not (are_numbers(numbers) and are_codes(arrays, scales)):
        return ""
    is_permuted, number_dtype = memory.strides is not None, numbers[0].dtype if numbers else "float64"
    why = accepts(group, [memory.dtype, *(array.dtype for array in arrays)], number_dtype, permuted=is_permuted)
    if why and why != PERMUTED:
        tell_inexpressible(why)
        return ""
    order = "row-major" if why or (is_permuted and scales) else "memory"
    for slot, value in conversion.slots_of(group, state):
        if not (slot.is_number or isinstance(value, dict)):
            state[group.entry.key_of_slot(slot.name)] = _in_order(value, tensor, order)
    return order


def _in_order(slot: Any, tensor: Any, order: str) -> Any:
    """A slot of a parameter, or a copy whose elements lie in the order in which kernels take them."""
    p, tensor_of_slot = conversion.local(tensor), conversion.local(slot)
    like = p if order == "memory" else torch.empty(p.shape, device=p.device)
    memory, expected = memory_of(tensor_of_slot), memory_of(like)
    if memory and expected and memory.strides == expected.strides:
        return slot
    return conversion.as_parameter(laid_out_like(tensor_of_slot, like), tensor)


def _is_like(memory: Any, like: Any) -> bool:
    """Whether kernels take memory as a slot's: dense, in any order of axes, with the parameter's shape and device."""
    return (
        memory is not None
        and memory.is_dense
        and memory.dtype in (*FLOATING, *CODES)
        and (memory.shape, memory.device) == (like.shape, like.device)
    )
