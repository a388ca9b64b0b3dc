"""Fits the hyperparameters of a Gaussian process by its marginal likelihood.

    python examples/gaussian_process.py

Prints the hyperparameters, and the root mean square error of the prediction between the data.
"""

from typing import Any

import numpy as np

import oxigrad as ox
from oxigrad import xp

NOISE = 0.1
START = {"amplitude": 0.0, "length": 1.0, "noise": -1.0}  # logarithms


def kernel(p: dict[str, Any], a: Any, b: Any) -> Any:
    """The covariance of the function at two sets of points, squared exponential."""
    apart = (a[:, None] - b[None, :]) / xp.exp(p["length"])
    return xp.exp(2.0 * p["amplitude"]) * xp.exp(-0.5 * apart * apart)


def covariance(p: dict[str, Any], x: np.ndarray) -> Any:
    """The covariance of noisy data."""
    return kernel(p, x, x) + xp.exp(2.0 * p["noise"]) * np.eye(len(x))


def loss(p: dict[str, Any], x: np.ndarray, y: np.ndarray) -> Any:
    """The negative logarithm of the marginal likelihood."""
    return -xp.stats.multivariate_normal.logpdf(y, np.zeros(len(x)), covariance(p, x))


def predict(p: dict[str, Any], x: np.ndarray, y: np.ndarray, at: np.ndarray) -> Any:
    """The mean of the posterior."""
    return kernel(p, at, x) @ np.linalg.solve(covariance(p, x), y)


def main(seed: int = 0, steps: int = 200) -> float:
    """Returns the root mean square error."""
    generator = np.random.default_rng(seed)
    x = np.sort(generator.uniform(-4.0, 4.0, 40))
    y = np.sin(2.0 * x) + NOISE * generator.standard_normal(40)
    model, optimizer = {name: np.array(value) for name, value in START.items()}, ox.optim.Adam(0.05)
    for _ in range(steps):
        optimizer.minimize(lambda p: loss(p, x, y), model)
    at = np.linspace(-3.5, 3.5, 200)
    error = float(np.sqrt(np.mean((predict(model, x, y, at) - np.sin(2.0 * at)) ** 2)))
    print(*(f"{name} {np.exp(value):.3f}" for name, value in model.items()), f"error {error:.4f}", sep=", ")
    return error


if __name__ == "__main__":
    main()
