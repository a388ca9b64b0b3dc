"""Losses that `minimize` has recorded."""

import warnings
import weakref
from collections.abc import Callable
from typing import Any

from oxigrad.autodiff.transforms import value_and_grad
from oxigrad.optim.losses import LossWithAux, dependent
from oxigrad.recording.function import record

# Recordings of losses that were replaced before they were replayed.
_MOST = 4


class RecordedLosses:
    """The recorded loss of an optimizer: the last one that `minimize` was called with."""

    def __init__(self) -> None:
        self._loss: Callable[[Any], Any] | None = None
        self._recorded = record(_nothing)
        self._has_aux = False
        self._wasted = 0

    @classmethod
    def of(cls, optimizer: Any) -> "RecordedLosses":
        """The recorded losses of an optimizer, which live as long as it does."""
        losses = _by_optimizer.get(optimizer)
        if losses is None:
            losses = _by_optimizer[optimizer] = cls()
        return losses

    def value_and_grad(self, loss: Callable[[Any], Any], model: Any) -> tuple[Any, Any]:
        """The value of a loss and its gradient, replayed if the last step had the same loss."""
        function = loss.function if isinstance(loss, LossWithAux) else loss
        if (self._loss, self._has_aux) != (function, function is not loss):
            self._replace(function, has_aux=function is not loss)
        replayed = self._recorded.__wrapped__ if self._wasted > _MOST else self._recorded
        value, grads = replayed(model)
        if isinstance(loss, LossWithAux):
            value, aux = value
            loss.keep(aux)
        return value, grads

    def _replace(self, loss: Callable[[Any], Any], *, has_aux: bool) -> None:
        if self._loss is not None and not self._recorded.replays:
            self._wasted += 1
            if self._wasted == _MOST + 1:
                warnings.warn(
                    "minimize(record=True): the loss is another function in each step, so that nothing is replayed: "
                    "define it once, and let it read the batch from variables",
                    stacklevel=4,
                )
        # Recorded with the check that it depends on the model.
        checked = _checked_pair if has_aux else dependent
        self._loss, self._has_aux = loss, has_aux
        self._recorded = record(value_and_grad(lambda model: checked(loss(model)), has_aux=has_aux))


def _checked_pair(result: Any) -> tuple[Any, Any]:
    value, aux = LossWithAux.pair(result)
    return dependent(value), aux


def _nothing(model: Any) -> Any:
    return model


_by_optimizer: weakref.WeakKeyDictionary[Any, RecordedLosses] = weakref.WeakKeyDictionary()
