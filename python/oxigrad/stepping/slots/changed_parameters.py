"""The differences between the parameters of a model and those that have slots."""

from collections.abc import Container, Mapping
from typing import Any

from oxigrad.stepping.parameters.parameter import Parameter
from oxigrad.stepping.parameters.presence import Changes
from oxigrad.stepping.plan.plan import Plan
from oxigrad.stepping.slots.initial import new_slots


def changes_of(
    plan: Plan, leaves: list[Any], slots: Mapping[str, Mapping[str, Any]], inactive: Container[str], *, remove: bool
) -> Changes:
    """The changes to the ``slots`` by key path that the parameters of ``plan`` require.

    ``inactive`` are the paths that the last model did not update. Slots of parameters that the model lacks are kept, or
    dropped with ``remove``.
    """
    by_path = {p.text: p for p in plan.parameters}
    absent = [path for path in slots if path not in by_path and path not in plan.inactive]
    reset = [
        path for path, p in by_path.items() if path in slots and not _has_shape(plan, p, leaves[p.index], slots[path])
    ]
    return Changes(
        added=[path for path in by_path if path not in slots],
        unfrozen=[path for path in by_path if path in inactive and path not in reset],
        frozen=[path for path in slots if path in plan.inactive],
        reset=reset,
        kept=[] if remove else absent,
        removed=absent if remove else [],
    )


def _has_shape(plan: Plan, p: Parameter, array: Any, by_name: Mapping[str, Any]) -> bool:
    """Whether the slots of a parameter have the shapes of new ones."""
    group = plan.groups[p.group]
    if group.rule().elementwise:
        return all(
            tuple(by_name[s.name].shape) == p.shape for s in group.rule().slots if not s.is_number and s.name in by_name
        )
    new = new_slots(group, p.text, array, on_host=p.executor.is_core, coded=plan.reads_codes(p))
    return all(tuple(by_name[name].shape) == tuple(slot.shape) for name, slot in new.items() if name in by_name)
