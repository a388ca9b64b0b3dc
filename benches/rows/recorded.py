"""Recorded functions, replayed: beside jax.jit, and beside the same functions as they run without a recording.

Everybody evaluates the same formula; results are checked as in `rows.gradients`, whose problems two of these are.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

import oxigrad as ox
import sizes
from measure import Contestant, Goal, Ready, Row
from oxigrad import xp
from rows import digits, gradients, jacobians
from rows.gradients import Arrays, Objective, Problem, checked


def recorded(objective: Objective, args: Arrays, tolerance: float) -> Ready:
    """`record` of `value_and_grad` of the objective over `xp`."""
    both = ox.value_and_grad(lambda *args: objective(xp, *args), argnums=tuple(range(len(args))))
    require_recorded(both, *args)
    replayed = ox.record(both)
    return past_audits(checked(lambda: replayed(*args), objective, args, tolerance))


def past_audits(ready: Ready) -> Ready:
    """A recorded contestant, whose first 50 calls, of which five are audited, are timed apart."""
    return dataclasses.replace(ready, early=sizes.items(50))


def require_recorded(f: Any, *args: Any) -> None:
    """Raises `RuntimeError` where a function cannot be recorded, whose row would time the function as it is."""
    recorded = ox.record(f)
    recorded(*args)  # which may fill caches of the objective
    recorded(*args)
    if not recorded.recordings:
        raise RuntimeError(f"it was not recorded: {recorded.why}")


def rosenbrock(_: Any, x: Any) -> Any:
    """Rosenbrock's function of a vector."""
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def huber(lib: Any, x: Any) -> Any:
    """The sum of Huber's loss of residuals, which compares them with whole numbers."""
    return lib.where(abs(x) > 1, abs(x) - 0.5, x * x / 2).sum()


def at_random(length: int) -> Callable[[], Arrays]:
    """A vector of float64."""
    return lambda: [np.random.default_rng(3).normal(size=length)]


def pendulum(lib: Any, angle: Any, length: Any) -> Any:
    """The squares of a pendulum's angles, added up over 300 steps of 0.01 seconds."""
    speed = total = 0.0
    for _ in range(sizes.items(300)):
        speed = speed - 0.01 * 9.81 / length * lib.sin(angle)
        angle = angle + 0.01 * speed
        total = total + angle * angle
    return total


def row(name: str, problem: Problem, tolerance: float, faster: float, **settings: Any) -> Row:
    """The recorded function beside jax.jit, and as it is; the goal is to be so many times ``faster`` than jax.jit."""
    objective, make = problem

    def build() -> list[Contestant]:
        args = make()
        return [
            Contestant("oxigrad, recorded", "ours", lambda: recorded(objective, args, tolerance)),
            Contestant("oxigrad", "peer", lambda: gradients.ours(objective, args, tolerance)),
            Contestant("jax, jit", "peer", lambda: gradients.in_jax(objective, args, tolerance)),
            Contestant("NumPy, forward only", "ceiling", lambda: gradients.forward_only(objective, args)),
        ]

    return Row(name, build, (Goal(faster, "jax, jit"),), **settings)


def first_call(name: str, problem: Problem, tolerance: float) -> Row:
    """The first call of a recording, each time a new one, beside the function as it is; the goal is at most twice the time."""
    objective, make = problem

    def first(args: Arrays) -> Ready:
        both = ox.value_and_grad(lambda *args: objective(xp, *args), argnums=tuple(range(len(args))))
        require_recorded(both, *args)
        return checked(lambda: ox.record(both)(*args), objective, args, tolerance)

    def build() -> list[Contestant]:
        args = make()
        return [
            Contestant("oxigrad, first call", "ours", lambda: first(args)),
            Contestant("oxigrad", "peer", lambda: gradients.ours(objective, args, tolerance)),
        ]

    return Row(name, build, (Goal(0.5, "oxigrad"),))


def hand_jacobian() -> Ready:
    """The Jacobian of `rows.jacobians`, recorded."""
    jacobian, at = ox.jacobian(jacobians.hand(xp, np.asarray)), jacobians.angles()
    require_recorded(jacobian, at)
    replayed = ox.record(jacobian)
    return past_audits(jacobians.checked(lambda: replayed(at)))


def hand_contestants() -> list[Contestant]:
    """Everybody at the Jacobian of a hand."""
    return [
        Contestant("oxigrad, recorded", "ours", hand_jacobian),
        Contestant("oxigrad", "peer", lambda: jacobians.ours(None)),
        Contestant("jax, jit, jacfwd", "peer", jacobians.in_jax),
        Contestant("NumPy, value only", "ceiling", jacobians.value_only),
    ]


def digits_step(problem: digits.Problem) -> Ready:
    """The step of `rows.digits`, by `minimize` with a recording."""
    model, optimizer = problem.model(), ox.optim.AdamW(learning_rate=digits.RATE, weight_decay=digits.DECAY)

    cross_entropy, images, labels = problem.demo.cross_entropy, problem.images, problem.labels

    def loss(model: Any) -> Any:
        return cross_entropy(model, images, labels)

    def call() -> Any:
        return float(optimizer.minimize(loss, model, record=True))

    require_recorded(ox.value_and_grad(loss), model)

    return past_audits(problem.ready(call, lambda: list(ox.tree.parameters(model).values())))


def digits_contestants() -> list[Contestant]:
    """Everybody at the step of `rows.digits`."""
    problem = digits.Problem()
    return [
        Contestant("oxigrad, recorded", "ours", lambda: digits_step(problem)),
        Contestant("oxigrad", "peer", lambda: digits.ours(problem)),
        Contestant("jax and optax, jit", "peer", lambda: digits.jax_step(problem)),
        Contestant("matrix products alone", "ceiling", lambda: digits.products(problem)),
    ]


MILLION = sizes.numbers(1_000_000)
ROWS = [
    row("recorded: Rosenbrock 1e6", (rosenbrock, at_random(MILLION)), 1e-3, 0.8),
    row("recorded: mix of functions 1e6", (gradients.mix, at_random(MILLION)), 1e-3, 4.0),
    row("recorded: Huber loss 1e6", (huber, at_random(MILLION)), 1e-3, 1.0),
    row("recorded: network 2-16-1", gradients.network((2, 16, 1), 4, np.float64), 1e-6, 3.0),
    row("recorded: pendulum of 300 steps", (pendulum, lambda: [np.array(1.0), np.array(2.0)]), 1e-5, 1.0, samples=9),
    Row("recorded: digits step, 1 thread", digits_contestants, (Goal(1.5, "jax and optax, jit"),), threads=1),
    row("recorded: network 784-128-64-10", gradients.network((784, 128, 64, 10), 64, np.float32), 2e-3, 1.2, threads=1),
    row("recorded: mixture d=10 K=25", gradients.mixture(10, 25, sizes.items(1000)), 1e-5, 1.3, samples=15),
    row("recorded: mixture d=20 K=50", gradients.mixture(20, 50, sizes.items(1000)), 1e-5, 1.3, samples=9),
    Row("recorded: Jacobian of a hand", hand_contestants, (Goal(0.8, "jax, jit, jacfwd"),), samples=9, threads=1),
    first_call("first call: network 2-16-1", gradients.network((2, 16, 1), 4, np.float64), 1e-6),
    first_call("first call: network 784-128-64-10", gradients.network((784, 128, 64, 10), 64, np.float32), 2e-3),
    first_call("first call: mix of functions 1e6", (gradients.mix, at_random(MILLION)), 1e-3),
]
