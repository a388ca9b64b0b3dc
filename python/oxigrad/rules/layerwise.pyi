# Printed by make generated.
from typing import Annotated, Literal
from oxigrad.rules.core.ranges import Decay, Limit, NonNegative
from typing import Any
from oxigrad._typing import Array

__all__ = ['fromage', 'lamb', 'lars', 'novograd']
def trust_ratio(xp: Any, size: Array, length: Array, coefficient: Array=1.0, epsilon: Array=0.0) -> Array:
    """The norm of a parameter divided by its step's norm, times a coefficient; 1 if either norm is zero."""

def lars(
    xp: Any, p: Array, g: Array, m: Array=..., *, learning_rate: NonNegative=0.001, momentum: NonNegative=0.9,
    weight_decay: NonNegative=0.0,
    trust_coefficient: Annotated[NonNegative, 'Length of a step as a share of the norm of the parameter.']=0.001,
    epsilon: NonNegative=0.0, nesterov: Array=False,
    norms: Annotated[
        Literal['sum', 'separate'],
        'Denominator of the trust ratio: norm of the "sum" of gradient and decay, or sum of "separate" norms.',
    ]='sum',
) -> tuple[Array, ...]:
    """LARS, layer-wise adaptive rates (You et al. 2017, arXiv:1708.03888): steps proportional to the parameter's
    norm.
    """

def lamb(
    xp: Any, p: Array, g: Array, m: Array=..., v: Array=..., *, step: Array, learning_rate: NonNegative=0.001,
    beta1: Decay=0.9, beta2: Decay=0.999, epsilon: NonNegative=1e-06, weight_decay: NonNegative=0.0,
    min_trust: Annotated[NonNegative, 'Smallest trust ratio, where ``clamp`` is set.']=0.01,
    max_trust: Annotated[Limit, 'Largest trust ratio, where ``clamp`` is set.']=10.0,
    clamp: Annotated[bool, 'Whether the trust ratio is clipped to ``[min_trust, max_trust]``, as in DeepSpeed.']=False,
    decoupled: Array=False, epsilon_mode: Literal['outside', 'inside', 'hat']='outside',
    epsilon_root: NonNegative | None=None,
) -> tuple[Array, ...]:
    """LAMB (You et al. 2020, arXiv:1904.00962), as in optax: Adam's step, in proportion to the norm of the
    parameter.
    """

def novograd(
    xp: Any, p: Array, g: Array, m: Array=..., v: Array=..., *, step: Array, learning_rate: NonNegative=0.001,
    beta1: Decay=0.9, beta2: Annotated[Decay, 'Decay of the squared gradient norm of each parameter.']=0.25,
    epsilon: NonNegative=1e-06, weight_decay: NonNegative=0.0, epsilon_root: NonNegative | None=None,
) -> tuple[Array, ...]:
    """NovoGrad (Ginsburg et al. 2019, arXiv:1905.11286), as in optax: the second moment is one number for each leaf."""

def fromage(
    xp: Any, p: Array, g: Array, *, learning_rate: NonNegative=0.01,
    min_norm: Annotated[NonNegative, 'Lower bound of the norms of parameter and gradient.']=1e-06,
) -> Array:
    """Fromage (Bernstein et al. 2020, arXiv:2002.03432): steps relative to the parameter's norm, then rescaling."""
