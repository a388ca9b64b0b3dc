"""Gradients of programs of structured ops on small arrays, whose cost is that of the replay more than of arithmetic."""

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp

WIDTH, LENGTH = 16, 32


def normal(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape) / 4


def dense_net(weights, x):
    """A net of three dense layers."""
    for w, b in weights:
        x = xp.tanh(x @ w + b)
    return xp.mean(xp.sum(x * x, axis=-1))


def recurrent_net(weights, x):
    """A recurrent net that reads the rows of ``x`` one by one, and stacks its states."""
    w, u, b = weights
    h, states = xp.zeros(WIDTH), []
    for t in range(LENGTH):
        h = xp.tanh(x[t] @ w + h @ u + b)
        states.append(h)
    return xp.sum(xp.stack(states) ** 2)


def attention(weights, x):
    """Attention of one head."""
    q, k, v = (x @ w for w in weights)
    scores = q @ xp.matrix_transpose(k) / WIDTH**0.5
    scores = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
    return xp.mean((scores / xp.sum(scores, axis=-1, keepdims=True)) @ v)


def items(weights, x):
    """The items of an array, one by one."""
    (w,) = weights
    return xp.sum(xp.stack([x[t] * w for t in range(LENGTH)]))


def joined(weights, x):
    """Parts of an array, put together in another order and shape."""
    (w,) = weights
    x = xp.concat([x[1:] * w, x[:1]], axis=0)
    return xp.sum(xp.permute_dims(xp.reshape(xp.expand_dims(x, axis=0), (2, LENGTH // 2, WIDTH)), (1, 0, 2)) ** 2)


def square():
    return normal(WIDTH, WIDTH)


PROGRAMS = {
    dense_net: [(square(), normal(WIDTH)) for _ in range(3)],
    recurrent_net: [square(), square(), normal(WIDTH)],
    attention: [square() for _ in range(3)],
    items: [normal(WIDTH)],
    joined: [normal(WIDTH)],
}


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_gradient(benchmark, f):
    weights, x = PROGRAMS[f], normal(LENGTH, WIDTH)
    gradient = ox.grad(f, argnums=(0, 1))
    _, along_x = gradient(weights, x)
    direction = normal(LENGTH, WIDTH)
    slope = (f(weights, x + 1e-6 * direction) - f(weights, x - 1e-6 * direction)) / 2e-6
    np.testing.assert_allclose(np.sum(along_x * direction), slope, rtol=1e-6)
    benchmark(gradient, weights, x)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_replay(benchmark, f):
    """The replay alone, of a tape that was recorded before."""
    with ox.Tape() as tape:
        weights = ox.tree.map(tape.watch, PROGRAMS[f])
        x = tape.watch(normal(LENGTH, WIDTH))
        y = f(weights, x)
    sources = [*ox.tree.leaves(weights), x]
    assert all(np.any(found) for found in tape.gradient(y, sources))
    benchmark(tape.gradient, y, sources)
