"""Plans of an optimizer for its models, with slots, counts and the presence of parameters."""

import copy
import functools
from collections.abc import Mapping
from typing import Any, Self

from oxigrad import _core, tree
from oxigrad._core import StateError
from oxigrad.stepping.arrays.alignment import AlignedGradients, align, check_order
from oxigrad.stepping.device.launches import DeviceSteps
from oxigrad.stepping.device.step_counts import StepCounts
from oxigrad.stepping.parameters.parameter_group import ParameterGroup, SteppingOptions
from oxigrad.stepping.parameters.presence import Changes, ParticipationLog, accumulated
from oxigrad.stepping.plan.plan import Plan
from oxigrad.stepping.plan.resolved import ResolvedStep
from oxigrad.stepping.plan.slices import Slices
from oxigrad.stepping.slots.changed_parameters import changes_of
from oxigrad.stepping.slots.table import SlotTable
from oxigrad.stepping.slots.view import ParameterSlots
from oxigrad.stepping.state.state_dict import PendingState, copied_slots


class Planner:
    """The slots of an optimizer, the number of steps taken, and the plan for the model of the last one.

    ``options`` are those of the optimizer that holds it.
    """

    presence: ParticipationLog

    def __init__(self, options: SteppingOptions) -> None:
        #: The options of its steps, which the optimizer replaces when one is set.
        self.options: SteppingOptions = options
        self._core = _core.Stepper(private_slots=True)
        self.counts: StepCounts = StepCounts(options.loss_scale, self._core)
        self._plan: Plan | None = None
        # The plan resolved for steps that hold gradients back, and for those that do not.
        self._resolved: dict[bool, ResolvedStep] = {}
        self._accumulate = 1
        # The layout passed to the core: the program and set of scalars of each group, and the slots that groups lack.
        self._layout: list[tuple[int, int]] = []
        self._absent: list[tuple[str, ...]] = []
        self._process = _core.forks()
        self._table = SlotTable(self._core)
        self.presence = ParticipationLog()
        #: Matches slots that were loaded in advance to the parameters of the first model; None afterwards.
        self.fitting: PendingState | None = None
        self._devices: DeviceSteps | None = None
        #: The slices that the model of a step has in place of parameters.
        self.slices: Slices | None = None
        #: The parameters that averages replace, by key path, while these are swapped in; otherwise None.
        self.swapped: dict[str, Any] | None = None
        # The parameters that had no gradient since the last step, the one under way included.
        self._without: set[str] = set()

    def set_options(self, options: SteppingOptions) -> None:
        """Takes steps by other options from now on."""
        self.options, self.counts.loss_scale = options, options.loss_scale

    @property
    def slots(self) -> Mapping[str, ParameterSlots]:
        """The slots of each parameter, by key path and name, for users to read and assign."""
        self._core.expose()
        return self._table.by_path

    @property
    def own_slots(self) -> Mapping[str, ParameterSlots]:
        """As `slots`, for readers that give no array to the user."""
        return self._table.by_path

    @slots.setter
    def slots(self, slots: Mapping[str, Mapping[str, Any]]) -> None:
        self._table.replace(slots)

    @property
    def micro(self) -> int:
        """The number of gradients accumulated since the last step."""
        return self._core.micro

    @property
    def progress(self) -> tuple[int, int, int]:
        """The numbers of steps, accumulated gradients and skipped steps, as the host knows them."""
        return self._core.count, self._core.micro, self.counts._skipped

    def resumed(
        self,
        counts: Mapping[str, int],
        slots: Mapping[str, Any],
        fitting: PendingState | None,
        presence: Mapping[str, Any],
    ) -> Self:
        """A stepper of the same optimizer with other counts and slots, and the ``presence`` of parameters."""
        stepper = type(self)(self.options)
        stepper._core.count, stepper._core.micro, stepper.counts.skipped = (
            counts["step"],
            counts["micro"],
            counts["skipped"],
        )
        stepper.slots, stepper.fitting = slots, fitting
        stepper.presence = ParticipationLog.of(presence)
        return stepper

    def copied(self, options: SteppingOptions | None = None, kind: Any = None) -> Any:
        """The stepper of a copy of its optimizer, with its counts and copies of its slots; ``kind`` is its class."""
        stepper = (kind or type(self))(options or self.options)
        stepper._core.count, stepper._core.micro = self.counts.taken, self.micro
        stepper.counts.skipped = self.counts.skipped
        stepper.slots, stepper.fitting = copied_slots(self._table.by_path), self.fitting
        stepper.presence = ParticipationLog.of(self.presence.state(self.counts.taken, self._table.by_path))
        stepper.swapped = self.swapped
        return stepper

    def refuse_swapped(self) -> None:
        """Raises `StateError` while the averages are in the place of the parameters."""
        if self.swapped is not None:
            raise StateError("the averages are swapped in: swap_out brings the parameters back")

    @property
    def plan(self) -> Plan | None:
        """The plan of the last step, if it is known."""
        return self._plan

    def group_of(self, path: str) -> ParameterGroup:
        """The group of a parameter of the last model; raises `KeyError` where there is none."""
        plan = self._plan
        group = next((plan.groups[p.group] for p in plan.parameters if p.text == path), None) if plan else None
        if group is None:
            raise KeyError(
                f"{path}: no parameter that is updated: expected one of "
                f"{', '.join(self._table.by_path) or 'a built model'}"
            )
        return group

    def build(self, model: Any) -> None:
        """Makes the slots for a new model."""
        plan, leaves = self.planned(model)
        if plan is not self._plan:
            self._enter(ResolvedStep(plan, holds=False), leaves)

    def planned(self, model: Any) -> tuple[Plan, list[Any]]:
        """The plan for a model, and its leaves."""
        self._check_plan()
        if self._plan is not None and (leaves := self._plan.leaves(model)) is not None:
            return self._plan, self._plan.detach(leaves)
        leaves, structure = tree.flatten(model)
        return self._new_plan(leaves, structure, None)

    def _planned_step(self, model: Any, grads: Any) -> tuple[Plan, list[Any], list[Any]]:
        """The plan for a step of a model, its leaves, and their gradients, which it holds if ``grads`` is None."""
        self._check_plan()
        if (
            self._plan is not None
            and not (self._plan.idle and self.options.accumulate > 1)
            and (leaves := self._plan.leaves(model)) is not None
            and (gradients := self._plan.gradients_of_step(leaves, grads)) is not None
        ):
            return self._plan, self._plan.detach(leaves), gradients
        leaves, structure = tree.flatten(model)
        aligned = (
            align(structure, grads)
            if grads is not None
            else AlignedGradients(structure.gradients(leaves) or [], [], False)
        )
        check_order(structure, leaves, aligned)
        if self.options.accumulate > 1:
            is_last = not self._holds(grads)
            self._without = accumulated(
                structure, leaves, aligned.leaves, self.presence.without, first=not self.micro, last=is_last
            )
        present = None if aligned.is_complete else aligned.present()
        plan, leaves = self._new_plan(leaves, structure, present, holds_own=grads is None)
        return plan, leaves, plan.gradients_of_leaves(aligned)

    def _holds(self, grads: Any) -> bool:
        """Whether gradients are only accumulated in this step; means that are `AlignedGradients` back are taken."""
        return self.micro + 1 < self.options.accumulate and not isinstance(grads, AlignedGradients)

    def _check_plan(self) -> None:
        """Drops a plan that other settings, or a fork, have made invalid."""
        if self._plan is not None and not (self._plan.is_current() and self._process == _core.forks()):
            self._forget()

    def _new_plan(
        self, leaves: list[Any], structure: _core.Structure, present: bytes | None, *, holds_own: bool = False
    ) -> tuple[Plan, list[Any]]:
        """The plan for a new model, and its leaves. ``present`` and ``holds_own`` are those of `Plan`."""
        if self.presence.is_counting:
            self.presence.settle(self.counts.taken)
        # Known counts wait for no device where every parameter has slots.
        count = (
            self.counts.taken
            if self._table.by_path and self.presence.were_inactive | self.presence.orphans
            else self._core.count
        )

        def planned() -> Plan:
            missed = functools.partial(self.presence.missed_by, with_slots=self._table.by_path, count=count)
            version = self._table.version
            options = {"present": present, "holds_own": holds_own, "missed": missed, "slices": self.slices}
            return Plan(leaves, structure, self.options, version, **options)

        plan = planned()
        leaves = plan.detach(leaves)
        if self.fitting:
            self._table.fit(self.fitting, plan, leaves, self.presence.waiting)
            lacking, self.fitting = self.fitting.lacking, None
            if lacking:
                self.presence.begin_anew(lacking, count)
                plan = planned()
        plan.check_known(self._table.by_path, self.presence.were_inactive, self.presence.orphans)
        return plan, leaves

    def _forget(self) -> None:
        """Drops the plan; the next step makes another."""
        self._resolved.clear()
        self._devices = None
        # In a forked child, the core may have been in the middle of a step of another thread.
        self._plan, self._process = None, _core.forks()

    def _enter(self, step: ResolvedStep, leaves: list[Any]) -> None:
        """Makes the slots that a new plan or changed flags require, and prepares the core with their memory."""
        plan = step.plan
        self._table.begin(plan, leaves)
        self._resolved.clear()
        self._plan = None  # dropped first: after an interrupt the core may not have been prepared for it
        self._table.prepare(step, leaves)
        self._plan, self._layout, self._absent = plan, step.layout, step.absent
        missed = {p.text: p.missed for p in plan.parameters}
        count = self.counts.taken if len(missed) < len(self._table.by_path) else self._core.count
        self.presence.enter(missed, plan.inactive, self._table.by_path, count, waiting=plan.waiting)

    # --- other parameters ---------------------------------------------------------------------------------------------

    def rebuild(self, model: Any, *, remove: bool) -> Changes:
        """See `Optimizer.rebuild`."""
        self.refuse_swapped()
        if self.micro:
            raise StateError(
                f"{self.micro} gradients are accumulated: expected flush(model) before the parameters change"
            )
        leaves, structure = tree.flatten(model)
        survey = Plan(leaves, structure, self.options)
        changes = changes_of(survey, survey.detach(leaves), self._table.by_path, self.presence.inactive, remove=remove)
        before, presence = self._table.by_path, copy.deepcopy(self.presence)
        dropped = {*changes.removed, *changes.reset}
        try:
            if self.presence.is_counting:
                self.presence.settle(self.counts.taken)
            self._forget()
            self._table.by_path = {
                path: parameter_slots for path, parameter_slots in self._table.by_path.items() if path not in dropped
            }
            self.presence.drop(dropped)
            self.presence.orphans |= set(changes.kept)
            self.presence.were_inactive |= set(changes.added) | set(changes.reset)
            plan, leaves = self._new_plan(leaves, structure, None)
            self._enter(ResolvedStep(plan, holds=False), leaves)
        except BaseException:
            self._forget()
            self._table.by_path, self.presence = before, presence
            raise
        return changes
