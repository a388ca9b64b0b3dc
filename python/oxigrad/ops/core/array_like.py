"""Array_likes with variables as arrays, and their plain values on the host."""

import inspect
from typing import Any

import numpy as np

from oxigrad._core import Variable, plain
from oxigrad._typing import Array, Dtype
from oxigrad.ops.backends import beneath, converted, fetched, has_batched, has_variable, is_array, is_foreign
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core import standard

#: NumPy's default of arguments, where None has another meaning.
NO_VALUE: Any = inspect.signature(np.diff).parameters["prepend"].default


def array(x: Array, dtype: Dtype = None) -> Array:
    """An array, a number, or a nested list, with or without variables, as an array, optionally of a dtype."""
    if isinstance(x, Variable):
        x = x if is_array(plain(x)) else ops.reshape(ops.stack([x]), ())  # of a number of Python's
    elif is_foreign(x):
        x = np.asarray(converted(x))
    elif not is_array(x):
        x = standard.asarray(x) if has_variable((x,)) or has_batched((x,)) else np.asarray(x)
    return x if dtype is None or dtype is NO_VALUE else ops.astype(x, dtype, copy=False)


def in_double(x: Array) -> Array:
    """As `array`, with NumPy's arrays in float64 or complex128.

    Some functions of NumPy compute in double precision and return it for all arrays.
    """
    x = array(x)
    is_numpys = isinstance(beneath(x), (np.ndarray, np.generic))
    return ops.astype(x, np.result_type(x.dtype, np.float64), copy=False) if is_numpys else x


def examples(x: Array) -> np.ndarray:
    """As `values`, with a leading axis for the examples of each `vmap` that ``x`` is in, from the outermost one."""
    return values(beneath(array(x)))


def values(x: Array) -> np.ndarray:
    """The plain values of an array_like, on the host."""
    bare = plain(array(x))
    return np.asarray(fetched(bare))
