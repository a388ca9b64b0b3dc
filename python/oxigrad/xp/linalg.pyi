# Printed by make generated.
from builtins import bool as _bool
from typing import Any

from oxigrad._typing import Array

from oxigrad.ops.core.primitives import (matmul as matmul, matrix_transpose as matrix_transpose)
from oxigrad.ops.core.products import (
    cross as cross, kron as kron, outer as outer, tensordot as tensordot, vecdot as vecdot,
)
from oxigrad.ops.linalg.compositions import (LUResult as LUResult)
from oxigrad.ops.linalg.numpy_keywords import (
    cond as cond, lstsq as lstsq, multi_dot as multi_dot, tensorinv as tensorinv, tensorsolve as tensorsolve,
)
from oxigrad.ops.linalg.standard import (
    EigResult as EigResult, EighResult as EighResult, QRResult as QRResult, SVDResult as SVDResult,
    SlogdetResult as SlogdetResult, cholesky as cholesky, det as det, diagonal as diagonal, eig as eig, eigh as eigh,
    eigvals as eigvals, eigvalsh as eigvalsh, inv as inv, matrix_norm as matrix_norm, matrix_power as matrix_power,
    matrix_rank as matrix_rank, norm as norm, pinv as pinv, qr as qr, slogdet as slogdet, solve as solve, svd as svd,
    svdvals as svdvals, trace as trace, vector_norm as vector_norm,
)

def block_diag(*arrs: Any) -> Array:
    """The block diagonal matrix of matrices; a vector is a matrix of one row."""
def cho_factor(a: Any, lower: _bool = False, overwrite_a: _bool = False, check_finite: _bool = True) -> Array:
    """The Cholesky factor of a Hermitian positive definite matrix, and ``lower``, as inputs of `cho_solve`."""
def cho_solve(c_and_lower: Any, b: Any, overwrite_b: _bool = False, check_finite: _bool = True) -> Array:
    """The solution ``x`` of ``a @ x = b``, from `cho_factor` of ``a``."""
def circulant(c: Any) -> Array:
    """The circulant matrix of a first column ``x`` (n,)."""
def coshm(A: Any) -> Array:
    """The hyperbolic cosine of a matrix."""
def cosm(A: Any) -> Array:
    """The cosine of a matrix (n, n)."""
def expm(A: Any) -> Array:
    """The exponential of each matrix, by scaling and squaring with a Pade approximant of degree 13 (Higham 2005)."""
def expm_frechet(A: Any, E: Any, method: Any = None, compute_expm: _bool = True, check_finite: _bool = True) -> Array:
    """The exponential of ``a`` and its derivative in the direction ``e``, or that alone, matrices of one shape."""
def fractional_matrix_power(A: Any, t: Any) -> Array:
    """The principal power of a regular matrix (n, n) with a constant real exponent ``t``."""
def hankel(c: Any, r: Any = None) -> Array:
    """The Hankel matrix of a first column ``x`` (m,) and a last row ``r`` (n,), which is zero by default."""
def khatri_rao(a: Any, b: Any) -> Array:
    """The Khatri-Rao product of ``a`` (m, k) and ``b`` (n, k): Kronecker products of their columns, (m n, k)."""
def logm(A: Any, disp: _bool = True) -> Array:
    """The principal logarithm of a regular matrix (n, n); complex if an eigenvalue is negative."""
def lu(
    a: Any, permute_l: _bool = False, overwrite_a: _bool = False, check_finite: _bool = True, p_indices: _bool = False,
) -> Array:
    """The LU decomposition ``a = P @ L @ U`` of a regular square matrix, with partial pivoting; ``P`` is constant."""
def lu_factor(a: Any, overwrite_a: _bool = False, check_finite: _bool = True) -> Array:
    """The factors of `lu` in one matrix (n, n), and the interchanged row indices (n,), for `lu_solve`."""
def lu_solve(lu_and_piv: Any, b: Any, trans: Any = 0, overwrite_b: _bool = False, check_finite: _bool = True) -> Array:
    """The solution ``x`` of ``a @ x = b``, from `lu_factor` of ``a``."""
def polar(a: Any, side: str = 'right') -> Array:
    """The polar decomposition of a matrix of full rank: ``a = u @ p``, or ``a = p @ u`` where ``side`` is "left"."""
def sinhm(A: Any) -> Array:
    """The hyperbolic sine of a matrix."""
def sinm(A: Any) -> Array:
    """The sine of a matrix (n, n)."""
def solve_banded(
    l_and_u: Any, ab: Any, b: Any, overwrite_ab: _bool = False, overwrite_b: _bool = False, check_finite: _bool = True,
) -> Array:
    """The solution ``x`` of a banded system, with the shape (n,) or (n, k) of ``b``."""
def solve_continuous_lyapunov(a: Any, q: Any) -> Array:
    """The solution ``x`` of ``a @ x + x @ a^H = q``."""
def solve_discrete_lyapunov(a: Any, q: Any, method: Any = None) -> Array:
    """The solution ``x`` of ``a @ x @ a^H - x + q = 0``, by a dense system of n^2 equations."""
def solve_sylvester(a: Any, b: Any, q: Any) -> Array:
    """The solution ``x`` (m, n) of ``a @ x + x @ b = q``, with ``a`` (m, m), ``b`` (n, n) and ``q`` (m, n)."""
def solve_toeplitz(c_or_cr: Any, b: Any, check_finite: _bool = True) -> Array:
    """The solution of a system with the matrix ``toeplitz(c)``, or ``toeplitz(c, r)`` for a pair."""
def solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: _bool = False, unit_diagonal: _bool = False, overwrite_b: _bool = False,
    check_finite: _bool = True,
) -> Array:
    """As `solve`, with a triangular ``x1``, whose other triangle is ignored; it costs as much as `solve`."""
def solveh_banded(
    ab: Any, b: Any, overwrite_ab: _bool = False, overwrite_b: _bool = False, lower: _bool = False,
    check_finite: _bool = True,
) -> Array:
    """The solution ``x`` of a Hermitian banded system."""
def sqrtm(A: Any, disp: _bool = True, blocksize: Any = 64) -> Array:
    """The principal square root of each matrix; as in SciPy, complex if a real matrix has a negative eigenvalue."""
def toeplitz(c: Any, r: Any = None) -> Array:
    """The Toeplitz matrix of a first column ``x`` (m,) and a first row ``r`` (n,), whose first element is ignored."""

__all__ = [
    'EigResult', 'EighResult', 'LUResult', 'QRResult', 'SVDResult', 'SlogdetResult', 'block_diag', 'cho_factor',
    'cho_solve', 'cholesky', 'circulant', 'cond', 'coshm', 'cosm', 'cross', 'det', 'diagonal', 'eig', 'eigh', 'eigvals',
    'eigvalsh', 'expm', 'expm_frechet', 'fractional_matrix_power', 'hankel', 'inv', 'khatri_rao', 'kron', 'logm',
    'lstsq', 'lu', 'lu_factor', 'lu_solve', 'matmul', 'matrix_norm', 'matrix_power', 'matrix_rank', 'matrix_transpose',
    'multi_dot', 'norm', 'outer', 'pinv', 'polar', 'qr', 'sinhm', 'sinm', 'slogdet', 'solve', 'solve_banded',
    'solve_continuous_lyapunov', 'solve_discrete_lyapunov', 'solve_sylvester', 'solve_toeplitz', 'solve_triangular',
    'solveh_banded', 'sqrtm', 'svd', 'svdvals', 'tensordot', 'tensorinv', 'tensorsolve', 'toeplitz', 'trace', 'vecdot',
    'vector_norm',
]
