"""Linear algebra of the standard, and further functions of its decompositions. All functions accept stacks of matrices.

Gradients with respect to matrices that must be Hermitian (`cholesky`, `eigh`, `eigvalsh`) are Hermitian, as if both
triangles were read. Vectors are unique only up to a sign, or a phase if complex: differentiate functions that do not
depend on it.

Eigenvalues and singular values count as equal if they differ by at most ``8 n eps`` times the largest of the matrix.
Their vectors are unique only up to a rotation. The gradient of a loss that does not depend on the rotation, such as a
loss of ``v @ v.T``, is exact. The gradient of any other loss is NaN. No derivative exists for a loss that reads both
the vectors and the values of one call, to second order, also of functions of equal values, and in forward mode along a
direction that mixes the vectors. The first two raise `DerivativeError` for one matrix; for stacks, under ``vmap`` and
in forward mode they are NaN, with a `RuntimeWarning`; in recordings, compiled code and on devices NaN.

A sum of a loss of the vectors and one of the values calls the decomposition once for each. A function of the matrix,
such as ``(v * exp(w)) @ v.T``, is no such sum, and wrong by two calls: `expm`, `logm`, `sqrtm` and their kin are exact.
"""

import functools
import math
import operator
from typing import Any, NamedTuple

from oxigrad._core import BatchLevel, DerivativeError, ShapeError, Variable, plain, record
from oxigrad._typing import Array, Axis, Dtype, F, Function
from oxigrad.ops.backends import (
    beneath,
    device_of,
    has_variable,
    holds_variable,
    is_of_vmap,
    namespace,
    size_of,
)
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core.composite import accepts_array_likes, composite
from oxigrad.ops.core.primitives import matmul, matrix_transpose
from oxigrad.ops.core.products import cross, kron, outer, tensordot, vecdot
from oxigrad.ops.core.products import diagonal as _diagonal
from oxigrad.ops.core.products import trace as _trace
from oxigrad.ops.core.shapes import check_shapes, shaped
from oxigrad.ops.core.standard import moveaxis
from oxigrad.ops.scipy_signatures import scipy_signature

_RECORDED = (Variable, BatchLevel)


def _composite(function: F) -> F:
    return composite(function, "linalg")


__all__ = [
    "EigResult",
    "EighResult",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "kron",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors as columns: the result of `eig`."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """Eigenvalues in ascending order, and eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """A matrix with orthonormal columns, and an upper triangular one."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """Left singular vectors as columns, singular values in descending order, right singular vectors as rows."""

    U: Array
    S: Array
    Vh: Array


class SlogdetResult(NamedTuple):
    """The sign (or phase) of a determinant, and the logarithm of its absolute value."""

    sign: Array
    logabsdet: Array


def _results(name: str, x: Array, count: int, **named: Any) -> list[Array]:
    result = record(name, [x], named)
    return [ops.item(result, which) for which in range(count)]


# --- matrices ---------------------------------------------------------------------------------------------------------


@shaped
def inv(x: Array, /) -> Array:
    """The inverse of each matrix."""
    return record("inv", [x])


@shaped
def solve(x1: Array, x2: Array, /) -> Array:
    """The solution ``y`` of ``x1 @ y = x2``; ``x2`` is a vector if it has one dimension, else a stack of matrices.

    >>> import numpy as np
    >>> solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 2.0]))
    array([1. , 0.5])
    """
    return record("solve", [x1, x2])


@shaped
def det(x: Array, /) -> Array:
    """The determinant. Its derivatives of all orders are exact for singular matrices too."""
    return record("det", [x])


@shaped
def slogdet(x: Array, /) -> SlogdetResult:
    """Sign (or phase) and logarithm of the absolute value of the determinant, where `det` may overflow."""
    return SlogdetResult(*_results("slogdet", x, 2))


@shaped
def cholesky(x: Array, /, *, upper: bool = False) -> Array:
    """The triangular factor of a Hermitian positive definite matrix: ``x = y @ y^H``, or ``y^H @ y`` where ``upper``.

    Reads only the lower triangle of the matrix, or the upper one with ``upper``.
    """
    return adjoint(record("cholesky", [adjoint(x)])) if upper else record("cholesky", [x])


def adjoint(x: Array) -> Array:
    """The conjugate transpose of each matrix."""
    return matrix_transpose(ops.conjugate(x))


@accepts_array_likes
def qr(x: Array, /, *, mode: str = "reduced") -> QRResult | Array:
    """The QR decomposition ``x = q @ r``; the first columns of ``x`` must be linearly independent.

    ``mode="complete"`` has a derivative only for square and wide matrices, for which ``q`` is unique. Raises
    `DerivativeError` for tall matrices.
    """
    if mode == "r":  # NumPy's
        return qr(x).R
    if mode not in ("reduced", "complete"):
        raise ValueError(f"mode is {mode!r}: expected 'reduced' or 'complete', or 'r' for R alone")
    if not has_variable([x]):
        return QRResult(*namespace(x).linalg.qr(x, mode=mode))
    return recorded_qr(x, mode=mode)


def recorded_qr(x: Array, *, mode: str = "reduced") -> QRResult:
    """`qr` by the op, which has a derivative."""
    *_, rows, columns = x.shape
    if mode == "complete" and rows > columns:
        raise DerivativeError(
            f"qr: shape {tuple(x.shape)}, mode 'complete': columns {columns} to {rows - 1} of Q are not unique, "
            "and have no derivative: use mode 'reduced'"
        )
    if rows >= columns:
        return QRResult(*_results("qr", x, 2))
    q, r = _results("qr", ops.index(x, (..., slice(rows))), 2)
    return QRResult(q, ops.concat([r, adjoint(q) @ ops.index(x, (..., slice(rows, None)))], axis=-1))


@accepts_array_likes
def pinv(x: Array, /, *, rtol: Array | None = None) -> Array:
    """The pseudo-inverse; its derivative is along changes that keep the rank (Golub and Pereyra 1973, theorem 4.3).

    Singular values at most ``rtol`` times the largest count as zero. If some of them are larger than rounding errors,
    the singular value decomposition is differentiated, since changes of the matrix rotate the vectors that are left
    out.
    """
    rtol = plain(rtol)
    if rtol is None or not holds_variable(x):
        return record("pinv", [x], {"rtol": rtol})
    singular = svdvals(plain(x))
    largest = singular[..., :1]
    below = singular <= largest * (rtol[..., None] if getattr(rtol, "shape", ()) else rtol)
    noise = largest * max(x.shape[-2:]) * namespace(singular).finfo(singular.dtype).eps
    # One choice for all examples of a batch, as for all matrices of a stack.
    are_cut = beneath(ops.logical_and(below, singular > noise))
    if not bool(namespace(are_cut).any(are_cut)):
        return record("pinv", [x], {"rtol": rtol})
    u = svd(x, full_matrices=False).U
    basis = ops.where(below[..., None, :], 0.0, u)
    return record("pinv", [basis @ (adjoint(basis) @ x)], {"rtol": rtol})


@_composite
def matrix_power(x: Array, n: int, /) -> Array:
    """The ``n``-th power of each matrix; a power of the inverse where ``n`` is negative."""
    check_shapes("matrix_power", [tuple(x.shape)])
    n = operator.index(n)
    if n < 0:
        return matrix_power(inv(x), -n)
    if n == 0:
        return ops.zeros_like(x) + ops.eye_like(x)
    half = matrix_power(x, n // 2) if n > 1 else None
    return x if half is None else half @ half @ x if n % 2 else half @ half


@accepts_array_likes
def matrix_rank(x: Array, /, *, rtol: Array | None = None) -> Array:
    """The number of singular values above ``rtol`` times the largest: a plain array of integers."""
    bare = plain(x)
    if is_of_vmap(bare):
        return type(bare).of(bare.level, matrix_rank(bare.value, rtol=rtol))
    return namespace(x).linalg.matrix_rank(bare, rtol=rtol)


@scipy_signature("a, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False, check_finite=True")
@accepts_array_likes
def solve_triangular(
    x1: Array, x2: Array, /, *, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False
) -> Array:
    """As `solve`, with a triangular ``x1``, whose other triangle is ignored; it costs as much as `solve`.

    ``trans`` 1 or "T" solves with the transpose, 2 or "C" with the conjugate transpose.
    """
    check_shapes("solve_triangular", [tuple(x1.shape), tuple(x2.shape)])
    eye = ops.eye_like(x1)
    library = namespace(x1)
    ones = library.ones(tuple(x1.shape[-2:]), dtype=eye.dtype, device=device_of(x1))
    triangle = library.tril(ones) if lower else library.triu(ones)
    x1 = x1 * (triangle - eye) + eye if unit_diagonal else x1 * triangle
    if trans not in (0, "N"):
        if trans not in (1, "T", 2, "C"):
            raise ValueError(f"solve_triangular: trans is {trans!r}: expected 0, 1 or 2, or 'N', 'T' or 'C'")
        x1 = matrix_transpose(x1) if trans in (1, "T") else adjoint(x1)
    return solve(x1, x2)


@accepts_array_likes
# --- decompositions ---------------------------------------------------------------------------------------------------


@accepts_array_likes
def svd(x: Array, /, *, full_matrices: bool = True) -> SVDResult:
    """The singular value decomposition: ``x = (U * S) @ Vh``.

    Pass ``full_matrices=False`` for matrices that are not square. The further vectors have no derivative, and
    `DerivativeError` is raised.
    """
    if full_matrices and not has_variable([x]):
        return SVDResult(*namespace(x).linalg.svd(x, full_matrices=full_matrices))
    return recorded_svd(x, full_matrices=full_matrices)


def recorded_svd(x: Array, *, full_matrices: bool = True) -> SVDResult:
    """`svd` by the op, which has a derivative."""
    if full_matrices and x.shape[-1] != x.shape[-2]:
        raise DerivativeError(
            f"svd: shape {tuple(x.shape)}: the vectors beyond the shorter side are not unique, and have no derivative: "
            "pass full_matrices=False"
        )
    return SVDResult(*_results("svd", x, 3))


@_composite
def svdvals(x: Array, /) -> Array:
    """Singular values, in descending order."""
    return svd(x, full_matrices=False).S


@accepts_array_likes
def eigh(x: Array, /, *, b: Array | None = None) -> EighResult:
    """Eigenvalues, in ascending order, and eigenvectors of a Hermitian matrix: ``x @ v = v * w``.

    With a positive definite matrix ``b``, the generalized problem ``x @ v = b @ v * w``, as in `scipy.linalg.eigh`.
    """
    if b is not None:
        # By the Cholesky factor of b, as LAPACK solves it.
        factor = cholesky(b)
        inner = solve(factor, matrix_transpose(ops.conjugate(solve(factor, x))))
        values, vectors = _results("eigh", inner, 2)
        return EighResult(values, solve(matrix_transpose(ops.conjugate(factor)), vectors))
    return EighResult(*_results("eigh", x, 2))


@functools.partial(composite, extension="linalg", beyond={"b"})
def eigvalsh(x: Array, /, *, b: Array | None = None) -> Array:
    """Eigenvalues of a Hermitian matrix, in ascending order; with ``b``, of the generalized problem as in `eigh`."""
    return eigh(x, b=b).eigenvalues


@shaped
def eig(x: Array, /) -> EigResult:
    """Eigenvalues and eigenvectors, of norm 1, of a diagonalizable matrix: complex, of a real matrix too."""
    return EigResult(*_results("eig", x, 2))


@_composite
def eigvals(x: Array, /) -> Array:
    """Eigenvalues of a diagonalizable matrix: complex, of a real matrix too."""
    return eig(x).eigenvalues


# --- norms ------------------------------------------------------------------------------------------------------------


@_composite
def vector_norm(x: Array, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Array:
    """The ``ord``-norm over ``axis``, by default over all elements; ``ord=0`` has no derivative.

    Its gradient at zero is zero, and its second derivative NaN there; the square of the 2-norm has the right one.
    """
    if ord == 0:
        raise DerivativeError("vector_norm with ord=0 has no derivative: use ox.stop_gradient")
    if ord == math.inf:
        return _largest(x)(ops.abs(x), axis=axis, keepdims=keepdims)
    if ord == -math.inf:
        return ops.min(ops.abs(x), axis=axis, keepdims=keepdims)
    if ord == 1:
        return ops.sum(ops.abs(x), axis=axis, keepdims=keepdims)
    if ord == 2:
        return record("vector_norm", [x], {"axis": axis, "keepdims": keepdims})
    size = ops.abs(x)
    powers = ops.where(plain(x) == 0, 0.0 if ord > 0 else math.inf, ops.where(plain(x) == 0, 1.0, size) ** ord)
    total = ops.sum(powers, axis=axis, keepdims=keepdims)
    return norm_of_powers(x, total, ord, axis, keepdims)


def _largest(x: Array) -> Function:
    """The maximum, or the sum if the array is empty: the norm of an empty array is zero."""
    return ops.max if size_of(x.shape) else ops.sum


def norm_of_powers(x: Array, total: Array, p: float, axis: Axis = None, keepdims: bool = False) -> Array:
    """The ``p``-th root of a total of powers of ``x``; at zero it has the derivatives of the 2-norm."""
    zero = plain(total) == 0
    at_zero = record("vector_norm", [x], {"axis": axis, "keepdims": keepdims}) if isinstance(x, _RECORDED) else 0.0
    return ops.where(zero, at_zero if p > 0 else math.inf, ops.where(zero, 1.0, total) ** (1 / p))


@_composite
def matrix_norm(x: Array, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """A norm of each matrix: ``"fro"``, ``"nuc"``, or 1, 2, inf and their negatives."""
    check_shapes("matrix_norm", [tuple(x.shape)])
    if ord == "fro":
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord in ("nuc", 2, -2):
        values = svdvals(x)
        fold = ops.sum if ord == "nuc" else _largest(x) if ord == 2 else ops.min
        y = fold(values, axis=-1)
    elif abs(ord) in (1, math.inf):
        sums = ops.sum(ops.abs(x), axis=-2 if abs(ord) == 1 else -1)
        y = (_largest(x) if ord > 0 else ops.min)(sums, axis=-1)
    else:
        raise ValueError(f"ord is {ord!r}: expected 'fro', 'nuc', 1, -1, 2, -2, inf or -inf")
    return ops.expand_dims(ops.expand_dims(y, axis=-1), axis=-1) if keepdims else y


@_composite
def norm(x: Array, ord: Any = None, axis: Axis = None, keepdims: bool = False) -> Array:
    """`vector_norm` along one axis, `matrix_norm` along two, as in NumPy; by default the 2-norm of all elements."""
    ndim = len(x.shape)
    if axis is None and ord is not None and ndim not in (1, 2):
        raise ShapeError(f"norm: found x of {ndim} dimensions with ord={ord!r}, expected 1 or 2, or axis")
    if axis is None and ord is not None:
        axis = tuple(range(ndim))
    if not isinstance(axis, tuple) or len(axis) == 1 or ord is None:
        return vector_norm(x, axis=axis, keepdims=keepdims, ord=2 if ord is None else ord)
    y = matrix_norm(moveaxis(x, axis, (-2, -1)), keepdims=keepdims, ord=ord)
    return moveaxis(y, (-2, -1), axis) if keepdims else y


# --- diagonals --------------------------------------------------------------------------------------------------------


def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    """The diagonal of each matrix, as the last axis; ``offset`` counts diagonals above the main one."""
    return _diagonal(x, offset, -2, -1)


def trace(x: Array, /, *, offset: int = 0, dtype: Dtype = None) -> Array:
    """The sum of the diagonal of each matrix."""
    return _trace(x, offset, -2, -1, dtype=dtype)
