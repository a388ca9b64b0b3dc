"""Derivative rules of the Fourier transforms, whose matrices are symmetric: each transform is its own transpose.

The transform of a real array has one half of the spectrum. The other half is its conjugate, so an element that
represents a conjugate pair counts twice in the inverse.
"""

from typing import Any

from oxigrad import xp
from oxigrad._typing import Array, Dtype
from oxigrad.autodiff.rules.cotangents import match_dtype
from oxigrad.ops.backends import device_of, namespace
from oxigrad.ops.fft.standard import opposite


def _shares(n: int, axis: int, like: Array, twice: float) -> Array:
    """``twice`` for the elements of a half spectrum that represent a conjugate pair, 1 for the others."""
    library = namespace(like)
    places = library.arange(n // 2 + 1, device=device_of(like))
    alone = library.astype(2 * places % n == 0, like.dtype)
    return library.reshape(twice + (1.0 - twice) * alone, (1,) * axis + (-1,) + (1,) * (len(like.shape) - axis - 1))


def _rfft(g: Array, n: int, axis: int, norm: str, x_dtype: Dtype) -> Array:
    pulled = xp.fft.irfft(xp.conj(g * _shares(n, axis, g, 0.5)), n=n, axis=axis, norm=opposite(norm))
    return match_dtype(pulled, x_dtype)


def _irfft(g: Array, n: int, axis: int, norm: str, x_dtype: Dtype) -> Array:
    pulled = xp.conj(xp.fft.rfft(g, n=n, axis=axis, norm=opposite(norm)))
    return match_dtype(pulled * _shares(n, axis, pulled, 2.0), x_dtype)


TABLE: dict[str, tuple[Any, ...]] = {
    "fftn": (lambda g, axes, norm, x_dtype: match_dtype(xp.fft.fftn(g, axes=axes, norm=norm), x_dtype),),
    "ifftn": (lambda g, axes, norm, x_dtype: match_dtype(xp.fft.ifftn(g, axes=axes, norm=norm), x_dtype),),
    "rfft": (_rfft,),
    "irfft": (_irfft,),
}
