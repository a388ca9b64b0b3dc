"""Array functions that rules called on arrays share."""

import math

from oxigrad.ops.backends import device_of, namespace


def zeros(xp, p, shape):
    """Zeros of another shape, of the dtype of ``p`` and where it lives."""
    return namespace(p).zeros(shape, dtype=p.dtype, device=device_of(p))


def mean_over(xp, x, axis=None):
    """The mean, with the axes kept; that of no elements is zero."""
    axes = range(len(x.shape)) if axis is None else (axis,)
    count = math.prod(x.shape[a] for a in axes)
    return xp.sum(x, axis=axis, keepdims=True) / max(count, 1)


def root_mean_square(xp, x):
    """The root of the mean of squares, with the axes kept."""
    return xp.sqrt(mean_over(xp, x * x))


def norm(xp, x):
    """The root of the sum of squares."""
    return xp.sqrt(xp.sum(x * x))


def share_of_new(xp, beta):
    """The weight of a new term in a statistic that decays by ``beta``: 1 where nothing decays."""
    return xp.where(beta == 1.0, 1.0, 1.0 - beta)


def along(shape, axis):
    """The shape in which one number for each index of an axis broadcasts."""
    return [n if a == axis else 1 for a, n in enumerate(shape)]
