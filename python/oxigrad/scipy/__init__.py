"""SciPy's solvers for functions of trees, with automatic derivatives and differentiable solutions.

Each function is `scipy.optimize`'s function of the same name, with the same options and the same result. The point may
be a tree of arrays of any library and numbers, and derivatives are computed. Solutions are differentiable functions of
the variables of enclosing transforms. Under `oxigrad.vmap` the functions raise `TypeError`.

>>> import numpy as np
>>> def f(m):
...     return np.sum((m["a"] - 1.0) ** 2) + (m["b"] * m["a"][0] - 2.0) ** 2
>>> found = minimize(f, {"a": np.zeros(2), "b": 1.0})
>>> found.success, found.x["a"].round(3), round(float(found.x["b"]), 3)
(True, array([1., 1.]), 2.0)
"""

from typing import TYPE_CHECKING

from oxigrad._names import without
from oxigrad.scipy.curve_fit import curve_fit as curve_fit
from oxigrad.scipy.minimize import minimize as minimize
from oxigrad.scipy.names import fft_backend as fft_backend
from oxigrad.scipy.names import names as names
from oxigrad.scipy.roots import least_squares as least_squares
from oxigrad.scipy.roots import root as root

__all__ = ["curve_fit", "fft_backend", "least_squares", "minimize", "names", "root"]

if not TYPE_CHECKING:  # to type checkers, a name that is not there is an error
    __dir__, __getattr__ = without(__name__, __all__)
