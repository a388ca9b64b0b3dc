"""Filters of ranks and morphology of images, as functions of `oxigrad.xp.ndimage`.

They are composed of a gather of the elements of each window and a reduction. A derivative therefore flows to the
selected element, in all modes and orders, and in every library. Equal extremes share the derivative equally, as in
`xp.max`; in a window of a ``size``, along each axis in turn. Among equal elements that a rank selects, one receives the
whole derivative. The windows are held in memory, in an array of the size of the image times the size of the footprint.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oxigrad import DtypeError, ShapeError
from oxigrad import xp as ops
from oxigrad import xp as standard
from oxigrad._typing import Array, Axis, Function, PerAxis
from oxigrad.ops.backends import array_of, dtype_of, is_complex
from oxigrad.ops.core.in_place import of_library
from oxigrad.ops.core.primitives import index
from oxigrad.ops.core.standard import axes_of
from oxigrad.ops.scipy_signatures import scipy_signature
from oxigrad.xp import isdtype
from oxigrad.xp._scipy.ndimage.extension import check_mode, for_each_axis, widened
from oxigrad.xp._scipy.ndimage.filters import along_axes, in_dtype_of

__all__ = [
    "black_tophat",
    "grey_closing",
    "grey_dilation",
    "grey_erosion",
    "grey_opening",
    "maximum_filter",
    "maximum_filter1d",
    "median_filter",
    "minimum_filter",
    "minimum_filter1d",
    "morphological_gradient",
    "morphological_laplace",
    "percentile_filter",
    "rank_filter",
    "white_tophat",
]

_OF_SIZE = 'size=None, footprint=None, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None'
_ALONG_AXIS = 'input, size, axis=-1, output=None, mode="reflect", cval=0.0, origin=0'
_GREY = f"input, {_OF_SIZE.replace('footprint=None', 'footprint=None, structure=None')}"


# --- windows ----------------------------------------------------------------------------------------------------------


def _windows(
    name: str, x: Array, footprint: np.ndarray, modes: Sequence[str], cval: float, origins: Sequence[int]
) -> Array:
    """The elements of each element's window along a last axis; ``cval`` beyond the edges in the mode "constant"."""
    if is_complex(x):
        raise DtypeError(f"{name}: found a complex array, expected a real one")
    widths = [(size // 2 + at, size - 1 - size // 2 - at) for size, at in zip(footprint.shape, origins, strict=True)]
    for size, at, width in zip(footprint.shape, origins, widths, strict=True):
        if min(width) < 0:
            raise ValueError(
                f"{name}: origin is {at}: expected a whole number from {-(size // 2)} to {(size - 1) // 2}"
            )
    shape = tuple(x.shape)
    if 0 in shape:
        return ops.broadcast_to(ops.expand_dims(x, axis=-1), (*shape, int(footprint.sum())))
    places = np.arange(1, math.prod(shape) + 1).reshape(shape)  # zero is beyond the edges
    whole = np.lib.stride_tricks.sliding_window_view(widened(places, widths, modes), footprint.shape)[..., footprint]
    taken = standard.take(ops.reshape(x, (-1,)), of_library(np.maximum(whole - 1, 0).reshape(-1), x), axis=0)
    taken = ops.reshape(taken, whole.shape)
    if whole.all():
        return taken
    cval = cval if isdtype(dtype_of(x), "real floating") else int(cval)
    return ops.where(of_library(whole > 0, x), taken, cval)


def _in_window(
    name: str,
    x: Array,
    size: PerAxis[int] | None,
    footprint: Array | None,
    mode: PerAxis[str],
    cval: float,
    origin: PerAxis[int],
    axes: Axis,
) -> tuple[Any, np.ndarray]:
    """The windows of an image along some axes, by size or by footprint, and the footprint."""
    places = axes_of(axes, len(x.shape))
    if len(places) == len(x.shape):  # SciPy takes all axes in the order of the array
        places = axes_of(None, len(x.shape))
    if footprint is None:
        footprint = np.ones([int(n) for n in for_each_axis(name, "size", _stated_size(name, size), len(places))], bool)
    footprint = np.asarray(footprint, bool)
    if not footprint.any():
        raise ValueError(f"{name}: found a footprint without elements, expected one at least")
    origins = for_each_axis(name, "origin", origin, len(places))
    whole, origins = along_axes(name, x, footprint, origins, places, "a footprint")
    modes = ["constant"] * len(x.shape)
    for place, each in zip(places, for_each_axis(name, "mode", mode, len(places)), strict=True):
        check_mode(name, each)
        modes[place] = each
    return _windows(name, x, np.asarray(whole), modes, cval, origins), footprint


def _stated_size(name: str, size: PerAxis[int] | None) -> Any:
    if size is None:
        raise ValueError(f"{name}: found neither a size nor a footprint, expected one of them")
    return size


# --- extremes ---------------------------------------------------------------------------------------------------------


def _along_axis(name: str, reduce: Function, x: Array, size: int, axis: int, **window: Any) -> Array:
    if size < 1:
        raise ValueError(f"{name}: size is {size}: expected a whole number above zero")
    return reduce(_in_window(name, x, size, None, axes=axis, **window)[0], axis=-1)


def _extreme(
    name: str,
    reduce: Function,
    x: Array,
    size: PerAxis[int] | None,
    footprint: Array,
    axes: Axis,
    structure: Array = None,
    **window: Any,
) -> Array:
    """An extreme of each window, plus the elements of a structure: by a size, along one axis after another."""
    x = array_of(x)
    if footprint is not None and structure is None and np.all(footprint):
        size, footprint = np.shape(footprint), None
    if footprint is None and structure is None:
        places = axes_of(axes, len(x.shape))
        named = {**window, "size": _stated_size(name, size)}
        each = [for_each_axis(name, what, named[what], len(places)) for what in ("size", "mode", "origin")]
        y = x
        for place, n, one, at in zip(places, *each, strict=True):
            y = _along_axis(name, reduce, y, int(n), place, mode=one, cval=window["cval"], origin=at)
        return y
    if structure is not None:
        structure = array_of(structure, [x])
        footprint = np.ones(tuple(structure.shape), bool) if footprint is None else footprint
        if np.shape(footprint) != tuple(structure.shape):
            shapes = f"{tuple(structure.shape)} and a footprint of shape {np.shape(footprint)}"
            raise ShapeError(f"{name}: found a structure of shape {shapes}, expected equal shapes")
    windows, chosen = _in_window(name, x, None, footprint, axes=axes, **window)
    if structure is not None:
        at = of_library(np.flatnonzero(chosen), x)
        windows = in_dtype_of(x, windows + standard.take(ops.reshape(structure, (-1,)), at, axis=0))
    return reduce(windows, axis=-1)


@scipy_signature(f"input, {_OF_SIZE}")
def minimum_filter(x: Array, /, **window: Any) -> Array:
    """The smallest element of each window: a box of ``size``, or the elements that are true in ``footprint``."""
    return _extreme("minimum_filter", ops.min, x, **window)


@scipy_signature(f"input, {_OF_SIZE}")
def maximum_filter(x: Array, /, **window: Any) -> Array:
    """The largest element of each window: a box of ``size``, or the elements that are true in ``footprint``."""
    return _extreme("maximum_filter", ops.max, x, **window)


@scipy_signature(_ALONG_AXIS)
def minimum_filter1d(x: Array, /, **window: Any) -> Array:
    """The smallest of ``size`` elements along an axis."""
    return _along_axis("minimum_filter1d", ops.min, array_of(x), **window)


@scipy_signature(_ALONG_AXIS)
def maximum_filter1d(x: Array, /, **window: Any) -> Array:
    """The largest of ``size`` elements along an axis."""
    return _along_axis("maximum_filter1d", ops.max, array_of(x), **window)


# --- ranks ------------------------------------------------------------------------------------------------------------


def _of_rank(name: str, x: Array, rank: Callable[[int], int], **window: Any) -> Array:
    """The element of each window with the rank ``rank(count)``, where ``count`` is the size of the window."""
    windows, _ = _in_window(name, array_of(x), **window)
    count = windows.shape[-1]
    at = rank(count)
    if not 0 <= at < count:
        raise ValueError(f"{name}: rank is {at}: expected a whole number from {-count} to {count - 1}")
    return index(standard.sort(windows, axis=-1), (..., at))


@scipy_signature(f"input, rank, {_OF_SIZE}")
def rank_filter(x: Array, /, rank: int, **window: Any) -> Array:
    """The element of a ``rank`` in each window: 0 is the smallest, -1 the largest."""
    of = lambda count: rank + count if rank < 0 else rank  # noqa: E731
    return _of_rank("rank_filter", x, of, **window)


@scipy_signature(f"input, percentile, {_OF_SIZE}")
def percentile_filter(x: Array, /, percentile: float, **window: Any) -> Array:
    """The element of each window below which ``percentile`` of a hundred are; a negative one counts from 100."""
    percent = percentile + 100.0 if percentile < 0.0 else percentile
    if not 0.0 <= percent <= 100.0:
        raise ValueError(f"percentile_filter: percentile is {percentile!r}: expected a number from -100 to 100")
    of = lambda count: min(int(count * percent / 100.0), count - 1)  # noqa: E731
    return _of_rank("percentile_filter", x, of, **window)


@scipy_signature(f"input, {_OF_SIZE}")
def median_filter(x: Array, /, **window: Any) -> Array:
    """The median of each window; of an even number of elements, the larger of the two in the middle."""
    return _of_rank("median_filter", x, lambda count: count // 2, **window)


# --- morphology -------------------------------------------------------------------------------------------------------


@scipy_signature(_GREY)
def grey_erosion(x: Array, /, structure: Array, **window: Any) -> Array:
    """The smallest element of each window, less the elements of ``structure``, which is differentiable too."""
    structure = None if structure is None else ops.negative(array_of(structure, [x]))
    return _extreme("grey_erosion", ops.min, x, structure=structure, **window)


@scipy_signature(_GREY)
def grey_dilation(
    x: Array,
    /,
    size: PerAxis[int] | None,
    footprint: Array | None,
    structure: Array,
    origin: PerAxis[int],
    axes: Axis,
    **window: Any,
) -> Array:
    """The largest element of each reflected window, plus the elements of ``structure``, which is differentiable too."""
    count = len(axes_of(axes, len(array_of(x).shape)))
    sizes = for_each_axis("grey_dilation", "size", size, count)
    if structure is not None:
        structure = array_of(structure, [x])
        sizes = list(structure.shape)
        structure = ops.flip(structure)
    if footprint is not None:
        footprint = np.asarray(footprint, bool)
        sizes = list(footprint.shape)
        footprint = np.flip(footprint)
    origins = for_each_axis("grey_dilation", "origin", origin, count)
    origins = [-at - (1 - int(_stated_size("grey_dilation", n)) % 2) for at, n in zip(origins, sizes, strict=False)]
    return _extreme("grey_dilation", ops.max, x, size, footprint, axes, structure, origin=origins, **window)


@scipy_signature(_GREY)
def grey_opening(x: Array, /, **window: Any) -> Array:
    """The dilation of the erosion."""
    return grey_dilation(grey_erosion(x, **window), **window)


@scipy_signature(_GREY)
def grey_closing(x: Array, /, **window: Any) -> Array:
    """The erosion of the dilation."""
    return grey_erosion(grey_dilation(x, **window), **window)


@scipy_signature(_GREY)
def morphological_gradient(x: Array, /, **window: Any) -> Array:
    """The dilation less the erosion."""
    return grey_dilation(x, **window) - grey_erosion(x, **window)


@scipy_signature(_GREY)
def morphological_laplace(x: Array, /, **window: Any) -> Array:
    """The dilation plus the erosion, less twice the image."""
    x = array_of(x)
    return grey_dilation(x, **window) + grey_erosion(x, **window) - x - x


@scipy_signature(_GREY)
def white_tophat(x: Array, /, **window: Any) -> Array:
    """The image less its opening."""
    return array_of(x) - grey_opening(x, **window)


@scipy_signature(_GREY)
def black_tophat(x: Array, /, **window: Any) -> Array:
    """The closing of the image less the image."""
    return grey_closing(x, **window) - array_of(x)
