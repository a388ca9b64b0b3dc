"""Values over all leaves, such as totals, where leaves are of different libraries or on different devices."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oxigrad._core import ArrayMemoryError
from oxigrad.ops.backends import REFUSALS, adapter_of, is_array, is_one_device, namespace, to_host


def combined(operation: Callable[[Any, Any], Any], paths: Sequence[str], values: Sequence[Any]) -> Any:
    """The values of the leaves at ``paths``, arrays without axes, reduced by a binary operation.

    Arrays of one library on one device are combined there. Others are copied to the host, which waits for their
    devices, and the result is a number, which combines with arrays of any library. Where some arrays, of one library,
    cannot be read, as in a traced program, and the others are in host memory, the result is of that library.

    Raises `ArrayMemoryError` with the key paths for lazy arrays beside arrays of another library, and for arrays of two
    libraries that cannot be read.
    """
    if len({id(namespace(value)) for value in values}) == 1 and is_one_device(values):
        return functools.reduce(operation, values)
    numbers = [value if adapter_of(value).is_lazy else _number(value) for value in values]
    unread = {path: value for path, value in zip(paths, numbers, strict=True) if is_array(value)}
    if len({id(namespace(value)) for value in unread.values()}) > 1 or any(
        adapter_of(value).is_lazy for value in unread.values()
    ):
        raise ArrayMemoryError(
            f"{', '.join(unread)}: a value over all parameters, such as a global norm, is needed by arrays of another "
            "library, and "
            "cannot be read here: expected arrays with values, such as those that x.compute() returns, or parameters "
            "of one library"
        )
    result = functools.reduce(operation, numbers)
    return result.item() if isinstance(result, np.generic) else result


def _number(value: Any) -> Any:
    """The number of an array without axes; the array itself where it cannot be read."""
    if not is_array(value):
        return value
    try:
        return to_host(value).item()
    except RecursionError:
        raise
    except REFUSALS:
        return value
