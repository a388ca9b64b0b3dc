# Printed by make generated.


from oxigrad.xp._scipy.stats.continuous import (
    cauchy as cauchy, dweibull as dweibull, halfcauchy as halfcauchy, hypsecant as hypsecant, laplace as laplace,
    logistic as logistic, loglaplace as loglaplace, loguniform as loguniform, powerlaw as powerlaw,
    reciprocal as reciprocal, triang as triang, truncexpon as truncexpon, uniform as uniform,
)
from oxigrad.xp._scipy.stats.discrete import (
    bernoulli as bernoulli, binom as binom, boltzmann as boltzmann, dlaplace as dlaplace, geom as geom,
    nbinom as nbinom, planck as planck, poisson as poisson, randint as randint,
)
from oxigrad.xp._scipy.stats.hazard import (
    burr12 as burr12, expon as expon, fisk as fisk, genextreme as genextreme, genlogistic as genlogistic,
    genpareto as genpareto, gompertz as gompertz, gumbel_l as gumbel_l, gumbel_r as gumbel_r,
    halflogistic as halflogistic, lomax as lomax, pareto as pareto, rayleigh as rayleigh, weibull_max as weibull_max,
    weibull_min as weibull_min,
)
from oxigrad.xp._scipy.stats.incomplete import (
    arcsine as arcsine, beta as beta, betaprime as betaprime, chi as chi, chi2 as chi2, dgamma as dgamma, f as f,
    gamma as gamma, invgamma as invgamma, maxwell as maxwell, nakagami as nakagami, t as t,
)
from oxigrad.xp._scipy.stats.multivariate import (dirichlet as dirichlet, multivariate_normal as multivariate_normal)
from oxigrad.xp._scipy.stats.normal import (
    fatiguelife as fatiguelife, halfnorm as halfnorm, johnsonsb as johnsonsb, johnsonsu as johnsonsu, levy as levy,
    lognorm as lognorm, moyal as moyal, norm as norm, truncnorm as truncnorm,
)
from oxigrad.xp._scipy.stats.quadrature import (
    invgauss as invgauss, rice as rice, skewnorm as skewnorm, vonmises as vonmises,
)
from oxigrad.xp._scipy.stats.sums import (
    betabinom as betabinom, hypergeom as hypergeom, logser as logser, zipf as zipf,
)


__all__ = [
    'arcsine', 'bernoulli', 'beta', 'betabinom', 'betaprime', 'binom', 'boltzmann', 'burr12', 'cauchy', 'chi', 'chi2',
    'dgamma', 'dirichlet', 'dlaplace', 'dweibull', 'expon', 'f', 'fatiguelife', 'fisk', 'gamma', 'genextreme',
    'genlogistic', 'genpareto', 'geom', 'gompertz', 'gumbel_l', 'gumbel_r', 'halfcauchy', 'halflogistic', 'halfnorm',
    'hypergeom', 'hypsecant', 'invgamma', 'invgauss', 'johnsonsb', 'johnsonsu', 'laplace', 'levy', 'logistic',
    'loglaplace', 'lognorm', 'logser', 'loguniform', 'lomax', 'maxwell', 'moyal', 'multivariate_normal', 'nakagami',
    'nbinom', 'norm', 'pareto', 'planck', 'poisson', 'powerlaw', 'randint', 'rayleigh', 'reciprocal', 'rice',
    'skewnorm', 't', 'triang', 'truncexpon', 'truncnorm', 'uniform', 'vonmises', 'weibull_max', 'weibull_min', 'zipf',
]
