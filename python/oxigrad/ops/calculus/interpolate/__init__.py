"""Interpolation, named as in `scipy.interpolate`: functions of points, values and places of evaluation.

>>> import numpy as np
>>> import oxigrad as ox
>>> x = np.array([0.0, 1.0, 2.0, 3.0])
>>> ox.grad(lambda y: CubicSpline(x, y)(1.5))(np.zeros(4)).round(4)
array([-0.0625,  0.5625,  0.5625, -0.0625])
"""

from oxigrad._names import gathered
from oxigrad.ops.calculus.interpolate import b_splines, cubic_polynomials, grids

__dir__, __getattr__ = gathered("oxigrad.xp.interpolate", __name__, b_splines, cubic_polynomials, grids)
