"""Steps with given gradients and schedules at given steps, for the rows of migration pages that name optimizers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from migration import Pair

STEPS = 6
# Small gradients, beside which an epsilon counts, and large ones.
START, *GRADS = np.random.default_rng(0).standard_normal((STEPS + 1, 4, 3)) * np.array([1.0, 1e-4, 1e-8])


def trained(opt: Any, grads: list[np.ndarray] = GRADS) -> np.ndarray:
    """The parameter after steps of ours with the gradients."""
    model = {"w": START.copy()}
    for g in grads:
        model = opt.update(model, {"w": g.copy()})
    return model["w"]


def moved(their: np.ndarray, own: np.ndarray) -> Pair:
    """The movement of both from the start, scaled by the largest in each column."""
    scale = np.max(np.abs(their - START), axis=0)
    return (their - START) / scale, (own - START) / scale


def at_steps(
    their: Callable[[int], Any], own: Callable[[int], Any], steps: Iterable[int] = range(25)
) -> Iterator[Pair]:
    """Two schedules at the same steps."""
    yield [float(their(step)) for step in steps], [own(step) for step in steps]


def raises(f: Callable[[], Any]) -> bool:
    """Whether a call raises an error: for what is refused by both."""
    try:
        f()
    except Exception:  # noqa: BLE001 - of any library
        return True
    return False
