"""Rows of the table of optimizers: all that package, documents and tests say of an optimizer, except its rule."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from oxigrad.optim.rule_optimizer import RuleOptimizer, defined
from oxigrad.optim.settings.hyperparameters import rules_of


@dataclasses.dataclass(frozen=True)
class Keys:
    """The names of an optimizer's values in PyTorch.

    Args:
        slots: the keys in the state of the slots whose names differ, by slot.
        hyperparameters: the keys in a parameter group, by hyperparameter; "betas.0" is the first item of "betas".
        fixed: hyperparameters that are not in the groups.
        begin: the keys of the group whose values number slots begin with.
        missing: values that replace a hyperparameter of None; a mapping has values for parameters of half precision,
            by the name of the dtype.
        counts: whether the state of a parameter has its number of steps, ``step``.
        takes_complex: whether complex parameters are accepted, as pairs of real numbers.
    """

    slots: Mapping[str, str] = dataclasses.field(default_factory=dict)
    hyperparameters: Mapping[str, str] = dataclasses.field(default_factory=dict)
    fixed: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    begin: Mapping[str, str] = dataclasses.field(default_factory=dict)
    missing: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    counts: bool = True
    takes_complex: bool = True


@dataclasses.dataclass(frozen=True)
class Alias:
    """A function of optax.

    Args:
        arguments: its arguments in their order, with a star before those by keyword only.
        parts: the names of the classes of `oxigrad.optim` that it composes; by default the optimizer of the row alone.
        words: the hyperparameters of the parts by optax's arguments, unless
            `oxigrad.optim.settings.spellings` has them.
        defaults: the defaults that differ from the parts' defaults.
        fixed: the hyperparameters that optax does not offer.
        nesterov: the names of the classes in the place of ``parts`` where optax's argument of that name is True.
    """

    arguments: str
    parts: tuple[str, ...] = ()
    words: Mapping[str, str | tuple[str, ...]] = dataclasses.field(default_factory=dict)
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    fixed: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    nesterov: tuple[str, ...] = ()


Values = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of the table of optimizers.

    Args:
        optimizer: the class.
        torch: the names of its values in PyTorch.
        optax: its functions of optax by name. Without any, it has the name of its rule, and its own arguments.
        variants: hyperparameters by the name of a test, one for each combination of flags that has another kernel. The
            learning rate of tests is 0.1.
        native: hyperparameters by the name of the kernel that the core has compiled.
        valleys: the learning rates in `examples/gallery.py`, for Rosenbrock's function and Beale's.
        presets: by library, the hyperparameters that reproduce its results.
    """

    optimizer: type[RuleOptimizer]
    torch: Keys
    optax: Mapping[str, Alias]
    variants: Mapping[str, Values]
    native: Mapping[str, Values]
    valleys: tuple[float, float] | None
    presets: Mapping[str, Values]


# The rows by the name of the class, in the order of the documentation.
TABLE: dict[str, Row] = {}


def entry(
    rule: Callable[..., Any],
    name: str,
    *,
    elementwise: bool = True,
    average: Callable[..., Any] | None = None,
    **columns: Any,
) -> type[RuleOptimizer]:
    """The optimizer of a rule, as by `oxigrad.optim.define`, with a row in the table.

    ``columns`` are passed to `add`.
    """
    optimizer = defined(rule, name, "oxigrad.optim", elementwise=elementwise, average=average)
    add(optimizer, **columns)
    return optimizer


def add(
    optimizer: type[RuleOptimizer],
    *,
    presets: Mapping[str, Values] | None = None,
    torch: Keys | None = None,
    optax: Mapping[str, str | Alias] | None = None,
    variants: Mapping[str, Values] | None = None,
    native: Mapping[str, Values] | None = None,
    valleys: tuple[float, float] | None = None,
) -> None:
    """Adds the row of a class, with the columns of `Row`. The arguments of an `Alias` may replace it."""
    optimizer._presets = presets = presets or {}
    if optax is None:
        (rule,) = rules_of([optimizer])
        optax = {rule.name: Alias(" ".join(rule.defaults), defaults={"learning_rate": ...})}
    aliases = {name: Alias(each) if isinstance(each, str) else each for name, each in optax.items()}
    TABLE[optimizer.__name__] = Row(
        optimizer,
        torch or Keys(),
        {name: dataclasses.replace(each, parts=each.parts or (optimizer.__name__,)) for name, each in aliases.items()},
        variants or {},
        native or {},
        valleys,
        presets,
    )
