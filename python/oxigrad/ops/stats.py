"""Densities and distribution functions, named as in SciPy and composed of differentiable functions.

`scipy.stats` itself does not accept variables: call ``xp.stats.norm.logpdf(x)`` in place of ``scipy.stats.norm.logpdf(x)``.

Arguments are ``x``, an array or a number; then the shape parameters of the distribution; then ``loc`` and ``scale``. All are
broadcast. The derivatives are those of the functions: `xp.special.betainc` has none with respect to its first two arguments,
and raises `DerivativeError`.

>>> import oxigrad as ox
>>> round(ox.grad(norm.logpdf)(0.5), 6)
-0.5
"""

from oxigrad.ops.continuous_distributions import (
    beta,
    cauchy,
    chi,
    chi2,
    expon,
    f,
    fisk,
    gamma,
    gompertz,
    gumbel_l,
    gumbel_r,
    halfcauchy,
    halflogistic,
    halfnorm,
    invgamma,
    laplace,
    levy,
    logistic,
    lognorm,
    lomax,
    maxwell,
    moyal,
    norm,
    pareto,
    powerlaw,
    rayleigh,
    t,
    uniform,
    weibull_max,
    weibull_min,
)
from oxigrad.ops.discrete_distributions import (
    bernoulli,
    binom,
    geom,
    nbinom,
    poisson,
)
from oxigrad.ops.multivariate_distributions import (
    dirichlet,
    multivariate_normal,
)

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


def __dir__() -> list[str]:
    return list(__all__)
