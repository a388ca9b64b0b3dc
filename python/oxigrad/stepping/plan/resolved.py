"""A plan resolved to kernels and their scalars, reused in each step until a version changes."""

import copy
from collections.abc import Sequence

from oxigrad import _core
from oxigrad.stepping.parameters.parameter import Parameter
from oxigrad.stepping.plan.plan import Plan
from oxigrad.stepping.plan.step_program import StepProgram, refused_accumulation


class ResolvedStep(StepProgram):
    """A plan with its groups resolved, for steps of an optimizer that hold gradients back (``holds``) or do not."""

    # The base class reads it, and never assigns another.
    plan: Plan  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self, plan: Plan, *, holds: bool) -> None:
        self._versions = plan.numbers()  # before the settings are read
        options, scale = plan.options, plan.options.loss_scale
        # Whether the loss scale is kept on the device of all parameters, whose kernels check the gradients.
        scales_there = (
            scale is not None
            and scale._of_kernel() is not None
            and options.nonfinite == "skip"
            and options.accumulate == 1
            and len(plan.on_devices) == len(plan.parameters)
        )
        super().__init__(plan, seed=options.seed, holds=holds, scales_there=scales_there)
        if self.reads_loss is not None and options.accumulate > 1:
            raise refused_accumulation(self.reads_loss, options.accumulate)
        #: The steps of some of its parameters alone, by their positions.
        self.parts: dict[tuple[int, ...], ResolvedStep] = {}
        #: The stepper of a part, once it is prepared: it counts nothing; and whether slots of its rows catch up.
        self.core: _core.Stepper | None = None
        self.catches_up: bool = False
        self.observes: bool = scale is not None
        self.zeroes: bool = options.zero_gradients
        self.raises: bool = options.nonfinite == "raise"
        #: Whether the core does the whole step in place, for gradients without sparse rows.
        self.is_in_place: bool = not (plan.ruled or plan.on_devices or plan.copied or (self.zeroes and plan.tied))
        self.varies: bool = self.varies_on_host or not self.is_in_place

    def part(self, key: tuple[int, ...], parameters: Sequence[Parameter]) -> "ResolvedStep":
        """The step of some of its ``parameters``, with its kernels, numbers and noise; none of them is on a device.

        ``key`` are their positions.
        """
        if (part := self.parts.get(key)) is None:
            if len(self.parts) > 2 * len(self.plan.parameters):
                self.parts.clear()
            part = copy.copy(self)
            part.plan, part.parts = self.plan.part(parameters), {}
            part.programs = part.programs_of_all if part.plan.host else []
            part.catches_up = any(part.plan.groups[p.group].catches_up for p in part.plan.host)
            self.parts[key] = part
        return part

    def is_current(self) -> bool:
        """Whether all settings that this was resolved from are unchanged."""
        for version, number in self._versions:  # noqa: SIM110 - each step comes here, and a generator takes longer
            if version.number != number:
                return False
        return True

    def refresh(self) -> bool:
        """Reads hyperparameters that were set; False if other settings have changed, or another kernel is required."""
        versions = self.plan.numbers()
        if not (self.plan.is_current() and super().refresh()):
            return False
        self._versions = versions
        self.varies = self.varies_on_host or not self.is_in_place
        return True
