"""A whole Jacobian: the positions of the points of a hand with respect to the angles of its joints.

26 joints, each with a rotation about an axis of its own below that of its parent, move 100 points: 300 outputs, 26
inputs. Reverse mode takes a pass for each output, forward mode one for each input. The form is that of the hand tracking
of ADBench (Srajer, Kukelova and Fitzgibbon 2018), made small. The reference is central differences.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import oxigrad as ox
from measure import Contestant, Goal, Ready, Row, WrongResultError
from oxigrad import xp

JOINTS, POINTS = 26, 100
PARENTS = [-1, *((joint - 1) if joint % 5 else 0 for joint in range(1, JOINTS))]


def rotations() -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The matrices of each joint: the coefficients of the cosine and the sine of its angle, and the constant term."""
    rng = np.random.default_rng(0)
    joints = []
    for axis in rng.integers(0, 3, JOINTS):
        i, k = (axis + 1) % 3, (axis + 2) % 3
        by_cos, by_sin, fixed = np.zeros((4, 4)), np.zeros((4, 4)), np.eye(4)
        by_cos[i, i] = by_cos[k, k] = by_sin[k, i] = 1.0
        by_sin[i, k] = -1.0
        fixed[i, i] = fixed[k, k] = 0.0
        fixed[:3, 3] = rng.standard_normal(3)
        joints.append((by_cos, by_sin, fixed))
    return joints


def hand(lib: Any, convert: Callable[[np.ndarray], Any]) -> Callable[[Any], Any]:
    """The function, over a library: from angles to the positions of the points, one below the other."""
    joints = [tuple(map(convert, matrices)) for matrices in rotations()]
    points = np.concatenate([np.random.default_rng(1).standard_normal((POINTS, 3)), np.ones((POINTS, 1))], axis=1)
    owned = [convert(points[joint::JOINTS]) for joint in range(JOINTS)]
    concat = lib.concat if lib is xp else lib.concatenate

    def positions(angles: Any) -> Any:
        cosines, sines = lib.cos(angles), lib.sin(angles)
        placed: list[Any] = []
        for joint, (by_cos, by_sin, fixed) in enumerate(joints):
            turned = cosines[joint] * by_cos + sines[joint] * by_sin + fixed
            parent = PARENTS[joint]
            placed.append(turned if parent < 0 else placed[parent] @ turned)
        return concat([(own @ to.T)[:, :3] for own, to in zip(owned, placed, strict=True)])

    return positions


def angles() -> np.ndarray:
    return np.random.default_rng(2).standard_normal(JOINTS)


def checked(call: Callable[[], Any]) -> Ready:
    """A contestant whose call returns the Jacobian."""
    at, step, f = angles(), 1e-6, hand(np, np.asarray)
    columns = [(f(at + step * unit) - f(at - step * unit)) / (2 * step) for unit in np.eye(JOINTS)]
    reference = np.stack(columns, axis=-1)

    def check() -> None:
        found = np.asarray(call())
        if found.shape != (POINTS, 3, JOINTS) or not np.abs(found - reference).max() < 1e-7:
            raise WrongResultError("the Jacobian is not that of central differences")

    return Ready(call, check)


def ours(mode: Any) -> Ready:
    jacobian, at = ox.jacobian(hand(xp, np.asarray), mode=mode), angles()
    return checked(lambda: jacobian(at))


def in_torch(transform: str) -> Ready:
    import torch

    f, at = hand(torch, torch.from_numpy), torch.from_numpy(angles())
    if transform == "jacfwd":
        forward = torch.func.jacfwd(f)
        return checked(lambda: forward(at))
    return checked(lambda: torch.autograd.functional.jacobian(f, at))


def in_jax() -> Ready:
    import jax

    jax.config.update("jax_enable_x64", True)
    compiled, at = jax.jit(jax.jacfwd(hand(jax.numpy, jax.numpy.asarray))), jax.numpy.asarray(angles())
    return checked(lambda: jax.block_until_ready(compiled(at)))


def in_autograd() -> Ready:
    import autograd.numpy
    from autograd import jacobian

    rows, at = jacobian(hand(autograd.numpy, np.asarray)), angles()
    return checked(lambda: rows(at))


def value_only() -> Ready:
    f, at = hand(np, np.asarray), angles()
    return Ready(lambda: f(at), lambda: None)


def contestants() -> list[Contestant]:
    return [
        Contestant("oxigrad", "ours", lambda: ours(None)),
        Contestant("oxigrad, reverse", "peer", lambda: ours("reverse")),
        Contestant("torch, row by row", "peer", lambda: in_torch("jacobian")),
        Contestant("torch, jacfwd", "peer", lambda: in_torch("jacfwd")),
        Contestant("autograd, row by row", "peer", in_autograd),
        Contestant("jax, jit, jacfwd", "peer", in_jax),
        Contestant("NumPy, value only", "ceiling", value_only),
    ]


ROWS = [
    Row(
        "Jacobian of a hand, 300 outputs, 26 inputs",
        contestants,
        (Goal(50, "torch, row by row"),),
        samples=9,
        threads=1,
    )
]
