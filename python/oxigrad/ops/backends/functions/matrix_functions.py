"""Matrix functions of plain arrays that no array library has, in terms of the standard's `linalg`."""

import cmath
import math

from oxigrad._typing import Array, Namespace
from oxigrad.ops.backends.arrays import device_of, on_host
from oxigrad.ops.backends.functions.minors import diagonal_minors

# Iterations of `sqrtm` that suffice after scaling, up to the condition numbers that float64 can represent.
_MAX_ITERATIONS = 24


def cofactor(library: Namespace, x: Array, *directions: Array, is_complex: bool) -> Array:
    """The transposed cofactor matrix: the derivative of the determinant; with directions its derivative along them.

    For matrices on the host whose determinant is a normal number or NaN, the inverse is used. All other matrices use
    singular values, of which some may be zero.
    """
    if not directions and on_host(x):
        transposed = library.matrix_transpose(x)
        y = library.linalg.det(transposed)  # of the decomposition of the inverse: neither is singular alone
        size = library.abs(y)
        if not bool(library.any((size < float(library.finfo(x.dtype).smallest_normal)) | (size == math.inf))):
            return y[..., None, None] * library.linalg.inv(transposed)
    is_finite = library.all(library.isfinite(x), axis=(-2, -1), keepdims=True)  # of others, libraries raise
    u, s, vh = library.linalg.svd(library.where(is_finite, x, library.ones_like(x)), full_matrices=False)
    conj = library.conj if is_complex else (lambda x: x)
    sign = library.linalg.det(u @ vh)[..., None, None]
    if directions:
        left, right = library.matrix_transpose(conj(u)), library.matrix_transpose(conj(vh))
        inner = diagonal_minors(library, s, [left @ direction @ right for direction in directions])
        y = conj(u) @ inner @ conj(vh)
    else:
        n = s.shape[-1]
        is_own = library.eye(n, device=device_of(s)) > 0
        others = library.where(is_own, library.ones_like(s)[..., None, :], s[..., None, :])
        y = conj((u * library.prod(others, axis=-1)[..., None, :]) @ vh)
    return library.where(is_finite, sign * y, library.ones_like(y) * math.nan)


def sqrtm(library: Namespace, x: Array, *, is_complex: bool) -> Array:
    """The principal square root of each matrix; NaN if it has no root of its dtype."""
    root = _denman_beavers(library, x)
    if not (is_complex and on_host(x) and hasattr(library.linalg, "eigvals")) or not library.any(library.isnan(root)):
        return root
    if not library.all(library.isfinite(x)):
        return root
    # The iteration does not converge for negative eigenvalues: all are rotated, by too little for another one to cross
    # the axis.
    apart = math.pi - _phases(library, x)
    others = library.where(apart > _precision(library, x), apart, library.full_like(apart, math.pi))
    turn = cmath.exp(0.25j * float(library.min(others)))
    return _denman_beavers(library, x / (turn * turn)) * turn


def has_negative_eigenvalue(library: Namespace, x: Array) -> bool:
    """Whether a matrix in host memory has a negative eigenvalue, so that its principal square root is complex."""
    return bool(library.any(math.pi - _phases(library, x) <= _precision(library, x)))


def _phases(library: Namespace, x: Array) -> Array:
    """The absolute values of the phases of the eigenvalues."""
    values = library.linalg.eigvals(x)
    return library.abs(library.atan2(library.imag(values), library.real(values)))


def _precision(library: Namespace, x: Array) -> float:
    """The error of the phases of double eigenvalues."""
    return 10.0 * math.sqrt(float(library.finfo(x.dtype).eps))


def _denman_beavers(library: Namespace, x: Array) -> Array:
    """The principal square root of matrices without negative eigenvalues, NaN for others.

    The product form of the Denman-Beavers iteration, scaled by determinants (Cheng, Higham, Kenney and Laub 2001).
    """
    n = x.shape[-1]
    eye = library.eye(n, dtype=x.dtype, device=device_of(x))
    root, m, is_readable = x, x, on_host(x)
    for at in range(_MAX_ITERATIONS):
        logarithm = library.linalg.slogdet(m)[1][..., None, None]
        if at:  # an iterate is singular where an eigenvalue of x is negative: its root is refused below
            is_singular = logarithm == -math.inf
            m, logarithm = (
                library.where(is_singular, eye, m),
                library.where(is_singular, library.zeros_like(logarithm), logarithm),
            )
        scale = library.astype(library.exp(logarithm / (-2.0 * max(n, 1))), x.dtype)
        inverse = library.linalg.inv(m) / (scale * scale)
        root = (root + root @ inverse) * scale * 0.5
        m = (eye + (m * (scale * scale) + inverse) * 0.5) * 0.5
        if is_readable and not library.any(library.abs(m - eye) > 10.0 * n * float(library.finfo(x.dtype).eps)):
            break
    residual = library.linalg.matrix_norm(root @ root - x, keepdims=True)
    is_root = residual <= 1e-3 * library.linalg.matrix_norm(x, keepdims=True)
    nan = library.full((), math.nan, dtype=x.dtype, device=device_of(x))
    return library.where(is_root, root, nan)
