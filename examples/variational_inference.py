"""Approximates the posterior of a Bayesian logistic regression by a normal distribution, with reparametrized samples.

    python examples/variational_inference.py

Prints the means and deviations of the weights, and the lower bound of the evidence.
"""

from typing import Any

import numpy as np

import oxigrad as ox
from oxigrad import xp

WEIGHTS = np.array([1.5, -2.0, 0.0])
SAMPLES = 16


def log_joint(w: Any, x: np.ndarray, y: np.ndarray) -> Any:
    """The logarithm of prior and likelihood for each sample of weights (samples, 3)."""
    score = w @ x.T
    likelihood = xp.sum(y * score - xp.special.softplus(score), axis=1)
    return likelihood + xp.sum(xp.stats.norm.logpdf(w, 0.0, 3.0), axis=1)


def bound(q: dict[str, Any], noise: np.ndarray, x: np.ndarray, y: np.ndarray) -> Any:
    """The lower bound of the evidence, estimated with samples ``mean + deviation * noise``."""
    deviation = xp.exp(q["log_deviation"])
    entropy = xp.sum(q["log_deviation"]) + 1.5 * np.log(2.0 * np.pi * np.e)
    return xp.mean(log_joint(q["mean"] + deviation * noise, x, y)) + entropy


def main(seed: int = 0, steps: int = 400) -> tuple[np.ndarray, float]:
    """Returns the means of the weights, and the bound."""
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((300, 3))
    y = (generator.uniform(size=300) < xp.special.expit(x @ WEIGHTS)) * 1.0
    q, optimizer = {"mean": np.zeros(3), "log_deviation": np.zeros(3)}, ox.optim.Adam(0.05)
    for _ in range(steps):
        noise = generator.standard_normal((SAMPLES, 3))
        optimizer.minimize(lambda q, noise=noise: -bound(q, noise, x, y), q)
    evidence = float(bound(q, generator.standard_normal((1000, 3)), x, y))
    print("means", q["mean"].round(2), "deviations", np.exp(q["log_deviation"]).round(2), f"bound {evidence:.2f}")
    return q["mean"], evidence


if __name__ == "__main__":
    main()
