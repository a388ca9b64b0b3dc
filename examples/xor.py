"""Learns exclusive or: two dense layers, Adam, and nothing else.

    python examples/xor.py [seed]

A model is ordinary nested dataclasses. Its parameters are told from the rest by type: the activation functions are simply
left alone.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import oxigrad as ox
from oxigrad import xp

INPUTS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=np.float32)
TARGETS = np.array([[0], [1], [1], [0]], dtype=np.float32)
STEPS = 3000


def relu(x: Any) -> Any:
    """The positive part."""
    return xp.maximum(x, 0.0)


@dataclass
class Dense:
    """A weight of shape (inputs, outputs), a bias, and an activation function."""

    weight: Any
    bias: Any
    activation: Callable[[Any], Any]

    def __call__(self, x: Any) -> Any:
        return self.activation(x @ self.weight + self.bias)


@dataclass
class Classifier:
    """Four hidden units and one that answers."""

    l1: Dense
    l2: Dense

    def __call__(self, x: Any) -> Any:
        return self.l2(self.l1(x))


def every_direction(generator: np.random.Generator) -> np.ndarray:
    """A weight of shape (2, 4): the columns of a random rotation and their opposites, so that no half-plane is unseen."""
    angle = generator.uniform(0, 2 * np.pi)
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return np.hstack([rotation, -rotation])


def new_model(seed: int) -> Classifier:
    """Positive biases and a positive second weight keep the last relu from starting out, and staying, at zero."""
    generator = np.random.default_rng(seed)
    w1, w2 = every_direction(generator), generator.uniform(0, 1, (4, 1))
    return Classifier(
        Dense(w1.astype(np.float32), np.full(4, 0.1, np.float32), relu),
        Dense(w2.astype(np.float32), np.full(1, 0.1, np.float32), relu),
    )


def loss(model: Classifier) -> Any:
    """The mean squared error over the four cases."""
    return xp.mean((model(INPUTS) - TARGETS) ** 2)


def main(seed: int = 0, steps: int = STEPS) -> Classifier:
    """Trains a new model, prints its predictions and returns it."""
    model = new_model(seed)
    optimizer = ox.optim.Adam(learning_rate=0.02)
    for step in range(steps):
        value = optimizer.minimize(loss, model)
        if step % (steps // 5) == 0:
            print(f"step {step:4d}  loss {float(value):.6f}")
    print(f"step {steps:4d}  loss {float(loss(model)):.6f}")
    for (a, b), answer in zip(INPUTS, model(INPUTS)[:, 0], strict=True):
        print(f"{a:.0f} xor {b:.0f} = {answer:.3f}")
    return model


if __name__ == "__main__":
    trained = main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    sys.exit(not np.array_equal(np.round(trained(INPUTS)), TARGETS))
