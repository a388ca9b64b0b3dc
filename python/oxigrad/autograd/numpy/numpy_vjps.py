"""Helpers for VJPs by the names of `autograd.numpy.numpy_vjps`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad import xp
from oxigrad._core import Variable
from oxigrad.autodiff.rules import cotangents
from oxigrad.ops.backends import is_complex


def unbroadcast(x: Any, target_meta: tuple[Any, ...], broadcast_idx: int = 0) -> Any:
    """``x`` summed over the axes along which a value of ``metadata(value)`` was broadcast."""
    shape, _, dtype, iscomplex = target_meta
    x = x if iscomplex or not is_complex(x) else xp.real(x)
    return x if np.shape(x) == shape else cotangents.unbroadcast(x, tuple(shape), dtype)


def unbroadcast_f(target: Any, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Function ``f`` of a cotangent, with its result summed over the axes along which ``target`` was broadcast."""
    meta = metadata(target)
    return lambda g: unbroadcast(f(g), meta)


def metadata(A: Any) -> tuple[Any, ...]:
    """Shape, number of dimensions, dtype, and whether it is complex, of a value."""
    dtype = A.dtype if isinstance(A, (Variable, np.ndarray)) else np.result_type(A)
    return np.shape(A), np.ndim(A), dtype, is_complex(A)


def match_complex(target: Any, x: Any) -> Any:
    """``x`` made real or complex, as ``target`` is."""
    if is_complex(target) == is_complex(x):
        return x
    return x + 0j if is_complex(target) else xp.real(x)
