"""Solvers of Sylvester equations and banded systems for NumPy arrays, in double precision."""

import math

import numpy as np

# The maximal number of rows and of columns of the unknown for which one dense system is solved.
_SMALL = 8
# The minimal number of columns in a block of the banded factorization: with fewer, Python's overhead dominates.
_BLOCK = 16
# The numbers of QR iterations without deflation after which an exceptional shift is used, and the iteration fails.
_EXCEPTIONAL, _MAX_ITERATIONS = 10, 300


# --- Sylvester equation -----------------------------------------------------------------------------------------------


def solve_sylvester(a: np.ndarray, b: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The solution ``x`` of ``a @ x + x @ b = q`` by the algorithm of Bartels and Stewart (1972), of cubic cost.

    Raises `numpy.linalg.LinAlgError` where ``a`` (m, m) and ``-b`` (n, n) have a common eigenvalue.
    """
    dtype = np.result_type(a, b, q)
    if max(q.shape, default=0) <= _SMALL:
        return _solve_dense(*(x.astype(np.result_type(dtype, np.float64)) for x in (a, b, q))).astype(dtype)
    (s, u), (t, v) = schur(a), schur(b)
    x = u @ _solve_triangular(s, t, u.conj().T @ q @ v) @ v.conj().T
    return (x if dtype.kind == "c" else np.real(x)).astype(dtype)


def _solve_triangular(a: np.ndarray, b: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The solution for upper triangular ``a`` and ``b``, by recursive blocking (Jonsson and Kågström 2002)."""
    m, n = q.shape
    if max(m, n) <= _SMALL:
        return _solve_dense(a, b, q)
    if m >= n:
        half = m // 2
        below = _solve_triangular(a[half:, half:], b, q[half:])
        above = _solve_triangular(a[:half, :half], b, q[:half] - a[:half, half:] @ below)
        return np.concatenate([above, below])
    half = n // 2
    left = _solve_triangular(a, b[:half, :half], q[:, :half])
    right = _solve_triangular(a, b[half:, half:], q[:, half:] - left @ b[:half, half:])
    return np.concatenate([left, right], axis=1)


def _solve_dense(a: np.ndarray, b: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The solution of small equations, by the Kronecker product of both matrices."""
    m, n = q.shape
    return np.linalg.solve(np.kron(a, np.eye(n)) + np.kron(np.eye(m), b.T), q.reshape(m * n)).reshape(m, n)


def schur(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The complex Schur form ``x = q @ t @ q^H``: an upper triangular ``t`` and a unitary ``q``.

    By QR steps with Wilkinson's shift on the Hessenberg form (Golub and Van Loan, "Matrix Computations", 7.5).

    >>> t, q = schur(np.array([[0.0, 1.0], [-1.0, 0.0]]))
    >>> np.round(np.sort_complex(np.diagonal(t)), 12)
    array([0.-1.j, 0.+1.j])
    """
    t, q = _hessenberg(x.astype(np.complex128))
    end, iterations = len(t) - 1, 0
    while end > 0:
        start = _deflated(t, end)
        if start == end:
            end, iterations = end - 1, 0
            continue
        iterations += 1
        if iterations > _MAX_ITERATIONS:
            raise np.linalg.LinAlgError("schur: the QR iteration did not converge")
        is_exceptional = iterations % _EXCEPTIONAL == 0
        shift = (
            abs(t[end, end - 1]) + t[end, end]
            if is_exceptional
            else _wilkinson(t[end - 1 : end + 1, end - 1 : end + 1])
        )
        _qr_step(t, q, start, end, shift)
    return np.triu(t), q


def _hessenberg(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The upper Hessenberg form, in place, by Householder reflections; returns their product."""
    n = len(t)
    q = np.eye(n, dtype=t.dtype)
    for k in range(n - 2):
        v = t[k + 1 :, k].copy()
        norm = np.linalg.norm(v)
        if norm == 0.0:
            continue
        v[0] += norm * (v[0] / abs(v[0]) if v[0] else 1.0)
        v /= np.linalg.norm(v)
        t[k + 1 :, k:] -= np.outer(2.0 * v, v.conj() @ t[k + 1 :, k:])
        t[:, k + 1 :] -= np.outer(t[:, k + 1 :] @ v, 2.0 * v.conj())
        q[:, k + 1 :] -= np.outer(q[:, k + 1 :] @ v, 2.0 * v.conj())
        t[k + 2 :, k] = 0.0
    return t, q


def _deflated(t: np.ndarray, end: int) -> int:
    """The first row of the unreduced block that ends at ``end``; sets negligible subdiagonal elements to zero."""
    diagonal = np.abs(np.diagonal(t)[: end + 1])
    scale = diagonal[:-1] + diagonal[1:]
    scale[scale == 0.0] = np.abs(t[: end + 1, : end + 1]).max()
    rows = np.flatnonzero(np.abs(np.diagonal(t, -1)[:end]) <= np.finfo(np.float64).eps * scale)
    t[rows + 1, rows] = 0.0
    return int(rows[-1]) + 1 if rows.size else 0


def _wilkinson(block: np.ndarray) -> complex:
    """Wilkinson's shift: the eigenvalue of a 2 by 2 matrix that is nearer to its last element."""
    (a, b), (c, d) = block.tolist()
    half = 0.5 * (a - d)
    root = np.sqrt(complex(half * half + b * c))
    denominator = half + root if abs(half + root) >= abs(half - root) else half - root
    return d - b * c / denominator if denominator else d


def _qr_step(t: np.ndarray, q: np.ndarray, start: int, end: int, shift: complex) -> None:
    """``t - shift = qr`` becomes ``rq + shift`` in the rows and columns from ``start`` to ``end``."""
    diagonal = np.einsum("ii->i", t)
    diagonal -= shift
    rotations = []
    for k in range(start, end):
        a, b = complex(t[k, k]), complex(t[k + 1, k])
        size = math.hypot(abs(a), abs(b))
        c, s = (a / size, b / size) if size else (1.0, 0.0)
        rotation = np.array([[c.conjugate(), s.conjugate()], [-s, c]])
        t[k : k + 2, k:] = rotation @ t[k : k + 2, k:]
        rotations.append(rotation.conj().T)
    for k, rotation in zip(range(start, end), rotations, strict=True):
        t[: k + 2, k : k + 2] = t[: k + 2, k : k + 2] @ rotation
        q[:, k : k + 2] = q[:, k : k + 2] @ rotation
    diagonal += shift


# --- banded systems ---------------------------------------------------------------------------------------------------


def solve_banded(lower: int, upper: int, ab: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The solution ``x`` (n, k) of a banded system, ``ab`` (lower + upper + 1, n) as in SciPy, ``b`` (n, k).

    By a QR factorization by blocks of columns, which needs no pivoting; time and memory are linear in ``n``. Raises
    `numpy.linalg.LinAlgError` for a singular matrix.
    """
    dtype = np.result_type(ab, b)
    ab, b = (x.astype(np.result_type(dtype, np.float64)) for x in (ab, b))
    n, width = ab.shape[1], max(_BLOCK, lower + upper)
    blocks: list[tuple[np.ndarray, np.ndarray]] = []
    rest = np.zeros(
        (0, 0), b.dtype
    )  # the rows that earlier blocks have modified, from column `start` on, and their right-hand sides
    carried = np.zeros((0, b.shape[1]), b.dtype)
    for start in range(0, n, width):
        count = min(width, n - start)
        first, end = start + len(rest), min(start + count + lower, n)
        columns = min(start + count + lower + upper, n) - start
        rows = np.zeros((end - start, columns), b.dtype)
        rows[: len(rest), : rest.shape[1]] = rest
        rows[len(rest) :] = _band_rows(lower, upper, ab, (first, end), (start, start + columns))
        q, r = np.linalg.qr(rows[:, :count], mode="complete")
        right = q.conj().T @ np.concatenate([carried, b[first:end]])
        beyond = q.conj().T @ rows[:, count:]
        blocks.append((np.concatenate([r[:count], beyond[:count]], axis=1), right[:count]))
        rest, carried = beyond[count:], right[count:]
    x = np.empty_like(b, dtype=np.result_type(ab, b))
    for start, (r, right) in zip(reversed(range(0, n, width)), reversed(blocks), strict=True):
        count = len(r)
        reduced = right - r[:, count:] @ x[start + count : start + r.shape[1]]
        x[start : start + count] = np.linalg.solve(r[:, :count], reduced)
    return x.astype(dtype)


def _band_rows(lower: int, upper: int, ab: np.ndarray, rows: tuple[int, int], columns: tuple[int, int]) -> np.ndarray:
    """A block of rows and columns of the matrix whose diagonals are the rows of ``ab``."""
    at = np.arange(*rows)[:, None] - np.arange(*columns)[None, :] + upper
    inside = (at >= 0) & (at < lower + upper + 1)
    return np.where(inside, ab[np.where(inside, at, 0), np.arange(*columns)[None, :]], 0.0)
