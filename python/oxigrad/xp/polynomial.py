"""Polynomials in orthogonal bases, by the names of `numpy.polynomial`: functions of coefficients and places.

Each of `polynomial`, `chebyshev`, `legendre`, `hermite`, `hermite_e` and `laguerre` has the functions that evaluate;
all other names are NumPy's.

>>> import numpy as np
>>> import oxigrad as ox
>>> ox.grad(lambda c: chebyshev.chebval(0.5, c))(np.array([1.0, 2.0, 3.0]))
array([ 1. ,  0.5, -0.5])
"""

from collections.abc import Callable as _Callable
from typing import Any as _Any

import numpy as _np

from oxigrad.ops.polynomial_bases import chebyshev as chebyshev
from oxigrad.ops.polynomial_bases import hermite as hermite
from oxigrad.ops.polynomial_bases import hermite_e as hermite_e
from oxigrad.ops.polynomial_bases import laguerre as laguerre
from oxigrad.ops.polynomial_bases import legendre as legendre
from oxigrad.ops.polynomial_bases import polynomial as polynomial

__all__ = ["chebyshev", "hermite", "hermite_e", "laguerre", "legendre", "polynomial"]

__dir__: _Callable[[], list[str]] = __all__.copy


def __getattr__(name: str) -> _Any:
    return getattr(_np.polynomial, name)
