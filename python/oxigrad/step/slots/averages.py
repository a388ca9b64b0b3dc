"""Averages of parameters, computed from slots."""

from collections.abc import Mapping
from typing import Any

from oxigrad import xp
from oxigrad._core import StateError
from oxigrad._names import path_name
from oxigrad.ops.core.aliasing import WrittenError
from oxigrad.rules.core.rule import last_named
from oxigrad.step.arrays.quantized import Quantized
from oxigrad.step.parameters.rule_context import neutral
from oxigrad.step.plan.plan import Plan
from oxigrad.step.state.state_dict import Slots


def averages_of(
    plan: Plan, leaves: list[Any], slots: Slots, count: Any, swapped: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The averages after ``count`` steps, by key path, of the parameters that have one.

    While averages are swapped in, ``swapped`` has the parameters that they replace, by key path.
    """
    averages = {}
    for p in plan.parameters:
        group, by_name = plan.groups[p.group], slots[p.text]
        rule = group.rule()
        if rule.average is not None:
            by_name = {
                name: slot.decoded(slot.codes) if isinstance(slot, Quantized) else slot
                for name, slot in by_name.items()
            }
        whole = group.precision.whole((swapped or {}).get(p.text, leaves[p.index]), by_name)
        try:
            with neutral([whole]):
                average = rule.averaged(xp, whole, by_name, group.numbers(count - (count > 0)))
        except WrittenError as error:
            raise WrittenError(f"{path_name(p.text)}: {error}") from error.__cause__
        if average is not None:
            averages[p.text] = xp.asarray(xp.astype(average, whole.dtype, copy=False))
    return averages


def named(slots: Slots, name: str) -> dict[str, Any]:
    """The slots of one name, by key path; where several parts of a chain have one, those of the last part."""
    last_names = {path: last_named(by_name, name) for path, by_name in slots.items()}
    return {path: slots[path][slot] for path, slot in last_names.items() if slot is not None}


def nonempty(arrays: dict[str, Any], what: str) -> dict[str, Any]:
    """The arrays that were found; `StateError` where there are none."""
    if not arrays:
        raise StateError(f"there are no {what}: expected an optimizer that keeps them, after its first step")
    return arrays
