"""NumPy's functions of polynomials, given by their coefficients from the highest power down."""

import itertools
from typing import Any

import numpy as np

from oxigrad._core import ShapeError, plain
from oxigrad._typing import Array, Results
from oxigrad.ops.backends import fetched, is_array, is_complex, zeros_of
from oxigrad.ops.core import primitives as ops
from oxigrad.ops.core.array_like import array, in_double
from oxigrad.ops.core.in_place import of_library
from oxigrad.ops.core.products import convolve, outer
from oxigrad.ops.linalg.numpy_keywords import lstsq
from oxigrad.ops.linalg.standard import eigvals, inv
from oxigrad.ops.numpy.extras import atleast_1d


def _coefficients(p: Array) -> Array:
    return atleast_1d(array(p if is_array(plain(p)) or isinstance(p, (list, tuple)) else [p]))


def poly(seq_of_zeros: Array) -> Array:
    """The polynomial with these roots; the characteristic polynomial of a square matrix."""
    roots = _coefficients(seq_of_zeros)
    is_real = not is_complex(roots)
    roots = eigvals(roots) if roots.ndim == 2 else roots
    result = ops.ones_like(roots[:1]) if roots.shape[0] else np.ones(1)
    for root in roots:
        result = convolve(result, ops.stack([ops.ones_like(root), -root]))
    values = np.sort(fetched(plain(roots)))
    pairs = is_real or np.array_equal(values, np.sort(values.conj()))
    return ops.real(result) if is_complex(result) and pairs else result


def polyadd(a1: Array, a2: Array) -> Array:
    """Sum of two polynomials."""
    first, second = _of_one_size(a1, a2)
    return first + second


def polysub(a1: Array, a2: Array) -> Array:
    """Difference of two polynomials."""
    first, second = _of_one_size(a1, a2)
    return first - second


def _of_one_size(*polynomials: Array) -> list[Array]:
    """The coefficients, with the shorter list padded by leading zeros."""
    coefficients = [_coefficients(p) for p in polynomials]
    size = max(p.shape[0] for p in coefficients)
    return [p if p.shape[0] == size else ops.concat([zeros_of((size - p.shape[0],), p), p]) for p in coefficients]


def polymul(a1: Array, a2: Array) -> Array:
    """Product of two polynomials."""
    return convolve(_coefficients(a1), _coefficients(a2))


def polydiv(u: Array, v: Array) -> tuple[Array, Array]:
    """Quotient and remainder of the division of two polynomials; leading zeros of the remainder are left out."""
    u, v = _coefficients(u) + 0.0, _coefficients(v) + 0.0
    count = v.shape[0]
    quotient, rest = [], u
    for place in range(u.shape[0] - count + 1):
        factor = rest[place] / v[0]
        quotient.append(factor)
        rest = ops.concat([rest[:place], rest[place : place + count] - factor * v, rest[place + count :]])
    whole = ops.stack(quotient) if quotient else zeros_of((1,), u)
    values = fetched(plain(rest))
    leading = itertools.takewhile(lambda value: np.allclose(value, 0.0, rtol=1e-14), values[:-1])
    return whole, rest[len(list(leading)) :]


def polyval(p: Array, x: Array) -> Array:
    """The value of a polynomial at ``x``, by Horner's scheme."""
    p, x = _coefficients(p), array(x) if isinstance(x, (list, tuple)) else x
    value: Array = x * 0.0
    for coefficient in p:
        value = value * x + coefficient
    return value


def polyder(p: Array, m: int = 1) -> Array:
    """The ``m``-th derivative of a polynomial."""
    p = _coefficients(p)
    for _ in range(m):
        p = p[:-1] * of_library(np.arange(p.shape[0] - 1, 0, -1.0), p)
    return p


def polyint(p: Array, m: int = 1, k: Array = None) -> Array:
    """The ``m``-th integral of a polynomial, with the constants ``k``."""
    p = _coefficients(p)
    constants = _coefficients(0.0 if k is None else k)
    constants = ops.concat([constants] * m) if constants.shape[0] == 1 and m > 1 else constants
    if constants.shape[0] < m:
        raise ValueError(f"polyint: found {constants.shape[0]} constants, expected {m}, or one")
    for place in range(m):
        p = ops.concat([p / of_library(np.arange(p.shape[0], 0, -1.0), p), constants[place : place + 1]])
    return p


def roots(p: Array) -> Array:
    """The roots of a polynomial: eigenvalues of its companion matrix."""
    p = _coefficients(p) + 0.0
    (places,) = np.nonzero(fetched(plain(p)))
    if not places.size:
        return np.zeros(0)
    trailing = p.shape[0] - 1 - int(places[-1])
    p = p[int(places[0]) : int(places[-1]) + 1]
    if p.shape[0] < 2:
        return zeros_of((trailing,), p)
    below = of_library(np.eye(p.shape[0] - 2, p.shape[0] - 1), p)
    eigenvalues = eigvals(ops.concat([ops.reshape(-p[1:] / p[0], (1, -1)), below]))
    if is_complex(eigenvalues) and not is_complex(p) and not np.any(fetched(plain(eigenvalues)).imag):
        eigenvalues = ops.real(eigenvalues)
    return ops.concat([eigenvalues, zeros_of((trailing,), eigenvalues)]) if trailing else eigenvalues


def vander(x: Array, N: int | None = None, increasing: bool = False) -> Array:
    """The matrix of the powers of ``x``, from the highest down unless ``increasing``."""
    x = in_double(x)
    if len(x.shape) != 1:
        raise ShapeError(f"vander: found the shape {tuple(x.shape)}, expected a vector")
    powers = [ops.ones_like(plain(x)), *itertools.repeat(x, (x.shape[0] if N is None else N) - 1)]
    columns = list(itertools.accumulate(powers, ops.multiply))[: x.shape[0] if N is None else N]
    return ops.stack(columns if increasing else columns[::-1], axis=1)


def polyfit(
    x: Any, y: Any, deg: Any, rcond: float | None = None, full: bool = False, w: Any = None, cov: Any = False
) -> Results:
    """The polynomial of least squares through points: coefficients, and their covariance if ``cov``.

    With ``full``, the residuals, the rank, the singular values and ``rcond`` come after the coefficients.
    """
    x, y, order = in_double(_coefficients(x)), in_double(y) + 0.0, int(deg) + 1
    rcond = x.shape[0] * float(np.finfo(np.float64).eps) if rcond is None else rcond
    left, right = vander(x, order), y
    if w is not None:
        w = ops.reshape(_coefficients(w) + 0.0, (-1, 1))
        left, right = left * w, right * (w if y.ndim == 2 else w[:, 0])
    scale = ops.sqrt(ops.sum(left * left, axis=0))
    left = left / scale
    solution, residuals, rank, singular = lstsq(left, right, rcond)
    shape = (-1, 1) if y.ndim == 2 else (-1,)
    solution = solution / ops.reshape(scale, shape)
    if full:
        return solution, residuals, rank, singular, rcond
    if not cov:
        return solution
    base = inv(ops.matmul(ops.permute_dims(left), left)) / outer(scale, scale)
    if cov == "unscaled":
        return solution, base
    if x.shape[0] <= order:
        raise ValueError(f"polyfit: found {x.shape[0]} points, expected more than {order} for a covariance")
    base = base if y.ndim == 1 else ops.expand_dims(base, 2)
    return solution, base * (residuals if y.ndim == 2 else residuals[0]) / (x.shape[0] - order)
