"""Integrals, and ordinary differential equations by differentiable steps, by the names of `scipy.integrate`.

>>> import numpy as np
>>> import oxigrad as ox
>>> x = np.array([0.0, 1.0, 4.0])
>>> round(ox.grad(lambda end: simpson(x * x, x * end))(1.0), 6)  # of the integral from 0 to 4 * end
21.333333
>>> decay = lambda t, y, rate: -rate * y
>>> round(
...     float(
...         ox.grad(lambda rate: solve_ivp(decay, (0.0, 1.0), [1.0], args=(rate,), rtol=1e-8).y[0, -1])(
...             2.0
...         )
...     ),
...     6,
... )
-0.135335
"""

from oxigrad._names import without
from oxigrad.ops.calculus.integrate import adaptive_steps, initial_values, quadrature, samples
from oxigrad.ops.calculus.integrate.adaptive_steps import *
from oxigrad.ops.calculus.integrate.initial_values import *
from oxigrad.ops.calculus.integrate.quadrature import *
from oxigrad.ops.calculus.integrate.samples import *

__all__: list[str] = []
__all__ += adaptive_steps.__all__
__all__ += initial_values.__all__
__all__ += quadrature.__all__
__all__ += samples.__all__

__dir__, __getattr__ = without("oxigrad.xp.integrate", __all__, package=__name__)
