"""The entry of an optimizer for PyTorch: a rule, and PyTorch's names for its slots and hyperparameters."""

import collections
import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

from oxigrad._core import ShapeError
from oxigrad.optim.table.row import Keys
from oxigrad.rules.core.ranges import Domain, Interval
from oxigrad.rules.core.rule import Rule, is_flag
from oxigrad.torch import formulas

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
# The slots that options add to those of a rule.
OPTIONAL_SLOTS = ("master-weights", "kahan-compensation")
# The options of groups that are numbers of a step: weight decay of rules that have none, and the limit of the norm.
_OPTIONS: dict[str, Domain | None] = {
    "weight_decay": formulas.L2.domains["weight_decay"],
    "max_norm": Domain((None,), Interval("[0, inf]")),
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

    @functools.cached_property
    def _counts(self) -> Mapping[str, int]:
        """The number of items of each key whose value is a tuple."""
        return collections.Counter(key for key, item in self.places.values() if item is not None)

    @functools.cached_property
    def _domains(self) -> Mapping[str, Domain | None]:
        """The domains of the rule's hyperparameters, and of the options of a group that are numbers of a step."""
        options = {name: domain for name, domain in _OPTIONS.items() if name not in self.ignored}
        return options | {name: self.rule.domains.get(name) for name in self.places}

    def check(self, group: Mapping[str, Any], named: Callable[[str], str], *, ranges: bool = True) -> None:
        """Raises `TypeError` for a value of a group that is of another type than the rule takes.

        With ``ranges``, raises `ValueError` for a number out of range, and for a text that is not one of the rule's
        choices. ``named`` gives the name of a key in the error.
        """
        _refuse_texts(group, named)
        floats = self._floats(group)
        for hyperparameter in self._domains:
            if hyperparameter not in floats and self.places.get(hyperparameter, (hyperparameter,))[0] in group:
                self._read(hyperparameter, group, named, ranges=ranges)

    def values(
        self, group: Mapping[str, Any], named: Callable[[str], str], storage: str | None = None
    ) -> dict[str, Any]:
        """All hyperparameters by name: see `value`. Raises what `check` does."""
        _refuse_texts(group, named)
        floats, values = self._floats(group), dict[str, Any]()
        for name in (*self._domains, *self.fixed):
            values[name] = floats[name] if name in floats else self.value(name, group, storage, named)
        return values

    def _floats(self, group: Mapping[str, Any]) -> dict[str, float]:
        """The hyperparameters that are floats of their domains, as the rule takes them."""
        floats: dict[str, float] = {}
        for name, domain in self._domains.items():
            key, item = self.places.get(name, (name, None))
            value = group.get(key)
            if item is not None:
                value = value[item] if type(value) is tuple and len(value) == self._counts[key] else None
            if domain is not None and type(value) is float and domain.interior[0] < value < domain.interior[1]:
                floats[name] = value
        return floats

    def value(
        self,
        hyperparameter: str,
        group: Mapping[str, Any],
        storage: str | None = None,
        named: Callable[[str], str] = str,
    ) -> Any:
        """A hyperparameter's value in a parameter group: a float, an int for whole numbers, or a flag.

        ``storage`` is the name of the dtype of the parameters, where that is half precision and None means a number of
        it. Raises what `check` does, but not for a learning rate of zero: by it, loaders of checkpoints make the state.
        """
        if hyperparameter in self.fixed:
            return self.fixed[hyperparameter]
        value = self._read(hyperparameter, group, named, stops=hyperparameter == "learning_rate")
        if value is None:
            missing = self.missing.get(hyperparameter)
            return missing.get(storage) if isinstance(missing, Mapping) else missing
        return value

    def _read(
        self,
        hyperparameter: str,
        group: Mapping[str, Any],
        named: Callable[[str], str],
        *,
        ranges: bool = True,
        stops: bool = False,
    ) -> Any:
        """A value as the rule takes it; None is not replaced. With ``stops``, zero is in every range."""
        key, item = self.places.get(hyperparameter, (hyperparameter, None))
        default, domain = self.rule.defaults.get(hyperparameter), self._domains.get(hyperparameter)
        value = group.get(key, default)
        if item is not None and key in group:
            if not (type(value) is tuple or _is_sequence(value)) or len(value) != self._counts[key]:
                raise TypeError(f"{named(key)} is {value!r}: expected {self._counts[key]} numbers")
            value = value[item]
        choices = (default,) if domain is None else domain.choices or ()
        if value is None and (None in choices or default is None or hyperparameter in self.missing):
            return None
        texts, flags = str in map(type, choices), bool in map(type, choices)
        if flags and isinstance(value, bool):
            return value
        name = (named(key) if item is None else f"{named(key)}[{item}]") if key in group else key
        if isinstance(value, str) and is_flag(default) and (texts or domain is None):
            return value if domain is None or not ranges else domain.check(name, value)
        takes_numbers = not texts or bool(domain and domain.interval) or flags
        if not (takes_numbers and hasattr(value, "__float__")):
            raise TypeError(f"{name} is {value!r}: expected {'a number' if domain is None else domain.expected()}")
        if not ranges:
            return value
        number = _number(name, value, domain)
        is_stop = stops and number == 0 and not isinstance(number, bool)
        if domain is None or is_stop or (flags and number in (0, 1)):
            return float(number)
        number = domain.check(name, number)
        return number if domain.is_whole else float(number)


def named(number: int) -> Callable[[str], str]:
    """The function that names a key of the group of this index in errors."""
    return lambda key: f"param_groups[{number}][{key!r}]"


def _refuse_texts(group: Mapping[str, Any], named: Callable[[str], str]) -> None:
    """Raises `TypeError` for a text in the place of a flag."""
    for flag in ("maximize", "decoupled_weight_decay"):
        if isinstance(group.get(flag), str):
            raise TypeError(f"{named(flag)} is {group[flag]!r}: expected True or False")


def _is_sequence(value: Any) -> bool:
    return not isinstance(value, (str, Mapping)) and hasattr(value, "__getitem__") and hasattr(value, "__len__")


def _number(name: str, value: Any, domain: Domain | None) -> Any:
    """A real number, or the one element of a tensor; raises `ShapeError` for a tensor of any other size."""
    if not hasattr(value, "item"):
        return value if isinstance(value, (int, float)) else float(value)
    if math.prod(value.shape) != 1:
        expected = "a number" if domain is None else domain.expected()
        raise ShapeError(f"{name} has shape {tuple(value.shape)}: expected {expected}")
    return value.item()
