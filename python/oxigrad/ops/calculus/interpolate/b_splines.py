"""Splines as sums of B-splines."""

from typing import Any

import numpy as np

from oxigrad._typing import Array
from oxigrad.ops import linalg
from oxigrad.ops.calculus.interpolate.places import columns, floats, host, interval, laid_out, points
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.scipy_signatures import scipy_signature

__all__ = ["make_interp_spline"]


class BSpline:
    """A spline of degree ``k`` with knots ``t`` and coefficients ``c``.

    Called at ``x`` it has the values, or derivatives of order ``nu``.
    """

    def __init__(self, t: Array, c: Array, k: int, row: tuple[int, ...], place: int, extrapolate: Any = True) -> None:
        self._c, self._row = c, row
        self.t: Array = t
        self.k: int = k
        self.axis: int = place
        self.extrapolate: Any = extrapolate

    @property
    def c(self) -> Array:
        """The coefficients, along the first axis."""
        return ops.reshape(self._c, (self._c.shape[0], *self._row))

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Array:
        """The values at ``x``, or derivatives by it."""
        if nu:
            return self.derivative(nu)(x, 0, extrapolate)
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        x = floats(x)
        flat, knots = ops.reshape(x, (-1,)), host(self.t)
        low, high = knots[self.k], knots[len(knots) - self.k - 1]
        if extrapolate == "periodic":
            flat = flat - np.floor((host(flat) - low) / (high - low)) * (
                self.t[len(knots) - self.k - 1] - self.t[self.k]
            )
        value = ops.matmul(basis(flat, self.t, self.k), self._c)
        if not extrapolate:
            value = ops.where(((host(flat) < low) | (host(flat) > high))[:, None], np.nan, value)
        return laid_out(value, tuple(x.shape), self._row, self.axis)

    def derivative(self, nu: int = 1) -> "BSpline":
        """The spline that is the derivative of order ``nu``."""
        t, c, k = self.t, self._c, self.k
        for _ in range(nu):
            if not k:
                c = 0.0 * c
                continue
            width = t[k + 1 : -1] - t[1 : t.shape[0] - k - 1]
            is_empty = host(width) == 0.0
            change = k / ops.where(is_empty, 1.0, width)
            c = ops.reshape(ops.where(is_empty, 0.0, change), (-1, 1)) * (c[1:] - c[:-1])
            t, k = t[1:-1], k - 1
        return BSpline(t, c, k, self._row, self.axis, self.extrapolate)


def basis(x: Array, t: Array, k: int) -> Array:
    """The values of all B-splines at points of shape (n,), by Cox and de Boor's recursion.

    Beyond the ends of the last polynomials.
    """
    knots, count = host(t), t.shape[0]
    at = interval(knots, host(x), k, count - k - 2)
    value: Any = (at[:, None] == np.arange(count - 1)) * 1.0
    x = ops.reshape(x, (-1, 1))
    for p in range(1, k + 1):
        width = t[p:] - t[:-p]
        rise = ops.where(host(width) == 0.0, 0.0, (x - t[:-p]) / ops.where(host(width) == 0.0, 1.0, width))
        fall = ops.where(host(width) == 0.0, 0.0, (t[p:] - x) / ops.where(host(width) == 0.0, 1.0, width))
        value = rise[:, :-1] * value[:, :-1] + fall[:, 1:] * value[:, 1:]
    return value


def knots_of(x: Array, k: int) -> Array:
    """The knots of an interpolating spline of degree ``k``, none at the points next to the ends: "not-a-knot"."""
    if k == 0:
        return ops.concat([x, x[-1:]])
    half = (k + 1) // 2
    inner = x if k % 2 else (x[1:] + x[:-1]) / 2.0
    inner = inner[half : inner.shape[0] - half] if k % 2 else inner[k // 2 : inner.shape[0] - k // 2]
    return ops.concat([x[:1]] * (k + 1) + [inner] + [x[-1:]] * (k + 1))


@scipy_signature("x, y, k=3, t=None, bc_type=None, axis=0, check_finite=True", ignored="check_finite")
def make_interp_spline(x: Any, y: Any, /, k: int, t: Any, axis: int) -> BSpline:
    """The spline of degree ``k`` through values ``y`` at points ``x``: a function of these and of the knots ``t``."""
    x = points("make_interp_spline", x, k + 1)
    y, row, place = columns("make_interp_spline", y, axis, x.shape[0])
    t = knots_of(x, k) if t is None else floats(t)
    if t.shape[0] != x.shape[0] + k + 1:
        raise ValueError(f"make_interp_spline: found {t.shape[0]} knots, expected {x.shape[0] + k + 1}")
    return BSpline(t, linalg.solve(basis(x, t, k), y), k, row, place)
