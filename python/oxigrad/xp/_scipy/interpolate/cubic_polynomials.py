"""Piecewise cubic polynomials through points: splines, and monotonic ones."""

import operator
from typing import Any

import numpy as np

from oxigrad import xp as ops
from oxigrad._typing import Array
from oxigrad.xp import linalg
from oxigrad.xp._scipy.interpolate.places import columns, floats, host, interval, laid_out, points

__all__ = ["CubicSpline", "PchipInterpolator"]


def _checked(extrapolate: Any) -> Any:
    if extrapolate not in (None, True, False, "periodic"):
        raise ValueError(f"extrapolate is {extrapolate!r}: expected True, False, None or 'periodic'")
    return extrapolate


class Piecewise:
    """A piecewise polynomial: ``c`` has its coefficients, of shape (degree + 1, intervals, ...), ``x`` the breaks.

    Called at ``t``, it returns the values or the derivatives of order ``nu``. In their shape, the shape of ``t``
    replaces the axis of the points.
    """

    def __init__(self, c: Array, x: Array, extrapolate: Any, row: tuple[int, ...], place: int) -> None:
        self._c, self._row = c, row
        self.x: Array = x
        self.extrapolate: Any = _checked(extrapolate)
        self.axis: int = place

    @property
    def c(self) -> Array:
        """The coefficients, from the highest power on."""
        return ops.reshape(self._c, (*self._c.shape[:2], *self._row))

    def __call__(self, t: Array, nu: int = 0, extrapolate: Any = None) -> Array:
        """The values at ``t``, or derivatives by it."""
        if nu:
            return self.derivative(nu)(t, 0, extrapolate)
        extrapolate = self.extrapolate if extrapolate is None else _checked(extrapolate)
        t = floats(t)
        shape, breaks = tuple(t.shape), host(self.x)
        t = ops.reshape(t, (-1,))
        if extrapolate == "periodic":
            periods = np.floor((host(t) - breaks[0]) / (breaks[-1] - breaks[0]))
            t = t - periods * (self.x[-1] - self.x[0])
        at = interval(breaks, host(t), 0, len(breaks) - 2)
        change = ops.reshape(t - self.x[at], (-1, 1))
        value = self._c[0][at]
        for k in range(1, self._c.shape[0]):
            value = value * change + self._c[k][at]
        if not extrapolate:
            outside = (host(t) < breaks[0]) | (host(t) > breaks[-1])
            value = ops.where(outside[:, None], np.nan, value)
        return laid_out(value, shape, self._row, self.axis)

    def derivative(self, nu: int = 1) -> "Piecewise":
        """The piecewise polynomial that is the derivative of order ``nu``. Raises `ValueError` for a negative one."""
        if operator.index(nu) < 0:
            raise ValueError(f"nu is {nu}: expected a whole number, at least 0; antiderivative() is the integral")
        c = self._c
        for _ in range(nu):
            degree = c.shape[0] - 1
            c = c[:-1] * np.arange(degree, 0, -1.0)[:, None, None] if degree else 0.0 * c
        return Piecewise(c, self.x, self.extrapolate, self._row, self.axis)

    def antiderivative(self) -> "Piecewise":
        """The integral from the first break, a piecewise polynomial."""
        powers = np.arange(self._c.shape[0], 0, -1.0)[:, None, None]
        c = self._c / powers
        size = ops.reshape(self.x[1:] - self.x[:-1], (-1, 1))
        whole: Array = 0.0 * c[0]
        for k in range(c.shape[0]):
            whole = (whole + c[k]) * size
        before = np.tril(np.ones((whole.shape[0],) * 2), -1)
        starts = ops.expand_dims(ops.matmul(before, whole), axis=0)
        return Piecewise(ops.concat([c, starts]), self.x, self.extrapolate, self._row, self.axis)

    def integrate(self, a: Array, b: Array) -> Array:
        """The integral from ``a`` to ``b``."""
        if self.extrapolate == "periodic":
            raise NotImplementedError("integrate: extrapolate is 'periodic': expected True or False")
        whole = self.antiderivative()
        return whole(b) - whole(a)


def _of_slopes(
    x: Array, y: Array, slopes: Array, extrapolate: Any, row: tuple[int, ...], place: int
) -> tuple[Array, ...]:
    """The arguments of a `Piecewise` with these values and slopes at the breaks."""
    size = ops.reshape(x[1:] - x[:-1], (-1, 1))
    mean = (y[1:] - y[:-1]) / size
    third = (slopes[:-1] + slopes[1:] - 2.0 * mean) / size
    c = ops.stack([third / size, (mean - slopes[:-1]) / size - third, slopes[:-1], y[:-1]])
    return c, x, extrapolate, row, place


class CubicSpline(Piecewise):
    """The cubic spline through ``y`` at ``x``, by ``bc_type``: "not-a-knot", "periodic", "clamped", "natural", a pair.

    An item of the pair is one of these texts but "periodic", or ``(order, value)`` of a derivative at the end. It is a
    function of ``x``, ``y`` and these values, and has SciPy's.
    """

    def __init__(self, x: Array, y: Array, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None) -> None:
        x = points("CubicSpline", x)
        y, row, place = columns("CubicSpline", y, axis, x.shape[0])
        extrapolate = extrapolate if extrapolate is not None else "periodic" if bc_type == "periodic" else True
        slopes = _periodic(x, y) if bc_type == "periodic" else _spline(x, y, _ends(bc_type))
        super().__init__(*_of_slopes(x, y, slopes, extrapolate, row, place))


_CONDITIONS: dict[str, Any] = {"not-a-knot": None, "clamped": (1, 0.0), "natural": (2, 0.0)}


def _ends(bc_type: Any) -> list[Any]:
    pair = [bc_type, bc_type] if isinstance(bc_type, str) else [*bc_type]
    for end in pair:
        if not (end in _CONDITIONS if isinstance(end, str) else len(end) == 2 and end[0] in (1, 2)):
            raise ValueError(
                f"CubicSpline: bc_type is {bc_type!r}: expected 'not-a-knot', 'periodic', 'clamped', 'natural', or a "
                "pair"
            )
    if len(pair) != 2:
        raise ValueError(f"CubicSpline: bc_type is {bc_type!r}: expected one condition, or two")
    return [_CONDITIONS[end] if isinstance(end, str) else end for end in pair]


def _spline(x: Array, y: Array, ends: list[Array]) -> Array:
    """The slopes of a spline: they solve a tridiagonal system."""
    size = x[1:] - x[:-1]
    mean = (y[1:] - y[:-1]) / ops.reshape(size, (-1, 1))
    count = x.shape[0]
    if count == 2:
        ends = [(1, mean[0]) if end is None else end for end in ends]
    if count == 3 and ends == [None, None]:
        inner = (size[1] * mean[0] + size[0] * mean[1]) / (size[0] + size[1])
        return ops.stack([2.0 * mean[0] - inner, inner, 2.0 * mean[1] - inner])
    first = _end(ends[0], x, y, size, mean)
    flipped = (-x[::-1], y[::-1], size[::-1], -mean[::-1])
    last = _end(_mirrored(ends[1]), *flipped)
    column = ops.reshape(size, (-1, 1))
    inner = 3.0 * (column[1:] * mean[:-1] + column[:-1] * mean[1:])
    one = lambda value: ops.reshape(  # noqa: E731
        value * 1.0 if hasattr(value, "shape") else np.asarray(value * 1.0), (1,)
    )
    upper = ops.concat([np.zeros(1), one(first[1]), size[:-1]])
    middle = ops.concat([one(first[0]), 2.0 * (size[:-1] + size[1:]), one(last[0])])
    lower = ops.concat([size[1:], one(last[1]), np.zeros(1)])
    row = (1, y.shape[1])
    right = ops.concat([ops.reshape(first[2], row), inner, -ops.reshape(last[2], row)])
    return linalg.solve_banded((1, 1), ops.stack([upper, middle, lower]), right)


def _mirrored(end: Any) -> Any:
    """A condition at the other end: of the reversed function a slope has the other sign."""
    return (1, -1.0 * end[1]) if end is not None and end[0] == 1 else end


def _end(end: Any, x: Array, y: Array, size: Array, mean: Array) -> tuple[Array, Array, Array]:
    """The coefficients of the first two slopes, and the right-hand side, of the equation at the first point."""
    if end is None:
        both = x[2] - x[0]
        right = ((size[0] + 2.0 * both) * size[1] * mean[0] + size[0] ** 2 * mean[1]) / both
        return size[1], both, right
    order, value = end
    value = ops.broadcast_to(ops.reshape(floats(value), (-1,)), (y.shape[1],))
    if order == 1:
        return 1.0, 0.0, value
    return 2.0 * size[0], size[0], 3.0 * (y[1] - y[0]) - 0.5 * value * size[0] ** 2


def _periodic(x: Array, y: Array) -> Array:
    """The slopes of a periodic spline, the last of which is the first."""
    if not np.allclose(host(y[0]), host(y[-1]), rtol=1e-15, atol=1e-15):
        raise ValueError("CubicSpline: bc_type is 'periodic': expected the same first and last value")
    size = ops.reshape(x[1:] - x[:-1], (-1, 1))
    mean = (y[1:] - y[:-1]) / size
    before, mean_before = ops.concat([size[-1:], size[:-1]]), ops.concat([mean[-1:], mean[:-1]])
    unit = np.eye(size.shape[0])
    matrix = size * np.roll(unit, -1, 1) + 2.0 * (size + before) * unit + before * np.roll(unit, 1, 1)
    slopes = linalg.solve(matrix, 3.0 * (size * mean_before + before * mean))
    return ops.concat([slopes, slopes[:1]])


class PchipInterpolator(Piecewise):
    """The piecewise cubic polynomial through ``y`` at ``x``, monotonic where ``y`` is, of Fritsch and Butland.

    Its derivatives by ``x`` and ``y`` exist where no two neighbouring differences of values change signs.
    """

    def __init__(self, x: Array, y: Array, axis: int = 0, extrapolate: Any = None) -> None:
        x = points("PchipInterpolator", x)
        y, row, place = columns("PchipInterpolator", y, axis, x.shape[0])
        slopes = _monotonic(x, y)
        super().__init__(*_of_slopes(x, y, slopes, True if extrapolate is None else extrapolate, row, place))


def _monotonic(x: Array, y: Array) -> Array:
    size = ops.reshape(x[1:] - x[:-1], (-1, 1))
    mean = (y[1:] - y[:-1]) / size
    if x.shape[0] == 2:
        return ops.concat([mean, mean])
    one, other = mean[:-1], mean[1:]
    is_flat = np.sign(host(one)) * np.sign(host(other)) <= 0.0
    late, early = 2.0 * size[1:] + size[:-1], size[1:] + 2.0 * size[:-1]
    safe = [ops.where(is_flat, 1.0, each) for each in (one, other)]
    inner = ops.where(is_flat, 0.0, (late + early) / (late / safe[0] + early / safe[1]))
    first = _at_edge(size[0], size[1], mean[0], mean[1])
    last = _at_edge(size[-1], size[-2], mean[-1], mean[-2])
    return ops.concat([ops.expand_dims(first, axis=0), inner, ops.expand_dims(last, axis=0)])


def _at_edge(size: Array, next_size: Array, mean: Array, next_mean: Array) -> Array:
    slope = ((2.0 * size + next_size) * mean - size * next_mean) / (size + next_size)
    turns = np.sign(host(slope)) != np.sign(host(mean))
    is_steep = (np.sign(host(mean)) != np.sign(host(next_mean))) & (np.abs(host(slope)) > 3.0 * np.abs(host(mean)))
    return ops.where(turns, 0.0, ops.where(is_steep, 3.0 * mean, slope))
