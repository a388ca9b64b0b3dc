"""Arrays that share memory: refused where one of them is written, told apart from those that are one, and copied apart."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from oxigrad import _core
from oxigrad._core import AliasError, ArrayMemoryError
from oxigrad.ops import standard
from oxigrad.ops.backends import is_immutable

# What an array is called in an error, the array, and whether it is written.
Named = tuple[str, Any, bool]


def refuse_unwritable(path: str, what: str, array: Any) -> None:
    """Raises `ArrayMemoryError` or `AliasError` where the elements of an array cannot be written one by one."""
    if not _core.is_writable(array):
        raise ArrayMemoryError(f"{path}: the {what} is read-only")
    if _core.overlaps_itself(array):
        raise AliasError(f"{path}: the {what} overlaps itself: expected an array of its own elements")


def refuse_shared(named: Sequence[Named]) -> None:
    """Raises `AliasError` where two arrays in host memory share elements of which one is written.

    >>> import numpy as np
    >>> x = np.zeros(4)
    >>> refuse_shared([("even", x[::2], True), ("odd", x[1::2], True)])
    >>> refuse_shared([("a", x[:3], True), ("the gradient of b", x[2:], False)])
    Traceback (most recent call last):
    ...
    oxigrad.AliasError: a and the gradient of b share memory: expected arrays apart, or the same array from the first step on
    """
    mutable = [(name, array, written) for name, array, written in named if not is_immutable(array)]
    shared = _core.first_shared([(array, written) for _, array, written in mutable])
    if shared is not None:
        a, b = (mutable[number][0] for number in shared)
        raise AliasError(f"{a} and {b} share memory: expected arrays apart, or the same array from the first step on")


def is_same_array(a: Any, b: Any) -> bool:
    """Whether two arrays are one: the same object, or the same elements of the same memory in the same order.

    >>> import numpy as np
    >>> x = np.zeros((2, 2))
    >>> is_same_array(x, x[:]), is_same_array(x, x.T), is_same_array(x, x.copy())
    (True, False, False)
    """
    return a is b or _core.is_same_memory(a, b) or (_on_device(a) is not None and _on_device(a) == _on_device(b))


def _on_device(array: Any) -> Any:
    """Where an array on a device lies, as libraries tell each other; None where its library does not tell."""
    if type(array) is np.ndarray:
        return None
    try:
        told = array.__cuda_array_interface__
    except (AttributeError, RuntimeError, TypeError):  # it lies elsewhere, or its library records its derivatives
        return None
    return told["data"][0], told["shape"], told.get("strides"), told["typestr"]


def apart(results: Sequence[Any], given: Iterable[Any]) -> list[Any]:
    """The results, those copied that share memory with what was ``given`` or with an earlier result.

    A result that is None stays so. On a device, arrays are looked at as a whole: a view of a part is not found there.

    >>> import numpy as np
    >>> g, new = np.ones(2), np.zeros(2)
    >>> found = apart([new, g, new], [g])
    >>> found[0] is new, found[1] is g, found[2] is new
    (True, False, False)
    """
    found = list(results)
    mutable = [(number, x) for number, x in enumerate(found) if x is not None and not is_immutable(x)]
    known = [x for x in given if x is not None and not is_immutable(x)]
    shared = set(_core.aliases([(x, True) for _, x in mutable] + [(x, False) for x in known]))
    seen = {place for x in known for place in (id(x), _on_device(x))}
    for at, (number, x) in enumerate(mutable):
        own = {id(x), _on_device(x)} - {None}
        if at in shared or own & seen:
            found[number] = standard.asarray(x, copy=True)
        seen |= own
    return found
