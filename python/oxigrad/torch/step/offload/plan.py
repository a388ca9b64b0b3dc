"""The plan of a step in host memory, and the numbers of its kernels."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from oxigrad.stepping.plan.step_program import StepProgram
from oxigrad.torch.step.plan import TensorPlace, TensorPlan

_NOTHING: Mapping[int, Any] = MappingProxyType({})


class HostBatch:
    """The parameters at ``places`` that have gradients, for one step in host memory: their plan, kernels and numbers.

    ``scale`` is that of the loss that gradients are of, None for no scale; ``square`` is that of `TensorPlan`. ``sums``
    has gradients of micro-batches before, by the identity of the parameter.
    """

    def __init__(
        self,
        opt: Any,
        places: Sequence[TensorPlace],
        *,
        scale: float | None = None,
        loss: Any = None,
        square: Callable[[Any], float] | None = None,
        sums: Mapping[int, Any] = _NOTHING,
    ) -> None:
        self.sums: Mapping[int, Any] = sums
        self.plan: TensorPlan = TensorPlan(
            opt, scaled=scale is not None, recorded=False, places=places, square=square, on_host=True
        )
        self.program: StepProgram = StepProgram(self.plan, seed=int(opt.param_groups[0].get("seed") or 0))
        self._scale, self._loss, self._is_filled = 1.0 if scale is None else scale, loss, False
        self.places: dict[int, TensorPlace] = {id(place.tensor): place for place in places}
        #: The numbers of slots after the update, by parameter and key.
        self.numbers: dict[tuple[str, str], Any] = {}

    def fill(self) -> StepProgram:
        """The kernels with the numbers of the step, which are read before the first update."""
        if not self._is_filled:
            self.program.fill(self.plan.count, 1, 1.0 / self._scale, self._loss)
            self._is_filled = True
        return self.program

    def count(self, opt: Any) -> None:
        """Sets the counts after the step that was taken, and the numbers of slots: a second call changes nothing."""
        plan = self.plan
        for p in plan.parameters:
            for key in [key for text, key in self.numbers if text == p.text]:
                p.state[key].copy_(self.numbers[p.text, key])
            if plan.groups[p.group].entry.counts:
                p.state["step"].fill_(float(plan.count - p.missed + 1))
        if plan.draws:
            opt.param_groups[0]["noise_step"] = plan.count + 1
