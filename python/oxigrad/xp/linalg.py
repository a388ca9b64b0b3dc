"""Differentiable linear algebra: `oxigrad.xp.linalg`.

All functions except the tensor functions accept stacks of matrices.

>>> import numpy as np
>>> solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 2.0]))
array([1. , 0.5])
"""

from oxigrad.ops.linalg import compositions as _compositions
from oxigrad.ops.linalg import equations as _equations
from oxigrad.ops.linalg import numpy_keywords as _numpy_keywords
from oxigrad.ops.linalg import standard as _standard
from oxigrad.ops.protocols.namespaces import gathered as _gathered

__dir__, __getattr__ = _gathered(__name__, _standard, _compositions, _equations, _numpy_keywords)
