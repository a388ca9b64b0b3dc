"""Solutions of equations as functions of the variables that the equations read."""

from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad import Variable
from oxigrad._core import plain
from oxigrad._typing import Array, Tree
from oxigrad.ops.backends import holds_variable


def levels_of(value: Any) -> int:
    """The number of nested tapes that a value is a variable of."""
    levels = 0
    while isinstance(value, Variable):
        levels, value = levels + 1, value.value
    return levels


def corrected(residual: Callable[[Array], Array], x: Array, solve: Callable[[Array], Array]) -> Array:
    """The solution ``x`` of ``residual(x) = 0``, whose value is ``x``, as a function of the variables of the residual.

    ``solve`` multiplies by the inverse of the Jacobian there. Each chord iteration is right to one more order.
    """
    value = residual(x)
    shift = plain(value)
    for level in range(levels := levels_of(value)):
        x = x - solve(value - shift)
        if level + 1 < levels:
            value = residual(x)
    return x


def has_variable(value: Any) -> bool:
    """Whether a value, or an item of a list, tuple or array of objects, is a variable."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        value = [*value.ravel()]
    return any(map(has_variable, value)) if isinstance(value, (list, tuple)) else holds_variable(value)


def plain_tree(value: Any) -> Tree:
    """A value, or a list or tuple of values, without variables."""
    return type(value)([plain_tree(each) for each in value]) if type(value) in (list, tuple) else plain(value)


def check_args(args: Any, name: str) -> tuple[Any, ...]:
    """The further arguments of a solver's function; raises `TypeError` for a number, which is no sequence of them."""
    try:
        return tuple(args)
    except TypeError:
        raise TypeError(f"{name}: args is {args!r}: expected a tuple, such as (a,)") from None
