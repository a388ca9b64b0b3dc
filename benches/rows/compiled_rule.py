"""A user's rule, the moments of Adam and a tanh, beside the same rule by `torch.compile`; the first step, which compiles, on its own.

The gradient stays the same, so that the moments after some steps have a closed form.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import oxigrad as ox
import sizes
from measure import Contestant, Goal, Ready, Row, close

RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.999, 1e-8
#: Steps before the results are compared.
STEPS = 3


def adam_tanh(xp, p, g, m, v, *, step, noise, learning_rate=RATE, beta1=BETA1, beta2=BETA2, epsilon=EPSILON):
    """The user's rule."""
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    return p - learning_rate * xp.tanh(m / (xp.sqrt(v) + epsilon)), m, v


AdamTanh = ox.optim.define(adam_tanh)


class Problem:
    """Arrays of one length and their gradients."""

    def __init__(self, count: int, length: int) -> None:
        self._start, self._gradient = np.random.default_rng(0).standard_normal((2, length), np.float32)
        self.count = count

    def arrays(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """The parameters, which are all alike, and their gradients."""
        return [self._start.copy() for _ in range(self.count)], [self._gradient.copy() for _ in range(self.count)]

    def ready(self, step: Callable[[], Any], parameters: Callable[[], Any]) -> Ready:
        """A contestant whose parameters are compared after some steps."""
        taken = 0

        def call() -> None:
            nonlocal taken
            taken += 1
            step()

        def check() -> None:
            while taken < STEPS:
                call()
            g, expected = self._gradient.astype(np.float64), self._start.astype(np.float64)
            for t in range(1, taken + 1):
                m, v = (1 - BETA1**t) * g, (1 - BETA2**t) * g * g
                expected -= RATE * np.tanh(m / (np.sqrt(v) + EPSILON))
            for parameter in parameters():
                close(parameter, expected, what="a parameter", relative=1e-6, absolute=1e-6)

        return Ready(call, check)


def ours(problem: Problem) -> Ready:
    """The rule."""
    model, grads = problem.arrays()
    optimizer = AdamTanh()
    return problem.ready(lambda: optimizer.update(model, grads), lambda: model)


def in_torch(problem: Problem) -> Ready:
    """The rule in torch, in place, compiled for all tensors at once."""
    import torch

    parameters, grads = ([torch.from_numpy(x) for x in arrays] for arrays in problem.arrays())
    ms, vs = ([torch.zeros_like(p) for p in parameters] for _ in range(2))

    def step() -> None:
        for p, g, m, v in zip(parameters, grads, ms, vs, strict=True):
            m.mul_(BETA1).add_(g, alpha=1 - BETA1)
            v.mul_(BETA2).addcmul_(g, g, value=1 - BETA2)
            p.sub_(torch.tanh(m / (v.sqrt() + EPSILON)), alpha=RATE)

    return problem.ready(torch.compile(step), lambda: [p.numpy() for p in parameters])


def row(name: str, count: int, length: int, faster: float, **settings: Any) -> Row:
    """Both; the goal is to be so many times ``faster`` than `torch.compile`."""

    def build() -> list[Contestant]:
        problem = Problem(sizes.items(count), sizes.numbers(length))
        return [
            Contestant("oxigrad", "ours", lambda: ours(problem)),
            Contestant("torch.compile", "peer", lambda: in_torch(problem)),
        ]

    return Row(name, build, (Goal(faster, "torch.compile"),), first=True, **settings)


ROWS = [
    row("a user's rule with a tanh 1 x 20M", 1, 20_000_000, 1.3, warm=False, samples=15),
    row("a user's rule with a tanh 300 x 1000", 300, 1000, 5.0),
]
