# Printed by make generated.
from typing import Annotated, Literal
from oxigrad.rules.core.ranges import Interval, NonNegative, Share
from typing import Any
from oxigrad._typing import Array

__all__ = ['muon']
DION: tuple[Any, ...]
Iterations = Annotated[int, Interval('[0, 100)'), 'Number of Newton-Schulz iterations, each of three matrix products.']
FirstCoefficient = Annotated[float, 'Coefficient of x in the polynomial of an iteration.']
ThirdCoefficient = Annotated[float, 'Coefficient of x ** 3 in the polynomial of an iteration.']
FifthCoefficient = Annotated[float, 'Coefficient of x ** 5 in the polynomial of an iteration.']
Coefficients = Annotated[
    Literal['dion', None],
    'Named coefficients that replace ``a``, ``b`` and ``c``: "dion" has a triple for each iteration.',
]
Adjust = Annotated[
    Literal['original', 'transposed', 'match_rms_adamw', 'spectral_unclamped', None],
    'Factor of the update by the shape of the matrix; None multiplies by 1.',
]
Matrices = Annotated[
    Literal['last', 'filters', None],
    'Matrices of more than two axes: stacks in the "last" two, or "filters", the first axis by all others.',
]
def muon(
    xp: Any, p: Array, g: Array, m: Array=..., *, step: Array, learning_rate: NonNegative=0.001,
    momentum: Annotated[Share, 'Decay of the moving mean of gradients, which is then orthogonalized.']=0.95,
    weight_decay: NonNegative=0.1,
    epsilon: Annotated[NonNegative, 'Lower bound of the norm by which the momentum is divided.']=1e-07,
    iterations: Iterations=5, a: FirstCoefficient=3.4445, b: ThirdCoefficient=..., c: FifthCoefficient=2.0315,
    coefficients: Coefficients=None, adjust: Adjust='original', nesterov: Array=True, matrices: Matrices=None,
    debias: Annotated[bool, 'Whether moving means are corrected for their initial value of zero.']=False,
) -> tuple[Array, ...]:
    """Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon): orthogonalized momentum, for matrices only."""

def orthogonalize(
    xp: Any, p: Array, new: Array, *, learning_rate: Array, matrices: Matrices=None, adjust: Adjust='original',
    iterations: Iterations=5, a: FirstCoefficient=3.4445, b: ThirdCoefficient=..., c: FifthCoefficient=2.0315,
    coefficients: Coefficients=None,
) -> Array:
    """Orthogonalizes the step of the optimizer before it: its singular values become about ``learning_rate``."""
