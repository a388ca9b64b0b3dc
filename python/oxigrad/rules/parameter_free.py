"""Rules that estimate the learning rate: DoG, DoWG, D-Adaptation, COCOB and MoMo.

They read the distance to the initial parameters, or the loss. `oxigrad.rules.schedule_free` has Prodigy. Unless taken
by element, distances and norms are taken over the whole model.
"""

import math
from typing import Annotated, Literal

from oxigrad.rules.core.arrays import wide_product
from oxigrad.rules.core.ranges import Decay, Interval, NonNegative, Positive
from oxigrad.rules.core.slots import Slot

__all__ = ["cocob", "dadapt_adamw", "dadapt_sgd", "dog", "dowg", "momo", "momo_adam"]

_Growth = Annotated[float, Interval("[1, inf]")]


def dog(
    xp,
    p,
    g,
    start=Slot.copy(decay=1.0),
    distance=Slot.scalar(0.0),
    squares=Slot.scalar(0.0),
    *,
    step,
    total,
    learning_rate: Annotated[NonNegative, "Factor of the estimated step size; leave it at 1."] = 1.0,
    epsilon: NonNegative = 1e-8,
    weight_decay: NonNegative = 0.0,
    initial: Annotated[
        Literal["heuristic", "distance", "learning_rate"],
        'Meaning of ``initial_value``: "heuristic" (relative to the parameters), "distance" or "learning_rate".',
    ] = "heuristic",
    initial_value: Annotated[Positive, "First distance or step size; see ``initial``."] = 1e-6,
):
    """DoG, distance over gradients (Ivgi et al. 2023, arXiv:2302.12022), as the authors' program and optax.

    The step size is the largest ``distance`` from the initial parameters so far, divided by the root of the sum of all
    squared gradients. ``initial`` is the meaning of ``initial_value``. "heuristic" (the authors' reps_rel) is the first
    distance relative to 1 plus the norm of the parameters, "distance" the first distance, and "learning_rate" (the
    authors' init_eta) the first step size. ``weight_decay`` is added to the gradient. The authors advise evaluating an
    average of the parameters, such as `EMA`.
    """
    g, moved = g + weight_decay * p, p - start
    first = 0.0
    if initial == "heuristic":
        first = initial_value * (1 + xp.sqrt(total(wide_product(xp, p, p))))
    elif initial == "distance":
        first = initial_value
    distance = xp.where(step == 1, first, xp.maximum(distance, xp.sqrt(total(wide_product(xp, moved, moved)))))
    squares = squares + total(wide_product(xp, g, g))
    size = distance / xp.sqrt(squares + epsilon)
    if initial == "learning_rate":
        size = xp.where(step == 1, initial_value, size)
    return p - learning_rate * size * g, start, distance, squares


def dowg(
    xp,
    p,
    g,
    start=Slot.copy(decay=1.0),
    distance=Slot.scalar(0.0),
    squares=Slot.scalar(0.0),
    *,
    total,
    learning_rate: Annotated[NonNegative, "Factor of the estimated step size; leave it at 1."] = 1.0,
    initial_distance: Annotated[
        Positive | None, "First squared distance from the initial parameters; None takes ``epsilon``."
    ] = None,
    epsilon: Positive = 1e-4,
    weight_decay: NonNegative = 0.0,
):
    """DoWG, distance over weighted gradients (Khaled et al. 2023, arXiv:2305.16284), as in optax.

    As `dog`, with squared gradients that are weighted by the squared distance, ``distance``. The first one is
    ``initial_distance``, or ``epsilon`` if that is None.
    """
    g, moved = g + weight_decay * p, p - start
    least = epsilon if initial_distance is None else initial_distance
    distance = xp.maximum(xp.maximum(distance, least), total(wide_product(xp, moved, moved)))
    squares = squares + distance * total(wide_product(xp, g, g))
    return p - learning_rate * distance / (xp.sqrt(squares) + epsilon) * g, start, distance, squares


def _raised(xp, d, estimate, growth_rate):
    """The estimate of the distance after a step: it does not fall, and rises by at most the factor ``growth_rate``."""
    # A product with infinity has no derivative.
    is_bounded = growth_rate < math.inf
    bound = d * xp.where(is_bounded, growth_rate, 1.0)
    return xp.maximum(d, xp.where(is_bounded, xp.minimum(estimate, bound), estimate))


def dadapt_sgd(
    xp,
    p,
    g,
    s=Slot.zeros(decay=1.0),
    start=Slot.copy(decay=1.0),
    d=Slot.scalar(0.0),
    numerator=Slot.scalar(0.0),
    norm=Slot.scalar(0.0),
    *,
    step,
    total,
    learning_rate: Annotated[NonNegative, "Factor of the estimated step size; leave it at 1, or set a schedule."] = 1.0,
    momentum: Annotated[Decay, "Weight of the old parameter in the interpolation with the dual average."] = 0.0,
    weight_decay: NonNegative = 0.0,
    d0: Positive = 1e-6,
    growth_rate: _Growth = math.inf,
):
    """SGD with D-Adaptation (Defazio and Mishchenko 2023, arXiv:2301.07733, algorithm 4), as the authors' DAdaptSGD.

    ``d`` is the estimate of the distance from the initial parameters to the solution, one for the whole model. ``norm``
    is the norm of the first nonzero gradient. ``weight_decay`` is added to the gradient. Leave ``learning_rate`` at 1,
    or set a schedule.
    """
    d = xp.where(step == 1, d0, d)
    square = total(wide_product(xp, g, g))
    norm = xp.where(norm > 0, norm, xp.sqrt(square))
    rate = d * learning_rate / xp.where(norm > 0, norm, 1.0)
    g = g + weight_decay * p
    numerator = numerator + rate * total(wide_product(xp, g, s))
    s = s + rate * g
    length = xp.sqrt(total(wide_product(xp, s, s)))
    d = _raised(xp, d, 2 * numerator / xp.where(length > 0, length, 1.0), growth_rate)
    return momentum * p + (1 - momentum) * (start - s), s, start, d, numerator, norm


def dadapt_adamw(
    xp,
    p,
    g,
    m=Slot.zeros(decay="beta1"),
    v=Slot.zeros(decay="beta2"),
    s=Slot.zeros(decay=lambda xp, p, beta2: xp.sqrt(beta2)),
    d=Slot.scalar(0.0),
    numerator=Slot.scalar(0.0),
    *,
    step,
    total,
    learning_rate: Annotated[NonNegative, "Factor of the estimated step size; leave it at 1, or set a schedule."] = 1.0,
    beta1: Decay = 0.9,
    beta2: Decay = 0.999,
    epsilon: Positive = 1e-8,
    weight_decay: NonNegative = 0.0,
    d0: Positive = 1e-6,
    growth_rate: _Growth = math.inf,
    bias_correction=True,
    decoupled=True,
):
    """AdamW with D-Adaptation (Defazio and Mishchenko 2023, arXiv:2301.07733, algorithm 5), as in optax.

    ``d`` is the estimate of the distance from the initial parameters to the solution, one for the whole model. Leave
    ``learning_rate`` at 1, or set a schedule. The authors' DAdaptAdam corrects no bias by default
    (``bias_correction=False``), and adds ``weight_decay`` to the gradient (``decoupled=False``).
    """
    d = xp.where(step == 1, d0, d)
    rate = d * learning_rate
    if bias_correction:
        rate = rate * xp.sqrt(1 - beta2**step) / (1 - beta1**step)
    if not decoupled:
        g = g + weight_decay * p
    beta3 = xp.sqrt(beta2)
    numerator = beta3 * numerator + (1 - beta3) * rate * total(wide_product(xp, g, s / (xp.sqrt(v) + epsilon)))
    m = beta1 * m + (1 - beta1) * rate * g
    v = beta2 * v + (1 - beta2) * g * g
    s = beta3 * s + (1 - beta3) * rate * g
    length = (1 - beta3) * total(xp.abs(s))
    d = _raised(xp, d, numerator / xp.where(length > 0, length, 1.0), growth_rate)
    if decoupled:
        p = (1 - rate * weight_decay) * p
    return p - m / (xp.sqrt(v) + epsilon), m, v, s, d, numerator


def cocob(
    xp,
    p,
    g,
    start=Slot.copy(decay=1.0),
    gradients=Slot.zeros(decay=1.0),
    scale=Slot.full("epsilon", decay=1.0),
    magnitudes=Slot.zeros(decay=1.0),
    reward=Slot.zeros(decay=1.0),
    *,
    learning_rate: Annotated[NonNegative, "Factor of the gradient; leave it at 1."] = 1.0,
    alpha: Annotated[NonNegative, "Inverse of the largest fraction of the reward that the first bets may use."] = 100.0,
    epsilon: Positive = 1e-8,
    weight_decay: NonNegative = 0.0,
):
    """COCOB, continuous coin betting (Orabona and Tommasi 2017, arXiv:1705.07795, algorithm 2), as in optax.

    Each element bets a fraction of its ``reward`` on the sign of its next gradient, at most one ``alpha``-th in the
    beginning. ``scale`` is the largest gradient so far. ``learning_rate`` multiplies the gradient, and ``weight_decay``
    is added to it.
    """
    g = learning_rate * (g + weight_decay * p)
    scale = xp.maximum(scale, xp.abs(g))
    magnitudes = magnitudes + xp.abs(g)
    reward = xp.maximum(reward - g * (p - start), 0.0)
    gradients = gradients - g
    bet = gradients / scale / xp.maximum(magnitudes + scale, alpha * scale)  # the product of both would overflow
    return start + bet * (scale + reward), start, gradients, scale, magnitudes, reward


def _step_of_model(xp, bound, loss, products, dot, norm, rate, decay, weight, lower_bound, adapts):
    """The step size of MoMo, and the lower bound of the loss for the next step.

    ``loss``, ``products`` and ``dot`` are the average of the loss, the average of ``<p, g>``, and the product of the
    parameters with the average of gradients, whose squared norm is ``norm``. ``weight`` is the sum of the weights of
    the averages, and ``decay`` is 1 plus the learning rate times the weight decay.
    """
    if adapts:
        value = decay * (loss - products) + dot
        lowered = xp.maximum(value / (2 * decay * weight), lower_bound)
        bound = xp.where(value < decay * weight * bound, lowered, bound)
    else:
        bound = lower_bound
    gap = xp.maximum(decay * (loss - weight * bound - products) + dot, 0.0)
    size = xp.minimum(rate / weight, gap / xp.where(norm > 0, norm, 1.0))
    if adapts:
        bound = xp.maximum((loss + dot - products - size * norm / 2) / weight, lower_bound)
    return size, bound


def momo(
    xp,
    p,
    g,
    m=Slot.zeros(decay="beta"),
    average_loss=Slot.scalar(0.0),
    products=Slot.scalar(0.0),
    bound=Slot.scalar(0.0),
    *,
    step,
    total,
    loss,
    learning_rate: Annotated[
        NonNegative, "Upper bound of the step size, which falls as the loss nears its lower bound."
    ] = 1.0,
    beta: Annotated[Decay, "Decay of the moving means of losses and gradients."] = 0.9,
    weight_decay: NonNegative = 0.0,
    lower_bound=0.0,
    bias_correction=False,
    adapt_lower_bound=False,
):
    """MoMo, SGD with a model of momentum (Schaipp et al. 2023, arXiv:2305.07583, algorithm 1).

    As the authors' Momo and optax. The step size is at most ``learning_rate``. It is less if the averages of the
    ``loss`` and the gradients predict that a longer step would pass ``lower_bound``. ``adapt_lower_bound`` also
    estimates this bound and keeps it in ``bound``. Averages begin with the first gradient, or with zero if
    ``bias_correction`` corrects them. The weight decay is proximal: it divides the new parameters; optax divides the
    parameters before the step.
    """
    effective_beta = beta if bias_correction else xp.where(step == 1, 0.0, beta)
    weight = 1 - beta**step if bias_correction else 1.0
    bound = xp.where(step == 1, lower_bound, bound)
    average_loss = effective_beta * average_loss + (1 - effective_beta) * loss
    m = effective_beta * m + (1 - effective_beta) * g
    products = effective_beta * products + (1 - effective_beta) * total(wide_product(xp, p, g))
    decay = 1 + learning_rate * weight_decay
    averages, limits = (
        (average_loss, products, total(wide_product(xp, p, m)), total(wide_product(xp, m, m))),
        (lower_bound, adapt_lower_bound),
    )
    size, bound = _step_of_model(xp, bound, *averages, learning_rate, decay, weight, *limits)
    return (p - size * m) / decay, m, average_loss, products, bound


def momo_adam(
    xp,
    p,
    g,
    m=Slot.zeros(decay="beta1"),
    v=Slot.zeros(decay="beta2"),
    average_loss=Slot.scalar(0.0),
    products=Slot.scalar(0.0),
    bound=Slot.scalar(0.0),
    *,
    step,
    total,
    loss,
    learning_rate: Annotated[
        NonNegative, "Upper bound of the step size, which falls as the loss nears its lower bound."
    ] = 1e-2,
    beta1: Decay = 0.9,
    beta2: Decay = 0.999,
    epsilon: Positive = 1e-8,
    weight_decay: NonNegative = 0.0,
    lower_bound=0.0,
    proximal: Annotated[bool, "Whether the weight decay divides the new parameter, and not the old one."] = True,
    adapt_lower_bound=False,
):
    """MoMo-Adam (Schaipp et al. 2023, arXiv:2305.07583, algorithm 2), as the authors' MomoAdam and optax.

    As `momo`, in the norm of Adam's second moments. The weight decay divides the new parameters. Without ``proximal``
    (the authors' ``divide``) it multiplies the parameters before the step, as in AdamW.
    """
    weight = 1 - beta1**step
    bound = xp.where(step == 1, lower_bound, bound)
    average_loss = beta1 * average_loss + (1 - beta1) * loss
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    products = beta1 * products + (1 - beta1) * total(wide_product(xp, p, g))
    direction = m / (xp.sqrt(v / (1 - beta2**step)) + epsilon)
    decay = 1 + learning_rate * weight_decay
    averages, limits = (
        (average_loss, products, total(wide_product(xp, p, m)), total(wide_product(xp, m, direction))),
        (lower_bound, adapt_lower_bound),
    )
    size, bound = _step_of_model(xp, bound, *averages, learning_rate, decay, weight, *limits)
    new = (p - size * direction) / decay if proximal else (1 - learning_rate * weight_decay) * p - size * direction
    return new, m, v, average_loss, products, bound
