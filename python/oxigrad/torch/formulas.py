"""Rules for PyTorch only: L2 decay and clipping for any rule, and ASGD, NAdam, Rprop with PyTorch's state."""

from typing import Annotated

from oxigrad import rules
from oxigrad.rules import gradient_transforms
from oxigrad.rules.core import rule
from oxigrad.rules.core.ranges import Decay, Interval, Limit, NonNegative
from oxigrad.rules.core.slots import Slot


def l2(xp, p, g, *, weight_decay: NonNegative = 0.0):
    """The gradient of the loss plus ``weight_decay / 2 * sum(p * p)``."""
    return g + weight_decay * p


def clip(xp, p, g, *, total, max_norm: Limit = 1.0):
    """The gradient, scaled down where the norm of all gradients is larger than ``max_norm``."""
    return gradient_transforms.clip_by_global_norm(xp, p, g, total=total, max_global_norm=max_norm)


def asgd(
    xp,
    p,
    g,
    ax,
    eta=Slot.scalar(0.0),
    mu=Slot.scalar(1.0),
    *,
    step,
    learning_rate: NonNegative = 1e-2,
    weight_decay: NonNegative = 0.0,
    t0: Annotated[float, "First step from which the parameters are averaged."] = 1e6,
    lambd: Annotated[NonNegative, "Decay of the parameters and of the learning rate."] = 1e-4,
    alpha: Annotated[NonNegative, "Exponent of the decay of the learning rate."] = 0.75,
):
    """`oxigrad.rules.asgd` with ``lag``, with the state of torch.optim.ASGD: the rate and weight of the next step."""
    g = g + weight_decay * p
    p = (1 - lambd * eta) * p - eta * g
    ax = xp.where(mu == 1.0, p, ax + mu * (p - ax))
    eta = learning_rate / (1 + lambd * learning_rate * step) ** alpha
    return p, ax, eta, 1 / xp.maximum(1.0, step - t0)


def _float32(x):
    """A float64 number rounded to float32 (Veltkamp 1968)."""
    high = x * 536870913.0
    return high - (high - x)


def nadam(
    xp,
    p,
    g,
    m,
    v,
    product=Slot.scalar(1.0),
    *,
    step,
    learning_rate: NonNegative = 2e-3,
    beta1: Decay = 0.9,
    beta2: Decay = 0.999,
    epsilon: NonNegative = 1e-8,
    momentum_decay: Annotated[NonNegative, "Rate at which the momentum warms up."] = 4e-3,
):
    """`oxigrad.rules.nadam` with the state of torch.optim.NAdam: the product is computed in float32."""
    mu = beta1 * (1 - 0.5 * 0.96 ** (step * momentum_decay))
    product_before = xp.where(mu > 0, _float32(product * _float32(mu)) / xp.where(mu > 0, mu, 1.0), product)
    return rules.nadam(
        xp,
        p,
        g,
        m,
        v,
        product_before,
        step=step,
        learning_rate=learning_rate,
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
        momentum_decay=momentum_decay,
    )


def rprop(
    xp,
    p,
    g,
    prev,
    step_size=Slot.full("learning_rate", decay=1.0),
    *,
    learning_rate: Annotated[NonNegative, "First step size of every element."] = 1e-2,
    eta_minus: Annotated[float, Interval("(0, 1)"), "Factor of a step size where the gradient changes sign."] = 0.5,
    eta_plus: Annotated[float, Interval("(1, inf)"), "Factor of a step size where the gradient keeps its sign."] = 1.2,
    min_size: Annotated[float, "Smallest step size of an element."] = 1e-6,
    max_size: Annotated[float, "Largest step size of an element."] = 50.0,
):
    """`oxigrad.rules.rprop` with torch.optim.Rprop's state: the last gradient, zero where its sign changed."""
    agreement = g * prev
    factor = xp.where(agreement > 0, eta_plus, xp.where(agreement < 0, eta_minus, 1.0))
    step_size = xp.clip(step_size * factor, min_size, max_size)
    g = xp.where(agreement < 0, 0.0, g)
    return p - step_size * xp.sign(g), g, step_size


L2 = rule.read(l2, "gradient")
MAXIMIZE = rule.read(gradient_transforms.maximize, "gradient")
CLIP = rule.read(clip, "gradient")
CLIP_BY_KNOWN_NORM = rule.read(gradient_transforms.clip_by_known_norm, "gradient")
UNSCALE = rule.read(gradient_transforms.unscale, "gradient")
DECAY = rule.read(gradient_transforms.weight_decay, "after")
ASGD = rule.read(asgd)
NADAM = rule.read(nadam)
RPROP = rule.read(rprop)
