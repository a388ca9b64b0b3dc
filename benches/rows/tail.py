"""A step of mixed-precision training: unscale, clip by the global norm, AdamW, average, copy, set gradients to zero.

The loss scale is undone and gradients are checked for infinities; parameters are averaged, and copied to bfloat16 for the
forward pass; gradients are left zero. So they are zeros in the calls that are timed, which take as long with any numbers.

The ceiling moves the same bytes in NumPy, over blocks that fit the second-level cache, on as many threads: it reads the
gradients once for their norm, and then all streams.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import oxigrad as ox
import sizes
from measure import Contestant, Goal, Ready, Row, WrongResultError, close
from rows import adamw
from rows.adamw import ABSOLUTE, BETA1, BETA2, BLOCK, CHECKED_STEPS, DECAY, EPSILON, RATE, Threads, near
from rows.precision import bfloat16

SCALE = 1024.0
MAX_NORM = 1.0
AVERAGED = 0.999
# torch adds up 50 million squares in float32: its norm is off by 0.4 percent, which shows in the
# steps of gradients that are as small as epsilon.
ABSOLUTE_TORCH = 1e-4


class Problem(adamw.Problem):
    """Parameters of these shapes, and gradients of a scaled loss."""

    def __init__(self, shapes: list[tuple[int, ...]]) -> None:
        super().__init__(shapes)
        self.g *= np.float32(SCALE)

    def ready(
        self,
        call: Callable[[], Any],
        refill: Callable[[], Any],
        result: Callable[[], Iterable[Any]],
        absolute: float = ABSOLUTE,
    ) -> Ready:
        """A contestant whose parameters, averages, copies and gradients are `result()`; `refill` makes the last anew."""

        def check() -> None:
            for _ in range(CHECKED_STEPS):
                refill()
                call()
            p, average, copy, g = (np.concatenate([np.asarray(x).reshape(-1) for x in found]) for found in result())
            norm = np.sqrt(sum(np.sum((self.g[k : k + BLOCK] / SCALE) ** 2.0) for k in range(0, g.size, BLOCK)))
            for start in range(0, g.size, BLOCK):
                part = slice(start, start + BLOCK)
                ends = reference(self.p[part], self.g[part], norm)
                near(p[part], ends[0], "a parameter", absolute)
                near(average[part], ends[1], "an average", absolute)
                close(copy[part], p[part].astype(bfloat16()).astype(np.float32), what="a copy")
            if g.any():
                raise WrongResultError("gradients are not zero")

        return Ready(call, check)


def reference(p: np.ndarray, g: np.ndarray, norm: float) -> tuple[np.ndarray, np.ndarray]:
    """Three steps in float64, with gradients of a common norm: the parameters and their averages."""
    p, g = p.astype(np.float64), g.astype(np.float64) / SCALE * min(1.0, MAX_NORM / norm)
    m, v, average = np.zeros_like(p), np.zeros_like(p), p
    for t in range(1, CHECKED_STEPS + 1):
        m = BETA1 * m + (1 - BETA1) * g
        v = BETA2 * v + (1 - BETA2) * g**2
        p = p - RATE * DECAY * p - RATE * (m / (1 - BETA1**t)) / (np.sqrt(v / (1 - BETA2**t)) + EPSILON)
        average = AVERAGED * average + (1 - AVERAGED) * p
    return p, average


def ours(problem: Problem) -> Ready:
    """One chain."""
    bfloat16()  # gives NumPy the dtype
    optimizer = ox.optim.chain(
        ox.optim.ClipByGlobalNorm(MAX_NORM),
        ox.optim.AdamW(RATE, BETA1, BETA2, EPSILON, DECAY),
        ox.optim.EMA(decay=AVERAGED),
        ox.optim.Copy(),
        loss_scale=ox.optim.LossScale(SCALE),
        zero_gradients=True,
    )
    model, grads = problem.arrays()

    def refill() -> None:
        for g, given in zip(grads, problem.split(problem.g), strict=True):
            g[...] = given

    def result() -> Iterable[Any]:
        copies = optimizer.copied_parameters().values()
        return model, optimizer.averaged_parameters().values(), [copy.astype(np.float32) for copy in copies], grads

    return problem.ready(lambda: optimizer.update(model, grads), refill, result)


def torch_chain(problem: Problem) -> Ready:
    """torch's own parts, each in the fastest way that it has on the CPU: fused, or a foreach call over all parameters."""
    import torch

    arrays, gradients = problem.arrays()
    parameters = [torch.tensor(p, requires_grad=True) for p in arrays]
    for parameter, g in zip(parameters, gradients, strict=True):
        parameter.grad = torch.tensor(g)
    averages = [p.detach().clone() for p in parameters]
    copies = [p.detach().to(torch.bfloat16) for p in parameters]
    named = {"lr": RATE, "betas": (BETA1, BETA2), "eps": EPSILON, "weight_decay": DECAY}
    optimizer = torch.optim.AdamW(parameters, **named, fused=True)
    scaler = torch.amp.GradScaler("cpu", init_scale=SCALE)
    scaler.scale(torch.ones(()))  # which it does before each backward pass

    def call() -> None:
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(parameters, MAX_NORM, foreach=True)
        scaler.step(optimizer)
        scaler.update()
        with torch.no_grad():
            torch._foreach_lerp_(averages, parameters, 1 - AVERAGED)
            torch._foreach_copy_(copies, parameters)
        optimizer.zero_grad(set_to_none=False)

    def refill() -> None:
        for parameter, g in zip(parameters, problem.split(problem.g), strict=True):
            parameter.grad.copy_(torch.from_numpy(g))

    def result() -> Iterable[Any]:
        found = ([p.detach() for p in parameters], averages, [c.float() for c in copies], [p.grad for p in parameters])
        return [[x.numpy() for x in tensors] for tensors in found]

    return problem.ready(call, refill, result, ABSOLUTE_TORCH)


def streams(problem: Problem) -> Ready:
    """The bytes that such a step reads and writes, with an integer operation for each number."""
    of_bits = lambda array: array.view(np.uint32)  # noqa: E731
    p, g = of_bits(problem.p.copy()), of_bits(problem.g.copy())
    slots, copy = [np.zeros_like(p) for _ in range(3)], np.zeros(p.size, np.uint16)
    upper = p.view(np.uint16)[1::2]
    threads = Threads(p.size)

    def write(part: slice) -> None:
        for out in (p, *slots):
            np.bitwise_xor(out[part], g[part], out=out[part])
        copy[part] = upper[part]
        g[part] = 0

    def call() -> None:
        threads.run(lambda part: np.bitwise_or.reduce(g[part]))
        threads.run(write)

    def check() -> None:
        before = problem.p.view(np.uint32) ^ problem.g.view(np.uint32)
        call()
        close(p, before, what="p")
        close(copy, before >> 16, what="the copy")
        close(g, np.zeros_like(g), what="the gradients")

    return Ready(call, check)


TORCH = "torch, GradScaler to zero_grad"


def contestants(shapes: list[tuple[int, ...]]) -> list[Contestant]:
    """Ours, torch's and the ceiling."""
    problem = Problem(shapes)
    return [
        Contestant("oxigrad", "ours", lambda: ours(problem)),
        Contestant(TORCH, "peer", lambda: torch_chain(problem)),
        Contestant("the same bytes in NumPy, in blocks", "ceiling", lambda: streams(problem)),
    ]


ROWS = [
    Row("tail 1 x 50M", lambda: contestants([(sizes.numbers(50_000_000),)]), (Goal(1.75, TORCH),), warm=False),
    Row("tail 1000 x 1000", lambda: contestants([(1000,)] * sizes.items(1000)), (Goal(25, TORCH),)),
]
