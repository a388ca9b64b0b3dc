"""Optimizers of one rule, which `define` makes, and the hyperparameters that each parameter has."""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from oxigrad import groups, presets, rule
from oxigrad.executors import trace
from oxigrad.hyperparameters import Part, declare, plain
from oxigrad.libraries import dtype_name
from oxigrad.optim.config import OPTIONS, REGISTRY
from oxigrad.optim.optimizer import Optimizer
from oxigrad.precision import Precision, half
from oxigrad.rule import Rule, Slot
from oxigrad.schedules.base import number_at
from oxigrad.sparse import decays


class Choice:
    """A rule with one group of hyperparameters, as some parameters of a model have it.

    ``storage`` is the name of their dtype, where that is half precision.
    """

    def __init__(
        self, owner: Optimizer, optimizer: "RuleOptimizer", overrides: Mapping[str, Any], storage: str | None = None
    ) -> None:
        self._owner = owner
        self._storage = storage
        self.optimizer = optimizer
        self._overrides = overrides
        self._optional = [pair for part in optimizer.parts for pair in part.optional]

    def rule(self, holds: bool = False) -> Rule:
        """What is done to a parameter: all of it, or (where gradients are accumulated) all before the step itself."""
        prefix = self._owner.prefix()
        composed = _composed((*prefix, *self.optimizer.parts), holds and len(prefix), self.absent)
        return self.precision.around(composed, self._storage)

    @property
    def precision(self) -> Precision:
        """How many bits."""
        return self._owner.precision

    def kept_in(self, slot: Slot, p: Any, *, on_host: bool) -> Any:
        """The dtype of a slot of the parameter ``p``; "8bit" for codes."""
        if slot.dtype_by:
            slot = dataclasses.replace(slot, dtype=self.value(slot.dtype_by))
        return self.precision.kept_in(slot, p, on_host=on_host)

    @property
    def absent(self) -> tuple[str, ...]:
        """The optional slots that nothing asks for."""
        if not self._optional:
            return ()
        own, given = self.optimizer.hyperparameters, self._overrides
        return tuple([slot for slot, asks in self._optional if not given.get(asks, own[asks])])

    @property
    def _values(self) -> dict[str, Any]:
        return {**self.optimizer.hyperparameters, **self._overrides}

    @property
    def text(self) -> str:
        """The hyperparameters, to be read."""
        return ", ".join(f"{name}={value!r}" for name, value in self._values.items())

    @property
    def flags(self) -> dict[str, Any]:
        """The hyperparameters that the rule branches on."""
        declared = self.optimizer.declared
        return {name: value for name, value in self._values.items() if declared[name].is_flag}

    def numbers(self, at: Any) -> dict[str, Any]:
        """The numeric hyperparameters at step ``at``, counted from 0: schedules called, their values read as numbers."""
        declared = self.optimizer.declared
        numeric = {name: value for name, value in self._values.items() if not declared[name].is_flag}
        return {name: number_at(value, at, name) if callable(value) else value for name, value in numeric.items()}

    def value(self, name: str) -> Any:
        """A hyperparameter as it is in the first step."""
        value = self._values[name]
        return number_at(value, 0, name) if callable(value) else value

    def program(self, rule: Rule) -> Any:
        """The kernel that `rule` becomes with the present flags; None for one that is not elementwise."""
        if not rule.elementwise:
            return None
        return _traced(rule, tuple(self.flags.items()), self._owner.zero_gradients, self.catches_up)

    @property
    def catches_up(self) -> bool:
        """Whether slots of rows that steps skipped catch up with them."""
        return self._owner.sparse == "catch_up" and self.rule().elementwise

    def decays(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """By how much a zero gradient multiplies each slot, if slots catch up: see `oxigrad.sparse.decays`."""
        if not self.catches_up:
            return {}
        first = self.numbers(0)
        return decays(self.rule(), self.flags, first, {name: values[name] for name in first})


@functools.cache
def _composed(parts: tuple[Rule, ...], until: int, absent: tuple[str, ...]) -> Rule:
    composed = rule.compose(parts, until=until or None)
    return composed.without(absent) if composed.optional else composed


@functools.cache
def _traced(composed: Rule, flags: tuple[tuple[str, Any], ...], zero_gradients: bool, catches_up: bool) -> Any:
    return trace(composed, dict(flags), zero_gradients=zero_gradients, catches_up=catches_up)


class RuleOptimizer(Part, Optimizer):
    """What `define` makes of a rule. Hyperparameters are attributes: constants, or schedules (functions of the step).

    ``groups`` gives some parameters other hyperparameters, by pattern: a dict from globs, compiled regular expressions or
    predicates ``(path, array)`` to dicts of hyperparameters, or to None for parameters that are frozen (no slots, no decay, no
    update, and their gradients may be missing). The first match wins. ``dtype`` limits it to parameters of one dtype. ``compat``
    is "torch", "optax" or "keras": what is not given is as the optimizer of this name has it there (see `oxigrad.presets`).
    """

    def __init__(
        self, *args: Any, groups: Any = None, dtype: Any = None, compat: str | None = None, **keywords: Any
    ) -> None:
        keywords = presets.filled_in(type(self).__name__, compat, list(self.declared)[: len(args)], keywords)
        options = {name: keywords.pop(name) for name in (*OPTIONS,) if name in keywords}
        Part.__init__(self, *args, **keywords)
        Optimizer.__init__(self, **options)
        self.dtype = dtype
        self.groups = groups or {}

    @property
    def name(self) -> str:
        """See `Optimizer.name`."""
        return type(self).__name__

    @property
    def parts(self) -> tuple[Rule, ...]:
        """The rules that it is composed of."""
        return (self.rule,)

    @property
    def groups(self) -> Mapping[Any, Mapping[str, Any] | None]:
        """Hyperparameters by pattern; set it as a whole."""
        return self._groups

    @groups.setter
    def groups(self, given: Mapping[Any, Mapping[str, Any] | None]) -> None:
        groups.check(given)
        self._groups = {pattern: self._checked(pattern, values) for pattern, values in given.items()}
        self._choices: dict[tuple[Optimizer, int | None, str | None], Choice] = {}
        self._stepper.reset()

    def _checked(self, pattern: Any, values: Mapping[str, Any] | None) -> dict[str, Any] | None:
        if values is None:
            return None
        unknown = sorted(values.keys() - self.declared.keys())
        if unknown:
            known = ", ".join(self.declared)
            raise TypeError(
                f"the group {pattern!r} has hyperparameters unknown: {', '.join(unknown)}; there are {known}"
            )
        return {name: self.declared[name].check(value) for name, value in values.items()}

    def choice(self, owner: Optimizer, path: str, array: Any) -> Choice | None:
        """See `Optimizer.choice`."""
        if self.dtype is not None and not _has(array, self.dtype):
            return None
        at = groups.first_match(self._groups, path, array)
        overrides = {} if at is None else list(self._groups.values())[at]
        if overrides is None:
            return None
        storage = half(array)
        return self._choices.setdefault((owner, at, storage), Choice(owner, self, overrides, storage))

    @property
    def program(self) -> Any:
        """The kernel that the rule becomes with the present flags, which prints as a listing; None where it is called."""
        choice = Choice(self, self, {})
        return choice.program(choice.rule())

    def get_config(self) -> dict[str, Any]:
        """See `Optimizer.get_config`."""
        values = {name: plain(name, value) for name, value in self.hyperparameters.items()}
        return {"optimizer": self.name, **values, **self._options()}

    def _parts(self) -> Iterator[tuple[str, Any]]:
        yield from super()._parts()
        yield from self.hyperparameters.items()
        for number, values in enumerate(self._groups.values()):
            yield from ((f"groups.{number}.{name}", value) for name, value in (values or {}).items())

    def _given_options(self) -> dict[str, Any]:
        def group(values: Mapping[str, Any] | None) -> Any:
            return None if values is None else {name: plain(name, value) for name, value in values.items()}

        found = [[groups.plain(pattern), group(values)] for pattern, values in self._groups.items()]
        dtype = None if self.dtype is None else str(self.dtype)
        return {**super()._given_options(), "groups": found or None, "dtype": dtype}


def define(
    function: Callable[..., Any],
    name: str | None = None,
    *,
    elementwise: bool = True,
    average: Callable[..., Any] | None = None,
) -> type[RuleOptimizer]:
    """A new optimizer from its rule: a subclass of `RuleOptimizer`, its constructor taken from the rule's signature.

    The rule is traced into a kernel, which runs fused wherever the arrays live; with ``elementwise=False`` it is called
    on arrays instead, leaf by leaf, and may do anything that they can. See `oxigrad.rules` for what a rule looks like.
    ``average`` computes the average that ``averaged_parameters(model)`` gives, where no slot ``average`` holds it: a function
    ``(xp, p, ...)`` of the parameter and of those slots and hyperparameters that it names, such as
    `oxigrad.rules.schedule_free_average`. Raises `TypeError` where the signature is not that of a rule; what no kernel can do raises `RuleError` at once.

    >>> def sign_descent(xp, p, g, *, learning_rate=0.01):
    ...     return p - learning_rate * xp.sign(g)
    >>> SignDescent = define(sign_descent)
    >>> SignDescent(learning_rate=0.1)
    SignDescent(learning_rate=0.1)
    """
    read = rule.read(function, elementwise=elementwise, average=average)
    made = register(read, name, RuleOptimizer, OPTIONS)
    made().program  # noqa: B018 - traces the rule, so that it is refused here and not at the first step
    return made


def register(read: Rule, name: str | None, base: type, options: Mapping[str, Any] = {}) -> Any:
    """A subclass of ``base`` for a rule, known to `from_config` by its name; ``options`` are named in its signature."""
    title = name or "".join(part.capitalize() for part in read.name.split("_"))
    made = declare(read, title, base, options)
    REGISTRY[title] = made
    return made


def _has(array: Any, dtype: Any) -> bool:
    """Whether an array has a dtype, or the dtype of a name."""
    return dtype_name(array.dtype) == dtype if isinstance(dtype, str) else bool(array.dtype == dtype)
