# Printed by make generated.
from typing import Annotated
from oxigrad.rules.core.ranges import Decay, Interval, Limit, NonNegative
from typing import Any
from oxigrad._typing import Array
from oxigrad.rules.core.rule import Rule

def l2(xp: Any, p: Array, g: Array, *, weight_decay: NonNegative=0.0) -> Array:
    """The gradient of the loss plus ``weight_decay / 2 * sum(p * p)``."""

def clip(xp: Any, p: Array, g: Array, *, total: Array, max_norm: Limit=1.0) -> Array:
    """The gradient, scaled down where the norm of all gradients is larger than ``max_norm``."""

def asgd(
    xp: Any, p: Array, g: Array, ax: Array, eta: Array=..., mu: Array=..., *, step: Array,
    learning_rate: NonNegative=0.01, weight_decay: NonNegative=0.0,
    t0: Annotated[float, 'First step from which the parameters are averaged.']=1000000.0,
    lambd: Annotated[NonNegative, 'Decay of the parameters and of the learning rate.']=0.0001,
    alpha: Annotated[NonNegative, 'Exponent of the decay of the learning rate.']=0.75,
) -> tuple[Array, ...]:
    """`oxigrad.rules.asgd` with ``lag``, with the state of torch.optim.ASGD: the rate and weight of the next step."""

def nadam(
    xp: Any, p: Array, g: Array, m: Array, v: Array, product: Array=..., *, step: Array,
    learning_rate: NonNegative=0.002, beta1: Decay=0.9, beta2: Decay=0.999, epsilon: NonNegative=1e-08,
    momentum_decay: Annotated[NonNegative, 'Rate at which the momentum warms up.']=0.004,
) -> Array:
    """`oxigrad.rules.nadam` with the state of torch.optim.NAdam: the product is computed in float32."""

def rprop(
    xp: Any, p: Array, g: Array, prev: Array, step_size: Array=..., *,
    learning_rate: Annotated[NonNegative, 'First step size of every element.']=0.01,
    eta_minus: Annotated[float, Interval('(0, 1)'), 'Factor of a step size where the gradient changes sign.']=0.5,
    eta_plus: Annotated[float, Interval('(1, inf)'), 'Factor of a step size where the gradient keeps its sign.']=1.2,
    min_size: Annotated[float, 'Smallest step size of an element.']=1e-06,
    max_size: Annotated[float, 'Largest step size of an element.']=50.0,
) -> tuple[Array, ...]:
    """`oxigrad.rules.rprop` with torch.optim.Rprop's state: the last gradient, zero where its sign changed."""

L2: Rule
MAXIMIZE: Rule
CLIP: Rule
CLIP_BY_KNOWN_NORM: Rule
UNSCALE: Rule
DECAY: Rule
ASGD: Rule
NADAM: Rule
RPROP: Rule