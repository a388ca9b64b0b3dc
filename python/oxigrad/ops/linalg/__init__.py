"""Differentiable linear algebra: `oxigrad.xp.linalg`.

All functions except the tensor functions accept stacks of matrices.

* `standard`: the functions of the Array API standard; `numpy_keywords`: the rest of ``numpy.linalg``, and NumPy's
  keywords.
* `compositions`, `equations`: functions of ``scipy.linalg``; `host_equations`: their solvers for NumPy arrays.

>>> import numpy as np
>>> solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 2.0]))
array([1. , 0.5])
"""

from oxigrad._names import without
from oxigrad.ops.linalg import compositions, equations, numpy_keywords, standard
from oxigrad.ops.linalg.compositions import *
from oxigrad.ops.linalg.equations import *
from oxigrad.ops.linalg.numpy_keywords import *
from oxigrad.ops.linalg.standard import *

__all__: list[str] = []
__all__ += standard.__all__
__all__ += compositions.__all__
__all__ += equations.__all__
__all__ += numpy_keywords.__all__

__dir__, __getattr__ = without("oxigrad.xp.linalg", __all__, package=__name__)
