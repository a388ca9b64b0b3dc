# Printed by tools/stubs.py.
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

from oxigrad._typing import Dtype, Number
from oxigrad.optim.rule_optimizer import RuleOptimizer
from oxigrad.optim.settings.hyperparameters import Hyperparameter
from oxigrad.optim.settings.loss_scale import LossScale
from oxigrad.schedules.base import Schedule

_Number: TypeAlias = Hyperparameter[float | Schedule, Number]
_Optional: TypeAlias = Hyperparameter[float | Schedule | None, Number | None]
_Groups: TypeAlias = Mapping[Any, Mapping[str, Any] | None]
_Library: TypeAlias = Literal["torch", "optax", "keras"] | None

class Adam(RuleOptimizer):
    """Adam (Kingma and Ba 2015, arXiv:1412.6980), ``epsilon`` added after the bias correction, as torch and optax do."""
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    amsgrad: Literal['raw', 'corrected'] | bool | None
    epsilon_mode: Literal['outside', 'inside', 'hat']
    epsilon_root: _Optional
    def __init__(self, learning_rate: Number = 0.001, beta1: Number = 0.9, beta2: Number = 0.999, epsilon: Number = 1e-08, amsgrad: Literal['raw', 'corrected'] | bool | None = None, epsilon_mode: Literal['outside', 'inside', 'hat'] = 'outside', epsilon_root: Number | None = None, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class AdamW(RuleOptimizer):
    """AdamW, Adam with decoupled weight decay (Loshchilov and Hutter 2019, arXiv:1711.05101)."""
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    weight_decay: _Number
    amsgrad: Literal['raw', 'corrected'] | bool | None
    epsilon_mode: Literal['outside', 'inside', 'hat']
    epsilon_root: _Optional
    def __init__(self, learning_rate: Number = 0.001, beta1: Number = 0.9, beta2: Number = 0.999, epsilon: Number = 1e-08, weight_decay: Number = 0.01, amsgrad: Literal['raw', 'corrected'] | bool | None = None, epsilon_mode: Literal['outside', 'inside', 'hat'] = 'outside', epsilon_root: Number | None = None, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class AdamLRD(RuleOptimizer):
    """AdamLRD, Adam with learning-rate dropout (Lin et al. 2019, arXiv:1912.00144)."""
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    dropout_rate: _Number
    amsgrad: Literal['raw', 'corrected'] | bool | None
    epsilon_mode: Literal['outside', 'inside', 'hat']
    def __init__(self, learning_rate: Number = 0.001, beta1: Number = 0.9, beta2: Number = 0.999, epsilon: Number = 1e-08, dropout_rate: Number = 0.0, amsgrad: Literal['raw', 'corrected'] | bool | None = None, epsilon_mode: Literal['outside', 'inside', 'hat'] = 'outside', *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class Adamax(RuleOptimizer):
    """Adamax, Adam with the infinity norm (Kingma and Ba 2015, section 7.1), as torch and optax."""
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    epsilon_mode: Literal['inside', 'outside']
    def __init__(self, learning_rate: Number = 0.002, beta1: Number = 0.9, beta2: Number = 0.999, epsilon: Number = 1e-08, epsilon_mode: Literal['inside', 'outside'] = 'inside', *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class NAdam(RuleOptimizer):
    """NAdam, Adam with Nesterov's momentum (Dozat 2016), as torch.optim.NAdam."""
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    momentum_decay: _Number
    constant_momentum: bool
    epsilon_root: _Optional
    def __init__(self, learning_rate: Number = 0.002, beta1: Number = 0.9, beta2: Number = 0.999, epsilon: Number = 1e-08, momentum_decay: Number = 0.004, constant_momentum: bool = False, epsilon_root: Number | None = None, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class RAdam(RuleOptimizer):
    """RAdam, Adam with a rectified variance (Liu et al. 2020, arXiv:1908.03265)."""
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    threshold: _Number
    epsilon_mode: Literal['outside', 'inside', 'hat']
    epsilon_root: _Optional
    def __init__(self, learning_rate: Number = 0.001, beta1: Number = 0.9, beta2: Number = 0.999, epsilon: Number = 1e-08, threshold: Number = 5.0, epsilon_mode: Literal['outside', 'inside', 'hat'] = 'hat', epsilon_root: Number | None = None, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class OptimisticAdam(RuleOptimizer):
    """Optimistic Adam (Daskalakis et al. 2018, arXiv:1711.00141): Adam with an extrapolated direction."""
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    alpha: _Number
    beta: _Number
    nesterov: bool
    epsilon_root: _Optional
    def __init__(self, learning_rate: Number = 0.001, beta1: Number = 0.9, beta2: Number = 0.999, epsilon: Number = 1e-08, alpha: Number = 1.0, beta: Number = 1.0, nesterov: bool = True, epsilon_root: Number | None = None, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class AdaBelief(RuleOptimizer):
    """AdaBelief (Zhuang et al. 2020, arXiv:2010.07468), as in optax: Adam by the gradient's variance."""
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    epsilon_root: _Number
    def __init__(self, learning_rate: Number = 0.001, beta1: Number = 0.9, beta2: Number = 0.999, epsilon: Number = 1e-16, epsilon_root: Number = 1e-16, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class AdEMAMix(RuleOptimizer):
    """AdEMAMix (Pagliardini et al. 2024, arXiv:2409.03137), as in optax: Adam with a second, slower mean."""
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    beta3: _Number
    alpha: _Number
    epsilon: _Number
    weight_decay: _Number
    epsilon_root: _Optional
    def __init__(self, learning_rate: Number = 0.001, beta1: Number = 0.9, beta2: Number = 0.999, beta3: Number = 0.9999, alpha: Number = 5.0, epsilon: Number = 1e-08, weight_decay: Number = 0.0, epsilon_root: Number | None = None, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class ADOPT(RuleOptimizer):
    """ADOPT (Taniguchi et al. 2024, arXiv:2411.02853), as in optax: the gradient is divided by the root before it."""
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    clipped: bool
    def __init__(self, learning_rate: Number = 0.001, beta1: Number = 0.9, beta2: Number = 0.9999, epsilon: Number = 1e-06, clipped: bool = True, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class Adan(RuleOptimizer):
    """Adan (Xie et al. 2022, arXiv:2208.06677, algorithm 1): Nesterov's momentum from the differences of gradients."""
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    beta3: _Number
    epsilon: _Number
    epsilon_root: _Number
    weight_decay: _Number
    proximal: bool
    change_weight: Literal['beta2', '1 - beta2']
    def __init__(self, learning_rate: Number = 0.001, beta1: Number = 0.98, beta2: Number = 0.92, beta3: Number = 0.99, epsilon: Number = 1e-08, epsilon_root: Number = 0.0, weight_decay: Number = 0.0, proximal: bool = True, change_weight: Literal['beta2', '1 - beta2'] = 'beta2', *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class Yogi(RuleOptimizer):
    """Yogi (Zaheer et al. 2018): Adam with an additive update of the second moment."""
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    initial_accumulator: _Number
    initial_moment: _Number
    def __init__(self, learning_rate: Number = 0.01, beta1: Number = 0.9, beta2: Number = 0.999, epsilon: Number = 0.001, initial_accumulator: Number = 1e-06, initial_moment: Number = 0.0, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class LAMB(RuleOptimizer):
    """LAMB (You et al. 2020, arXiv:1904.00962), as in optax: Adam's step, in proportion to the norm of the parameter."""
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    weight_decay: _Number
    min_trust: _Number
    max_trust: _Number
    clamp: bool
    decoupled: bool
    epsilon_mode: Literal['outside', 'inside', 'hat']
    epsilon_root: _Optional
    def __init__(self, learning_rate: Number = 0.001, beta1: Number = 0.9, beta2: Number = 0.999, epsilon: Number = 1e-06, weight_decay: Number = 0.0, min_trust: Number = 0.01, max_trust: Number = 10.0, clamp: bool = False, decoupled: bool = False, epsilon_mode: Literal['outside', 'inside', 'hat'] = 'outside', epsilon_root: Number | None = None, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class NovoGrad(RuleOptimizer):
    """NovoGrad (Ginsburg et al. 2019, arXiv:1905.11286), as in optax: the second moment is one number for each leaf."""
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    weight_decay: _Number
    epsilon_root: _Optional
    def __init__(self, learning_rate: Number = 0.001, beta1: Number = 0.9, beta2: Number = 0.25, epsilon: Number = 1e-06, weight_decay: Number = 0.0, epsilon_root: Number | None = None, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class Sophia(RuleOptimizer):
    """Sophia (Liu et al. 2023, arXiv:2305.14342): the mean gradient, divided by the Hessian's diagonal and clipped."""
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    weight_decay: _Number
    gamma: _Number
    limit: _Number
    every: _Number
    batch_size: _Number
    estimate: Literal['squared', 'given']
    def __init__(self, learning_rate: Number = 0.001, beta1: Number = 0.965, beta2: Number = 0.99, epsilon: Number = 1e-08, weight_decay: Number = 0.0, gamma: Number = 0.01, limit: Number = 1.0, every: Number = 10, batch_size: Number = 1.0, estimate: Literal['squared', 'given'] = 'squared', *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class Prodigy(RuleOptimizer):
    """Prodigy (Mishchenko and Defazio 2023, arXiv:2306.06101), as in optax: Adam with an estimated learning rate."""
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    beta3: _Number
    epsilon: _Number
    weight_decay: _Number
    d0: _Number
    d_coefficient: _Number
    safeguard_warmup: bool
    bias_correction: bool
    def __init__(self, learning_rate: Number = 1.0, beta1: Number = 0.9, beta2: Number = 0.999, beta3: Number = 0.0, epsilon: Number = 1e-08, weight_decay: Number = 0.0, d0: Number = 1e-06, d_coefficient: Number = 1.0, safeguard_warmup: bool = False, bias_correction: bool = True, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class DoG(RuleOptimizer):
    """DoG, distance over gradients (Ivgi et al. 2023, arXiv:2302.12022), as the authors' program and optax."""
    learning_rate: _Number
    epsilon: _Number
    weight_decay: _Number
    initial: Literal['heuristic', 'distance', 'learning_rate']
    initial_value: _Number
    def __init__(self, learning_rate: Number = 1.0, epsilon: Number = 1e-08, weight_decay: Number = 0.0, initial: Literal['heuristic', 'distance', 'learning_rate'] = 'heuristic', initial_value: Number = 1e-06, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class DoWG(RuleOptimizer):
    """DoWG, distance over weighted gradients (Khaled et al. 2023, arXiv:2305.16284), as in optax."""
    learning_rate: _Number
    initial_distance: _Optional
    epsilon: _Number
    weight_decay: _Number
    def __init__(self, learning_rate: Number = 1.0, initial_distance: Number | None = None, epsilon: Number = 0.0001, weight_decay: Number = 0.0, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class DAdaptSGD(RuleOptimizer):
    """SGD with D-Adaptation (Defazio and Mishchenko 2023, arXiv:2301.07733, algorithm 4), as the authors' DAdaptSGD."""
    learning_rate: _Number
    momentum: _Number
    weight_decay: _Number
    d0: _Number
    growth_rate: _Number
    def __init__(self, learning_rate: Number = 1.0, momentum: Number = 0.0, weight_decay: Number = 0.0, d0: Number = 1e-06, growth_rate: Number = float("inf"), *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class DAdaptAdamW(RuleOptimizer):
    """AdamW with D-Adaptation (Defazio and Mishchenko 2023, arXiv:2301.07733, algorithm 5), as in optax."""
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    weight_decay: _Number
    d0: _Number
    growth_rate: _Number
    bias_correction: bool
    decoupled: bool
    def __init__(self, learning_rate: Number = 1.0, beta1: Number = 0.9, beta2: Number = 0.999, epsilon: Number = 1e-08, weight_decay: Number = 0.0, d0: Number = 1e-06, growth_rate: Number = float("inf"), bias_correction: bool = True, decoupled: bool = True, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class COCOB(RuleOptimizer):
    """COCOB, continuous coin betting (Orabona and Tommasi 2017, arXiv:1705.07795, algorithm 2), as in optax."""
    learning_rate: _Number
    alpha: _Number
    epsilon: _Number
    weight_decay: _Number
    def __init__(self, learning_rate: Number = 1.0, alpha: Number = 100.0, epsilon: Number = 1e-08, weight_decay: Number = 0.0, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class MoMo(RuleOptimizer):
    """MoMo, SGD with a model of momentum (Schaipp et al. 2023, arXiv:2305.07583, algorithm 1)."""
    learning_rate: _Number
    beta: _Number
    weight_decay: _Number
    lower_bound: _Number
    bias_correction: bool
    adapt_lower_bound: bool
    def __init__(self, learning_rate: Number = 1.0, beta: Number = 0.9, weight_decay: Number = 0.0, lower_bound: Number = 0.0, bias_correction: bool = False, adapt_lower_bound: bool = False, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class MoMoAdam(RuleOptimizer):
    """MoMo-Adam (Schaipp et al. 2023, arXiv:2305.07583, algorithm 2), as the authors' MomoAdam and optax."""
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    weight_decay: _Number
    lower_bound: _Number
    proximal: bool
    adapt_lower_bound: bool
    def __init__(self, learning_rate: Number = 0.01, beta1: Number = 0.9, beta2: Number = 0.999, epsilon: Number = 1e-08, weight_decay: Number = 0.0, lower_bound: Number = 0.0, proximal: bool = True, adapt_lower_bound: bool = False, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class ScheduleFreeSGD(RuleOptimizer):
    """Schedule-free SGD (Defazio et al. 2024, arXiv:2405.15682), as the authors' program."""
    learning_rate: _Number
    beta1: _Number
    weight_decay: _Number
    weight_power: _Number
    def __init__(self, learning_rate: Number = 1.0, beta1: Number = 0.9, weight_decay: Number = 0.0, weight_power: Number = 2.0, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class ScheduleFreeAdamW(RuleOptimizer):
    """Schedule-free AdamW (Defazio et al. 2024, arXiv:2405.15682), as the authors' program; see `schedule_free_sgd`."""
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    weight_decay: _Number
    weight_power: _Number
    decoupled: bool
    def __init__(self, learning_rate: Number = 0.0025, beta1: Number = 0.9, beta2: Number = 0.999, epsilon: Number = 1e-08, weight_decay: Number = 0.0, weight_power: Number = 2.0, decoupled: bool = False, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class Adafactor(RuleOptimizer):
    """Adafactor (Shazeer and Stern 2018, arXiv:1804.04235): factored second moments of matrices."""
    learning_rate: _Number
    beta2_decay: _Number
    epsilon1: _Optional
    epsilon2: _Number
    clipping: _Number
    weight_decay: _Number
    momentum: _Number
    min_factored: _Number
    factored: Literal['last', 'largest'] | None
    relative_step: bool
    scale_parameter: bool
    add_epsilon: bool
    def __init__(self, learning_rate: Number = 0.01, beta2_decay: Number = -0.8, epsilon1: Number | None = None, epsilon2: Number = 0.001, clipping: Number = 1.0, weight_decay: Number = 0.0, momentum: Number = 0.0, min_factored: Number = 0, factored: Literal['last', 'largest'] | None = 'last', relative_step: bool = True, scale_parameter: bool = True, add_epsilon: bool = False, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class SM3(RuleOptimizer):
    """SM3-II (Anil et al. 2019, arXiv:1901.11150), as in optax: Adagrad with a maximum for each row, column, ..."""
    learning_rate: _Number
    momentum: _Number
    beta2: _Number
    epsilon: _Number
    def __init__(self, learning_rate: Number = 0.1, momentum: Number = 0.9, beta2: Number = 1.0, epsilon: Number = 1e-08, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class Muon(RuleOptimizer):
    """Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon): orthogonalized momentum, for matrices only."""
    learning_rate: _Number
    momentum: _Number
    weight_decay: _Number
    epsilon: _Number
    iterations: _Number
    a: _Number
    b: _Number
    c: _Number
    coefficients: Literal['dion'] | None
    adjust: Literal['original', 'transposed', 'match_rms_adamw', 'spectral_unclamped'] | None
    nesterov: bool
    debias: bool
    def __init__(self, learning_rate: Number = 0.001, momentum: Number = 0.95, weight_decay: Number = 0.1, epsilon: Number = 1e-07, iterations: Number = 5, a: Number = 3.4445, b: Number = -4.775, c: Number = 2.0315, coefficients: Literal['dion'] | None = None, adjust: Literal['original', 'transposed', 'match_rms_adamw', 'spectral_unclamped'] | None = 'original', nesterov: bool = True, debias: bool = False, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class Shampoo(RuleOptimizer):
    """Shampoo (Gupta et al. 2018, arXiv:1802.09568): each axis of the gradient preconditioned by its own covariance."""
    learning_rate: _Number
    momentum: _Number
    beta2: _Number
    epsilon: _Number
    weight_decay: _Number
    interval: _Number
    max_size: _Number
    graft_epsilon: _Number
    grafting: Literal['sgd', 'adagrad'] | None
    def __init__(self, learning_rate: Number = 0.1, momentum: Number = 0.0, beta2: Number = 1.0, epsilon: Number = 0.0001, weight_decay: Number = 0.0, interval: Number = 1, max_size: Number = 1200, graft_epsilon: Number = 1e-10, grafting: Literal['sgd', 'adagrad'] | None = None, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class SOAP(RuleOptimizer):
    """SOAP (Vyas et al. 2024, arXiv:2409.11321): Adam in the basis of eigenvectors of Shampoo's statistics."""
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    weight_decay: _Number
    interval: _Number
    max_size: _Number
    vectors: bool
    def __init__(self, learning_rate: Number = 0.003, beta1: Number = 0.95, beta2: Number = 0.95, epsilon: Number = 1e-08, weight_decay: Number = 0.01, interval: Number = 10, max_size: Number = 10000, vectors: bool = False, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class GaLore(RuleOptimizer):
    """GaLore (Zhao et al. 2024, arXiv:2403.03507): Adam on gradients of matrices, projected to a low ``rank``."""
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    weight_decay: _Number
    rank: _Number
    interval: _Number
    update_scale: _Number
    projection: Literal['std', 'reverse_std', 'left', 'right', 'full']
    def __init__(self, learning_rate: Number = 0.001, beta1: Number = 0.9, beta2: Number = 0.999, epsilon: Number = 1e-06, weight_decay: Number = 0.0, rank: Number = 128, interval: Number = 200, update_scale: Number = 1.0, projection: Literal['std', 'reverse_std', 'left', 'right', 'full'] = 'std', *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...
