"""Changes of a model, and of its slots, other than by a step: other parameters, and other values of parameters."""

import copy
from collections.abc import Container, Mapping
from typing import Any

from oxigrad import _core, tree, xp
from oxigrad._core import StateError
from oxigrad.ops.core.aliasing import apart
from oxigrad.rules import gradient_transforms
from oxigrad.step.parameters.presence import Changes
from oxigrad.step.plan.plan import Plan
from oxigrad.step.plan.step_program import StepProgram
from oxigrad.step.slots.averages import averages_of, named, nonempty
from oxigrad.step.slots.initial import misshapen
from oxigrad.step.stepper import Stepper


def rebuild(stepper: Stepper, model: Any, *, remove: bool) -> Changes:
    """See `Optimizer.rebuild`."""
    if stepper.placement is not None and not stepper.placement.has(model):
        with stepper.placement.reading(stepper, model) as in_memory:
            return rebuild(stepper, in_memory, remove=remove)
    stepper.refuse_slices()
    stepper.refuse_swapped()
    if stepper.micro:
        raise StateError(
            f"{stepper.micro} gradients are accumulated: expected flush(model) before the parameters change"
        )
    leaves, structure = tree.flatten(model)
    survey = Plan(leaves, structure, stepper.options)
    changes = _differences(
        survey, survey.detach(leaves), stepper.table.by_path, stepper.presence.inactive, remove=remove
    )
    before, presence = stepper.table.by_path, copy.deepcopy(stepper.presence)
    dropped = {*changes.removed, *changes.reset}
    try:
        if stepper.presence.is_counting:
            stepper.presence.settle(stepper.counts.taken)
        stepper.forget()
        stepper.table.by_path = {
            path: parameter_slots for path, parameter_slots in stepper.table.by_path.items() if path not in dropped
        }
        stepper.presence.drop(dropped)
        stepper.presence.orphans |= set(changes.kept)
        stepper.presence.were_inactive |= set(changes.added) | set(changes.reset)
        plan, leaves = stepper.new_plan(leaves, structure)
        stepper.enter(StepProgram(plan), leaves)
        stepper.table.follow_written(plan, leaves, stepper.options.precision.rounding)
    except BaseException:
        stepper.forget()
        stepper.table.by_path, stepper.presence = before, presence
        raise
    return changes


def _differences(
    plan: Plan, leaves: list[Any], slots: Mapping[str, Mapping[str, Any]], inactive: Container[str], *, remove: bool
) -> Changes:
    """The changes to the ``slots`` by key path that the parameters of ``plan`` require.

    ``inactive`` are the paths that the last model did not update. Slots of parameters that the model lacks are kept, or
    dropped with ``remove``.
    """
    by_path = {p.text: p for p in plan.parameters}
    absent = [path for path in slots if path not in by_path and path not in plan.inactive]
    reset = [
        path
        for path, p in by_path.items()
        if path in slots
        and misshapen(
            plan.groups[p.group],
            path,
            leaves[p.index],
            slots[path],
            on_host=p.executor.is_core,
            coded=plan.reads_codes(p),
        )
    ]
    return Changes(
        added=[path for path in by_path if path not in slots],
        unfrozen=[path for path in by_path if path in inactive and path not in reset],
        frozen=[path for path in slots if path in plan.inactive],
        reset=reset,
        kept=[] if remove else absent,
        removed=absent if remove else [],
    )


def begin(stepper: Stepper, model: Any) -> tuple[Plan, list[Any]]:
    """The plan for a model that is to be changed in place, and its leaves; makes the slots."""
    stepper.build(model)
    plan, leaves = stepper.planned(model)
    plan.check_replaceable(model)
    # Raises what `finish` would raise after the computation.
    plan.written_with(leaves, {p.text: leaves[p.index] for p in plan.parameters})
    return plan, leaves


def finish(
    stepper: Stepper, plan: Plan, leaves: list[Any], model: Any, values: list[Any], slots: list[dict[str, Any]]
) -> None:
    """Takes a step that was computed elsewhere: new values and slots of each parameter, in the plan's order."""
    by_path = {p.text: value for p, value in zip(plan.parameters, values, strict=True)}
    replacements, copies = plan.written_with(leaves, by_path)
    of_leaves = [stepper.table.by_path[p.text] for p in plan.parameters]
    assigned = [(old, *item) for old, new in zip(of_leaves, slots, strict=True) for item in new.items()]
    changed = [(old, name, array) for old, name, array in assigned if array is not old[name]]
    separate = apart([array for *_, array in changed], [*leaves, *values])
    assignments = [(old, name, array) for (old, name, _), array in zip(changed, separate, strict=True)]
    writes = _core.Writes(replacements=replacements, assignments=assignments, copies=copies)
    observes = stepper.options.loss_scale is not None
    stepper.core.step(model, (), (), programs=[], seed=stepper.options.seed, observes=observes, writes=writes)
    stepper.counts.settle()


# --- other values of parameters -----------------------------------------------------------------------------------


def write_parameters(
    stepper: Stepper, plan: Plan, leaves: list[Any], model: Any, values: dict[str, Any], swapped: dict[str, Any] | None
) -> Any:
    """The model with other values for its parameters, in place if they can be written; notes ``swapped``."""
    if stepper.placement is not None and not stepper.placement.has(model):
        with stepper.placement.reading(stepper, model) as in_memory:
            write_parameters(stepper, plan, leaves, in_memory, values, swapped)
            stepper.placement.finish(plan.parameters)
        return model
    replacements, copies = plan.written_with(leaves, values)
    stepper.resolved.clear()  # so that the next step checks for swapped averages
    # As a part of the write, so that no interrupt comes between.
    noted = [(vars(stepper), "swapped", swapped)]
    return stepper.core.write(model, _core.Writes(replacements=replacements, assignments=noted, copies=copies))


def averaged_parameters(stepper: Stepper, model: Any = None) -> dict[str, Any]:
    """See `Optimizer.averaged_parameters`."""
    stepper.refuse_slices()
    stepper.check_whole()
    if model is not None and stepper.slots:
        averages = averages_of(*stepper.planned(model), stepper.slots, stepper.counts.taken, stepper.swapped)
    elif stepper.plan and any(group.rule().average for group in stepper.plan.groups):
        raise StateError("the averages are computed from the parameters: expected a model")
    else:
        averages = named(stepper.slots, "average")
    return nonempty(averages, "averages")


def copied_parameters(stepper: Stepper) -> dict[str, Any]:
    """See `Optimizer.copied_parameters`."""
    stepper.refuse_slices()
    stepper.check_whole()
    return nonempty(named(stepper.slots, gradient_transforms.NAMES["copy"]), "copies")


def swap_in(stepper: Stepper, model: Any) -> Any:
    """See `Optimizer.swap_in`."""
    stepper.refuse_slices()
    if stepper.swapped is not None:
        raise StateError("the averages are swapped in already")
    averages = averaged_parameters(stepper, model)
    plan, leaves = stepper.planned(model)
    before = {p.text: xp.asarray(leaves[p.index], copy=True) for p in plan.parameters if p.text in averages}
    return write_parameters(stepper, plan, leaves, model, averages, before)


def swap_out(stepper: Stepper, model: Any) -> Any:
    """See `Optimizer.swap_out`."""
    stepper.refuse_slices()
    if stepper.swapped is None:
        raise StateError("the averages are not swapped in")
    return write_parameters(stepper, *stepper.planned(model), model, stepper.swapped, None)
