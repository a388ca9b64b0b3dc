# Printed by make generated.
from typing import Annotated, Literal
from oxigrad.rules.core.ranges import CountOrZero, Interval, NonNegative, NonPositive, Share
from typing import Any
from oxigrad._typing import Array

__all__ = ['adafactor', 'sm3']
def adafactor(
    xp: Any, p: Array, g: Array, row: Array=..., column: Array=..., v: Array=..., m: Array=..., *, step: Array,
    learning_rate: Annotated[NonNegative, 'Step size; with ``relative_step`` its upper bound is 1 / sqrt(step).']=0.01,
    beta2_decay: Annotated[
        NonPositive, 'Exponent of the decay of second moments: at step t it is 1 - t ** beta2_decay.',
    ]=...,
    epsilon1: Annotated[
        NonNegative | None, 'Lower bound of root mean squares of gradients; None is the machine epsilon.',
    ]=None,
    epsilon2: Annotated[
        NonNegative, 'Lower bound of the root mean square of a parameter, where ``scale_parameter`` is set.',
    ]=0.001,
    clipping: Annotated[float, Interval('(0, inf]'), 'Upper bound of the root mean square of an update.']=1.0,
    weight_decay: NonNegative=0.0,
    momentum: Annotated[Share, 'Decay of the moving mean of updates; 0 turns momentum off.']=0.0,
    min_factored: Annotated[CountOrZero, 'Smallest size of both axes for which second moments are factored.']=0,
    factored: Annotated[
        Literal['last', 'largest', None],
        'Axes whose second moments are factored: the "last" two, the "largest" two, or None.',
    ]='last',
    relative_step: Annotated[bool, 'Whether the learning rate is at most 1 / sqrt(step).']=True,
    scale_parameter: Annotated[bool, 'Whether the step is multiplied by the root mean square of the parameter.']=True,
    add_epsilon: Annotated[bool, 'Whether ``epsilon1`` is added to squared gradients, as in optax and Keras.']=False,
) -> tuple[Array, ...]:
    """Adafactor (Shazeer and Stern 2018, arXiv:1804.04235): factored second moments of matrices."""

def sm3(
    xp: Any, p: Array, g: Array, m: Array, cover: Array=..., *, learning_rate: NonNegative=0.1,
    momentum: Annotated[Share, 'Decay of the moving mean of scaled gradients.']=0.9,
    beta2: Annotated[Share, 'Decay of the maxima of squared gradients; 1 sums them, as Adagrad does.']=1.0,
    epsilon: NonNegative=1e-08,
) -> tuple[Array, ...]:
    """SM3-II (Anil et al. 2019, arXiv:1901.11150), as in optax: Adagrad with a maximum for each row, column, ..."""
