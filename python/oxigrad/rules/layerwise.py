"""Layerwise rules: LARS, LAMB and Fromage, scaled by the parameter's norm, and NovoGrad.

NovoGrad has one second moment for each leaf.
"""

from typing import Annotated, Literal

from oxigrad.rules.core.arrays import norm, wide_product
from oxigrad.rules.core.moments import moments, root
from oxigrad.rules.core.ranges import Decay, Limit, NonNegative
from oxigrad.rules.core.slots import Slot

__all__ = ["fromage", "lamb", "lars", "novograd"]


def trust_ratio(xp, size, length, coefficient=1.0, epsilon=0.0):
    """The norm of a parameter divided by its step's norm, times a coefficient; 1 if either norm is zero."""
    ratio = coefficient * size / (xp.where(length > 0, length, 1.0) + epsilon)
    return xp.where(xp.minimum(size, length) > 0, ratio, 1.0)


def lars(
    xp,
    p,
    g,
    m=Slot.zeros(decay="momentum"),
    *,
    learning_rate: NonNegative = 1e-3,
    momentum: NonNegative = 0.9,
    weight_decay: NonNegative = 0.0,
    trust_coefficient: Annotated[NonNegative, "Length of a step as a share of the norm of the parameter."] = 1e-3,
    epsilon: NonNegative = 0.0,
    nesterov=False,
    norms: Annotated[
        Literal["sum", "separate"],
        'Denominator of the trust ratio: norm of the "sum" of gradient and decay, or sum of "separate" norms.',
    ] = "sum",
):
    """LARS, layer-wise adaptive rates (You et al. 2017, arXiv:1708.03888): steps proportional to the parameter's norm.

    ``norms="sum"`` divides by the norm of gradient plus decay, as optax does; "separate" by the sum of their norms, as
    the paper does. The momentum accumulates steps that include the learning rate. As in the paper, exempt biases from
    the ``trust_coefficient`` by a `partition`.
    """
    u = g + weight_decay * p
    size = norm(xp, p)
    if norms == "sum":
        length = norm(xp, u)
    elif norms == "separate":
        length = norm(xp, g) + weight_decay * size
    else:
        raise ValueError(f"norms is {norms!r}: expected 'sum' or 'separate'")
    u = learning_rate * trust_ratio(xp, size, length, trust_coefficient, epsilon) * u
    m = momentum * m + u
    return p - (u + momentum * m if nesterov else m), m


def lamb(
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
    epsilon: NonNegative = 1e-6,
    weight_decay: NonNegative = 0.0,
    min_trust: Annotated[NonNegative, "Smallest trust ratio, where ``clamp`` is set."] = 0.01,
    max_trust: Annotated[Limit, "Largest trust ratio, where ``clamp`` is set."] = 10.0,
    clamp: Annotated[
        bool, "Whether the trust ratio is clipped to ``[min_trust, max_trust]``, as in DeepSpeed."
    ] = False,
    decoupled=False,
    epsilon_mode: Literal["outside", "inside", "hat"] = "outside",
    epsilon_root: NonNegative | None = None,
):
    """LAMB (You et al. 2020, arXiv:1904.00962), as in optax: Adam's step, in proportion to the norm of the parameter.

    ``clamp`` clips the ratio of the norms to ``[min_trust, max_trust]``, as DeepSpeed does. ``decoupled`` decays the
    parameter first, outside of the ratio, as Keras does.
    """
    if decoupled:
        p = (1 - learning_rate * weight_decay) * p
    m, v = moments(m, v, g, beta1, beta2)
    u = m / (1 - beta1**step) / root(xp, v, 1 - beta2**step, epsilon, epsilon_mode, epsilon_root)
    if not decoupled:
        u = u + weight_decay * p
    trust = trust_ratio(xp, norm(xp, p), norm(xp, u))
    if clamp:
        trust = xp.clip(trust, min_trust, max_trust)
    return p - learning_rate * trust * u, m, v


def novograd(
    xp,
    p,
    g,
    m=Slot.zeros(decay="beta1"),
    v=Slot.scalar(0.0),
    *,
    step,
    learning_rate: NonNegative = 1e-3,
    beta1: Decay = 0.9,
    beta2: Annotated[Decay, "Decay of the squared gradient norm of each parameter."] = 0.25,
    epsilon: NonNegative = 1e-6,
    weight_decay: NonNegative = 0.0,
    epsilon_root: NonNegative | None = None,
):
    """NovoGrad (Ginsburg et al. 2019, arXiv:1905.11286), as in optax: the second moment is one number for each leaf."""
    square = xp.sum(wide_product(xp, g, g))
    v = xp.where(step == 1, square, beta2 * v + (1 - beta2) * square)
    root = xp.sqrt(v if epsilon_root is None else v + epsilon_root)
    m = beta1 * m + g / (root + epsilon) + weight_decay * p
    return p - learning_rate * m, m, v


def fromage(
    xp,
    p,
    g,
    *,
    learning_rate: NonNegative = 1e-2,
    min_norm: Annotated[NonNegative, "Lower bound of the norms of parameter and gradient."] = 1e-6,
):
    """Fromage (Bernstein et al. 2020, arXiv:2002.03432): steps relative to the parameter's norm, then rescaling.

    The norm of a step is the norm of the parameter times the learning rate. The parameter is divided by ``sqrt(1 +
    learning_rate**2)`` after the step, so that its norm does not grow. Norms below ``min_norm`` count as ``min_norm``,
    as in optax.
    """
    scale = xp.sqrt(1 + learning_rate * learning_rate)
    trust = trust_ratio(xp, xp.maximum(norm(xp, p), min_norm), xp.maximum(norm(xp, g), min_norm))
    # 1 - 1 / scale, without the rounding of the difference.
    decay = learning_rate * learning_rate / (scale * (1 + scale))
    return p - (decay * p + learning_rate / scale * trust * g)
