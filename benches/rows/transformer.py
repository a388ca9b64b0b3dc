"""A step of a small language model: forward, backward and AdamW of the transformer of `examples/transformer.py`, in float32.

27 letters, 32 texts of 64 letters, 2 blocks of width 64 with 4 heads. The letters are random: only sizes matter to the clock. Torch has its own layers
(`layer_norm`, `scaled_dot_product_attention`, `cross_entropy`), as one writes it there. Each loss is compared with that of float64 at the
parameters of the contestant, and the first step with the signs of central differences.
"""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import oxigrad as ox
from measure import Contestant, Goal, Ready, Row, WrongResultError, close
from rows.recorded import past_audits

RATE, DECAY = 1e-3, 1e-2
LETTERS = 27
CHECKED_STEPS = 3
CHECKED_PARAMETERS = 12


def demo() -> ModuleType:
    """The example as a module, with 27 letters; raises `ImportError` where its packages are missing."""
    file = Path(__file__).resolve().parents[2] / "examples" / "transformer.py"
    spec = importlib.util.spec_from_file_location("transformer_demo", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.LETTERS = [*map(chr, range(LETTERS))]
    return module


class Problem:
    """The example's model at its start, and a batch: what everybody is given."""

    def __init__(self) -> None:
        self.demo = demo()
        shape = (self.demo.BATCH, self.demo.CONTEXT + 1)
        self.tokens = np.random.default_rng(1).integers(0, LETTERS, shape)
        self.structure = ox.tree.flatten(self.model())[1]

    def model(self) -> Any:
        """A new model, always the same."""
        return self.demo.new_model(np.random.default_rng(0))

    def arrays(self) -> list[np.ndarray]:
        """The parameters of a new model."""
        return ox.tree.leaves(self.model())

    def loss(self, arrays: list[Any]) -> float:
        """The loss in float64, at these parameters."""
        double = [np.asarray(array, np.float64) for array in arrays]
        return float(self.demo.cross_entropy(ox.tree.unflatten(self.structure, double), self.tokens))

    def slopes(self) -> list[tuple[int, int, float]]:
        """Central differences by some parameters at the start: array, element, and slope."""
        rng, arrays, found = np.random.default_rng(2), [a.astype(np.float64) for a in self.arrays()], []
        for at in rng.integers(0, len(arrays), CHECKED_PARAMETERS):
            element, values = int(rng.integers(arrays[at].size)), []
            for step in (1e-5, -1e-5):
                moved = [*arrays[:at], arrays[at].copy(), *arrays[at + 1 :]]
                moved[at].flat[element] += step
                values.append(self.loss(moved))
            found.append((int(at), element, (values[0] - values[1]) / 2e-5))
        return found

    def ready(self, call: Callable[[], Any], parameters: Callable[[], list[Any]]) -> Ready:
        """A contestant whose call returns the loss before its step."""

        def check() -> None:
            start = self.arrays()
            for step in range(CHECKED_STEPS):
                expected = self.loss(parameters())
                close(call(), expected, what=f"the loss of step {step}", relative=1e-4)
                if step:
                    continue
                for at, element, slope in self.slopes():
                    before = float(start[at].flat[element])
                    moved = float(np.asarray(parameters()[at]).flat[element]) - before * (1 - RATE * DECAY)
                    if abs(slope) > 1e-5 and not abs(moved + RATE * np.sign(slope)) < 0.05 * RATE:
                        raise WrongResultError(
                            f"element {element} of array {at} moved by {moved}, its slope is {slope}"
                        )

        return Ready(call, check)


def ours(problem: Problem, *, record: bool) -> Ready:
    """`minimize`, with a recording or without."""
    model, optimizer = problem.model(), ox.optim.AdamW(learning_rate=RATE, weight_decay=DECAY)
    cross_entropy, tokens = problem.demo.cross_entropy, problem.tokens

    def loss(model: Any) -> Any:
        return cross_entropy(model, tokens)

    def call() -> Any:
        return float(optimizer.minimize(loss, model, record=record))

    if record:
        recorded = ox.record(ox.value_and_grad(loss))
        recorded(model)
        if not recorded.recordings:
            raise RuntimeError(f"it was not recorded: {recorded.why}")
    ready = problem.ready(call, lambda: ox.tree.leaves(model))
    return past_audits(ready) if record else ready


def torch_step(problem: Problem) -> Ready:
    """Torch's layers and its fused AdamW."""
    import torch
    from torch.nn import functional as F

    leaves = [torch.tensor(array, requires_grad=True) for array in problem.arrays()]
    model, tokens = ox.tree.unflatten(problem.structure, leaves), torch.tensor(problem.tokens)
    optimizer = torch.optim.AdamW(leaves, lr=RATE, weight_decay=DECAY, fused=True)
    heads = problem.demo.HEADS

    def norm(of: Any, x: Any) -> Any:
        return F.layer_norm(x, x.shape[-1:], of.gain, of.bias, 1e-5)

    def attention(of: Any, x: Any) -> Any:
        batch, length, width = x.shape
        split = [(x @ w).view(batch, length, heads, -1).transpose(1, 2) for w in (of.queries, of.keys, of.values)]
        mixed = F.scaled_dot_product_attention(*split, is_causal=True)
        return mixed.transpose(1, 2).reshape(batch, length, width) @ of.output

    def call() -> Any:
        optimizer.zero_grad()
        x = model.letters[tokens[:, :-1]] + model.places
        for block in model.blocks:
            x = x + attention(block.attention, norm(block.norms[0], x))
            x = x + F.relu(norm(block.norms[1], x) @ block.perceptron.up) @ block.perceptron.down
        scores = norm(model.norm, x) @ model.head
        value = F.cross_entropy(scores.reshape(-1, LETTERS), tokens[:, 1:].reshape(-1))
        value.backward()
        optimizer.step()
        return value.item()

    return problem.ready(call, lambda: [leaf.detach().numpy() for leaf in leaves])


def jax_step(problem: Problem) -> Ready:
    """JAX and optax, the whole step compiled, parameters and state donated."""
    import jax
    import optax

    jnp, tokens, heads = jax.numpy, jax.numpy.asarray(problem.tokens), problem.demo.HEADS
    transformation = optax.adamw(RATE, weight_decay=DECAY)
    params = [jnp.array(array) for array in problem.arrays()]
    held = [params, transformation.init(params)]

    def norm(of: Any, x: Any) -> Any:
        x = x - jnp.mean(x, axis=-1, keepdims=True)
        return x / jnp.sqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-5) * of.gain + of.bias

    def attention(of: Any, x: Any) -> Any:
        split = [(x @ w).reshape(*x.shape[:2], heads, -1) for w in (of.queries, of.keys, of.values)]
        scores = jnp.einsum("bqhd,bkhd->bhqk", *split[:2]) / split[0].shape[-1] ** 0.5
        is_later = np.triu(np.ones(scores.shape[2:], bool), 1)
        shares = jax.nn.softmax(jnp.where(is_later, -jnp.inf, scores), axis=-1)
        return jnp.einsum("bhqk,bkhd->bqhd", shares, split[2]).reshape(x.shape) @ of.output

    def value(params: Any) -> Any:
        model = ox.tree.unflatten(problem.structure, params)
        x = model.letters[tokens[:, :-1]] + model.places
        for block in model.blocks:
            x = x + attention(block.attention, norm(block.norms[0], x))
            x = x + jax.nn.relu(norm(block.norms[1], x) @ block.perceptron.up) @ block.perceptron.down
        scores = norm(model.norm, x) @ model.head
        return optax.softmax_cross_entropy_with_integer_labels(scores, tokens[:, 1:]).mean()

    def step(params: Any, state: Any) -> Any:
        loss, gradient = jax.value_and_grad(value)(params)
        updates, state = transformation.update(gradient, state, params)
        return loss, (optax.apply_updates(params, updates), state)

    compiled = jax.jit(step, donate_argnums=(0, 1))

    def call() -> float:
        loss, held[:] = compiled(*held)
        jax.block_until_ready(held)
        return float(loss)

    return problem.ready(call, lambda: list(map(np.asarray, held[0])))


def products(problem: Problem) -> Ready:
    """The matrix products with the weights, forward and backward, and nothing else."""
    weights = [array for array in problem.arrays() if array.ndim == 2]
    rows = problem.demo.BATCH * problem.demo.CONTEXT
    rng, work = np.random.default_rng(2), []
    for w in weights[2:]:  # without those that are read by index
        x, y = (rng.random((rows, size), dtype=np.float32) for size in w.shape)
        work += [(a, b, np.empty((a.shape[0], b.shape[1]), np.float32)) for a, b in ((x, w), (x.T, y), (y, w.T))]

    def call() -> None:
        for a, b, out in work:
            np.matmul(a, b, out=out)

    return Ready(call, lambda: None)


def contestants() -> list[Contestant]:
    """Everybody."""
    problem = Problem()
    return [
        Contestant("oxigrad, recorded", "ours", lambda: ours(problem, record=True)),
        Contestant("oxigrad", "peer", lambda: ours(problem, record=False)),
        Contestant("torch, AdamW fused", "peer", lambda: torch_step(problem)),
        Contestant("jax and optax, jit", "peer", lambda: jax_step(problem)),
        Contestant("products with weights alone", "ceiling", lambda: products(problem)),
    ]


GOALS = (Goal(2.5, "torch, AdamW fused"), Goal(1.5, "jax and optax, jit"))
ROWS = [Row("recorded: transformer step, 1 thread", contestants, GOALS, samples=15, threads=1)]
