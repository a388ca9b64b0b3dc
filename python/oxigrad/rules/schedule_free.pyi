# Printed by make generated.
from typing import Annotated
from oxigrad.rules.core.ranges import Decay, Interval, NonNegative, Positive
from typing import Any
from oxigrad._typing import Array

__all__ = ['prodigy', 'schedule_free_adamw', 'schedule_free_average', 'schedule_free_sgd']
def schedule_free_average(xp: Any, y: Array, z: Array, *, beta1: Array) -> Array:
    """The average ``x`` of schedule-free rules, from the gradient point ``y`` and the slot ``z``."""

def moved_average(
    xp: Any, y: Array, z: Array, moved: Array, weights: Array, largest: Array, learning_rate: Array, beta1: Array,
    weight_power: Array,
) -> tuple[Array, ...]:
    """Moves the average ``x`` towards ``moved``, the new ``z``; returns ``y``, their interpolation, and the slots."""

def schedule_free(
    xp: Any, y: Array, z: Array, direction: Array, weights: Array, largest: Array, learning_rate: Array, beta1: Array,
    weight_power: Array,
) -> Array:
    """Moves ``z`` by a step and the average towards it; see `moved_average`."""

def schedule_free_sgd(
    xp: Any, p: Array, g: Array, z: Array=..., weights: Array=..., largest: Array=..., *,
    learning_rate: NonNegative=1.0,
    beta1: Annotated[float, Interval('(0, 1]'), 'Share of the average in the point at which gradients are taken.']=0.9,
    weight_decay: NonNegative=0.0, weight_power: NonNegative=2.0,
) -> Array:
    """Schedule-free SGD (Defazio et al. 2024, arXiv:2405.15682), as the authors' program."""

def schedule_free_adamw(
    xp: Any, p: Array, g: Array, v: Array=..., z: Array=..., weights: Array=..., largest: Array=..., *, step: Array,
    learning_rate: NonNegative=0.0025,
    beta1: Annotated[float, Interval('(0, 1]'), 'Share of the average in the point at which gradients are taken.']=0.9,
    beta2: Decay=0.999, epsilon: NonNegative=1e-08, weight_decay: NonNegative=0.0, weight_power: NonNegative=2.0,
    decoupled: Array=False,
) -> tuple[Array, ...]:
    """Schedule-free AdamW (Defazio et al. 2024, arXiv:2405.15682), as the authors' program; see `schedule_free_sgd`."""

def prodigy(
    xp: Any, p: Array, g: Array, m: Array=..., v: Array=..., s: Array=..., start: Array=..., d: Array=...,
    numerator: Array=..., *, step: Array, total: Array,
    learning_rate: Annotated[NonNegative, 'Factor of the estimated step size; leave it at 1, or set a schedule.']=1.0,
    beta1: Decay=0.9, beta2: Decay=0.999,
    beta3: Annotated[Decay, 'Decay of the sums that estimate the distance; 0 means the square root of ``beta2``.']=0.0,
    epsilon: NonNegative=1e-08, weight_decay: NonNegative=0.0, d0: Positive=1e-06,
    d_coefficient: Annotated[Positive, 'Factor of the estimate of the distance.']=1.0,
    safeguard_warmup: Annotated[
        bool, 'Whether the estimate ignores the learning rate, so that a warm-up does not slow it.',
    ]=False,
    bias_correction: Array=True,
) -> tuple[Array, ...]:
    """Prodigy (Mishchenko and Defazio 2023, arXiv:2306.06101), as in optax: Adam with an estimated learning rate."""
