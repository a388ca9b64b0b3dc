"""The slots of a parameter, as a step reads and writes them."""

from collections.abc import Mapping
from typing import Any

from oxigrad.rules.core.slots import Slot
from oxigrad.step.arrays.quantized import Quantized


class Slots:
    """The slots of one parameter, arrays, and codes as `Quantized`, by name: base class of the slots of each door."""

    __slots__ = ()

    #: Whether results of rules that are called on arrays are copied into the memory of the slots.
    are_overwritten = False

    def __getitem__(self, name: str, /) -> Any:
        raise NotImplementedError

    def items(self) -> Any:
        """The names and the arrays."""
        raise NotImplementedError

    def values(self) -> Any:
        """The arrays."""
        raise NotImplementedError

    def check(self) -> None:
        """Raises `ShapeError` or `DtypeError` for a slot whose shape or dtype was changed in place."""
        raise NotImplementedError

    def of_core(self, slot: Slot) -> Any:
        """A slot as the core takes it."""
        value = self[slot.name]
        return value.in_core() if isinstance(value, Quantized) else value

    def of_rule(self) -> Mapping[str, Any]:
        """The slots as a rule is called on them."""
        raise NotImplementedError

    def write(self, name: str, value: Any, writes: Any) -> None:
        """Adds the new value of a slot to the ``writes`` of a step: see `oxigrad.step.device.step_writes`."""
        raise NotImplementedError


def arrays_of(slots: Slots | Mapping[str, Any]) -> list[Any]:
    """The arrays of the slots of a parameter."""
    arrays: list[Any] = []
    for slot in slots.values():
        arrays += slot.arrays.values() if isinstance(slot, Quantized) else (slot,)
    return arrays
