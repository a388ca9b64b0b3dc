"""The standard's functions of dtypes, for dtypes of any array library, NumPy's scalar types among them."""

import sys
from typing import Any

import numpy as np

from oxigrad._core import DtypeError, plain
from oxigrad._typing import Array, Dtype, Namespace
from oxigrad.ops.backends import dtype_in, is_array, is_batched, is_of_kind, namespace, standard_namespace

__all__ = ["can_cast", "finfo", "iinfo", "isdtype", "result_type"]


def library_of_dtype(dtype: Dtype) -> Namespace:
    """The namespace of a dtype's library; NumPy for NumPy's dtypes and Python's scalar types.

    Raises `DtypeError` for anything else.

    >>> library_of_dtype(np.float32).__name__
    'numpy'
    """
    if isinstance(dtype, np.dtype) or (isinstance(dtype, type) and issubclass(dtype, np.generic)):
        return np
    root = type(dtype).__module__.partition(".")[0]
    library: Any = sys.modules.get(f"array_api_compat.{root}") or sys.modules.get(root)
    if hasattr(library, "isdtype"):
        return library
    if hasattr(library, "asarray"):  # its namespace is not the standard's own
        return standard_namespace(library.asarray(0))
    try:
        np.dtype(dtype)  # Python's types, and dtypes of ml_dtypes
    except TypeError:
        raise DtypeError(f"found {dtype!r}, expected a dtype") from None
    return np


def _library(*values: Any) -> Namespace:
    """The namespace of the first array, or of the first dtype if there is no array."""
    arrays = [value for value in values if _is_array(value)]
    return standard_namespace(*arrays) if arrays else library_of_dtype(values[0])


def _is_array(value: Any) -> bool:
    return is_array(value) and not isinstance(value, type)


def isdtype(dtype: Dtype, kind: Dtype | str | tuple[Dtype | str, ...]) -> bool:
    """Whether a dtype is of a kind: a dtype, a name such as ``"real floating"``, or a tuple of these.

    Raises `DtypeError` if ``dtype`` is not a dtype.

    >>> isdtype(np.float32, "real floating"), isdtype(np.dtype("int8"), ("bool", np.int8))
    (True, True)
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    library = library_of_dtype(dtype)
    if isinstance(kind, str):
        return bool(is_of_kind(np.dtype(dtype) if library is np else dtype, kind, library))
    return (
        bool(np.dtype(dtype) == np.dtype(kind))
        if library is np
        else bool(library.isdtype(dtype, dtype_in(library, kind)))
    )


def can_cast(from_: Dtype | Array, to: Dtype, /) -> bool:
    """Whether an array or a dtype can be cast to another dtype by promotion, without loss."""
    from_ = _type_operand(from_)
    library = _library(from_, to)
    return bool(library.can_cast(dtype_in(library, from_), dtype_in(library, to)))


def result_type(*arrays_and_dtypes: Array | Dtype | complex) -> Dtype:
    """The dtype of an operation's result for arrays, dtypes and Python numbers; NumPy's for numbers alone.

    >>> result_type(np.float32, 1.0)
    dtype('float32')
    """
    values = tuple(map(_type_operand, arrays_and_dtypes))
    typed = [value for value in values if not isinstance(value, (bool, int, float, complex))]
    library = _library(*typed) if typed else np
    return library.result_type(*(dtype_in(library, value) for value in values))


def _type_operand(value: Any) -> Any:
    """A plain value; of a batched one its dtype."""
    value = plain(value)
    return value.dtype if is_batched(value) else value


def finfo(type: Dtype | Array, /) -> Any:
    """The limits of a floating-point dtype, or of an array's dtype.

    Attributes are ``bits``, ``eps``, ``max``, ``min`` and ``smallest_normal``.
    """
    dtype = type.dtype if _is_array(type) else type
    return library_of_dtype(dtype).finfo(dtype)


def floating(x: Array) -> Array:
    """``x``, converted to its library's floating-point dtype if it has integers or booleans.

    >>> floating(np.array([1, 2]))
    array([1., 2.])
    """
    bare = plain(x)
    if isinstance(bare, (float, complex)):  # of a variable
        return x
    return x * 1.0 if is_of_kind(bare.dtype, ("integral", "bool"), namespace(bare)) else x


def nearest(bound: float, dtype: Dtype) -> float:
    """An infinity in a dtype: of integers and booleans, the value next to it.

    >>> nearest(-np.inf, np.int8), nearest(np.inf, np.float32)
    (-128, inf)
    """
    if isdtype(dtype, "integral"):
        limits = iinfo(dtype)
        return int(limits.max if bound > 0 else limits.min)
    return bound > 0 if isdtype(dtype, "bool") else bound


def iinfo(type: Dtype | Array, /) -> Any:
    """The limits of an integer dtype, or of the dtype of an array: ``bits``, ``max``, ``min``."""
    dtype = type.dtype if _is_array(type) else type
    return library_of_dtype(dtype).iinfo(dtype)
