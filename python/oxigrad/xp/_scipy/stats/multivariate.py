"""The distributions of vectors, named as in SciPy."""

import math

from oxigrad import ShapeError
from oxigrad import xp as ops
from oxigrad._core import plain
from oxigrad._typing import Array
from oxigrad.ops.backends import namespace
from oxigrad.ops.core.primitives import eye_like
from oxigrad.xp import linalg, special, sum
from oxigrad.xp._scipy.stats.distribution import LOG_2_PI, Distribution, of_array_likes

__all__ = ["dirichlet", "multivariate_normal"]


class _Dirichlet(Distribution):
    """The Dirichlet distribution, of proportions that sum to one."""

    name: str = "dirichlet"

    # Distributions are pickled by name, as members of the public module.
    __module__ = "oxigrad.xp.stats"

    def __reduce__(self) -> str:
        return "dirichlet"

    def _parameter_names(self) -> tuple[list[str], int]:
        return ["alpha"], 1

    def logpdf(self, x: Array, alpha: Array) -> Array:
        """Logarithm of the density of proportions ``x`` of shape (n, ...), with ``alpha`` of shape (n,).

        The last proportion may be left out: it is one minus the others. The sum of the proportions is not checked.
        Raises `ShapeError` for another number of proportions.
        """
        x, alpha = of_array_likes(x, alpha)
        count, (size,) = x.shape[0], alpha.shape
        if count not in (size, size - 1):
            raise ShapeError(f"dirichlet: found {count} proportions, expected {size} as in alpha, or {size - 1}")
        if count < size:
            x = ops.concat([x, 1.0 - sum(x, axis=0, keepdims=True)])
        constant = sum(special.gammaln(alpha)) - special.gammaln(sum(alpha))
        alpha = ops.reshape(alpha, (*alpha.shape, *(1,) * (len(x.shape) - 1)))
        return sum(special.xlogy(alpha - 1.0, x), axis=0) - constant

    def pdf(self, x: Array, alpha: Array) -> Array:
        """The density."""
        return ops.exp(self.logpdf(x, alpha))


class _MultivariateNormal(Distribution):
    """The normal distribution of vectors of ``d`` numbers.

    ``mean`` is a vector, zero by default; ``cov`` a positive definite matrix (d, d), the variances (d,), or one
    variance for all. ``mean`` and ``cov`` state ``d``, which is 1 if both are numbers. With ``allow_singular``, ``cov``
    is positive semi-definite; the density is the density on its range, and zero outside.
    """

    name: str = "multivariate_normal"

    # Distributions are pickled by name, as members of the public module.
    __module__ = "oxigrad.xp.stats"

    def __reduce__(self) -> str:
        return "multivariate_normal"

    def _parameter_names(self) -> tuple[list[str], int]:
        return ["mean", "cov", "allow_singular"], 0

    def logpdf(self, x: Array, mean: Array | None = None, cov: Array = 1.0, allow_singular: bool = False) -> Array:
        """Logarithm of the density of vectors ``x`` of shape (..., d), or (...) for a single ``x`` or if ``d`` is 1.

        Raises `ShapeError` for vectors of another size.
        """
        x, mean, cov = of_array_likes(x, mean, cov)
        x = _vectors(x, _size(mean, cov))
        apart = ops.expand_dims(x if mean is None else ops.subtract(x, mean), axis=-1)
        if len(_shape(cov)) < 2:
            cov = cov * eye_like(apart * ops.matrix_transpose(apart))
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
        mean, cov = of_array_likes(mean, cov)
        size, axes = _size(mean, cov), len(_shape(cov))
        if axes == 2:
            half_logdet = self._half_logdet(linalg.cholesky(cov))
        else:
            half_logdet = 0.5 * (sum(ops.log(cov)) if axes else size * ops.log(cov))
        return half_logdet + 0.5 * size * (1.0 + LOG_2_PI)

    def _half_logdet(self, factor: Array) -> Array:
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


def _shape(x: Array) -> tuple[int, ...]:
    return tuple(getattr(x, "shape", ()))


def _size(mean: Array, cov: Array) -> int:
    """The number of elements of a vector, as the mean and the covariance state it."""
    sizes = {shape[-1] for shape in (_shape(mean), _shape(cov)) if shape}
    if len(sizes) > 1:
        raise ShapeError(
            f"multivariate_normal: found mean of shape {_shape(mean)} and cov of shape {_shape(cov)}, expected (d,), "
            "and (d, d), (d,) or a number"
        )
    return sizes.pop() if sizes else 1


def _vectors(x: Array, size: int) -> Array:
    """Points as vectors of this size. Numbers are vectors of one element, and repeat in longer ones, as in SciPy."""
    shape = _shape(x)
    if not shape or (len(shape) == 1 and size == 1):
        shape = (*shape, 1)
    if shape[-1] not in (1, size):
        raise ShapeError(f"multivariate_normal: found x of shape {shape}, expected (..., {size}), as mean and cov have")
    return ops.broadcast_to(ops.reshape(x, shape), (*shape[:-1], size))


dirichlet: _Dirichlet = _Dirichlet()
multivariate_normal: _MultivariateNormal = _MultivariateNormal()
