"""Fourier transforms of the standard, and transforms under the names of `scipy.fft`: `oxigrad.xp.fft`.

>>> import oxigrad as ox
>>> import numpy as np
>>> ox.grad(lambda x: dct(x, norm="ortho")[0])(np.array([1.0, 2.0, 3.0, 4.0]))
array([0.5, 0.5, 0.5, 0.5])
"""

from oxigrad.ops.fft import hankel as _hankel
from oxigrad.ops.fft import hermitian as _hermitian
from oxigrad.ops.fft import standard as _standard
from oxigrad.ops.fft import trigonometric as _trigonometric
from oxigrad.ops.protocols.namespaces import gathered as _gathered

__dir__, __getattr__ = _gathered(__name__, _standard, _hankel, _hermitian, _trigonometric)
