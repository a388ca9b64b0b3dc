"""Differentiable linear algebra of the standard: `oxigrad.xp.linalg`. All functions accept stacks of matrices.

Gradients with respect to matrices that must be Hermitian (`cholesky`, `eigh`, `eigvalsh`) are Hermitian, as if both triangles
were read. The vectors of equal eigenvalues or singular values have no derivative, which is NaN; the values have one. Vectors
are unique only up to a sign, or a phase if complex: differentiate functions that do not depend on it.
"""

import builtins
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from oxigrad._core import DerivativeError, ShapeError, plain, record
from oxigrad.ops import matrix_equations
from oxigrad.ops import primitives as ops
from oxigrad.ops.backends import device_of, has_variable, is_array, is_complex, namespace, on_host, size_of, to_host
from oxigrad.ops.composite import accepts_array_likes, composite
from oxigrad.ops.primitives import matmul, matrix_transpose
from oxigrad.ops.products import cross, kron, outer, tensordot, vecdot
from oxigrad.ops.products import diagonal as _diagonal
from oxigrad.ops.products import trace as _trace
from oxigrad.ops.standard import moveaxis

_composite = functools.partial(composite, extension="linalg")

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
    "expm",
    "inv",
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
    "solve_banded",
    "solve_sylvester",
    "solve_triangular",
    "sqrtm",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


def __dir__() -> list[str]:
    return list(__all__)


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors as columns: the result of `eig`."""

    eigenvalues: Any
    eigenvectors: Any


class EighResult(NamedTuple):
    """Eigenvalues in ascending order, and eigenvectors as columns."""

    eigenvalues: Any
    eigenvectors: Any


class QRResult(NamedTuple):
    """A matrix with orthonormal columns, and an upper triangular one."""

    Q: Any
    R: Any


class SVDResult(NamedTuple):
    """Left singular vectors as columns, singular values in descending order, right singular vectors as rows."""

    U: Any
    S: Any
    Vh: Any


class SlogdetResult(NamedTuple):
    """The sign (or phase) of a determinant, and the logarithm of its absolute value."""

    sign: Any
    logabsdet: Any


def _results(name: str, x: Any, count: int, **named: Any) -> list[Any]:
    result = record(name, [x], named)
    return [ops.item(result, which) for which in range(count)]


# --- matrices ----------------------------------------------------------------------------------------------------------


def inv(x: Any, /) -> Any:
    """The inverse of each matrix."""
    return record("inv", [x])


def solve(x1: Any, x2: Any, /) -> Any:
    """The solution ``y`` of ``x1 @ y = x2``; ``x2`` is a vector where it has one dimension, else a stack of matrices.

    >>> import numpy as np
    >>> solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 2.0]))
    array([1. , 0.5])
    """
    return record("solve", [x1, x2])


def det(x: Any, /) -> Any:
    """The determinant. Its gradient is exact for singular matrices too; second derivatives require regular matrices."""
    return record("det", [x])


def slogdet(x: Any, /) -> SlogdetResult:
    """Sign (or phase) and logarithm of the absolute value of the determinant, where `det` may overflow."""
    return SlogdetResult(*_results("slogdet", x, 2))


def cholesky(x: Any, /, *, upper: bool = False) -> Any:
    """The triangular factor of a Hermitian positive definite matrix: ``x = y @ y^H``, or ``y^H @ y`` where ``upper``."""
    lower = record("cholesky", [x])
    return _adjoint(lower) if upper else lower


def _adjoint(x: Any) -> Any:
    return matrix_transpose(ops.conjugate(x))


@accepts_array_likes
def qr(x: Any, /, *, mode: str = "reduced") -> QRResult:
    """The QR decomposition ``x = q @ r``; the first columns of ``x`` must be linearly independent.

    ``mode="complete"`` has a derivative only for square and wide matrices, for which ``q`` is unique. Raises `DerivativeError`
    for tall matrices.
    """
    if mode not in ("reduced", "complete"):
        raise ValueError(f"mode is {mode!r}: expected 'reduced' or 'complete'")
    if not has_variable([x]):
        return QRResult(*namespace(x).linalg.qr(x, mode=mode))
    *_, rows, columns = x.shape
    if mode == "complete" and rows > columns:
        raise DerivativeError(
            f"qr: shape {tuple(x.shape)}, mode 'complete': columns {columns} to {rows - 1} of Q are not unique, "
            "and have no derivative: use mode 'reduced'"
        )
    if rows >= columns:
        return QRResult(*_results("qr", x, 2))
    q, r = _results("qr", ops.index(x, (..., slice(rows))), 2)
    return QRResult(q, ops.concat([r, _adjoint(q) @ ops.index(x, (..., slice(rows, None)))], axis=-1))


def pinv(x: Any, /, *, rtol: Any = None) -> Any:
    """The pseudo-inverse; its derivative is along changes that keep the rank (Golub and Pereyra 1973, theorem 4.3)."""
    return record("pinv", [x], {"rtol": rtol})


@_composite
def matrix_power(x: Any, n: int, /) -> Any:
    """The ``n``-th power of each matrix; a power of the inverse where ``n`` is negative."""
    if n < 0:
        return matrix_power(inv(x), -n)
    if n == 0:
        return ops.zeros_like(x) + ops.eye_like(x)
    half = matrix_power(x, n // 2) if n > 1 else None
    return x if half is None else half @ half @ x if n % 2 else half @ half


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Any:
    """The number of singular values above ``rtol`` times the largest: a plain array of integers."""
    return namespace(x).linalg.matrix_rank(plain(x), rtol=rtol)


@accepts_array_likes
def solve_triangular(x1: Any, x2: Any, /, *, lower: bool = False, unit_diagonal: bool = False) -> Any:
    """As `solve`, with a triangular ``x1``, whose other triangle is ignored. The cost is that of `solve`."""
    eye = ops.eye_like(x1)
    library = namespace(x1)
    ones = library.ones(tuple(x1.shape[-2:]), dtype=eye.dtype, device=device_of(x1))
    triangle = library.tril(ones) if lower else library.triu(ones)
    x1 = x1 * (triangle - eye) + eye if unit_diagonal else x1 * triangle
    return solve(x1, x2)


@accepts_array_likes
def solve_banded(l_and_u: tuple[int, int], ab: Any, b: Any, /) -> Any:
    """The solution ``x`` of a banded system, of shape (n,) or (n, k) as ``b``.

    ``l_and_u`` are the numbers of diagonals below and above the main one; the rows of ``ab`` (l + u + 1, n) are the diagonals,
    from the uppermost down, as in SciPy: ``ab[u + i - j, j]`` is the matrix's element (i, j). Time and memory are linear in
    ``n``; for arrays that the host cannot read (on a GPU, or traced) the dense matrix is formed instead. Raises `ShapeError`
    where the shapes do not agree.

    >>> import numpy as np
    >>> solve_banded((1, 0), np.array([[2.0, 2.0], [1.0, 0.0]]), np.array([2.0, 3.0]))
    array([1., 1.])
    """
    (lower, upper), (rows, size) = l_and_u, ab.shape
    if rows != lower + upper + 1:
        raise ShapeError(f"solve_banded: found ab of {rows} rows, expected {lower + upper + 1}, one for each diagonal")
    if len(b.shape) not in (1, 2) or b.shape[0] != size:
        raise ShapeError(
            f"solve_banded: found b of shape {tuple(b.shape)}, expected ({size},) or ({size}, k), for {size} columns of ab"
        )
    if len(b.shape) == 1:
        return ops.squeeze(_solve_banded(lower, upper, ab, ops.expand_dims(b, axis=-1)), axis=-1)
    return _solve_banded(lower, upper, ab, b)


def _solve_banded(lower: int, upper: int, ab: Any, b: Any) -> Any:
    if not (on_host(plain(ab)) and on_host(plain(b))):
        return solve(_of_band(lower, upper, ab), b)

    def pull(g: Any, x: Any, ab: Any, b: Any) -> tuple[Any, Any]:
        g = _solve_banded(upper, lower, _transposed_band(lower, upper, ab), g)
        rows = [ops.sum(_shifted(g, at - upper) * x, axis=-1) for at in range(lower + upper + 1)]
        return -ops.stack(rows), g

    def push(x: Any, ab: Any, b: Any, d_ab: Any, d_b: Any) -> Any:
        change = None if d_ab is None else -_banded_product(upper, d_ab, x)
        change = d_b if change is None else change if d_b is None else change + d_b
        return _solve_banded(lower, upper, ab, change)

    return _solved_on_host(functools.partial(matrix_equations.solve_banded, lower, upper), (ab, b), pull, push)


def _of_band(lower: int, upper: int, ab: Any) -> Any:
    """The dense matrix whose diagonals are the rows of ``ab``."""
    library, (rows, size) = namespace(ab), ab.shape
    places = library.arange(size, device=device_of(plain(ab)))
    row = library.reshape(places, (-1, 1)) - library.reshape(places, (1, -1)) + upper
    is_inside = (row >= 0) & (row < rows)
    row = library.where(is_inside, row, library.zeros_like(row))
    return ops.where(is_inside, ops.take_along_axis(ab, row, axis=-2), 0.0)


def _shifted(x: Any, by: int) -> Any:
    """``y[j] = x[j + by]`` along the first axis, zero where ``j + by`` is out of range."""
    size = x.shape[0]
    part = ops.index(x, (slice(min(max(by, 0), size), max(min(size + by, size), 0)), ...))
    missing = size - part.shape[0]
    if not missing:
        return x
    zeros = namespace(x).zeros((missing, *x.shape[1:]), dtype=x.dtype, device=device_of(plain(x)))
    return ops.concat([part, zeros] if by > 0 else [zeros, part], axis=0)


def _transposed_band(lower: int, upper: int, ab: Any) -> Any:
    """The diagonals of the transposed matrix."""
    diagonals = range(-lower, upper + 1)  # row `upper - d` of `ab` has the elements (j - d, j), stored at j
    return ops.stack([_shifted(ops.index(ab, (upper - d, ...)), d) for d in diagonals])


def _banded_product(upper: int, ab: Any, x: Any) -> Any:
    """The product of a banded matrix and a dense one."""
    rows = range(ab.shape[0])
    terms = [_shifted(ops.expand_dims(ops.index(ab, (at, ...)), axis=-1) * x, upper - at) for at in rows]
    return builtins.sum(terms[1:], start=terms[0])


@accepts_array_likes
def solve_sylvester(a: Any, b: Any, q: Any, /) -> Any:
    """The solution ``x`` (m, n) of ``a @ x + x @ b = q``, with ``a`` (m, m), ``b`` (n, n) and ``q`` (m, n).

    By the algorithm of Bartels and Stewart (1972), in O(m^3 + n^3) time; for arrays that the host cannot read (on a GPU, or
    traced), by a dense system of m n equations, in O(m^3 n^3). The solution is unique where ``a`` and ``-b`` have no common
    eigenvalue. Raises `ShapeError` where the shapes do not agree.

    >>> import numpy as np
    >>> solve_sylvester(np.array([[1.0]]), np.array([[3.0]]), np.array([[8.0]]))
    array([[2.]])
    """
    m, n = a.shape[0], b.shape[0]
    if (tuple(a.shape), tuple(b.shape), tuple(q.shape)) != ((m, m), (n, n), (m, n)):
        shapes = ", ".join(str(tuple(x.shape)) for x in (a, b, q))
        raise ShapeError(f"solve_sylvester: found shapes {shapes}, expected (m, m), (n, n), (m, n)")
    if not all(on_host(plain(x)) for x in (a, b, q)):
        whole = kron(a, ops.eye_like(b)) + kron(ops.eye_like(a), matrix_transpose(b))
        return ops.reshape(solve(whole, ops.reshape(q, (-1,))), q.shape)

    def pull(g: Any, x: Any, a: Any, b: Any, q: Any) -> tuple[Any, Any, Any]:
        g = solve_sylvester(matrix_transpose(a), matrix_transpose(b), g)
        return -(g @ matrix_transpose(x)), -(matrix_transpose(x) @ g), g

    def push(x: Any, a: Any, b: Any, q: Any, d_a: Any, d_b: Any, d_q: Any) -> Any:
        terms = (d_q, None if d_a is None else -(d_a @ x), None if d_b is None else -(x @ d_b))
        first, *others = [term for term in terms if term is not None]
        return solve_sylvester(a, b, builtins.sum(others, start=first))

    return _solved_on_host(matrix_equations.solve_sylvester, (a, b, q), pull, push)


def _solved_on_host(solver: Callable[..., Any], args: tuple[Any, ...], pull: Any, push: Any) -> Any:
    """A solver of NumPy arrays as an op on arrays of any library that the host can read.

    ``pull(g, x, *args)`` returns the cotangent of each argument, ``push(x, *args, *tangents)`` the tangent of the result; None
    means no tangent.
    """

    def function(*values: Any) -> tuple[Any]:
        like = next(value for value in values if is_array(value))
        result = solver(*map(to_host, values))
        return (namespace(like).asarray(result, device=device_of(like)),)

    def pull_all(g: Any, y: Any, values: Any) -> list[Any]:
        return list(map(_of_dtype, pull(g[0], y[0], *values), values))

    def push_all(values: Any, tangents: Any) -> dict[int, Any]:
        return {0: push(ops.item(record("call", list(values), attributes), 0), *values, *tangents)}

    attributes = {"function": function, "pull": pull_all, "push": push_all}
    return ops.item(record("call", list(args), attributes), 0)


def _of_dtype(cotangent: Any, value: Any) -> Any:
    """The cotangent in the dtype of its argument; its real part where the argument is real."""
    cotangent = ops.real(cotangent) if is_complex(cotangent) and not is_complex(value) else cotangent
    return cotangent if cotangent.dtype == value.dtype else ops.astype(cotangent, value.dtype)


def sqrtm(x: Any, /) -> Any:
    """The principal square root of each matrix; NaN where an eigenvalue is negative. Singular matrices raise or give NaN, as `inv` does.

    Its derivative is an off-diagonal block of the square root of a block matrix (Higham 2008, "Functions of matrices", 3.6), so
    that derivatives of any order exist.

    >>> import numpy as np
    >>> sqrtm(np.array([[4.0, 0.0], [0.0, 9.0]]))
    array([[2., 0.],
           [0., 3.]])
    """
    return record("sqrtm", [x])


@accepts_array_likes
def expm(x: Any, /) -> Any:
    """The exponential of each matrix, by scaling and squaring with a Pade approximant of degree 13 (Higham 2005).

    For arrays outside of host memory, matrices of a 1-norm above 350,000 give NaN.
    """
    if not size_of(x.shape):
        return x
    library, bare = namespace(x), plain(x)
    norms = library.linalg.matrix_norm(bare, ord=1, keepdims=True) / _EXACT
    squarings = library.ceil(library.log2(library.maximum(norms, library.ones_like(norms))))
    rounds = int(library.max(squarings)) if on_host(bare) else _ROUNDS
    y = _pade(x * 2.0**-squarings)
    for at in range(rounds):
        more = squarings > at
        once = ops.where(more, y, 0.0)
        y = ops.where(more, once @ once, y)
    return y if on_host(bare) else ops.where(squarings > _ROUNDS, math.nan, y)


def _pade(x: Any) -> Any:
    """The Pade approximant of degree 13 of the exponential, for matrices of small norm."""
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2
    b, eye = _PADE13, ops.eye_like(x)
    odd = x @ (x6 @ (b[13] * x6 + b[11] * x4 + b[9] * x2) + b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * eye)
    even = x6 @ (b[12] * x6 + b[10] * x4 + b[8] * x2) + b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * eye
    return solve(even - odd, even + odd)


# Up to this norm the approximant is accurate in float64 (Higham 2005, table 2.3). For matrices that the host cannot read the
# number of squarings is fixed; the exponential overflows at far smaller norms than it allows.
_EXACT, _ROUNDS = 5.371920351148152, 16
# The coefficients of the numerator; the last is 1.
_PADE13 = [float(math.factorial(26 - k) // (math.factorial(13 - k) * math.factorial(k))) for k in range(14)]


# --- decompositions ----------------------------------------------------------------------------------------------------


@accepts_array_likes
def svd(x: Any, /, *, full_matrices: bool = True) -> SVDResult:
    """The singular value decomposition: ``x = (U * S) @ Vh``.

    Pass ``full_matrices=False`` for matrices that are not square: the further vectors have no derivative, and `DerivativeError`
    is raised.
    """
    if not has_variable([x]):
        return SVDResult(*namespace(x).linalg.svd(x, full_matrices=full_matrices))
    if full_matrices and x.shape[-1] != x.shape[-2]:
        raise DerivativeError(
            f"svd: shape {tuple(x.shape)}: the vectors beyond the shorter side are not unique, and have no derivative: "
            "pass full_matrices=False"
        )
    return SVDResult(*_results("svd", x, 3))


@_composite
def svdvals(x: Any, /) -> Any:
    """Singular values, in descending order."""
    return svd(x, full_matrices=False).S


def eigh(x: Any, /) -> EighResult:
    """Eigenvalues, in ascending order, and eigenvectors of a Hermitian matrix: ``x @ v = v * w``."""
    return EighResult(*_results("eigh", x, 2))


@_composite
def eigvalsh(x: Any, /) -> Any:
    """Eigenvalues of a Hermitian matrix, in ascending order."""
    return eigh(x).eigenvalues


def eig(x: Any, /) -> EigResult:
    """Eigenvalues and eigenvectors, of norm 1, of a diagonalizable matrix."""
    return EigResult(*_results("eig", x, 2))


@_composite
def eigvals(x: Any, /) -> Any:
    """Eigenvalues of a diagonalizable matrix."""
    return eig(x).eigenvalues


# --- norms -------------------------------------------------------------------------------------------------------------


@_composite
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Any:
    """The ``ord``-norm over ``axis``, by default over all elements; its gradient at zero is zero. ``ord=0`` has no derivative."""
    if ord == 0:
        raise DerivativeError("vector_norm with ord=0 has no derivative: use ox.stop_gradient")
    if ord == math.inf:
        return ops.max(ops.abs(x), axis=axis, keepdims=keepdims)
    if ord == -math.inf:
        return ops.min(ops.abs(x), axis=axis, keepdims=keepdims)
    if ord == 1:
        return ops.sum(ops.abs(x), axis=axis, keepdims=keepdims)
    if ord == 2:
        return record("vector_norm", [x], {"axis": axis, "keepdims": keepdims})
    size = ops.abs(x)
    powers = ops.where(plain(x) == 0, 0.0 if ord > 0 else math.inf, ops.where(plain(x) == 0, 1.0, size) ** ord)
    return _root(ops.sum(powers, axis=axis, keepdims=keepdims), ord)


def _root(x: Any, n: float) -> Any:
    """The ``n``-th root, with derivative zero at zero."""
    zero = plain(x) == 0
    return ops.where(zero, 0.0, ops.where(zero, 1.0, x) ** (1 / n))


@_composite
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """A norm of each matrix: ``"fro"``, ``"nuc"``, or 1, 2, inf and their negatives."""
    if ord == "fro":
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord in ("nuc", 2, -2):
        values = svdvals(x)
        fold = ops.sum if ord == "nuc" else ops.max if ord == 2 else ops.min
        y = fold(values, axis=-1)
    elif abs(ord) in (1, math.inf):
        sums = ops.sum(ops.abs(x), axis=-2 if abs(ord) == 1 else -1)
        y = (ops.max if ord > 0 else ops.min)(sums, axis=-1)
    else:
        raise ValueError(f"ord is {ord!r}: expected 'fro', 'nuc', 1, -1, 2, -2, inf or -inf")
    return ops.expand_dims(ops.expand_dims(y, axis=-1), axis=-1) if keepdims else y


@_composite
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
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


# --- diagonals ---------------------------------------------------------------------------------------------------------


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The diagonal of each matrix, as the last axis; ``offset`` counts diagonals above the main one."""
    return _diagonal(x, offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sum of the diagonal of each matrix."""
    return _trace(x, offset, -2, -1, dtype=dtype)
