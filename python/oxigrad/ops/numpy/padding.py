"""Padding of arrays, by all modes of `numpy.pad`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad._core import Variable, plain
from oxigrad._typing import Array
from oxigrad.ops.backends import device_of, dtype_of, is_of_kind, namespace
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core import standard
from oxigrad.ops.core.array_like import array as as_array
from oxigrad.ops.core.composite import accepts_array_likes
from oxigrad.ops.core.primitives import along, copied
from oxigrad.ops.core.shapes import position
from oxigrad.ops.numpy import order_statistics
from oxigrad.ops.numpy.creation import linspace

__all__ = ["pad"]

_STATISTICS: dict[str, Callable[..., Any]] = {
    "maximum": ops.max,
    "mean": ops.mean,
    "median": order_statistics.FORMS["median"],
    "minimum": ops.min,
}
_MODES = ("constant", "edge", "empty", "linear_ramp", "reflect", "symmetric", "wrap", *_STATISTICS)


@accepts_array_likes
def pad(
    x: Array,
    pad_width: Any,
    /,
    mode: str = "constant",
    *,
    constant_values: Array = 0.0,
    stat_length: Any = None,
    end_values: Array = 0.0,
    reflect_type: str = "even",
) -> Array:
    """``x`` with ``pad_width`` elements before and after each axis, by the modes of `numpy.pad`.

    They are ``constant_values`` (the mode "constant"), elements of ``x`` ("edge", "reflect", "symmetric", "wrap"), the
    "maximum", "mean", "median" or "minimum" of ``stat_length`` elements at each end, or numbers from the edge to
    ``end_values`` ("linear_ramp"). A mode that is a function is refused, since it writes to an array.

    >>> pad(np.array([1.0, 2.0, 3.0]), 2, "reflect")
    array([3., 2., 1., 2., 3., 2., 1.])
    """
    if mode not in _MODES:
        raise ValueError(f"mode is {mode!r}: expected one of {', '.join(_MODES)}")
    if mode not in ("constant", "empty") and not (isinstance(constant_values, (int, float)) and constant_values == 0.0):
        raise ValueError(f"constant_values requires mode='constant', found mode={mode!r}")
    widths = [(int(before), int(after)) for before, after in _pairs(pad_width, x.ndim)]
    if any(min(width) < 0 for width in widths) or widths != _pairs(pad_width, x.ndim):
        raise ValueError(f"pad: pad_width is {pad_width!r}: expected whole numbers of zero or more")
    if any(length is not None and length < 0 for pair in _pairs(stat_length, x.ndim) for length in pair):
        raise ValueError(f"pad: stat_length is {stat_length!r}: expected lengths of zero or more")
    if not any(map(any, widths)):
        return copied(x)
    if mode in _STATISTICS:
        return _with_ends(x, widths, _STATISTICS[mode], _pairs(stat_length, x.ndim))
    if mode == "linear_ramp":
        return _ramp(x, widths, _pairs(end_values, x.ndim))
    if mode in ("reflect", "symmetric") and reflect_type == "odd":
        return _reflected(x, widths, mode)
    values = _pairs(constant_values, x.ndim)
    for axis, width in enumerate(widths):
        if any(width):
            x = _padded(x, axis, width, mode, values[axis])
    return x


def _padded(x: Array, axis: int, width: tuple[int, int], mode: str, values: tuple[Array, Array]) -> Array:
    library, device = namespace(x), device_of(plain(x))
    if mode not in ("constant", "empty"):
        places = library.arange(-width[0], x.shape[axis] + width[1], device=device)
        return standard.take(x, _places(places, mode, x.shape[axis]), axis=axis)
    shapes = [tuple(count if a == axis else size for a, size in enumerate(x.shape)) for count in width]
    before, after = (_filled(shape, value, x) for shape, value in zip(shapes, values, strict=True))
    return ops.concat([before, x, after], axis=axis)


def _filled(shape: tuple[int, ...], value: Array, x: Array) -> Array:
    if isinstance(value, Variable):
        return standard.full(shape, value, dtype=dtype_of(x))
    number = value.item() if hasattr(value, "item") else value
    return namespace(x).full(shape, number, dtype=dtype_of(x), device=device_of(plain(x)))


def _places(places: Array, mode: str, size: int) -> Array:
    """The indices of the elements that a padding mode takes for positions inside and outside of an axis of ``size``."""
    library = namespace(places)
    if mode == "edge":
        return library.clip(places, 0, size - 1)
    period = {"wrap": size, "reflect": max(2 * size - 2, 1), "symmetric": 2 * size}[mode]
    places = places % period
    return places if mode == "wrap" else library.minimum(places, period - (mode == "symmetric") - places)


def _pairs(value: Any, ndim: int) -> list[Any]:
    """An argument of `pad` as a pair for each axis."""
    if value is None:
        return [(None, None)] * ndim
    if isinstance(value, dict):
        by_axis = {position(axis, ndim, "pad"): each for axis, each in value.items()}
        return [tuple(np.broadcast_to(by_axis.get(axis, 0), 2).tolist()) for axis in range(ndim)]
    whole = ops.broadcast_to(as_array(value), (ndim, 2))
    return [(whole[axis, 0], whole[axis, 1]) for axis in range(ndim)]


def _with_ends(x: Array, widths: list[Any], reduce: Callable[..., Any], lengths: list[Any]) -> Array:
    """The axes lengthened in turn, by a statistic of the elements at each end."""
    for axis, pair in enumerate(widths):
        size, parts = x.shape[axis], [x]
        for side, count in enumerate(pair):
            length = lengths[axis][side]
            near = size if length is None else min(int(length), size)
            part = slice(None, near) if side == 0 else slice(size - near, None)
            end = _in_dtype_of(x, reduce(x[along(axis, part)], axis=axis, keepdims=True), ops.round)
            repeated = ops.broadcast_to(end, (*x.shape[:axis], count, *x.shape[axis + 1 :]))
            parts.insert(len(parts) * side, repeated)
        x = ops.concat(parts, axis=axis)
    return x


def _in_dtype_of(x: Array, part: Array, whole: Callable[[Array], Array] | None = None) -> Array:
    """A part that is joined to ``x``, in its dtype: ``whole`` gives integers."""
    dtype = dtype_of(x)
    if dtype_of(part) == dtype:
        return part
    return ops.astype(whole(part) if whole and is_of_kind(dtype, "integral", namespace(x)) else part, dtype)


def _ramp(x: Array, widths: list[Any], ends: list[Any]) -> Array:
    """The axes lengthened in turn, by numbers evenly spaced between the end values and the edges."""
    for axis, pair in enumerate(widths):
        before, after = pair
        first, last = (ops.squeeze(x[along(axis, part)], axis=axis) for part in (slice(0, 1), slice(-1, None)))
        left = linspace(_filled(tuple(first.shape), ends[axis][0], x), first, before, endpoint=False, axis=axis)
        right = linspace(_filled(tuple(last.shape), ends[axis][1], x), last, after, endpoint=False, axis=axis)
        x = ops.concat(
            [_in_dtype_of(x, left, ops.floor), x, _in_dtype_of(x, ops.flip(right, axis=axis), ops.floor)], axis=axis
        )
    return x


def _reflected(x: Array, widths: list[Any], mode: str) -> Array:
    """Padding by reflection in the point at the edge: twice the edge minus the mirrored elements."""
    skipped = 1 if mode == "reflect" else 0
    for axis, pair in enumerate(widths):
        before, after = pair
        while before or after:
            size = x.shape[axis]
            if size <= skipped:
                raise ValueError("pad: an axis of one element has no odd reflection: use mode='edge'")
            first, last = min(before, size - skipped), min(after, size - skipped)
            left, right = x[along(axis, slice(0, 1))], x[along(axis, slice(-1, None))]
            left = 2 * left - ops.flip(x[along(axis, slice(skipped, first + skipped))], axis=axis)
            right = 2 * right - ops.flip(x[along(axis, slice(size - skipped - last, size - skipped))], axis=axis)
            x = ops.concat([_in_dtype_of(x, left), x, _in_dtype_of(x, right)], axis=axis)
            before, after = before - first, after - last
    return x
