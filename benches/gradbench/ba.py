"""ba: the residuals of bundle adjustment and their sparse Jacobian.

A camera has a rotation about an axis by an angle (direction and length of a vector), a center, a focal length, a principal point and
two coefficients of radial distortion, 11 numbers. The residual of an observation of a point ``X`` at the feature ``m`` is, with its weight ``w``::

    w (f d(p) + u - m),    p = (R (X - C)) / its last coordinate,    d(p) = p (1 + k_1 |p|^2 + k_2 |p|^4)

and ``1 - w^2`` is a further residual (ADBench, section 4.2: "BA"). Rows of the Jacobian are those of all observations and then those of the
weights, columns cameras, points and weights: each row has 14 nonzeros or one, however many cameras and points there are.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import oxigrad as ox
from gradbench import cpp
from gradbench.contest import along, compared, directions, size
from measure import Contestant, Goal, Ready, Row
from oxigrad import xp
from rows.gradients import constants


def rotated(lib: Any, rotation: Any, x: Any) -> Any:
    """Vectors, one a row, rotated about an axis by an angle (Rodrigues' formula)."""
    angle = lib.sqrt(lib.sum(rotation * rotation, axis=-1))[..., None]
    axis = rotation / angle
    along_axis = lib.sum(axis * x, axis=-1)[..., None]
    a, b, c = axis[..., 0], axis[..., 1], axis[..., 2]
    p, q, r = x[..., 0], x[..., 1], x[..., 2]
    cross = lib.stack([b * r - c * q, c * p - a * r, a * q - b * p], axis=-1)
    return x * lib.cos(angle) + cross * lib.sin(angle) + axis * along_axis * (1.0 - lib.cos(angle))


def reprojection(lib: Any, camera: Any, point: Any, weight: Any, feature: Any) -> Any:
    """The residuals of observations, each with its camera, point, weight and feature."""
    seen = rotated(lib, camera[..., :3], point - camera[..., 3:6])
    flat = seen[..., :2] / seen[..., 2:]
    square = lib.sum(flat * flat, axis=-1)[..., None]
    distorted = flat * (1.0 + camera[..., 9:10] * square + camera[..., 10:11] * square * square)
    return weight[..., None] * (camera[..., 6:7] * distorted + camera[..., 7:9] - feature)


class Scene:
    """Made-up cameras, points and weights, and which camera has seen which point where."""

    def __init__(self, cameras: int, points: int, observations: int) -> None:
        rng = np.random.default_rng(0)
        small = rng.standard_normal((cameras, 11))
        self.cameras = np.array([0.3, -0.2, 0.4, 0.0, 0.0, -9.0, 500.0, 300.0, 200.0, 0.0, 0.0]) + small * 1e-2
        self.points, self.weights = rng.uniform(-1.0, 1.0, (points, 3)), rng.uniform(0.5, 1.5, observations)
        self.of = np.stack([rng.integers(0, cameras, observations), rng.integers(0, points, observations)])
        self.features = rng.uniform(0.0, 500.0, (observations, 2))
        self.constants = constants(self.features, *self.of)

    @property
    def arguments(self) -> list[np.ndarray]:
        return [self.cameras, self.points, self.weights]

    def residuals(self, lib: Any, cameras: Any, points: Any, weights: Any) -> Any:
        """All residuals: two for each observation, and one for its weight."""
        features, camera, point = self.constants(lib)
        errors = reprojection(lib, cameras[camera], points[point], weights, features)
        return lib.concat([lib.reshape(errors, (-1,)), 1.0 - weights * weights])

    def product(self) -> tuple[np.ndarray, np.ndarray]:
        """A random vector, and the product of the Jacobian with it by central differences."""
        direction = directions(self.arguments)
        expected = along(lambda *args: self.residuals(np, *args), self.arguments, direction)
        return np.concatenate([np.ravel(part) for part in direction]), expected

    def blocks(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows and the columns of the 2 x 15 derivatives of each observation, each of shape (observations, 2, 15)."""
        count, (camera, point) = len(self.weights), self.of
        points_at, weights_at = self.cameras.size, self.cameras.size + self.points.size
        columns = [
            11 * camera[:, None] + np.arange(11),
            points_at + 3 * point[:, None] + np.arange(3),
            weights_at + np.arange(count)[:, None],
        ]
        rows = np.arange(2 * count).reshape(count, 2, 1) + np.zeros((1, 1, 15), int)
        return rows, np.broadcast_to(np.concatenate(columns, axis=1)[:, None, :], rows.shape)


def checked(call: Callable[[], Any], scene: Scene, times: Callable[[Any, np.ndarray], np.ndarray]) -> Ready:
    """A contestant whose product with a random vector is that of central differences."""
    vector, expected = scene.product()
    scale = float(np.abs(expected).max())
    return Ready(call, compared(lambda: times(call(), vector), expected, "the product", 0.0, 1e-6 * scale).check)


def ours(scene: Scene) -> Ready:
    """The whole Jacobian, in CSR."""
    jacobian = ox.sparse_jacobian(lambda *args: scene.residuals(xp, *args), (0, 1, 2))
    return checked(lambda: jacobian(*scene.arguments), scene, lambda matrix, vector: matrix @ vector)


def _times_blocks(scene: Scene) -> Callable[[Any, np.ndarray], np.ndarray]:
    rows, columns = scene.blocks()

    def times(blocks: Any, vector: np.ndarray) -> np.ndarray:
        values = np.concatenate([np.asarray(b).reshape(len(scene.weights), 2, -1) for b in blocks], axis=2)
        sums = np.zeros(2 * len(scene.weights))
        np.add.at(sums, rows, values * vector[columns])
        weights = vector[-len(scene.weights) :]
        return np.concatenate([sums, -2.0 * scene.weights * weights])

    return times


def in_jax(scene: Scene) -> Ready:
    """The derivatives of each observation, batched and compiled; the places of their blocks are known beforehand."""
    import jax

    jax.config.update("jax_enable_x64", True)

    def one(camera: Any, point: Any, weight: Any, feature: Any) -> Any:
        return reprojection(jax.numpy, camera, point, weight, feature)

    derivatives = jax.vmap(jax.jacfwd(one, argnums=(0, 1, 2)))
    features, camera, point = map(jax.numpy.asarray, scene.constants(np))
    compiled = jax.jit(lambda c, p, w: derivatives(c[camera], p[point], w, features))
    arguments = list(map(jax.numpy.asarray, scene.arguments))
    return checked(lambda: jax.block_until_ready(compiled(*arguments)), scene, _times_blocks(scene))


def in_torch(scene: Scene) -> Ready:
    """As in JAX, without compilation."""
    import torch

    def one(camera: Any, point: Any, weight: Any, feature: Any) -> Any:
        return reprojection(torch, camera, point, weight, feature)

    derivatives = torch.func.vmap(torch.func.jacfwd(one, argnums=(0, 1, 2)))
    features, camera, point = scene.constants(torch)
    cameras, points, weights = map(torch.from_numpy, scene.arguments)
    return checked(lambda: derivatives(cameras[camera], points[point], weights, features), scene, _times_blocks(scene))


def by_hand(scene: Scene) -> Contestant:
    """The residuals in C++, and the sum of their squares."""
    count = len(scene.weights)
    arrays = [*scene.arguments, scene.features, *map(np.ascontiguousarray, scene.of), np.zeros(3 * count)]
    return cpp.contestant("ba", [*arrays, count], lambda: float(np.sum(scene.residuals(np, *scene.arguments) ** 2)))


def contestants() -> list[Contestant]:
    scene = Scene(size(49, 3), size(7776, 5), size(31_843, 12))
    return [
        Contestant("oxigrad", "ours", lambda: ours(scene)),
        Contestant("torch, blocks of observations", "peer", lambda: in_torch(scene)),
        Contestant("jax, jit, blocks of observations", "peer", lambda: in_jax(scene)),
        by_hand(scene),
        Contestant(
            "NumPy, value only", "ceiling", lambda: Ready(lambda: scene.residuals(np, *scene.arguments), lambda: None)
        ),
    ]


ROWS = [
    Row(
        "gradbench ba1 n49 m7776 p31843",
        contestants,
        (Goal(1.5, "jax, jit, blocks of observations"), Goal(1 / 2.5, cpp.NAME)),
        samples=7,
    )
]
