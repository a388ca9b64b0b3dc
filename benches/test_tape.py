"""A chain of 2,000 small operations: recorded, then replayed. On a number the tape is what costs."""

import numpy as np
import pytest

import oxigrad as ox
from rows.chain import SLOPE, X, chain, ours_on_a_number, ours_on_an_array


def test_scalar_chain(benchmark):
    ready = ours_on_a_number()
    ready.check()
    benchmark(ready.call)


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
