"""NumPy's functions of sets, and of sorted or trimmed elements: NumPy selects by plain values, elements follow."""

from typing import Any

import numpy as np

from oxigrad._typing import Array, Axis, Results
from oxigrad.ops.backends import array_of, is_complex
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core import standard
from oxigrad.ops.core.array_like import array, values
from oxigrad.ops.core.in_place import of_library
from oxigrad.ops.core.shapes import position
from oxigrad.ops.numpy.extras import partition as partition_of_array
from oxigrad.ops.numpy.numpy_signatures import numpy_signature


def _flat(x: Array) -> Array:
    return ops.reshape(array(x), (-1,))


def _picked(x: Array, places: np.ndarray, axis: int = 0) -> Array:
    return ops.index(x, ops.along(axis, of_library(places, x)))


@numpy_signature(np.unique)
def unique(ar: Array, return_index: bool = False, axis: int | None = None, **named: Any) -> Results:
    """The unique elements, sorted, or subarrays along ``axis``, with the requested plain values as a tuple.

    Gradients flow to the first occurrences.
    """
    ar = array(ar)
    _, *others = np.unique(values(ar), return_index=True, axis=axis, **named)
    elements = _flat(ar) if axis is None else ar
    first = _picked(elements, others[0], 0 if axis is None else position(axis, ar.ndim))
    others = others if return_index else others[1:]
    return (first, *others) if others else first


def _unique_flat(x: Array) -> Array:
    return unique(_flat(x))


def union1d(ar1: Array, ar2: Array) -> Array:
    """The unique elements of both arrays, sorted."""
    return unique(ops.concat([_flat(array_of(x, [ar1, ar2])) for x in (ar1, ar2)]))


def intersect1d(ar1: Array, ar2: Array, assume_unique: bool = False, return_indices: bool = False) -> Results:
    """The elements of the first array that are in the second, sorted and unique."""
    _, first, second = np.intersect1d(values(array(ar1)), values(array(ar2)), assume_unique, True)
    common = _picked(_flat(ar1), first)
    return (common, first, second) if return_indices else common


def setdiff1d(ar1: Array, ar2: Array, assume_unique: bool = False) -> Array:
    """The elements of the first array that are not in the second; sorted and unique unless ``assume_unique``."""
    first = _flat(ar1) if assume_unique else _unique_flat(ar1)
    (positions,) = np.nonzero(~np.isin(values(first), values(array(ar2))))
    return _picked(first, positions)


def setxor1d(ar1: Array, ar2: Array, assume_unique: bool = False) -> Array:
    """The elements that are in one array only, sorted and unique."""
    parts = [_flat(x) if assume_unique else _unique_flat(x) for x in (ar1, ar2)]
    joined = ops.concat(parts)
    bare = values(joined)
    order = np.argsort(bare, kind="stable")
    changes = bare[order][1:] != bare[order][:-1]
    is_single = np.concatenate([[True], changes])[: bare.size] & np.concatenate([changes, [True]])[: bare.size]
    return _picked(joined, order[is_single])


def sort_complex(a: Array) -> Array:
    """The elements as complex numbers along the last axis, sorted by the real part, then the imaginary part."""
    a = array(a)
    a = a if is_complex(a) else a + 0j
    bare: Any = values(a)
    return ops.take_along_axis(a, of_library(np.lexsort((bare.imag, bare.real), axis=-1), a), axis=-1)


def trim_zeros(filt: Array, trim: str = "fb", axis: Axis = None) -> Array:
    """The array without the zeros at the front ("f"), at the back ("b") or at both ends of its axes."""
    if set(trim.lower()) - {"f", "b"}:
        raise ValueError(f"trim is {trim!r}: expected 'f', 'b' or 'fb'")
    filt = array(filt)
    places = np.argwhere(values(filt))
    axes = standard.axes_of(axis, filt.ndim)
    key: list[slice] = [slice(None)] * filt.ndim
    for place in axes:
        if not len(places):
            key[place] = slice(0, 0)
            continue
        first, last = int(places[:, place].min()), int(places[:, place].max()) + 1
        key[place] = slice(first if "f" in trim.lower() else 0, last if "b" in trim.lower() else None)
    return filt[tuple(key)]


def sort(a: Array, axis: int | None = -1, kind: Any = None, order: Any = None, *, stable: bool | None = None) -> Array:
    """The elements in order along ``axis``, or all elements if ``axis`` is None."""
    _require_no_order("sort", order)
    return standard.sort(array(a), axis=axis)


def partition(a: Array, kth: Array, axis: int | None = -1, kind: str = "introselect", order: Any = None) -> Array:
    """As `sort`: the elements are fully sorted."""
    _require_no_order("partition", order)
    return partition_of_array(array(a), kth, axis=axis)


def _require_no_order(name: str, order: Any) -> None:
    if order is not None:
        raise ValueError(f"{name}: order is {order!r}: expected None, since an array with a derivative has no fields")
