"""Convolutions and correlations, differentiable in both arguments to all orders."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from oxigrad import ShapeError
from oxigrad import xp as ops
from oxigrad._typing import Array, Axis
from oxigrad.ops.backends import array_of, zeros_of
from oxigrad.ops.backends.functions.scipy_functions import of_scipy
from oxigrad.ops.core.host_calls import call_one, computed, is_recorded
from oxigrad.ops.core.primitives import index
from oxigrad.ops.core.standard import axes_of
from oxigrad.ops.scipy_signatures import scipy_signature
from oxigrad.xp._scipy.ndimage.extension import extended_by

__all__ = [
    "convolve",
    "convolve2d",
    "correlate",
    "correlate2d",
    "fftconvolve",
    "oaconvolve",
]


def _full(name: str, x: Array, h: Array, axes: tuple[int, ...] | None = None) -> Array:
    """The full convolution of two arrays along ``axes``, all by default; other axes are broadcast.

    Its transposes are convolutions with the other argument reversed, in which broadcast elements are summed.
    """
    if axes == ():
        return ops.multiply(x, h)
    named: dict[str, Any] = {} if axes is None else {"axes": axes}
    chosen = range(len(x.shape)) if axes is None else axes

    def function(x: np.ndarray, h: np.ndarray) -> np.ndarray:
        return of_scipy("signal", name)(x, h, mode="full", **named)

    if not is_recorded(x) and not is_recorded(h):
        return computed(name, function, (x, h))[0]

    def transposed(g: Array, other: Array, size: Sequence[int]) -> Array:
        if 0 in (*other.shape, *size):  # SciPy's result has the shape (0,)
            return zeros_of(tuple(size), g)
        whole = _full(name, g, ops.flip(other, axis=axes), axes)
        starts = [n - 1 if at in chosen else 0 for at, n in enumerate(other.shape)]
        ends = [
            s + (n if at in chosen else whole.shape[at]) for at, (s, n) in enumerate(zip(starts, size, strict=True))
        ]
        part = index(whole, tuple(map(slice, starts, ends)))
        repeated = tuple(at for at, (m, n) in enumerate(zip(part.shape, size, strict=True)) if m != n)
        return ops.sum(part, axis=repeated, keepdims=True) if repeated else part

    def pull(g: Array, y: Array, x: Array, h: Array) -> tuple[Array, Array]:
        return transposed(g, h, x.shape), transposed(g, x, h.shape)

    def push(y: Array, x: Array, h: Array, t: Array, u: Array) -> Array:
        terms = [_full(name, t, h, axes)] if t is not None else []
        terms += [_full(name, x, u, axes)] if u is not None else []
        return terms[0] if len(terms) == 1 else terms[0] + terms[1]

    return call_one(name, function, [x, h], pull, push)


def _part(
    whole: Array,
    sizes: Sequence[int],
    others: Sequence[int],
    mode: str,
    *,
    late: bool = False,
    axes: tuple[int, ...] | None = None,
) -> Array:
    """The part of a full convolution for a ``mode``: "full", "same" or "valid".

    "same" has the size of the first argument; ``late`` shifts it by half an element.
    """
    if mode == "full" or (mode in ("same", "valid") and 0 in whole.shape):
        return whole
    if mode == "same":
        spare = [(n - m + late) // 2 for n, m in zip(whole.shape, sizes, strict=True)]
        return index(whole, tuple(slice(s, s + m) for s, m in zip(spare, sizes, strict=True)))
    if mode != "valid":
        raise ValueError(f"mode is {mode!r}: expected 'full', 'same' or 'valid'")
    pairs = [
        (n, m) if axes is None or at in axes else (1, whole.shape[at])
        for at, (n, m) in enumerate(zip(sizes, others, strict=True))
    ]
    convolved = pairs if axes is None else [pairs[at] for at in axes]
    if not (all(n <= m for n, m in convolved) or all(n >= m for n, m in convolved)):
        raise ShapeError(
            f"found shapes {tuple(sizes)}, {tuple(others)} with mode='valid', expected one not to exceed the other"
        )
    return index(whole, tuple(slice(min(pair) - 1, max(pair)) for pair in pairs))


def _pair(name: str, x: Array, h: Array) -> tuple[Array, Array]:
    x = array_of(x, [h])
    h = array_of(h, [x])
    if len(x.shape) != len(h.shape):
        raise ShapeError(f"{name}: found {len(x.shape)} and {len(h.shape)} dimensions, expected the same number")
    return x, h


def _along_axes(name: str, x: Array, h: Array, mode: str, axes: Axis) -> Array:
    x, h = _pair(name, x, h)
    chosen = _convolved(name, x.shape, h.shape, axes)
    return _part(_full(name, x, h, chosen), x.shape, h.shape, mode, axes=chosen)


def _convolved(name: str, sizes: Sequence[int], others: Sequence[int], axes: Axis) -> tuple[int, ...]:
    """The axes (all of them if None) without the axes along which one of the arrays is broadcast."""
    chosen = axes_of(axes, len(sizes))
    if len(set(chosen)) < len(chosen) or (not chosen and len(sizes)):
        raise ValueError(f"{name}: axes is {axes!r}: expected at least one axis, and none of them twice")
    pairs = [*zip(sizes, others, strict=True)]
    if any(n != m and 1 not in (n, m) for at, (n, m) in enumerate(pairs) if at not in chosen):
        raise ShapeError(
            f"{name}: found shapes {tuple(sizes)}, {tuple(others)}, expected equal sizes, or 1, of the axes other "
            f"than {chosen}"
        )
    return tuple(at for at in sorted(chosen) if 1 not in pairs[at])


@scipy_signature('in1, in2, mode="full", method="auto"', ignored="method=direct,fft")
def convolve(x: Array, h: Array, /, mode: str) -> Array:
    """The convolution of two arrays of equal rank; ``mode`` is "full", "same" (the size of ``x``) or "valid"."""
    x, h = _pair("convolve", x, h)
    return _part(_full("convolve", x, h), x.shape, h.shape, mode)


@scipy_signature('in1, in2, mode="full", axes=None')
def fftconvolve(x: Array, h: Array, /, mode: str, axes: Axis) -> Array:
    """As `convolve`, by Fourier transforms, along all axes or some, while the others are broadcast."""
    return _along_axes("fftconvolve", x, h, mode, axes)


@scipy_signature('in1, in2, mode="full", axes=None')
def oaconvolve(x: Array, h: Array, /, mode: str, axes: Axis) -> Array:
    """As `convolve`, by the overlap-add method, along all axes or some; the others are broadcast.

    It is fast for arrays of very different sizes.
    """
    return _along_axes("oaconvolve", x, h, mode, axes)


@scipy_signature('in1, in2, mode="full", method="auto"', ignored="method=direct,fft")
def correlate(x: Array, h: Array, /, mode: str) -> Array:
    """The correlation of two arrays of equal rank: the convolution with the reversed and conjugate ``h``."""
    x, h = _pair("correlate", x, h)
    return _part(_full("convolve", x, ops.conjugate(ops.flip(h))), x.shape, h.shape, mode)


def _planar(name: str, x: Array, h: Array, mode: str, boundary: str, fillvalue: float) -> Array:
    x, h = _pair(name, x, h)
    if len(x.shape) != 2 or boundary not in ("fill", "wrap", "symm"):
        arguments = f"{len(x.shape)} dimensions, boundary={boundary!r}"
        raise ShapeError(f"{name}: found {arguments}, expected 2 dimensions, and boundary 'fill', 'wrap' or 'symm'")
    late = name == "correlate2d"  # as SciPy has the middle of weights of an even size
    if late and mode == "valid" and any(m < n for m, n in zip(x.shape, h.shape, strict=True)):
        x, h = ops.conjugate(x), ops.flip(h)  # SciPy exchanges the two, and so which one it conjugates
    elif late:
        h = ops.conjugate(ops.flip(h))
    if mode == "valid" or (boundary == "fill" and fillvalue == 0.0):
        return _part(_full("convolve", x, h), x.shape, h.shape, mode, late=late)
    widths = [(n - 1, n - 1) for n in h.shape]
    whole = _full("convolve", extended_by(x, widths, [boundary] * 2, fillvalue if boundary == "fill" else 0.0), h)
    full = index(whole, tuple(slice(n - 1, n - 1 + m + n - 1) for m, n in zip(x.shape, h.shape, strict=True)))
    return _part(full, x.shape, h.shape, mode, late=late)


@scipy_signature('in1, in2, mode="full", boundary="fill", fillvalue=0')
def convolve2d(x: Array, h: Array, /, mode: str, boundary: str, fillvalue: float) -> Array:
    """The convolution of matrices; ``boundary`` is "fill" (with ``fillvalue``), "wrap" or "symm"."""
    return _planar("convolve2d", x, h, mode, boundary, fillvalue)


@scipy_signature('in1, in2, mode="full", boundary="fill", fillvalue=0')
def correlate2d(x: Array, h: Array, /, mode: str, boundary: str, fillvalue: float) -> Array:
    """The correlation of matrices: `convolve2d` with the reversed and conjugate ``h``.

    In the mode "valid" with an ``h`` that is larger than ``x``, the latter is conjugate, as SciPy's.
    """
    return _planar("correlate2d", x, h, mode, boundary, fillvalue)
