"""Special functions, named as in SciPy, whose ufuncs called on variables are these functions too.

The core's functions, and compositions of them, do not need SciPy. The core's functions are also ops of ``xp``, and run
in kernels. All others have SciPy's values: the table of `oxigrad.xp._scipy.special.table` lists them. On arrays of
another library, its own function is called if it has one. Otherwise the array is copied to host memory;
`NotImplementedError` is raised if the host cannot read it. SciPy's functions that are not ufuncs (``logsumexp``,
``softmax``, ``polygamma``, ``zeta``, ``lambertw``, ``multigammaln``, ``comb``, ``perm``, ``factorial``) do not accept
variables: call the functions of `oxigrad.xp.special`.

Errors of the core's functions in float64, in units in the last place: at most 4, or 2^-96 next to the negative roots of
`digamma` and `gammaln`; 8 for `polygamma`; for `iv` they grow with the argument (60 at 100). `jn` and `yn` err by at
most ``8 + order / 4`` units of their envelope; for orders above 1e5 they are NaN except where they are zero or
infinite. `gammainc`, `gammaincc` and `betainc` lose digits where they are tiny: some hundred units at 1e-100. In
float32, `expit` and the elementary functions of `xp` that the core computes err by at most one unit.

>>> import oxigrad as ox
>>> round(ox.grad(erf)(0.0), 6)
1.128379
"""

from oxigrad.ops.core.composite import accepts_array_likes as _accepts_array_likes
from oxigrad.ops.protocols.namespaces import gathered as _gathered
from oxigrad.xp._scipy import guarded as _guarded
from oxigrad.xp._scipy.special import combinatorial as _combinatorial
from oxigrad.xp._scipy.special import composed as _composed
from oxigrad.xp._scipy.special import table as _table

# Elementwise compositions accept lists here; for the other functions their decorators or the core convert lists.
for _name in _composed.__all__:
    _function = getattr(_composed, _name)
    if _function.__module__ in (_composed.__name__, _guarded.__name__) and not hasattr(_function, "__wrapped__"):
        _function = _accepts_array_likes(_function, all_arrays=True)
        _function.__module__ = _composed.__name__  # where pickle looks for it: the `xlogy` of formulas takes no lists
        setattr(_composed, _name, _function)

__dir__, __getattr__ = _gathered(__name__, _table, _composed, _combinatorial)
