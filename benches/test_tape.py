"""A chain of 2,000 small operations: recorded, then replayed. On numbers the cost is that of the tape."""

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp
from rows.chain import SLOPE, X, chain, ours_on_a_number, ours_on_an_array


def test_scalar_chain(benchmark):
    ready = ours_on_a_number()
    ready.check()
    benchmark(ready.call)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.array], ids=["float64", "float32", "0-d"])
def test_numpy_scalar_chain(benchmark, kind):
    """At most 1.3 times the cost for a Python float."""
    x = kind(X)
    gradient = ox.grad(chain)
    np.testing.assert_allclose(gradient(x), SLOPE, rtol=1e-11 if x.dtype == np.float64 else 1e-3)
    benchmark(gradient, x)


@pytest.mark.parametrize("x", [X, np.float64(X), np.array(X)], ids=["float", "float64", "0-d"])
def test_gradient_of_one_op(benchmark, x):
    """The overhead of a gradient besides its ops."""
    gradient = ox.grad(lambda x: x * x)
    assert gradient(x) == 2 * X
    benchmark(gradient, x)


def test_gradient_of_a_small_array(benchmark):
    gradient, x = ox.grad(lambda x: xp.sum(x * x)), np.ones(3)
    np.testing.assert_array_equal(gradient(x), 2 * x)
    benchmark(gradient, x)


@pytest.mark.parametrize("size", [10, 1000])
def test_array_chain(benchmark, size):
    ready = ours_on_an_array(np.linspace(0.5, 1.5, size))
    ready.check()
    benchmark(ready.call)


@pytest.mark.parametrize("x", [X, np.linspace(0.5, 1.5, 10)], ids=["scalar", "array"])
def test_record(benchmark, x):
    """Forward only."""

    def record() -> ox.Variable:
        with ox.Tape() as tape:
            return chain(tape.watch(x))

    np.testing.assert_allclose(record().value, SLOPE * x, rtol=1e-11)
    benchmark(record)


@pytest.mark.parametrize("x", [X, np.linspace(0.5, 1.5, 10)], ids=["scalar", "array"])
def test_replay(benchmark, x):
    """Backward only."""
    value, pullback = ox.vjp(chain, x)
    cotangent = np.ones_like(value) if isinstance(value, np.ndarray) else 1.0
    np.testing.assert_allclose(pullback(cotangent)[0], np.full_like(x, SLOPE), rtol=1e-11)
    benchmark(pullback, cotangent)
