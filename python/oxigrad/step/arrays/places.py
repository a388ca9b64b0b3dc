"""Checks of the arrays that rules are called on: readable, and on the device of the parameter."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from oxigrad import _core
from oxigrad._core import ArrayMemoryError, DtypeError, StateError
from oxigrad._names import path_name
from oxigrad.ops.backends import REFUSALS, adapter_of, beneath, is_array, namespace
from oxigrad.step.arrays.quantized import Quantized
from oxigrad.step.arrays.sparse_rows import LAST_STEP, SparseRows


def check_device(path: str, p: Any, g: Any, slots: Iterable[tuple[str, Any]]) -> None:
    """Raises where the arrays of one parameter, its slots with their names, cannot be arguments of one rule.

    `ArrayMemoryError` for an array that cannot be read, or lies elsewhere than the parameter; `DtypeError` for a
    gradient or a slot of another array library.
    """
    library, place = namespace(beneath(p)), check_readable(path, "parameter", p)
    for what, array in _others(g, slots):
        other_place = check_readable(path, what, array)
        if namespace(beneath(array)) is not library:
            raise DtypeError(
                f"{path_name(path)}: the {what} is an array of {_name(array)}, the parameter one of {_name(p)}"
            )
        if None not in (place, other_place) and place != other_place:
            raise ArrayMemoryError(f"{path_name(path)}: the {what} is on {other_place}, the parameter on {place}")


def _others(g: Any, slots: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    yield from [("gradient", g.values), ("gradient", g.indices)] if isinstance(g, SparseRows) else [("gradient", g)]
    for name, slot in slots:
        if isinstance(slot, Quantized):
            yield from [(f"slot {name}", part) for part in slot.arrays.values()]
            continue
        # A number combines with arrays on any device.
        if slot is not None and name != LAST_STEP and len(slot.shape):
            yield f"slot {name}", slot


def check_readable(path: str, what: str, array: Any) -> str | None:
    """The place of an array; None if it combines with any place. Raises `ArrayMemoryError` for unreadable ones."""
    if isinstance(array, (np.ndarray, _core.Variable)):
        return None
    adapter = adapter_of(array)
    if why := adapter.unreadable(array):
        raise ArrayMemoryError(f"{path_name(path)}: the {what} is {why}")
    return adapter.place(array)


def is_unreadable(slot: Any) -> bool:
    """Whether a slot, which may be codes or None, has memory that cannot be read."""
    if slot is None or isinstance(slot, (np.ndarray, np.generic, _core.Variable)):
        return False
    if isinstance(slot, Quantized):
        return any(map(is_unreadable, slot.arrays.values()))
    return is_array(slot) and bool(adapter_of(slot).unreadable(slot))


def _name(array: Any) -> str:
    return namespace(array).__name__.removeprefix("array_api_compat.")


def refuse_traced(path: str, what: str, array: Any) -> None:
    """Raises `StateError` for a tracer of its library, which the slots would outlive."""
    array = array.values if isinstance(array, SparseRows) else array
    if isinstance(array, (np.ndarray, _core.Variable)):
        return
    adapter = adapter_of(array)
    if adapter.is_traced(array):
        check_readable(path, what, array)
        raise StateError(
            f"{path_name(path)}: the {what} is a {type(array).__name__} inside of a transformation, which the slots "
            "would outlive: "
            "expected opt.init and opt.apply, which return the state"
        )


def is_ours(error: BaseException) -> bool:
    """Whether the class of an error is one of the core's, so that its message has the key path."""
    return getattr(_core, type(error).__name__, None) is type(error)


def known_shape(array: Any) -> tuple[int, ...] | None:
    """The shape of an array; None without one, as of parameters that are not initialized, and of nested tensors."""
    try:
        shape = getattr(array, "shape", None)
    except REFUSALS:
        return None
    return None if shape is None or not all(type(n) is int for n in shape) else tuple(shape)


def refuse_shapeless(named: Iterable[tuple[str, Any]]) -> None:
    """Raises `ArrayMemoryError` for the first array, given with its name, whose shape or dtype cannot be read."""
    for what, array in named:
        try:
            _ = getattr(array, "shape", None), getattr(array, "dtype", None)
        except REFUSALS as error:
            description = f"a {type(array).__name__} without a shape"
            raise ArrayMemoryError(f"{what} is {description}: expected an array that has memory") from error
