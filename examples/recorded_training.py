"""A classifier of two spirals whose training step is recorded: value and gradient of the loss are replayed without their Python code.

Prints the loss and the accuracy, what was recorded, and that the losses have the bits of a training without a recording. Needs NumPy alone.
"""

from typing import Any

import numpy as np

import oxigrad as ox
from oxigrad import xp
from oxigrad.optim import Adam

POINTS, HIDDEN, STEPS = 200, 32, 400


def spirals() -> tuple[np.ndarray, np.ndarray]:
    """Points of two spirals, and the spiral of each."""
    rng = np.random.default_rng(0)
    labels = np.arange(POINTS) % 2
    turn = np.sqrt(rng.random(POINTS)) * 2.0 * np.pi
    angle = turn + labels * np.pi
    points = np.stack([turn * np.cos(angle), turn * np.sin(angle)], axis=1) / 3.0
    return points + rng.normal(scale=0.03, size=points.shape), labels.astype(np.float64)


def new_model() -> dict[str, np.ndarray]:
    """Two hidden layers, and one output."""
    rng = np.random.default_rng(1)
    sizes = [(2, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, 1)]
    weights = {f"w{at}": rng.normal(size=size) / np.sqrt(size[0]) for at, size in enumerate(sizes)}
    return weights | {f"b{at}": np.zeros(size[1]) for at, size in enumerate(sizes)}


def scores(model: dict[str, np.ndarray], points: np.ndarray) -> np.ndarray:
    """The log-odds of the second spiral."""
    x = points
    for at in range(2):
        x = xp.tanh(x @ model[f"w{at}"] + model[f"b{at}"])
    return (x @ model["w2"] + model["b2"])[:, 0]


def train(*, record: bool) -> tuple[dict[str, np.ndarray], list[float]]:
    """The trained model, and the loss of each step."""
    points, labels = spirals()
    model, opt = new_model(), Adam(0.01)

    def loss(model: dict[str, np.ndarray]) -> Any:
        s = scores(model, points)
        return xp.mean(xp.logaddexp(s, 0.0) - labels * s)

    return model, [float(opt.minimize(loss, model, record=record)) for _ in range(STEPS)]


def main() -> float:
    """Trains with and without a recording; returns the accuracy."""
    model, losses = train(record=True)
    points, labels = spirals()
    recorded = ox.record(scores)
    accuracy = np.mean((recorded(model, points) > 0) == labels)
    recorded(model, points)
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}, accuracy {accuracy:.3f}")
    print(recorded)
    print("the same bits without a recording:", train(record=False)[1] == losses)
    return float(accuracy)


if __name__ == "__main__":
    main()
