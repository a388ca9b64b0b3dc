"""Descends along the natural gradient: the gradient divided by the Fisher information of the model.

    python examples/natural_gradient.py

The parameters of a gamma distribution are fitted to data. Prints the number of steps that the natural gradient needs, and the
gradient itself.
"""

from typing import Any

import numpy as np

import oxigrad as ox
from oxigrad import xp

TRUE = np.array([8.0, 0.2])  # shape and scale


def loss(logarithms: Any, data: np.ndarray) -> Any:
    """The negative logarithm of the likelihood of each number, on average."""
    shape, scale = xp.exp(logarithms[0]), xp.exp(logarithms[1])
    return -xp.mean(xp.stats.gamma.logpdf(data, shape, scale=scale))


def fisher(logarithms: Any) -> np.ndarray:
    """The Fisher information (2, 2) of the logarithms of shape and scale."""
    shape = np.exp(logarithms[0])
    return np.array([[shape**2 * xp.special.polygamma(1, shape), shape], [shape, shape]])


def steps_until_found(data: np.ndarray, rate: float, *, natural: bool, most: int = 2000) -> tuple[int, np.ndarray]:
    """The number of steps until the gradient is small, and the parameters there."""
    point = np.zeros(2)
    for step in range(most):
        gradient = ox.grad(lambda p: loss(p, data))(point)
        if np.linalg.norm(gradient) < 1e-6:
            return step, np.exp(point)
        direction = np.linalg.solve(fisher(point), gradient) if natural else gradient
        point = point - rate * direction
    return most, np.exp(point)


def main(seed: int = 0) -> tuple[int, int, np.ndarray]:
    """Returns both numbers of steps, and the parameters."""
    data = np.random.default_rng(seed).gamma(TRUE[0], TRUE[1], 2000)
    natural, found = steps_until_found(data, 0.5, natural=True)
    plain, _ = steps_until_found(data, 0.05, natural=False)
    print(f"natural gradient {natural} steps, gradient {plain} steps; shape {found[0]:.2f}, scale {found[1]:.3f}")
    return natural, plain, found


if __name__ == "__main__":
    main()
