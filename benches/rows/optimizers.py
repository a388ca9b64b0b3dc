"""Optimizers for which torch has no fused kernel on the CPU, on one array of 50 million numbers of float32.

Each is checked against its formula, in float64. They have one goal together: the geometric mean over all of them of how
many times as fast as its peer ours is. The peer is torch's foreach form; where torch has no such optimizer, optax under jit, which
is timed wherever its formula is the same. The ceiling reads the gradient, and reads and writes the parameter and the slots.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import Any

import numpy as np

import oxigrad as ox
import sizes
from measure import Contestant, Family, Ready, Row
from rows import adamw
from rows.adamw import BLOCK, CHECKED_STEPS, FOREACH, OPTAX

SHAPES = [(sizes.numbers(50_000_000),)]

# --- formulas: the parameter after each step, with a gradient that stays the same ------------------------------------------


def rmsprop(p: Any, g: Any) -> Iterator[Any]:
    v = 0.0
    while True:
        v = 0.99 * v + 0.01 * g**2
        p = p - 1e-2 * g / (np.sqrt(v) + 1e-8)
        yield p


def nadam(p: Any, g: Any) -> Iterator[Any]:
    m, v, product = 0.0, 0.0, 1.0
    for t in count(1):
        now, ahead = (0.9 * (1 - 0.5 * 0.96 ** (k * 0.004)) for k in (t, t + 1))
        product *= now
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        mean = ahead * m / (1 - product * ahead) + (1 - now) * g / (1 - product)
        p = p - 2e-3 * mean / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        yield p


def radam(p: Any, g: Any) -> Iterator[Any]:
    """Rectified from the sixth step on; epsilon is added to the root of ``v`` itself."""
    m, v, longest = 0.0, 0.0, 2 / (1 - 0.999) - 1
    for t in count(1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        r = longest - 2 * t * 0.999**t / (1 - 0.999**t)
        u = m / (1 - 0.9**t)
        if r > 5:
            rectifier = np.sqrt((r - 4) * (r - 2) * longest / ((longest - 4) * (longest - 2) * r))
            u = u * rectifier * np.sqrt(1 - 0.999**t) / (np.sqrt(v) + 1e-8)
        p = p - 1e-3 * u
        yield p


def adadelta(p: Any, g: Any) -> Iterator[Any]:
    v, u = 0.0, 0.0
    while True:
        v = 0.9 * v + 0.1 * g**2
        move = np.sqrt(u + 1e-6) / np.sqrt(v + 1e-6) * g
        u = 0.9 * u + 0.1 * move**2
        p = p - move
        yield p


def adamax(p: Any, g: Any) -> Iterator[Any]:
    m, u = 0.0, 0.0
    for t in count(1):
        m, u = 0.9 * m + 0.1 * g, np.maximum(0.999 * u, np.abs(g) + 1e-8)
        p = p - 2e-3 / (1 - 0.9**t) * m / u
        yield p


def lion(p: Any, g: Any) -> Iterator[Any]:
    m = 0.0
    while True:
        p = p - 1e-4 * (np.sign(0.9 * m + 0.1 * g) + 0.01 * p)
        m = 0.99 * m + 0.01 * g
        yield p


def lamb(p: Any, g: Any) -> Iterator[Any]:
    m, v = 0.0, 0.0
    for t in count(1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        u = (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-6) + 0.01 * p
        p = p - 1e-2 * np.linalg.norm(p) / np.linalg.norm(u) * u
        yield p


# --- contestants -----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Optimizer:
    """An optimizer in each library (torch: class name and learning rate), its formula, and its number of arrays.

    ``checked`` is the number of steps that are checked; a ``layerwise`` formula needs norms of the whole array.
    """

    ours: Callable[[], Any]
    formula: Callable[[Any, Any], Iterator[Any]]
    slots: int
    torch: tuple[str, float] | None = None
    optax: Callable[[Any], Any] | None = None
    checked: int = CHECKED_STEPS
    is_layerwise: bool = False

    @property
    def peer(self) -> str:
        """The peer that the goal compares with."""
        return FOREACH if self.torch else OPTAX


OPTIMIZERS = {
    "RMSprop": Optimizer(
        lambda: ox.optim.RMSprop(1e-2),
        rmsprop,
        1,
        ("RMSprop", 1e-2),
        lambda optax: optax.rmsprop(1e-2, decay=0.99, eps_in_sqrt=False),
    ),
    "NAdam": Optimizer(lambda: ox.optim.NAdam(2e-3), nadam, 2, ("NAdam", 2e-3)),
    "RAdam": Optimizer(lambda: ox.optim.RAdam(1e-3), radam, 2, ("RAdam", 1e-3), checked=7),
    "Adadelta": Optimizer(
        lambda: ox.optim.Adadelta(1.0), adadelta, 2, ("Adadelta", 1.0), lambda optax: optax.adadelta(1.0, rho=0.9)
    ),
    "Adamax": Optimizer(lambda: ox.optim.Adamax(2e-3), adamax, 2, ("Adamax", 2e-3), lambda optax: optax.adamax(2e-3)),
    "Lion": Optimizer(
        lambda: ox.optim.Lion(1e-4, weight_decay=0.01),
        lion,
        1,
        optax=lambda optax: optax.lion(1e-4, weight_decay=0.01),
    ),
    "LAMB": Optimizer(
        lambda: ox.optim.LAMB(1e-2, weight_decay=0.01),
        lamb,
        2,
        optax=lambda optax: optax.lamb(1e-2, weight_decay=0.01),
        is_layerwise=True,
    ),
}


class Problem(adamw.Problem):
    """One array, its gradient, and where an optimizer's first steps lead."""

    def __init__(self, optimizer: Optimizer) -> None:
        super().__init__(SHAPES)
        self.steps = optimizer.checked
        self.optimizer = optimizer

    @functools.cached_property
    def expected(self) -> np.ndarray:
        """The parameters after the steps that are checked."""
        out = np.empty(self.p.size)
        block = out.size if self.optimizer.is_layerwise else BLOCK
        for start in range(0, out.size, block):
            p, g = (x[start : start + block].astype(np.float64) for x in (self.p, self.g))
            out[start : start + block] = next(islice(self.optimizer.formula(p, g), self.steps - 1, None))
        return out


def ours(problem: Problem) -> Ready:
    """The fused update."""
    model, grads = problem.arrays()
    optimizer = problem.optimizer.ours()
    return problem.ready(lambda: optimizer.update(model, grads), lambda: iter(model))


def contestants(optimizer: Optimizer) -> list[Contestant]:
    """Ours, the peers that there are, and the ceiling."""
    problem = Problem(optimizer)

    def torch_foreach() -> Ready:
        import torch

        name, rate = optimizer.torch
        return adamw.torch_optimizer(problem, getattr(torch.optim, name), lr=rate, foreach=True)

    def optax_jit() -> Ready:
        import optax

        return adamw.optax_optimizer(problem, optimizer.optax(optax))

    return [
        Contestant("oxigrad", "ours", lambda: ours(problem)),
        *([Contestant(FOREACH, "peer", torch_foreach)] if optimizer.torch else []),
        *([Contestant(OPTAX, "peer", optax_jit)] if optimizer.optax else []),
        Contestant("the streams in NumPy, in blocks", "ceiling", lambda: adamw.numpy_ceiling(problem, optimizer.slots)),
    ]


def row(name: str, optimizer: Optimizer) -> Row:
    """The row of one of them."""
    return Row(f"{name} 1 x 50M", lambda: contestants(optimizer), warm=False)


ROWS = [row(name, optimizer) for name, optimizer in OPTIMIZERS.items()]
FAMILIES = [
    Family(
        "no fused kernel in torch, 1 x 50M",
        4.0,
        {row.name: optimizer.peer for row, optimizer in zip(ROWS, OPTIMIZERS.values(), strict=True)},
    )
]
