"""Derivatives of determinants of diagonal matrices, without division."""

import functools
import itertools
import math
import operator

from oxigrad._typing import Array, Namespace
from oxigrad.ops.backends.arrays import device_of


def diagonal_minors(library: Namespace, s: Array, directions: list[Array]) -> Array:
    """The derivative of the determinant at ``diag(s)`` along ``directions``, as a linear map of one more direction.

    The result is the matrix that multiplies this last direction. By Leibniz' formula, the derivative along ``E_1, ...,
    E_m`` is a sum over distinct indices ``i`` and permutations ``p``. Its terms are ``sign(p) prod_l E_l[i_l, i_p(l)]``
    times the product of all other elements of ``s``.
    """
    count, last = len(directions) + 1, len(directions)
    total = functools.reduce(operator.add, map(library.zeros_like, directions))  # of the shape that they broadcast to
    if s.shape[-1] < count:
        return total
    weights = _products_without(library, s, count)
    is_diagonal = library.eye(s.shape[-1], device=device_of(s)) > 0
    for order in itertools.permutations(range(count)):
        factors = [_factor(library, x, at, order[at], count) for at, x in enumerate(directions)]
        term = functools.reduce(operator.mul, factors, weights)
        summed = tuple(at - count for at in range(count) if at not in (last, order[last]))
        term = library.sum(term, axis=summed) if summed else term
        if order[last] == last:
            term = library.where(is_diagonal, term[..., None], 0.0 * term[..., None])
        else:
            term = library.matrix_transpose(term)  # its row is the last index
        total = total + _sign(order) * term
    return total


def _sign(order: tuple[int, ...]) -> int:
    return math.prod(-1 if a > b else 1 for a, b in itertools.combinations(order, 2))


def _factor(library: Namespace, x: Array, row: int, column: int, count: int) -> Array:
    """The elements ``x[i_row, i_column]`` along the axes of ``count`` indices."""
    if row == column:
        return _placed(library, library.linalg.diagonal(x), (row,), count)
    x = x if row < column else library.matrix_transpose(x)
    return _placed(library, x, (row, column), count)


def _placed(library: Namespace, x: Array, axes: tuple[int, ...], count: int) -> Array:
    """``x`` with its last dimensions, in order, at ``axes`` among ``count``."""
    lead, n = x.shape[: len(x.shape) - len(axes)], x.shape[-1]
    return library.reshape(x, (*lead, *(n if at in axes else 1 for at in range(count))))


def _products_without(library: Namespace, s: Array, count: int) -> Array:
    """The products of ``s`` without ``count`` elements, along ``count`` axes; zero where two indices are equal."""
    index = library.arange(s.shape[-1], device=device_of(s))
    is_behind = index[None, :] > index[:, None]
    ones = library.ones_like(s)[..., None, :]
    behind = _cumulative(library, library.where(is_behind, s[..., None, :], ones))
    between = library.concat([library.ones_like(behind[..., :1]), behind[..., :-1]], axis=-1)
    between = library.where(is_behind, between, library.zeros_like(between))  # of two indices in order
    before = library.concat([library.ones_like(s[..., :1]), _cumulative(library, s)[..., :-1]], axis=-1)
    ordered = _placed(library, before, (0,), count) * _placed(library, behind[..., -1], (count - 1,), count)
    for at in range(count - 1):
        ordered = ordered * _placed(library, between, (at, at + 1), count)
    lead = len(s.shape) - 1
    orders = itertools.permutations(range(lead, lead + count))
    return functools.reduce(operator.add, [library.permute_dims(ordered, (*range(lead), *order)) for order in orders])


def _cumulative(library: Namespace, x: Array) -> Array:
    """Cumulative products along the last axis."""
    width = 1
    while width < x.shape[-1]:
        x = library.concat([x[..., :width], x[..., width:] * x[..., :-width]], axis=-1)
        width *= 2
    return x
