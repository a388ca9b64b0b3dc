# Printed by make generated.
from typing import Annotated, Literal
from oxigrad.rules.core.ranges import Decay, Interval, NonNegative, Positive
from typing import Any
from oxigrad._typing import Array

__all__ = ['cocob', 'dadapt_adamw', 'dadapt_sgd', 'dog', 'dowg', 'momo', 'momo_adam']
_Growth = Annotated[float, Interval('[1, inf]')]
def dog(
    xp: Any, p: Array, g: Array, start: Array=..., distance: Array=..., squares: Array=..., *, step: Array,
    total: Array, learning_rate: Annotated[NonNegative, 'Factor of the estimated step size; leave it at 1.']=1.0,
    epsilon: NonNegative=1e-08, weight_decay: NonNegative=0.0,
    initial: Annotated[
        Literal['heuristic', 'distance', 'learning_rate'],
        'Meaning of ``initial_value``: "heuristic" (relative to the parameters), "distance" or "learning_rate".',
    ]='heuristic',
    initial_value: Annotated[Positive, 'First distance or step size; see ``initial``.']=1e-06,
) -> tuple[Array, ...]:
    """DoG, distance over gradients (Ivgi et al. 2023, arXiv:2302.12022), as the authors' program and optax."""

def dowg(
    xp: Any, p: Array, g: Array, start: Array=..., distance: Array=..., squares: Array=..., *, total: Array,
    learning_rate: Annotated[NonNegative, 'Factor of the estimated step size; leave it at 1.']=1.0,
    initial_distance: Annotated[
        Positive | None, 'First squared distance from the initial parameters; None takes ``epsilon``.',
    ]=None,
    epsilon: Positive=0.0001, weight_decay: NonNegative=0.0,
) -> tuple[Array, ...]:
    """DoWG, distance over weighted gradients (Khaled et al. 2023, arXiv:2305.16284), as in optax."""

def dadapt_sgd(
    xp: Any, p: Array, g: Array, s: Array=..., start: Array=..., d: Array=..., numerator: Array=..., norm: Array=..., *,
    step: Array, total: Array,
    learning_rate: Annotated[NonNegative, 'Factor of the estimated step size; leave it at 1, or set a schedule.']=1.0,
    momentum: Annotated[Decay, 'Weight of the old parameter in the interpolation with the dual average.']=0.0,
    weight_decay: NonNegative=0.0, d0: Positive=1e-06, growth_rate: _Growth=...,
) -> tuple[Array, ...]:
    """SGD with D-Adaptation (Defazio and Mishchenko 2023, arXiv:2301.07733, algorithm 4), as the authors' DAdaptSGD."""

def dadapt_adamw(
    xp: Any, p: Array, g: Array, m: Array=..., v: Array=..., s: Array=..., d: Array=..., numerator: Array=..., *,
    step: Array, total: Array,
    learning_rate: Annotated[NonNegative, 'Factor of the estimated step size; leave it at 1, or set a schedule.']=1.0,
    beta1: Decay=0.9, beta2: Decay=0.999, epsilon: Positive=1e-08, weight_decay: NonNegative=0.0, d0: Positive=1e-06,
    growth_rate: _Growth=..., bias_correction: Array=True, decoupled: Array=True,
) -> tuple[Array, ...]:
    """AdamW with D-Adaptation (Defazio and Mishchenko 2023, arXiv:2301.07733, algorithm 5), as in optax."""

def cocob(
    xp: Any, p: Array, g: Array, start: Array=..., gradients: Array=..., scale: Array=..., magnitudes: Array=...,
    reward: Array=..., *, learning_rate: Annotated[NonNegative, 'Factor of the gradient; leave it at 1.']=1.0,
    alpha: Annotated[NonNegative, 'Inverse of the largest fraction of the reward that the first bets may use.']=100.0,
    epsilon: Positive=1e-08, weight_decay: NonNegative=0.0,
) -> tuple[Array, ...]:
    """COCOB, continuous coin betting (Orabona and Tommasi 2017, arXiv:1705.07795, algorithm 2), as in optax."""

def momo(
    xp: Any, p: Array, g: Array, m: Array=..., average_loss: Array=..., products: Array=..., bound: Array=..., *,
    step: Array, total: Array, loss: Array,
    learning_rate: Annotated[
        NonNegative, 'Upper bound of the step size, which falls as the loss nears its lower bound.',
    ]=1.0,
    beta: Annotated[Decay, 'Decay of the moving means of losses and gradients.']=0.9, weight_decay: NonNegative=0.0,
    lower_bound: Array=0.0, bias_correction: Array=False, adapt_lower_bound: Array=False,
) -> tuple[Array, ...]:
    """MoMo, SGD with a model of momentum (Schaipp et al. 2023, arXiv:2305.07583, algorithm 1)."""

def momo_adam(
    xp: Any, p: Array, g: Array, m: Array=..., v: Array=..., average_loss: Array=..., products: Array=...,
    bound: Array=..., *, step: Array, total: Array, loss: Array,
    learning_rate: Annotated[
        NonNegative, 'Upper bound of the step size, which falls as the loss nears its lower bound.',
    ]=0.01,
    beta1: Decay=0.9, beta2: Decay=0.999, epsilon: Positive=1e-08, weight_decay: NonNegative=0.0,
    lower_bound: Array=0.0,
    proximal: Annotated[bool, 'Whether the weight decay divides the new parameter, and not the old one.']=True,
    adapt_lower_bound: Array=False,
) -> tuple[Array, ...]:
    """MoMo-Adam (Schaipp et al. 2023, arXiv:2305.07583, algorithm 2), as the authors' MomoAdam and optax."""
