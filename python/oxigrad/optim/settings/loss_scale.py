"""Dynamic loss scaling, so that small gradients do not underflow in float16."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from oxigrad._typing import Config
from oxigrad.optim.settings.attributes import Sealed
from oxigrad.rules.core.ranges import COUNT, Domain, Interval
from oxigrad.step.parameters.observed_scale import ObservedScale

_POSITIVE = Domain(interval=Interval("(0, inf)"))
_AT_LEAST_ONE = Domain(interval=Interval("[1, inf)"))


@dataclasses.dataclass
class LossScale(Sealed, ObservedScale):
    """Dynamic loss scale: halved after a step with non-finite gradients, doubled after ``interval`` finite ones.

    Args:
        initial: scale of the first steps.
        factor: factor by which the scale grows, and by whose inverse it falls.
        interval: number of finite steps before the scale grows.

    ``initial``, ``factor`` and ``interval`` are as in torch.amp.GradScaler (Micikevicius et al. 2018,
    arXiv:1710.03740). As the ``loss_scale`` of an optimizer, it multiplies the loss in `minimize` and divides the
    gradients in the step. Steps with gradients that are not finite are skipped. Raises `ValueError` for an
    ``initial`` that is not positive, or a ``factor`` below 1. A step may change the value, so losses of several
    optimizers that are scaled before their steps need a scale for each optimizer.

    >>> scale = LossScale(initial=8.0, interval=2)
    >>> for finite in [True, False, True, True]:
    ...     scale.observe(finite=finite)
    >>> scale.value
    8.0

    Steps on a CUDA device keep the scale there (see `oxigrad.cuda`). Reading or setting an attribute waits for them.
    """

    _checks: ClassVar[Mapping[str, Callable[[Any, Any], Any]]] = {
        "initial": lambda scale, value: _POSITIVE.check("initial", value),
        "factor": lambda scale, value: _AT_LEAST_ONE.check("factor", value),
        "interval": lambda scale, value: COUNT.check("interval", value),
    }

    initial: float = 2.0**16
    factor: float = 2.0
    interval: int = 2000

    def __post_init__(self) -> None:
        self.value = float(self.initial)
        self.good = 0
        self._seal()  # since a dataclass gets its ``__init__`` after `Sealed.__init_subclass__`

    def _set_checked(self, name: str, value: Any) -> None:
        """See `Sealed._set_checked`: the steps so far have the old value."""
        self._sync_counts()
        super()._set_checked(name, value)

    def __getstate__(self) -> dict[str, Any]:
        self._sync_counts()
        return {name: value for name, value in vars(self).items() if name != "_readers"}

    def _of_kernel(self) -> tuple[float, float] | None:
        """See `ObservedScale._of_kernel`: None for a subclass, which may update the scale otherwise."""
        return super()._of_kernel() if type(self) is LossScale else None

    def get_config(self) -> Config:
        """The loss scale as plain data."""
        return dataclasses.asdict(self)

    def state_dict(self) -> dict[str, Any]:
        """The current scale, and the number of finite steps since its last change."""
        return {"value": self.value, "good": self.good}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Loads the result of `state_dict`."""
        self.value, self.good = float(state["value"]), int(state["good"])
