"""Fourier transforms along several axes of Hermitian arrays, as `scipy.fft` has them, composed of the standard's.

>>> import numpy as np
>>> import oxigrad as ox
>>> ox.grad(lambda x: hfft2(x, s=(2, 2))[0, 0])(np.ones((2, 2)))
array([[1., 1.],
       [1., 1.]])
"""

from collections.abc import Sequence

from oxigrad._typing import Array
from oxigrad.ops.backends import array_of
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.fft.standard import Norm, irfftn, opposite, rfftn
from oxigrad.ops.scipy_signatures import scipy_signature

__all__ = ["hfft2", "hfftn", "ihfft2", "ihfftn"]

_ALONG_ALL = "x, s=None, axes=None, norm=None, overwrite_x=False, workers=None, *, plan=None"
_ALONG_TWO = "x, s=None, axes=(-2, -1), norm=None, overwrite_x=False, workers=None, *, plan=None"


@scipy_signature(_ALONG_ALL, ignored="overwrite_x plan workers")
def hfftn(x: Array, /, s: Sequence[int] | None, axes: Sequence[int] | None, norm: Norm) -> Array:
    """The real transform of an array that is Hermitian along the last of the axes, of which ``x`` is one half."""
    return irfftn(ops.conjugate(array_of(x)), s=s, axes=axes, norm=opposite(norm))


@scipy_signature(_ALONG_ALL, ignored="overwrite_x plan workers")
def ihfftn(x: Array, /, s: Sequence[int] | None, axes: Sequence[int] | None, norm: Norm) -> Array:
    """The inverse of `hfftn`."""
    return ops.conjugate(rfftn(array_of(x), s=s, axes=axes, norm=opposite(norm)))


@scipy_signature(_ALONG_TWO, ignored="overwrite_x plan workers")
def hfft2(x: Array, /, s: Sequence[int] | None, axes: Sequence[int], norm: Norm) -> Array:
    """`hfftn` along two axes."""
    return hfftn(x, s, axes, norm)


@scipy_signature(_ALONG_TWO, ignored="overwrite_x plan workers")
def ihfft2(x: Array, /, s: Sequence[int] | None, axes: Sequence[int], norm: Norm) -> Array:
    """`ihfftn` along two axes."""
    return ihfftn(x, s, axes, norm)
