# Printed by tools/stubs.py.
from typing import Literal
from oxigrad.rules.core.ranges import Count, Decay, NonNegative
from typing import Any
from oxigrad._typing import Array

__all__ = ['galore']
def galore(xp: Any, p: Array, g: Array, m: Array=..., v: Array=..., left: Array=..., right: Array=..., *, step: Array, learning_rate: NonNegative=0.001, beta1: Decay=0.9, beta2: Decay=0.999, epsilon: NonNegative=1e-06, weight_decay: NonNegative=0.0, rank: Count=128, interval: Count=200, update_scale: NonNegative=1.0, projection: Literal['std', 'reverse_std', 'left', 'right', 'full']='std') -> tuple[Array, ...]:
    """GaLore (Zhao et al. 2024, arXiv:2403.03507): Adam on gradients of matrices, projected to a low ``rank``."""
