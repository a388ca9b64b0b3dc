"""Methods of NumPy's ufuncs of variables: values, shapes and refusals are NumPy's, whose results are the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp

X = np.random.default_rng(0).normal(size=(3, 4))
NAMES = ("hypot", "logaddexp", "logaddexp2", "fmax", "add", "multiply", "maximum")


def value(f: Any, x: Any) -> Any:
    return ox.vjp(f, x)[0]


@pytest.mark.parametrize("axis", [0, None, (0, 1), ()], ids=str)
@pytest.mark.parametrize("initial", [None, 1.5])
@pytest.mark.parametrize("name", NAMES)
def test_initial_values_count_once(name: str, initial: float | None, axis: Any) -> None:
    named = {} if initial is None else {"initial": initial}
    f = lambda x: getattr(np, name).reduce(x, axis=axis, **named)  # noqa: E731
    np.testing.assert_allclose(value(f, X), f(X), rtol=1e-12)
    y, pull = ox.vjp(f, X)
    direction = np.random.default_rng(1).normal(size=X.shape)
    slope = (f(X + 1e-6 * direction) - f(X - 1e-6 * direction)) / 2e-6
    gradient = pull(0.0 * y + 1.0)[0]
    assert np.sum(gradient * direction) == pytest.approx(np.sum(slope), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("shape", [(0, 3), (1, 3)])
@pytest.mark.parametrize("name", NAMES)
def test_reductions_of_few_elements(name: str, shape: tuple[int, ...]) -> None:
    ufunc, x = getattr(np, name), -np.ones(shape)
    if shape[0] or ufunc.identity is not None:
        np.testing.assert_allclose(value(ufunc.reduce, x), ufunc.reduce(x), strict=True)
    else:
        with pytest.raises(ValueError, match="zero-size|no identity"):
            value(ufunc.reduce, x)
    np.testing.assert_allclose(value(ufunc.accumulate, x), ufunc.accumulate(x), strict=True)
    if shape[0]:
        at = lambda x: ufunc.reduceat(x, [0])  # noqa: E731
        np.testing.assert_allclose(value(at, x), at(x), strict=True)
    nowhere = lambda x: ufunc.reduceat(x, np.zeros(0, int))  # noqa: E731
    np.testing.assert_allclose(value(nowhere, x), nowhere(x), strict=True)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_a_sum_of_infinite_logarithms_shares_its_derivative(name: str, n: int) -> None:
    """A number added to all elements is added to the result."""
    x, reduce = np.full(n, -np.inf), getattr(np, name).reduce
    assert np.sum(ox.grad(reduce)(x)) == 1.0
    assert ox.jvp(reduce, (x,), (np.ones(n),))[1] == 1.0


@pytest.mark.parametrize("name", ["divide", "arctan2", "power", "subtract"])
def test_functions_whose_order_matters_have_one_axis(name: str) -> None:
    with pytest.raises(ValueError, match="not reorderable"):
        value(lambda x: getattr(np, name).reduce(x, axis=None), np.abs(X))


@pytest.mark.parametrize("index", [-1, 3])
@pytest.mark.parametrize("name", ["add", "hypot"])
def test_indices_out_of_range(name: str, index: int) -> None:
    with pytest.raises(IndexError, match=f"{index}"):
        value(lambda x: getattr(np, name).reduceat(x, [index]), X)


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2", "erf", "gammaln", "digamma"])
def test_extended_precision_is_computed_in_double(name: str) -> None:
    where = xp if name.startswith("log") else xp.special
    args = (X[0], X[1]) if name.startswith("log") else (np.abs(X[0]),)
    expected = getattr(where, name)(*args)
    extended = [arg.astype(np.longdouble) for arg in args]
    for y in getattr(where, name)(*extended), ox.vjp(getattr(where, name), *extended)[0]:
        assert y.dtype == np.longdouble
        np.testing.assert_allclose(y, expected, rtol=1e-14)
