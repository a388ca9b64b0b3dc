"""A function with the user's own rule, called 100 times in a chain: value and derivative, beside autograd's `primitive`."""

import math
from collections.abc import Callable
from typing import Any

import oxigrad as ox
from measure import Contestant, Goal, Ready, Row, close

TURNS, X = 100, 0.5
SLOPE = 2.0 / math.sqrt(math.pi)


def chain(erf: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function, composed with itself."""

    def composed(x: Any) -> Any:
        for _ in range(TURNS):
            x = erf(x)
        return x

    return composed


def ready(both: Callable[[], tuple[Any, Any]]) -> Ready:
    """A contestant whose call returns the value and the derivative, which the chain rule gives."""

    def check() -> None:
        value, slope = X, 1.0
        for _ in range(TURNS):
            slope *= SLOPE * math.exp(-value * value)
            value = math.erf(value)
        close(both(), (value, slope), what="the value and the derivative", relative=1e-12)

    return Ready(both, check)


def ours() -> Ready:
    """`oxigrad.custom_vjp`."""
    erf = ox.custom_vjp(math.erf, lambda g, y, x: g * SLOPE * math.exp(-x * x))
    both = ox.value_and_grad(chain(erf))
    return ready(lambda: both(X))


def in_autograd() -> Ready:
    """HIPS autograd's `primitive`."""
    import autograd
    from autograd.extend import defvjp, primitive

    erf = primitive(math.erf)
    defvjp(erf, lambda y, x: lambda g: g * SLOPE * math.exp(-x * x))
    both = autograd.value_and_grad(chain(erf))
    return ready(lambda: both(X))


def without_derivative() -> Ready:
    """The loop alone."""
    loop = chain(math.erf)
    return Ready(lambda: loop(X), lambda: None)


def contestants() -> list[Contestant]:
    """Everybody."""
    return [
        Contestant("oxigrad", "ours", ours),
        Contestant("autograd", "peer", in_autograd),
        Contestant("Python floats, forward only", "ceiling", without_derivative),
    ]


ROWS = [Row("custom_vjp of a float, 100 calls in a chain", contestants, (Goal(2, "autograd"),), operations=TURNS)]
