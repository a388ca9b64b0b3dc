"""A plan resolved to kernels and their scalars, reused in each step until a version changes.

A constant hyperparameter is read once, here. A step fills in what differs from step to step: the number of the step, the values of
schedules, the number of accumulated gradients and the loss scale.
"""

from typing import TYPE_CHECKING, Any

from oxigrad.stepping.parameters.parameter_group import ParameterGroup
from oxigrad.stepping.plan.plan import Plan
from oxigrad.stepping.plan.programs import ProgramTable
from oxigrad.stepping.protocols import SteppingOptimizer

if TYPE_CHECKING:
    from oxigrad import _core

# The programs of a step, each with its sets of scalars.
Programs = list[tuple["_core.Program", list[list[float]]]]


class ResolvedGroup:
    """The rule of a group of parameters, its kernel and the scalars that it takes.

    ``scalars`` are in the order of ``rule.numbers``, of which the number of the step is the first: that of the optimizer, less those
    that the parameters ``missed``. With ``holds``, the rule is that of a step that only accumulates gradients. With
    ``scales_there``, the loss scale is kept on a device.
    """

    def __init__(
        self, group: ParameterGroup, *, holds: bool = False, scales_there: bool = False, missed: int = 0
    ) -> None:
        self._group = group
        self.missed = missed
        self._of_host = {"micro"} if scales_there else {"micro", "inverse_scale"}
        self.rule = group.rule(holds)
        self.program = group.program(self.rule)
        self.absent = group.absent
        self._flags = group.flags
        #: The numbers of the step that was filled in, by name.
        self.now: dict[str, Any] = {}
        self._positions = {name: at for at, name in enumerate(self.rule.numbers)}
        self.scalars = [0.0] * len(self._positions)
        self._read()

    def _read(self) -> None:
        """Reads the numeric hyperparameters, but does not evaluate schedules."""
        self._numeric = self._group.numeric
        #: The schedules, each with its name and the interior of the interval of its values.
        self.schedules = [
            (name, value, *self._group.interior(name)) for name, value in self._numeric.items() if callable(value)
        ]
        names = ("step", "drawn_at", "micro", "inverse_scale", *(name for name, *_ in self.schedules))
        #: The numbers of a step that are scalars of the kernel, with their positions.
        self.filled = [(name, self._positions[name]) for name in names if name in self._positions]
        for name, value in self._numeric.items():
            if not callable(value) and (at := self._positions.get(name)) is not None:
                self.scalars[at] = float(value)
        #: Whether scalars other than the number of the step differ from step to step.
        self.varies = bool(self.schedules or self._of_host & self._positions.keys())

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
        """The value of a schedule at a step as a number; `ValueError` where that is out of range, `TypeError` for no number."""
        return self._group.evaluate(name, lambda _: value, step)

    def values(self) -> dict[str, Any]:
        """The flags and numbers of the step that was filled in, by name."""
        return {**self._flags, **self._numeric, **self.now}


class ResolvedStep:
    """A plan with its groups resolved, for steps of an optimizer that hold gradients back (``holds``) or do not."""

    def __init__(self, plan: Plan, owner: SteppingOptimizer, *, holds: bool) -> None:
        self._versions = plan.numbers()  # before the settings are read
        self.plan = plan
        self.holds = holds
        scale = owner.loss_scale
        #: Whether the loss scale is kept on the device of all parameters, whose kernels check the gradients.
        self.scales_there = (
            scale is not None
            and scale._of_kernel() is not None
            and owner.nonfinite == "skip"
            and owner.accumulate == 1
            and len(plan.on_devices) == len(plan.parameters)
        )
        self.groups = [
            ResolvedGroup(group, holds=holds, scales_there=self.scales_there, missed=missed)
            for group, missed in zip(plan.groups, plan.missed, strict=True)
        ]
        self.absent = [group.absent for group in self.groups]
        programs, self.layout = lay_out(self.groups)
        self.programs = programs if plan.host else []
        self.programs_of_all = programs
        scaled = zip(self.groups, self.layout, strict=True) if self.scales_there else ()
        #: The positions of the reciprocal of the loss scale among the scalars of programs that read it on the device.
        self.scales_at = {program: group.scale_at for group, (program, _) in scaled if group.scale_at is not None}
        self.seed = owner.seed
        self.observes = owner.loss_scale is not None
        self.zeroes = owner.zero_gradients
        self.raises = owner.nonfinite == "raise"
        #: Whether the core does the whole step in place, for gradients without sparse rows.
        self.is_in_place = not (plan.ruled or plan.on_devices or plan.copied or (self.zeroes and plan.is_tied))
        self._note_constant()

    def _note_constant(self) -> None:
        #: The sets of scalars of which only the first, the number of the step, differs from step to step.
        self.constant = [group.scalars for group in self.groups if not group.varies]
        #: Those of them whose parameters missed steps, with the number of these.
        self.late = [(group.scalars, group.missed) for group in self.groups if group.missed and not group.varies]
        #: Whether the host computes numbers that differ from step to step, besides that of the step.
        self.varies_on_host = len(self.constant) < len(self.groups)
        self.varies = len(self.constant) < len(self.groups) or not self.is_in_place

    def is_current(self) -> bool:
        """Whether all settings that this was resolved from are unchanged."""
        for version, number in self._versions:  # noqa: SIM110 - each step comes here, and a generator takes longer
            if version.number != number:
                return False
        return True

    def refresh(self) -> bool:
        """Reads hyperparameters that were set; False if other settings have changed, or another kernel is required."""
        versions = self.plan.numbers()
        if not (self.plan.is_current() and all(group.refresh() for group in self.groups)):
            return False
        self._note_constant()
        self._versions = versions
        return True

    def fill(self, step: int, micro: int, inverse_scale: float) -> None:
        """Evaluates the schedules for the step after ``step`` ones, and fills in its numbers."""
        for group in self.groups:
            number = step + 1
            now = {"step": number - group.missed, "drawn_at": number, "micro": micro, "inverse_scale": inverse_scale}
            for name, schedule, low, high in group.schedules:
                value = schedule(step)
                is_inside = type(value) is float and low < value < high
                now[name] = value if is_inside else group.checked(name, value, step)
            group.now, scalars = now, group.scalars
            for name, at in group.filled:
                scalars[at] = float(now[name])


def lay_out(groups: list[ResolvedGroup]) -> tuple[Programs, list[tuple[int, int]]]:
    """The distinct programs with their sets of scalars, and for each group the index of its program and of its set."""
    table: ProgramTable[list[float]] = ProgramTable()
    layout = [
        (0, 0) if group.program is None else table.place(group.program, number, lambda group=group: group.scalars)
        for number, group in enumerate(groups)
    ]
    return table.programs, layout
