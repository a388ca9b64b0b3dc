"""Adam, AdamW, AdamC, StableAdamW, AdamLRD, Adamax, NAdam, RAdam and ADOPT: rules of bias-corrected moments."""

from typing import Annotated, Literal

from oxigrad.rules.core.arrays import count, norm
from oxigrad.rules.core.moments import moments, moving_mean, root
from oxigrad.rules.core.ranges import Decay, NonNegative, Share
from oxigrad.rules.core.slots import Slot

__all__ = ["adam", "adam_lrd", "adamax", "adamc", "adamw", "adopt", "nadam", "radam", "stable_adamw"]


def adam_step(xp, g, m, v, v_max, step, learning_rate, beta1, beta2, epsilon, amsgrad, epsilon_mode, epsilon_root=None):
    """The step that Adam subtracts from the parameter, and its slots."""
    m, v = moments(m, v, g, beta1, beta2)
    rate, correction, bound = learning_rate / (1 - beta1**step), 1 - beta2**step, v
    if amsgrad == "corrected":
        bound = v_max = xp.maximum(v_max, v / correction)
        correction = 1.0
    elif amsgrad in (True, "raw"):
        bound = v_max = xp.maximum(v_max, v)
    elif amsgrad:
        raise ValueError(f"amsgrad is {amsgrad!r}: expected None, 'raw' or 'corrected'")
    return rate * m / root(xp, bound, correction, epsilon, epsilon_mode, epsilon_root), m, v, v_max


def adam(
    xp,
    p,
    g,
    m=Slot.zeros(decay="beta1"),
    v=Slot.zeros(decay="beta2"),
    v_max=Slot.zeros(when="amsgrad", decay=1.0),
    *,
    step,
    learning_rate: NonNegative = 1e-3,
    beta1: Decay = 0.9,
    beta2: Decay = 0.999,
    epsilon: NonNegative = 1e-8,
    amsgrad: Literal[None, True, False, "raw", "corrected"] = None,
    epsilon_mode: Literal["outside", "inside", "hat"] = "outside",
    epsilon_root: NonNegative | None = None,
):
    """Adam (Kingma and Ba 2015, arXiv:1412.6980), ``epsilon`` added after the bias correction, as torch and optax do.

    ``amsgrad`` (Reddi et al. 2018) divides by the root of the largest second moment so far. "raw" (or True) takes the
    maximum before the bias correction, as torch and Keras do; "corrected" after it, as optax does. ``epsilon_root``,
    optax's eps_root, is added to the second moment, inside the root, in addition to ``epsilon``.
    """
    epsilons = epsilon, amsgrad, epsilon_mode, epsilon_root
    move, m, v, v_max = adam_step(xp, g, m, v, v_max, step, learning_rate, beta1, beta2, *epsilons)
    return p - move, m, v, v_max


def adamw(
    xp,
    p,
    g,
    m=Slot.zeros(decay="beta1"),
    v=Slot.zeros(decay="beta2"),
    v_max=Slot.zeros(when="amsgrad", decay=1.0),
    *,
    step,
    learning_rate: NonNegative = 1e-3,
    beta1: Decay = 0.9,
    beta2: Decay = 0.999,
    epsilon: NonNegative = 1e-8,
    weight_decay: NonNegative = 1e-2,
    amsgrad: Literal[None, True, False, "raw", "corrected"] = None,
    epsilon_mode: Literal["outside", "inside", "hat"] = "outside",
    epsilon_root: NonNegative | None = None,
):
    """AdamW, Adam with decoupled weight decay (Loshchilov and Hutter 2019, arXiv:1711.05101).

    The weight decay is applied first, as in torch.
    """
    p = (1 - learning_rate * weight_decay) * p
    epsilons = epsilon, amsgrad, epsilon_mode, epsilon_root
    move, m, v, v_max = adam_step(xp, g, m, v, v_max, step, learning_rate, beta1, beta2, *epsilons)
    return p - move, m, v, v_max


def adamc(
    xp,
    p,
    g,
    m=Slot.zeros(decay="beta1"),
    v=Slot.zeros(decay="beta2"),
    peak=Slot.scalar(0.0),
    *,
    step,
    learning_rate: NonNegative = 1e-3,
    beta1: Decay = 0.9,
    beta2: Decay = 0.999,
    epsilon: NonNegative = 1e-8,
    weight_decay: NonNegative = 1e-2,
    max_learning_rate: Annotated[
        NonNegative, "Largest learning rate of the schedule; 0 takes the largest one so far."
    ] = 0.0,
):
    """AdamC, AdamW with a corrected weight decay (Defazio 2025, arXiv:2506.02285), for layers before a normalization.

    The factor ``learning_rate ** 2 / max_learning_rate`` replaces the learning rate in the weight decay, so that
    gradients do not grow at the end of a schedule. The paper updates other layers by AdamW: use a `partition`.
    """
    peak = xp.maximum(peak, xp.maximum(learning_rate, max_learning_rate))
    p = (1 - learning_rate * learning_rate / xp.where(peak > 0, peak, 1.0) * weight_decay) * p
    move, m, v, _ = adam_step(xp, g, m, v, None, step, learning_rate, beta1, beta2, epsilon, None, "outside")
    return p - move, m, v, peak


def stable_adamw(
    xp,
    p,
    g,
    m=Slot.zeros(decay="beta1"),
    v=Slot.zeros(decay="beta2"),
    *,
    step,
    learning_rate: NonNegative = 1e-3,
    beta1: Decay = 0.9,
    beta2: Decay = 0.99,
    epsilon: NonNegative = 1e-6,
    weight_decay: NonNegative = 1e-2,
):
    """StableAdamW (Wortsman et al. 2023, arXiv:2304.13013, algorithm 2): AdamW with the update clipping of Adafactor.

    The learning rate of a parameter is divided by the root mean square of ``g / sqrt(v)`` where that is above 1. As in
    the paper, ``epsilon`` is added to the corrected root, and its square is the lower bound of ``v`` in the mean.
    """
    m, v = moments(m, v, g, beta1, beta2)
    size = xp.sqrt(v / (1 - beta2**step))
    u = g / xp.maximum(size, epsilon)
    rate = learning_rate / xp.maximum(norm(xp, u) / xp.sqrt(count(xp, u)), 1.0)
    return (1 - rate * weight_decay) * p - rate / (1 - beta1**step) * m / (size + epsilon), m, v


def adam_lrd(
    xp,
    p,
    g,
    m=Slot.zeros(decay="beta1"),
    v=Slot.zeros(decay="beta2"),
    v_max=Slot.zeros(when="amsgrad", decay=1.0),
    *,
    step,
    noise,
    learning_rate: NonNegative = 1e-3,
    beta1: Decay = 0.9,
    beta2: Decay = 0.999,
    epsilon: NonNegative = 1e-8,
    dropout_rate: Share = 0.0,
    amsgrad: Literal[None, True, False, "raw", "corrected"] = None,
    epsilon_mode: Literal["outside", "inside", "hat"] = "outside",
):
    """AdamLRD, Adam with learning-rate dropout (Lin et al. 2019, arXiv:1912.00144).

    A random subset of elements is not updated in each step.

    ``dropout_rate`` is the probability that an element is not updated; in the authors' program it is the probability of
    the update. The moments of all elements are updated, and the updates are not rescaled.
    """
    move, m, v, v_max = adam_step(xp, g, m, v, v_max, step, learning_rate, beta1, beta2, epsilon, amsgrad, epsilon_mode)
    return p - xp.where(noise() < dropout_rate, 0.0, 1.0) * move, m, v, v_max


def adamax(
    xp,
    p,
    g,
    m=Slot.zeros(decay="beta1"),
    u=Slot.zeros(decay="beta2"),
    *,
    step,
    learning_rate: NonNegative = 2e-3,
    beta1: Decay = 0.9,
    beta2: Annotated[Decay, "Decay of the maximum of absolute gradients."] = 0.999,
    epsilon: NonNegative = 1e-8,
    epsilon_mode: Literal["inside", "outside"] = "inside",
):
    """Adamax, Adam with the infinity norm (Kingma and Ba 2015, section 7.1), as torch and optax.

    Epsilon is added "inside" the maximum. Keras adds it to the maximum, "outside".
    """
    m = moving_mean(m, g, beta1)
    if epsilon_mode == "inside":
        u = scale = xp.maximum(beta2 * u, xp.abs(g) + epsilon)
    elif epsilon_mode == "outside":
        u = xp.maximum(beta2 * u, xp.abs(g))
        scale = u + epsilon
    else:
        raise ValueError(f"epsilon_mode is {epsilon_mode!r}: expected 'inside' or 'outside'")
    return p - learning_rate / (1 - beta1**step) * m / scale, m, u


def nadam(
    xp,
    p,
    g,
    m=Slot.zeros(decay="beta1"),
    v=Slot.zeros(decay="beta2"),
    product=Slot.scalar(1.0),
    *,
    step,
    learning_rate: NonNegative = 2e-3,
    beta1: Decay = 0.9,
    beta2: Decay = 0.999,
    epsilon: NonNegative = 1e-8,
    momentum_decay: Annotated[
        NonNegative, "Rate at which the momentum warms up; 0 keeps half of ``beta1`` throughout."
    ] = 4e-3,
    constant_momentum: Annotated[
        bool, "Whether the momentum is ``beta1`` from the first step on, as in optax."
    ] = False,
    epsilon_root: NonNegative | None = None,
):
    """NAdam, Adam with Nesterov's momentum (Dozat 2016), as torch.optim.NAdam.

    The momentum warms up by ``momentum_decay``. Keras' NAdam uses ``momentum_decay=1``, optax's ``constant_momentum``.
    """
    if constant_momentum:
        mu = following = beta1
    else:
        mu = beta1 * (1 - 0.5 * 0.96 ** (step * momentum_decay))
        following = beta1 * (1 - 0.5 * 0.96 ** ((step + 1) * momentum_decay))
    product = product * mu
    m, v = moments(m, v, g, beta1, beta2)
    now, ahead = (1 - mu) / (1 - product), following / (1 - product * following)
    return (
        p - learning_rate * (now * g + ahead * m) / root(xp, v, 1 - beta2**step, epsilon, "outside", epsilon_root),
        m,
        v,
        product,
    )


def radam(
    xp,
    p,
    g,
    m=Slot.zeros(decay="beta1"),
    v=Slot.zeros(decay="beta2"),
    *,
    step,
    learning_rate: NonNegative = 1e-3,
    beta1: Decay = 0.9,
    beta2: Decay = 0.999,
    epsilon: NonNegative = 1e-8,
    threshold: Annotated[
        NonNegative, "Length of the approximated average above which the variance is rectified."
    ] = 5.0,
    epsilon_mode: Literal["outside", "inside", "hat"] = "hat",
    epsilon_root: NonNegative | None = None,
):
    """RAdam, Adam with a rectified variance (Liu et al. 2020, arXiv:1908.03265).

    It takes plain momentum steps while the variance is intractable. As torch.optim.RAdam, which uses
    ``epsilon_mode="hat"``; optax uses "outside".
    """
    m, v = moments(m, v, g, beta1, beta2)
    power, longest = beta2**step, 2 / (1 - beta2) - 1
    length = longest - 2 * step * power / (1 - power)
    rectifier = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
    adaptive = xp.sqrt(xp.maximum(rectifier, 0.0)) / root(xp, v, 1 - power, epsilon, epsilon_mode, epsilon_root)
    rate = learning_rate / (1 - beta1**step)
    return p - rate * xp.where(length > threshold, adaptive, 1.0) * m, m, v


def adopt(
    xp,
    p,
    g,
    m=Slot.zeros(decay="beta1"),
    v=Slot.zeros(decay="beta2"),
    *,
    step,
    learning_rate: NonNegative = 1e-3,
    beta1: Decay = 0.9,
    beta2: Decay = 0.9999,
    epsilon: NonNegative = 1e-6,
    clipped: Annotated[bool, "Whether the terms of the first moment are clipped to (step - 1) ** 0.25."] = True,
):
    """ADOPT (Taniguchi et al. 2024, arXiv:2411.02853), as in optax: gradients are divided by the previous root of v.

    The first step only initializes the second moment. ``clipped`` clips the terms of the first moment to ``(step - 1)
    ** 0.25``.
    """
    is_first = step == 1
    u = g / xp.maximum(xp.sqrt(v), epsilon)
    if clipped:
        bound = (step - 1) ** 0.25
        u = xp.clip(u, -bound, bound)
    m = xp.where(is_first, m, moving_mean(m, u, beta1))
    return p - learning_rate * m, m, xp.where(is_first, g * g, beta2 * v + (1 - beta2) * g * g)
