"""A step in parts: several dispatches, each of some parameters, and then the count."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from oxigrad import _core
from oxigrad._core import Misfit
from oxigrad.step.device.step_writes import StepWrites
from oxigrad.step.parameters.parameter import Parameter
from oxigrad.step.plan.gradients import checked_gradients
from oxigrad.step.plan.step_program import StepProgram
from oxigrad.step.stepper import Stepper
from oxigrad.step.writes import collect

_POSITION_AND_TEXT = operator.attrgetter("position", "text")


def resolve_whole(stepper: Stepper, model: Any, loss: Any) -> tuple[StepProgram, list[Any]]:
    """The step of all parameters of a model that changes in place, with its numbers, and the leaves."""
    stepper.open.begin(stepper.core.count + 1)
    step, leaves = stepper.resolved.get(False), None
    if step is not None and not (step.plan.idle or step.plan.copied) and (step.is_current() or step.refresh()):
        leaves = step.plan.leaves(model)
        if leaves is not None and step.plan.recorded:
            step.plan.detach(leaves)
    # An array that has become read-only is replaced from now on.
    if step is None or leaves is None or stepper.core.misfit(step.plan.pick(leaves)):
        stepper.refuse_swapped()
        stepper.forget()
        plan, leaves = stepper.planned(model)
        step = StepProgram(plan)
        if plan.replaced:
            plan.check_replaceable(model)
        stepper.adopt(step, leaves)
    elif step.plan.replaced:
        step.plan.check_replaceable(model)
    step.fill(stepper.core.count, 1, 1.0, loss)
    return step, leaves


def take_part(
    stepper: Stepper,
    step: StepProgram,
    parameters: Sequence[Parameter],
    model: Any,
    leaves: list[Any],
    gradients: list[Any],
    totals: Sequence["_core.Totals"] = (),
) -> None:
    """Updates some of the parameters of a step, with ``gradients`` at the positions of leaves; counts nothing.

    Where the rule reads values over all, ``totals`` has one item with them.
    """
    names, slots = dict(map(_POSITION_AND_TEXT, parameters)), stepper.table.by_path
    part = step.part(tuple(names), parameters)
    plan = part.plan
    reads = {*map(type, plan.pick(gradients))} != {np.ndarray}
    read = checked_gradients(plan, gradients, optional=True, reads=reads)
    if part.core is None:
        core = _core.Stepper()
        core.prepare(part.host_parameters(leaves, slots))
        part.core = core
    count = part.core.count = stepper.core.count
    touched, marks = None, stepper.open.marks(names)
    if part.is_in_place:
        writes = _core.Writes(assignments=marks)
    else:
        collected = StepWrites()
        if plan.ruled or plan.copied:
            plan.check_memory(leaves, read, slots, [])
        touched = collect(part, leaves, read, slots, collected, count=count)
        collected.assignments += marks
        writes = collected.frozen()
    done = part.core.step(
        model,
        plan.pick(leaves),
        plan.pick(read),
        programs=part.programs,
        seed=part.seed,
        touched=touched or (),
        writes=writes,
        totals=totals[0] if totals else None,
    )
    if isinstance(done, Misfit):
        raise done.error
