"""kmeans: the sum of the squared distances of points to their nearest centers, and the step of Newton's method for the centers.

``f(C) = sum_i min_j |C_j - P_i|^2``. Its Hessian is diagonal, so that its product with ones is its diagonal ``h``; the result is
``grad f / h`` (Bottou and Bengio, "Convergence properties of the K-means algorithms", 1994).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import oxigrad as ox
from gradbench.contest import compared, size
from measure import Contestant, Goal, Ready, Row
from oxigrad import xp
from rows.gradients import constants
from rows.recorded import past_audits, require_recorded


def data(points: int, centers: int, dimensions: int) -> tuple[np.ndarray, np.ndarray]:
    """Points, and centers that are points of them, so that each has one at least."""
    cloud = np.random.default_rng(0).standard_normal((points, dimensions))
    return cloud, cloud[:centers] + 1e-3


def cost(data: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, Any], Any]:
    """The function of a library and the centers."""

    def function(lib: Any, centers: Any) -> Any:
        (points,) = data(lib)
        squares = lib.sum(points * points, axis=1)[:, None] + lib.sum(centers * centers, axis=1)[None, :]
        distances = squares - 2.0 * (points @ centers.T)
        smallest = lib.amin if lib.__name__ == "torch" else lib.min  # torch.min gives indices too
        return lib.sum(smallest(distances, axis=1))

    return function


def direction(points: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """The step in closed form: the center less the mean of the points that are nearest to it."""
    squares = np.sum(points**2, axis=1)[:, None] + np.sum(centers**2, axis=1) - 2.0 * points @ centers.T
    nearest = np.argmin(squares, axis=1)
    sums, counts = np.zeros_like(centers), np.bincount(nearest, minlength=len(centers))
    np.add.at(sums, nearest, points)
    return centers - sums / counts[:, None]


def ours(points: np.ndarray, centers: np.ndarray, *, record: bool) -> Ready:
    """The gradient, and its derivative along ones, in forward mode over reverse mode."""
    f = cost(constants(points))
    gradient = ox.grad(lambda centers: f(xp, centers))

    def step(centers: Any) -> Any:
        found, diagonal = ox.jvp(gradient, (centers,), (np.ones_like(centers),))
        return found / diagonal

    if record:
        require_recorded(step, centers)
        step = ox.record(step)
    ready = compared(lambda: step(centers), direction(points, centers), "the step", 1e-9, 1e-9)
    return past_audits(ready) if record else ready


def in_torch(points: np.ndarray, centers: np.ndarray) -> Ready:
    """Reverse mode twice: the gradient of the sum of the gradient."""
    import torch

    f, leaf = cost(constants(points)), torch.tensor(centers, requires_grad=True)

    def call() -> Any:
        (gradient,) = torch.autograd.grad(f(torch, leaf), leaf, create_graph=True)
        (diagonal,) = torch.autograd.grad(gradient.sum(), leaf)
        return (gradient / diagonal).detach()

    return compared(call, direction(points, centers), "the step", 1e-9, 1e-9)


def in_jax(points: np.ndarray, centers: np.ndarray) -> Ready:
    """As ours, compiled."""
    import jax

    jax.config.update("jax_enable_x64", True)
    f, ones = cost(constants(points)), jax.numpy.ones_like(centers)
    gradient = jax.grad(lambda centers: f(jax.numpy, centers))

    def step(centers: Any) -> Any:
        found, diagonal = jax.jvp(gradient, (centers,), (ones,))
        return found / diagonal

    compiled, at = jax.jit(step), jax.numpy.asarray(centers)
    return compared(lambda: jax.block_until_ready(compiled(at)), direction(points, centers), "the step", 1e-9, 1e-9)


def contestants() -> list[Contestant]:
    made = data(size(10_000, 60), size(1000, 5), size(16, 3))
    f = cost(constants(made[0]))
    return [
        Contestant("oxigrad, recorded", "ours", lambda: ours(*made, record=True)),
        Contestant("oxigrad", "peer", lambda: ours(*made, record=False)),
        Contestant("torch", "peer", lambda: in_torch(*made)),
        Contestant("jax, jit", "peer", lambda: in_jax(*made)),
        Contestant("NumPy, value only", "ceiling", lambda: Ready(lambda: f(np, made[1]), lambda: None)),
    ]


ROWS = [Row("gradbench kmeans k1000 n10000 d16", contestants, (Goal(4, "torch"), Goal(1.5, "jax, jit")), samples=5)]
