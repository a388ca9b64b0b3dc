"""The bases of `oxigrad.xp.polynomial`, with the functions of `numpy.polynomial` that evaluate."""

from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad._core import ShapeError
from oxigrad._typing import Array, Function
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core.array_like import array, in_double
from oxigrad.ops.core.standard import prod
from oxigrad.ops.numpy.extras import atleast_1d

# The numbers a, b and c of ``p[n + 1] = (a * x + b) * p[n] - c * p[n - 1]``.
_Recurrence = Callable[[int], tuple[float, float, float]]


def _coefficients(c: Array, x: Array, tensor: bool) -> Array:
    c, rank = atleast_1d(in_double(c)), len(getattr(x, "shape", ()))
    return ops.reshape(c, (*c.shape, *[1] * rank)) if tensor and rank else c


def _places(x: Array) -> Array:
    return array(x) if isinstance(x, (list, tuple)) else x


def _value(of: _Recurrence, x: Array, c: Array, tensor: bool = True) -> Array:
    """The sum of the polynomials by Clenshaw's recurrence."""
    x = _places(x)
    c = _coefficients(c, x, tensor)
    value: Array = c[-1] + 0.0 * x
    after: Any = 0.0
    for n in range(c.shape[0] - 2, -1, -1):
        a, b, _ = of(n)
        value, after = c[n] + (a * x + b) * value - of(n + 1)[2] * after, value
    return value


def _in_dimensions(of: _Recurrence, is_grid: bool, *places_and_coefficients: Any) -> Any:
    *places, value = places_and_coefficients
    places = [_places(x) for x in places]
    shapes = {tuple(getattr(x, "shape", ())) for x in places}
    if not is_grid and len(shapes) > 1:
        raise ShapeError(f"found places of shapes {sorted(shapes)}, expected one shape")
    for k, x in enumerate(places):
        value = _value(of, x, value, is_grid or k == 0)
    return value


def _named(name: str, doc: str, function: Function) -> Function:
    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = __name__, doc
    return function


class _Basis:
    """A module of `numpy.polynomial` with its functions that evaluate."""

    def __init__(self, module: str, stem: str, of: _Recurrence) -> None:
        self.__name__ = f"numpy.polynomial.{module}"
        self.__dict__.update(vars(getattr(np.polynomial, module)))
        whole = {
            f"{stem}val": (
                "Values at ``x`` of the sum with the coefficients ``c``, from the lowest degree up.",
                lambda x, c, tensor=True: _value(of, x, c, tensor),
            ),
            f"{stem}val2d": ("Values at points (x, y).", lambda x, y, c: _in_dimensions(of, False, x, y, c)),
            f"{stem}val3d": ("Values at points (x, y, z).", lambda x, y, z, c: _in_dimensions(of, False, x, y, z, c)),
            f"{stem}grid2d": ("Values on the grid of x and y.", lambda x, y, c: _in_dimensions(of, True, x, y, c)),
            f"{stem}grid3d": (
                "Values on the grid of x, y and z.",
                lambda x, y, z, c: _in_dimensions(of, True, x, y, z, c),
            ),
        }

        for name, (doc, function) in whole.items():
            setattr(self, name, _named(name, doc, function))


def polyvalfromroots(x: Array, r: Array, tensor: bool = True) -> Array:
    """Values at ``x`` of the polynomial with the roots ``r`` and the leading coefficient one."""
    x = _places(x)
    rank = len(getattr(x, "shape", ()))
    r = _coefficients(r, x, tensor)
    if not tensor and rank >= len(r.shape):
        raise ValueError(f"polyvalfromroots: found x of {rank} dimensions, expected less than {len(r.shape)}")
    return prod(x - r, axis=0)


polynomial: Any = _Basis("polynomial", "poly", lambda n: (1.0, 0.0, 0.0))
polynomial.polyvalfromroots = polyvalfromroots
chebyshev: Any = _Basis("chebyshev", "cheb", lambda n: (2.0 if n else 1.0, 0.0, 1.0))
legendre: Any = _Basis("legendre", "leg", lambda n: ((2 * n + 1) / (n + 1), 0.0, n / (n + 1)))
hermite: Any = _Basis("hermite", "herm", lambda n: (2.0, 0.0, 2.0 * n))
hermite_e: Any = _Basis("hermite_e", "herme", lambda n: (1.0, 0.0, float(n)))
laguerre: Any = _Basis("laguerre", "lag", lambda n: (-1 / (n + 1), (2 * n + 1) / (n + 1), n / (n + 1)))
