"""A step of the demo: forward, backward and AdamW on a batch of 64 digits in float32, as `examples/digits.py` does it.

Model, loss and batch size are imported from there. Only sizes matter to the clock, so the images are random. Products
of matrices this small are slower on several threads, in every library: each has one here (JAX has what it began with).
The ceiling is the matrix products alone: one forward and two backward for each layer, into arrays that exist already.
"""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import oxigrad as ox
from measure import Contestant, Goal, Ready, Row, close

RATE, DECAY = 1e-3, 1e-2
CHECKED_STEPS = 3
# Three steps of at most RATE each: an error of one part in a thousand of them.
TOLERANCE = 1e-3 * RATE * CHECKED_STEPS


def demo() -> ModuleType:
    """The example as a module; raises `ImportError` where its packages are missing."""
    file = Path(__file__).resolve().parents[2] / "examples" / "digits.py"
    spec = importlib.util.spec_from_file_location("digits_demo", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Problem:
    """The demo's model at its start, and a batch: what everybody is given."""

    def __init__(self) -> None:
        self.demo = demo()
        rng = np.random.default_rng(1)
        self.images = rng.random((self.demo.BATCH, 64), dtype=np.float32)
        self.labels = rng.integers(0, 10, self.demo.BATCH)

    def model(self) -> Any:
        """A new model, always the same."""
        return self.demo.new_model(np.random.default_rng(0))

    def layers(self) -> list[tuple[np.ndarray, np.ndarray, bool]]:
        """Weight, bias and whether the layer adds its input to its output, of each layer."""
        model = self.model()
        return [(layer.weight, layer.bias, layer.residual) for layer in (*model.hidden, model.head)]

    def expected(self) -> list[np.ndarray]:
        """The parameters after three steps: the gradient by hand, AdamW as the paper writes it, in float64."""
        p = [a.astype(np.float64) for weight, bias, _ in self.layers() for a in (weight, bias)]
        m, v = ([np.zeros_like(a) for a in p] for _ in range(2))
        for t in range(1, CHECKED_STEPS + 1):
            for i, g in enumerate(self.gradients(p, self.images.astype(np.float64))):
                m[i] = 0.9 * m[i] + 0.1 * g
                v[i] = 0.999 * v[i] + 0.001 * g**2
                step = (m[i] / (1 - 0.9**t)) / (np.sqrt(v[i] / (1 - 0.999**t)) + 1e-8)
                p[i] = p[i] - RATE * step - RATE * DECAY * p[i]
        return p

    def gradients(self, p: list[np.ndarray], images: np.ndarray) -> list[np.ndarray]:
        """The gradient of the mean cross-entropy, by hand."""
        residual = [added for _, _, added in self.layers()]
        inputs, signs, last = [images], [], len(residual) - 1
        for i, added in enumerate(residual):
            x = inputs[-1] @ p[2 * i] + p[2 * i + 1]
            signs.append(x > 0 if i < last else np.ones_like(x))
            inputs.append(x * signs[-1] + (inputs[-1] if added else 0))
        powers = np.exp(inputs[-1] - inputs[-1].max(axis=1, keepdims=True))
        back = (powers / powers.sum(axis=1, keepdims=True) - np.eye(10)[self.labels]) / len(images)
        gradients: list[np.ndarray] = []
        for i in reversed(range(len(residual))):
            inner = back * signs[i]
            gradients = [inputs[i].T @ inner, inner.sum(axis=0), *gradients]
            back = inner @ p[2 * i].T + (back if residual[i] else 0)
        return gradients

    def ready(self, call: Callable[[], Any], parameters: Callable[[], list[Any]]) -> Ready:
        """A contestant whose parameters are weight, bias, weight, bias, ..."""

        def check() -> None:
            for _ in range(CHECKED_STEPS):
                call()
            for i, (found, right) in enumerate(zip(parameters(), self.expected(), strict=True)):
                close(found, right, what=f"parameter {i}", absolute=TOLERANCE)

        return Ready(call, check)


def ours(problem: Problem) -> Ready:
    """`value_and_grad` and `update`, as the demo calls them."""
    model, optimizer = problem.model(), ox.optim.AdamW(learning_rate=RATE, weight_decay=DECAY)
    loss_and_grad = ox.value_and_grad(problem.demo.cross_entropy)

    def call() -> Any:
        loss, gradient = loss_and_grad(model, problem.images, problem.labels)
        optimizer.update(model, gradient)
        return float(loss)

    return problem.ready(call, lambda: list(ox.tree.parameters(model).values()))


def torch_step(problem: Problem) -> Ready:
    """torch.nn and its fused AdamW."""
    import torch

    class Layer(torch.nn.Module):
        def __init__(self, weight: np.ndarray, bias: np.ndarray, residual: bool, last: bool) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(*weight.shape)
            self.linear.weight.data, self.linear.bias.data = torch.tensor(weight.T.copy()), torch.tensor(bias)
            self.residual, self.last = residual, last

        def forward(self, x: Any) -> Any:
            y = self.linear(x)
            y = y if self.last else torch.relu(y)
            return x + y if self.residual else y

    layers = problem.layers()
    model = torch.nn.Sequential(*(Layer(*layer, last=i == len(layers) - 1) for i, layer in enumerate(layers)))
    images, labels = torch.tensor(problem.images), torch.tensor(problem.labels)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY, fused=True)

    def call() -> Any:
        optimizer.zero_grad()
        value = torch.nn.functional.cross_entropy(model(images), labels)
        value.backward()
        optimizer.step()
        return value.item()

    return problem.ready(call, lambda: [p.detach().numpy().T for p in model.parameters()])


def jax_step(problem: Problem) -> Ready:
    """JAX and optax, the whole step compiled, parameters and state donated."""
    import jax
    import optax

    images, labels = map(jax.numpy.asarray, (problem.images, problem.labels))
    transformation = optax.adamw(RATE, weight_decay=DECAY)
    residual = [added for _, _, added in problem.layers()]
    params = [(jax.numpy.asarray(weight), jax.numpy.asarray(bias)) for weight, bias, _ in problem.layers()]
    held = [params, transformation.init(params)]

    def value(params: Any) -> Any:
        x = images
        for i, (weight, bias) in enumerate(params):
            y = x @ weight + bias
            y = jax.nn.relu(y) if i < len(params) - 1 else y
            x = x + y if residual[i] else y
        return optax.softmax_cross_entropy_with_integer_labels(x, labels).mean()

    def step(params: Any, state: Any) -> Any:
        updates, state = transformation.update(jax.grad(value)(params), state, params)
        return optax.apply_updates(params, updates), state

    compiled = jax.jit(step, donate_argnums=(0, 1))

    def call() -> None:
        held[:] = jax.block_until_ready(compiled(*held))

    return problem.ready(call, lambda: list(map(np.asarray, jax.tree.leaves(held[0]))))


def products(problem: Problem) -> Ready:
    """The matrix products of a step and nothing else."""
    rng = np.random.default_rng(2)
    work = []
    for w, _, _ in problem.layers():
        x, y = (rng.random((len(problem.labels), size), dtype=np.float32) for size in w.shape)
        work += [(a, b, np.empty((a.shape[0], b.shape[1]), np.float32)) for a, b in ((x, w), (x.T, y), (y, w.T))]

    def call() -> None:
        for a, b, out in work:
            np.matmul(a, b, out=out)

    def check() -> None:
        call()
        for a, b, out in work:
            close(out, a.astype(np.float64) @ b.astype(np.float64), what="a product", absolute=1e-4)

    return Ready(call, check)


def contestants() -> list[Contestant]:
    """Everybody."""
    problem = Problem()
    return [
        Contestant("oxigrad", "ours", lambda: ours(problem)),
        Contestant("torch, AdamW fused", "peer", lambda: torch_step(problem)),
        Contestant("jax and optax, jit", "peer", lambda: jax_step(problem)),
        Contestant("matrix products alone", "ceiling", lambda: products(problem)),
    ]


ROWS = [
    Row("digits step, 1 thread", contestants, (Goal(1, "torch, AdamW fused"),), threads=1),
    Row("digits step, 1 thread, cold caches", contestants, threads=1, warm=False),
]
