"""A chain of small operations, ``y = y * c; y = y + x``, forward and backward: what one operation costs.

Times are for one operation (two in each turn of the loop), forward and backward together. The ceiling is the same loop
without any derivative: on Python's floats for the scalar, on NumPy for arrays.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import elsewhere
import oxigrad as ox
from measure import Contestant, Goal, Ready, Row, close

TURNS = 1000
C = 0.999
X = 0.75
SCALAR = "chain scalar, per op"


def on_arrays(size: int) -> str:
    """The name of the row for arrays of this size."""
    return f"chain array of {size}, per op"


def chain(x: Any) -> Any:
    """``x`` times the sum of the powers of `C` up to `TURNS`."""
    y = x
    for _ in range(TURNS):
        y = y * C
        y = y + x
    return y


# The sum of a geometric series: the chain's derivative, and with X its value.
SLOPE = (1 - C ** (TURNS + 1)) / (1 - C)


def ready(call: Callable[[], tuple[Any, Any]], x: Any) -> Ready:
    """A contestant whose call returns value and gradient (None where it computes none)."""

    def check() -> None:
        value, gradient = call()
        close(value, SLOPE * np.asarray(x), what="the value", relative=1e-11)
        if gradient is not None:
            close(gradient, np.full_like(x, SLOPE), what="the gradient", relative=1e-11)

    return Ready(call, check)


def ours_on_a_number() -> Ready:
    """`value_and_grad` of a Python float."""
    both = ox.value_and_grad(chain)
    return ready(lambda: both(X), X)


def ours_on_an_array(x: np.ndarray) -> Ready:
    """`vjp`, with a cotangent of ones."""
    ones = np.ones_like(x)

    def call() -> tuple[Any, Any]:
        value, pullback = ox.vjp(chain, x)
        return value, pullback(ones)[0]

    return ready(call, x)


def torch_chain(x: Any) -> Ready:
    """PyTorch in float64; 0-dimensional for a number."""
    import torch

    leaf = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    ones = torch.ones_like(leaf)

    def call() -> tuple[Any, Any]:
        value = chain(leaf)
        return value.detach(), torch.autograd.grad(value, leaf, ones)[0]

    return ready(call, x)


def autograd_chain(x: Any) -> Ready:
    """HIPS autograd; on a Python float for a number."""
    from autograd.differential_operators import make_vjp

    make, ones = make_vjp(chain), np.ones_like(x) if isinstance(x, np.ndarray) else 1.0

    def call() -> tuple[Any, Any]:
        pullback, value = make(x)
        return value, pullback(ones)

    return ready(call, x)


def advect_chain(x: Any) -> Ready:
    """advect, whose numbers are arrays."""
    import advect

    x = np.asarray(x, np.float64)
    ones = np.ones_like(x)

    def call() -> tuple[Any, Any]:
        value, pullback = advect.vjp(chain)(x)
        gradient = pullback(ones)
        return value, gradient[0] if isinstance(gradient, tuple) else gradient

    return ready(call, x)


def without_derivative(x: Any) -> Ready:
    """The loop alone."""
    return ready(lambda: (chain(x), None), x)


def on_a_number() -> list[Contestant]:
    """Everybody, on one float64."""
    return [
        Contestant("oxigrad", "ours", ours_on_a_number),
        Contestant("torch", "peer", lambda: torch_chain(X)),
        Contestant("autograd", "peer", lambda: autograd_chain(X)),
        elsewhere.contestant("advect", "chain", SCALAR, lambda: advect_chain(X)),
        Contestant("Python floats, forward only", "ceiling", lambda: without_derivative(X)),
    ]


def on_an_array(size: int) -> list[Contestant]:
    """Everybody, on a float64 array."""
    x = np.random.default_rng(0).uniform(0.5, 1.5, size)
    return [
        Contestant("oxigrad", "ours", lambda: ours_on_an_array(x)),
        Contestant("torch", "peer", lambda: torch_chain(x)),
        Contestant("autograd", "peer", lambda: autograd_chain(x)),
        elsewhere.contestant("advect", "chain", on_arrays(size), lambda: advect_chain(x)),
        Contestant("NumPy, forward only", "ceiling", lambda: without_derivative(x)),
    ]


ON_ARRAYS = (Goal(5, "torch"), Goal(15, "autograd"))
ROWS = [
    Row(SCALAR, on_a_number, (Goal(40, "torch"), Goal(150, "autograd")), operations=2 * TURNS),
    Row(on_arrays(10), lambda: on_an_array(10), ON_ARRAYS, operations=2 * TURNS),
    Row(on_arrays(1000), lambda: on_an_array(1000), ON_ARRAYS, operations=2 * TURNS),
]
