"""Primitives: the functions that a tape records. All other functions of `oxigrad.xp` are composed of them."""

import builtins
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from oxigrad import _core
from oxigrad._core import DtypeError, ShapeError, plain
from oxigrad._typing import Array, Device, Dtype, Key, Results
from oxigrad.ops.backends import (
    adapter_of,
    array_of,
    blank_like,
    device_of,
    dtype_in,
    dtype_of,
    is_array,
    is_batched,
    is_complex,
    is_of_kind,
    is_smooth,
    namespace,
    zeros_of,
)
from oxigrad.ops.core.dtypes import isdtype, nearest
from oxigrad.ops.core.shapes import RAW_ERRORS, broadcasting, check_axes, check_shapes, not_negative, position

__all__ = [
    "astype",
    "broadcast_to",
    "concat",
    "conjugate",
    "expand_dims",
    "flip",
    "matmul",
    "matrix_transpose",
    "max",
    "mean",
    "min",
    "ones_like",
    "permute_dims",
    "ravel",
    "reshape",
    "squeeze",
    "stack",
    "sum",
    "take_along_axis",
    "zeros_like",
]

_record = _core.record

_ELEMENTWISE = {function.__name__: function for function in _core.elementwise_functions()}
globals().update(_ELEMENTWISE)


def __getattr__(name: str) -> Any:  # elementwise ops are defined by the op table
    raise AttributeError(f"there is no op {name!r}")


Axis = int | tuple[int, ...] | None


def sum(
    x: Array,
    /,
    axis: Axis = None,
    *,
    dtype: Dtype = None,
    keepdims: bool = False,
    initial: Array | None = None,
    where: Array = None,
) -> Array:
    """Sum over ``axis``, or over everything, of the elements that ``where`` selects, and of ``initial``."""
    if where is not None or initial is not None:
        total = sum(selected(x, where, 0), axis=axis, dtype=dtype, keepdims=keepdims)
        return total if initial is None else total + initial
    if dtype is not None:
        # By default a library may sum small integers in a larger dtype; its own sum would add in another order.
        total = sum(astype(array_of(x), dtype, copy=False), axis=axis, keepdims=keepdims)
        return astype(total, dtype, copy=False)
    return _along("sum", x, {"axis": axis, "keepdims": keepdims})


def mean(x: Array, /, axis: Axis = None, *, dtype: Dtype = None, keepdims: bool = False, where: Array = None) -> Array:
    """Arithmetic mean over ``axis``, or over everything, of the elements that ``where`` selects."""
    x = x if dtype is None else in_floats("mean", x, dtype)
    if where is not None:
        total = sum(selected(x, where, 0), axis=axis, keepdims=keepdims)
        return total / sum(selected(ones_like(array_of(x)), where, 0.0), axis=axis, keepdims=keepdims)
    return _along("mean", x, {"axis": axis, "keepdims": keepdims})


def max(
    x: Array, /, axis: Axis = None, *, keepdims: bool = False, initial: Array | None = None, where: Array = None
) -> Array:
    """Largest element along ``axis``; equal largest elements share the gradient evenly.

    With ``initial``, the largest of it and the elements that ``where`` selects.
    """
    if initial is not None or where is not None:
        return _extreme(max, _ELEMENTWISE["maximum"], -math.inf, x, axis, keepdims, initial, where)
    return _along("max", x, {"axis": axis, "keepdims": keepdims})


def min(
    x: Array, /, axis: Axis = None, *, keepdims: bool = False, initial: Array | None = None, where: Array = None
) -> Array:
    """Smallest element along ``axis``; equal smallest elements share the gradient evenly.

    With ``initial``, the smallest of it and the elements that ``where`` selects.
    """
    if initial is not None or where is not None:
        return _extreme(min, _ELEMENTWISE["minimum"], math.inf, x, axis, keepdims, initial, where)
    return _along("min", x, {"axis": axis, "keepdims": keepdims})


def in_floats(name: str, x: Array, dtype: Dtype) -> Array:
    """``x`` in a floating-point dtype. Raises `DtypeError`, which names the function, for any other dtype."""
    if not isdtype(dtype, ("real floating", "complex floating")):
        raise DtypeError(f"{name}: dtype is {dtype}: expected a floating-point dtype")
    return astype(x, dtype, copy=False)


def selected(x: Array, mask: Array, other: complex) -> Array:
    """The elements that a mask selects, with ``other`` elsewhere; ``x`` itself if the mask is None or True."""
    if mask is None or mask is True:
        return x
    x, mask = array_of(x), plain(mask)
    if not is_array(mask) or namespace(mask) is not namespace(x):
        mask = namespace(x).asarray(mask, device=device_of(plain(x)))
    return _ELEMENTWISE["where"](broadcasting(mask, x.shape), x, other)


def _extreme(
    reduce: Callable[..., Any],
    join: Callable[..., Any],
    bound: float,
    x: Array,
    axis: Axis,
    keepdims: bool,
    initial: Array | None,
    where: Array,
) -> Array:
    """The largest or smallest of ``initial`` and the elements that a mask selects."""
    if initial is None:
        raise ValueError("where= requires initial=, the result where no element is selected")
    x = array_of(x)
    x = selected(x, where, nearest(bound, dtype_of(x)))
    if 0 in x.shape:
        shape = tuple(sum(x, axis=axis, keepdims=keepdims).shape)
        return astype(broadcast_to(array_of(initial, [x]), shape), dtype_of(x), copy=False)
    return join(reduce(x, axis=axis, keepdims=keepdims), initial)


def cumulative_sum(x: Array, /, *, axis: int) -> Array:
    """Cumulative sums along ``axis``: `oxigrad.xp.cumulative_sum` has the standard's signature."""
    return _along("cumulative_sum", x, {"axis": axis})


def flip(x: Array, /, axis: Axis = None) -> Array:
    """The elements in reverse order along ``axis``, or along every axis."""
    return _along("flip", x, {"axis": axis})


def matmul(x1: Array, x2: Array, /) -> Array:
    """Matrix product, over stacks of matrices and with vectors as in the standard."""
    try:
        return _record("matmul", [x1, x2])
    except RAW_ERRORS:
        check_shapes("matmul", [tuple(getattr(x, "shape", ())) for x in (x1, x2)])
        raise


class _NoTransposeError(ShapeError, AttributeError):
    """Raised by ``x.mT`` of an array of fewer than two dimensions, so that ``hasattr`` is False."""


def matrix_transpose(x: Array, /) -> Array:
    """The transpose of each matrix of a stack."""
    x = array_of(x)
    ndim = len(x.shape)
    if ndim < 2:
        raise _NoTransposeError(f"matrix_transpose: found x of {ndim} dimensions, expected at least 2")
    return _record("permute_dims", [x], {"axes": (*range(ndim - 2), ndim - 1, ndim - 2)})


def reshape(x: Array, /, shape: int | tuple[int, ...], *, copy: bool | None = None, order: str = "C") -> Array:
    """The elements of ``x`` in another shape; one size may be -1.

    ``order`` is the order in which elements are read and written: "C" (last index fastest), "F" (first index fastest),
    or "A" (the order of these two in which ``x`` lies in memory).

    >>> import numpy as np
    >>> reshape(np.array([[1, 2], [3, 4]]), (4,), order="F")
    array([1, 3, 2, 4])
    """
    shape = shape if isinstance(shape, tuple) else _sizes(shape)
    if order != "C":
        if order == "A":
            return reshape(x, shape, copy=copy, order=_memory_order(x))
        if order != "F":
            raise ValueError(f"order is {order!r}: expected 'C', 'F' or 'A'")
        return permute_dims(reshape(permute_dims(x), shape[::-1], copy=copy))
    named = {"shape": shape} if copy is None else {"shape": shape, "copy": copy}
    return _record("reshape", [x], named)


def _memory_order(x: Array) -> str:
    """The ``order`` that "A" means: "F" for an array in Fortran's order in memory, else "C"."""
    return "F" if adapter_of(array := _sample(x)).is_in_fortran_order(array) else "C"


def _sample(x: Array) -> Array:
    """The plain array of ``x``: the first example of a batched value, or a stand-in of a recorded one."""
    array = plain(x)
    if hasattr(array, "sample") or not is_batched(array):
        return getattr(array, "sample", array)
    return _sample(array.value)[0] if len(array.value) else array


def _sizes(shape: Any) -> tuple[int, ...]:
    try:
        return tuple(shape)
    except TypeError:
        return (operator.index(shape),)


def ravel(x: Array, /, *, order: str = "C") -> Array:
    """The flattened elements of ``x``, in the ``order`` of `reshape`, or with "K" in memory order."""
    if order == "K":
        strides = adapter_of(array := _sample(x)).strides(array)
        x, order = permute_dims(x, tuple(sorted(range(len(x.shape)), key=lambda axis: -abs(strides[axis])))), "C"
    return reshape(x, (-1,), order=order)


def permute_dims(x: Array, /, axes: tuple[int, ...] | None = None) -> Array:
    """The dimensions permuted; reversed where ``axes`` is not given, as in NumPy."""
    x = array_of(x)
    ndim = len(x.shape)
    if axes is None:
        axes = tuple(reversed(range(ndim)))
    elif sorted(axis + ndim if axis < 0 else axis for axis in axes) != list(range(ndim)):
        check_axes(tuple(axes), ndim, "permute_dims")
        raise ShapeError(
            f"permute_dims: found axes {tuple(axes)}, expected a permutation of the {ndim} dimensions of x"
        )
    else:
        axes = tuple(axis % ndim for axis in axes)
    return _record("permute_dims", [x], {"axes": axes})


def expand_dims(x: Array, /, axis: int = 0) -> Array:
    """A new dimension of size 1 at ``axis``."""
    return _along("expand_dims", x, {"axis": axis})


def squeeze(x: Array, /, axis: Axis = None) -> Array:
    """``x`` without the dimensions of size 1 at ``axis``; None means all dimensions of size 1, as in NumPy."""
    if axis is None:
        x = array_of(x)
        axis = tuple(a for a, size in enumerate(x.shape) if size == 1)
    return _along("squeeze", x, {"axis": axis})


def broadcast_to(x: Array, /, shape: tuple[int, ...]) -> Array:
    """``x`` repeated to a larger shape."""
    return _record("broadcast_to", [x], {"shape": not_negative("broadcast_to", _sizes(shape))})


def concat(arrays: Sequence[Array], /, axis: int | None = 0) -> Array:
    """Arrays joined along ``axis``, or flattened first if ``axis`` is None."""
    try:
        shapes = [x.shape for x in arrays]
    except AttributeError:  # lists and numbers among them
        arrays = arrays_of(arrays, "concat")
        shapes = [x.shape for x in arrays]
    if axis is None:
        return concat([ravel(x) for x in arrays], axis=0)
    axis = position(axis, len(shapes[0]) if shapes else 0, "concat")
    ends = [0]
    try:
        for shape in shapes:
            ends.append(ends[-1] + shape[axis])
        return _record("concat", list(arrays), {"axis": axis, "ends": tuple(ends)})
    except (IndexError, RuntimeError, TypeError, ValueError):  # which libraries raise
        if len({(*shape[:axis], *shape[axis + 1 :], len(shape)) for shape in map(tuple, shapes)}) > 1:
            named = ", ".join(str(tuple(shape)) for shape in shapes)
            raise ShapeError(
                f"concat: found shapes {named}, expected shapes that are equal except along axis {axis}"
            ) from None
        raise


def stack(arrays: Sequence[Array], /, axis: int = 0, *, dtype: Dtype = None) -> Array:
    """Arrays joined along a new ``axis``."""
    if dtype is not None:
        return in_floats("stack", stack(arrays, axis), dtype)
    if not len(arrays) or any(type(x) in (list, tuple, bool, int, float, complex) for x in arrays):
        arrays = arrays_of(arrays, "stack")
    axis = position(axis, len(getattr(arrays[0], "shape", ())) + 1, "stack")
    try:
        return _record("stack", list(arrays), {"axis": axis})
    except (IndexError, RuntimeError, TypeError, ValueError):  # which libraries raise
        shapes = [tuple(getattr(x, "shape", ())) for x in arrays]
        if len(set(shapes)) > 1:
            named = ", ".join(map(str, shapes))
            raise ShapeError(f"stack: found shapes {named}, expected arrays of one shape") from None
        raise


def _along(name: str, x: Array, named: dict[str, Any]) -> Array:
    """An op along one axis or several. Raises `ShapeError` or `TypeError` for axes that the array does not have."""
    try:
        return _record(name, [x], named)
    except RAW_ERRORS:
        check_axes(named["axis"], len(getattr(x, "shape", ())) + (name == "expand_dims"), name)
        raise


def arrays_of(arrays: Sequence[Array], name: str) -> list[Array]:
    """A list of one or more array_likes as arrays."""
    arrays = list(arrays)
    if not arrays:
        raise ShapeError(f"{name}: found no arrays, expected at least one")
    return [array_of(x, arrays) for x in arrays]


def astype(x: Array, dtype: Dtype, /, *, copy: bool = True, device: Device = None) -> Array:
    """``x`` in another dtype; a plain array if that dtype is not floating-point.

    Raises `ValueError` if ``device`` is neither None nor the device of ``x``.
    """
    if dtype is None:
        raise DtypeError("astype: dtype is None: expected a dtype")
    if device is not None:
        require_device("astype", x, device)
    if not copy and not isinstance(x, _core.Variable) and getattr(x, "dtype", None) is dtype:
        return x
    dtype = dtype_in(library := namespace(x), dtype)
    if not is_of_kind(dtype, ("real floating", "complex floating"), library):
        bare = plain(x)
        return library.astype(bare, dtype, copy=copy) if is_array(bare) else library.asarray(bare, dtype=dtype)
    if not is_array(x):
        return library.asarray(x, dtype=dtype)
    if not copy and x.dtype == dtype:
        return x
    return _record("astype", [x], {"dtype": dtype, "copy": copy})


def require_device(name: str, x: Array, device: Device) -> None:
    """Raises `ValueError` if a variable would be copied to another device: the copy has no derivative."""
    if device is not None and device != (current := device_of(plain(x))) and str(device) != str(current):
        raise ValueError(f"{name}: device is {device!r}: expected {current!r}, the device of the variable, or None")


def copied(x: Array, /) -> Array:
    """A copy of ``x``; a number unchanged."""
    return astype(x, x.dtype) if is_array(plain(x)) else x


def take_along_axis(x: Array, indices: Array, /, axis: int | None = -1) -> Array:
    """The elements at ``indices``, of the same rank as ``x``, along ``axis``, or of the flattened array if None."""
    if axis is None:
        x, axis = ravel(x), 0
    indices = plain(indices)
    return _along("take_along_axis", for_examples(x, indices), {"indices": indices, "axis": axis})


def index(x: Array, key: Key, /) -> Array:
    """``x[key]``, for every kind of key."""
    key = tuple(map(plain, key)) if isinstance(key, tuple) else plain(key)
    try:
        return _record("index", [x], {"key": key})
    except (IndexError, TypeError):  # libraries do not know keys that `vmap` has batched
        repeated = for_examples(x, key)
        if repeated is x:
            raise
        return _record("index", [repeated], {"key": key})


def for_examples(x: Array, key: Key) -> Array:
    """``x`` repeated for each example of batched or recorded indices in a key; else ``x`` itself."""
    parts = [part for part in (key if isinstance(key, tuple) else (key,)) if isinstance(part, _core.BatchLevel)]
    part: Any = builtins.max(parts, key=operator.attrgetter("level"), default=None)
    if part is None or (isinstance(x, _core.BatchLevel) and x.level >= part.level):
        return x
    if not hasattr(type(part), "of"):  # a value of a recording
        return part.lifted(x)
    count, array = part.value.shape[0], array_of(x)
    if isinstance(x, _core.Variable):
        moved = _record("subtract", [x, type(part).of(part.level, zeros_of((count,), x))])
        if isinstance(moved, _core.Variable):  # of a tape inside of the `vmap`
            return moved
    return type(part).of(part.level, broadcast_to(array, (count, *array.shape)))


def along(axis: int, part: Key) -> tuple[Any, ...]:
    """The key that indexes ``axis`` by ``part``, and selects all of the other axes."""
    return (*[slice(None)] * axis, part, ...)


def scatter_add(g: Array, key: Key, shape: tuple[int, ...], /) -> Array:
    """Zeros of ``shape`` with ``g`` added at ``key``: the transpose of `index`. Repeated elements accumulate."""
    return _record("scatter_add", [for_examples(g, key)], {"key": key, "shape": tuple(shape)})


def item(results: Results, index: int, /) -> Array:
    """One of the results of an op with several results, which is recorded as a tuple."""
    return _record("item", [results], {"index": index})


def items(results: Results, /) -> tuple[Any, ...]:
    """All results of an op with several results."""
    each = enumerate(plain(results))
    return tuple(item(results, at) if is_smooth(leaf) else leaf for at, leaf in each)


class TupleCotangent(dict[int, Any]):
    """The cotangent or tangent of an op's tuple of results, by index, without absent results; ``+`` adds by index."""

    def __missing__(self, which: int) -> None:
        """None for a result without a cotangent."""

    def __add__(self, other: "TupleCotangent") -> "TupleCotangent":
        """The sum, index by index."""
        return TupleCotangent({**self, **{at: self[at] + part if at in self else part for at, part in other.items()}})


def conjugate(x: Array, /) -> Array:
    """``conj`` of a complex array; a real one unchanged."""
    return _record("conj", [x]) if is_complex(x) else x


def eye_like(x: Array, /) -> Array:
    """The identity matrix of the size of the last dimension of ``x``: a plain array."""
    return namespace(x := array_of(x)).eye(x.shape[-1], dtype=x.dtype, device=device_of(x))


def zeros_like(x: Array, /, *, dtype: Dtype = None, device: Device = None) -> Array:
    """Zeros of the shape of ``x``: a plain array, and inside of a transform a variable that takes assignments."""
    return blank_like("zeros_like", x, dtype, device)


def ones_like(x: Array, /, *, dtype: Dtype = None, device: Device = None) -> Array:
    """Ones of the shape of ``x``: a plain array, and inside of a transform a variable that takes assignments."""
    return blank_like("ones_like", x, dtype, device)
