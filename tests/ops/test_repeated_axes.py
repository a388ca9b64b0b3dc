"""Axes that are there twice, and differences of order zero: variables have the values of NumPy's functions, and their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp

X = np.random.default_rng(0).normal(size=(3, 4))


def agree(ours: Callable[[Any], Any], theirs: Callable[[Any], Any], x: np.ndarray) -> None:
    """Asserts that a weighted sum has NumPy's value, and the derivative that differences of NumPy's values have."""
    weights = np.random.default_rng(1).normal(size=theirs(x).shape)

    def total(f: Callable[[Any], Any], lib: Any) -> Callable[[Any], Any]:
        return lambda x: lib.sum(lib.real(f(x)) * weights) + lib.sum(lib.imag(f(x)) * weights[::-1])

    value, gradient = ox.value_and_grad(total(ours, xp))(x)
    f, step, direction = total(theirs, np), 1e-6, np.random.default_rng(2).normal(size=x.shape)
    slope = (f(x + step * direction) - f(x - step * direction)) / (2 * step)
    assert np.isclose(value, f(x), rtol=1e-9)
    assert np.isclose(np.sum(gradient * direction), slope, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("x", [X, X[0]], ids=["matrix", "vector"])
@pytest.mark.parametrize("sizes", [None, (3, 3, 3), (2, 5, 5), (6, 2, 4)], ids=str)
@pytest.mark.parametrize("axes", [(-1, 0, 0), (0, 0, 0), (0, -1, 0)], ids=str)
@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_transforms_along_an_axis_that_is_there_twice(name, axes, sizes, x):
    def of(lib: Any) -> Callable[[Any], Any]:
        return lambda x: getattr(lib.fft, name)(x, s=sizes, axes=axes, norm="ortho")

    agree(of(xp), of(np), x)


@pytest.mark.parametrize("sizes", [(-1, 3), (3, -1), (-1, -1)], ids=str)
@pytest.mark.parametrize("axes", [(0, 1), (1, 0), (0, 0)], ids=str)
@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "irfft2"])
def test_a_size_of_minus_one_is_that_of_the_array(name, axes, sizes):
    def of(lib: Any) -> Callable[[Any], Any]:
        return lambda x: getattr(lib.fft, name)(x, s=sizes, axes=axes)

    agree(of(xp), of(np), X)


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("named", [{"prepend": 1.0}, {"append": X}, {"prepend": X[:, :1], "append": 2.0}, {}], ids=list)
def test_differences_of_any_order(named, n):
    agree(lambda x: xp.diff(x, n=n, **named), lambda x: np.diff(x, n=n, **named), X)


def test_differences_of_negative_order_are_refused():
    for call in (lambda x: xp.diff(x, n=-1), ox.grad(lambda x: xp.sum(xp.diff(x, n=-1)))):
        with pytest.raises(ValueError, match="-1"):
            call(X)


@pytest.mark.parametrize("x", [X, X[0]], ids=["matrix", "vector"])
def test_shifts_along_an_axis_that_is_there_twice_are_added(x):
    agree(lambda x: np.roll(x, (1, 1), axis=0), lambda x: np.roll(x, (1, 1), axis=0), x)
    agree(lambda x: xp.roll(x, (2, -1), axis=(0, -x.ndim)), lambda x: np.roll(x, (2, -1), axis=(0, -x.ndim)), x)
