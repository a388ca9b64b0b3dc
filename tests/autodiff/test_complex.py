"""Complex arguments and results of transforms, and the conventions beside JAX's and HIPS autograd's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp

Z = np.array([1.0 + 2.0j, 0.5 - 1.0j, -0.7 + 0.2j])
z = 1.0 + 2.0j

# Functions of a namespace and a complex vector: to a real number, and holomorphic ones to a complex number.
REAL: dict[str, Callable[[Any, Any], Any]] = {
    "abs": lambda m, x: m.sum(m.abs(x)),
    "square": lambda m, x: m.sum(m.abs(x) ** 2),
    "real": lambda m, x: m.sum(m.real(x * x * (1.0 - 2.0j))),
    "imag": lambda m, x: m.imag(m.sum(m.exp(x))),
    "conj": lambda m, x: m.real(m.sum(m.conj(x) * x * x)),
    "fft": lambda m, x: m.sum(m.abs(m.fft.fft(x)) ** 2 * (m.arange(3) + 1.0)),
    "matmul": lambda m, x: m.abs(m.matmul(x, x[::-1] * 1j)),
}
HOLOMORPHIC: dict[str, Callable[[Any, Any], Any]] = {
    "square": lambda m, x: m.sum(x * x),
    "exp": lambda m, x: m.sum(m.exp(x) * (1.0 + 3.0j)),
    "sin": lambda m, x: m.sum(m.sin(x) / x),
    "sqrt": lambda m, x: m.sqrt(m.sum(x)),
    "index": lambda m, x: x[0] * x[1] ** 3,
}


@pytest.mark.parametrize("name", REAL)
def test_gradients_of_real_functions_are_those_of_jax(name: str, library: Any) -> None:
    jax, jnp = library("jax"), library("jax.numpy")
    f = REAL[name]
    expected = jax.grad(lambda x: f(jnp, x))(jnp.asarray(Z))
    np.testing.assert_allclose(ox.grad(lambda x: f(xp, x))(Z), expected, rtol=2e-5)


@pytest.mark.parametrize("name", [name for name in REAL if name != "matmul"])  # autograd has no abs of its result
def test_gradients_of_real_functions_are_those_of_autograd(name: str, library: Any) -> None:
    autograd, anp = library("autograd"), library("autograd.numpy")
    f = REAL[name]
    np.testing.assert_allclose(ox.grad(lambda x: f(xp, x))(Z), autograd.grad(lambda x: f(anp, x))(Z), rtol=1e-12)


def test_a_gradient_is_da_minus_i_db() -> None:
    f, step = (lambda x: REAL["fft"](xp, x)), 1e-6
    gradient = ox.grad(f)(Z)
    for at in range(3):
        unit = np.eye(3)[at] * step
        da, db = ((f(Z + d) - f(Z - d)) / (2.0 * step) for d in (unit, 1j * unit))
        np.testing.assert_allclose(gradient[at], da - 1j * db, rtol=1e-6)


@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_holomorphic_derivatives_are_those_of_jax(name: str, library: Any) -> None:
    jax, jnp = library("jax"), library("jax.numpy")
    f = HOLOMORPHIC[name]
    own, theirs = (lambda x: f(xp, x)), (lambda x: f(jnp, x))
    value, gradient = ox.value_and_grad(own, holomorphic=True)(Z)
    np.testing.assert_allclose(gradient, jax.grad(theirs, holomorphic=True)(jnp.asarray(Z)), rtol=2e-5)
    np.testing.assert_array_equal(value, own(Z))
    np.testing.assert_array_equal(ox.grad(own, holomorphic=True)(Z), gradient)
    for mode in ("forward", "reverse", None):
        np.testing.assert_allclose(ox.jacobian(own, mode=mode, holomorphic=True)(Z), gradient, rtol=1e-12)
        expected = jax.jacrev(lambda x: jnp.exp(x) * x[0], holomorphic=True)(jnp.asarray(Z))
        found = ox.jacobian(lambda x: xp.exp(x) * x[0], mode=mode, holomorphic=True)(Z)
        np.testing.assert_allclose(found, expected, rtol=2e-5)
    _, change = ox.jvp(own, (Z,), (1j * Z,))
    np.testing.assert_allclose(change, xp.sum(gradient * 1j * Z), rtol=1e-12)


def test_python_s_complex_numbers() -> None:
    assert ox.grad(lambda x: xp.real(x * x))(z) == 2.0 * z
    assert ox.grad(lambda x: x * x, holomorphic=True)(z) == 2.0 * z
    assert ox.grad(ox.grad(lambda x: x**3, holomorphic=True), holomorphic=True)(z) == 6.0 * z
    assert ox.grad(lambda x: (x * x, 5), has_aux=True, holomorphic=True)(z) == (2.0 * z, 5)
    assert ox.grad(lambda x: x * x, holomorphic=True)(x=z) == 2.0 * z
    assert ox.grad(lambda tree: xp.real(tree["a"] * tree["b"]))({"a": z, "b": 2.0}) == {"a": 2.0, "b": 1.0}
    assert ox.vjp(lambda x: x * x, z)[1](1j) == (2j * z,)
    assert ox.vjp(lambda x: x * 1j, 2.0)[1](1j) == (-1.0,)
    assert ox.jvp(lambda x: x * x, (z,), (1j,)) == (z * z, 2j * z)
    assert ox.jvp(lambda x: x * 1j, (2.0,), (1.0,)) == (2j, 1j)
    assert ox.linearize(lambda x: x * x, z)[1](1j) == 2j * z
    assert ox.jacobian(lambda x: x * x)(z) == 2.0 * z
    assert ox.jacobian(lambda x: x * (1.0 + 2.0j))(2.0) == 1.0 + 2.0j
    assert ox.hvp(lambda x: xp.real(x**3), (z,), (1.0 + 0.0j,)) == (6.0 * z,)
    np.testing.assert_array_equal(ox.grad(lambda x: x * 0.0 + z, holomorphic=True)(z), 0.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ox.grad(lambda x: x * x)(z), "is complex, and only a real value has a gradient.*holomorphic=True"),
        (
            lambda: ox.grad(lambda x: x * x, holomorphic=True)(2.0),
            "grad with holomorphic=True: found a value of dtype float64",
        ),
        (lambda: ox.grad(xp.real, holomorphic=True)(z), "found a value of dtype float64, expected complex arguments"),
        (lambda: ox.jacobian(xp.sin, holomorphic=True)(np.ones(2)), "jacobian with holomorphic=True: found a value of"),
        (
            lambda: ox.jacobian(xp.abs, holomorphic=True)(Z),
            "jacobian with holomorphic=True: found a value of dtype float64",
        ),
        (lambda: ox.jvp(lambda x: x * x, (2.0,), (1j,)), "found a complex value, expected a real one"),
    ],
)
def test_what_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ox.DtypeError, match=message):
        call()


def test_jacobians_of_mixed_kinds() -> None:
    np.testing.assert_array_equal(ox.jacobian(lambda x: x * (1.0 + 2.0j))(np.ones(2)), (1.0 + 2.0j) * np.eye(2))
    np.testing.assert_allclose(ox.jacobian(xp.abs)(Z), np.diag(np.conj(Z) / np.abs(Z)), rtol=1e-15)
    with pytest.raises(ox.DerivativeError, match="take real and imaginary parts"):
        ox.jacobian(xp.abs, mode="forward")(Z)
