"""Convolutions and linear filters of signals, named as in `scipy.signal`: `oxigrad.xp.signal`.

A convolution is differentiable in both arguments, `lfilter` and `sosfilt` in the signal, the coefficients and the
initial state, to all orders. Other filters are linear in the signal, and their coefficients are constants. Values are
SciPy's. Arrays of other libraries are copied to host memory; `NotImplementedError` is raised if the host cannot read
them. Rank filters are in `oxigrad.xp.ndimage`: ``medfilt`` is `median_filter` in the mode "constant".

>>> import numpy as np
>>> import oxigrad as ox
>>> ox.grad(lambda h: convolve(np.array([1.0, 2.0, 3.0]), h)[1])(np.array([0.0, 1.0]))
array([2., 1.])
"""

from oxigrad.ops.protocols.namespaces import gathered as _gathered
from oxigrad.xp._scipy.signal import convolutions as _convolutions
from oxigrad.xp._scipy.signal import filters as _filters
from oxigrad.xp._scipy.signal import sampling as _sampling

__dir__, __getattr__ = _gathered(__name__, _convolutions, _filters, _sampling)
