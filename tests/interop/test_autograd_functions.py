"""Functions of HIPS autograd, differentiated by it inside of oxigrad: to second order, in both modes, with primitives of the user."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
import oxigrad.autograd
from libraries import host
from oxigrad import xp
from oxigrad.ops.backends import on_host
from oxigrad.testing import check_grads

autograd: Any = pytest.importorskip("autograd")
import autograd.numpy as anp  # noqa: E402
import autograd.scipy.special as asp  # noqa: E402
import autograd.scipy.stats as ast  # noqa: E402
from autograd.extend import defvjp, primitive  # noqa: E402

from oxigrad.interop.autograd import from_autograd  # noqa: E402

X = np.array([0.7, 1.9, 2.6])


@primitive
def cube(x: Any) -> Any:
    return np.asarray(x) ** 3


defvjp(cube, lambda ans, x: lambda g: 3.0 * g * x**2)

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "array": lambda x: anp.sum(anp.array([x[0], x[1] * x[2]]) ** 2),
    "complex": lambda x: anp.sum(anp.abs(anp.fft.fft(x) * (1.0 + 2.0j)) ** 2),
    "concatenate": lambda x: anp.concatenate([x, x * x]),
    "logsumexp": asp.logsumexp,
    "norm": lambda x: ast.norm.logpdf(x, 0.2, 1.3),
    "of a primitive": lambda x: anp.sum(cube(x) * x),
    "slogdet": lambda x: anp.linalg.slogdet(anp.outer(x, x) + anp.eye(3))[1],
    "stack": lambda x: anp.sum(anp.stack([x, x]) ** 2, axis=0),
    "trees": lambda x: {"a": x * 2.0, "b": (anp.sum(x), anp.sin(x[0]))},
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name: str) -> None:
    check_grads(from_autograd(FUNCTIONS[name]), (X,))
    if name not in ("concatenate", "norm", "stack", "trees"):
        f = from_autograd(FUNCTIONS[name])
        np.testing.assert_allclose(ox.grad(f)(X), autograd.grad(FUNCTIONS[name])(X), rtol=1e-14)
        np.testing.assert_allclose(ox.hessian(f)(X), autograd.hessian(FUNCTIONS[name])(X), rtol=1e-12, atol=1e-13)


def test_it_is_a_part_of_a_recording() -> None:
    f = from_autograd(lambda x, w: anp.tanh(x) * w)
    whole = lambda x, w: xp.sum(f(x * x, w) ** 2) + w  # noqa: E731
    check_grads(whole, (X, 0.3))
    np.testing.assert_allclose(ox.vmap(ox.grad(whole), (0, None))(np.stack([X, -X]), 0.3)[1], ox.grad(whole)(-X, 0.3))
    assert from_autograd(lambda x: x**3)(2.0) == 8.0
    assert ox.grad(from_autograd(lambda x, power: x**power))(2.0, power=3) == 12.0


def test_arrays_of_every_library(arrays: Any) -> None:
    f = lambda x: xp.sum(from_autograd(FUNCTIONS["stack"])(x))  # noqa: E731
    x = arrays.asarray(X)
    if on_host(x):
        np.testing.assert_allclose(host(ox.grad(f)(x)), 4.0 * X)


def test_a_complex_argument_has_the_conventions_of_both() -> None:
    f = lambda z: anp.real(anp.sum(z * z * (1.0 - 2.0j)))  # noqa: E731
    z = X + 1j * X[::-1]
    np.testing.assert_allclose(ox.grad(from_autograd(f))(z), autograd.grad(f)(z))


def test_refusals() -> None:
    with pytest.raises(TypeError, match="expected a function"):
        from_autograd(3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ox.DerivativeError, match="uses a variable that is not among its arguments"):
        ox.grad(lambda x: xp.sum(from_autograd(lambda y: y * x)(X)))(X)


@pytest.mark.parametrize("at", [np.array([1, 2]), np.array([1, 2], np.int8), np.int64(3), np.array([], np.int64), 3])
def test_integers_are_differentiated_as_numbers_under_the_names_of_autograd(at: Any) -> None:
    floats = np.asarray(at, np.float64)[()]
    for f in (lambda x: np.sum(x**2), lambda x: np.sum(np.sin(1.0 * x)), lambda x: np.sum(x * x * 0.5)):
        expected = ox.grad(f)(floats)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            value, gradient = oxigrad.autograd.value_and_grad(f)(at)
            np.testing.assert_array_equal(oxigrad.autograd.grad(f)(at), expected)
        assert value == f(floats) and np.all(gradient == expected)
    theirs = autograd.grad(lambda x: anp.sum(anp.sin(x)))
    np.testing.assert_array_equal(
        oxigrad.autograd.grad(lambda x: np.sum(np.sin(x)))(X.astype(int)), theirs(X.astype(int))
    )
