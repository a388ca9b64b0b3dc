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
    "name", [pytest.param(name, marks=pytest.mark.thorough) if name in SLOW else name for name in CASES]
)
@pytest.mark.slow(one_in=4)
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
