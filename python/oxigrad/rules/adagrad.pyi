# Printed by make generated.
from typing import Annotated, Literal
from oxigrad.rules.core.ranges import Decay, NonNegative, NonPositive, Positive, Share
from typing import Any
from oxigrad._typing import Array

__all__ = ['adadelta', 'adagrad', 'ftrl', 'madgrad', 'rmsprop']
def rooted(xp: Any, v: Array, epsilon: Array, mode: Array) -> Array:
    """The square root of ``v``, with ``epsilon`` added "inside" or "outside" of the root."""

def adagrad(
    xp: Any, p: Array, g: Array, v: Array=..., *, step: Array, learning_rate: NonNegative=0.01,
    rate_decay: Annotated[
        NonNegative, 'Rate at which the learning rate decays: by 1 / (1 + rate_decay * (step - 1)).',
    ]=0.0,
    initial_accumulator: Annotated[NonNegative, 'Initial value of the sum of squared gradients.']=0.0,
    epsilon: NonNegative=1e-10, epsilon_mode: Literal['outside', 'inside']='outside',
) -> tuple[Array, ...]:
    """Adagrad (Duchi, Hazan and Singer 2011), as torch.optim.Adagrad: ``rate_decay`` is its lr_decay."""

def adadelta(
    xp: Any, p: Array, g: Array, v: Array=..., u: Array=..., *, learning_rate: NonNegative=1.0, rho: Share=0.9,
    epsilon: NonNegative=1e-06,
) -> tuple[Array, ...]:
    """Adadelta (Zeiler 2012, arXiv:1212.5701), as in torch, optax and Keras; only the defaults differ."""

def rmsprop(
    xp: Any, p: Array, g: Array, v: Array=..., mean: Array=..., m: Array=..., *, step: Array,
    learning_rate: NonNegative=0.01, rho: Share=0.99, epsilon: NonNegative=1e-08, momentum: NonNegative=0.0,
    initial_accumulator: NonNegative=0.0,
    centered: Annotated[bool, 'Whether the mean gradient is subtracted from the second moment.']=False,
    nesterov: Array=False, bias_correction: Array=False, epsilon_mode: Literal['outside', 'inside']='outside',
    rate_before_momentum: Array=False,
) -> tuple[Array, ...]:
    """RMSprop (Hinton 2012, lecture 6e; centered by Graves 2013, arXiv:1308.0850), as torch.optim.RMSprop."""

def ftrl(
    xp: Any, p: Array, g: Array, linear: Array=..., v: Array=..., *,
    learning_rate: Annotated[
        Positive, 'Step size, which divides the curvature; a step at the rate 0 changes nothing.',
    ]=0.001,
    power: Annotated[NonPositive, 'Exponent by which step sizes fall with the accumulated squared gradients.']=...,
    initial_accumulator: NonNegative=0.1, l1: NonNegative=0.0, l2: NonNegative=0.0,
    shrinkage: Annotated[NonNegative, 'Strength of L2 regularization that enters by the gradient only.']=0.0,
    beta: Annotated[NonNegative, 'Constant added to the root of the accumulated squared gradients.']=0.0,
) -> tuple[Array, ...]:
    """FTRL, follow the regularized leader by coordinate (McMahan et al. 2013), as keras.optimizers.Ftrl."""

def madgrad(
    xp: Any, p: Array, g: Array, v: Array=..., s: Array=..., start: Array=..., *, step: Array,
    learning_rate: NonNegative=0.01,
    momentum: Annotated[Decay, 'Weight of the old parameter in the interpolation with the dual average.']=0.9,
    epsilon: NonNegative=1e-06,
) -> tuple[Array, ...]:
    """MADGRAD (Defazio and Jelassi 2021, arXiv:2101.11075), dual averaging with cube roots."""
