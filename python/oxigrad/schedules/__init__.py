"""Schedules: hyperparameters as functions of the step, counted from 0 for the first update.

Any callable of the step is a schedule. Schedules of this module also have a configuration (`get_config`), can be added
and multiplied, and accept arrays and traced values as steps.

* `base`: the base class, the arithmetic of schedules, and their configuration.
* `curves`: schedules with a closed formula, such as ``cosine``.
* `combined`: schedules composed of others, such as ``warmup_cosine``.
* `plateau`: a schedule that depends on a metric.

>>> schedule = warmup_cosine(0.1, warmup=10, steps=110)
>>> schedule(0), schedule(10), round(schedule(60), 6), schedule(110)
(0.0, 0.1, 0.05, 0.0)
"""

from typing import TYPE_CHECKING

from oxigrad._names import without
from oxigrad.schedules import combined, curves
from oxigrad.schedules.base import Schedule, add, follow, from_config, multiply
from oxigrad.schedules.combined import *  # noqa: F403 - a schedule is named in its file alone
from oxigrad.schedules.curves import *  # noqa: F403
from oxigrad.schedules.plateau import plateau

__all__ = [
    "Schedule",
    "add",
    "follow",
    "from_config",
    "multiply",
    "plateau",
]
__all__ += combined.__all__
__all__ += curves.__all__

# The names of these schedules in PyTorch, optax and Keras.
_ELSEWHERE = {
    other: f"use schedules.{name}"
    for name, others in {
        "constant": "ConstantLR constant_schedule",
        "cosine": "CosineAnnealingLR cosine_decay_schedule CosineDecay",
        "cosine_restarts": "CosineAnnealingWarmRestarts sgdr_schedule CosineDecayRestarts",
        "cyclic": "CyclicLR",
        "exponential": "ExponentialLR exponential_decay ExponentialDecay",
        "inverse_time": "InverseTimeDecay",
        "join": "SequentialLR join_schedules",
        "linear": "LinearLR linear_schedule",
        "multiply": "ChainedScheduler",
        "multistep": "MultiStepLR piecewise_constant_schedule",
        "one_cycle": "OneCycleLR cosine_onecycle_schedule linear_onecycle_schedule",
        "piecewise": "MultiplicativeLR piecewise_interpolate_schedule PiecewiseConstantDecay",
        "plateau": "ReduceLROnPlateau",
        "polynomial": "PolynomialLR polynomial_schedule PolynomialDecay",
        "step": "StepLR",
        "warmup": "warmup_constant_schedule",
        "warmup_cosine": "warmup_cosine_decay_schedule",
    }.items()
    for other in others.split()
} | {"LambdaLR": "any function of the step is a schedule", "LRScheduler": "any function of the step is a schedule"}

if not TYPE_CHECKING:  # to type checkers, a name that is not there is an error
    __dir__, __getattr__ = without(__name__, __all__, _ELSEWHERE)
