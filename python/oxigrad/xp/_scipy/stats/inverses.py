"""Inverses of distribution functions without a closed form: Newton's method between bounds, for a logarithm.

The root is computed in float64 in host memory. Its derivatives come from further Newton steps at the root, whose sum is
zero: two of them have the derivatives of the inverse up to the third order.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxigrad import xp as ops
from oxigrad._core import plain
from oxigrad._typing import Array, Function
from oxigrad.ops.backends import holds_variable, without_variables
from oxigrad.ops.core.host_calls import computed
from oxigrad.xp._scipy.guarded import branch

_MOST_STEPS, _ROUNDING, _LEAST = 200, 2e-16, -400.0
Floats = NDArray[np.float64]
Bounds = Callable[..., tuple[Any, Any, Any]]


def quantile(
    name: str,
    log_density: Function,
    log_lower: Function,
    log_upper: Function,
    bounds: Bounds,
) -> Function:
    """A quantile function of ``q``, ``1 - q`` and the shape parameters, from logarithms of distribution functions.

    ``bounds`` returns the least and the greatest value for the shape parameters, and a value between them.
    """

    def root(q: Array, rest: Array, *shapes: Array) -> Array:
        """The number, of plain arrays of NumPy or numbers."""
        q, rest, *s = np.broadcast_arrays(*(np.asarray(each, np.float64) for each in (q, rest, *shapes)))
        roots = np.full(q.shape, np.nan)
        is_known = ~np.isnan(sum((q, *s)))
        sides = (is_known & (q <= rest), log_lower, q, 1.0), (is_known & (q > rest), log_upper, rest, -1.0)
        for mask, log_p, share, sign in sides:
            if not np.any(mask):
                continue
            target, args = np.log(share[mask]), [each[mask] for each in s]

            def excess(
                x: Floats,
                log_p: Function = log_p,
                target: Floats = target,
                args: Sequence[Array] = args,
                sign: float = sign,
            ) -> tuple[Array, Array]:
                """The logarithm of the probability minus the target's, as an increasing function; and its slope."""
                log_share = log_p(x, *args)
                return sign * (log_share - target), np.exp(log_density(x, *args) - log_share)

            roots[mask] = _root(excess, *(np.broadcast_to(each, target.shape) for each in bounds(*args)))
        return roots[()]

    def of(q: Array, rest: Array, *shapes: Array) -> Array:
        like = q
        x: Array = computed(name, root, tuple(map(plain, (q, rest, *shapes))))[0]
        if hasattr(plain(like), "dtype") and hasattr(x, "dtype") and x.dtype != plain(like).dtype:
            x = ops.astype(x, plain(like).dtype)
        for _ in range(2 if any(map(holds_variable, (q, rest, *shapes))) else 0):
            step = _newton(x, q, rest, *shapes)
            x = x + (step - without_variables(step))
        return x

    def _newton(x: Array, q: Array, rest: Array, *s: Array) -> Array:
        log_p = log_density(x, *s)
        # Newton's method for the probabilities if they are floats, and for their logarithms in the tails beyond.
        is_float = plain(log_p) > _LEAST
        slope = ops.exp(-ops.where(is_float, log_p, 0.0))

        def step(q: Array, side: Array) -> Array:
            return ops.where(is_float, (q - ops.exp(side)) * slope, (ops.log(q) - side) * ops.exp(side - log_p))

        below = lambda q, _: step(q, log_lower(x, *s))  # noqa: E731
        above = lambda _, rest: -step(rest, log_upper(x, *s))  # noqa: E731
        return branch(plain(q) <= plain(rest), below, above, (q, 0.5, 0.5), (rest, 0.5, 0.5))

    return of


def _root(excess: Function, low: Array, high: Array, x: Array) -> Array:
    """The root of an increasing function between two numbers, from ``x`` on.

    Newton's steps. A bisection replaces a step that leaves the bounds, or that follows a step which has not halved the
    function.
    """
    before: Array = math.inf
    with np.errstate(all="ignore"):
        for _ in range(_MOST_STEPS):
            over, slope = excess(x)
            low, high = np.where(over < 0.0, x, low), np.where(over < 0.0, high, x)
            new = x - over / slope
            is_step = (low <= new) & (new <= high) & (abs(over) <= 0.5 * before)
            # Steps converge quadratically: after one of this size the next is of rounding.
            is_done = (
                ((abs(new - x) <= 1e-9 * abs(x)) & (abs(over) < 1e-3))
                | (abs(over) <= _ROUNDING)
                | (np.nextafter(low, high) >= high)
            )
            nearer = np.where(is_step, new, _between(low, high))
            x, before = np.where(is_done, np.clip(np.where(np.isnan(new), x, new), low, high), nearer), abs(over)
            if np.all(is_done):
                break
    return x


def _between(low: Floats, high: Floats) -> Floats:
    """The number in the middle of all floats between two of them, which are not far apart in logarithms."""
    first, last = _rank(low), _rank(high)
    middle = (first >> 1) + (last >> 1) + (first & last & 1)
    return np.where(middle < 0, np.iinfo(np.int64).min - middle, middle).view(np.float64)


def _rank(x: Floats) -> NDArray[np.int64]:
    """The place of a float in the order of all of them."""
    bits = np.ascontiguousarray(x).view(np.int64).reshape(np.shape(x))
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)
