"""The square of the norm of all gradients as a number that a step is given, where its kernel has a part of them alone."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oxigrad.rules.core import norms, rule
from oxigrad.rules.core.rule import Rule, Stages
from oxigrad.stepping.parameters.parameter_group import ParameterGroup
from oxigrad.stepping.parameters.rule_executors import kernel_of
from oxigrad.stepping.plan.plan import Plan
from oxigrad.stepping.plan.programs import host_parameter, step_once

# The hyphen keeps it apart from the hyperparameters of rules.
_SQUARE = "known-square"
_MEASURE = rule.read(norms.square_of_gradients)


class KnowingGroup(ParameterGroup):
    """A group whose rule is given the square of the norm of all gradients, by a function of the step, in the place of its total."""

    def __init__(self, group: ParameterGroup, square: Callable[[int], float]) -> None:
        vars(self).update(vars(group))
        self._group, self._square = group, square

    def rule(self, holds: bool = False) -> Rule:
        """See `ParameterGroup.rule`."""
        return knowing(self._group.rule(holds))

    @property
    def numeric(self) -> dict[str, Any]:
        """See `ParameterGroup.numeric`."""
        return {**super().numeric, _SQUARE: self._square}

    def interior(self, name: str) -> tuple[float, float]:
        """See `ParameterGroup.interior`."""
        return (-math.inf, math.inf) if name == _SQUARE else super().interior(name)

    def evaluate(self, name: str, schedule: Any, at: Any) -> Any:
        """See `ParameterGroup.evaluate`."""
        return schedule(at) if name == _SQUARE else super().evaluate(name, schedule, at)


def knowing(rule: Rule) -> Rule:
    """The rule with its total as a number."""
    return rule.remembering(_knowing)(rule)


def _knowing(rule: Rule) -> Rule:
    def call(xp: Any, p: Any, g: Any, *slots: Any, **named: Any) -> Stages:
        square = named.pop(_SQUARE)
        return (yield from rule.stages(xp, p, g, slots, {**named, "total": lambda _: square}))

    return dataclasses.replace(
        rule,
        call=call,
        supplied=rule.supplied - {"total"},
        defaults={**rule.defaults, _SQUARE: 0.0},
        is_staged=True,
    )


def square_of(plan: Plan, values: Mapping[str, np.ndarray], gradients: Mapping[str, np.ndarray]) -> float:
    """The square of the norm of all gradients, added up as a step does: the terms of each kernel, then these sums.

    0 where no rule of the plan reads it. ``values`` are the parameters.
    """
    kernels: dict[int, tuple[Any, list[str]]] = {}
    for p in plan.parameters:
        rule, group = plan.groups[p.group].rule(), plan.groups[p.group]
        if "total" in rule.supplied and p.text in gradients:
            program = group.program(rule)
            kernels.setdefault(id(program), (program, []))[1].append(p.text)
    total = 0.0
    for _, paths in kernels.values():
        total += _measured([values[path] for path in paths], [gradients[path] for path in paths])
    return total


def _measured(values: list[np.ndarray], gradients: list[np.ndarray]) -> float:
    """The sum of the squares of gradients, by the core, which does not touch the parameters: memory like theirs is enough."""
    (slot,), program = _MEASURE.slots, kernel_of(_MEASURE, {})
    numbers = [np.zeros(()) for _ in values]
    arrays = tuple(np.empty_like(value) for value in values)
    parameters = [
        host_parameter(str(at), at, array, [(slot, number)], (0, 0))
        for at, (array, number) in enumerate(zip(arrays, numbers, strict=True))
    ]
    step_once(parameters, arrays, tuple(gradients), programs=[(program, [[0.0] * len(_MEASURE.numbers)])])
    return float(numbers[0])
