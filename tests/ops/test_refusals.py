"""Arguments that NumPy refuses for arrays: refused for variables too, under NumPy's name and ours, before any value."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp

X: Any = np.array([1.0, 2.0, 3.0])
M: Any = np.arange(6.0).reshape(2, 3)
CODES = np.array([0, -1, 0])

# Functions of a namespace and a vector of three elements.
REFUSED: dict[str, Callable[[Any, Any], Any]] = {
    "bincount of a negative number": lambda m, p: m.bincount(CODES, weights=p),
    "bincount of fractions": lambda m, p: m.bincount(X, weights=p),
    "bincount of a matrix": lambda m, p: m.bincount(CODES[None] + 1, weights=p),
    "bincount with fewer weights": lambda m, p: m.bincount(CODES + 1, weights=p[:2]),
    "bincount with a negative length": lambda m, p: m.bincount(CODES + 1, weights=p, minlength=-1),
    "histogram over decreasing edges": lambda m, p: m.histogram(X, bins=np.array([3.0, 1.0, 0.0]), weights=p)[0],
    "histogram over edges of a matrix": lambda m, p: m.histogram(X, bins=M, weights=p)[0],
    "histogram of an empty range": lambda m, p: m.histogram(X, range=(2, 1), weights=p)[0],
    "histogram of NaN": lambda m, p: m.histogram(np.array([1.0, np.nan, 2.0]), weights=p)[0],
    "histogram of a rule for bins and weights": lambda m, p: m.histogram(X, bins="auto", weights=p)[0],
    "histogram of half a bin": lambda m, p: m.histogram(X, bins=2.5, weights=p)[0],
    "histogram of no bins": lambda m, p: m.histogram(X, bins=0, weights=p)[0],
    "histogram with weights of another shape": lambda m, p: m.histogram(X[None], weights=p)[0],
    "histogram2d over decreasing edges": lambda m, p: m.histogram2d(X, X, bins=[X[::-1], X], weights=p)[0],
    "vsplit of a vector": lambda m, p: m.vsplit(p, 1)[0],
    "interp with more points than values": lambda m, p: m.interp(0.5, np.arange(4.0), p),
    "interp with fewer points than values": lambda m, p: m.interp(0.5, X[:2], p),
    "interp of a matrix": lambda m, p: m.interp(0.5, M, M * p),
    "cov with negative fweights": lambda m, p: m.cov(p, fweights=np.array([1, -2, 1])),
    "cov with fractions of fweights": lambda m, p: m.cov(p, fweights=np.array([1.0, 2.5, 1.0])),
    "cov with negative aweights": lambda m, p: m.cov(p, aweights=np.array([1.0, -2.0, 1.0])),
    "cov with a fraction as ddof": lambda m, p: m.cov(p, ddof=1.5),
    "pad by a fraction": lambda m, p: m.pad(p, 1.5),
    "convolve with an empty vector": lambda m, p: m.convolve(p, X[:0]),
    "a power of a matrix that is a fraction": lambda m, p: m.linalg.matrix_power(p[:, None] * p, 1.5),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_numpy_refuses(name: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        REFUSED[name](np, X)
    for namespace in (np, xp):
        f = functools.partial(REFUSED[name], namespace)
        with pytest.raises((ValueError, TypeError)):
            ox.vjp(f, X)
        with pytest.raises((ValueError, TypeError)):
            ox.record(f)(X)


@pytest.mark.parametrize("dtype", [bool, np.uint64, np.int8])
def test_bincount_takes_every_whole_number(dtype: Any) -> None:
    codes = np.array([0, 1, 1]).astype(dtype)
    value, pullback = ox.vjp(lambda p: np.bincount(codes, weights=p, minlength=4), X)
    np.testing.assert_array_equal(value, np.bincount([0, 1, 1], weights=X, minlength=4))
    np.testing.assert_array_equal(pullback(np.array([5.0, 7.0, 0.0, 0.0]))[0], [5.0, 7.0, 7.0])
