"""Ordinary differential equations by differentiable steps of Dormand and Prince, as in `scipy.integrate.odeint`."""

import math
import warnings
from typing import Any

from oxigrad import ShapeError
from oxigrad import xp as ops
from oxigrad._core import plain
from oxigrad._names import check_callable
from oxigrad._typing import Array, Function
from oxigrad.ops.backends import fetched, is_array
from oxigrad.ops.core.array_like import array
from oxigrad.ops.core.dtypes import floating
from oxigrad.ops.scipy_signatures import scipy_signature
from oxigrad.xp import asarray, stack
from oxigrad.xp._scipy.integrate.roots import check_args

__all__ = ["odeint"]

# Dormand and Prince (1980), the Butcher tableau: nodes, weights of the stages, and weights of the error estimate.
_AT = (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_OF = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
_SAFETY, _LEAST, _MOST = 0.9, 0.2, 5.0


@scipy_signature(
    "func, y0, t, args=(), Dfun=None, col_deriv=0, full_output=0, ml=None, mu=None, rtol=None, atol=None, "
    "tcrit=None, h0=0.0, hmax=0.0, hmin=0.0, ixpr=0, mxstep=0, mxhnil=0, mxordn=12, mxords=5, printmessg=0, "
    "tfirst=False",
    ignored="Dfun col_deriv ml mu printmessg ixpr mxhnil",
)
def odeint(
    func: Function, y0: Array, t: Array, args: Any, rtol: float | None, atol: float | None, tfirst: bool
) -> Array:
    """The solution of ``dy/dt = func(y, t, *args)`` at times ``t`` of shape (n,), from ``y0`` at the first of them.

    The function is called as ``func(t, y, *args)`` if ``tfirst``. It may return a list.
    Tolerances are 1.49012e-8 where they are None.

    The result has shape ``(n, *y0.shape)``. The method is Dormand and Prince's of order five, with an estimated error
    of at most ``atol + rtol * abs(y)`` in each step. Step sizes, which the host computes from ``y``, are constants:
    both modes differentiate the computed solution, to any order. Where the step size underflows, as at a singularity,
    it warns, and the rows from the next time on are NaN; SciPy's are then arbitrary. Raises `ShapeError` if ``func``
    returns an array of another shape, and `ValueError` for a time that is not finite.
    """
    check_callable(func, "odeint")
    check_args(args, "odeint")
    y = _state(y0)
    t, size, solution = array(t), math.inf, [y]
    tolerances = tuple(1.49012e-8 if tolerance is None else tolerance for tolerance in (rtol, atol))
    shape = _shape(y)

    def slope(y: Array, t: Array) -> Array:
        value = _state(func(t, y, *args) if tfirst else func(y, t, *args))
        sizes = _shape(value)
        if math.prod(sizes) != math.prod(shape) or len(sizes) > len(shape):
            raise ShapeError(f"odeint: func returns an array of shape {sizes}: expected {shape}, as y0")
        return value

    for i in range(1, t.shape[0]):
        if not math.isnan(size):
            y, size = _advanced(slope, y, (t[i - 1], t[i]), size, tolerances)
        solution.append(y)
    return stack([asarray(y) for y in solution])


def _shape(y: Array) -> tuple[int, ...]:
    return tuple(getattr(y, "shape", ()))


def _state(y: Array) -> Array:
    """A list as an array, integers in floating point."""
    y = array(y) if isinstance(y, (list, tuple)) else y
    return floating(y) if is_array(plain(y)) else y


def _advanced(
    f: Function, y: Array, times: tuple[Array, Array], size: float, tolerances: tuple[float, ...]
) -> tuple[Any, float]:
    """The solution at the second of two times, from that at the first, and the next step size; NaN where it fails."""
    now, end = times
    while True:
        left = _number(end) - _number(now)
        if not math.isfinite(left):
            raise ValueError(f"odeint: t has {_number(now)!r} before {_number(end)!r}: expected finite numbers")
        is_last = size >= abs(left)
        step = end - now if is_last else math.copysign(size, left)
        new, error = _step(f, y, now, step)
        rtol, atol = tolerances
        ratio = _largest(error, y, new, rtol, atol)
        factor = min(_MOST, max(_LEAST, _SAFETY * ratio**-0.2)) if ratio > 0.0 else _MOST if ratio == 0.0 else _LEAST
        if ratio <= 1.0:
            if is_last:  # neither a short last step nor an empty one reduces the next step size
                is_kept = math.isfinite(size) or left == 0.0
                return new, max(size, abs(left) * factor) if is_kept else abs(left) * factor
            y, now, size = new, now + step, abs(_number(step)) * factor
            continue
        size = abs(_number(step)) * factor
        if _number(now) + size == _number(now):
            where = f"at t = {_number(now)!r} the step size would be smaller than {size:.1e}"
            warnings.warn(
                f"odeint: {where}: the rows from t = {_number(end)!r} on are NaN", RuntimeWarning, stacklevel=4
            )
            return math.nan * y, math.nan


def _step(f: Function, y: Array, now: Array, step: Array) -> tuple[Array, Array]:
    """The solution after a step, and an estimate of its error."""
    slopes: list[Array] = []
    new = y
    for at, weights in zip(_AT, _OF, strict=True):
        new = y + step * _sum(weights, slopes) if slopes else y
        slopes.append(f(new, now + at * step))
    return new, step * _sum(_ERROR, slopes)


def _sum(weights: tuple[float, ...], slopes: list[Array]) -> Array:
    terms = [weight * slope for weight, slope in zip(weights, slopes, strict=True) if weight]
    return sum(terms[1:], terms[0])


def _largest(error: Array, y: Array, new: Array, rtol: float, atol: float) -> float:
    """The largest ratio of the error to the tolerance; NaN where an element is NaN."""
    error, y, new = plain(error), plain(y), plain(new)
    ratio = ops.abs(error) / (atol + rtol * ops.maximum(ops.abs(y), ops.abs(new)))
    return _number(ops.max(ratio) if getattr(ratio, "shape", ()) else ratio)


def _number(value: Any) -> float:
    return float(fetched(plain(value)))
