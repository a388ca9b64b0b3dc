# Printed by tools/stubs.py.
from typing import Annotated, Literal
from oxigrad.rules.core.ranges import Count, Decay, Interval, NonNegative, Share
from typing import Any
from oxigrad._typing import Array

__all__ = ['shampoo', 'soap']
def shampoo(xp: Any, p: Array, g: Array, statistics: Array=..., roots: Array=..., m: Array=..., v: Array=..., *, step: Array, learning_rate: NonNegative=0.1, momentum: NonNegative=0.0, beta2: Share=1.0, epsilon: NonNegative=0.0001, weight_decay: NonNegative=0.0, interval: Count=1, max_size: Annotated[int, Interval('[0, inf]')]=1200, graft_epsilon: NonNegative=1e-10, grafting: Literal['sgd', 'adagrad', None]=None) -> tuple[Array, ...]:
    """Shampoo (Gupta et al. 2018, arXiv:1802.09568): each axis of the gradient preconditioned by its own covariance."""

def soap(xp: Any, p: Array, g: Array, m: Array, v: Array, statistics: Array=..., bases: Array=..., *, step: Array, learning_rate: NonNegative=0.003, beta1: Decay=0.95, beta2: Decay=0.95, epsilon: NonNegative=1e-08, weight_decay: NonNegative=0.01, interval: Count=10, max_size: Annotated[int, Interval('[0, inf]')]=10000, vectors: Array=False) -> Array:
    """SOAP (Vyas et al. 2024, arXiv:2409.11321): Adam in the basis of eigenvectors of Shampoo's statistics."""
