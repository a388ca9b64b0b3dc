"""A step resolved for the tensors of an optimizer: their plan, the kernels, and the step count of each parameter.

It is reused while the same groups have the same tensors, which have the same state, the same parameters have gradients,
and the groups select the same rules. Anything else that changes (hyperparameters, numbers of steps in place, memory of
tensors) is read in each step, or checked by the core.
"""

import itertools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from oxigrad import _core
from oxigrad._core import StructureError
from oxigrad.ops.backends import resolved
from oxigrad.step.device.launches import DeviceSteps
from oxigrad.step.device.step_writes import StepWrites
from oxigrad.step.plan.announcements import Assignments
from oxigrad.step.plan.step_program import StepProgram
from oxigrad.step.writes import call_step
from oxigrad.torch.library import torch
from oxigrad.torch.state import conversion
from oxigrad.torch.step.plan import TensorPlace, TensorPlan, noise_step

# Steps are short: what they do for each tensor runs without a call of Python.
_CHAIN = itertools.chain.from_iterable
_PARAMS, _GRADIENT = operator.itemgetter("params"), operator.attrgetter("grad")
# The state of a parameter without one.
_NOTHING: dict[str, Any] = {}


def all_parameters(opt: Any) -> list[Any]:
    """The parameters of all groups."""
    return [*_CHAIN(map(_PARAMS, opt.param_groups))]


def lists_of(opt: Any) -> list[Any]:
    """The list of the groups, and those of their parameters."""
    return [opt.param_groups, *map(_PARAMS, opt.param_groups)]


def is_recorded(groups: Iterable[Mapping[str, Any]]) -> bool:
    """Whether PyTorch is to differentiate a step, or to record it in a graph of its own."""
    return any(group.get("differentiable") or group.get("capturable") for group in groups)


def values_of(groups: Sequence[Mapping[str, Any]]) -> "_core.Signature | None":
    """The keys and values of groups that have numbers and texts alone, which nothing changes in place; else None."""
    for group in groups:
        for key, value in group.items():
            for part in () if key in ("params", "param_names") else value if isinstance(value, tuple) else (value,):
                if not (part is None or isinstance(part, (int, float, str))):
                    return None
    return _core.Signature([], dict(enumerate(groups)))


def holds(values: "_core.Signature | None", groups: Sequence[Mapping[str, Any]]) -> bool:
    """Whether groups still have the keys and values of `values_of`."""
    return values is not None and values.holds([], dict(enumerate(groups)))


class TensorStep(StepProgram):
    """A step of the optimizer ``opt`` for the parameters that have gradients now; makes their state.

    With ``scaled``, gradients are those of the loss times a scale. With ``recorded``, autograd records the step. With
    ``places``, it is a step of these parameters alone; ``square`` is that of `TensorPlan`. Unless it is a ``part`` of a
    step, it is counted among those with random numbers.
    """

    plan: TensorPlan
    stepper: _core.Stepper

    def __init__(
        self,
        opt: Any,
        *,
        scaled: bool,
        recorded: bool = False,
        places: Sequence[TensorPlace] | None = None,
        square: Callable[[Any], float] | None = None,
        part: bool = False,
    ) -> None:
        self._recorded, self._is_part = recorded, part
        # The tensors that the step is of, and the numbers of their groups; None for all.
        self._of = None if places is None else [place.tensor for place in places]
        self._numbers = [*dict.fromkeys(place.group for place in places or ())]
        self._without = [p for p in all_parameters(opt) if p.grad is None] if places is None else []
        plan = TensorPlan(opt, scaled=scaled, recorded=recorded, places=places, square=square)
        super().__init__(plan, seed=0)
        self._written, self._complex = tuple(plan.tensors), [p for p in plan.tensors if p.is_complex()]
        self._devices = DeviceSteps(plan, {}) if plan.on_devices else None
        self._is_lazy = any(resolved(p.tensor.grad) is not p.tensor.grad for p in plan.host)
        self.stepper = _core.Stepper()
        self.stepper.count = plan.count
        seated = self._seat()
        self._is_simple = (
            plan.is_plain and not (self._is_lazy or self._elsewhere) and len(plan.host) == len(plan.parameters)
        )
        self.stepper.prepare(self.host_parameters(self._arrays(())[0], plan.slots))
        groups, lists, states = self._read(opt, scaled=scaled)
        self._values = values_of(groups)
        slots = [value for p in plan.parameters for _, value in conversion.slots_of(plan.groups[p.group], p.state)]
        viewed = [value for value in slots if isinstance(value, torch.Tensor) and conversion.memory(value) is not value]
        # The core, and kernels on devices, compare the memory of the other parameters and slots with the plan's.
        values = [value for p in plan.ruled for value in (p.tensor, *p.state.values())]
        parts = [part for value in values for part in conversion.parts_of(value) if isinstance(part, torch.Tensor)]
        self._signature = _core.Signature(lists, states, [*seated, *viewed, *parts], conversion.described)

    def _seat(self) -> list[Any]:
        """Puts the numbers of steps of all parameters into one tensor, of which those in the state are views."""
        counted = [p for p in self.plan.parameters if self.plan.groups[p.group].entry.counts]
        numbers = [float(self.plan.count - p.missed) for p in counted]
        counts = torch.tensor(numbers, dtype=conversion.number_dtype(), device="cpu")
        self._counted: Any = counts.numpy()
        # The numbers of steps of the optimizer that were none of each parameter.
        self._missed: Any = self.plan.count - self._counted
        # The parameters whose numbers of steps are on a device.
        self._elsewhere = [p for p in counted if p.state["step"].device.type != "cpu"]
        for p, seat in zip(counted, counts.unbind(), strict=True):
            if p.state["step"].device.type == "cpu":
                p.state["step"] = seat
        return [p.state["step"] for p in counted if p.state["step"].device.type == "cpu"]

    # --- steps --------------------------------------------------------------------------------------------------------

    def fits(self, opt: Any, *, scaled: bool) -> bool:
        """Whether the resolved step is valid, provided that the same parameters have gradients, which `take` checks."""
        groups, lists, states = self._read(opt, scaled=scaled)
        return self._signature.holds(lists, states) and (holds(self._values, groups) or self._has_rules_of(groups))

    def _read(self, opt: Any, *, scaled: bool) -> tuple[list[dict[str, Any]], list[Any], dict[Any, dict[str, Any]]]:
        """All that the step is resolved from: its groups, lists of objects, and the states of the parameters.

        The lists have the groups, the parameters, the gradients that are None, and facts.
        """
        groups, states, count = opt.param_groups, opt.state, self.stepper.count
        lists = [*map(_PARAMS, groups)] if self._of is None else [self._of]
        if self._of is not None:
            groups = [*map(groups.__getitem__, self._numbers)]
            states = dict(zip(self._of, map(states.get, self._of, itertools.repeat(_NOTHING)), strict=True))
        facts = [
            scaled,
            bool((self._counted == count - self._missed).all()),
            not self.plan.draws or count == noise_step(opt),
            any(map(torch.is_conj, self._complex)),
        ]
        return groups, [groups, *lists, [*map(_GRADIENT, self._without)], facts], states

    def _has_rules_of(self, groups: list[dict[str, Any]]) -> bool:
        """Whether groups that have changed still select the rules; their numbers are read anew."""
        if is_recorded(groups) or not all(group.is_current() for group in self.plan.groups):
            return False
        is_same = self.refresh()
        self._values = values_of(groups)  # once they are read, so that those which raise are read again
        return is_same

    def take(self, opt: Any, scale: float, loss: Any = None, marks: Assignments = ()) -> None:
        """Takes the step, with gradients of the ``loss`` times ``scale``, and makes ``marks`` with it."""
        if (misfit := self.attempt(opt, scale, loss, marks)) is not None:
            raise misfit

    def attempt(self, opt: Any, scale: float, loss: Any = None, marks: Assignments = ()) -> Exception | None:
        """As `take`; where the step no longer fits the tensors, the reason, with nothing written."""
        plan, core = self.plan, self.stepper
        if plan.mastered:
            opt.masters.follow(plan.mastered)
        self.seed: int = int(opt.param_groups[0].get("seed") or 0)
        self.fill(core.count, 1, 1.0 / scale, loss)
        # The numbers of steps are written with the rest, so that no interrupt comes between.
        counted = core.count + 1 - self._missed, self._counted
        if plan.draws and not self._is_part:
            marks = [*marks, (opt.param_groups[0], "noise_step", core.count + 1)]
        gradients = tuple(map(_GRADIENT, plan.tensors))
        if self._is_simple:
            written, writes = self._written, _core.Writes(copies=[counted], assignments=marks)
        else:
            if any(map(operator.is_, gradients, itertools.repeat(None))):
                return StructureError("a gradient is missing")
            leaves, read = self._arrays(gradients)
            writes = self._prepare_writes(leaves, read, counted, marks)
            if isinstance(writes, StructureError):
                return writes
            written, gradients = plan.pick(leaves), plan.pick(read)
        done = core.step(True, written, gradients, programs=self.programs, seed=self.seed, writes=writes)
        if isinstance(done, _core.Misfit):
            return done.error
        if plan.mastered:
            opt.masters.note(plan.mastered)
        return None

    def _arrays(self, gradients: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The parameters and gradients of the step as local, real tensors."""
        plan = self.plan
        leaves, read = plan.tensors, gradients
        if not plan.is_plain:
            leaves, read = map(plan.read, leaves), map(plan.read, read)
        return [*leaves], [*map(resolved, read)] if self._is_lazy else [*read]

    def _prepare_writes(
        self, leaves: list[Any], gradients: list[Any], counted: tuple[Any, Any], marks: Assignments
    ) -> _core.Writes | StructureError:
        """The writes of the step besides the core's update; for unsuitable memory on a device, the reason."""
        plan, writes = self.plan, StepWrites()
        with conversion.checking_overlap((p.text, p.tensor, p.state) for p in plan.parameters):
            if plan.ruled and not self._recorded:
                plan.refuse_shared(leaves, gradients, plan.slots)
            if self._devices is not None:
                others = self._devices.prepare(
                    self, leaves, gradients, plan.slots, writes, count=self.stepper.count, exposed=True
                )
                if others is None or others:
                    path = (others or plan.on_devices)[0].text
                    return StructureError(f"{path}: the memory of the parameter or of its state has changed")
        call_step(self, leaves, gradients, plan.slots, writes)
        writes.copies.append(counted)
        writes.assignments += marks
        if self._elsewhere:
            counts = [p.state["step"] for p in self._elsewhere]
            for held, count in zip(counts, torch._foreach_add(counts, 1.0), strict=True):
                writes.assign(held, count)
        return writes.frozen()
