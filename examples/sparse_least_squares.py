"""Finds cameras and points from where the cameras saw the points: a bundle adjustment with a sparse Jacobian.

    python examples/sparse_least_squares.py

A residual depends on one camera and one point, so that eight products give all nonzeros of the Jacobian, however many
cameras and points there are. Prints the size of the problem, and the error in the picture before and after.
"""

from typing import Any

import numpy as np

import oxigrad as ox
from oxigrad import xp


def turned(rotation: Any, points: Any) -> Any:
    """Points rotated about an axis by an angle, the direction and the length of ``rotation`` (Rodrigues' formula)."""
    angle = xp.sqrt(xp.sum(rotation * rotation, axis=1, keepdims=True) + 1e-20)
    axis = rotation / angle
    along = xp.sum(axis * points, axis=1, keepdims=True)
    return points * xp.cos(angle) + xp.linalg.cross(axis, points) * xp.sin(angle) + axis * along * (1.0 - xp.cos(angle))


def projected(model: Any, camera: np.ndarray, point: np.ndarray) -> Any:
    """The place in the picture of each observation, which is of one camera and one point."""
    rotation, shift = model["rotations"][camera], model["shifts"][camera]
    seen = turned(rotation, model["points"][point]) + shift
    return seen[:, :2] / (seen[:, 2:] + 5.0)


def main(cameras: int = 8, points: int = 150, seed: int = 0) -> tuple[float, float]:
    """Returns the root of the mean square error in the picture before the adjustment and after it."""
    rng = np.random.default_rng(seed)
    truth = {
        "rotations": 0.3 * rng.standard_normal((cameras, 3)),
        "shifts": 0.2 * rng.standard_normal((cameras, 3)),
        "points": rng.uniform(-1.0, 1.0, (points, 3)),
    }
    camera, point = np.nonzero(rng.random((cameras, points)) < 0.6)
    noise = 1e-3
    observed = projected(truth, camera, point) + noise * rng.standard_normal((len(camera), 2))
    start = ox.tree.map(lambda part: part + 0.05 * rng.standard_normal(part.shape), truth)

    def residuals(model: Any) -> Any:
        return projected(model, camera, point) - observed

    def error(model: Any) -> float:
        return float(np.sqrt(np.mean(residuals(model) ** 2)))

    jacobian = ox.sparse_jacobian(residuals)
    matrix = jacobian(start)
    found = ox.scipy.least_squares(residuals, start, sparse=True, x_scale="jac")
    before, after = error(start), error(found.x)
    share = matrix.nnz / (matrix.shape[0] * matrix.shape[1])
    print(
        f"Jacobian of {matrix.shape[0]} x {matrix.shape[1]}, {share:.1%} of it nonzero, from {jacobian.products} products"
    )
    print(
        f"error in the picture {before:.4f} before and {after:.5f} after {found.njev} Jacobians, with noise of {noise}"
    )
    return before, after


if __name__ == "__main__":
    main()
