"""Finds the flow that carries smoke into the shape of a ring, through a simulation of an incompressible fluid.

    python examples/fluid.py

The fluid is periodic; smoke and velocity are carried along by interpolation, and a Fourier transform removes the divergence.
Prints the error before and after.
"""

from typing import Any

import numpy as np

import oxigrad as ox
from oxigrad import xp

SIZE, STEPS = 24, 6
GRID = np.stack(np.meshgrid(np.arange(SIZE), np.arange(SIZE), indexing="ij")).astype(np.float64)
WAVES = np.stack(np.meshgrid(np.fft.fftfreq(SIZE), np.fft.fftfreq(SIZE), indexing="ij"))
SQUARES = np.where(np.sum(WAVES**2, axis=0) == 0.0, 1.0, np.sum(WAVES**2, axis=0))


def incompressible(velocity: Any) -> Any:
    """The part of a velocity field (2, n, n) that has no divergence."""
    transform = xp.fft.fftn(velocity, axes=(1, 2))
    divergence = xp.sum(transform * WAVES, axis=0) / SQUARES
    return xp.real(xp.fft.ifftn(transform - WAVES * divergence, axes=(1, 2)))


def carried(field: Any, velocity: Any) -> Any:
    """A field (n, n) after one step along the velocity."""
    return xp.ndimage.map_coordinates(field, GRID - velocity, order=1, mode="grid-wrap")


def simulated(velocity: Any, smoke: Any) -> Any:
    """The smoke in the end."""
    velocity = incompressible(velocity)
    for _ in range(STEPS):
        velocity = incompressible(xp.stack([carried(velocity[0], velocity), carried(velocity[1], velocity)]))
        smoke = carried(smoke, velocity)
    return smoke


def shapes() -> tuple[np.ndarray, np.ndarray]:
    """A disk of smoke, and the ring that it is to become."""
    away = np.hypot(*(GRID - (SIZE - 1) / 2.0))
    return 1.0 / (1.0 + np.exp(2.0 * (away - 6.0))), np.exp(-0.5 * ((away - 5.0) / 1.5) ** 2)


def main(steps: int = 40) -> tuple[float, float]:
    """Returns the mean squared error before and after."""
    smoke, ring = shapes()
    velocity, optimizer = 0.01 * np.random.default_rng(0).standard_normal((2, SIZE, SIZE)), ox.optim.Adam(0.2)

    def loss(velocity: Any) -> Any:
        return xp.mean((simulated(velocity, smoke) - ring) ** 2)

    before = float(loss(velocity))
    for _ in range(steps):
        optimizer.minimize(loss, velocity)
    after = float(loss(velocity))
    print(f"mean squared error before {before:.4f}, after {after:.4f}")
    return before, after


if __name__ == "__main__":
    main()
