"""Adagrad, Adadelta, RMSprop, FTRL and MADGRAD: steps divided by the root of a sum or mean of squared gradients."""

from typing import Annotated, Literal

from oxigrad.rules.core.ranges import Decay, NonNegative, NonPositive, Positive, Share
from oxigrad.rules.core.slots import Slot

__all__ = ["adadelta", "adagrad", "ftrl", "madgrad", "rmsprop"]


def rooted(xp, v, epsilon, mode):
    """The square root of ``v``, with ``epsilon`` added "inside" or "outside" of the root."""
    if mode == "outside":
        return xp.sqrt(v) + epsilon
    if mode == "inside":
        return xp.sqrt(v + epsilon)
    raise ValueError(f"epsilon_mode is {mode!r}: expected 'outside' or 'inside'")


def adagrad(
    xp,
    p,
    g,
    v=Slot.full("initial_accumulator", is_moment=True, decay=1.0),
    *,
    step,
    learning_rate: NonNegative = 1e-2,
    rate_decay: Annotated[
        NonNegative, "Rate at which the learning rate decays: by 1 / (1 + rate_decay * (step - 1))."
    ] = 0.0,
    initial_accumulator: Annotated[NonNegative, "Initial value of the sum of squared gradients."] = 0.0,
    epsilon: NonNegative = 1e-10,
    epsilon_mode: Literal["outside", "inside"] = "outside",
):
    """Adagrad (Duchi, Hazan and Singer 2011), as torch.optim.Adagrad: ``rate_decay`` is its lr_decay.

    optax and Keras use ``initial_accumulator=0.1`` and ``epsilon_mode="inside"``.
    """
    v = v + g * g
    rate = learning_rate / (1 + rate_decay * (step - 1))
    return p - rate * g / rooted(xp, v, epsilon, epsilon_mode), v


def adadelta(
    xp,
    p,
    g,
    v=Slot.zeros(decay="rho"),
    u=Slot.zeros(decay="rho"),
    *,
    learning_rate: NonNegative = 1.0,
    rho: Share = 0.9,
    epsilon: NonNegative = 1e-6,
):
    """Adadelta (Zeiler 2012, arXiv:1212.5701), as in torch, optax and Keras; only the defaults differ."""
    v = rho * v + (1 - rho) * g * g
    move = xp.sqrt(u + epsilon) / xp.sqrt(v + epsilon) * g
    return p - learning_rate * move, v, rho * u + (1 - rho) * move * move


def rmsprop(
    xp,
    p,
    g,
    v=Slot.full("initial_accumulator", is_moment=True, decay="rho"),
    mean=Slot.zeros(when="centered", decay="rho"),
    m=Slot.zeros(when="momentum", decay="momentum"),
    *,
    step,
    learning_rate: NonNegative = 1e-2,
    rho: Share = 0.99,
    epsilon: NonNegative = 1e-8,
    momentum: NonNegative = 0.0,
    initial_accumulator: NonNegative = 0.0,
    centered: Annotated[bool, "Whether the mean gradient is subtracted from the second moment."] = False,
    nesterov=False,
    bias_correction=False,
    epsilon_mode: Literal["outside", "inside"] = "outside",
    rate_before_momentum=False,
):
    """RMSprop (Hinton 2012, lecture 6e; centered by Graves 2013, arXiv:1308.0850), as torch.optim.RMSprop.

    ``rho`` is torch's alpha; optax and Keras use 0.9 and ``epsilon_mode="inside"``. They apply the learning rate before
    the momentum (``rate_before_momentum``), torch after it. The results differ while the learning rate changes.
    """
    correction = 1 - rho**step if bias_correction else 1.0
    v = rho * v + (1 - rho) * g * g
    spread = v / correction if bias_correction else v
    if centered:
        mean = rho * mean + (1 - rho) * g
        centre = mean / correction if bias_correction else mean
        spread = xp.maximum(spread - centre * centre, 0.0)
    direction = g / rooted(xp, spread, epsilon, epsilon_mode)
    if m is None:
        return p - learning_rate * direction, v, mean, m
    if rate_before_momentum:
        direction = learning_rate * direction
    m = momentum * m + direction
    direction = direction + momentum * m if nesterov else m
    return p - (direction if rate_before_momentum else learning_rate * direction), v, mean, m


def ftrl(
    xp,
    p,
    g,
    linear=Slot.zeros(decay=1.0),
    v=Slot.full("initial_accumulator", decay=1.0),
    *,
    learning_rate: Annotated[
        Positive, "Step size, which divides the curvature; a step at the rate 0 changes nothing."
    ] = 1e-3,
    power: Annotated[NonPositive, "Exponent by which step sizes fall with the accumulated squared gradients."] = -0.5,
    initial_accumulator: NonNegative = 0.1,
    l1: NonNegative = 0.0,
    l2: NonNegative = 0.0,
    shrinkage: Annotated[NonNegative, "Strength of L2 regularization that enters by the gradient only."] = 0.0,
    beta: Annotated[NonNegative, "Constant added to the root of the accumulated squared gradients."] = 0.0,
):
    """FTRL, follow the regularized leader by coordinate (McMahan et al. 2013), as keras.optimizers.Ftrl.

    ``l1`` sets parameters to zero exactly; ``l2`` regularizes too, ``shrinkage`` by the gradient only. The formula
    divides by the learning rate; a step at rate zero changes nothing.
    """
    is_taken = learning_rate > 0
    rate = xp.where(is_taken, learning_rate, 1.0)
    before, squares = xp.pow(v, -power), v + g * g
    after = xp.pow(squares, -power)
    moved = linear + g + 2 * shrinkage * p - (after - before) / rate * p
    curvature = after / rate + 2 * (l2 + beta / (2 * rate))
    new = (xp.clip(moved, -l1, l1) - moved) / curvature
    return xp.where(is_taken, new, p), xp.where(is_taken, moved, linear), xp.where(is_taken, squares, v)


def madgrad(
    xp,
    p,
    g,
    v=Slot.zeros(decay=1.0),
    s=Slot.zeros(decay=1.0),
    start=Slot.copy(decay=1.0),
    *,
    step,
    learning_rate: NonNegative = 1e-2,
    momentum: Annotated[Decay, "Weight of the old parameter in the interpolation with the dual average."] = 0.9,
    epsilon: NonNegative = 1e-6,
):
    """MADGRAD (Defazio and Jelassi 2021, arXiv:2101.11075), dual averaging with cube roots.

    As the authors' program and optax.
    """
    weight = (learning_rate + epsilon) * xp.sqrt(step)
    v = v + weight * g * g
    s = s + weight * g
    z = start - s / (xp.pow(v, 1 / 3) + epsilon)
    return momentum * p + (1 - momentum) * z, v, s, start
