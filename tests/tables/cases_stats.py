"""Distributions, with their parameters and points inside of the support."""

from __future__ import annotations

from typing import Any

import numpy as np

# Continuous distributions: shape parameters, and points of the standardized number inside of the support.
INSIDE = np.array([0.05, 0.3, 0.7, 1.4, 6.0])
WHOLE = np.array([-3.0, -0.4, 0.7, 6.0])
CONTINUOUS: dict[str, tuple[tuple[float, ...], np.ndarray]] = {
    **dict.fromkeys("expon rayleigh halflogistic halfnorm halfcauchy maxwell levy".split(), ((), INSIDE)),
    **dict.fromkeys("gumbel_l gumbel_r laplace logistic cauchy moyal norm".split(), ((), WHOLE)),
    **dict.fromkeys("weibull_min lomax gompertz fisk lognorm chi invgamma gamma chi2".split(), ((1.7,), INSIDE)),
    "weibull_max": ((1.7,), -INSIDE),
    "pareto": ((2.5,), 1.0 + INSIDE),
    "uniform": ((), np.array([0.1, 0.5, 0.9])),
    "powerlaw": ((1.7,), np.array([0.1, 0.5, 0.9])),
    "beta": ((1.7, 0.6), np.array([0.1, 0.5, 0.9])),
    "t": ((3.5,), WHOLE),
    "f": ((3.5, 2.5), INSIDE),
    "betaprime": ((1.7, 2.5), INSIDE),
    "burr12": ((1.7, 2.0), INSIDE),
    **dict.fromkeys(["fatiguelife"], ((1.7,), np.array([0.05, 0.3, 0.7, 1.4, 2.5]))),
    "loglaplace": ((1.7,), INSIDE),
    "genpareto": ((0.3,), INSIDE),
    "genextreme": ((0.3,), np.array([-3.0, -0.4, 0.7, 2.5])),
    **dict.fromkeys("dweibull dgamma genlogistic".split(), ((1.7,), WHOLE)),
    "hypsecant": ((), WHOLE),
    "johnsonsu": ((0.3, 1.7), WHOLE),
    "johnsonsb": ((0.3, 1.7), np.array([0.1, 0.5, 0.9])),
    "arcsine": ((), np.array([0.1, 0.5, 0.9])),
    "triang": ((0.35,), np.array([0.1, 0.5, 0.9])),
    "truncnorm": ((-1.0, 2.5), np.array([-0.5, 0.3, 2.0])),
    "truncexpon": ((3.0,), np.array([0.1, 1.5, 2.8])),
    **dict.fromkeys("loguniform reciprocal".split(), ((0.5, 8.0), np.array([0.6, 2.0, 7.5]))),
    "skewnorm": ((1.7,), np.array([-1.5, -0.4, 0.7, 3.0])),
    "vonmises": ((1.7,), np.array([-3.0, -0.4, 0.7, 2.0])),
    **dict.fromkeys("nakagami rice invgauss".split(), ((1.7,), np.array([0.05, 0.3, 0.7, 1.4, 2.5]))),
}
COUNTED: dict[str, tuple[Any, ...]] = {
    "binom": (5, 0.3),
    "bernoulli": (0.3,),
    "geom": (0.3,),
    "nbinom": (2.5, 0.3),
    "poisson": (2.5,),
    "planck": (0.7,),
    "boltzmann": (0.7, 9.0),
    "dlaplace": (0.7,),
    "zipf": (2.7,),
    "logser": (0.7,),
    "betabinom": (9, 1.7, 0.6),
    "randint": (-2, 7),
    "hypergeom": (20, 7, 12),
}
# Those of which all parameters are whole numbers.
WHOLE_PARAMETERS = {"randint", "hypergeom"}
# Distribution functions without a derivative in their shape parameters.
ONLY_X = {"f", "t"}
# Those with first derivatives by their shape parameter, by the forms of the incomplete gamma function.
ONCE = {"gamma", "chi", "chi2", "invgamma", "dgamma", "nakagami"}
# Those by quadrature, whose second derivatives take seconds: most are tested at special places alone.
SLOW = {"rice", "skewnorm", "vonmises"}
# What the tests call of each continuous distribution.
CONTINUOUS_METHODS = "logpdf pdf cdf logcdf sf logsf ppf isf".split()
