"""Groups of parameters that share a rule and its hyperparameters."""

import copy
import dataclasses
import functools
import itertools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from oxigrad._core import RuleError, StateError
from oxigrad._names import path_name
from oxigrad.ops.backends import is_array
from oxigrad.rules import gradient_transforms
from oxigrad.rules.core import norms, rule
from oxigrad.rules.core.composition import compose
from oxigrad.rules.core.rule import Rule
from oxigrad.rules.core.slots import Formula
from oxigrad.step.arrays.precision import Precision
from oxigrad.step.parameters.decay import decay_factors, number_of
from oxigrad.step.parameters.hyperparameter import Hyperparameter, Version
from oxigrad.step.parameters.observed_scale import ObservedScale
from oxigrad.step.parameters.rule_executors import kernel_of
from oxigrad.step.parameters.rule_group import RuleGroup

if TYPE_CHECKING:
    from oxigrad import _core


_NORMS = {
    "gradient": rule.read(norms.gradient_norm, "gradient"),
    "update": rule.read(norms.update_norm, "after"),
    "parameter": rule.read(norms.parameter_norm, "after"),
}
_UNSCALE = rule.read(gradient_transforms.unscale, "gradient")
_FINITE = rule.read(gradient_transforms.finite, "gradient")
_ACCUMULATE = rule.read(gradient_transforms.accumulate, "gradient")


def _frozen(path: str, array: Any) -> None:
    """No group."""


def _unchecked(parameters: list[tuple[str, Any]]) -> None:
    """No patterns."""


@dataclasses.dataclass(frozen=True, eq=False)
class SteppingOptions:
    """The options of an optimizer that its steps read. The optimizer hands over others when one is set."""

    precision: Precision
    #: The treatment of rows that a sparse gradient lacks: "dense", "lazy" or "catch_up".
    sparse: str = "dense"
    #: The treatment of gradients with infinities or NaN: "propagate", "skip" or "raise".
    nonfinite: str = "propagate"
    #: Whether a step leaves zeros in the gradients.
    zero_gradients: bool = False
    #: The seed of the rule's noise.
    seed: int = 0
    #: The number of gradients whose mean each step uses.
    accumulate: int = 1
    loss_scale: ObservedScale | None = None
    #: The kinds of norms that a step records.
    record_norms: tuple[str, ...] = ()
    #: The versions of the settings that a plan depends on.
    versions: tuple[Version, ...] = ()
    #: The group of a parameter by key path and array; None for a frozen one.
    group_of: "Callable[[str, Any], ParameterGroup | None]" = _frozen
    #: Raises `StructureError` where a pattern matches none of the parameters, given as paths and arrays.
    check_patterns: Callable[[list[tuple[str, Any]]], None] = _unchecked

    @functools.cached_property
    def gradient_parts(self) -> tuple[Rule, ...]:
        """The transforms of gradients, by options, before the optimizer's own rule."""
        are_on = self.loss_scale is not None, self.nonfinite != "propagate", self.accumulate > 1
        return tuple(itertools.compress((_UNSCALE, _FINITE, _ACCUMULATE), are_on))

    @functools.cached_property
    def norm_parts(self) -> tuple[Rule, ...]:
        """The transforms that record norms."""
        return tuple(map(_NORMS.__getitem__, self.record_norms))

    @property
    def scale(self) -> float:
        """The factor of the loss, by which gradients are divided."""
        return self.loss_scale.value if self.loss_scale else 1.0


class ParameterGroup(RuleGroup):
    """The parameters of a model that one rule updates with the same hyperparameters.

    Args:
        name: name of the optimizer whose rule it is: in a partition, not the one that takes the steps.
        options: options of the optimizer that takes the steps.
        rule: the rule of that optimizer.
        declared: the declarations of its hyperparameters.
        values: their values, constants or schedules, which the optimizer may set.
        overrides: hyperparameters that differ from these.
        storage: name of the dtype of the parameters, where that is half precision.
    """

    def __init__(
        self,
        name: str,
        options: SteppingOptions,
        rule: Rule,
        declared: Mapping[str, Hyperparameter[Any, Any]],
        values: Mapping[str, Any],
        overrides: Mapping[str, Any],
        storage: str | None = None,
    ) -> None:
        self.name: str = name
        self._options, self._storage = options, storage
        self._rule, self._declared, self._common = rule, declared, values
        self._compose: Callable[..., Rule] = rule.remembering(_composed)
        self._overrides = overrides
        self._optional = rule.optional
        self._traced_flags: Mapping[str, Any] = {}
        self._around: Callable[[Rule], Rule] | None = None
        #: The dtypes of slots, and how parameters of half precision are rounded.
        self.precision: Precision = options.precision

    def on_arrays(self, flags: Mapping[str, Any], around: Callable[[Rule], Rule] | None) -> "ParameterGroup":
        """The group for a step that calls its rule on arrays, with traced numbers for ``flags``.

        The rule of the step is what ``around`` makes of the group's.
        """
        group = copy.copy(self)
        group._traced_flags, group._around = flags, around or _on_arrays
        return group

    def rule(self, holds: bool = False) -> Rule:
        """The rule; where gradients are accumulated and the step ``holds``, the parts of it before the update."""
        before, norms = self._options.gradient_parts, self._options.norm_parts
        composed = self._compose(self._rule, before, norms, holds and len(before), self.absent)
        composed = self.precision.around(composed, self._storage) if self._storage else composed
        return self._around(composed) if self._around else composed

    @property
    def checks(self) -> bool:
        """Whether gradients are checked for infinities and NaN."""
        return self._options.nonfinite != "propagate"

    @property
    def absent(self) -> tuple[str, ...]:
        """The optional slots that are absent under the current hyperparameters."""
        if not self._optional:
            return ()
        values, overrides, absent = self._common, self._overrides, list[str]()
        for slot, asks in self._optional:
            if not overrides.get(asks, values[asks]):
                absent.append(slot)
        return tuple(absent)

    def check_slots(self, path: str, slots: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """Raises `StateError` for slots of a state that are of another rule: ``new`` ones are missing, or some unknown.

        Optional slots may be new, and those that options add, whose names have a hyphen; these may be left over too.
        """
        names, optional = [slot.name for slot in self._rule.slots], dict(self._optional)
        missing = [name for name in new if name in names and name not in optional]
        unknown = [name for name in slots if name not in names and "-" not in name]
        if missing or unknown:
            raise StateError(
                f"{path_name(path)}: the state has the slots {', '.join(slots) or '(none)'}: expected "
                f"{', '.join(name for name in names if name not in self.absent) or 'none'}, as {self.name} has them"
            )

    @property
    def _values(self) -> dict[str, Any]:
        return {**self._common, **self._overrides}

    @property
    def text(self) -> str:
        """The hyperparameters as ``name=value`` pairs."""
        return ", ".join(f"{name}={value!r}" for name, value in self._values.items())

    @property
    def flags(self) -> dict[str, Any]:
        """The hyperparameters that the rule branches on."""
        return {**self._chosen(flags=True), **self._traced_flags}

    @property
    def numeric(self) -> dict[str, Any]:
        """The numeric hyperparameters: constants, and schedules as they are."""
        return self._chosen(flags=False)

    def _chosen(self, *, flags: bool) -> dict[str, Any]:
        """The hyperparameters that are flags, or the other ones."""
        chosen = {**self._common, **self._overrides}
        for name, declared in self._declared.items():
            if declared.is_flag is not flags:
                del chosen[name]
        return chosen

    def numbers(self, at: Any) -> dict[str, Any]:
        """The numeric hyperparameters at step ``at``, counted from 0: schedules are called."""
        numeric = self.numeric
        return {name: self.evaluate(name, v, at) if callable(v) else v for name, v in numeric.items()}

    def checked(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The ``values`` of its numeric hyperparameters in a pure step, validated; they may be variables.

        Raises `StateError` where one requires an optional slot that the optimizer does not keep.
        """
        if not values:
            return {}
        declared = self._declared
        checked = {name: declared[name].check_argument(value) for name, value in values.items() if name in declared}
        absent = self.absent
        for slot, asks in self._optional:
            if slot in absent and asks in checked and (is_array(checked[asks]) or checked[asks]):
                raise StateError(
                    f"{asks} is {checked[asks]!r}: {self.name} keeps no slot {slot}, since its own {asks} is "
                    f"{self.value(asks)!r}; construct it with another one"
                )
        return checked

    def evaluate(self, name: str, schedule: Any, at: Any) -> Any:
        """The value of the ``schedule`` of a hyperparameter at step ``at``; `ValueError` where that is out of range."""
        return self._declared[name].at(schedule, at)

    def interior(self, name: str) -> tuple[float, float]:
        """Two numbers between which all are values of a hyperparameter; NaN where there are none."""
        return self._declared[name].interior()

    def value(self, name: str) -> Any:
        """The value of a hyperparameter at the first step."""
        return self._declared[name].at(self._values[name], 0)

    def current(self, name: str, step: int) -> Any:
        """The value of a hyperparameter at a step, counted from 0; raises `AttributeError` for an unknown name."""
        if name not in self._declared:
            expected = ", ".join(self._declared)
            raise AttributeError(f"{self.name} has no hyperparameter {name}: expected one of {expected}")
        return self._declared[name].at(self._values[name], step)

    def program(self, rule: Rule) -> "_core.Program | None":
        """The kernel of ``rule`` with the present flags; None for a rule that is not elementwise."""
        return kernel_of(rule, self.flags, zero_gradients=self._options.zero_gradients, catches_up=self.catches_up)

    def traced(self, rule: Rule, **options: Any) -> "_core.Program | None":
        """As `program`, with the ``options`` of `trace`."""
        return kernel_of(rule, self.flags, **options)

    @property
    def takes_rows(self) -> bool:
        """Whether sparse gradients update the rows alone that they have."""
        return self._options.sparse != "dense"

    @property
    def catches_up(self) -> bool:
        """Whether the slots of rows catch up with the steps that skipped them."""
        return self._options.sparse == "catch_up" and self.rule().elementwise

    def decays(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The factors by which a zero gradient multiplies slots that catch up, from ``values`` of hyperparameters.

        Present values count, also for rows that were skipped under others. Raises `RuleError` with the name of a slot
        without a factor: an average of the parameter, say, or a momentum to which L2 weight decay adds.
        """
        if not self.catches_up:
            return {}
        rule = self.rule()
        constants = {
            name: values[name]
            for name, value in self._values.items()
            if not callable(value) and isinstance(values[name], (int, float, str, type(None)))
        }
        factors = decay_factors(rule, constants)
        if missing := [slot for slot in rule.slots if slot.name in factors and factors[slot.name] is None]:
            slot = missing[0]
            by, end = ("a factor", ", or a slot that declares its decay") if slot.decay is None else (slot.decay, "")
            by = "its decay" if isinstance(by, Formula) else by
            raise RuleError(
                f"the rule {rule.name}: rows cannot catch up, since a step with a zero gradient does not multiply the "
                "slot "
                f"{slot.name} by {by}; expected sparse='lazy' or 'dense'{end}"
            )
        return {name: number_of(factor, values) for name, factor in factors.items()}


def _on_arrays(rule: Rule) -> Rule:
    return dataclasses.replace(rule, elementwise=False)


def _composed(
    rule: Rule, before: tuple[Rule, ...], norms: tuple[Rule, ...], until: int, absent: tuple[str, ...]
) -> Rule:
    first, after = ([part for part in norms if (part.kind == "after") is is_after] for is_after in (False, True))
    composed = compose((*before, *first, rule, *after), until=until or None)
    return composed.without(absent) if composed.optional else composed
