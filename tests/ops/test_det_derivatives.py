"""Derivatives of determinants at singular matrices, compared with minors in exact arithmetic."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp

det = xp.linalg.det

# The size and the rank of matrices; the products of whole numbers are exact.
SHAPES = [(1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2), (4, 2), (4, 3), (4, 4)]


def matrix(n: int, rank: int, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    return 1.0 * random.integers(-4, 5, (n, rank)) @ random.integers(-4, 5, (rank, n))


def exact_det(rows: list[list[Fraction]]) -> Fraction:
    if not rows:
        return Fraction(1)
    columns = range(len(rows))
    return sum(
        (
            (-1) ** at * rows[0][at] * exact_det([[row[i] for i in columns if i != at] for row in rows[1:]])
            for at in columns
        ),
        start=Fraction(0),
    )


def inversions(places: tuple[int, ...]) -> int:
    return sum(a > b for a, b in itertools.combinations(places, 2))


def derivatives(x: np.ndarray, order: int) -> np.ndarray:
    """All derivatives of an order of the determinant: minors, with signs."""
    n = len(x)
    exact = [[Fraction(float(element)) for element in row] for row in x]
    result = np.zeros((n,) * (2 * order))
    for rows, columns in itertools.product(itertools.permutations(range(n), order), repeat=2):
        left = [[exact[i][j] for j in range(n) if j not in columns] for i in range(n) if i not in rows]
        sign = (-1) ** (sum(rows) + sum(columns) + inversions(rows) + inversions(columns))
        result[tuple(itertools.chain.from_iterable(zip(rows, columns, strict=True)))] = sign * exact_det(left)
    return result


@pytest.mark.parametrize(("n", "rank"), SHAPES)
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_second_and_third_derivatives_are_minors(mode: Any, n: int, rank: int) -> None:
    x = matrix(n, rank)
    function = ox.grad(det)
    for order in range(2, 4 if n < 4 else 3):
        function = ox.jacobian(function, mode=mode)
        expected = derivatives(x, order)
        np.testing.assert_allclose(function(x), expected, rtol=0, atol=1e-13 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_matrices_that_are_singular_up_to_rounding(rank: int) -> None:
    random = np.random.default_rng(rank)
    for _ in range(4):
        x = random.normal(size=(4, rank)) @ random.normal(size=(rank, 4))
        expected = derivatives(x, 2)
        np.testing.assert_allclose(ox.hessian(det)(x), expected, rtol=0, atol=1e-13 * max(1.0, np.abs(expected).max()))


def test_fourth_derivatives_are_those_of_a_polynomial() -> None:
    x, direction = matrix(4, 2), matrix(4, 4, seed=2)
    function = lambda t: det(x + t * direction)  # noqa: E731
    for _ in range(4):
        function = ox.grad(function)
    exact = exact_det([[Fraction(float(element)) for element in row] for row in direction])
    assert function(0.0) == pytest.approx(24.0 * float(exact), rel=1e-12, abs=1e-8)


def test_complex_and_stacked_matrices() -> None:
    x = np.stack([matrix(3, rank) + 1j * matrix(3, rank) * (rank % 2) for rank in (1, 2, 3)])
    t = np.stack([matrix(3, 3, seed=4) + 1j * matrix(3, 3, seed=5)] * 3)

    def along(x: Any) -> Any:
        return ox.jvp(ox.grad(lambda y: xp.sum(det(y)), holomorphic=True), (x,), (t,))[1]

    for part, tangent, found in zip(x, t, along(x), strict=True):
        # The gradient of det is quadratic: its central difference is exact.
        up, down = (ox.grad(det, holomorphic=True)(part + sign * tangent) for sign in (1.0, -1.0))
        np.testing.assert_allclose(found, 0.5 * (up - down), rtol=1e-12, atol=1e-10)


def test_under_vmap_and_in_recordings() -> None:
    x = np.stack([matrix(3, rank) for rank in (1, 2, 3)])
    expected = [derivatives(each, 2) for each in x]
    np.testing.assert_allclose(ox.vmap(ox.hessian(det))(x), expected, atol=1e-11)
    recorded = ox.record(ox.hessian(det))
    for each, hessian in zip(x, expected, strict=True):
        np.testing.assert_allclose(recorded(each), hessian, atol=1e-11)
    third = ox.jacobian(ox.record(ox.hessian(det)))
    np.testing.assert_allclose(third(x[0]), derivatives(x[0], 3), atol=1e-11)


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_over_another_library(name: str, library: Any) -> None:
    other = library(name)
    x = matrix(3, 1)
    array = other.tensor(x) if name == "torch" else other.numpy.asarray(x, dtype="float32")
    np.testing.assert_allclose(np.asarray(ox.hessian(det)(array)), derivatives(x, 2), atol=1e-4)
