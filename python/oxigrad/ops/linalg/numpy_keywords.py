"""Functions of ``numpy.linalg`` beyond the standard, and standard functions with NumPy's keywords."""

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from oxigrad._core import ShapeError, Variable, plain
from oxigrad._typing import Array
from oxigrad.ops.backends import beneath, dtype_of, is_array, is_complex, namespace
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core import standard
from oxigrad.ops.core.array_like import NO_VALUE, array, values
from oxigrad.ops.core.in_place import of_library
from oxigrad.ops.core.shapes import MatrixShapeError, check_shapes, position, shaped
from oxigrad.ops.linalg import standard as linalg

# Functions that the standard does not have, which `oxigrad.xp.linalg` has too.
__all__ = ["cond", "lstsq", "multi_dot", "tensorinv", "tensorsolve"]


@shaped
def cond(x: Array, p: Any = None) -> Array:
    """Condition number: of the singular values, or ``norm(x, p) * norm(inv(x), p)``; infinite for a singular matrix."""
    x = array(x)
    if 0 in x.shape[-2:]:
        raise MatrixShapeError(f"cond: found the shape {tuple(x.shape)}, expected matrices that are not empty")
    infinite: Array = False
    if p in (None, 2, -2):
        values = linalg.svdvals(x)
        number = values[..., -1] / values[..., 0] if p == -2 else values[..., 0] / values[..., -1]
    else:
        infinite = linalg.slogdet(plain(x)).sign == 0.0
        regular = ops.where(infinite[..., None, None], ops.eye_like(x), x)
        number = linalg.matrix_norm(x, ord=p) * linalg.matrix_norm(linalg.inv(regular), ord=p)
    has_nan = ops.isnan(ops.sum(ops.abs(plain(x)), axis=(-2, -1)))
    return ops.where(
        ops.logical_and(ops.logical_or(infinite, ops.isnan(number)), ops.logical_not(has_nan)), math.inf, number
    )


@shaped
def lstsq(a: Array, b: Array, rcond: float | None = None) -> tuple[Array, Array, Array, Array]:
    """The least-squares solution, sums of squared residuals, rank (a plain value) and singular values."""
    a, b = array(a), array(b)
    rows, columns = a.shape
    if rcond is None or rcond == -1:
        rcond = float(namespace(a).finfo(dtype_of(a)).eps) * (max(rows, columns) if rcond is None else 1)
    solution = ops.matmul(linalg.pinv(a, rtol=rcond), b)
    singular = linalg.svdvals(a)
    values = plain(singular)
    library = namespace(values)
    rank = library.sum(values > values[0] * rcond, dtype=library.int32) if values.shape[0] else np.int32(0)
    rest = b - ops.matmul(a, solution)
    squares = ops.real(rest * ops.conj(rest)) if is_complex(rest) else ops.square(rest)
    sums = ops.sum(ops.reshape(squares, (rows, math.prod(b.shape[1:]))), axis=0)
    return solution, sums if int(rank) == columns < rows else sums[:0], rank, singular


@shaped
def multi_dot(arrays: Sequence[Array], *, out: None = None) -> Array:
    """Product of several matrices, in the order that takes the fewest multiplications; the ends may be vectors."""
    matrices = [array(x) for x in arrays]
    if len(matrices) < 2:
        raise ValueError(f"multi_dot: found {len(matrices)} arrays, expected at least two")
    is_row, is_column = matrices[0].ndim == 1, matrices[-1].ndim == 1
    matrices[0] = ops.expand_dims(matrices[0], 0) if is_row else matrices[0]
    matrices[-1] = ops.expand_dims(matrices[-1], 1) if is_column else matrices[-1]
    for matrix in matrices:
        if matrix.ndim != 2:
            raise ShapeError(f"multi_dot: found an array of {matrix.ndim} dimensions, expected 2, or 1 at an end")
    sizes = [matrices[0].shape[0], *(matrix.shape[1] for matrix in matrices)]

    @functools.cache
    def best(first: int, last: int) -> tuple[int, int]:
        """The fewest multiplications of the matrices from first to last, and where the last product parts them."""
        parted = [
            (best(first, cut)[0] + best(cut + 1, last)[0] + sizes[first] * sizes[cut + 1] * sizes[last + 1], cut)
            for cut in range(first, last)
        ]
        return min(parted, default=(0, first))

    def product(first: int, last: int) -> Array:
        cut = best(first, last)[1]
        return matrices[first] if first == last else ops.matmul(product(first, cut), product(cut + 1, last))

    result = product(0, len(matrices) - 1)
    result = result[0] if is_row else result
    return result[..., 0] if is_column else result


@shaped
def tensorinv(a: Array, ind: int = 2) -> Array:
    """The inverse of ``a`` as a linear map; the first ``ind`` dimensions of ``a`` index the outputs of the map."""
    a = array(a)
    if ind <= 0:
        raise ValueError(f"tensorinv: ind is {ind}: expected a positive number")
    before, after = tuple(a.shape[:ind]), tuple(a.shape[ind:])
    matrix = ops.reshape(a, (math.prod(before), math.prod(after)))
    return ops.reshape(linalg.inv(matrix), after + before)


@shaped
def tensorsolve(a: Array, b: Array, axes: Sequence[int] | None = None) -> Array:
    """The tensor ``x`` of ``tensordot(a, x) = b``; ``axes`` of ``a`` are moved to its end first."""
    a, b = array(a), array(b)
    if axes:
        last = [position(axis, a.ndim) for axis in axes]
        a = ops.permute_dims(a, (*(axis for axis in range(a.ndim) if axis not in last), *last))
    shape = tuple(a.shape[b.ndim :])
    matrix = ops.reshape(a, (math.prod(a.shape[: b.ndim]), math.prod(shape)))
    return ops.reshape(linalg.solve(matrix, ops.ravel(b)), shape)


# --- functions of the standard with NumPy's keywords ------------------------------------------------------------------


def from_triangle(name: str, a: Array, UPLO: str) -> Array:
    """The Hermitian matrix with the lower or upper triangle of ``a``, for the function ``name``."""
    if not isinstance(UPLO, str) or UPLO.upper() not in ("L", "U"):
        raise ValueError(f"UPLO is {UPLO!r}: expected 'L' or 'U'")
    a = array(a)
    check_shapes(name, [tuple(a.shape)])
    strict = standard.tril(a, k=-1) if UPLO.upper() == "L" else standard.triu(a, k=1)
    diagonal = a - standard.tril(a, k=-1) - standard.triu(a, k=1)
    return strict + ops.conj(ops.matrix_transpose(strict)) + (ops.real(diagonal) if is_complex(a) else diagonal)


def _is_matrix(UPLO: Any) -> bool:
    return isinstance(UPLO, (Variable, list, tuple)) or is_array(plain(UPLO))


@shaped
def eigh(a: Array, UPLO: str = "L", *, b: Array = None) -> linalg.EighResult:
    """Eigenvalues and eigenvectors of a symmetric matrix, from its lower (or upper) triangle.

    A matrix ``b``, also in the place of ``UPLO``, states the generalized problem, as in `scipy.linalg.eigh`.
    """
    if b is not None or _is_matrix(UPLO):
        return linalg.eigh(a, b=UPLO if b is None else b)
    whole = from_triangle("eigh", a, UPLO)
    if UPLO.upper() == "L":
        return linalg.eigh(whole)
    eigenvalues, vectors = linalg.eigh(whole)
    return linalg.EighResult(eigenvalues, vectors * _phases(np.linalg.eigh(values(a), "U").eigenvectors, vectors))


def _phases(expected: np.ndarray, vectors: Array) -> Array:
    """The factors that turn the columns of ``vectors`` into LAPACK's eigenvectors.

    LAPACK's signs depend on the triangle that it reads.
    """
    products = np.sum(expected * np.conj(values(vectors)), axis=-2, keepdims=True)
    sizes = np.abs(products)
    return of_library(np.where(sizes > 0.0, products, 1.0) / np.where(sizes > 0.0, sizes, 1.0), vectors)


@shaped
def eig(a: Array) -> linalg.EigResult:
    """Eigenvalues and eigenvectors: real where all eigenvalues of a real matrix are, as NumPy has it."""
    eigenvalues, vectors = linalg.eig(array(a))
    are_real = _are_real(a, eigenvalues)
    return (
        linalg.EigResult(ops.real(eigenvalues), ops.real(vectors))
        if are_real
        else linalg.EigResult(eigenvalues, vectors)
    )


@shaped
def eigvals(a: Array) -> Array:
    """Eigenvalues: real where all of a real matrix are, as NumPy has it."""
    eigenvalues = linalg.eigvals(array(a))
    return ops.real(eigenvalues) if _are_real(a, eigenvalues) else eigenvalues


def _are_real(a: Array, eigenvalues: Array) -> bool:
    # A recording checks this, and `vmap` calls the function for each example.
    is_real = isinstance(beneath(a), np.ndarray) and not is_complex(a)
    return is_real and not bool(np.any(np.imag(plain(eigenvalues)) != 0.0))


@shaped
def eigvalsh(a: Array, UPLO: str = "L", *, b: Array = None) -> Array:
    """Eigenvalues of a symmetric matrix, from its lower (or upper) triangle; of the generalized problem as `eigh`."""
    if b is not None or _is_matrix(UPLO):
        return linalg.eigvalsh(a, b=UPLO if b is None else b)
    return linalg.eigvalsh(from_triangle("eigvalsh", a, UPLO))


@shaped
def pinv(a: Array, rcond: Array = None, hermitian: bool = False, *, rtol: Array = NO_VALUE) -> Array:
    """Pseudoinverse."""
    if hermitian and a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"pinv: found shape {tuple(a.shape)}, expected square matrices, since hermitian=True")
    chosen = rcond if rtol is NO_VALUE or rtol is None else rtol
    return linalg.pinv(from_triangle("pinv", a, "L") if hermitian else array(a), rtol=chosen)


@shaped
def matrix_rank(A: Array, tol: Array = None, hermitian: bool = False, *, rtol: Array = None) -> Array:
    """Number of singular values above a tolerance: a plain value."""
    return np.linalg.matrix_rank(values(A), tol, hermitian, rtol=rtol)


@shaped
def svd(
    a: Array, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> linalg.SVDResult | Array:
    """Singular value decomposition; the singular values alone without ``compute_uv``."""
    a = array(a)
    if hermitian and compute_uv:
        raise ValueError("svd: hermitian=True chooses other signs of the vectors: expected False, or compute_uv=False")
    if compute_uv:
        return linalg.svd(a, full_matrices=full_matrices)
    return linalg.svdvals(from_triangle("svd", a, "L") if hermitian else a)
