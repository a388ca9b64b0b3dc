"""Elementwise functions of a million float64 numbers: value and gradient of their sum."""

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp

# The derivative of each function, in NumPy.
SLOPES = {
    "square": lambda x: 2 * x,
    "exp": np.exp,
    "log": lambda x: 1 / x,
    "sin": np.cos,
    "tanh": lambda x: 1 / np.cosh(x) ** 2,
    "sqrt": lambda x: 0.5 / np.sqrt(x),
}


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(0).uniform(0.5, 2.5, 1_000_000)


@pytest.mark.parametrize("name", SLOPES)
def test_elementwise(benchmark, name, x):
    f = getattr(xp, name)
    both = ox.value_and_grad(lambda x: xp.sum(f(x)))
    value, gradient = both(x)
    np.testing.assert_allclose(value, getattr(np, name)(x).sum(), rtol=1e-11)
    np.testing.assert_allclose(gradient, SLOPES[name](x), rtol=1e-11)
    benchmark(both, x)


def test_mix(benchmark, x):
    """Functions of functions, whose intermediate arrays cost as much as their arithmetic."""

    def f(x):
        return xp.sum(xp.exp(-x) * xp.sin(x) + xp.tanh(x) * x)

    both = ox.value_and_grad(f)
    value, gradient = both(x)
    np.testing.assert_allclose(value, np.sum(np.exp(-x) * np.sin(x) + np.tanh(x) * x), rtol=1e-11)
    slope = np.exp(-x) * (np.cos(x) - np.sin(x)) + np.tanh(x) + x / np.cosh(x) ** 2
    np.testing.assert_allclose(gradient, slope, rtol=1e-9, atol=1e-12)
    benchmark(both, x)
