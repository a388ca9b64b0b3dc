# Printed by tools/stubs.py.
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from oxigrad.torch.interchange import load_state_dict as load_state_dict
from oxigrad.torch.interchange import state_dict as state_dict
from oxigrad.torch.lbfgs import LBFGS as LBFGS
from oxigrad.torch.state.file import read_state as read_state
from oxigrad.torch.step.offload.host import HostMemory as HostMemory

class _Stepping:
    def no_step(self) -> AbstractContextManager[None]: ...
    def norm_pass(self) -> AbstractContextManager[None]: ...
    @property
    def ahead(self) -> list[str]: ...
    def synchronize(self) -> None: ...
    def flush(self) -> None: ...

class ADOPT(_Stepping, torch.optim.Optimizer):
    """ADOPT (Taniguchi et al. 2024, arXiv:2411.02853), as in optax: the gradient is divided by the root before it."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.9999), eps: float | Tensor = 1e-06, clipped: bool = True, *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class ASGD(_Stepping, torch.optim.ASGD):
    """`oxigrad.rules.asgd` with ``lag``, with the state of torch.optim.ASGD: the rate and weight of the next step."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.01, lambd: float | Tensor = 0.0001, alpha: float | Tensor = 0.75, t0: float | Tensor = 1000000.0, weight_decay: float | Tensor = 0, foreach: Any = None, maximize: bool = False, differentiable: bool = False, capturable: bool = False, *, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class AdEMAMix(_Stepping, torch.optim.Optimizer):
    """AdEMAMix (Pagliardini et al. 2024, arXiv:2409.03137), as in optax: Adam with a second, slower mean."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor, float | Tensor] = (0.9, 0.999, 0.9999), eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0.0, alpha: float | Tensor = 5.0, epsilon_root: Any = None, *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class AdaBelief(_Stepping, torch.optim.Optimizer):
    """AdaBelief (Zhuang et al. 2020, arXiv:2010.07468), as in optax: Adam by the gradient's variance."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999), eps: float | Tensor = 1e-16, epsilon_root: float | Tensor = 1e-16, *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class Adadelta(_Stepping, torch.optim.Adadelta):
    """Adadelta (Zeiler 2012, arXiv:1212.5701), as in torch, optax and Keras, whose defaults alone differ."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 1.0, rho: float | Tensor = 0.9, eps: float | Tensor = 1e-06, weight_decay: float | Tensor = 0, foreach: Any = None, *, capturable: bool = False, maximize: bool = False, differentiable: bool = False, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class Adafactor(_Stepping, torch.optim.Adafactor):
    """Adafactor (Shazeer and Stern 2018, arXiv:1804.04235): factored second moments of matrices."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.01, beta2_decay: float | Tensor = -0.8, eps: tuple[Any, float | Tensor] = (None, 0.001), d: float | Tensor = 1.0, weight_decay: float | Tensor = 0.0, *, foreach: Any = None, maximize: bool = False, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class Adagrad(_Stepping, torch.optim.Adagrad):
    """Adagrad (Duchi, Hazan and Singer 2011), as torch.optim.Adagrad: ``rate_decay`` is its lr_decay."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.01, lr_decay: float | Tensor = 0, weight_decay: float | Tensor = 0, initial_accumulator_value: float | Tensor = 0, eps: float | Tensor = 1e-10, foreach: Any = None, *, maximize: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class Adam(_Stepping, torch.optim.Adam):
    """Adam (Kingma and Ba 2015, arXiv:1412.6980), ``epsilon`` added after the bias correction, as torch and optax do."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999), eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0, amsgrad: bool = False, *, foreach: Any = None, maximize: bool = False, capturable: bool = False, differentiable: bool = False, fused: Any = None, decoupled_weight_decay: bool = False, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class AdamLRD(_Stepping, torch.optim.Optimizer):
    """AdamLRD, Adam with learning-rate dropout (Lin et al. 2019, arXiv:1912.00144)."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999), eps: float | Tensor = 1e-08, dropout_rate: float | Tensor = 0.0, amsgrad: Any = None, epsilon_mode: str = 'outside', *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class AdamW(_Stepping, torch.optim.AdamW):
    """AdamW, Adam with decoupled weight decay (Loshchilov and Hutter 2019, arXiv:1711.05101)."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999), eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0.01, amsgrad: bool = False, *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class Adamax(_Stepping, torch.optim.Adamax):
    """Adamax, Adam with the infinity norm (Kingma and Ba 2015, section 7.1), as torch and optax."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.002, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999), eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0, foreach: Any = None, *, maximize: bool = False, differentiable: bool = False, capturable: bool = False, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class Adan(_Stepping, torch.optim.Optimizer):
    """Adan (Xie et al. 2022, arXiv:2208.06677, algorithm 1): Nesterov's momentum from the differences of gradients."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor, float | Tensor] = (0.98, 0.92, 0.99), eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0.0, epsilon_root: float | Tensor = 0.0, proximal: bool = True, change_weight: str = 'beta2', *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class COCOB(_Stepping, torch.optim.Optimizer):
    """COCOB, continuous coin betting (Orabona and Tommasi 2017, arXiv:1705.07795, algorithm 2), as in optax."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 1.0, eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0.0, alpha: float | Tensor = 100.0, *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class DAdaptAdamW(_Stepping, torch.optim.Optimizer):
    """AdamW with D-Adaptation (Defazio and Mishchenko 2023, arXiv:2301.07733, algorithm 5), as in optax."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 1.0, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999), eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0.0, d0: float | Tensor = 1e-06, growth_rate: float | Tensor = float("inf"), bias_correction: bool = True, decoupled: bool = True, *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class DAdaptSGD(_Stepping, torch.optim.Optimizer):
    """SGD with D-Adaptation (Defazio and Mishchenko 2023, arXiv:2301.07733, algorithm 4), as the authors' DAdaptSGD."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 1.0, weight_decay: float | Tensor = 0.0, momentum: float | Tensor = 0.0, d0: float | Tensor = 1e-06, growth_rate: float | Tensor = float("inf"), *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class DoG(_Stepping, torch.optim.Optimizer):
    """DoG, distance over gradients (Ivgi et al. 2023, arXiv:2302.12022), as the authors' program and optax."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 1.0, eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0.0, initial: str = 'heuristic', initial_value: float | Tensor = 1e-06, *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class DoWG(_Stepping, torch.optim.Optimizer):
    """DoWG, distance over weighted gradients (Khaled et al. 2023, arXiv:2305.16284), as in optax."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 1.0, eps: float | Tensor = 0.0001, weight_decay: float | Tensor = 0.0, initial_distance: Any = None, *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class FTRL(_Stepping, torch.optim.Optimizer):
    """FTRL, follow the regularized leader by coordinate (McMahan et al. 2013), as keras.optimizers.Ftrl."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.001, power: float | Tensor = -0.5, initial_accumulator: float | Tensor = 0.1, l1: float | Tensor = 0.0, l2: float | Tensor = 0.0, shrinkage: float | Tensor = 0.0, beta: float | Tensor = 0.0, *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class Fromage(_Stepping, torch.optim.Optimizer):
    """Fromage (Bernstein et al. 2020, arXiv:2002.03432): steps relative to the parameter's norm, then rescaling."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.01, min_norm: float | Tensor = 1e-06, *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class GaLore(_Stepping, torch.optim.Optimizer):
    """GaLore (Zhao et al. 2024, arXiv:2403.03507): Adam on gradients of matrices, projected to a low ``rank``."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999), eps: float | Tensor = 1e-06, weight_decay: float | Tensor = 0.0, rank: float | Tensor = 128, update_proj_gap: float | Tensor = 200, scale: float | Tensor = 1.0, proj_type: str = 'std', *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class LAMB(_Stepping, torch.optim.Optimizer):
    """LAMB (You et al. 2020, arXiv:1904.00962), as in optax: Adam's step, in proportion to the norm of the parameter."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999), eps: float | Tensor = 1e-06, weight_decay: float | Tensor = 0.0, min_trust: float | Tensor = 0.01, max_trust: float | Tensor = 10.0, clamp: bool = False, decoupled: bool = False, epsilon_mode: str = 'outside', epsilon_root: Any = None, *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class LARS(_Stepping, torch.optim.Optimizer):
    """LARS, layer-wise adaptive rates (You et al. 2017, arXiv:1708.03888): steps proportional to the parameter's norm."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.001, eps: float | Tensor = 0.0, weight_decay: float | Tensor = 0.0, momentum: float | Tensor = 0.9, trust_coefficient: float | Tensor = 0.001, nesterov: bool = False, norms: str = 'sum', *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class Lion(_Stepping, torch.optim.Optimizer):
    """Lion, the sign of an interpolated momentum (Chen et al. 2023, arXiv:2302.06675)."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.0001, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.99), weight_decay: float | Tensor = 0.0, *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class MADGRAD(_Stepping, torch.optim.Optimizer):
    """MADGRAD (Defazio and Jelassi 2021, arXiv:2101.11075), dual averaging with cube roots."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.01, eps: float | Tensor = 1e-06, momentum: float | Tensor = 0.9, *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class MoMo(_Stepping, torch.optim.Optimizer):
    """MoMo, SGD with a model of momentum (Schaipp et al. 2023, arXiv:2305.07583, algorithm 1)."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 1.0, weight_decay: float | Tensor = 0.0, beta: float | Tensor = 0.9, lb: float | Tensor = 0.0, bias_correction: bool = False, use_fstar: bool = False, *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class MoMoAdam(_Stepping, torch.optim.Optimizer):
    """MoMo-Adam (Schaipp et al. 2023, arXiv:2305.07583, algorithm 2), as the authors' MomoAdam and optax."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.01, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999), eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0.0, lb: float | Tensor = 0.0, divide: bool = True, use_fstar: bool = False, *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class Muon(_Stepping, torch.optim.Muon):
    """Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon): orthogonalized momentum, for matrices only."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.001, weight_decay: float | Tensor = 0.1, momentum: float | Tensor = 0.95, nesterov: bool = True, ns_coefficients: tuple[float | Tensor, float | Tensor, float | Tensor] = (3.4445, -4.775, 2.0315), eps: float | Tensor = 1e-07, ns_steps: float | Tensor = 5, adjust_lr_fn: Any = None, *, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class NAdam(_Stepping, torch.optim.NAdam):
    """`oxigrad.rules.nadam` with the state of torch.optim.NAdam: the product is computed in float32."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.002, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999), eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0, momentum_decay: float | Tensor = 0.004, decoupled_weight_decay: bool = False, *, foreach: Any = None, maximize: bool = False, capturable: bool = False, differentiable: bool = False, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class NovoGrad(_Stepping, torch.optim.Optimizer):
    """NovoGrad (Ginsburg et al. 2019, arXiv:1905.11286), as in optax: the second moment is one number for each leaf."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.25), eps: float | Tensor = 1e-06, weight_decay: float | Tensor = 0.0, epsilon_root: Any = None, *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class OptimisticAdam(_Stepping, torch.optim.Optimizer):
    """Optimistic Adam (Daskalakis et al. 2018, arXiv:1711.00141): Adam with an extrapolated direction."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999), eps: float | Tensor = 1e-08, alpha: float | Tensor = 1.0, beta: float | Tensor = 1.0, nesterov: bool = True, epsilon_root: Any = None, *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class OptimisticSGD(_Stepping, torch.optim.Optimizer):
    """Optimistic gradient descent (Mokhtari et al. 2019, arXiv:1901.08511): SGD with an extrapolated gradient."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.001, alpha: float | Tensor = 1.0, beta: float | Tensor = 1.0, *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class PolyakSGD(_Stepping, torch.optim.Optimizer):
    """SGD with Polyak's step size (Loizou et al. 2021, arXiv:2002.10542, SPS_max), as in optax.polyak_sgd."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 1.0, eps: float | Tensor = 0.0, max_size: float | Tensor = 1.0, lower_bound: float | Tensor = 0.0, variant: str = 'sps', *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class Prodigy(_Stepping, torch.optim.Optimizer):
    """Prodigy (Mishchenko and Defazio 2023, arXiv:2306.06101), as in optax: Adam with an estimated learning rate."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 1.0, betas: tuple[float | Tensor, float | Tensor, float | Tensor] = (0.9, 0.999, 0.0), eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0.0, d0: float | Tensor = 1e-06, d_coefficient: float | Tensor = 1.0, safeguard_warmup: bool = False, bias_correction: bool = True, *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class RAdam(_Stepping, torch.optim.RAdam):
    """RAdam, Adam with a rectified variance (Liu et al. 2020, arXiv:1908.03265)."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999), eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0, decoupled_weight_decay: bool = False, *, foreach: Any = None, maximize: bool = False, capturable: bool = False, differentiable: bool = False, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class RMSprop(_Stepping, torch.optim.RMSprop):
    """RMSprop (Hinton 2012, lecture 6e; centered by Graves 2013, arXiv:1308.0850), as torch.optim.RMSprop."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.01, alpha: float | Tensor = 0.99, eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0, momentum: float | Tensor = 0, centered: bool = False, capturable: bool = False, foreach: Any = None, maximize: bool = False, differentiable: bool = False, *, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class Rprop(_Stepping, torch.optim.Rprop):
    """`oxigrad.rules.rprop` with the state of torch.optim.Rprop: the last gradient, zero where its sign changed, not the last update."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.01, etas: tuple[float | Tensor, float | Tensor] = (0.5, 1.2), step_sizes: tuple[float | Tensor, float | Tensor] = (1e-06, 50), *, capturable: bool = False, foreach: Any = None, maximize: bool = False, differentiable: bool = False, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class SGD(_Stepping, torch.optim.SGD):
    """Stochastic gradient descent, with momentum if ``momentum`` is not 0, as in torch.optim.SGD."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.001, momentum: float | Tensor = 0, dampening: float | Tensor = 0, weight_decay: float | Tensor = 0, nesterov: bool = False, *, maximize: bool = False, foreach: Any = None, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class SM3(_Stepping, torch.optim.Optimizer):
    """SM3-II (Anil et al. 2019, arXiv:1901.11150), as in optax: Adagrad with a maximum for each row, column, ..."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.1, eps: float | Tensor = 1e-08, momentum: float | Tensor = 0.9, beta2: float | Tensor = 1.0, *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class SOAP(_Stepping, torch.optim.Optimizer):
    """SOAP (Vyas et al. 2024, arXiv:2409.11321): Adam in the basis of eigenvectors of Shampoo's statistics."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.003, betas: tuple[float | Tensor, float | Tensor] = (0.95, 0.95), eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0.01, interval: float | Tensor = 10, max_size: float | Tensor = 10000, vectors: bool = False, *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class ScheduleFreeAdamW(_Stepping, torch.optim.Optimizer):
    """Schedule-free AdamW (Defazio et al. 2024, arXiv:2405.15682), as the authors' program; see `schedule_free_sgd`."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.0025, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999), eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0.0, weight_power: float | Tensor = 2.0, decoupled: bool = False, *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class ScheduleFreeSGD(_Stepping, torch.optim.Optimizer):
    """Schedule-free SGD (Defazio et al. 2024, arXiv:2405.15682), as the authors' program."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 1.0, weight_decay: float | Tensor = 0.0, momentum: float | Tensor = 0.9, weight_power: float | Tensor = 2.0, *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class Shampoo(_Stepping, torch.optim.Optimizer):
    """Shampoo (Gupta et al. 2018, arXiv:1802.09568): each axis of the gradient preconditioned by its own covariance."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.1, eps: float | Tensor = 0.0001, weight_decay: float | Tensor = 0.0, momentum: float | Tensor = 0.0, beta2: float | Tensor = 1.0, interval: float | Tensor = 1, max_size: float | Tensor = 1200, graft_epsilon: float | Tensor = 1e-10, grafting: Any = None, *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class Signum(_Stepping, torch.optim.Optimizer):
    """Signum, the sign of the mean gradient (Bernstein et al. 2018, arXiv:1802.04434), as in optax."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.001, beta: float | Tensor = 0.9, *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class Sophia(_Stepping, torch.optim.Optimizer):
    """Sophia (Liu et al. 2023, arXiv:2305.14342): the mean gradient, divided by the Hessian's diagonal and clipped."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = (0.965, 0.99), eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0.0, gamma: float | Tensor = 0.01, limit: float | Tensor = 1.0, every: float | Tensor = 10, batch_size: float | Tensor = 1.0, estimate: str = 'squared', *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class SparseAdam(_Stepping, torch.optim.SparseAdam):
    """Adam (Kingma and Ba 2015, arXiv:1412.6980), ``epsilon`` added after the bias correction, as torch and optax do."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999), eps: float | Tensor = 1e-08, maximize: bool = False, *, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...

class Yogi(_Stepping, torch.optim.Optimizer):
    """Yogi (Zaheer et al. 2018): Adam with an additive update of the second moment."""
    def __init__(self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]], lr: float | Tensor = 0.01, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999), eps: float | Tensor = 0.001, initial_accumulator: float | Tensor = 1e-06, initial_moment: float | Tensor = 0.0, *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None) -> None: ...
