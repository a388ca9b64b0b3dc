"""Integrals of samples, and ordinary differential equations by differentiable steps, named as in `scipy.integrate`.

>>> import numpy as np
>>> import oxigrad as ox
>>> x = np.array([0.0, 1.0, 4.0])
>>> round(ox.grad(lambda end: simpson(x * x, x * end))(1.0), 6)  # of the integral from 0 to 4 * end
21.333333
>>> decay = lambda y, t, rate: -rate * y
>>> round(float(ox.grad(lambda rate: odeint(decay, 1.0, np.array([0.0, 1.0]), (rate,))[1])(2.0)), 6)
-0.135335
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from oxigrad._core import ShapeError, plain
from oxigrad._names import without
from oxigrad._typing import Array
from oxigrad.ops.backends import beneath, fetched, namespace, on_host
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core import standard
from oxigrad.ops.core.array_like import array
from oxigrad.ops.core.primitives import along, stack
from oxigrad.ops.core.shapes import position
from oxigrad.ops.core.standard import asarray
from oxigrad.ops.numpy import reductions
from oxigrad.ops.scipy_signatures import scipy_signature

__all__ = ["cumulative_simpson", "cumulative_trapezoid", "odeint", "simpson", "trapezoid"]
__dir__: Callable[[], list[str]] = __all__.copy

__getattr__ = without("oxigrad.xp.integrate", __all__)


# --- integrals of samples ---------------------------------------------------------------------------------------------


@scipy_signature("y, x=None, dx=1.0, axis=-1")
def trapezoid(y: Array, /, x: Any, dx: Any, axis: int) -> Array:
    """The integral along ``axis`` by the trapezoidal rule, over the points ``x`` or with spacing ``dx``.

    Points have shape ``(n,)`` or the shape of ``y``; they are differentiable too.
    """
    return reductions.trapezoid(y, x, dx, axis)


@scipy_signature("y, x=None, dx=1.0, axis=-1, initial=None")
def cumulative_trapezoid(y: Array, /, x: Any, dx: Any, axis: int, initial: float | None) -> Array:
    """The integrals from the first point to each other point by the trapezoidal rule.

    ``initial``, None or 0, is prepended.
    """
    if initial is not None and (np.ndim(plain(initial)) or plain(initial) != 0):
        raise ValueError(f"cumulative_trapezoid: initial is {initial!r}: expected None or 0")
    y, axis = _samples("cumulative_trapezoid", y, axis)
    parts = reductions.trapezoids(y, reductions.spacing("cumulative_trapezoid", y, x, dx, axis), axis)
    return _cumulative(parts, initial, axis)


@scipy_signature("y, x=None, *, dx=1.0, axis=-1")
def simpson(y: Array, /, x: Any, dx: Any, axis: int) -> Array:
    """The integral along ``axis`` by Simpson's rule, over the points ``x`` or with spacing ``dx``.

    A parabola passes through every second point and its neighbours. For an odd number of intervals, the last one is
    integrated below the parabola through the last three points (Cartwright, Math. Sci. 42, 2017). Points have shape
    ``(n,)`` or the shape of ``y``; they are differentiable too.
    """
    y, axis = _samples("simpson", y, axis)
    spacing = reductions.spacing("simpson", y, x, dx, axis)
    count = y.shape[axis] - 1
    if count < 2:
        return ops.sum(reductions.trapezoids(y, spacing, axis), axis=axis)
    even = count - count % 2
    h = _neighbours(spacing, slice(0, even, 2), slice(1, even, 2), axis)
    left, middle, right = (y[along(axis, slice(start, even + start - 1, 2))] for start in range(3))
    width = h[0] + h[1]
    parts = (
        left * (2.0 - _ratio(h[1], h[0]))
        + middle * (width * _ratio(width, h[0] * h[1]))
        + right * (2.0 - _ratio(h[0], h[1]))
    )
    total = ops.sum(parts * width / 6.0, axis=axis)
    if even == count:
        return total
    return total + ops.sum(_last_interval(y, spacing, axis), axis=axis)


@scipy_signature("y, *, x=None, dx=1.0, axis=-1, initial=None")
def cumulative_simpson(y: Array, /, x: Any, dx: Any, axis: int, initial: Any) -> Array:
    """The integrals from the first point to each other one by Simpson's rule, with the parabolas of `simpson`.

    ``initial``, a number or an array with one element along ``axis``, is added to them and prepended. Raises
    `ValueError` if points ``x`` in host memory do not increase.
    """
    y, axis = _samples("cumulative_simpson", y, axis)
    spacing = reductions.spacing("cumulative_simpson", y, x, dx, axis)
    bare = beneath(spacing)
    if x is not None and on_host(bare) and not namespace(bare).all(bare > 0):
        raise ValueError(
            "cumulative_simpson: x does not increase: expected points that increase strictly along the axis"
        )
    count = y.shape[axis] - 1
    if count < 2:
        return _cumulative(reductions.trapezoids(y, spacing, axis), initial, axis)
    # Pairs of intervals are below one parabola; the last of an odd number is below that through the last three points.
    first = _neighbours(spacing, slice(0, count - 1, 2), slice(1, count, 2), axis)
    forward = _below_parabola((y[along(axis, slice(at, count - 1 + at, 2))] for at in range(3)), first)
    even = count - count % 2
    second = _neighbours(spacing, slice(1, even, 2), slice(0, even, 2), axis)
    backward = _below_parabola((y[along(axis, slice(at, even - 1 + at, 2))] for at in (2, 1, 0)), second)
    parts = ops.stack([forward, backward], axis=axis + 1)
    parts = ops.reshape(parts, (*y.shape[:axis], even, *y.shape[axis + 1 :]))
    if even < count:
        parts = ops.concat([parts, _last_interval(y, spacing, axis)], axis=axis)
    return _cumulative(parts, initial, axis)


def _samples(name: str, y: Any, axis: int) -> tuple[Any, int]:
    """Samples in floating point, and the axis counted from the front."""
    y = array(y)
    axis = position(axis, y.ndim, name)
    if not y.shape[axis]:
        raise ValueError(f"{name}: found no sample along the axis, expected one at least")
    return y, axis


def _neighbours(spacing: Any, one: slice, other: slice, axis: int) -> tuple[Any, Any]:
    """The distances of two sets of intervals; a scalar distance holds for both."""
    if len(getattr(spacing, "shape", ())) <= axis or spacing.shape[axis] == 1:
        return spacing, spacing
    return spacing[along(axis, one)], spacing[along(axis, other)]


def _last_interval(y: Any, spacing: Any, axis: int) -> Any:
    count = y.shape[axis] - 1
    pair = _neighbours(spacing, slice(count - 1, None), slice(count - 2, count - 1), axis)
    return _below_parabola((y[along(axis, slice(at, at + 1))] for at in (count, count - 1, count - 2)), pair)


def _below_parabola(points: Iterable[Any], spacing: tuple[Any, Any]) -> Any:
    """The integral of the parabola through three points, from the first point to the second.

    ``spacing`` has the distances of the points.
    """
    near, middle, far = points
    h, following = spacing
    both = h + following
    parts = (
        near * (3.0 - _ratio(h, both))
        + middle * _ratio(3.0 * following + h, following)
        - far * _ratio(h * h, following * both)
    )
    return parts * h / 6.0


def _ratio(x: Any, y: Any) -> Any:
    """A ratio that is zero, with its derivatives, if the denominator is zero."""
    if isinstance(y, (int, float)) and y:
        return x / y
    zero = y == 0.0
    return ops.where(zero, 0.0, x / ops.where(zero, 1.0, y))


def _cumulative(parts: Any, initial: Any, axis: int) -> Any:
    """The sums up to each of some integrals, after the initial value."""
    sums = standard.cumulative_sum(parts, axis=axis)
    if initial is None:
        return sums
    shape, initial = (*sums.shape[:axis], 1, *sums.shape[axis + 1 :]), array(initial)
    if tuple(initial.shape) not in ((), shape):
        raise ShapeError(f"found initial of shape {tuple(initial.shape)}, expected a number, or the shape {shape}")
    initial = ops.astype(ops.broadcast_to(initial, shape), sums.dtype, copy=False)
    return ops.concat([initial, sums + initial], axis=axis)


# --- differential equations -------------------------------------------------------------------------------------------

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
    "func, y0, t, args=(), Dfun=None, col_deriv=0, full_output=0, ml=None, mu=None, rtol=None, atol=None, tcrit=None, h0=0.0, hmax=0.0, hmin=0.0, ixpr=0, mxstep=0, mxhnil=0, mxordn=12, mxords=5, printmessg=0, tfirst=False",
    ignored="Dfun col_deriv ml mu printmessg ixpr mxhnil",
)
def odeint(
    func: Callable[..., Any], y0: Any, t: Array, args: Any, rtol: float | None, atol: float | None, tfirst: bool
) -> Array:
    """The solution of ``dy/dt = func(y, t, *args)`` at the times ``t`` (n,), starting from ``y0`` at the first.

    The function is called as ``func(t, y, *args)`` if ``tfirst``. Tolerances of None are 1.49012e-8.

    The result has shape ``(n, *y0.shape)``. The method is Dormand and Prince's of order five, with an estimated error
    of at most ``atol + rtol * abs(y)`` in each step. The host computes step sizes from ``y`` and treats them as
    constants: both modes differentiate the computed solution, to any order. Raises `ArithmeticError` if the step size
    underflows, as at a singularity.
    """
    y, size, solution = y0, math.inf, [y0]
    tolerances = tuple(1.49012e-8 if tolerance is None else tolerance for tolerance in (rtol, atol))
    slope = (lambda y, t: func(t, y, *args)) if tfirst else lambda y, t: func(y, t, *args)
    for i in range(1, t.shape[0]):
        y, size = _advanced(slope, y, (t[i - 1], t[i]), size, tolerances)
        solution.append(y)
    return stack([asarray(y) for y in solution])


def _advanced(
    f: Callable[..., Any], y: Array, times: tuple[Any, Any], size: float, tolerances: tuple[float, ...]
) -> tuple[Any, float]:
    """The solution at the second of two times, from that at the first, and the next step size."""
    now, end = times
    while True:
        left = _number(end) - _number(now)
        is_last = size >= abs(left)
        step = end - now if is_last else math.copysign(size, left)
        new, error = _step(f, y, now, step)
        rtol, atol = tolerances
        ratio = _largest(error, y, new, rtol, atol)
        factor = min(_MOST, max(_LEAST, _SAFETY * ratio**-0.2)) if ratio > 0.0 else _MOST if ratio == 0.0 else _LEAST
        if ratio <= 1.0:
            # A short last step does not reduce the next step size.
            size = max(size, abs(left) * factor) if is_last and math.isfinite(size) else abs(_number(step)) * factor
            if is_last:
                return new, size
            y, now = new, now + step
            continue
        size = abs(_number(step)) * factor
        if _number(now) + size == _number(now):
            raise ArithmeticError(f"odeint: at t = {_number(now)!r} the step size would be smaller than {size:.1e}")


def _step(f: Callable[..., Any], y: Array, now: Any, step: Any) -> tuple[Array, Array]:
    """The solution after a step, and an estimate of its error."""
    slopes: list[Any] = []
    new = y
    for at, weights in zip(_AT, _OF, strict=True):
        new = y + step * _sum(weights, slopes) if slopes else y
        slopes.append(f(new, now + at * step))
    return new, step * _sum(_ERROR, slopes)


def _sum(weights: tuple[float, ...], slopes: list[Any]) -> Any:
    terms = [weight * slope for weight, slope in zip(weights, slopes, strict=True) if weight]
    return sum(terms[1:], terms[0])


def _largest(error: Array, y: Array, new: Array, rtol: float, atol: float) -> float:
    """The largest ratio of the error to the tolerance, or NaN if an element is NaN."""
    error, y, new = plain(error), plain(y), plain(new)
    ratio = ops.abs(error) / (atol + rtol * ops.maximum(ops.abs(y), ops.abs(new)))
    return _number(ops.max(ratio) if getattr(ratio, "shape", ()) else ratio)


def _number(value: Any) -> float:
    return float(fetched(plain(value)))
