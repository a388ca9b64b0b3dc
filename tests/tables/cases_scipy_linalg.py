"""Calls of SciPy's linear algebra: functions of a namespace and matrices, and the matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from oxigrad import xp

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
    "polar-wide": (lambda la, a: list(la.polar(a)), (A[:2],)),
    "polar-wide-left": (lambda la, a: list(la.polar(a, side="left")), (COMPLEX[:2],)),
    "polar-tall-left": (lambda la, a: list(la.polar(a, side="left")), (A[:, :2],)),
    "polar-orthogonal": (lambda la, a: list(la.polar(a, side="left")), (np.eye(3),)),
    "logm": (lambda la, a: la.logm(a), (REGULAR,)),
    "fractional_matrix_power": (lambda la, a: la.fractional_matrix_power(a, 0.3), (REGULAR,)),
    "cosm": (lambda la, a: la.cosm(a), (A,)),
    "sinm": (lambda la, a: la.sinm(a), (A,)),
    "coshm": (lambda la, a: la.coshm(a), (A,)),
    "sinhm": (lambda la, a: la.sinhm(a), (A,)),
    "expm_frechet": (lambda la, a, e: list(la.expm_frechet(a, e)), (A, B)),
}
