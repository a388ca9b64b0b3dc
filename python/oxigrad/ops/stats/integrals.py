"""Integrals by Gauss and Legendre's rule, whose nodes are numbers, so that they are differentiable functions of any library."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np


@functools.cache
def _nodes(count: int) -> list[tuple[float, float]]:
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return list(zip((0.5 + 0.5 * nodes).tolist(), (0.5 * weights).tolist(), strict=True))


def integral(f: Callable[[float], Any], count: int) -> Any:
    """The integral of ``f`` from zero to one, exact to rounding for a function that is near to a polynomial of degree ``2 * count - 1``.

    One that falls from 1 to exp(-40), as an exponential or a normal density, needs 32 nodes.
    """
    total: Any = 0.0
    for node, weight in _nodes(count):
        total = total + weight * f(node)
    return total
