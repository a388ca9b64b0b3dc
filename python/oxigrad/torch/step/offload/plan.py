"""The plan of a step in host memory, its kernels with their numbers, and the updates of slices."""

from collections.abc import Callable, Sequence
from typing import Any

from oxigrad.rules.core.slots import Slot
from oxigrad.stepping.device.step_writes import StepWrites
from oxigrad.stepping.parameters.executor import HOST
from oxigrad.stepping.plan.programs import step_once
from oxigrad.stepping.plan.step_program import StepProgram
from oxigrad.stepping.writes import call_step
from oxigrad.torch.step.plan import TensorParameter, TensorPlace, TensorPlan
from oxigrad.torch.step.slots import TensorSlots


class HostBatch:
    """The parameters at ``places`` that have gradients, for one step in host memory: their plan, kernels and numbers.

    ``scale`` is that of the loss that gradients are of, None for no scale; ``square`` is that of `TensorPlan`.
    """

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
        self.plan: TensorPlan = TensorPlan(
            opt, scaled=scale is not None, recorded=False, places=places, square=square, on_host=True
        )
        self.program: StepProgram = StepProgram(self.plan, seed=int(opt.param_groups[0].get("seed") or 0))
        self._scale, self._loss, self._is_filled = 1.0 if scale is None else scale, loss, False
        self.places: dict[int, TensorPlace] = {id(place.tensor): place for place in places}
        # The numbers of slots after the update, by parameter and key.
        self._numbers: dict[tuple[str, str], Any] = {}

    def update(
        self, slices: Sequence[Any], gradients: Sequence[Any], weights: Sequence[Any], slots: Sequence[TensorSlots]
    ) -> None:
        """Updates slices of parameters, by tensors in host memory. The numbers of the step are read before the first.

        A slot of one number is read by all slices as it was before the step, and written by `count`.
        """
        program, plan, writes = self.program, self.plan, StepWrites()
        if not self._is_filled:
            program.fill(plan.count, 1, 1.0 / self._scale, self._loss)
            self._is_filled = True
        all_gradients, leaves = [*plan.parameters], [*plan.parameters]
        written, read, parameters = [], [], []
        numbers: dict[tuple[str, str], Any] = {}
        for each, g, w, of in zip(slices, gradients, weights, slots, strict=True):
            p = each.leaf
            all_gradients[p.index], leaves[p.index] = g, w
            if p.executor is HOST:
                values = [(slot, self._slot(p, of, slot, numbers)) for slot in program.groups[p.group].rule.slots]
                parameters.append(program.host_parameter(p, w, values, first=each.first))
                written.append(w)
                read.append(g)
        slots_by_path = {each.path: of for each, of in zip(slices, slots, strict=True)}
        call_step(program, leaves, all_gradients, slots_by_path, writes)
        step_once(
            parameters,
            tuple(written),
            tuple(read),
            programs=program.programs,
            count=plan.count,
            seed=program.seed,
            writes=writes.frozen(),
        )
        self._numbers |= numbers

    def _slot(self, p: TensorParameter, slots: TensorSlots, slot: Slot, numbers: dict[tuple[str, str], Any]) -> Any:
        """A slot as the core takes it; of one number a copy."""
        value = slots.of_core(slot)
        if not slot.is_number:
            return value
        return numbers.setdefault((p.text, self.plan.groups[p.group].entry.key_of_slot(slot.name)), value.clone())

    def count(self) -> None:
        """Sets the counts after the step that was taken, and the numbers of slots: a second call changes nothing."""
        plan = self.plan
        for p in plan.parameters:
            for key in [key for text, key in self._numbers if text == p.text]:
                p.state[key].copy_(self._numbers[p.text, key])
            if plan.groups[p.group].entry.counts:
                p.state["step"].fill_(float(plan.count - p.missed + 1))
        if plan.draws:
            self.opt.param_groups[0]["noise_step"] = plan.count + 1
