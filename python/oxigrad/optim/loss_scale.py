"""Dynamic loss scaling, so that small gradients do not underflow in float16."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from oxigrad._typing import Config
from oxigrad.optim.attributes import Sealed
from oxigrad.rules.ranges import Domain, Interval

_POSITIVE = Domain(interval=Interval("(0, inf)"))
_AT_LEAST_ONE = Domain(interval=Interval("[1, inf)"))
_COUNT = Domain(interval=Interval("[1, inf)"), is_whole=True)


@dataclasses.dataclass
class LossScale(Sealed):
    """Dynamic loss scale: halved after a step with gradients that are not finite, doubled after ``interval`` finite ones.

    ``initial``, ``factor`` and ``interval`` are those of torch.amp.GradScaler (Micikevicius et al. 2018, arXiv:1710.03740).
    Given to an optimizer as ``loss_scale``, `minimize` multiplies the loss by it, the step divides the gradients by it, and steps
    with gradients that are not finite are skipped. Raises `ValueError` for an ``initial`` that is not positive, or a ``factor`` below 1.

    >>> scale = LossScale(initial=8.0, interval=2)
    >>> for finite in [True, False, True, True]:
    ...     scale.observe(finite=finite)
    >>> scale.value
    8.0
    """

    _checks: ClassVar[Mapping[str, Callable[[Any, Any], Any]]] = {
        "initial": lambda scale, value: _POSITIVE.check("initial", value),
        "factor": lambda scale, value: _AT_LEAST_ONE.check("factor", value),
        "interval": lambda scale, value: _COUNT.check("interval", value),
    }

    initial: float = 2.0**16
    factor: float = 2.0
    interval: int = 2000

    def __post_init__(self) -> None:
        self.value = float(self.initial)
        self.good = 0

    def observe(self, *, finite: bool) -> None:
        """Updates the scale after a step."""
        vars(self).update(self._after(finite=finite))

    def _after(self, *, finite: bool) -> dict[str, Any]:
        """The `state_dict` after a further step."""
        value, good = self.value, self.good + 1 if finite else 0
        if not finite:
            value /= self.factor
        elif good == self.interval:
            value, good = value * self.factor, 0
        return {"value": value, "good": good}

    def get_config(self) -> Config:
        """The loss scale as plain data."""
        return dataclasses.asdict(self)

    def state_dict(self) -> dict[str, Any]:
        """The current scale, and the number of finite steps since its last change."""
        return {"value": self.value, "good": self.good}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Loads the result of `state_dict`."""
        self.value, self.good = float(state["value"]), int(state["good"])
