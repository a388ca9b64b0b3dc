# Printed by tools/stubs.py.
from typing import Annotated, Literal
from oxigrad.rules.core.ranges import CountOrZero, Interval, NonNegative, NonPositive, Share
from typing import Any
from oxigrad._typing import Array

__all__ = ['adafactor', 'sm3']
def adafactor(xp: Any, p: Array, g: Array, row: Array=..., column: Array=..., v: Array=..., m: Array=..., *, step: Array, learning_rate: NonNegative=0.01, beta2_decay: NonPositive=..., epsilon1: NonNegative | None=None, epsilon2: NonNegative=0.001, clipping: Annotated[float, Interval('(0, inf]')]=1.0, weight_decay: NonNegative=0.0, momentum: Share=0.0, min_factored: CountOrZero=0, factored: Literal['last', 'largest', None]='last', relative_step: Array=True, scale_parameter: Array=True, add_epsilon: Array=False) -> tuple[Array, ...]:
    """Adafactor (Shazeer and Stern 2018, arXiv:1804.04235): factored second moments of matrices."""

def sm3(xp: Any, p: Array, g: Array, m: Array, cover: Array=..., *, learning_rate: NonNegative=0.1, momentum: Share=0.9, beta2: Share=1.0, epsilon: NonNegative=1e-08) -> tuple[Array, ...]:
    """SM3-II (Anil et al. 2019, arXiv:1901.11150), as in optax: Adagrad with a maximum for each row, column, ..."""
