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

from typing import TYPE_CHECKING

from oxigrad._names import without
from oxigrad.ops.stats import continuous, discrete, hazard, incomplete, multivariate, normal, quadrature, sums
from oxigrad.ops.stats.continuous import *
from oxigrad.ops.stats.discrete import *
from oxigrad.ops.stats.hazard import *
from oxigrad.ops.stats.incomplete import *
from oxigrad.ops.stats.multivariate import *
from oxigrad.ops.stats.normal import *
from oxigrad.ops.stats.quadrature import *
from oxigrad.ops.stats.sums import *

__all__: list[str] = []
__all__ += continuous.__all__
__all__ += discrete.__all__
__all__ += hazard.__all__
__all__ += incomplete.__all__
__all__ += multivariate.__all__
__all__ += normal.__all__
__all__ += quadrature.__all__
__all__ += sums.__all__

if not TYPE_CHECKING:  # to type checkers, a name that is not there is an error
    __dir__, __getattr__ = without("oxigrad.xp.stats", __all__, package=__name__)
