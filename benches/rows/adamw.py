"""AdamW on float32: one large array, many small ones, and the parameters of known models.

The ceiling moves the streams of an AdamW step (reads p, g, m, v; writes p, m, v, in place) with one addition for each
output. It exists twice. As a rule run by oxigrad's own executor over one flat array, it is the memory limit as this
executor reaches it, without any cost for each array. As a loop of NumPy over blocks that fit the second-level cache, on
as many threads, it says the same without any of our code, so that a slow executor cannot hide behind its own ceiling.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import oxigrad as ox
import sizes
from measure import Contestant, Goal, Ready, Row, close

RATE, BETA1, BETA2, EPSILON, DECAY = 1e-2, 0.9, 0.999, 1e-8, 1e-2
CHECKED_STEPS = 3
# A step rounds a parameter to float32 twice (decay and update), by 6e-8 of itself each time, so three steps by 3.6e-7;
# what is absolute is the error of the updates, of 1e-2 each and good to a few parts in a million. JAX computes the bias
# correction in float32, where 1 - 0.999 has only four digits left: its updates are good to 3e-5.
RELATIVE, ABSOLUTE, ABSOLUTE_JAX = 4e-7, 1e-7, 1e-6
BLOCK = 1 << 20
CACHED = 1 << 15
MOST_COMPILED = 1000

Arrays = list[np.ndarray]


def stream(xp, p, g, m, v, *, k=1.0):
    """The streams of AdamW with next to no arithmetic."""
    return p + g, m + g, v + g


Stream = ox.optim.define(stream)


class Problem:
    """Parameters of these shapes, their gradients, and where so many steps must lead."""

    steps = CHECKED_STEPS

    def __init__(self, shapes: list[tuple[int, ...]]) -> None:
        self.shapes = shapes
        self.ends = np.cumsum([math.prod(shape) for shape in shapes])
        rng = np.random.default_rng(0)
        self.p = rng.standard_normal(self.ends[-1], dtype=np.float32)
        self.g = rng.standard_normal(self.ends[-1], dtype=np.float32)

    def arrays(self) -> tuple[Arrays, Arrays]:
        """Parameters and gradients, each in separate memory."""
        return self.split(self.p), self.split(self.g)

    def split(self, flat: np.ndarray) -> Arrays:
        """A flat array cut into parameters, copied."""
        return [
            part.reshape(shape).copy() for part, shape in zip(np.split(flat, self.ends[:-1]), self.shapes, strict=True)
        ]

    @functools.cached_property
    def expected(self) -> np.ndarray:
        """The parameters after three steps as the paper writes them, in float64, block by block."""
        out = np.empty(self.p.size)
        for start in range(0, out.size, BLOCK):
            part = slice(start, start + BLOCK)
            out[part] = reference(self.p[part], self.g[part])
        return out

    def check(self, call: Callable[[], Any], result: Callable[[], Iterator[Any]], absolute: float) -> None:
        """Takes a few steps and compares every parameter with the reference."""
        for _ in range(self.steps):
            call()
        for i, (found, end) in enumerate(zip(result(), self.ends, strict=True)):
            flat = np.asarray(found).reshape(-1)
            for start in range(0, flat.size, BLOCK):
                part = flat[start : start + BLOCK]
                at = end - flat.size + start
                near(part, self.expected[at : at + part.size], f"parameter {i}", absolute)

    def ready(self, call: Callable[[], Any], result: Callable[[], Iterator[Any]], absolute: float = ABSOLUTE) -> Ready:
        """A contestant whose parameters are `result()`."""
        return Ready(call, lambda: self.check(call, result, absolute))


def near(found: Any, expected: np.ndarray, what: str, absolute: float = ABSOLUTE) -> None:
    """`close`, as near as float32 allows."""
    close(found, expected, what=what, relative=RELATIVE, absolute=absolute)


def reference(p: np.ndarray, g: np.ndarray) -> np.ndarray:
    """AdamW after Loshchilov and Hutter (arXiv:1711.05101), algorithm 2, in float64."""
    p, g = p.astype(np.float64), g.astype(np.float64)
    m, v = np.zeros_like(p), np.zeros_like(p)
    for t in range(1, CHECKED_STEPS + 1):
        m = BETA1 * m + (1 - BETA1) * g
        v = BETA2 * v + (1 - BETA2) * g**2
        corrected = (m / (1 - BETA1**t)) / (np.sqrt(v / (1 - BETA2**t)) + EPSILON)
        p = p - RATE * corrected - RATE * DECAY * p
    return p


def ours(problem: Problem) -> Ready:
    """The fused update over the whole list in one dispatch."""
    model, grads = problem.arrays()
    optimizer = ox.optim.AdamW(RATE, BETA1, BETA2, EPSILON, DECAY)
    return problem.ready(lambda: optimizer.update(model, grads), lambda: iter(model))


def torch_adamw(problem: Problem, **kind: bool) -> Ready:
    """torch.optim.AdamW with `fused=True` or `foreach=True`."""
    import torch

    named = {"lr": RATE, "betas": (BETA1, BETA2), "eps": EPSILON, "weight_decay": DECAY}
    return torch_optimizer(problem, torch.optim.AdamW, **named, **kind)


def torch_optimizer(problem: Problem, make: Callable[..., Any], **named: Any) -> Ready:
    """One of torch's optimizers."""
    import torch

    parameters = []
    for p, g in zip(*problem.arrays(), strict=True):
        parameter = torch.tensor(p, requires_grad=True)
        parameter.grad = torch.tensor(g)
        parameters.append(parameter)
    optimizer = make(parameters, **named)
    return problem.ready(optimizer.step, lambda: (p.detach().numpy() for p in parameters))


def optax_adamw(problem: Problem) -> Ready:
    """optax.adamw under jit."""
    import optax

    return optax_optimizer(problem, optax.adamw(RATE, BETA1, BETA2, EPSILON, weight_decay=DECAY))


def optax_optimizer(problem: Problem, transformation: Any) -> Ready:
    """A transformation under jit, parameters and state donated; compiled before it is timed, blocked on in the call."""
    import jax
    import optax

    params, grads = (list(map(jax.numpy.asarray, arrays)) for arrays in problem.arrays())
    held = {"params": params, "state": transformation.init(params)}

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params: Any, state: Any, grads: Any) -> Any:
        updates, state = transformation.update(grads, state, params)
        return optax.apply_updates(params, updates), state

    def call() -> None:
        held["params"], held["state"] = jax.block_until_ready(step(held["params"], held["state"], grads))

    return problem.ready(call, lambda: map(np.asarray, held["params"]), ABSOLUTE_JAX)


def numpy_adamw(problem: Problem) -> Ready:
    """Plain NumPy, in place, with one scratch array for each parameter."""
    params, grads = problem.arrays()
    slots = [(np.zeros_like(p), np.zeros_like(p), np.empty_like(p)) for p in params]
    taken = [0]

    def call() -> None:
        taken[0] += 1
        for p, g, (m, v, scratch) in zip(params, grads, slots, strict=True):
            numpy_update(p, g, m, v, scratch, taken[0])

    return problem.ready(call, lambda: iter(params))


def numpy_update(p: Any, g: Any, m: Any, v: Any, scratch: Any, step: int) -> None:
    """AdamW on one array, without any new one."""
    m *= BETA1
    m += np.multiply(g, 1 - BETA1, out=scratch)
    v *= BETA2
    np.multiply(g, g, out=scratch)
    v += np.multiply(scratch, 1 - BETA2, out=scratch)
    np.sqrt(v, out=scratch)
    scratch *= (1 - BETA2**step) ** -0.5
    scratch += EPSILON
    np.divide(m, scratch, out=scratch)
    scratch *= RATE / (1 - BETA1**step)
    p *= 1 - RATE * DECAY
    p -= scratch


def stream_ceiling(problem: Problem) -> Ready:
    """The streams through our executor, as one flat array."""
    model, grads, optimizer = [problem.p.copy()], [problem.g.copy()], Stream()

    def call() -> None:
        optimizer.update(model, grads)

    def check() -> None:
        call()
        _check_stream(problem, model[0], optimizer.slots["0"].values())

    return Ready(call, check)


class Threads:
    """As many threads as oxigrad uses, each processing its share of ``size`` elements block by block."""

    def __init__(self, size: int) -> None:
        threads = ox.get_num_threads()
        self._pool = ThreadPoolExecutor(threads)
        cuts = [size * i // threads for i in range(threads + 1)]
        self._shares = list(itertools.pairwise(cuts))

    def run(self, f: Callable[[slice], object]) -> None:
        """Calls ``f`` with each block."""

        def share(ends: tuple[int, int]) -> None:
            start, end = ends
            for at in range(start, end, CACHED):
                f(slice(at, min(at + CACHED, end)))

        list(self._pool.map(share, self._shares))


def numpy_ceiling(problem: Problem, count: int = 2) -> Ready:
    """The memory streams through NumPy, with this many slots, block by block on threads (its loops release the GIL)."""
    p, g = problem.p.copy(), problem.g.copy()
    slots, threads = [np.zeros_like(p) for _ in range(count)], Threads(p.size)

    def add(part: slice) -> None:
        for out in (p, *slots):
            np.add(out[part], g[part], out=out[part])

    def call() -> None:
        threads.run(add)

    def check() -> None:
        call()
        _check_stream(problem, p, slots)

    return Ready(call, check)


def _check_stream(problem: Problem, p: Any, slots: Iterable[Any]) -> None:
    near(p, problem.p + problem.g, "p + g")
    for slot in slots:
        near(slot, problem.g, "a slot")


def contestants(shapes: list[tuple[int, ...]]) -> list[Contestant]:
    """Everybody, for arrays of these shapes; not optax for very many, which takes minutes to compile."""
    problem = Problem(shapes)
    everybody = [
        Contestant("oxigrad", "ours", lambda: ours(problem)),
        Contestant("torch fused", "peer", lambda: torch_adamw(problem, fused=True)),
        Contestant("torch foreach", "peer", lambda: torch_adamw(problem, foreach=True)),
        Contestant("optax jit, donated", "peer", lambda: optax_adamw(problem)),
        Contestant("numpy", "peer", lambda: numpy_adamw(problem)),
        Contestant("4 reads, 3 writes, one array", "ceiling", lambda: stream_ceiling(problem)),
        Contestant("the same in NumPy, in blocks", "ceiling", lambda: numpy_ceiling(problem)),
    ]
    return [c for c in everybody if len(shapes) <= MOST_COMPILED or not c.name.startswith("optax")]


def model(shapes: list[tuple[int, ...]]) -> list[Contestant]:
    """The contestants that can be fast on the parameters of a model, of hundreds of megabytes each."""
    shapes = sizes.shapes(shapes)
    return [c for c in contestants(shapes) if c.name in ("oxigrad", "torch fused", "4 reads, 3 writes, one array")]


def resnet50() -> list[tuple[int, ...]]:
    """The 161 parameters of ResNet-50 (He et al. 2015), as torchvision has them."""
    shapes: list[tuple[int, ...]] = [(64, 3, 7, 7), (64,), (64,)]
    inputs = 64
    for blocks, width in ((3, 64), (4, 128), (6, 256), (3, 512)):
        for block in range(blocks):
            convolutions = [(width, inputs, 1, 1), (width, width, 3, 3), (4 * width, width, 1, 1)]
            convolutions += [(4 * width, inputs, 1, 1)] * (block == 0)
            for convolution in convolutions:
                shapes += [convolution, (convolution[0],), (convolution[0],)]
            inputs = 4 * width
    return [*shapes, (1000, 2048), (1000,)]


def transformer(width: int, layers: int) -> list[tuple[int, ...]]:
    """The parameters of the layers of a transformer: two norms, attention, and two products of four times the width."""
    products = [(3 * width, width), (width, width), (4 * width, width), (width, 4 * width)]
    return [s for _ in range(layers) for s in [(width,)] * 4 + [s for p in products for s in (p, p[:1])]]


def gpt2_small() -> list[tuple[int, ...]]:
    """The 148 parameters of GPT-2 small (Radford et al. 2019)."""
    return [(50257, 768), (1024, 768), *transformer(768, 12), (768,), (768,)]


def vit_base() -> list[tuple[int, ...]]:
    """The 152 parameters of ViT-B/16 (Dosovitskiy et al. 2021)."""
    head = [(768,), (768,), (1000, 768), (1000,)]
    return [(1, 1, 768), (1, 197, 768), (768, 3, 16, 16), (768,), *transformer(768, 12), *head]


FUSED, FOREACH, OPTAX, CEILING = "torch fused", "torch foreach", "optax jit, donated", "4 reads, 3 writes, one array"
LARGE = (Goal(0.98, FUSED), Goal(4.5, FOREACH), Goal(1.45, OPTAX), Goal(0.97, CEILING))
SMALL = (Goal(15, FUSED), Goal(60, FOREACH), Goal(20, OPTAX))

ROWS = [
    Row("adamw 1 x 50M", lambda: contestants([(sizes.numbers(50_000_000),)]), LARGE, warm=False),
    Row("adamw 1000 x 1000", lambda: contestants([(1000,)] * sizes.items(1000)), SMALL),
    Row("adamw 1000 x 1000, cold caches", lambda: contestants([(1000,)] * sizes.items(1000)), warm=False),
    Row("adamw 10000 x 100", lambda: contestants([(100,)] * sizes.items(10_000)), (Goal(20, FUSED),)),
    Row("adamw ResNet-50", lambda: model(resnet50()), (Goal(1, FUSED),), warm=False),
    Row("adamw GPT-2 small", lambda: model(gpt2_small()), (Goal(1, FUSED),), warm=False, samples=11),
    Row("adamw ViT-B", lambda: model(vit_base()), (Goal(1, FUSED),), warm=False, samples=11),
]
