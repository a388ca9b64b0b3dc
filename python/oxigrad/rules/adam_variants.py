"""Variants of Adam with other moments: AdaBelief, AdEMAMix, LaProp, Yogi, Adan, Sophia; and optimistic Adam."""

from typing import Annotated, Literal

from oxigrad.rules.core.moments import moments, moving_mean, root
from oxigrad.rules.core.ranges import Count, Decay, Limit, NonNegative, Positive
from oxigrad.rules.core.slots import Slot

__all__ = ["adabelief", "adan", "ademamix", "laprop", "optimistic_adam", "simplified_ademamix", "sophia", "yogi"]


def adabelief(
    xp,
    p,
    g,
    m,
    v,
    *,
    step,
    learning_rate: NonNegative = 1e-3,
    beta1: Decay = 0.9,
    beta2: Decay = 0.999,
    epsilon: NonNegative = 1e-16,
    epsilon_root: Annotated[
        NonNegative, "Small number added to the second moment in each step, where it accumulates."
    ] = 1e-16,
):
    """AdaBelief (Zhuang et al. 2020, arXiv:2010.07468), as in optax: Adam by the gradient's variance.

    The second moment averages the squared difference of the gradient and its mean. ``epsilon_root`` is added to it in
    every step, and accumulates.
    """
    m = moving_mean(m, g, beta1)
    v = beta2 * v + (1 - beta2) * (g - m) * (g - m) + epsilon_root
    return p - learning_rate / (1 - beta1**step) * m / root(xp, v, 1 - beta2**step, epsilon), m, v


def ademamix(
    xp,
    p,
    g,
    m=Slot.zeros(decay="beta1"),
    slow=Slot.zeros(decay="beta3"),
    v=Slot.zeros(decay="beta2"),
    *,
    step,
    learning_rate: NonNegative = 1e-3,
    beta1: Decay = 0.9,
    beta2: Decay = 0.999,
    beta3: Annotated[
        Decay, "Decay of the slow moving mean of gradients, which averages over about 1 / (1 - beta3) steps."
    ] = 0.9999,
    alpha: Annotated[NonNegative, "Weight of the slow moving mean beside the fast one."] = 5.0,
    epsilon: NonNegative = 1e-8,
    weight_decay: NonNegative = 0.0,
    epsilon_root: NonNegative | None = None,
):
    """AdEMAMix (Pagliardini et al. 2024, arXiv:2409.03137), as in optax: Adam with a second, slower mean.

    The slower mean is weighted by ``alpha``. The paper raises ``beta3`` and ``alpha`` from zero: set them to schedules.
    """
    m, v = moments(m, v, g, beta1, beta2)
    slow = moving_mean(slow, g, beta3)
    u = (m / (1 - beta1**step) + alpha * slow) / root(xp, v, 1 - beta2**step, epsilon, "outside", epsilon_root)
    return p - learning_rate * (u + weight_decay * p), m, slow, v


def simplified_ademamix(
    xp,
    p,
    g,
    m=Slot.zeros(decay="beta1"),
    v=Slot.zeros(decay="beta2"),
    *,
    step,
    learning_rate: NonNegative = 1e-3,
    beta1: Annotated[Decay, "Decay of the sum of gradients, which grows to about 1 / (1 - beta1) gradients."] = 0.99,
    beta2: Decay = 0.95,
    alpha: Annotated[NonNegative, "Weight of the current gradient beside the sum of gradients."] = 0.0,
    epsilon: NonNegative = 1e-8,
    weight_decay: NonNegative = 0.0,
    epsilon_root: NonNegative | None = None,
):
    """Simplified AdEMAMix (Morwani et al. 2025, arXiv:2502.02431), as in optax: one momentum and the current gradient.

    The momentum is a sum of gradients without ``1 - beta1`` and without bias correction, so that the learning rate is
    about ``1 - beta1`` times Adam's. The authors' program raises ``beta1`` from 0.9: set it to a schedule.
    """
    m, v = beta1 * m + g, beta2 * v + (1 - beta2) * g * g
    u = (m + alpha * g) / root(xp, v, 1 - beta2**step, epsilon, "outside", epsilon_root)
    return p - learning_rate * (u + weight_decay * p), m, v


def laprop(
    xp,
    p,
    g,
    m=Slot.zeros(decay="beta1"),
    v=Slot.zeros(decay="beta2"),
    *,
    step,
    learning_rate: NonNegative = 4e-4,
    beta1: Annotated[Decay, "Decay of the moving mean of normalized gradients."] = 0.9,
    beta2: Decay = 0.999,
    epsilon: NonNegative = 1e-15,
):
    """LaProp (Ziyin et al. 2020, arXiv:2002.04839, algorithm 1): momentum of gradients that are normalized first.

    Adam normalizes the momentum, LaProp each gradient. The authors' program also keeps the learning rate of each
    gradient in the momentum; it differs from the algorithm while the learning rate changes.
    """
    v = beta2 * v + (1 - beta2) * g * g
    m = moving_mean(m, g / root(xp, v, 1 - beta2**step, epsilon), beta1)
    return p - learning_rate / (1 - beta1**step) * m, m, v


def yogi(
    xp,
    p,
    g,
    m=Slot.full("initial_moment", is_moment=True, decay="beta1"),
    v=Slot.full("initial_accumulator", is_moment=True, decay=1.0),
    *,
    step,
    learning_rate: NonNegative = 1e-2,
    beta1: Decay = 0.9,
    beta2: Decay = 0.999,
    epsilon: NonNegative = 1e-3,
    initial_accumulator: Annotated[NonNegative, "Initial value of the second moment."] = 1e-6,
    initial_moment: Annotated[float, "Initial value of the first moment."] = 0.0,
):
    """Yogi (Zaheer et al. 2018): Adam with an additive update of the second moment.

    The second moment changes by the size of the squared gradient, not by the size of the difference. optax also
    initializes the first moment with 1e-6: ``initial_moment``.
    """
    m = moving_mean(m, g, beta1)
    v = v - (1 - beta2) * xp.sign(v - g * g) * g * g
    return p - learning_rate / (1 - beta1**step) * m / root(xp, v, 1 - beta2**step, epsilon), m, v


def adan(
    xp,
    p,
    g,
    m,
    change,
    v,
    before,
    *,
    step,
    learning_rate: NonNegative = 1e-3,
    beta1: Decay = 0.98,
    beta2: Annotated[Decay, "Decay of the moving mean of differences of gradients."] = 0.92,
    beta3: Annotated[Decay, "Decay of the moving mean of squared look-ahead gradients."] = 0.99,
    epsilon: NonNegative = 1e-8,
    epsilon_root: NonNegative = 0.0,
    weight_decay: NonNegative = 0.0,
    proximal: Annotated[bool, "Whether the decay divides the parameter after the step, as in the paper."] = True,
    change_weight: Annotated[
        Literal["beta2", "1 - beta2"],
        "Weight of gradient differences: beta2 as in the authors' program, or 1 - beta2 as in optax.",
    ] = "beta2",
):
    """Adan (Xie et al. 2022, arXiv:2208.06677, algorithm 1): Nesterov's momentum from the differences of gradients.

    The betas are decays, as in the authors' program; the paper's betas are ``1 - beta``. Differences of gradients are
    weighted by ``beta2``, in the step and in the second moment; the first step has a zero difference. ``proximal``
    divides by ``1 + learning_rate * weight_decay`` after the step, as the paper does; False is the authors'
    ``no_prox``. For a restart, as in the paper, make a new optimizer. optax uses ``change_weight="1 - beta2"``, no
    ``proximal`` decay, and an ``epsilon_root`` of 1e-8.
    """
    weight = beta2 if change_weight == "beta2" else 1 - beta2
    difference = xp.where(step == 1, 0.0, g - before)
    ahead = g + weight * difference
    m = moving_mean(m, g, beta1)
    change = moving_mean(change, difference, beta2)
    v = beta3 * v + (1 - beta3) * ahead * ahead
    u = m / (1 - beta1**step) + weight / (1 - beta2**step) * change
    u = learning_rate * u / (xp.sqrt(v / (1 - beta3**step) + epsilon_root) + epsilon)
    new = (p - u) / (1 + learning_rate * weight_decay) if proximal else p - u - learning_rate * weight_decay * p
    return new, m, change, v, g


def optimistic_adam(
    xp,
    p,
    g,
    m,
    v,
    before,
    *,
    step,
    learning_rate: NonNegative = 1e-3,
    beta1: Decay = 0.9,
    beta2: Decay = 0.999,
    epsilon: NonNegative = 1e-8,
    alpha: Annotated[NonNegative, "Weight of Adam's current direction in the step."] = 1.0,
    beta: Annotated[NonNegative, "Weight of the change from the last direction in the step."] = 1.0,
    nesterov=True,
    epsilon_root: NonNegative | None = None,
):
    """Optimistic Adam (Daskalakis et al. 2018, arXiv:1711.00141): Adam with an extrapolated direction.

    For the direction ``u`` and the previous direction ``before``, the step is ``learning_rate * (alpha * u + beta * (u
    - before))``, as in optax.optimistic_adam_v2. The difference of the first step is zero. optax.optimistic_adam has a
    learning rate of 1, ``alpha`` for its learning rate and ``beta`` for its optimism. ``nesterov`` (Dozat 2016) is
    optax's; the paper has ``nesterov=False``.
    """
    m, v = moments(m, v, g, beta1, beta2)
    if nesterov:
        mean = beta1 / (1 - beta1 ** (step + 1)) * m + (1 - beta1) / (1 - beta1**step) * g
    else:
        mean = m / (1 - beta1**step)
    u = mean / root(xp, v, 1 - beta2**step, epsilon, "outside", epsilon_root)
    difference = xp.where(step == 1, 0.0, u - before)
    return p - learning_rate * (alpha * u + beta * difference), m, v, u


def sophia(
    xp,
    p,
    g,
    m=Slot.zeros(decay="beta1"),
    h=Slot.zeros(),
    *,
    step,
    learning_rate: NonNegative = 1e-3,
    beta1: Decay = 0.965,
    beta2: Annotated[Decay, "Decay of the moving mean of the Hessian's diagonal."] = 0.99,
    epsilon: NonNegative = 1e-8,
    weight_decay: NonNegative = 0.0,
    gamma: Annotated[NonNegative, "Factor of the Hessian's diagonal in the denominator."] = 0.01,
    limit: Annotated[Limit, "Largest absolute value of an element of the step before the learning rate."] = 1.0,
    every: Annotated[Count, "Number of steps between updates of the Hessian's diagonal."] = 10,
    batch_size: Annotated[
        Positive, "Batch size, by which the squared gradient estimates the Hessian's diagonal."
    ] = 1.0,
    estimate: Annotated[
        Literal["squared", "given"],
        'Source of the Hessian\'s diagonal: "squared" gradients, or "given" in the slot ``h``.',
    ] = "squared",
):
    """Sophia (Liu et al. 2023, arXiv:2305.14342): the mean gradient, divided by the Hessian's diagonal and clipped.

    The slot ``h`` holds the diagonal. ``estimate="squared"`` estimates it by ``batch_size`` times the squared gradient
    in every ``every``-th step. This is the paper's Gauss-Newton-Bartlett estimate if the labels are drawn from the
    model. With "given", you write the estimate to ``h``: Hutchinson's, optax's default, is ``v * hvp(v)`` for random
    signs ``v``.
    """
    m = moving_mean(m, g, beta1)
    u = xp.clip(m / (1 - beta1**step) / xp.maximum(gamma * h, epsilon), -limit, limit)
    if estimate == "squared":
        is_due = xp.equal(xp.remainder(step - 1, every), 0.0)
        h = xp.where(is_due, beta2 * h + (1 - beta2) * batch_size * g * g, h)
    elif estimate != "given":
        raise ValueError(f"estimate is {estimate!r}: expected 'squared' or 'given'")
    return p - learning_rate * (u + weight_decay * p), m, h
