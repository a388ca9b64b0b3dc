"""Recorded programs over small arrays, as people write them: a filter, a hidden Markov model, a differential equation, a recurrence.

Everybody evaluates the same formula; results are checked as in `rows.gradients`.
"""

from typing import Any

import numpy as np

import sizes
from measure import Contestant, Goal, Row
from rows import gradients
from rows.gradients import Arrays, Objective
from rows.recorded import recorded

STEPS = sizes.items(200)
RNG = np.random.default_rng(5)
MATRIX, STATE = RNG.normal(size=(10, 10)) / 3.0, RNG.normal(size=10)
SHIFTS, FACTORS = np.linspace(0.1, 0.5, 14), np.linspace(-1.0, 1.0, 14)
TRANSITIONS, EMISSIONS = (each / each.sum(1, keepdims=True) for each in (RNG.random((8, 8)), RNG.random((8, 5))))
SYMBOLS = [int(symbol) for symbol in RNG.integers(0, 5, sizes.items(300))]
MOTION, LOOK = np.eye(4) + 0.1 * np.eye(4, k=2), np.eye(2, 4)
SEEN = RNG.normal(size=(STEPS, 2))


def recurrence(lib: Any, w: Any) -> Any:
    """The sum of the last state of a recurrence of 14 numbers."""
    shift = lib.asarray(SHIFTS)
    h = shift
    for _ in range(STEPS):
        h = lib.tanh(h * w + 0.1) + shift
    return h.sum()


def runge_kutta(lib: Any, matrix: Any, y: Any) -> Any:
    """The squares of the last state of ``y' = tanh(M y) - y / 10``, added up, by the method of Runge and Kutta."""

    def slope(y: Any) -> Any:
        return lib.tanh(matrix @ y) - y / 10

    h = 0.05
    for _ in range(STEPS):
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        k4 = slope(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return (y * y).sum()


def forward_algorithm(lib: Any, transitions: Any, emissions: Any) -> Any:
    """The log-likelihood of symbols under a hidden Markov model of eight states."""
    states = emissions[:, SYMBOLS[0]] / 8
    likelihood = 0.0
    for symbol in SYMBOLS[1:]:
        total = states.sum()
        likelihood = likelihood + lib.log(total)
        states = ((states / total) @ transitions) * emissions[:, symbol]
    return likelihood + lib.log(states.sum())


def kalman_filter(lib: Any, noise: Any, error: Any) -> Any:
    """The log-likelihood, but for a constant, of what a Kalman filter of four states sees: two numbers a step."""
    motion, look, seen = lib.asarray(MOTION), lib.asarray(LOOK), lib.asarray(SEEN)
    state, spread = lib.asarray(np.zeros(4)), lib.asarray(np.eye(4))
    likelihood = 0.0
    for step in range(STEPS):
        state, spread = motion @ state, motion @ spread @ motion.T + noise
        of_seen, surprise = look @ spread @ look.T + error, seen[step] - look @ state
        gain = spread @ look.T @ lib.linalg.inv(of_seen)
        likelihood = likelihood - 0.5 * (
            surprise @ lib.linalg.solve(of_seen, surprise) + lib.log(lib.linalg.det(of_seen))
        )
        state, spread = state + gain @ surprise, spread - gain @ look @ spread
    return likelihood


def row(name: str, objective: Objective, args: Arrays, faster: float) -> Row:
    """The recorded program beside everybody, the first call on its own; the goal is to be so many times ``faster`` than jax.jit."""

    def build() -> list[Contestant]:
        return [
            Contestant("oxigrad, recorded", "ours", lambda: recorded(objective, args, 1e-5)),
            Contestant("oxigrad", "peer", lambda: gradients.ours(objective, args, 1e-5)),
            Contestant("torch", "peer", lambda: gradients.in_torch(objective, args, 1e-5)),
            Contestant("jax, jit", "peer", lambda: gradients.in_jax(objective, args, 1e-5)),
            Contestant("NumPy, forward only", "ceiling", lambda: gradients.forward_only(objective, args)),
        ]

    return Row(name, build, (Goal(faster, "jax, jit"),), samples=9, threads=1, first=True)


ROWS = [
    row("recorded: 200 steps of 14 numbers", recurrence, [FACTORS], 3.0),
    row("recorded: Kalman filter of 4 states", kalman_filter, [0.1 * np.eye(4), 0.5 * np.eye(2)], 2.5),
    row("recorded: HMM of 8 states", forward_algorithm, [TRANSITIONS, EMISSIONS], 2.5),
    row("recorded: RK4 of 10 states", runge_kutta, [MATRIX, STATE], 2.5),
]
