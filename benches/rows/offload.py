"""The work of the host where a model of bfloat16 has its optimizer in host memory: float32 masters and moments, bfloat16 in and out.

Peers have no such step: as prime-rl and torchao do, gradients are cast into float32 buffers, an optimizer updates float32 parameters, and
these are cast into the weights. DeepSpeed compiles its CPUAdam on the machine, which takes minutes (``pip install --group offload-peers``);
torchao's CPUOffloadOptimizer refuses all devices but CUDA's and XPUs, and stands in `gpu_offload`: on the host it calls torch's fused AdamW.

The ceiling moves the bytes of a step in NumPy, over blocks that fit the second-level cache, with an integer operation for each number.
"""

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import oxigrad as ox
import sizes
from measure import Contestant, Goal, Ready, Row, close
from rows import adamw
from rows.adamw import BLOCK, CHECKED_STEPS, RATE, Threads, gpt2_small, reference
from rows.precision import WITHIN, bfloat16
from rows.torch_optim import NAMED

MAX_NORM = 1.0
CASTS, DEEPSPEED, BITSANDBYTES = "torch fused, and casts", "DeepSpeed's CPUAdam, and casts", "bitsandbytes, and casts"
CHAIN, CEILING = "torch, clip_grad_norm_ and casts", "the same bytes in NumPy, in blocks"
# A weight of bfloat16 is off by half of its last digit. torch sums squares in float32: its norm is off by 0.4 percent, which changes the
# steps of gradients that are as small as epsilon.
RELATIVE, ABSOLUTE, ABSOLUTE_CHAIN = 2.0**-8, 1e-5, 5e-3


class Problem(adamw.Problem):
    """Weights and gradients that are numbers of bfloat16, in float32; with ``clipped``, gradients are scaled to a norm first."""

    def __init__(self, shapes: list[tuple[int, ...]], *, clipped: bool = False) -> None:
        super().__init__(shapes)
        self.p, self.g = (array.astype(bfloat16()).astype(np.float32) for array in (self.p, self.g))
        norm = np.sqrt(sum(np.sum(self.g[k : k + BLOCK] ** 2.0) for k in range(0, self.g.size, BLOCK)))
        self.factor = min(1.0, MAX_NORM / norm) if clipped else 1.0

    def tensors(self) -> tuple[list[Any], list[Any]]:
        """Weights and gradients as tensors of bfloat16."""
        import torch

        return tuple([torch.from_numpy(x).to(torch.bfloat16) for x in arrays] for arrays in self.arrays())

    def check(self, call: Callable[[], Any], result: Callable[[], Iterator[Any]], absolute: float) -> None:
        """Takes a few steps and compares every weight with the reference."""
        for _ in range(CHECKED_STEPS):
            call()
        flat = np.concatenate([np.asarray(found).reshape(-1) for found in result()])
        for start in range(0, flat.size, BLOCK):
            part = slice(start, start + BLOCK)
            end = reference(self.p[part], self.g[part] * self.factor)
            close(flat[part], end, what="a weight", relative=RELATIVE, absolute=absolute)


class EightBits(Problem):
    """As `Problem`, checked by the norm of all errors: moments of eight bits change steps by a few percent, single ones by more."""

    def check(self, call: Callable[[], Any], result: Callable[[], Iterator[Any]], absolute: float) -> None:
        """Takes a few steps and compares how far the first weights went with the reference."""
        for _ in range(CHECKED_STEPS):
            call()
        part = slice(0, BLOCK)
        flat = np.asarray(next(result())).reshape(-1)[part]
        end = reference(self.p[part], self.g[part])
        error = np.linalg.norm(flat - end) / np.linalg.norm(end - self.p[part])
        close(error, 0.0, what="how far three steps went", absolute=WITHIN)


def ours(problem: Problem, **options: Any) -> Ready:
    """oxigrad.torch.AdamW over weights and gradients of bfloat16."""
    import torch

    from oxigrad.torch import AdamW

    weights, grads = problem.tensors()
    parameters = [torch.nn.Parameter(w) for w in weights]
    for parameter, g in zip(parameters, grads, strict=True):
        parameter.grad = g
    optimizer = AdamW(parameters, **NAMED, **{"master": True, "state_dtype": "float32"} | options)
    return problem.ready(optimizer.step, lambda: (p.detach().float().numpy() for p in parameters), ABSOLUTE)


def with_casts(
    problem: Problem,
    make: Callable[..., Any],
    *,
    max_norm: float | None = None,
    absolute: float = ABSOLUTE,
    **named: Any,
) -> Ready:
    """An optimizer of float32 parameters, between casts of all gradients and of all weights."""
    import torch

    weights, grads = problem.tensors()
    masters = [torch.nn.Parameter(w.float()) for w in weights]
    for master in masters:
        master.grad = torch.empty_like(master)
    buffers, values = [master.grad for master in masters], [master.detach() for master in masters]
    optimizer = make(masters, **named)

    def call() -> None:
        torch._foreach_copy_(buffers, grads)
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(masters, max_norm, foreach=True)
        optimizer.step()
        torch._foreach_copy_(weights, values)

    absolute = ABSOLUTE if max_norm is None else ABSOLUTE_CHAIN
    return problem.ready(call, lambda: (w.float().numpy() for w in weights), absolute)


def torch_fused(problem: Problem, max_norm: float | None = None) -> Ready:
    """torch.optim.AdamW with ``fused=True``."""
    import torch

    return with_casts(problem, torch.optim.AdamW, max_norm=max_norm, **NAMED, fused=True)


def deepspeed_adam(problem: Problem) -> Ready:
    """DeepSpeedCPUAdam, which is compiled when it is made first."""
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    from deepspeed.ops.adam import DeepSpeedCPUAdam

    try:
        return with_casts(problem, DeepSpeedCPUAdam, **NAMED, adamw_mode=True)
    except RuntimeError as error:  # no compiler, or no ninja
        raise ImportError(str(error).partition("\n")[0]) from error


def eight_bits_of_peers(problem: Problem) -> Ready:
    """bitsandbytes' AdamW8bit."""
    import bitsandbytes

    return with_casts(problem, bitsandbytes.optim.AdamW8bit, **NAMED)


def streams(problem: Problem, moment: Any) -> Ready:
    """The gradient read, the weight written, and master and moments read and written."""
    weights, g = np.zeros(problem.p.size, np.uint16), problem.g.view(np.uint16)[1::2].copy()
    master = problem.p.view(np.uint32).copy()
    upper = master.view(np.uint16)[1::2]
    moments = [np.zeros(master.size, moment) for _ in range(2)]
    threads = Threads(master.size)

    def write(part: slice) -> None:
        np.bitwise_xor(master[part], g[part], out=master[part])
        for slot in moments:
            np.invert(slot[part], out=slot[part])
        weights[part] = upper[part]

    def call() -> None:
        threads.run(write)

    def check() -> None:
        before = master.copy()
        call()
        close(master, before ^ g, what="the master weights")
        close(weights, master >> 16, what="the weights")
        close(moments[0], np.invert(np.zeros_like(moments[0])), what="a moment")

    return Ready(call, check)


def contestants(shapes: list[tuple[int, ...]]) -> list[Contestant]:
    """Moments of float32."""
    problem = Problem(shapes)
    return [
        Contestant("oxigrad.torch", "ours", lambda: ours(problem)),
        Contestant("oxigrad.torch, state_device='host'", "peer", lambda: ours(problem, state_device="host")),
        Contestant(CASTS, "peer", lambda: torch_fused(problem)),
        Contestant(DEEPSPEED, "peer", lambda: deepspeed_adam(problem)),
        Contestant(CEILING, "ceiling", lambda: streams(problem, np.uint32)),
    ]


def eight_bits(size: int) -> list[Contestant]:
    """Moments of eight bits."""
    problem = EightBits([(size,)])
    return [
        Contestant("oxigrad.torch", "ours", lambda: ours(problem, state_dtype="8bit")),
        Contestant(BITSANDBYTES, "peer", lambda: eight_bits_of_peers(problem)),
        Contestant(CEILING, "ceiling", lambda: streams(problem, np.uint8)),
    ]


def clipped(size: int) -> list[Contestant]:
    """Moments of float32, gradients scaled to their norm."""
    problem = Problem([(size,)], clipped=True)
    return [
        Contestant("oxigrad.torch", "ours", lambda: ours(problem, max_norm=MAX_NORM)),
        Contestant(CHAIN, "peer", lambda: torch_fused(problem, MAX_NORM)),
        Contestant("oxigrad.torch, not clipped", "ceiling", lambda: _alone(problem)),
    ]


def _alone(problem: Problem) -> Ready:
    """The step without clipping, which is checked in other rows."""
    ready = ours(problem)
    return Ready(ready.call, lambda: None)


# --- a step of minimize ----------------------------------------------------------------------------------------------------


class Distance(adamw.Problem):
    """Half of the squared distance of the weights from targets: the gradient is the difference."""

    def expected_after(self, steps: int) -> np.ndarray:
        """The weights after some steps, clipped by the norm of all, in float64."""
        p, t = self.p.astype(np.float64), self.g.astype(np.float64)
        m, v = np.zeros_like(p), np.zeros_like(p)
        for step in range(1, steps + 1):
            g = p - t
            g *= min(1.0, MAX_NORM / np.sqrt(np.sum(g * g)))
            m += (adamw.BETA1 - 1) * (m - g)
            v += (adamw.BETA2 - 1) * (v - g * g)
            update = (m / (1 - adamw.BETA1**step)) / (np.sqrt(v / (1 - adamw.BETA2**step)) + adamw.EPSILON)
            p -= RATE * update + RATE * adamw.DECAY * p
        return p

    def check(self, call: Callable[[], Any], result: Callable[[], Iterator[Any]], absolute: float) -> None:
        """Takes a few steps and compares the weights with the reference."""
        for _ in range(CHECKED_STEPS):
            call()
        # Gradients are as small as 1e-8 of one, near epsilon: rounded numbers move the step that they take.
        close(next(result()), self.expected_after(CHECKED_STEPS), what="a weight", relative=1e-6, absolute=absolute)


def minimized(problem: Distance, *, clips: bool = True, **options: Any) -> Ready:
    """`minimize`, with the clipping in the chain."""
    model, targets = ([array.copy()] for array in (problem.p, problem.g))
    adam = ox.optim.AdamW(RATE, adamw.BETA1, adamw.BETA2, adamw.EPSILON, adamw.DECAY)
    optimizer = ox.optim.chain(ox.optim.ClipByGlobalNorm(MAX_NORM), adam) if clips else adam

    def loss(model: Any) -> Any:
        return 0.5 * ox.xp.sum((model[0] - targets[0]) ** 2)

    ready = problem.ready(lambda: optimizer.minimize(loss, model, **options), lambda: iter(model), 1e-4)
    return ready if clips else Ready(ready.call, lambda: None)


def torch_minimized(problem: Distance) -> Ready:
    """The same loss, its backward, clip_grad_norm_ and the fused step."""
    import torch

    parameter = torch.tensor(problem.p, requires_grad=True)
    target = torch.tensor(problem.g)
    optimizer = torch.optim.AdamW([parameter], **NAMED, fused=True)

    def call() -> None:
        loss = 0.5 * ((parameter - target) ** 2).sum()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([parameter], MAX_NORM, foreach=True)
        optimizer.step()

    return problem.ready(call, lambda: iter([parameter.detach().numpy()]), 1e-3)


TORCH = "torch, backward to step"


def steps_of_minimize(size: int) -> list[Contestant]:
    """A clipped step with the gradient, and one that is not clipped."""
    problem = Distance([(size,)])
    return [
        Contestant("oxigrad", "ours", lambda: minimized(problem)),
        Contestant("oxigrad, in_backward", "peer", lambda: minimized(problem, in_backward=True)),
        Contestant("oxigrad, record", "peer", lambda: minimized(problem, record=True)),
        Contestant(TORCH, "peer", lambda: torch_minimized(problem)),
        Contestant("oxigrad, not clipped", "ceiling", lambda: minimized(problem, clips=False)),
    ]


ROWS = [
    Row(
        "host step bfloat16 1 x 50M",
        lambda: contestants([(sizes.numbers(50_000_000),)]),
        (Goal(2, CASTS), Goal(1.2, DEEPSPEED), Goal(0.95, CEILING)),
        warm=False,
    ),
    Row(
        "host step bfloat16 GPT-2 small",
        lambda: contestants(sizes.shapes(gpt2_small())),
        (Goal(2, CASTS), Goal(1.2, DEEPSPEED), Goal(0.95, CEILING)),
        warm=False,
        samples=11,
    ),
    Row(
        "host step bfloat16, 8-bit moments 1 x 10M",
        lambda: eight_bits(sizes.numbers(10_000_000)),
        (Goal(10, BITSANDBYTES),),
        warm=False,
        samples=11,
    ),
    Row(
        "host step bfloat16, clipped 1 x 50M",
        lambda: clipped(sizes.numbers(50_000_000)),
        (Goal(2, CHAIN),),
        warm=False,
    ),
    Row(
        "clipped step of minimize 1 x 50M",
        lambda: steps_of_minimize(sizes.numbers(50_000_000)),
        (Goal(1.9, TORCH),),
        warm=False,
        samples=15,
    ),
]
