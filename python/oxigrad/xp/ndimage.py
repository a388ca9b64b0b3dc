"""Filters and interpolation of images, named as in `scipy.ndimage`, with its values: `oxigrad.xp.ndimage`.

A linear filter is one entry of a tape, whose rule is its transpose, in all boundary modes. Derivatives of all orders
follow, in forward and reverse mode. Arrays of other libraries are copied to host memory; `NotImplementedError` is
raised if the host cannot read them. Rank filters (`median_filter`) and morphology (`grey_opening`) run in the array's
library; their derivative flows to the selected element. Further parameters (sizes, deviations, modes) are constants.
``output`` is a dtype, or an array to assign to.

>>> import numpy as np
>>> import oxigrad as ox
>>> x = np.array([0.0, 0.0, 1.0, 0.0])
>>> ox.grad(lambda x: uniform_filter1d(x, 3)[0])(x).round(3)
array([0.667, 0.333, 0.   , 0.   ])
>>> ox.grad(lambda x: maximum_filter(x, 3)[1])(x)
array([0., 0., 1., 0.])
"""

from oxigrad.ops.protocols.namespaces import gathered as _gathered
from oxigrad.xp._scipy.ndimage import filters as _filters
from oxigrad.xp._scipy.ndimage import interpolation as _interpolation
from oxigrad.xp._scipy.ndimage import windows as _windows

__dir__, __getattr__ = _gathered(__name__, _filters, _interpolation, _windows)
