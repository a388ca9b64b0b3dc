"""Properties of arrays that need no knowledge of their library: dtype, device, size, and whether the host can read them."""

import functools
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from oxigrad import _core
from oxigrad._core import is_inexact

# Errors by which libraries refuse to share an array's memory. `RecursionError` is a `RuntimeError`, but never a refusal.
REFUSALS = (AttributeError, BufferError, RuntimeError, TypeError, ValueError)


def is_array(value: Any) -> bool:
    """Whether the value is an array of any library: it has a shape and a dtype."""
    return hasattr(value, "dtype") and hasattr(value, "shape")


def is_smooth(value: Any) -> bool:
    """Whether the value can have a derivative: a float, a complex number, an array of either's dtype, or a variable."""
    number = value.like if is_batched(value) and not is_array(value) else value  # that is recorded
    return isinstance(number, (float, complex, _core.Variable)) or is_inexact(value)


def is_batched(value: Any) -> bool:
    """Whether the value has the examples of a `vmap`."""
    return isinstance(value, _core.BatchLevel)


def lowest(value: Any) -> Any:
    """The plain value below the variables of nested tapes; all examples of a batched value."""
    while isinstance(value, _core.Variable) or is_batched(value):
        value = value.value
    return value


def dtype_of(value: Any) -> Any:
    """The dtype of an array; float64 for a Python number."""
    return value.dtype if is_array(value) else np.float64


def device_of(value: Any) -> Any:
    """The device where arrays beside this one are made; ``"cpu"`` for a number.

    None where its library is to choose: in a traced program, or for an array of JAX that is not committed to its device. One that is
    made on a device by name would be, and so would all that is computed from it.
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


def dtype_name(dtype: Any) -> str:
    """The standard's name of a dtype of any library.

    >>> dtype_name(np.dtype(">f4"))
    'float32'
    """
    try:
        return _dtype_name(dtype)
    except TypeError:  # not hashable
        return _dtype_name.__wrapped__(dtype)


@functools.lru_cache(typed=True)  # NumPy builds the name on each access; dtypes of two libraries may compare equal
def _dtype_name(dtype: Any) -> str:
    if isinstance(dtype, type):  # a scalar type of NumPy's
        return dtype.__name__
    name = getattr(dtype, "name", None)
    return name if isinstance(name, str) else str(dtype).rpartition(".")[2]


def on_host(array: Any) -> bool:
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


def fetched(value: Any) -> Any:
    """The value in host memory: arrays on a device are copied, which waits for the device.

    An array of a library that knows no device "cpu" is returned as it is.
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
