"""AdamW over CUDA tensors beside PyTorch's fused optimizer, on a GPU; with --small over the CPU's tensors, which shows that rows run.

Rows of large arrays wait for the device in each call: they compare work of the device. Rows of many small arrays do not: they compare the
time that the host takes to enqueue a step, and the device is idle again after the pause.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import oxigrad as ox
import sizes
from measure import Contestant, Goal, Ready, Row, close

RATE, BETA1, BETA2, EPSILON, DECAY = 1e-2, 0.9, 0.999, 1e-8, 1e-2
MAX_NORM, AVERAGED, SCALE = 1.0, 0.999, 1024.0
NAMED = {"lr": RATE, "betas": (BETA1, BETA2), "eps": EPSILON, "weight_decay": DECAY}
STEPS = 3
# Relative and absolute errors of three steps; half an ulp of bfloat16 is 2e-3 of a number.
BOUNDS = {"float32": (1e-6, 1e-6), "bfloat16": (2e-2, 2e-2)}
TORCH, COPY = "torch, fused", "a copy of as many bytes"
# Bytes that AdamW reads and writes for each element of float32, over those that a copy does.
COPIED = 7 / 2


def device() -> str:
    """The device of the tensors; raises `ImportError` without a GPU, unless rows only have to run."""
    import torch

    if torch.cuda.is_available():
        return "cuda"
    if sizes.numbers(1 << 60) == 1 << 60:
        raise ImportError("PyTorch finds no GPU")
    return "cpu"


def wait() -> None:
    """Waits for the device."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


class Problem:
    """Parameters of these shapes and a dtype, and their gradients, both drawn on the device."""

    def __init__(self, shapes: list[tuple[int, ...]], dtype: str, *, waits: bool) -> None:
        self.shapes, self.dtype, self.waits = shapes, dtype, waits

    def tensors(self, seed: int, count: int | None = None) -> list[Any]:
        """Tensors of the shapes, or of the first ones, the same for each seed."""
        import torch

        where = device()
        generator = torch.Generator(where).manual_seed(seed)
        kind = getattr(torch, self.dtype)
        draw = lambda shape: torch.randn(shape, generator=generator, device=where, dtype=kind)  # noqa: E731
        return [draw(shape) for shape in self.shapes[:count]]

    def ready(self, step: Callable[[], Any], tensors: list[Any]) -> Ready:
        """A contestant that steps over ``tensors``, which begin as `tensors` of seed 0, with gradients of seed 1."""

        def call() -> None:
            step()
            if self.waits:
                wait()

        def check() -> None:
            for _ in range(STEPS):
                call()
            wait()
            relative, absolute = BOUNDS[self.dtype]
            for found, p, g in zip(tensors[:5], self.tensors(0, 5), self.tensors(1, 5), strict=True):
                sample = (slice(None, 1000),) * found.ndim
                own = [x.detach()[sample].double().cpu().numpy() for x in (found, p, g)]
                close(own[0], reference(own[1], own[2]), what="p", relative=relative, absolute=absolute)

        return Ready(call, check)


def reference(p: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Three steps of AdamW in float64."""
    m = v = np.zeros_like(p)
    for t in range(1, STEPS + 1):
        m = BETA1 * m + (1 - BETA1) * g
        v = BETA2 * v + (1 - BETA2) * g**2
        p = p - RATE * DECAY * p - RATE * (m / (1 - BETA1**t)) / (np.sqrt(v / (1 - BETA2**t)) + EPSILON)
    return p


def ours(problem: Problem, moments: str = "float32") -> Ready:
    """oxigrad over the tensors, with moments of a dtype."""
    model, grads = problem.tensors(0), problem.tensors(1)
    optimizer = ox.optim.AdamW(RATE, BETA1, BETA2, EPSILON, DECAY, slot_dtype=moments)
    return problem.ready(lambda: optimizer.update(model, grads), model)


def fused(problem: Problem) -> Ready:
    """PyTorch's own."""
    import torch

    return _of_class(problem, torch.optim.AdamW, fused=True)


def of_class(
    tensors: list[Any], gradients: list[Any], kind: Callable[..., Any], **options: Any
) -> tuple[list[Any], Any]:
    """Parameters with gradients, and an optimizer of them, of a class of PyTorch's or of `oxigrad.torch`."""
    model = [p.requires_grad_() for p in tensors]
    for p, g in zip(model, gradients, strict=True):
        p.grad = g
    return model, kind(model, **options)


def _of_class(problem: Problem, kind: Callable[..., Any], **options: Any) -> Ready:
    model, optimizer = of_class(problem.tensors(0), problem.tensors(1), kind, **NAMED, **options)
    return problem.ready(optimizer.step, model)


def modules(problem: Problem) -> Ready:
    """`oxigrad.torch` over the tensors."""
    from oxigrad.torch import AdamW

    return _of_class(problem, AdamW)


def copy(problem: Problem) -> Ready:
    """Half of an array copied seven times: the bytes of a step."""
    import torch

    length = max(1, sum(math.prod(shape) for shape in problem.shapes) // 2)
    source = torch.ones(length, device=device())
    target = torch.zeros_like(source)

    def call() -> None:
        for _ in range(int(2 * COPIED)):
            target.copy_(source)
        wait()

    def check() -> None:
        call()
        close(target[:1000].cpu().numpy(), np.ones(min(length, 1000)), what="the copy")

    return Ready(call, check)


# --- the whole tail ----------------------------------------------------------------------------------------------------


def our_tail(problem: Problem) -> Ready:
    """Unscaling, clipping, AdamW, an average and zeroing as one chain."""
    model, grads, given = problem.tensors(0), problem.tensors(1), problem.tensors(1)
    optimizer = ox.optim.chain(
        ox.optim.ClipByGlobalNorm(MAX_NORM),
        ox.optim.AdamW(RATE, BETA1, BETA2, EPSILON, DECAY),
        ox.optim.EMA(decay=AVERAGED),
        loss_scale=ox.optim.LossScale(SCALE),
        zero_gradients=True,
    )
    averages = lambda: list(optimizer.averaged_parameters().values())  # noqa: E731
    return _tail(problem, lambda: optimizer.update(model, grads), model, grads, given, averages)


def torch_tail(problem: Problem) -> Ready:
    """PyTorch's parts, each in its fastest form."""
    import torch

    model, given = [p.requires_grad_() for p in problem.tensors(0)], problem.tensors(1)
    grads = problem.tensors(1)
    for p, g in zip(model, grads, strict=True):
        p.grad = g
    averages = [p.detach().clone() for p in model]
    optimizer = torch.optim.AdamW(model, **NAMED, fused=True)
    scaler = torch.amp.GradScaler(device(), init_scale=SCALE)
    scaler.scale(torch.ones((), device=device()))  # as before each backward pass

    def step() -> None:
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model, MAX_NORM, foreach=True)
        scaler.step(optimizer)
        scaler.update()
        with torch.no_grad():
            torch._foreach_lerp_(averages, [p.detach() for p in model], 1 - AVERAGED)
        optimizer.zero_grad(set_to_none=False)

    return _tail(problem, step, model, grads, given, lambda: averages)


def _tail(
    problem: Problem,
    step: Callable[[], Any],
    model: list[Any],
    grads: list[Any],
    given: list[Any],
    averages: Callable[[], Iterable[Any]],
) -> Ready:
    def call() -> None:
        step()
        wait()

    def check() -> None:
        norm = math.sqrt(sum(float((g.double() / SCALE).square().sum()) for g in given))
        factor = min(1.0, MAX_NORM / norm) / SCALE
        for _ in range(STEPS):
            for g, value in zip(grads, given, strict=True):
                g.copy_(value)
            call()
        found, p, g = (x[0].detach()[:1000].double().cpu().numpy() for x in (model, problem.tensors(0), given))
        close(found, reference(p, g * factor), what="p", relative=1e-5, absolute=1e-5)
        close(float(grads[0].abs().sum()), 0.0, what="the gradients")
        average = next(iter(averages())).detach()[:1000].double().cpu().numpy()
        # Between the first parameters and the last ones.
        close(np.abs(average - p), 0.0 * p, what="the average", absolute=float(np.abs(found - p).max()))

    return Ready(call, check)


# --- rows --------------------------------------------------------------------------------------------------------------


def seven_billion() -> list[tuple[int, ...]]:
    """The shapes of a decoder of 7B parameters: 16 of its 32 layers, which fit beside two copies of slots."""
    layer = [(4096, 4096)] * 4 + [(11008, 4096)] * 2 + [(4096, 11008)] + [(4096,)] * 2
    return sizes.shapes([(32000, 4096), *layer * 16, (4096,), (32000, 4096)])


def contestants(shapes: list[tuple[int, ...]], dtype: str, *, waits: bool, copies: bool = False) -> list[Contestant]:
    """Ours, PyTorch's, and a copy of the bytes."""
    problem = Problem(shapes, dtype, waits=waits)
    found = [Contestant("oxigrad", "ours", lambda: ours(problem)), Contestant(TORCH, "peer", lambda: fused(problem))]
    return found + [Contestant(COPY, "peer", lambda: copy(problem))] * copies


def halves(moments: str) -> list[Contestant]:
    """Parameters of bfloat16, with moments of a dtype: 14 bytes an element where they are bfloat16, as PyTorch's are, 22 where float32."""
    problem = Problem(seven_billion(), "bfloat16", waits=True)
    return [
        Contestant(f"oxigrad, moments of {moments}", "ours", lambda: ours(problem, moments)),
        Contestant(TORCH, "peer", lambda: fused(problem)),
    ]


def tail() -> list[Contestant]:
    """Ours and PyTorch's."""
    problem = Problem([(sizes.numbers(1_000_000),)] * sizes.items(100), "float32", waits=True)
    return [
        Contestant("oxigrad", "ours", lambda: our_tail(problem)),
        Contestant(TORCH, "peer", lambda: torch_tail(problem)),
    ]


def _many(count: int, length: int) -> Callable[[], list[Contestant]]:
    problem = Problem([(length,)] * sizes.items(count), "float32", waits=False)
    of_modules = Contestant("oxigrad.torch", "peer", lambda: modules(problem))
    return lambda: [*contestants(problem.shapes, "float32", waits=False), of_modules]


ROWS = [
    Row(
        "gpu adamw 1 x 1B",
        lambda: contestants([(sizes.numbers(1_000_000_000),)], "float32", waits=True, copies=True),
        (Goal(0.92, COPY), Goal(1.0, TORCH)),
    ),
    Row("gpu adamw bfloat16 7B", lambda: halves("bfloat16"), (Goal(1.3, TORCH),)),
    Row("gpu adamw bfloat16 7B, moments of float32", lambda: halves("float32"), ()),
    Row("gpu adamw 1000 x 1000, host", _many(1000, 1000), (Goal(10, TORCH),)),
    Row("gpu adamw 5000 x 200, host", _many(5000, 200), (Goal(10, TORCH),)),
    Row("gpu tail 100 x 1M", tail, (Goal(1.6, TORCH),)),
]
