"""AdamW in low precision: bfloat16 throughout, bfloat16 with float32 slots, and 8-bit moments.

The ceiling moves the same bytes in the same places with one integer operation for each: NumPy over blocks that fit the
second-level cache, on as many threads as oxigrad has. It has none of our code, and none of the conversions.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import oxigrad as ox
import sizes
from measure import Contestant, Goal, Ready, Row, close
from rows.adamw import BETA1, BETA2, BLOCK, CHECKED_STEPS, DECAY, EPSILON, RATE, Threads, reference

# Three steps go 1e-2 each. bfloat16 rounds a parameter of size 1 by up to 2e-3 in each, which is a fifth of the way; moments
# of eight bits are off by up to 3 percent.
WITHIN = 0.25
PART = 1 << 18


class Problem:
    """Parameters and gradients of one dtype, and where three steps lead some of them."""

    def __init__(self, size: int, dtype: Any) -> None:
        rng = np.random.default_rng(0)
        draw = lambda: np.concatenate([rng.standard_normal(BLOCK, dtype=np.float32) for _ in range(-(-size // BLOCK))])  # noqa: E731
        self.p, self.g = draw()[:size].astype(dtype), draw()[:size].astype(dtype)

    def ready(self, call: Callable[[], Any], result: Callable[[], Any]) -> Ready:
        """A contestant whose parameters are `result()`: the first of them are compared with the reference."""

        def check() -> None:
            for _ in range(CHECKED_STEPS):
                call()
            start, end = (x[:PART].astype(np.float64) for x in (self.p, result()))
            expected = reference(self.p[:PART], self.g[:PART])
            error = np.linalg.norm(end - expected) / np.linalg.norm(expected - start)
            close(error, 0.0, what="how far three steps went", absolute=WITHIN)

        return Ready(call, check)


def ours(problem: Problem, **options: Any) -> Ready:
    """The fused update."""
    model, grads = [problem.p.copy()], [problem.g.copy()]
    optimizer = ox.optim.AdamW(RATE, BETA1, BETA2, EPSILON, DECAY, **options)
    return problem.ready(lambda: optimizer.update(model, grads), lambda: model[0])


def torch_adamw(problem: Problem) -> Ready:
    """torch.optim.AdamW with `fused=True`, whose slots have the dtype of the parameter."""
    import torch

    dtype = getattr(torch, str(problem.p.dtype))
    parameter = torch.tensor(problem.p.astype(np.float32)).to(dtype).requires_grad_()
    parameter.grad = torch.tensor(problem.g.astype(np.float32)).to(dtype)
    named = {"lr": RATE, "betas": (BETA1, BETA2), "eps": EPSILON, "weight_decay": DECAY}
    optimizer = torch.optim.AdamW([parameter], **named, fused=True)
    return problem.ready(optimizer.step, lambda: parameter.detach().float().numpy())


def bitsandbytes_adamw(problem: Problem) -> Ready:
    """bitsandbytes' AdamW8bit on the CPU."""
    import bitsandbytes
    import torch

    parameter = torch.tensor(problem.p, requires_grad=True)
    parameter.grad = torch.tensor(problem.g)
    named = {"lr": RATE, "betas": (BETA1, BETA2), "eps": EPSILON, "weight_decay": DECAY}
    optimizer = bitsandbytes.optim.AdamW8bit([parameter], **named)
    return problem.ready(optimizer.step, lambda: parameter.detach().numpy())


def streams(problem: Problem, slot_dtype: Any) -> Ready:
    """The gradient read, the parameter and two slots read and written."""
    words = {1: np.uint8, 2: np.uint16, 4: np.uint32}
    of_bits = lambda array: array.view(words[array.itemsize])  # noqa: E731
    p, g = of_bits(problem.p.copy()), of_bits(problem.g.copy())
    slots = [of_bits(np.zeros(p.size, slot_dtype)) for _ in range(2)]
    threads = Threads(p.size)

    def change(part: slice) -> None:
        np.bitwise_xor(p[part], g[part], out=p[part])
        for slot in slots:
            np.invert(slot[part], out=slot[part])

    def call() -> None:
        threads.run(change)

    def check() -> None:
        before = p.copy()
        call()
        close(p, before ^ g, what="p")
        close(slots[0], np.invert(np.zeros_like(slots[0])), what="a slot")

    return Ready(call, check)


def bfloat16() -> Any:
    """NumPy's dtype of the name."""
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


CEILING = "the same bytes in NumPy, in blocks"


def halves(size: int, slot_dtype: str) -> list[Contestant]:
    """Parameters and gradients of bfloat16."""
    problem = functools.cache(lambda: Problem(size, bfloat16()))
    kept = lambda: bfloat16() if slot_dtype == "bfloat16" else np.dtype(slot_dtype)  # noqa: E731
    stochastic = {"slot_dtype": slot_dtype, "rounding": "stochastic"}
    everybody = [
        Contestant("oxigrad", "ours", lambda: ours(problem(), slot_dtype=slot_dtype)),
        Contestant("oxigrad, stochastic rounding", "peer", lambda: ours(problem(), **stochastic)),
        Contestant("torch fused", "peer", lambda: torch_adamw(problem())),
        Contestant(CEILING, "ceiling", lambda: streams(problem(), kept())),
    ]
    return [c for c in everybody if c.name != "torch fused" or slot_dtype == "bfloat16"]


def eight_bits(size: int) -> list[Contestant]:
    """Parameters and gradients of float32, moments of eight bits."""
    problem = Problem(size, np.float32)
    return [
        Contestant("oxigrad", "ours", lambda: ours(problem, slot_dtype="8bit")),
        Contestant("bitsandbytes", "peer", lambda: bitsandbytes_adamw(problem)),
        Contestant("torch fused, float32", "peer", lambda: torch_adamw(problem)),
        Contestant(CEILING, "ceiling", lambda: streams(problem, np.uint8)),
    ]


ROWS = [
    Row(
        "adamw bfloat16 1 x 50M",
        lambda: halves(sizes.numbers(50_000_000), "bfloat16"),
        (Goal(1.45, "torch fused"), Goal(0.97, CEILING)),
        warm=False,
    ),
    Row(
        "adamw bfloat16, slots float32, 1 x 50M",
        lambda: halves(sizes.numbers(50_000_000), "float32"),
        (Goal(0.97, CEILING),),
        warm=False,
    ),
    Row(
        "adamw 8-bit moments 1 x 50M", lambda: eight_bits(sizes.numbers(50_000_000)), (Goal(0.85, CEILING),), warm=False
    ),
    Row(
        "adamw 8-bit moments 1 x 10M",
        lambda: eight_bits(sizes.numbers(10_000_000)),
        (Goal(50, "bitsandbytes"), Goal(0.85, CEILING)),
        warm=False,
    ),
]
