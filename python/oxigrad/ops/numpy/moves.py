"""NumPy's functions that only move elements: NumPy moves element numbers, and the elements follow.

The elements of the arguments are numbered from 1, and NumPy's own function is called on the numbers. Its result says
where each element goes; a zero marks an element that the function created. Every keyword therefore has its NumPy
meaning.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad._core import Variable, plain
from oxigrad._typing import Array, Dtype, Function, Key, Results
from oxigrad.ops.backends import (
    UnbatchedError,
    array_of,
    batched_of,
    dtype_of,
    has_variable,
    is_array,
    namespace,
    strip,
)
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core import standard
from oxigrad.ops.core.array_like import array, values
from oxigrad.ops.core.dtypes import result_type
from oxigrad.ops.core.in_place import masked, of_library
from oxigrad.ops.core.indexed_update import At
from oxigrad.ops.core.shapes import position

# The parameters of each function whose elements it moves; the others are conditions, indices and shapes.
ELEMENTS: dict[str, str] = {
    "append": "arr values",
    "block": "arrays",
    "choose": "choices",
    "compress": "a",
    "delete": "arr",
    "diagflat": "v",
    "extract": "arr",
    "insert": "arr values",
    "meshgrid": "xi",
    "resize": "a",
    "select": "choicelist default",
    "sliding_window_view": "x",
}
# Functions whose result has the dtype of their first parameter of elements, not the common dtype.
_OF_FIRST = {"insert"}


def moved(function: Callable[..., Any], *args: Any, **named: Any) -> Results:
    """Calls ``function(*args, **named)`` for a function of `ELEMENTS`."""
    bound = inspect.signature(function).bind(*args, **named)
    arguments, name = bound.arguments, function.__name__
    parameters, elements = ELEMENTS[name].split(), _Elements()
    other = arguments.get("default")
    for parameter, value in arguments.items():
        arguments[parameter] = elements.numbered(value) if parameter in parameters else strip(value)
        if parameter not in parameters and batched_of((arguments[parameter],)) is not None:
            raise UnbatchedError(f"vmap: {name}: {parameter} differs between the examples of a batch")
    dtype = dtype_of(elements.arrays()[0]) if name in _OF_FIRST else None
    if name == "select" and type(other) in (int, float):  # a Python number has no dtype
        dtype = result_type(*(dtype_of(plain(each)) for each in elements.arrays()[:-1]), other)
    return elements.at(function(*bound.args, **bound.kwargs), dtype)


class _Elements:
    """The elements of several arrays, numbered from 1."""

    def __init__(self) -> None:
        self._parts: list[Any] = []
        self._count = 0

    def arrays(self) -> list[Any]:
        """The arrays, and the numbers and ranges as arrays of the library of the others."""
        like = next((part for part in self._parts if is_array(plain(part)) and namespace(part) is not np), None)
        arrays = [array_of(part, self._parts if like is None else [like]) for part in self._parts]
        return arrays if like is None else [of_library(x, like) if isinstance(x, np.ndarray) else x for x in arrays]

    def numbered(self, value: Any) -> Array:
        """Numbers instead of the elements of an array, or of all arrays of a nested list."""
        if isinstance(value, (list, tuple)):
            return type(value)(map(self.numbered, value))
        if value is None:
            return None
        array_value = array(value)
        self._parts.append(value if type(value) in (bool, int, float, complex) else array_value)
        bare = plain(array_value)
        # of the same layout in memory, which the orders "A" and "K" ask for
        numbers = np.empty_like(bare, dtype=np.intp) if isinstance(bare, np.ndarray) else np.empty(bare.shape, np.intp)
        numbers[...] = np.arange(1, numbers.size + 1).reshape(numbers.shape) + self._count
        self._count += numbers.size
        return numbers

    def at(self, numbers: Array, dtype: Dtype = None) -> Array:
        """The elements of these numbers, zero at 0; for each array of a list or tuple of numbers."""
        if isinstance(numbers, (list, tuple)):
            return type(numbers)(self.at(each, dtype) for each in numbers)
        numbers = np.asarray(numbers)
        flat = [ops.reshape(each, (-1,)) for each in self.arrays()]
        joined = flat[0] if len(flat) == 1 else ops.concat(flat)
        if dtype is not None and dtype_of(joined) != dtype:
            joined = ops.astype(joined, dtype)
        if isinstance(joined, Variable) and not (is_read := np.isin(np.arange(1, self._count + 1), numbers)).all():
            joined = masked(joined, is_read)
        is_made = numbers == 0
        if not is_made.any():
            return ops.index(joined, of_library(numbers - 1, joined))
        if not self._count:
            return np.zeros(numbers.shape)
        elements = ops.index(joined, of_library(np.maximum(numbers - 1, 0), joined))
        return ops.where(of_library(~is_made, joined), elements, ops.zeros_like(elements))


class Concatenator:
    """``r_`` and ``c_``: arrays, numbers and ranges joined by indexing, as NumPy's objects of these names do.

    >>> Concatenator("r_")[1:3, 5.0]
    array([1., 2., 5.])
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"<oxigrad.xp.{self._name}>"

    def __reduce__(self) -> str:
        return self._name

    def __getitem__(self, key: Key) -> Array:
        """The parts of the key, joined."""
        numpys = getattr(np, self._name)
        parts = key if isinstance(key, tuple) else (key,)
        if not any(has_variable((part,)) or (is_array(part) and namespace(part) is not np) for part in parts):
            return numpys[key]
        elements = _Elements()
        numbered = [
            part if isinstance(part, str) else elements.numbered(np.r_[part] if isinstance(part, slice) else part)
            for part in parts
        ]
        return elements.at(numpys[tuple(numbered)])


def take(a: Array, indices: Array, axis: int | None = None, out: None = None, mode: str = "raise") -> Array:
    """The elements at ``indices`` along ``axis``, or of the flattened array.

    ``mode`` is "raise", "wrap" or "clip" for indices out of bounds.
    """
    a = array(a)
    a, axis = (ops.reshape(a, (-1,)), 0) if axis is None else (a, position(axis, a.ndim))
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"mode is {mode!r}: expected raise, wrap or clip")
    places, size = values(indices), a.shape[axis]
    if mode == "raise" and places.size and not (-size <= places.min() and places.max() < size):
        raise IndexError(f"take: an index is out of bounds for axis {axis} of size {size}")
    places = np.clip(places, 0, size - 1) if mode == "clip" else places % max(size, 1)
    return ops.index(a, ops.along(axis, of_library(places, a)))


def apply_along_axis(func1d: Function, axis: int, arr: Array, *args: Any, **kwargs: Any) -> Array:
    """``func1d`` of each vector of ``arr`` along ``axis``; the dimensions of its results take the place of the axis."""
    arr = array(arr)
    axis = position(axis, arr.ndim)
    rows = standard.moveaxis(arr, axis, -1)
    others = tuple(rows.shape[:-1])
    results = [array(func1d(row, *args, **kwargs)) for row in ops.reshape(rows, (-1, rows.shape[-1]))]
    if not results:
        raise ValueError("apply_along_axis: found an array without elements, expected at least one vector")
    whole = ops.stack(results)
    whole = ops.reshape(whole, (*others, *whole.shape[1:]))
    added = range(len(others), whole.ndim)
    return standard.moveaxis(whole, tuple(added), tuple(range(axis, axis + len(added))))


def apply_over_axes(func: Function, a: Array, axes: Any) -> Array:
    """``func(a, axis)`` over each of the axes in turn, which keep size 1."""
    a = array(a)
    for axis in np.ravel(axes).tolist():
        place = position(axis, a.ndim)
        result = func(a, place)
        a = result if result.ndim == a.ndim else ops.expand_dims(result, place)
    return a


def piecewise(x: Array, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Array:
    """Evaluates for each element the function, or number, of the last condition that holds; else zero.

    An additional last function or number applies to the elements without a condition that holds.
    """
    x = array(x)
    conditions = strip(condlist)
    conditions = [values(each) for each in conditions] if isinstance(conditions, (list, tuple)) else conditions
    is_one = np.ndim(conditions) == 0 or (not isinstance(conditions[0], (list, np.ndarray)) and x.ndim)
    conditions = [np.asarray(each, dtype=bool) for each in ([conditions] if is_one else conditions)]
    if len(funclist) == len(conditions) + 1:
        conditions.append(~np.logical_or.reduce(conditions))
    if len(funclist) != len(conditions):
        raise ValueError(
            f"piecewise: found {len(funclist)} functions, expected {len(conditions)} or {len(conditions) + 1}, as "
            "there are conditions"
        )
    result = ops.zeros_like(x)
    for condition, function in zip(conditions, funclist, strict=True):
        if condition.any():
            key = (
                tuple(of_library(places, x) for places in np.nonzero(np.broadcast_to(condition, x.shape)))
                if x.ndim
                else ...
            )
            value = function(x[key], *args, **kw) if callable(function) else function
            result = At(result)[key].set(value) if x.ndim else array(value, x.dtype)
    return result
