"""Functions of NumPy under a derivative, of empty arrays, of arrays without dimensions and of numbers: as NumPy's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox

ARGUMENTS = {
    "no dimensions": np.array(2.0),
    "empty": np.zeros(0),
    "one": np.array([1.5]),
    "two": np.array([1.5, -0.5]),
    "no columns": np.zeros((2, 0)),
    "matrix": np.ones((1, 1)),
}
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "broadcast_to": lambda x: np.broadcast_to(x, 3),
    "convolve": lambda x: np.convolve(x, x),
    "correlate": lambda x: np.correlate(x, x),
    "cov": np.cov,
    "cov, ddof": lambda x: np.cov(x, ddof=3),
    "cov, weights": lambda x: np.cov(x, ddof=3, fweights=np.ones(2, int)),
    "kron": lambda x: np.kron(x, 2),
    "kron of a number": lambda x: np.kron(2.0, x),
    "median": np.median,
    "median along an axis": lambda x: np.median(x, axis=0),
    "moveaxis": lambda x: np.moveaxis(x, 0, 0),
    **{
        f"{name} of order {ord}": lambda x, name=name, ord=ord: getattr(np.linalg, name)(x, ord=ord)
        for name in ("vector_norm", "matrix_norm")
        for ord in (1, -1, 2, -2, np.inf, -np.inf)
    },
    "nanmedian": lambda x: np.nanmedian(x, axis=-1),
    "quantile": lambda x: np.quantile(x, [0.3, 0.5], axis=0),
    "roll": lambda x: np.roll(x, 1, 0),
    "std": lambda x: np.std(x, ddof=2),
    "vander": lambda x: np.vander(x, 2),
    "var": lambda x: np.var(x, ddof=3),
}


def result(function: Callable[[Any], Any], x: Any) -> Any:
    try:
        return function(x)
    except (IndexError, RuntimeError, TypeError, ValueError) as error:  # ShapeError is a ValueError, AxisError both
        return error


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("argument", ARGUMENTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_refusals_are_those_of_numpy(name: str, argument: str) -> None:
    function, x = FUNCTIONS[name], ARGUMENTS[argument]
    results: list[Any] = []

    def recorded(v: Any) -> Any:
        results.append(ox.stop_gradient(function(v)))
        return 0.0 * np.sum(v)

    raised = result(ox.grad(recorded), x)
    expected = result(function, x)
    if isinstance(expected, Exception):
        assert not results
        assert isinstance(raised, Exception)
    else:
        np.testing.assert_array_equal(np.asarray(results[0]), expected)
        assert np.asarray(results[0]).dtype == expected.dtype


@pytest.mark.parametrize(
    "function", [lambda x: np.kron(x, 3.0), lambda x: np.kron(3.0, x), lambda x: 3.0 * np.broadcast_to(x, 2)]
)
def test_derivatives_and_batches_with_numbers(function: Callable[[Any], Any]) -> None:
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(ox.grad(lambda v: np.sum(function(v)))(x[0]), [3.0, 3.0])
    np.testing.assert_array_equal(ox.vmap(function)(x), 3.0 * x)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("ord", [-1, -2, -0.5])
def test_norms_of_negative_orders_of_infinities(ord: float) -> None:
    x = np.full(2, np.inf)
    assert np.linalg.vector_norm(x, ord=ord) == np.inf
    assert ox.vjp(lambda x: np.linalg.vector_norm(x, ord=ord), x)[0] == np.inf
