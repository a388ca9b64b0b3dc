"""Inverses of distribution functions that have no closed form: the root of a logarithm by Newton's method between bounds.

The root is found in float64 in host memory. Its derivatives are those of further Newton steps from there, whose sum is zero: two of
them have the derivatives of the inverse up to the third order.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxigrad._core import Variable, plain
from oxigrad._typing import Array
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core.array_like import values
from oxigrad.ops.core.guarded import branch
from oxigrad.ops.core.host_calls import computed

_MOST_STEPS = 200
Floats = NDArray[np.float64]
Bounds = Callable[..., tuple[Any, Any, Any]]


def quantile(
    name: str,
    log_density: Callable[..., Any],
    log_lower: Callable[..., Any],
    log_upper: Callable[..., Any],
    bounds: Bounds,
) -> Callable[..., Any]:
    """A function of ``q``, ``1 - q`` and the shape parameters, whose distribution functions are given by their logarithms.

    ``bounds`` has the least and the greatest number for the shape parameters, and one between them.
    """

    def root(q: Any, rest: Any, *shapes: Any) -> Any:
        """The number, of plain arrays of NumPy or numbers."""
        q, rest, *s = np.broadcast_arrays(*(np.asarray(each, np.float64) for each in (q, rest, *shapes)))
        low, high, start = (np.broadcast_to(np.asarray(each, np.float64), q.shape) for each in bounds(*s))
        is_below = q <= rest

        def excess(x: Floats) -> tuple[Floats, Floats]:
            """How much the logarithm exceeds that of ``q``, as an increasing function, and its slope."""
            side = np.where(is_below, log_lower(x, *s), log_upper(x, *s))
            over = side - np.log(np.where(is_below, q, rest))
            return np.where(is_below, over, -over), np.exp(log_density(x, *s) - side)

        with np.errstate(all="ignore"):
            return _root(excess, low, high, start, np.isnan(sum((q, *s))))

    def of(q: Array, rest: Array, *shapes: Array) -> Array:
        like = q
        found: Any = computed(name, root, tuple(map(plain, (q, rest, *shapes))))[0]
        if hasattr(plain(like), "dtype") and hasattr(found, "dtype") and found.dtype != plain(like).dtype:
            found = ops.astype(found, plain(like).dtype)
        for _ in range(2 if any(isinstance(each, Variable) for each in (q, rest, *shapes)) else 0):
            step = _newton(found, q, rest, *shapes)
            found = found + (step - plain(step))
        return found

    def _newton(x: Any, q: Any, rest: Any, *s: Any) -> Any:
        density = log_density(x, *s)

        def below(q: Any, _: Any) -> Any:
            side = log_lower(x, *s)
            return (ops.log(q) - side) * ops.exp(side - density)

        def above(_: Any, rest: Any) -> Any:
            side = log_upper(x, *s)
            return (side - ops.log(rest)) * ops.exp(side - density)

        return branch(plain(q) <= plain(rest), below, above, (q, 0.5, 0.5), (rest, 0.5, 0.5))

    return of


def _root(excess: Callable[..., Any], low: Any, high: Any, start: Any, is_lost: Any) -> Any:
    """The root of an increasing function between two numbers, to rounding; NaN where ``is_lost``."""
    x = np.where(is_lost, 0.0, start)
    low, high = np.array(low), np.array(high)
    for count in range(_MOST_STEPS):
        over, slope = excess(x)
        low, high = np.where(over < 0.0, x, low), np.where(over < 0.0, high, x)
        new = x - over / slope
        is_slow = count % 3 == 2
        new = np.where((low <= new) & (new <= high) & (not is_slow or abs(new - x) < 1e-6 * abs(x)), new, _between(low, high))
        is_done = is_lost | (over == 0.0) | (abs(new - x) <= 4e-16 * abs(x))
        if np.all(is_done):
            break
        x = np.where(is_done, x, new)
    return np.where(is_lost, np.nan, x)[()]


def _between(low: Floats, high: Floats) -> Floats:
    """The number in the middle of all floats between two of them, which are not far apart in logarithms."""
    first, last = _rank(low), _rank(high)
    middle = (first >> 1) + (last >> 1) + (first & last & 1)
    return np.where(middle < 0, np.iinfo(np.int64).min - middle, middle).view(np.float64)


def _rank(x: Floats) -> NDArray[np.int64]:
    """The place of a float in the order of all of them."""
    bits = np.ascontiguousarray(x).view(np.int64).reshape(np.shape(x))
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)
