"""`Optimizer.init` and `Optimizer.apply` in JAX programs: every optimizer under `jit`, in a `scan`, under `vmap`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from optimizers import OPTIMIZERS
from oxigrad import optim, tree

MATRIX: dict[str, Callable[[], Any]] = {
    "adafactor": lambda: optim.Adafactor(0.1),
    "adafactor-optax": lambda: optim.Adafactor(0.1, compat="optax", min_factored=2, momentum=0.9),
    "sm3": lambda: optim.SM3(0.1),
    "muon": lambda: optim.Muon(0.1),
    "shampoo": lambda: optim.Shampoo(0.1, momentum=0.9, grafting="adagrad"),
    "soap": lambda: optim.SOAP(0.1, interval=2),
}
EVERY = {**OPTIMIZERS, **MATRIX}
STEPS = 4


def problem(seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Parameters, all of them matrices, and the gradients of each step."""
    generator = np.random.default_rng(seed)
    # in the order of JAX, which sorts keys: noise depends on the place of a parameter
    draw = lambda: {"head": generator.standard_normal((3, 3)), "w": generator.standard_normal((4, 3))}  # noqa: E731
    return draw(), [draw() for _ in range(STEPS)]


def as_jax(jax: Any, values: Any) -> Any:
    return jax.tree.map(jax.numpy.asarray, values)


@pytest.mark.parametrize("name", EVERY)
def test_a_scan_under_vmap_takes_the_steps_of_update(name: str, library: Any, precision: Any) -> None:
    jax = library("jax")
    with precision(True):
        starts, gradients = zip(*(problem(seed) for seed in range(2)), strict=True)
        opt = EVERY[name]()

        def trained(params: Any, gradients: Any) -> Any:
            def body(carry: Any, g: Any) -> Any:
                return opt.apply(carry[0], g, carry[1]), None

            # A step that is counted by an array, as a scan returns it.
            state = {**opt.init(params), "step": jax.numpy.zeros((), int)}
            return jax.lax.scan(body, (params, state), gradients)[0]

        stack = lambda trees: jax.tree.map(lambda *leaves: jax.numpy.stack(leaves), *trees)  # noqa: E731
        params = stack([as_jax(jax, start) for start in starts])
        given = stack([stack([as_jax(jax, g) for g in each]) for each in gradients])
        ends, states = jax.jit(jax.vmap(trained))(params, given)
        for number, (start, each) in enumerate(zip(starts, gradients, strict=True)):
            own, model = EVERY[name](), tree.map(np.copy, start)
            for g in each:
                own.update(model, g)
            assert int(states["step"][number]) == STEPS
            for key, value in model.items():
                # roots of the step are of float32 in JAX
                bound = 1e-6 if name in ("madgrad", "adafactor", "adafactor-optax") else 1e-9
                np.testing.assert_allclose(ends[key][number], value, rtol=bound, atol=bound)
                for slot, array in own.slots[key].items():
                    if slot != "bases":  # the sign of an eigenvector is not determined
                        found = states["slots"][key][slot][number]
                        np.testing.assert_allclose(found, array, rtol=10 * bound, atol=10 * bound)
