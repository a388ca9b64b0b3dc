"""Contestants on a problem: oxigrad and its peers, over one formula that takes the library as its first argument."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import sizes
from measure import Contestant, Goal, Ready, Row, close
from rows import gradients
from rows.recorded import recorded

Arrays = Sequence[np.ndarray]


def size(full: int, small: int) -> int:
    """A size of a problem, for a measurement and for a test that it runs."""
    return small if sizes.is_small() else full


def gradient_row(
    name: str,
    problem: Callable[[], gradients.Problem],
    goals: tuple[Goal, ...] = (),
    *,
    tolerance: float = 1e-5,
    peers: str = "torch jax",
    by_hand: Callable[[gradients.Objective, Arrays], Contestant] | None = None,
    **settings: Any,
) -> Row:
    """Value and gradient of a scalar function, recorded and as it is, checked by a central difference along a random direction."""

    def build() -> list[Contestant]:
        objective, make = problem()
        args = make()
        every = {
            "torch": Contestant("torch", "peer", lambda: gradients.in_torch(objective, args, tolerance)),
            "jax": Contestant("jax, jit", "peer", lambda: gradients.in_jax(objective, args, tolerance)),
        }
        return [
            Contestant("oxigrad, recorded", "ours", lambda: recorded(objective, args, tolerance)),
            Contestant("oxigrad", "peer", lambda: gradients.ours(objective, args, tolerance)),
            *(every[peer] for peer in peers.split()),
            *([] if by_hand is None else [by_hand(objective, args)]),
            Contestant("NumPy, value only", "ceiling", lambda: gradients.forward_only(objective, args)),
        ]

    return Row(name, build, goals, **settings)


def compared(call: Callable[[], Any], expected: Any, what: str, relative: float, absolute: float = 0.0) -> Ready:
    """A contestant whose result is near an array."""
    return Ready(call, lambda: close(np.asarray(call()), expected, what=what, relative=relative, absolute=absolute))


def along(f: Callable[..., Any], args: Arrays, direction: Arrays, step: float = 1e-6) -> np.ndarray:
    """The central difference of a function of arrays along a direction."""
    ahead, behind = (f(*(a + s * d for a, d in zip(args, direction, strict=True))) for s in (step, -step))
    return (np.asarray(ahead) - np.asarray(behind)) / (2.0 * step)


def directions(args: Arrays) -> list[np.ndarray]:
    """A random direction for each argument."""
    rng = np.random.default_rng(7)
    return [rng.standard_normal(np.shape(arg)) for arg in args]
