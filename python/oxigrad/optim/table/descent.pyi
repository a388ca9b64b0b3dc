# Printed by tools/stubs.py.
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

from oxigrad._typing import Dtype, Number
from oxigrad.optim.closures.lbfgs import ClosureOptimizer
from oxigrad.optim.rule_optimizer import RuleOptimizer
from oxigrad.optim.settings.hyperparameters import Hyperparameter
from oxigrad.optim.settings.loss_scale import LossScale
from oxigrad.schedules.base import Schedule

_Number: TypeAlias = Hyperparameter[float | Schedule, Number]
_Optional: TypeAlias = Hyperparameter[float | Schedule | None, Number | None]
_Groups: TypeAlias = Mapping[Any, Mapping[str, Any] | None]
_Library: TypeAlias = Literal["torch", "optax", "keras"] | None

class LBFGS(ClosureOptimizer):
    """L-BFGS (Liu and Nocedal 1989; Nocedal and Wright 2006, algorithms 7.4 and 7.5), as in torch.optim.LBFGS: for deterministic losses."""
    learning_rate: _Number
    max_iterations: _Number
    max_evaluations: _Optional
    tolerance_gradient: _Number
    tolerance_change: _Number
    history: _Number
    line_search: Literal['strong_wolfe'] | None
    def __init__(self, learning_rate: Number = 1.0, max_iterations: Number = 20, max_evaluations: Number | None = None, tolerance_gradient: Number = 1e-07, tolerance_change: Number = 1e-09, history: Number = 10, line_search: Literal['strong_wolfe'] | None = 'strong_wolfe', *, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class SGD(RuleOptimizer):
    """Stochastic gradient descent, with momentum if ``momentum`` is not 0, as in torch.optim.SGD."""
    learning_rate: _Number
    momentum: _Number
    nesterov: bool
    weight_decay: _Number
    dampening: _Number
    rate_before_momentum: bool
    def __init__(self, learning_rate: Number = 0.001, momentum: Number = 0.0, nesterov: bool = False, weight_decay: Number = 0.0, dampening: Number = 0.0, rate_before_momentum: bool = False, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class ASGD(RuleOptimizer):
    """ASGD, averaged gradient descent (Polyak and Juditsky 1992; Bottou 2010)."""
    learning_rate: _Number
    weight_decay: _Number
    t0: _Number
    lambd: _Number
    alpha: _Number
    lag: bool
    def __init__(self, learning_rate: Number = 0.01, weight_decay: Number = 0.0, t0: Number = 1, lambd: Number = 0.0, alpha: Number = 0.75, lag: bool = False, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class OptimisticSGD(RuleOptimizer):
    """Optimistic gradient descent (Mokhtari et al. 2019, arXiv:1901.08511): SGD with an extrapolated gradient."""
    learning_rate: _Number
    alpha: _Number
    beta: _Number
    def __init__(self, learning_rate: Number = 0.001, alpha: Number = 1.0, beta: Number = 1.0, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class PolyakSGD(RuleOptimizer):
    """SGD with Polyak's step size (Loizou et al. 2021, arXiv:2002.10542, SPS_max), as in optax.polyak_sgd."""
    learning_rate: _Number
    max_size: _Number
    lower_bound: _Number
    epsilon: _Number
    variant: Literal['sps', 'sps+']
    def __init__(self, learning_rate: Number = 1.0, max_size: Number = 1.0, lower_bound: Number = 0.0, epsilon: Number = 0.0, variant: Literal['sps', 'sps+'] = 'sps', *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class Rprop(RuleOptimizer):
    """Rprop, resilient backpropagation (Riedmiller and Braun 1993), as torch.optim.Rprop."""
    learning_rate: _Number
    eta_minus: _Number
    eta_plus: _Number
    min_size: _Number
    max_size: _Number
    late: bool
    def __init__(self, learning_rate: Number = 0.01, eta_minus: Number = 0.5, eta_plus: Number = 1.2, min_size: Number = 1e-06, max_size: Number = 50.0, late: bool = False, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class Signum(RuleOptimizer):
    """Signum, the sign of the mean gradient (Bernstein et al. 2018, arXiv:1802.04434), as in optax."""
    learning_rate: _Number
    beta: _Number
    def __init__(self, learning_rate: Number = 0.001, beta: Number = 0.9, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class Lion(RuleOptimizer):
    """Lion, the sign of an interpolated momentum (Chen et al. 2023, arXiv:2302.06675)."""
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    weight_decay: _Number
    def __init__(self, learning_rate: Number = 0.0001, beta1: Number = 0.9, beta2: Number = 0.99, weight_decay: Number = 0.0, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class LARS(RuleOptimizer):
    """LARS, layer-wise adaptive rates (You et al. 2017, arXiv:1708.03888): steps proportional to the parameter's norm."""
    learning_rate: _Number
    momentum: _Number
    weight_decay: _Number
    trust_coefficient: _Number
    epsilon: _Number
    nesterov: bool
    norms: Literal['sum', 'separate']
    def __init__(self, learning_rate: Number = 0.001, momentum: Number = 0.9, weight_decay: Number = 0.0, trust_coefficient: Number = 0.001, epsilon: Number = 0.0, nesterov: bool = False, norms: Literal['sum', 'separate'] = 'sum', *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class Fromage(RuleOptimizer):
    """Fromage (Bernstein et al. 2020, arXiv:2002.03432): steps relative to the parameter's norm, then rescaling."""
    learning_rate: _Number
    min_norm: _Number
    def __init__(self, learning_rate: Number = 0.01, min_norm: Number = 1e-06, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class Adagrad(RuleOptimizer):
    """Adagrad (Duchi, Hazan and Singer 2011), as torch.optim.Adagrad: ``rate_decay`` is its lr_decay."""
    learning_rate: _Number
    rate_decay: _Number
    initial_accumulator: _Number
    epsilon: _Number
    epsilon_mode: Literal['outside', 'inside']
    def __init__(self, learning_rate: Number = 0.01, rate_decay: Number = 0.0, initial_accumulator: Number = 0.0, epsilon: Number = 1e-10, epsilon_mode: Literal['outside', 'inside'] = 'outside', *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class Adadelta(RuleOptimizer):
    """Adadelta (Zeiler 2012, arXiv:1212.5701), as in torch, optax and Keras, whose defaults alone differ."""
    learning_rate: _Number
    rho: _Number
    epsilon: _Number
    def __init__(self, learning_rate: Number = 1.0, rho: Number = 0.9, epsilon: Number = 1e-06, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class RMSprop(RuleOptimizer):
    """RMSprop (Hinton 2012, lecture 6e; centered by Graves 2013, arXiv:1308.0850), as torch.optim.RMSprop."""
    learning_rate: _Number
    rho: _Number
    epsilon: _Number
    momentum: _Number
    initial_accumulator: _Number
    centered: bool
    nesterov: bool
    bias_correction: bool
    epsilon_mode: Literal['outside', 'inside']
    rate_before_momentum: bool
    def __init__(self, learning_rate: Number = 0.01, rho: Number = 0.99, epsilon: Number = 1e-08, momentum: Number = 0.0, initial_accumulator: Number = 0.0, centered: bool = False, nesterov: bool = False, bias_correction: bool = False, epsilon_mode: Literal['outside', 'inside'] = 'outside', rate_before_momentum: bool = False, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class FTRL(RuleOptimizer):
    """FTRL, follow the regularized leader by coordinate (McMahan et al. 2013), as keras.optimizers.Ftrl."""
    learning_rate: _Number
    power: _Number
    initial_accumulator: _Number
    l1: _Number
    l2: _Number
    shrinkage: _Number
    beta: _Number
    def __init__(self, learning_rate: Number = 0.001, power: Number = -0.5, initial_accumulator: Number = 0.1, l1: Number = 0.0, l2: Number = 0.0, shrinkage: Number = 0.0, beta: Number = 0.0, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...

class MADGRAD(RuleOptimizer):
    """MADGRAD (Defazio and Jelassi 2021, arXiv:2101.11075), dual averaging with cube roots."""
    learning_rate: _Number
    momentum: _Number
    epsilon: _Number
    def __init__(self, learning_rate: Number = 0.01, momentum: Number = 0.9, epsilon: Number = 1e-06, *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None, zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense', slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False, rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (), state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None, compat: _Library = None) -> None: ...
