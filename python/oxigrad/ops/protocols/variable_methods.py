"""Methods of variables that are implemented in Python: iteration, rounding, formatting and transposition."""

import functools
import opcode
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from oxigrad._core import is_inexact
from oxigrad._typing import Array
from oxigrad.ops.backends import fetched, is_array, is_complex
from oxigrad.ops.core import primitives
from oxigrad.ops.protocols.foreign_calls import refuse_float_of_scipy


def complex_number(value: complex) -> Any:
    """A Python complex number, of a recording too, as a NumPy scalar, which has a shape and a dtype."""
    return np.positive(value)


def transpose(x: Array) -> Array:
    """The dimensions in reverse order, as in NumPy: the transpose of a matrix."""
    return primitives.permute_dims(x)


def formatted(value: Any, spec: str) -> str:
    """The formatted plain value of a variable, for ``f"{x:.3f}"``."""
    if shape := tuple(getattr(value, "shape", ())):
        raise TypeError(f"format {spec!r}: found a variable of shape {shape}, expected a scalar: format its elements")
    if is_array(value):
        value = fetched(value)
        value = complex(value) if is_complex(value) else float(value) if is_inexact(value) else int(value)
    return format(value, spec)


def is_formatting() -> bool:
    """Whether ``float(x)`` is called by the operator ``%`` of a string.

    Only strings and bytes call ``float`` for ``%``: for numbers and arrays the variable's own operator is called.
    Raises `TypeError` in functions of SciPy, which names the function for variables.
    """
    frame = sys._getframe(1)
    refuse_float_of_scipy(frame)
    code, at = frame.f_code.co_code, frame.f_lasti
    return 0 <= at < len(code) and tuple(code[at : at + 2]) in _remainders()


@functools.cache
def _remainders() -> frozenset[tuple[int, int]]:
    """The bytecode instructions of ``a % b`` and ``a %= b``."""
    wanted = opcode.opmap["BINARY_OP"]
    codes = [compile(text, "", "exec").co_code for text in ("a % b", "a %= b")]
    pairs = [zip(code[::2], code[1::2], strict=True) for code in codes]
    return frozenset(pair for code_pairs in pairs for pair in code_pairs if pair[0] == wanted)


def rounded(x: Array, digits: int | None) -> Array:
    """``round(x, digits)`` of a variable: a plain value, since the derivative is zero."""
    return primitives.round(x) if digits is None else np.round(x, digits)


def iterate(x: Array) -> Iterator[Array]:
    """The items along the first axis."""
    if x.ndim == 0:
        raise TypeError("a 0-d variable cannot be iterated over")
    if x.ndim == 1:
        return (primitives.index(x, i) for i in range(x.shape[0]))  # numbers, as items of NumPy's vectors are
    return (primitives.index(x, primitives.along(0, i)) for i in range(x.shape[0]))


def iterate_reversed(x: Array) -> Iterator[Array]:
    """The items along the first axis in reverse order."""
    return iterate(primitives.flip(x, axis=0) if x.ndim else x)
