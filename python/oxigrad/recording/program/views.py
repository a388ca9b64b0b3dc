"""Calls whose results are elements of an array, and their cotangents, as parts of runs."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad._core import MOST_SMALL, Entry, EntryId, with_leaves

SCATTER = ("core", "scatter_into")
# Calls whose results are views.
VIEWS = {
    ("op", "index"),
    ("operator", "getitem"),
    ("op", "permute_dims"),
    ("attribute", "T"),
    ("attribute", "mT"),
    ("op", "broadcast_to"),
    ("op", "expand_dims"),
    ("op", "reshape"),
}

_OF_KEYS = (("op", "index"), ("operator", "getitem"))
FLOATS = ("<f4", "<f8")

# The op of a call that the core may compute in a run, the shape of the arrays, and the dtype in which it is computed,
# followed by that of truth values if the result is such, or the precisions of scalars; for sums along axes these, and
# whether they are kept; for views the parts of `_view_parts`, and whether elements are added to an array.
Member = tuple[str, list[int], list[str], tuple[list[int], bool] | None]

Shape = tuple[int, ...]
# The shape of a view, and for each axis of the array the extent, the first index, and the position of the argument that
# is the first index, or zero; then for each axis of the view that of the array, or -1, and the step.
Parts = tuple[Shape, list[int]]


def view(entry: Entry, entries: list[Entry], most: int = 8) -> Member | None:
    """The same of elements of an array, or of a number that is repeated; None for any other.

    ``most`` is the number of views of views that are looked at.
    """
    if entry.type is None or type(entry.args[0]) is not EntryId:
        return None
    of = entries[entry.args[0].id]
    (extents, dtype), (shape, its) = array_type(of), entry.type
    if dtype != its or dtype not in FLOATS or is_out_of_order(of, entries, most - 1):
        return None
    if entry.target not in _OF_KEYS and any(ids_in((entry.args[1:], entry.named))):
        return None
    parts = _view_parts(entry, extents, shape, lambda index: _is_index(entries[index.id]))
    return parts and ("index", list(shape), [dtype], (parts[1], False))


def scatter(entry: Entry, entries: list[Entry]) -> Member | None:
    """The same of a cotangent of elements, which is added at a key; None for any other."""
    total, g, key, shape = entry.args
    if entry.type is None or type(g) is not EntryId or type(total) not in (EntryId, type(None)):
        return None
    read = [entries[each.id] for each in (total, g) if each is not None]
    (extents, dtype), (part, _) = entry.type, array_type(read[-1])
    are_fit = all(array_type(each)[1] == dtype and not is_out_of_order(each, entries, 0) for each in read)
    if dtype not in FLOATS or tuple(shape) != extents or not are_fit:
        return None
    if total is not None and array_type(read[0])[0] != extents:
        return None
    parts = _key_parts(key, extents, lambda index: _is_index(entries[index.id]), len(read))
    if parts is None or part != parts[0]:
        return None
    return "scatter_add", list(part), [dtype], (parts[1], total is not None)


def _is_index(entry: Entry) -> bool:
    """Whether a value that an index reads is an integer of Python."""
    return type(entry.value) is int if entry.kind == "constant" else entry.type is None and not entry.is_float


def is_out_of_order(entry: Entry, entries: list[Entry], most: int = 8) -> bool:
    """Whether a value may lie in another order, and is no view within a run."""
    if not is_permuted(entry):
        return False
    return most <= 0 or entry.target not in VIEWS or view(entry, entries, most) is None


def is_small_view(entry: Entry, entries: list[Entry]) -> bool:
    """Whether a value in another order is a view of a small array within a run."""
    if is_out_of_order(entry, entries):
        return False
    while entry.target in VIEWS and type(entry.args[0]) is EntryId:
        entry = entries[entry.args[0].id]
    return math.prod(array_type(entry)[0]) <= MOST_SMALL


def is_permuted(entry: Entry) -> bool:
    """Whether a value is an array of some axes that may lie in another order than that of its indices."""
    shape, _ = array_type(entry)
    return entry.is_permuted and sum(extent > 1 for extent in shape) > 1


def array_type(entry: Entry) -> tuple[tuple[int, ...], str]:
    """The shape and the dtype of a value; an empty dtype where it is no array."""
    if entry.kind == "constant":
        value = entry.value
        return (value.shape, value.dtype.str) if isinstance(value, np.ndarray) else ((), "")
    return entry.type or ((), "")


def ids_in(value: Any) -> list[EntryId]:
    """The ids in the arguments of an entry."""
    read: list[EntryId] = []

    def note(leaf: Any) -> None:
        if type(leaf) is EntryId:
            read.append(leaf)

    with_leaves(value, note)
    return read


def _view_parts(entry: Entry, extents: Shape, shape: Shape, is_index: Callable[[EntryId], bool]) -> Parts | None:
    """The parts of a call on an array of these extents with a result of a shape; None if it is no view."""
    name, parts = entry.target.name, None
    if name in ("index", "getitem"):
        key = entry.named.get("key") if name == "index" else entry.args[1]
        parts = _key_parts(key, extents, is_index, 1) if extents else None
    elif name == "broadcast_to" or not extents:
        ahead = len(shape) - len(extents)
        axes = [
            axis - ahead if axis >= ahead and extents[axis - ahead] == each else -1 for axis, each in enumerate(shape)
        ]
        parts = shape, _stated(extents, {}, [(axis, 1) for axis in axes])
    elif (order := _order(entry, len(extents))) is not None:
        parts = tuple(extents[axis] for axis in order), _stated(extents, {}, [(axis, 1) for axis in order])
    return parts if parts is not None and parts[0] == shape and 0 not in shape else None


def _order(entry: Entry, dimensions: int) -> list[int] | None:
    """The axes of an array in the order of a call."""
    axes, name = [*range(dimensions)], entry.target.name
    if name == "T":
        return axes[::-1]
    if name == "mT" and dimensions > 1:
        return [*axes[:-2], axes[-1], axes[-2]]
    of = entry.named.get("axes") if name == "permute_dims" else None
    if not isinstance(of, (tuple, list)) or not all(type(axis) is int for axis in of) or not dimensions:
        return None
    order = [axis % dimensions for axis in of]
    return order if sorted(order) == axes else None


def _key_parts(key: Any, extents: Shape, is_index: Callable[[EntryId], bool], position: int) -> Parts | None:
    """The parts of elements at a key of integers, slices, `...` and None, of which one may be a value.

    That is the argument at a position. None for any other key.
    """
    keys = [*key] if type(key) is tuple else [key]
    left = len(extents) - sum(each is not None and each is not ... for each in keys)
    if left < 0 or sum(each is ... for each in keys) > 1:
        return None
    at = next((at for at, each in enumerate(keys) if each is ...), len(keys))
    keys[at : at + 1] = [slice(None)] * left
    starts: dict[int, tuple[int, int]] = {}
    shape: list[int] = []
    axes: list[tuple[int, int]] = []
    axis = 0
    for each in keys:
        if each is None:
            shape.append(1)
            axes.append((-1, 1))
            continue
        extent = extents[axis]
        if type(each) is slice:
            if not all(type(part) in (int, type(None)) for part in (each.start, each.stop, each.step)):
                return None
            first, stop, step = each.indices(extent)
            shape.append(len(range(first, stop, step)))
            axes.append((axis, step))
            starts[axis] = first, 0
        elif type(each) is int and -extent <= each < extent:
            starts[axis] = each % extent, 0
        elif type(each) is EntryId and is_index(each) and not any(of for _, of in starts.values()):
            starts[axis] = 0, position
        else:
            return None
        axis += 1
    fits = 0 not in shape and (shape or (... not in [key] and not (type(key) is tuple and ... in key)))
    return (tuple(shape), _stated(extents, starts, axes)) if fits else None


def _stated(extents: Shape, starts: dict[int, tuple[int, int]], axes: list[tuple[int, int]]) -> list[int]:
    of = [part for axis, extent in enumerate(extents) for part in (extent, *starts.get(axis, (0, 0)))]
    return of + [part for axis in axes for part in axis]
