"""The step of parameters that are updated in host memory, slice by slice."""

from collections.abc import Callable, Sequence
from typing import Any

from oxigrad import _core
from oxigrad.rules.core.slots import Slot
from oxigrad.step.device.step_writes import StepWrites
from oxigrad.step.parameters.executor import HOST
from oxigrad.step.placement.slices import Measures
from oxigrad.step.plan.programs import checked, step_once
from oxigrad.step.plan.step_program import StepProgram
from oxigrad.step.slice import Slice
from oxigrad.step.writes import call_step
from oxigrad.torch.state import conversion
from oxigrad.torch.step.plan import TensorParameter, TensorPlace, TensorPlan
from oxigrad.torch.step.slots import TensorSlots


class HostBatch(StepProgram):
    """The parameters at ``places`` that have gradients, for one step in host memory: their plan, kernels and numbers.

    ``scale`` is that of the loss that gradients are of, None for no scale; ``square`` is that of `TensorPlan`.
    """

    plan: TensorPlan

    def __init__(
        self,
        opt: Any,
        places: Sequence[TensorPlace],
        *,
        scale: float | None = None,
        loss: Any = None,
        square: Callable[[Any], float] | None = None,
    ) -> None:
        self.opt = opt
        plan = TensorPlan(opt, scaled=scale is not None, recorded=False, places=places, square=square, on_host=True)
        super().__init__(plan, seed=int(opt.param_groups[0].get("seed") or 0))
        self.fill(plan.count, 1, 1.0 if scale is None else 1.0 / scale, loss)
        #: The partial sums of all slices, in a step that measures them before it writes.
        self.measures: Measures | None = None
        # The slots of one number, by parameter and key, each with its value after the update.
        self._numbers: dict[tuple[str, str], tuple[Any, Any]] = {}

    def unit(self, p: TensorParameter) -> int:
        """The number of elements at whose multiples a parameter can be cut; 0 where its step needs all of it."""
        program = self.groups[p.group].program if p.executor is HOST else None
        return program.unit if program else 0

    def measure_in(self, measures: Measures) -> None:
        """Lets slices be measured before they are updated."""
        self.measures = measures
        for p in self.plan.parameters:
            group, slots = self.groups[p.group], self.plan.slots[p.text]
            numbers = [(slot, slots.of_core(slot)) for slot in group.rule.slots if slot.is_number]
            elements = conversion.local(p.tensor).numel()
            measures.add(p.position, self.programs_of_all[self.layout[p.group][0]][0], group.scalars, numbers, elements)

    def update(
        self,
        slices: Sequence[Slice],
        gradients: Sequence[Any],
        weights: Sequence[Any],
        slots: Sequence[TensorSlots],
        *,
        measures: bool = False,
    ) -> None:
        """Updates slices of parameters, by tensors in host memory; a rule that is called is called on whole parameters.

        With ``measures``, slices are measured for the next phase instead. A slot of one number is read by all slices as
        it was before the step, and written by `count`.
        """
        plan, writes = self.plan, StepWrites()
        all_gradients, leaves = [*plan.parameters], [*plan.parameters]
        written, read, parameters = [], [], []
        numbers: dict[tuple[str, str], tuple[Any, Any]] = {}
        for each, g, w, of in zip(slices, gradients, weights, slots, strict=True):
            p = each.leaf
            all_gradients[p.index], leaves[p.index] = g, w
            if p.executor is HOST:
                values = [(slot, self._slot(p, of, slot, numbers)) for slot in self.groups[p.group].rule.slots]
                parameters.append(self.host_parameter(p, w, values, first=each.first))
                written.append(w)
                read.append(g)
        if self.measures is not None and measures:
            core = _core.Stepper()
            core.count = plan.count
            core.prepare(parameters)
            stated = {"programs": self.programs, "seed": self.seed, "totals": self.measures.totals}
            partials = checked(core.measure(tuple(written), tuple(read), **stated))
            for each, of_slice in zip(slices, partials, strict=True):
                self.measures.note(each.leaf.position, each.first, of_slice)
            return
        if plan.ruled:
            updated = [each.leaf for each in slices]
            part = self.part(tuple([p.position for p in updated]), updated)
            slots_by_path = {each.path: of for each, of in zip(slices, slots, strict=True)}
            call_step(part, leaves, all_gradients, slots_by_path, writes)
        step_once(
            parameters,
            tuple(written),
            tuple(read),
            programs=self.programs,
            count=plan.count,
            seed=self.seed,
            writes=writes.frozen(),
            totals=self.measures and self.measures.totals,
        )
        self._numbers |= numbers

    def _slot(
        self, p: TensorParameter, slots: TensorSlots, slot: Slot, numbers: dict[tuple[str, str], tuple[Any, Any]]
    ) -> Any:
        """A slot as the core takes it; of one number a copy."""
        value = slots.of_core(slot)
        return numbers.setdefault((p.text, slot.name), (value, value.clone()))[1] if slot.is_number else value

    def count(self) -> None:
        """Sets the counts after the step that was taken, and the numbers of slots: a second call changes nothing."""
        plan = self.plan
        for slot, value in self._numbers.values():
            slot.copy_(value)
        for p in plan.parameters:
            if plan.groups[p.group].entry.counts:
                p.state["step"].fill_(float(plan.count - p.missed + 1))
        self.opt.masters.note(plan.mastered)
        if plan.draws:
            self.opt.param_groups[0]["noise_step"] = plan.count + 1
