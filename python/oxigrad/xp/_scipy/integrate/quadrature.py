"""Integrals of functions: SciPy's `quad` chooses the intervals, over which differentiable sums have its value."""

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from oxigrad import DerivativeError
from oxigrad._core import plain
from oxigrad._names import check_callable
from oxigrad._typing import Array, Function
from oxigrad.ops.backends.functions.scipy_functions import of_scipy
from oxigrad.xp._scipy.integrate.roots import has_variable, plain_tree

__all__ = ["quad"]

_COUNT = 21  # nodes an interval: exact for one degree more than SciPy's rules


def quad(
    func: Function,
    a: Array,
    b: Array,
    args: Any = (),
    full_output: int = 0,
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
    limit: int = 50,
    points: Any = None,
    weight: str | None = None,
    wvar: Any = None,
    wopts: Any = None,
    maxp1: int = 50,
    limlst: int = 50,
    complex_func: bool = False,
) -> tuple[Array, ...]:
    """The integral of ``func(x, *args)`` from ``a`` to ``b``, also infinite, and its error: `scipy.integrate.quad`.

    It is a function of the limits, of ``args`` and of the variables that ``func`` reads, which is called with plain
    numbers and with variables. Derivatives, to any order, differentiate the Gauss-Legendre rule over the intervals
    that SciPy chose: ``func`` must be smooth within them.

    Raises `DerivativeError` for a ``weight`` and for ``complex_func`` where there are variables.
    """
    check_callable(func, "quad")
    args = args if isinstance(args, tuple) else (args,)
    bare = plain_tree((a, b, args))
    for name, limit_of in (("a", bare[0]), ("b", bare[1])):
        if not hasattr(limit_of, "__float__") or np.shape(limit_of):
            raise TypeError(f"quad: {name} is {limit_of!r}: expected a number")
    reads = [has_variable((a, b, args))]

    def number(x: float, *args: Any) -> Array:
        value = func(x, *args)
        reads[0] = reads[0] or has_variable(value)
        bare = plain(value)
        _check_integrand(bare, is_complex=complex_func)
        return bare

    settings = (epsabs, epsrel, limit, points, weight, wvar, wopts, maxp1, limlst, complex_func)
    value, error, facts, *rest = of_scipy("integrate", "quad")(number, *bare[:2], bare[2], 1, *settings)
    if reads[0]:
        if weight is not None or complex_func:
            name = "complex_func" if complex_func else "weight"
            raise DerivativeError(f"quad: found variables and {name}, expected the default of {name}")
        total = _sum(lambda x: func(x, *args), (a, b), facts)
        value = total + (value - plain(total))
    if full_output:
        return (value, error, facts, *rest)
    if rest:
        category: Any = of_scipy("integrate", "IntegrationWarning")
        warnings.warn(str(rest[0]), category, stacklevel=2)
    return value, error


def _check_integrand(value: Any, *, is_complex: bool) -> None:
    """Raises `TypeError` for a value of ``func`` that is no number."""
    if type(value) is float:
        return
    if shape := np.shape(value):
        raise TypeError(
            f"quad: func returns an array of shape {shape}: expected a number; an integral of each component is "
            "xp.stack([quad(lambda x: func(x)[i], a, b)[0] for i in range(n)])"
        )
    kind = np.asarray(value).dtype.kind
    if kind == "c" and not is_complex:
        raise TypeError("quad: func returns a complex number: expected a real one, or complex_func=True")
    if kind not in "biufc":
        raise TypeError(f"quad: func returns {type(value).__name__}: expected a number")


@functools.cache
def _nodes() -> tuple[Array, Array]:
    nodes, weights = np.polynomial.legendre.leggauss(_COUNT)
    return 0.5 + 0.5 * nodes, 0.5 * weights


def _sum(f: Callable[[Array], Array], limits: tuple[Array, Array], facts: dict[str, Any]) -> Array:
    count = facts["last"]
    intervals = [*zip(facts["alist"][:count], facts["blist"][:count], strict=True)]
    a, b = limits
    low, high = float(plain(a)), float(plain(b))
    if low == high:
        return (b - a) * f(a)
    if math.isinf(low) and math.isinf(high):
        sign = math.copysign(1.0, high)
        point = lambda t: sign * ((f((1.0 - t) / t) + f((t - 1.0) / t)) / t**2)  # noqa: E731
    elif math.isinf(high) or math.isinf(low):
        infinite, start = (high, a) if math.isinf(high) else (low, b)
        along = math.copysign(1.0, infinite)
        sign = along if math.isinf(high) else -along
        point = lambda t: sign * f(start + along * ((1.0 - t) / t)) / t**2  # noqa: E731
    else:
        scale = b - a
        point = lambda t: scale * f(a + scale * t)  # noqa: E731
        intervals = [((one - low) / (high - low), (other - low) / (high - low)) for one, other in intervals]
    total: Array = 0.0
    for one, other in intervals:
        for node, weight in zip(*_nodes(), strict=True):
            size = abs(float(other - one))
            total = total + size * float(weight) * point(min(float(one), float(other)) + size * float(node))
    return total
