"""Learns to read handwritten digits: 1,797 scans of 8 x 8 pixels, which come with scikit-learn.

    python examples/digits.py

Trains a small network, prints where the time went, and draws how it learned. Fails if it reads fewer than 97 of 100 digits
that it has never seen.
"""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits
from tqdm import tqdm

import oxigrad as ox
from oxigrad import xp

GOAL = 0.97
EPOCHS = 200
BATCH = 64
PEAK = 4e-3

# --- the model --------------------------------------------------------------------------------------------------------


def relu(x: Any) -> Any:
    """The positive part."""
    return xp.maximum(x, 0.0)


def identity(x: Any) -> Any:
    """Training and test data."""
    return x


@dataclass
class Dense:
    """A layer. Its weight and bias are trained: they are arrays. Its activation and its flag are neither."""

    weight: Any
    bias: Any
    activation: Callable[[Any], Any] = identity
    residual: bool = False

    def __call__(self, x: Any) -> Any:
        y = self.activation(x @ self.weight + self.bias)
        return x + y if self.residual else y


@dataclass
class Classifier:
    """Layers one after the other; the last one gives a score for each of the ten digits."""

    hidden: list[Dense]
    head: Dense

    def __call__(self, x: Any) -> Any:
        for layer in self.hidden:
            x = layer(x)
        return self.head(x)


def dense(generator: np.random.Generator, inputs: int, outputs: int, *rest: Any) -> Dense:
    """A layer with normal weights of variance 2 / inputs (He et al. 2015) and zero biases."""
    weight = generator.standard_normal((inputs, outputs)) * np.sqrt(2 / inputs)
    return Dense(weight.astype(np.float32), np.zeros(outputs, np.float32), *rest)


def new_model(generator: np.random.Generator) -> Classifier:
    """64 pixels, 128 units, another 128 that correct them, 10 digits."""
    hidden = [dense(generator, 64, 128, relu), dense(generator, 128, 128, relu, True)]
    return Classifier(hidden, dense(generator, 128, 10))


def cross_entropy(model: Classifier, images: np.ndarray, digits: np.ndarray) -> Any:
    """The mean of -log(probability of the right digit), where the probabilities are the softmax of the scores."""
    scores = model(images)
    scores = scores - ox.stop_gradient(xp.max(scores, axis=1, keepdims=True))
    log_total = xp.log(xp.sum(xp.exp(scores), axis=1))
    right = xp.take_along_axis(scores, digits[:, None], axis=1)[:, 0]
    return xp.mean(log_total - right)


def accuracy(model: Classifier, data: "Data") -> float:
    """The accuracy: the share of the images that are classified correctly."""
    return float(np.mean(np.argmax(model(data.images), axis=1) == data.digits))


# --- the data ---------------------------------------------------------------------------------------------------------


class Data(NamedTuple):
    """Images of shape (n, 64), from 0 to 1, and the digit that each one shows."""

    images: np.ndarray
    digits: np.ndarray


def load() -> tuple[Data, Data]:
    """The digits, four fifths for training and one fifth for testing, stratified by digit."""
    pixels, digits = map(np.asarray, load_digits(return_X_y=True))
    images = np.asarray(pixels, np.float32) / 16
    train, test = train_test_split(np.arange(len(images)), test_size=0.2, stratify=digits, random_state=0)
    return Data(images[train], digits[train]), Data(images[test], digits[test])


def batches(generator: np.random.Generator, data: Data) -> Iterator[Data]:
    """The data in a new order, a batch at a time, each moved by a pixel at random; an incomplete batch is left out."""
    order = generator.permutation(len(data.digits))
    for start in range(0, len(order) - BATCH + 1, BATCH):
        chosen = order[start : start + BATCH]
        yield Data(moved(generator, data.images[chosen]), data.digits[chosen])


def moved(generator: np.random.Generator, images: np.ndarray) -> np.ndarray:
    """The images, all of them one pixel up or down or neither, and one pixel left or right or neither."""
    padded = np.pad(images.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    down, right = generator.integers(3, size=2)
    return padded[:, down : down + 8, right : right + 8].reshape(-1, 64)


# --- training ---------------------------------------------------------------------------------------------------------


@dataclass
class History:
    """Record of a run: the loss of each step, the accuracies after each epoch, and the seconds spent in each part."""

    losses: list[float] = field(default_factory=list)
    train: list[float] = field(default_factory=list)
    test: list[float] = field(default_factory=list)
    seconds: dict[str, float] = field(
        default_factory=lambda: {"batch": 0.0, "forward and backward": 0.0, "update": 0.0}
    )


def train_epoch(model: Classifier, optimizer: ox.optim.Optimizer, steps: Iterator[Data], history: History) -> None:
    """One pass over the data, each part of each step timed."""
    loss_and_grad = ox.value_and_grad(cross_entropy)
    begin = time.perf_counter()
    for images, digits in steps:
        batched = time.perf_counter()
        loss, gradient = loss_and_grad(model, images, digits)
        differentiated = time.perf_counter()
        optimizer.update(model, gradient)
        updated = time.perf_counter()
        history.losses.append(float(loss))
        history.seconds["batch"] += batched - begin
        history.seconds["forward and backward"] += differentiated - batched
        history.seconds["update"] += updated - differentiated
        begin = time.perf_counter()


def train(model: Classifier, data: Data, test: Data, epochs: int, generator: np.random.Generator) -> History:
    """Trains the model in place, with a progress bar on a terminal and a few lines elsewhere."""
    history = History()
    steps = epochs * (len(data.digits) // BATCH)
    schedule = ox.schedules.warmup_cosine(PEAK, warmup=max(1, steps // 10), steps=steps)
    optimizer = ox.optim.AdamW(learning_rate=schedule, weight_decay=0.05)
    terminal = sys.stdout.isatty()
    with tqdm(total=epochs, unit="epoch", disable=not terminal, file=sys.stdout) as bar:
        for epoch in range(1, epochs + 1):
            train_epoch(model, optimizer, batches(generator, data), history)
            history.train.append(accuracy(model, data))
            history.test.append(accuracy(model, test))
            state = f"loss {history.losses[-1]:.4f}  train {history.train[-1]:.4f}  test {history.test[-1]:.4f}"
            bar.set_postfix_str(state, refresh=False)
            bar.update()
            if not terminal and (epoch % 40 == 0 or epoch in (1, epochs)):
                print(f"epoch {epoch:3d}  {state}")
    return history


# --- the report -------------------------------------------------------------------------------------------------------


def report(history: History) -> None:
    """Prints the time of a step, and the share of each part."""
    total, steps = sum(history.seconds.values()), len(history.losses)
    print(f"{steps} steps in {total:.2f} s, {1e6 * total / steps:.0f} us a step:")
    for part, seconds in history.seconds.items():
        print(f"  {part:<20} {1e6 * seconds / steps:5.0f} us  {seconds / total:4.0%}")


def draw(history: History, path: Path) -> None:
    """Draws the loss of each step and the accuracies after each epoch."""
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    epochs = np.arange(1, len(history.test) + 1)
    left.semilogy(np.linspace(0, len(epochs), len(history.losses)), history.losses, color="tab:gray", linewidth=0.7)
    left.set(title="Loss of each batch", xlabel="epoch", ylabel="cross-entropy")
    right.plot(epochs, history.train, color="tab:blue", label="training images, not shifted")
    right.plot(epochs, history.test, color="tab:orange", label=f"test images: {history.test[-1]:.1%}")
    right.axhline(GOAL, color="tab:gray", linestyle=":", label=f"goal: {GOAL:.0%}")
    right.set(title="Accuracy", xlabel="epoch", ylabel="accuracy", ylim=(0.9, 1.003))
    right.legend(loc="lower right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def main(epochs: int = EPOCHS, seed: int = 0, output: Path = Path("output")) -> float:
    """Trains, reports and draws; returns the share of the test images that the model reads right."""
    begin = time.perf_counter()
    generator = np.random.default_rng(seed)
    data, test = load()
    model = new_model(generator)
    parameters = ox.tree.parameters(model)
    size = sum(p.size for p in parameters.values())
    print(f"{len(data.digits)} training images, {len(test.digits)} test images")
    print(f"{size:,} parameters: {', '.join(map(str, parameters))}")
    with threadpool_limits(1, user_api="blas"):  # one thread multiplies matrices this small faster than two
        history = train(model, data, test, epochs, generator)
    report(history)
    draw(history, output / "digits.png")
    print(f"picture: {output / 'digits.png'}")
    print(f"test accuracy {history.test[-1]:.4f}, in {time.perf_counter() - begin:.1f} s")
    return history.test[-1]


if __name__ == "__main__":
    sys.exit(None if main() >= GOAL else f"the goal is a test accuracy of {GOAL}")
