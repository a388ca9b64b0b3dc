"""Rows of the table of special functions: their texts, and building blocks of derivatives that several subjects share.

A row holds the parameters, the docstring, and one derivative for each parameter. A derivative is a function of ``y``,
the result, and of parameters by name, or a text if the derivative does not exist. A function with several results has a
tuple of derivatives for each parameter.
"""

import types
from collections.abc import Callable, Sequence
from typing import Any

from oxigrad import xp as ops
from oxigrad._typing import Array
from oxigrad.xp import where

Row = tuple[Any, ...]

f: Any = types.SimpleNamespace()
"""All special functions by SciPy's names, for the derivatives.

They are the core's functions, and after its import the functions of the table.
"""

for _name in (
    "beta betainc_a betainc_b betaln digamma erf erfc expit gamma gammainc gammaincc gammainc_a gammaln iv polygamma"
).split():
    setattr(f, _name, getattr(ops, _name))

# Arguments without a derivative, for errors.
INTEGER, NO_FORM = "its integer order", "its {}: the derivative has no closed form"
ORDER, A, B = (NO_FORM.format(name) for name in ("order", "parameter a", "parameter b"))


def trunc(n: Array) -> Array:
    """An order, or a count, as SciPy's functions of integers take it: rounded towards zero."""
    return ops.trunc(1.0 * n)


def polynomial(coefficients: Sequence[float], x: Array) -> Array:
    """A polynomial by Horner's rule, coefficients from the constant one on."""
    *rest, y = coefficients
    for coefficient in reversed(rest):
        y = y * x + coefficient
    return y


def near_zero(x: Array, radius: float, coefficients: Sequence[float], beyond: Callable[[Array], Array]) -> Array:
    """A Taylor series within ``radius`` of zero, and ``beyond(x)`` outside.

    Near zero, ``beyond`` loses digits or divides zero by zero.
    """
    near = ops.abs(x) < radius
    return where(near, polynomial(coefficients, where(near, x, 0.0)), beyond(where(near, 2.0 * radius, x)))
