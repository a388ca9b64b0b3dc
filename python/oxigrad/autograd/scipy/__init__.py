"""Functions of SciPy named as in `autograd.scipy`: from `oxigrad.xp` for variables, SciPy's for plain values."""

from types import ModuleType
from typing import Any

import scipy.integrate
import scipy.linalg
import scipy.signal
import scipy.special
import scipy.stats

from oxigrad import xp
from oxigrad.autograd.modules import made, public
from oxigrad.autograd.scipy.convolution import convolve
from oxigrad.scipy.names import twins


def _names(theirs: Any, ours: Any) -> dict[str, Any]:
    """Names of a module of SciPy, or of a distribution, whose functions take variables as far as ``ours`` has them."""
    return public(theirs) | twins(theirs, ours)


integrate: ModuleType = made(f"{__name__}.integrate", _names(scipy.integrate, xp.integrate))
linalg: ModuleType = made(f"{__name__}.linalg", _names(scipy.linalg, xp.linalg))
signal: ModuleType = made(f"{__name__}.signal", _names(scipy.signal, xp.signal) | {"convolve": convolve})
special: ModuleType = made(f"{__name__}.special", _names(scipy.special, xp.special))
stats: ModuleType = made(f"{__name__}.stats", _names(scipy.stats, xp.stats), is_package=True)
# Programs import the distributions of autograd as modules.
for _name in "beta chi2 dirichlet gamma multivariate_normal norm poisson t".split():
    _methods = _names(getattr(scipy.stats, _name), getattr(xp.stats, _name))
    setattr(stats, _name, made(f"{__name__}.stats.{_name}", _methods))
