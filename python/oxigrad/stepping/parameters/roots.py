"""The namespace of rules that are called on arrays: a step has its derivative where a mean of squared gradients, or a norm, is zero.

The root of zero has an infinite slope, and that times the zero of a square is NaN. A mean of squares touches zero, where it does not change
to first order, and neither does its root along with it: here the derivative of a root of zero is zero. Values are those of `oxigrad.xp`.
"""

import types
from typing import Any

from oxigrad import xp
from oxigrad._core import BatchLevel, Variable

_RECORDED = (Variable, BatchLevel)


def _sqrt(x: Any) -> Any:
    """`xp.sqrt`, with the derivative zero at zero."""
    if not isinstance(x, _RECORDED):
        return xp.sqrt(x)
    is_zero = x == 0.0
    return xp.where(is_zero, 0.0, xp.sqrt(xp.where(is_zero, 1.0, x)))


def _pow(x1: Any, x2: Any) -> Any:
    """`xp.pow`, with the derivative zero at zero for exponents between 0 and 1."""
    if not any(isinstance(x, _RECORDED) for x in (x1, x2)):
        return xp.pow(x1, x2)
    is_zero = xp.logical_and(x1 == 0.0, xp.logical_and(x2 > 0.0, x2 < 1.0))
    return xp.where(is_zero, 0.0, xp.pow(xp.where(is_zero, 1.0, x1), x2))


# A copy of the module, with its `__getattr__`.
namespace: types.ModuleType = types.ModuleType(xp.__name__, xp.__doc__)
vars(namespace).update({**vars(xp), "sqrt": _sqrt, "pow": _pow})
