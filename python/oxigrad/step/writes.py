"""Results of a step out of place: of rules called on arrays, and records of rows."""

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oxigrad._core import ShapeError
from oxigrad._names import path_name
from oxigrad.ops.backends import detached, fetched
from oxigrad.ops.core.aliasing import refuse_unwritable
from oxigrad.rules.core.rule import Rule
from oxigrad.step.arrays.sparse_rows import LAST_STEP, touched_rows
from oxigrad.step.device.step_writes import StepWrites
from oxigrad.step.parameters.executor import DEVICE, RULE_ASSIGNED, RULE_INTO
from oxigrad.step.parameters.parameter import Parameter, copying
from oxigrad.step.parameters.rule_executors import CalledLeaf, call_rules
from oxigrad.step.parameters.slots import Slots
from oxigrad.step.plan.assignment import Assignment
from oxigrad.step.plan.step_program import ResolvedGroup, StepProgram
from oxigrad.step.slots.view import ParameterSlots

_RULE = operator.attrgetter("rule")

# A parameter's position among those in host memory, its rows (None for all), and a factor for each of its slots.
Touched = tuple[int, Any, list[Any]]


def called_leaves(
    plan: Assignment,
    parameters: Sequence[Parameter],
    leaves: Sequence[Any],
    gradients: Sequence[Any],
    slots: Mapping[str, Mapping[str, Any]],
    rules: Sequence[Rule],
    values: Sequence[Mapping[str, Any]],
) -> list[CalledLeaf]:
    """The leaves that rules are called on for these parameters, with their ``values``; ``rules`` are by group."""
    catches_up = plan.options.sparse == "catch_up"
    return [
        CalledLeaf(
            p.text,
            p.position,
            rules[p.group],
            leaves[p.index],
            gradients[p.index],
            slots[p.text],
            of_parameter,
            plan.groups[p.group].decays(of_parameter) if catches_up else {},
            plan.groups[p.group].precision.rounding == "stochastic",
        )
        for p, of_parameter in zip(parameters, values, strict=True)
    ]


def decays_of(plan: Assignment, values: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The factors by which a zero gradient multiplies the slots of each group, for groups that catch up."""
    if plan.options.sparse != "catch_up":
        return [{}] * len(values)
    return [group.decays(of_group) for group, of_group in zip(plan.groups, values, strict=True)]


def call_step(
    step: StepProgram,
    leaves: list[Any],
    gradients: list[Any],
    slots: Mapping[str, Slots],
    writes: StepWrites,
    others: Sequence[Parameter] = (),
) -> bool:
    """Calls the rules of a step, also for ``others`` on devices, and collects ``writes``. False if a guard stops it."""
    plan = step.plan
    ruled = sorted([*plan.ruled, *others], key=lambda p: p.position) if others else plan.ruled
    gather = plan.gather_terms() if plan.gather else None
    if not ruled and gather is None:
        return True
    for p in ruled:
        slots[p.text].check()
    for p in others:
        leaves[p.index] = detached(leaves[p.index])
    by_group = [*map(ResolvedGroup.values, step.groups)]
    rules, values = [*map(_RULE, step.groups)], [by_group[p.group] for p in ruled]
    old_slots = {p.text: slots[p.text].of_rule() for p in ruled}
    called = called_leaves(plan, ruled, leaves, plan.unrecorded(gradients, ruled), old_slots, rules, values)
    results, keep = call_rules(called, step.seed, gather)
    for p, leaf, (new, *after) in zip(ruled, called, results, strict=True):
        if new is leaf.p:
            pass
        elif p.executor in (DEVICE, RULE_ASSIGNED):
            writes.assign(leaf.p, new)
        elif p.executor is RULE_INTO:
            writes.copies.append(copying(new, leaf.p))
        else:
            writes.replacements += [(path, new) for path in p.paths]
        leaf_slots = slots[p.text]
        for slot, value in zip(leaf.rule.slots, after, strict=True):
            if value is not None and value is not leaf.slots[slot.name]:
                leaf_slots.write(slot.name, value, writes)
        if LAST_STEP in leaf.slots:
            leaf_slots.write(LAST_STEP, leaf.stamped(), writes)
    return bool(fetched(keep))


def touch(
    resolved: StepProgram, gradients: list[Any], slots: Mapping[str, ParameterSlots], count: int
) -> tuple[list[Touched], list[tuple[Any, Any, Any]]]:
    """The rows that are touched, and the items of slots to assign, after ``count`` steps.

    Replaces sparse gradients by their values. Raises `ShapeError` or `ArrayMemoryError` for a slot `LAST_STEP` of
    another shape or dtype, or one that cannot be written.
    """
    plan = resolved.plan
    touched: list[Touched] = []
    stamps: list[tuple[Any, Any, Any]] = []
    decays = decays_of(plan, [*map(ResolvedGroup.values, resolved.groups)])
    for position, p in enumerate(plan.host):
        last = slots[p.text].get(LAST_STEP)
        if last is not None and (last.shape != p.shape[:1] or last.dtype != np.int64):
            raise ShapeError(
                f"{path_name(p.text)}: the slot {LAST_STEP} has shape {last.shape} and dtype {last.dtype}: expected "
                f"{p.shape[:1]} and int64"
            )
        read, rows, caught = touched_rows(gradients[p.index], decays[p.group], last, count - p.missed, p.shape)
        gradients[p.index] = read
        if last is not None:
            refuse_unwritable(p.text, f"slot {LAST_STEP}", last)
            stamps.append((last, slice(None) if rows is None else rows, count + 1 - p.missed))
        if rows is not None or caught:
            touched.append((position, rows, caught))
    return touched, stamps


def collect(
    step: StepProgram,
    leaves: list[Any],
    gradients: list[Any],
    slots: Mapping[str, ParameterSlots],
    writes: StepWrites,
    *,
    count: int,
    others: Sequence[Parameter] = (),
) -> list[Touched] | None:
    """The rows that the core's update touches; adds all other writes of a step to ``writes``.

    Rules are called for ``others`` on devices too. Arrays that cannot be written are replaced by copies, in ``leaves``
    already. None where a guard stops the step.
    """
    if not call_step(step, leaves, gradients, slots, writes, others):
        return None
    touched, stamps = touch(step, gradients, slots, count) if step.touches else ([], [])
    writes.assignments += stamps
    for parameter in step.plan.copied:
        array = leaves[parameter.index] = np.array(leaves[parameter.index])
        writes.replacements += [(path, array) for path in parameter.paths]
    return touched
