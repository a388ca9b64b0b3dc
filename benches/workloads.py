"""The rows of `compare.py`: small programs over the public API that old revisions have, too.

A row is a function that sets up and returns the call to time. A call may be repeated; it changes at most the values of arrays.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import oxigrad as ox
from oxigrad import xp

Call = Callable[[], Any]
Setup = Callable[[], Call]


def update(leaves: int, size: int) -> Setup:
    """A steady step of Adam in float32: the plan and the slots exist already."""

    def setup() -> Call:
        rng = np.random.default_rng(0)
        model, grads = ([rng.standard_normal(size, dtype=np.float32) for _ in range(leaves)] for _ in range(2))
        optimizer = ox.optim.Adam(1e-4)
        for _ in range(3):
            optimizer.update(model, grads)
        return lambda: optimizer.update(model, grads)

    return setup


def named_update() -> Call:
    """A steady step of SGD on a dict of a weight and a bias."""
    model = {"weight": np.ones((3, 2)), "bias": np.zeros(2)}
    grads = {"weight": np.full((3, 2), 1e-3), "bias": np.full(2, 1e-3)}
    optimizer = ox.optim.SGD(learning_rate=1e-3)
    optimizer.update(model, grads)
    return lambda: optimizer.update(model, grads)


def gradient(f: Callable[[Any], Any], x: Any) -> Setup:
    """The gradient of a small function."""

    def setup() -> Call:
        g = ox.grad(f)
        return lambda: g(x)

    return setup


def chain(x: Any) -> Any:
    """200 operations, of numbers or arrays of any kind."""
    y = x
    for _ in range(100):
        y = y * 0.999
        y = y + x
    return y


def network() -> Call:
    """Value and gradient of a perceptron 2-16-1 on 32 rows."""
    rng = np.random.default_rng(0)
    x, target = rng.standard_normal((32, 2)), rng.standard_normal((32, 1))
    model = [rng.standard_normal((2, 16)), np.zeros(16), rng.standard_normal((16, 1)), np.zeros(1)]

    def loss(model: Any) -> Any:
        hidden = xp.tanh(x @ model[0] + model[1])
        return xp.mean((hidden @ model[2] + model[3] - target) ** 2)

    both = ox.value_and_grad(loss)
    return lambda: both(model)


def recurrent() -> Call:
    """Value and gradient of a gated recurrent net of eight units over 20 steps, with slices, `concat` and `stack`."""
    rng, units = np.random.default_rng(0), 8
    inputs, target = rng.standard_normal((20, 3)), rng.standard_normal((20, units))
    weights, bias = 0.3 * rng.standard_normal((3 + units, 2 * units)), np.zeros(2 * units)

    def loss(weights: Any, bias: Any) -> Any:
        state, states = np.zeros(units), []
        for x in inputs:
            gates = xp.concat([x, state]) @ weights + bias
            keep = 0.5 + 0.5 * xp.tanh(gates[:units])
            state = keep * state + (1.0 - keep) * xp.tanh(gates[units:])
            states.append(state)
        return xp.mean((xp.stack(states) - target) ** 2)

    both = ox.value_and_grad(loss, argnums=(0, 1))
    return lambda: both(weights, bias)


def slices() -> Call:
    """The gradient of a sum over the rows of a matrix, each taken by a basic index."""
    x = np.random.default_rng(0).standard_normal((50, 20))
    g = ox.grad(lambda x: xp.sum(x[0] * x[1]) + sum(xp.sum(x[i, 2:] * x[i, :-2]) for i in range(2, 50)))
    return lambda: g(x)


def minimize() -> Call:
    """A step by `minimize` on a model of ten leaves."""
    model = {str(i): np.full(4, 1.0 + i) for i in range(10)}
    optimizer = ox.optim.Adam(1e-6)

    def loss(model: Any) -> Any:
        total = 0.0
        for leaf in model.values():
            total = total + xp.sum(leaf * leaf)
        return total

    optimizer.minimize(loss, model)
    return lambda: optimizer.minimize(loss, model)


def tree(size: int) -> Any:
    """A dict of a list of lists of arrays, ten to a list."""
    return {"blocks": [[np.zeros(2, np.float32) for _ in range(10)] for _ in range(size // 10)]}


def flatten() -> Call:
    """Leaves and structure of a tree of 1,000 leaves."""
    model = tree(1000)
    return lambda: ox.tree.flatten(model)


def unflatten() -> Call:
    """A tree of 1,000 leaves from its leaves."""
    leaves, structure = ox.tree.flatten(tree(1000))
    return lambda: ox.tree.unflatten(structure, leaves)


def pullback() -> Call:
    """The backward pass alone, of the chain on a float."""
    _, back = ox.vjp(chain, 0.75)
    return lambda: back(1.0)


ROWS: dict[str, Setup] = {
    "update, 1 leaf of 10": update(1, 10),
    "update, 2 leaves of 10": update(2, 10),
    "update, weight and bias": named_update,
    "update, 1000 leaves of 1": update(1000, 1),
    "update, 1000 leaves of 1000": update(1000, 1000),
    "update, 1 leaf of 4M": update(1, 4_000_000),
    "grad of x * x, float": gradient(lambda x: x * x, 3.0),
    "grad of x * x, 0-d array": gradient(lambda x: x * x, np.array(3.0)),
    "grad of sum(x * x), array of 3": gradient(lambda x: xp.sum(x * x), np.ones(3)),
    "grad of sum(exp(x)), array of 1000": gradient(lambda x: xp.sum(xp.exp(x)), np.linspace(-1.0, 1.0, 1000)),
    "chain of 200, float": gradient(chain, 0.75),
    "chain of 200, np.float64": gradient(chain, np.float64(0.75)),
    "chain of 200, 0-d array": gradient(chain, np.array(0.75)),
    "chain of 200, array of 10": gradient(lambda x: xp.sum(chain(x)), np.linspace(0.5, 1.5, 10)),
    "chain of 200, float, backward": pullback,
    "network 2-16-1": network,
    "recurrent net, 20 steps": recurrent,
    "basic slices": slices,
    "minimize, 10 leaves": minimize,
    "tree.flatten, 1000 leaves": flatten,
    "tree.unflatten, 1000 leaves": unflatten,
}
