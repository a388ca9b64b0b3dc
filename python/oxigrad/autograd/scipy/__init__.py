"""Functions of SciPy named as in `autograd.scipy`: from `oxigrad.xp` for variables, SciPy's for plain values."""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import scipy.integrate
import scipy.linalg
import scipy.signal
import scipy.special
import scipy.stats

from oxigrad import xp
from oxigrad.autograd.modules import made, public
from oxigrad.autograd.numpy.numpy_wrapper import holds_variable
from oxigrad.autograd.scipy.convolution import convolve


def _names(theirs: Any, ours: Any) -> dict[str, Any]:
    """Names of a module of SciPy, or of a distribution, whose functions take variables as far as ``ours`` has them."""
    names, differentiable = public(theirs), public(ours)
    both = {name: _chosen(names[name], f) for name, f in differentiable.items() if callable(f) and name in names}
    return names | both


def _chosen(theirs: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(theirs, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        f = ours if holds_variable(args) or holds_variable([*kwargs.values()]) else theirs
        return f(*args, **kwargs)

    return wrapped


integrate: ModuleType = made(f"{__name__}.integrate", _names(scipy.integrate, xp.integrate))
linalg: ModuleType = made(f"{__name__}.linalg", _names(scipy.linalg, xp.linalg))
signal: ModuleType = made(f"{__name__}.signal", _names(scipy.signal, xp.signal) | {"convolve": convolve})
special: ModuleType = made(f"{__name__}.special", _names(scipy.special, xp.special))
stats: ModuleType = made(f"{__name__}.stats", _names(scipy.stats, xp.stats), is_package=True)
# Programs import the distributions of autograd as modules.
for _name in "beta chi2 dirichlet gamma multivariate_normal norm poisson t".split():
    _methods = _names(getattr(scipy.stats, _name), getattr(xp.stats, _name))
    setattr(stats, _name, made(f"{__name__}.stats.{_name}", _methods))
