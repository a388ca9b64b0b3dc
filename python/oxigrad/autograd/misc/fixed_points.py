"""Fixed points by iteration, differentiated by the implicit function theorem."""

from collections.abc import Callable
from typing import Any

from oxigrad import tree, xp
from oxigrad.autodiff.implicit import implicit


def fixed_point(
    f: Callable[[Any], Callable[[Any], Any]], a: Any, x0: Any, distance: Callable[[Any, Any], Any], tol: float
) -> Any:
    """Solution x of ``x = f(a)(x)`` by iteration from ``x0``, until two iterates are within ``tol`` by ``distance``."""

    def residual(x: Any, a: Any) -> Any:
        return tree.map(lambda x, y: x - y, x, f(a)(x))

    def solve(product: Callable[[Any], Any], b: Any) -> Any:
        return _iterated(lambda v: v - product(v) + b, b, lambda v, w: xp.max(xp.abs(v - w)), tol)

    return implicit(residual, lambda a: _iterated(f(a), x0, distance, tol), solve)(a)


def _iterated(step: Callable[[Any], Any], previous: Any, distance: Callable[[Any, Any], Any], tol: float) -> Any:
    x = step(previous)
    while distance(x, previous) > tol:
        x, previous = step(x), x
    return x
