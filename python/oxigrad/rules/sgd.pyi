# Printed by make generated.
from typing import Annotated, Literal
from oxigrad.rules.core.ranges import Interval, Limit, NonNegative, Share
from typing import Any
from oxigrad._typing import Array

__all__ = ['asgd', 'lion', 'optimistic_sgd', 'polyak_sgd', 'rprop', 'sgd', 'signum']
def sgd(
    xp: Any, p: Array, g: Array, m: Array=..., *, step: Array, learning_rate: NonNegative=0.001,
    momentum: NonNegative=0.0, nesterov: Array=False,
    weight_decay: Annotated[
        NonNegative, 'Strength of L2 regularization, which is added to the gradient; 0 turns it off.',
    ]=0.0,
    dampening: Annotated[float, 'Share of each gradient that is not added to the momentum.']=0.0,
    rate_before_momentum: Array=False,
) -> tuple[Array, ...]:
    """Stochastic gradient descent, with momentum if ``momentum`` is not 0, as in torch.optim.SGD."""

def asgd(
    xp: Any, p: Array, g: Array, average: Array=..., last_rate: Array=..., *, step: Array,
    learning_rate: NonNegative=0.01, weight_decay: NonNegative=0.0,
    t0: Annotated[NonNegative, 'First step from which the parameters are averaged.']=1,
    lambd: Annotated[NonNegative, 'Decay of the parameters and of the learning rate, as in torch.optim.ASGD.']=0.0,
    alpha: Annotated[
        NonNegative, 'Exponent of the decay of the learning rate; without effect while ``lambd`` is 0.',
    ]=0.75,
    lag: Annotated[bool, 'Whether to average two steps later and use rates one step late, as torch does.']=False,
) -> tuple[Array, ...]:
    """ASGD, averaged gradient descent (Polyak and Juditsky 1992; Bottou 2010)."""

def optimistic_sgd(
    xp: Any, p: Array, g: Array, before: Array=..., *, step: Array, learning_rate: NonNegative=0.001,
    alpha: Annotated[NonNegative, 'Weight of the current gradient in the step.']=1.0,
    beta: Annotated[NonNegative, 'Weight of the change from the last gradient in the step.']=1.0,
) -> tuple[Array, ...]:
    """Optimistic gradient descent (Mokhtari et al. 2019, arXiv:1901.08511): SGD with an extrapolated gradient."""

def polyak_sgd(
    xp: Any, p: Array, g: Array, *, total: Array, loss: Array, learning_rate: NonNegative=1.0,
    max_size: Annotated[Limit, "Upper bound of Polyak's step size."]=1.0, lower_bound: Array=0.0,
    epsilon: NonNegative=0.0,
    variant: Annotated[
        Literal['sps', 'sps+'], 'Treatment of a loss below the bound: "sps" steps uphill, "sps+" takes no step.',
    ]='sps',
) -> Array:
    """SGD with Polyak's step size (Loizou et al. 2021, arXiv:2002.10542, SPS_max), as in optax.polyak_sgd."""

def rprop(
    xp: Any, p: Array, g: Array, move: Array=..., size: Array=..., *,
    learning_rate: Annotated[
        NonNegative, 'First step size of every element, clipped to ``[min_size, max_size]``.',
    ]=0.01,
    eta_minus: Annotated[float, Interval('(0, 1)'), 'Factor of a step size where the gradient changes sign.']=0.5,
    eta_plus: Annotated[float, Interval('(1, inf)'), 'Factor of a step size where the gradient keeps its sign.']=1.2,
    min_size: Annotated[NonNegative, 'Smallest step size of an element.']=1e-06,
    max_size: Annotated[Limit, 'Largest step size of an element.']=50.0,
    late: Annotated[bool, 'Whether each update is applied one step late, as in optax.']=False,
) -> tuple[Array, ...]:
    """Rprop, resilient backpropagation (Riedmiller and Braun 1993), as torch.optim.Rprop."""

def signum(
    xp: Any, p: Array, g: Array, m: Array=..., *, learning_rate: NonNegative=0.001,
    beta: Annotated[Share, 'Decay of the mean gradient whose sign is taken; 0 gives signSGD, which has no slot.']=0.9,
) -> tuple[Array, ...]:
    """Signum, the sign of the mean gradient (Bernstein et al. 2018, arXiv:1802.04434), as in optax."""

def lion(
    xp: Any, p: Array, g: Array, m: Array=..., *, learning_rate: NonNegative=0.0001,
    beta1: Annotated[Share, 'Weight of the momentum in the interpolation whose sign is the step.']=0.9,
    beta2: Annotated[Share, 'Decay of the momentum, a moving mean of gradients.']=0.99, weight_decay: NonNegative=0.0,
) -> tuple[Array, ...]:
    """Lion, the sign of an interpolated momentum (Chen et al. 2023, arXiv:2302.06675)."""
