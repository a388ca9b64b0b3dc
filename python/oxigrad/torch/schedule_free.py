"""Schedule-free optimizers for PyTorch: the model holds the gradients' point, or the average for evaluation."""

from collections.abc import Mapping
from typing import Any

from oxigrad import xp
from oxigrad.torch.additional import AdditionalOptimizer
from oxigrad.torch.library import torch
from oxigrad.torch.state import conversion
from oxigrad.torch.table import named

# The key in the state of the point where gradients are taken, while the parameter is the average.
_POINT = "train_point"


class ScheduleFree(AdditionalOptimizer):
    """Base class of schedule-free optimizers: call ``eval()`` before evaluating or saving, ``train()`` before training.

    As in the authors' program, ``train_mode`` of a group tells which its parameters are. A step in evaluation mode
    raises `RuntimeError`.
    """

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group of parameters, a dict with its hyperparameters, which are checked."""
        super().add_param_group(param_group)
        self.param_groups[-1].setdefault("train_mode", True)

    def points(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        """The key of the points where gradients are taken, while the parameters are the averages."""
        return () if group.get("train_mode", True) else (_POINT,)

    def train(self, mode: bool = True) -> None:
        """Puts the points where gradients are taken into the parameters; with ``mode=False``, the averages."""
        with torch.no_grad():
            for number, group in enumerate(self.param_groups):
                if group.get("train_mode", True) != mode:
                    self._convert(number, group, mode)
                    group["train_mode"] = mode

    def eval(self) -> None:
        """Puts the averages, which are for evaluation, into the parameters."""
        self.train(mode=False)

    def _convert(self, number: int, group: dict[str, Any], to_train: bool) -> None:
        beta1 = self.entry.value("beta1", group, named=named(number))
        for p in group["params"]:
            state = self.state.get(p, {})
            if (z := state.get("z")) is None:
                continue
            if to_train:
                p.copy_(state.pop(_POINT))
                continue
            state[_POINT] = p.detach().clone()
            held = conversion.local(p)
            z = conversion.local(z).to(held.device)
            held.copy_(self.entry.rule.averaged(xp, held.to(z.dtype), {"z": z}, {"beta1": beta1}))

    def _take(self, scale: Any, loss: Any = None, *part: Any) -> bool:
        if not all(group.get("train_mode", True) for group in self.param_groups):
            raise RuntimeError(f"{type(self).__name__}: the parameters are the averages: call train() before a step")
        return super()._take(scale, loss, *part)
