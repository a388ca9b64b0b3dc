"""The step of parameters that are updated in host memory, slice by slice."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

from oxigrad.rules.core.slots import Slot
from oxigrad.stepping.device.step_writes import StepWrites
from oxigrad.stepping.parameters.executor import HOST
from oxigrad.stepping.placement.slices import Slice
from oxigrad.stepping.plan.programs import step_once
from oxigrad.stepping.plan.step_program import StepProgram
from oxigrad.stepping.writes import call_step
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
        self._inverse_scale, self._loss, self._is_filled = 1.0 if scale is None else 1.0 / scale, loss, False
        self.places: dict[int, TensorPlace] = {id(place.tensor): place for place in places}
        # The slots of one number, by parameter and key, each with its value after the update.
        self._numbers: dict[tuple[str, str], tuple[Any, Any]] = {}

    def update(
        self, slices: Sequence[Slice], gradients: Sequence[Any], weights: Sequence[Any], slots: Sequence[TensorSlots]
    ) -> None:
        """Updates slices of parameters, by tensors in host memory; a rule that is called is called on whole parameters.

        A slot of one number is read by all slices as it was before the step, and written by `count`.
        """
        plan, writes = self.plan, StepWrites()
        if not self._is_filled:  # with the norm of all gradients, which is measured by now
            self.fill(plan.count, 1, self._inverse_scale, self._loss)
            self._is_filled = True
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
        if plan.ruled:
            called = copy.copy(self)
            called.plan = copy.copy(plan)
            called.plan.ruled = [each.leaf for each in slices if each.leaf.executor is not HOST]
            slots_by_path = {each.path: of for each, of in zip(slices, slots, strict=True)}
            call_step(called, leaves, all_gradients, slots_by_path, writes)
        step_once(
            parameters,
            tuple(written),
            tuple(read),
            programs=self.programs,
            count=plan.count,
            seed=self.seed,
            writes=writes.frozen(),
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
        if plan.draws:
            self.opt.param_groups[0]["noise_step"] = plan.count + 1
