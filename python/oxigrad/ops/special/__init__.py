"""Special functions, named as in SciPy, whose ufuncs called on variables are these functions too.

The core's functions, and compositions of them, do not need SciPy. The core's functions are also ops of ``xp``, and run
in kernels. All others have SciPy's values: see the table in `oxigrad.ops.special.table`. On arrays of another library,
its own function is called if it has one. Otherwise the array is copied to host memory; `NotImplementedError` is raised
if the host cannot read it. SciPy's functions that are not ufuncs (``logsumexp``, ``softmax``, ``polygamma``, ``zeta``,
``lambertw``, ``multigammaln``, ``comb``, ``perm``, ``factorial``) do not accept variables: call the functions of
`oxigrad.xp.special`.

Errors of the core's functions in float64, in units in the last place: at most 4, or 2^-96 next to the negative roots of
`digamma` and `gammaln`; 8 for `polygamma`; for `iv` they grow with the argument (60 at 100). `jn` and `yn` err by at
most ``8 + order / 4`` units of their envelope; for orders above 1e5 they are NaN except where they are zero or
infinite. `gammainc`, `gammaincc` and `betainc` lose digits where they are tiny: some hundred units at 1e-100. In
float32, `expit` and the elementary functions of `xp` that the core computes err by at most one unit.

>>> import oxigrad as ox
>>> round(ox.grad(erf)(0.0), 6)
1.128379
"""

import sys
from collections.abc import Callable
from typing import Any

from oxigrad._names import without
from oxigrad.ops.core import guarded
from oxigrad.ops.core.composite import accepts_array_likes
from oxigrad.ops.special import combinatorial, composed, table
from oxigrad.ops.special.combinatorial import *
from oxigrad.ops.special.composed import *

__all__: list[str] = []
__all__ += composed.__all__
__all__ += combinatorial.__all__
__all__.extend(table.TABLE)  # pyright: ignore[reportUnsupportedDunderAll]
# Elementwise compositions accept lists here; for the other functions their decorators or the core convert lists.
for _name in composed.__all__:
    _function = getattr(composed, _name)
    if _function.__module__ in (composed.__name__, guarded.__name__) and not hasattr(_function, "__wrapped__"):
        _function = accepts_array_likes(_function, all_arrays=True)
        _function.__module__ = composed.__name__  # where pickle looks for it: `xlogy` is the core's too, without lists
        setattr(composed, _name, _function)
    globals()[_name] = getattr(composed, _name)
globals().update({**table.FUNCTIONS, "zeta": composed.zeta})  # Riemann's too
__dir__, __getattr__ = without("oxigrad.xp.special", __all__, package=__name__)


def of_ufunc(ufunc: Any) -> Callable[..., Any] | None:
    """The function of this module for a ufunc of SciPy, or None."""
    name = str(ufunc.__name__)
    modules = map(sys.modules.get, ("scipy.special", "scipy.special._ufuncs"))
    is_meant = any(getattr(module, name, None) is ufunc for module in modules)
    return globals()[name] if is_meant and name in __all__ else None
