"""Aliasing: detection of arrays that share memory, which are refused or copied."""

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from oxigrad import _core
from oxigrad._core import AliasError, ArrayMemoryError, RuleError
from oxigrad._names import path_name
from oxigrad._typing import Array
from oxigrad.ops.backends import adapter_of, is_array, memory_of, on_host, without_variables
from oxigrad.ops.core import standard

# The name of an array in error messages, the array, and whether it is written.
Named = tuple[str, Any, bool]


def refuse_unwritable(path: str, what: str, array: Array) -> None:
    """Raises `ArrayMemoryError` if an array is read-only, and `AliasError` if its elements overlap."""
    if not _core.is_writable(array):
        raise ArrayMemoryError(f"{path_name(path)}: the {what} is read-only")
    if _core.overlaps_itself(array):
        raise AliasError(
            f"{path_name(path)}: the {what} overlaps itself: expected an array whose elements share no memory"
        )


def refuse_overlapping(named: Sequence[Named]) -> None:
    """Raises `AliasError` as `refuse_shared`, and for a written array in host memory with overlapping elements."""
    for name, array, is_written in named:
        if is_written and _core.is_writable(array) and _core.overlaps_itself(array):
            raise AliasError(f"{name} overlaps itself: expected an array whose elements share no memory")
    refuse_shared(named)


def refuse_shared(named: Sequence[Named]) -> None:
    """Raises `AliasError` if two arrays overlap and one of them is written.

    Checks arrays in host memory, and dense arrays on a CUDA device.

    >>> import numpy as np
    >>> x = np.zeros(4)
    >>> refuse_shared([("even", x[::2], True), ("odd", x[1::2], True)])
    >>> refuse_shared([("a", x[:3], True), ("the gradient of b", x[2:], False)])
    Traceback (most recent call last):
    ...
    oxigrad.AliasError: a and the gradient of b share memory: expected arrays apart, or the same array from the first
    step on
    """
    mutable, on_devices, written = list[Named](), list[Named](), list[tuple[Any, bool]]()
    for each in named:  # by no comprehension: steps come here
        _, array, is_written = each
        if not (type(array) is np.ndarray or _core.is_writable(array)):
            if not _is_mutable(array):
                continue
            if not on_host(array):
                on_devices.append(each)
        mutable.append(each)
        written.append((array, is_written))
    shared = _core.first_shared(written)
    if shared is None and on_devices:
        mutable, shared = on_devices, _first_shared_there(on_devices)
    if shared is not None:
        a, b = (mutable[number][0] for number in shared)
        raise AliasError(f"{a} and {b} share memory: expected arrays apart, or the same array from the first step on")


def _first_shared_there(named: Sequence[Named]) -> tuple[int, int] | None:
    """The numbers of two arrays on a device that overlap, one of which is written; None without such."""
    spans: dict[int, list[tuple[int, int, int, bool]]] = {}
    for number, (_, array, is_written) in enumerate(named):
        memory = memory_of(array)
        if memory is not None and memory.is_dense and (size := math.prod(memory.shape) * array.dtype.itemsize):
            spans.setdefault(memory.device, []).append((number, memory.address, size, is_written))
    for on_device in spans.values():
        numbers, starts, sizes, written = map(np.array, zip(*on_device, strict=True))
        if (shared := first_overlap(starts, sizes, written)) is not None:
            return int(numbers[shared[0]]), int(numbers[shared[1]])
    return None


def first_overlap(starts: np.ndarray, sizes: np.ndarray, written: np.ndarray) -> tuple[int, int] | None:
    """The numbers of two spans of memory that overlap, one of which is written; None without such. No size is zero.

    >>> first_overlap(np.array([0, 4, 6]), np.array([4, 4, 2]), np.array([True, False, True]))
    (1, 2)
    """
    order = np.lexsort((written, starts + sizes, starts))
    start, written = starts[order], written[order]
    end = start + sizes[order]
    end_of_written = np.where(written, end, 0)
    reached, reached_by_written = np.maximum.accumulate(end), np.maximum.accumulate(end_of_written)
    reads = written[1:] & (start[1:] < reached[:-1])
    shared = np.flatnonzero(reads | (start[1:] < reached_by_written[:-1]))
    if not shared.size:
        return None
    at = shared[0]
    other = np.argmax((end if reads[at] else end_of_written)[: at + 1])
    return int(order[other]), int(order[at + 1])


def is_same_array(a: Array, b: Array) -> bool:
    """Whether two arrays are identical: the same object, or views of the same elements in the same order.

    >>> import numpy as np
    >>> x = np.zeros((2, 2))
    >>> is_same_array(x, x[:]), is_same_array(x, x.T), is_same_array(x, x.copy())
    (True, False, False)
    """
    return a is b or _core.is_same_memory(a, b) or (_on_device(a) is not None and _on_device(a) == _on_device(b))


def _is_mutable(array: Array) -> bool:
    """Whether an array may be changed in place, so that others must not share its memory; False for None."""
    if array is None or _core.is_writable(array):
        return array is not None
    return not adapter_of(array).is_immutable


def _on_device(array: Array) -> tuple[Any, ...] | None:
    """Address, shape, strides and type of an array on a device, by ``__cuda_array_interface__``; None without it."""
    if type(array) is np.ndarray or _core.is_writable(array):
        return None
    try:
        interface = array.__cuda_array_interface__
    except (AttributeError, RuntimeError, TypeError):  # in host memory, or a tensor that requires grad
        return None
    return interface["data"][0], interface["shape"], interface.get("strides"), interface["typestr"]


def read_only(value: Any) -> Any:
    """A NumPy array as a read-only view of it, which code of users may receive; any other value as it is.

    >>> import numpy as np
    >>> read_only(np.zeros(2)).sort()
    Traceback (most recent call last):
    ValueError: sort array is read-only
    """
    if not issubclass(type(value), np.ndarray):  # a value of a recording only answers as one
        return value
    view = value.view()
    view.setflags(write=False)
    return view


def stopped(value: Any) -> Any:
    """The plain value of a variable, a read-only view of an array of NumPy's; any other value as it is."""
    bare = without_variables(value)
    return value if bare is value else read_only(bare)


Owners: TypeAlias = dict[int, tuple[Any, Any]]
"""Views that a call lends, by identity, each with the caller's own array."""


def lend(value: Any, owners: Owners) -> Any:
    """The `read_only` value for an argument of a user's function.

    >>> import numpy as np
    >>> x, owners = np.zeros(2), {}
    >>> owner(lend(x, owners), owners) is x
    True
    """
    view = read_only(value)
    if view is not value:
        owners[id(view)] = view, value
    return view


def owner(value: Any, owners: Owners) -> Any:
    """The caller's own array where a result is a view that was lent; any other result as it is."""
    return owners[id(value)][1] if id(value) in owners else value


class WrittenError(RuleError):
    """A function of a rule writes an array of its caller."""


def lending(function: Callable[..., Any], label: str) -> Callable[..., Any]:
    """The function ``(xp, ...)`` of a rule, which cannot write its caller's arrays. Raises `WrittenError`.

    It receives read-only views of NumPy's arrays, and copies of others that may be changed in place, also as results of
    the functions among its arguments. An argument that it returns is the caller's own again.

    >>> import numpy as np
    >>> p = np.ones(2)
    >>> lending(lambda xp, p: (p, p + 1), "the rule f")(np, p)[0] is p
    True
    >>> lending(lambda xp, p: p.fill(0), "the rule f")(np, p)
    Traceback (most recent call last):
    oxigrad.ops.core.aliasing.WrittenError: the rule f writes an argument in place (assignment destination is
    read-only): expected a new array, as by p = p - g in place of p -= g
    """

    @functools.wraps(function)
    def called(xp: Any, *args: Any, **named: Any) -> Any:
        owners: Owners = {}

        def passed(value: Any) -> Any:
            if callable(value):
                return lambda *args: passed(value(*args))
            return lent(value, owners)

        def returned(value: Any) -> Any:
            array = owner(value, owners)
            is_view = array is value and type(value) is np.ndarray and not value.flags.writeable
            return np.array(value) if is_view else array

        try:
            result = function(xp, *map(passed, args), **{name: passed(value) for name, value in named.items()})
        except ValueError as error:
            if "read-only" not in str(error):
                raise
            expected = "expected a new array, as by p = p - g in place of p -= g"
            raise WrittenError(f"{label} writes an argument in place ({error}): {expected}") from error
        return [*map(returned, result)] if isinstance(result, (tuple, list)) else returned(result)

    return called


def lent(value: Any, owners: Owners) -> Any:
    """A read-only view of NumPy's array, a copy of another that may be changed in place; any other value as it is."""
    view = lend(value, owners)
    if view is not value:
        return view
    try:
        is_kept = isinstance(value, np.generic) or not is_array(value) or adapter_of(value).is_immutable
    except RuleError:  # a symbol tells nothing of its values, and refuses to be written
        return value
    return value if is_kept else standard.asarray(value, copy=True)


def apart(results: Sequence[Array], arrays: Iterable[Any]) -> list[Array]:
    """The results, of which each that shares memory with ``arrays`` or an earlier result is copied.

    None among the results is returned as None. On a device only identical arrays are detected, not overlapping views.

    >>> import numpy as np
    >>> g, new = np.ones(2), np.zeros(2)
    >>> separate = apart([new, g, new], [g])
    >>> separate[0] is new, separate[1] is g, separate[2] is new
    (True, False, False)
    """
    separate = list(results)
    new = [number for number, x in enumerate(separate) if _core.is_writable(x) or _is_mutable(x)]
    others = [x for x in arrays if _core.is_writable(x) or _is_mutable(x)]
    listed = [*zip(map(separate.__getitem__, new), itertools.repeat(True)), *zip(others, itertools.repeat(False))]
    shared = set(_core.aliases(listed))
    seen: set[Any] = {*map(id, others), *map(_on_device, itertools.filterfalse(_core.is_writable, others))}
    for at, number in enumerate(new):
        x = separate[number]
        places = {id(x)} if _core.is_writable(x) else {id(x), _on_device(x)} - {None}
        if at in shared or places & seen:
            separate[number] = standard.asarray(x, copy=True)
        seen |= places
    return separate
