"""The standard's discrete Fourier transforms, recorded on the tape of their arguments.

``norm`` is ``"backward"`` (the inverse divides by the length), ``"ortho"`` or ``"forward"``.
`oxigrad.autodiff.rules.vjp_rules` defines the derivatives with respect to complex numbers.
"""

import functools
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from oxigrad._core import DtypeError, ShapeError, record
from oxigrad._typing import Array, Axis, Device, Dtype, F
from oxigrad.ops.backends import zeros_of
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core.composite import composite
from oxigrad.ops.core.dtypes import isdtype, library_of_dtype
from oxigrad.ops.core.primitives import along
from oxigrad.ops.core.shapes import AxisError, position
from oxigrad.ops.core.standard import roll


def _composite(function: F) -> F:
    """A function of the standard, whose first argument has SciPy's name too; SciPy's further ones have no effect."""
    transform = composite(function, "fft")

    @functools.wraps(transform)
    def called(*args: Any, **named: Any) -> Any:
        for name in _WITHOUT_EFFECT & named.keys():
            del named[name]
        if "x" in named and not args:
            args = (named.pop("x"),)
        return transform(*args, **named)

    return cast("F", called)


_WITHOUT_EFFECT = {"overwrite_x", "plan", "workers"}


__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]


Norm = str | None
_OPPOSITE = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def opposite(norm: Norm) -> str:
    """The ``norm`` for which the inverse transform has the scale of this one."""
    norm = norm or "backward"
    if norm not in _OPPOSITE:
        raise ValueError(f"norm is {norm!r}: expected 'backward', 'ortho' or 'forward'")
    return _OPPOSITE[norm]


def resize(x: Array, n: int | None, axis: int) -> Array:
    """``x`` truncated or zero-padded to ``n`` elements along ``axis``."""
    axis = position(axis, len(x.shape))
    size = x.shape[axis]
    if n is None or n == size:
        return x
    if n < 1:
        raise ShapeError(f"found a size of {n} along axis {axis}, expected at least 1")
    if n < size:
        return ops.index(x, along(axis, slice(n)))
    shape = (*x.shape[:axis], n - size, *x.shape[axis + 1 :])
    return ops.concat([x, zeros_of(shape, x)], axis=axis)


def sizes_and_axes(
    name: str, x: Array, s: Sequence[int] | None, axes: Sequence[int] | None
) -> tuple[list[int], list[int]]:
    """The sizes, in which -1 stands for the size of ``x`` before any transform, and the axes."""
    ndim = len(x.shape)
    if axes is None:
        if s is not None and len(s) > ndim:
            raise AxisError(f"{name}: found {len(s)} sizes s, expected at most {ndim}, one for each dimension")
        axes = range(ndim) if s is None else range(ndim - len(s), ndim)
    axes = [position(axis, ndim, name) for axis in axes]
    sizes = [-1] * len(axes) if s is None else s
    if len(sizes) != len(axes):
        raise ShapeError(f"{name}: found {len(sizes)} sizes s for {len(axes)} axes, expected one for each")
    return [x.shape[axis] if n == -1 else n for n, axis in zip(sizes, axes, strict=True)], axes


def are_distinct(axes: Sequence[int]) -> bool:
    return len(set(axes)) == len(axes)


def _complex(name: str, x: Array, s: Sequence[int] | None, axes: Sequence[int] | None, norm: Norm) -> Array:
    opposite(norm)
    sizes, axes = sizes_and_axes(name, x, s, axes)
    if not are_distinct(axes):  # an axis that is there twice is resized and transformed twice, the last one first
        for axis, n in zip(reversed(axes), reversed(sizes), strict=True):
            x = _complex(name, x, (n,), (axis,), norm)
        return x
    for axis, n in zip(axes, sizes, strict=True):
        x = resize(x, n, axis)
    return record(name, [x], {"axes": tuple(axes), "norm": norm or "backward"}) if axes else x


@_composite
def fft(x: Array, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The transform along ``axis``, after truncation or zero-padding to ``n`` elements."""
    return _complex("fftn", resize(x, n, axis), None, (axis,), norm)


@_composite
def ifft(x: Array, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The inverse of `fft`."""
    return _complex("ifftn", resize(x, n, axis), None, (axis,), norm)


@_composite
def fftn(
    x: Array, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
) -> Array:
    """The transform along several axes, by default all; ``s`` has the sizes after truncation or zero-padding."""
    return _complex("fftn", x, s, axes, norm)


@_composite
def ifftn(
    x: Array, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
) -> Array:
    """The inverse of `fftn`."""
    return _complex("ifftn", x, s, axes, norm)


@_composite
def fft2(x: Array, /, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: Norm = "backward") -> Array:
    """`fftn` along two axes, as in NumPy."""
    return _complex("fftn", x, s, axes, norm)


@_composite
def ifft2(
    x: Array, /, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: Norm = "backward"
) -> Array:
    """`ifftn` along two axes, as in NumPy."""
    return _complex("ifftn", x, s, axes, norm)


@_composite
def rfft(x: Array, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The first ``n // 2 + 1`` elements of the transform of a real array; the others are their conjugates."""
    opposite(norm)
    axis = position(axis, len(x.shape))
    x = resize(x, n, axis)
    return record("rfft", [x], {"n": x.shape[axis], "axis": axis, "norm": norm or "backward"})


@_composite
def irfft(x: Array, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The inverse of `rfft`, with ``n`` elements, by default ``2 * (x.shape[axis] - 1)``."""
    opposite(norm)
    axis = position(axis, len(x.shape))
    size = 2 * (x.shape[axis] - 1) if n is None else n
    x = resize(x, size // 2 + 1, axis)
    return record("irfft", [x], {"n": size, "axis": axis, "norm": norm or "backward"})


@_composite
def rfftn(
    x: Array, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
) -> Array:
    """`rfft` along the last of the axes, then `fftn` along the others."""
    sizes, axes = sizes_and_axes("rfftn", x, s, axes)
    return fftn(rfft(x, n=sizes[-1], axis=axes[-1], norm=norm), s=sizes[:-1], axes=axes[:-1], norm=norm)


@_composite
def irfftn(
    x: Array, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: Norm = "backward"
) -> Array:
    """The inverse of `rfftn`."""
    sizes, axes = sizes_and_axes("irfftn", x, s, axes)
    if s is None:
        sizes[-1] = 2 * (sizes[-1] - 1)
    if not are_distinct(axes):
        for axis, n in zip(axes[:-1], sizes[:-1], strict=True):
            x = ifft(x, n=n, axis=axis, norm=norm)
        return irfft(x, n=sizes[-1], axis=axes[-1], norm=norm)
    return irfft(ifftn(x, s=sizes[:-1], axes=axes[:-1], norm=norm), n=sizes[-1], axis=axes[-1], norm=norm)


@_composite
def rfft2(
    x: Array, /, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: Norm = "backward"
) -> Array:
    """`rfftn` along two axes, as in NumPy."""
    return rfftn(x, s=s, axes=axes, norm=norm)


@_composite
def irfft2(
    x: Array, /, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: Norm = "backward"
) -> Array:
    """`irfftn` along two axes, as in NumPy."""
    return irfftn(x, s=s, axes=axes, norm=norm)


@_composite
def hfft(x: Array, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The real transform, of ``n`` elements, of an array with Hermitian symmetry, given its first half."""
    return irfft(ops.conjugate(x), n=n, axis=axis, norm=opposite(norm))


@_composite
def ihfft(x: Array, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Array:
    """The inverse of `hfft`."""
    return ops.conj(rfft(x, n=n, axis=axis, norm=opposite(norm)))


def _shifted(x: Array, axes: Axis, sign: int) -> Array:
    ndim = len(x.shape)
    chosen = range(ndim) if axes is None else (axes,) if isinstance(axes, int) else axes
    axes = tuple(position(axis, ndim) for axis in chosen)
    return roll(x, tuple(sign * (x.shape[axis] // 2) for axis in axes), axis=axes)


@_composite
def fftshift(x: Array, /, axes: Axis = None) -> Array:
    """The spectrum with frequency zero moved to the center of each axis."""
    return _shifted(x, axes, 1)


@_composite
def ifftshift(x: Array, /, axes: Axis = None) -> Array:
    """The inverse of `fftshift`."""
    return _shifted(x, axes, -1)


def fftfreq(n: int, /, d: float = 1.0, *, dtype: Dtype = None, device: Device = None) -> Array:
    """The frequencies of `fft` for a sample spacing ``d``, in the library of ``dtype``.

    ``dtype`` is NumPy's float64 by default. Raises `DtypeError` if it is not a real floating-point dtype.
    """
    return _frequencies("fftfreq", n, d, dtype, device)


def rfftfreq(n: int, /, d: float = 1.0, *, dtype: Dtype = None, device: Device = None) -> Array:
    """The frequencies of `rfft` for a sample spacing ``d``, with the arguments of `fftfreq`."""
    return _frequencies("rfftfreq", n, d, dtype, device)


def _frequencies(name: str, n: int, d: float, dtype: Dtype, device: Device) -> Array:
    if dtype is None:
        return getattr(np.fft, name)(n, d, device=device)
    if not isdtype(dtype, "real floating"):
        raise DtypeError(f"{name}: dtype is {dtype!r}: expected a real floating-point dtype")
    return library_of_dtype(dtype).asarray(getattr(np.fft, name)(n, d), dtype=dtype, device=device)
