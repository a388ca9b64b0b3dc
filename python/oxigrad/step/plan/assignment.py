"""The groups of hyperparameters and the executors of the parameters of a step."""

import copy
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from oxigrad.ops.backends import is_one_device
from oxigrad.ops.core.aliasing import Named, refuse_overlapping
from oxigrad.rules.core.rule import Rule
from oxigrad.step.arrays.precision import Precision
from oxigrad.step.arrays.sparse_rows import SparseRows
from oxigrad.step.parameters.device_kernels import is_permuted
from oxigrad.step.parameters.executor import COPY, DEVICE, RULE_INTO, Executor, executor_of
from oxigrad.step.parameters.hyperparameter import Version
from oxigrad.step.parameters.parameter import Parameter
from oxigrad.step.parameters.parameter_group import SteppingOptions
from oxigrad.step.parameters.rule_executors import check_totals
from oxigrad.step.parameters.rule_group import RuleGroup
from oxigrad.step.parameters.slots import Slots, arrays_of
from oxigrad.step.slice import Gather

_SUPPLIED, _NUMBER = operator.attrgetter("supplied"), operator.attrgetter("number")
_INDEX, _STRUCTURE = operator.attrgetter("index"), operator.attrgetter("structure")


class Assignment:
    """Parameters, each with its group of hyperparameters and its executor.

    ``missed`` are for each of the ``groups`` the number of steps that did not update its parameters. Arrays of a step
    are given in lists, at the ``index`` of their parameter.
    """

    #: The reason why a graph cannot capture the step; empty where it can.
    uncaptured = ""
    #: The options of the steps, as they were when it was made.
    options: SteppingOptions = SteppingOptions(Precision())

    def __init__(self) -> None:
        self.parameters: list[Any] = []
        self.groups: list[Any] = []
        #: The rules of the groups, as they were when it was made.
        self.rules: list[Rule] = []
        self.missed: list[int] = []
        #: For slices of parameters, the function that gathers bytes of all workers.
        self.gather: Gather | None = None
        #: The versions of the settings that it was made from.
        self.versions: list[Version] = []
        self._structures: list[int] = []

    def group_number(self, group: RuleGroup, missed: int) -> int:
        """The number of a group whose parameters ``missed`` steps; adds it where it is new."""
        pairs = [*zip(self.groups, self.missed, strict=True)]
        if (group, missed) not in pairs:
            pairs.append((group, missed))
            self.groups.append(group)
            self.rules.append(group.rule())
            self.missed.append(missed)
        return pairs.index((group, missed))

    def unite(self, arrays: Sequence[Any]) -> None:
        """Assigns rules on arrays to all parameters where they compute a value over all, and one executor cannot.

        Sorts the parameters by executor.
        """
        if len(self.rules) > 1:
            check_totals([(p.text, self.rules[p.group]) for p in self.parameters])
        supplied = set[str]().union(*map(_SUPPLIED, self.rules))
        #: Whether a value over all parameters is computed, for which they need one executor.
        self.needs_all: bool = not supplied.isdisjoint(("total", "guard"))
        if self.needs_all and self._is_divided(arrays, has_total="total" in supplied):
            for p in self.parameters:
                p.executor = self.on_arrays(arrays[p.index])
        self._count = len(arrays)
        self._sort()

    def _is_divided(self, arrays: Sequence[Any], *, has_total: bool) -> bool:
        """Whether no single executor computes a value over all parameters."""
        executors = {p.executor for p in self.parameters}
        if has_total and any(e.calls_rule for e in executors):
            return True
        return DEVICE in executors and (
            len(executors) > 1 or not is_one_device(arrays[p.index] for p in self.parameters)
        )

    def _sort(self) -> None:
        """Sorts the parameters by their executors, and by what these do."""
        self.host: list[Any] = []
        self.on_devices: list[Any] = []
        self.ruled: list[Any] = []
        self.replaced: list[Any] = []
        self.copied: list[Any] = []
        self.into: list[Any] = []
        #: The parameters that are at several key paths.
        self.tied: list[Any] = []
        for p in self.parameters:
            executor = p.executor
            for parameters, has_it in (
                (self.host, executor.is_core),
                (self.on_devices, executor is DEVICE),
                (self.ruled, executor.calls_rule and not p.is_elsewhere),
                (self.replaced, executor.replaces),
                (self.copied, executor is COPY),
                (self.into, executor is RULE_INTO),
                (self.tied, p.tied),
            ):
                if has_it:
                    parameters.append(p)
        self.pick: Callable[[list[Any]], tuple[Any, ...]] = picker([*map(_INDEX, self.host)], self._count)

    def part(self, parameters: Sequence[Parameter]) -> Self:
        """The same plan for some of its parameters, with the positions that they have in the whole."""
        part, chosen = copy.copy(self), {p.position for p in parameters}
        part.parameters = [p for p in self.parameters if p.position in chosen]
        part._sort()
        return part

    def is_current(self) -> bool:
        """Whether options and groups of hyperparameters are unchanged since it was made."""
        return self._structures == [*map(_STRUCTURE, self.versions)]

    def numbers(self) -> list[tuple[Version, int]]:
        """The versions of all settings that a resolved step depends on, each with its present number."""
        return [*zip(self.versions, map(_NUMBER, self.versions), strict=True)]

    def gather_terms(self) -> Gather | None:
        """The function that gathers the terms of values over all parameters whose rules workers call."""
        return self.gather if self.needs_all and any(p.executor.calls_rule for p in self.parameters) else None

    def on_arrays(self, array: Any) -> Executor:
        """The executor of a parameter whose rule is called on arrays."""
        return executor_of(array, elementwise=False)

    def is_of(self, p: Parameter, array: Any) -> bool:
        """Whether an array on a device is as the plan has the parameter."""
        return is_permuted(array) is p.is_permuted

    def reads_on_devices(self, gradients: Sequence[Any]) -> bool:
        """Whether the plan is for gradients like these on devices; raises for those that no other check finds."""
        return True

    def unrecorded(self, gradients: list[Any], ruled: Sequence[Parameter]) -> list[Any]:
        """The gradients, as rules are called on them for the ``ruled`` parameters."""
        return gradients

    def refuse_shared(
        self,
        leaves: Sequence[Any],
        gradients: Sequence[Any],
        slots: Mapping[str, Slots],
        zeroed: Sequence[Any] = (),
    ) -> None:
        """Raises `AliasError` for arrays of a step that share memory which is written.

        Gradients that are ``zeroed`` are written too, and an array may share memory with itself.
        """
        named: list[Named] = []
        read: dict[int, Named] = {}
        for p in self.parameters:
            g, of_parameter = gradients[p.index], slots[p.text]
            named.append((p.text, leaves[p.index], not p.executor.replaces))
            is_overwritten = p.executor.is_core or of_parameter.are_overwritten
            named += [(f"a slot of {p.text}", part, is_overwritten) for part in arrays_of(of_parameter)]
            read[id(g)] = f"the gradient of {p.text}", g.values if isinstance(g, SparseRows) else g, False
        for g in zeroed:
            read[id(g)] = "a gradient that zero_gradients is to zero", g, True
        refuse_overlapping([*named, *read.values()])


def picker(indices: Sequence[int], count: int) -> Callable[[list[Any]], tuple[Any, ...]]:
    """A function that picks the items at ``indices`` of a list of ``count``."""
    if list(indices) == list(range(count)):
        return tuple
    if len(indices) > 1:
        return operator.itemgetter(*indices)
    return lambda items: (items[indices[0]],) if indices else ()
