"""Densities and distribution functions, named as in SciPy and composed of differentiable functions.

Arguments are ``x``, an array or a number; then the shape parameters of the distribution; then ``loc`` and ``scale``. All are
broadcast. The derivatives are those of the functions: `xp.special.betainc` has none with respect to its first two arguments,
and raises `DerivativeError`.

>>> import oxigrad as ox
>>> round(ox.grad(norm.logpdf)(0.5), 6)
-0.5
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from oxigrad._typing import Array
from oxigrad.ops import linalg, special
from oxigrad.ops import primitives as ops
from oxigrad.ops.backends import is_array
from oxigrad.ops.primitives import sum

__all__ = ["beta", "chi2", "dirichlet", "gamma", "multivariate_normal", "norm", "poisson", "t"]


def __dir__() -> list[str]:
    return list(__all__)


_LOG_2_PI = math.log(2.0 * math.pi)


def _log(p: Array, rest: Any) -> Array:
    """``log(p)`` given ``p`` and ``rest = 1 - p``, accurate near 0 and 1."""
    high = p > 0.5
    return ops.where(high, ops.log1p(-ops.where(high, rest, 0.5)), ops.log(ops.where(high, 0.5, p)))


@dataclasses.dataclass(frozen=True)
class _Continuous:
    """A continuous distribution, defined by its functions of the standardized ``z`` and of the shape parameters."""

    name: str
    shapes: int
    log_density: Callable[..., Any]
    lower: Callable[..., Any]
    upper: Callable[..., Any]
    log_lower: Callable[..., Any] | None = None

    def __reduce__(self) -> str:
        return self.name

    def _split(self, x: Array, args: tuple[Any, ...], loc: Array, scale: Array) -> tuple[Any, tuple[Any, ...], Any]:
        """The standardized ``x``, the shape parameters, and the scale."""
        shapes, rest = args[: self.shapes], args[self.shapes :]
        if len(shapes) < self.shapes or len(rest) > 2:
            raise TypeError(
                f"{self.name}: found {len(args)} arguments, expected {self.shapes} shape parameters, then loc and scale"
            )
        loc, scale = rest[0] if rest else loc, rest[1] if len(rest) > 1 else scale
        return (x - loc) / scale, shapes, scale

    def logpdf(self, x: Array, *args: Any, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """Logarithm of the density."""
        z, shapes, scale = self._split(x, args, loc, scale)
        return self.log_density(z, *shapes) - ops.log(scale)

    def pdf(self, x: Array, *args: Any, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The density."""
        return ops.exp(self.logpdf(x, *args, loc=loc, scale=scale))

    def cdf(self, x: Array, *args: Any, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The cumulative distribution function: the probability of at most ``x``."""
        z, shapes, _ = self._split(x, args, loc, scale)
        return self.lower(z, *shapes)

    def logcdf(self, x: Array, *args: Any, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """Logarithm of `cdf`."""
        z, shapes, _ = self._split(x, args, loc, scale)
        return self.log_lower(z, *shapes) if self.log_lower else _log(self.lower(z, *shapes), self.upper(z, *shapes))

    def sf(self, x: Array, *args: Any, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """The survival function: the probability of more than ``x``, accurate where it is small."""
        z, shapes, _ = self._split(x, args, loc, scale)
        return self.upper(z, *shapes)

    def logsf(self, x: Array, *args: Any, loc: Array = 0.0, scale: Array = 1.0) -> Array:
        """Logarithm of `sf`."""
        z, shapes, _ = self._split(x, args, loc, scale)
        # A distribution with `log_lower` is symmetric.
        return self.log_lower(-z, *shapes) if self.log_lower else _log(self.upper(z, *shapes), self.lower(z, *shapes))


# --- of numbers --------------------------------------------------------------------------------------------------------

# Below, the series is accurate in float64; above, `erfc` is in float32.
_FAR = -12.0


def _normal_density(z: Array) -> Array:
    return -0.5 * z * z - 0.5 * _LOG_2_PI


def _normal(z: Array) -> Array:
    return 0.5 * special.erfc(z * -math.sqrt(0.5))


def _log_normal(z: Array) -> Array:
    near, far = ops.where(z < _FAR, _FAR, z), ops.where(z < _FAR, z, _FAR)
    # Abramowitz and Stegun 26.2.12.
    down, series = -1.0 / (far * far), 1.0
    for odd in range(19, 0, -2):
        series = 1.0 + odd * down * series
    below = _normal_density(far) - ops.log(-far) + ops.log(series)
    return ops.where(z < _FAR, below, _log(_normal(near), _normal(-near)))


def _within(z: Array, high: float, f: Callable[[Any], Any]) -> Array:
    """The logarithm of a density that is zero below zero and above ``high``."""
    inside = ops.logical_and(z >= 0.0, z <= high)
    return ops.where(inside, f(ops.where(inside, z, 0.5)), -math.inf)


def _beta_density(z: Array, a: Array, b: Array) -> Array:
    constant = special.betaln(a, b)
    return _within(z, 1.0, lambda z: special.xlogy(a - 1.0, z) + special.xlog1py(b - 1.0, -z) - constant)


def _beta(z: Array, a: Array, b: Array) -> Array:
    return special.betainc(a, b, ops.minimum(ops.maximum(z, 0.0), 1.0))


def _gamma_density(z: Array, a: Array) -> Array:
    return _within(z, math.inf, lambda z: special.xlogy(a - 1.0, z) - z - special.gammaln(a))


def _gamma(z: Array, a: Array) -> Array:
    return special.gammainc(a, ops.maximum(z, 0.0))


def _gamma_above(z: Array, a: Array) -> Array:
    return special.gammaincc(a, ops.maximum(z, 0.0))


def _t_density(z: Array, df: Array) -> Array:
    half = 0.5 * (df + 1.0)
    constant = special.gammaln(half) - special.gammaln(0.5 * df) - 0.5 * ops.log(math.pi * df)
    return constant - half * ops.log1p(z * z / df)


def _t(z: Array, df: Array) -> Array:
    # By the beta function of equal arguments, which is smooth at zero; the formula DLMF 26.5.27 is not.
    root = ops.sqrt(z * z + df)
    share = ops.where(z < 0.0, df / (root - z), root + z) / (2.0 * root)
    return special.betainc(0.5 * df, 0.5 * df, share)


norm = _Continuous("norm", 0, _normal_density, _normal, lambda z: _normal(-z), _log_normal)
beta = _Continuous("beta", 2, _beta_density, _beta, lambda z, a, b: _beta(1.0 - z, b, a))
gamma = _Continuous("gamma", 1, _gamma_density, _gamma, _gamma_above)
t = _Continuous("t", 1, _t_density, _t, lambda z, df: _t(-z, df))
chi2 = _Continuous(
    "chi2",
    1,
    lambda z, df: gamma.logpdf(z, 0.5 * df, scale=2.0),
    lambda z, df: gamma.cdf(z, 0.5 * df, scale=2.0),
    lambda z, df: gamma.sf(z, 0.5 * df, scale=2.0),
)


class _Poisson:
    """The Poisson distribution of counts ``k``, with mean ``mu``."""

    def __reduce__(self) -> str:
        return "poisson"

    def logpmf(self, k: Any, mu: Array, loc: Array = 0.0) -> Array:
        """Logarithm of the probability of ``k``."""
        count = k - loc * 1.0
        is_one = ops.logical_and(count >= 0.0, count == ops.floor(count))
        safe = ops.where(is_one, count, 1.0)
        return ops.where(is_one, special.xlogy(safe, mu) - special.gammaln(safe + 1.0) - mu, -math.inf)

    def pmf(self, k: Any, mu: Array, loc: Array = 0.0) -> Array:
        """The probability of ``k``."""
        return ops.exp(self.logpmf(k, mu, loc))

    def cdf(self, k: Any, mu: Array, loc: Array = 0.0) -> Array:
        """The probability of at most ``k``."""
        count = ops.floor(k - loc * 1.0)
        safe = ops.maximum(count, 0.0)
        return ops.where(count < 0.0, 0.0, special.gammaincc(safe + 1.0, mu))


class _Dirichlet:
    """The Dirichlet distribution, of proportions that sum to one."""

    def __reduce__(self) -> str:
        return "dirichlet"

    def logpdf(self, x: Array, alpha: Array) -> Array:
        """Logarithm of the density of proportions ``x`` of shape (n, ...), with ``alpha`` of shape (n,)."""
        constant = sum(special.gammaln(alpha)) - special.gammaln(sum(alpha))
        alpha = ops.reshape(alpha, (*alpha.shape, *(1,) * (len(x.shape) - 1)))
        return sum(special.xlogy(alpha - 1.0, x), axis=0) - constant

    def pdf(self, x: Array, alpha: Array) -> Array:
        """The density."""
        return ops.exp(self.logpdf(x, alpha))


class _MultivariateNormal:
    """The normal distribution of vectors of ``d`` numbers; ``cov`` (d, d) is positive definite."""

    def __reduce__(self) -> str:
        return "multivariate_normal"

    def logpdf(self, x: Array, mean: Array, cov: Array) -> Array:
        """Logarithm of the density of vectors ``x`` of shape (..., d)."""
        apart = ops.expand_dims(x - mean, axis=-1)
        factor = linalg.cholesky(cov)
        white = linalg.solve_triangular(ops.broadcast_to(factor, (*apart.shape[:-2], *cov.shape)), apart, lower=True)
        return -0.5 * sum(white * white, axis=(-2, -1)) - self._half_logdet(factor) - 0.5 * cov.shape[-1] * _LOG_2_PI

    def pdf(self, x: Array, mean: Array, cov: Array) -> Array:
        """The density."""
        return ops.exp(self.logpdf(x, mean, cov))

    def entropy(self, mean: Array = None, cov: Array = 1.0) -> Array:
        """The differential entropy, in nats."""
        if not is_array(cov):
            return 0.5 * (1.0 + _LOG_2_PI) + 0.5 * ops.log(cov)
        return self._half_logdet(linalg.cholesky(cov)) + 0.5 * cov.shape[-1] * (1.0 + _LOG_2_PI)

    def _half_logdet(self, factor: Any) -> Any:
        return sum(ops.log(linalg.diagonal(factor)), axis=-1)


poisson, dirichlet, multivariate_normal = _Poisson(), _Dirichlet(), _MultivariateNormal()
