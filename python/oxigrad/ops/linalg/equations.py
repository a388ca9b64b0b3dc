"""Functions of SciPy's linear algebra, part of `oxigrad.xp.linalg`.

They solve banded systems and Sylvester equations, and compute functions of matrices.
"""

import builtins
import functools
import math

from oxigrad._core import ShapeError, plain, record
from oxigrad._typing import Array
from oxigrad.ops.backends import array_of, beneath, device_of, is_complex, namespace, on_host, size_of, zeros_of
from oxigrad.ops.backends.functions import matrix_functions
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core.composite import accepts_array_likes
from oxigrad.ops.core.dtypes import floating
from oxigrad.ops.core.host_calls import call_one
from oxigrad.ops.core.primitives import matrix_transpose
from oxigrad.ops.core.products import kron
from oxigrad.ops.linalg import host_equations
from oxigrad.ops.scipy_signatures import scipy_signature

__all__ = [
    "expm",
    "solve_banded",
    "solve_sylvester",
    "sqrtm",
]


def solution(x1: Array, x2: Array) -> Array:
    """The solution of a square system, as one entry of a tape."""
    return record("solve", [x1, x2])


@scipy_signature("l_and_u, ab, b, overwrite_ab=False, overwrite_b=False, check_finite=True")
def solve_banded(l_and_u: tuple[int, int], ab: Array, b: Array, /) -> Array:
    """The solution ``x`` of a banded system, with the shape (n,) or (n, k) of ``b``.

    ``l_and_u`` are the numbers of diagonals below and above the main one. The rows of ``ab`` (l + u + 1, n) are the
    diagonals from the uppermost down, as in SciPy: ``ab[u + i - j, j]`` is the matrix's element (i, j). Time and memory
    are linear in ``n``. For arrays that the host cannot read (on a GPU, or traced) the dense matrix is formed instead.
    Raises `ShapeError` if the shapes do not agree.

    >>> import numpy as np
    >>> solve_banded((1, 0), np.array([[2.0, 2.0], [1.0, 0.0]]), np.array([2.0, 3.0]))
    array([1., 1.])
    """
    ab, b = floating(array_of(ab)), floating(array_of(b, [ab]))
    (lower, upper), (rows, size) = l_and_u, ab.shape
    if rows != lower + upper + 1:
        raise ShapeError(f"solve_banded: found ab of {rows} rows, expected {lower + upper + 1}, one for each diagonal")
    if len(b.shape) not in (1, 2) or b.shape[0] != size:
        raise ShapeError(
            f"solve_banded: found b of shape {tuple(b.shape)}, expected ({size},) or ({size}, k), for {size} columns "
            "of ab"
        )
    if len(b.shape) == 1:
        return ops.squeeze(_solve_banded(lower, upper, ab, ops.expand_dims(b, axis=-1)), axis=-1)
    return _solve_banded(lower, upper, ab, b)


def _solve_banded(lower: int, upper: int, ab: Array, b: Array) -> Array:
    if not (on_host(plain(ab)) and on_host(plain(b))):
        return solution(_of_band(lower, upper, ab), b)

    def pull(g: Array, x: Array, ab: Array, b: Array) -> tuple[Array, Array]:
        g = _solve_banded(upper, lower, _transposed_band(lower, upper, ab), g)
        rows = [ops.sum(shifted(g, at - upper) * x, axis=-1) for at in range(lower + upper + 1)]
        return -ops.stack(rows), g

    def push(x: Array, ab: Array, b: Array, d_ab: Array, d_b: Array) -> Array:
        change = None if d_ab is None else -_banded_product(upper, d_ab, x)
        change = d_b if change is None else change if d_b is None else change + d_b
        return _solve_banded(lower, upper, ab, change)

    solver = functools.partial(host_equations.solve_banded, lower, upper)
    return call_one("solve_banded", solver, (ab, b), pull, push)


def _of_band(lower: int, upper: int, ab: Array) -> Array:
    """The dense matrix whose diagonals are the rows of ``ab``."""
    library, (rows, size) = namespace(ab), ab.shape
    places = library.arange(size, device=device_of(plain(ab)))
    row = library.reshape(places, (-1, 1)) - library.reshape(places, (1, -1)) + upper
    is_inside = (row >= 0) & (row < rows)
    row = library.where(is_inside, row, library.zeros_like(row))
    return ops.where(is_inside, ops.take_along_axis(ab, row, axis=-2), 0.0)


def shifted(x: Array, by: int) -> Array:
    """``y[j] = x[j + by]`` along the first axis, zero where ``j + by`` is out of range."""
    size = x.shape[0]
    part = ops.index(x, (slice(min(max(by, 0), size), max(min(size + by, size), 0)), ...))
    missing = size - part.shape[0]
    if not missing:
        return x
    zeros = zeros_of((missing, *x.shape[1:]), x)
    return ops.concat([part, zeros] if by > 0 else [zeros, part], axis=0)


def _transposed_band(lower: int, upper: int, ab: Array) -> Array:
    """The diagonals of the transposed matrix."""
    diagonals = range(-lower, upper + 1)  # row `upper - d` of `ab` has the elements (j - d, j), stored at j
    return ops.stack([shifted(ops.index(ab, (upper - d, ...)), d) for d in diagonals])


def _banded_product(upper: int, ab: Array, x: Array) -> Array:
    """The product of a banded matrix and a dense one."""
    rows = range(ab.shape[0])
    terms = [shifted(ops.expand_dims(ops.index(ab, (at, ...)), axis=-1) * x, upper - at) for at in rows]
    return builtins.sum(terms[1:], start=terms[0])


@scipy_signature("a, b, q")
@accepts_array_likes
def solve_sylvester(a: Array, b: Array, q: Array, /) -> Array:
    """The solution ``x`` (m, n) of ``a @ x + x @ b = q``, with ``a`` (m, m), ``b`` (n, n) and ``q`` (m, n).

    It is computed by the algorithm of Bartels and Stewart (1972) in O(m^3 + n^3) time. Arrays that the host cannot read
    (on a GPU, or traced) are solved by a dense system of m n equations in O(m^3 n^3). The solution is unique if ``a``
    and ``-b`` have no common eigenvalue. Raises `ShapeError` if the shapes do not agree.

    >>> import numpy as np
    >>> solve_sylvester(np.array([[1.0]]), np.array([[3.0]]), np.array([[8.0]]))
    array([[2.]])
    """
    m, n = a.shape[0], b.shape[0]
    if (tuple(a.shape), tuple(b.shape), tuple(q.shape)) != ((m, m), (n, n), (m, n)):
        shapes = ", ".join(str(tuple(x.shape)) for x in (a, b, q))
        raise ShapeError(f"solve_sylvester: found shapes {shapes}, expected (m, m), (n, n), (m, n)")
    a, b, q = floating(a), floating(b), floating(q)
    if not all(on_host(plain(x)) for x in (a, b, q)):
        whole = kron(a, ops.eye_like(b)) + kron(ops.eye_like(a), matrix_transpose(b))
        return ops.reshape(solution(whole, ops.reshape(q, (-1,))), q.shape)

    def pull(g: Array, x: Array, a: Array, b: Array, q: Array) -> tuple[Array, Array, Array]:
        g = solve_sylvester(matrix_transpose(a), matrix_transpose(b), g)
        return -(g @ matrix_transpose(x)), -(matrix_transpose(x) @ g), g

    def push(x: Array, a: Array, b: Array, q: Array, d_a: Array, d_b: Array, d_q: Array) -> Array:
        terms = (d_q, None if d_a is None else -(d_a @ x), None if d_b is None else -(x @ d_b))
        first, *others = [term for term in terms if term is not None]
        return solve_sylvester(a, b, builtins.sum(others, start=first))

    return call_one("solve_sylvester", host_equations.solve_sylvester, (a, b, q), pull, push)


@scipy_signature("A, disp=True, blocksize=64")
def sqrtm(x: Array, /) -> Array:
    """The principal square root of each matrix; as in SciPy, complex if a real matrix has a negative eigenvalue.

    Singular matrices raise an error or give NaN, as in `inv`. So do arrays that the host cannot read if the root would
    be complex.

    Its derivative is an off-diagonal block of the square root of a block matrix (Higham 2008, "Functions of matrices",
    3.6), so derivatives of any order exist.

    >>> import numpy as np
    >>> sqrtm(np.array([[4.0, 0.0], [0.0, 9.0]]))
    array([[2., 0.],
           [0., 3.]])
    """
    x = floating(array_of(x))
    root = record("sqrtm", [x])
    bare, matrices = beneath(root), beneath(x)  # one dtype for all examples of a batch, as for all matrices of a stack
    if not on_host(bare) or is_complex(bare) or size_of(bare.shape) == 0:
        return root
    library = namespace(bare)
    if not (library.any(library.isnan(bare)) and library.all(library.isfinite(matrices))):
        return root
    if not matrix_functions.has_negative_eigenvalue(library, matrices):
        return root
    return record("sqrtm", [ops.astype(x, library.result_type(bare.dtype, library.complex64))])


@scipy_signature("A")
@accepts_array_likes
def expm(x: Array, /) -> Array:
    """The exponential of each matrix, by scaling and squaring with a Pade approximant of degree 13 (Higham 2005).

    For arrays outside of host memory, matrices of a 1-norm above 350,000 give NaN.
    """
    if not size_of(x.shape):
        return x
    library, bare = namespace(x), plain(x)
    norms = library.linalg.matrix_norm(bare, ord=1, keepdims=True) / _EXACT
    norms = library.where(library.isfinite(norms), norms, library.ones_like(norms))  # of others, the result is NaN
    squarings = library.ceil(library.log2(library.maximum(norms, library.ones_like(norms))))
    most, is_readable = beneath(squarings), on_host(beneath(x))
    rounds = int(namespace(most).max(most)) if is_readable else _ROUNDS
    y = _pade(x * 2.0**-squarings)
    for at in range(rounds):
        more = squarings > at
        once = ops.where(more, y, 0.0)
        y = ops.where(more, once @ once, y)
    return y if is_readable else ops.where(squarings > _ROUNDS, math.nan, y)


def _pade(x: Array) -> Array:
    """The Pade approximant of degree 13 of the exponential, for matrices of small norm."""
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2
    b, eye = _PADE13, ops.eye_like(x)
    odd = x @ (x6 @ (b[13] * x6 + b[11] * x4 + b[9] * x2) + b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * eye)
    even = x6 @ (b[12] * x6 + b[10] * x4 + b[8] * x2) + b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * eye
    return solution(even - odd, even + odd)


# Up to this norm the approximant is accurate in float64 (Higham 2005, table 2.3). For matrices that the host cannot
# read the number of squarings is fixed; the exponential overflows at far smaller norms than it allows.
_EXACT, _ROUNDS = 5.371920351148152, 16
# The coefficients of the numerator; the last is 1.
_PADE13 = [float(math.factorial(26 - k) // (math.factorial(13 - k) * math.factorial(k))) for k in range(14)]
