# Printed by make generated.
from typing import Annotated, Literal
from oxigrad.rules.core.ranges import Count, Decay, Limit, NonNegative, Positive
from typing import Any
from oxigrad._typing import Array

__all__ = ['adabelief', 'adan', 'ademamix', 'laprop', 'optimistic_adam', 'simplified_ademamix', 'sophia', 'yogi']
def adabelief(
    xp: Any, p: Array, g: Array, m: Array, v: Array, *, step: Array, learning_rate: NonNegative=0.001, beta1: Decay=0.9,
    beta2: Decay=0.999, epsilon: NonNegative=1e-16,
    epsilon_root: Annotated[
        NonNegative, 'Small number added to the second moment in each step, where it accumulates.',
    ]=1e-16,
) -> tuple[Array, ...]:
    """AdaBelief (Zhuang et al. 2020, arXiv:2010.07468), as in optax: Adam by the gradient's variance."""

def ademamix(
    xp: Any, p: Array, g: Array, m: Array=..., slow: Array=..., v: Array=..., *, step: Array,
    learning_rate: NonNegative=0.001, beta1: Decay=0.9, beta2: Decay=0.999,
    beta3: Annotated[
        Decay, 'Decay of the slow moving mean of gradients, which averages over about 1 / (1 - beta3) steps.',
    ]=0.9999,
    alpha: Annotated[NonNegative, 'Weight of the slow moving mean beside the fast one.']=5.0,
    epsilon: NonNegative=1e-08, weight_decay: NonNegative=0.0, epsilon_root: NonNegative | None=None,
) -> tuple[Array, ...]:
    """AdEMAMix (Pagliardini et al. 2024, arXiv:2409.03137), as in optax: Adam with a second, slower mean."""

def simplified_ademamix(
    xp: Any, p: Array, g: Array, m: Array=..., v: Array=..., *, step: Array, learning_rate: NonNegative=0.001,
    beta1: Annotated[Decay, 'Decay of the sum of gradients, which grows to about 1 / (1 - beta1) gradients.']=0.99,
    beta2: Decay=0.95, alpha: Annotated[NonNegative, 'Weight of the current gradient beside the sum of gradients.']=0.0,
    epsilon: NonNegative=1e-08, weight_decay: NonNegative=0.0, epsilon_root: NonNegative | None=None,
) -> tuple[Array, ...]:
    """Simplified AdEMAMix (Morwani et al. 2025, arXiv:2502.02431), as in optax: one momentum and the current
    gradient.
    """

def laprop(
    xp: Any, p: Array, g: Array, m: Array=..., v: Array=..., *, step: Array, learning_rate: NonNegative=0.0004,
    beta1: Annotated[Decay, 'Decay of the moving mean of normalized gradients.']=0.9, beta2: Decay=0.999,
    epsilon: NonNegative=1e-15,
) -> tuple[Array, ...]:
    """LaProp (Ziyin et al. 2020, arXiv:2002.04839, algorithm 1): momentum of gradients that are normalized first."""

def yogi(
    xp: Any, p: Array, g: Array, m: Array=..., v: Array=..., *, step: Array, learning_rate: NonNegative=0.01,
    beta1: Decay=0.9, beta2: Decay=0.999, epsilon: NonNegative=0.001,
    initial_accumulator: Annotated[NonNegative, 'Initial value of the second moment.']=1e-06,
    initial_moment: Annotated[float, 'Initial value of the first moment.']=0.0,
) -> tuple[Array, ...]:
    """Yogi (Zaheer et al. 2018): Adam with an additive update of the second moment."""

def adan(
    xp: Any, p: Array, g: Array, m: Array, change: Array, v: Array, before: Array, *, step: Array,
    learning_rate: NonNegative=0.001, beta1: Decay=0.98,
    beta2: Annotated[Decay, 'Decay of the moving mean of differences of gradients.']=0.92,
    beta3: Annotated[Decay, 'Decay of the moving mean of squared look-ahead gradients.']=0.99,
    epsilon: NonNegative=1e-08, epsilon_root: NonNegative=0.0, weight_decay: NonNegative=0.0,
    proximal: Annotated[bool, 'Whether the decay divides the parameter after the step, as in the paper.']=True,
    change_weight: Annotated[
        Literal['beta2', '1 - beta2'],
        "Weight of gradient differences: beta2 as in the authors' program, or 1 - beta2 as in optax.",
    ]='beta2',
) -> tuple[Array, ...]:
    """Adan (Xie et al. 2022, arXiv:2208.06677, algorithm 1): Nesterov's momentum from the differences of gradients."""

def optimistic_adam(
    xp: Any, p: Array, g: Array, m: Array, v: Array, before: Array, *, step: Array, learning_rate: NonNegative=0.001,
    beta1: Decay=0.9, beta2: Decay=0.999, epsilon: NonNegative=1e-08,
    alpha: Annotated[NonNegative, "Weight of Adam's current direction in the step."]=1.0,
    beta: Annotated[NonNegative, 'Weight of the change from the last direction in the step.']=1.0, nesterov: Array=True,
    epsilon_root: NonNegative | None=None,
) -> tuple[Array, ...]:
    """Optimistic Adam (Daskalakis et al. 2018, arXiv:1711.00141): Adam with an extrapolated direction."""

def sophia(
    xp: Any, p: Array, g: Array, m: Array=..., h: Array=..., *, step: Array, learning_rate: NonNegative=0.001,
    beta1: Decay=0.965, beta2: Annotated[Decay, "Decay of the moving mean of the Hessian's diagonal."]=0.99,
    epsilon: NonNegative=1e-08, weight_decay: NonNegative=0.0,
    gamma: Annotated[NonNegative, "Factor of the Hessian's diagonal in the denominator."]=0.01,
    limit: Annotated[Limit, 'Largest absolute value of an element of the step before the learning rate.']=1.0,
    every: Annotated[Count, "Number of steps between updates of the Hessian's diagonal."]=10,
    batch_size: Annotated[Positive, "Batch size, by which the squared gradient estimates the Hessian's diagonal."]=1.0,
    estimate: Annotated[
        Literal['squared', 'given'],
        'Source of the Hessian\'s diagonal: "squared" gradients, or "given" in the slot ``h``.',
    ]='squared',
) -> tuple[Array, ...]:
    """Sophia (Liu et al. 2023, arXiv:2305.14342): the mean gradient, divided by the Hessian's diagonal and clipped."""
