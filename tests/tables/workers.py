"""Problems and schedules for tests of training with several workers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import oxigrad as ox
from oxigrad import distributed, xp


class Quadratics(NamedTuple):
    """A least-squares problem for each worker: the gradient of worker k in step t at x is ``curvature[k] * (x - targets[k, t])``."""

    curvatures: dict[str, np.ndarray]
    targets: dict[str, np.ndarray]

    def gradient(self, worker: int, step: int, model: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The gradient of a worker in a step."""
        return {k: self.curvatures[k][worker] * (model[k] - self.targets[k][worker, step]) for k in self.targets}

    def model(self, dtype: str = "float64") -> dict[str, np.ndarray]:
        """The parameters before the first step."""
        generator = np.random.default_rng(7)
        return {k: generator.standard_normal(v.shape[2:]).astype(dtype) for k, v in self.targets.items()}


def quadratics(
    workers: int, steps: int, seed: int = 0, dtype: str = "float64", **shapes: tuple[int, ...]
) -> Quadratics:
    """Problems of several workers with parameters of these shapes; by default three small ones."""
    generator = np.random.default_rng(seed)
    shapes = shapes or {"a": (3, 4), "b": (5,), "c": (2, 3)}
    curvatures = {k: generator.uniform(0.5, 1.5, (workers, *shape)).astype(dtype) for k, shape in shapes.items()}
    targets = {k: generator.standard_normal((workers, steps, *shape)).astype(dtype) for k, shape in shapes.items()}
    return Quadratics(curvatures, targets)


class Turns:
    """Lets threads pass one by one in a seeded order, so that tests permute their timing without sleeps."""

    def __init__(self, workers: int, rounds: int, seed: int) -> None:
        generator = np.random.default_rng(seed)
        self._order = [int(w) for _ in range(rounds) for w in generator.permutation(workers)]
        self._changed = threading.Condition()

    def take(self, worker: int) -> None:
        """Waits for a turn of this worker."""
        with self._changed:
            assert self._changed.wait_for(lambda: not self._order or self._order[0] == worker, timeout=60)
            del self._order[:1]
            self._changed.notify_all()


# --- digits ------------------------------------------------------------------------------------------------------------


@cache
def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Images and digits to train on, and to test on: four of five and one of five."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    pixels, labels = load_digits(return_X_y=True)
    images = np.asarray(pixels, np.float32) / 16
    a, c, b, d = train_test_split(images, labels, test_size=0.2, stratify=labels, random_state=0)
    return a, b, c, d


def network(hidden: int = 128, seed: int = 0) -> dict[str, Any]:
    """A network of one hidden layer for digits."""
    generator = np.random.default_rng(seed)

    def dense(inputs: int, outputs: int) -> dict[str, np.ndarray]:
        weight = generator.standard_normal((inputs, outputs)) * np.sqrt(2 / inputs)
        return {"weight": weight.astype(np.float32), "bias": np.zeros(outputs, np.float32)}

    return {"hidden": dense(64, hidden), "head": dense(hidden, 10)}


def scores(model: dict[str, Any], images: Any) -> Any:
    """The scores of the ten digits."""
    hidden = xp.maximum(images @ model["hidden"]["weight"] + model["hidden"]["bias"], 0.0)
    return hidden @ model["head"]["weight"] + model["head"]["bias"]


def cross_entropy(model: dict[str, Any], images: np.ndarray, labels: np.ndarray) -> Any:
    """The mean of minus the log-probability of the right digit."""
    found = scores(model, images)
    found = found - ox.stop_gradient(xp.max(found, axis=1, keepdims=True))
    right = xp.take_along_axis(found, labels[:, None], axis=1)[:, 0]
    return xp.mean(xp.log(xp.sum(xp.exp(found), axis=1)) - right)


def accuracy(model: dict[str, Any]) -> float:
    """The test accuracy."""
    _, _, images, labels = digits()
    return float(np.mean(np.argmax(scores(model, images), axis=1) == labels))


def train_digits(
    wrap: Callable[[], Any],
    *,
    workers: int = 4,
    epochs: int = 40,
    batch: int = 16,
    seed: int = 0,
    hidden: int = 128,
    finish: Callable[[Any, Any], Any] = lambda opt, model: model,
) -> list[tuple[dict[str, Any], Any]]:
    """Trains on digits, each worker on its own share; returns the model and the optimizer of each worker."""
    images, labels, _, _ = digits()
    loss_and_grad = ox.value_and_grad(cross_entropy)

    def worker(comm: distributed.Communicator) -> tuple[dict[str, Any], Any]:
        opt, model = wrap(), network(hidden, seed)
        own = np.arange(comm.rank, len(labels), comm.size)[: len(labels) // comm.size]
        generator = np.random.default_rng((seed, comm.rank))
        for _ in range(epochs):
            order = generator.permutation(own)
            for start in range(0, len(order) - batch + 1, batch):
                chosen = order[start : start + batch]
                _, grads = loss_and_grad(model, images[chosen], labels[chosen])
                model = opt.update(model, grads)
        return finish(opt, model), opt

    with threadpool_limits(1):  # of matrices this small, one thread computes products faster than two
        return distributed.run(worker, workers=workers)


def trained(
    problem: Quadratics,
    wrap: Callable[[], Any],
    steps: int | None = None,
    workers: int | None = None,
    turns: Turns | None = None,
) -> list[dict[str, np.ndarray]]:
    """The parameters of each worker after training by threads; steps and workers are those of the problem unless given."""
    first = next(iter(problem.targets.values()))
    count = first.shape[1] if steps is None else steps

    def worker(comm: distributed.Communicator) -> dict[str, np.ndarray]:
        opt, model = wrap(), problem.model(str(first.dtype))
        for step in range(count):
            if turns:
                turns.take(comm.rank)
            model = opt.update(model, problem.gradient(comm.rank, step, model))
        return model

    return distributed.run(worker, workers=first.shape[0] if workers is None else workers)
