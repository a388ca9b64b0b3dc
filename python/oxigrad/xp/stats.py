"""Densities and distribution functions, named as in SciPy and composed of differentiable functions.

`scipy.stats` itself does not accept variables: call ``xp.stats.norm.logpdf(x)`` instead of
``scipy.stats.norm.logpdf(x)``.

Arguments are ``x``, an array or a number; then the shape parameters of the distribution; then ``loc`` and ``scale``.
All are broadcast. A parameter outside of its domain gives NaN. Logarithms of probabilities do not underflow where the
probabilities do.

Beyond the support, and at infinity, derivatives are zero. At an edge of the support a derivative is the limit from
inside, which may be infinite. There is no derivative where the density at an edge jumps with a shape parameter, nor by
parameters where a value is infinite. The edges of `genextreme` and `genpareto` that move with ``c`` are outside of the
support: the density is zero there, while SciPy's is not for ``c >= 1`` and ``c <= -1``.

>>> import oxigrad as ox
>>> round(ox.grad(norm.logpdf)(0.5), 6)
-0.5
"""

from oxigrad.ops.protocols.namespaces import gathered as _gathered
from oxigrad.xp._scipy.stats import continuous as _continuous
from oxigrad.xp._scipy.stats import discrete as _discrete
from oxigrad.xp._scipy.stats import hazard as _hazard
from oxigrad.xp._scipy.stats import incomplete as _incomplete
from oxigrad.xp._scipy.stats import multivariate as _multivariate
from oxigrad.xp._scipy.stats import normal as _normal
from oxigrad.xp._scipy.stats import quadrature as _quadrature
from oxigrad.xp._scipy.stats import sums as _sums

__dir__, __getattr__ = _gathered(
    __name__, _continuous, _discrete, _hazard, _incomplete, _multivariate, _normal, _quadrature, _sums
)
