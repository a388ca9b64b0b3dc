"""Array functions that rules called on arrays share."""

import math

from oxigrad.ops.backends import device_of, namespace


def zeros(xp, p, shape):
    """Zeros of the given shape, of the dtype and on the device of ``p``."""
    return namespace(p).zeros(tuple(shape), dtype=p.dtype, device=device_of(p))


def mean_over(xp, x, axis=None):
    """The mean over ``axis``, with dimensions kept; zero where there are no elements."""
    axes = range(len(x.shape)) if axis is None else (axis,)
    count = math.prod(x.shape[a] for a in axes)
    return xp.sum(x, axis=axis, keepdims=True) / max(count, 1)


def root_mean_square(xp, x):
    """The root mean square of all elements, with dimensions kept."""
    return xp.sqrt(mean_over(xp, x * x))


def norm(xp, x):
    """The Euclidean norm of all elements."""
    return xp.sqrt(xp.sum(x * x))


def share_of_new(xp, beta):
    """The weight of a new term in a statistic with decay ``beta``: ``1 - beta``, or 1 without decay."""
    return xp.where(beta == 1.0, 1.0, 1.0 - beta)


def choose(xp, condition, these, those):
    """The results of ``these`` where the condition holds, else of ``those``; both are called only in a traced program."""
    if isinstance(condition, bool):
        return these() if condition else those()
    return [None if a is None else xp.where(condition, a, b) for a, b in zip(these(), those(), strict=True)]


def finite_only(xp, decomposed, x):
    """The factors of the matrix ``x``; NaN where it is not finite, for which LAPACK raises: a guard may yet drop the step."""
    is_finite = xp.all(xp.isfinite(x))
    return [xp.where(is_finite, factor, math.nan) for factor in decomposed(xp.where(is_finite, x, xp.zeros_like(x)))]


def along(shape, axis):
    """The shape in which a vector along ``axis`` broadcasts to ``shape``."""
    return [n if a == axis else 1 for a, n in enumerate(shape)]
