"""A step in parts: several dispatches, each of some parameters, and then the count."""

import operator
from collections.abc import Mapping, Sequence
from typing import Any

from oxigrad import _core
from oxigrad._core import Misfit
from oxigrad.stepping.arrays.sparse_rows import SparseRows
from oxigrad.stepping.device.step_writes import StepWrites
from oxigrad.stepping.parameters.parameter import Parameter
from oxigrad.stepping.plan.gradients import admit, checked_gradients
from oxigrad.stepping.plan.step_program import StepProgram
from oxigrad.stepping.slots.view import ParameterSlots
from oxigrad.stepping.stepper import Stepper
from oxigrad.stepping.writes import collect

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
) -> None:
    """Updates some of the parameters of a step, with ``gradients`` at the positions of leaves; counts nothing."""
    names, slots = dict(map(_POSITION_AND_TEXT, parameters)), stepper.table.by_path
    part = step.part(tuple(names), parameters)
    plan = part.plan
    while True:
        read = checked_gradients(plan, [*gradients], optional=True)
        if part.core is None:
            core = _core.Stepper()
            core.prepare(part.host_parameters(leaves, slots))
            part.core = core
        count = part.core.count = stepper.core.count
        has_rows = plan.takes_rows and any(isinstance(read[p.index], SparseRows) for p in plan.host)
        touched, marks = None, stepper.open.marks(names)
        if part.is_in_place and not (has_rows or part.catches_up):
            writes = _core.Writes(assignments=marks)
        else:
            collected = StepWrites()
            if plan.ruled or plan.copied:
                plan.check_memory(leaves, read, slots, [])
            touches = has_rows or part.catches_up
            touched = collect(part, leaves, read, slots, collected, count=count, touches=touches)
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
        )
        if not isinstance(done, Misfit):
            return
        if not admit(plan, gradients):
            raise done.error


def undo_begun(stepper: Stepper, slots: Mapping[str, ParameterSlots], fitting: Any) -> None:
    """Drops the slots of a step that an error ended before its first update: they may copy parameters."""
    is_begun = bool(stepper.open.updated) or stepper.core.count == stepper.open.number
    if stepper.fitting is fitting and stepper.table.by_path is not slots and not is_begun:
        stepper.forget()
        stepper.table.by_path = slots
