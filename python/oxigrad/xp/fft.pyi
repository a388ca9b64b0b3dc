# Printed by make generated.
from builtins import bool as _bool
from typing import Any

from oxigrad._typing import Array

from oxigrad.ops.fft.standard import (
    fft as fft, fft2 as fft2, fftfreq as fftfreq, fftn as fftn, fftshift as fftshift, hfft as hfft, ifft as ifft,
    ifft2 as ifft2, ifftn as ifftn, ifftshift as ifftshift, ihfft as ihfft, irfft as irfft, irfft2 as irfft2,
    irfftn as irfftn, rfft as rfft, rfft2 as rfft2, rfftfreq as rfftfreq, rfftn as rfftn,
)

def dct(
    x: Any, type: Any = 2, n: Any = None, axis: Any = -1, norm: Any = None, overwrite_x: _bool = False,
    workers: Any = None, orthogonalize: Any = None,
) -> Array:
    """The cosine transform of a ``type`` from 1 to 4 along ``axis``, after truncation or padding to ``n`` elements."""
def dctn(
    x: Any, type: Any = 2, s: Any = None, axes: Any = None, norm: Any = None, overwrite_x: _bool = False,
    workers: Any = None, *, orthogonalize: Any = None,
) -> Array:
    """`dct` along several axes, by default all; ``s`` has the sizes after truncation or zero-padding."""
def dst(
    x: Any, type: Any = 2, n: Any = None, axis: Any = -1, norm: Any = None, overwrite_x: _bool = False,
    workers: Any = None, orthogonalize: Any = None,
) -> Array:
    """The sine transform of a ``type`` from 1 to 4, with the arguments of `dct`."""
def dstn(
    x: Any, type: Any = 2, s: Any = None, axes: Any = None, norm: Any = None, overwrite_x: _bool = False,
    workers: Any = None, orthogonalize: Any = None,
) -> Array:
    """`dst` along several axes, with the arguments of `dctn`."""
def fht(a: Any, dln: Any, mu: Any, offset: Any = 0.0, bias: Any = 0.0) -> Array:
    """The Hankel transform of order ``mu`` of values at steps ``dln`` of the logarithm, along the last axis."""
def hfft2(
    x: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, overwrite_x: _bool = False, workers: Any = None, *,
    plan: Any = None,
) -> Array:
    """`hfftn` along two axes."""
def hfftn(
    x: Any, s: Any = None, axes: Any = None, norm: Any = None, overwrite_x: _bool = False, workers: Any = None, *,
    plan: Any = None,
) -> Array:
    """The real transform of an array that is Hermitian along the last of the axes, of which ``x`` is one half."""
def idct(
    x: Any, type: Any = 2, n: Any = None, axis: Any = -1, norm: Any = None, overwrite_x: _bool = False,
    workers: Any = None, orthogonalize: Any = None,
) -> Array:
    """The inverse of `dct`."""
def idctn(
    x: Any, type: Any = 2, s: Any = None, axes: Any = None, norm: Any = None, overwrite_x: _bool = False,
    workers: Any = None, orthogonalize: Any = None,
) -> Array:
    """The inverse of `dctn`."""
def idst(
    x: Any, type: Any = 2, n: Any = None, axis: Any = -1, norm: Any = None, overwrite_x: _bool = False,
    workers: Any = None, orthogonalize: Any = None,
) -> Array:
    """The inverse of `dst`."""
def idstn(
    x: Any, type: Any = 2, s: Any = None, axes: Any = None, norm: Any = None, overwrite_x: _bool = False,
    workers: Any = None, orthogonalize: Any = None,
) -> Array:
    """The inverse of `dstn`."""
def ifht(A: Any, dln: Any, mu: Any, offset: Any = 0.0, bias: Any = 0.0) -> Array:
    """The inverse of `fht`."""
def ihfft2(
    x: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, overwrite_x: _bool = False, workers: Any = None, *,
    plan: Any = None,
) -> Array:
    """`ihfftn` along two axes."""
def ihfftn(
    x: Any, s: Any = None, axes: Any = None, norm: Any = None, overwrite_x: _bool = False, workers: Any = None, *,
    plan: Any = None,
) -> Array:
    """The inverse of `hfftn`."""

__all__ = [
    'dct', 'dctn', 'dst', 'dstn', 'fft', 'fft2', 'fftfreq', 'fftn', 'fftshift', 'fht', 'hfft', 'hfft2', 'hfftn', 'idct',
    'idctn', 'idst', 'idstn', 'ifft', 'ifft2', 'ifftn', 'ifftshift', 'ifht', 'ihfft', 'ihfft2', 'ihfftn', 'irfft',
    'irfft2', 'irfftn', 'rfft', 'rfft2', 'rfftfreq', 'rfftn',
]
