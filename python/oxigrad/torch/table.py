"""The entry of an optimizer for PyTorch: a rule, and PyTorch's names for its slots and hyperparameters."""

import collections
import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

from oxigrad.optim.table.row import Keys
from oxigrad.rules.core.rule import Rule, is_flag

# PyTorch's names, unless an entry has others. A name with a number is an item of a tuple.
_HYPERPARAMETERS = {
    "learning_rate": "lr",
    "epsilon": "eps",
}
_BETAS = {"beta1": "betas.0", "beta2": "betas.1", "beta3": "betas.2"}
SLOTS = {
    "m": "exp_avg",
    "v": "exp_avg_sq",
    "v_max": "max_exp_avg_sq",
    "master-weights": "master_weights",
    "kahan-compensation": "kahan_compensation",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Entry(Keys):
    """An optimizer's rule, and its values' places in ``param_groups`` and ``state``: keys of the table of optimizers.

    Args:
        rule: the rule.
        follows_torch: whether the state has the form of PyTorch's class: slots of the parameter's dtype, numbers of
            float32.
        ignored: the keys of a group that a step does not read, since PyTorch's class has no such argument.
        coupled: the rule for a group whose ``decoupled_weight_decay`` was set to False, where ``rule`` decays weights
            itself.
    """

    rule: Rule
    follows_torch: bool = True
    ignored: frozenset[str] = frozenset()
    coupled: Rule | None = None

    def option(self, name: str, group: Mapping[str, Any]) -> Any:
        """The value of a group under a key that is no hyperparameter of the rule; None for an ignored key."""
        return None if name in self.ignored else group.get(name)

    def key_of_slot(self, slot: str) -> str:
        """The key in the state of a slot."""
        return self.slots.get(slot) or SLOTS.get(slot, slot)

    @functools.cached_property
    def places(self) -> dict[str, tuple[str, int | None]]:
        """The key in a parameter group, and the number of a tuple's item, of each hyperparameter that is not fixed."""
        defaults = self.rule.defaults
        usual = _HYPERPARAMETERS | (_BETAS if {"beta1", "beta2"} <= defaults.keys() else {}) | {**self.hyperparameters}
        keys = [(name, usual.get(name, name).partition(".")) for name in defaults if name not in self.fixed]
        return {name: (key, int(item) if item else None) for name, (key, _, item) in keys}

    def check(self, group: Mapping[str, Any], named: Callable[[str], str], *, choices: bool = True) -> None:
        """Raises `TypeError` for a value of a group that is of another type than the rule takes.

        With ``choices``, raises `ValueError` for a text that is not one of the rule's choices. ``named`` gives the name
        of a key in the error.
        """
        for flag in ("maximize", "decoupled_weight_decay"):
            if isinstance(group.get(flag), str):
                raise TypeError(f"{named(flag)} is {group[flag]!r}: expected True or False")
        counts = collections.Counter(key for key, item in self.places.values() if item is not None)
        for hyperparameter, (key, item) in self.places.items():
            if key not in group:
                continue
            value, name = group[key], named(key)
            if item is not None:
                if not _is_sequence(value) or len(value) != counts[key]:
                    raise TypeError(f"{name} is {value!r}: expected {counts[key]} numbers")
                value, name = value[item], f"{name}[{item}]"
            self._check_kind(hyperparameter, name, value, choices)

    def _check_kind(self, hyperparameter: str, name: str, value: Any, choices: bool) -> None:
        default, domain = self.rule.defaults[hyperparameter], self.rule.domains.get(hyperparameter)
        allowed = (default,) if domain is None else domain.choices or ()
        if value is None and (None in allowed or default is None or hyperparameter in self.missing):
            return
        texts = [choice for choice in allowed if isinstance(choice, str)]
        if isinstance(value, str) and is_flag(default) and (texts or domain is None):
            if domain is not None and choices:
                domain.check(name, value)
            return
        takes_numbers = (
            not texts or bool(domain and domain.interval) or any(isinstance(choice, bool) for choice in allowed)
        )
        if not (takes_numbers and _is_number(value)):
            raise TypeError(f"{name} is {value!r}: expected {'a number' if domain is None else domain.expected()}")

    def value(self, hyperparameter: str, group: Mapping[str, Any], storage: str | None = None) -> Any:
        """A hyperparameter's value in a parameter group: a float, an int for whole numbers, or a flag.

        ``storage`` is the name of the dtype of the parameters, where that is half precision and None means a number of
        it.
        """
        if hyperparameter in self.fixed:
            return self.fixed[hyperparameter]
        key, item = self.places.get(hyperparameter, (hyperparameter, None))
        default = self.rule.defaults.get(hyperparameter)
        value = group.get(key, default)
        if item is not None and key in group:
            value = value[item]
        if value is None:
            missing = self.missing.get(hyperparameter)
            return missing.get(storage) if isinstance(missing, Mapping) else missing
        if is_flag(default) and is_flag(value):
            return value
        domain = self.rule.domains.get(hyperparameter)
        return domain.check(key, float(value)) if domain is not None and domain.is_whole else float(value)


def _is_sequence(value: Any) -> bool:
    return not isinstance(value, (str, Mapping)) and hasattr(value, "__getitem__") and hasattr(value, "__len__")


def _is_number(value: Any) -> bool:
    """Whether a value is a real number, or a tensor, whose size PyTorch's own message states."""
    return hasattr(value, "__float__")
