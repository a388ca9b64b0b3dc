"""Interpolation, named as in `scipy.interpolate`: functions of points, values and places of evaluation.

>>> import numpy as np
>>> import oxigrad as ox
>>> x = np.array([0.0, 1.0, 2.0, 3.0])
>>> ox.grad(lambda y: CubicSpline(x, y)(1.5))(np.zeros(4)).round(4)
array([-0.0625,  0.5625,  0.5625, -0.0625])
"""

from oxigrad._names import without
from oxigrad.ops.calculus.interpolate import b_splines, cubic_polynomials, grids
from oxigrad.ops.calculus.interpolate.b_splines import *
from oxigrad.ops.calculus.interpolate.cubic_polynomials import *
from oxigrad.ops.calculus.interpolate.grids import *

__all__: list[str] = []
__all__ += b_splines.__all__
__all__ += cubic_polynomials.__all__
__all__ += grids.__all__

__dir__, __getattr__ = without("oxigrad.xp.interpolate", __all__, package=__name__)
