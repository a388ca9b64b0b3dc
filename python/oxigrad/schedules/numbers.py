"""Numbers in the arguments of schedules: read from arrays without axes, and checked."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad._core import Variable, is_inexact
from oxigrad.ops.backends import fetched, is_array, is_complex, namespace


def number(value: Any) -> int | float:
    """The value as a Python number: any real number, or a 0-d array of any library.

    Args:
        value: real number, or array of any library with one element and no axes.

    Raises `TypeError` for anything else.

    >>> import numpy as np
    >>> number(np.array(0.5)), number(np.int64(3))
    (0.5, 3)
    """
    if type(value) in (int, float):
        return value
    if isinstance(value, Variable):
        raise TypeError(f"found the variable {value!r}: expected a number, or a function of the step")
    if isinstance(value, (bool, np.complexfloating)) or not hasattr(value, "__float__"):
        raise TypeError(f"found {value!r}: expected a number")
    if not is_array(value):
        return float(value)
    inexact = is_inexact(value)
    integral = not inexact and namespace(value).isdtype(value.dtype, "integral")
    if tuple(value.shape) != () or not (inexact or integral):
        raise TypeError(f"found an array of shape {tuple(value.shape)} and dtype {value.dtype}: expected a number")
    try:
        here = fetched(value)
        return int(here) if integral else float(here)
    except RecursionError:
        raise
    except (AttributeError, RuntimeError, TypeError, ValueError):  # it is complex, or traced
        raise TypeError(f"found {value!r}: expected a number") from None


def is_traced(value: Any) -> bool:
    """Whether the value is a real 0-d array that a library traces, as ``jax.jit`` does, and that cannot be read."""
    if isinstance(value, (int, float, Variable)) or not (is_array(value) and is_inexact(value)) or tuple(value.shape):
        return False
    if is_complex(value):
        return False
    try:
        float(fetched(value))
    except RecursionError:
        raise
    except (AttributeError, RuntimeError, TypeError, ValueError):
        return True
    return False


def _check(values: dict[str, Any], holds: Callable[[float], bool], expected: str) -> None:
    for name, value in values.items():
        try:
            is_right = holds(number(value))
        except TypeError as error:
            raise TypeError(f"{name}: {error}") from None
        if not is_right:
            raise ValueError(f"{name} is {value}: expected {expected}")


def finite(**values: float) -> None:
    """Raises `ValueError`, by name, if one of the numbers is not finite; `TypeError` for anything but a number."""
    _check(values, math.isfinite, "a finite number")


def positive(**values: float) -> None:
    """As `finite`, for positive numbers."""
    _check(values, lambda value: 0 < value < math.inf, "a positive number")


def count_steps(**values: float) -> None:
    """As `finite`, for numbers of steps, at least 1."""
    _check(values, lambda value: 1 <= value < math.inf, "a number of steps, at least 1")


def numbers(name: str, values: Any) -> list[int | float]:
    """The list of numbers in an argument; raises `TypeError`, with its name, for anything but numbers in order."""
    try:
        return [number(value) for value in values]
    except TypeError:
        raise TypeError(f"{name} is {values!r}: expected a sequence of numbers") from None
