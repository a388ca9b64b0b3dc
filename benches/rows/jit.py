"""AdamW under ``jax.jit``, parameters and state donated: `oxigrad.optax` and `Optimizer.apply` beside optax.

``apply`` takes the whole step; ``update`` and ``apply_updates`` are two, which XLA fuses. ``optax.flatten`` keeps the state in one array a slot, since
many small arrays cost XLA more than the step does: with it, either library's transformation is timed on them.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import oxigrad as ox
import sizes
from measure import Contestant, Goal, Ready, Row
from rows.adamw import ABSOLUTE_JAX, BETA1, BETA2, DECAY, EPSILON, OPTAX, RATE, Problem, optax_adamw, optax_optimizer

ARGUMENTS = (RATE, BETA1, BETA2, EPSILON)

# A step: new parameters and state from parameters, gradients and state.
Step = Callable[[Any, Any, Any], tuple[Any, Any]]


def jitted(problem: Problem, init: Callable[[Any], Any], step: Step) -> Ready:
    """A step under jit, parameters and state donated; compiled before it is timed, blocked on in the call."""
    import jax

    params, grads = (list(map(jax.numpy.asarray, arrays)) for arrays in problem.arrays())
    held = {"params": params, "state": init(params)}
    compiled = jax.jit(step, donate_argnums=(0, 2))

    def call() -> None:
        held["params"], held["state"] = jax.block_until_ready(compiled(held["params"], grads, held["state"]))

    def result() -> Iterator[Any]:
        return map(np.asarray, held["params"])

    return problem.ready(call, result, ABSOLUTE_JAX)


def pure(problem: Problem) -> Ready:
    """`Optimizer.apply`."""
    opt = ox.optim.AdamW(*ARGUMENTS, DECAY)
    return jitted(problem, opt.init, opt.apply)


def applied(problem: Problem) -> Ready:
    """``apply`` of `oxigrad.optax.adamw`."""
    import oxigrad.optax

    tx = oxigrad.optax.adamw(*ARGUMENTS, weight_decay=DECAY)
    return jitted(problem, tx.init, lambda params, grads, state: tx.apply(grads, state, params))


def updated(problem: Problem) -> Ready:
    """``update`` of `oxigrad.optax.adamw`, and optax's ``apply_updates``."""
    import oxigrad.optax

    return optax_optimizer(problem, oxigrad.optax.adamw(*ARGUMENTS, weight_decay=DECAY))


def flat(problem: Problem, library: str) -> Ready:
    """``adamw`` of a library within ``optax.flatten``."""
    import importlib

    import optax

    made = importlib.import_module(library).adamw(*ARGUMENTS, weight_decay=DECAY)
    return optax_optimizer(problem, optax.flatten(made))


def contestants(shapes: list[tuple[int, ...]]) -> list[Contestant]:
    """Everybody, for arrays of these shapes; flat states for many."""
    problem = Problem(shapes)
    everybody = [
        Contestant("oxigrad.optax apply", "ours", functools.partial(applied, problem)),
        Contestant("oxigrad.optax update", "peer", functools.partial(updated, problem)),
        Contestant("Optimizer.apply", "peer", functools.partial(pure, problem)),
        Contestant(OPTAX, "peer", functools.partial(optax_adamw, problem)),
    ]
    many = [
        Contestant("oxigrad.optax update, flat", "peer", functools.partial(flat, problem, "oxigrad.optax")),
        Contestant("optax jit, flat", "peer", functools.partial(flat, problem, "optax")),
    ]
    return [*everybody, *(many if len(shapes) > 1 else [])]


ROWS = [
    Row("jit adamw 1 x 50M", lambda: contestants([(sizes.numbers(50_000_000),)]), (Goal(1.4, OPTAX),), warm=False),
    Row("jit adamw 1000 x 1000", lambda: contestants([(1000,)] * sizes.items(1000)), (Goal(3, OPTAX),)),
]
