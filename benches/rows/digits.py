"""A training step of a small classifier: forward, backward and AdamW, on a batch of 8 x 8 digits in float32.

The model and the batch are the same for everybody; only their sizes matter to the clock, so the images are random. The
ceiling is the matrix products alone: one forward and two backward for each layer, into arrays that exist already.
"""

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

import oxigrad as ox
from measure import Contestant, Goal, Ready, Row, close
from oxigrad import xp

SIZES = (64, 128, 64, 10)
BATCH = 64
RATE, DECAY = 1e-3, 1e-2
CHECKED_STEPS = 3
# Three steps of at most RATE each: an error of one part in a thousand of them.
TOLERANCE = 1e-3 * RATE * CHECKED_STEPS


@dataclasses.dataclass
class Dense:
    """A layer: ``x @ weight + bias``."""

    weight: Any
    bias: Any


def initial() -> list[tuple[np.ndarray, np.ndarray]]:
    """Weights and biases, float32."""
    rng = np.random.default_rng(0)

    def layer(inputs: int, outputs: int) -> tuple[np.ndarray, np.ndarray]:
        weight = rng.standard_normal((inputs, outputs)) * (2 / inputs) ** 0.5
        return weight.astype(np.float32), np.full(outputs, 0.01, np.float32)

    return [layer(*ends) for ends in itertools.pairwise(SIZES)]


def batch() -> tuple[np.ndarray, np.ndarray]:
    """Images and labels."""
    rng = np.random.default_rng(1)
    return rng.random((BATCH, SIZES[0]), dtype=np.float32), rng.integers(0, SIZES[-1], BATCH)


def cross_entropy(logits: Any, targets: Any) -> Any:
    """Mean over the batch, for targets of ones and zeros."""
    shifted = logits - ox.stop_gradient(xp.max(logits, axis=1, keepdims=True))
    total = xp.log(xp.sum(xp.exp(shifted), axis=1))
    return xp.mean(total - xp.sum(shifted * targets, axis=1))


def loss(model: list[Dense], images: Any, targets: Any) -> Any:
    """The loss of a list of layers, relu between them."""
    x = images
    for layer in model[:-1]:
        x = xp.maximum(x @ layer.weight + layer.bias, 0.0)
    return cross_entropy(x @ model[-1].weight + model[-1].bias, targets)


def one_hot(labels: np.ndarray) -> np.ndarray:
    """Labels as rows of ones and zeros, float32."""
    return np.eye(SIZES[-1], dtype=np.float32)[labels]


def expected() -> list[np.ndarray]:
    """The parameters after three steps: the gradient by hand, AdamW as the paper writes it, in float64."""
    images, labels = batch()
    p = [a.astype(np.float64) for layer in initial() for a in layer]
    m, v = ([np.zeros_like(a) for a in p] for _ in range(2))
    for t in range(1, CHECKED_STEPS + 1):
        for i, g in enumerate(_gradients(p, images.astype(np.float64), one_hot(labels).astype(np.float64))):
            m[i] = 0.9 * m[i] + 0.1 * g
            v[i] = 0.999 * v[i] + 0.001 * g**2
            step = (m[i] / (1 - 0.9**t)) / (np.sqrt(v[i] / (1 - 0.999**t)) + 1e-8)
            p[i] = p[i] - RATE * step - RATE * DECAY * p[i]
    return p


def _gradients(p: list[np.ndarray], images: np.ndarray, targets: np.ndarray) -> list[np.ndarray]:
    inputs, layers = [images], len(p) // 2
    for i in range(layers):
        x = inputs[-1] @ p[2 * i] + p[2 * i + 1]
        inputs.append(np.maximum(x, 0) if i < layers - 1 else x)
    powers = np.exp(inputs[-1] - inputs[-1].max(axis=1, keepdims=True))
    back = (powers / powers.sum(axis=1, keepdims=True) - targets) / len(images)
    gradients: list[np.ndarray] = []
    for i in reversed(range(layers)):
        gradients = [inputs[i].T @ back, back.sum(axis=0), *gradients]
        back = (back @ p[2 * i].T) * (inputs[i] > 0)
    return gradients


def ready(call: Callable[[], Any], parameters: Callable[[], list[Any]]) -> Ready:
    """A contestant whose parameters are weight, bias, weight, bias, ..."""

    def check() -> None:
        for _ in range(CHECKED_STEPS):
            call()
        for i, (found, right) in enumerate(zip(parameters(), expected(), strict=True)):
            close(found, right, what=f"parameter {i}", absolute=TOLERANCE)

    return Ready(call, check)


def ours() -> Ready:
    """`minimize`, in place."""
    model = [Dense(*layer) for layer in initial()]
    (images, labels), optimizer = batch(), ox.optim.AdamW(learning_rate=RATE, weight_decay=DECAY)
    targets = one_hot(labels)

    def call() -> Any:
        return optimizer.minimize(lambda model: loss(model, images, targets), model)

    return ready(call, lambda: ox.tree.leaves(model))


def torch_step() -> Ready:
    """torch.nn and its fused AdamW."""
    import torch

    images, labels = map(torch.tensor, batch())
    model = torch.nn.Sequential()
    for weight, bias in initial():
        linear = torch.nn.Linear(*weight.shape)
        linear.weight.data, linear.bias.data = torch.tensor(weight.T.copy()), torch.tensor(bias)
        model.extend([linear, torch.nn.ReLU()])
    del model[-1]
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY, fused=True)

    def call() -> Any:
        optimizer.zero_grad()
        value = torch.nn.functional.cross_entropy(model(images), labels)
        value.backward()
        optimizer.step()
        return value

    return ready(call, lambda: [p.detach().numpy().T for p in model.parameters()])


def jax_step() -> Ready:
    """JAX and optax, the whole step compiled, parameters and state donated."""
    import jax
    import optax

    images, labels = map(jax.numpy.asarray, batch())
    transformation = optax.adamw(RATE, weight_decay=DECAY)
    params = jax.tree.map(jax.numpy.asarray, initial())
    held = [params, transformation.init(params)]

    def value(params: Any) -> Any:
        x = images
        for weight, bias in params[:-1]:
            x = jax.nn.relu(x @ weight + bias)
        logits = x @ params[-1][0] + params[-1][1]
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    def step(params: Any, state: Any) -> Any:
        updates, state = transformation.update(jax.grad(value)(params), state, params)
        return optax.apply_updates(params, updates), state

    compiled = jax.jit(step, donate_argnums=(0, 1))

    def call() -> None:
        held[:] = jax.block_until_ready(compiled(*held))

    return ready(call, lambda: list(map(np.asarray, jax.tree.leaves(held[0]))))


def products() -> Ready:
    """The matrix products of a step and nothing else."""
    rng = np.random.default_rng(2)
    work = []
    for inputs, outputs in itertools.pairwise(SIZES):
        x, w, y = ((rng.random(s, dtype=np.float32)) for s in ((BATCH, inputs), (inputs, outputs), (BATCH, outputs)))
        work += [(a, b, np.empty((a.shape[0], b.shape[1]), np.float32)) for a, b in ((x, w), (x.T, y), (y, w.T))]

    def call() -> None:
        for a, b, out in work:
            np.matmul(a, b, out=out)

    def check() -> None:
        call()
        for a, b, out in work:
            close(out, a.astype(np.float64) @ b.astype(np.float64), what="a product", relative=1e-5)

    return Ready(call, check)


def contestants() -> list[Contestant]:
    """Everybody."""
    return [
        Contestant("oxigrad", "ours", ours),
        Contestant("torch, AdamW fused", "peer", torch_step),
        Contestant("jax and optax, jit", "peer", jax_step),
        Contestant("matrix products alone", "ceiling", products),
    ]


ROWS = [Row(f"digits step {'-'.join(map(str, SIZES))}", contestants, (Goal(1, "torch, AdamW fused"),))]
