"""Functions of SciPy named as in `autograd.scipy`: from `oxigrad.xp` for variables, SciPy's for plain values."""

import importlib
from types import ModuleType
from typing import Any

import scipy.stats

from oxigrad import xp
from oxigrad.autograd.modules import made, public
from oxigrad.autograd.scipy.convolution import convolve
from oxigrad.scipy.names import counterpart, twins


def _names(theirs: Any, ours: Any) -> dict[str, Any]:
    """Names of a module of SciPy, or of a distribution, whose functions take variables as far as ``ours`` has them."""
    return public(theirs) | twins(theirs, ours)


def _made(part: str, **replaced: Any) -> ModuleType:
    names = _names(importlib.import_module(f"scipy.{part}"), counterpart(part))
    return made(f"{__name__}.{part}", names | replaced)


integrate: ModuleType = _made("integrate")
linalg: ModuleType = _made("linalg")
signal: ModuleType = _made("signal", convolve=convolve)
special: ModuleType = _made("special")
stats: ModuleType = made(f"{__name__}.stats", _names(scipy.stats, xp.stats), is_package=True)
# Programs import the distributions of autograd as modules.
for _name in "beta chi2 dirichlet gamma multivariate_normal norm poisson t".split():
    _methods = _names(getattr(scipy.stats, _name), getattr(xp.stats, _name))
    made(f"{__name__}.stats.{_name}", _methods)
