"""Fixed points by iteration, differentiated by the implicit function theorem."""

from collections.abc import Callable
from typing import Any

from oxigrad.autograd.core import make_vjp, vspace
from oxigrad.autograd.primitives import defvjp, primitive


@primitive
def fixed_point(
    f: Callable[[Any], Callable[[Any], Any]], a: Any, x0: Any, distance: Callable[[Any, Any], Any], tol: float
) -> Any:
    """Solution x of ``x = f(a)(x)`` by iteration from ``x0``, until two iterates are within ``tol`` by ``distance``."""
    step = f(a)
    x, previous = step(x0), x0
    while distance(x, previous) > tol:
        x, previous = step(x), x
    return x


def _fixed_point_vjp(
    ans: Any, f: Callable[[Any], Callable[[Any], Any]], a: Any, x0: Any, distance: Callable[[Any, Any], Any], tol: float
) -> Callable[[Any], Any]:
    """The cotangent w of x solves ``w = g + (df/dx)^T w``, a fixed point too."""

    def adjoint(operands: tuple[Any, Any, Any]) -> Callable[[Any], Any]:
        a, x, g = operands
        pullback, _ = make_vjp(f(a), x)
        return lambda w: vspace(x).add(pullback(w), g)

    pullback, _ = make_vjp(lambda a: f(a)(ans), a)
    return lambda g: pullback(fixed_point(adjoint, (a, ans, g), vspace(x0).zeros(), distance, tol))


defvjp(fixed_point, None, _fixed_point_vjp, None, None, None)
