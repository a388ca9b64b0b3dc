"""Schedules: hyperparameters as pure functions of the step, counted from 0 for the first update.

Any callable of the step is a schedule; the ones here can also be written down by `get_config`, and take arrays as steps.

>>> schedule = warmup_cosine(0.1, warmup=10, steps=110)
>>> schedule(0), schedule(10), round(schedule(60), 6), schedule(110)
(0.0, 0.1, 0.05, 0.0)
"""

import dataclasses
import math
from typing import Any

from oxigrad import xp

_REGISTRY: dict[str, type["Schedule"]] = {}


@dataclasses.dataclass(frozen=True)
class Schedule:
    """A function of the step that can be written down as plain data."""

    def __init_subclass__(cls) -> None:
        _REGISTRY[cls.__name__] = cls

    def __call__(self, step: Any) -> Any:
        """The value at ``step``, counted from 0."""
        raise TypeError(f"{type(self).__name__} does not say what its value is")

    def get_config(self) -> dict[str, Any]:
        """The schedule as plain data, for `from_config`."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {"schedule": type(self).__name__, **{name: _plain(value) for name, value in fields.items()}}


def _plain(value: Any) -> Any:
    if isinstance(value, Schedule):
        return value.get_config()
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def from_config(config: dict[str, Any]) -> Schedule:
    """The schedule that `Schedule.get_config` wrote down.

    >>> from_config(constant(0.1).get_config())(5)
    0.1
    """
    fields = dict(config)
    name = fields.pop("schedule", None)
    if name not in _REGISTRY:
        raise ValueError(f"schedule is {name!r}: expected one of {sorted(_REGISTRY)}")

    def read(value: Any) -> Any:
        if isinstance(value, dict):
            return from_config(value)
        return tuple(map(read, value)) if isinstance(value, list) else value

    return _REGISTRY[name](**{key: read(value) for key, value in fields.items()})


def _progress(step: Any, steps: float) -> Any:
    return xp.minimum(1.0, xp.maximum(0.0, step / steps))


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not value > 0:
            raise ValueError(f"{name} is {value}: expected a positive number")


@dataclasses.dataclass(frozen=True)
class constant(Schedule):
    """Always ``value``."""

    value: float

    def __call__(self, step: Any) -> Any:
        return self.value


@dataclasses.dataclass(frozen=True)
class linear(Schedule):
    """From ``initial`` to ``final`` over ``steps`` steps, then ``final``."""

    initial: float
    final: float
    steps: int

    def __post_init__(self) -> None:
        _positive(steps=self.steps)

    def __call__(self, step: Any) -> Any:
        return self.initial + (self.final - self.initial) * _progress(step, self.steps)


@dataclasses.dataclass(frozen=True)
class cosine(Schedule):
    """Half a cosine wave from ``initial`` to ``final`` over ``steps`` steps (Loshchilov and Hutter 2017)."""

    initial: float
    steps: int
    final: float = 0.0

    def __post_init__(self) -> None:
        _positive(steps=self.steps)

    def __call__(self, step: Any) -> Any:
        wave = 0.5 * (1.0 + xp.cos(math.pi * _progress(step, self.steps)))
        return self.final + (self.initial - self.final) * wave


@dataclasses.dataclass(frozen=True)
class inverse_power(Schedule):
    """``initial / (1 + gamma * step) ** power`` (Bottou; torch's ASGD has gamma = lambd * lr and power = alpha)."""

    initial: float
    gamma: float
    power: float = 1.0

    def __call__(self, step: Any) -> Any:
        return self.initial / (1.0 + self.gamma * step) ** self.power


@dataclasses.dataclass(frozen=True)
class join(Schedule):
    """One schedule after the other: the next begins, at its own step 0, at each of the ascending ``boundaries``."""

    schedules: tuple[Schedule, ...]
    boundaries: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "schedules", tuple(self.schedules))
        object.__setattr__(self, "boundaries", tuple(self.boundaries))
        if len(self.schedules) != len(self.boundaries) + 1 or list(self.boundaries) != sorted(set(self.boundaries)):
            raise ValueError("join takes one more schedule than boundaries, and the boundaries must ascend")

    def __call__(self, step: Any) -> Any:
        value = self.schedules[0](step)
        for boundary, schedule in zip(self.boundaries, self.schedules[1:], strict=True):
            value = xp.where(step < boundary, value, schedule(step - boundary))
        return value


def warmup_cosine(peak: float, warmup: int, steps: int, final: float = 0.0) -> Schedule:
    """Linear from 0 to ``peak`` over the first ``warmup`` steps, then `cosine` to ``final`` at step ``steps``."""
    _positive(warmup=warmup)
    return join((linear(0.0, peak, warmup), cosine(peak, steps - warmup, final)), (warmup,))
