# Printed by tools/stubs.py.
from typing import Annotated, Literal
from oxigrad.rules.core.ranges import Interval, Limit, NonNegative, Share
from typing import Any
from oxigrad._typing import Array

__all__ = ['asgd', 'lion', 'optimistic_sgd', 'polyak_sgd', 'rprop', 'sgd', 'signum']
def sgd(xp: Any, p: Array, g: Array, m: Array=..., *, step: Array, learning_rate: NonNegative=0.001, momentum: NonNegative=0.0, nesterov: Array=False, weight_decay: NonNegative=0.0, dampening: Array=0.0, rate_before_momentum: Array=False) -> tuple[Array, ...]:
    """Stochastic gradient descent, with momentum if ``momentum`` is not 0, as in torch.optim.SGD."""

def asgd(xp: Any, p: Array, g: Array, average: Array=..., last_rate: Array=..., *, step: Array, learning_rate: NonNegative=0.01, weight_decay: NonNegative=0.0, t0: NonNegative=1, lambd: NonNegative=0.0, alpha: NonNegative=0.75, lag: Array=False) -> tuple[Array, ...]:
    """ASGD, averaged gradient descent (Polyak and Juditsky 1992; Bottou 2010)."""

def optimistic_sgd(xp: Any, p: Array, g: Array, before: Array, *, step: Array, learning_rate: NonNegative=0.001, alpha: NonNegative=1.0, beta: NonNegative=1.0) -> tuple[Array, ...]:
    """Optimistic gradient descent (Mokhtari et al. 2019, arXiv:1901.08511): SGD with an extrapolated gradient."""

def polyak_sgd(xp: Any, p: Array, g: Array, *, total: Array, loss: Array, learning_rate: NonNegative=1.0, max_size: Limit=1.0, lower_bound: Array=0.0, epsilon: NonNegative=0.0, variant: Literal['sps', 'sps+']='sps') -> Array:
    """SGD with Polyak's step size (Loizou et al. 2021, arXiv:2002.10542, SPS_max), as in optax.polyak_sgd."""

def rprop(xp: Any, p: Array, g: Array, move: Array, size: Array=..., *, learning_rate: NonNegative=0.01, eta_minus: Annotated[float, Interval('(0, 1)')]=0.5, eta_plus: Annotated[float, Interval('(1, inf)')]=1.2, min_size: NonNegative=1e-06, max_size: Limit=50.0, late: Array=False) -> tuple[Array, ...]:
    """Rprop, resilient backpropagation (Riedmiller and Braun 1993), as torch.optim.Rprop."""

def signum(xp: Any, p: Array, g: Array, m: Array=..., *, learning_rate: NonNegative=0.001, beta: Share=0.9) -> tuple[Array, ...]:
    """Signum, the sign of the mean gradient (Bernstein et al. 2018, arXiv:1802.04434), as in optax."""

def lion(xp: Any, p: Array, g: Array, m: Array, *, learning_rate: NonNegative=0.0001, beta1: Share=0.9, beta2: Share=0.99, weight_decay: NonNegative=0.0) -> tuple[Array, ...]:
    """Lion, the sign of an interpolated momentum (Chen et al. 2023, arXiv:2302.06675)."""
