"""Teaches a recurrent net to say whether the ones that it has read are even or odd in number.

    python examples/recurrent_net.py

Prints the accuracy for sequences that it has not seen.
"""

from typing import Any

import numpy as np

import oxigrad as ox
from oxigrad import xp

LENGTH, WIDTH, BATCH = 8, 16, 128


def sequences(generator: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Bits (count, length), and the parity of the bits up to each."""
    bits = generator.integers(0, 2, (count, LENGTH)).astype(np.float64)
    return bits, np.cumsum(bits, axis=1) % 2


def scores(p: dict[str, Any], bits: np.ndarray) -> Any:
    """The logarithm of the odds that the number of ones is odd, after each bit."""
    state, found = xp.zeros((len(bits), WIDTH)), []
    for at in range(LENGTH):
        state = xp.tanh(bits[:, at : at + 1] @ p["input"] + state @ p["recurrent"] + p["bias"])
        found.append(state @ p["output"])
    return xp.stack(found, axis=1)


def loss(p: dict[str, Any], bits: np.ndarray, parity: np.ndarray) -> Any:
    """The cross entropy."""
    score = scores(p, bits)
    return xp.mean(xp.special.softplus(score) - parity * score)


def main(seed: int = 0, steps: int = 600) -> float:
    """Returns the accuracy."""
    generator = np.random.default_rng(seed)
    model = {
        "input": generator.standard_normal((1, WIDTH)),
        "recurrent": generator.standard_normal((WIDTH, WIDTH)) / np.sqrt(WIDTH),
        "bias": np.zeros(WIDTH),
        "output": generator.standard_normal(WIDTH) / np.sqrt(WIDTH),
    }
    optimizer = ox.optim.chain(ox.optim.ClipByGlobalNorm(1.0), ox.optim.Adam(0.01))
    for _ in range(steps):
        bits, parity = sequences(generator, BATCH)
        optimizer.minimize(lambda p, bits=bits, parity=parity: loss(p, bits, parity), model)
    bits, parity = sequences(generator, 500)
    accuracy = float(np.mean((scores(model, bits) > 0.0) == (parity > 0.5)))
    print(f"accuracy {accuracy:.3f}")
    return accuracy


if __name__ == "__main__":
    main()
