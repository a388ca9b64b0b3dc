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


def namespace_of(tape: Tape | None) -> Any:
    """The namespace for rules; with a ``tape``, signs and choices by masks are its variables too."""
    if tape is None:
        return _NAMESPACE
    namespace = types.ModuleType(xp.__name__, xp.__doc__)
    watching = {name: _watching(tape, getattr(xp, name)) for name in ("sign", "where")}
    vars(namespace).update({**vars(_NAMESPACE), **watching})
    return namespace


def _watching(tape: Tape, function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: watched(tape, function(*args))


def watched(tape: Tape, value: Any) -> Any:
    """An array as a variable of a tape; anything else, and a recorded value, as it is."""
    return value if not is_array(value) or isinstance(value, RECORDED) else tape.watch(value)


def value_of(tape: Tape | None, result: Any) -> Any:
    """The value of a result of a rule, whose operands are variables of the tape if there is one."""
    return result.value if tape is not None and isinstance(result, Variable) and tape.owns(result) else result


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
def rule_tape(parameters: Sequence[Any], is_recorded: Callable[[], bool]) -> Iterator[Tape | None]:
    """The `neutral` block of the rules of these parameters, with a tape for their arrays if one is needed.

    ``is_recorded`` returns whether an operand is recorded. Beside recorded operands, plain arrays are variables where
    their library computes ``array * variable`` itself, and raises. Other libraries are not asked.
    """
    with neutral(parameters, is_recorded):
        if all(map(defers, map(beneath, parameters))) or not is_recorded():
            yield None
            return
        with Tape() as tape:
            yield tape
