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

from oxigrad.ops.protocols.namespaces import gathered as _gathered
from oxigrad.xp._scipy.integrate import adaptive_steps as _adaptive_steps
from oxigrad.xp._scipy.integrate import initial_values as _initial_values
from oxigrad.xp._scipy.integrate import quadrature as _quadrature
from oxigrad.xp._scipy.integrate import samples as _samples

__dir__, __getattr__ = _gathered(__name__, _adaptive_steps, _initial_values, _quadrature, _samples)
