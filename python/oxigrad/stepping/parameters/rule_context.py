"""The context in which rules are called on arrays: their namespace, and how arrays enter and leave.

A step has its derivative where a mean of squared gradients, or a norm, is zero. The root of zero has an infinite slope,
and that times the zero of a square is NaN. A mean of squares touches zero, where it does not change to first order, and
neither does its root along with it: here the derivative of a root of zero is zero. Values are those of `oxigrad.xp`.
"""

import contextlib
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from oxigrad import xp
from oxigrad._core import BatchLevel, Tape, Variable
from oxigrad.ops.backends import Adapter, adapter_of, beneath, defers, is_array

#: Classes of values whose computations are recorded.
RECORDED = (Variable, BatchLevel)


def _sqrt(x: Any) -> Any:
    """`xp.sqrt`, with the derivative zero at zero."""
    if not isinstance(x, RECORDED):
        return xp.sqrt(x)
    is_zero = x == 0.0
    return xp.where(is_zero, 0.0, xp.sqrt(xp.where(is_zero, 1.0, x)))


def _pow(x1: Any, x2: Any) -> Any:
    """`xp.pow`, with the derivative zero at zero for exponents between 0 and 1."""
    if not any(isinstance(x, RECORDED) for x in (x1, x2)):
        return xp.pow(x1, x2)
    is_zero = xp.logical_and(x1 == 0.0, xp.logical_and(x2 > 0.0, x2 < 1.0))
    return xp.where(is_zero, 0.0, xp.pow(xp.where(is_zero, 1.0, x1), x2))


# A copy of the module, with its `__getattr__`.
_NAMESPACE = types.ModuleType(xp.__name__, xp.__doc__)
vars(_NAMESPACE).update({**vars(xp), "sqrt": _sqrt, "pow": _pow})


class RuleContext:
    """The ``namespace`` of rules, and their arrays, plain ones as variables of a ``tape`` unless that is None."""

    def __init__(self, tape: Tape | None) -> None:
        self._tape = tape
        #: The namespace for rules: signs and choices by masks are plain arrays too.
        self.namespace: Any = _NAMESPACE
        if tape is not None:
            self.namespace = types.ModuleType(xp.__name__, xp.__doc__)
            watching = {name: self._watching(getattr(xp, name)) for name in ("sign", "where")}
            vars(self.namespace).update({**vars(_NAMESPACE), **watching})

    def _watching(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: self.watch(function(*args))

    def watch(self, value: Any) -> Any:
        """The array, for the rule; anything else as it is."""
        if self._tape is None or not is_array(value) or isinstance(value, RECORDED):
            return value
        return self._tape.watch(value)

    def value_of(self, result: Any) -> Any:
        """The value of a result of the rule."""
        is_on_tape = self._tape is not None and isinstance(result, Variable) and self._tape.owns(result)
        return result.value if is_on_tape else result


@contextlib.contextmanager
def neutral(parameters: Iterable[Any], is_recorded: Callable[[], bool] = bool) -> Iterator[None]:
    """A block in which rules compute the same in every mode of the thread, infinities and NaN as in a kernel.

    ``is_recorded`` returns whether derivatives of the rules may follow after the block; by default False.
    """
    by_library: dict[Adapter, list[Any]] = {}
    for array in map(beneath, parameters):
        by_library.setdefault(adapter_of(array), []).append(array)
    with np.errstate(all="ignore"), contextlib.ExitStack() as blocks:
        for adapter, arrays in by_library.items():
            blocks.enter_context(adapter.neutral(arrays, is_recorded))
        yield


@contextlib.contextmanager
def rule_context(parameters: Sequence[Any], is_recorded: Callable[[], bool]) -> Iterator[RuleContext]:
    """The `neutral` context of the rules of these parameters; ``is_recorded`` returns whether an operand is recorded.

    Plain arrays are variables beside recorded operands where a library computes ``array * variable`` itself, and
    raises. The question is asked for libraries alone that need it.
    """
    with neutral(parameters, is_recorded):
        if all(map(defers, map(beneath, parameters))) or not is_recorded():
            yield RuleContext(None)
            return
        with Tape() as tape:
            yield RuleContext(tape)
