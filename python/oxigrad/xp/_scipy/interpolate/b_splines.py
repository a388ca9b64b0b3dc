"""Splines as sums of B-splines."""

from typing import Any

import numpy as np

from oxigrad import xp as ops
from oxigrad._typing import Array
from oxigrad.ops.scipy_signatures import scipy_signature
from oxigrad.xp import linalg
from oxigrad.xp._scipy.interpolate.places import columns, floats, host, interval, laid_out, points

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

    def __call__(self, x: Array, nu: int = 0, extrapolate: Any = None) -> Array:
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
    value: Array = (at[:, None] == np.arange(count - 1)) * 1.0
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


def _periodic_knots(x: Array, k: int) -> Array:
    """The knots of a periodic spline: the points, or the places between them for an even degree, on a circle."""
    if k % 2 == 0:
        x = ops.concat([x[:1], (x[1:-1] + x[:-2]) / 2.0, x[-1:]])
    count, steps = x.shape[0] - 1, x[1:] - x[:-1]
    before, after = [x[:1]], [x[-1:]]
    for i in range(k):
        before.insert(0, before[0] - steps[count - 1 - i % count])
        after.append(after[-1] + steps[i % count])
    return ops.concat([*before, x[1:-1], *after])


def _periodic(x: Array, y: Array, k: int) -> tuple[Array, Array]:
    """The knots of a periodic spline, and its coefficients, which repeat as the knots do."""
    if not np.allclose(host(y[0]), host(y[-1]), rtol=1e-5, atol=1e-15):
        raise ValueError("make_interp_spline: bc_type is 'periodic': expected the same first and last value")
    t, count = _periodic_knots(x, k), x.shape[0] - 1
    place = np.arange(count + k) % count
    matrix = ops.matmul(basis(x[:-1], t, k), (place[:, None] == np.arange(count)) * 1.0)
    return t, linalg.solve(matrix, y[:-1])[place]


_CONDITIONS: dict[str, list[tuple[int, Any]]] = {"clamped": [(1, 0.0)], "natural": [(2, 0.0)]}


def _ends(bc_type: Any, k: int) -> list[list[tuple[int, Any]]]:
    """Orders and values of the derivatives at either end."""
    is_open = bc_type is None or (isinstance(bc_type, str) and bc_type == "not-a-knot")
    pair: list[Array] = (
        [None, None] if is_open else [bc_type, bc_type] if isinstance(bc_type, str) else [*(bc_type or ())]
    )
    if len(pair) != 2 or any(isinstance(end, str) and end not in _CONDITIONS for end in pair):
        raise ValueError(
            f"make_interp_spline: bc_type is {bc_type!r}: expected 'not-a-knot', 'periodic', 'clamped', 'natural', "
            "or a pair"
        )
    ends = [[] if end is None else _CONDITIONS[end] if isinstance(end, str) else [*end] for end in pair]
    orders = [order for end in ends for order, _ in end]
    if not all(0 <= order <= k for order in orders):
        raise ValueError(f"make_interp_spline: bc_type has derivatives of orders {orders}, expected 0 to {k}")
    return ends


@scipy_signature("x, y, k=3, t=None, bc_type=None, axis=0, check_finite=True", ignored="check_finite")
def make_interp_spline(x: Array, y: Array, /, k: int, t: Array, bc_type: Any, axis: int) -> BSpline:
    """The spline of degree ``k`` through values ``y`` at points ``x``, a function of these and of the knots ``t``.

    ``bc_type`` is "not-a-knot", "periodic", "clamped", "natural", or a pair: at either end None, one of the last two
    texts, or ``[(order, value), ...]`` of derivatives. It is a function of these values, too.
    """
    is_periodic = isinstance(bc_type, str) and bc_type == "periodic"
    ends = [[], []] if is_periodic else _ends(bc_type, k)
    count = sum(map(len, ends))
    x = points("make_interp_spline", x, 2 if is_periodic else max(k + 1 - count, 2 if count else 0))
    y, row, place = columns("make_interp_spline", y, axis, x.shape[0])
    if is_periodic and t is not None:
        raise NotImplementedError("make_interp_spline: bc_type is 'periodic': found knots, expected t=None")
    if is_periodic and k > 1:
        return BSpline(*_periodic(x, y, k), k, row, place, "periodic")
    if t is not None:
        t = floats(t)
    elif count:
        t = ops.concat([x[:1]] * k + [x] + [x[-1:]] * k)
    else:
        t = knots_of(x, k)
    total = t.shape[0] - k - 1
    if total - x.shape[0] != count:
        raise ValueError(
            f"make_interp_spline: found {t.shape[0]} knots and {count} derivatives, expected "
            f"{x.shape[0] + count + k + 1} knots"
        )
    unit = BSpline(t, np.eye(total), k, (total,), 0)
    rows = [[unit(place, order) for order, _ in end] for place, end in zip((x[:1], x[-1:]), ends, strict=True)]
    values = [
        [ops.broadcast_to(ops.reshape(floats(value), (1, -1)), (1, y.shape[1])) for _, value in end] for end in ends
    ]
    matrix = ops.concat([*rows[0], basis(x, t, k), *rows[1]])
    return BSpline(t, linalg.solve(matrix, ops.concat([*values[0], y, *values[1]])), k, row, place)
