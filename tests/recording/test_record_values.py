"""Functions whose code looks at values in host memory: a replay on values that are looked at otherwise has the function's bits."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from test_record import equal

import oxigrad as ox
from oxigrad import tree, xp


def outcome(f: Callable[..., Any], x: Any) -> Any:
    """The result of a call, or the class and text of its exception."""
    try:
        return f(x)
    except Exception as error:  # noqa: BLE001 - compared
        return type(error).__name__, str(error)


def nilpotent(rng: np.random.Generator) -> Iterator[np.ndarray]:
    for power in (0, 3, 7, 1):
        yield np.array([[0.0, 10.0**power], [0.0, 0.1 * rng.random()]])


def with_negative_eigenvalues(rng: np.random.Generator) -> Iterator[np.ndarray]:
    for signs in ([1, 1, 1], [1, 1, 1], [1, -1, 1], [1, 1, 1], [-1, -1, 1]):
        yield np.diag(rng.uniform(1.0, 2.0, 3) * signs) + 0.01 * rng.random((3, 3))


def singular(rng: np.random.Generator) -> Iterator[np.ndarray]:
    for scale in (1.0, 1.0, 2.0, 1.0):
        yield np.array([[scale, 2.0], [2.0, 2.0]]) * 2.0 ** rng.integers(0, 3)


def matrices(rng: np.random.Generator) -> Iterator[np.ndarray]:
    for _ in range(4):
        yield rng.normal(size=(3, 3)) + 3.0 * np.eye(3)


def with_complex_eigenvalues(rng: np.random.Generator) -> Iterator[np.ndarray]:
    for sign in (1, 1, -1, 1, -1):
        yield np.array([[1.0, rng.uniform(0.5, 1.0)], [sign * rng.uniform(0.5, 1.0), 2.0]])


def increasing_or_not(rng: np.random.Generator) -> Iterator[np.ndarray]:
    for sign in (1, 1, -1, 1):
        yield sign * np.cumsum(rng.uniform(0.1, 1.0, 6))


def weights(rng: np.random.Generator) -> Iterator[np.ndarray]:
    for sign in (1, 1, -1, 1):
        yield sign * rng.uniform(0.1, 1.0, (4, 3))


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[np.random.Generator], Iterator[np.ndarray]]]] = {
    "expm": (xp.linalg.expm, nilpotent),
    "coshm": (xp.linalg.coshm, nilpotent),
    "expm_frechet": (lambda x: xp.linalg.expm_frechet(x, x.T), nilpotent),
    "sqrtm": (xp.linalg.sqrtm, with_negative_eigenvalues),
    "logm": (xp.linalg.logm, with_negative_eigenvalues),
    "det": (xp.linalg.det, with_negative_eigenvalues),
    "cond": (lambda x: np.linalg.cond(x, 1), singular),
    "eigvals": (lambda x: xp.abs(xp.linalg.eigvals(x)) ** 2, with_complex_eigenvalues),
    "eig": (lambda x: xp.abs(xp.linalg.eig(x).eigenvectors), with_complex_eigenvalues),
    "roots": (lambda x: xp.abs(np.roots(xp.ravel(x)[:3])), with_complex_eigenvalues),
    "solve_sylvester": (lambda x: xp.linalg.solve_sylvester(x, x + 2.0, x.T), matrices),
    "solve_banded": (lambda x: xp.linalg.solve_banded((1, 1), x, x[0]), matrices),
    "solve_continuous_lyapunov": (lambda x: xp.linalg.solve_continuous_lyapunov(x, x.T), matrices),
    "cumulative_simpson": (lambda x: xp.integrate.cumulative_simpson(x * x, x=x), increasing_or_not),
    "cdist": (lambda x: xp.spatial.distance.cdist(x, x + 1.0, "minkowski", p=3, w=x[0]), weights),
}


def gradient(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return ox.value_and_grad(lambda x: sum((xp.sum(xp.real(leaf)) for leaf in tree.leaves(f(x))), 0.0))


@pytest.mark.parametrize("transform", [lambda f: f, gradient], ids=["value", "gradient"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_a_function_sees_of_values_is_checked(name, transform):
    function, arguments = FUNCTIONS[name]
    f = transform(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        g = ox.record(f)
        for x in [each for each in arguments(np.random.default_rng(0)) for _ in range(2)]:
            found, expected = outcome(g, x), outcome(f, x)
            assert equal(found, expected), (found, expected, g.why)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int8"])
@pytest.mark.parametrize("source", ["float32", "float64", "int8", "bool"])
@pytest.mark.parametrize("named", [{}, {"axis": 0}, {"axis": -1, "keepdims": True}], ids=str)
def test_sums_in_a_dtype_add_in_one_order(source, dtype, named):
    def f(x: Any) -> Any:
        return xp.sum(x, dtype=getattr(xp, dtype), **named)

    rng, g = np.random.default_rng(0), ox.record(f)
    for _ in range(8):
        x = (rng.normal(size=(7, 9)) * 9.0).astype(source)
        assert equal(g(x), f(x))
        assert equal(ox.value_and_grad(lambda x: xp.sum(xp.real(f(x))))(x * 1.0)[0], xp.sum(xp.real(f(x * 1.0))))
        assert np.allclose(f(x), np.sum(x, dtype=dtype, **named), rtol=1e-4)
        assert f(x).dtype == dtype
    assert g.replays == 7, g.why


@pytest.mark.parametrize(
    "scaled", [lambda x, s: x * s, lambda x, s: s * x, lambda x, s: x / s, lambda x, s: x * (s + 1.0)]
)
@pytest.mark.parametrize("other", [lambda x, s: 1.0, lambda x, s: s, lambda x, s: x])
def test_zeros_that_a_choice_gives_have_the_sign_of_the_number_that_scales_them(scaled, other):
    def f(x: Any, s: Any) -> Any:
        return xp.sum(xp.where(x > 0.0, scaled(x, s), other(x, s)))

    x, of = np.linspace(-1.0, 1.0, 6).reshape(2, 3), ox.grad(f, argnums=(0, 1))
    g = ox.record(of, limit=32)
    with np.errstate(all="ignore"):
        for number in (float, np.float64):
            for s in map(number, (-0.3, 0.5, -2.0, np.inf, -np.inf, np.nan, -0.3)):
                assert equal(g(x, s), of(x, s)), (s, g(x, s), of(x, s))
    g = ox.record(of_array := ox.grad(f))
    for s in (-3, 2, -1):
        assert equal(g(x, s), of_array(x, s)), (s, g(x, s), of_array(x, s))
