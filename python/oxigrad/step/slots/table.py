"""The slots of all parameters of an optimizer: begun, matched to loaded ones, and prepared for the core."""

import operator
from collections.abc import Container, Mapping
from typing import Any

import numpy as np

from oxigrad import _core
from oxigrad.ops.backends import copied_like
from oxigrad.rules.core.slots import Formula
from oxigrad.step.arrays.precision import MASTER, with_written
from oxigrad.step.arrays.quantized import Quantized
from oxigrad.step.arrays.sparse_rows import LAST_STEP
from oxigrad.step.parameters.executor import DEVICE
from oxigrad.step.parameters.hyperparameter import Version
from oxigrad.step.parameters.parameter import Parameter
from oxigrad.step.parameters.parameter_group import ParameterGroup
from oxigrad.step.plan.plan import Plan
from oxigrad.step.plan.step_program import StepProgram
from oxigrad.step.slots.initial import new_slots
from oxigrad.step.slots.memory import as_placed
from oxigrad.step.slots.view import ParameterSlots
from oxigrad.step.state.state_dict import PendingState

_NAME = operator.attrgetter("name")


class SlotTable:
    """The slots of parameters, ``by_path`` and name, for readers that give no array to the user.

    Its ``version`` is raised where a slot is assigned.
    """

    def __init__(self, core: "_core.Stepper") -> None:
        self._core = core
        self.version: Version = Version()
        self.by_path: Mapping[str, ParameterSlots] = {}

    def replace(self, slots: Mapping[str, Mapping[str, Any]]) -> None:
        """Puts these slots in the place of all."""
        self.by_path = {path: ParameterSlots(path, by_name, self.version) for path, by_name in slots.items()}

    def begin(self, plan: Plan, leaves: list[Any]) -> None:
        """Adds the slots that the parameters of a plan lack."""
        begun = {p.text: self._begun(plan, p, leaves[p.index]) for p in plan.parameters}
        self.replace({**self.by_path, **begun})

    def _begun(self, plan: Plan, parameter: Parameter, array: Any) -> dict[str, Any]:
        """The slots of one parameter that its rule has: existing ones, and new ones where they are missing."""
        group, path = plan.groups[parameter.group], parameter.text
        if parameter.is_elsewhere:
            return dict(self.by_path[path]) if path in self.by_path else _numbers(group)
        if path in self.by_path:
            self.by_path[path].check()
        existing = dict(self.by_path.get(path, {}))
        rule_slots = group.rule().slots
        on_host, coded = parameter.executor.is_core, plan.reads_codes(parameter)
        for name, slot in existing.items():
            if isinstance(slot, Quantized) and not coded:
                existing[name] = slot.decoded(array)
        for slot in rule_slots:
            if isinstance(slot.begin, Formula):
                self._core.expose()  # a function may keep what it returns
        numbers = {slot.name for slot in rule_slots if slot.is_number} if on_host and existing else set[str]()
        if (
            existing
            and not isinstance(array, np.ndarray)
            and any(isinstance(slot, np.ndarray) and name not in numbers for name, slot in existing.items())
        ):  # as a file has them, loaded before the library of the parameter was known
            first = new_slots(group, path, array, on_host=on_host, coded=coded, whole=parameter.whole)
            existing |= {
                name: copied_like(existing[name], first[name])
                for name in (existing.keys() & first.keys()) - numbers
                if isinstance(existing[name], np.ndarray) and not isinstance(first[name], Quantized)
            }
        new = new_slots(group, path, array, on_host=on_host, coded=coded, whole=parameter.whole, existing=existing)
        slots = {**existing, **new}
        if parameter.executor is DEVICE:
            slots = {name: as_placed(slot, array) for name, slot in slots.items()}
        return {name: slots[name] for name in (*map(_NAME, rule_slots), LAST_STEP) if name in slots}

    def fit(self, fitting: PendingState, plan: Plan, leaves: list[Any], waiting: Container[str]) -> None:
        """Matches slots that were loaded in advance to the first model's parameters; ``waiting`` ones may have none."""
        first = {
            p.text: _numbers(plan.groups[p.group])
            if p.is_elsewhere
            else new_slots(
                plan.groups[p.group],
                p.text,
                leaves[p.index],
                on_host=p.executor.is_core,
                coded=plan.reads_codes(p),
                whole=p.whole,
            )
            for p in plan.parameters
            if p.text in self.by_path or p.text not in waiting
        }
        inactive = {path: by_name for path, by_name in self.by_path.items() if path in plan.inactive}
        loaded = {path: by_name for path, by_name in self.by_path.items() if path not in inactive}
        self.replace({**fitting(loaded, first), **inactive})
        if fitting.report:
            self._core.micro = 0  # The mean of the gradients so far may not have matched.

    def follow_written(self, plan: Plan, leaves: list[Any], rounding: str) -> None:
        """Takes elements of parameters that are no roundings of their master weights as the master weights."""
        for p in plan.parameters:
            slots = self.by_path[p.text]
            if MASTER in slots:
                slots[MASTER] = with_written(slots[MASTER], leaves[p.index], rounding)

    def prepare(self, step: StepProgram, leaves: list[Any]) -> None:
        """Gives the core the memory of the parameters that it updates, and of their slots."""
        self._core.prepare(step.host_parameters(leaves, self.by_path))


def _numbers(group: ParameterGroup) -> dict[str, Any]:
    """The slots of a parameter that another worker steps: those of one number."""
    return {slot.name: np.array(slot.begin, np.float64) for slot in group.rule().slots if slot.is_number}
