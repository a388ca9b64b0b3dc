"""The distributions of vectors, named as in SciPy."""

from typing import Any

from oxigrad._typing import Array
from oxigrad.ops import linalg, special
from oxigrad.ops import primitives as ops
from oxigrad.ops.backends import is_array
from oxigrad.ops.distributions import LOG_2_PI
from oxigrad.ops.primitives import sum


class _Dirichlet:
    """The Dirichlet distribution, of proportions that sum to one."""

    # Distributions are pickled by name, as members of the public module.
    __module__ = "oxigrad.ops.stats"

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

    # Distributions are pickled by name, as members of the public module.
    __module__ = "oxigrad.ops.stats"

    def __reduce__(self) -> str:
        return "multivariate_normal"

    def logpdf(self, x: Array, mean: Array, cov: Array) -> Array:
        """Logarithm of the density of vectors ``x`` of shape (..., d)."""
        apart = ops.expand_dims(x - mean, axis=-1)
        factor = linalg.cholesky(cov)
        white = linalg.solve_triangular(ops.broadcast_to(factor, (*apart.shape[:-2], *cov.shape)), apart, lower=True)
        return -0.5 * sum(white * white, axis=(-2, -1)) - self._half_logdet(factor) - 0.5 * cov.shape[-1] * LOG_2_PI

    def pdf(self, x: Array, mean: Array, cov: Array) -> Array:
        """The density."""
        return ops.exp(self.logpdf(x, mean, cov))

    def entropy(self, mean: Array = None, cov: Array = 1.0) -> Array:
        """The differential entropy, in nats."""
        if not is_array(cov):
            return 0.5 * (1.0 + LOG_2_PI) + 0.5 * ops.log(cov)
        return self._half_logdet(linalg.cholesky(cov)) + 0.5 * cov.shape[-1] * (1.0 + LOG_2_PI)

    def _half_logdet(self, factor: Any) -> Any:
        return sum(ops.log(linalg.diagonal(factor)), axis=-1)


dirichlet, multivariate_normal = _Dirichlet(), _MultivariateNormal()
