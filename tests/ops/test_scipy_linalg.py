"""Functions of SciPy's linear algebra: values against SciPy's, derivatives of both orders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from oxigrad import xp
from oxigrad.ops.backends import on_host
from oxigrad.testing import check_grads

scipy = pytest.importorskip("scipy")

A = np.random.default_rng(0).standard_normal((3, 3))
B = np.random.default_rng(1).standard_normal((3, 3))
V, W = A[0], B[:, 1]
REGULAR = A @ A.T + np.eye(3)
COMPLEX = A + 1j * B
BAND = np.array([[0.0, 0.3, -0.4, 0.2], [4.0, 5.0, 3.0, 6.0]])
FOUR = np.arange(4.0) - 1.5


def symmetric(a: Any) -> Any:
    return a @ xp.matrix_transpose(a) + 2.0 * xp.eye(3)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "toeplitz": (lambda la, c, r: la.toeplitz(c, r), (V, FOUR)),
    "toeplitz-column": (lambda la, c: la.toeplitz(c), (V,)),
    "circulant": (lambda la, c: la.circulant(c), (V,)),
    "hankel": (lambda la, c, r: la.hankel(c, r), (V, FOUR)),
    "hankel-column": (lambda la, c: la.hankel(c), (V,)),
    "block_diag": (lambda la, a, b, c: la.block_diag(a, b, c), (A, V, B[:2])),
    "khatri_rao": (lambda la, a, b: la.khatri_rao(a, b), (A, B[:2])),
    "kron": (lambda la, a, b: (np if la is scipy.linalg else la).kron(a, b), (A, B[:2])),
    "lu": (lambda la, a: list(la.lu(a)), (A,)),
    "lu-complex": (lambda la, a: list(la.lu(a)), (COMPLEX,)),
    "lu_factor": (lambda la, a: la.lu_factor(a)[0], (A,)),
    "lu_solve": (lambda la, a, b: la.lu_solve(la.lu_factor(a), b), (A, V)),
    "lu_solve-transposed": (lambda la, a, b: la.lu_solve(la.lu_factor(a), b, trans=1), (A, B)),
    "lu_solve-adjoint": (lambda la, a, b: la.lu_solve(la.lu_factor(a), b, trans=2), (COMPLEX, COMPLEX)),
    "cho_solve": (lambda la, a, b: la.cho_solve(la.cho_factor(symmetric(a)), b), (A, V)),
    "cho_solve-lower": (lambda la, a, b: la.cho_solve(la.cho_factor(symmetric(a), lower=True), b), (A, B)),
    "solveh_banded": (lambda la, ab, b: la.solveh_banded(ab, b), (BAND, FOUR)),
    "solveh_banded-lower": (lambda la, ab, b: la.solveh_banded(ab, b, lower=True), (BAND[::-1], FOUR)),
    "solve_toeplitz": (lambda la, c, b: la.solve_toeplitz(c, b), (V + 3.0 * np.eye(3)[0], W)),
    "solve_toeplitz-row": (lambda la, c, r, b: la.solve_toeplitz((c, r), b), (V + 3.0 * np.eye(3)[0], W, B)),
    "solve_continuous_lyapunov": (lambda la, a, q: la.solve_continuous_lyapunov(a, q), (REGULAR, B)),
    "solve_discrete_lyapunov": (lambda la, a, q: la.solve_discrete_lyapunov(a, q), (0.3 * A, B)),
    "polar": (lambda la, a: list(la.polar(a)), (A,)),
    "polar-orthogonal": (lambda la, a: list(la.polar(a, side="left")), (np.eye(3),)),
    "logm": (lambda la, a: la.logm(a), (REGULAR,)),
    "fractional_matrix_power": (lambda la, a: la.fractional_matrix_power(a, 0.3), (REGULAR,)),
    "cosm": (lambda la, a: la.cosm(a), (A,)),
    "sinm": (lambda la, a: la.sinm(a), (A,)),
    "coshm": (lambda la, a: la.coshm(a), (A,)),
    "sinhm": (lambda la, a: la.sinhm(a), (A,)),
    "expm_frechet": (lambda la, a, e: list(la.expm_frechet(a, e)), (A, B)),
}


@pytest.mark.parametrize("name", CASES)
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
    with pytest.raises(ox.DerivativeError, match="with respect to its exponent"):
        ox.grad(lambda t: xp.sum(xp.linalg.fractional_matrix_power(A, t)))(0.5)
