"""Steps of an optimizer, each whole or not at all.

Parameters in host memory are updated in place by the core, all in one dispatch. Host arrays that may not be written are
copied first and replaced. Where an array lives anywhere else, the rule itself is called on it, and the result replaces
it. Everything that can fail comes first; then the core writes, replaces and counts the step without calling Python.
"""

import copy
import functools
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np

from oxigrad import _core, tree, xp
from oxigrad._core import ArrayMemoryError, NonFiniteError, RuleError, StateError
from oxigrad.ops.backends import REFUSALS, fetched, resolved
from oxigrad.ops.core.aliasing import apart
from oxigrad.rules import gradient_transforms
from oxigrad.stepping.arrays.alignment import Given, align
from oxigrad.stepping.arrays.sparse_rows import SparseRows
from oxigrad.stepping.device.launches import DeviceSteps, Launches, LayoutError, Numbered
from oxigrad.stepping.device.step_counts import StepCounts
from oxigrad.stepping.parameters.executor import HOST, executor_of
from oxigrad.stepping.parameters.parameter_group import ParameterGroup
from oxigrad.stepping.parameters.presence import Changes, Presence, accumulated
from oxigrad.stepping.plan.plan import Plan
from oxigrad.stepping.plan.resolved import ResolvedStep
from oxigrad.stepping.protocols import SteppingOptimizer
from oxigrad.stepping.slots.averages import Averages
from oxigrad.stepping.slots.changed_parameters import changes_of
from oxigrad.stepping.slots.table import SlotTable
from oxigrad.stepping.slots.view import ParameterSlots
from oxigrad.stepping.state.state_dict import Fitting, copied_slots
from oxigrad.stepping.weak import alive
from oxigrad.stepping.writes import StepWrites, Touched, call_step, touch


class Stepper:
    """The steps of one optimizer: its slots, the number of steps taken, and the plan for the model of the last one.

    The optimizer ``owner`` holds its stepper, which refers to it weakly.
    """

    def __init__(self, owner: SteppingOptimizer) -> None:
        self._weak_owner = weakref.ref(owner)
        self._core = _core.Stepper(private_slots=True)
        self.counts = StepCounts(owner, self._core)
        self._plan: Plan | None = None
        # The plan resolved for steps that hold gradients back, and for those that do not.
        self._resolved: dict[bool, ResolvedStep] = {}
        self._accumulate = 1
        # The layout passed to the core: the program and set of scalars of each group, and the slots that groups lack.
        self._layout: list[tuple[int, int]] = []
        self._absent: list[tuple[str, ...]] = []
        self._process = _core.forks()
        self._table = SlotTable(self._core)
        self.presence = Presence()
        #: Matches slots that were loaded in advance to the parameters of the first model; None afterwards.
        self.fitting: Fitting | None = None
        self._devices: DeviceSteps | None = None
        self.averages = Averages()
        # The parameters that had no gradient since the last step, the one under way included.
        self._without: set[str] = set()

    @property
    def _owner(self) -> SteppingOptimizer:
        return alive(self._weak_owner)

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

    def resumed(
        self, counts: Mapping[str, int], slots: Mapping[str, Any], fitting: Fitting | None, presence: Mapping[str, Any]
    ) -> "Stepper":
        """A stepper of the same optimizer with other counts and slots, and the ``presence`` of parameters in earlier steps."""
        made = Stepper(self._owner)
        made._core.count, made._core.micro, made.counts.skipped = counts["step"], counts["micro"], counts["skipped"]
        made.slots, made.fitting = slots, fitting
        made.presence = Presence.of(presence)
        return made

    def copied(self, owner: SteppingOptimizer) -> "Stepper":
        """The stepper of a copy of its optimizer, with the same counts and copies of the slots."""
        made = Stepper(owner)
        made._core.count, made._core.micro = self.counts.taken, self.micro
        made.counts.skipped = self.counts.skipped
        made.slots, made.fitting = copied_slots(self._table.by_path), self.fitting
        made.presence = Presence.of(self.presence.state(self.counts.taken))
        made.averages = copy.copy(self.averages)
        return made

    @property
    def plan(self) -> Plan | None:
        """The plan of the last step, if it is known."""
        return self._plan

    def group_of(self, path: str) -> ParameterGroup:
        """The group of a parameter of the last model; raises `KeyError` where there is none."""
        plan = self._plan
        found = next((plan.groups[p.group] for p in plan.parameters if p.text == path), None) if plan else None
        if found is None:
            raise KeyError(
                f"{path}: no parameter that is updated: expected one of {', '.join(self._table.by_path) or 'a built model'}"
            )
        return found

    def build(self, model: Any) -> None:
        """Makes the slots for a new model."""
        plan, leaves = self.planned(model)
        if plan is not self._plan:
            self._enter(ResolvedStep(plan, self._owner, holds=False), leaves)

    def planned(self, model: Any) -> tuple[Plan, list[Any]]:
        """The plan for a model, and its leaves."""
        self._check_plan()
        if self._plan is not None and (leaves := self._plan.leaves(model)) is not None:
            return self._plan, self._plan.detach(leaves)
        leaves, structure = tree.flatten(model)
        return self._new_plan(leaves, structure, None)

    def _planned_step(self, model: Any, grads: Any) -> tuple[Plan, list[Any], list[Any]]:
        """The plan for a step of a model, its leaves, and their gradients, which it holds itself where ``grads`` is None."""
        self._check_plan()
        if (
            self._plan is not None
            and not (self._plan.idle and self._owner.accumulate > 1)
            and (leaves := self._plan.leaves(model)) is not None
            and (gradients := self._plan.gradients.of_step(leaves, grads)) is not None
        ):
            return self._plan, self._plan.detach(leaves), gradients
        leaves, structure = tree.flatten(model)
        given = align(structure, grads) if grads is not None else Given(structure.gradients(leaves) or [], [], False)
        if self._owner.accumulate > 1:
            is_last = not self._holds(grads)
            self._without = accumulated(
                structure, leaves, given.leaves, self.presence.without, first=not self.micro, last=is_last
            )
        present = None if given.is_complete else given.present()
        plan, leaves = self._new_plan(leaves, structure, present, holds_own=grads is None)
        return plan, leaves, plan.gradients.of_leaves(given)

    def _holds(self, grads: Any) -> bool:
        """Whether gradients are only accumulated in this step; means that are `Given` back are taken."""
        return self.micro + 1 < self._owner.accumulate and not isinstance(grads, Given)

    def _check_plan(self) -> None:
        """Drops a plan that other settings, or a fork, have made invalid."""
        if self._plan is not None and not (self._plan.is_current() and self._process == _core.forks()):
            self._forget()

    def _new_plan(
        self, leaves: list[Any], structure: _core.Structure, present: bytes | None, *, holds_own: bool = False
    ) -> tuple[Plan, list[Any]]:
        """The plan for a model that none was made for, and its leaves. ``present`` and ``holds_own`` are those of `Plan`."""
        if self.presence.is_counting:
            self.presence.settle(self.counts.taken)
        # Known counts wait for no device where every parameter has slots.
        count = (
            self.counts.taken if self._table.by_path and self.presence.rested | self.presence.kept else self._core.count
        )
        missed = functools.partial(self.presence.missed_by, known=self._table.by_path, count=count)
        plan = Plan(
            leaves, structure, self._owner, self._table.version, present=present, holds_own=holds_own, missed=missed
        )
        leaves = plan.detach(leaves)
        if self.fitting:
            self._table.fit(self.fitting, plan, leaves)
            self.fitting = None
        plan.check_known(self._table.by_path, self.presence.rested, self.presence.kept)
        return plan, leaves

    def _forget(self) -> None:
        """Drops the plan; the next step makes another."""
        self._resolved.clear()
        self._devices = None
        # In a forked child, the core may have been in the middle of a step of another thread.
        self._plan, self._process = None, _core.forks()

    # --- steps ---------------------------------------------------------------------------------------------------------

    def update(self, model: Any, grads: Any, *, keep_root: bool = False) -> Any:
        """See `Optimizer.update`; with ``keep_root``, a tree that would have to be replaced is refused."""
        core = self._core
        step = self._resolved.get(core.micro + 1 < self._accumulate)
        if step is None or not (step.is_current() or step.refresh()) or self._process != _core.forks():
            return self._update_anew(model, grads, keep_root=keep_root)
        plan = step.plan
        if self._accumulate > 1 and (plan.idle or self.presence.without):
            return self._update_anew(model, grads, keep_root=keep_root)
        if (leaves := plan.leaves(model)) is None:
            return self._update_anew(model, grads, keep_root=keep_root)
        if (gradients := plan.gradients.of_step(leaves, grads)) is None:
            return self._update_anew(model, grads, keep_root=keep_root)
        if plan.recorded:
            plan.detach(leaves, for_core=step.is_in_place and not plan.gradients.sparse)
        if keep_root and plan.replaced:
            plan.check_replaceable(model)
        if step.varies or plan.gradients.sparse:
            if step.varies_on_host and self.counts.counters:
                self.counts.sync()
            step.fill(core.count, core.micro + 1, self._inverse_scale(step) if step.observes else 1.0)
        else:
            number = core.count + 1.0
            for scalars in step.constant:
                scalars[0] = number
            if step.late:
                for scalars, missed in step.late:
                    scalars[0] = number - missed
        return self._take(step, leaves, gradients, model, grads, keep_root=keep_root)

    def _update_anew(self, model: Any, grads: Any, *, keep_root: bool) -> Any:
        """`update` without a current resolved step; makes one."""
        self.averages.refuse_swapped()
        before, fitting, counts = self._table.by_path, self.fitting, (self._core.count, self.micro)
        try:
            plan, leaves, gradients = self._planned_step(model, grads)
            if keep_root:
                plan.check_replaceable(model)
            owner = self._owner
            self._accumulate = owner.accumulate
            step = ResolvedStep(plan, owner, holds=self._holds(grads))
            if (
                step.varies_on_host
                or step.raises
                or self.counts.raises
                or self.counts.scale is not None
                or not plan.on_devices
            ):
                self.counts.sync()
            self.counts.raises = step.raises
            step.fill(self._core.count, self.micro + 1, 1.0 if isinstance(grads, Given) else self._inverse_scale(step))
            if plan is not self._plan or step.layout != self._layout or step.absent != self._absent:
                self._enter(step, leaves)
            self._resolved[step.holds] = step
            without, self._without = self._without, set[str]()
            taken = self._take(step, leaves, gradients, model, grads, keep_root=keep_root)
            self.presence.without = without if self.micro else set()
            return taken
        except BaseException:
            if (
                self._table.by_path is not before
                and self.fitting is fitting
                and counts == (self._core.count, self.micro)
            ):
                # Slots may start as copies of the parameter, whose values may differ in the next step.
                self._resolved.clear()
                self._table.by_path, self._plan = before, None
            raise

    def _inverse_scale(self, step: ResolvedStep) -> float:
        """The reciprocal of the loss scale as far as the host fills it in."""
        return 1.0 / self._owner.scale if step.observes and not step.scales_there else 1.0

    def _take(
        self, step: ResolvedStep, leaves: list[Any], gradients: list[Any], model: Any, grads: Any, *, keep_root: bool
    ) -> Any:
        """Takes a step that is resolved, and whose numbers are filled in."""
        plan, touched, writes, launches = step.plan, (), None, None
        if not step.is_in_place or plan.gradients.sparse:
            try:
                found = self._prepare_writes(step, leaves, gradients, grads)
            except LayoutError:
                self._forget()
                return self.update(model, grads, keep_root=keep_root)
            if found is None:
                return self.skip(plan, model, gradients)
            touched, writes, launches = found
        observes = step.observes and not (launches and launches.scale)
        counts = self._core.count, self._core.micro
        written, given = plan.pick(leaves), plan.pick(gradients)
        try:
            done = self._core.step(
                model,
                written,
                given,
                programs=step.programs,
                seed=step.seed,
                holds=step.holds,
                observes=observes,
                touched=touched,
                writes=writes,
            )
        except ArrayMemoryError:
            if not self._adapt(plan, leaves, given):
                raise
            again = self._update_anew if isinstance(grads, Given) else self.update
            return again(model, grads, keep_root=keep_root)
        except RuleError as error:
            raise RuleError(f"{plan.first_of_each_rule()}: {error}") from None
        except REFUSALS:
            plan.gradients.refuse_shapeless(gradients, leaves)
            raise
        if done is None:
            return self.skip(plan, model, gradients)
        if launches is not None and launches.counters:
            return self._counted_there(step, launches, model, gradients, counts)
        if observes:
            self._settle()
        return done

    def _counted_there(
        self, step: ResolvedStep, launches: Launches, model: Any, gradients: list[Any], counts: tuple[int, int]
    ) -> Any:
        """The model after a step that a guard on a device may have stopped; waits where that must be known now.

        ``counts`` are the numbers of steps and of accumulated gradients before.
        """
        for counter in launches.counters:
            counter.expect()
        is_known_later = launches.scale is not None or not (step.observes or self._accumulate > 1)
        if is_known_later and not step.raises:
            self.counts.sync(wait=False)
            return model
        if not self.counts.any_skipped():
            self._settle()
            return model
        self._core.count, self._core.micro = counts
        self._core.observe({}, {})  # the step was none
        return self.skip(step.plan, model, gradients)

    def _prepare_writes(
        self, step: ResolvedStep, leaves: list[Any], gradients: list[Any], grads: Any
    ) -> tuple[list[Touched], _core.Writes, Launches] | None:
        """The rows that a step touches and its writes besides the update by the core; None where a guard stops it."""
        plan, writes = step.plan, StepWrites()
        zeros = plan.gradients.zeros(gradients, grads) if step.zeroes else []
        if plan.ruled or plan.copied or zeros:
            plan.check_memory(leaves, gradients, self._table.by_path, [g for _, g in zeros])
        others: list[Numbered] = []
        if plan.on_devices:
            if self._devices is None or self._devices.plan is not plan:
                self._devices = DeviceSteps(plan, self.counts.counters)
            scale = self.counts.scale_for(step, leaves)
            exposed = self._core.is_exposed
            writes.launches, others = self._devices.prepare(
                step, leaves, gradients, self._table.by_path, count=self._core.count, exposed=exposed, scale=scale
            )
            if others and self.counts.counters:  # rules on arrays take the scale and the count from the host
                self.counts.sync()
                step.fill(self._core.count, self._core.micro + 1, 1.0 / self._owner.scale)
        if not call_step(step, leaves, gradients, self._table.by_path, writes, others):
            return None
        writes.copies += zeros
        touched, stamps = (
            touch(step, gradients, self._table.by_path, self._core.count) if plan.gradients.sparse else ([], [])
        )
        writes.assignments += stamps
        for parameter in plan.copied:
            array = leaves[parameter.index] = np.array(leaves[parameter.index])
            writes.replacements += [(path, array) for path in parameter.paths]
        return touched, writes.frozen(), writes.launches

    def _adapt(self, plan: Plan, leaves: list[Any], given: tuple[Any, ...]) -> bool:
        """Changes the plan after the core refused an array of the step; False where there is nothing to change."""
        if not plan.gradients.sparse and any(isinstance(g, SparseRows) for g in given):
            plan.gradients.sparse = True
        elif not plan.gradients.lazy and not self._owner.zero_gradients and any(resolved(g) is not g for g in given):
            plan.gradients.lazy = True
        elif any(executor_of(array) is not HOST for array in plan.pick(leaves)):
            self._forget()  # An array has become read-only: it is replaced from now on.
        else:
            return False
        return True

    def _settle(self) -> None:
        """Lets the loss scale observe a counted step that it has not observed yet."""
        scale = self._owner.loss_scale
        # In one call: a signal handler may run, and save, between any two.
        attributes, values = (vars(scale), scale._after(finite=True)) if scale else ({}, {})
        self._core.observe(attributes, values)

    def check_whole(self) -> None:
        """Raises `StateError` where slots and counts are not those of a whole number of steps, as a signal handler may see them."""
        self._core.check_whole()
        self.counts.sync()
        self._settle()

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
        self.presence.enter(missed, plan.resting, self._table.by_path, count)

    def skip(self, plan: Plan, model: Any, gradients: list[Any]) -> Any:
        """Counts a step whose gradients are not finite as skipped and returns the model, or raises `NonFiniteError`."""
        if self._owner.nonfinite == "raise":
            given = {p.text: gradients[p.index] for p in plan.parameters}
            given |= {path: g.values for path, g in given.items() if isinstance(g, SparseRows)}
            bad = [path for path, g in given.items() if not fetched(xp.all(xp.isfinite(g)))]
            raise NonFiniteError(f"{', '.join(bad)}: the gradient has infinities or NaN; nothing was changed")
        self.counts.add_skipped()
        return model

    def flush(self, model: Any, *, keep_root: bool = False) -> Any:
        """See `Optimizer.flush`."""
        self.averages.refuse_swapped()
        if not self.micro:
            return model
        plan, leaves = self.planned(model)
        means: list[Any] = [None] * len(leaves)
        for p in plan.parameters:
            if p.text not in self.presence.without:
                means[p.index] = xp.asarray(self._table.by_path[p.text][gradient_transforms.NAMES["mean"]], copy=True)
        return self._update_anew(model, Given(means, [], is_complete=False), keep_root=keep_root)

    # --- other parameters ----------------------------------------------------------------------------------------------

    def rebuild(self, model: Any, *, remove: bool) -> Changes:
        """See `Optimizer.rebuild`."""
        self.averages.refuse_swapped()
        if self.micro:
            raise StateError(
                f"{self.micro} gradients are accumulated: expected flush(model) before the parameters change"
            )
        leaves, structure = tree.flatten(model)
        survey = Plan(leaves, structure, self._owner)
        changes = changes_of(survey, survey.detach(leaves), self._table.by_path, self.presence.resting, remove=remove)
        before, presence = self._table.by_path, copy.deepcopy(self.presence)
        dropped = {*changes.removed, *changes.reset}
        try:
            if self.presence.is_counting:
                self.presence.settle(self.counts.taken)
            self._forget()
            self._table.by_path = {path: own for path, own in self._table.by_path.items() if path not in dropped}
            self.presence.drop(dropped)
            self.presence.kept |= set(changes.kept)
            self.presence.rested |= set(changes.added) | set(changes.reset)
            plan, leaves = self._new_plan(leaves, structure, None)
            self._enter(ResolvedStep(plan, self._owner, holds=False), leaves)
        except BaseException:
            self._forget()
            self._table.by_path, self.presence = before, presence
            raise
        return changes

    # --- steps that are computed elsewhere -----------------------------------------------------------------------------

    def begin(self, model: Any) -> tuple[Plan, list[Any]]:
        """The plan for a model that is to be changed in place, and its leaves; makes the slots."""
        self.build(model)
        plan, leaves = self.planned(model)
        plan.check_replaceable(model)
        # Raises what `finish` would raise after the computation.
        plan.written_with(leaves, {p.text: leaves[p.index] for p in plan.parameters})
        return plan, leaves

    def finish(self, plan: Plan, leaves: list[Any], model: Any, values: list[Any], slots: list[dict[str, Any]]) -> None:
        """Takes a step that was computed elsewhere: new values and slots for each parameter, in the order of the plan."""
        by_path = {p.text: value for p, value in zip(plan.parameters, values, strict=True)}
        replacements, copies = plan.written_with(leaves, by_path)
        of_leaves = [self._table.by_path[p.text] for p in plan.parameters]
        assigned = [(own, *item) for own, new in zip(of_leaves, slots, strict=True) for item in new.items()]
        changed = [(own, name, array) for own, name, array in assigned if array is not own[name]]
        found = apart([array for *_, array in changed], [*leaves, *values])
        assignments = [(own, name, array) for (own, name, _), array in zip(changed, found, strict=True)]
        writes = _core.Writes(replacements=replacements, assignments=assignments, copies=copies)
        owner = self._owner
        observes = owner.loss_scale is not None
        self._core.step(model, (), (), programs=[], seed=owner.seed, observes=observes, writes=writes)
        self._settle()

    # --- other values of parameters ------------------------------------------------------------------------------------

    def write_parameters(
        self, plan: Plan, leaves: list[Any], model: Any, values: dict[str, Any], swapped: dict[str, Any] | None
    ) -> Any:
        """The model with other values for its parameters, in place where they can be written; notes what is ``swapped``."""
        replacements, copies = plan.written_with(leaves, values)
        self._resolved.clear()  # so that the next step checks for swapped averages
        # As a part of the write, so that no interrupt comes between.
        noted = [(vars(self.averages), "swapped", swapped)]
        return self._core.write(model, _core.Writes(replacements=replacements, assignments=noted, copies=copies))
