"""The rules of a step as kernels with their scalars, for `oxigrad.optim`, `oxigrad.optax` and `oxigrad.torch`.

A constant hyperparameter is read once. A step fills in what differs from step to step: the number of the step, the
values of schedules, the number of accumulated gradients, the loss scale and the loss.
"""

import copy
import functools
import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oxigrad import _core
from oxigrad._core import ShapeError
from oxigrad.rules.core.rule import Rule
from oxigrad.rules.core.slots import Slot
from oxigrad.step.parameters.parameter import Parameter
from oxigrad.step.parameters.rule_group import RuleGroup
from oxigrad.step.parameters.slots import Slots
from oxigrad.step.plan.assignment import Assignment
from oxigrad.step.plan.programs import Programs, host_parameter, lay_out

_ABSENT, _PROGRAM, _SCALARS = map(operator.attrgetter, ("absent", "program", "scalars"))


class ResolvedGroup:
    """The rule of a group of parameters, its kernel and the scalars that it takes.

    ``scalars`` are in the order of ``rule.numbers``, of which the number of the step is the first: that of the
    optimizer, less those that the parameters ``missed``. With ``holds``, the rule is that of a step that only
    accumulates gradients. With ``scales_there``, the loss scale is kept on a device.
    """

    def __init__(self, group: RuleGroup, *, holds: bool = False, scales_there: bool = False, missed: int = 0) -> None:
        self._group = group
        self.missed = missed
        self._of_host = {"micro", "loss"} if scales_there else {"micro", "inverse_scale", "loss"}
        self.rule: Rule = group.rule(holds)
        self.program: _core.Program | None = group.program(self.rule)
        self.absent: tuple[str, ...] = group.absent
        #: Whether the slots of rows catch up, and whether results of half precision are rounded at random.
        self.catches_up: bool = group.catches_up
        self.stochastic: bool = group.precision.rounding == "stochastic"
        self._flags = group.flags
        #: The numbers of the step that was filled in, by name.
        self.now: dict[str, Any] = {}
        self._positions = dict(zip(self.rule.numbers, itertools.count(), strict=False))
        self.scalars: list[float] = [0.0] * len(self._positions)
        self._read()

    def _read(self) -> None:
        """Reads the numeric hyperparameters, but does not evaluate schedules."""
        self._numeric = self._group.numeric
        #: The schedules, as functions of the count of steps, each with its name and the interior of the interval of its
        #: values.
        self.schedules: list[tuple[str, Callable[..., object], float, float]] = []
        filled = ["step", "drawn_at", "micro", "inverse_scale", "loss"]
        for name, value in self._numeric.items():
            if callable(value):
                self.schedules.append((name, getattr(value, "_of_counts", value), *self._group.interior(name)))
                filled.append(name)
            elif name in self._positions:
                self.scalars[self._positions[name]] = float(value)
        #: The numbers of a step that are scalars of the kernel, with their positions.
        self.filled: list[tuple[str, int]] = []
        for name in filled:
            if name in self._positions:
                self.filled.append((name, self._positions[name]))
        #: Whether the rule reads the loss.
        self.reads_loss: bool = "loss" in self._positions
        #: Whether scalars other than the number of the step differ from step to step.
        self.varies: bool = bool(self.schedules or self._of_host & self._positions.keys())

    @property
    def scale_at(self) -> int | None:
        """The position of the reciprocal of the loss scale among the scalars, if it is one of them."""
        return self._positions.get("inverse_scale")

    def refresh(self) -> bool:
        """Reads hyperparameters again after they were set; False if they require another kernel or other slots."""
        if self._group.flags != self._flags or self._group.absent != self.absent:
            return False
        self._read()
        return True

    def checked(self, name: str, value: Any, step: int) -> Any:
        """The value of a schedule at a step as a number. Raises `ValueError` out of range, and `TypeError`."""
        return self._group.evaluate(name, lambda _: value, step)

    def values(self) -> dict[str, Any]:
        """The flags and numbers of the step that was filled in, by name."""
        return {**self._flags, **self._numeric, **self.now}


class StepProgram:
    """The groups of an assignment of parameters with their kernels and scalars, valid until a version changes.

    ``holds`` tells whether a step only accumulates gradients. ``seed`` seeds random numbers; by default, the
    options have it.
    """

    def __init__(self, plan: Assignment, *, seed: int | None = None, holds: bool = False) -> None:
        self._versions = plan.numbers()  # before the settings are read
        options, scale = plan.options, plan.options.loss_scale
        self.plan: Any = plan
        self.seed: int = options.seed if seed is None else seed
        self.holds: bool = holds
        #: Whether the loss scale is kept on the device of all parameters, whose kernels check the gradients.
        self.scales_there: bool = (
            scale is not None
            and scale._of_kernel() is not None
            and options.nonfinite == "skip"
            and options.accumulate == 1
            and len(plan.on_devices) == len(plan.parameters)
        )
        self.groups: list[ResolvedGroup] = []
        for group, missed in zip(plan.groups, plan.missed, strict=True):
            self.groups.append(ResolvedGroup(group, holds=holds, scales_there=self.scales_there, missed=missed))
        self.absent: list[tuple[str, ...]] = [*map(_ABSENT, self.groups)]
        programs, layout = lay_out(
            zip(map(_PROGRAM, self.groups), itertools.count(), strict=False), [*map(_SCALARS, self.groups)].__getitem__
        )
        #: All programs, and for each group the index of its program and of its set of scalars.
        self.programs_of_all: Programs = programs
        self.layout: list[tuple[int, int]] = layout
        #: The programs of the parameters that the core updates.
        self.programs: Programs = self.programs_of_all if plan.host else []
        #: The positions of the reciprocal of the loss scale among the scalars of programs that read it on the device.
        self.scales_at: dict[int, int] = {}
        #: The name of a rule that reads the loss, if there is one, and the loss of the step that was filled in.
        self.reads_loss: str | None = None
        self.loss: float | None = None
        for group, (program, _) in zip(self.groups, layout, strict=True):
            if self.scales_there and group.scale_at is not None:
                self.scales_at[program] = group.scale_at
            if group.reads_loss and self.reads_loss is None:
                self.reads_loss = group.rule.name
        if self.reads_loss is not None and options.accumulate > 1:
            raise refused_accumulation(self.reads_loss, options.accumulate)
        #: The steps of some of its parameters alone, by their positions.
        self.parts: dict[tuple[int, ...], StepProgram] = {}
        #: The stepper of a part, once it is prepared: it counts nothing.
        self.core: _core.Stepper | None = None
        self.observes: bool = scale is not None
        #: Whether a step leaves zeros in the gradients, and whether gradients with infinities or NaN raise an error.
        self.zeroes: bool = options.zero_gradients
        self.raises: bool = options.nonfinite == "raise"
        #: Whether the step updates rows of parameters.
        self.touches: bool = options.sparse != "dense"
        #: Whether the core does the whole step in place.
        self.is_in_place: bool = not (
            plan.ruled or plan.on_devices or plan.copied or self.touches or (self.zeroes and plan.tied)
        )
        self._note_constant()

    def part(self, key: tuple[int, ...], parameters: Sequence[Parameter]) -> "StepProgram":
        """The step of some of its ``parameters``, with its kernels, numbers and noise; none of them is on a device.

        ``key`` are their positions.
        """
        if (part := self.parts.get(key)) is None:
            if len(self.parts) > 2 * len(self.plan.parameters):
                self.parts.clear()
            part = copy.copy(self)
            part.plan, part.parts = self.plan.part(parameters), {}
            part.programs = part.programs_of_all if part.plan.host else []
            self.parts[key] = part
        return part

    def is_current(self) -> bool:
        """Whether all settings that this was resolved from are unchanged."""
        for version, number in self._versions:  # noqa: SIM110 - each step comes here, and a generator takes longer
            if version.number != number:
                return False
        return True

    @functools.cached_property
    def is_divisible(self) -> bool:
        """Whether parts of the step have its bits, taken one by one once values over all parameters are measured."""
        plan = self.plan
        is_measurable = not plan.ruled and all(p.unit and not p.is_guarded for p, _ in self.programs)
        is_whole = (plan.needs_all and not is_measurable) or plan.on_devices or plan.tied or plan.idle
        return self.is_in_place and not (is_whole or self.observes or self.raises or self.zeroes)

    @property
    def inverse_scale(self) -> float:
        """The reciprocal of the loss scale as far as the host fills it in."""
        return 1.0 if self.scales_there else 1.0 / self.plan.options.scale

    def host_parameters(self, leaves: Sequence[Any], slots: Mapping[str, Slots]) -> list[_core.HostParameter]:
        """The parameters that the core updates in place, with the memory of their slots."""
        prepared = []
        for p in self.plan.host:
            memory = slots[p.text]
            values = [(slot, memory.of_core(slot)) for slot in self.groups[p.group].rule.slots]
            prepared.append(self.host_parameter(p, leaves[p.index], values, first=p.first))
        return prepared

    def host_parameter(
        self, p: Parameter, array: Any, values: Sequence[tuple[Slot, Any]], *, first: int
    ) -> _core.HostParameter:
        """A parameter's elements from ``first`` on in an array, with the values of its slots, as the core needs."""
        group = self.groups[p.group]
        return host_parameter(
            p.text,
            p.position,
            array,
            values,
            self.layout[p.group],
            catches_up=group.catches_up,
            stochastic=group.stochastic,
            first=first,
            whole=p.whole,
        )

    def _note_constant(self) -> None:
        #: The sets of scalars of which only the first, the number of the step, differs from step to step.
        self.constant: list[list[float]] = []
        #: Those of them whose parameters missed steps, with the number of these.
        self.late: list[tuple[list[float], int]] = []
        for group in self.groups:
            if not group.varies:
                self.constant.append(group.scalars)
                if group.missed:
                    self.late.append((group.scalars, group.missed))
        #: Whether the host computes numbers that differ from step to step, besides that of the step.
        self.varies_on_host: bool = len(self.constant) < len(self.groups)
        self.varies: bool = self.varies_on_host or not self.is_in_place

    def refresh(self) -> bool:
        """Reads hyperparameters that were set; False if other settings have changed, or another kernel is required."""
        versions = self.plan.numbers()
        if not (self.plan.is_current() and all(group.refresh() for group in self.groups)):
            return False
        self._versions = versions
        self._note_constant()
        return True

    def fill(self, step: int, micro: int, inverse_scale: float, loss: Any = None) -> None:
        """Evaluates the schedules for the step after ``step`` ones, and fills in its numbers.

        The ``loss`` is read where a rule does, which waits for the device that it is on.
        """
        if self.reads_loss is not None:
            self.loss = float(checked_loss(loss, self.reads_loss))
        for group in self.groups:
            number = step + 1
            now = {"step": number - group.missed, "drawn_at": number, "micro": micro, "inverse_scale": inverse_scale}
            if group.reads_loss:
                now["loss"] = self.loss
            for name, schedule, low, high in group.schedules:
                value = schedule(step)
                is_inside = type(value) is float and low < value < high
                now[name] = value if is_inside else group.checked(name, value, step)
            group.now, scalars = now, group.scalars
            for name, at in group.filled:
                scalars[at] = float(now[name])


def checked_loss(loss: Any, name: str) -> Any:
    """The loss that the rule of this name reads. Raises `TypeError` for no real number, and `ShapeError` for axes."""
    if loss is None:
        raise TypeError(
            f"the rule {name} reads the loss, which the step was not given: expected loss=... (in oxigrad.optax "
            "value=...), or a step that computes it, "
            "as by minimize or a closure"
        )
    if shape := tuple(getattr(loss, "shape", ())):
        raise ShapeError(f"the loss, which the rule {name} reads, has shape {shape}: expected a number")
    if not hasattr(loss, "__float__"):
        raise TypeError(f"the loss, which the rule {name} reads, is {loss!r}: expected a number")
    return loss


def refused_accumulation(name: str, accumulate: int) -> ValueError:
    """The error of an optimizer that accumulates gradients for the rule of this name, which reads the loss."""
    return ValueError(f"accumulate is {accumulate}: expected 1, since the rule {name} reads the loss of one gradient")
