"""Indexed updates: values compared with NumPy's assignment, derivatives, and invalid keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from oxigrad import xp
from oxigrad.testing import check_grads

X = np.arange(12.0).reshape(3, 4) + 0.5
KEYS: dict[str, Any] = {
    "item": (1, 2),
    "row": 1,
    "slice": (slice(None, None, -1), slice(1, 3)),
    "ellipsis": (..., 0),
    "integers": np.array([2, 0]),
    "mask": X > 5,
}
METHODS: dict[str, Callable[[np.ndarray, Any, Any], None]] = {
    "set": lambda x, key, v: x.__setitem__(key, v),
    "add": lambda x, key, v: x.__setitem__(key, x[key] + v),
    "subtract": lambda x, key, v: x.__setitem__(key, x[key] - v),
    "multiply": lambda x, key, v: x.__setitem__(key, x[key] * v),
    "divide": lambda x, key, v: x.__setitem__(key, x[key] / v),
}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("method", METHODS)
def test_values_are_those_of_assignment_and_derivatives_are_right(method: str, key: str) -> None:
    place = KEYS[key]
    values = X[place] * 0.5 + 2.0
    expected = X.copy()
    METHODS[method](expected, place, values)

    def update(x: Any, v: Any) -> Any:
        return getattr(x.at[place], method)(v)

    value, _ = ox.vjp(update, X, np.asarray(values))
    np.testing.assert_array_equal(value, expected)
    check_grads(lambda x, v: getattr(xp.at(x)[place], method)(v), (X, np.asarray(values)))


def test_a_number_is_broadcast() -> None:
    gradient = ox.grad(lambda x: xp.sum(x.at[1:].set(3.0) ** 2))(np.array([1.0, 2.0, 4.0]))
    np.testing.assert_array_equal(gradient, [2.0, 0.0, 0.0])


def test_elements_that_are_named_twice() -> None:
    twice = np.array([0, 0, 1])
    np.testing.assert_array_equal(xp.at(np.zeros(3))[twice].add(np.array([1.0, 2.0, 4.0])), [3.0, 4.0, 0.0])
    with pytest.raises(ValueError, match="found a key with repeated elements"):
        xp.at(np.zeros(3))[twice].set(np.array([1.0, 2.0, 4.0]))
    np.testing.assert_array_equal(xp.at(np.zeros(3))[twice].set(5.0), [5.0, 5.0, 0.0])


def test_the_dtype_stays() -> None:
    x = np.zeros(3, np.float32)
    for updated in (xp.at(x)[1:].set(np.ones(2)), xp.at(x)[1:].add([1.0, 1.0]), xp.at(x)[1:].set([[1.0, 1.0]])):
        np.testing.assert_array_equal(updated, np.array([0.0, 1.0, 1.0], np.float32), strict=True)
    with pytest.raises(ox.DtypeError, match="real part"):
        xp.at(x)[0].set(1j)


def test_nothing_is_changed_in_place() -> None:
    x = np.zeros(3)
    xp.at(x)[0].set(1.0)
    np.testing.assert_array_equal(x, 0.0)


def test_any_array_library(asarray) -> None:
    updated = xp.at(asarray(X))[1, :2].set(9.0)
    expected = X.copy()
    expected[1, :2] = 9.0
    np.testing.assert_array_equal(host(updated), expected)
