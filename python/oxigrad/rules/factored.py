"""Adafactor and SM3: second moments by row and column instead of by element. The rules are called on arrays."""

from typing import Annotated, Literal

from oxigrad.ops.backends import namespace
from oxigrad.rules.core.arrays import along, mean_over, root_mean_square, share_of_new, zeros
from oxigrad.rules.core.ranges import CountOrZero, Interval, NonNegative, NonPositive, Share
from oxigrad.rules.core.slots import Slot

__all__ = ["adafactor", "sm3"]


def _factored_axes(shape, factored, min_factored):
    """The two axes over which second moments are averaged, or None if they are kept for each element."""
    if factored is None or len(shape) < 2:
        return None
    last = len(shape) - 2, len(shape) - 1
    axes = last if factored == "last" else sorted(range(len(shape)), key=shape.__getitem__)[-2:]
    return axes if all(shape[axis] >= min_factored for axis in axes) else None


def _zeros_without(xp, p, axis):
    return zeros(xp, p, [1 if a == axis else n for a, n in enumerate(p.shape)])


def _row_moments(xp, p, factored, min_factored):
    axes = _factored_axes(p.shape, factored, min_factored)
    return axes and _zeros_without(xp, p, axes[1])


def _column_moments(xp, p, factored, min_factored):
    axes = _factored_axes(p.shape, factored, min_factored)
    return axes and _zeros_without(xp, p, axes[0])


def _whole_moments(xp, p, factored, min_factored):
    return None if _factored_axes(p.shape, factored, min_factored) else xp.zeros_like(p)


def adafactor(
    xp,
    p,
    g,
    row=Slot.computed(_row_moments),
    column=Slot.computed(_column_moments),
    v=Slot.computed(_whole_moments),
    m=Slot.zeros(when="momentum"),
    *,
    step,
    learning_rate: Annotated[
        NonNegative, "Step size; with ``relative_step`` its upper bound is 1 / sqrt(step)."
    ] = 1e-2,
    beta2_decay: Annotated[
        NonPositive, "Exponent of the decay of second moments: at step t it is 1 - t ** beta2_decay."
    ] = -0.8,
    epsilon1: Annotated[
        NonNegative | None, "Lower bound of root mean squares of gradients; None is the machine epsilon."
    ] = None,
    epsilon2: Annotated[
        NonNegative, "Lower bound of the root mean square of a parameter, where ``scale_parameter`` is set."
    ] = 1e-3,
    clipping: Annotated[float, Interval("(0, inf]"), "Upper bound of the root mean square of an update."] = 1.0,
    weight_decay: NonNegative = 0.0,
    momentum: Annotated[Share, "Decay of the moving mean of updates; 0 turns momentum off."] = 0.0,
    min_factored: Annotated[CountOrZero, "Smallest size of both axes for which second moments are factored."] = 0,
    factored: Annotated[
        Literal["last", "largest", None],
        'Axes whose second moments are factored: the "last" two, the "largest" two, or None.',
    ] = "last",
    relative_step: Annotated[bool, "Whether the learning rate is at most 1 / sqrt(step)."] = True,
    scale_parameter: Annotated[bool, "Whether the step is multiplied by the root mean square of the parameter."] = True,
    add_epsilon: Annotated[bool, "Whether ``epsilon1`` is added to squared gradients, as in optax and Keras."] = False,
):
    """Adafactor (Shazeer and Stern 2018, arXiv:1804.04235): factored second moments of matrices.

    The second moment of a matrix is the product of a row and a column. By default as torch.optim.Adafactor:
    ``epsilon1`` (None: the machine epsilon) bounds root mean squares from below. optax and Keras add it to the squared
    gradients (``add_epsilon``). ``relative_step`` bounds the rate by ``1 / sqrt(step)``. ``scale_parameter`` multiplies
    it by the root mean square of the parameter, at least ``epsilon2``. ``clipping`` bounds the root mean square of the
    update. ``factored`` are the "last" two axes, the "largest" two, or None; both need ``min_factored`` elements.
    ``momentum`` averages the updates.

    ``compat`` does not cover two differences. optax does not multiply the weight decay by the learning rate: divide it.
    Keras takes the root mean square of a parameter after the decay, not before.
    """
    axes = _factored_axes(p.shape, factored, min_factored)
    epsilon = float(namespace(p).finfo(p.dtype).eps) if epsilon1 is None else epsilon1
    squared = g * g + epsilon if add_epsilon else g * g
    share = step**beta2_decay
    if axes is None:
        v = variance = v + share * (squared - v)
    else:
        row = row + share * (mean_over(xp, squared, axes[1]) - row)
        column = column + share * (mean_over(xp, squared, axes[0]) - column)
        mean = mean_over(xp, row, axes[0])
        variance = row / (mean if add_epsilon else xp.maximum(mean, epsilon)) * column
    update = g / xp.sqrt(variance if add_epsilon else xp.maximum(variance, epsilon**2))
    rate = xp.minimum(learning_rate, 1 / xp.sqrt(step)) if relative_step else learning_rate
    scale = xp.maximum(root_mean_square(xp, p), epsilon2) if scale_parameter else 1.0
    update = rate * scale / xp.maximum(root_mean_square(xp, update) / clipping, 1.0) * update
    if m is not None:
        m = update = momentum * m + (1 - momentum) * update
    return (1 - learning_rate * weight_decay) * p - update, row, column, v, m


def _covers(xp, p):
    return zeros(xp, p, (sum(p.shape),)) if len(p.shape) > 1 else xp.zeros_like(p)


def sm3(
    xp,
    p,
    g,
    m,
    cover=Slot.computed(_covers),
    *,
    learning_rate: NonNegative = 0.1,
    momentum: Annotated[Share, "Decay of the moving mean of scaled gradients."] = 0.9,
    beta2: Annotated[Share, "Decay of the maxima of squared gradients; 1 sums them, as Adagrad does."] = 1.0,
    epsilon: NonNegative = 1e-8,
):
    """SM3-II (Anil et al. 2019, arXiv:1901.11150), as in optax: Adagrad with a maximum for each row, column, ...

    ``cover`` has the maxima of all axes, concatenated. They decay by ``beta2``. The momentum is an average of the
    scaled gradients. Parameters of fewer than two axes have an accumulator for each element.
    """
    shape = p.shape
    starts = [sum(shape[:axis]) for axis in range(len(shape))]
    if len(shape) < 2:
        least = cover
    else:
        least = xp.reshape(cover[: shape[0]], along(shape, 0))
        for axis in range(1, len(shape)):
            maxima = cover[starts[axis] : starts[axis] + shape[axis]]
            least = xp.minimum(least, xp.reshape(maxima, along(shape, axis)))
    v = beta2 * least + share_of_new(xp, beta2) * g * g
    m = momentum * m + (1 - momentum) * g * xp.where(v > 0, 1 / xp.sqrt(v + epsilon), 0.0)
    if len(shape) < 2:
        cover = v
    elif 0 not in shape:
        others = [tuple(a for a in range(len(shape)) if a != axis) for axis in range(len(shape))]
        cover = xp.concat([xp.max(v, axis=axes) for axes in others])
    return p - learning_rate * m, m, cover
