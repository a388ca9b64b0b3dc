"""Handwritten digits with JAX and optax: a network trained by `oxigrad.optax` in one compiled program an epoch.

    python examples/jax_digits.py

The model, the data in memory and the state of the optimizer are pytrees; an epoch is a ``scan`` over its batches under ``jit``. To train
with optax's own optimizer, take ``optax.adamw`` for ``oxigrad.optax.adamw``: the lines are the same.
"""

# pyright: reportMissingImports=false
# JAX and optax are not installed where types are checked.

import sys
import time
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import oxigrad.optax

EPOCHS = 40
BATCH = 32
PEAK = 3e-3
GOAL = 0.97

Params = dict[str, dict[str, jax.Array]]


def new_params(key: Any) -> Params:
    """64 pixels, 128 units, 10 digits: normal weights of variance 2 / inputs (He et al. 2015), and zero biases."""
    sizes = {"hidden": (64, 128), "head": (128, 10)}
    keys = dict(zip(sizes, jax.random.split(key, len(sizes)), strict=True))
    return {
        name: {"weight": jax.random.normal(keys[name], shape) * np.sqrt(2 / shape[0]), "bias": jnp.zeros(shape[1])}
        for name, shape in sizes.items()
    }


def scores(params: Params, images: Any) -> Any:
    """A score for each of the ten digits."""
    hidden = jax.nn.relu(images @ params["hidden"]["weight"] + params["hidden"]["bias"])
    return hidden @ params["head"]["weight"] + params["head"]["bias"]


def loss(params: Params, images: Any, digits: Any) -> Any:
    """The mean cross-entropy."""
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(scores(params, images), digits))


def accuracy(params: Params, images: Any, digits: Any) -> float:
    """The accuracy: the share of the images that are classified correctly."""
    return float(jnp.mean(jnp.argmax(scores(params, images), axis=1) == digits))


def decayed(params: Params) -> Any:
    """The parameters whose weight decays: all but biases."""
    return jax.tree.map(lambda p: p.ndim > 1, params)


def main(epochs: int = EPOCHS, seed: int = 0) -> float:
    """Trains and reports; returns the share of the test images that the model reads right."""
    pixels, digits = load_digits(return_X_y=True)
    images = np.asarray(pixels, np.float32) / 16
    train, test = train_test_split(np.arange(len(images)), test_size=0.2, stratify=digits, random_state=0)
    batches = len(train) // BATCH

    rate = optax.warmup_cosine_decay_schedule(0.0, PEAK, epochs * batches // 10, epochs * batches)
    tx = optax.chain(optax.clip_by_global_norm(1.0), oxigrad.optax.adamw(rate, weight_decay=0.05, mask=decayed))

    @partial(jax.jit, donate_argnums=(0, 1))
    def train_epoch(params: Params, state: Any, order: Any) -> tuple[Params, Any, Any]:
        def step(carry: Any, chosen: Any) -> Any:
            params, state = carry
            value, grads = jax.value_and_grad(loss)(params, jnp.asarray(images)[chosen], jnp.asarray(digits)[chosen])
            updates, state = tx.update(grads, state, params)
            return (optax.apply_updates(params, updates), state), value

        (params, state), values = jax.lax.scan(step, (params, state), order)
        return params, state, jnp.mean(values)

    begin = time.perf_counter()
    generator = np.random.default_rng(seed)
    params = new_params(jax.random.key(seed))
    state = tx.init(params)
    for epoch in range(1, epochs + 1):
        order = generator.permutation(train)[: batches * BATCH].reshape(batches, BATCH)
        params, state, value = train_epoch(params, state, order)
        if epoch % 20 == 0 or epoch in (1, epochs):
            print(f"epoch {epoch:3d}  loss {value:.4f}  test {accuracy(params, images[test], digits[test]):.4f}")
    found = accuracy(params, images[test], digits[test])
    print(f"{epochs * batches} steps, test accuracy {found:.4f}, in {time.perf_counter() - begin:.1f} s")
    return found


if __name__ == "__main__":
    sys.exit(None if main() >= GOAL else f"the goal is a test accuracy of {GOAL}")
