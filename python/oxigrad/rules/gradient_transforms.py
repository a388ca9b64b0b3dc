"""Transforms of gradients and parameters for chains, written as rules over ``xp``.

A gradient transform takes ``g`` and returns the new gradient. A parameter transform takes ``new``, the parameter after
the update, and returns a new one.
"""

import math
from typing import Annotated, Literal

from oxigrad.rules.core.arrays import matrix_norm, norm, number_like, wide_product
from oxigrad.rules.core.ranges import Count, CountOrZero, Decay, Interval, Limit, NonNegative, Positive, Share
from oxigrad.rules.core.slots import Slot
from oxigrad.rules.schedule_free import moved_average
from oxigrad.rules.schedule_free import schedule_free_average as rules_average

# Names of slots, with a hyphen so that they cannot collide with the arguments of a user's rule, by argument.
NAMES = {"mean": "accumulated-mean", "copy": "parameter-copy", "slow": "lookahead-slow"}


def finite(xp, p, g, *, total, guard):
    """The gradient, unchanged; skips the step unless all are finite: ``g - g`` is NaN for infinities and NaN."""
    guard(total(g - g) == 0.0)
    return g


def accumulate(xp, p, g, mean=Slot.zeros(name=NAMES["mean"]), *, micro):
    """The mean of ``micro`` gradients so far, updated by Welford's recurrence."""
    mean = xp.where(micro == 1, g, mean + (g - mean) / micro)
    return mean, mean


def unscale(xp, p, g, *, inverse_scale):
    """The gradient of the loss, from the gradient of the scaled loss."""
    return g * inverse_scale


def clip_by_value(xp, p, g, *, limit: Annotated[Limit, "Largest absolute value of an element of the gradient."] = 1.0):
    """Clips each element of the gradient to ``[-limit, limit]`` (torch's ``clip_grad_value_``, optax's ``clip``)."""
    return xp.clip(g, -limit, limit)


def _reduced(xp, g, square, limit):
    """The array, scaled down to the norm ``limit`` if the norm with this ``square`` is larger.

    The result is NaN for NaN, and no derivative divides by zero.
    """
    length = xp.sqrt(square)
    is_within = length <= limit
    factor = xp.where(is_within, 1.0, limit / xp.where(is_within, 1.0, length))
    return g * number_like(xp, factor, g)


def clip_by_norm(xp, p, g, *, max_norm: Annotated[Limit, "Largest norm of the gradient of one parameter."] = 1.0):
    """Scales the gradient of a leaf down to the norm ``max_norm`` if its norm is larger (Keras' clipnorm)."""
    return _reduced(xp, g, xp.sum(wide_product(xp, g, g)), max_norm)


def clip_by_global_norm(
    xp, p, g, *, total, max_global_norm: Annotated[Limit, "Largest norm of all gradients together."] = 1.0
):
    """Scales all gradients down to the global norm ``max_global_norm`` (Pascanu et al. 2013).

    Smaller norms are kept. It is exact, as in optax; torch's ``clip_grad_norm_`` divides by the norm plus 1e-6.
    """
    return _reduced(xp, g, total(wide_product(xp, g, g)), max_global_norm)


def clip_by_known_norm(xp, p, g, *, square=0.0, max_norm: Limit = 1.0):
    """`clip_by_global_norm` with the known square of the norm of all gradients, ``square``."""
    return _reduced(xp, g, square, max_norm)


def maximize(xp, p, g):
    """Negates the gradient, so that the optimizer maximizes the loss."""
    return -g


def regularize(xp, p, g, *, l1: NonNegative = 0.0, l2: NonNegative = 0.0):
    """The gradient of the loss plus ``l1 * sum(abs(p)) + l2 / 2 * sum(p * p)``."""
    return g + l2 * p + l1 * xp.sign(p)


def gradient_noise(
    xp,
    p,
    g,
    *,
    step,
    noise,
    eta: Annotated[NonNegative, "Variance of the noise in the first step."] = 0.01,
    gamma: Annotated[NonNegative, "Exponent by which the variance of the noise falls with the step."] = 0.55,
):
    """Adds normal noise of variance ``eta / step**gamma`` to the gradient (Neelakantan et al. 2015, arXiv:1511.06807).

    Normal numbers are computed from uniform ones by the transform of Box and Muller (1958); ``1 - noise()`` is never 0.
    """
    normal = xp.sqrt(-2.0 * xp.log(1.0 - noise())) * xp.cos(6.283185307179586 * noise())
    return g + xp.sqrt(eta / step**gamma) * normal


def mars(
    xp,
    p,
    g,
    before,
    *,
    gamma: Annotated[NonNegative, "Strength of the variance reduction by the last gradient."] = 0.025,
    momentum: Annotated[Decay, "Momentum of the optimizer that follows, its ``beta1``."] = 0.95,
    max_norm: Annotated[Limit, "Largest norm of the corrected gradient of one parameter."] = 1.0,
):
    """MARS, the variance-reduced gradient (Yuan et al. 2024, arXiv:2411.10438).

    As the authors' program without a second gradient: ``g + gamma * momentum / (1 - momentum) * (g - before)``, scaled
    down to the norm ``max_norm`` of a leaf. The gradient ``before`` the first is zero. ``momentum`` is the ``beta1`` of
    the optimizer after it: MARS-AdamW is ``chain(MARS(), AdamW(beta1=0.95, beta2=0.99))``, MARS-Lion ``chain(MARS(),
    Lion(beta1=0.95, beta2=0.95))``.
    """
    corrected = g + gamma * (momentum / (1 - momentum)) * (g - before)
    return _reduced(xp, corrected, xp.sum(wide_product(xp, corrected, corrected)), max_norm), g


def cautious(xp, p, g, *, gradient):
    """Zeroes the elements of a step whose sign differs from the gradient's (Liang et al. 2024, arXiv:2411.16085).

    The other elements are divided by their share of the leaf, or by 1e-3 if that is larger, as in the authors' program.
    It comes after an optimizer, and before a weight decay: ``chain(Adam(), Cautious(), WeightDecay())`` is the authors'
    C-AdamW.
    """
    kept = g * gradient > 0
    mask = xp.where(kept, 1.0, xp.where(kept, g, 0.0))  # in the dtype of g, which numbers alone do not have
    equal, different = xp.sum(mask), xp.sum(1.0 - mask)
    return g * (mask / xp.maximum(equal / xp.maximum(equal + different, 1.0), 1e-3))


def learning_rate_dropout(xp, p, g, *, noise, dropout_rate: Share = 0.5):
    """Learning-rate dropout (Lin et al. 2019, arXiv:1912.00144): skips the update of a random subset of elements.

    It comes after an optimizer. ``dropout_rate`` is the probability that an element is not updated, as in `AdamLRD`;
    the others are not rescaled.
    """
    return xp.where(noise() < dropout_rate, 0.0 * g, g)


def schedule_free(
    xp,
    p,
    new,
    z=Slot.copy(),
    weights=Slot.scalar(0.0),
    largest=Slot.scalar(0.0),
    *,
    learning_rate,
    interpolation: Annotated[
        float, Interval("(0, 1]"), "Share of the average in the point at which gradients are taken."
    ] = 0.9,
    weight_power: NonNegative = 2.0,
):
    """Schedule-free learning (Defazio et al. 2024, arXiv:2405.15682), wrapped around the optimizer before it.

    As optax.contrib.schedule_free. The steps of the optimizer, which should have no momentum, move ``z``. The model
    holds the point at which gradients are taken, ``interpolation`` (optax's b1) of the way from ``z`` to the average.
    ``averaged_parameters(model)`` returns the average, and ``swap_in`` copies it into the model. The weight of a step
    in the average is the largest learning rate so far to the power ``weight_power``.
    """
    y, z, weights, largest = moved_average(
        xp, p, z, z - (p - new), weights, largest, learning_rate, interpolation, weight_power
    )
    return y, z, weights, largest


def schedule_free_average(xp, y, z, *, interpolation):
    """The average of `schedule_free`, for the parameters ``y``."""
    return rules_average(xp, y, z, beta1=interpolation)


def weight_decay(
    xp,
    p,
    new,
    *,
    learning_rate,
    weight_decay: Annotated[
        NonNegative, "Strength of the decay: a step subtracts learning_rate * weight_decay * parameter."
    ] = 1e-2,
    cautious: Annotated[bool, "Whether only elements are decayed that the update moves towards zero."] = False,
):
    """Decoupled weight decay (Loshchilov and Hutter 2019); it reads the parameter before the update.

    ``cautious`` decays the elements where the update and the parameter have one sign, or the update is zero (Chen et
    al. 2025, arXiv:2510.12402, algorithm 1).
    """
    decayed = xp.where((p - new) * p >= 0.0, p, 0.0 * p) if cautious else p
    return new - learning_rate * weight_decay * decayed


def _first_norm(xp, p):
    return norm(xp, p) if len(p.shape) > 1 else xp.zeros_like(p)


def hyperball(xp, p, new, radius=Slot.computed(_first_norm), *, learning_rate):
    """Hyperball optimization (Wen et al. 2025): parameters keep their norm, and updates a norm relative to it.

    The update of the optimizer before it gives the direction: ``p - learning_rate * radius * update / norm(update)``,
    scaled to the norm ``radius``. Parameters with fewer than two axes, or whose first norm is zero, have the update of
    the optimizer. ``chain(Muon(0.01, weight_decay=0.0), Hyperball())`` is the authors' MuonH.
    """
    if len(p.shape) < 2:
        return new, radius
    update = p - new
    length = norm(xp, update)
    moved = p - learning_rate * radius * update / xp.where(length > 0.0, length, 1.0)
    size = norm(xp, moved)
    return xp.where(radius > 0.0, moved * (radius / xp.where(size > 0.0, size, 1.0)), new), radius


def ema(
    xp,
    p,
    new,
    average=Slot.copy(),
    *,
    step,
    decay: Annotated[Share, "Decay of the average, which spans about 1 / (1 - decay) steps."] = 0.999,
    average_from: Annotated[
        Literal["start", "first_step", "zeros"],
        'Initial value of the average: parameters at the "start", after the "first_step", or "zeros".',
    ] = "start",
):
    """The exponential moving average of the parameters: ``decay * average + (1 - decay) * new`` in each step.

    ``average_from`` is the initial value:

    * "start" (default): the parameters before the first step, as torch's ``AveragedModel`` with
      ``get_ema_multi_avg_fn`` that is also updated before the first step.
    * "first_step": the parameters after it, as Keras' ``use_ema``, and an ``AveragedModel`` that is updated after each
      step.
    * "zeros": zeros, with the bias correction of Adam's moments, as ``optax.ema`` of the parameters. It requires a
      constant ``decay``.

    ``compat`` is "torch", "optax" or "keras". Instead of Keras' ``ema_overwrite_frequency``, call `Optimizer.swap_in`.
    """
    if average_from == "start":
        effective_decay = decay
    elif average_from == "first_step":
        effective_decay = xp.where(step == 1, 0.0, decay)
    else:
        before = xp.where(decay < 1.0, 1.0 - decay ** (step - 1), step - 1)
        effective_decay = decay * before / xp.where(decay < 1.0, 1.0 - decay**step, step)
    return new, effective_decay * average + (1 - effective_decay) * new


def swa(
    xp,
    p,
    new,
    average=Slot.copy(),
    *,
    step,
    start: Annotated[CountOrZero, "Number of steps before the average begins."] = 0,
    every: Annotated[Count, "Number of steps between two terms of the average."] = 1,
):
    """SWA, the mean of the parameters over every ``every``-th step (Izmailov et al. 2018).

    The first of these steps is ``start + every``; before it the average equals the parameters. As torch's
    ``AveragedModel``, updated after each of these steps.
    """
    since = (step - start) / every
    number = xp.maximum(xp.floor(since), 1.0)
    is_new = xp.where(since <= 1.0, 1.0, xp.equal(since, number))
    return new, average + xp.where(is_new, 1.0 / number, 0.0) * (new - average)


def copy(
    xp,
    p,
    new,
    copy=Slot.copy(name=NAMES["copy"], dtype_by="copy_dtype"),
    *,
    copy_dtype: Annotated[
        Literal["bfloat16", "float16", "float32"], "Dtype of the copy that `copied_parameters` returns."
    ] = "bfloat16",
):
    """A copy of the parameters in a lower precision, for a forward pass in mixed precision.

    ``copy_dtype`` is "bfloat16", "float16" or "float32". Rounded by the option ``rounding`` of the optimizer; see
    `Optimizer.copied_parameters`.
    """
    return new, new


def lookahead(
    xp,
    p,
    new,
    slow=Slot.copy(name=NAMES["slow"]),
    *,
    step,
    sync_period: Annotated[Count, "Number of steps between two moves of the slow parameters."] = 6,
    slow_step_size: Annotated[Share, "Share of the way by which slow parameters move to the fast ones."] = 0.5,
):
    """Every ``sync_period`` steps, moves the slow parameters towards the fast ones, and sets the fast ones to them.

    Lookahead (Zhang et al. 2019, arXiv:1907.08610), as in optax: ``slow += slow_step_size * (fast - slow)``. The model
    holds the fast parameters.
    """
    is_due = xp.equal(xp.remainder(step, sync_period), 0.0)
    moved = slow + slow_step_size * (new - slow)
    return xp.where(is_due, moved, new), xp.where(is_due, moved, slow)


def _unit_norms(xp, x, units):
    """The norm of each unit, with dimensions kept; of all elements if at most one axis is longer than 1."""
    ndim = len(x.shape)
    if sum(n != 1 for n in x.shape) <= 1:
        axes = tuple(range(ndim))
    elif units == "first":
        axes = tuple(range(1, ndim))
    elif units == "last":
        axes = (0,) if ndim <= 3 else tuple(range(ndim - 1))
    else:
        raise ValueError(f"units is {units!r}: expected 'first' or 'last', the axis of the units")
    return xp.sqrt(xp.sum(wide_product(xp, x, x), axis=axes, keepdims=True))


def adaptive_gradient_clip(
    xp,
    p,
    g,
    *,
    max_ratio: Annotated[Limit, "Largest ratio of a gradient's norm to its parameter's norm."] = 0.01,
    min_norm: Annotated[NonNegative, "Lower bound of the norm of a parameter in the ratio."] = 1e-3,
    units: Annotated[
        Literal["last", "first"], 'Axis of the units whose norms are compared: "last" as in optax, "first" as in torch.'
    ] = "last",
):
    """Adaptive gradient clipping (Brock et al. 2021, arXiv:2102.06171): limits gradient norms relative to weights.

    The norm of a unit's gradient is at most ``max_ratio`` times the norm of its weights, or times ``min_norm`` if that
    is larger. ``units`` is the axis of the units of a layer. "last" is as in optax.adaptive_grad_clip (matrices of
    inputs by outputs; with three axes, all but the first). "first" is as in torch's layers.
    """
    length, limit = _unit_norms(xp, g, units), max_ratio * xp.maximum(_unit_norms(xp, p, units), min_norm)
    # The ratio is rounded, not the norms: these may overflow in the dtype of the gradient.
    return g * number_like(xp, xp.where(length <= limit, 1.0, limit / xp.maximum(length, 1e-6)), g)


def _rows(xp, p):
    return xp.zeros_like(p if len(p.shape) < 2 else p[..., :1])


def normalize_rows(
    xp,
    p,
    g,
    v=Slot.computed(_rows),
    *,
    decay: Annotated[Decay, "Decay of the moving mean of squares of each row."] = 0.95,
    epsilon: NonNegative = 1e-8,
):
    """Divides each row of a step by its root mean square, and keeps the step's norm (NorMuon, arXiv:2510.05491).

    It comes after an optimizer: ``chain(Muon(adjust="match_rms_adamw"), NormalizeRows())`` is NorMuon (Li et al. 2025).
    The mean square of a row is a moving mean over steps, of steps that are scaled to the norm of an orthogonal matrix.
    Axes before the last two count the matrices of a stack. Steps with fewer than two axes are unchanged.
    """
    if len(g.shape) < 2 or 0 in g.shape:
        return g, v
    length = matrix_norm(xp, g)
    unit = g * (min(g.shape[-2:]) ** 0.5 / xp.where(length > 0.0, length, 1.0))
    v = decay * v + (1 - decay) * xp.mean(unit * unit, axis=-1, keepdims=True)
    unit = unit / (xp.sqrt(v) + epsilon)
    size = matrix_norm(xp, unit)
    return unit * (length / xp.where(size > 0.0, size, 1.0)), v


def scale_by_shape(
    xp,
    p,
    g,
    *,
    factor: Annotated[
        Literal["inverse_inputs", "spectral"],
        'Factor: "inverse_inputs", base / inputs, for Adam; or "spectral", sqrt(outputs / inputs), for Muon.',
    ] = "inverse_inputs",
    base: Annotated[Positive, "Number of inputs of the model whose learning rate is used."] = 1.0,
    outputs: Annotated[
        Literal["first", "last"], 'Axis of the outputs of a layer: "first" as in torch, "last" as in JAX and Keras.'
    ] = "first",
):
    """Scales the steps of matrices and filters by their shapes, so that learning rates transfer between widths (muP).

    It comes after an optimizer: ``chain(Adam(), ScaleByShape(base=128))`` multiplies by ``base / inputs`` (Yang et al.
    2022, arXiv:2203.03466); "spectral" multiplies by ``sqrt(outputs / inputs)``, the spectral norm that features need
    (Yang et al. 2023, arXiv:2310.17813). The inputs of filters are all axes except the axis of outputs. Steps with
    fewer than two axes are unchanged.
    """
    if len(g.shape) < 2 or 0 in g.shape:
        return g
    units = g.shape[0 if outputs == "first" else -1]
    inputs = math.prod(g.shape) / units
    return g * (base / inputs if factor == "inverse_inputs" else (units / inputs) ** 0.5)


def centralize(
    xp,
    p,
    g,
    *,
    kept: Annotated[
        Literal["first", "last"], 'Axis over which gradients keep their means apart: "first" or "last".'
    ] = "first",
):
    """Gradient centralization (Yong et al. 2020, arXiv:2004.01461): the gradient minus its mean, for two axes and more.

    There is one mean for each index of the ``kept`` axis, "first" (as in optax.centralize) or "last".
    """
    ndim = len(g.shape)
    if ndim < 2 or 0 in g.shape:
        return g
    axes = range(1, ndim) if kept == "first" else range(ndim - 1)
    return g - xp.mean(g, axis=tuple(axes), keepdims=True)
