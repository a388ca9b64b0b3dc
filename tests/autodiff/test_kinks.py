"""Derivatives of moduli (absolute values, norms, deviations, distances) and of their functions where they are zero."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from oxigrad import xp

la = xp.linalg
N = 3
D2 = 2.0 * np.eye(N)


def hessians(f: Callable[[Any], Any], x: Any) -> dict[str, Any]:
    """The Hessian in every combination of modes, under vmap, and of recordings."""
    gradient = ox.grad(f)
    pushed = ox.jacobian(f, mode="forward")
    found = {
        "forward over reverse": ox.jacobian(gradient, mode="forward")(x),
        "reverse over reverse": ox.jacobian(gradient, mode="reverse")(x),
        "forward over forward": ox.jacobian(pushed, mode="forward")(x),
        "reverse over forward": ox.jacobian(pushed, mode="reverse")(x),
        "vmap": ox.vmap(ox.hessian(f))(x[None])[0],
        "over vmap": ox.jacobian(lambda x: ox.vmap(gradient)(x[None])[0])(x),
        "recorded": ox.record(ox.hessian(f))(x),
        "of a recording": ox.hessian(ox.record(f))(x),
        "forward over a recorded gradient": ox.jacobian(ox.record(gradient), mode="forward")(x),
        "reverse over a recorded gradient": ox.jacobian(ox.record(gradient), mode="reverse")(x),
    }
    return {way: host(h) for way, h in found.items()}


def as_complex(x: Any) -> Any:
    return x[0] + 1j * x[1]


def centered(x: Any) -> np.ndarray:
    n = x.shape[-1]
    return np.eye(n) - 1.0 / n


# Smooth functions of a modulus, and their Hessians at zero.
SMOOTH: dict[str, tuple[Callable[[Any], Any], np.ndarray]] = {
    "norm**2": (lambda x: la.norm(x) ** 2, D2),
    "square(norm)": (lambda x: xp.square(la.vector_norm(x)), D2),
    "norm * norm": (lambda x: (m := la.norm(x)) * m, D2),
    "power(norm, 2)": (lambda x: np.power(np.linalg.norm(x), 2), D2),
    "np.linalg.norm**2": (lambda x: np.linalg.norm(x) ** 2, D2),
    "norm of rows": (lambda x: xp.sum(la.norm(x[:, None], axis=1) ** 2), D2),
    "norm with keepdims": (lambda x: xp.sum(la.vector_norm(x, keepdims=True) ** 2), D2),
    "norm * norm of two calls": (lambda x: la.norm(x) * la.norm(x), D2),
    "(2 norm)**2": (lambda x: (2.0 * la.norm(x)) ** 2, 4.0 * D2),
    "norm * norm / 2": (lambda x: 0.5 * (m := la.norm(x)) * m, 0.5 * D2),
    "abs * abs / 2": (lambda x: xp.sum(0.5 * abs(x) * abs(x)), 0.5 * D2),
    "(-2 abs)**2": (lambda x: xp.sum((-2.0 * abs(x)) ** 2), 4.0 * D2),
    "abs / 4 * abs": (lambda x: xp.sum(abs(x) / 4.0 * abs(x)), 0.25 * D2),
    "exp(-abs**2)": (lambda x: xp.sum(xp.exp(-(abs(x) ** 2))), -D2),
    "cos(abs)": (lambda x: xp.sum(xp.cos(abs(x))), -0.5 * D2),
    "cosh(abs)": (lambda x: xp.sum(xp.cosh(np.fabs(x))), 0.5 * D2),
    "frobenius**2": (lambda x: la.matrix_norm(x[:, None]) ** 2, D2),
    "exp(-norm**2)": (lambda x: xp.exp(-(la.norm(x) ** 2)), -D2),
    "sqrt(1 + norm**2)": (lambda x: xp.sqrt(1.0 + la.norm(x) ** 2), np.eye(N)),
    "(norm**2)**2": (lambda x: (la.norm(x) ** 2) ** 2, 0.0 * D2),
    "abs**2": (lambda x: xp.sum(abs(x) ** 2), D2),
    "abs * abs": (lambda x: xp.sum(abs(x) * abs(x)), D2),
    "fabs**2": (lambda x: xp.sum(np.fabs(x) ** 2), D2),
    "abs(z)**2": (lambda x: abs(as_complex(x)) ** 2, np.diag([2.0, 2.0, 0.0])),
    "abs(z) * abs(z)": (lambda x: abs(z := as_complex(x)) * abs(z), np.diag([2.0, 2.0, 0.0])),
    "abs(fft)**2": (lambda x: xp.sum(xp.abs(xp.fft.fft(x)) ** 2), N * D2),
    "hypot**2": (lambda x: np.hypot(x[0], x[1]) ** 2, np.diag([2.0, 2.0, 0.0])),
    "hypot of a constant**2": (lambda x: xp.sum(np.hypot(x, 0.0) ** 2), D2),
    "std**2": (lambda x: xp.std(x) ** 2, centered(np.zeros(N)) * 2.0 / N),
    "np.std**2": (lambda x: np.std(x, ddof=1) ** 2, centered(np.zeros(N)) * 2.0 / (N - 1)),
    "nanstd**2": (lambda x: np.nanstd(x) ** 2, centered(np.zeros(N)) * 2.0 / N),
    "pdist**2": (lambda x: xp.sum(xp.spatial.distance.pdist(x[:, None]) ** 2), 2.0 * N * centered(np.zeros(N))),
    "cdist**2": (lambda x: xp.sum(xp.spatial.distance.cdist(x[:, None], np.zeros((2, 1))) ** 2), 2.0 * D2),
    "seuclidean**2": (
        lambda x: xp.sum(xp.spatial.distance.cdist(x[:, None], np.zeros((2, 1)), "seuclidean", V=np.ones(1)) ** 2),
        2.0 * D2,
    ),
    "sqrt(x * x)**2": (lambda x: xp.sqrt(xp.sum(x * x)) ** 2, D2),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_functions_of_a_modulus_have_their_second_derivative(name: str) -> None:
    f, expected = SMOOTH[name]
    x = np.zeros(N)
    np.testing.assert_array_equal(ox.grad(f)(x), x)
    for way, hessian in hessians(f, x).items():
        np.testing.assert_allclose(hessian, expected, atol=1e-12, err_msg=way)


@pytest.mark.parametrize("name", SMOOTH)
def test_so_they_have_away_from_zero(name: str) -> None:
    f, _ = SMOOTH[name]
    x, h = np.array([0.3, -0.7, 0.2]), 1e-6
    for step in np.eye(N):
        differences = (host(ox.grad(f)(x + h * step)) - host(ox.grad(f)(x - h * step))) / (2.0 * h)
        for way, hessian in hessians(f, x).items():
            np.testing.assert_allclose(hessian @ step, differences, atol=1e-8, err_msg=way)


def test_empty_bins_of_a_spectrum() -> None:
    """By Parseval's theorem, the sum of the squares is that of the array, times its size."""
    for way, hessian in hessians(lambda x: xp.sum(abs(np.fft.fft(x)) ** 2), np.full(4, 8.0)).items():
        np.testing.assert_allclose(hessian, 8.0 * np.eye(4), atol=1e-12, err_msg=way)


# Functions of a modulus that have no second derivative at zero, or one that no rule knows.
ROUGH: dict[str, Callable[[Any], Any]] = {
    "norm": la.norm,
    "norm along an axis": lambda x: xp.sum(la.norm(x[:, None], axis=1)),
    "exp(-norm)": lambda x: xp.exp(-la.norm(x)),
    "cos(norm)": lambda x: xp.cos(la.norm(x)),
    "cos(2 norm)": lambda x: xp.cos(2.0 * la.norm(x)),
    "norm * exp(x)": lambda x: la.norm(x) * xp.exp(x[0]),
    "norm of order 3": lambda x: la.norm(x, 3),
    "norm of order 3, squared": lambda x: la.norm(x, 3) ** 2,
    "abs(z)": lambda x: abs(as_complex(x)),
    "cos(abs(z))": lambda x: xp.cos(abs(as_complex(x))),
    "hypot": lambda x: np.hypot(x[0], x[1]),
    "std": xp.std,
    "cosh(std)": lambda x: xp.cosh(xp.std(x)),
    "pdist": lambda x: xp.sum(xp.spatial.distance.pdist(x[:, None])),
    "minkowski": lambda x: xp.sum(xp.spatial.distance.cdist(x[None], np.zeros((1, N)), "minkowski", p=3)),
    "1 / (1 + norm)": lambda x: 1.0 / (1.0 + la.norm(x)),
}


@pytest.mark.parametrize("name", ROUGH)
def test_other_functions_of_a_modulus_have_none(name: str) -> None:
    f, x = ROUGH[name], np.zeros(N)
    np.testing.assert_array_equal(ox.grad(f)(x), x)
    for way, hessian in hessians(f, x).items():
        assert np.isnan(hessian).any(), (way, hessian)


KINKS = {
    "abs": lambda x: xp.sum(abs(x)),
    "norm of order 1": lambda x: la.norm(x, 1),
    "largest": lambda x: la.norm(x, math.inf),
    "maximum": lambda x: xp.sum(xp.maximum(x, 0.0)),
    "weighted abs": lambda x: xp.sum(abs(x) * xp.exp(0.0 * x)),
    "abs**3": lambda x: xp.sum(abs(x) ** 3),
}


@pytest.mark.parametrize("name", KINKS)
def test_kinks_of_one_real_number_keep_the_derivative_zero(name: str) -> None:
    for way, hessian in hessians(KINKS[name], np.zeros(N)).items():
        np.testing.assert_array_equal(hessian, np.zeros((N, N)), err_msg=way)


MASKS = {
    "where": lambda d: xp.where(np.eye(N, dtype=bool), 0.0, d),
    "an index": lambda d: d[np.triu_indices(N, 1)],
    "a boolean index": lambda d: d[~np.eye(N, dtype=bool)],
    "an assignment": lambda d: xp.at(d)[np.arange(N), np.arange(N)].set(0.0),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("of", [lambda d: d, lambda d: 1.0 / (1.0 + d), lambda d: xp.exp(-d)])
def test_masked_zeros_have_no_effect(mask: str, of: Callable[[Any], Any]) -> None:
    """Energies of pairs, of which the distance of each particle from itself is left out."""
    points = np.random.default_rng(0).normal(size=(N, 2))

    def energy(x: Any) -> Any:
        x = xp.reshape(x, (N, 2))
        return xp.sum(of(MASKS[mask](la.norm(x[:, None] - x[None], axis=-1))))

    def by_pairs(x: Any) -> Any:
        x = xp.reshape(x, (N, 2))
        pairs = [of(la.norm(x[i] - x[j])) for i in range(N) for j in range(N) if i != j]
        half = mask == "an index"
        constant = N * float(of(np.array(0.0))) if mask in ("where", "an assignment") else 0.0
        return sum(pairs) * (0.5 if half else 1.0) + constant

    x = points.reshape(-1)
    expected = ox.hessian(by_pairs)(x)
    for way, hessian in hessians(energy, x).items():
        np.testing.assert_allclose(hessian, expected, atol=1e-12, err_msg=way)


@pytest.mark.parametrize("kind", [float, np.float64, np.float32])
def test_numbers(kind: Any) -> None:
    for f in (
        lambda x: abs(x) ** 2,
        lambda x: abs(x) * abs(x),
        lambda x: np.hypot(x, 0.0 * x) ** 2,
        lambda x: xp.sqrt(x * x) ** 2,
    ):
        assert ox.grad(f)(kind(0.0)) == 0.0
        for second in (ox.grad(ox.grad(f)), lambda x, f=f: ox.jvp(ox.grad(f), (x,), (kind(1.0),))[1]):
            assert second(kind(0.0)) == 2.0
    assert ox.grad(ox.grad(abs))(kind(0.0)) == 0.0
    assert math.isnan(ox.grad(ox.grad(lambda x: xp.cos(np.hypot(x, 0.0 * x))))(kind(0.0)))


def test_third_derivatives() -> None:
    third = ox.jacobian(ox.hessian(lambda x: xp.exp(-(la.norm(x) ** 2))))(np.zeros(N))
    np.testing.assert_array_equal(third, np.zeros((N, N, N)))
    fourth = ox.jacobian(ox.jacobian(ox.hessian(lambda x: (la.norm(x) ** 2) ** 2)))(np.zeros(2))
    x = np.zeros(2)
    np.testing.assert_allclose(fourth, ox.jacobian(ox.jacobian(ox.hessian(lambda x: xp.sum(x * x) ** 2)))(x))


def test_the_gradient_with_respect_to_the_modulus_itself() -> None:
    with ox.Tape() as tape:
        x = tape.watch(np.array([3.0, 4.0]))
        m = la.norm(x)
        y = m**2
    assert tape.gradient(y, [m])[0] == 10.0


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_over_another_library(name: str, library: Any) -> None:
    other = library(name)
    zeros = other.zeros(N, dtype=other.float64) if name == "torch" else other.numpy.zeros(N)
    for f, expected in (
        (lambda x: la.norm(x) ** 2, D2),
        (lambda x: xp.exp(-(xp.std(x) ** 2)), -centered(zeros) * 2.0 / N),
    ):
        np.testing.assert_allclose(np.asarray(ox.hessian(f)(zeros)), expected, atol=1e-6)
    for f in (la.norm, lambda x: xp.cos(la.norm(x)), lambda x: xp.hypot(x[0], x[1])):
        np.testing.assert_array_equal(np.asarray(ox.grad(f)(zeros)), np.zeros(N))
        assert np.isnan(np.asarray(ox.hessian(f)(zeros))).any()
