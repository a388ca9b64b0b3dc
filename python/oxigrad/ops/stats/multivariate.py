"""The distributions of vectors, named as in SciPy."""

import math
from typing import Any

from oxigrad._core import plain
from oxigrad._typing import Array
from oxigrad.ops.backends import is_array, namespace
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.stats.distribution import LOG_2_PI, of_array_likes
from oxigrad.xp import linalg, special, sum

__all__ = ["dirichlet", "multivariate_normal"]


class _Dirichlet:
    """The Dirichlet distribution, of proportions that sum to one."""

    # Distributions are pickled by name, as members of the public module.
    __module__ = "oxigrad.ops.stats"

    def __reduce__(self) -> str:
        return "dirichlet"

    def logpdf(self, x: Array, alpha: Array) -> Array:
        """Logarithm of the density of proportions ``x`` of shape (n, ...), with ``alpha`` of shape (n,)."""
        x, alpha = of_array_likes(x, alpha)
        constant = sum(special.gammaln(alpha)) - special.gammaln(sum(alpha))
        alpha = ops.reshape(alpha, (*alpha.shape, *(1,) * (len(x.shape) - 1)))
        return sum(special.xlogy(alpha - 1.0, x), axis=0) - constant

    def pdf(self, x: Array, alpha: Array) -> Array:
        """The density."""
        return ops.exp(self.logpdf(x, alpha))


class _MultivariateNormal:
    """The normal distribution of vectors of ``d`` numbers.

    ``mean`` is a vector, zero by default; ``cov`` a positive definite matrix (d, d), the variances (d,), or one
    variance for all. With ``allow_singular``, ``cov`` is positive semi-definite; the density is the density on its
    range, and zero outside.
    """

    # Distributions are pickled by name, as members of the public module.
    __module__ = "oxigrad.ops.stats"

    def __reduce__(self) -> str:
        return "multivariate_normal"

    def logpdf(self, x: Array, mean: Array | None = None, cov: Array = 1.0, allow_singular: bool = False) -> Array:
        """Logarithm of the density of vectors ``x`` of shape (..., d)."""
        x, mean, cov = of_array_likes(x, mean, cov)
        apart = ops.expand_dims(x if mean is None else ops.subtract(x, mean), axis=-1)
        if len(getattr(cov, "shape", ())) < 2:
            cov = cov * ops.eye_like(apart * ops.matrix_transpose(apart))
        if allow_singular:
            return self._on_range(apart, cov)
        factor = linalg.cholesky(cov)
        white = linalg.solve_triangular(
            ops.broadcast_to(factor, (*apart.shape[:-2], *cov.shape[-2:])), apart, lower=True
        )
        return -0.5 * sum(white * white, axis=(-2, -1)) - self._half_logdet(factor) - 0.5 * cov.shape[-1] * LOG_2_PI

    def pdf(self, x: Array, mean: Array | None = None, cov: Array = 1.0, allow_singular: bool = False) -> Array:
        """The density."""
        return ops.exp(self.logpdf(x, mean, cov, allow_singular))

    def entropy(self, mean: Array | None = None, cov: Array = 1.0) -> Array:
        """The differential entropy, in nats."""
        (cov,) = of_array_likes(cov)
        if not is_array(plain(cov)):
            return 0.5 * (1.0 + LOG_2_PI) + 0.5 * ops.log(cov)
        return self._half_logdet(linalg.cholesky(cov)) + 0.5 * cov.shape[-1] * (1.0 + LOG_2_PI)

    def _half_logdet(self, factor: Any) -> Any:
        return sum(ops.log(linalg.diagonal(factor)), axis=-1)

    def _on_range(self, apart: Array, cov: Array) -> Array:
        values = linalg.eigvalsh(cov)
        bare = plain(values)
        library = namespace(bare)
        # Eigenvalues below are taken as zero, as by SciPy.
        relative = (1e3 if bare.dtype == library.float32 else 1e6) * float(library.finfo(bare.dtype).eps)
        least = relative * library.max(library.abs(bare), axis=-1, keepdims=True)
        is_kept = bare > least
        inverse = linalg.pinv(cov, rtol=relative)
        white = inverse @ apart
        beside = plain(apart) - plain(cov) @ plain(white)
        is_inside = library.sqrt(library.sum(beside * beside, axis=(-2, -1))) < 1e3 * least[..., 0]
        logdet = sum(ops.log(ops.where(is_kept, values, 1.0)), axis=-1)
        rank = library.sum(library.astype(is_kept, bare.dtype), axis=-1)
        log_density = -0.5 * (sum(apart * white, axis=(-2, -1)) + logdet + rank * LOG_2_PI)
        return ops.where(is_inside, log_density, -math.inf)


dirichlet: _Dirichlet = _Dirichlet()
multivariate_normal: _MultivariateNormal = _MultivariateNormal()
