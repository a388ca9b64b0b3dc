"""Finds the rates of predators and prey (Lotka and Volterra) from noisy counts, through the solver of the equations.

    python examples/ode_fit.py

Prints the rates that it finds.
"""

from typing import Any

import numpy as np

import oxigrad as ox
from oxigrad import xp

RATES = np.array([1.0, 0.5, 0.8, 0.3])  # growth of prey, predation, death of predators, their growth
TIMES = np.linspace(0.0, 8.0, 25)
BEGIN = np.array([2.0, 1.5])


def change(y: Any, t: Any, rates: Any) -> Any:
    """The derivatives of both populations."""
    prey, predators = y[0], y[1]
    return xp.stack(
        [
            rates[0] * prey - rates[1] * prey * predators,
            rates[3] * prey * predators - rates[2] * predators,
        ]
    )


def populations(rates: Any) -> Any:
    """The populations at all times, of shape (25, 2)."""
    return xp.integrate.odeint(change, BEGIN, TIMES, (rates,), rtol=1e-5, atol=1e-5)


def main(seed: int = 0, steps: int = 60) -> np.ndarray:
    """Returns the rates."""
    counts = populations(RATES) * np.exp(0.02 * np.random.default_rng(seed).standard_normal((25, 2)))

    def loss(logarithms: Any) -> Any:
        return xp.mean((xp.log(populations(xp.exp(logarithms))) - np.log(counts)) ** 2)

    logarithms, optimizer = np.log(0.8 * RATES), ox.optim.Adam(0.03)
    for _ in range(steps):
        optimizer.minimize(loss, logarithms)
    rates = np.exp(logarithms)
    print("rates", *(f"{found:.3f} (true {true})" for found, true in zip(rates, RATES, strict=True)))
    return rates


if __name__ == "__main__":
    main()
