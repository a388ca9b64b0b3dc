# Printed by make generated.
from typing import Annotated, Literal
from oxigrad.rules.core.ranges import Count, CountOrZero, Decay, Interval, Limit, NonNegative, Positive, Share
from typing import Any
from oxigrad._typing import Array

NAMES: dict[str, str]
def finite(xp: Any, p: Array, g: Array, *, total: Array, guard: Array) -> Array:
    """The gradient, unchanged; skips the step unless all are finite: ``g - g`` is NaN for infinities and NaN."""

def accumulate(xp: Any, p: Array, g: Array, mean: Array=..., *, micro: Array) -> tuple[Array, ...]:
    """The mean of ``micro`` gradients so far, updated by Welford's recurrence."""

def unscale(xp: Any, p: Array, g: Array, *, inverse_scale: Array) -> Array:
    """The gradient of the loss, from the gradient of the scaled loss."""

def clip_by_value(
    xp: Any, p: Array, g: Array, *,
    limit: Annotated[Limit, 'Largest absolute value of an element of the gradient.']=1.0,
) -> Array:
    """Clips each element of the gradient to ``[-limit, limit]`` (torch's ``clip_grad_value_``, optax's ``clip``)."""

def clip_by_norm(
    xp: Any, p: Array, g: Array, *, max_norm: Annotated[Limit, 'Largest norm of the gradient of one parameter.']=1.0,
) -> Array:
    """Scales the gradient of a leaf down to the norm ``max_norm`` if its norm is larger (Keras' clipnorm)."""

def clip_by_global_norm(
    xp: Any, p: Array, g: Array, *, total: Array,
    max_global_norm: Annotated[Limit, 'Largest norm of all gradients together.']=1.0,
) -> Array:
    """Scales all gradients down to the global norm ``max_global_norm`` (Pascanu et al. 2013)."""

def clip_by_known_norm(xp: Any, p: Array, g: Array, *, square: Array=0.0, max_norm: Limit=1.0) -> Array:
    """`clip_by_global_norm` with the known square of the norm of all gradients, ``square``."""

def maximize(xp: Any, p: Array, g: Array) -> Array:
    """Negates the gradient, so that the optimizer maximizes the loss."""

def regularize(xp: Any, p: Array, g: Array, *, l1: NonNegative=0.0, l2: NonNegative=0.0) -> Array:
    """The gradient of the loss plus ``l1 * sum(abs(p)) + l2 / 2 * sum(p * p)``."""

def gradient_noise(
    xp: Any, p: Array, g: Array, *, step: Array, noise: Array,
    eta: Annotated[NonNegative, 'Variance of the noise in the first step.']=0.01,
    gamma: Annotated[NonNegative, 'Exponent by which the variance of the noise falls with the step.']=0.55,
) -> Array:
    """Adds normal noise of variance ``eta / step**gamma`` to the gradient (Neelakantan et al. 2015,
    arXiv:1511.06807).
    """

def mars(
    xp: Any, p: Array, g: Array, before: Array, *,
    gamma: Annotated[NonNegative, 'Strength of the variance reduction by the last gradient.']=0.025,
    momentum: Annotated[Decay, 'Momentum of the optimizer that follows, its ``beta1``.']=0.95,
    max_norm: Annotated[Limit, 'Largest norm of the corrected gradient of one parameter.']=1.0,
) -> tuple[Array, ...]:
    """MARS, the variance-reduced gradient (Yuan et al. 2024, arXiv:2411.10438)."""

def cautious(xp: Any, p: Array, g: Array, *, gradient: Array) -> Array:
    """Zeroes the elements of a step whose sign differs from the gradient's (Liang et al. 2024, arXiv:2411.16085)."""

def learning_rate_dropout(xp: Any, p: Array, g: Array, *, noise: Array, dropout_rate: Share=0.5) -> Array:
    """Learning-rate dropout (Lin et al. 2019, arXiv:1912.00144): skips the update of a random subset of elements."""

def schedule_free(
    xp: Any, p: Array, new: Array, z: Array=..., weights: Array=..., largest: Array=..., *, learning_rate: Array,
    interpolation: Annotated[
        float, Interval('(0, 1]'), 'Share of the average in the point at which gradients are taken.',
    ]=0.9,
    weight_power: NonNegative=2.0,
) -> tuple[Array, ...]:
    """Schedule-free learning (Defazio et al. 2024, arXiv:2405.15682), wrapped around the optimizer before it."""

def schedule_free_average(xp: Any, y: Array, z: Array, *, interpolation: Array) -> Array:
    """The average of `schedule_free`, for the parameters ``y``."""

def weight_decay(
    xp: Any, p: Array, new: Array, *, learning_rate: Array,
    weight_decay: Annotated[
        NonNegative, 'Strength of the decay: a step subtracts learning_rate * weight_decay * parameter.',
    ]=0.01,
    cautious: Annotated[bool, 'Whether only elements are decayed that the update moves towards zero.']=False,
) -> Array:
    """Decoupled weight decay (Loshchilov and Hutter 2019); it reads the parameter before the update."""

def hyperball(xp: Any, p: Array, new: Array, radius: Array=..., *, learning_rate: Array) -> tuple[Array, ...]:
    """Hyperball optimization (Wen et al. 2025): parameters keep their norm, and updates a norm relative to it."""

def ema(
    xp: Any, p: Array, new: Array, average: Array=..., *, step: Array,
    decay: Annotated[Share, 'Decay of the average, which spans about 1 / (1 - decay) steps.']=0.999,
    average_from: Annotated[
        Literal['start', 'first_step', 'zeros'],
        'Initial value of the average: parameters at the "start", after the "first_step", or "zeros".',
    ]='start',
) -> tuple[Array, ...]:
    """The exponential moving average of the parameters: ``decay * average + (1 - decay) * new`` in each step."""

def swa(
    xp: Any, p: Array, new: Array, average: Array=..., *, step: Array,
    start: Annotated[CountOrZero, 'Number of steps before the average begins.']=0,
    every: Annotated[Count, 'Number of steps between two terms of the average.']=1,
) -> tuple[Array, ...]:
    """SWA, the mean of the parameters over every ``every``-th step (Izmailov et al. 2018)."""

def copy(
    xp: Any, p: Array, new: Array, copy: Array=..., *,
    copy_dtype: Annotated[
        Literal['bfloat16', 'float16', 'float32'], 'Dtype of the copy that `copied_parameters` returns.',
    ]='bfloat16',
) -> tuple[Array, ...]:
    """A copy of the parameters in a lower precision, for a forward pass in mixed precision."""

def lookahead(
    xp: Any, p: Array, new: Array, slow: Array=..., *, step: Array,
    sync_period: Annotated[Count, 'Number of steps between two moves of the slow parameters.']=6,
    slow_step_size: Annotated[Share, 'Share of the way by which slow parameters move to the fast ones.']=0.5,
) -> tuple[Array, ...]:
    """Every ``sync_period`` steps, moves the slow parameters towards the fast ones, and sets the fast ones to them."""

def adaptive_gradient_clip(
    xp: Any, p: Array, g: Array, *,
    max_ratio: Annotated[Limit, "Largest ratio of a gradient's norm to its parameter's norm."]=0.01,
    min_norm: Annotated[NonNegative, 'Lower bound of the norm of a parameter in the ratio.']=0.001,
    units: Annotated[
        Literal['last', 'first'],
        'Axis of the units whose norms are compared: "last" as in optax, "first" as in torch.',
    ]='last',
) -> Array:
    """Adaptive gradient clipping (Brock et al. 2021, arXiv:2102.06171): limits gradient norms relative to weights."""

def normalize_rows(
    xp: Any, p: Array, g: Array, v: Array=..., *,
    decay: Annotated[Decay, 'Decay of the moving mean of squares of each row.']=0.95, epsilon: NonNegative=1e-08,
) -> tuple[Array, ...]:
    """Divides each row of a step by its root mean square, and keeps the step's norm (NorMuon, arXiv:2510.05491)."""

def scale_by_shape(
    xp: Any, p: Array, g: Array, *,
    factor: Annotated[
        Literal['inverse_inputs', 'spectral'],
        'Factor: "inverse_inputs", base / inputs, for Adam; or "spectral", sqrt(outputs / inputs), for Muon.',
    ]='inverse_inputs',
    base: Annotated[Positive, 'Number of inputs of the model whose learning rate is used.']=1.0,
    outputs: Annotated[
        Literal['first', 'last'], 'Axis of the outputs of a layer: "first" as in torch, "last" as in JAX and Keras.',
    ]='first',
) -> Array:
    """Scales the steps of matrices and filters by their shapes, so that learning rates transfer between widths
    (muP).
    """

def centralize(
    xp: Any, p: Array, g: Array, *,
    kept: Annotated[
        Literal['first', 'last'], 'Axis over which gradients keep their means apart: "first" or "last".',
    ]='first',
) -> Array:
    """Gradient centralization (Yong et al. 2020, arXiv:2004.01461): the gradient minus its mean, for two axes and
    more.
    """
