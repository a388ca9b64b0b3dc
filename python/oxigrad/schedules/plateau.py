"""A schedule that reduces the learning rate when a metric stops improving."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from oxigrad._typing import Array
from oxigrad.schedules.base import Schedule
from oxigrad.schedules.numbers import number

_MODES = {"min": 1.0, "max": -1.0}


@dataclasses.dataclass(frozen=True)
class plateau(Schedule, positive="factor"):
    """``initial``, multiplied by ``factor`` after more than ``patience`` observations without an improvement.

    Args:
        initial: value before the first reduction.
        factor: factor of a reduction, below 1.
        patience: number of observations without improvement before a reduction.
        rtol: relative improvement that counts.
        atol: absolute improvement that counts.
        cooldown: number of observations after a reduction that do not count.
        minimum: smallest value, which is not reduced further.
        epsilon: smallest change that is made.
        mode: "min" where the metric should fall, "max" where it should rise.

    Call `observe` with the metric, such as the validation loss after each epoch. The value does not depend on the step;
    multiply it by another schedule to scale that. `state_dict` has the state.

    An improvement (``mode`` "min") is a value below ``best - rtol * |best| - atol``. After a reduction, ``cooldown``
    observations are not counted. The value is never below ``minimum``, and is not reduced by ``epsilon`` or less.

    As torch's ``ReduceLROnPlateau``, whose ``threshold`` is rtol, or atol in its mode "abs". There, ``best * (1 -
    threshold)`` improves on a negative best value although it is worse. optax's ``reduce_on_plateau`` counts patience
    one higher and has no epsilon; instead of its ``accumulation_size``, observe averages.

    In a traced program, such as ``jax.jit(opt.apply)``, it is a constant, the value at the time of tracing.

    >>> schedule = plateau(0.1, factor=0.5, patience=1)
    >>> [schedule.observe(loss) for loss in (3.0, 2.0, 2.5, 2.5, 1.0)]
    [0.1, 0.1, 0.1, 0.05, 0.05]
    >>> schedule(5)
    0.05
    """

    initial: float
    factor: float = 0.1
    patience: int = 10
    rtol: float = 1e-4
    atol: float = 0.0
    cooldown: int = 0
    minimum: float = 0.0
    epsilon: float = 1e-8
    mode: str = "min"
    _state: dict[str, Any] = dataclasses.field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.factor < 1:
            raise ValueError(f"factor is {self.factor}: expected less than 1")
        for name in ("patience", "rtol", "atol", "cooldown", "epsilon"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} is {getattr(self, name)}: expected 0 or more")
        if self.minimum > self.initial:
            raise ValueError(f"minimum is {self.minimum}: expected at most initial, {self.initial}")
        if self.mode not in _MODES:
            raise ValueError(f"mode is {self.mode!r}: expected one of {', '.join(_MODES)}")
        self._state.update(value=self.initial, best=None, bad=0, cooling=0)

    def at(self, step: Array) -> Array:
        return self._state["value"]

    def observe(self, metric: Array) -> float:
        """Records a value of the metric, a number or a 0-d array, and returns the new value of the schedule.

        NaN is no improvement. Raises `TypeError` for anything else, with nothing changed.
        """
        metric, state = number(metric), self._state
        if self._improves(metric):
            state["best"], state["bad"] = metric, 0
        else:
            state["bad"] += 1
        if state["cooling"] > 0:
            state["cooling"] -= 1
            state["bad"] = 0
        if state["bad"] > self.patience:
            reduced = max(state["value"] * self.factor, self.minimum)
            if state["value"] - reduced > self.epsilon:
                state["value"] = reduced
            state["cooling"], state["bad"] = self.cooldown, 0
        return state["value"]

    def _improves(self, metric: float) -> bool:
        best, sign = self._state["best"], _MODES[self.mode]
        if best is None:
            return sign * metric < math.inf
        return sign * metric < sign * best - self.rtol * abs(best) - self.atol

    def state_dict(self) -> dict[str, Any]:
        """See `Schedule.state_dict`."""
        return dict(self._state)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See `Schedule.load_state_dict`."""
        self._state.update(self._checked_state(state))
