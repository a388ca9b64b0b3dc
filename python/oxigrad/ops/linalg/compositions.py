"""Structured matrices, factorizations and functions of matrices under SciPy's names; in `oxigrad.xp.linalg`."""

import builtins
import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from oxigrad._core import DerivativeError, ShapeError, plain
from oxigrad._typing import Array, Results
from oxigrad.ops.backends import array_of, device_of, namespace, zeros_of
from oxigrad.ops.backends.functions.scipy_functions import of_scipy
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core.composite import accepts_array_likes
from oxigrad.ops.core.host_calls import call, call_one, computed, is_recorded
from oxigrad.ops.core.in_place import of_library
from oxigrad.ops.core.primitives import matrix_transpose
from oxigrad.ops.linalg.equations import expm, shifted, solution, solve_banded, solve_sylvester, sqrtm
from oxigrad.ops.linalg.standard import adjoint, cholesky
from oxigrad.ops.scipy_signatures import scipy_signature

__all__ = [
    "LUResult",
    "block_diag",
    "cho_factor",
    "cho_solve",
    "circulant",
    "coshm",
    "cosm",
    "expm_frechet",
    "fractional_matrix_power",
    "hankel",
    "khatri_rao",
    "logm",
    "lu",
    "lu_factor",
    "lu_solve",
    "polar",
    "sinhm",
    "sinm",
    "solve_continuous_lyapunov",
    "solve_discrete_lyapunov",
    "solve_toeplitz",
    "solveh_banded",
    "toeplitz",
]


class LUResult(NamedTuple):
    """The factors ``a = P @ L @ U``: a permutation, a unit lower triangular and an upper triangular matrix."""

    P: Array
    L: Array
    U: Array


def _triangle(x: Array, *, lower: bool, strict: bool = False) -> Array:
    """One triangle of each matrix, zero elsewhere; without the diagonal where ``strict``."""
    x = array_of(x)
    if len(x.shape) < 2:
        raise ShapeError(f"found the shape {tuple(x.shape)}: expected a matrix, or a stack of matrices")
    library, (rows, columns) = namespace(x), tuple(x.shape[-2:])
    row, column = (library.arange(size, device=device_of(plain(x))) for size in (rows, columns))
    above = library.reshape(column, (1, -1)) - library.reshape(row, (-1, 1))
    above = -above if lower else above
    return ops.where(above > 0 if strict else above >= 0, x, 0.0)


# --- structured matrices ----------------------------------------------------------------------------------------------


@scipy_signature("c, r=None")
@accepts_array_likes
def toeplitz(x: Array, r: Array, /) -> Array:
    """The Toeplitz matrix of a first column ``x`` (m,) and a first row ``r`` (n,), whose first element is ignored.

    Without ``r``, the row is the conjugate of the column.

    >>> toeplitz(np.array([1, 2, 3]), np.array([0, 5]))
    array([[1, 5],
           [2, 1],
           [3, 2]])
    """
    r = ops.conjugate(x) if r is None else array_of(r, (x,))
    (rows,), (columns,) = x.shape, r.shape
    values = ops.concat([ops.flip(ops.index(r, slice(1, None))), x])
    library = namespace(values)
    row, column = (library.arange(size, device=device_of(plain(x))) for size in (rows, columns))
    return ops.index(values, columns - 1 + library.reshape(row, (-1, 1)) - library.reshape(column, (1, -1)))


@scipy_signature("c")
@accepts_array_likes
def circulant(x: Array, /) -> Array:
    """The circulant matrix of a first column ``x`` (n,).

    >>> circulant(np.array([1, 2, 3]))
    array([[1, 3, 2],
           [2, 1, 3],
           [3, 2, 1]])
    """
    return toeplitz(x, ops.concat([ops.index(x, slice(0, 1)), ops.flip(ops.index(x, slice(1, None)))]))


@scipy_signature("c, r=None")
@accepts_array_likes
def hankel(x: Array, r: Array, /) -> Array:
    """The Hankel matrix of a first column ``x`` (m,) and a last row ``r`` (n,), which is zero by default.

    The first element of ``r`` is ignored.
    """
    r = ops.zeros_like(x) if r is None else array_of(r, (x,))
    (rows,), (columns,) = x.shape, r.shape
    values = ops.concat([x, ops.index(r, slice(1, None))])
    library = namespace(values)
    row, column = (library.arange(size, device=device_of(plain(x))) for size in (rows, columns))
    return ops.index(values, library.reshape(row, (-1, 1)) + library.reshape(column, (1, -1)))


@scipy_signature("*arrs")
def block_diag(*arrays: Array) -> Array:
    """The block diagonal matrix of matrices; a vector is a matrix of one row.

    >>> block_diag(np.array([[1.0]]), np.array([[2.0, 3.0]]))
    array([[1., 0., 0.],
           [0., 2., 3.]])
    """
    blocks = [ops.reshape(x, (1, -1)) if len(x.shape) < 2 else x for x in ops.arrays_of(arrays, "block_diag")]
    width, rows, before = builtins.sum(x.shape[-1] for x in blocks), [], 0
    for x in blocks:
        behind = width - before - x.shape[-1]
        sides = [zeros_of((x.shape[0], size), x) for size in (before, behind)]
        rows.append(ops.concat([sides[0], x, sides[1]], axis=1))
        before += x.shape[-1]
    return ops.concat(rows, axis=0)


@scipy_signature("a, b")
@accepts_array_likes
def khatri_rao(a: Array, b: Array, /) -> Array:
    """The Khatri-Rao product of ``a`` (m, k) and ``b`` (n, k): Kronecker products of their columns, (m n, k)."""
    if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[1] != b.shape[1]:
        raise ShapeError(f"khatri_rao: found shapes {tuple(a.shape)}, {tuple(b.shape)}, expected (m, k), (n, k)")
    whole = ops.expand_dims(a, axis=1) * ops.expand_dims(b, axis=0)
    return ops.reshape(whole, (a.shape[0] * b.shape[0], a.shape[1]))


# --- factorizations and systems ---------------------------------------------------------------------------------------


@scipy_signature("a, permute_l=False, overwrite_a=False, check_finite=True, p_indices=False")
@accepts_array_likes
def lu(a: Array, /, permute_l: bool) -> LUResult | tuple[Array, Array]:
    """The LU decomposition ``a = P @ L @ U`` of a regular square matrix, with partial pivoting; ``P`` is constant.

    With ``permute_l`` it is the pair of ``P @ L`` and ``U``.

    >>> p, l, u = lu(np.array([[0.0, 2.0], [3.0, 4.0]]))
    >>> u
    array([[3., 4.],
           [0., 2.]])
    """
    if len(a.shape) < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"lu: found shape {tuple(a.shape)}, expected square matrices")
    p = computed("lu", lambda x: of_scipy("linalg", "lu")(x)[0], (plain(a),))[0]
    lower, upper = _unpivoted(ops.matmul(matrix_transpose(p), a))
    return (ops.matmul(p, lower), upper) if permute_l else LUResult(p, lower, upper)


def _unpivoted(a: Array) -> tuple[Array, Array]:
    """The factors of matrices that need no pivoting."""

    def factors(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p, lower, upper = of_scipy("linalg", "lu")(x)
        if not np.array_equal(p, np.broadcast_to(np.eye(x.shape[-1]), p.shape)):  # a tie, by rounding
            lower = p @ lower
        return lower, upper

    def pull(g: Array, y: Array, a: Array) -> tuple[Array]:
        lower, upper = y
        inner: Array = 0.0
        if g[0] is not None:
            inner = inner + _triangle(matrix_transpose(lower) @ g[0], lower=True, strict=True)
        if g[1] is not None:
            inner = inner + _triangle(g[1] @ matrix_transpose(upper), lower=False)
        left = solution(matrix_transpose(lower), inner)
        return (matrix_transpose(solution(upper, matrix_transpose(left))),)

    def push(y: Array, a: Array, t: Array) -> tuple[Array, Array]:
        lower, upper = y
        inner = solution(lower, matrix_transpose(solution(matrix_transpose(upper), matrix_transpose(t))))
        return lower @ _triangle(inner, lower=True, strict=True), _triangle(inner, lower=False) @ upper

    return (
        ops.items(call(lambda x: computed("lu", factors, (x,)), [a], pull, push))
        if is_recorded(a)
        else computed("lu", factors, (a,))
    )


@scipy_signature("a, overwrite_a=False, check_finite=True")
@accepts_array_likes
def lu_factor(a: Array, /) -> tuple[Array, Array]:
    """The factors of `lu` in one matrix (n, n), and the interchanged row indices (n,), for `lu_solve`."""
    if len(a.shape) != 2:
        raise ShapeError(f"lu_factor: found shape {tuple(a.shape)}, expected (n, n)")
    result = lu(a)
    pivots = computed("lu_factor", lambda x: of_scipy("linalg", "lu_factor")(x)[1], (plain(a),))[0]
    return result.L - ops.eye_like(result.L) + result.U, pivots


@scipy_signature("lu_and_piv, b, trans=0, overwrite_b=False, check_finite=True")
def lu_solve(lu_and_piv: tuple[Array, Array], b: Array, /, trans: int) -> Array:
    """The solution ``x`` of ``a @ x = b``, from `lu_factor` of ``a``.

    Solves the transposed system if ``trans`` is 1, and the conjugate transposed one if it is 2.
    """
    if not isinstance(lu_and_piv, tuple | list) or len(lu_and_piv) != 2:
        raise TypeError(
            f"lu_solve: lu_and_piv is {type(lu_and_piv).__name__}, expected (lu, piv), as lu_factor returns them"
        )
    if trans not in (0, 1, 2):
        raise ValueError(f"lu_solve: trans is {trans!r}: expected 0, 1 or 2")
    factors, pivots = lu_and_piv
    b = array_of(b, (factors,))
    lower = _triangle(factors, lower=True, strict=True) + ops.eye_like(factors)
    upper, order = _triangle(factors, lower=False), _permutation(np.asarray(plain(pivots)))
    if trans == 0:
        return solution(upper, solution(lower, ops.index(b, of_library(order, b))))
    turn = matrix_transpose if trans == 1 else adjoint
    return ops.index(solution(turn(lower), solution(turn(upper), b)), of_library(np.argsort(order), b))


def _permutation(pivots: np.ndarray) -> np.ndarray:
    """The order of rows after interchanging row ``i`` and row ``pivots[i]``, for each ``i`` in turn."""
    order = np.arange(len(pivots))
    for i, other in enumerate(pivots):
        order[[i, other]] = order[[other, i]]
    return order


@scipy_signature("a, lower=False, overwrite_a=False, check_finite=True")
@accepts_array_likes
def cho_factor(a: Array, /, lower: bool) -> tuple[Array, bool]:
    """The Cholesky factor of a Hermitian positive definite matrix, and ``lower``, as inputs of `cho_solve`.

    The other triangle is zero.
    """
    return cholesky(a, upper=not lower), lower


@scipy_signature("c_and_lower, b, overwrite_b=False, check_finite=True")
def cho_solve(c_and_lower: tuple[Array, bool], b: Array, /) -> Array:
    """The solution ``x`` of ``a @ x = b``, from `cho_factor` of ``a``."""
    factor, lower = c_and_lower
    factor = _triangle(factor, lower=lower)
    factor = factor if lower else adjoint(factor)
    return solution(adjoint(factor), solution(factor, b))


@scipy_signature("ab, b, overwrite_ab=False, overwrite_b=False, lower=False, check_finite=True")
@accepts_array_likes
def solveh_banded(ab: Array, b: Array, /, lower: bool) -> Array:
    """The solution ``x`` of a Hermitian banded system.

    The rows of ``ab`` are the upper diagonals as in SciPy, or the lower ones with ``lower``.
    """
    width = ab.shape[0] - 1
    rows = [ops.index(ab, (at, ...)) for at in range(width + 1)]
    rows[0 if lower else -1] = ops.real(rows[0 if lower else -1])  # as the diagonal of a Hermitian matrix is
    if lower:
        above = [shifted(ops.conjugate(rows[d]), -d) for d in range(width, 0, -1)]
        return solve_banded((width, width), ops.stack([*above, *rows]), b)
    below = [shifted(ops.conjugate(rows[width - d]), d) for d in range(1, width + 1)]
    return solve_banded((width, width), ops.stack([*rows, *below]), b)


@scipy_signature("c_or_cr, b, check_finite=True")
def solve_toeplitz(c_or_cr: Array | tuple[Array, Array], b: Array, /) -> Array:
    """The solution of a system with the matrix ``toeplitz(c)``, or ``toeplitz(c, r)`` for a pair.

    It costs as much as `solve`.
    """
    return solution(toeplitz(*c_or_cr) if isinstance(c_or_cr, tuple) else toeplitz(c_or_cr), b)


@scipy_signature("a, q")
@accepts_array_likes
def solve_continuous_lyapunov(a: Array, q: Array, /) -> Array:
    """The solution ``x`` of ``a @ x + x @ a^H = q``."""
    return solve_sylvester(a, adjoint(a), q)


@scipy_signature("a, q, method=None", ignored="method=direct,bilinear")
@accepts_array_likes
def solve_discrete_lyapunov(a: Array, q: Array, /) -> Array:
    """The solution ``x`` of ``a @ x @ a^H - x + q = 0``, by a dense system of n^2 equations."""
    n = a.shape[0]
    pairs = ops.reshape(a, (n, 1, n, 1)) * ops.reshape(ops.conjugate(a), (1, n, 1, n))
    whole = ops.reshape(pairs, (n * n, n * n))
    return ops.reshape(solution(ops.eye_like(whole) - whole, ops.reshape(q, (-1,))), (n, n))


@scipy_signature('a, side="right"')
@accepts_array_likes
def polar(a: Array, /, side: str) -> tuple[Array, Array]:
    """The polar decomposition of a matrix of full rank: ``a = u @ p``, or ``a = p @ u`` where ``side`` is "left".

    It is computed by the square root of the smaller of ``a^H @ a`` and ``a @ a^H``, so equal singular values are
    allowed. Relative errors grow with the square of the condition number. ``u`` has the shape of ``a``.
    """
    if side not in ("left", "right"):
        raise ValueError(f"polar: side is {side!r}: expected 'left' or 'right'")
    rows, columns = a.shape[-2:]
    if rows < columns or (rows == columns and side == "left"):
        root = sqrtm(a @ adjoint(a))
        u = solution(root, a)
        return u, root if side == "left" else adjoint(u) @ a
    root = sqrtm(adjoint(a) @ a)
    u = adjoint(solution(root, adjoint(a)))
    return u, root if side == "right" else a @ adjoint(u)


# --- functions of matrices --------------------------------------------------------------------------------------------


def _block(a: Array, e: Array) -> Array:
    """The matrix ``[[a, e], [0, a]]``, whose function has the directional derivative as its upper right block."""
    above, below = ops.concat([a, e], axis=-1), ops.concat([ops.zeros_like(e), a], axis=-1)
    return ops.concat([above, below], axis=-2)


def _matrix_function(name: str, function: Callable[[np.ndarray], np.ndarray], a: Array) -> Array:
    """A function of square matrices that SciPy computes, differentiable to all orders.

    Derivatives are functions of block matrices (Higham 2008, 3.6).
    """
    n = a.shape[-1]
    if len(a.shape) != 2 or a.shape[0] != n:
        raise ShapeError(f"{name}: found shape {tuple(a.shape)}, expected (n, n)")

    def along(a: Array, e: Array) -> Array:
        return ops.index(_matrix_function(name, function, _block(a, e)), (slice(n), slice(n, None)))

    if not is_recorded(a):
        return computed(name, function, (a,))[0]
    pull = lambda g, y, a: (along(matrix_transpose(a), g),)  # noqa: E731
    return call_one(name, function, [a], pull, lambda y, a, t: along(a, t))


@scipy_signature("A, disp=True")
@accepts_array_likes
def logm(x: Array, /) -> Array:
    """The principal logarithm of a regular matrix (n, n); complex if an eigenvalue is negative.

    >>> round(float(logm(np.array([[1.0, 2.0], [0.0, 1.0]]))[0, 1]), 12)
    2.0
    """
    return _matrix_function("logm", lambda x: of_scipy("linalg", "logm")(x), x)


@scipy_signature("A, t")
@accepts_array_likes
def fractional_matrix_power(x: Array, t: float, /) -> Array:
    """The principal power of a regular matrix (n, n) with a constant real exponent ``t``."""
    if is_recorded(t):
        raise DerivativeError("fractional_matrix_power is not differentiable with respect to its exponent")
    return _matrix_function("fractional_matrix_power", lambda x: of_scipy("linalg", "fractional_matrix_power")(x, t), x)


@scipy_signature("A")
@accepts_array_likes
def cosm(x: Array, /) -> Array:
    """The cosine of a matrix (n, n)."""
    return _matrix_function("cosm", lambda x: of_scipy("linalg", "cosm")(x), x)


@scipy_signature("A")
@accepts_array_likes
def sinm(x: Array, /) -> Array:
    """The sine of a matrix (n, n)."""
    return _matrix_function("sinm", lambda x: of_scipy("linalg", "sinm")(x), x)


@scipy_signature("A")
@accepts_array_likes
def coshm(x: Array, /) -> Array:
    """The hyperbolic cosine of a matrix."""
    return 0.5 * (expm(x) + expm(-x))


@scipy_signature("A")
@accepts_array_likes
def sinhm(x: Array, /) -> Array:
    """The hyperbolic sine of a matrix."""
    return 0.5 * (expm(x) - expm(-x))


@scipy_signature("A, E, method=None, compute_expm=True, check_finite=True", ignored="method=SPS,blockEnlarge")
@functools.partial(accepts_array_likes, all_arrays=True)
def expm_frechet(a: Array, e: Array, /, compute_expm: bool) -> Results:
    """The exponential of ``a`` and its derivative in the direction ``e``, or that alone, matrices of one shape."""
    n, whole = a.shape[-1], expm(_block(a, e))
    derivative = ops.index(whole, (..., slice(n), slice(n, None)))
    return (ops.index(whole, (..., slice(n), slice(n))), derivative) if compute_expm else derivative
