"""The protocol of the slots of a parameter, as every door gives them to a step."""

from collections.abc import Mapping
from typing import Any, Protocol

from oxigrad.rules.core.slots import Slot
from oxigrad.stepping.arrays.quantized import Quantized


class Slots(Protocol):
    """Protocol of the slots of one parameter: arrays, and codes as `Quantized`, by name."""

    @property
    def are_overwritten(self) -> bool:
        """Whether results of rules that are called on arrays are copied into the memory of the slots."""
        ...

    def __getitem__(self, name: str, /) -> Any: ...

    def items(self) -> Any:
        """The names and the arrays."""
        ...

    def values(self) -> Any:
        """The arrays."""
        ...

    def check(self) -> None:
        """Raises `ShapeError` or `DtypeError` for a slot whose shape or dtype was changed in place."""
        ...

    def of_core(self, slot: Slot) -> Any:
        """A slot as the core takes it."""
        ...

    def of_rule(self) -> Mapping[str, Any]:
        """The slots as a rule is called on them."""
        ...

    def write(self, name: str, value: Any, writes: Any) -> None:
        """Adds the new value of a slot to the ``writes`` of a step, an `oxigrad.stepping.writes.StepWrites`."""
        ...


def arrays_of(slots: Slots | Mapping[str, Any]) -> list[Any]:
    """The arrays of the slots of a parameter."""
    arrays: list[Any] = []
    for slot in slots.values():
        arrays += slot.arrays.values() if isinstance(slot, Quantized) else (slot,)
    return arrays
