# Printed by make generated.
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
    """Clips each element of the gradient to ``[-limit, limit]`` (torch's ``clip_grad_value_``, optax's ``clip``).

    Hyperparameters:
        limit: Largest absolute value of an element of the gradient. A number in [0, inf], or a
            schedule; default 1.0.
    """
    limit: _Number
    def __init__(self, limit: Number = 1.0, *, compat: _Library = None) -> None: ...

class ClipByNorm(Transform):
    """Scales the gradient of a leaf down to the norm ``max_norm`` if its norm is larger (Keras' clipnorm).

    Hyperparameters:
        max_norm: Largest norm of the gradient of one parameter. A number in [0, inf], or a schedule;
            default 1.0.
    """
    max_norm: _Number
    def __init__(self, max_norm: Number = 1.0, *, compat: _Library = None) -> None: ...

class ClipByGlobalNorm(Transform):
    """Scales all gradients down to the global norm ``max_global_norm`` (Pascanu et al. 2013).

    Hyperparameters:
        max_global_norm: Largest norm of all gradients together. A number in [0, inf], or a schedule;
            default 1.0.
    """
    max_global_norm: _Number
    def __init__(self, max_global_norm: Number = 1.0, *, compat: _Library = None) -> None: ...

class Maximize(Transform):
    """Negates the gradient, so that the optimizer maximizes the loss."""
    def __init__(self, *, compat: _Library = None) -> None: ...

class Regularize(Transform):
    """The gradient of the loss plus ``l1 * sum(abs(p)) + l2 / 2 * sum(p * p)``.

    Hyperparameters:
        l1: Strength of L1 regularization, which drives small parameters to zero. A number in [0, inf),
            or a schedule; default 0.0.
        l2: Strength of L2 regularization, which shrinks parameters in proportion to their size. A
            number in [0, inf), or a schedule; default 0.0.
    """
    l1: _Number
    l2: _Number
    def __init__(self, l1: Number = 0.0, l2: Number = 0.0, *, compat: _Library = None) -> None: ...

class GradientNoise(Transform):
    """Adds normal noise of variance ``eta / step**gamma`` to the gradient (Neelakantan et al. 2015,
    arXiv:1511.06807).

    Hyperparameters:
        eta: Variance of the noise in the first step. A number in [0, inf), or a schedule; default 0.01.
        gamma: Exponent by which the variance of the noise falls with the step. A number in [0, inf), or
            a schedule; default 0.55.
    """
    eta: _Number
    gamma: _Number
    def __init__(self, eta: Number = 0.01, gamma: Number = 0.55, *, compat: _Library = None) -> None: ...

class Centralize(Transform):
    """Gradient centralization (Yong et al. 2020, arXiv:2004.01461): the gradient minus its mean, for two axes and
    more.

    Hyperparameters:
        kept: Axis over which gradients keep their means apart: "first" or "last". 'first' or 'last';
            default 'first'.
    """
    kept: Literal['first', 'last']
    def __init__(self, kept: Literal['first', 'last'] = 'first', *, compat: _Library = None) -> None: ...

class AdaptiveGradientClip(Transform):
    """Adaptive gradient clipping (Brock et al. 2021, arXiv:2102.06171): limits gradient norms relative to weights.

    Hyperparameters:
        max_ratio: Largest ratio of a gradient's norm to its parameter's norm. A number in [0, inf], or
            a schedule; default 0.01.
        min_norm: Lower bound of the norm of a parameter in the ratio. A number in [0, inf), or a
            schedule; default 0.001.
        units: Axis of the units whose norms are compared: "last" as in optax, "first" as in torch.
            'last' or 'first'; default 'last'.
    """
    max_ratio: _Number
    min_norm: _Number
    units: Literal['last', 'first']
    def __init__(
        self, max_ratio: Number = 0.01, min_norm: Number = 0.001, units: Literal['last', 'first'] = 'last', *,
        compat: _Library = None,
    ) -> None: ...

class NormalizeRows(Transform):
    """Divides each row of a step by its root mean square, and keeps the step's norm (NorMuon, arXiv:2510.05491).

    Hyperparameters:
        decay: Decay of the moving mean of squares of each row. A number in [0, 1), or a schedule;
            default 0.95.
        epsilon: Small number added to the denominator, which keeps updates finite where gradients are
            near zero. A number in [0, inf), or a schedule; default 1e-08.
    """
    decay: _Number
    epsilon: _Number
    def __init__(self, decay: Number = 0.95, epsilon: Number = 1e-08, *, compat: _Library = None) -> None: ...

class ScaleByShape(Transform):
    """Scales the steps of matrices and filters by their shapes, so that learning rates transfer between widths
    (muP).

    Hyperparameters:
        factor: Factor: "inverse_inputs", base / inputs, for Adam; or "spectral", sqrt(outputs /
            inputs), for Muon. 'inverse_inputs' or 'spectral'; default 'inverse_inputs'.
        base: Number of inputs of the model whose learning rate is used. A number in (0, inf), or a
            schedule; default 1.0.
        outputs: Axis of the outputs of a layer: "first" as in torch, "last" as in JAX and Keras.
            'first' or 'last'; default 'first'.
    """
    factor: Literal['inverse_inputs', 'spectral']
    base: _Number
    outputs: Literal['first', 'last']
    def __init__(
        self, factor: Literal['inverse_inputs', 'spectral'] = 'inverse_inputs', base: Number = 1.0,
        outputs: Literal['first', 'last'] = 'first', *, compat: _Library = None,
    ) -> None: ...

class MARS(Transform):
    """MARS, the variance-reduced gradient (Yuan et al. 2024, arXiv:2411.10438).

    Hyperparameters:
        gamma: Strength of the variance reduction by the last gradient. A number in [0, inf), or a
            schedule; default 0.025.
        momentum: Momentum of the optimizer that follows, its ``beta1``. A number in [0, 1), or a
            schedule; default 0.95. Cost: one slot when not 0.
        max_norm: Largest norm of the corrected gradient of one parameter. A number in [0, inf], or a
            schedule; default 1.0.
    """
    gamma: _Number
    momentum: _Number
    max_norm: _Number
    def __init__(
        self, gamma: Number = 0.025, momentum: Number = 0.95, max_norm: Number = 1.0, *, compat: _Library = None,
    ) -> None: ...

class Cautious(Transform):
    """Zeroes the elements of a step whose sign differs from the gradient's (Liang et al. 2024, arXiv:2411.16085)."""
    def __init__(self, *, compat: _Library = None) -> None: ...

class LearningRateDropout(Transform):
    """Learning-rate dropout (Lin et al. 2019, arXiv:1912.00144): skips the update of a random subset of elements.

    Hyperparameters:
        dropout_rate: Probability that an element of a parameter is not updated in a step. A number in
            [0, 1], or a schedule; default 0.5.
    """
    dropout_rate: _Number
    def __init__(self, dropout_rate: Number = 0.5, *, compat: _Library = None) -> None: ...

class ScheduleFree(Transform):
    """Schedule-free learning (Defazio et al. 2024, arXiv:2405.15682), wrapped around the optimizer before it.

    Hyperparameters:
        interpolation: Share of the average in the point at which gradients are taken. A number in (0,
            1], or a schedule; default 0.9.
        weight_power: Exponent of the learning rate in the weight of a step in the average. A number in
            [0, inf), or a schedule; default 2.0.
    """
    interpolation: _Number
    weight_power: _Number
    def __init__(self, interpolation: Number = 0.9, weight_power: Number = 2.0, *, compat: _Library = None) -> None: ...

class WeightDecay(Transform):
    """Decoupled weight decay (Loshchilov and Hutter 2019); it reads the parameter before the update.

    Hyperparameters:
        weight_decay: Strength of the decay: a step subtracts learning_rate * weight_decay * parameter.
            A number in [0, inf), or a schedule; default 0.01.
        cautious: Whether only elements are decayed that the update moves towards zero. True or False;
            default False.
    """
    weight_decay: _Number
    cautious: bool
    def __init__(self, weight_decay: Number = 0.01, cautious: bool = False, *, compat: _Library = None) -> None: ...

class Orthogonalize(Transform):
    """Orthogonalizes the step of the optimizer before it: its singular values become about ``learning_rate``.

    Hyperparameters:
        matrices: Matrices of more than two axes: stacks in the "last" two, or "filters", the first axis
            by all others. 'last', 'filters' or None; default None.
        adjust: Factor of the update by the shape of the matrix; None multiplies by 1. 'original',
            'transposed', 'match_rms_adamw', 'spectral_unclamped' or None; default 'original'.
        iterations: Number of Newton-Schulz iterations, each of three matrix products. A whole number in
            [0, 100), or a schedule; default 5.
        a: Coefficient of x in the polynomial of an iteration. A number, or a schedule; default 3.4445.
        b: Coefficient of x ** 3 in the polynomial of an iteration. A number, or a schedule; default
            -4.775.
        c: Coefficient of x ** 5 in the polynomial of an iteration. A number, or a schedule; default
            2.0315.
        coefficients: Named coefficients that replace ``a``, ``b`` and ``c``: "dion" has a triple for
            each iteration. 'dion' or None; default None.
    """
    matrices: Literal['last', 'filters'] | None
    adjust: Literal['original', 'transposed', 'match_rms_adamw', 'spectral_unclamped'] | None
    iterations: _Number
    a: _Number
    b: _Number
    c: _Number
    coefficients: Literal['dion'] | None
    def __init__(
        self, matrices: Literal['last', 'filters'] | None = None,
        adjust: Literal['original', 'transposed', 'match_rms_adamw', 'spectral_unclamped'] | None = 'original',
        iterations: Number = 5, a: Number = 3.4445, b: Number = -4.775, c: Number = 2.0315,
        coefficients: Literal['dion'] | None = None, *, compat: _Library = None,
    ) -> None: ...

class Hyperball(Transform):
    """Hyperball optimization (Wen et al. 2025): parameters keep their norm, and updates a norm relative to it."""
    def __init__(self, *, compat: _Library = None) -> None: ...

class EMA(Transform):
    """The exponential moving average of the parameters: ``decay * average + (1 - decay) * new`` in each step.

    Hyperparameters:
        decay: Decay of the average, which spans about 1 / (1 - decay) steps. A number in [0, 1], or a
            schedule; default 0.999.
        average_from: Initial value of the average: parameters at the "start", after the "first_step",
            or "zeros". 'start', 'first_step' or 'zeros'; default 'start'.
    """
    decay: _Number
    average_from: Literal['start', 'first_step', 'zeros']
    def __init__(
        self, decay: Number = 0.999, average_from: Literal['start', 'first_step', 'zeros'] = 'start', *,
        compat: _Library = None,
    ) -> None: ...

class SWA(Transform):
    """SWA, the mean of the parameters over every ``every``-th step (Izmailov et al. 2018).

    Hyperparameters:
        start: Number of steps before the average begins. A whole number in [0, inf), or a schedule;
            default 0.
        every: Number of steps between two terms of the average. A whole number in [1, inf), or a
            schedule; default 1.
    """
    start: _Number
    every: _Number
    def __init__(self, start: Number = 0, every: Number = 1, *, compat: _Library = None) -> None: ...

class Lookahead(Transform):
    """Every ``sync_period`` steps, moves the slow parameters towards the fast ones, and sets the fast ones to them.

    Hyperparameters:
        sync_period: Number of steps between two moves of the slow parameters. A whole number in [1,
            inf), or a schedule; default 6.
        slow_step_size: Share of the way by which slow parameters move to the fast ones. A number in [0,
            1], or a schedule; default 0.5.
    """
    sync_period: _Number
    slow_step_size: _Number
    def __init__(self, sync_period: Number = 6, slow_step_size: Number = 0.5, *, compat: _Library = None) -> None: ...

class Copy(Transform):
    """A copy of the parameters in a lower precision, for a forward pass in mixed precision.

    Hyperparameters:
        copy_dtype: Dtype of the copy that `copied_parameters` returns. 'bfloat16', 'float16' or
            'float32'; default 'bfloat16'.
    """
    copy_dtype: Literal['bfloat16', 'float16', 'float32']
    def __init__(
        self, copy_dtype: Literal['bfloat16', 'float16', 'float32'] = 'bfloat16', *, compat: _Library = None,
    ) -> None: ...
