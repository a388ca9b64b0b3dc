"""The protocol of a group of parameters that share a rule and its hyperparameters, as every door gives one."""

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from oxigrad.rules.core.rule import Rule
from oxigrad.rules.core.slots import Slot
from oxigrad.stepping.arrays.precision import Precision

if TYPE_CHECKING:
    from oxigrad import _core


class RuleGroup(Protocol):
    """Protocol of parameters that share a rule and its hyperparameters."""

    @property
    def precision(self) -> Precision:
        """The dtypes of slots, and how parameters of half precision are rounded."""
        ...

    @property
    def absent(self) -> tuple[str, ...]:
        """The optional slots that are absent under the current hyperparameters."""
        ...

    @property
    def flags(self) -> dict[str, Any]:
        """The hyperparameters that the rule branches on."""
        ...

    @property
    def numeric(self) -> dict[str, Any]:
        """The numeric hyperparameters: constants, and schedules as they are."""
        ...

    @property
    def catches_up(self) -> bool:
        """Whether the slots of rows catch up with the steps that skipped them."""
        ...

    def rule(self, holds: bool = False) -> Rule:
        """The rule; where the step ``holds`` gradients back, the parts of it before the update."""
        ...

    def program(self, rule: Rule) -> "_core.Program | None":
        """The kernel of ``rule`` with the present flags; None for a rule that is not elementwise."""
        ...

    def interior(self, name: str) -> tuple[float, float]:
        """Two numbers between which all are values of a hyperparameter; NaN where there are none."""
        ...

    def evaluate(self, name: str, schedule: Any, at: Any) -> Any:
        """The value of the ``schedule`` of a hyperparameter at step ``at``; `ValueError` where that is out of range."""
        ...

    def decays(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The factors by which a zero gradient multiplies slots that catch up."""
        ...

    def value(self, name: str) -> Any:
        """The value of a hyperparameter at the first step."""
        ...


def slot_dtype(group: RuleGroup, slot: Slot, p: Any, *, coded: bool, whole: int | None = None) -> Any:
    """The dtype of a slot of the parameter ``p`` of a group: see `Precision.kept_in`."""
    if slot.dtype_by:
        slot = dataclasses.replace(slot, dtype=group.value(slot.dtype_by))
    return group.precision.kept_in(slot, p, coded=coded, whole=whole)
