"""Derivative rules of matrix decompositions, inverses, linear solves and matrix functions.

Formulas are those of Giles 2008 ("An extended collection of matrix derivative results"), Murray 2016 ("Differentiation of
the Cholesky decomposition"), Roberts and Roberts 2020 (QR) and Wan and Zhang 2019 (complex SVD). They are written for the
direction of steepest ascent, the conjugate of a cotangent, so that complex results are conjugated first.

The rule of a decomposition takes one `TupleCotangent` with the cotangents of all results in use
(`oxigrad.autodiff.rules.vjp_rules` describes ops with several results). An unused result has no cotangent: the derivative of
eigenvalues alone does not divide by their differences, which only that of eigenvectors needs.
"""

import math
from typing import Any

from oxigrad import _core, xp
from oxigrad._typing import Array
from oxigrad.ops.backends import device_of, is_complex, namespace
from oxigrad.ops.core import primitives
from oxigrad.ops.core.primitives import TupleCotangent
from oxigrad.ops.core.primitives import matrix_transpose as _t

_NOTHING = math.nan


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


def _is_diagonal(x: Array) -> Array:
    """A boolean mask of the diagonal of a matrix, as a plain array."""
    return namespace(x).eye(x.shape[-1], device=device_of(x)) > 0


def _gaps(w: Array, sums: bool = False) -> Array:
    """The divisors ``w_j - w_i`` (times ``w_j + w_i``) of `_over`: one on the diagonal, NaN where two values are equal."""
    gaps = _row(w) - _column(w)
    gaps = gaps * (_row(w) + _column(w)) if sums else gaps
    return xp.where(_is_diagonal(gaps), 1.0, _nonzero(gaps))


def _over(x: Array, gaps: Array) -> Array:
    """``x / gaps``, zero on the diagonal: a complex number over infinity is NaN in CuPy."""
    return xp.where(_is_diagonal(gaps), 0.0, x / gaps)


def _nonzero(x: Array) -> Array:
    """``x`` with NaN in place of zeros: a quotient by zero has no derivative."""
    return xp.where(x == 0, _NOTHING, x)


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


def _cofactor(g: Array, y: Array, x: Array) -> Array:
    """From ``y = det(x) inv(x)^T``."""
    inverse = _t(xp.linalg.inv(x))
    weight = xp.sum(g * y, axis=(-2, -1), keepdims=True)
    return weight * inverse - y @ _t(g) @ inverse


def _slogdet(g: TupleCotangent, y: Array, x: Array) -> Array:
    """From the holomorphic ``log(det(x))``: its real part is ``logabsdet``, its imaginary part the phase of ``sign``."""
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
    rows, values, columns = u.shape[-2], s.shape[-1], vh.shape[-1]
    terms = [None if of_s is None else (u * _row(of_s)) @ vh]
    gaps = None if of_u is None and of_vh is None else _gaps(s, sums=True)
    if of_u is not None:
        turn = _skew(_h(u) @ of_u)
        inner = _over(turn, gaps) * _row(s)
        if is_complex(turn):
            inner = inner + xp.where(_is_diagonal(turn), turn / _row(2.0 * _nonzero(s)), 0.0)
        terms.append(u @ inner @ vh)
        if rows > values:
            scaled = of_u / _row(_nonzero(s))
            terms.append((scaled - u @ (_h(u) @ scaled)) @ vh)
    if of_vh is not None:
        turn = _skew(vh @ _h(of_vh))
        terms.append(u @ (_column(s) * _over(turn, gaps)) @ vh)
        if columns > values:
            scaled = of_vh / _column(_nonzero(s))
            terms.append(u @ (scaled - (scaled @ _h(vh)) @ vh))
    return _total(*terms)


def _eigh(g: TupleCotangent, y: Array) -> Array:
    w, v = _results(y, 2)
    of_values = None if g[0] is None else (v * _row(g[0])) @ _h(v)
    of_vectors = None if g[1] is None else v @ _over(0.5 * _skew(_h(v) @ g[1]), _gaps(w)) @ _h(v)
    return _total(of_values, of_vectors)


def _eig(g: TupleCotangent, y: Array, x: Array) -> Array:
    w, v = (primitives.item(y, which) for which in range(2))
    inner = None if g[0] is None else xp.where(_is_diagonal(v), _row(g[0]), 0.0 * v)
    if g[1] is not None:
        turn = _t(v) @ g[1]
        length = xp.where(_is_diagonal(turn), xp.real(turn) if is_complex(turn) else turn, 0.0)
        lengths = _row(xp.sum(length, axis=-2))
        inner = _total(inner, _over(turn - (_t(v) @ xp.conjugate(v)) * lengths, _gaps(w)))
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
