"""Fourier transforms of the standard, and transforms under the names of `scipy.fft`: `oxigrad.xp.fft`.

>>> import oxigrad as ox
>>> import numpy as np
>>> ox.grad(lambda x: dct(x, norm="ortho")[0])(np.array([1.0, 2.0, 3.0, 4.0]))
array([0.5, 0.5, 0.5, 0.5])
"""

from oxigrad._names import without
from oxigrad.ops.fft import hankel, hermitian, standard, trigonometric
from oxigrad.ops.fft.hankel import *
from oxigrad.ops.fft.hermitian import *
from oxigrad.ops.fft.standard import *
from oxigrad.ops.fft.trigonometric import *

__all__: list[str] = []
__all__ += standard.__all__
__all__ += hankel.__all__
__all__ += hermitian.__all__
__all__ += trigonometric.__all__

__dir__, __getattr__ = without("oxigrad.xp.fft", __all__, package=__name__)
