# Printed by make generated.
from typing import Annotated, Literal
from oxigrad.rules.core.ranges import Count, Decay, Interval, NonNegative, Share
from typing import Any
from oxigrad._typing import Array

__all__ = ['shampoo', 'soap']
def shampoo(
    xp: Any, p: Array, g: Array, statistics: Array=..., roots: Array=..., m: Array=..., v: Array=..., shape: Array=...,
    *, step: Array, learning_rate: NonNegative=0.1, momentum: NonNegative=0.0,
    beta2: Annotated[Share, 'Decay of the covariances of gradients; 1 sums them.']=1.0,
    epsilon: Annotated[NonNegative, 'Small number added to the covariances before their root is taken.']=0.0001,
    weight_decay: NonNegative=0.0,
    interval: Annotated[Count, 'Number of steps between computations of the inverse roots, which dominate the time.']=1,
    max_size: Annotated[
        int, Interval('[0, inf]'), 'Longest axis with a full covariance; longer axes have a diagonal one.',
    ]=1200,
    graft_epsilon: Annotated[NonNegative, 'Small number added to the denominator of the grafted Adagrad step.']=1e-10,
    grafting: Annotated[
        Literal['sgd', 'adagrad', None],
        'Rule whose step length is taken: "sgd", "adagrad", or None for Shampoo\'s own.',
    ]=None,
) -> tuple[Array, ...]:
    """Shampoo (Gupta et al. 2018, arXiv:1802.09568): each axis of the gradient preconditioned by its own covariance."""

def soap(
    xp: Any, p: Array, g: Array, m: Array, v: Array, statistics: Array=..., bases: Array=..., *, step: Array,
    learning_rate: NonNegative=0.003, beta1: Decay=0.95,
    beta2: Annotated[Decay, 'Decay of second moments and of the covariances of gradients.']=0.95,
    epsilon: NonNegative=1e-08, weight_decay: NonNegative=0.01,
    interval: Annotated[Count, 'Number of steps between updates of the bases, each a QR decomposition.']=10,
    max_size: Annotated[int, Interval('[0, inf]'), 'Longest axis that is rotated; longer axes stay as they are.']=10000,
    vectors: Annotated[bool, 'Whether parameters with one axis are rotated too.']=False,
) -> Array:
    """SOAP (Vyas et al. 2024, arXiv:2409.11321): Adam in the basis of eigenvectors of Shampoo's statistics."""
