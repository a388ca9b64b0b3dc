# Printed by make generated.
from typing import Annotated, Literal
from oxigrad.rules.core.ranges import Count, Decay, NonNegative
from typing import Any
from oxigrad._typing import Array

__all__ = ['galore']
def galore(
    xp: Any, p: Array, g: Array, m: Array=..., v: Array=..., left: Array=..., right: Array=..., *, step: Array,
    learning_rate: NonNegative=0.001, beta1: Decay=0.9, beta2: Decay=0.999, epsilon: NonNegative=1e-06,
    weight_decay: NonNegative=0.0,
    rank: Annotated[Count, 'Rank to which the gradients of matrices are projected; slots shrink with it.']=128,
    interval: Annotated[
        Count, 'Number of steps between computations of the bases by singular value decomposition.',
    ]=200,
    update_scale: Annotated[NonNegative, 'Factor of the updates of projected matrices.']=1.0,
    projection: Annotated[
        Literal['std', 'reverse_std', 'left', 'right', 'full'],
        'Side that is projected: the shorter ("std") or longer ("reverse_std") axis, "left", "right" or "full".',
    ]='std',
) -> tuple[Array, ...]:
    """GaLore (Zhao et al. 2024, arXiv:2403.03507): Adam on gradients of matrices, projected to a low ``rank``."""
