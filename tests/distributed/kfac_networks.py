"""Networks, losses and trainings for the tests of K-FAC."""

from collections.abc import Callable
from typing import Any

import numpy as np

import oxigrad as ox
from oxigrad import optim, xp
from oxigrad.distributed import KFAC

WORKERS = 4
DEADLINE = 120.0

Model = dict[str, Any]


def data(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def network(seed: int = 0) -> Model:
    """Two dense layers, the second without a bias, and a parameter that belongs to no layer."""
    return {
        "l1": {"w": data(seed, 5, 4) / 2, "b": data(seed + 1, 4) / 2},
        "l2": {"w": data(seed + 2, 4, 3) / 2},
        "scale": data(seed + 3, 3) + 1.0,
    }


def network_loss(model: Model, x: np.ndarray, y: np.ndarray) -> Any:
    hidden = xp.tanh(x @ model["l1"]["w"] + model["l1"]["b"])
    return xp.sum((hidden @ model["l2"]["w"] * model["scale"] - y) ** 2) / (2 * x.shape[0])


X, Y = data(10, 24, 5), data(11, 24, 3)


def kfac(learning_rate: float = 0.1, **options: Any) -> KFAC:
    return KFAC(optim.SGD(learning_rate), **options)


def parameters(model: Any) -> dict[str, np.ndarray]:
    return {str(path): np.asarray(array) for path, array in ox.tree.parameters(model).items()}


def assert_close(found: Any, expected: Any, tolerance: float = 1e-10) -> None:
    found, expected = parameters(found), parameters(expected)
    assert found.keys() == expected.keys()
    for path, array in expected.items():
        np.testing.assert_allclose(found[path], array, rtol=tolerance, atol=tolerance, err_msg=path)


def kron_solve(a: np.ndarray, g: np.ndarray, damping: float, gradient: np.ndarray) -> np.ndarray:
    """The dense Fisher block plus damping, solved for a gradient of shape (inputs, outputs)."""
    block = np.kron(a, g) + damping * np.eye(a.shape[0] * g.shape[0])
    return np.linalg.solve(block, gradient.reshape(-1)).reshape(gradient.shape)


# --- layers ------------------------------------------------------------------------------------------------------------


def statistics(loss: Callable[[Any], Any], model: Any, **options: Any) -> tuple[Any, Any]:
    opt = kfac(**{k: v for k, v in options.items() if k == "mean"})
    _, grads, found = opt.compute_statistics(loss, model, **{k: v for k, v in options.items() if k != "mean"})
    reference = ox.grad(loss)(model)
    for one, other in zip(ox.tree.leaves(grads), ox.tree.leaves(reference), strict=True):
        np.testing.assert_array_equal(one, other)
    return found, {layer.path: pair for layer, *pair in zip(found.layers, found.inputs, found.outputs, strict=True)}


# --- several workers ---------------------------------------------------------------------------------------------------


def trained(communicator: Any, steps: int, **options: Any) -> tuple[Model, KFAC]:
    """The network after some steps; each worker has its part of the data."""
    model = network()
    opt = kfac(damping=0.03, factor_decay=0.6, kl_clip=1e-2, communicator=communicator, **options)
    rank, size = communicator.rank, communicator.size
    x, y = (np.array_split(array, size)[rank] for array in (X, Y))
    for _ in range(steps):
        opt.minimize(lambda m: network_loss(m, x, y), model)
    return model, opt


MODES = {
    "comm_opt": {"memory": "comm_opt"},
    "hybrid_opt": {"memory": "hybrid_opt", "gradient_workers": 0.5},
    "uneven groups": {"memory": "hybrid_opt", "gradient_workers": 0.75},
    "mem_opt": {"memory": "mem_opt"},
}


def own_batches(opt: KFAC, model: Model, rank: int, steps: range) -> Model:
    """The model after some steps; each worker has data of its own in each step."""
    for step in steps:
        generator = np.random.default_rng([rank, step])
        x, y = generator.standard_normal((6, 5)), generator.standard_normal((6, 3))
        opt.minimize(lambda m, x=x, y=y: network_loss(m, x, y), model)
    return model


def assert_same_bits(models: list[Model], expected: Model) -> None:
    for model in models:
        for path, array in parameters(model).items():
            np.testing.assert_array_equal(array, parameters(expected)[path], err_msg=path)
