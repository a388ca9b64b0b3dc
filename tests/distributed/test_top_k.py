"""Top-k selection, the warm-up, and messages of sparse values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oxigrad.distributed.errors import Refused
from oxigrad.distributed.methods import top_k

# --- selection and messages --------------------------------------------------------------------------------------------


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=40), st.integers(0, 40))
@settings(deadline=None, max_examples=200)
def test_largest_selects_as_a_stable_sort_does(numbers: list[int], count: int) -> None:
    values = np.array(numbers, np.float32)
    order = np.argsort(-np.abs(values), kind="stable")[:count]
    expected = np.sort(order[values[order] != 0])
    np.testing.assert_array_equal(top_k.largest(values, min(count, values.size)), expected)


def test_largest_counts_nan_as_larger_than_infinity() -> None:
    values = np.array([1.0, np.nan, -np.inf, 5.0])
    np.testing.assert_array_equal(top_k.largest(values, 2), [1, 2])
    np.testing.assert_array_equal(values, [1.0, np.nan, -np.inf, 5.0])


def test_density_follows_the_warm_up_of_the_paper() -> None:
    shares = [top_k.density(0.001, 4, step) for step in range(6)]
    assert shares == [0.25, 0.0625, 0.015625, 0.00390625, 0.001, 0.001]
    assert [top_k.density(0.1, 4, step) for step in range(3)] == [0.25, 0.1, 0.1]
    assert top_k.density(1.0, 4, 0) == 1.0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [0, 1, 30])
def test_messages_return_their_indices_and_values(count: int, dtype: str) -> None:
    generator = np.random.default_rng(count)
    indices = np.sort(generator.permutation(100)[:count])
    values = generator.standard_normal(count).astype(dtype)
    message = top_k.pack(indices, values)
    assert message.nbytes == count * (4 + np.dtype(dtype).itemsize)
    found, sent = top_k.unpack(message, 100, np.dtype(dtype))
    np.testing.assert_array_equal(found, indices)
    assert sent.tobytes() == values.tobytes()


@pytest.mark.parametrize(
    "message",
    [
        top_k.pack(np.array([3, 4]), np.ones(2, np.float32))[:-1],
        top_k.pack(np.array([3, 10]), np.ones(2, np.float32)),
        top_k.pack(np.array([4, 3]), np.ones(2, np.float32)),
        top_k.pack(np.array([3, 3]), np.ones(2, np.float32)),
    ],
    ids=["truncated", "out of range", "not increasing", "repeated"],
)
def test_a_malformed_message_is_refused_before_it_is_added(message: np.ndarray) -> None:
    good = top_k.pack(np.array([0]), np.ones(1, np.float32))
    with pytest.raises(Refused, match="a message of sparse values"):
        top_k.mean([good, message], 10, np.dtype(np.float32))


def test_clip_factor_is_that_of_the_global_norm_over_the_square_root_of_workers() -> None:
    gradients = [np.array([3.0, 0.0]), np.array([4.0])]
    assert top_k.clip_factor(gradients, 5.0, 1) == 1.0
    assert math.isclose(top_k.clip_factor(gradients, 5.0, 4), 0.5)
    assert top_k.clip_factor([np.array([np.nan])], 1.0, 4) == 1.0
