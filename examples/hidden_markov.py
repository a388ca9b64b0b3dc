"""Learns a hidden Markov model by the gradient of its likelihood, which the forward algorithm computes.

    python examples/hidden_markov.py

Prints the likelihood of each observation before and after, and under the model that made the data.
"""

from typing import Any

import numpy as np

import oxigrad as ox
from oxigrad import xp

STATES, SYMBOLS, LENGTH = 2, 3, 300
TRANSITION = np.array([[0.95, 0.05], [0.10, 0.90]])
EMISSION = np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])


def observations(generator: np.random.Generator) -> np.ndarray:
    """Symbols that the model emits."""
    state, found = 0, []
    for _ in range(LENGTH):
        found.append(generator.choice(SYMBOLS, p=EMISSION[state]))
        state = generator.choice(STATES, p=TRANSITION[state])
    return np.array(found)


def log_likelihood(p: dict[str, Any], symbols: np.ndarray) -> Any:
    """The logarithm of the probability of each symbol, on average, by the forward algorithm."""
    transition = xp.special.log_softmax(p["transition"], axis=1)
    emission = xp.special.log_softmax(p["emission"], axis=1)
    forward = xp.special.log_softmax(p["start"]) + emission[:, symbols[0]]
    for symbol in symbols[1:]:
        forward = xp.special.logsumexp(forward[:, None] + transition, axis=0) + emission[:, symbol]
    return xp.special.logsumexp(forward) / len(symbols)


def main(seed: int = 0, steps: int = 80) -> tuple[float, float]:
    """Returns the likelihood after training, and that under the model which made the data."""
    generator = np.random.default_rng(seed)
    symbols = observations(generator)
    model = {
        "start": np.zeros(STATES),
        "transition": np.eye(STATES),
        "emission": 0.5 * generator.standard_normal((STATES, SYMBOLS)),
    }
    truth = {"start": np.array([0.0, -30.0]), "transition": np.log(TRANSITION), "emission": np.log(EMISSION)}
    before, optimizer = float(log_likelihood(model, symbols)), ox.optim.Adam(0.1)
    for _ in range(steps):
        optimizer.minimize(lambda p: -log_likelihood(p, symbols), model)
    after, best = float(log_likelihood(model, symbols)), float(log_likelihood(truth, symbols))
    print(f"log likelihood before {before:.4f}, after {after:.4f}, of the truth {best:.4f}")
    return after, best


if __name__ == "__main__":
    main()
