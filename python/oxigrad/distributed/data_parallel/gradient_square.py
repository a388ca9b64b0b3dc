"""The square of the norm of all gradients as a number of a step, where its kernel has a part of them alone."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oxigrad.rules.core.rule import Rule, Stages
from oxigrad.stepping.parameters.parameter_group import ParameterGroup
from oxigrad.stepping.plan.measured_norms import SquareMeasure, summed_squares
from oxigrad.stepping.plan.plan import Plan

# The hyphen keeps it apart from the hyperparameters of rules.
_SQUARE = "square-of-gradients"


class GroupWithSquare(ParameterGroup):
    """A group whose rule has the square of the norm of all gradients, a function of the step, in the place of its total."""

    def __init__(self, group: ParameterGroup, square: Callable[[int], float]) -> None:
        super().__init__(group._owner, group.optimizer, group._overrides, group._storage)
        self._square = square

    def rule(self, holds: bool = False) -> Rule:
        """See `ParameterGroup.rule`."""
        return with_square(super().rule(holds))

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


def with_square(rule: Rule) -> Rule:
    """The rule with its total as a number."""
    return rule.remembering(_with_square)(rule)


def _with_square(rule: Rule) -> Rule:
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
    """The square of the norm of all gradients as a step computes it; 0 where no rule of the plan reads it. ``values`` are the parameters."""
    terms: list[tuple[Any, float]] = []
    for p in plan.parameters:
        group = plan.groups[p.group]
        rule = group.rule()
        if "total" in rule.supplied and p.text in gradients:
            measure = SquareMeasure(p.text, np.empty_like(values[p.text]))
            terms.append((group.program(rule), measure.square(gradients[p.text])))
    return summed_squares(terms)
