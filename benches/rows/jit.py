"""AdamW under ``jax.jit``, parameters and state donated: `oxigrad.optax` and `Optimizer.apply` beside optax.

``apply`` takes the whole step; ``update`` and ``apply_updates`` are two, which XLA fuses. Many small arrays cost XLA more than the
step does: ``optax.flatten`` keeps parameters and slots in one array each.
"""

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


def flattened(problem: Problem) -> Ready:
    """`oxigrad.optax.adamw` within optax.flatten."""
    import optax

    import oxigrad.optax

    return optax_optimizer(problem, optax.flatten(oxigrad.optax.adamw(*ARGUMENTS, weight_decay=DECAY)))


def optax_flattened(problem: Problem) -> Ready:
    """optax.adamw within optax.flatten."""
    import optax

    return optax_optimizer(problem, optax.flatten(optax.adamw(*ARGUMENTS, weight_decay=DECAY)))


def large() -> list[Contestant]:
    """Everybody, on one array."""
    problem = Problem([(sizes.numbers(50_000_000),)])
    return [Contestant("oxigrad.optax apply", "ours", lambda: applied(problem)), *others(problem)]


def many() -> list[Contestant]:
    """Everybody, on many arrays."""
    problem = Problem([(1000,)] * sizes.items(1000))
    return [
        Contestant("oxigrad.optax, optax.flatten", "ours", lambda: flattened(problem)),
        Contestant("oxigrad.optax apply", "peer", lambda: applied(problem)),
        Contestant("optax.flatten", "peer", lambda: optax_flattened(problem)),
        *others(problem),
    ]


def others(problem: Problem) -> list[Contestant]:
    """Contestants that take arrays of any library."""
    return [
        Contestant("oxigrad.optax update", "peer", lambda: updated(problem)),
        Contestant("Optimizer.apply", "peer", lambda: pure(problem)),
        Contestant(OPTAX, "peer", lambda: optax_adamw(problem)),
    ]


ROWS = [
    Row("jit adamw 1 x 50M", large, (Goal(1.4, OPTAX),), warm=False),
    Row("jit adamw 1000 x 1000", many, (Goal(3, OPTAX),)),
]
