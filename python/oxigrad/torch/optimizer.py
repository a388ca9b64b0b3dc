"""The base class of optimizers for PyTorch: `torch.optim.Optimizer` with the step of oxigrad.

All that an optimizer knows is in ``state``, ``param_groups`` and ``defaults``, as PyTorch keeps it; what a step resolves from them is
dropped when they change.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from oxigrad._core import ArrayMemoryError, DtypeError, ShapeError, StructureError
from oxigrad.torch.library import torch
from oxigrad.torch.resolved import ResolvedStep
from oxigrad.torch.table import Entry

# The options of all classes by keyword, as they are by default. They are in the groups where they are given.
OPTIONS: dict[str, Any] = {
    "state_dtype": None,
    "master": False,
    "rounding": "nearest",
    "seed": 0,
    "amp_fused": False,
}


class Stepping(torch.optim.Optimizer):
    """`torch.optim.Optimizer` whose ``step`` is one dispatch of oxigrad for all tensors in host memory."""

    entry: ClassVar[Entry]
    theirs: ClassVar[Any] = None
    _resolved: ResolvedStep | None = None

    # --- options -------------------------------------------------------------------------------------------------------

    def _take_options(self, keywords: dict[str, Any]) -> None:
        """Takes the options out of the keywords of the constructor."""
        given = {name: keywords.pop(name) for name in OPTIONS if name in keywords}
        self._given = {name: value for name, value in given.items() if value != OPTIONS[name]}

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group of parameters, a dict with its hyperparameters."""
        self.defaults |= self.__dict__.pop("_given", {})
        super().add_param_group(param_group)

    @property
    def _step_supports_amp_scaling(self) -> bool:
        """Whether a `torch.amp.GradScaler` leaves it to the step to divide gradients by the scale."""
        return any(group.get("amp_fused") for group in self.param_groups)

    @_step_supports_amp_scaling.setter
    def _step_supports_amp_scaling(self, value: bool) -> None:
        """Ignores what PyTorch's classes set for ``fused``: ``amp_fused`` says it."""

    # --- steps ---------------------------------------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Takes one step with the gradients of the parameters, and returns what ``closure`` did.

        Args:
            closure: a function that computes the gradients anew and returns the loss, called first, with gradients enabled.
        """
        if self.theirs is not None and self._is_left_to_torch():
            return _unhooked(self.theirs.step)(self, closure)
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with torch.no_grad():
            self._take()
        return loss

    def _is_left_to_torch(self) -> bool:
        """Whether the step is one that PyTorch differentiates or records in a graph of its own."""
        return any(group.get("differentiable") or group.get("capturable") for group in self.param_groups)

    def _take(self) -> None:
        scale, found_inf = getattr(self, "grad_scale", None), getattr(self, "found_inf", None)
        if found_inf is not None and float(found_inf):
            return None
        factor, resolved = (1.0 if scale is None else float(scale)), self._resolved
        if resolved is not None and resolved.is_current(self, scaled=scale is not None):
            try:
                return resolved.take(self, factor)
            except (ArrayMemoryError, DtypeError, ShapeError, StructureError):
                pass  # A tensor is not what it was; nothing has been written.
        self._resolved = None
        resolved = ResolvedStep(self, scaled=scale is not None)
        resolved.take(self, factor)
        self._resolved = resolved

    def check_tensors(self, path: str, p: Any) -> None:
        """Raises for a gradient that the optimizer does not take."""
        if p.grad.layout is not torch.strided:
            raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")


def _unhooked(step: Any) -> Any:
    """The function that ``step`` of a class was before PyTorch made it call the hooks, which that of this class does."""
    return step.__wrapped__ if getattr(step, "hooked", False) else step
