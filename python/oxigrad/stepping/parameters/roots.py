"""The namespace of rules that are called on arrays: a step has its derivative where a mean of squared gradients, or a norm, is zero.

The root of zero has an infinite slope, and that times the zero of a square is NaN. A mean of squares touches zero, where it does not change
to first order, and neither does its root along with it: here the derivative of a root of zero is zero. Values are those of `oxigrad.xp`.
"""

import contextlib
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from oxigrad import xp
from oxigrad._core import BatchLevel, Tape, Variable
from oxigrad.ops.backends import beneath, defers, is_array

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


class Constants:
    """The plain arrays that a step with derivatives computes with, as variables of a ``tape``; as they are where that is None."""

    def __init__(self, tape: Tape | None) -> None:
        self._tape = tape
        #: The namespace for rules: signs and choices by masks are plain arrays too.
        self.namespace: Any = namespace
        if tape is not None:
            self.namespace = types.ModuleType(xp.__name__, xp.__doc__)
            watching = {name: self._watching(getattr(xp, name)) for name in ("sign", "where")}
            vars(self.namespace).update({**vars(namespace), **watching})

    def _watching(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: self.watch(function(*args))

    def watch(self, value: Any) -> Any:
        """The array, for the rule; anything else as it is."""
        if self._tape is None or not is_array(value) or isinstance(value, _RECORDED):
            return value
        return self._tape.watch(value)

    def value_of(self, result: Any) -> Any:
        """The value of a result of the rule."""
        is_on_tape = self._tape is not None and isinstance(result, Variable) and self._tape.owns(result)
        return result.value if is_on_tape else result


@contextlib.contextmanager
def constants(operands: Sequence[Sequence[Any]]) -> Iterator[Constants]:
    """The arrays of leaves, whose ``operands`` begin with the parameter.

    They are variables where a library computes ``array * variable`` itself, and raises.
    """
    if all(defers(beneath(of_leaf[0])) for of_leaf in operands) or not any(
        isinstance(operand, _RECORDED) for of_leaf in operands for operand in of_leaf
    ):
        yield Constants(None)
        return
    with Tape() as tape:
        yield Constants(tape)
