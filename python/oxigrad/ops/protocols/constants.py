"""NumPy's functions called on constants of a tape: arrays of zeros and the like, which a program may fill."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oxigrad import _core
from oxigrad._core import BatchLevel, Variable, assignable

# Functions whose results share no memory with their arguments, and whose bits depend on the order of sums.
_SUMS: set[Any] = {
    *(np.sum, np.mean, np.prod, np.std, np.var, np.average, np.cumsum, np.cumprod, np.trace),
    *(np.nansum, np.nanmean, np.nanprod, np.nanstd, np.nanvar, np.dot, np.vdot, np.inner, np.outer, np.tensordot),
    *(np.kron, np.cross, np.convolve, np.correlate, np.linalg.norm, np.linalg.inv, np.linalg.solve, np.linalg.det),
}


def call(function: Callable[..., Any], args: Sequence[Any], named: dict[str, Any]) -> Any:
    """The result of the function itself, as of plain arrays; NotImplemented where not all are constants."""
    if function not in _SUMS:
        return NotImplemented
    variables = [value for value in (*args, *named.values()) if isinstance(value, Variable)]
    if not variables or not all(map(_core.is_constant, variables)):
        return NotImplemented
    values = [_core.value_of_constant(arg) for arg in args]
    by_name = {name: _core.value_of_constant(value) for name, value in named.items()}
    taken = (np.ndarray, np.generic, BatchLevel, int, float, complex, tuple, str, type(None), type, np.dtype)
    if named.get("out") is not None or not all(isinstance(value, taken) for value in (*values, *by_name.values())):
        return NotImplemented
    result = function(*values, **by_name)
    return assignable(result) if np.ndim(result) else result
