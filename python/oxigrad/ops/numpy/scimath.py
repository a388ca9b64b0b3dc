"""Functions of ``numpy.emath``, whose results are complex where a real function would return NaN."""

import math
from collections.abc import Callable

import numpy as np

from oxigrad._core import plain
from oxigrad._typing import Array, Function
from oxigrad.ops.backends import has_variable, is_array, is_complex, namespace
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core.array_like import array


def _widened(x: Array, is_outside: Callable[[Array], Array]) -> Array:
    """``x``, in a complex dtype if it is real and some element is outside of the domain of the real function."""
    x = array(x) if isinstance(x, (list, tuple)) and has_variable((x,)) else x
    if not is_array(plain(x)) and not has_variable((x,)):
        return x + 0j if np.any(is_outside(np.asarray(x))) else x
    bare = plain(x)
    if is_complex(x) or not bool(np.any(np.asarray(is_outside(bare)))):
        return x
    library = namespace(x)
    wide = library.result_type(bare.dtype, library.complex64) if is_array(bare) else np.complex128
    return ops.astype(x, wide)


def _is_negative(x: Array) -> Array:
    return x < 0


def _is_beyond_one(x: Array) -> Array:
    return abs(x) > 1


def sqrt(x: Array) -> Array:
    """Square root, complex if an element is negative."""
    return ops.sqrt(_widened(x, _is_negative))


def log(x: Array) -> Array:
    """Natural logarithm, complex if an element is negative."""
    return ops.log(_widened(x, _is_negative))


def log2(x: Array) -> Array:
    """Logarithm to base 2, complex if an element is negative."""
    return _of_base(x, math.log(2.0), ops.log2)


def log10(x: Array) -> Array:
    """Logarithm to base 10, complex if an element is negative."""
    return _of_base(x, math.log(10.0), ops.log10)


def _of_base(x: Array, scale: float, real: Function) -> Array:
    x = _widened(x, _is_negative)
    return ops.log(x) / scale if is_complex(x) else real(x)


def logn(n: Array, x: Array) -> Array:
    """Logarithm to base ``n``, complex if an element is negative."""
    return log(x) / log(n)


def power(x: Array, p: Array) -> Array:
    """``x`` to the power ``p``, complex if an element of ``x`` is negative."""
    return ops.pow(_widened(x, _is_negative), p)


def arccos(x: Array) -> Array:
    """Inverse cosine, complex if an element is beyond 1."""
    wide = _widened(x, _is_beyond_one)
    return ops.acos(x) if wide is x else np.pi / 2.0 - _arcsin_beyond(x)


def arcsin(x: Array) -> Array:
    """Inverse sine, complex if an element is beyond 1."""
    wide = _widened(x, _is_beyond_one)
    return ops.asin(x) if wide is x else _arcsin_beyond(x)


def _arcsin_beyond(x: Array) -> Array:
    """The inverse sine of real numbers, on the upper side of the branch cut; a complex op would choose a side."""
    beyond = ops.abs(x) > 1.0
    size = ops.where(beyond, ops.abs(x), 1.5)
    sine = ops.asin(ops.where(beyond, 0.0, x))
    return ops.where(beyond, plain(ops.sign(x)) * (np.pi / 2.0), sine) + 1j * ops.where(beyond, ops.acosh(size), 0.0)


def arctanh(x: Array) -> Array:
    """Inverse hyperbolic tangent, complex if an element is beyond 1."""
    return ops.atanh(_widened(x, _is_beyond_one))
