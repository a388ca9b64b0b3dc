"""Derivative rules of matrix decompositions, inverses, linear solves and matrix functions.

Formulas are from Giles 2008 ("An extended collection of matrix derivative results"), Murray 2016 ("Differentiation of
the Cholesky decomposition"), Roberts and Roberts 2020 (QR) and Wan and Zhang 2019 (complex SVD). They are written for
the direction of steepest ascent, the conjugate of a cotangent, so that complex results are conjugated first.

The rule of a decomposition takes one `TupleCotangent` with the cotangents of all results in use
(`oxigrad.autodiff.rules.vjp_rules` describes ops with several results). An unused result has no cotangent. The
derivative of eigenvalues alone therefore does not divide by their differences; only the derivative of eigenvectors
does.
"""

import math
import warnings
from typing import Any

import numpy as np

from oxigrad import _core, xp
from oxigrad._core import DerivativeError
from oxigrad._typing import Array
from oxigrad.autodiff.rules.cotangents import unbroadcast
from oxigrad.ops.backends import beneath, device_of, is_complex, namespace
from oxigrad.ops.core import primitives
from oxigrad.ops.core.primitives import TupleCotangent
from oxigrad.ops.core.primitives import matrix_transpose as _t


def _h(x: Array) -> Array:
    return _t(xp.conjugate(x))


def _sqrtm(g: Array, x: Array) -> Array:
    """The derivative along ``g`` of the square root of the transpose: a block of the square root of a block matrix."""
    x, n = _t(x), x.shape[-1]
    above = xp.concat([x, g], axis=-1)
    below = xp.concat([xp.zeros_like(x), x], axis=-1)
    return primitives.index(xp.linalg.sqrtm(xp.concat([above, below], axis=-2)), (..., slice(n), slice(n, None)))


def _results(y: Array, count: int) -> list[Array]:
    """The conjugates of the results."""
    return [xp.conjugate(primitives.item(y, which)) for which in range(count)]


def _row(x: Array) -> Array:
    return xp.expand_dims(x, axis=-2)


def _column(x: Array) -> Array:
    return xp.expand_dims(x, axis=-1)


def _total(*terms: Any) -> Any:
    first, *rest = [term for term in terms if term is not None]
    for term in rest:
        first = first + term
    return first


def is_diagonal(x: Array) -> Array:
    """A boolean mask of the diagonal of a matrix, as a plain array."""
    return namespace(x).eye(x.shape[-1], device=device_of(x)) > 0


def precision(levels: Array, n: int) -> float:
    """The relative distance up to which levels of matrices of size ``n`` are equal, by the error of a decomposition."""
    return 8.0 * n * float(namespace(levels).finfo(levels.dtype).eps)


def distances(levels: Array, sign: float = -1.0) -> Array:
    """The differences ``w_j - w_i`` of levels; the sums with a sign of 1."""
    return _row(levels) + sign * _column(levels)


def size_of_levels(levels: Array) -> Array:
    """The largest absolute value of the levels of each matrix."""
    return _column(xp.max(xp.abs(levels), axis=-1, keepdims=True)) if levels.shape[-1] else 0.0


def quotient(x: Array, distance: Array, tolerance: Array, noise: Array) -> Array:
    """``x / distance``, with distances of at most ``tolerance`` treated as zero.

    At a zero distance, the result is zero if ``x`` is at most ``noise``, else NaN. Vectors of equal levels are unique
    up to a rotation, on which a smooth loss does not depend: then ``x`` is zero.
    """
    is_zero = xp.abs(distance) <= tolerance
    at_zero = xp.where(xp.abs(x) <= noise, primitives.zeros_like(x), math.nan)
    return xp.where(is_zero, at_zero, x / xp.where(is_zero, 1.0, distance))


def report_nan(x: Array, reason: str, one: Array | None, *causes: Array) -> Array:
    """``x``, where an array in host memory has no NaN, or the causes have one.

    Otherwise raises `DerivativeError` if ``one`` is the levels of one matrix, and warns if not: other matrices of a
    stack, or other vectors, may have a derivative. Recordings, and libraries that compile, keep the NaN without a word.
    """
    values = [beneath(each) for each in (x, *causes)]
    # A value of a recording is an instance of a subclass of NumPy's class.
    is_on_host = all(type(each) is np.ndarray for each in values)
    if is_on_host and np.isnan(values[0]).any() and all(np.isfinite(each).all() for each in values[1:]):
        text = f"eigenvalues or singular values are equal up to rounding: {reason}"
        if one is not None and beneath(one).ndim == 1:
            raise DerivativeError(text)
        warnings.warn(f"{text}: these derivatives are NaN", RuntimeWarning, stacklevel=2)
    return x


def norm(*arrays: Array | None) -> Array:
    """The sum of the norms of matrices."""
    return _total(*(a if a is None else xp.linalg.vector_norm(a, axis=(-2, -1), keepdims=True) for a in arrays))


def between_levels(x: Array, levels: Array, noise: Array) -> Array:
    """``x / (w_j - w_i)`` by `quotient`, zero on the diagonal."""
    tolerance = precision(levels, levels.shape[-1]) * size_of_levels(levels)
    return xp.where(is_diagonal(x), 0.0, quotient(x, distances(levels), tolerance, noise))


_BOTH = (
    "a second derivative, or a loss of both vectors and values of one call, has no value there; xp.linalg.expm, logm, "
    "sqrtm and pinv have theirs"
)


def _noise(levels: Array, n: int, of_values: Array | None, *of_vectors: Array | None) -> Array:
    """The noise for `quotient`.

    For vectors and values together the limit is unknown, but zero if nothing has an effect.
    """
    if of_values is None:
        return precision(levels, n) * norm(*of_vectors)
    return xp.where(norm(_row(of_values), *of_vectors) == 0.0, 0.0, -1.0)


def _checked(x: Array, levels: Array, g: TupleCotangent, of_values: Array | None) -> Array:
    return x if of_values is None else report_nan(x, _BOTH, levels, *g.values())


def _skew(x: Array) -> Array:
    return x - _h(x)


def _halved(x: Array, upper: bool) -> Array:
    """One triangle of ``x``, with half of the diagonal."""
    library = namespace(x)
    ones = library.ones(tuple(x.shape[-2:]), dtype=x.dtype, device=device_of(x))
    return x * ((library.triu(ones) if upper else library.tril(ones)) - 0.5 * primitives.eye_like(x))


def _solve_x2(g: Array, x1: Array, x2_shape: tuple[int, ...]) -> Array:
    if len(x2_shape) == 1:
        return xp.squeeze(xp.linalg.solve(_t(x1), _column(g)), axis=-1)
    return xp.linalg.solve(_t(x1), g)


def _solve_x1(g: Array, y: Array, x1: Array, x2_shape: tuple[int, ...]) -> Array:
    pulled = -_solve_x2(g, x1, x2_shape)
    return _column(pulled) * _row(y) if len(x2_shape) == 1 else pulled @ _t(y)


def _inv(g: Array, y: Array) -> Array:
    return -(_t(y) @ g @ _t(y))


def _cofactor(g: Array, args: tuple[Array, ...]) -> list[Array]:
    """The next derivative of the determinant, which is symmetric in its directions."""
    x, *directions = args
    others = [[*directions[:at], *directions[at + 1 :]] for at in range(len(directions))]
    pulled = (_core.record("cofactor", [x, *each, g]) for each in [directions, *others])
    return [unbroadcast(each, tuple(arg.shape), arg.dtype) for each, arg in zip(pulled, args, strict=True)]


def _slogdet(g: TupleCotangent, y: Array, x: Array) -> Array:
    """Derived from the holomorphic ``log(det(x))``.

    The real part is ``logabsdet``, the imaginary part the phase of ``sign``.
    """
    of_sign, of_log = g[0], g[1]
    if of_sign is not None:
        of_sign = xp.imag(of_sign * primitives.item(y, 0)) * 1j if is_complex(x) else 0.0 * of_sign
    weight = _total(of_log, of_sign)
    return _column(_column(weight)) * _t(xp.linalg.inv(x))


def _cholesky(g: Array, y: Array) -> Array:
    y = xp.conjugate(y)
    middle = _halved(_h(y) @ g, upper=False)
    left = xp.linalg.solve(_h(y), 0.5 * (middle + _h(middle)))
    return _h(xp.linalg.solve(_h(y), _h(left)))


def _qr(g: TupleCotangent, y: Array) -> Array:
    q, r = _results(y, 2)
    of_q, of_r = g[0], g[1]
    middle = _total(None if of_r is None else of_r @ _h(r), None if of_q is None else -(_h(q) @ of_q))
    middle = _halved(middle, upper=True)
    left = _total(q @ (middle + _h(middle)), of_q)
    return _h(xp.linalg.solve(r, _h(left)))


def _svd(g: TupleCotangent, y: Array) -> Array:
    u, s, vh = _results(y, 3)
    of_u, of_s, of_vh = g[0], g[1], g[2]
    terms = [None if of_s is None else (u * _row(of_s)) @ vh]
    if of_u is not None or of_vh is not None:
        n = max(u.shape[-2], vh.shape[-1])
        tolerance = precision(s, n) * size_of_levels(s)
        noise = _noise(s, n, of_s, of_u, of_vh)
        turn_u = None if of_u is None else _skew(_h(u) @ of_u)
        turn_v = None if of_vh is None else _skew(vh @ _h(of_vh))
        # Equal values turn both sides together, values of zero each side by itself.
        both = quotient(_total(turn_u, turn_v), distances(s), tolerance, noise)
        each = quotient(_total(turn_u, None if turn_v is None else -turn_v), distances(s, 1.0), tolerance, noise)
        is_phase = is_diagonal(both)
        both, each = xp.where(is_phase, 0.0, both), each if is_complex(each) else xp.where(is_phase, 0.0, each)
        terms.append(u @ _checked(0.5 * (both + each), s, g, of_s) @ vh)
        if of_u is not None and u.shape[-2] > s.shape[-1]:
            terms.append(_checked(quotient(of_u - u @ (_h(u) @ of_u), _row(s), tolerance, noise), s, g, of_s) @ vh)
        if of_vh is not None and vh.shape[-1] > s.shape[-1]:
            outside = quotient(of_vh - (of_vh @ _h(vh)) @ vh, _column(s), tolerance, noise)
            terms.append(u @ _checked(outside, s, g, of_s))
    return _total(*terms)


def _eigh(g: TupleCotangent, y: Array) -> Array:
    w, v = _results(y, 2)
    of_values = None if g[0] is None else (v * _row(g[0])) @ _h(v)
    if g[1] is None:
        return of_values
    inner = between_levels(0.5 * _skew(_h(v) @ g[1]), w, _noise(w, w.shape[-1], g[0], g[1]))
    return _total(of_values, v @ _checked(inner, w, g, g[0]) @ _h(v))


def _eig(g: TupleCotangent, y: Array, x: Array) -> Array:
    w, v = (primitives.item(y, which) for which in range(2))
    inner = None if g[0] is None else xp.where(is_diagonal(v), _row(g[0]), 0.0 * v)
    if g[1] is not None:
        turn = _t(v) @ g[1]
        length = xp.where(is_diagonal(turn), xp.real(turn) if is_complex(turn) else turn, 0.0)
        lengths = _row(xp.sum(length, axis=-2))
        noise = _noise(w, w.shape[-1], g[0], g[1])
        between = between_levels(turn - (_t(v) @ xp.conjugate(v)) * lengths, w, noise)
        inner = _total(inner, _checked(between, w, g, g[0]))
    pulled = xp.linalg.solve(_t(v), inner @ _t(v))
    return pulled if is_complex(x) else xp.real(pulled)


def _pinv(g: Array, y: Array, x: Array) -> Array:
    x, y = xp.conjugate(x), xp.conjugate(y)
    k = _h(g) @ y
    left, right = k @ _h(y), _h(y) @ y
    return left - x @ (y @ left) - _h(y @ k) + right @ (_h(g) - k @ x)


TABLE: dict[str, tuple[Any, ...]] = {
    "item": (lambda g, index: TupleCotangent({index: g}),),
    "inv": (_inv,),
    "solve": (_solve_x1, _solve_x2),
    "cholesky": (_cholesky,),
    "qr": (_qr,),
    "svd": (_svd,),
    "eigh": (_eigh,),
    "eig": (_eig,),
    "det": (lambda g, x: _column(_column(g)) * _core.record("cofactor", [x]),),
    "cofactor": (_cofactor,),
    "slogdet": (_slogdet,),
    "pinv": (_pinv,),
    "sqrtm": (_sqrtm,),
}
