# Printed by tools/stubs.py.
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from oxigrad._typing import Number
from oxigrad.optim.chain import Transform
from oxigrad.optim.settings.hyperparameters import Hyperparameter
from oxigrad.schedules.base import Schedule

_Number: TypeAlias = Hyperparameter[float | Schedule, Number]
_Optional: TypeAlias = Hyperparameter[float | Schedule | None, Number | None]
_Groups: TypeAlias = Mapping[Any, Mapping[str, Any] | None]
_Library: TypeAlias = Literal["torch", "optax", "keras"] | None

TRANSFORMS: dict[str, type[Transform]]

class ClipByValue(Transform):
    """Clips each element of the gradient to ``[-limit, limit]`` (torch's ``clip_grad_value_``, optax's ``clip``)."""
    limit: _Number
    def __init__(self, limit: Number = 1.0, *, compat: _Library = None) -> None: ...

class ClipByNorm(Transform):
    """Scales the gradient of a leaf down to the norm ``max_norm`` if its norm is larger (Keras' clipnorm)."""
    max_norm: _Number
    def __init__(self, max_norm: Number = 1.0, *, compat: _Library = None) -> None: ...

class ClipByGlobalNorm(Transform):
    """Scales all gradients down to the global norm ``max_global_norm`` (Pascanu et al. 2013)."""
    max_global_norm: _Number
    def __init__(self, max_global_norm: Number = 1.0, *, compat: _Library = None) -> None: ...

class Maximize(Transform):
    """Negates the gradient, so that the optimizer maximizes the loss."""
    def __init__(self, *, compat: _Library = None) -> None: ...

class Regularize(Transform):
    """The gradient of the loss plus ``l1 * sum(abs(p)) + l2 / 2 * sum(p * p)``."""
    l1: _Number
    l2: _Number
    def __init__(self, l1: Number = 0.0, l2: Number = 0.0, *, compat: _Library = None) -> None: ...

class GradientNoise(Transform):
    """Adds normal noise of variance ``eta / step**gamma`` to the gradient (Neelakantan et al. 2015, arXiv:1511.06807)."""
    eta: _Number
    gamma: _Number
    def __init__(self, eta: Number = 0.01, gamma: Number = 0.55, *, compat: _Library = None) -> None: ...

class Centralize(Transform):
    """Gradient centralization (Yong et al. 2020, arXiv:2004.01461): the gradient minus its mean, for two axes and more."""
    kept: Literal['first', 'last']
    def __init__(self, kept: Literal['first', 'last'] = 'first', *, compat: _Library = None) -> None: ...

class AdaptiveGradientClip(Transform):
    """Adaptive gradient clipping (Brock et al. 2021, arXiv:2102.06171): limits gradient norms relative to weights."""
    max_ratio: _Number
    min_norm: _Number
    units: Literal['last', 'first']
    def __init__(self, max_ratio: Number = 0.01, min_norm: Number = 0.001, units: Literal['last', 'first'] = 'last', *, compat: _Library = None) -> None: ...

class MARS(Transform):
    """MARS, the variance-reduced gradient (Yuan et al. 2024, arXiv:2411.10438)."""
    gamma: _Number
    momentum: _Number
    max_norm: _Number
    def __init__(self, gamma: Number = 0.025, momentum: Number = 0.95, max_norm: Number = 1.0, *, compat: _Library = None) -> None: ...

class Cautious(Transform):
    """Zeroes the elements of a step whose sign differs from the gradient's (Liang et al. 2024, arXiv:2411.16085)."""
    def __init__(self, *, compat: _Library = None) -> None: ...

class LearningRateDropout(Transform):
    """Learning-rate dropout (Lin et al. 2019, arXiv:1912.00144): skips the update of a random subset of elements."""
    dropout_rate: _Number
    def __init__(self, dropout_rate: Number = 0.5, *, compat: _Library = None) -> None: ...

class ScheduleFree(Transform):
    """Schedule-free learning (Defazio et al. 2024, arXiv:2405.15682), wrapped around the optimizer before it."""
    interpolation: _Number
    weight_power: _Number
    def __init__(self, interpolation: Number = 0.9, weight_power: Number = 2.0, *, compat: _Library = None) -> None: ...

class WeightDecay(Transform):
    """Decoupled weight decay (Loshchilov and Hutter 2019); it reads the parameter before the update."""
    weight_decay: _Number
    def __init__(self, weight_decay: Number = 0.01, *, compat: _Library = None) -> None: ...

class EMA(Transform):
    """The exponential moving average of the parameters: ``decay * average + (1 - decay) * new`` in each step."""
    decay: _Number
    average_from: Literal['start', 'first_step', 'zeros']
    def __init__(self, decay: Number = 0.999, average_from: Literal['start', 'first_step', 'zeros'] = 'start', *, compat: _Library = None) -> None: ...

class SWA(Transform):
    """SWA, the mean of the parameters over every ``every``-th step (Izmailov et al. 2018)."""
    start: _Number
    every: _Number
    def __init__(self, start: Number = 0, every: Number = 1, *, compat: _Library = None) -> None: ...

class Lookahead(Transform):
    """Every ``sync_period`` steps, moves the slow parameters towards the fast ones, and sets the fast ones to them."""
    sync_period: _Number
    slow_step_size: _Number
    def __init__(self, sync_period: Number = 6, slow_step_size: Number = 0.5, *, compat: _Library = None) -> None: ...

class Copy(Transform):
    """A copy of the parameters in a lower precision, for a forward pass in mixed precision."""
    copy_dtype: Literal['bfloat16', 'float16', 'float32']
    def __init__(self, copy_dtype: Literal['bfloat16', 'float16', 'float32'] = 'bfloat16', *, compat: _Library = None) -> None: ...
