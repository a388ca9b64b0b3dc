"""Value and gradient of the demo's loss, with the products of its matrices on one thread."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import oxigrad as ox
from rows.digits import Problem


@pytest.fixture
def problem():
    with threadpool_limits(1, user_api="blas"):
        yield Problem()


def test_value_and_grad(benchmark, problem):
    model = problem.model()
    both = ox.value_and_grad(problem.demo.cross_entropy)
    value, gradient = both(model, problem.images, problem.labels)
    assert 0 < value < 10
    leaves = [a.astype(np.float64) for a in ox.tree.parameters(model).values()]
    by_hand = problem.gradients(leaves, problem.images.astype(np.float64))
    for found, right in zip(ox.tree.parameters(gradient).values(), by_hand, strict=True):
        np.testing.assert_allclose(found, right, atol=1e-6)
    benchmark(both, model, problem.images, problem.labels)


def test_value(benchmark, problem):
    """The same function on plain arrays: nothing is recorded."""
    model = problem.model()
    value = ox.value_and_grad(problem.demo.cross_entropy)(model, problem.images, problem.labels)[0]
    arguments = model, problem.images, problem.labels
    assert problem.demo.cross_entropy(*arguments) == value
    benchmark(problem.demo.cross_entropy, *arguments)
