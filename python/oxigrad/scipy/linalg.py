"""Linear algebra with SciPy's arguments and results, where the functions of NumPy's and the standard's names differ."""

from typing import Any

import numpy as np

from oxigrad._core import plain
from oxigrad._typing import Array, Results
from oxigrad.ops.core.array_like import array, values
from oxigrad.ops.core.standard import tril, triu
from oxigrad.ops.linalg import numpy_keywords
from oxigrad.ops.linalg.numpy_keywords import from_triangle
from oxigrad.ops.scipy_signatures import scipy_signature
from oxigrad.xp import concat, linalg, matrix_transpose, zeros

__all__ = [
    "cholesky",
    "det",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "norm",
    "pinv",
    "qr",
    "solve",
    "svd",
    "svdvals",
]

_GENERAL = {None, "gen", "general", "banded", "tridiagonal"}
_HERMITIAN = {"her", "hermitian", "pos", "positive definite"}
_SYMMETRIC = {"sym", "symmetric"}
_TRIANGULAR = {"lower triangular": tril, "upper triangular": triu, "diagonal": lambda a: tril(triu(a))}


def _whole(name: str, a: Array, lower: bool) -> Array:
    return from_triangle(name, a, "L" if lower else "U")


def _assumed(name: str, a: Array, assume_a: str | None, lower: bool) -> Array:
    """The matrix of which SciPy reads the part that ``assume_a`` names."""
    a = array(a)
    if assume_a in _GENERAL:
        return a
    if assume_a in _TRIANGULAR:
        return _TRIANGULAR[assume_a](a)
    if assume_a in _HERMITIAN or (assume_a in _SYMMETRIC and np.isrealobj(values(a))):
        return _whole(name, a, lower)
    expected = sorted({*_TRIANGULAR, *_HERMITIAN, *_SYMMETRIC, *map(str, _GENERAL)})
    raise NotImplementedError(f"{name}: assume_a is {assume_a!r}: expected one of {', '.join(expected)}")


@scipy_signature("a, lower=False, overwrite_a=False, check_finite=True")
def cholesky(a: Array, /, lower: bool) -> Array:
    """The upper factor, or the lower one, of a positive definite matrix, of which it reads that triangle."""
    return linalg.cholesky(_whole("cholesky", a, lower), upper=not lower)


@scipy_signature("a, overwrite_a=False, check_finite=True")
def det(a: Array, /) -> Array:
    """The determinant."""
    return linalg.det(a)


@scipy_signature(
    "a, b=None, left=False, right=True, overwrite_a=False, overwrite_b=False, check_finite=True, "
    "homogeneous_eigvals=False"
)
def eig(a: Array, b: Array, /, right: bool) -> Any:
    """Eigenvalues, and eigenvectors if ``right``."""
    a = a if b is None else linalg.solve(b, a)
    return linalg.eig(a) if right else linalg.eigvals(a)


@scipy_signature("a, b=None, overwrite_a=False, check_finite=True, homogeneous_eigvals=False")
def eigvals(a: Array, b: Array, /) -> Array:
    """Eigenvalues."""
    return linalg.eigvals(a if b is None else linalg.solve(b, a))


_EIGH = "overwrite_a=False, overwrite_b=False, type=1, check_finite=True, subset_by_index=None, subset_by_value=None"


@scipy_signature(f"a, b=None, *, lower=True, eigvals_only=False, {_EIGH}, driver=None", ignored="driver")
def eigh(a: Array, b: Array, /, lower: bool, eigvals_only: bool) -> Any:
    """Eigenvalues and eigenvectors of a Hermitian matrix, or of the generalized problem, of one triangle each."""
    a, b = _whole("eigh", a, lower), b if b is None else _whole("eigh", b, lower)
    return linalg.eigvalsh(a, b=b) if eigvals_only else linalg.eigh(a, b=b)


@scipy_signature(f"a, b=None, *, lower=True, {_EIGH}, driver=None", ignored="driver")
def eigvalsh(a: Array, b: Array, /, lower: bool) -> Array:
    """The eigenvalues of `eigh`."""
    return eigh(a, b, lower=lower, eigvals_only=True)


@scipy_signature("a, overwrite_a=False, check_finite=True, *, assume_a=None, lower=False")
def inv(a: Array, /, assume_a: str | None, lower: bool) -> Array:
    """The inverse."""
    return linalg.inv(_assumed("inv", a, assume_a, lower))


@scipy_signature(
    "a, b, cond=None, overwrite_a=False, overwrite_b=False, check_finite=True, lapack_driver=None",
    ignored="lapack_driver",
)
def lstsq(a: Array, b: Array, /, cond: float | None) -> tuple[Array, Array, Array, Array]:
    """The least-squares solution, sums of squared residuals, the rank, and singular values."""
    a, b = array(a), array(b)
    cond = float(np.finfo(values(a).dtype).eps) if cond is None else cond
    solution, residuals, rank, singular = numpy_keywords.lstsq(a, b, cond)
    return solution, residuals[0] if len(b.shape) == 1 and residuals.shape[0] else residuals, rank, singular


@scipy_signature("a, ord=None, axis=None, keepdims=False, check_finite=True")
def norm(a: Any, /, ord: Any, axis: Any, keepdims: bool) -> Array:
    """The norm of a vector or a matrix."""
    return linalg.norm(a, ord, axis, keepdims)


@scipy_signature("a, *, atol=None, rtol=None, return_rank=False, check_finite=True")
def pinv(a: Array, /, atol: float | None, rtol: float | None, return_rank: bool) -> Results:
    """The pseudoinverse, without singular values up to ``atol + rtol * s.max()``; and the rank, if asked for."""
    a = array(a)
    singular = np.linalg.svd(values(a), compute_uv=False)
    default = max(a.shape) * float(np.finfo(singular.dtype).eps) if atol is None else 0.0
    largest = float(singular.max(initial=0.0))
    cutoff = (atol or 0.0) + (default if rtol is None else rtol) * largest
    inverse = linalg.pinv(a, rtol=cutoff / largest if largest else 0.0)
    return (inverse, int(np.sum(singular > cutoff))) if return_rank else inverse


@scipy_signature('a, overwrite_a=False, lwork=None, mode="full", pivoting=False, check_finite=True', ignored="lwork")
def qr(a: Array, /, mode: str) -> Results:
    """The factors q and r, of full size or economic; a tuple of r alone with the mode "r"."""
    if mode not in ("full", "economic", "r"):
        raise NotImplementedError(f"qr: mode is {mode!r}: expected 'full', 'economic' or 'r'")
    if mode != "r":
        return linalg.qr(a, mode="complete" if mode == "full" else "reduced")
    a = array(a)
    r = linalg.qr(a).R
    missing = a.shape[0] - r.shape[0]
    return (concat([r, zeros((missing, r.shape[1]), dtype=plain(r).dtype)]) if missing else r,)


@scipy_signature(
    "a, b, lower=False, overwrite_a=False, overwrite_b=False, check_finite=True, assume_a=None, transposed=False"
)
def solve(a: Array, b: Array, /, lower: bool, assume_a: str | None, transposed: bool) -> Array:
    """The solution ``x`` of ``a @ x = b``, or with the transpose of ``a``."""
    a = _assumed("solve", a, assume_a, lower)
    return linalg.solve(matrix_transpose(a) if transposed else a, b)


@scipy_signature(
    'a, full_matrices=True, compute_uv=True, overwrite_a=False, check_finite=True, lapack_driver="gesdd"',
    ignored="lapack_driver",
)
def svd(a: Array, /, full_matrices: bool, compute_uv: bool) -> Results:
    """The singular value decomposition, or the singular values alone without ``compute_uv``."""
    return linalg.svd(a, full_matrices=full_matrices) if compute_uv else linalg.svdvals(a)


@scipy_signature("a, overwrite_a=False, check_finite=True")
def svdvals(a: Array, /) -> Array:
    """The singular values."""
    return linalg.svdvals(a)
