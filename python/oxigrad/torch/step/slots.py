"""The state of a parameter as the slots of a step."""

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from oxigrad.rules.core.slots import Slot
from oxigrad.step.arrays.quantized import Quantized
from oxigrad.step.parameters.slots import Slots
from oxigrad.torch.group import TensorGroup
from oxigrad.torch.library import torch
from oxigrad.torch.state import conversion


class TensorSlots(Slots):
    """The tensors in ``state``, that of the parameter ``p``, which are written in place.

    With ``recorded``, autograd records what rules compute from them, and how the results are written.
    """

    are_overwritten = True

    def __init__(self, path: str, p: Any, group: TensorGroup, state: dict[str, Any], *, recorded: bool) -> None:
        self._path, self._p, self._state, self._recorded, self._slots = path, p, state, recorded, group.slots
        self._elementwise = group.rule().elementwise

    def __getitem__(self, name: str) -> Any:
        return conversion.memory(self._state[self._slots[name][1]])

    def items(self) -> list[tuple[str, Any]]:
        """The names and arrays: the state's tensors if real and of this process, else others of the same memory."""
        return [(name, self[name]) for name, (_, key) in self._slots.items() if self._state.get(key) is not None]

    def values(self) -> list[Any]:
        """The arrays."""
        return [self[name] for name, (_, key) in self._slots.items() if self._state.get(key) is not None]

    def arrays(self) -> Iterator[tuple[tuple[str, str], Any]]:
        """The tensors of the slots that are arrays, by the key of the state, and the name of the part of codes."""
        for slot, key in self._slots.values():
            value = None if slot.is_number else self._state.get(key)
            if value is not None:
                parts = Quantized(**value).arrays if isinstance(value, dict) else {"": value}
                yield from (((key, name), tensor) for name, tensor in parts.items())

    def within(self, start: int, stop: int) -> "TensorSlots":
        """The slots of the parameter's elements from ``start`` to ``stop`` in row-major order, in the same memory."""
        state = dict(self._state)
        for name, (slot, key) in self._slots.items():
            if not slot.is_number and state.get(key) is not None:
                value = self[name]
                is_coded = isinstance(value, Quantized)
                state[key] = value.within(start, stop).fields if is_coded else value.reshape(-1)[start:stop]
        return self._of(state)

    def in_memory(self, tensors: Mapping[tuple[str, str], Any]) -> "TensorSlots":
        """The slots with other tensors in place of those of `arrays` with these keys."""
        state = dict(self._state)
        for (key, name), tensor in tensors.items():
            state[key] = {**state[key], name: tensor} if name else tensor
        return self._of(state)

    def _of(self, state: dict[str, Any]) -> "TensorSlots":
        slots = copy.copy(self)
        slots._state = state
        return slots

    def check(self) -> None:
        """Raises `ShapeError` for a slot of another shape than the parameter."""
        if self._elementwise:
            arrays = [key for slot, key in self._slots.values() if not slot.is_number]
            conversion.check_shapes(self._path, self._p, {key: self._state.get(key) for key in arrays})

    def of_core(self, slot: Slot) -> Any:
        """A slot as the core takes it."""
        value = self._state[self._slots[slot.name][1]]
        if slot.is_number:
            return value
        value = conversion.memory(value)
        return value.in_core() if isinstance(value, Quantized) else value

    def of_rule(self) -> Mapping[str, Any]:
        """The slots as a rule is called on them: with numbers of float64, as kernels compute with them."""
        values = {}
        for name, (slot, key) in self._slots.items():
            value = self._state.get(key)
            if value is not None:
                value = self._read(value)
                values[name] = value.to(torch.float64) if slot.is_number else value
        return values

    def _read(self, value: Any) -> Any:
        return conversion.real(value) if self._recorded else conversion.array(value)

    def write(self, name: str, value: Any, writes: Any) -> None:
        """Adds a copy of a new value into the memory of a slot to the writes of a step."""
        held = self._read(self._state[self._slots[name][1]])
        if self._recorded:
            writes.assign(held, value.to(held.dtype))
        else:
            writes.copy_into(held, value.to(held.dtype))
