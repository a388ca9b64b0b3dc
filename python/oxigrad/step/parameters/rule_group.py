"""Groups of parameters that share a rule and its hyperparameters."""

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from oxigrad.rules.core.rule import Rule
from oxigrad.rules.core.slots import Slot
from oxigrad.step.arrays.precision import Precision
from oxigrad.step.parameters.rule_executors import kernel_of

if TYPE_CHECKING:
    from oxigrad import _core


class RuleGroup:
    """Parameters that share a rule and its hyperparameters: base class of the groups of each door."""

    #: The dtypes of slots, and how parameters of half precision are rounded.
    precision: Precision

    @property
    def absent(self) -> tuple[str, ...]:
        """The optional slots that are absent under the current hyperparameters."""
        raise NotImplementedError

    @property
    def flags(self) -> dict[str, Any]:
        """The hyperparameters that the rule branches on."""
        raise NotImplementedError

    @property
    def numeric(self) -> dict[str, Any]:
        """The numeric hyperparameters: constants, and schedules as they are."""
        raise NotImplementedError

    @property
    def checks(self) -> bool:
        """Whether gradients are checked for infinities and NaN."""
        return False

    @property
    def catches_up(self) -> bool:
        """Whether the slots of rows catch up with the steps that skipped them."""
        return False

    def rule(self, holds: bool = False) -> Rule:
        """The rule; where the step ``holds`` gradients back, the parts of it before the update."""
        raise NotImplementedError

    def program(self, rule: Rule) -> "_core.Program | None":
        """The kernel of ``rule`` with the present flags; None for a rule that is not elementwise."""
        return kernel_of(rule, self.flags)

    def interior(self, name: str) -> tuple[float, float]:
        """Two numbers between which all are values of a hyperparameter; NaN where there are none."""
        return -math.inf, math.inf

    def evaluate(self, name: str, schedule: Any, at: Any) -> Any:
        """The value of the ``schedule`` of a hyperparameter at step ``at``; `ValueError` where that is out of range."""
        return schedule(at)

    def decays(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The factors by which a zero gradient multiplies slots that catch up."""
        return {}

    def value(self, name: str) -> Any:
        """The value of a hyperparameter at the first step."""
        raise NotImplementedError


def slot_dtype(group: RuleGroup, slot: Slot, p: Any, *, coded: bool, whole: int | None = None) -> Any:
    """The dtype of a slot of the parameter ``p`` of a group: see `Precision.kept_in`."""
    if slot.dtype_by:
        slot = dataclasses.replace(slot, dtype=group.value(slot.dtype_by))
    return group.precision.kept_in(slot, p, coded=coded, whole=whole)
