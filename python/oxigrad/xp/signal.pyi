# Printed by make generated.
from builtins import bool as _bool
from typing import Any

from oxigrad._typing import Array


def convolve(in1: Any, in2: Any, mode: str = 'full', method: str = 'auto') -> Array:
    """The convolution of two arrays of equal rank; ``mode`` is "full", "same" (the size of ``x``) or "valid"."""
def convolve2d(in1: Any, in2: Any, mode: str = 'full', boundary: str = 'fill', fillvalue: Any = 0) -> Array:
    """The convolution of matrices; ``boundary`` is "fill" (with ``fillvalue``), "wrap" or "symm"."""
def correlate(in1: Any, in2: Any, mode: str = 'full', method: str = 'auto') -> Array:
    """The correlation of two arrays of equal rank: the convolution with the reversed and conjugate ``h``."""
def correlate2d(in1: Any, in2: Any, mode: str = 'full', boundary: str = 'fill', fillvalue: Any = 0) -> Array:
    """The correlation of matrices: `convolve2d` with the reversed and conjugate ``h``."""
def detrend(data: Any, axis: Any = -1, type: str = 'linear', bp: Any = 0, overwrite_data: _bool = False) -> Array:
    """The signal without its least-squares line or its mean: a projection."""
def fftconvolve(in1: Any, in2: Any, mode: str = 'full', axes: Any = None) -> Array:
    """As `convolve`, by Fourier transforms, along all axes or some, while the others are broadcast."""
def filtfilt(
    b: Any, a: Any, x: Any, axis: Any = -1, padtype: str = 'odd', padlen: Any = None, method: str = 'pad',
    irlen: Any = None,
) -> Array:
    """The filter of coefficients ``b`` and ``a`` applied forwards and backwards."""
def hilbert(x: Any, N: Any = None, axis: Any = -1) -> Array:
    """The complex analytic signal of ``x``, whose imaginary part is the Hilbert transform of ``x``."""
def lfilter(b: Any, a: Any, x: Any, axis: Any = -1, zi: Any = None) -> Array:
    """The filter of coefficients ``b`` (numerator) and ``a`` (denominator) along an axis, beginning at rest."""
def oaconvolve(in1: Any, in2: Any, mode: str = 'full', axes: Any = None) -> Array:
    """As `convolve`, by the overlap-add method, along all axes or some; the others are broadcast."""
def resample(x: Any, num: Any, t: Any = None, axis: Any = 0, window: Any = None, domain: str = 'time') -> Array:
    """A real, periodic signal at ``num`` points, by its Fourier series."""
def savgol_filter(
    x: Any, window_length: Any, polyorder: Any, deriv: Any = 0, delta: Any = 1.0, axis: Any = -1, mode: str = 'interp',
    cval: Any = 0.0,
) -> Array:
    """The Savitzky-Golay filter: a polynomial of least squares in a window around each element."""
def sosfilt(sos: Any, x: Any, axis: Any = -1, zi: Any = None) -> Array:
    """The filter of second-order sections ``sos`` (n, 6) along an axis, beginning at rest."""
def upfirdn(h: Any, x: Any, up: Any = 1, down: Any = 1, axis: Any = -1, mode: str = 'constant', cval: Any = 0) -> Array:
    """The signal with zeros inserted (``up``), filtered by constant weights ``h``, then decimated (``down``)."""

__all__ = [
    'convolve', 'convolve2d', 'correlate', 'correlate2d', 'detrend', 'fftconvolve', 'filtfilt', 'hilbert', 'lfilter',
    'oaconvolve', 'resample', 'savgol_filter', 'sosfilt', 'upfirdn',
]
