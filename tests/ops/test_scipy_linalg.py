"""Functions of SciPy's linear algebra: values against SciPy's, derivatives of both orders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from oxigrad import xp
from oxigrad.ops.backends import on_host
from oxigrad.testing import check_grads

scipy = pytest.importorskip("scipy")
from cases_scipy_linalg import CASES, A, V  # noqa: E402

# Those that take seconds; forms of `test_scipy_forms` have their values and derivatives too.
SLOW = {"logm", "fractional_matrix_power"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in CASES]
)
@pytest.mark.one_in(4)
def test_values_are_scipy_s_and_derivatives_agree(name: str) -> None:
    f, args = CASES[name]
    found, expected = f(xp.linalg, *args), f(scipy.linalg, *args)
    for one, other in zip(ox.tree.leaves([found]), ox.tree.leaves([expected]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)
    check_grads(lambda *args: f(xp.linalg, *args), args, order=1 if "complex" in name or "adjoint" in name else 2)


@pytest.mark.parametrize("name", ["lu", "logm", "toeplitz", "solveh_banded", "block_diag", "lu_solve"])
def test_matrices_of_every_library(name: str, arrays: Any) -> None:
    f, args = CASES[name]
    there = list(map(arrays.asarray, args))
    if not on_host(there[0]):
        return
    weigh = lambda *args: xp.sum(xp.stack([xp.sum(x * x) for x in ox.tree.leaves([f(xp.linalg, *args)])]))  # noqa: E731
    every = tuple(range(len(args)))
    for one, other in zip(ox.grad(weigh, every)(*there), ox.grad(weigh, every)(*args), strict=True):
        np.testing.assert_allclose(host(one), other, rtol=1e-10, atol=1e-12)


def test_refusals() -> None:
    with pytest.raises(ox.ShapeError, match=r"^lu: found shape \(2, 3\), expected square matrices"):
        xp.linalg.lu(A[:2])
    with pytest.raises(ox.ShapeError, match=r"^logm: found shape \(2, 3\), expected \(n, n\)"):
        xp.linalg.logm(A[:2])
    with pytest.raises(ox.ShapeError, match=r"^khatri_rao: found shapes \(3, 3\), \(3,\), expected"):
        xp.linalg.khatri_rao(A, V)
    with pytest.raises(ValueError, match="^polar: side is 'up': expected 'left' or 'right'"):
        xp.linalg.polar(A, side="up")
    with pytest.raises(
        TypeError, match=r"^lu_solve: lu_and_piv is ndarray, expected \(lu, piv\), as lu_factor returns them"
    ):
        xp.linalg.lu_solve(A, V)  # type: ignore[arg-type]
    with pytest.raises(ox.DerivativeError, match="with respect to its exponent"):
        ox.grad(lambda t: xp.sum(xp.linalg.fractional_matrix_power(A, t)))(0.5)


INTEGERS: dict[str, Any] = {
    "solve_sylvester": lambda la, x: la.solve_sylvester(x, x, x),
    "solve_continuous_lyapunov": lambda la, x: la.solve_continuous_lyapunov(x, x),
    "solve_discrete_lyapunov": lambda la, x: la.solve_discrete_lyapunov(x, x),
    "solve_banded": lambda la, x: la.solve_banded((1, 0), x, x[0]),
    "solveh_banded": lambda la, x: la.solveh_banded(x, x[0]),
    "solve_toeplitz": lambda la, x: la.solve_toeplitz(x[1], x[0]),
    "sqrtm": lambda la, x: la.sqrtm(x),
    "polar": lambda la, x: la.polar(x),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_have_the_values_of_floats(name: str) -> None:
    x = np.array([[4, 1], [1, 5]])
    ours, expected = (INTEGERS[name](la, x) for la, x in ((xp.linalg, x), (scipy.linalg, x.astype(float))))
    for one, other in zip(ox.tree.leaves([ours]), ox.tree.leaves([expected]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("phase", [0.0, 1.0j])
def test_one_triangle_is_read(upper: bool, phase: complex) -> None:
    x = np.array([[4.0, 1.0 + phase, 0.5], [1.0 - phase, 5.0, 2.0], [0.5, 2.0, 6.0]])
    x = x if phase else np.real(x)
    part = np.triu(x) + 9.0 * np.tril(x, -1) if upper else np.tril(x) + 9.0 * np.triu(x, 1)
    expected = scipy.linalg.cholesky(x, lower=not upper)
    calls = [
        lambda x: xp.linalg.cholesky(x, upper=upper),
        lambda x: np.linalg.cholesky(x, upper=upper),
        lambda x: xp.linalg.cho_factor(x, lower=not upper)[0],
    ]
    for f in calls:
        np.testing.assert_allclose(f(part), expected, rtol=1e-12)
        np.testing.assert_allclose(ox.vjp(f, part)[0], expected, rtol=1e-12)
        g = np.arange(9.0).reshape(3, 3) * (1.0 + phase)
        direction = np.array([[1.0, phase, 2.0], [-phase, 0.5, 1.0], [2.0, 1.0, 0.0]])
        direction = direction if phase else np.real(direction)
        slope = (f(x + 1e-6 * direction) - f(x - 1e-6 * direction)) / 2e-6
        product = np.real(np.sum(ox.vjp(f, x)[1](g)[0] * direction))
        assert product == pytest.approx(np.real(np.sum(g * slope)), rel=1e-6)


@pytest.mark.parametrize("lower", [False, True])
def test_the_diagonal_of_a_hermitian_band_is_real(lower: bool) -> None:
    ab, b = np.array([[0.0, 0.1 + 0.1j, 0.2j], [4.0 + 1.0j, 5.0 - 1.0j, 3.0]]), np.ones(3)
    args = (ab[::-1] if lower else ab, b, False, False, lower)
    np.testing.assert_allclose(xp.linalg.solveh_banded(*args), scipy.linalg.solveh_banded(*args), rtol=1e-12)


@pytest.mark.parametrize(
    "x", [[[-4.0]], -np.eye(2), -4.0 * np.eye(3) + 0j, np.diag([-1.0, -1.0, 4.0]), [[[-4.0]], [[9.0]]]], ids=np.shape
)
def test_roots_where_an_iterate_is_singular(x: Any) -> None:
    x = np.asarray(x)
    np.testing.assert_allclose(xp.linalg.sqrtm(x), scipy.linalg.sqrtm(x), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(ox.vjp(xp.linalg.sqrtm, x)[0], scipy.linalg.sqrtm(x), rtol=1e-12, atol=1e-12)


def test_a_banded_system_of_lists() -> None:
    np.testing.assert_allclose(xp.linalg.solve_banded((1, 0), [[2, 2], [1, 0]], [2, 3]), [1.0, 1.0], rtol=1e-12)


def test_solutions_of_a_system_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="^lu_solve: trans is 3: expected 0, 1 or 2"):
        xp.linalg.lu_solve(xp.linalg.lu_factor(A), V, 3)


@pytest.mark.parametrize("unit", [0.0, 1j])
def test_eigenvalues_of_two_matrices(unit: complex) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal((4, 4)) + unit * rng.standard_normal((4, 4)) for _ in range(2))
    a, b = a + a.conj().T, b @ b.conj().T + 4.0 * np.eye(4)
    values, vectors = xp.linalg.eigh(a, b=b)
    np.testing.assert_allclose(values, scipy.linalg.eigh(a, b)[0], rtol=1e-10)
    np.testing.assert_allclose(a @ vectors, b @ vectors * values, atol=1e-10)
    np.testing.assert_allclose(vectors.conj().T @ b @ vectors, np.eye(4), atol=1e-12)
    hermitian = lambda m: 0.5 * (m + xp.matrix_transpose(xp.conj(m)))  # noqa: E731
    both = lambda a, b: xp.linalg.eigh(hermitian(a), b=hermitian(b))  # noqa: E731
    check_grads(lambda a, b: (both(a, b)[0], xp.abs(both(a, b)[1]) ** 2), (a, b), order=2)
