"""Functions of the standard that have no derivative: their signatures and docstrings.

`oxigrad.ops.protocols.passthrough` calls the array library's function of the same name: the bodies here are never
called. Further arguments of NumPy are accepted if the library accepts them.
"""

# pyright: reportReturnType=false
from collections.abc import Callable
from typing import Any, Literal

from oxigrad._typing import Array, Axis, Device, Dtype, Shape

# --- creation ---------------------------------------------------------------------------------------------------------


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: Dtype = None,
    device: Device = None,
) -> Array:
    """The numbers from ``start`` up to ``stop``, exclusive, by ``step``; from 0 to ``start`` if ``stop`` is None."""


def empty(shape: int | Shape, *, dtype: Dtype = None, device: Device = None) -> Array:
    """An array of a shape whose elements are not initialized."""


def empty_like(x: Array, /, *, dtype: Dtype = None, device: Device = None) -> Array:
    """An array of the shape of ``x`` whose elements are not initialized."""


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Dtype = None, device: Device = None) -> Array:
    """A matrix with ones on the ``k``-th diagonal and zeros elsewhere; square if ``n_cols`` is None."""


def from_dlpack(x: Any, /, *, device: Device = None, copy: bool | None = None) -> Array:
    """A NumPy array of the elements of an object with ``__dlpack__``, in the same memory if possible."""


def ones(shape: int | Shape, *, dtype: Dtype = None, device: Device = None) -> Array:
    """An array of a shape, filled with ones."""


def zeros(shape: int | Shape, *, dtype: Dtype = None, device: Device = None) -> Array:
    """An array of a shape, filled with zeros."""


# --- elementwise ------------------------------------------------------------------------------------------------------


def bitwise_and(x1: Array, x2: Array, /) -> Array:
    """``x1 & x2`` for each bit, of integers or truth values."""


def bitwise_invert(x: Array, /) -> Array:
    """``~x`` for each bit, of integers or truth values."""


def bitwise_left_shift(x1: Array, x2: Array, /) -> Array:
    """The bits of ``x1`` moved to the left by ``x2`` places, zeros moved in: ``x1 << x2``."""


def bitwise_or(x1: Array, x2: Array, /) -> Array:
    """``x1 | x2`` for each bit, of integers or truth values."""


def bitwise_right_shift(x1: Array, x2: Array, /) -> Array:
    """The bits of ``x1`` moved to the right by ``x2`` places, the sign bit repeated: ``x1 >> x2``."""


def bitwise_xor(x1: Array, x2: Array, /) -> Array:
    """``x1 ^ x2`` for each bit, of integers or truth values."""


def nextafter(x1: Array, x2: Array, /) -> Array:
    """The floating-point number next to ``x1`` in the direction of ``x2``."""


def signbit(x: Array, /) -> Array:
    """Whether the sign bit is set, as in -0.0."""


# --- searching, sorting, counting -------------------------------------------------------------------------------------


def all(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Whether all elements along ``axis``, or all of the array, are true."""


def any(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Whether any element along ``axis``, or of the whole array, is true."""


def argmax(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """The index of the first largest element along ``axis``, or in the flattened array."""


def argmin(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """The index of the first smallest element along ``axis``, or in the flattened array."""


def argsort(x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The indices that sort the elements along ``axis``."""


def count_nonzero(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """The number of elements along ``axis``, or in the whole array, that are not zero."""


def isin(x1: Array, x2: Array, /, *, invert: bool = False) -> Array:
    """Whether each element of ``x1`` is in ``x2``; the negation if ``invert`` is true."""


def nonzero(x: Array, /) -> tuple[Array, ...]:
    """The indices of the elements that are not zero: an array for each axis."""


def searchsorted(
    x1: Array, x2: Array, /, *, side: Literal["left", "right"] = "left", sorter: Array | None = None
) -> Array:
    """The indices at which inserting the elements of ``x2`` keeps the sorted vector ``x1`` sorted."""


# --- shapes -----------------------------------------------------------------------------------------------------------


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The shape to which arrays of these shapes broadcast."""


def stated(name: str) -> Callable[..., Any] | None:
    """The function of this file with a name, or None."""
    function = globals().get(name)
    return function if getattr(function, "__module__", None) == __name__ and function is not stated else None
