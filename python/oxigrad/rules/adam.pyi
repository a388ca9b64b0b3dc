# Printed by make generated.
from typing import Annotated, Literal
from oxigrad.rules.core.ranges import Decay, NonNegative, Share
from typing import Any
from oxigrad._typing import Array

__all__ = ['adam', 'adam_lrd', 'adamax', 'adamc', 'adamw', 'adopt', 'nadam', 'radam', 'stable_adamw']
def adam_step(
    xp: Any, g: Array, m: Array, v: Array, v_max: Array, step: Array, learning_rate: Array, beta1: Array, beta2: Array,
    epsilon: Array, amsgrad: Array, epsilon_mode: Array, epsilon_root: Array=None,
) -> tuple[Array, ...]:
    """The step that Adam subtracts from the parameter, and its slots."""

def adam(
    xp: Any, p: Array, g: Array, m: Array=..., v: Array=..., v_max: Array=..., *, step: Array,
    learning_rate: NonNegative=0.001, beta1: Decay=0.9, beta2: Decay=0.999, epsilon: NonNegative=1e-08,
    amsgrad: Literal[None, True, False, 'raw', 'corrected']=None,
    epsilon_mode: Literal['outside', 'inside', 'hat']='outside', epsilon_root: NonNegative | None=None,
) -> tuple[Array, ...]:
    """Adam (Kingma and Ba 2015, arXiv:1412.6980), ``epsilon`` added after the bias correction, as torch and optax
    do.
    """

def adamw(
    xp: Any, p: Array, g: Array, m: Array=..., v: Array=..., v_max: Array=..., *, step: Array,
    learning_rate: NonNegative=0.001, beta1: Decay=0.9, beta2: Decay=0.999, epsilon: NonNegative=1e-08,
    weight_decay: NonNegative=0.01, amsgrad: Literal[None, True, False, 'raw', 'corrected']=None,
    epsilon_mode: Literal['outside', 'inside', 'hat']='outside', epsilon_root: NonNegative | None=None,
) -> tuple[Array, ...]:
    """AdamW, Adam with decoupled weight decay (Loshchilov and Hutter 2019, arXiv:1711.05101)."""

def adamc(
    xp: Any, p: Array, g: Array, m: Array=..., v: Array=..., peak: Array=..., *, step: Array,
    learning_rate: NonNegative=0.001, beta1: Decay=0.9, beta2: Decay=0.999, epsilon: NonNegative=1e-08,
    weight_decay: NonNegative=0.01,
    max_learning_rate: Annotated[
        NonNegative, 'Largest learning rate of the schedule; 0 takes the largest one so far.',
    ]=0.0,
) -> tuple[Array, ...]:
    """AdamC, AdamW with a corrected weight decay (Defazio 2025, arXiv:2506.02285), for layers before a
    normalization.
    """

def stable_adamw(
    xp: Any, p: Array, g: Array, m: Array=..., v: Array=..., *, step: Array, learning_rate: NonNegative=0.001,
    beta1: Decay=0.9, beta2: Decay=0.99, epsilon: NonNegative=1e-06, weight_decay: NonNegative=0.01,
) -> tuple[Array, ...]:
    """StableAdamW (Wortsman et al. 2023, arXiv:2304.13013, algorithm 2): AdamW with the update clipping of
    Adafactor.
    """

def adam_lrd(
    xp: Any, p: Array, g: Array, m: Array=..., v: Array=..., v_max: Array=..., *, step: Array, noise: Array,
    learning_rate: NonNegative=0.001, beta1: Decay=0.9, beta2: Decay=0.999, epsilon: NonNegative=1e-08,
    dropout_rate: Share=0.0, amsgrad: Literal[None, True, False, 'raw', 'corrected']=None,
    epsilon_mode: Literal['outside', 'inside', 'hat']='outside',
) -> tuple[Array, ...]:
    """AdamLRD, Adam with learning-rate dropout (Lin et al. 2019, arXiv:1912.00144)."""

def adamax(
    xp: Any, p: Array, g: Array, m: Array=..., u: Array=..., *, step: Array, learning_rate: NonNegative=0.002,
    beta1: Decay=0.9, beta2: Annotated[Decay, 'Decay of the maximum of absolute gradients.']=0.999,
    epsilon: NonNegative=1e-08, epsilon_mode: Literal['inside', 'outside']='inside',
) -> tuple[Array, ...]:
    """Adamax, Adam with the infinity norm (Kingma and Ba 2015, section 7.1), as torch and optax."""

def nadam(
    xp: Any, p: Array, g: Array, m: Array=..., v: Array=..., product: Array=..., *, step: Array,
    learning_rate: NonNegative=0.002, beta1: Decay=0.9, beta2: Decay=0.999, epsilon: NonNegative=1e-08,
    momentum_decay: Annotated[
        NonNegative, 'Rate at which the momentum warms up; 0 keeps half of ``beta1`` throughout.',
    ]=0.004,
    constant_momentum: Annotated[bool, 'Whether the momentum is ``beta1`` from the first step on, as in optax.']=False,
    epsilon_root: NonNegative | None=None,
) -> tuple[Array, ...]:
    """NAdam, Adam with Nesterov's momentum (Dozat 2016), as torch.optim.NAdam."""

def radam(
    xp: Any, p: Array, g: Array, m: Array=..., v: Array=..., *, step: Array, learning_rate: NonNegative=0.001,
    beta1: Decay=0.9, beta2: Decay=0.999, epsilon: NonNegative=1e-08,
    threshold: Annotated[NonNegative, 'Length of the approximated average above which the variance is rectified.']=5.0,
    epsilon_mode: Literal['outside', 'inside', 'hat']='hat', epsilon_root: NonNegative | None=None,
) -> tuple[Array, ...]:
    """RAdam, Adam with a rectified variance (Liu et al. 2020, arXiv:1908.03265)."""

def adopt(
    xp: Any, p: Array, g: Array, m: Array=..., v: Array=..., *, step: Array, learning_rate: NonNegative=0.001,
    beta1: Decay=0.9, beta2: Decay=0.9999, epsilon: NonNegative=1e-06,
    clipped: Annotated[bool, 'Whether the terms of the first moment are clipped to (step - 1) ** 0.25.']=True,
) -> tuple[Array, ...]:
    """ADOPT (Taniguchi et al. 2024, arXiv:2411.02853), as in optax: gradients are divided by the previous root of v."""
