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

from oxigrad._names import gathered
from oxigrad.ops.calculus.integrate import adaptive_steps, initial_values, quadrature, samples

__dir__, __getattr__ = gathered("oxigrad.xp.integrate", __name__, adaptive_steps, initial_values, quadrature, samples)
