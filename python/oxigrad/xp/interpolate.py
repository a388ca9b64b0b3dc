"""Interpolation, named as in `scipy.interpolate`: functions of points, values and places of evaluation.

>>> import numpy as np
>>> import oxigrad as ox
>>> x = np.array([0.0, 1.0, 2.0, 3.0])
>>> ox.grad(lambda y: CubicSpline(x, y)(1.5))(np.zeros(4)).round(4)
array([-0.0625,  0.5625,  0.5625, -0.0625])
"""

from oxigrad.ops.protocols.namespaces import gathered as _gathered
from oxigrad.xp._scipy.interpolate import b_splines as _b_splines
from oxigrad.xp._scipy.interpolate import cubic_polynomials as _cubic_polynomials
from oxigrad.xp._scipy.interpolate import grids as _grids

__dir__, __getattr__ = _gathered(__name__, _b_splines, _cubic_polynomials, _grids)
