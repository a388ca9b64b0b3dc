"""Properties of arrays that need no knowledge of their library: dtype, device, size, whether the host can read them.

And the arrays of no array library, which are converted or refused: `converted` has the list.
"""

import functools
import math
import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np

from oxigrad import _core
from oxigrad._core import DtypeError, is_array, is_inexact
from oxigrad._typing import Array, Device, Dtype, Key, Namespace

# Errors that libraries raise when they refuse to share an array's memory. `RecursionError` is a `RuntimeError`, but
# never a refusal.
REFUSALS = (AttributeError, BufferError, RuntimeError, TypeError, ValueError)


def is_smooth(value: Any) -> bool:
    """Whether the value can have a derivative: a float, a complex number, an array of either's dtype, or a variable."""
    number = value.like if is_batched(value) and not is_array(value) else value  # that is recorded
    return isinstance(number, (float, complex, _core.Variable)) or is_inexact(value)


def is_batched(value: Any) -> bool:
    """Whether the value has the examples of a `vmap`."""
    return isinstance(value, _core.BatchLevel)


def dtype_of(value: Array) -> Dtype:
    """The dtype of an array; float64 for a Python number."""
    return value.dtype if is_array(value) else np.float64


def device_of(value: Array) -> Device:
    """The device where arrays beside this one are made; ``"cpu"`` for a number.

    Args:
        value: an array of any library, a variable or a number.

    None if the library chooses the device: in a traced program, or for an array of JAX that is not committed to its
    device. An array that is created on an explicit device is committed, and so is every result computed from it.
    """
    if _may_be_uncommitted(type(value)) and not value.committed:
        return None
    return getattr(value, "device", None if is_array(value) else "cpu")


def is_one_device(values: Iterable[Any]) -> bool:
    """Whether no two arrays name different devices, which need not be hashable; in a traced program, they name none."""
    devices = [device for device in map(device_of, values) if device is not None]
    return all(device == devices[0] for device in devices[1:])


@functools.cache
def _may_be_uncommitted(kind: type) -> bool:
    return hasattr(kind, "committed") and not any(base.__name__ == "Tracer" for base in kind.__mro__)


def size_of(shape: tuple[int, ...]) -> int:
    """The number of elements of an array of this shape."""
    return math.prod(shape)


def dtype_name(dtype: Dtype) -> str:
    """The standard's name of a dtype of any library.

    Args:
        dtype: dtype of any library.

    >>> dtype_name(np.dtype(">f4"))
    'float32'
    """
    try:
        return _dtype_name(dtype)
    except TypeError:  # not hashable
        return _dtype_name.__wrapped__(dtype)


@functools.lru_cache(typed=True)  # NumPy builds the name on each access; dtypes of two libraries may compare equal
def _dtype_name(dtype: Dtype) -> str:
    if isinstance(dtype, type):  # a scalar type of NumPy's
        return dtype.__name__
    name = getattr(dtype, "name", None)
    return name if isinstance(name, str) else str(dtype).rpartition(".")[2]


def widest_float(library: Namespace, device: Device) -> Dtype:
    """The most precise real floating-point dtype of a library on a device."""
    info = library.__array_namespace_info__()
    default = info.default_dtypes(device=device)["real floating"]
    if dtype_name(default) == "float64":
        return default
    floats = info.dtypes(kind="real floating", device=device)
    return floats.get("float64", floats["float32"])


def on_host(array: Array) -> bool:
    """Whether an array is in host memory, so that it can be read without waiting for a device."""
    if isinstance(array, np.generic) or _core.exports_memory(array):
        return True
    device = getattr(array, "__dlpack_device__", None)
    try:
        return device is not None and int(device()[0]) == 1
    except RecursionError:
        raise
    except REFUSALS:  # an array that is not computed yet
        return False


def fetched(value: Array) -> Array:
    """The value in host memory: arrays on a device are copied, which waits for the device.

    An array of a library without a device "cpu" is returned unchanged.
    """
    if not is_array(value) or on_host(value):
        return value
    from array_api_compat import to_device

    try:
        return to_device(value, "cpu")
    except RecursionError:
        raise
    except REFUSALS:
        return value


# --- objects of no array library --------------------------------------------------------------------------------------


def is_matrix(value: Any) -> bool:
    """Whether a value is a sparse array or matrix of SciPy, or a linear operator: a constant with its own products."""
    return not isinstance(value, _SIMPLE) and any(
        base.__module__.startswith("scipy.sparse.") for base in type(value).__mro__
    )


_SIMPLE = (np.ndarray, _core.Variable, list, tuple, bool, int, float, complex)
# Libraries of labelled arrays; their numbers are used in order.
_LABELED = {"pandas", "polars", "pyarrow"}


def is_array_like(value: Any) -> bool:
    """Whether `converted` accepts a value.

    Accepted are buffers, arrays of pandas, polars or Arrow, numbers of other classes, and ranges.
    """
    if isinstance(value, (range, numbers.Number)) or type(value).__module__.partition(".")[0] in _LABELED:
        return not isinstance(value, type)
    try:
        return memoryview(value).format not in ("c", "O") and not isinstance(value, (bytes, bytearray))
    except (TypeError, ValueError):
        return False


def converted(value: Any, what: str = "") -> Array:
    """Converts an array that belongs to no array library to a NumPy array.

    Raises `DtypeError` for a value that `is_array_like` rejects, and for elements that are not numbers. The error names
    the argument by ``what``.
    """
    kind, place = type(value).__name__, f"{what}: " if what else ""
    if not is_array_like(value):
        raise DtypeError(f"{place}expected an array, found {kind} {_shortened(value)}: {_array_of(value)}")
    if isinstance(value, numbers.Number):
        number: Any = value
        is_complex = isinstance(value, numbers.Complex) and not isinstance(value, numbers.Real)
        return complex(number) if is_complex else float(number)
    array = np.asarray(value.to_numpy() if hasattr(value, "to_numpy") else value)
    if array.dtype.kind not in "biufc":
        raise DtypeError(
            f"{place}found a {kind} of dtype {array.dtype}, expected numbers, such as x.to_numpy(dtype=float)"
        )
    return array


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 80 and "\n" not in text else f"of {type(value).__module__}"


def _array_of(value: Any) -> str:
    """The expression for the numbers of an object, for an error."""
    for attribute, text in _EXPRESSIONS.items():
        if hasattr(value, attribute):
            return text
    return "numpy.asarray(x) is one, if it holds numbers"


_EXPRESSIONS = {
    "toarray": "x.toarray() is one",
    "matvec": "x @ identity is one",
    "magnitude": "x.magnitude is one",
    "coords": "x.data is one",
}


def is_basic(key: Key) -> bool:
    """Whether a key consists of integers, slices, ``...`` and None, which select no element twice."""
    parts = key if isinstance(key, tuple) else (key,)
    return all(part is None or part is Ellipsis or isinstance(part, (int, slice)) for part in parts)
