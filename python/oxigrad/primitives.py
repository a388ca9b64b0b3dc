"""The functions that a tape records: those of the op table, and those with a signature of their own.

Everything else in `oxigrad.xp` is composed of these.
"""

from collections.abc import Sequence
from typing import Any

from oxigrad import _core
from oxigrad._core import plain
from oxigrad.libraries import device_of, is_array, is_complex, is_of_kind, is_smooth, namespace

__all__ = [
    "Parts",
    "astype",
    "broadcast_to",
    "concat",
    "conjugate",
    "copied",
    "expand_dims",
    "eye_like",
    "flip",
    "index",
    "item",
    "items",
    "matmul",
    "matrix_transpose",
    "max",
    "mean",
    "min",
    "ones_like",
    "permute_dims",
    "ravel",
    "reshape",
    "scatter_add",
    "squeeze",
    "stack",
    "sum",
    "take_along_axis",
    "zeros_like",
]

_record = _core.record

for _function in _core.elementwise_functions():
    globals()[_function.__name__] = _function


def __getattr__(name: str) -> Any:  # the names of the op table are not written here
    raise AttributeError(f"there is no op {name!r}")


Axis = int | tuple[int, ...] | None


def sum(x: Any, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """Sum over ``axis``, or over everything."""
    x = x if dtype is None else astype(x, dtype)
    return _record("sum", [x], {"axis": axis, "keepdims": keepdims})


def mean(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """Arithmetic mean over ``axis``, or over everything."""
    return _record("mean", [x], {"axis": axis, "keepdims": keepdims})


def max(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """Largest element along ``axis``; where several are, the gradient is shared evenly among them."""
    return _record("max", [x], {"axis": axis, "keepdims": keepdims})


def min(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Any:
    """Smallest element along ``axis``; where several are, the gradient is shared evenly among them."""
    return _record("min", [x], {"axis": axis, "keepdims": keepdims})


def cumulative_sum(x: Any, /, *, axis: int) -> Any:
    """Sums of the first elements along ``axis``: `oxigrad.xp.cumulative_sum` has the standard's signature."""
    return _record("cumulative_sum", [x], {"axis": axis})


def flip(x: Any, /, *, axis: Axis = None) -> Any:
    """The elements in reverse order along ``axis``, or along every axis."""
    return _record("flip", [x], {"axis": axis})


def matmul(x1: Any, x2: Any, /) -> Any:
    """Matrix product, over stacks of matrices and with vectors as in the standard."""
    return _record("matmul", [x1, x2])


def matrix_transpose(x: Any, /) -> Any:
    """The transpose of each matrix of a stack."""
    ndim = len(x.shape)
    return permute_dims(x, (*range(ndim - 2), ndim - 1, ndim - 2))


def reshape(x: Any, /, shape: int | tuple[int, ...], *, copy: bool | None = None) -> Any:
    """The elements of ``x`` in another shape; one size may be -1."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    named = {"shape": shape} if copy is None else {"shape": shape, "copy": copy}
    return _record("reshape", [x], named)


def ravel(x: Any, /) -> Any:
    """The elements of ``x`` in one dimension."""
    return reshape(x, (-1,))


def permute_dims(x: Any, /, axes: tuple[int, ...] | None = None) -> Any:
    """The dimensions in another order; reversed where ``axes`` is not given, as NumPy does."""
    ndim = len(x.shape)
    axes = tuple(reversed(range(ndim))) if axes is None else tuple(axis % ndim for axis in axes)
    return _record("permute_dims", [x], {"axes": axes})


def expand_dims(x: Any, /, axis: int = 0) -> Any:
    """A new dimension of size 1 at ``axis``."""
    return _record("expand_dims", [x], {"axis": axis})


def squeeze(x: Any, /, axis: Axis = None) -> Any:
    """The dimensions of size 1 at ``axis`` taken away; all of them where it is None, as NumPy does."""
    if axis is None:
        axis = tuple(a for a, size in enumerate(x.shape) if size == 1)
    return _record("squeeze", [x], {"axis": axis})


def broadcast_to(x: Any, /, shape: tuple[int, ...]) -> Any:
    """``x`` repeated to a larger shape."""
    return _record("broadcast_to", [x], {"shape": tuple(shape)})


def concat(arrays: Sequence[Any], /, *, axis: int | None = 0) -> Any:
    """Arrays one after the other along ``axis``; flattened first where it is None."""
    if axis is None:
        return concat([ravel(x) for x in arrays], axis=0)
    axis = axis % len(arrays[0].shape)
    ends = [0]
    for x in arrays:
        ends.append(ends[-1] + x.shape[axis])
    return _record("concat", list(arrays), {"axis": axis, "ends": tuple(ends)})


def stack(arrays: Sequence[Any], /, *, axis: int = 0) -> Any:
    """Arrays along a new ``axis``."""
    return _record("stack", list(arrays), {"axis": axis % (len(getattr(arrays[0], "shape", ())) + 1)})


def astype(x: Any, dtype: Any, /, *, copy: bool = True) -> Any:
    """``x`` in another dtype; a plain array where that dtype is not of floating point."""
    library = namespace(x)
    if not is_of_kind(dtype, ("real floating", "complex floating"), library):
        return library.astype(plain(x), dtype, copy=copy)
    if not is_array(x):
        return library.asarray(x, dtype=dtype)
    if not copy and x.dtype == dtype:
        return x
    return _record("astype", [x], {"dtype": dtype, "copy": copy})


def copied(x: Any, /) -> Any:
    """``x`` in memory of its own; a number as it is."""
    return astype(x, x.dtype) if is_array(plain(x)) else x


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    """The elements at ``indices`` along ``axis``; ``indices`` has the dimensions of ``x``."""
    return _record("take_along_axis", [x], {"indices": plain(indices), "axis": axis})


def index(x: Any, key: Any, /) -> Any:
    """``x[key]``, for every kind of key."""
    key = tuple(map(plain, key)) if isinstance(key, tuple) else plain(key)
    return _record("index", [x], {"key": key})


def along(axis: int, part: Any) -> tuple[Any, ...]:
    """The key that picks ``part`` along an axis."""
    return (*[slice(None)] * axis, part, ...)


def scatter_add(g: Any, key: Any, shape: tuple[int, ...], /) -> Any:
    """Zeros of ``shape`` with ``g`` added at ``key``: what indexing is the transpose of. Repeated elements add up."""
    return _record("scatter_add", [g], {"key": key, "shape": tuple(shape)})


def item(results: Any, index: int, /) -> Any:
    """One of the results of an op that has several: what is recorded of it is a tuple."""
    return _record("item", [results], {"index": index})


def items(results: Any, /) -> tuple[Any, ...]:
    """All results of an op that has several."""
    each = enumerate(plain(results))
    return tuple(item(results, at) if is_smooth(leaf) else leaf for at, leaf in each)


class Parts(dict[int, Any]):
    """The cotangent, or the tangent, of a tuple: that of each result that has one. They add up, item by item."""

    def __init__(self, parts: Any = ()) -> None:
        super().__init__(parts)

    def __missing__(self, which: int) -> None:
        """What has none."""

    def __add__(self, other: "Parts") -> "Parts":
        """The parts of both."""
        return Parts({**self, **{at: self[at] + part if at in self else part for at, part in other.items()}})


def conjugate(x: Any, /) -> Any:
    """``conj`` of a complex array; a real one as it is."""
    return _record("conj", [x]) if is_complex(x) else x


def eye_like(x: Any, /) -> Any:
    """The identity matrix of the size of the last dimension of ``x``: a plain array."""
    return namespace(x).eye(x.shape[-1], dtype=x.dtype, device=device_of(x))


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Zeros of the shape of ``x``: a plain array."""
    return namespace(x).zeros_like(plain(x), dtype=dtype, device=device)


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """Ones of the shape of ``x``: a plain array."""
    return namespace(x).ones_like(plain(x), dtype=dtype, device=device)
