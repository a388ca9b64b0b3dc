"""AdamW with its state in host memory for a model on a GPU, beside steps on the GPU and the offloading optimizers of others.

Rows begin with "gpu": with --small they run over the CPU's tensors, which shows that they run. Weights and gradients are of bfloat16, as a
backward leaves them; a call is a step, and waits for the device. ``pip install --group offload-peers`` installs the peers.
"""

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import sizes
from measure import Contestant, Goal, Outcome, Ready, Row, Settings, Verdict, close
from rows.gpu import NAMED, STEPS, Problem, device, reference, seven_billion, wait

TORCHAO, DEEPSPEED, RESIDENT = (
    "torchao, CPUOffloadOptimizer",
    "DeepSpeed's CPUAdam, and copies",
    "torch fused, on the device",
)
# Half of the last digit of a weight of size one, and a step that low precision has moved.
RELATIVE, ABSOLUTE = 2.0**-7, 1e-2
MASTER: dict[str, Any] = {"master": True, "state_dtype": "float32"}


def parameters(problem: Problem) -> list[Any]:
    """Parameters with their gradients."""
    import torch

    found = [torch.nn.Parameter(tensor) for tensor in problem.tensors(0)]
    for p, g in zip(found, problem.tensors(1), strict=True):
        p.grad = g
    return found


def ready(problem: Problem, step: Callable[[], Any], model: list[Any]) -> Ready:
    """A contestant whose weights are checked after some steps."""

    def call() -> None:
        step()
        wait()

    def check() -> None:
        for _ in range(STEPS):
            call()
        p, g = problem.tensors(0)[0], problem.tensors(1)[0]
        sample = (slice(None, 1000),) * p.ndim
        found, p, g = (x.detach()[sample].double().cpu().numpy() for x in (model[0], p, g))
        close(found, reference(p, g), what="a weight", relative=RELATIVE, absolute=ABSOLUTE)

    return Ready(call, check)


def ours(problem: Problem, **options: Any) -> Ready:
    """oxigrad.torch.AdamW; by default its state is in host memory."""
    from oxigrad.torch import AdamW

    model = parameters(problem)
    opt = AdamW(model, **NAMED, **MASTER, **({"state_device": "host"} | options))
    return ready(problem, opt.step, model)


def resident(problem: Problem) -> Ready:
    """torch.optim.AdamW with ``fused=True``, whose moments are of bfloat16."""
    import torch

    model = parameters(problem)
    return ready(problem, torch.optim.AdamW(model, **NAMED, fused=True).step, model)


def torchao_offload(problem: Problem) -> Ready:
    """torchao's optimizer, which steps float32 or bfloat16 copies with torch's fused AdamW; it copies gradients in hooks of a backward."""
    if device() != "cuda":
        raise ImportError("torchao offloads from CUDA devices")
    import torch
    from torchao.optim import CPUOffloadOptimizer

    model = parameters(problem)
    grads = [p.grad for p in model]
    for p in model:
        p.grad = None
    optimizer = CPUOffloadOptimizer(model, torch.optim.AdamW, fused=True, **NAMED)

    def step() -> None:
        torch.autograd.backward(model, grads)  # which calls the hooks
        optimizer.step()
        optimizer.zero_grad()

    return ready(problem, step, model)


def deepspeed_offload(problem: Problem) -> Ready:
    """DeepSpeedCPUAdam over float32 copies in page-locked memory, between copies of gradients down and of weights up."""
    import torch
    from deepspeed.ops.adam import DeepSpeedCPUAdam

    model, is_there = parameters(problem), device() == "cuda"
    place = lambda p, dtype: torch.empty(p.shape, dtype=dtype, pin_memory=is_there)  # noqa: E731
    masters = [torch.nn.Parameter(place(p, torch.float32).copy_(p.detach())) for p in model]
    for master, p in zip(masters, model, strict=True):
        master.grad = place(p, torch.float32)
    optimizer = DeepSpeedCPUAdam(masters, **NAMED, adamw_mode=True)

    @torch.no_grad()
    def step() -> None:
        for master, p in zip(masters, model, strict=True):
            master.grad.copy_(p.grad, non_blocking=True)
        wait()
        optimizer.step()
        for master, p in zip(masters, model, strict=True):
            p.copy_(master, non_blocking=True)

    return ready(problem, step, model)


def contestants(shapes: list[tuple[int, ...]], *, resident_too: bool = True) -> list[Contestant]:
    """A state in host memory, and on the device, where there is room for both of the latter as well."""
    problem = Problem(shapes, "bfloat16", waits=True)
    on_device = [
        Contestant("oxigrad.torch, on the device", "peer", lambda: ours(problem, state_device=None)),
        Contestant(RESIDENT, "peer", lambda: resident(problem)),
    ]
    return [
        Contestant("oxigrad.torch, state_device='host'", "ours", lambda: ours(problem)),
        *(on_device if resident_too else ()),
        Contestant(TORCHAO, "peer", lambda: torchao_offload(problem)),
        Contestant(DEEPSPEED, "peer", lambda: deepspeed_offload(problem)),
    ]


@dataclasses.dataclass(frozen=True)
class Hidden:
    """A row that measures the peak of device memory in a step, and the share of the copies that updates hide."""

    name: str

    def run(self, settings: Settings) -> Outcome:
        """Steps with the state in host memory and on the device; the copies alone; the updates alone, of a model in host memory."""
        goal = "device memory of weights and gradients"
        try:
            return self._measured(Problem(seven_billion(), "bfloat16", waits=True), goal)
        except ImportError as error:
            return Outcome(
                [self.name, f"  {error}"], [Verdict(self.name, goal, "nothing", "not measured")], {"row": self.name}
            )

    def _measured(self, problem: Problem, goal: str) -> Outcome:
        import torch

        from oxigrad.torch import AdamW

        is_there = device() == "cuda"
        model = parameters(problem)
        opt = AdamW(model, **NAMED, **MASTER, state_device="host")
        opt.step()
        wait()
        if is_there:
            torch.cuda.reset_peak_memory_stats()
        whole = seconds(opt.step)
        least = 2 * sum(p.nbytes for p in model)
        peak = torch.cuda.max_memory_allocated() if is_there else least
        places = [torch.empty(p.shape, dtype=p.dtype, pin_memory=is_there) for p in model]
        copies = seconds(functools.partial(copied, model, places))
        del opt, places
        host = [torch.nn.Parameter(p.detach().cpu()) for p in model]
        for p, q in zip(host, model, strict=True):
            p.grad = q.grad.cpu()
        inside = AdamW(host, **NAMED, **MASTER)
        inside.step()
        update = seconds(inside.step)
        hidden = float(np.clip((update + copies - whole) / min(update, copies), 0.0, 1.0))
        lines = [
            self.name,
            f"  ours      peak of device memory {peak / 1e9:.3g} GB, {peak / least:.3f} of weights and gradients",
            f"  ours      a step {whole:.3g} s, updates alone {update:.3g} s, copies alone {copies:.3g} s: {hidden:.0%} hidden",
        ]
        word = ("reached" if peak <= 1.02 * least else "MISSED") if is_there else "not measured"
        data = {"row": self.name, "peak": peak, "least": least, "hidden": hidden}
        return Outcome(lines, [Verdict(self.name, goal, f"{peak / least:.3f}", word)], data)


def copied(model: list[Any], places: list[Any]) -> None:
    """Copies all gradients down, and all weights up."""
    for p, place in zip(model, places, strict=True):
        place.copy_(p.grad, non_blocking=True)
    for p, place in zip(model, places, strict=True):
        p.detach().copy_(place, non_blocking=True)


def seconds(call: Callable[[], Any]) -> float:
    """The time of a call, and of the work that it gives the device."""
    wait()
    begin = time.perf_counter()
    call()
    wait()
    return time.perf_counter() - begin


ROWS = [
    Row(
        "gpu step with the state in host memory 1 x 1B",
        lambda: contestants([(sizes.numbers(1_000_000_000),)]),
        (Goal(1, TORCHAO), Goal(1.2, DEEPSPEED)),
        samples=5,
    ),
    Row(
        "gpu step with the state in host memory 7B",
        lambda: contestants(seven_billion(), resident_too=False),
        (Goal(1, TORCHAO), Goal(1.2, DEEPSPEED)),
        samples=5,
    ),
    Hidden("gpu peak memory and hidden copies 7B"),
]
