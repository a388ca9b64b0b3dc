# Printed by make generated.
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
    """L-BFGS, for deterministic losses, as in torch.optim.LBFGS.

    Hyperparameters:
        learning_rate: First trial length of the line search, or the length of a move without one. A
            number in [0, inf), or a schedule; default 1.0. See `oxigrad.schedules`.
        max_iterations: Largest number of iterations of one ``minimize``. A whole number in [1, inf), or
            a schedule; default 20.
        max_evaluations: Largest number of evaluations of the loss; None is 5/4 of ``max_iterations``.
            None or a whole number in [1, inf); default None.
        tolerance_gradient: Largest element of the gradient at which iterations end. A number in [0,
            inf), or a schedule; default 1e-07.
        tolerance_change: Change of the loss, or of the parameters, at which iterations end. A number in
            [0, inf), or a schedule; default 1e-09.
        history: Number of past steps that approximate the Hessian, each two slots. A whole number in
            [1, inf), or a schedule; default 10.
        line_search: Line search: "strong_wolfe", or None for moves of a fixed length. 'strong_wolfe' or
            None; default 'strong_wolfe'.
    """
    learning_rate: _Number
    max_iterations: _Number
    max_evaluations: _Optional
    tolerance_gradient: _Number
    tolerance_change: _Number
    history: _Number
    line_search: Literal['strong_wolfe'] | None
    def __init__(
        self, learning_rate: Number = 1.0, max_iterations: Number = 20, max_evaluations: Number | None = None,
        tolerance_gradient: Number = 1e-07, tolerance_change: Number = 1e-09, history: Number = 10,
        line_search: Literal['strong_wolfe'] | None = 'strong_wolfe', *,
        nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', groups: _Groups | None = None,
        dtype: Dtype = None, compat: _Library = None,
    ) -> None: ...

class SGD(RuleOptimizer):
    """Stochastic gradient descent, with momentum if ``momentum`` is not 0, as in torch.optim.SGD.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.001. See `oxigrad.schedules`.
        momentum: Decay of the accumulated gradient; 0 turns momentum off. A number in [0, inf), or a
            schedule; default 0.0. Cost: one slot when not 0.
        nesterov: Whether the update looks one momentum step ahead, as in Nesterov's method. True or
            False; default False.
        weight_decay: Strength of L2 regularization, which is added to the gradient; 0 turns it off. A
            number in [0, inf), or a schedule; default 0.0.
        dampening: Share of each gradient that is not added to the momentum. A number, or a schedule;
            default 0.0.
        rate_before_momentum: Whether the learning rate multiplies each gradient before momentum, as in
            Keras. True or False; default False.
    """
    learning_rate: _Number
    momentum: _Number
    nesterov: bool
    weight_decay: _Number
    dampening: _Number
    rate_before_momentum: bool
    def __init__(
        self, learning_rate: Number = 0.001, momentum: Number = 0.0, nesterov: bool = False, weight_decay: Number = 0.0,
        dampening: Number = 0.0, rate_before_momentum: bool = False, *, seed: int = 0, accumulate: int = 1,
        nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None,
        zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class ASGD(RuleOptimizer):
    """ASGD, averaged gradient descent (Polyak and Juditsky 1992; Bottou 2010).

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.01. See `oxigrad.schedules`.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        t0: First step from which the parameters are averaged. A number in [0, inf), or a schedule;
            default 1.
        lambd: Decay of the parameters and of the learning rate, as in torch.optim.ASGD. A number in [0,
            inf), or a schedule; default 0.0.
        alpha: Exponent of the decay of the learning rate; without effect while ``lambd`` is 0. A number
            in [0, inf), or a schedule; default 0.75.
        lag: Whether to average two steps later and use rates one step late, as torch does. True or
            False; default False.
    """
    learning_rate: _Number
    weight_decay: _Number
    t0: _Number
    lambd: _Number
    alpha: _Number
    lag: bool
    def __init__(
        self, learning_rate: Number = 0.01, weight_decay: Number = 0.0, t0: Number = 1, lambd: Number = 0.0,
        alpha: Number = 0.75, lag: bool = False, *, seed: int = 0, accumulate: int = 1,
        nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None,
        zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class OptimisticSGD(RuleOptimizer):
    """Optimistic gradient descent (Mokhtari et al. 2019, arXiv:1901.08511): SGD with an extrapolated gradient.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.001. See `oxigrad.schedules`.
        alpha: Weight of the current gradient in the step. A number in [0, inf), or a schedule; default
            1.0.
        beta: Weight of the change from the last gradient in the step. A number in [0, inf), or a
            schedule; default 1.0.
    """
    learning_rate: _Number
    alpha: _Number
    beta: _Number
    def __init__(
        self, learning_rate: Number = 0.001, alpha: Number = 1.0, beta: Number = 1.0, *, seed: int = 0,
        accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate',
        loss_scale: LossScale | None = None, zero_gradients: bool = False,
        sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class PolyakSGD(RuleOptimizer):
    """SGD with Polyak's step size (Loizou et al. 2021, arXiv:2002.10542, SPS_max), as in optax.polyak_sgd.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 1.0. See `oxigrad.schedules`.
        max_size: Upper bound of Polyak's step size. A number in [0, inf], or a schedule; default 1.0.
        lower_bound: Lower bound of the loss, from which the step size is computed. A number, or a
            schedule; default 0.0. Unit: as the loss.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 0.0.
        variant: Treatment of a loss below the bound: "sps" steps uphill, "sps+" takes no step. 'sps' or
            'sps+'; default 'sps'.
    """
    learning_rate: _Number
    max_size: _Number
    lower_bound: _Number
    epsilon: _Number
    variant: Literal['sps', 'sps+']
    def __init__(
        self, learning_rate: Number = 1.0, max_size: Number = 1.0, lower_bound: Number = 0.0, epsilon: Number = 0.0,
        variant: Literal['sps', 'sps+'] = 'sps', *, seed: int = 0, accumulate: int = 1,
        nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None,
        zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class Rprop(RuleOptimizer):
    """Rprop, resilient backpropagation (Riedmiller and Braun 1993), as torch.optim.Rprop.

    Hyperparameters:
        learning_rate: First step size of every element, clipped to ``[min_size, max_size]``. A number
            in [0, inf), or a schedule; default 0.01. See `oxigrad.schedules`.
        eta_minus: Factor of a step size where the gradient changes sign. A number in (0, 1), or a
            schedule; default 0.5.
        eta_plus: Factor of a step size where the gradient keeps its sign. A number in (1, inf), or a
            schedule; default 1.2.
        min_size: Smallest step size of an element. A number in [0, inf), or a schedule; default 1e-06.
        max_size: Largest step size of an element. A number in [0, inf], or a schedule; default 50.0.
        late: Whether each update is applied one step late, as in optax. True or False; default False.
    """
    learning_rate: _Number
    eta_minus: _Number
    eta_plus: _Number
    min_size: _Number
    max_size: _Number
    late: bool
    def __init__(
        self, learning_rate: Number = 0.01, eta_minus: Number = 0.5, eta_plus: Number = 1.2, min_size: Number = 1e-06,
        max_size: Number = 50.0, late: bool = False, *, seed: int = 0, accumulate: int = 1,
        nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None,
        zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class Signum(RuleOptimizer):
    """Signum, the sign of the mean gradient (Bernstein et al. 2018, arXiv:1802.04434), as in optax.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.001. See `oxigrad.schedules`.
        beta: Decay of the mean gradient whose sign is taken; 0 gives signSGD, which has no slot. A
            number in [0, 1], or a schedule; default 0.9.
    """
    learning_rate: _Number
    beta: _Number
    def __init__(
        self, learning_rate: Number = 0.001, beta: Number = 0.9, *, seed: int = 0, accumulate: int = 1,
        nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None,
        zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class Lion(RuleOptimizer):
    """Lion, the sign of an interpolated momentum (Chen et al. 2023, arXiv:2302.06675).

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.0001. See `oxigrad.schedules`.
        beta1: Weight of the momentum in the interpolation whose sign is the step. A number in [0, 1],
            or a schedule; default 0.9.
        beta2: Decay of the momentum, a moving mean of gradients. A number in [0, 1], or a schedule;
            default 0.99.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
    """
    learning_rate: _Number
    beta1: _Number
    beta2: _Number
    weight_decay: _Number
    def __init__(
        self, learning_rate: Number = 0.0001, beta1: Number = 0.9, beta2: Number = 0.99, weight_decay: Number = 0.0, *,
        seed: int = 0, accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate',
        loss_scale: LossScale | None = None, zero_gradients: bool = False,
        sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class LARS(RuleOptimizer):
    """LARS, layer-wise adaptive rates (You et al. 2017, arXiv:1708.03888): steps proportional to the parameter's
    norm.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.001. See `oxigrad.schedules`.
        momentum: Decay of the accumulated gradient; 0 turns momentum off. A number in [0, inf), or a
            schedule; default 0.9. Cost: one slot when not 0.
        weight_decay: Strength with which a step pulls parameters towards zero; 0 turns the decay off. A
            number in [0, inf), or a schedule; default 0.0.
        trust_coefficient: Length of a step as a share of the norm of the parameter. A number in [0,
            inf), or a schedule; default 0.001.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 0.0.
        nesterov: Whether the update looks one momentum step ahead, as in Nesterov's method. True or
            False; default False.
        norms: Denominator of the trust ratio: norm of the "sum" of gradient and decay, or sum of
            "separate" norms. 'sum' or 'separate'; default 'sum'.
    """
    learning_rate: _Number
    momentum: _Number
    weight_decay: _Number
    trust_coefficient: _Number
    epsilon: _Number
    nesterov: bool
    norms: Literal['sum', 'separate']
    def __init__(
        self, learning_rate: Number = 0.001, momentum: Number = 0.9, weight_decay: Number = 0.0,
        trust_coefficient: Number = 0.001, epsilon: Number = 0.0, nesterov: bool = False,
        norms: Literal['sum', 'separate'] = 'sum', *, seed: int = 0, accumulate: int = 1,
        nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None,
        zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class Fromage(RuleOptimizer):
    """Fromage (Bernstein et al. 2020, arXiv:2002.03432): steps relative to the parameter's norm, then rescaling.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.01. See `oxigrad.schedules`.
        min_norm: Lower bound of the norms of parameter and gradient. A number in [0, inf), or a
            schedule; default 1e-06.
    """
    learning_rate: _Number
    min_norm: _Number
    def __init__(
        self, learning_rate: Number = 0.01, min_norm: Number = 1e-06, *, seed: int = 0, accumulate: int = 1,
        nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None,
        zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class Adagrad(RuleOptimizer):
    """Adagrad (Duchi, Hazan and Singer 2011), as torch.optim.Adagrad: ``rate_decay`` is its lr_decay.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.01. See `oxigrad.schedules`.
        rate_decay: Rate at which the learning rate decays: by 1 / (1 + rate_decay * (step - 1)). A
            number in [0, inf), or a schedule; default 0.0.
        initial_accumulator: Initial value of the sum of squared gradients. A number in [0, inf), or a
            schedule; default 0.0.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-10.
        epsilon_mode: Place of ``epsilon``: "outside" of the root, "inside" the root, or "hat", before
            the bias correction of the root. 'outside' or 'inside'; default 'outside'.
    """
    learning_rate: _Number
    rate_decay: _Number
    initial_accumulator: _Number
    epsilon: _Number
    epsilon_mode: Literal['outside', 'inside']
    def __init__(
        self, learning_rate: Number = 0.01, rate_decay: Number = 0.0, initial_accumulator: Number = 0.0,
        epsilon: Number = 1e-10, epsilon_mode: Literal['outside', 'inside'] = 'outside', *, seed: int = 0,
        accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate',
        loss_scale: LossScale | None = None, zero_gradients: bool = False,
        sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class Adadelta(RuleOptimizer):
    """Adadelta (Zeiler 2012, arXiv:1212.5701), as in torch, optax and Keras; only the defaults differ.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 1.0. See `oxigrad.schedules`.
        rho: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - rho)
            steps. A number in [0, 1], or a schedule; default 0.9.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-06.
    """
    learning_rate: _Number
    rho: _Number
    epsilon: _Number
    def __init__(
        self, learning_rate: Number = 1.0, rho: Number = 0.9, epsilon: Number = 1e-06, *, seed: int = 0,
        accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate',
        loss_scale: LossScale | None = None, zero_gradients: bool = False,
        sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class RMSprop(RuleOptimizer):
    """RMSprop (Hinton 2012, lecture 6e; centered by Graves 2013, arXiv:1308.0850), as torch.optim.RMSprop.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.01. See `oxigrad.schedules`.
        rho: Decay of the moving mean of squared gradients, which averages over about 1 / (1 - rho)
            steps. A number in [0, 1], or a schedule; default 0.99.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-08.
        momentum: Decay of the accumulated gradient; 0 turns momentum off. A number in [0, inf), or a
            schedule; default 0.0. Cost: one slot when not 0.
        initial_accumulator: Initial value of the accumulator of squared gradients. A number in [0,
            inf), or a schedule; default 0.0.
        centered: Whether the mean gradient is subtracted from the second moment. True or False; default
            False.
        nesterov: Whether the update looks one momentum step ahead, as in Nesterov's method. True or
            False; default False.
        bias_correction: Whether moving means are corrected for their initial value of zero. True or
            False; default False.
        epsilon_mode: Place of ``epsilon``: "outside" of the root, "inside" the root, or "hat", before
            the bias correction of the root. 'outside' or 'inside'; default 'outside'.
        rate_before_momentum: Whether the learning rate multiplies each gradient before momentum, as in
            Keras. True or False; default False.
    """
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
    def __init__(
        self, learning_rate: Number = 0.01, rho: Number = 0.99, epsilon: Number = 1e-08, momentum: Number = 0.0,
        initial_accumulator: Number = 0.0, centered: bool = False, nesterov: bool = False,
        bias_correction: bool = False, epsilon_mode: Literal['outside', 'inside'] = 'outside',
        rate_before_momentum: bool = False, *, seed: int = 0, accumulate: int = 1,
        nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None,
        zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class FTRL(RuleOptimizer):
    """FTRL, follow the regularized leader by coordinate (McMahan et al. 2013), as keras.optimizers.Ftrl.

    Hyperparameters:
        learning_rate: Step size, which divides the curvature; a step at the rate 0 changes nothing. A
            number in (0, inf), or a schedule; default 0.001. See `oxigrad.schedules`.
        power: Exponent by which step sizes fall with the accumulated squared gradients. A number in
            (-inf, 0], or a schedule; default -0.5.
        initial_accumulator: Initial value of the accumulator of squared gradients. A number in [0,
            inf), or a schedule; default 0.1.
        l1: Strength of L1 regularization, which drives small parameters to zero. A number in [0, inf),
            or a schedule; default 0.0.
        l2: Strength of L2 regularization, which shrinks parameters in proportion to their size. A
            number in [0, inf), or a schedule; default 0.0.
        shrinkage: Strength of L2 regularization that enters by the gradient only. A number in [0, inf),
            or a schedule; default 0.0.
        beta: Constant added to the root of the accumulated squared gradients. A number in [0, inf), or
            a schedule; default 0.0.
    """
    learning_rate: _Number
    power: _Number
    initial_accumulator: _Number
    l1: _Number
    l2: _Number
    shrinkage: _Number
    beta: _Number
    def __init__(
        self, learning_rate: Number = 0.001, power: Number = -0.5, initial_accumulator: Number = 0.1, l1: Number = 0.0,
        l2: Number = 0.0, shrinkage: Number = 0.0, beta: Number = 0.0, *, seed: int = 0, accumulate: int = 1,
        nonfinite: Literal["propagate", "skip", "raise"] = 'propagate', loss_scale: LossScale | None = None,
        zero_gradients: bool = False, sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...

class MADGRAD(RuleOptimizer):
    """MADGRAD (Defazio and Jelassi 2021, arXiv:2101.11075), dual averaging with cube roots.

    Hyperparameters:
        learning_rate: Step size, by which every update is multiplied. A number in [0, inf), or a
            schedule; default 0.01. See `oxigrad.schedules`.
        momentum: Weight of the old parameter in the interpolation with the dual average. A number in
            [0, 1), or a schedule; default 0.9. Cost: one slot when not 0.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-06.
    """
    learning_rate: _Number
    momentum: _Number
    epsilon: _Number
    def __init__(
        self, learning_rate: Number = 0.01, momentum: Number = 0.9, epsilon: Number = 1e-06, *, seed: int = 0,
        accumulate: int = 1, nonfinite: Literal["propagate", "skip", "raise"] = 'propagate',
        loss_scale: LossScale | None = None, zero_gradients: bool = False,
        sparse: Literal["dense", "lazy", "catch_up"] = 'dense',
        slot_dtype: Literal["float32", "bfloat16", "float16", "8bit", "4bit"] | None = None, master: bool = False,
        rounding: Literal["nearest", "stochastic", "kahan"] = 'nearest', record_norms: str | Iterable[str] = (),
        state_device: Literal["host"] | None = None, groups: _Groups | None = None, dtype: Dtype = None,
        compat: _Library = None,
    ) -> None: ...
