"""Updates by AdamW: one large array, many small ones, and a tiny model, which measures the overhead of a call."""

import numpy as np
import pytest

import oxigrad as ox
from rows.adamw import Problem, ours


@pytest.mark.parametrize(("count", "size"), [(1, 1_000_000), (1000, 1000), (1, 1)], ids=["1x1M", "1000x1000", "1x1"])
def test_adamw(benchmark, count, size):
    ready = ours(Problem([(size,)] * count))
    ready.check()
    benchmark(ready.call)


@pytest.mark.parametrize(("count", "size"), [(1, 1_000_000), (1000, 1000)], ids=["1x1M", "1000x1000"])
def test_adamw_that_records_norms(benchmark, count, size):
    grads = [np.full(size, 0.5, np.float32) for _ in range(count)]
    model = [np.ones(size, np.float32) for _ in range(count)]
    optimizer = ox.optim.AdamW(record_norms=("gradient", "update", "parameter"))
    optimizer.update(model, grads)
    assert optimizer.global_norm("gradient") == pytest.approx(0.5 * (count * size) ** 0.5)
    benchmark(optimizer.update, model, grads)


def test_tiny_model(benchmark):
    model = {"weight": np.ones((3, 2)), "bias": np.zeros(2)}
    grads = {"weight": np.ones((3, 2)), "bias": np.ones(2)}
    optimizer = ox.optim.SGD(learning_rate=0.5)
    assert optimizer.update(model, grads) is model
    np.testing.assert_array_equal(model["bias"], [-0.5, -0.5])
    benchmark(optimizer.update, model, grads)


def test_first_step(benchmark):
    """A new optimizer: the plan and the slots are made."""
    model, grads = ([np.ones(10, np.float32) for _ in range(100)] for _ in range(2))

    def begin() -> ox.optim.AdamW:
        optimizer = ox.optim.AdamW()
        optimizer.update(model, grads)
        return optimizer

    assert list(begin().slots) == [str(i) for i in range(100)]
    benchmark(begin)
