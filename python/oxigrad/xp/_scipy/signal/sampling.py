"""Signals at other rates, and analytic signals."""

import numpy as np

from oxigrad import DtypeError
from oxigrad import xp as ops
from oxigrad._typing import Array
from oxigrad.ops.backends import array_of, dtype_of, is_complex
from oxigrad.ops.backends.functions.scipy_functions import of_scipy
from oxigrad.ops.core.dtypes import floating
from oxigrad.ops.core.host_calls import linear
from oxigrad.ops.core.in_place import of_library
from oxigrad.ops.core.primitives import along, index
from oxigrad.ops.scipy_signatures import scipy_signature
from oxigrad.xp import fft
from oxigrad.xp._scipy.signal.filters import constant

__all__ = [
    "hilbert",
    "resample",
    "upfirdn",
]


@scipy_signature('h, x, up=1, down=1, axis=-1, mode="constant", cval=0')
def upfirdn(h: Array, x: Array, /, up: int, down: int, axis: int) -> Array:
    """The signal with zeros inserted (``up``), filtered by constant weights ``h``, then decimated (``down``)."""
    h, x = constant("upfirdn", "h", h), array_of(x)
    size = x.shape[axis]

    def forward(x: np.ndarray) -> np.ndarray:
        return of_scipy("signal", "upfirdn")(h, x, up, down, axis)

    def adjoint(g: np.ndarray) -> np.ndarray:
        g = np.moveaxis(g, axis, -1)
        back = of_scipy("signal", "upfirdn")(h[::-1], g, down, 1)[..., len(h) - 1 :: up][..., :size]
        back = np.pad(back, [*[(0, 0)] * (g.ndim - 1), (0, size - back.shape[-1])])
        return np.moveaxis(back, -1, axis)

    return linear("upfirdn", forward, adjoint, x)


@scipy_signature('x, num, t=None, axis=0, window=None, domain="time"')
def resample(x: Array, num: int, /, axis: int) -> Array:
    """A real, periodic signal at ``num`` points, by its Fourier series."""
    x = _real("resample", x)
    size, at = x.shape[axis], axis % len(x.shape)
    common = min(num, size)
    spectrum = index(fft.rfft(x, axis=at), along(at, slice(0, common // 2 + 1)))
    if common % 2 == 0 and num != size:  # the highest frequency stands for two, of which one is folded, or missing
        factor = np.ones(common // 2 + 1)
        factor[-1] = 2.0 if num < size else 0.5
        spectrum = spectrum * _like_axis(x, factor, at)
    return fft.irfft(spectrum, n=num, axis=at) * (num / size)


@scipy_signature("x, N=None, axis=-1")
def hilbert(x: Array, /, N: int | None, axis: int) -> Array:
    """The complex analytic signal of ``x``, whose imaginary part is the Hilbert transform of ``x``.

    The signal is cropped or zero-padded to ``N`` elements.
    """
    x = _real("hilbert", x)
    size, at = x.shape[axis] if N is None else N, axis % len(x.shape)
    if size <= 0:
        raise ValueError(f"hilbert: N is {N!r}: expected a positive number")
    factor = np.zeros(size)
    factor[0], factor[1 : (size + 1) // 2] = 1.0, 2.0
    if size % 2 == 0:
        factor[size // 2] = 1.0
    return fft.ifft(fft.fft(x, n=N, axis=at) * _like_axis(x, factor, at), axis=at)


def _real(name: str, x: Array) -> Array:
    """The signal in floating point. Raises `DtypeError`, which names the function, for a complex one."""
    x = floating(array_of(x))
    if is_complex(x):
        raise DtypeError(f"{name}: found a complex signal, expected a real one")
    return x


def _like_axis(x: Array, values: np.ndarray, axis: int) -> Array:
    """The values along an axis of ``x``, as an array of its library and dtype."""
    shape = [-1 if at == axis else 1 for at in range(len(x.shape))]
    return ops.astype(of_library(values.reshape(shape), x), dtype_of(x), copy=False)
