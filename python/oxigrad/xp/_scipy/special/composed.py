"""Special functions that are ops of the core, or composed of functions that are differentiable."""

import builtins
import functools
import math
from collections.abc import Callable

from oxigrad import Variable
from oxigrad import xp as ops
from oxigrad._core import plain
from oxigrad._typing import Array, Axis, Function, Results
from oxigrad.ops.backends import is_complex, namespace, without_variables
from oxigrad.ops.backends.functions.scipy_functions import of_scipy
from oxigrad.ops.core.array_like import values
from oxigrad.ops.core.composite import accepts_array_likes
from oxigrad.ops.core.host_calls import computed
from oxigrad.ops.scipy_signatures import scipy_signature
from oxigrad.xp import (
    beta,
    betainc,
    betaln,
    cbrt,
    digamma,
    erf,
    erfc,
    erfcinv,
    erfinv,
    expit,
    expm1,
    gamma,
    gammainc,
    gammaincc,
    gammaln,
    iv,
    log1p,
    sum,
)
from oxigrad.xp._scipy.guarded import array_beside, branch, expm1_of, growth_by, infinite_mean, rgamma_away, xlogy
from oxigrad.xp._scipy.special import table
from oxigrad.xp._scipy.special.elliptic_integrals import agm
from oxigrad.xp._scipy.special.rows import f, near_zero, trunc

__all__ = [
    "agm",
    "beta",
    "betainc",
    "betaln",
    "cbrt",
    "cosm1",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcinv",
    "erfinv",
    "expit",
    "expm1",
    "exprel",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammaln",
    "gammasgn",
    "huber",
    "iv",
    "jn",
    "kl_div",
    "lambertw",
    "log1p",
    "log_softmax",
    "logit",
    "logsumexp",
    "multigammaln",
    "polygamma",
    "pseudo_huber",
    "psi",
    "rel_entr",
    "rgamma",
    "softmax",
    "softplus",
    "xlog1py",
    "xlogy",
    "yn",
    "zeta",
]

psi = digamma
_accepts_array_likes = functools.partial(accepts_array_likes, all_arrays=True)


def jn(n: Array, x: Array, /) -> Array:
    """Bessel function of the first kind: of integer order, or else `jv`."""
    orders = values(n)
    return ops.jn(n, x) if bool((orders == orders.round()).all()) else f.jv(n, x)


def yn(n: Array, x: Array, /) -> Array:
    """Bessel function of the second kind and integer order, to which other numbers are rounded towards zero."""
    return ops.yn(n if isinstance(n, Variable) else trunc(n), x)


@scipy_signature("n, x")
@_accepts_array_likes
def polygamma(n: Array, x: Array, /) -> Array:
    """The ``n``-th derivative of `digamma`, with ``n`` a whole number."""
    return ops.polygamma(n, x)


@scipy_signature("x, q=None, out=None")
def zeta(x: Array, q: Array | None, /) -> Array:
    """Hurwitz' zeta function; Riemann's without ``q``. The derivative by the exponent ``x`` assumes positive ``q``."""
    return f.zeta(x, q) if q is not None else table.riemann_zeta(x)


def logit(x: Array, /) -> Array:
    """The inverse of ``expit``: ``log(x / (1 - x))``."""
    middle = ops.abs(x - 0.5) < 0.25
    inner, outer = ops.where(middle, x, 0.5), ops.where(middle, 0.25, x)
    return ops.where(middle, 2.0 * ops.atanh(2.0 * inner - 1.0), ops.log(outer) - ops.log1p(-outer))


@scipy_signature("x, **kwargs")
@_accepts_array_likes
def softplus(x: Array, /) -> Array:
    """``log(1 + exp(x))``, which does not overflow."""
    return ops.logaddexp(0.0, x)


@scipy_signature("a, d")
@_accepts_array_likes
def multigammaln(a: Array, d: int, /) -> Array:
    """Logarithm of the multivariate gamma function of ``d`` dimensions."""
    return builtins.sum(gammaln(a - 0.5 * j) for j in range(d)) + 0.25 * d * (d - 1) * math.log(math.pi)


def rgamma(x: Array, /) -> Array:
    """One over the gamma function; zero at its poles."""
    if is_complex(x):
        return 1.0 / gamma(x)
    nearest = ops.round(x)
    # The reflection formula (DLMF 5.5.3) next to the poles, which are zeros here.
    is_pole = ops.logical_and(ops.abs(x - nearest) < 1e-3, nearest <= 0.0)
    sign = 1.0 - 4.0 * ops.abs(0.5 * nearest - ops.round(0.5 * nearest))
    reflected = lambda x: gamma(1.0 - x) * ops.sin(math.pi * (x - nearest)) * (sign / math.pi)  # noqa: E731
    # A root of zero, where the derivative overflows.
    is_steep = ops.logical_and(ops.logical_and(is_pole, x == nearest), gamma(1.0 - plain(x)) == math.inf)
    near = lambda x: branch(  # noqa: E731
        is_steep, lambda x: ops.sqrt(x - nearest) * sign, reflected, (x, nearest + 1.0, 0.0)
    )
    return branch(is_pole, near, rgamma_away, (x, 0.0, 1.0))


def xlog1py(x: Array, y: Array, /) -> Array:
    """``x * log1p(y)``, and zero where ``x`` is zero and the logarithm is not finite."""
    nothing = ops.logical_and(x == 0.0, ops.logical_or(y <= -1.0, y == math.inf))
    return ops.multiply(x, ops.log1p(ops.where(nothing, 0.0, array_beside(y, x))))


def entr(x: Array, /) -> Array:
    """``-x * log(x)``: zero at zero, where the derivative is infinite, and minus infinity below."""
    positive = ops.where(x < 0.0, 1.0, x)
    return ops.where(x < 0.0, -math.inf, -_x_log_x(positive))


def _x_log_x(x: Array) -> Array:
    """``x * log(x)``; at zero a root has its value and its derivative."""
    return branch(x == 0.0, lambda x: -ops.sqrt(x), lambda x: x * ops.log(x), (x, 1.0, 1.0))


def rel_entr(x: Array, y: Array, /) -> Array:
    """``x * log(x / y)`` for positive numbers; zero where ``x`` is zero, and infinite where one is negative."""
    # By functions: arrays of some libraries have operators that refuse a variable on their right.
    x, y = array_beside(x, y), array_beside(y, x)
    apart = ops.subtract(x, y)
    near = ops.abs(apart) < 0.5 * y
    ratio = ops.where(near, ops.divide(apart, ops.where(near, y, 1.0)), 0.0)
    value = ops.where(near, ops.multiply(x, ops.log1p(ratio)), ops.subtract(_x_log_x(x), xlogy(x, y)))
    is_outside = ops.logical_or(ops.logical_and(x < 0.0, y == y), ops.logical_and(y < 0.0, x == x))
    return ops.where(is_outside, math.inf, value)


def kl_div(x: Array, y: Array, /) -> Array:
    """``x * log(x / y) - x + y`` for positive numbers; ``y`` at zero ``x``, and infinite for negative arguments."""
    entropy = rel_entr(x, y)
    return ops.where(entropy == math.inf, math.inf, entropy - x + y)


def huber(delta: Array, r: Array, /) -> Array:
    """The Huber loss: ``r**2 / 2`` up to ``delta``, and linear beyond; infinite where ``delta`` is negative."""
    inside = lambda _, r: 0.5 * r * r  # noqa: E731
    outside = lambda delta, r: delta * (ops.abs(r) - 0.5 * delta)  # noqa: E731
    places = (delta, 1.0, 1.0), (r, 0.0, 1.0)
    return ops.where(delta < 0.0, math.inf, branch(ops.abs(r) <= delta, inside, outside, *places))


def pseudo_huber(delta: Array, r: Array, /) -> Array:
    """``delta**2 * (sqrt(1 + (r / delta)**2) - 1)``; zero for zero ``delta``, infinite for negative ``delta``."""
    safe = ops.where(delta > 0.0, delta, 1.0)

    def near(delta: Array, r: Array) -> Array:
        share = ops.divide(r, delta)
        return ops.divide(r * r, 1.0 + ops.sqrt(1.0 + share * share))

    def far(delta: Array, r: Array) -> Array:  # without the square, which overflows before the loss
        share = ops.divide(delta, r)
        part = ops.divide(ops.abs(r), ops.abs(share) + ops.sqrt(1.0 + share * share))
        return ops.multiply(delta, part)

    loss = branch(ops.abs(r) <= safe, near, far, (safe, 1.0, 1.0), (r, 0.0, 2.0))
    return ops.where(delta > 0.0, loss, ops.where(delta == 0.0, 0.0 * r, math.inf))


# --- powers and exponentials ------------------------------------------------------------------------------------------


def exprel(x: Array, /) -> Array:
    """``expm1(x) / x``, one at zero."""
    series = [1.0 / math.factorial(k + 1) for k in range(16)]
    return near_zero(x, 0.5, series, lambda x: growth_by(ops.expm1, x))


def log1prel(x: Array) -> Array:
    """``log1p(x) / x``, one at zero."""
    series = [(-1.0) ** k / (k + 1) for k in range(14)]
    return near_zero(x, 0.05, series, lambda x: ops.log1p(x) / x)


def _boxcox(x: Array, lmbda: Array, base: Callable[[Array], Array], logarithm: Callable[[Array], Array]) -> Array:
    """The transformation by the logarithm of the base, or by its power if that is not near one."""
    x, lmbda = array_beside(x, lmbda), array_beside(lmbda, x)
    at_zero = base(x) == 0.0
    is_infinite = ops.logical_and(at_zero, lmbda <= 0.0)
    # A place where the base is neither zero nor one, for branches that are not taken.
    exponent = lmbda * logarithm(ops.where(at_zero, 0.5, x))
    is_power = ops.logical_or(ops.abs(exponent) > 0.5, at_zero)
    power = lambda x, lmbda: (ops.pow(base(x), lmbda) - 1.0) / lmbda  # noqa: E731
    near = lambda x, lmbda: logarithm(x) * exprel(lmbda * logarithm(x))  # noqa: E731
    x, lmbda = ops.where(is_infinite, 0.5, x), ops.where(is_infinite, 1.0, lmbda)
    value = branch(is_power, power, near, (x, 0.5, 0.5), (lmbda, 1.0, 1.0))
    return ops.where(is_infinite, -math.inf, value)


def _inverse_exponent(x: Array, lmbda: Array) -> Array:
    """``log1p(lmbda * x) / lmbda``, which is ``x`` where ``lmbda`` is zero."""
    near = lambda x, lmbda: x * log1prel(lmbda * x)  # noqa: E731
    # Without a product by ``x``: its cotangent would overflow before the cotangent of the result.
    far = lambda x, lmbda: ops.log1p(lmbda * x) / lmbda  # noqa: E731
    return branch(ops.abs(lmbda * x) < 0.05, near, far, (x, 0.0, 1.0), (lmbda, 0.0, 1.0))


def cosm1(x: Array, /) -> Array:
    """``cos(x) - 1``, accurate near zero."""
    half = ops.sin(0.5 * x)
    return -2.0 * half * half


@scipy_signature("z, k=0, tol=1e-08", ignored="tol")
@_accepts_array_likes
def lambertw(z: Array, /, k: int) -> Array:
    """Lambert's function, complex: the solution ``w`` of ``w * exp(w) = z`` on branch ``k``.

    Its derivative is ``exp(-w) / (1 + w)``.

    >>> round(lambertw(1.0).real, 12)
    0.56714329041
    """
    return table.lambertw(k)(z)


# --- distribution functions -------------------------------------------------------------------------------------------


def gammasgn(x: Array, /) -> Array:
    """The sign of the gamma function; its derivative is zero."""
    bare = plain(x)
    return computed("gammasgn", of_scipy("special", "gammasgn"), (bare,))[0]


# --- sums of exponentials ---------------------------------------------------------------------------------------------


def _largest(x: Array, axis: Axis) -> Array:
    """The largest element as a plain value, or zero if it is infinite; it is subtracted before exponentials."""
    bare = without_variables(x)
    library = namespace(bare)
    if not hasattr(bare, "shape"):
        return bare if math.isfinite(bare) else 0.0
    largest = library.max(bare, axis=axis, keepdims=True)
    return library.where(library.isfinite(largest), largest, library.zeros_like(largest))


@scipy_signature("a, axis=None, b=None, keepdims=False, return_sign=False")
@_accepts_array_likes
def logsumexp(x: Array, /, axis: Axis, b: Array | None, keepdims: bool, return_sign: bool) -> Results:
    """``log(sum(b * exp(x)))``, which does not overflow; NaN where the sum is negative.

    With ``return_sign`` it is a tuple: the logarithm of the sum's absolute value, and its sign.

    >>> import numpy as np
    >>> logarithm, sign = logsumexp(np.array([1000.0, 1001.0]), b=np.array([1.0, -1.0]), return_sign=True)
    >>> round(float(logarithm), 3), float(sign)
    (1000.541, -1.0)
    """
    if b is not None:
        x = x + ops.zeros_like(b * x)  # of the common shape, along whose axes is summed
    limit = None if return_sign else infinite_mean(x, axis, b)
    x = x if limit is None else ops.where(limit[0], 0.0, x)
    largest = _largest(x, axis)
    powers = ops.exp(x - largest) if b is None else b * ops.exp(x - largest)
    total = sum(powers, axis=axis, keepdims=True)
    shape = total.shape if keepdims else sum(plain(powers), axis=axis).shape
    logarithm = ops.log(ops.abs(total) if return_sign else total) + largest
    logarithm = ops.reshape(logarithm if limit is None else ops.where(*limit, logarithm), shape)
    return (logarithm, ops.reshape(ops.sign(total), shape)) if return_sign else logarithm


@scipy_signature("x, axis=None")
@_accepts_array_likes
def softmax(x: Array, /, axis: Axis) -> Array:
    """``exp(x)`` divided by its sum over ``axis``, or over everything."""
    powers = ops.exp(x - _largest(x, axis))
    return powers / sum(powers, axis=axis, keepdims=True)


@scipy_signature("x, axis=None")
@_accepts_array_likes
def log_softmax(x: Array, /, axis: Axis) -> Array:
    """Logarithm of ``softmax``, which does not underflow."""
    return x - logsumexp(x, axis=axis, keepdims=True)


# --- formulas of one line ---------------------------------------------------------------------------------------------

# By name: the meaning, and the formula.
_FORMULAS: dict[str, tuple[str, Function]] = {
    "log_expit": ("``log(expit(x))``, which does not underflow.", lambda x, /: -ops.logaddexp(0.0, -x)),
    "exp2": ("``2**x``.", lambda x, /: ops.pow(2.0, x)),
    "exp10": ("``10**x``.", lambda x, /: ops.pow(10.0, x)),
    "boxcox": (
        "The Box-Cox transformation ``(x**lmbda - 1) / lmbda``; the logarithm where ``lmbda`` is zero.",
        lambda x, lmbda, /: _boxcox(x, lmbda, lambda x: x, ops.log),
    ),
    "boxcox1p": (
        "`boxcox` of ``1 + x``, accurate for small ``x``.",
        lambda x, lmbda, /: _boxcox(x, lmbda, lambda x: 1.0 + x, ops.log1p),
    ),
    "inv_boxcox": ("The inverse of `boxcox`.", lambda x, lmbda, /: ops.exp(_inverse_exponent(x, lmbda))),
    "inv_boxcox1p": ("The inverse of `boxcox1p`.", lambda x, lmbda, /: expm1_of(_inverse_exponent(x, lmbda))),
    "radian": (
        "An angle of degrees, minutes and seconds in radians.",
        lambda d, m, s, /: (d + m / 60.0 + s / 3600.0) * (math.pi / 180.0),
    ),
    "chdtr": (
        "Cumulative distribution function of the chi-square distribution.",
        lambda v, x, /: gammainc(0.5 * v, 0.5 * x),
    ),
    "chdtrc": ("Survival function of the chi-square distribution.", lambda v, x, /: gammaincc(0.5 * v, 0.5 * x)),
    "gdtr": (
        "Cumulative distribution function of the gamma distribution of rate ``a`` and shape ``b``.",
        lambda a, b, x, /: gammainc(b, a * x),
    ),
    "gdtrc": (
        "Survival function of the gamma distribution of rate ``a`` and shape ``b``.",
        lambda a, b, x, /: gammaincc(b, a * x),
    ),
    "pdtr": (
        "Probability that a Poisson number of mean ``m`` is at most ``k``.",
        lambda k, m, /: gammaincc(ops.floor(k * 1.0) + 1.0, m),
    ),
    "pdtrc": (
        "Probability that a Poisson number of mean ``m`` is more than ``k``.",
        lambda k, m, /: gammainc(ops.floor(k * 1.0) + 1.0, m),
    ),
    "j0": ("Bessel function of the first kind and order 0.", lambda x, /: ops.jn(0.0, x)),
    "j1": ("Bessel function of the first kind and order 1.", lambda x, /: ops.jn(1.0, x)),
    "y0": ("Bessel function of the second kind and order 0.", lambda x, /: ops.yn(0.0, x)),
    "y1": ("Bessel function of the second kind and order 1.", lambda x, /: ops.yn(1.0, x)),
    "i0": ("Modified Bessel function of the first kind and order 0.", lambda x, /: iv(0.0, x)),
    "i1": ("Modified Bessel function of the first kind and order 1.", lambda x, /: iv(1.0, x)),
}

__all__.extend(_FORMULAS)  # pyright: ignore[reportUnsupportedDunderAll]
for _name, (_meaning, _formula) in _FORMULAS.items():
    _formula.__name__ = _formula.__qualname__ = _name
    _formula.__doc__ = _meaning
    globals()[_name] = _formula
