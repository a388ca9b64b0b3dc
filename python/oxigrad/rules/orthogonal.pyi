# Printed by tools/stubs.py.
from typing import Annotated, Literal
from oxigrad.rules.core.ranges import Interval, NonNegative, Share
from typing import Any
from oxigrad._typing import Array

__all__ = ['muon']
DION: tuple[Any, ...]
def muon(xp: Any, p: Array, g: Array, m: Array=..., *, step: Array, learning_rate: NonNegative=0.001, momentum: Share=0.95, weight_decay: NonNegative=0.1, epsilon: NonNegative=1e-07, iterations: Annotated[int, Interval('[0, 100)')]=5, a: Array=3.4445, b: Array=..., c: Array=2.0315, coefficients: Literal['dion', None]=None, adjust: Literal['original', 'transposed', 'match_rms_adamw', 'spectral_unclamped', None]='original', nesterov: Array=True, debias: Array=False) -> tuple[Array, ...]:
    """Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon): orthogonalized momentum, for matrices only."""
