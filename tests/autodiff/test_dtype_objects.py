"""Bits that depend on a dtype, and not on which of equal dtype objects an array has: an unpickled one is another than NumPy's own."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp

OBJECTS: dict[str, Callable[[np.dtype], np.dtype]] = {
    "unpickled": lambda dtype: pickle.loads(pickle.dumps(dtype)),  # noqa: S301
    "byte order": lambda dtype: dtype.newbyteorder("="),
    "deep copy": copy.deepcopy,
    "metadata": lambda dtype: np.dtype(dtype, metadata={"unit": "m"}),
}
PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "broadcast": lambda x, w: xp.sum(xp.tanh(x * w[0]) + w[1:2]),
    "repeated": lambda x, w: xp.sum((x[:, None, :] * w[None]) ** 2),
    "mean": lambda x, w: xp.sum(xp.mean(x, axis=0) / (1.0 + w[2] ** 2)),
    "largest": lambda x, w: xp.sum(xp.max(x * w[0], axis=1)),
    "product": lambda x, w: xp.sum(xp.tanh(x @ xp.matrix_transpose(w))),
    "slices": lambda x, w: xp.sum(x[1:] * x[:-1] + x[1:, :1] - x[:-1, 1:2]) + xp.sum(w),
    "repeated indices": lambda x, w: xp.sum(x[np.array([0, 1, 0, 0])] * w[0]),
    "norm": lambda x, w: xp.sum(xp.linalg.vector_norm(x, axis=1)) + xp.sum(w),
    "concatenated": lambda x, w: xp.sum(xp.concat([x, w]) ** 3),
    "cumulative": lambda x, w: xp.sum(xp.cumulative_sum(x, axis=1) * xp.sum(w, axis=0)),
    "chosen": lambda x, w: xp.sum(xp.where(x > 0.0, x, w[1]) * w[0]),
    "standardized": lambda x, w: xp.sum(((x - xp.mean(x, axis=1, keepdims=True)) / xp.std(x, axis=1, keepdims=True)) ** 3 * w[0]),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_do_not_depend_on_the_object(name, dtype):
    random, own = np.random.default_rng(7), np.dtype(dtype)
    arrays = [random.standard_normal(shape) for shape in ((300, 7), (7, 7))]
    f = PROGRAMS[name]
    hvp = lambda x, w: ox.hvp(lambda x: f(x, w), (x,), (x,))  # noqa: E731
    transforms = {
        "reverse": ox.grad(f, argnums=(0, 1)),
        "forward": lambda x, w: ox.jvp(f, (x, w), (w[:1] + x, w)),
        "second": hvp,
    }
    expected = {key: transform(*(a.astype(own) for a in arrays)) for key, transform in transforms.items()}
    for kind, make in OBJECTS.items():
        other = make(own)
        assert other == own
        assert other is not own
        for first, second in ((other, other), (own, other), (other, own)):
            x, w = (np.empty(a.shape, d) for a, d in zip(arrays, (first, second), strict=True))
            x[...], w[...] = arrays
            assert first is x.dtype
            for key, transform in transforms.items():
                for found, right in zip(ox.tree.leaves(transform(x, w)), ox.tree.leaves(expected[key]), strict=True):
                    assert found.dtype == own
                    np.testing.assert_array_equal(found, right, err_msg=f"{key}, {kind}")
