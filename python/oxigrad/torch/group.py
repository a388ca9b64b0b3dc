"""A parameter group of PyTorch as a group of a step: the rule for one storage dtype, and its hyperparameters."""

from collections.abc import Callable, Mapping
from typing import Any

from oxigrad.optim.settings.options import checked_precision
from oxigrad.rules.core.composition import compose
from oxigrad.rules.core.rule import Rule
from oxigrad.rules.core.slots import Slot
from oxigrad.step.arrays.precision import Precision
from oxigrad.step.parameters.rule_group import RuleGroup
from oxigrad.torch import formulas
from oxigrad.torch.table import Entry, named


class TensorGroup(RuleGroup):
    """A group that reads the values of a parameter group of PyTorch.

    ``number`` is the index of the group, for errors. ``storage`` is the name of the dtype of the parameters, where that
    is half precision. With ``scaled``, gradients are divided by the scale of the loss. ``square`` gives the square of
    the norm of all gradients for ``max_norm``, for steps that see the gradients one by one.
    """

    entry: Entry

    def __init__(
        self,
        entry: Entry,
        values: Mapping[str, Any],
        storage: str | None,
        *,
        number: int = 0,
        scaled: bool,
        square: Callable[[Any], float] | None = None,
    ) -> None:
        self.entry, self._values, self._scaled, self._square = entry, values, scaled, square
        self._number = number
        options = values.get("state_dtype"), values.get("master") or False, values.get("rounding") or "nearest"
        self.precision: Precision = checked_precision(
            *options, keeps_halves=entry.follows_torch, slot_dtype_option="state_dtype", named=named(number)
        )
        # Master weights are the parameters of the rule.
        self._storage = None if self.precision.master else storage
        self._key = self._read_key()
        parts, absent, flags, _ = self._key
        self._flags: dict[str, Any] = dict(flags)
        self._rule: Rule = entry.rule.remembering(_built)(entry.rule, parts, absent, self.precision, storage)
        #: The slots of the rule by name, each with its key in the state.
        self.slots: dict[str, tuple[Slot, str]] = {
            slot.name: (slot, entry.key_of_slot(slot.name)) for slot in self._rule.slots
        }
        self._names = [name for name in self._rule.numbers if name not in ("step", "inverse_scale", "loss")]

    def _read_key(self) -> tuple[Any, ...]:
        """The key of the kernel: the parts of the rule, the slots that are absent, the flags, and the precision."""
        entry, values = self.entry, self._values
        read = self._read = entry.values(values, named(self._number), self._storage)
        if self._square is not None:
            read["square"] = self._square
        is_default = values.get("decoupled_weight_decay", True)
        rule = entry.rule if is_default or entry.coupled is None else entry.coupled
        decays = "weight_decay" not in rule.defaults and bool(read.get("weight_decay"))
        decoupled = decays and bool(entry.option("decoupled_weight_decay", values))
        parts = (
            *((formulas.UNSCALE,) if self._scaled else ()),
            *((self._clip,) if read.get("max_norm") is not None else ()),
            *((formulas.MAXIMIZE,) if entry.option("maximize", values) else ()),
            *((formulas.L2,) if decays and not decoupled else ()),
            rule,
            *((formulas.DECAY,) if decoupled else ()),
        )
        absent = tuple([slot for slot, asks in rule.optional if not read[asks]])
        # PyTorch has arguments for the flags of the rule alone.
        flags: dict[str, Any] = {}
        for part in parts:
            flags |= {name: read[name] for name in rule.flags} if part is rule else part.flags
        return (
            parts,
            absent,
            tuple(flags.items()),
            (values.get("state_dtype"), values.get("master"), values.get("rounding")),
        )

    @property
    def _clip(self) -> Rule:
        return formulas.CLIP if self._square is None else formulas.CLIP_BY_KNOWN_NORM

    def is_current(self) -> bool:
        """Whether the hyperparameters still select this rule: reads them anew, and raises for a value out of range."""
        return self._read_key() == self._key

    @property
    def absent(self) -> tuple[str, ...]:
        """The optional slots that the parameters lack."""
        return self._key[1]

    @property
    def flags(self) -> dict[str, Any]:
        """The hyperparameters that the rule branches on."""
        return self._flags

    @property
    def numeric(self) -> dict[str, Any]:
        """The numeric hyperparameters of the rule, as they are now."""
        return {name: self._read[name] for name in self._names}

    def rule(self, holds: bool = False) -> Rule:
        """The composed rule."""
        return self._rule

    @property
    def sums(self) -> bool:
        """Whether the rule needs the whole parameter, rather than one element at a time."""
        program = self.program(self._rule)
        return program is None or program.has_sums

    @property
    def draws(self) -> bool:
        """Whether a step draws random numbers."""
        return "noise" in self._rule.supplied or self.precision.rounding == "stochastic"

    def value(self, name: str) -> Any:
        """The value of a hyperparameter; for the square of the norm, a function that is called in each step."""
        return self._read[name]


def _built(
    rule: Rule, parts: tuple[Rule, ...], absent: tuple[str, ...], precision: Precision, storage: str | None
) -> Rule:
    composed = compose(parts)
    composed = composed.without(absent) if composed.optional else composed
    return precision.around(composed, storage)
