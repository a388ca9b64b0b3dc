"""Array functions that rules share."""

import math

from oxigrad.ops.backends import device_of, namespace

# A power of two, by which no bits are lost. 2**31 squares of the largest float32 times it have a sum in float32.
_SCALE = 2.0**-80


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
    """The Euclidean norm of all elements; infinite where their squares overflow."""
    return xp.sqrt(xp.sum(x * x))


def finite_norm(xp, x):
    """The Euclidean norm of all elements, whose squares may overflow."""
    length, scale = scaled_norm(xp, x)
    return length / scale


def scaled_norm(xp, x, add=None):
    """A number, and the scale by which it is to be divided to be the Euclidean norm; ``add`` sums terms up, by default all of them.

    The scale is 1 unless squares overflow, as those of float32 do from 2**64 on.
    """
    return length_of_squares(xp, *squares(xp, x, add))


def length_of_squares(xp, square, scaled_square):
    """The `scaled_norm` of numbers with these `squares`."""
    is_finite = square < math.inf
    scale = xp.where(is_finite, 1.0, xp.where(is_finite, square, _SCALE))  # in the dtype of x
    return xp.sqrt(xp.where(is_finite, square, scaled_square)), scale


def square_of_norm(xp, x, add=None):
    """The square of the norm, in the float64 that kernels compute numbers with."""
    square, scaled_square = squares(xp, x, add)
    return xp.where(square < math.inf, square, scaled_square / _SCALE**2)


def squares(xp, x, add=None):
    """The sums of the squares of numbers, and of these numbers times `_SCALE`."""
    add, scaled = xp.sum if add is None else add, _SCALE * x
    return add(x * x), add(scaled * scaled)


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
