"""A user-defined optimizer, Adam with learning-rate dropout, compared with the built-in one and with torch.

The rule stands here as the documentation has it, and is interpreted; the peers are the built-in AdamW, which is compiled, and the
same rule in torch as one writes it there for speed, in foreach calls and in place. A random part of the coordinates stays
in each step, so the check is that each of three steps was taken whole or not at all, and how many were.
"""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

import oxigrad as ox
import sizes
from measure import Contestant, Goal, Ready, Row, close
from rows import adamw
from rows.adamw import ABSOLUTE, BETA1, BETA2, BLOCK, CHECKED_STEPS, EPSILON, RATE, RELATIVE

DROPPED = 0.5


def adam_lrd(
    xp, p, g, m, v, *, step, noise, learning_rate=1e-3, beta1=0.9, beta2=0.999, epsilon=1e-8, dropout_rate=0.0
):
    """The user's rule."""
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    direction = (m / (1 - beta1**step)) / (xp.sqrt(v / (1 - beta2**step)) + epsilon)
    kept = xp.where(noise() < dropout_rate, 0.0, 1.0)
    return p - learning_rate * kept * direction, m, v


AdamLRD = ox.optim.define(adam_lrd)


class Problem(adamw.Problem):
    """One array and its gradient."""

    def ready(self, call: Callable[[], Any], result: Callable[[], Any], slots: Callable[[], Any]) -> Ready:
        """A contestant whose parameter is `result()` and whose moments are `slots()`."""

        def check() -> None:
            for _ in range(CHECKED_STEPS):
                call()
            p, (m, v) = result(), slots()
            for start in range(0, p.size, BLOCK):
                part = slice(start, start + BLOCK)
                check_steps(self.p[part], self.g[part], p[part], m[part], v[part])

        return Ready(call, check)


def check_steps(start: np.ndarray, g: np.ndarray, end: np.ndarray, m: np.ndarray, v: np.ndarray) -> None:
    """Raises `WrongResultError` unless the moments are those of the formula, and the way a sum of some of the steps."""
    start, g = start.astype(np.float64), g.astype(np.float64)
    close(m, (1 - BETA1**CHECKED_STEPS) * g, what="m", relative=RELATIVE)
    close(v, (1 - BETA2**CHECKED_STEPS) * g**2, what="v", relative=1e-5)
    # With a gradient that stays the same, all steps are alike.
    move = RATE * g / (np.abs(g) + EPSILON)
    taken = np.rint(np.divide(start - end, move, out=np.zeros_like(move), where=move != 0))
    close(end, start - taken * move, what="a parameter", relative=RELATIVE, absolute=ABSOLUTE)
    shares = [np.mean(taken == k) for k in range(CHECKED_STEPS + 1)]
    close(shares, [0.125, 0.375, 0.375, 0.125], what="how often so many steps were taken", absolute=0.005)


def ours(problem: Problem) -> Ready:
    """The user's rule."""
    model, grads = problem.arrays()
    optimizer = AdamLRD(RATE, BETA1, BETA2, EPSILON, dropout_rate=DROPPED)
    slots = lambda: optimizer.slots["0"].values()  # noqa: E731
    return problem.ready(lambda: optimizer.update(model, grads), lambda: model[0], slots)


def torch_foreach(problem: Problem) -> Ready:
    """The rule in torch's foreach calls, with no more temporaries than it takes."""
    import torch

    parameters, grads = ([torch.tensor(x) for x in arrays] for arrays in problem.arrays())
    m, v, u, kept = ([torch.zeros_like(p) for p in parameters] for _ in range(4))
    taken = itertools.count(1)

    def call() -> None:
        t = next(taken)
        torch._foreach_lerp_(m, grads, 1 - BETA1)
        torch._foreach_mul_(v, BETA2)
        torch._foreach_addcmul_(v, grads, grads, 1 - BETA2)
        torch._foreach_copy_(u, v)
        torch._foreach_sqrt_(u)
        torch._foreach_mul_(u, (1 - BETA2**t) ** -0.5)
        torch._foreach_add_(u, EPSILON)
        for mask in kept:
            mask.bernoulli_(1 - DROPPED)
        torch._foreach_mul_(kept, m)
        torch._foreach_addcdiv_(parameters, kept, u, -RATE / (1 - BETA1**t))

    return problem.ready(call, lambda: parameters[0].numpy(), lambda: (m[0].numpy(), v[0].numpy()))


BUILT_IN, TORCH = "oxigrad's AdamW", "the rule in torch, foreach"


def contestants() -> list[Contestant]:
    """The rule, the built-in optimizer, torch and the ceiling."""
    shapes = [(sizes.numbers(50_000_000),)]
    problem, plain = Problem(shapes), adamw.Problem(shapes)
    return [
        Contestant("oxigrad", "ours", lambda: ours(problem)),
        Contestant(BUILT_IN, "peer", lambda: adamw.ours(plain)),
        Contestant(TORCH, "peer", lambda: torch_foreach(problem)),
        Contestant("the streams in NumPy, in blocks", "ceiling", lambda: adamw.numpy_ceiling(plain)),
    ]


ROWS = [Row("a user's rule 1 x 50M", contestants, (Goal(0.75, BUILT_IN), Goal(4, TORCH)), warm=False)]
