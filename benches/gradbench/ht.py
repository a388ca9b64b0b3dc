"""ht: the distances of points from the surface of a hand, and their Jacobian by its pose.

A hand is a tree of 22 bones, each with a transform relative to its parent. The pose has 26 numbers: a rotation and a translation of the whole, and
four angles for each of five fingers. A vertex of the surface is a weighted mean of where the bones carry it (linear blend skinning). Each
point corresponds to a vertex ("simple") or, with two further numbers of its own, to a place on a triangle ("complicated", whose Jacobian is
sparse in these); the residual is the difference (ADBench, section 4.3: "Hand tracking"). The data are made up.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import oxigrad as ox
from gradbench import cpp
from gradbench.ba import rotated
from gradbench.contest import along, compared, directions, size
from measure import Contestant, Goal, Ready, Row
from oxigrad import xp
from rows.gradients import constants
from rows.recorded import past_audits, require_recorded

BONES, POSE, FINGERS = 22, 26, 5
# The forearm, the wrist, and four bones for each finger.
PARENTS = [-1, 0, *(1 if joint == 0 else 2 + 4 * finger + joint - 1 for finger in range(FINGERS) for joint in range(4))]


def angles_of_bones() -> np.ndarray:
    """For each bone, which of the numbers of the pose are its angles about x, z and y; the number after them is zero.

    The first three bones of a finger bend, and the first one turns sideways as well.
    """
    table = np.full((BONES, 3), POSE)
    for finger in range(FINGERS):
        begin, bone = 6 + 4 * finger, 2 + 4 * finger
        table[bone, :2] = begin, begin + 1
        table[bone + 1, 0], table[bone + 2, 0] = begin + 2, begin + 3
    return table


class Hand:
    """A made-up hand with so many vertices, and points near some of them."""

    def __init__(self, vertices: int, points: int) -> None:
        rng = np.random.default_rng(0)
        relatives = np.tile(np.eye(4), (BONES, 1, 1))
        relatives[:, :3, :3] = np.linalg.qr(rng.standard_normal((BONES, 3, 3)))[0]
        relatives[:, :3, 3] = rng.standard_normal((BONES, 3))
        absolutes: list[np.ndarray] = []
        for bone, parent in enumerate(PARENTS):
            absolutes.append(relatives[bone] if parent < 0 else absolutes[parent] @ relatives[bone])
        base = np.concatenate([rng.standard_normal((vertices, 3)), np.ones((vertices, 1))], axis=1)
        weights = rng.dirichlet(np.full(BONES, 0.2), vertices)
        nearest = rng.integers(0, vertices, points)
        triangles = rng.integers(0, vertices, (points, 3))
        self.pose = 0.3 * rng.standard_normal(POSE)
        self.places = rng.uniform(0.1, 0.4, (points, 2))
        targets = rng.standard_normal((points, 3))
        self.constants = constants(relatives, np.linalg.inv(absolutes), base, weights, targets, angles_of_bones())
        self.indices = constants(nearest, triangles)

    def vertices(self, lib: Any, pose: Any) -> Any:
        """The vertices in a pose, one a row."""
        relatives, inverses, base, weights, _, table = self.constants(lib)
        padded = lib.concat([pose, 0.0 * pose[:1]])
        angles = padded[table]  # about x, z and y
        (cx, cz, cy), (sx, sz, sy) = ([f(angles[:, k]) for k in range(3)] for f in (lib.cos, lib.sin))
        zero = 0.0 * cx
        rows = [
            [cy * cz, sx * sy * cz - cx * sz, sx * sz + cx * sy * cz, zero],
            [cy * sz, cx * cz + sx * sy * sz, cx * sy * sz - sx * cz, zero],
            [-sy, sx * cy, cx * cy, zero],
            [zero, zero, zero, zero + 1.0],
        ]
        turned = lib.stack([lib.stack(row, axis=-1) for row in rows], axis=-2)
        posed = relatives @ turned
        absolutes: list[Any] = []
        for bone, parent in enumerate(PARENTS):
            absolutes.append(posed[bone] if parent < 0 else absolutes[parent] @ posed[bone])
        transforms = (lib.stack(absolutes) @ inverses)[:, :3, :]
        carried = transforms @ base.T  # (bones, 3, vertices)
        skinned = lib.sum(carried * weights.T[:, None, :], axis=0).T
        return rotated(lib, pose[None, :3], skinned) + pose[3:6]

    def simple(self, lib: Any, pose: Any) -> Any:
        """The residuals of all points, one after the other."""
        targets, (nearest, _) = self.constants(lib)[4], self.indices(lib)
        return lib.reshape(targets - self.vertices(lib, pose)[nearest], (-1,))

    def complicated(self, lib: Any, pose: Any, places: Any) -> Any:
        """The residuals, with a place of each point on its triangle."""
        targets, (_, triangles) = self.constants(lib)[4], self.indices(lib)
        corners = self.vertices(lib, pose)[triangles]
        u, v = places[:, 0, None], places[:, 1, None]
        on = u * corners[:, 0] + v * corners[:, 1] + (1.0 - u - v) * corners[:, 2]
        return lib.reshape(targets - on, (-1,))


def checked(call: Callable[[], Any], hand: Hand, *, complicated: bool) -> Ready:
    """A contestant whose product with a random vector is that of central differences."""
    args = [hand.pose, hand.places] if complicated else [hand.pose]
    f = hand.complicated if complicated else hand.simple
    vector = directions(args)
    expected = along(lambda *args: f(np, *args), args, vector)
    flat = np.concatenate([np.ravel(part) for part in vector])
    return Ready(call, compared(lambda: _times(call(), flat), expected, "the product", 1e-6, 1e-6).check)


def _times(matrix: Any, vector: np.ndarray) -> np.ndarray:
    return (matrix if hasattr(matrix, "tocsr") else np.asarray(matrix)) @ vector


def ours(hand: Hand, *, complicated: bool, record: bool = False) -> Ready:
    """All columns pushed forward together; for places on triangles, those that share no row."""
    if complicated:
        sparse = ox.sparse_jacobian(lambda *args: hand.complicated(xp, *args), (0, 1))
        return checked(lambda: sparse(hand.pose, hand.places), hand, complicated=True)
    dense = ox.jacobian(lambda pose: hand.simple(xp, pose), mode="forward")
    if record:
        require_recorded(dense, hand.pose)
        dense = ox.record(dense)
    ready = checked(lambda: dense(hand.pose), hand, complicated=False)
    return past_audits(ready) if record else ready


def in_torch(hand: Hand) -> Ready:
    import torch

    jacobian, pose = torch.func.jacfwd(lambda pose: hand.simple(torch, pose)), torch.from_numpy(hand.pose)
    return checked(lambda: jacobian(pose), hand, complicated=False)


def in_jax(hand: Hand) -> Ready:
    import jax

    jax.config.update("jax_enable_x64", True)
    compiled, pose = jax.jit(jax.jacfwd(lambda pose: hand.simple(jax.numpy, pose))), jax.numpy.asarray(hand.pose)
    return checked(lambda: jax.block_until_ready(compiled(pose)), hand, complicated=False)


def by_hand(hand: Hand) -> Contestant:
    """The residuals in C++, and the sum of their squares."""
    relatives, inverses, base, weights, targets, table = map(np.ascontiguousarray, hand.constants(np))
    nearest = hand.indices(np)[0]
    arrays = [hand.pose, relatives, inverses, base, weights, targets, table, np.array(PARENTS), nearest]
    residuals = np.zeros(targets.size)
    sizes = [BONES, len(base), len(targets)]
    return cpp.contestant("ht", [*arrays, residuals, *sizes], lambda: float(np.sum(hand.simple(np, hand.pose) ** 2)))


def contestants(*, complicated: bool) -> list[Contestant]:
    hand = Hand(size(544, 20), size(100, 6))
    value = (
        (lambda: hand.complicated(np, hand.pose, hand.places)) if complicated else lambda: hand.simple(np, hand.pose)
    )
    peers = [
        Contestant("oxigrad", "peer", lambda: ours(hand, complicated=False)),
        Contestant("torch, jacfwd", "peer", lambda: in_torch(hand)),
        Contestant("jax, jit, jacfwd", "peer", lambda: in_jax(hand)),
        by_hand(hand),
    ]
    return [
        Contestant("oxigrad", "ours", lambda: ours(hand, complicated=True))
        if complicated
        else Contestant("oxigrad, recorded", "ours", lambda: ours(hand, complicated=False, record=True)),
        *([] if complicated else peers),
        Contestant("NumPy, value only", "ceiling", lambda: Ready(value, lambda: None)),
    ]


ROWS = [
    Row(
        "gradbench ht simple, 100 points",
        lambda: contestants(complicated=False),
        (Goal(1.5, "jax, jit, jacfwd"), Goal(1 / 3, cpp.NAME)),
        samples=9,
    ),
    Row("gradbench ht complicated, 100 points", lambda: contestants(complicated=True), samples=9),
]
