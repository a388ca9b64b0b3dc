"""`xp.polynomial`: values against NumPy's, derivatives by coefficients and places to second order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp
from oxigrad.testing import check_grads

RNG = np.random.default_rng(0)
BASES = {
    "polynomial": "poly",
    "chebyshev": "cheb",
    "legendre": "leg",
    "hermite": "herm",
    "hermite_e": "herme",
    "laguerre": "lag",
}
COEFFICIENTS: list[Any] = [RNG.standard_normal(shape) for shape in (1, 2, 6, (4, 2))] + [[1, 2, 3]]
PLACES: list[Any] = [0.3, 2, RNG.standard_normal(3), RNG.standard_normal((2, 3)), [0.1, 0.2]]


def of_both(basis: str, name: str) -> tuple[Any, Any]:
    return tuple(getattr(getattr(space, basis), BASES[basis] + name) for space in (xp.polynomial, np.polynomial))


@pytest.mark.parametrize("basis", BASES)
def test_values_and_derivatives(basis: str) -> None:
    ours, theirs = of_both(basis, "val")
    for c in COEFFICIENTS:
        for x in PLACES:
            assert np.shape(ours(x, c)) == np.shape(theirs(x, c))
            np.testing.assert_allclose(ours(x, c), theirs(x, c), rtol=1e-12, atol=1e-12)
    square, stacked = PLACES[3], RNG.standard_normal((4, 3))
    np.testing.assert_allclose(ours(square, stacked, tensor=False), theirs(square, stacked, tensor=False), rtol=1e-12)
    check_grads(ours, (square, COEFFICIENTS[2]), order=2)
    check_grads(ours, (0.3, COEFFICIENTS[3]), order=2)


@pytest.mark.parametrize("basis", BASES)
def test_several_dimensions(basis: str) -> None:
    x, y = PLACES[3]
    for name, args in (
        ("val2d", (x, y, RNG.standard_normal((4, 3)))),
        ("grid2d", (x, y[:2], RNG.standard_normal((4, 3)))),
        ("val3d", (x, y, x, RNG.standard_normal((4, 3, 2)))),
        ("grid3d", (x, y[:2], x, RNG.standard_normal((2, 3, 2)))),
    ):
        ours, theirs = of_both(basis, name)
        np.testing.assert_allclose(ours(*args), theirs(*args), rtol=1e-11)
        check_grads(ours, args, order=1)
    with pytest.raises(ox.ShapeError, match="expected one shape"):
        of_both(basis, "val2d")[0](x, y[:2], np.ones((2, 2)))


def test_roots() -> None:
    x, r = PLACES[3], RNG.standard_normal((3, 2))
    f = xp.polynomial.polynomial.polyvalfromroots
    np.testing.assert_allclose(f(x, r), np.polynomial.polynomial.polyvalfromroots(x, r), rtol=1e-12)
    check_grads(f, (x, r), order=2)
    with pytest.raises(ValueError, match="^polyvalfromroots: found x of 2 dimensions, expected less than 2"):
        f(x, r, tensor=False)


def test_other_names_are_numpys() -> None:
    assert xp.polynomial.chebyshev.chebfit is np.polynomial.chebyshev.chebfit
    assert xp.polynomial.Polynomial is np.polynomial.Polynomial


def test_numpys_polyval_takes_variables_as_coefficients_and_places() -> None:
    check_grads(np.polyval, (COEFFICIENTS[2], PLACES[3]), order=2)
    check_grads(xp.polyval, (COEFFICIENTS[2], 0.3), order=2)
    for basis, stem in BASES.items():
        # NumPy's own functions convert coefficients to an array, but not places.
        theirs = getattr(getattr(np.polynomial, basis), f"{stem}val")
        check_grads(lambda x, theirs=theirs: theirs(x, COEFFICIENTS[2]), (PLACES[2],), order=2)
