"""Densities and distribution functions, named as in SciPy and composed of differentiable functions.

`scipy.stats` itself does not accept variables: call ``xp.stats.norm.logpdf(x)`` in place of ``scipy.stats.norm.logpdf(x)``.

Arguments are ``x``, an array or a number; then the shape parameters of the distribution; then ``loc`` and ``scale``. All are
broadcast. At an edge of the support a derivative is the limit from inside, which may be infinite; where the density at an edge jumps
with a shape parameter, and by parameters where a value is infinite, there is none. Beyond the support, and at infinity, it is zero. A
parameter outside of its domain gives NaN. Logarithms of probabilities do not underflow where those do. The derivatives are those of the functions: `xp.special.betainc` has none with respect to its first two arguments,
and raises `DerivativeError`.

>>> import oxigrad as ox
>>> round(ox.grad(norm.logpdf)(0.5), 6)
-0.5
"""

from typing import TYPE_CHECKING

from oxigrad._names import without
from oxigrad.ops.stats.continuous import (
    cauchy,
    expon,
    fisk,
    gompertz,
    gumbel_l,
    gumbel_r,
    halfcauchy,
    halflogistic,
    halfnorm,
    laplace,
    levy,
    logistic,
    lognorm,
    lomax,
    moyal,
    norm,
    pareto,
    powerlaw,
    rayleigh,
    uniform,
    weibull_max,
    weibull_min,
)
from oxigrad.ops.stats.discrete import bernoulli, binom, geom, nbinom, poisson
from oxigrad.ops.stats.incomplete import beta, chi, chi2, f, gamma, invgamma, maxwell, t
from oxigrad.ops.stats.multivariate import dirichlet, multivariate_normal

__all__ = [
    "bernoulli",
    "beta",
    "binom",
    "cauchy",
    "chi",
    "chi2",
    "dirichlet",
    "expon",
    "f",
    "fisk",
    "gamma",
    "geom",
    "gompertz",
    "gumbel_l",
    "gumbel_r",
    "halfcauchy",
    "halflogistic",
    "halfnorm",
    "invgamma",
    "laplace",
    "levy",
    "logistic",
    "lognorm",
    "lomax",
    "maxwell",
    "moyal",
    "multivariate_normal",
    "nbinom",
    "norm",
    "pareto",
    "poisson",
    "powerlaw",
    "rayleigh",
    "t",
    "uniform",
    "weibull_max",
    "weibull_min",
]

__dir__ = __all__.copy
if not TYPE_CHECKING:  # to type checkers, a name that is not there is an error
    __getattr__ = without("oxigrad.xp.stats", __all__)
