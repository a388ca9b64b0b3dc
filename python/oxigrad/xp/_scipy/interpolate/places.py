"""Points and values of interpolation, and the layout of values along an axis."""

import numpy as np

from oxigrad import xp as ops
from oxigrad._core import plain
from oxigrad._typing import Array
from oxigrad.ops.backends import fetched
from oxigrad.ops.core.array_like import array
from oxigrad.ops.core.shapes import position
from oxigrad.xp import moveaxis


def host(x: Array) -> np.ndarray:
    """The plain values of an array, on the host."""
    return np.asarray(fetched(plain(x)))


def points(name: str, x: Array, least: int = 2) -> Array:
    """Points in floating point. Raises `ValueError` unless there are enough, of shape (n,), finite, that increase."""
    x = floats(x)
    _check_finite(name, "points x", x)
    if host(x).dtype.kind == "c":
        raise ValueError(f"{name}: found complex points x, expected real ones")
    if len(x.shape) != 1 or x.shape[0] < least:
        raise ValueError(f"{name}: found points of shape {tuple(x.shape)}, expected (n,) with n at least {least}")
    if not np.all(np.diff(host(x)) > 0.0):
        raise ValueError(f"{name}: found points x that do not increase")
    return x


def _check_finite(name: str, what: str, x: Array) -> None:
    if not np.isfinite(host(x)).all():
        raise ValueError(f"{name}: found {what} that are infinite or NaN, expected finite ones")


def floats(x: Array) -> Array:
    """An array in floating point."""
    x = array(x)
    return x if host(x).dtype.kind in "fc" else x * 1.0


def columns(name: str, y: Array, axis: int, count: int) -> tuple[Array, tuple[int, ...], int]:
    """Values as a matrix with a row for each point.

    The shape of a row, and the axis of the points counted from the front.
    """
    y = floats(y)
    place = position(axis, len(y.shape), name) if y.shape else 0
    if not y.shape or y.shape[place] != count:
        raise ValueError(f"{name}: found values of shape {tuple(y.shape)}, expected {count} along axis {axis}")
    _check_finite(name, "values y", y)
    y = moveaxis(y, place, 0)
    return ops.reshape(y, (count, -1)), tuple(y.shape[1:]), place


def laid_out(value: Array, shape: tuple[int, ...], row: tuple[int, ...], place: int) -> Array:
    """A matrix with a row for each place of ``shape``, whose axes stand at the axis of the points."""
    value = ops.reshape(value, (*shape, *row))
    order = [
        *range(len(shape), len(shape) + place),
        *range(len(shape)),
        *range(len(shape) + place, len(shape) + len(row)),
    ]
    return ops.permute_dims(value, tuple(order)) if len(order) > 1 else value


def interval(breaks: np.ndarray, at: np.ndarray, first: int, last: int) -> np.ndarray:
    """The interval between two breaks that each place lies in, from ``first`` to ``last``."""
    return np.clip(np.searchsorted(breaks, at, side="right") - 1, first, last)
