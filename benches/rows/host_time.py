"""The time of the host to enqueue a step of AdamW over CUDA tensors, without a GPU.

oxigrad's steps take the road of CUDA tensors, under a driver that does nothing: over tensors in host memory that pose as tensors of a
device. All but the calls of the driver, of which a step makes one launch, is as on a GPU. The result is checked to be that launch.

PyTorch's fused optimizer cannot be driven without a GPU. In its place is the same Python program over tensors of one element in host
memory: what it lacks, a launch for every few dozen tensors and the tables of these, takes longer on a GPU than the arithmetic that it has. So
the ratio is a lower bound of that on a GPU, up to our one launch, and the goals are lower than those of the rows there (`rows/gpu.py`).
Gradients that are fresh are other tensors in each step, as after a backward pass with ``zero_grad(set_to_none=True)``.
"""

import itertools
from collections.abc import Callable
from typing import Any

import oxigrad as ox
import sizes
from measure import Contestant, Goal, Ready, Row, WrongResultError, close
from null_driver import posing
from rows.gpu import of_class

NAMED = {"lr": 1e-2, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 1e-2}
TORCH, MODULES = "torch, fused, of one element", "oxigrad.torch"


class Problem:
    """Parameters of some length and their gradients, which alternate between two sets where they are ``fresh``."""

    def __init__(self, count: int, length: int, *, fresh: bool) -> None:
        self.count, self.length, self.fresh = count, length, fresh

    def tensors(self, length: int) -> list[Any]:
        """New tensors of ones."""
        import torch

        return [torch.ones(length) for _ in range(self.count)]

    def gradients(self, length: int) -> Any:
        """The gradients of one step after another."""
        return itertools.cycle([self.tensors(length) for _ in range(1 + self.fresh)])


def updates(problem: Problem) -> Ready:
    """`oxigrad.optim` over tensors."""
    model, gradients = problem.tensors(problem.length), problem.gradients(problem.length)
    optimizer = ox.optim.AdamW(1e-2, 0.9, 0.999, 1e-8, 1e-2)
    return _posing(
        problem, lambda: optimizer.update(model, next(gradients)), lambda: optimizer._stepper.plan.parameters
    )


def modules(problem: Problem) -> Ready:
    """`oxigrad.torch` over parameters."""
    from oxigrad.torch import AdamW

    step, optimizer = _of_class(problem, problem.length, AdamW)
    return _posing(problem, step, lambda: [p for each in optimizer._resolved.values() for p in each.plan.parameters])


def fused(problem: Problem) -> Ready:
    """PyTorch's fused optimizer over tensors of one element."""
    import torch

    step, optimizer = _of_class(problem, 1, torch.optim.AdamW, fused=True)

    def check() -> None:
        step()
        first = next(iter(optimizer.state))
        # A step from 1 with a gradient of 1: the decay, and the rate.
        close(first.detach().numpy(), [1 - 1e-4 - 1e-2], what="p", relative=1e-5)

    return Ready(step, check)


def _of_class(problem: Problem, length: int, kind: Any, **options: Any) -> tuple[Callable[[], Any], Any]:
    """A step of a class of PyTorch's or of `oxigrad.torch`, and the optimizer."""
    gradients = problem.gradients(length)
    model, optimizer = of_class(problem.tensors(length), next(gradients), kind, **NAMED, **options)

    def step() -> None:
        if problem.fresh:
            for p, g in zip(model, next(gradients), strict=True):
                p.grad = g
        optimizer.step()

    return step, optimizer


def _posing(problem: Problem, step: Callable[[], Any], parameters: Callable[[], Any]) -> Ready:
    """A contestant whose tensors pose as those of a device."""

    def call() -> None:
        with posing():
            step()

    def check() -> None:
        call()
        executors = {p.executor.name for p in parameters()}
        if executors != {"device"} or len(parameters()) != problem.count:
            raise WrongResultError(f"the executors are {executors}")

    return Ready(call, check)


def contestants(problem: Problem) -> list[Contestant]:
    """Ours, over tensors and as a class of PyTorch's, and PyTorch's."""
    return [
        Contestant("oxigrad", "ours", lambda: updates(problem)),
        Contestant(MODULES, "peer", lambda: modules(problem)),
        Contestant(TORCH, "peer", lambda: fused(problem)),
    ]


def _row(count: int, length: int, *, fresh: bool) -> Row:
    kind = "fresh" if fresh else "steady"
    problem = Problem(sizes.items(count), length, fresh=fresh)
    return Row(
        f"host time {count} x {length}, {kind}",
        lambda: contestants(problem),
        (Goal(3 if fresh else 5, TORCH),),
        sizes.items(count),
        samples=15,
    )


ROWS = [_row(count, length, fresh=fresh) for count, length in ((1000, 1000), (5000, 200)) for fresh in (False, True)]
