# Printed by make generated.
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
    """Adam (Kingma and Ba 2015, arXiv:1412.6980), ``epsilon`` added after the bias correction, as torch and optax
    do.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.001. See `oxigrad.schedules`.
        beta1: Decay of the moving mean of gradients, which averages over about 1 / (1 - beta1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        beta2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - beta2)
            steps. A number in [0, 1), or a schedule; default 0.999.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-08.
        amsgrad: Whether to divide by the largest second moment so far: "raw" or True before the bias
            correction, "corrected" after it. None, True, False, 'raw' or 'corrected'; default None.
            Cost: one more slot.
        epsilon_mode: Place of ``epsilon``: "outside" of the root, "inside" the root, or "hat", before
            the bias correction of the root. 'outside', 'inside' or 'hat'; default 'outside'.
        epsilon_root: Small number added to the second moment inside the root; None adds nothing. None
            or a number in [0, inf); default None.
    """
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    amsgrad: Literal['raw', 'corrected'] | bool | None
    epsilon_mode: Literal['outside', 'inside', 'hat']
    epsilon_root: _Optional
    def __init__(
        self, learning_rate: Number = 0.001, beta1: Number = 0.9, beta2: Number = 0.999, epsilon: Number = 1e-08,
        amsgrad: Literal['raw', 'corrected'] | bool | None = None,
        epsilon_mode: Literal['outside', 'inside', 'hat'] = 'outside', epsilon_root: Number | None = None, *,
        seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate',
        loss_scale: LossScale | None = None, zero_gradients: bool = False,
        sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class AdamW(RuleOptimizer):
    """AdamW, Adam with decoupled weight decay (Loshchilov and Hutter 2019, arXiv:1711.05101).

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.001. See `oxigrad.schedules`.
        beta1: Decay of the moving mean of gradients, which averages over about 1 / (1 - beta1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        beta2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - beta2)
            steps. A number in [0, 1), or a schedule; default 0.999.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.01.
        amsgrad: Whether to divide by the largest second moment so far: "raw" or True before the bias
            correction, "corrected" after it. None, True, False, 'raw' or 'corrected'; default None.
            Cost: one more slot.
        epsilon_mode: Place of ``epsilon``: "outside" of the root, "inside" the root, or "hat", before
            the bias correction of the root. 'outside', 'inside' or 'hat'; default 'outside'.
        epsilon_root: Small number added to the second moment inside the root; None adds nothing. None
            or a number in [0, inf); default None.
    """
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    weight_decay: _Number
    amsgrad: Literal['raw', 'corrected'] | bool | None
    epsilon_mode: Literal['outside', 'inside', 'hat']
    epsilon_root: _Optional
    def __init__(
        self, learning_rate: Number = 0.001, beta1: Number = 0.9, beta2: Number = 0.999, epsilon: Number = 1e-08,
        weight_decay: Number = 0.01, amsgrad: Literal['raw', 'corrected'] | bool | None = None,
        epsilon_mode: Literal['outside', 'inside', 'hat'] = 'outside', epsilon_root: Number | None = None, *,
        seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate',
        loss_scale: LossScale | None = None, zero_gradients: bool = False,
        sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class AdamC(RuleOptimizer):
    """AdamC, AdamW with a corrected weight decay (Defazio 2025, arXiv:2506.02285), for layers before a
    normalization.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.001. See `oxigrad.schedules`.
        beta1: Decay of the moving mean of gradients, which averages over about 1 / (1 - beta1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        beta2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - beta2)
            steps. A number in [0, 1), or a schedule; default 0.999.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.01.
        max_learning_rate: Largest learning rate of the schedule; 0 takes the largest one so far. A
            number in [0, inf), or a schedule; default 0.0.
    """
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    weight_decay: _Number
    max_learning_rate: _Number
    def __init__(
        self, learning_rate: Number = 0.001, beta1: Number = 0.9, beta2: Number = 0.999, epsilon: Number = 1e-08,
        weight_decay: Number = 0.01, max_learning_rate: Number = 0.0, *, seed: int = 0, accumulate: int = 1,
        nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None,
        zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class StableAdamW(RuleOptimizer):
    """StableAdamW (Wortsman et al. 2023, arXiv:2304.13013, algorithm 2): AdamW with the update clipping of
    Adafactor.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.001. See `oxigrad.schedules`.
        beta1: Decay of the moving mean of gradients, which averages over about 1 / (1 - beta1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        beta2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - beta2)
            steps. A number in [0, 1), or a schedule; default 0.99.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-06.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.01.
    """
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    weight_decay: _Number
    def __init__(
        self, learning_rate: Number = 0.001, beta1: Number = 0.9, beta2: Number = 0.99, epsilon: Number = 1e-06,
        weight_decay: Number = 0.01, *, seed: int = 0, accumulate: int = 1,
        nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None,
        zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class AdamLRD(RuleOptimizer):
    """AdamLRD, Adam with learning-rate dropout (Lin et al. 2019, arXiv:1912.00144).

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.001. See `oxigrad.schedules`.
        beta1: Decay of the moving mean of gradients, which averages over about 1 / (1 - beta1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        beta2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - beta2)
            steps. A number in [0, 1), or a schedule; default 0.999.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-08.
        dropout_rate: Probability that an element of a parameter is not updated in a step. A number in
            [0, 1], or a schedule; default 0.0.
        amsgrad: Whether to divide by the largest second moment so far: "raw" or True before the bias
            correction, "corrected" after it. None, True, False, 'raw' or 'corrected'; default None.
            Cost: one more slot.
        epsilon_mode: Place of ``epsilon``: "outside" of the root, "inside" the root, or "hat", before
            the bias correction of the root. 'outside', 'inside' or 'hat'; default 'outside'.
    """
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    dropout_rate: _Number
    amsgrad: Literal['raw', 'corrected'] | bool | None
    epsilon_mode: Literal['outside', 'inside', 'hat']
    def __init__(
        self, learning_rate: Number = 0.001, beta1: Number = 0.9, beta2: Number = 0.999, epsilon: Number = 1e-08,
        dropout_rate: Number = 0.0, amsgrad: Literal['raw', 'corrected'] | bool | None = None,
        epsilon_mode: Literal['outside', 'inside', 'hat'] = 'outside', *, seed: int = 0, accumulate: int = 1,
        nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None,
        zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class Adamax(RuleOptimizer):
    """Adamax, Adam with the infinity norm (Kingma and Ba 2015, section 7.1), as torch and optax.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.002. See `oxigrad.schedules`.
        beta1: Decay of the moving mean of gradients, which averages over about 1 / (1 - beta1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        beta2: Decay of the maximum of absolute gradients. A number in [0, 1), or a schedule; default
            0.999.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-08.
        epsilon_mode: Place of ``epsilon``: "outside" of the root, "inside" the root, or "hat", before
            the bias correction of the root. 'inside' or 'outside'; default 'inside'.
    """
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    epsilon_mode: Literal['inside', 'outside']
    def __init__(
        self, learning_rate: Number = 0.002, beta1: Number = 0.9, beta2: Number = 0.999, epsilon: Number = 1e-08,
        epsilon_mode: Literal['inside', 'outside'] = 'inside', *, seed: int = 0, accumulate: int = 1,
        nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None,
        zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class NAdam(RuleOptimizer):
    """NAdam, Adam with Nesterov's momentum (Dozat 2016), as torch.optim.NAdam.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.002. See `oxigrad.schedules`.
        beta1: Decay of the moving mean of gradients, which averages over about 1 / (1 - beta1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        beta2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - beta2)
            steps. A number in [0, 1), or a schedule; default 0.999.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-08.
        momentum_decay: Rate at which the momentum warms up; 0 keeps half of ``beta1`` throughout. A
            number in [0, inf), or a schedule; default 0.004.
        constant_momentum: Whether the momentum is ``beta1`` from the first step on, as in optax. True
            or False; default False.
        epsilon_root: Small number added to the second moment inside the root; None adds nothing. None
            or a number in [0, inf); default None.
    """
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    momentum_decay: _Number
    constant_momentum: bool
    epsilon_root: _Optional
    def __init__(
        self, learning_rate: Number = 0.002, beta1: Number = 0.9, beta2: Number = 0.999, epsilon: Number = 1e-08,
        momentum_decay: Number = 0.004, constant_momentum: bool = False, epsilon_root: Number | None = None, *,
        seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate',
        loss_scale: LossScale | None = None, zero_gradients: bool = False,
        sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class RAdam(RuleOptimizer):
    """RAdam, Adam with a rectified variance (Liu et al. 2020, arXiv:1908.03265).

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.001. See `oxigrad.schedules`.
        beta1: Decay of the moving mean of gradients, which averages over about 1 / (1 - beta1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        beta2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - beta2)
            steps. A number in [0, 1), or a schedule; default 0.999.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-08.
        threshold: Length of the approximated average above which the variance is rectified. A number in
            [0, inf), or a schedule; default 5.0.
        epsilon_mode: Place of ``epsilon``: "outside" of the root, "inside" the root, or "hat", before
            the bias correction of the root. 'outside', 'inside' or 'hat'; default 'hat'.
        epsilon_root: Small number added to the second moment inside the root; None adds nothing. None
            or a number in [0, inf); default None.
    """
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    threshold: _Number
    epsilon_mode: Literal['outside', 'inside', 'hat']
    epsilon_root: _Optional
    def __init__(
        self, learning_rate: Number = 0.001, beta1: Number = 0.9, beta2: Number = 0.999, epsilon: Number = 1e-08,
        threshold: Number = 5.0, epsilon_mode: Literal['outside', 'inside', 'hat'] = 'hat',
        epsilon_root: Number | None = None, *, seed: int = 0, accumulate: int = 1,
        nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None,
        zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class OptimisticAdam(RuleOptimizer):
    """Optimistic Adam (Daskalakis et al. 2018, arXiv:1711.00141): Adam with an extrapolated direction.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.001. See `oxigrad.schedules`.
        beta1: Decay of the moving mean of gradients, which averages over about 1 / (1 - beta1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        beta2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - beta2)
            steps. A number in [0, 1), or a schedule; default 0.999.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-08.
        alpha: Weight of Adam's current direction in the step. A number in [0, inf), or a schedule;
            default 1.0.
        beta: Weight of the change from the last direction in the step. A number in [0, inf), or a
            schedule; default 1.0.
        nesterov: Whether the update looks one momentum step ahead, as in Nesterov's method. True or
            False; default True.
        epsilon_root: Small number added to the second moment inside the root; None adds nothing. None
            or a number in [0, inf); default None.
    """
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    alpha: _Number
    beta: _Number
    nesterov: bool
    epsilon_root: _Optional
    def __init__(
        self, learning_rate: Number = 0.001, beta1: Number = 0.9, beta2: Number = 0.999, epsilon: Number = 1e-08,
        alpha: Number = 1.0, beta: Number = 1.0, nesterov: bool = True, epsilon_root: Number | None = None, *,
        seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate',
        loss_scale: LossScale | None = None, zero_gradients: bool = False,
        sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class AdaBelief(RuleOptimizer):
    """AdaBelief (Zhuang et al. 2020, arXiv:2010.07468), as in optax: Adam by the gradient's variance.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.001. See `oxigrad.schedules`.
        beta1: Decay of the moving mean of gradients, which averages over about 1 / (1 - beta1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        beta2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - beta2)
            steps. A number in [0, 1), or a schedule; default 0.999.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-16.
        epsilon_root: Small number added to the second moment in each step, where it accumulates. A
            number in [0, inf), or a schedule; default 1e-16.
    """
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    epsilon_root: _Number
    def __init__(
        self, learning_rate: Number = 0.001, beta1: Number = 0.9, beta2: Number = 0.999, epsilon: Number = 1e-16,
        epsilon_root: Number = 1e-16, *, seed: int = 0, accumulate: int = 1,
        nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None,
        zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class AdEMAMix(RuleOptimizer):
    """AdEMAMix (Pagliardini et al. 2024, arXiv:2409.03137), as in optax: Adam with a second, slower mean.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.001. See `oxigrad.schedules`.
        beta1: Decay of the moving mean of gradients, which averages over about 1 / (1 - beta1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        beta2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - beta2)
            steps. A number in [0, 1), or a schedule; default 0.999.
        beta3: Decay of the slow moving mean of gradients, which averages over about 1 / (1 - beta3)
            steps. A number in [0, 1), or a schedule; default 0.9999.
        alpha: Weight of the slow moving mean beside the fast one. A number in [0, inf), or a schedule;
            default 5.0.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        epsilon_root: Small number added to the second moment inside the root; None adds nothing. None
            or a number in [0, inf); default None.
    """
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    beta3: _Number
    alpha: _Number
    epsilon: _Number
    weight_decay: _Number
    epsilon_root: _Optional
    def __init__(
        self, learning_rate: Number = 0.001, beta1: Number = 0.9, beta2: Number = 0.999, beta3: Number = 0.9999,
        alpha: Number = 5.0, epsilon: Number = 1e-08, weight_decay: Number = 0.0, epsilon_root: Number | None = None, *,
        seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate',
        loss_scale: LossScale | None = None, zero_gradients: bool = False,
        sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class SimplifiedAdEMAMix(RuleOptimizer):
    """Simplified AdEMAMix (Morwani et al. 2025, arXiv:2502.02431), as in optax: one momentum and the current
    gradient.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.001. See `oxigrad.schedules`.
        beta1: Decay of the sum of gradients, which grows to about 1 / (1 - beta1) gradients. A number
            in [0, 1), or a schedule; default 0.99.
        beta2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - beta2)
            steps. A number in [0, 1), or a schedule; default 0.95.
        alpha: Weight of the current gradient beside the sum of gradients. A number in [0, inf), or a
            schedule; default 0.0.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        epsilon_root: Small number added to the second moment inside the root; None adds nothing. None
            or a number in [0, inf); default None.
    """
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    alpha: _Number
    epsilon: _Number
    weight_decay: _Number
    epsilon_root: _Optional
    def __init__(
        self, learning_rate: Number = 0.001, beta1: Number = 0.99, beta2: Number = 0.95, alpha: Number = 0.0,
        epsilon: Number = 1e-08, weight_decay: Number = 0.0, epsilon_root: Number | None = None, *, seed: int = 0,
        accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate',
        loss_scale: LossScale | None = None, zero_gradients: bool = False,
        sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class LaProp(RuleOptimizer):
    """LaProp (Ziyin et al. 2020, arXiv:2002.04839, algorithm 1): momentum of gradients that are normalized first.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.0004. See `oxigrad.schedules`.
        beta1: Decay of the moving mean of normalized gradients. A number in [0, 1), or a schedule;
            default 0.9.
        beta2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - beta2)
            steps. A number in [0, 1), or a schedule; default 0.999.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-15.
    """
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    def __init__(
        self, learning_rate: Number = 0.0004, beta1: Number = 0.9, beta2: Number = 0.999, epsilon: Number = 1e-15, *,
        seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate',
        loss_scale: LossScale | None = None, zero_gradients: bool = False,
        sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class ADOPT(RuleOptimizer):
    """ADOPT (Taniguchi et al. 2024, arXiv:2411.02853), as in optax: gradients are divided by the previous root of v.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.001. See `oxigrad.schedules`.
        beta1: Decay of the moving mean of gradients, which averages over about 1 / (1 - beta1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        beta2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - beta2)
            steps. A number in [0, 1), or a schedule; default 0.9999.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-06.
        clipped: Whether the terms of the first moment are clipped to (step - 1) ** 0.25. True or False;
            default True.
    """
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    clipped: bool
    def __init__(
        self, learning_rate: Number = 0.001, beta1: Number = 0.9, beta2: Number = 0.9999, epsilon: Number = 1e-06,
        clipped: bool = True, *, seed: int = 0, accumulate: int = 1,
        nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None,
        zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class Adan(RuleOptimizer):
    """Adan (Xie et al. 2022, arXiv:2208.06677, algorithm 1): Nesterov's momentum from the differences of gradients.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.001. See `oxigrad.schedules`.
        beta1: Decay of the moving mean of gradients, which averages over about 1 / (1 - beta1) steps. A
            number in [0, 1), or a schedule; default 0.98.
        beta2: Decay of the moving mean of differences of gradients. A number in [0, 1), or a schedule;
            default 0.92.
        beta3: Decay of the moving mean of squared look-ahead gradients. A number in [0, 1), or a
            schedule; default 0.99.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-08.
        epsilon_root: Small number added to the second moment inside the root; None adds nothing. A
            number in [0, inf), or a schedule; default 0.0.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        proximal: Whether the decay divides the parameter after the step, as in the paper. True or
            False; default True.
        change_weight: Weight of gradient differences: beta2 as in the authors' program, or 1 - beta2 as
            in optax. 'beta2' or '1 - beta2'; default 'beta2'.
    """
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    beta3: _Number
    epsilon: _Number
    epsilon_root: _Number
    weight_decay: _Number
    proximal: bool
    change_weight: Literal['beta2', '1 - beta2']
    def __init__(
        self, learning_rate: Number = 0.001, beta1: Number = 0.98, beta2: Number = 0.92, beta3: Number = 0.99,
        epsilon: Number = 1e-08, epsilon_root: Number = 0.0, weight_decay: Number = 0.0, proximal: bool = True,
        change_weight: Literal['beta2', '1 - beta2'] = 'beta2', *, seed: int = 0, accumulate: int = 1,
        nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None,
        zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class Yogi(RuleOptimizer):
    """Yogi (Zaheer et al. 2018): Adam with an additive update of the second moment.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.01. See `oxigrad.schedules`.
        beta1: Decay of the moving mean of gradients, which averages over about 1 / (1 - beta1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        beta2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - beta2)
            steps. A number in [0, 1), or a schedule; default 0.999.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 0.001.
        initial_accumulator: Initial value of the second moment. A number in [0, inf), or a schedule;
            default 1e-06.
        initial_moment: Initial value of the first moment. A number, or a schedule; default 0.0.
    """
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    initial_accumulator: _Number
    initial_moment: _Number
    def __init__(
        self, learning_rate: Number = 0.01, beta1: Number = 0.9, beta2: Number = 0.999, epsilon: Number = 0.001,
        initial_accumulator: Number = 1e-06, initial_moment: Number = 0.0, *, seed: int = 0, accumulate: int = 1,
        nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None,
        zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class LAMB(RuleOptimizer):
    """LAMB (You et al. 2020, arXiv:1904.00962), as in optax: Adam's step, in proportion to the norm of the
    parameter.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.001. See `oxigrad.schedules`.
        beta1: Decay of the moving mean of gradients, which averages over about 1 / (1 - beta1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        beta2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - beta2)
            steps. A number in [0, 1), or a schedule; default 0.999.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-06.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        min_trust: Smallest trust ratio, where ``clamp`` is set. A number in [0, inf), or a schedule;
            default 0.01.
        max_trust: Largest trust ratio, where ``clamp`` is set. A number in [0, inf], or a schedule;
            default 10.0.
        clamp: Whether the trust ratio is clipped to ``[min_trust, max_trust]``, as in DeepSpeed. True
            or False; default False.
        decoupled: Whether the weight decay is applied to the parameter first, and not added to the
            update. True or False; default False.
        epsilon_mode: Place of ``epsilon``: "outside" of the root, "inside" the root, or "hat", before
            the bias correction of the root. 'outside', 'inside' or 'hat'; default 'outside'.
        epsilon_root: Small number added to the second moment inside the root; None adds nothing. None
            or a number in [0, inf); default None.
    """
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
    def __init__(
        self, learning_rate: Number = 0.001, beta1: Number = 0.9, beta2: Number = 0.999, epsilon: Number = 1e-06,
        weight_decay: Number = 0.0, min_trust: Number = 0.01, max_trust: Number = 10.0, clamp: bool = False,
        decoupled: bool = False, epsilon_mode: Literal['outside', 'inside', 'hat'] = 'outside',
        epsilon_root: Number | None = None, *, seed: int = 0, accumulate: int = 1,
        nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None,
        zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class NovoGrad(RuleOptimizer):
    """NovoGrad (Ginsburg et al. 2019, arXiv:1905.11286), as in optax: the second moment is one number for each leaf.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.001. See `oxigrad.schedules`.
        beta1: Decay of the moving mean of gradients, which averages over about 1 / (1 - beta1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        beta2: Decay of the squared gradient norm of each parameter. A number in [0, 1), or a schedule;
            default 0.25.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-06.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        epsilon_root: Small number added to the second moment inside the root; None adds nothing. None
            or a number in [0, inf); default None.
    """
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    weight_decay: _Number
    epsilon_root: _Optional
    def __init__(
        self, learning_rate: Number = 0.001, beta1: Number = 0.9, beta2: Number = 0.25, epsilon: Number = 1e-06,
        weight_decay: Number = 0.0, epsilon_root: Number | None = None, *, seed: int = 0, accumulate: int = 1,
        nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None,
        zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class Sophia(RuleOptimizer):
    """Sophia (Liu et al. 2023, arXiv:2305.14342): the mean gradient, divided by the Hessian's diagonal and clipped.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.001. See `oxigrad.schedules`.
        beta1: Decay of the moving mean of gradients, which averages over about 1 / (1 - beta1) steps. A
            number in [0, 1), or a schedule; default 0.965.
        beta2: Decay of the moving mean of the Hessian's diagonal. A number in [0, 1), or a schedule;
            default 0.99.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        gamma: Factor of the Hessian's diagonal in the denominator. A number in [0, inf), or a schedule;
            default 0.01.
        limit: Largest absolute value of an element of the step before the learning rate. A number in
            [0, inf], or a schedule; default 1.0.
        every: Number of steps between updates of the Hessian's diagonal. A whole number in [1, inf), or
            a schedule; default 10.
        batch_size: Batch size, by which the squared gradient estimates the Hessian's diagonal. A number
            in (0, inf), or a schedule; default 1.0.
        estimate: Source of the Hessian's diagonal: "squared" gradients, or "given" in the slot ``h``.
            'squared' or 'given'; default 'squared'.
    """
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
    def __init__(
        self, learning_rate: Number = 0.001, beta1: Number = 0.965, beta2: Number = 0.99, epsilon: Number = 1e-08,
        weight_decay: Number = 0.0, gamma: Number = 0.01, limit: Number = 1.0, every: Number = 10,
        batch_size: Number = 1.0, estimate: Literal['squared', 'given'] = 'squared', *, seed: int = 0,
        accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate',
        loss_scale: LossScale | None = None, zero_gradients: bool = False,
        sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class Prodigy(RuleOptimizer):
    """Prodigy (Mishchenko and Defazio 2023, arXiv:2306.06101), as in optax: Adam with an estimated learning rate.

    Hyperparameters:
        learning_rate: Factor of the estimated step size; leave it at 1, or set a schedule. A number in
            [0, inf), or a schedule; default 1.0. See `oxigrad.schedules`.
        beta1: Decay of the moving mean of gradients, which averages over about 1 / (1 - beta1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        beta2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - beta2)
            steps. A number in [0, 1), or a schedule; default 0.999.
        beta3: Decay of the sums that estimate the distance; 0 means the square root of ``beta2``. A
            number in [0, 1), or a schedule; default 0.0.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        d0: Initial estimate of the distance from the first parameters to the solution. A number in (0,
            inf), or a schedule; default 1e-06. Unit: as the parameters.
        d_coefficient: Factor of the estimate of the distance. A number in (0, inf), or a schedule;
            default 1.0.
        safeguard_warmup: Whether the estimate ignores the learning rate, so that a warm-up does not
            slow it. True or False; default False.
        bias_correction: Whether moving means are corrected for their initial value of zero. True or
            False; default True.
    """
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
    def __init__(
        self, learning_rate: Number = 1.0, beta1: Number = 0.9, beta2: Number = 0.999, beta3: Number = 0.0,
        epsilon: Number = 1e-08, weight_decay: Number = 0.0, d0: Number = 1e-06, d_coefficient: Number = 1.0,
        safeguard_warmup: bool = False, bias_correction: bool = True, *, seed: int = 0, accumulate: int = 1,
        nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None,
        zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class DoG(RuleOptimizer):
    """DoG, distance over gradients (Ivgi et al. 2023, arXiv:2302.12022), as the authors' program and optax.

    Hyperparameters:
        learning_rate: Factor of the estimated step size; leave it at 1. A number in [0, inf), or a
            schedule; default 1.0. See `oxigrad.schedules`.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        initial: Meaning of ``initial_value``: "heuristic" (relative to the parameters), "distance" or
            "learning_rate". 'heuristic', 'distance' or 'learning_rate'; default 'heuristic'.
        initial_value: First distance or step size; see ``initial``. A number in (0, inf), or a
            schedule; default 1e-06.
    """
    learning_rate: _Number
    epsilon: _Number
    weight_decay: _Number
    initial: Literal['heuristic', 'distance', 'learning_rate']
    initial_value: _Number
    def __init__(
        self, learning_rate: Number = 1.0, epsilon: Number = 1e-08, weight_decay: Number = 0.0,
        initial: Literal['heuristic', 'distance', 'learning_rate'] = 'heuristic', initial_value: Number = 1e-06, *,
        seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate',
        loss_scale: LossScale | None = None, zero_gradients: bool = False,
        sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class DoWG(RuleOptimizer):
    """DoWG, distance over weighted gradients (Khaled et al. 2023, arXiv:2305.16284), as in optax.

    Hyperparameters:
        learning_rate: Factor of the estimated step size; leave it at 1. A number in [0, inf), or a
            schedule; default 1.0. See `oxigrad.schedules`.
        initial_distance: First squared distance from the initial parameters; None takes ``epsilon``.
            None or a number in (0, inf); default None.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in (0, inf), or a schedule; default 0.0001.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
    """
    learning_rate: _Number
    initial_distance: _Optional
    epsilon: _Number
    weight_decay: _Number
    def __init__(
        self, learning_rate: Number = 1.0, initial_distance: Number | None = None, epsilon: Number = 0.0001,
        weight_decay: Number = 0.0, *, seed: int = 0, accumulate: int = 1,
        nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None,
        zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class DAdaptSGD(RuleOptimizer):
    """SGD with D-Adaptation (Defazio and Mishchenko 2023, arXiv:2301.07733, algorithm 4), as the authors' DAdaptSGD.

    Hyperparameters:
        learning_rate: Factor of the estimated step size; leave it at 1, or set a schedule. A number in
            [0, inf), or a schedule; default 1.0. See `oxigrad.schedules`.
        momentum: Weight of the old parameter in the interpolation with the dual average. A number in
            [0, 1), or a schedule; default 0.0. Cost: one slot when not 0.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        d0: Initial estimate of the distance from the first parameters to the solution. A number in (0,
            inf), or a schedule; default 1e-06. Unit: as the parameters.
        growth_rate: Largest factor by which the estimate of the distance may grow in one step. A number
            in [1, inf], or a schedule; default inf.
    """
    learning_rate: _Number
    momentum: _Number
    weight_decay: _Number
    d0: _Number
    growth_rate: _Number
    def __init__(
        self, learning_rate: Number = 1.0, momentum: Number = 0.0, weight_decay: Number = 0.0, d0: Number = 1e-06,
        growth_rate: Number = float("inf"), *, seed: int = 0, accumulate: int = 1,
        nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None,
        zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class DAdaptAdamW(RuleOptimizer):
    """AdamW with D-Adaptation (Defazio and Mishchenko 2023, arXiv:2301.07733, algorithm 5), as in optax.

    Hyperparameters:
        learning_rate: Factor of the estimated step size; leave it at 1, or set a schedule. A number in
            [0, inf), or a schedule; default 1.0. See `oxigrad.schedules`.
        beta1: Decay of the moving mean of gradients, which averages over about 1 / (1 - beta1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        beta2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - beta2)
            steps. A number in [0, 1), or a schedule; default 0.999.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in (0, inf), or a schedule; default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        d0: Initial estimate of the distance from the first parameters to the solution. A number in (0,
            inf), or a schedule; default 1e-06. Unit: as the parameters.
        growth_rate: Largest factor by which the estimate of the distance may grow in one step. A number
            in [1, inf], or a schedule; default inf.
        bias_correction: Whether moving means are corrected for their initial value of zero. True or
            False; default True.
        decoupled: Whether the weight decay is applied to the parameter first, and not added to the
            update. True or False; default True.
    """
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    weight_decay: _Number
    d0: _Number
    growth_rate: _Number
    bias_correction: bool
    decoupled: bool
    def __init__(
        self, learning_rate: Number = 1.0, beta1: Number = 0.9, beta2: Number = 0.999, epsilon: Number = 1e-08,
        weight_decay: Number = 0.0, d0: Number = 1e-06, growth_rate: Number = float("inf"),
        bias_correction: bool = True, decoupled: bool = True, *, seed: int = 0, accumulate: int = 1,
        nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None,
        zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class COCOB(RuleOptimizer):
    """COCOB, continuous coin betting (Orabona and Tommasi 2017, arXiv:1705.07795, algorithm 2), as in optax.

    Hyperparameters:
        learning_rate: Factor of the gradient; leave it at 1. A number in [0, inf), or a schedule;
            default 1.0. See `oxigrad.schedules`.
        alpha: Inverse of the largest fraction of the reward that the first bets may use. A number in
            [0, inf), or a schedule; default 100.0.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in (0, inf), or a schedule; default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
    """
    learning_rate: _Number
    alpha: _Number
    epsilon: _Number
    weight_decay: _Number
    def __init__(
        self, learning_rate: Number = 1.0, alpha: Number = 100.0, epsilon: Number = 1e-08, weight_decay: Number = 0.0,
        *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate',
        loss_scale: LossScale | None = None, zero_gradients: bool = False,
        sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class MoMo(RuleOptimizer):
    """MoMo, SGD with a model of momentum (Schaipp et al. 2023, arXiv:2305.07583, algorithm 1).

    Hyperparameters:
        learning_rate: Upper bound of the step size, which falls as the loss nears its lower bound. A
            number in [0, inf), or a schedule; default 1.0. See `oxigrad.schedules`.
        beta: Decay of the moving means of losses and gradients. A number in [0, 1), or a schedule;
            default 0.9.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        lower_bound: Lower bound of the loss, from which the step size is computed. A number, or a
            schedule; default 0.0. Unit: as the loss.
        bias_correction: Whether moving means are corrected for their initial value of zero. True or
            False; default False.
        adapt_lower_bound: Whether the lower bound of the loss is estimated during training. True or
            False; default False.
    """
    learning_rate: _Number
    beta: _Number
    weight_decay: _Number
    lower_bound: _Number
    bias_correction: bool
    adapt_lower_bound: bool
    def __init__(
        self, learning_rate: Number = 1.0, beta: Number = 0.9, weight_decay: Number = 0.0, lower_bound: Number = 0.0,
        bias_correction: bool = False, adapt_lower_bound: bool = False, *, seed: int = 0, accumulate: int = 1,
        nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None,
        zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class MoMoAdam(RuleOptimizer):
    """MoMo-Adam (Schaipp et al. 2023, arXiv:2305.07583, algorithm 2), as the authors' MomoAdam and optax.

    Hyperparameters:
        learning_rate: Upper bound of the step size, which falls as the loss nears its lower bound. A
            number in [0, inf), or a schedule; default 0.01. See `oxigrad.schedules`.
        beta1: Decay of the moving mean of gradients, which averages over about 1 / (1 - beta1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        beta2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - beta2)
            steps. A number in [0, 1), or a schedule; default 0.999.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in (0, inf), or a schedule; default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        lower_bound: Lower bound of the loss, from which the step size is computed. A number, or a
            schedule; default 0.0. Unit: as the loss.
        proximal: Whether the weight decay divides the new parameter, and not the old one. True or
            False; default True.
        adapt_lower_bound: Whether the lower bound of the loss is estimated during training. True or
            False; default False.
    """
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    weight_decay: _Number
    lower_bound: _Number
    proximal: bool
    adapt_lower_bound: bool
    def __init__(
        self, learning_rate: Number = 0.01, beta1: Number = 0.9, beta2: Number = 0.999, epsilon: Number = 1e-08,
        weight_decay: Number = 0.0, lower_bound: Number = 0.0, proximal: bool = True, adapt_lower_bound: bool = False,
        *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate',
        loss_scale: LossScale | None = None, zero_gradients: bool = False,
        sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class ScheduleFreeSGD(RuleOptimizer):
    """Schedule-free SGD (Defazio et al. 2024, arXiv:2405.15682), as the authors' program.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 1.0. See `oxigrad.schedules`.
        beta1: Share of the average in the point at which gradients are taken. A number in (0, 1], or a
            schedule; default 0.9.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        weight_power: Exponent of the learning rate in the weight of a step in the average. A number in
            [0, inf), or a schedule; default 2.0.
    """
    learning_rate: _Number
    beta1: _Number
    weight_decay: _Number
    weight_power: _Number
    def __init__(
        self, learning_rate: Number = 1.0, beta1: Number = 0.9, weight_decay: Number = 0.0, weight_power: Number = 2.0,
        *, seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate',
        loss_scale: LossScale | None = None, zero_gradients: bool = False,
        sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class ScheduleFreeAdamW(RuleOptimizer):
    """Schedule-free AdamW (Defazio et al. 2024, arXiv:2405.15682), as the authors' program; see `schedule_free_sgd`.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.0025. See `oxigrad.schedules`.
        beta1: Share of the average in the point at which gradients are taken. A number in (0, 1], or a
            schedule; default 0.9.
        beta2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - beta2)
            steps. A number in [0, 1), or a schedule; default 0.999.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        weight_power: Exponent of the learning rate in the weight of a step in the average. A number in
            [0, inf), or a schedule; default 2.0.
        decoupled: Whether the weight decay is applied to the parameter first, and not added to the
            update. True or False; default False.
    """
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    weight_decay: _Number
    weight_power: _Number
    decoupled: bool
    def __init__(
        self, learning_rate: Number = 0.0025, beta1: Number = 0.9, beta2: Number = 0.999, epsilon: Number = 1e-08,
        weight_decay: Number = 0.0, weight_power: Number = 2.0, decoupled: bool = False, *, seed: int = 0,
        accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate',
        loss_scale: LossScale | None = None, zero_gradients: bool = False,
        sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class Adafactor(RuleOptimizer):
    """Adafactor (Shazeer and Stern 2018, arXiv:1804.04235): factored second moments of matrices.

    Hyperparameters:
        learning_rate: Step size; with ``relative_step`` its upper bound is 1 / sqrt(step). A number in
            [0, inf), or a schedule; default 0.01. See `oxigrad.schedules`.
        beta2_decay: Exponent of the decay of second moments: at step t it is 1 - t ** beta2_decay. A
            number in (-inf, 0], or a schedule; default -0.8.
        epsilon1: Lower bound of root mean squares of gradients; None is the machine epsilon. None or a
            number in [0, inf); default None.
        epsilon2: Lower bound of the root mean square of a parameter, where ``scale_parameter`` is set.
            A number in [0, inf), or a schedule; default 0.001.
        clipping: Upper bound of the root mean square of an update. A number in (0, inf], or a schedule;
            default 1.0.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        momentum: Decay of the moving mean of updates; 0 turns momentum off. A number in [0, 1], or a
            schedule; default 0.0. Cost: one slot when not 0.
        min_factored: Smallest size of both axes for which second moments are factored. A whole number
            in [0, inf), or a schedule; default 0.
        factored: Axes whose second moments are factored: the "last" two, the "largest" two, or None.
            'last', 'largest' or None; default 'last'.
        relative_step: Whether the learning rate is at most 1 / sqrt(step). True or False; default True.
        scale_parameter: Whether the step is multiplied by the root mean square of the parameter. True
            or False; default True.
        add_epsilon: Whether ``epsilon1`` is added to squared gradients, as in optax and Keras. True or
            False; default False.
    """
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
    def __init__(
        self, learning_rate: Number = 0.01, beta2_decay: Number = -0.8, epsilon1: Number | None = None,
        epsilon2: Number = 0.001, clipping: Number = 1.0, weight_decay: Number = 0.0, momentum: Number = 0.0,
        min_factored: Number = 0, factored: Literal['last', 'largest'] | None = 'last', relative_step: bool = True,
        scale_parameter: bool = True, add_epsilon: bool = False, *, seed: int = 0, accumulate: int = 1,
        nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None,
        zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class SM3(RuleOptimizer):
    """SM3-II (Anil et al. 2019, arXiv:1901.11150), as in optax: Adagrad with a maximum for each row, column, ...

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.1. See `oxigrad.schedules`.
        momentum: Decay of the moving mean of scaled gradients. A number in [0, 1], or a schedule;
            default 0.9. Cost: one slot when not 0.
        beta2: Decay of the maxima of squared gradients; 1 sums them, as Adagrad does. A number in [0,
            1], or a schedule; default 1.0.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-08.
    """
    learning_rate: _Number
    momentum: _Number
    beta2: _Number
    epsilon: _Number
    def __init__(
        self, learning_rate: Number = 0.1, momentum: Number = 0.9, beta2: Number = 1.0, epsilon: Number = 1e-08, *,
        seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate',
        loss_scale: LossScale | None = None, zero_gradients: bool = False,
        sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class Muon(RuleOptimizer):
    """Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon): orthogonalized momentum, for matrices only.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.001. See `oxigrad.schedules`.
        momentum: Decay of the moving mean of gradients, which is then orthogonalized. A number in [0,
            1], or a schedule; default 0.95. Cost: one slot when not 0.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.1.
        epsilon: Lower bound of the norm by which the momentum is divided. A number in [0, inf), or a
            schedule; default 1e-07.
        iterations: Number of Newton-Schulz iterations, each of three matrix products. A whole number in
            [0, 100), or a schedule; default 5.
        a: Coefficient of x in the polynomial of an iteration. A number, or a schedule; default 3.4445.
        b: Coefficient of x ** 3 in the polynomial of an iteration. A number, or a schedule; default
            -4.775.
        c: Coefficient of x ** 5 in the polynomial of an iteration. A number, or a schedule; default
            2.0315.
        coefficients: Named coefficients that replace ``a``, ``b`` and ``c``: "dion" has a triple for
            each iteration. 'dion' or None; default None.
        adjust: Factor of the update by the shape of the matrix; None multiplies by 1. 'original',
            'transposed', 'match_rms_adamw', 'spectral_unclamped' or None; default 'original'.
        nesterov: Whether the update looks one momentum step ahead, as in Nesterov's method. True or
            False; default True.
        matrices: Matrices of more than two axes: stacks in the "last" two, or "filters", the first axis
            by all others. 'last', 'filters' or None; default None.
        debias: Whether moving means are corrected for their initial value of zero. True or False;
            default False.
    """
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
    matrices: Literal['last', 'filters'] | None
    debias: bool
    def __init__(
        self, learning_rate: Number = 0.001, momentum: Number = 0.95, weight_decay: Number = 0.1,
        epsilon: Number = 1e-07, iterations: Number = 5, a: Number = 3.4445, b: Number = -4.775, c: Number = 2.0315,
        coefficients: Literal['dion'] | None = None,
        adjust: Literal['original', 'transposed', 'match_rms_adamw', 'spectral_unclamped'] | None = 'original',
        nesterov: bool = True, matrices: Literal['last', 'filters'] | None = None, debias: bool = False, *,
        seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate',
        loss_scale: LossScale | None = None, zero_gradients: bool = False,
        sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class Shampoo(RuleOptimizer):
    """Shampoo (Gupta et al. 2018, arXiv:1802.09568): each axis of the gradient preconditioned by its own covariance.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.1. See `oxigrad.schedules`.
        momentum: Decay of the accumulated gradient; 0 turns momentum off. A number in [0, inf), or a
            schedule; default 0.0. Cost: one slot when not 0.
        beta2: Decay of the covariances of gradients; 1 sums them. A number in [0, 1], or a schedule;
            default 1.0.
        epsilon: Small number added to the covariances before their root is taken. A number in [0, inf),
            or a schedule; default 0.0001.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        interval: Number of steps between computations of the inverse roots, which dominate the time. A
            whole number in [1, inf), or a schedule; default 1.
        max_size: Longest axis with a full covariance; longer axes have a diagonal one. A whole number
            in [0, inf], or a schedule; default 1200.
        graft_epsilon: Small number added to the denominator of the grafted Adagrad step. A number in
            [0, inf), or a schedule; default 1e-10.
        grafting: Rule whose step length is taken: "sgd", "adagrad", or None for Shampoo's own. 'sgd',
            'adagrad' or None; default None.
    """
    learning_rate: _Number
    momentum: _Number
    beta2: _Number
    epsilon: _Number
    weight_decay: _Number
    interval: _Number
    max_size: _Number
    graft_epsilon: _Number
    grafting: Literal['sgd', 'adagrad'] | None
    def __init__(
        self, learning_rate: Number = 0.1, momentum: Number = 0.0, beta2: Number = 1.0, epsilon: Number = 0.0001,
        weight_decay: Number = 0.0, interval: Number = 1, max_size: Number = 1200, graft_epsilon: Number = 1e-10,
        grafting: Literal['sgd', 'adagrad'] | None = None, *, seed: int = 0, accumulate: int = 1,
        nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None,
        zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class SOAP(RuleOptimizer):
    """SOAP (Vyas et al. 2024, arXiv:2409.11321): Adam in the basis of eigenvectors of Shampoo's statistics.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.003. See `oxigrad.schedules`.
        beta1: Decay of the moving mean of gradients, which averages over about 1 / (1 - beta1) steps. A
            number in [0, 1), or a schedule; default 0.95.
        beta2: Decay of second moments and of the covariances of gradients. A number in [0, 1), or a
            schedule; default 0.95.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-08.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.01.
        interval: Number of steps between updates of the bases, each a QR decomposition. A whole number
            in [1, inf), or a schedule; default 10.
        max_size: Longest axis that is rotated; longer axes stay as they are. A whole number in [0,
            inf], or a schedule; default 10000.
        vectors: Whether parameters with one axis are rotated too. True or False; default False.
    """
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    weight_decay: _Number
    interval: _Number
    max_size: _Number
    vectors: bool
    def __init__(
        self, learning_rate: Number = 0.003, beta1: Number = 0.95, beta2: Number = 0.95, epsilon: Number = 1e-08,
        weight_decay: Number = 0.01, interval: Number = 10, max_size: Number = 10000, vectors: bool = False, *,
        seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate',
        loss_scale: LossScale | None = None, zero_gradients: bool = False,
        sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class GaLore(RuleOptimizer):
    """GaLore (Zhao et al. 2024, arXiv:2403.03507): Adam on gradients of matrices, projected to a low ``rank``.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.001. See `oxigrad.schedules`.
        beta1: Decay of the moving mean of gradients, which averages over about 1 / (1 - beta1) steps. A
            number in [0, 1), or a schedule; default 0.9.
        beta2: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - beta2)
            steps. A number in [0, 1), or a schedule; default 0.999.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-06.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        rank: Rank to which the gradients of matrices are projected; slots shrink with it. A whole
            number in [1, inf), or a schedule; default 128.
        interval: Number of steps between computations of the bases by singular value decomposition. A
            whole number in [1, inf), or a schedule; default 200.
        update_scale: Factor of the updates of projected matrices. A number in [0, inf), or a schedule;
            default 1.0.
        projection: Side that is projected: the shorter ("std") or longer ("reverse_std") axis, "left",
            "right" or "full". 'std', 'reverse_std', 'left', 'right' or 'full'; default 'std'.
    """
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    epsilon: _Number
    weight_decay: _Number
    rank: _Number
    interval: _Number
    update_scale: _Number
    projection: Literal['std', 'reverse_std', 'left', 'right', 'full']
    def __init__(
        self, learning_rate: Number = 0.001, beta1: Number = 0.9, beta2: Number = 0.999, epsilon: Number = 1e-06,
        weight_decay: Number = 0.0, rank: Number = 128, interval: Number = 200, update_scale: Number = 1.0,
        projection: Literal['std', 'reverse_std', 'left', 'right', 'full'] = 'std', *, seed: int = 0,
        accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate',
        loss_scale: LossScale | None = None, zero_gradients: bool = False,
        sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...
