"""AdamW as a `torch.optim.Optimizer`: ``step()`` of oxigrad.torch, torch and bitsandbytes.

The interchange rows measure the overhead of tensors compared with NumPy arrays, and the time to export as many tensors as DLPack capsules.
"""

from typing import Any

import numpy as np

import oxigrad as ox
import sizes
from measure import Contestant, Goal, Ready, Row
from rows import precision
from rows.adamw import (
    BETA1,
    BETA2,
    DECAY,
    EPSILON,
    RATE,
    Problem,
    gpt2_small,
    ours,
    torch_adamw,
    torch_optimizer,
)

NAMED: dict[str, Any] = {"lr": RATE, "betas": (BETA1, BETA2), "eps": EPSILON, "weight_decay": DECAY}
NUMPY, CAPSULES = "oxigrad over NumPy arrays", "DLPack capsules alone"
FUSED, FOREACH, BITSANDBYTES = "torch fused", "torch foreach", "bitsandbytes, 32 bits"


def drop_in(problem: Problem) -> Ready:
    """oxigrad.torch.AdamW."""
    from oxigrad.torch import AdamW

    return torch_optimizer(problem, AdamW, **NAMED)


def bitsandbytes_adamw(problem: Problem) -> Ready:
    """bitsandbytes' AdamW with a state of float32 on the CPU."""
    import bitsandbytes

    return torch_optimizer(problem, bitsandbytes.optim.AdamW, **NAMED)


def contestants(shapes: list[tuple[int, ...]]) -> list[Contestant]:
    """Everybody, for tensors of these shapes."""
    problem = Problem(shapes)
    return [
        Contestant("oxigrad.torch", "ours", lambda: drop_in(problem)),
        Contestant(FUSED, "peer", lambda: torch_adamw(problem, fused=True)),
        Contestant(FOREACH, "peer", lambda: torch_adamw(problem, foreach=True)),
        Contestant(BITSANDBYTES, "peer", lambda: bitsandbytes_adamw(problem)),
        Contestant(NUMPY, "peer", lambda: ours(problem)),
    ]


# --- eight bits ----------------------------------------------------------------------------------------------------------


def eight_bits_of(problem: precision.Problem, make: Any, **options: Any) -> Ready:
    """An optimizer with moments of eight bits."""
    import torch

    parameter = torch.tensor(problem.p, requires_grad=True)
    parameter.grad = torch.tensor(problem.g)
    optimizer = make([parameter], **NAMED, **options)
    return problem.ready(optimizer.step, lambda: parameter.detach().numpy())


def eight_bits(size: int) -> list[Contestant]:
    """Parameters and gradients of float32, moments of eight bits."""
    problem = precision.Problem(size, np.float32)

    def drop_in() -> Ready:
        from oxigrad.torch import AdamW

        return eight_bits_of(problem, AdamW, state_dtype="8bit")

    return [
        Contestant("oxigrad.torch", "ours", drop_in),
        Contestant("bitsandbytes", "peer", lambda: precision.bitsandbytes_adamw(problem)),
        Contestant(NUMPY, "peer", lambda: precision.ours(problem, slot_dtype="8bit")),
    ]


# --- finding the memory of tensors ---------------------------------------------------------------------------------------


def tensors(problem: Problem) -> Ready:
    """The update of `oxigrad.optim` over tensors."""
    import torch

    model, grads = (list(map(torch.tensor, arrays)) for arrays in problem.arrays())
    optimizer = ox.optim.AdamW(RATE, BETA1, BETA2, EPSILON, DECAY)
    return problem.ready(lambda: optimizer.update(model, grads), lambda: (p.numpy() for p in model))


def capsules(problem: Problem) -> Ready:
    """A capsule for each parameter and gradient, dropped at once."""
    import torch

    every = [torch.tensor(array) for arrays in problem.arrays() for array in arrays]

    def call() -> None:
        for tensor in every:
            tensor.__dlpack__()

    return Ready(call, call)


def interchange(shapes: list[tuple[int, ...]]) -> list[Contestant]:
    """One step over tensors, over arrays, and what finding the memory of the tensors takes by capsules."""
    problem = Problem(shapes)
    return [
        Contestant("oxigrad over tensors", "ours", lambda: tensors(problem)),
        Contestant(NUMPY, "peer", lambda: ours(problem)),
        Contestant(CAPSULES, "peer", lambda: capsules(problem)),
    ]


ROWS = [
    Row(
        "torch.optim adamw 1 x 50M",
        lambda: contestants([(sizes.numbers(50_000_000),)]),
        (Goal(0.98, FUSED), Goal(4.5, FOREACH), Goal(1, BITSANDBYTES), Goal(0.98, NUMPY)),
        warm=False,
    ),
    Row(
        "torch.optim adamw GPT-2 small",
        lambda: contestants(sizes.shapes(gpt2_small())),
        (Goal(1, FUSED), Goal(4, FOREACH), Goal(0.98, NUMPY)),
        warm=False,
        samples=11,
    ),
    Row(
        "torch.optim adamw 1000 x 1000",
        lambda: contestants([(1000,)] * sizes.items(1000)),
        (Goal(2, FUSED), Goal(8, FOREACH), Goal(8, BITSANDBYTES)),
    ),
    Row(
        "torch.optim adamw 8-bit moments 1 x 10M",
        lambda: eight_bits(sizes.numbers(10_000_000)),
        (Goal(50, "bitsandbytes"), Goal(0.98, NUMPY)),
        warm=False,
    ),
    Row("interchange 1000 x 1", lambda: interchange([(1,)] * sizes.items(1000)), (Goal(1, CAPSULES),)),
    Row("interchange 1000 x 1000", lambda: interchange([(1000,)] * sizes.items(1000)), (Goal(1 / 1.15, NUMPY),)),
]
