"""Fourier transforms of the standard, and transforms under the names of `scipy.fft`: `oxigrad.xp.fft`.

>>> import oxigrad as ox
>>> import numpy as np
>>> ox.grad(lambda x: dct(x, norm="ortho")[0])(np.array([1.0, 2.0, 3.0, 4.0]))
array([0.5, 0.5, 0.5, 0.5])
"""

from oxigrad._names import gathered
from oxigrad.ops.fft import hankel, hermitian, standard, trigonometric

__dir__, __getattr__ = gathered("oxigrad.xp.fft", __name__, standard, hankel, hermitian, trigonometric)
