"""SGD, averaged and optimistic SGD, Polyak's step size, and rules of the gradient's sign: Rprop, Signum and Lion."""

from typing import Annotated, Literal

from oxigrad.rules.core.arrays import wide_product
from oxigrad.rules.core.moments import moving_mean
from oxigrad.rules.core.ranges import Interval, Limit, NonNegative, Share
from oxigrad.rules.core.slots import Slot

__all__ = ["asgd", "lion", "optimistic_sgd", "polyak_sgd", "rprop", "sgd", "signum"]


def sgd(
    xp,
    p,
    g,
    m=Slot.zeros(when="momentum", decay="momentum"),
    *,
    step,
    learning_rate: NonNegative = 1e-3,
    momentum: NonNegative = 0.0,
    nesterov=False,
    weight_decay: Annotated[
        NonNegative, "Strength of L2 regularization, which is added to the gradient; 0 turns it off."
    ] = 0.0,
    dampening: Annotated[float, "Share of each gradient that is not added to the momentum."] = 0.0,
    rate_before_momentum=False,
):
    """Stochastic gradient descent, with momentum if ``momentum`` is not 0, as in torch.optim.SGD.

    ``m = momentum * m + (1 - dampening) * g``, where the first step sets ``m = g``. ``nesterov`` (Sutskever et al.
    2013) adds ``momentum * m`` to the gradient rather than taking ``m`` itself. ``weight_decay`` is L2 regularization,
    added to the gradient. Without momentum there is no slot ``m``, and ``nesterov`` and ``dampening`` change nothing.
    The learning rate is applied to the sum, as in torch and optax. With ``rate_before_momentum`` it is applied to each
    gradient before, as in Keras; the results differ while it changes.
    """
    g = g + weight_decay * p
    if m is None:
        return p - learning_rate * g, m
    if rate_before_momentum:
        g = learning_rate * g
    m = momentum * m + xp.where(step == 1, 1.0, 1.0 - dampening) * g
    g = g + momentum * m if nesterov else m
    return p - (g if rate_before_momentum else learning_rate * g), m


def asgd(
    xp,
    p,
    g,
    average=Slot.copy(),
    last_rate=Slot.scalar(0.0),
    *,
    step,
    learning_rate: NonNegative = 1e-2,
    weight_decay: NonNegative = 0.0,
    t0: Annotated[NonNegative, "First step from which the parameters are averaged."] = 1,
    lambd: Annotated[NonNegative, "Decay of the parameters and of the learning rate, as in torch.optim.ASGD."] = 0.0,
    alpha: Annotated[
        NonNegative, "Exponent of the decay of the learning rate; without effect while ``lambd`` is 0."
    ] = 0.75,
    lag: Annotated[bool, "Whether to average two steps later and use rates one step late, as torch does."] = False,
):
    """ASGD, averaged gradient descent (Polyak and Juditsky 1992; Bottou 2010).

    ``average`` is the mean of the parameters from step ``t0`` on; before that it equals the parameters. The learning
    rate may be any schedule. ``lambd`` adds the decay of torch.optim.ASGD and of Bottou's programs: of the parameters,
    and of the learning rate by ``(1 + lambd * rate * (step - 1)) ** alpha``. ``lag=True`` gives torch's results: it
    starts to average two steps later, and uses each learning rate one step late.
    """
    g = g + weight_decay * p
    rate = xp.where(step == 1, learning_rate, last_rate) if lag else learning_rate
    rate = rate / (1 + lambd * rate * (step - 1)) ** alpha
    p = (1 - lambd * rate) * p - rate * g
    count = step - 1 - t0 if lag else step - t0 + 1
    moved = average + (p - average) / xp.maximum(1.0, count)
    return p, xp.where(count > 1, moved, p), learning_rate


def optimistic_sgd(
    xp,
    p,
    g,
    before=Slot.zeros(decay=0.0),
    *,
    step,
    learning_rate: NonNegative = 1e-3,
    alpha: Annotated[NonNegative, "Weight of the current gradient in the step."] = 1.0,
    beta: Annotated[NonNegative, "Weight of the change from the last gradient in the step."] = 1.0,
):
    """Optimistic gradient descent (Mokhtari et al. 2019, arXiv:1901.08511): SGD with an extrapolated gradient.

    For the previous gradient ``before``, the step is ``learning_rate * (alpha * g + beta * (g - before))``, as in
    optax.optimistic_gradient_descent. The difference of the first step is zero. In games between two players it
    converges where gradient descent cycles.
    """
    difference = xp.where(step == 1, 0.0, g - before)
    return p - learning_rate * (alpha * g + beta * difference), g


def polyak_sgd(
    xp,
    p,
    g,
    *,
    total,
    loss,
    learning_rate: NonNegative = 1.0,
    max_size: Annotated[Limit, "Upper bound of Polyak's step size."] = 1.0,
    lower_bound=0.0,
    epsilon: NonNegative = 0.0,
    variant: Annotated[
        Literal["sps", "sps+"], 'Treatment of a loss below the bound: "sps" steps uphill, "sps+" takes no step.'
    ] = "sps",
):
    """SGD with Polyak's step size (Loizou et al. 2021, arXiv:2002.10542, SPS_max), as in optax.polyak_sgd.

    The step is ``u = learning_rate * g``, times ``(loss - lower_bound) / (square + epsilon)`` if that is less than
    ``max_size``. ``square`` is the sum of ``u * u`` over all leaves. ``loss`` is the loss at the parameters, and
    ``lower_bound`` is less. ``variant="sps+"`` (Garrigos et al. 2023, arXiv:2307.14528) takes a negative ``loss -
    lower_bound`` as zero.
    """
    u = learning_rate * g
    square = total(wide_product(xp, u, u)) + epsilon
    gap = loss - lower_bound
    if variant == "sps+":
        gap = xp.maximum(gap, 0.0)
    elif variant != "sps":
        raise ValueError(f"variant is {variant!r}: expected 'sps' or 'sps+'")
    # The bound is the distance of 1 from the next number of double precision, at any precision, as in optax.
    is_zero = square <= 2.220446049250313e-16
    size = xp.minimum(gap / xp.where(is_zero, 1.0, square), max_size)
    return p - xp.where(is_zero, 0.0, size) * u


def rprop(
    xp,
    p,
    g,
    move=Slot.zeros(decay=0.0),
    size=Slot.full("learning_rate", decay=1.0),
    *,
    learning_rate: Annotated[
        NonNegative, "First step size of every element, clipped to ``[min_size, max_size]``."
    ] = 1e-2,
    eta_minus: Annotated[float, Interval("(0, 1)"), "Factor of a step size where the gradient changes sign."] = 0.5,
    eta_plus: Annotated[float, Interval("(1, inf)"), "Factor of a step size where the gradient keeps its sign."] = 1.2,
    min_size: Annotated[NonNegative, "Smallest step size of an element."] = 1e-6,
    max_size: Annotated[Limit, "Largest step size of an element."] = 50.0,
    late: Annotated[bool, "Whether each update is applied one step late, as in optax."] = False,
):
    """Rprop, resilient backpropagation (Riedmiller and Braun 1993), as torch.optim.Rprop.

    Step sizes grow while the sign of the gradient stays. If the sign changes, the parameter is not updated in that
    step. ``late=True`` gives optax's results, which applies each update one step late, and clips a step size only when
    it changes. ``learning_rate`` is the first step size, clipped to ``[min_size, max_size]`` as in torch.
    """
    agreement = g * move
    scaled = xp.where(agreement > 0, size * eta_plus, xp.where(agreement < 0, size * eta_minus, size))
    bounded = xp.clip(scaled, min_size, max_size)
    size = xp.where(agreement == 0, size, bounded) if late else bounded
    now = xp.where(agreement < 0, 0.0, size * xp.sign(g))
    return p - (xp.where(agreement < 0, 0.0, move) if late else now), now, size


def signum(
    xp,
    p,
    g,
    m=Slot.zeros(when="beta", decay="beta"),
    *,
    learning_rate: NonNegative = 1e-3,
    beta: Annotated[Share, "Decay of the mean gradient whose sign is taken; 0 gives signSGD, which has no slot."] = 0.9,
):
    """Signum, the sign of the mean gradient (Bernstein et al. 2018, arXiv:1802.04434), as in optax.

    ``beta=0`` is signSGD, which has no slot.
    """
    if m is not None:
        g = m = moving_mean(m, g, beta)
    return p - learning_rate * xp.sign(g), m


def lion(
    xp,
    p,
    g,
    m=Slot.zeros(decay="beta2"),
    *,
    learning_rate: NonNegative = 1e-4,
    beta1: Annotated[Share, "Weight of the momentum in the interpolation whose sign is the step."] = 0.9,
    beta2: Annotated[Share, "Decay of the momentum, a moving mean of gradients."] = 0.99,
    weight_decay: NonNegative = 0.0,
):
    """Lion, the sign of an interpolated momentum (Chen et al. 2023, arXiv:2302.06675).

    ``weight_decay`` is 0 by default as in Keras, 1e-3 in optax.
    """
    direction = xp.sign(moving_mean(m, g, beta1))
    return p - learning_rate * (direction + weight_decay * p), moving_mean(m, g, beta2)
