"""Rules that only PyTorch's optimizers need: weight decay as a part of any of them, ASGD and Rprop with the state that PyTorch keeps."""

from oxigrad.rules import gradient_transforms, rule
from oxigrad.rules.slots import Slot


def l2(xp, p, g, *, weight_decay=0.0):
    """The gradient of the loss plus that of ``weight_decay / 2 * sum(p * p)``."""
    return g + weight_decay * p


def asgd(
    xp,
    p,
    g,
    ax,
    eta=Slot.scalar(0.0),
    mu=Slot.scalar(1.0),
    *,
    step,
    learning_rate=1e-2,
    weight_decay=0.0,
    t0=1e6,
    lambd=1e-4,
    alpha=0.75,
):
    """`oxigrad.rules.asgd` with ``lag``, written as torch.optim.ASGD keeps it: the rate and weight of the next step are in the state."""
    g = g + weight_decay * p
    p = (1 - lambd * eta) * p - eta * g
    ax = xp.where(mu == 1.0, p, ax + mu * (p - ax))
    eta = learning_rate / (1 + lambd * learning_rate * step) ** alpha
    return p, ax, eta, 1 / xp.maximum(1.0, step - t0)


def rprop(
    xp,
    p,
    g,
    prev,
    step_size=Slot.full("learning_rate", decay=1.0),
    *,
    learning_rate=1e-2,
    eta_minus=0.5,
    eta_plus=1.2,
    min_size=1e-6,
    max_size=50.0,
):
    """`oxigrad.rules.rprop` as torch.optim.Rprop keeps it: the last gradient, zero where its sign changed, rather than the last move."""
    agreement = g * prev
    factor = xp.where(agreement > 0, eta_plus, xp.where(agreement < 0, eta_minus, 1.0))
    step_size = xp.clip(step_size * factor, min_size, max_size)
    g = xp.where(agreement < 0, 0.0, g)
    return p - step_size * xp.sign(g), g, step_size


L2 = rule.read(l2, "gradient")
MAXIMIZE = rule.read(gradient_transforms.maximize, "gradient")
UNSCALE = rule.read(gradient_transforms.unscale, "gradient")
DECAY = rule.read(gradient_transforms.weight_decay, "after")
ASGD = rule.read(asgd)
RPROP = rule.read(rprop)
