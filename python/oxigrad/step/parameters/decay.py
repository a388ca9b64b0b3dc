"""Decay factors of slots, declared or measured: a step with a zero gradient multiplies a slot by one."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from oxigrad import xp
from oxigrad.rules.core.rule import Rule
from oxigrad.rules.core.slots import Formula, Slot

# The number of elements that the rule is called on, each with a step number of its own.
_COUNT = 1024
_TOLERANCE = 1e-9


# A number, the name of a hyperparameter, a function of hyperparameters, or None where a slot has no factor.
Factor: TypeAlias = float | str | Formula | None


def number_of(factor: Factor, values: Mapping[str, Any]) -> Any:
    """The number that a factor is for these ``values`` of hyperparameters."""
    if isinstance(factor, Formula):
        return factor(xp, None, values.__getitem__)
    return values[factor] if isinstance(factor, str) else factor


def decay_factors(rule: Rule, constants: Mapping[str, Any]) -> dict[str, Factor]:
    """The decay factor of each slot that is an array.

    The rule is called on random arrays: three steps with random gradients, then one with a zero gradient. A factor is
    the same for all elements, which differ in parameters, slots, the number of the step, and hyperparameters without a
    value in ``constants``. A factor that ``Slot.zeros(decay=...)`` declares must agree; any other is measured.
    """
    return rule.remembering(_factors)(rule, tuple(constants.items()))


def _factors(rule: Rule, constants: Iterable[tuple[str, Any]]) -> dict[str, Factor]:
    random, values = np.random.default_rng(0), {**rule.defaults, **dict(constants)}
    varying = {name: _drawn(rule, name, random) for name in values.keys() - dict(constants).keys()}
    supplied = {"noise": lambda: random.random(_COUNT), "total": xp.sum, "guard": lambda _: None}
    inputs = {**supplied, "micro": 1, "inverse_scale": 1.0, "loss": 1.5, **values, **varying}
    p: Any = random.standard_normal(_COUNT)
    slots = [s.begin if s.is_number else s.first(xp, p, p.dtype, values.__getitem__) for s in rule.slots]
    with np.errstate(all="ignore"):
        for step in (1, 2, 3):
            p, *slots = rule.run(xp, p, random.standard_normal(_COUNT), slots, {**inputs, "step": step})
        # Two values of each slot, so that `slot + 1` has no factor. Only users write slots that are still zeros.
        scale = np.where(np.arange(_COUNT) % 2, 0.5, 1.0)
        slots = [
            x if s.is_number else (x if np.any(x) else random.random(_COUNT)) * scale
            for s, x in zip(rule.slots, slots, strict=True)
        ]
        steps = np.arange(4.0, _COUNT + 4)
        _, *after = rule.run(xp, p, np.zeros(_COUNT), slots, {**inputs, "step": steps})
        return {
            slot.name: _factor(slot, old, new, inputs)
            for slot, old, new in zip(rule.slots, slots, after, strict=True)
            if not slot.is_number
        }


def _drawn(rule: Rule, name: str, random: np.random.Generator) -> Any:
    """Values of a hyperparameter that changes between steps: one an element, near the default and in the domain."""
    default, domain = rule.defaults[name], rule.domains.get(name)
    if domain is None or domain.interval is None or domain.is_whole or default == np.inf:
        return default
    interval = domain.interval
    low, high = sorted((0.5 * default, 1.5 * default)) if default else (0.0, 1.0)
    return random.uniform(max(interval.low, low), min(interval.high, high), _COUNT)


def _factor(slot: Slot, old: Any, new: Any, inputs: Mapping[str, Any]) -> Factor:
    """The factor of a slot from its values before and after the step with a zero gradient."""
    factor: Any = slot.decay
    if factor is None:
        factor = float(np.median((new / old)[old != 0]))  # the median has no rounding error
    expected = old * number_of(factor, inputs)
    return factor if np.all(np.abs(new - expected) <= _TOLERANCE * np.abs(old)) else None
