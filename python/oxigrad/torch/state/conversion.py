"""The state of a parameter, converted between PyTorch's form and the form of a step.

A slot is a tensor of the parameter's layout: complex for a complex parameter, a DTensor for a DTensor. A step takes the
local, real tensor of the same memory. Codes are a dict of ``codes``, ``scales`` and, of four bits, the ``shape``, so
that they are not mistaken for an array of the parameter's shape.
"""

import contextlib
import importlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from oxigrad._core import AliasError, ArrayMemoryError, ShapeError
from oxigrad.ops.backends import adapter_of
from oxigrad.rules.core.slots import Slot
from oxigrad.step.arrays.quantized import Quantized
from oxigrad.step.parameters.executor import DEVICE, HOST, Executor
from oxigrad.step.slots.initial import new_slots
from oxigrad.torch.group import TensorGroup
from oxigrad.torch.library import torch


def is_distributed(tensor: Any) -> bool:
    """Whether a tensor is a DTensor, of which this process has a part."""
    return type(tensor) is not torch.Tensor and hasattr(tensor, "placements") and hasattr(tensor, "to_local")


def local(tensor: Any) -> Any:
    """The real tensor in this process of the same memory, detached."""
    part = tensor.detach()
    return part if type(part) is torch.Tensor and not part.is_complex() else real(part)


def real(tensor: Any) -> Any:
    """The real tensor in this process of the same memory; of a copy, for a lazy view of conjugates."""
    part = _part(tensor)
    return torch.view_as_real(part.resolve_conj()) if part.is_complex() else part


def _part(tensor: Any) -> Any:
    """The tensor in this process."""
    return tensor.to_local() if is_distributed(tensor) else tensor


def is_plain(tensor: Any) -> bool:
    """Whether `local` of a tensor is the tensor itself, without its gradient."""
    return not (tensor.is_complex() or is_distributed(tensor))


def is_dense(tensor: Any) -> bool:
    """Whether the elements of a tensor fill its memory without gaps or repetitions, in any order of axes."""
    extents = zip(tensor.shape, tensor.stride(), strict=True)
    return 1 + sum((extent - 1) * stride for extent, stride in extents) == tensor.numel()


def as_complex(tensor: Any, p: Any) -> Any:
    """A real tensor as a complex one, if it has the axis of real and imaginary parts of a complex parameter ``p``."""
    if not (p.is_complex() and tensor.shape[-1:] == (2,)):
        return tensor
    *strides, last = tensor.stride()
    is_viewed = last == 1 and all(stride % 2 == 0 for stride in strides)
    return torch.view_as_complex(tensor if is_viewed else tensor.contiguous())


def as_parameter(tensor: Any, p: Any) -> Any:
    """A new local, real tensor as a slot of the parameter ``p``."""
    tensor = as_complex(tensor, p)
    if not is_distributed(p):
        return tensor
    distributed = importlib.import_module("torch.distributed.tensor")
    return distributed.DTensor.from_local(
        tensor, p.device_mesh, p.placements, run_check=False, shape=p.shape, stride=p.stride()
    )


@contextlib.contextmanager
def kept_on_error(state: dict[Any, dict[str, Any]], of: Sequence[Any] | None = None) -> Iterator[None]:
    """A block whose errors, which come before anything is written to memory, leave the state as it was.

    That ``of`` parameters, if given.
    """
    states = state.items() if of is None else [(p, state[p]) for p in of if p in state]
    before = [(p, slots, dict(slots)) for p, slots in states]
    try:
        yield
    except Exception:
        if of is None:
            state.clear()
        else:
            for p in of:
                state.pop(p, None)
        for p, slots, values in before:
            slots.clear()
            slots.update(values)
            state[p] = slots
        raise


def check_readable(path: str, p: Any, state: Mapping[str, Any]) -> None:
    """Raises `ArrayMemoryError` for a parameter, its gradient or its state ``state`` whose storage was freed or shrunk.

    It raises it also for a parameter or a state that is a lazy view: a step would write into a copy.
    """
    g: Any = p.grad
    values = [("parameter", p)]
    for key, value in state.items():
        values.append((f"state {key!r}", value))
    gradients = (g._indices(), g._values()) if g is not None and g.is_sparse else (g,)
    values += zip(itertools.repeat("gradient"), gradients)
    for what, value in values:
        for tensor in parts_of(value):
            if isinstance(tensor, torch.Tensor):
                adapter = adapter_of(tensor)
                reason = adapter.unreadable if what == "gradient" else adapter.obstacle
                part = tensor.detach()
                if why := reason(part if type(part) is torch.Tensor else _part(part)):
                    raise ArrayMemoryError(f"{path}: the {what} is {why}")


@contextlib.contextmanager
def checking_overlap(tensors: Iterable[tuple[str, Any, Mapping[str, Any]]]) -> Iterator[None]:
    """A block that raises `AliasError` for shared memory, and `ArrayMemoryError` for tensors beyond a shrunk storage.

    ``tensors`` are the parameters with their names and states.
    """
    try:
        yield
    except AliasError:
        for path, p, state in tensors:
            check_readable(path, p, state)
        raise


def begin(
    group: TensorGroup, path: str, p: Any, state: dict[str, Any], executor: Executor, *, on_host: bool = False
) -> bool:
    """Adds the slots to ``state``, the state of the parameter ``p``, that its rule has and that are missing.

    False if no slot is missing.

    Raises `KeyError` where a state that was begun lacks a slot that no step adds, as PyTorch's classes do, or its
    number of steps.

    Codes and numbers of the state are put where the ``executor`` reads them: rules on arrays read no codes, `DEVICE`
    reads both there. With ``on_host``, all of the state is put into host memory, wherever the parameter is.
    """
    where = torch.device("cpu") if on_host else p.device
    entry, missing = group.entry, list[Slot]()
    for slot, key in group.slots.values():
        value = state.get(key)
        if value is None:
            missing.append(slot)
        elif executor is not HOST and isinstance(value, dict):
            state[key] = _placed_codes(value, p, executor, where)
        elif executor is DEVICE and slot.is_number:
            state[key] = value.to(p.device)
    if state and group.rule().elementwise:
        check_shapes(path, p, {key: state.get(key) for slot, key in group.slots.values() if not slot.is_number})
    is_new = entry.counts and state.get("step") is None
    if is_new:
        if len(missing) < len(group.slots):
            present = next(key for _, key in group.slots.values() if state.get(key) is not None)
            raise KeyError(f"{path}: the state has {present!r}, and no 'step': expected the number of steps taken")
        state["step"] = torch.zeros((), dtype=number_dtype(), device="cpu")
    if not missing:
        return is_new
    existing, numbers = {*group.slots}, dict[str, Any]()
    for slot in missing:
        if slot.is_number:
            first = group.value(entry.begin[slot.name]) if slot.name in entry.begin else float(slot.begin)
            dtype = number_dtype() if entry.follows_torch else torch.float64
            numbers[slot.name] = torch.tensor(first, dtype=dtype, device=p.device if executor is DEVICE else "cpu")
        else:
            existing.remove(slot.name)
    new = new_slots(
        group, path, local(p).to(where), on_host=executor is HOST, coded=not executor.calls_rule, existing=existing
    )
    is_like = is_plain(p)
    if entry.counts and not is_new:
        expected = {slot.name for slot in entry.rule.slots} - dict(entry.rule.optional).keys()
        for name in (*numbers, *new):
            if name in expected:
                raise KeyError(
                    f"{path}: the state has no {group.slots[name][1]!r}: expected the tensor of the steps before, or "
                    "no state at all"
                )
    for name, value in (numbers | new).items():
        if isinstance(value, Quantized):
            codes = {part: torch.as_tensor(array, device=array.device) for part, array in value.arrays.items()}
            state[group.slots[name][1]] = {**value.fields, **codes}
        else:
            state[group.slots[name][1]] = value if is_like or name in numbers else as_parameter(value, p)
    return True


def move_to_host(state: dict[str, Any]) -> None:
    """Moves the tensors of a state into host memory."""

    def moved(value: Any) -> Any:
        return value.cpu() if isinstance(value, torch.Tensor) else value

    for key, value in state.items():
        state[key] = {name: moved(part) for name, part in value.items()} if isinstance(value, dict) else moved(value)


def _placed_codes(value: dict[str, Any], p: Any, executor: Executor, device: Any) -> Any:
    """Codes and scales on the device of the parameter ``p``, or their tensor if the executor reads no codes."""
    if executor is not DEVICE:
        return as_parameter(array(value).to(device), p)
    if all(part.device == p.device for part in parts_of(value)):
        return value
    return {**value, "codes": value["codes"].to(p.device), "scales": value["scales"].to(p.device)}


def check_shapes(path: str, p: Any, slots: Mapping[str, Any]) -> None:
    """Raises `ShapeError` for a slot of another shape than the parameter, as one that was loaded may have."""
    for key, value in slots.items():
        shape = shape_of(value)
        if shape is not None and shape != tuple(p.shape):
            raise ShapeError(
                f"{path}: the state {key!r} has shape {shape}: expected {tuple(p.shape)}, the shape of the parameter"
            )


def number_dtype() -> Any:
    """The dtype in which PyTorch counts steps."""
    return torch.float64 if torch.get_default_dtype() is torch.float64 else torch.float32


def slots_of(group: TensorGroup, state: Mapping[str, Any]) -> list[tuple[Slot, Any]]:
    """The slots of the rule with their state: tensors, codes with scales, or None."""
    return [(slot, state.get(key)) for slot, key in group.slots.values()]


def parts_of(value: Any) -> tuple[Any, ...]:
    """The tensors of a slot: itself, its codes and scales, or none."""
    if value is None:
        return ()
    return (value["codes"], value["scales"]) if isinstance(value, dict) else (value,)


def shape_of(value: Any) -> tuple[int, ...] | None:
    """The shape of a slot, or None without one."""
    if isinstance(value, dict):
        return tuple(value["shape"] if "shape" in value else value["codes"].shape)
    return None if value is None else tuple(value.shape)


def memory(value: Any) -> Any:
    """A slot as the core and kernels take it, which follow the memory of a tensor."""
    if isinstance(value, dict):
        return Quantized(**value)
    is_real = type(value) is torch.Tensor and not (value.requires_grad or value.is_complex())
    return value if is_real else local(value)


def described(tensors: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The addresses, shapes, dtypes and devices of tensors, which change as by ``tensor.data = ...`` or ``set_``."""
    return [(tensor.data_ptr(), tensor.shape, tensor.dtype, tensor.device) for tensor in map(local, tensors)]


def array(value: Any) -> Any:
    """A slot as a rule takes it."""
    if not isinstance(value, dict):
        return value if value is None else local(value)
    return torch.from_numpy(np.asarray(Quantized(**value)))
