"""Steps of an optimizer, each whole or not at all.

Parameters in host memory are updated in place by the core, all in one dispatch. Host arrays that may not be written are
copied first and replaced. Where an array lives anywhere else, the rule itself is called on it, and the result replaces
it. Everything that can fail comes first; then the core writes, replaces and counts the step without calling Python.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oxigrad import _core, xp
from oxigrad._core import ArrayMemoryError, Misfit, RuleError, StateError
from oxigrad.ops.backends import REFUSALS
from oxigrad.ops.core.aliasing import apart
from oxigrad.rules import gradient_transforms
from oxigrad.stepping.arrays.alignment import AlignedGradients
from oxigrad.stepping.arrays.gradient_check import nonfinite_error
from oxigrad.stepping.arrays.sparse_rows import SparseRows
from oxigrad.stepping.device.launches import DeviceSteps, Launches
from oxigrad.stepping.parameters.executor import HOST, executor_of
from oxigrad.stepping.parameters.parameter import Parameter
from oxigrad.stepping.parameters.parameter_group import SteppingOptions
from oxigrad.stepping.parameters.rule_executors import first_of_each_rule
from oxigrad.stepping.plan.announcements import OpenStep
from oxigrad.stepping.plan.plan import Plan
from oxigrad.stepping.plan.resolved import ResolvedStep
from oxigrad.stepping.planner import Planner
from oxigrad.stepping.slots.averages import averages_of, named, nonempty
from oxigrad.stepping.slots.view import ParameterSlots
from oxigrad.stepping.writes import StepWrites, Touched, collect


class Stepper(Planner):
    """The steps of one optimizer, by the plan of the last one where it holds."""

    # --- steps --------------------------------------------------------------------------------------------------------

    def __init__(self, options: SteppingOptions) -> None:
        super().__init__(options)
        self._parts = OpenStep("flush(model), which finishes it, or a state from before")
        #: The parameters that are due now that the gradient of one is final: see `OpenStep.due`.
        self.due: Callable[[int, Parameter, int], list[Parameter]] = self._parts.due
        # The number of steps once the one in parts is counted.
        self._counted = 0

    @property
    def ahead(self) -> list[str]:
        """The key paths of parameters that are updated in a step which an error has ended."""
        return self._parts.ahead

    def update(self, model: Any, grads: Any, *, loss: Any = None, keep_root: bool = False) -> Any:
        """See `Optimizer.update`; with ``keep_root``, a tree that would have to be replaced is refused."""
        if self._parts.updated:
            self._parts.check_none()
        core = self._core
        step = self._resolved.get(core.micro + 1 < self._accumulate)
        if (
            step is None
            or not (step.is_current() or step.refresh())
            or self._process != _core.forks()
            or (self._accumulate > 1 and (step.plan.idle or self.presence.without))
            or (leaves := step.plan.leaves(model)) is None
            or (gradients := step.plan.gradients_of_step(leaves, grads)) is None
        ):
            return self._update_anew(model, grads, loss=loss, keep_root=keep_root)
        plan = step.plan
        if plan.recorded:
            plan.detach(leaves, for_core=step.is_in_place and not plan.takes_rows)
        if keep_root and plan.replaced:
            plan.check_replaceable(model)
        if step.varies or plan.takes_rows:
            if step.varies_on_host and self.counts.counters:
                self.counts.sync()
            step.fill(core.count, core.micro + 1, self._inverse_scale(step) if step.observes else 1.0, loss)
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
        before, fitting, counts = self._table.by_path, self.fitting, (self._core.count, self.micro)
        try:
            plan, leaves, gradients = self._planned_step(model, grads)
            if keep_root:
                plan.check_replaceable(model)
            self._accumulate = self.options.accumulate
            step = ResolvedStep(plan, holds=self._holds(grads))
            if (
                step.varies_on_host
                or step.raises
                or self.counts.raises
                or self.counts.scale is not None
                or not plan.on_devices
            ):
                self.counts.sync()
            self.counts.raises = step.raises
            scale = 1.0 if isinstance(grads, AlignedGradients) else self._inverse_scale(step)
            step.fill(self._core.count, self.micro + 1, scale, loss)
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
        return 1.0 / self.options.scale if step.observes and not step.scales_there else 1.0

    def _take(
        self, step: ResolvedStep, leaves: list[Any], gradients: list[Any], model: Any, grads: Any, *, keep_root: bool
    ) -> Any:
        """Takes a step that is resolved, and whose numbers are filled in."""
        plan, touched, writes, launches = step.plan, (), None, None
        if not step.is_in_place or plan.takes_rows:
            prepared = self._prepare_writes(step, leaves, gradients, grads)
            if prepared is None:
                self._forget()
                return self.update(model, grads, loss=step.loss, keep_root=keep_root)
            touched, writes, launches = prepared
            if touched is None:
                return self.skip(plan, model, gradients)
        written, read = plan.pick(leaves), plan.pick(gradients)
        observes = step.observes and not (launches and launches.scale)
        counts = self._core.count, self._core.micro
        try:
            done = self._core.step(
                model,
                written,
                read,
                programs=step.programs,
                seed=step.seed,
                holds=step.holds,
                observes=observes,
                touched=touched,
                writes=writes,
                gather=plan.gather,
            )
            if type(done) is Misfit and not self._adapt(plan, leaves, read, done.error):
                raise done.error
        except RuleError as error:
            rules = [(p.text, plan.groups[p.group].rule().name) for p in plan.parameters]
            raise RuleError(f"{first_of_each_rule(rules)}: {error}") from None
        except REFUSALS:
            plan.refuse_shapeless(gradients, leaves)
            raise
        if type(done) is Misfit:
            again = self._update_anew if isinstance(grads, AlignedGradients) else self.update
            return again(model, grads, loss=step.loss, keep_root=keep_root)
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
    ) -> tuple[list[Touched] | None, _core.Writes, Launches] | None:
        """The rows that a step touches, or None where a guard stops it, and its writes besides the update by the core.

        None for parameters on devices whose layout the plan does not fit.
        """
        plan, writes = step.plan, StepWrites()
        zeros = plan.gradient_zeros(gradients, grads) if step.zeroes else []
        if plan.ruled or plan.copied or zeros:
            plan.check_memory(leaves, gradients, self._table.by_path, [g for _, g in zeros])
        others: list[Parameter] = []
        if plan.on_devices:
            if self._devices is None or self._devices.plan is not plan:
                self._devices = DeviceSteps(plan, self.counts.counters)
            scale = self.counts.scale_for(step, leaves)
            exposed = self._core.is_exposed
            prepared = self._devices.prepare(
                step, leaves, gradients, self._table.by_path, count=self._core.count, exposed=exposed, scale=scale
            )
            if prepared is None:
                return None
            writes.launches, others = prepared
            if others and self.counts.counters:  # rules on arrays take the scale and the count from the host
                self.counts.sync()
                step.fill(self._core.count, self._core.micro + 1, 1.0 / self.options.scale, step.loss)
        touched = collect(
            step,
            leaves,
            gradients,
            self._table.by_path,
            writes,
            count=self._core.count,
            touches=plan.takes_rows,
            others=others,
        )
        writes.copies += zeros
        return touched, writes.frozen(), writes.launches

    def _adapt(self, plan: Plan, leaves: list[Any], gradients: tuple[Any, ...], misfit: Exception) -> bool:
        """Changes a plan that the arrays of a step do not fit; False for arrays that no plan fits."""
        if not isinstance(misfit, ArrayMemoryError):
            return False
        if plan.admit(gradients):
            return True
        if any(executor_of(array) is not HOST for array in plan.pick(leaves)):
            self._forget()  # An array has become read-only: it is replaced from now on.
            return True
        return False

    def _settle(self) -> None:
        """Lets the loss scale observe a counted step that it has not observed yet."""
        scale = self.options.loss_scale
        # In one call: a signal handler may run, and save, between any two.
        attributes, values = (vars(scale), scale._after(finite=True)) if scale else ({}, {})
        self._core.observe(attributes, values)

    def check_whole(self) -> None:
        """Raises `StateError` for slots and counts of no whole number of steps, as a signal handler may see them."""
        self._core.check_whole()
        self._parts.check_none()
        self.counts.sync()
        self._settle()

    def skip(self, plan: Plan, model: Any, gradients: list[Any]) -> Any:
        """Counts a step whose gradients are not finite as skipped and returns the model, or raises `NonFiniteError`."""
        if self.options.nonfinite == "raise":
            raise nonfinite_error({p.text: gradients[p.index] for p in plan.parameters}, plan.gather)
        self.counts.add_skipped()
        return model

    def flush(self, model: Any, *, keep_root: bool = False) -> Any:
        """See `Optimizer.flush`."""
        self.refuse_swapped()
        if self._parts.updated:
            self.count_parts()
        if not self.micro:
            return model
        plan, leaves = self.planned(model)
        means: list[Any] = [None] * len(leaves)
        for p in plan.parameters:
            if p.text not in self.presence.without:
                means[p.index] = xp.asarray(self._table.by_path[p.text][gradient_transforms.NAMES["mean"]], copy=True)
        return self._update_anew(model, AlignedGradients(means, [], is_complete=False), keep_root=keep_root)

    # --- steps in parts -----------------------------------------------------------------------------------------------

    def resolve_whole(self, model: Any, loss: Any) -> tuple[ResolvedStep, list[Any]]:
        """The step of all parameters of a model that changes in place, with its numbers, and the leaves."""
        self.refuse_swapped()
        self._parts.check_none()
        self._parts.end()
        self._counted = self._core.count + 1
        if self._plan is not None and self._plan.idle:
            self._forget()
        plan, leaves = self.planned(model)
        if plan is self._plan and (plan.copied or self._core.misfit(plan.pick(leaves))):
            self._forget()  # An array has become read-only: it is replaced from now on.
            plan, leaves = self.planned(model)
        if plan.replaced:
            plan.check_replaceable(model)
        self._accumulate = self.options.accumulate
        step = self._resolved.get(False)
        if step is None or step.plan is not plan or not (step.is_current() or step.refresh()):
            step = ResolvedStep(plan, holds=False)
            if plan is not self._plan or step.layout != self._layout or step.absent != self._absent:
                self._enter(step, leaves)
            self._resolved[False] = step
        step.fill(self._core.count, 1, 1.0, loss)
        return step, leaves

    def take_part(
        self, step: ResolvedStep, parameters: Sequence[Parameter], model: Any, leaves: list[Any], gradients: list[Any]
    ) -> None:
        """Updates some of the parameters of a step, with ``gradients`` at the positions of leaves; counts nothing."""
        names, slots = {p.position: p.text for p in parameters}, self._table.by_path
        part = step.part(tuple(names), parameters)
        plan = part.plan
        while True:
            writes, read = StepWrites(), plan.checked_gradients([*gradients], optional=True)
            if part.core is None:
                core = _core.Stepper()
                core.prepare(part.host_parameters(leaves, slots))
                part.core = core
            count = part.core.count = self._core.count
            if plan.ruled or plan.copied:
                plan.check_memory(leaves, read, slots, [])
            has_rows = plan.takes_rows and any(isinstance(read[p.index], SparseRows) for p in plan.host)
            touches = has_rows or part.catches_up
            touched = collect(part, leaves, read, slots, writes, count=count, touches=touches)
            writes.assignments += self._parts.marks(names)
            done = part.core.step(
                model,
                plan.pick(leaves),
                plan.pick(read),
                programs=part.programs,
                seed=part.seed,
                touched=touched or (),
                writes=writes.frozen(),
            )
            if not isinstance(done, Misfit):
                return
            if not plan.admit(gradients):
                raise done.error

    def count_parts(self) -> None:
        """Counts a step that was taken in parts. To be called again after an interrupt."""
        self._core.count = self._counted
        self._parts.end()

    def undo_begun(self, slots: Mapping[str, ParameterSlots], fitting: Any) -> None:
        """Drops the slots of a step that an error ended before its first update: they may copy parameters."""
        is_begun = bool(self._parts.updated) or self._core.count == self._counted
        if self.fitting is fitting and self._table.by_path is not slots and not is_begun:
            self._forget()
            self._table.by_path = slots

    def check_no_part(self) -> None:
        """Raises `StateError` while parameters are ahead of the others, after an error in the backward."""
        self._parts.check_none()

    # --- steps that are computed elsewhere ----------------------------------------------------------------------------

    def begin(self, model: Any) -> tuple[Plan, list[Any]]:
        """The plan for a model that is to be changed in place, and its leaves; makes the slots."""
        self.build(model)
        plan, leaves = self.planned(model)
        plan.check_replaceable(model)
        # Raises what `finish` would raise after the computation.
        plan.written_with(leaves, {p.text: leaves[p.index] for p in plan.parameters})
        return plan, leaves

    def finish(self, plan: Plan, leaves: list[Any], model: Any, values: list[Any], slots: list[dict[str, Any]]) -> None:
        """Takes a step that was computed elsewhere: new values and slots of each parameter, in the plan's order."""
        by_path = {p.text: value for p, value in zip(plan.parameters, values, strict=True)}
        replacements, copies = plan.written_with(leaves, by_path)
        of_leaves = [self._table.by_path[p.text] for p in plan.parameters]
        assigned = [(old, *item) for old, new in zip(of_leaves, slots, strict=True) for item in new.items()]
        changed = [(old, name, array) for old, name, array in assigned if array is not old[name]]
        separate = apart([array for *_, array in changed], [*leaves, *values])
        assignments = [(old, name, array) for (old, name, _), array in zip(changed, separate, strict=True)]
        writes = _core.Writes(replacements=replacements, assignments=assignments, copies=copies)
        observes = self.options.loss_scale is not None
        self._core.step(model, (), (), programs=[], seed=self.options.seed, observes=observes, writes=writes)
        self._settle()

    # --- other values of parameters -----------------------------------------------------------------------------------

    def write_parameters(
        self, plan: Plan, leaves: list[Any], model: Any, values: dict[str, Any], swapped: dict[str, Any] | None
    ) -> Any:
        """The model with other values for its parameters, in place if they can be written; notes ``swapped``."""
        replacements, copies = plan.written_with(leaves, values)
        self._resolved.clear()  # so that the next step checks for swapped averages
        # As a part of the write, so that no interrupt comes between.
        noted = [(vars(self), "swapped", swapped)]
        return self._core.write(model, _core.Writes(replacements=replacements, assignments=noted, copies=copies))

    def averaged_parameters(self, model: Any = None) -> dict[str, Any]:
        """See `Optimizer.averaged_parameters`."""
        self.check_whole()
        if model is not None and self.slots:
            averages = averages_of(*self.planned(model), self.slots, self.counts.taken, self.swapped)
        elif self.plan and any(group.rule().average for group in self.plan.groups):
            raise StateError("the averages are computed from the parameters: expected a model")
        else:
            averages = named(self.slots, "average")
        return nonempty(averages, "averages")

    def copied_parameters(self) -> dict[str, Any]:
        """See `Optimizer.copied_parameters`."""
        self.check_whole()
        return nonempty(named(self.slots, gradient_transforms.NAMES["copy"]), "copies")

    def swap_in(self, model: Any) -> Any:
        """See `Optimizer.swap_in`."""
        if self.swapped is not None:
            raise StateError("the averages are swapped in already")
        averages = self.averaged_parameters(model)
        plan, leaves = self.planned(model)
        before = {p.text: xp.asarray(leaves[p.index], copy=True) for p in plan.parameters if p.text in averages}
        return self.write_parameters(plan, leaves, model, averages, before)

    def swap_out(self, model: Any) -> Any:
        """See `Optimizer.swap_out`."""
        if self.swapped is None:
            raise StateError("the averages are not swapped in")
        return self.write_parameters(*self.planned(model), model, self.swapped, None)
