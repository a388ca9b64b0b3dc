"""Integrals by the Gauss-Legendre rule.

The nodes are constants, so integrals are differentiable functions of any library.
"""

import functools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from oxigrad import xp as ops
from oxigrad._typing import Array
from oxigrad.ops.backends import beneath, is_array, namespace
from oxigrad.ops.core.in_place import of_library

# The elements of one call of the integrand, at several nodes: they fit in the cache.
_ELEMENTS = 1 << 15


@functools.cache
def _nodes(count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return 0.5 + 0.5 * nodes, 0.5 * weights


def integral(f: Callable[[Array], Array], count: int, *shaped: Array) -> Array:
    """The integral of ``f`` from zero to one, by the Gauss-Legendre rule.

    It is exact to rounding if ``f`` is near a polynomial of degree ``2 * count - 1``. A function that falls from 1 to
    exp(-40), as an exponential or a normal density, needs 32 nodes.

    Parameters
    ----------
    f
        A function of the nodes, along a first axis before the axes of ``shaped``.
    count
        The number of nodes.
    shaped
        The arrays and numbers on which ``f`` depends, which are broadcast to the shape of the integral.
    """
    shapes = [tuple(getattr(each, "shape", ())) for each in shaped]
    axes = max(map(len, shapes))
    at_once = max(1, _ELEMENTS // max(1, *map(math.prod, shapes)))
    like = [beneath(each) for each in shaped if is_array(beneath(each))]
    total: Array = 0.0
    for start in range(0, count, at_once):
        nodes, weights = (_column(values[start : start + at_once], axes, like) for values in _nodes(count))
        total = total + ops.sum(weights * f(nodes), axis=0)
    return total


def _column(values: NDArray[np.float64], axes: int, like: list[Array]) -> Array:
    """Numbers along an axis before others, as an array of the library and of the dtype of others."""
    column = values.reshape(-1, *(1,) * axes)
    return ops.astype(of_library(column, like[0]), namespace(like[0]).result_type(*like)) if like else column
