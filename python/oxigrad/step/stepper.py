"""Steps of an optimizer, each whole or not at all, with its slots and counts.

Parameters in host memory are updated in place by the core, all in one dispatch. Host arrays that may not be written are
copied first and replaced. Where an array lives anywhere else, the rule itself is called on it, and the result replaces
it. Everything that can fail comes first; then the core writes, replaces and counts the step without calling Python.
"""

import functools
import operator
from collections.abc import Mapping
from typing import Any

from oxigrad import _core, tree, xp
from oxigrad._core import ArrayMemoryError, Misfit, RuleError, StateError
from oxigrad.ops.backends import REFUSALS
from oxigrad.rules import gradient_transforms
from oxigrad.step.arrays.alignment import AlignedGradients, align, check_order
from oxigrad.step.arrays.gradient_check import nonfinite_error
from oxigrad.step.device.launches import DeviceSteps
from oxigrad.step.device.step_counts import StepCounts
from oxigrad.step.device.step_writes import StepWrites
from oxigrad.step.parameters.parameter import Parameter
from oxigrad.step.parameters.parameter_group import SteppingOptions
from oxigrad.step.parameters.presence import ParticipationLog, accumulated
from oxigrad.step.parameters.rule_executors import first_of_each_rule
from oxigrad.step.plan.announcements import OpenStep
from oxigrad.step.plan.gradients import aligned_gradients, gradient_zeros, step_gradients
from oxigrad.step.plan.plan import Plan
from oxigrad.step.plan.programs import measured
from oxigrad.step.plan.step_program import StepProgram
from oxigrad.step.slice import Gather, Slice
from oxigrad.step.slots.table import SlotTable
from oxigrad.step.slots.view import ParameterSlots
from oxigrad.step.state.state_dict import COUNTS, PendingState, copied_slots
from oxigrad.step.writes import Touched, collect

_TEXT_AND_MISSED = operator.attrgetter("text", "missed")


class Stepper:
    """The steps of one optimizer, by the plan of the last one where it holds, with its slots and counts.

    The optimizer that holds it has the ``options``. A ``placement`` takes the steps where the state is not beside
    the parameters: see `HostPlacement`.
    """

    def __init__(self, options: SteppingOptions, placement: Any = None) -> None:
        #: The options of its steps, which the optimizer replaces when one is set.
        self.options: SteppingOptions = options
        self.placement: Any = placement
        self.core: _core.Stepper = _core.Stepper(private_slots=True)
        self.counts: StepCounts = StepCounts(options.loss_scale, self.core)
        #: The plan of the last step, if it is known.
        self.plan: Plan | None = None
        #: The plan resolved for steps that hold gradients back, and for those that do not.
        self.resolved: dict[bool, StepProgram] = {}
        #: The step that several dispatches apply.
        self.open: OpenStep = OpenStep("flush(model), which finishes it, or a state from before")
        # The layout passed to the core: the program and set of scalars of each group, and the slots that groups lack.
        self._layout: list[tuple[int, int]] = []
        self._absent: list[tuple[str, ...]] = []
        self.table: SlotTable = SlotTable(self.core)
        self.presence: ParticipationLog = ParticipationLog()
        #: Matches slots that were loaded in advance to the parameters of the first model; None afterwards.
        self.fitting: PendingState | None = None
        self._devices: DeviceSteps | None = None
        #: The slices that the model of a step has in place of parameters, by key path, and the function that gathers
        #: the partial sums of all who step slices of the same parameters.
        self.slices: Mapping[str, Slice] | None = None
        self.gather: Gather | None = None
        #: The error of all that needs whole parameters, where the slots are of slices.
        self.refusal: Exception | None = None
        #: The parameters that averages replace, by key path, while these are swapped in; otherwise None.
        self.swapped: dict[str, Any] | None = None
        # The parameters that had no gradient since the last step, the one under way included.
        self._without: set[str] = set()

    def set_options(self, options: SteppingOptions) -> None:
        """Takes steps by other options from now on."""
        self.options, self.counts.loss_scale = options, options.loss_scale

    @property
    def slots(self) -> Mapping[str, ParameterSlots]:
        """The slots of each parameter, by key path and name, for users to read and assign; see `SlotTable`."""
        self.core.expose()
        return self.table.by_path

    @property
    def micro(self) -> int:
        """The number of gradients accumulated since the last step."""
        return self.core.micro

    @property
    def progress(self) -> tuple[int, int, int]:
        """The numbers of steps, accumulated gradients and skipped steps, as the host knows them."""
        return self.core.count, self.core.micro, self.counts._skipped

    def resumed(
        self,
        counts: Mapping[str, int],
        slots: Mapping[str, Any],
        fitting: PendingState | None,
        presence: Mapping[str, Any],
        options: SteppingOptions | None = None,
    ) -> "Stepper":
        """A stepper of the same optimizer, or of a copy, with other counts and slots, and ``presence``."""
        stepper = Stepper(options or self.options, self.placement and type(self.placement)())
        stepper.core.count, stepper.core.micro, stepper.counts.skipped = map(counts.__getitem__, COUNTS)
        stepper.table.replace(slots)
        stepper.fitting, stepper.refusal = fitting, self.refusal
        stepper.presence = ParticipationLog.of(presence)
        return stepper

    def copied(self, options: SteppingOptions) -> "Stepper":
        """The stepper of a copy of its optimizer, with its counts and copies of its slots."""
        counts = {"step": self.counts.taken, "micro": self.core.micro, "skipped": self.counts.skipped}
        presence = self.presence.state(counts["step"], self.table.by_path)
        stepper = self.resumed(counts, copied_slots(self.table.by_path), self.fitting, presence, options)
        stepper.swapped = self.swapped
        return stepper

    def refuse_swapped(self) -> None:
        """Raises `StateError` while the averages are in the place of the parameters."""
        if self.swapped is not None:
            raise StateError("the averages are swapped in: swap_out brings the parameters back")

    def refuse_slices(self) -> None:
        """Raises the ``refusal``, but in a step of slices."""
        if self.refusal is not None and self.slices is None:
            raise self.refusal

    # --- plans --------------------------------------------------------------------------------------------------------

    def build(self, model: Any) -> None:
        """Makes the slots for a new model."""
        plan, leaves = self.planned(model)
        if plan is not self.plan:
            self.enter(StepProgram(plan), leaves)

    def planned(self, model: Any) -> tuple[Plan, list[Any]]:
        """The plan for a model, and its leaves."""
        if self.placement is not None and not self.placement.has(model):
            with self.placement.reading(self, model) as in_memory:
                return self.planned(in_memory)
        self.refuse_slices()
        self._check_plan()
        if self.plan is not None and (leaves := self.plan.leaves(model)) is not None:
            return self.plan, self.plan.detach(leaves) if self.plan.recorded else leaves
        leaves, structure = tree.flatten(model)
        return self.new_plan(leaves, structure)

    def _planned_step(self, model: Any, grads: Any) -> tuple[Plan, list[Any], list[Any]]:
        """The plan for a step of a model, its leaves, and their gradients, which it holds if ``grads`` is None."""
        self._check_plan()
        if (
            self.plan is not None
            and not (self.plan.idle and self.options.accumulate > 1)
            and (leaves := self.plan.leaves(model)) is not None
            and (gradients := step_gradients(self.plan, leaves, grads)) is not None
        ):
            return self.plan, self.plan.detach(leaves), gradients
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
                structure, leaves, aligned.leaves, self.presence.without, first=not self.core.micro, last=is_last
            )
        present = None if aligned.is_complete else aligned.present()
        plan, leaves = self.new_plan(leaves, structure, present, holds_own=grads is None, gradients=aligned.leaves)
        return plan, leaves, aligned_gradients(plan, aligned)

    def _holds(self, grads: Any) -> bool:
        """Whether gradients are only accumulated in this step; means that are `AlignedGradients` back are taken."""
        return self.core.micro + 1 < self.options.accumulate and not isinstance(grads, AlignedGradients)

    def _check_plan(self) -> None:
        """Drops a plan that other settings, or a fork, have made invalid."""
        if self.plan is not None and not self.plan.is_current():
            self.forget()

    def new_plan(
        self, leaves: list[Any], structure: _core.Structure, present: bytes | None = None, **stated: Any
    ) -> tuple[Plan, list[Any]]:
        """The plan for a new model, and its leaves. `Plan` describes ``present``, and all that is ``stated``."""
        if self.presence.is_counting:
            self.presence.settle(self.counts.taken)
        # Known counts wait for no device where every parameter has slots.
        count = (
            self.counts.taken
            if self.table.by_path and self.presence.were_inactive | self.presence.orphans
            else self.core.count
        )

        def planned() -> Plan:
            missed = functools.partial(self.presence.missed_by, with_slots=self.table.by_path, count=count)
            version = self.table.version
            options = {"present": present, "missed": missed, "slices": self.slices, "gather": self.gather}
            return Plan(leaves, structure, self.options, version, **options, **stated)

        plan = planned()
        leaves = plan.detach(leaves)
        if self.fitting:
            self.table.fit(self.fitting, plan, leaves, self.presence.waiting)
            lacking, self.fitting = self.fitting.lacking, None
            if lacking:
                self.presence.begin_anew(lacking, count)
                plan = planned()
        plan.check_known(self.table.by_path, self.presence.were_inactive, self.presence.orphans)
        return plan, leaves

    def forget(self) -> None:
        """Drops the plan; the next step makes another."""
        self.resolved.clear()
        self._devices = None
        self.plan = None

    def adopt(self, step: StepProgram, leaves: list[Any]) -> None:
        """Keeps a resolved step for the next ones; makes the slots that it requires."""
        if step.plan is not self.plan or step.layout != self._layout or step.absent != self._absent:
            self.enter(step, leaves)
        self.resolved[step.holds] = step

    def enter(self, step: StepProgram, leaves: list[Any]) -> None:
        """Makes the slots that a new plan or changed flags require, and prepares the core with their memory."""
        plan = step.plan
        self.table.begin(plan, leaves)
        self.resolved.clear()
        self.plan = None  # dropped first: after an interrupt the core may not have been prepared for it
        self.table.prepare(step, leaves)
        self.plan, self._layout, self._absent = plan, step.layout, step.absent
        missed = dict(map(_TEXT_AND_MISSED, plan.parameters))
        count = self.counts.taken if len(missed) < len(self.table.by_path) else self.core.count
        self.presence.enter(missed, plan.inactive, self.table.by_path, count, waiting=plan.waiting)

    # --- steps --------------------------------------------------------------------------------------------------------

    def update(self, model: Any, grads: Any, *, loss: Any = None, keep_root: bool = False) -> Any:
        """See `Optimizer.update`; with ``keep_root``, a tree that would have to be replaced is refused."""
        if self.placement is not None and not self.placement.has(model):
            return self.placement.update(self, model, grads, loss)
        if self.open.updated:
            self.open.check_none()
        core = self.core
        step = self.resolved.get(core.micro + 1 < self.options.accumulate)
        if (
            step is None
            or not (step.is_current() or step.refresh())
            or (self.options.accumulate > 1 and (step.plan.idle or self.presence.without))
            or (leaves := step.plan.leaves(model)) is None
            or (gradients := step_gradients(step.plan, leaves, grads)) is None
        ):
            return self._update_anew(model, grads, loss=loss, keep_root=keep_root)
        plan = step.plan
        if plan.recorded:
            plan.detach(leaves, for_core=step.is_in_place)
        if keep_root and plan.replaced:
            plan.check_replaceable(model)
        if step.varies:
            if step.varies_on_host and self.counts.counters:
                self.counts.sync()
            step.fill(core.count, core.micro + 1, step.inverse_scale if step.observes else 1.0, loss)
        else:
            number = core.count + 1.0
            for scalars in step.constant:
                scalars[0] = number
            if step.late:
                for scalars, missed in step.late:
                    scalars[0] = number - missed
        return self._take(step, leaves, gradients, model, grads, keep_root=keep_root)

    def _update_anew(self, model: Any, grads: Any, *, loss: Any = None, keep_root: bool) -> Any:
        """`update` without a current resolved step; makes one."""
        self.refuse_swapped()
        before, fitting, core = self.table.by_path, self.fitting, self.core
        counts = core.count, core.micro
        try:
            plan, leaves, gradients = self._planned_step(model, grads)
            if keep_root:
                plan.check_replaceable(model)
            step = StepProgram(plan, holds=self._holds(grads))
            if (
                step.varies_on_host
                or step.raises
                or self.counts.raises
                or self.counts.scale is not None
                or not plan.on_devices
            ):
                self.counts.sync()
            self.counts.raises = step.raises
            is_scaled = step.observes and not isinstance(grads, AlignedGradients)
            step.fill(core.count, core.micro + 1, step.inverse_scale if is_scaled else 1.0, loss)
            is_new = plan is not self.plan
            self.adopt(step, leaves)
            without, self._without = self._without, set[str]()
            taken = self._take(step, leaves, gradients, model, grads, keep_root=keep_root, is_new=is_new)
            self.presence.without = without if self.core.micro else set()
            return taken
        except BaseException:
            if counts == (self.core.count, self.core.micro):
                self.undo(before, fitting)
            raise

    def undo(self, slots: Mapping[str, ParameterSlots], fitting: PendingState | None) -> None:
        """Drops slots that were made for a step that has failed; ``slots`` and ``fitting`` are those from before.

        They may start as copies of the parameter, whose values may differ in the next step.
        """
        if self.table.by_path is not slots and self.fitting is fitting:
            self.forget()
            self.table.by_path = slots

    def _take(
        self,
        step: StepProgram,
        leaves: list[Any],
        gradients: list[Any],
        model: Any,
        grads: Any,
        *,
        keep_root: bool,
        is_new: bool = False,
    ) -> Any:
        """Takes a step that is resolved, and whose numbers are filled in.

        Unless its plan ``is_new``, it is planned anew for arrays whose memory the plan does not fit.
        """
        plan, touched, writes = step.plan, (), None
        if not step.is_in_place:
            prepared = self._prepare_writes(step, leaves, gradients, grads)
            if prepared is None:
                self.forget()
                return self._update_anew(model, grads, loss=step.loss, keep_root=keep_root)
            touched, writes = prepared
            if touched is None:
                return self.skip(plan, model, gradients)
        written, read = plan.pick(leaves), plan.pick(gradients)
        observes = step.observes and not (writes and writes.scale)
        counts = self.core.count, self.core.micro
        try:
            done = self.core.step(
                model,
                written,
                read,
                programs=step.programs,
                seed=step.seed,
                holds=step.holds,
                observes=observes,
                touched=touched,
                writes=writes and writes.frozen(),
                totals=plan.gather and measured(self.core, written, read, plan.gather, step.programs, step.seed),
            )
            if type(done) is Misfit and (is_new or not isinstance(done.error, ArrayMemoryError)):
                raise done.error
        except RuleError as error:
            rules = [(p.text, plan.groups[p.group].rule().name) for p in plan.parameters]
            raise RuleError(f"{first_of_each_rule(rules)}: {error}") from None
        except REFUSALS:
            plan.refuse_shapeless(gradients, leaves)
            raise
        if type(done) is Misfit:
            self.forget()
            return self._update_anew(model, grads, loss=step.loss, keep_root=keep_root)
        if done is None:
            return self.skip(plan, model, gradients)
        if writes is not None and writes.counters:
            is_taken = self.counts.is_taken_there(step, writes, counts)
            return model if is_taken else self.skip(plan, model, gradients)
        if observes:
            self.counts.settle()
        return done

    def _prepare_writes(
        self, step: StepProgram, leaves: list[Any], gradients: list[Any], grads: Any
    ) -> tuple[list[Touched] | None, StepWrites] | None:
        """The rows that a step touches, or None where a guard stops it, and its writes besides the update by the core.

        None for arrays on devices that the plan does not fit.
        """
        plan, writes = step.plan, StepWrites()
        zeros = gradient_zeros(plan, gradients, grads) if step.zeroes else []
        if plan.ruled or plan.copied or zeros:
            plan.check_memory(leaves, gradients, self.table.by_path, [g for _, g in zeros])
        others: list[Parameter] | None = []
        if plan.on_devices:
            if self._devices is None or self._devices.plan is not plan:
                self._devices = DeviceSteps(plan, self.counts.counters)
            scale, exposed = self.counts.scale_for(step, leaves), self.core.is_exposed
            slots, count = self.table.by_path, self.core.count
            others = self._devices.prepare(
                step, leaves, gradients, slots, writes, count=count, exposed=exposed, scale=scale
            )
            if others is None:
                return None
            if others and self.counts.counters:  # rules on arrays take the scale and the count from the host
                self.counts.sync()
                step.fill(self.core.count, self.core.micro + 1, 1.0 / self.options.scale, step.loss)
        slots, count = self.table.by_path, self.core.count
        touched = collect(step, leaves, gradients, slots, writes, count=count, others=others)
        writes.copies += zeros
        return touched, writes

    def check_whole(self) -> None:
        """Raises `StateError` for slots and counts of no whole number of steps, as a signal handler may see them."""
        if self.placement is not None:
            self.placement.complete()
        self.core.check_whole()
        self.open.check_none()
        self.counts.sync()
        self.counts.settle()

    def skip(self, plan: Plan, model: Any, gradients: list[Any]) -> Any:
        """Counts a step whose gradients are not finite as skipped and returns the model, or raises `NonFiniteError`."""
        if self.options.nonfinite == "raise":
            raise nonfinite_error({p.text: gradients[p.index] for p in plan.parameters}, plan.gather)
        self.counts.add_skipped()
        return model

    def flush(self, model: Any, *, keep_root: bool = False) -> Any:
        """See `Optimizer.flush`."""
        if self.placement is not None and not self.placement.has(model):
            return self.placement.flush(self, model)
        self.refuse_swapped()
        if self.open.updated:
            self.count_open()
        if not self.core.micro:
            return model
        plan, leaves = self.planned(model)
        means: list[Any] = [None] * len(leaves)
        for p in plan.parameters:
            if p.text not in self.presence.without:
                means[p.index] = xp.asarray(self.table.by_path[p.text][gradient_transforms.NAMES["mean"]], copy=True)
        return self._update_anew(model, AlignedGradients(means, [], is_complete=False), keep_root=keep_root)

    def count_open(self) -> None:
        """Counts the open step, whose parameters are updated. To be called again after an interrupt."""
        self.core.count = self.open.number
        self.open.end()
