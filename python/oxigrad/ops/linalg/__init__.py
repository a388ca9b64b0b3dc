"""Differentiable linear algebra: `oxigrad.xp.linalg`.

All functions except the tensor functions accept stacks of matrices.

* `standard`: the functions of the Array API standard; `numpy_keywords`: the rest of ``numpy.linalg``, and NumPy's
  keywords.
* `compositions`, `equations`: functions of ``scipy.linalg``; `host_equations`: their solvers for NumPy arrays.

>>> import numpy as np
>>> solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 2.0]))
array([1. , 0.5])
"""

from oxigrad._names import gathered
from oxigrad.ops.linalg import compositions, equations, numpy_keywords, standard

__dir__, __getattr__ = gathered("oxigrad.xp.linalg", __name__, standard, compositions, equations, numpy_keywords)
