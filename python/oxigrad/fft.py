"""The standard's discrete Fourier transforms, recorded on the tape of their arguments: `oxigrad.xp.fft`.

``norm`` is ``"backward"`` (the inverse divides by the length), ``"ortho"`` or ``"forward"``. Derivatives of complex
numbers are as `oxigrad.derivatives` says.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from oxigrad import xp
from oxigrad._core import record
from oxigrad.products import along, composed

__all__ = [
    "fft",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfftn",
    "rfft",
    "rfftfreq",
    "rfftn",
]

Norm = str | None
_OPPOSITE = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def opposite(norm: Norm) -> str:
    """The ``norm`` by which the inverse transform scales as this one does."""
    norm = norm or "backward"
    if norm not in _OPPOSITE:
        raise ValueError(f"norm is {norm!r}: expected 'backward', 'ortho' or 'forward'")
    return _OPPOSITE[norm]


def resize(x: Any, n: int | None, axis: int) -> Any:
    """``x`` cut along ``axis``, or followed there by zeros, to ``n`` elements."""
    axis %= len(x.shape)
    size = x.shape[axis]
    if n is None or n in (-1, size):
        return x
    if n < size:
        return xp.index(x, along(axis, slice(n)))
    shape = (*x.shape[:axis], n - size, *x.shape[axis + 1 :])
    return xp.concat([x, xp.namespace(x).zeros(shape, dtype=x.dtype, device=xp.device_of(x))], axis=axis)


def _complex(name: str, x: Any, s: Sequence[int | None] | None, axes: Sequence[int] | None, norm: Norm) -> Any:
    opposite(norm)
    ndim = len(x.shape)
    if axes is None:
        axes = range(ndim) if s is None else range(ndim - len(s), ndim)
    axes = tuple(axis % ndim for axis in axes)
    for axis, n in zip(axes, s or (), strict=False):
        x = resize(x, n, axis)
    return record(name, [x], {"axes": axes, "norm": norm or "backward"}) if axes else x


@composed
def fft(x: Any, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Any:
    """The transform along ``axis``, cut or filled with zeros to ``n`` elements before."""
    return _complex("fftn", x, (n,), (axis,), norm)


@composed
def ifft(x: Any, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Any:
    """The inverse of `fft`."""
    return _complex("ifftn", x, (n,), (axis,), norm)


@composed
def fftn(x: Any, /, s: Any = None, axes: Any = None, norm: Norm = "backward") -> Any:
    """The transform along several axes, all of them where nothing is said; ``s`` are the sizes to cut or fill to."""
    return _complex("fftn", x, s, axes, norm)


@composed
def ifftn(x: Any, /, s: Any = None, axes: Any = None, norm: Norm = "backward") -> Any:
    """The inverse of `fftn`."""
    return _complex("ifftn", x, s, axes, norm)


@composed
def fft2(x: Any, /, s: Any = None, axes: Any = (-2, -1), norm: Norm = "backward") -> Any:
    """NumPy's: `fftn` along two axes."""
    return _complex("fftn", x, s, axes, norm)


@composed
def ifft2(x: Any, /, s: Any = None, axes: Any = (-2, -1), norm: Norm = "backward") -> Any:
    """NumPy's: `ifftn` along two axes."""
    return _complex("ifftn", x, s, axes, norm)


@composed
def rfft(x: Any, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Any:
    """The first ``n // 2 + 1`` elements of the transform of a real array: the others are their conjugates."""
    opposite(norm)
    x = resize(x, n, axis)
    axis %= len(x.shape)
    return record("rfft", [x], {"n": x.shape[axis], "axis": axis, "norm": norm or "backward"})


@composed
def irfft(x: Any, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Any:
    """The inverse of `rfft`, of ``n`` elements; an even number where ``n`` is not given."""
    opposite(norm)
    n = 2 * (x.shape[axis] - 1) if n is None else n
    x = resize(x, n // 2 + 1, axis)
    return record("irfft", [x], {"n": n, "axis": axis % len(x.shape), "norm": norm or "backward"})


def _sizes(x: Any, s: Any, axes: Any) -> tuple[list[int | None], list[int]]:
    ndim = len(x.shape)
    axes = list(axes) if axes is not None else list(range(ndim)) if s is None else list(range(ndim - len(s), ndim))
    sizes = [None if n == -1 else n for n in s] if s is not None else [None] * len(axes)
    return sizes, axes


@composed
def rfftn(x: Any, /, s: Any = None, axes: Any = None, norm: Norm = "backward") -> Any:
    """`rfft` along the last of the axes, then `fftn` along the others."""
    sizes, axes = _sizes(x, s, axes)
    return fftn(rfft(x, n=sizes[-1], axis=axes[-1], norm=norm), s=sizes[:-1], axes=axes[:-1], norm=norm)


@composed
def irfftn(x: Any, /, s: Any = None, axes: Any = None, norm: Norm = "backward") -> Any:
    """The inverse of `rfftn`."""
    sizes, axes = _sizes(x, s, axes)
    return irfft(ifftn(x, s=sizes[:-1], axes=axes[:-1], norm=norm), n=sizes[-1], axis=axes[-1], norm=norm)


@composed
def rfft2(x: Any, /, s: Any = None, axes: Any = (-2, -1), norm: Norm = "backward") -> Any:
    """NumPy's: `rfftn` along two axes."""
    return rfftn(x, s=s, axes=axes, norm=norm)


@composed
def irfft2(x: Any, /, s: Any = None, axes: Any = (-2, -1), norm: Norm = "backward") -> Any:
    """NumPy's: `irfftn` along two axes."""
    return irfftn(x, s=s, axes=axes, norm=norm)


@composed
def hfft(x: Any, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Any:
    """The real transform, of ``n`` elements, of an array that is the first half of a Hermitian one."""
    return irfft(xp.conjugate(x), n=n, axis=axis, norm=opposite(norm))


@composed
def ihfft(x: Any, /, n: int | None = None, axis: int = -1, norm: Norm = "backward") -> Any:
    """The inverse of `hfft`."""
    return xp.conj(rfft(x, n=n, axis=axis, norm=opposite(norm)))


def _rolled(x: Any, axes: Any, sign: int) -> Any:
    ndim = len(x.shape)
    for axis in range(ndim) if axes is None else (axes,) if isinstance(axes, int) else axes:
        axis %= ndim
        size = x.shape[axis]
        cut = sign * (size // 2) % size if size else 0
        if cut:
            parts = (slice(size - cut, None), slice(size - cut))
            x = xp.concat([xp.index(x, along(axis, part)) for part in parts], axis=axis)
    return x


@composed
def fftshift(x: Any, /, axes: Any = None) -> Any:
    """The spectrum with frequency zero in the middle of each axis."""
    return _rolled(x, axes, 1)


@composed
def ifftshift(x: Any, /, axes: Any = None) -> Any:
    """The inverse of `fftshift`."""
    return _rolled(x, axes, -1)


def fftfreq(n: int, /, d: float = 1.0, **named: Any) -> Any:
    """The frequencies of `fft`, for a sample spacing ``d``: a plain array of NumPy's."""
    return np.fft.fftfreq(n, d, **named)


def rfftfreq(n: int, /, d: float = 1.0, **named: Any) -> Any:
    """The frequencies of `rfft`, for a sample spacing ``d``: a plain array of NumPy's."""
    return np.fft.rfftfreq(n, d, **named)


IMPLEMENTATIONS: dict[str, Any] = {
    "fftn": lambda library, x, *, axes, norm: library.fft.fftn(x, axes=axes, norm=norm),
    "ifftn": lambda library, x, *, axes, norm: library.fft.ifftn(x, axes=axes, norm=norm),
    "rfft": lambda library, x, *, n, axis, norm: library.fft.rfft(x, n=n, axis=axis, norm=norm),
    "irfft": lambda library, x, *, n, axis, norm: library.fft.irfft(x, n=n, axis=axis, norm=norm),
}
