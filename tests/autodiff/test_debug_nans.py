"""`debug_nans` names the operation and the line where a NaN first appears."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp


def root(x: Any) -> Any:
    return xp.sum(xp.sqrt(x) * 0.0)  # the derivative of sqrt


def logarithm(x: Any) -> Any:
    y = xp.log(x)  # the value of log
    return xp.sum(y * 2.0)


ARRAYS = [np.float64(0.0), 0.0, np.zeros(()), np.zeros(3), np.zeros((2, 2), np.float32)]


@pytest.mark.parametrize("x", ARRAYS, ids=repr)
def test_the_first_value_that_is_nan(x: Any) -> None:
    with (
        ox.debug_nans(),
        np.errstate(all="ignore"),
        pytest.raises(ox.NonFiniteError, match=r"^log gives NaN, at .*test_debug_nans.py:\d+: y = xp.log\(x\)"),
    ):
        ox.grad(logarithm)(x - 1.0)


@pytest.mark.parametrize("x", ARRAYS, ids=repr)
def test_the_first_derivative_that_is_nan(x: Any) -> None:
    message = r"^the derivative of sqrt gives NaN; recorded at .*test_debug_nans.py:\d+: return xp.sum\(xp.sqrt"
    with ox.debug_nans(), np.errstate(all="ignore"):
        for call in (lambda: ox.grad(root)(x), lambda: ox.vjp(root, x)[1](ox.vjp(root, x)[0] + 1.0)):
            with pytest.raises(ox.NonFiniteError, match=message):
                call()


def test_the_entry_is_found_among_others() -> None:
    def f(x: Any, y: Any) -> Any:
        u = xp.exp(x) + y
        v = xp.where(x < 1.5, xp.sqrt(x), u)  # what is not selected has no derivative
        return xp.sum(xp.matmul(v, v) + xp.sin(y))

    with ox.debug_nans(), np.errstate(all="ignore"):
        ox.grad(f, (0, 1))(np.array([1.0, 2.0]), np.ones(2))
        with pytest.raises(ox.NonFiniteError, match="the derivative of sqrt gives NaN; .*v = xp.where"):
            ox.grad(f, (0, 1))(np.array([1.0, 0.0]), np.ones(2))


def test_nothing_is_searched_outside_and_in_other_threads() -> None:
    with np.errstate(all="ignore"):
        assert np.isnan(ox.grad(root)(np.zeros(1))).all()
        found: list[Any] = []
        with ox.debug_nans():
            thread = threading.Thread(target=lambda: found.append(ox.grad(root)(np.zeros(1))))
            thread.start()
            thread.join()
            with ox.debug_nans():
                pass
            with pytest.raises(ox.NonFiniteError):
                ox.grad(root)(np.zeros(1))
        assert np.isnan(found[0]).all()
        assert np.isnan(ox.grad(root)(np.zeros(1))).all()


@pytest.mark.parametrize(
    "f",
    [lambda x: xp.sum(xp.sin(x) * x), lambda x: x[0] * xp.max(x), lambda x: xp.linalg.det(xp.outer(x, x) + np.eye(3))],
)
def test_derivatives_are_the_same(f: Callable[[Any], Any]) -> None:
    x = np.array([1.0, 2.0, 3.0])
    expected = ox.value_and_grad(f)(x), ox.hessian(f)(x)
    with ox.debug_nans():
        found = ox.value_and_grad(f)(x), ox.hessian(f)(x)
    for own, other in zip(ox.tree.leaves(found), ox.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(own, other)
