"""Integrals of samples, named as in `scipy.integrate`."""

from collections.abc import Iterable

import numpy as np

from oxigrad import ShapeError
from oxigrad import xp as ops
from oxigrad import xp as standard
from oxigrad._core import plain
from oxigrad._typing import Array
from oxigrad.ops.backends import beneath, namespace, on_host
from oxigrad.ops.core.array_like import array
from oxigrad.ops.core.primitives import along
from oxigrad.ops.core.shapes import position
from oxigrad.ops.numpy import reductions
from oxigrad.ops.scipy_signatures import scipy_signature

__all__ = ["cumulative_simpson", "cumulative_trapezoid", "simpson", "trapezoid"]


@scipy_signature("y, x=None, dx=1.0, axis=-1")
def trapezoid(y: Array, /, x: Array, dx: Array, axis: int) -> Array:
    """The integral along ``axis`` by the trapezoidal rule, over the points ``x`` or with spacing ``dx``.

    Points have shape ``(n,)`` or the shape of ``y``; they are differentiable too.
    """
    return reductions.trapezoid(y, x, dx, axis)


@scipy_signature("y, x=None, dx=1.0, axis=-1, initial=None")
def cumulative_trapezoid(y: Array, /, x: Array, dx: Array, axis: int, initial: float | None) -> Array:
    """The integrals from the first point to each other point by the trapezoidal rule.

    ``initial``, None or 0, is prepended.
    """
    if initial is not None and (np.ndim(plain(initial)) or plain(initial) != 0):
        raise ValueError(f"cumulative_trapezoid: initial is {initial!r}: expected None or 0")
    y, axis = _samples("cumulative_trapezoid", y, axis)
    parts = reductions.trapezoids(y, reductions.spacing("cumulative_trapezoid", y, x, dx, axis), axis)
    return _cumulative(parts, initial, axis)


@scipy_signature("y, x=None, *, dx=1.0, axis=-1")
def simpson(y: Array, /, x: Array, dx: Array, axis: int) -> Array:
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
def cumulative_simpson(y: Array, /, x: Array, dx: Array, axis: int, initial: Array) -> Array:
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


def _samples(name: str, y: Array, axis: int) -> tuple[Array, int]:
    """Samples in floating point, and the axis counted from the front."""
    y = array(y)
    axis = position(axis, y.ndim, name)
    if not y.shape[axis]:
        raise ValueError(f"{name}: found no sample along the axis, expected one at least")
    return y, axis


def _neighbours(spacing: Array, one: slice, other: slice, axis: int) -> tuple[Array, Array]:
    """The distances of two sets of intervals; a scalar distance holds for both."""
    if len(getattr(spacing, "shape", ())) <= axis or spacing.shape[axis] == 1:
        return spacing, spacing
    return spacing[along(axis, one)], spacing[along(axis, other)]


def _last_interval(y: Array, spacing: Array, axis: int) -> Array:
    count = y.shape[axis] - 1
    pair = _neighbours(spacing, slice(count - 1, None), slice(count - 2, count - 1), axis)
    return _below_parabola((y[along(axis, slice(at, at + 1))] for at in (count, count - 1, count - 2)), pair)


def _below_parabola(points: Iterable[Array], spacing: tuple[Array, Array]) -> Array:
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


def _ratio(x: Array, y: Array) -> Array:
    """A ratio that is zero, with its derivatives, if the denominator is zero."""
    if isinstance(y, (int, float)) and y:
        return x / y
    zero = y == 0.0
    return ops.where(zero, 0.0, x / ops.where(zero, 1.0, y))


def _cumulative(parts: Array, initial: Array, axis: int) -> Array:
    """The sums up to each of some integrals, after the initial value."""
    sums = standard.cumulative_sum(parts, axis=axis)
    if initial is None:
        return sums
    shape, initial = (*sums.shape[:axis], 1, *sums.shape[axis + 1 :]), array(initial)
    if tuple(initial.shape) not in ((), shape):
        raise ShapeError(f"found initial of shape {tuple(initial.shape)}, expected a number, or the shape {shape}")
    initial = ops.astype(ops.broadcast_to(initial, shape), sums.dtype, copy=False)
    return ops.concat([initial, sums + initial], axis=axis)
