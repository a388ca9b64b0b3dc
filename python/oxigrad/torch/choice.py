"""The rule by which the parameters of one group and one storage dtype are updated, with the group's hyperparameters."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from oxigrad.rules.core.composition import compose
from oxigrad.rules.core.rule import Rule, is_flag
from oxigrad.rules.core.slots import Slot
from oxigrad.stepping.arrays.precision import Precision
from oxigrad.stepping.parameters.rule_executors import trace
from oxigrad.torch import formulas
from oxigrad.torch.table import Entry


class Choice:
    """The composed rule of a parameter group, its kernel, and its numbers of the present step.

    ``storage`` is the name of the dtype of the parameters, where that is half precision. With ``scaled``, gradients are divided by
    the scale of the loss. `oxigrad.stepping.slots.initial.new_slots` takes it as a group.
    """

    catches_up = False

    def __init__(self, entry: Entry, group: Mapping[str, Any], storage: str | None, *, scaled: bool) -> None:
        self.entry, self.group, self.storage, self.scaled = entry, group, storage, scaled
        self.precision = Precision(
            group.get("state_dtype"), bool(group.get("master")), group.get("rounding") or "nearest"
        )
        self._key = self._read_key()
        parts, absent, flags = self._key
        before = entry.rule.remembering(_built)(entry.rule, parts, absent, self.precision, storage)
        self._rule: Rule = before
        self.flags = dict(flags)
        self.numbers = [name for name in self._rule.numbers[1:] if name != "inverse_scale"]
        self.values: dict[str, Any] = {}

    def _read_key(self) -> tuple[Any, ...]:
        """The key of the kernel: the parts of the rule, the slots that are absent, and the flags."""
        entry, group = self.entry, self.group
        rule = entry.rule
        decays = "weight_decay" not in rule.defaults and bool(entry.option("weight_decay", group))
        decoupled = decays and bool(entry.option("decoupled_weight_decay", group))
        parts = (
            *((formulas.UNSCALE,) if self.scaled else ()),
            *((formulas.MAXIMIZE,) if entry.option("maximize", group) else ()),
            *((formulas.L2,) if decays and not decoupled else ()),
            rule,
            *((formulas.DECAY,) if decoupled else ()),
        )
        absent = tuple([slot for slot, asks in rule.optional if not entry.value(asks, group)])
        flags = tuple([(name, entry.value(name, group)) for name, default in rule.defaults.items() if is_flag(default)])
        return parts, absent, flags

    def is_current(self) -> bool:
        """Whether the hyperparameters of the group still select this rule."""
        return self._read_key() == self._key

    def read(self, inverse_scale: float) -> list[float]:
        """The numbers that the kernel takes after that of the step, as they are in the group now."""
        entry, group = self.entry, self.group
        self.values = {name: entry.value(name, group) for name in self.numbers}
        numbers = [*self.values.values()]
        return [inverse_scale, *numbers] if self.scaled else numbers

    def rule(self) -> Rule:
        """The composed rule."""
        return self._rule

    def program(self) -> Any:
        """The kernel of the rule; None for a rule that is called on arrays."""
        if not self._rule.elementwise:
            return None
        return self._rule.remembering(_traced)(self._rule, tuple(self.flags.items()))

    @property
    def sums(self) -> bool:
        """Whether the rule needs the whole parameter, rather than one element at a time."""
        return not self._rule.elementwise or "= sum(" in str(self.program())

    @property
    def draws(self) -> bool:
        """Whether a step draws random numbers."""
        return "noise" in self._rule.supplied or self.precision.rounding == "stochastic"

    def value(self, name: str) -> Any:
        """The value of a hyperparameter."""
        return self.entry.value(name, self.group)

    def kept_in(self, slot: Slot, p: Any, *, coded: bool) -> Any:
        """See `Precision.kept_in`."""
        if self.entry.follows_torch and not (self.precision.slot_dtype and slot.is_moment) and not slot.dtype:
            return p.dtype
        if slot.dtype_by:
            slot = dataclasses.replace(slot, dtype=self.value(slot.dtype_by))
        return self.precision.kept_in(slot, p, coded=coded)


def _built(
    rule: Rule, parts: tuple[Rule, ...], absent: tuple[str, ...], precision: Precision, storage: str | None
) -> Rule:
    composed = compose(parts)
    composed = composed.without(absent) if composed.optional else composed
    return precision.around(composed, storage)


def _traced(rule: Rule, flags: tuple[tuple[str, Any], ...]) -> Any:
    return trace(rule, dict(flags))
