"""Densities and distribution functions, named as in SciPy and composed of differentiable functions.

`scipy.stats` itself does not accept variables: call ``xp.stats.norm.logpdf(x)`` in place of ``scipy.stats.norm.logpdf(x)``.

Arguments are ``x``, an array or a number; then the shape parameters of the distribution; then ``loc`` and ``scale``. All are
broadcast. At an edge of the support a derivative is the limit from inside, which may be infinite; where the density at an edge jumps
with a shape parameter, and by parameters where a value is infinite, there is none. Beyond the support, and at infinity, it is zero. The
edges of `genextreme` and `genpareto` that move with ``c`` are outside of the support: the density is zero there, where SciPy's is not for
``c >= 1`` and ``c <= -1``. A parameter outside of its domain gives NaN. Logarithms of probabilities do not underflow where those do. The
derivatives are those of the functions: `xp.special.betainc` has none with respect to its first two arguments, and raises `DerivativeError`.

>>> import oxigrad as ox
>>> round(ox.grad(norm.logpdf)(0.5), 6)
-0.5
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from oxigrad._names import without
from oxigrad.ops.stats.continuous import (
    cauchy,
    dweibull,
    halfcauchy,
    hypsecant,
    laplace,
    logistic,
    loglaplace,
    loguniform,
    powerlaw,
    reciprocal,
    triang,
    truncexpon,
    uniform,
)
from oxigrad.ops.stats.discrete import bernoulli, binom, boltzmann, dlaplace, geom, nbinom, planck, poisson, randint
from oxigrad.ops.stats.hazard import (
    burr12,
    expon,
    fisk,
    genextreme,
    genlogistic,
    genpareto,
    gompertz,
    gumbel_l,
    gumbel_r,
    halflogistic,
    lomax,
    pareto,
    rayleigh,
    weibull_max,
    weibull_min,
)
from oxigrad.ops.stats.incomplete import (
    arcsine,
    beta,
    betaprime,
    chi,
    chi2,
    dgamma,
    f,
    gamma,
    invgamma,
    maxwell,
    nakagami,
    t,
)
from oxigrad.ops.stats.multivariate import dirichlet, multivariate_normal
from oxigrad.ops.stats.normal import (
    fatiguelife,
    halfnorm,
    johnsonsb,
    johnsonsu,
    levy,
    lognorm,
    moyal,
    norm,
    truncnorm,
)
from oxigrad.ops.stats.quadrature import invgauss, rice, skewnorm, vonmises
from oxigrad.ops.stats.sums import betabinom, hypergeom, logser, zipf

__all__ = [
    "arcsine",
    "bernoulli",
    "beta",
    "betabinom",
    "betaprime",
    "binom",
    "boltzmann",
    "burr12",
    "cauchy",
    "chi",
    "chi2",
    "dgamma",
    "dirichlet",
    "dlaplace",
    "dweibull",
    "expon",
    "f",
    "fatiguelife",
    "fisk",
    "gamma",
    "genextreme",
    "genlogistic",
    "genpareto",
    "geom",
    "gompertz",
    "gumbel_l",
    "gumbel_r",
    "halfcauchy",
    "halflogistic",
    "halfnorm",
    "hypergeom",
    "hypsecant",
    "invgamma",
    "invgauss",
    "johnsonsb",
    "johnsonsu",
    "laplace",
    "levy",
    "logistic",
    "loglaplace",
    "lognorm",
    "logser",
    "loguniform",
    "lomax",
    "maxwell",
    "moyal",
    "multivariate_normal",
    "nakagami",
    "nbinom",
    "norm",
    "pareto",
    "planck",
    "poisson",
    "powerlaw",
    "randint",
    "rayleigh",
    "reciprocal",
    "rice",
    "skewnorm",
    "t",
    "triang",
    "truncexpon",
    "truncnorm",
    "uniform",
    "vonmises",
    "weibull_max",
    "weibull_min",
    "zipf",
]
__dir__: Callable[[], list[str]] = __all__.copy

if not TYPE_CHECKING:  # to type checkers, a name that is not there is an error
    __getattr__ = without("oxigrad.xp.stats", __all__)
