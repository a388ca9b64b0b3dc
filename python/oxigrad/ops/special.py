"""Special functions, named as in SciPy. Elementwise ones are also ops of ``xp``, and run in kernels.

On NumPy arrays they do not need SciPy. On arrays of another library its own function is called if it has one; otherwise the
array is read in host memory.

Errors of the core's functions in float64, in units in the last place: at most 4, or 2^-96 next to the negative roots of `digamma`
and `gammaln`; 8 for `polygamma`; for `iv` they grow with the argument (60 at 100). `jn` and `yn` err by at most ``8 + order / 4``
units of their envelope; for orders above 1e5 they are NaN except where they are zero or infinite. `gammainc`, `gammaincc` and
`betainc` lose digits where they are tiny: some hundred units at 1e-100.

>>> import oxigrad as ox
>>> round(ox.grad(erf)(0.0), 6)
1.128379
"""

import builtins
import math

from oxigrad._core import plain
from oxigrad._typing import Array
from oxigrad.ops import primitives as ops
from oxigrad.ops.backends import namespace
from oxigrad.ops.primitives import Axis, sum

__all__ = [
    "beta",
    "betainc",
    "betaln",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcinv",
    "erfinv",
    "expit",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammaln",
    "i0",
    "i1",
    "iv",
    "j0",
    "j1",
    "jn",
    "log_expit",
    "log_softmax",
    "logit",
    "logsumexp",
    "multigammaln",
    "polygamma",
    "psi",
    "rel_entr",
    "rgamma",
    "softmax",
    "softplus",
    "xlog1py",
    "xlogy",
    "y0",
    "y1",
    "yn",
]


def __dir__() -> list[str]:
    return list(__all__)


(
    beta,
    betainc,
    betaln,
    digamma,
    erf,
    erfc,
    erfcinv,
    erfinv,
    expit,
    gamma,
    gammainc,
    gammaincc,
    gammaln,
    iv,
    jn,
    polygamma,
    yn,
) = (
    getattr(ops, name)
    for name in """beta betainc betaln digamma erf erfc erfcinv erfinv expit
    gamma gammainc gammaincc gammaln iv jn polygamma yn""".split()
)
psi = digamma


def logit(x: Array, /) -> Array:
    """The inverse of ``expit``: ``log(x / (1 - x))``."""
    middle = ops.abs(x - 0.5) < 0.25
    inner, outer = ops.where(middle, x, 0.5), ops.where(middle, 0.25, x)
    return ops.where(middle, 2.0 * ops.atanh(2.0 * inner - 1.0), ops.log(outer) - ops.log1p(-outer))


def log_expit(x: Array, /) -> Array:
    """``log(expit(x))``, which does not underflow."""
    return -ops.logaddexp(0.0, -x)


def softplus(x: Array, /) -> Array:
    """``log(1 + exp(x))``, which does not overflow."""
    return ops.logaddexp(0.0, x)


def multigammaln(a: Array, d: int, /) -> Array:
    """Logarithm of the multivariate gamma function of ``d`` dimensions."""
    return builtins.sum(gammaln(a - 0.5 * j) for j in range(d)) + 0.25 * d * (d - 1) * math.log(math.pi)


def rgamma(x: Array, /) -> Array:
    """One over the gamma function."""
    return 1.0 / gamma(x)


def xlogy(x: Array, y: Array, /) -> Array:
    """``x * log(y)``, and zero where both are zero."""
    nothing = ops.logical_and(x == 0.0, y == 0.0)
    return ops.multiply(x, ops.log(ops.where(nothing, 1.0, y)))


def xlog1py(x: Array, y: Array, /) -> Array:
    """``x * log1p(y)``, and zero where ``x`` is zero and ``y`` -1."""
    nothing = ops.logical_and(x == 0.0, y == -1.0)
    return ops.multiply(x, ops.log1p(ops.where(nothing, 0.0, y)))


def entr(x: Array, /) -> Array:
    """``-x * log(x)``: zero at zero, minus infinity below."""
    positive = ops.where(x < 0.0, 1.0, x)
    return ops.where(x < 0.0, -math.inf, -xlogy(positive, positive))


def rel_entr(x: Array, y: Array, /) -> Array:
    """``x * log(x / y)`` for positive numbers; zero where ``x`` is zero."""
    near = ops.abs(x - y) < 0.5 * y
    ratio = ops.where(near, (x - y) / ops.where(near, y, 1.0), 0.0)
    return ops.where(near, x * ops.log1p(ratio), xlogy(x, x) - xlogy(x, y))


def j0(x: Array, /) -> Array:
    """Bessel function of the first kind and order 0."""
    return jn(0.0, x)


def j1(x: Array, /) -> Array:
    """Bessel function of the first kind and order 1."""
    return jn(1.0, x)


def y0(x: Array, /) -> Array:
    """Bessel function of the second kind and order 0."""
    return yn(0.0, x)


def y1(x: Array, /) -> Array:
    """Bessel function of the second kind and order 1."""
    return yn(1.0, x)


def i0(x: Array, /) -> Array:
    """Modified Bessel function of the first kind and order 0."""
    return iv(0.0, x)


def i1(x: Array, /) -> Array:
    """Modified Bessel function of the first kind and order 1."""
    return iv(1.0, x)


def _largest(x: Array, axis: Axis) -> Array:
    """The largest element as a plain value, zero where it is infinite; it is subtracted before exponentials."""
    bare = plain(x)
    library = namespace(bare)
    if not hasattr(bare, "shape"):
        return bare if math.isfinite(bare) else 0.0
    largest = library.max(bare, axis=axis, keepdims=True)
    return library.where(library.isfinite(largest), largest, library.zeros_like(largest))


def logsumexp(x: Array, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """``log(sum(exp(x)))``, which does not overflow."""
    largest = _largest(x, axis)
    logarithm = ops.log(sum(ops.exp(x - largest), axis=axis, keepdims=True)) + largest
    return logarithm if keepdims else ops.reshape(logarithm, sum(plain(x), axis=axis).shape)


def softmax(x: Array, /, *, axis: Axis = None) -> Array:
    """``exp(x)`` divided by its sum over ``axis``, or over everything."""
    powers = ops.exp(x - _largest(x, axis))
    return powers / sum(powers, axis=axis, keepdims=True)


def log_softmax(x: Array, /, *, axis: Axis = None) -> Array:
    """Logarithm of ``softmax``, which does not underflow."""
    return x - logsumexp(x, axis=axis, keepdims=True)
