"""Schedule-free SGD and AdamW, and Prodigy, which estimates the learning rate."""

from typing import Annotated

from oxigrad.rules.core.arrays import wide_product
from oxigrad.rules.core.moments import root
from oxigrad.rules.core.ranges import Decay, Interval, NonNegative, Positive
from oxigrad.rules.core.slots import Slot

__all__ = ["prodigy", "schedule_free_adamw", "schedule_free_average", "schedule_free_sgd"]


def schedule_free_average(xp, y, z, *, beta1):
    """The average ``x`` of schedule-free rules, from the gradient point ``y`` and the slot ``z``."""
    return (y - (1 - beta1) * z) / beta1


def moved_average(xp, y, z, moved, weights, largest, learning_rate, beta1, weight_power):
    """Moves the average ``x`` towards ``moved``, the new ``z``; returns ``y``, their interpolation, and the slots."""
    largest = xp.maximum(largest, learning_rate)
    weight = largest**weight_power
    weights = weights + weight
    x = schedule_free_average(xp, y, z, beta1=beta1)
    x = x + weight / xp.where(weights > 0, weights, 1.0) * (moved - x)
    return beta1 * x + (1 - beta1) * moved, moved, weights, largest


def schedule_free(xp, y, z, direction, weights, largest, learning_rate, beta1, weight_power):
    """Moves ``z`` by a step and the average towards it; see `moved_average`."""
    moved = z - learning_rate * direction
    return moved_average(xp, y, z, moved, weights, largest, learning_rate, beta1, weight_power)


def schedule_free_sgd(
    xp,
    p,
    g,
    z=Slot.copy(decay=1.0),
    weights=Slot.scalar(0.0),
    largest=Slot.scalar(0.0),
    *,
    learning_rate: NonNegative = 1.0,
    beta1: Annotated[
        float, Interval("(0, 1]"), "Share of the average in the point at which gradients are taken."
    ] = 0.9,
    weight_decay: NonNegative = 0.0,
    weight_power: NonNegative = 2.0,
):
    """Schedule-free SGD (Defazio et al. 2024, arXiv:2405.15682), as the authors' program.

    Gradients are taken at ``y``, an interpolation of iterate and average, which the model holds. Evaluate with the
    average, which ``averaged_parameters(model)`` returns and ``swap_in`` copies into the model. The weight of a step in
    the average is the largest learning rate so far to the power ``weight_power``, so that a warm-up has little weight.
    A constant learning rate gives optax's results. A schedule does not, since optax weights each step by the learning
    rate of the next one.
    """
    return schedule_free(xp, p, z, g + weight_decay * p, weights, largest, learning_rate, beta1, weight_power)


def schedule_free_adamw(
    xp,
    p,
    g,
    v=Slot.zeros(decay="beta2"),
    z=Slot.copy(decay=1.0),
    weights=Slot.scalar(0.0),
    largest=Slot.scalar(0.0),
    *,
    step,
    learning_rate: NonNegative = 2.5e-3,
    beta1: Annotated[
        float, Interval("(0, 1]"), "Share of the average in the point at which gradients are taken."
    ] = 0.9,
    beta2: Decay = 0.999,
    epsilon: NonNegative = 1e-8,
    weight_decay: NonNegative = 0.0,
    weight_power: NonNegative = 2.0,
    decoupled=False,
):
    """Schedule-free AdamW (Defazio et al. 2024, arXiv:2405.15682), as the authors' program; see `schedule_free_sgd`.

    ``decoupled`` decays the parameter first, and with it the average, as Keras does, rather than ``z``. Keras weights
    all steps equally (``weight_power=0``); its ``warmup_steps`` are a schedule here.
    """
    v = beta2 * v + (1 - beta2) * g * g
    direction = g / root(xp, v, 1 - beta2**step, epsilon)
    if decoupled:
        p = (1 - learning_rate * weight_decay) * p
    else:
        direction = direction + weight_decay * p
    p, z, weights, largest = schedule_free(xp, p, z, direction, weights, largest, learning_rate, beta1, weight_power)
    return p, v, z, weights, largest


def _decay_of_sums(xp, p, beta2, beta3):
    """The decay of the sums that estimate the distance."""
    return xp.where(beta3 > 0, beta3, xp.sqrt(beta2))


def prodigy(
    xp,
    p,
    g,
    m=Slot.zeros(decay="beta1"),
    v=Slot.zeros(decay="beta2"),
    s=Slot.zeros(decay=_decay_of_sums),
    start=Slot.copy(decay=1.0),
    d=Slot.scalar(0.0),
    numerator=Slot.scalar(0.0),
    *,
    step,
    total,
    learning_rate: Annotated[NonNegative, "Factor of the estimated step size; leave it at 1, or set a schedule."] = 1.0,
    beta1: Decay = 0.9,
    beta2: Decay = 0.999,
    beta3: Annotated[
        Decay, "Decay of the sums that estimate the distance; 0 means the square root of ``beta2``."
    ] = 0.0,
    epsilon: NonNegative = 1e-8,
    weight_decay: NonNegative = 0.0,
    d0: Positive = 1e-6,
    d_coefficient: Annotated[Positive, "Factor of the estimate of the distance."] = 1.0,
    safeguard_warmup: Annotated[
        bool, "Whether the estimate ignores the learning rate, so that a warm-up does not slow it."
    ] = False,
    bias_correction=True,
):
    """Prodigy (Mishchenko and Defazio 2023, arXiv:2306.06101), as in optax: Adam with an estimated learning rate.

    ``d`` is the estimate of the distance from the initial parameters to the solution, one for the whole model.
    ``beta3=0`` means the square root of ``beta2``. ``learning_rate`` multiplies the estimate: leave it at 1, or set a
    schedule. The authors' package prodigyopt corrects no bias by default (``bias_correction=False``).
    """
    beta3 = _decay_of_sums(xp, p, beta2, beta3)
    d = xp.where(step == 1, d0, d)
    rate = d * learning_rate
    if bias_correction:
        rate = rate * xp.sqrt(1 - beta2**step) / (1 - beta1**step)
    m = beta1 * m + (1 - beta1) * d * g
    v = beta2 * v + (1 - beta2) * d * d * g * g
    s = beta3 * s + (d if safeguard_warmup else rate) * d / d0 * g
    numerator = beta3 * numerator + d / d0 * rate * total(wide_product(xp, g, start - p))
    length = total(xp.abs(s))
    d = xp.maximum(d, d_coefficient * numerator / xp.where(length > 0, length, 1.0))
    return p - rate * (weight_decay * p + m / (xp.sqrt(v) + d * epsilon)), m, v, s, start, d, numerator
