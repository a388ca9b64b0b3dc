"""Ops with an operand of no array library: constant matrices of SciPy, and arrays that are converted or refused.

Operators, functions and methods share this one rule. The core calls it once for each class of operands, before it
computes.
"""

from typing import Any

from oxigrad._core import record
from oxigrad.ops.backends import converted, is_array_like, is_foreign, is_matrix
from oxigrad.ops.protocols import constant_matrices

_COMPARISONS = ("equal", "not_equal")


def computed(name: str, args: tuple[Any, ...], named: dict[str, Any] | None, is_operator: bool) -> Any:
    """The result of an op. NotImplemented leaves an operator to the other operand, and a comparison to Python.

    Raises `DtypeError` for an operand that is neither a matrix of SciPy nor an array that is converted.
    """
    if any(map(is_matrix, args)):
        return constant_matrices.computed(name, args, is_operator=is_operator)
    is_left = is_operator or name in _COMPARISONS
    if is_left and not all(is_array_like(arg) for arg in args if is_foreign(arg)):
        return NotImplemented
    arrays = [converted(arg, f"{name}: argument {at}") if is_foreign(arg) else arg for at, arg in enumerate(args)]
    return record(name, arrays, named)
