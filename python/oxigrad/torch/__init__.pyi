# Printed by make generated.
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
    """ADOPT (Taniguchi et al. 2024, arXiv:2411.02853), as in optax: gradients are divided by the previous root of v.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.001.
        betas: Decays of the moving means of gradients and of squared gradients. Default (0.9, 0.9999).
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 1e-06.
        clipped: Whether the terms of the first moment are clipped to (step - 1) ** 0.25. True or False;
            default True.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.9999),
        eps: float | Tensor = 1e-06, clipped: bool = True, *, maximize: bool = False, foreach: Any = None,
        capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None,
        master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None,
        in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class ASGD(_Stepping, torch.optim.ASGD):
    """`oxigrad.rules.asgd` with ``lag``, with the state of torch.optim.ASGD: the rate and weight of the next step.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.01.
        lambd: Decay of the parameters and of the learning rate. A number in [0, inf); default 0.0001.
        alpha: Exponent of the decay of the learning rate. A number in [0, inf); default 0.75.
        t0: First step from which the parameters are averaged. A number; default 1000000.0.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf); default 0.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.01, lambd: float | Tensor = 0.0001, alpha: float | Tensor = 0.75,
        t0: float | Tensor = 1000000.0, weight_decay: float | Tensor = 0, foreach: Any = None, maximize: bool = False,
        differentiable: bool = False, capturable: bool = False, *, state_dtype: Any = None, master: bool = False,
        rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None,
        in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class AdEMAMix(_Stepping, torch.optim.Optimizer):
    """AdEMAMix (Pagliardini et al. 2024, arXiv:2409.03137), as in optax: Adam with a second, slower mean.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.001.
        betas: Decays of the moving means of gradients and of squared gradients. Default (0.9, 0.999,
            0.9999).
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf); default 0.0.
        alpha: Weight of the slow moving mean beside the fast one. A number in [0, inf); default 5.0.
        epsilon_root: Small number added to the second moment inside the root; None adds nothing. None
            or a number in [0, inf); default None.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor, float | Tensor] = (0.9, 0.999, 0.9999),
        eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0.0, alpha: float | Tensor = 5.0,
        epsilon_root: Any = None, *, maximize: bool = False, foreach: Any = None, capturable: bool = False,
        differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False,
        rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None,
        in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class AdaBelief(_Stepping, torch.optim.Optimizer):
    """AdaBelief (Zhuang et al. 2020, arXiv:2010.07468), as in optax: Adam by the gradient's variance.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.001.
        betas: Decays of the moving means of gradients and of squared gradients. Default (0.9, 0.999).
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 1e-16.
        epsilon_root: Small number added to the second moment in each step, where it accumulates. A
            number in [0, inf); default 1e-16.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float | Tensor = 1e-16, epsilon_root: float | Tensor = 1e-16, *, maximize: bool = False,
        foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None,
        state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0,
        amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class Adadelta(_Stepping, torch.optim.Adadelta):
    """Adadelta (Zeiler 2012, arXiv:1212.5701), as in torch, optax and Keras; only the defaults differ.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 1.0.
        rho: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - rho)
            steps. A number in [0, 1]; default 0.9.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 1e-06.
        weight_decay: Strength of the decay; coupled to the gradient unless the optimizer decouples it.
            Default 0.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 1.0, rho: float | Tensor = 0.9, eps: float | Tensor = 1e-06,
        weight_decay: float | Tensor = 0, foreach: Any = None, *, capturable: bool = False, maximize: bool = False,
        differentiable: bool = False, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest',
        seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False,
        state_device: Any = None,
    ) -> None: ...

class Adafactor(_Stepping, torch.optim.Adafactor):
    """Adafactor (Shazeer and Stern 2018, arXiv:1804.04235): factored second moments of matrices.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size; with ``relative_step`` its upper bound is 1 / sqrt(step). A number in [0, inf);
            default 0.01.
        beta2_decay: Exponent of the decay of second moments: at step t it is 1 - t ** beta2_decay. A
            number in (-inf, 0]; default -0.8.
        eps: Lower bound of root mean squares of gradients; None is the machine epsilon. Lower bound of
            the root mean square of a parameter, where ``scale_parameter`` is set. Default (None,
            0.001).
        d: Upper bound of the root mean square of an update. A number in (0, inf]; default 1.0.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf); default 0.0.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.01, beta2_decay: float | Tensor = -0.8, eps: tuple[Any, float | Tensor] = (None, 0.001),
        d: float | Tensor = 1.0, weight_decay: float | Tensor = 0.0, *, foreach: Any = None, maximize: bool = False,
        state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0,
        amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class Adagrad(_Stepping, torch.optim.Adagrad):
    """Adagrad (Duchi, Hazan and Singer 2011), as torch.optim.Adagrad: ``rate_decay`` is its lr_decay.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.01.
        lr_decay: Rate at which the learning rate decays: by 1 / (1 + lr_decay * (step - 1)). A number
            in [0, inf); default 0.
        weight_decay: Strength of the decay; coupled to the gradient unless the optimizer decouples it.
            Default 0.
        initial_accumulator_value: Initial value of the sum of squared gradients. A number in [0, inf);
            default 0.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 1e-10.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.01, lr_decay: float | Tensor = 0, weight_decay: float | Tensor = 0,
        initial_accumulator_value: float | Tensor = 0, eps: float | Tensor = 1e-10, foreach: Any = None, *,
        maximize: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None,
        master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None,
        in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class Adam(_Stepping, torch.optim.Adam):
    """Adam (Kingma and Ba 2015, arXiv:1412.6980), ``epsilon`` added after the bias correction, as torch and optax
    do.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.001.
        betas: Decays of the moving means of gradients and of squared gradients. Default (0.9, 0.999).
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 1e-08.
        weight_decay: Strength of the decay; coupled to the gradient unless the optimizer decouples it.
            Default 0.
        amsgrad: Whether to divide by the largest second moment so far: "raw" or True before the bias
            correction, "corrected" after it. None, True, False, 'raw' or 'corrected'; default False.
            Cost: one more slot.
        decoupled_weight_decay: Whether the weight decay is applied to the parameters, as in AdamW.
            Default False.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0, amsgrad: bool = False, *, foreach: Any = None,
        maximize: bool = False, capturable: bool = False, differentiable: bool = False, fused: Any = None,
        decoupled_weight_decay: bool = False, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest',
        seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False,
        state_device: Any = None,
    ) -> None: ...

class AdamC(_Stepping, torch.optim.Optimizer):
    """AdamC, AdamW with a corrected weight decay (Defazio 2025, arXiv:2506.02285), for layers before a
    normalization.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.001.
        betas: Decays of the moving means of gradients and of squared gradients. Default (0.9, 0.999).
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf); default 0.01.
        max_learning_rate: Largest learning rate of the schedule; 0 takes the largest one so far. A
            number in [0, inf); default 0.0.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0.01, max_learning_rate: float | Tensor = 0.0, *,
        maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False,
        fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0,
        amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class AdamLRD(_Stepping, torch.optim.Optimizer):
    """AdamLRD, Adam with learning-rate dropout (Lin et al. 2019, arXiv:1912.00144).

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.001.
        betas: Decays of the moving means of gradients and of squared gradients. Default (0.9, 0.999).
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 1e-08.
        dropout_rate: Probability that an element of a parameter is not updated in a step. A number in
            [0, 1]; default 0.0.
        amsgrad: Whether to divide by the largest second moment so far: "raw" or True before the bias
            correction, "corrected" after it. None, True, False, 'raw' or 'corrected'; default None.
            Cost: one more slot.
        epsilon_mode: Place of ``eps``: "outside" of the root, "inside" the root, or "hat", before the
            bias correction of the root. 'outside', 'inside' or 'hat'; default 'outside'.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float | Tensor = 1e-08, dropout_rate: float | Tensor = 0.0, amsgrad: Any = None,
        epsilon_mode: str = 'outside', *, maximize: bool = False, foreach: Any = None, capturable: bool = False,
        differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False,
        rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None,
        in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class AdamW(_Stepping, torch.optim.AdamW):
    """AdamW, Adam with decoupled weight decay (Loshchilov and Hutter 2019, arXiv:1711.05101).

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.001.
        betas: Decays of the moving means of gradients and of squared gradients. Default (0.9, 0.999).
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf); default 0.01.
        amsgrad: Whether to divide by the largest second moment so far: "raw" or True before the bias
            correction, "corrected" after it. None, True, False, 'raw' or 'corrected'; default False.
            Cost: one more slot.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0.01, amsgrad: bool = False, *,
        maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False,
        fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0,
        amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class Adamax(_Stepping, torch.optim.Adamax):
    """Adamax, Adam with the infinity norm (Kingma and Ba 2015, section 7.1), as torch and optax.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.002.
        betas: Decays of the moving means of gradients and of squared gradients. Default (0.9, 0.999).
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 1e-08.
        weight_decay: Strength of the decay; coupled to the gradient unless the optimizer decouples it.
            Default 0.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.002, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0, foreach: Any = None, *, maximize: bool = False,
        differentiable: bool = False, capturable: bool = False, state_dtype: Any = None, master: bool = False,
        rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None,
        in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class Adan(_Stepping, torch.optim.Optimizer):
    """Adan (Xie et al. 2022, arXiv:2208.06677, algorithm 1): Nesterov's momentum from the differences of gradients.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.001.
        betas: Decays of the moving means of gradients and of squared gradients. Default (0.98, 0.92,
            0.99).
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf); default 0.0.
        epsilon_root: Small number added to the second moment inside the root; None adds nothing. A
            number in [0, inf); default 0.0.
        proximal: Whether the decay divides the parameter after the step, as in the paper. True or
            False; default True.
        change_weight: Weight of gradient differences: beta2 as in the authors' program, or 1 - beta2 as
            in optax. 'beta2' or '1 - beta2'; default 'beta2'.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor, float | Tensor] = (0.98, 0.92, 0.99),
        eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0.0, epsilon_root: float | Tensor = 0.0,
        proximal: bool = True, change_weight: str = 'beta2', *, maximize: bool = False, foreach: Any = None,
        capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None,
        master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None,
        in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class COCOB(_Stepping, torch.optim.Optimizer):
    """COCOB, continuous coin betting (Orabona and Tommasi 2017, arXiv:1705.07795, algorithm 2), as in optax.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Factor of the gradient; leave it at 1. A number in [0, inf); default 1.0.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in (0, inf); default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf); default 0.0.
        alpha: Inverse of the largest fraction of the reward that the first bets may use. A number in
            [0, inf); default 100.0.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 1.0, eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0.0,
        alpha: float | Tensor = 100.0, *, maximize: bool = False, foreach: Any = None, capturable: bool = False,
        differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False,
        rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None,
        in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class DAdaptAdamW(_Stepping, torch.optim.Optimizer):
    """AdamW with D-Adaptation (Defazio and Mishchenko 2023, arXiv:2301.07733, algorithm 5), as in optax.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Factor of the estimated step size; leave it at 1, or set a schedule. A number in [0, inf);
            default 1.0.
        betas: Decays of the moving means of gradients and of squared gradients. Default (0.9, 0.999).
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in (0, inf); default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf); default 0.0.
        d0: Initial estimate of the distance from the first parameters to the solution. A number in (0,
            inf); default 1e-06. Unit: as the parameters.
        growth_rate: Largest factor by which the estimate of the distance may grow in one step. A number
            in [1, inf]; default inf.
        bias_correction: Whether moving means are corrected for their initial value of zero. True or
            False; default True.
        decoupled: Whether the weight decay is applied to the parameter first, and not added to the
            update. True or False; default True.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 1.0, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0.0, d0: float | Tensor = 1e-06,
        growth_rate: float | Tensor = float("inf"), bias_correction: bool = True, decoupled: bool = True, *,
        maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False,
        fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0,
        amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class DAdaptSGD(_Stepping, torch.optim.Optimizer):
    """SGD with D-Adaptation (Defazio and Mishchenko 2023, arXiv:2301.07733, algorithm 4), as the authors' DAdaptSGD.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Factor of the estimated step size; leave it at 1, or set a schedule. A number in [0, inf);
            default 1.0.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf); default 0.0.
        momentum: Weight of the old parameter in the interpolation with the dual average. A number in
            [0, 1); default 0.0. Cost: one slot when not 0.
        d0: Initial estimate of the distance from the first parameters to the solution. A number in (0,
            inf); default 1e-06. Unit: as the parameters.
        growth_rate: Largest factor by which the estimate of the distance may grow in one step. A number
            in [1, inf]; default inf.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 1.0, weight_decay: float | Tensor = 0.0, momentum: float | Tensor = 0.0,
        d0: float | Tensor = 1e-06, growth_rate: float | Tensor = float("inf"), *, maximize: bool = False,
        foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None,
        state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0,
        amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class DoG(_Stepping, torch.optim.Optimizer):
    """DoG, distance over gradients (Ivgi et al. 2023, arXiv:2302.12022), as the authors' program and optax.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Factor of the estimated step size; leave it at 1. A number in [0, inf); default 1.0.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf); default 0.0.
        initial: Meaning of ``initial_value``: "heuristic" (relative to the parameters), "distance" or
            "lr". 'heuristic', 'distance' or 'learning_rate'; default 'heuristic'.
        initial_value: First distance or step size; see ``initial``. A number in (0, inf); default
            1e-06.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 1.0, eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0.0,
        initial: str = 'heuristic', initial_value: float | Tensor = 1e-06, *, maximize: bool = False,
        foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None,
        state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0,
        amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class DoWG(_Stepping, torch.optim.Optimizer):
    """DoWG, distance over weighted gradients (Khaled et al. 2023, arXiv:2305.16284), as in optax.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Factor of the estimated step size; leave it at 1. A number in [0, inf); default 1.0.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in (0, inf); default 0.0001.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf); default 0.0.
        initial_distance: First squared distance from the initial parameters; None takes ``eps``. None
            or a number in (0, inf); default None.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 1.0, eps: float | Tensor = 0.0001, weight_decay: float | Tensor = 0.0,
        initial_distance: Any = None, *, maximize: bool = False, foreach: Any = None, capturable: bool = False,
        differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False,
        rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None,
        in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class FTRL(_Stepping, torch.optim.Optimizer):
    """FTRL, follow the regularized leader by coordinate (McMahan et al. 2013), as keras.optimizers.Ftrl.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, which divides the curvature; a step at the rate 0 changes nothing. A number in
            (0, inf); default 0.001.
        power: Exponent by which step sizes fall with the accumulated squared gradients. A number in
            (-inf, 0]; default -0.5.
        initial_accumulator: Initial value of the accumulator of squared gradients. A number in [0,
            inf); default 0.1.
        l1: Strength of L1 regularization, which drives small parameters to zero. A number in [0, inf);
            default 0.0.
        l2: Strength of L2 regularization, which shrinks parameters in proportion to their size. A
            number in [0, inf); default 0.0.
        shrinkage: Strength of L2 regularization that enters by the gradient only. A number in [0, inf);
            default 0.0.
        beta: Constant added to the root of the accumulated squared gradients. A number in [0, inf);
            default 0.0.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.001, power: float | Tensor = -0.5, initial_accumulator: float | Tensor = 0.1,
        l1: float | Tensor = 0.0, l2: float | Tensor = 0.0, shrinkage: float | Tensor = 0.0, beta: float | Tensor = 0.0,
        *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False,
        fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0,
        amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class Fromage(_Stepping, torch.optim.Optimizer):
    """Fromage (Bernstein et al. 2020, arXiv:2002.03432): steps relative to the parameter's norm, then rescaling.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.01.
        min_norm: Lower bound of the norms of parameter and gradient. A number in [0, inf); default
            1e-06.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.01, min_norm: float | Tensor = 1e-06, *, maximize: bool = False, foreach: Any = None,
        capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None,
        master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None,
        in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class GaLore(_Stepping, torch.optim.Optimizer):
    """GaLore (Zhao et al. 2024, arXiv:2403.03507): Adam on gradients of matrices, projected to a low ``rank``.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.001.
        betas: Decays of the moving means of gradients and of squared gradients. Default (0.9, 0.999).
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 1e-06.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf); default 0.0.
        rank: Rank to which the gradients of matrices are projected; slots shrink with it. A whole
            number in [1, inf); default 128.
        update_proj_gap: Number of steps between computations of the bases by singular value
            decomposition. A whole number in [1, inf); default 200.
        scale: Factor of the updates of projected matrices. A number in [0, inf); default 1.0.
        proj_type: Side that is projected: the shorter ("std") or longer ("reverse_std") axis, "left",
            "right" or "full". 'std', 'reverse_std', 'left', 'right' or 'full'; default 'std'.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float | Tensor = 1e-06, weight_decay: float | Tensor = 0.0, rank: float | Tensor = 128,
        update_proj_gap: float | Tensor = 200, scale: float | Tensor = 1.0, proj_type: str = 'std', *,
        maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False,
        fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0,
        amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class LAMB(_Stepping, torch.optim.Optimizer):
    """LAMB (You et al. 2020, arXiv:1904.00962), as in optax: Adam's step, in proportion to the norm of the
    parameter.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.001.
        betas: Decays of the moving means of gradients and of squared gradients. Default (0.9, 0.999).
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 1e-06.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf); default 0.0.
        min_trust: Smallest trust ratio, where ``clamp`` is set. A number in [0, inf); default 0.01.
        max_trust: Largest trust ratio, where ``clamp`` is set. A number in [0, inf]; default 10.0.
        clamp: Whether the trust ratio is clipped to ``[min_trust, max_trust]``, as in DeepSpeed. True
            or False; default False.
        decoupled: Whether the weight decay is applied to the parameter first, and not added to the
            update. True or False; default False.
        epsilon_mode: Place of ``eps``: "outside" of the root, "inside" the root, or "hat", before the
            bias correction of the root. 'outside', 'inside' or 'hat'; default 'outside'.
        epsilon_root: Small number added to the second moment inside the root; None adds nothing. None
            or a number in [0, inf); default None.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float | Tensor = 1e-06, weight_decay: float | Tensor = 0.0, min_trust: float | Tensor = 0.01,
        max_trust: float | Tensor = 10.0, clamp: bool = False, decoupled: bool = False, epsilon_mode: str = 'outside',
        epsilon_root: Any = None, *, maximize: bool = False, foreach: Any = None, capturable: bool = False,
        differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False,
        rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None,
        in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class LARS(_Stepping, torch.optim.Optimizer):
    """LARS, layer-wise adaptive rates (You et al. 2017, arXiv:1708.03888): steps proportional to the parameter's
    norm.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.001.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 0.0.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf); default 0.0.
        momentum: Decay of the accumulated gradient; 0 turns momentum off. A number in [0, inf); default
            0.9. Cost: one slot when not 0.
        trust_coefficient: Length of a step as a share of the norm of the parameter. A number in [0,
            inf); default 0.001.
        nesterov: Whether the update looks one momentum step ahead, as in Nesterov's method. True or
            False; default False.
        norms: Denominator of the trust ratio: norm of the "sum" of gradient and decay, or sum of
            "separate" norms. 'sum' or 'separate'; default 'sum'.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.001, eps: float | Tensor = 0.0, weight_decay: float | Tensor = 0.0,
        momentum: float | Tensor = 0.9, trust_coefficient: float | Tensor = 0.001, nesterov: bool = False,
        norms: str = 'sum', *, maximize: bool = False, foreach: Any = None, capturable: bool = False,
        differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False,
        rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None,
        in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class LaProp(_Stepping, torch.optim.Optimizer):
    """LaProp (Ziyin et al. 2020, arXiv:2002.04839, algorithm 1): momentum of gradients that are normalized first.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.0004.
        betas: Decays of the moving means of gradients and of squared gradients. Default (0.9, 0.999).
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 1e-15.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.0004, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float | Tensor = 1e-15, *, maximize: bool = False, foreach: Any = None, capturable: bool = False,
        differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False,
        rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None,
        in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class Lion(_Stepping, torch.optim.Optimizer):
    """Lion, the sign of an interpolated momentum (Chen et al. 2023, arXiv:2302.06675).

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.0001.
        betas: Decays of the moving means of gradients and of squared gradients. Default (0.9, 0.99).
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf); default 0.0.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.0001, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.99),
        weight_decay: float | Tensor = 0.0, *, maximize: bool = False, foreach: Any = None, capturable: bool = False,
        differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False,
        rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None,
        in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class MADGRAD(_Stepping, torch.optim.Optimizer):
    """MADGRAD (Defazio and Jelassi 2021, arXiv:2101.11075), dual averaging with cube roots.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.01.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 1e-06.
        momentum: Weight of the old parameter in the interpolation with the dual average. A number in
            [0, 1); default 0.9. Cost: one slot when not 0.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.01, eps: float | Tensor = 1e-06, momentum: float | Tensor = 0.9, *,
        maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False,
        fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0,
        amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class MoMo(_Stepping, torch.optim.Optimizer):
    """MoMo, SGD with a model of momentum (Schaipp et al. 2023, arXiv:2305.07583, algorithm 1).

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Upper bound of the step size, which falls as the loss nears its lower bound. A number in [0,
            inf); default 1.0.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf); default 0.0.
        beta: Decay of the moving means of losses and gradients. A number in [0, 1); default 0.9.
        lb: Lower bound of the loss, from which the step size is computed. A number; default 0.0. Unit:
            as the loss.
        bias_correction: Whether moving means are corrected for their initial value of zero. True or
            False; default False.
        use_fstar: Whether the lower bound of the loss is estimated during training. True or False;
            default False.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 1.0, weight_decay: float | Tensor = 0.0, beta: float | Tensor = 0.9,
        lb: float | Tensor = 0.0, bias_correction: bool = False, use_fstar: bool = False, *, maximize: bool = False,
        foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None,
        state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0,
        amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class MoMoAdam(_Stepping, torch.optim.Optimizer):
    """MoMo-Adam (Schaipp et al. 2023, arXiv:2305.07583, algorithm 2), as the authors' MomoAdam and optax.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Upper bound of the step size, which falls as the loss nears its lower bound. A number in [0,
            inf); default 0.01.
        betas: Decays of the moving means of gradients and of squared gradients. Default (0.9, 0.999).
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in (0, inf); default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf); default 0.0.
        lb: Lower bound of the loss, from which the step size is computed. A number; default 0.0. Unit:
            as the loss.
        divide: Whether the weight decay divides the new parameter, and not the old one. True or False;
            default True.
        use_fstar: Whether the lower bound of the loss is estimated during training. True or False;
            default False.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.01, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0.0, lb: float | Tensor = 0.0, divide: bool = True,
        use_fstar: bool = False, *, maximize: bool = False, foreach: Any = None, capturable: bool = False,
        differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False,
        rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None,
        in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class Muon(_Stepping, torch.optim.Muon):
    """Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon): orthogonalized momentum, for matrices only.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.001.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf); default 0.1.
        momentum: Decay of the moving mean of gradients, which is then orthogonalized. A number in [0,
            1]; default 0.95. Cost: one slot when not 0.
        nesterov: Whether the update looks one momentum step ahead, as in Nesterov's method. True or
            False; default True.
        ns_coefficients: Coefficient of x in the polynomial of an iteration. Coefficient of x ** 3 in
            the polynomial of an iteration. Coefficient of x ** 5 in the polynomial of an iteration.
            Default (3.4445, -4.775, 2.0315).
        eps: Lower bound of the norm by which the momentum is divided. A number in [0, inf); default
            1e-07.
        ns_steps: Number of Newton-Schulz ns_steps, each of three matrix products. A whole number in [0,
            100); default 5.
        adjust_lr_fn: Factor of the update by the shape of the matrix; None multiplies by 1. 'original',
            'transposed', 'match_rms_adamw', 'spectral_unclamped' or None; default None.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.001, weight_decay: float | Tensor = 0.1, momentum: float | Tensor = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float | Tensor, float | Tensor, float | Tensor] = (3.4445, -4.775, 2.0315),
        eps: float | Tensor = 1e-07, ns_steps: float | Tensor = 5, adjust_lr_fn: Any = None, *, state_dtype: Any = None,
        master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None,
        in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class NAdam(_Stepping, torch.optim.NAdam):
    """`oxigrad.rules.nadam` with the state of torch.optim.NAdam: the product is computed in float32.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.002.
        betas: Decays of the moving means of gradients and of squared gradients. Default (0.9, 0.999).
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 1e-08.
        weight_decay: Strength of the decay; coupled to the gradient unless the optimizer decouples it.
            Default 0.
        momentum_decay: Rate at which the momentum warms up. A number in [0, inf); default 0.004.
        decoupled_weight_decay: Whether the weight decay is applied to the parameters, as in AdamW.
            Default False.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.002, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0, momentum_decay: float | Tensor = 0.004,
        decoupled_weight_decay: bool = False, *, foreach: Any = None, maximize: bool = False, capturable: bool = False,
        differentiable: bool = False, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest',
        seed: int = 0, amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False,
        state_device: Any = None,
    ) -> None: ...

class NovoGrad(_Stepping, torch.optim.Optimizer):
    """NovoGrad (Ginsburg et al. 2019, arXiv:1905.11286), as in optax: the second moment is one number for each leaf.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.001.
        betas: Decays of the moving means of gradients and of squared gradients. Default (0.9, 0.25).
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 1e-06.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf); default 0.0.
        epsilon_root: Small number added to the second moment inside the root; None adds nothing. None
            or a number in [0, inf); default None.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.25),
        eps: float | Tensor = 1e-06, weight_decay: float | Tensor = 0.0, epsilon_root: Any = None, *,
        maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False,
        fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0,
        amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class OptimisticAdam(_Stepping, torch.optim.Optimizer):
    """Optimistic Adam (Daskalakis et al. 2018, arXiv:1711.00141): Adam with an extrapolated direction.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.001.
        betas: Decays of the moving means of gradients and of squared gradients. Default (0.9, 0.999).
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 1e-08.
        alpha: Weight of Adam's current direction in the step. A number in [0, inf); default 1.0.
        beta: Weight of the change from the last direction in the step. A number in [0, inf); default
            1.0.
        nesterov: Whether the update looks one momentum step ahead, as in Nesterov's method. True or
            False; default True.
        epsilon_root: Small number added to the second moment inside the root; None adds nothing. None
            or a number in [0, inf); default None.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float | Tensor = 1e-08, alpha: float | Tensor = 1.0, beta: float | Tensor = 1.0, nesterov: bool = True,
        epsilon_root: Any = None, *, maximize: bool = False, foreach: Any = None, capturable: bool = False,
        differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False,
        rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None,
        in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class OptimisticSGD(_Stepping, torch.optim.Optimizer):
    """Optimistic gradient descent (Mokhtari et al. 2019, arXiv:1901.08511): SGD with an extrapolated gradient.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.001.
        alpha: Weight of the current gradient in the step. A number in [0, inf); default 1.0.
        beta: Weight of the change from the last gradient in the step. A number in [0, inf); default
            1.0.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.001, alpha: float | Tensor = 1.0, beta: float | Tensor = 1.0, *, maximize: bool = False,
        foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None,
        state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0,
        amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class PolyakSGD(_Stepping, torch.optim.Optimizer):
    """SGD with Polyak's step size (Loizou et al. 2021, arXiv:2002.10542, SPS_max), as in optax.polyak_sgd.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 1.0.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 0.0.
        max_size: Upper bound of Polyak's step size. A number in [0, inf]; default 1.0.
        lower_bound: Lower bound of the loss, from which the step size is computed. A number; default
            0.0. Unit: as the loss.
        variant: Treatment of a loss below the bound: "sps" steps uphill, "sps+" takes no step. 'sps' or
            'sps+'; default 'sps'.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 1.0, eps: float | Tensor = 0.0, max_size: float | Tensor = 1.0,
        lower_bound: float | Tensor = 0.0, variant: str = 'sps', *, maximize: bool = False, foreach: Any = None,
        capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None,
        master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None,
        in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class Prodigy(_Stepping, torch.optim.Optimizer):
    """Prodigy (Mishchenko and Defazio 2023, arXiv:2306.06101), as in optax: Adam with an estimated learning rate.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Factor of the estimated step size; leave it at 1, or set a schedule. A number in [0, inf);
            default 1.0.
        betas: Decays of the moving means of gradients and of squared gradients. Default (0.9, 0.999,
            0.0).
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf); default 0.0.
        d0: Initial estimate of the distance from the first parameters to the solution. A number in (0,
            inf); default 1e-06. Unit: as the parameters.
        d_coefficient: Factor of the estimate of the distance. A number in (0, inf); default 1.0.
        safeguard_warmup: Whether the estimate ignores the learning rate, so that a warm-up does not
            slow it. True or False; default False.
        bias_correction: Whether moving means are corrected for their initial value of zero. True or
            False; default True.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 1.0, betas: tuple[float | Tensor, float | Tensor, float | Tensor] = (0.9, 0.999, 0.0),
        eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0.0, d0: float | Tensor = 1e-06,
        d_coefficient: float | Tensor = 1.0, safeguard_warmup: bool = False, bias_correction: bool = True, *,
        maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False,
        fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0,
        amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class RAdam(_Stepping, torch.optim.RAdam):
    """RAdam, Adam with a rectified variance (Liu et al. 2020, arXiv:1908.03265).

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.001.
        betas: Decays of the moving means of gradients and of squared gradients. Default (0.9, 0.999).
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 1e-08.
        weight_decay: Strength of the decay; coupled to the gradient unless the optimizer decouples it.
            Default 0.
        decoupled_weight_decay: Whether the weight decay is applied to the parameters, as in AdamW.
            Default False.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0, decoupled_weight_decay: bool = False, *,
        foreach: Any = None, maximize: bool = False, capturable: bool = False, differentiable: bool = False,
        state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0,
        amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class RMSprop(_Stepping, torch.optim.RMSprop):
    """RMSprop (Hinton 2012, lecture 6e; centered by Graves 2013, arXiv:1308.0850), as torch.optim.RMSprop.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.01.
        alpha: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - alpha)
            steps. A number in [0, 1]; default 0.99.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 1e-08.
        weight_decay: Strength of the decay; coupled to the gradient unless the optimizer decouples it.
            Default 0.
        momentum: Decay of the accumulated gradient; 0 turns momentum off. A number in [0, inf); default
            0. Cost: one slot when not 0.
        centered: Whether the mean gradient is subtracted from the second moment. True or False; default
            False.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.01, alpha: float | Tensor = 0.99, eps: float | Tensor = 1e-08,
        weight_decay: float | Tensor = 0, momentum: float | Tensor = 0, centered: bool = False,
        capturable: bool = False, foreach: Any = None, maximize: bool = False, differentiable: bool = False, *,
        state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0,
        amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class Rprop(_Stepping, torch.optim.Rprop):
    """`oxigrad.rules.rprop` with torch.optim.Rprop's state: the last gradient, zero where its sign changed.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: First step size of every element. A number in [0, inf); default 0.01.
        etas: Factor of a step size where the gradient changes sign. Factor of a step size where the
            gradient keeps its sign. Default (0.5, 1.2).
        step_sizes: Smallest step size of an element. Largest step size of an element. Default (1e-06,
            50).
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.01, etas: tuple[float | Tensor, float | Tensor] = (0.5, 1.2),
        step_sizes: tuple[float | Tensor, float | Tensor] = (1e-06, 50), *, capturable: bool = False,
        foreach: Any = None, maximize: bool = False, differentiable: bool = False, state_dtype: Any = None,
        master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None,
        in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class SGD(_Stepping, torch.optim.SGD):
    """Stochastic gradient descent, with momentum if ``momentum`` is not 0, as in torch.optim.SGD.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.001.
        momentum: Decay of the accumulated gradient; 0 turns momentum off. A number in [0, inf); default
            0. Cost: one slot when not 0.
        dampening: Share of each gradient that is not added to the momentum. A number; default 0.
        weight_decay: Strength of L2 regularization, which is added to the gradient; 0 turns it off. A
            number in [0, inf); default 0.
        nesterov: Whether the update looks one momentum step ahead, as in Nesterov's method. True or
            False; default False.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.001, momentum: float | Tensor = 0, dampening: float | Tensor = 0,
        weight_decay: float | Tensor = 0, nesterov: bool = False, *, maximize: bool = False, foreach: Any = None,
        differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False,
        rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None,
        in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class SM3(_Stepping, torch.optim.Optimizer):
    """SM3-II (Anil et al. 2019, arXiv:1901.11150), as in optax: Adagrad with a maximum for each row, column, ...

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.1.
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 1e-08.
        momentum: Decay of the moving mean of scaled gradients. A number in [0, 1]; default 0.9. Cost:
            one slot when not 0.
        beta2: Decay of the maxima of squared gradients; 1 sums them, as Adagrad does. A number in [0,
            1]; default 1.0.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.1, eps: float | Tensor = 1e-08, momentum: float | Tensor = 0.9,
        beta2: float | Tensor = 1.0, *, maximize: bool = False, foreach: Any = None, capturable: bool = False,
        differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False,
        rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None,
        in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class SOAP(_Stepping, torch.optim.Optimizer):
    """SOAP (Vyas et al. 2024, arXiv:2409.11321): Adam in the basis of eigenvectors of Shampoo's statistics.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.003.
        betas: Decays of the moving means of gradients and of squared gradients. Default (0.95, 0.95).
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf); default 0.01.
        interval: Number of steps between updates of the bases, each a QR decomposition. A whole number
            in [1, inf); default 10.
        max_size: Longest axis that is rotated; longer axes stay as they are. A whole number in [0,
            inf]; default 10000.
        vectors: Whether parameters with one axis are rotated too. True or False; default False.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.003, betas: tuple[float | Tensor, float | Tensor] = (0.95, 0.95),
        eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0.01, interval: float | Tensor = 10,
        max_size: float | Tensor = 10000, vectors: bool = False, *, maximize: bool = False, foreach: Any = None,
        capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None,
        master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None,
        in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class ScheduleFreeAdamW(_Stepping, torch.optim.Optimizer):
    """Schedule-free AdamW (Defazio et al. 2024, arXiv:2405.15682), as the authors' program; see `schedule_free_sgd`.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.0025.
        betas: Decays of the moving means of gradients and of squared gradients. Default (0.9, 0.999).
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf); default 0.0.
        weight_power: Exponent of the learning rate in the weight of a step in the average. A number in
            [0, inf); default 2.0.
        decoupled: Whether the weight decay is applied to the parameter first, and not added to the
            update. True or False; default False.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.0025, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0.0, weight_power: float | Tensor = 2.0,
        decoupled: bool = False, *, maximize: bool = False, foreach: Any = None, capturable: bool = False,
        differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False,
        rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None,
        in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class ScheduleFreeSGD(_Stepping, torch.optim.Optimizer):
    """Schedule-free SGD (Defazio et al. 2024, arXiv:2405.15682), as the authors' program.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 1.0.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf); default 0.0.
        momentum: Share of the average in the point at which gradients are taken. A number in (0, 1];
            default 0.9.
        weight_power: Exponent of the learning rate in the weight of a step in the average. A number in
            [0, inf); default 2.0.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 1.0, weight_decay: float | Tensor = 0.0, momentum: float | Tensor = 0.9,
        weight_power: float | Tensor = 2.0, *, maximize: bool = False, foreach: Any = None, capturable: bool = False,
        differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False,
        rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None,
        in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class Shampoo(_Stepping, torch.optim.Optimizer):
    """Shampoo (Gupta et al. 2018, arXiv:1802.09568): each axis of the gradient preconditioned by its own covariance.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.1.
        eps: Small number added to the covariances before their root is taken. A number in [0, inf);
            default 0.0001.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf); default 0.0.
        momentum: Decay of the accumulated gradient; 0 turns momentum off. A number in [0, inf); default
            0.0. Cost: one slot when not 0.
        beta2: Decay of the covariances of gradients; 1 sums them. A number in [0, 1]; default 1.0.
        interval: Number of steps between computations of the inverse roots, which dominate the time. A
            whole number in [1, inf); default 1.
        max_size: Longest axis with a full covariance; longer axes have a diagonal one. A whole number
            in [0, inf]; default 1200.
        graft_epsilon: Small number added to the denominator of the grafted Adagrad step. A number in
            [0, inf); default 1e-10.
        grafting: Rule whose step length is taken: "sgd", "adagrad", or None for Shampoo's own. 'sgd',
            'adagrad' or None; default None.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.1, eps: float | Tensor = 0.0001, weight_decay: float | Tensor = 0.0,
        momentum: float | Tensor = 0.0, beta2: float | Tensor = 1.0, interval: float | Tensor = 1,
        max_size: float | Tensor = 1200, graft_epsilon: float | Tensor = 1e-10, grafting: Any = None, *,
        maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False,
        fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0,
        amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class Signum(_Stepping, torch.optim.Optimizer):
    """Signum, the sign of the mean gradient (Bernstein et al. 2018, arXiv:1802.04434), as in optax.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.001.
        beta: Decay of the mean gradient whose sign is taken; 0 gives signSGD, which has no slot. A
            number in [0, 1]; default 0.9.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.001, beta: float | Tensor = 0.9, *, maximize: bool = False, foreach: Any = None,
        capturable: bool = False, differentiable: bool = False, fused: Any = None, state_dtype: Any = None,
        master: bool = False, rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None,
        in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class SimplifiedAdEMAMix(_Stepping, torch.optim.Optimizer):
    """Simplified AdEMAMix (Morwani et al. 2025, arXiv:2502.02431), as in optax: one momentum and the current
    gradient.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.001.
        betas: Decays of the moving means of gradients and of squared gradients. Default (0.99, 0.95).
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf); default 0.0.
        alpha: Weight of the current gradient beside the sum of gradients. A number in [0, inf); default
            0.0.
        epsilon_root: Small number added to the second moment inside the root; None adds nothing. None
            or a number in [0, inf); default None.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = (0.99, 0.95),
        eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0.0, alpha: float | Tensor = 0.0,
        epsilon_root: Any = None, *, maximize: bool = False, foreach: Any = None, capturable: bool = False,
        differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False,
        rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None,
        in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class Sophia(_Stepping, torch.optim.Optimizer):
    """Sophia (Liu et al. 2023, arXiv:2305.14342): the mean gradient, divided by the Hessian's diagonal and clipped.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.001.
        betas: Decays of the moving means of gradients and of squared gradients. Default (0.965, 0.99).
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf); default 0.0.
        gamma: Factor of the Hessian's diagonal in the denominator. A number in [0, inf); default 0.01.
        limit: Largest absolute value of an element of the step before the learning rate. A number in
            [0, inf]; default 1.0.
        every: Number of steps between updates of the Hessian's diagonal. A whole number in [1, inf);
            default 10.
        batch_size: Batch size, by which the squared gradient estimates the Hessian's diagonal. A number
            in (0, inf); default 1.0.
        estimate: Source of the Hessian's diagonal: "squared" gradients, or "given" in the slot ``h``.
            'squared' or 'given'; default 'squared'.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = (0.965, 0.99),
        eps: float | Tensor = 1e-08, weight_decay: float | Tensor = 0.0, gamma: float | Tensor = 0.01,
        limit: float | Tensor = 1.0, every: float | Tensor = 10, batch_size: float | Tensor = 1.0,
        estimate: str = 'squared', *, maximize: bool = False, foreach: Any = None, capturable: bool = False,
        differentiable: bool = False, fused: Any = None, state_dtype: Any = None, master: bool = False,
        rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None,
        in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class SparseAdam(_Stepping, torch.optim.SparseAdam):
    """Adam (Kingma and Ba 2015, arXiv:1412.6980), ``epsilon`` added after the bias correction, as torch and optax
    do.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.001.
        betas: Decays of the moving means of gradients and of squared gradients. Default (0.9, 0.999).
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 1e-08.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float | Tensor = 1e-08, maximize: bool = False, *, state_dtype: Any = None, master: bool = False,
        rounding: str = 'nearest', seed: int = 0, amp_fused: bool = False, max_norm: Any = None,
        in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class StableAdamW(_Stepping, torch.optim.Optimizer):
    """StableAdamW (Wortsman et al. 2023, arXiv:2304.13013, algorithm 2): AdamW with the update clipping of
    Adafactor.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.001.
        betas: Decays of the moving means of gradients and of squared gradients. Default (0.9, 0.99).
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 1e-06.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf); default 0.01.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.001, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.99),
        eps: float | Tensor = 1e-06, weight_decay: float | Tensor = 0.01, *, maximize: bool = False,
        foreach: Any = None, capturable: bool = False, differentiable: bool = False, fused: Any = None,
        state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0,
        amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None,
    ) -> None: ...

class Yogi(_Stepping, torch.optim.Optimizer):
    """Yogi (Zaheer et al. 2018): Adam with an additive update of the second moment.

    Hyperparameters:
        params: Parameters to update: an iterable of tensors, of (name, tensor) pairs, or of dicts that
            define groups.
        lr: Step size, by which every update is multiplied. A number in [0, inf); default 0.01.
        betas: Decays of the moving means of gradients and of squared gradients. Default (0.9, 0.999).
        eps: Small number added to the denominator, which keeps updates finite where gradients are near
            zero. A number in [0, inf); default 0.001.
        initial_accumulator: Initial value of the second moment. A number in [0, inf); default 1e-06.
        initial_moment: Initial value of the first moment. A number; default 0.0.
    """
    def __init__(
        self, params: Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]],
        lr: float | Tensor = 0.01, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float | Tensor = 0.001, initial_accumulator: float | Tensor = 1e-06, initial_moment: float | Tensor = 0.0,
        *, maximize: bool = False, foreach: Any = None, capturable: bool = False, differentiable: bool = False,
        fused: Any = None, state_dtype: Any = None, master: bool = False, rounding: str = 'nearest', seed: int = 0,
        amp_fused: bool = False, max_norm: Any = None, in_backward: bool = False, state_device: Any = None,
    ) -> None: ...
