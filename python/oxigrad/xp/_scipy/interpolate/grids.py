"""Interpolation of values on a regular grid."""

import itertools
import math
from typing import Any

import numpy as np

from oxigrad import Variable
from oxigrad import xp as ops
from oxigrad._typing import Array
from oxigrad.ops.core.array_like import array
from oxigrad.xp import linalg, moveaxis
from oxigrad.xp._scipy.interpolate.b_splines import basis, knots_of
from oxigrad.xp._scipy.interpolate.places import floats, host, interval, points

__all__ = ["RegularGridInterpolator"]


class RegularGridInterpolator:
    """The function through ``values`` on the grid of ``points``, an array an axis: "linear", or a "cubic" spline.

    Called at places of shape (..., axes) it has values of shape (...). A vector is a list of places, and a tuple has
    one array of coordinates for each axis. Beyond the grid it raises `ValueError` if
    ``bounds_error``, is ``fill_value``, or where that is None is extrapolated. It is a function of ``points``,
    ``values`` and the places.
    """

    def __init__(
        self, points: Any, values: Any, method: str = "linear", bounds_error: bool = True, fill_value: Array = math.nan
    ) -> None:
        if method not in ("linear", "cubic"):
            raise NotImplementedError(f"RegularGridInterpolator: method is {method!r}: expected 'linear' or 'cubic'")
        self.grid: tuple[Array, ...] = tuple(_points(each, 4 if method == "cubic" else 2) for each in points)
        self.values: Array = floats(values)
        self.method: str = method
        self.bounds_error: bool = bounds_error
        self.fill_value: Any = fill_value
        sizes = tuple(axis.shape[0] for axis in self.grid)
        if tuple(self.values.shape[: len(sizes)]) != sizes:
            raise ValueError(
                f"RegularGridInterpolator: found values of shape {tuple(self.values.shape)}, expected {sizes} first"
            )

    def __call__(self, xi: Array, method: str | None = None) -> Array:
        """The values at places ``xi``."""
        if method not in (None, self.method):
            raise NotImplementedError(f"RegularGridInterpolator: method is {method!r}: expected {self.method!r}")
        if isinstance(xi, tuple) and len(xi) == 1:  # as in SciPy: an array of places, not its only coordinate
            xi = xi[0]
        if is_tuple := isinstance(xi, tuple):
            xi = ops.stack(
                np.broadcast_arrays(*xi) if not any(isinstance(each, Variable) for each in xi) else [*map(array, xi)],
                axis=-1,
            )
        xi, axes = floats(xi), len(self.grid)
        if not is_tuple and len(xi.shape) == 1 and xi.shape[0] % axes == 0:
            xi = ops.reshape(xi, (-1, axes))
        shape = tuple(xi.shape[:-1])
        if tuple(xi.shape[-1:]) != (axes,):
            raise ValueError(
                f"RegularGridInterpolator: found places of shape {tuple(xi.shape)}, expected {axes} numbers along the "
                "last axis"
            )
        xi = ops.reshape(xi, (-1, axes))
        outside = np.zeros(xi.shape[0], bool)
        for k, (grid, at) in enumerate(zip(self.grid, host(xi).T, strict=True)):
            low, high = host(grid)[[0, -1]]
            beyond = (at < low) | (at > high)
            if self.bounds_error and beyond.any():
                raise ValueError(f"RegularGridInterpolator: found a place outside of the grid along axis {k}")
            outside |= beyond
        value = self._linear(xi) if self.method == "linear" else self._cubic(xi)
        if self.fill_value is not None and outside.any():
            value = ops.where(outside.reshape(-1, *(1,) * (len(value.shape) - 1)), self.fill_value, value)
        return ops.reshape(value, (*shape, *self.values.shape[axes:]))

    def _linear(self, xi: Array) -> Array:
        trailing = (1,) * (len(self.values.shape) - len(self.grid))
        places, shares = [], []
        for k, grid in enumerate(self.grid):
            at = interval(host(grid), host(xi[:, k]), 0, grid.shape[0] - 2)
            share = (xi[:, k] - grid[at]) / (grid[at + 1] - grid[at])
            places.append(at)
            shares.append(ops.reshape(share, (-1, *trailing)))
        total: Array = 0.0
        for corner in itertools.product((0, 1), repeat=len(self.grid)):
            term = self.values[tuple(at + side for at, side in zip(places, corner, strict=True))]
            for share, side in zip(shares, corner, strict=True):
                term = term * (share if side else 1.0 - share)
            total = total + term
        return total

    def _cubic(self, xi: Array) -> Array:
        value = self.values
        knots = [knots_of(grid, 3) for grid in self.grid]
        for k, (grid, t) in enumerate(zip(self.grid, knots, strict=True)):
            first = moveaxis(value, k, 0)
            flat = linalg.solve(basis(grid, t, 3), ops.reshape(first, (first.shape[0], -1)))
            value = moveaxis(ops.reshape(flat, tuple(first.shape)), 0, k)
        rows = [basis(xi[:, k], t, 3) for k, t in enumerate(knots)]
        flat = ops.matmul(rows[0], ops.reshape(value, (value.shape[0], -1)))
        value = ops.reshape(flat, (flat.shape[0], *value.shape[1:]))
        for row in rows[1:]:
            spread = ops.reshape(row, (*row.shape, *(1,) * (len(value.shape) - 2)))
            value = ops.sum(spread * value, axis=1)
        return value


def _points(x: Array, least: int) -> Array:
    return points("RegularGridInterpolator", x, least)
