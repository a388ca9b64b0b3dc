"""Schedules: hyperparameters as functions of the step, counted from 0 for the first update.

Any callable of the step is a schedule. Those of this module also have a configuration (`get_config`), can be added and
multiplied, and accept arrays and traced values as steps.

* `base`: the base class, the arithmetic of schedules, and their configuration.
* `curves`: schedules with a closed formula, such as ``cosine``.
* `combined`: schedules composed of others, such as ``warmup_cosine``.
* `plateau`: a schedule that depends on a metric.

>>> schedule = warmup_cosine(0.1, warmup=10, steps=110)
>>> schedule(0), schedule(10), round(schedule(60), 6), schedule(110)
(0.0, 0.1, 0.05, 0.0)
"""

from typing import NoReturn

from oxigrad._names import unknown_name
from oxigrad.schedules.base import Schedule, add, follow, from_config, multiply
from oxigrad.schedules.combined import (
    clip,
    cooldown,
    inverse_time,
    join,
    multistep,
    noam,
    one_cycle,
    piecewise,
    rsqrt,
    staircase,
    step,
    warmup,
    warmup_cosine,
    wsd,
)
from oxigrad.schedules.curves import (
    constant,
    cosine,
    cosine_restarts,
    cyclic,
    exponential,
    inverse_power,
    linear,
    one_minus_sqrt,
    polynomial,
    rex,
)
from oxigrad.schedules.plateau import plateau

__all__ = [
    "Schedule",
    "add",
    "clip",
    "constant",
    "cooldown",
    "cosine",
    "cosine_restarts",
    "cyclic",
    "exponential",
    "follow",
    "from_config",
    "inverse_power",
    "inverse_time",
    "join",
    "linear",
    "multiply",
    "multistep",
    "noam",
    "one_cycle",
    "one_minus_sqrt",
    "piecewise",
    "plateau",
    "polynomial",
    "rex",
    "rsqrt",
    "staircase",
    "step",
    "warmup",
    "warmup_cosine",
    "wsd",
]

__dir__ = __all__.copy


def __getattr__(name: str) -> NoReturn:
    raise unknown_name(__name__, name, __all__)
