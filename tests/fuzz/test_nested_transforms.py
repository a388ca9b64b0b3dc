"""Random nests of `grad`, `jvp`, `hessian` and `vmap`, around random functions, beside the same nests with a loop in place of `vmap`."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import tree, xp

NESTS = 40
X, W = np.array([0.4, 1.3, -0.7]), np.array([[0.9, 0.2, -0.4], [0.3, -1.1, 0.5], [-0.2, 0.6, 1.2]])
WEIGHTS = np.array([1.0, 0.8])

# Of a vector and a matrix: vectors.
STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "x @ w": lambda x, w: x @ w,
    "w @ x": lambda x, w: w @ x,
    "tanh(x)": lambda x, w: xp.tanh(x),
    "x * w[0]": lambda x, w: x * w[0],
    "x / (1 + w[1]**2)": lambda x, w: x / (1.0 + w[1] ** 2),
    "(1 + x**2)**w[2]": lambda x, w: (1.0 + x * x) ** w[2],
    "atan2(x, w[0])": lambda x, w: xp.atan2(x, w[0]),
    "logaddexp(x, w[1])": lambda x, w: xp.logaddexp(x, w[1]),
    "hypot(x, w[2])": lambda x, w: xp.hypot(x, w[2]),
    "where(x > w[0], ...)": lambda x, w: xp.where(x > w[0], x * x, w[1]),
    "maximum(x, w[2])": lambda x, w: xp.maximum(x, w[2]),
    "einsum": lambda x, w: xp.einsum("i,ij,j->j", x, w, x),
    "tensordot": lambda x, w: xp.tensordot(w, x, axes=([0], [0])),
    "concat": lambda x, w: xp.concat([x[1:], w[0][:1]]),
    "stack": lambda x, w: xp.sum(xp.stack([x, w[1], x * w[2]]), axis=0),
    "solve": lambda x, w: xp.linalg.solve(w + 4.0 * xp.eye(3), x),
    "softmax": lambda x, w: xp.special.softmax(x * w[0]),
    "norm": lambda x, w: x / xp.linalg.vector_norm(x + w[0] + 2.0),
    "sort": lambda x, w: xp.sort(x) * w[1],
    "checkpoint": ox.checkpoint(lambda x, w: xp.sin(x @ w) * x),
    "rule": ox.custom_vjp(
        lambda x, w: x * x * w[0],
        lambda g, y, x, w: (2.0 * g * x * w[0], xp.stack([g * x * x, xp.zeros_like(x), xp.zeros_like(x)])),
    ),
}


def total(result: Any) -> Any:
    """A number of all results."""
    return sum(xp.sum(xp.sin(leaf)) for leaf in tree.leaves(result))


def grad(f: Any, by: int, looped: bool) -> Any:
    """The gradient of a number of the results."""
    return ox.grad(lambda x, w: total(f(x, w)), by)


def jvp(f: Any, by: int, looped: bool) -> Any:
    """The derivative along a direction."""
    if by:
        return lambda x, w: ox.jvp(lambda w: f(x, w), (w,), (W,))[1]
    return lambda x, w: ox.jvp(lambda x: f(x, w), (x,), (X,))[1]


def hessian(f: Any, by: int, looped: bool) -> Any:
    """The Hessian with respect to the vector, the smaller of the arguments."""
    return ox.hessian(lambda x, w: total(f(x, w)))


def vmap(f: Any, by: int, looped: bool) -> Any:
    """The results for two vectors, two matrices, or two of each."""
    axes = ((0, None), (None, 0), (0, 0))[by]

    def mapped(x: Any, w: Any) -> Any:
        args = [
            xp.reshape(WEIGHTS, (2, *(1,) * len(arg.shape))) * arg if axis == 0 else arg
            for arg, axis in zip((x, w), axes, strict=True)
        ]
        if not looped:
            return ox.vmap(f, axes)(*args)
        each = [f(*(arg[k] if axis == 0 else arg for arg, axis in zip(args, axes, strict=True))) for k in (0, 1)]
        return tree.map(lambda *parts: xp.stack(list(parts)), *each)

    return mapped


TRANSFORMS = {"grad": (grad, 2), "jvp": (jvp, 2), "hessian": (hessian, 1), "vmap": (vmap, 3)}


def written(seed: int) -> tuple[list[str], list[tuple[str, int]]]:
    """The steps of a function and the transforms around it, the innermost first; `vmap` is among them, with a derivative inside."""
    choice = random.Random(seed)
    steps = choice.choices(list(STEPS), k=choice.randint(1, 3))
    names = [*choice.choices(["grad", "jvp", "hessian"], k=choice.randint(1, 2)), "vmap"]
    names += choice.choices(["grad", "jvp", "vmap", "grad"], k=choice.randint(0, 2))
    return steps, [(name, choice.randrange(TRANSFORMS[name][1])) for name in names]


def nested(steps: list[str], transforms: list[tuple[str, int]], *, looped: bool) -> Any:
    """The result of the nest at the point."""

    def f(x: Any, w: Any) -> Any:
        for step in steps:
            x = STEPS[step](x, w)
        return xp.sum(xp.sin(x))

    for name, by in transforms:
        f = TRANSFORMS[name][0](f, by, looped)
    return f(X, W)


def fault(seed: int) -> str:
    """The fault of the nest of a seed; empty if there is none."""
    steps, transforms = written(seed)
    wanted = nested(steps, transforms, looped=True)
    try:
        found = nested(steps, transforms, looped=False)
        for one, other in zip(tree.leaves(found), tree.leaves(wanted), strict=True):
            size = max(1.0, float(np.max(np.abs(other))))
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * size)
    except Exception as error:  # noqa: BLE001 - any is a fault
        return f"seed {seed}: {steps}, {transforms}: {type(error).__name__}: {str(error)[:300]}"
    return ""


def seeds(seconds: float | None) -> Iterator[int]:
    """The seeds of the nests: always the same ones, or new ones for so long."""
    if seconds is None:
        yield from range(NESTS)
        return
    start = time.time()
    seed = int(start)
    while time.time() - start < seconds:
        yield (seed := seed + 1)


def test_nests_of_transforms_are_those_of_loops(request: pytest.FixtureRequest) -> None:
    with np.errstate(all="ignore"):
        faults = [what for seed in seeds(request.config.getoption("--fuzz-seconds")) if (what := fault(seed))]
    assert not faults, "\n".join(faults[:5])
