"""Interpolation: values against SciPy's, derivatives by points, values and places to second order, and refusals."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp
from oxigrad.testing import check_grads

interpolate = pytest.importorskip("scipy.interpolate")
RNG = np.random.default_rng(0)
X, Y = np.sort(RNG.uniform(0.0, 5.0, 7)), RNG.standard_normal((7, 2))
T = np.array([0.3, 1.7, 2.9, 4.1])
GRID = np.array([0.0, 1.0, 2.5, 3.0, 4.2]), np.array([0.0, 0.7, 1.0, 2.0])
VALUES = RNG.standard_normal((5, 4, 2))
PLACES = np.stack([RNG.uniform(0.0, 4.2, (3, 2)), RNG.uniform(0.0, 2.0, (3, 2))], axis=-1)
CONDITIONS: dict[str, Any] = {
    "not-a-knot": "not-a-knot",
    "clamped": "clamped",
    "natural": "natural",
    "pair": ("not-a-knot", "clamped"),
    "slope and curvature": ((1, np.array([0.3, 0.1])), (2, np.array([-0.4, 0.2]))),
    "curvature and slope": ((2, np.array([0.3, 0.1])), (1, np.array([0.7, 0.1]))),
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_cubic_splines(condition: str) -> None:
    bc_type = CONDITIONS[condition]
    for count in (3, 4, 7):
        ours, theirs = (m.CubicSpline(X[:count], Y[:count], bc_type=bc_type) for m in (xp.interpolate, interpolate))
        for nu in (0, 1, 2):
            np.testing.assert_allclose(ours(T, nu), theirs(T, nu), rtol=1e-8, atol=1e-9)
    check_grads(
        lambda x, y, t: xp.interpolate.CubicSpline(x, y, bc_type=bc_type)(t), (X, Y, T), order=2, tolerance=1e-4
    )


def test_periodic_splines_and_conditions_that_are_variables() -> None:
    y = np.concatenate([Y[:-1], Y[:1]])
    f = lambda module, x, y: module.CubicSpline(x, y, bc_type="periodic")(T + 7.0)  # noqa: E731
    np.testing.assert_allclose(f(xp.interpolate, X, y), f(interpolate, X, y), rtol=1e-10)
    ends = np.concatenate([np.eye(6), np.eye(6)[:1]])
    check_grads(lambda x, y: f(xp.interpolate, x, ends @ y), (X, Y[:-1]), order=2, tolerance=1e-4)
    check_grads(lambda v: xp.interpolate.CubicSpline(X, Y[:, 0], bc_type=((1, v[0]), (2, v[1])))(T), (np.ones(2),))


def test_piecewise_polynomials_have_the_methods_of_scipys() -> None:
    for name in ("CubicSpline", "PchipInterpolator"):
        ours, theirs = (getattr(m, name)(X, Y.T, axis=1) for m in (xp.interpolate, interpolate))
        np.testing.assert_allclose(ours.c, theirs.c, rtol=1e-9)
        for t in (0.4, T, T.reshape(2, 2), np.array([-1.0, 6.0])):
            np.testing.assert_allclose(ours(t), theirs(t), rtol=1e-9)
            np.testing.assert_allclose(ours.derivative()(t), theirs.derivative()(t), rtol=1e-8)
            np.testing.assert_allclose(ours.antiderivative()(t), theirs.antiderivative()(t), rtol=1e-9)
        np.testing.assert_allclose(ours.integrate(0.2, 3.0), theirs.integrate(0.2, 3.0), rtol=1e-10)
    outside = xp.interpolate.CubicSpline(X, Y, extrapolate=False)(np.array([-1.0, 2.0]))
    np.testing.assert_array_equal(np.isnan(outside), [[True, True], [False, False]])


def test_monotonic_interpolation() -> None:
    for y in (Y, np.cumsum(np.abs(Y), axis=0)):
        f = lambda x, y, t: xp.interpolate.PchipInterpolator(x, y)(t)  # noqa: E731
        np.testing.assert_allclose(f(X, y, T), interpolate.PchipInterpolator(X, y)(T), rtol=1e-12)
        check_grads(f, (X, y, T), order=2, tolerance=1e-4)
    line = xp.interpolate.PchipInterpolator(X[:2], Y[:2])(1.0)
    np.testing.assert_allclose(line, interpolate.PchipInterpolator(X[:2], Y[:2])(1.0), rtol=1e-12)


@pytest.mark.parametrize("k", [0, 1, 2, 3, 5])
def test_splines_of_any_degree(k: int) -> None:
    ours, theirs = (m.make_interp_spline(X, Y, k) for m in (xp.interpolate, interpolate))
    np.testing.assert_allclose(ours.t, theirs.t, rtol=1e-15)
    np.testing.assert_allclose(ours.c, theirs.c, rtol=1e-8)
    for t in (0.4, T, T.reshape(2, 2)):
        np.testing.assert_allclose(ours(t), theirs(t), rtol=1e-8)
    if k:
        np.testing.assert_allclose(ours(T, 1), theirs(T, 1), rtol=1e-7)
        f = lambda x, y, t: xp.interpolate.make_interp_spline(x, y, k)(t)  # noqa: E731
        check_grads(f, (X, Y, T), order=2, tolerance=1e-3)


ENDS: list[tuple[int, Any]] = [
    (3, "natural"),
    (3, "clamped"),
    (3, ("natural", "clamped")),
    (3, ([(1, [0.3, 0.1])], [(2, [0.5, 0.0])])),
    (3, ([(1, [0.0, 0.0]), (2, [1.0, 2.0])], None)),
    (2, (None, [(1, [1.0, 0.0])])),
    (5, ([(1, [0.3, 0.1]), (2, [0.0, 1.0])], [(2, [0.5, 0.0]), (3, [0.0, 1.0])])),
]


@pytest.mark.parametrize(("k", "bc_type"), ENDS)
def test_splines_with_conditions_at_the_ends(k: int, bc_type: Any) -> None:
    ours, theirs = (m.make_interp_spline(X, Y, k, bc_type=bc_type) for m in (xp.interpolate, interpolate))
    np.testing.assert_allclose(ours.t, theirs.t, rtol=1e-15)
    np.testing.assert_allclose(ours.c, theirs.c, rtol=1e-8, atol=1e-9)
    f = lambda x, y, t: xp.interpolate.make_interp_spline(x, y, k, bc_type=bc_type)(t)  # noqa: E731
    np.testing.assert_allclose(f(X, Y, T), theirs(T), rtol=1e-8)
    check_grads(f, (X, Y, T), order=2, tolerance=1e-3)


def test_splines_are_differentiated_by_derivatives_at_the_ends() -> None:
    def f(slope: Any, curvature: Any) -> Any:
        return xp.interpolate.make_interp_spline(X, Y, bc_type=([(1, slope)], [(2, curvature)]))(T)

    check_grads(f, (np.array([0.3, 0.1]), np.array([1.0, 2.0])), order=2)


@pytest.mark.parametrize("k", [0, 1, 2, 3, 4, 5])
def test_periodic_splines(k: int) -> None:
    for count in (7, 3, 2) if k > 1 else (7,):
        x, y = X[:count], np.concatenate([Y[: count - 1], Y[:1]])
        ours, theirs = (m.make_interp_spline(x, y, k, bc_type="periodic") for m in (xp.interpolate, interpolate))
        np.testing.assert_allclose(ours.t, theirs.t, rtol=1e-13, atol=1e-13)
        t = np.linspace(x[0] - 0.7, x[-1] + 0.7, 31) if k > 1 else T
        np.testing.assert_allclose(ours(t), theirs(t), rtol=1e-6, atol=1e-8)
    if k > 1:
        f = lambda x, y, t: xp.interpolate.make_interp_spline(x, xp.concat([y, y[:1]]), k, bc_type="periodic")(t)  # noqa: E731
        check_grads(f, (X, Y[:-1], T), order=2, tolerance=1e-3)


@pytest.mark.parametrize("method", ["linear", "cubic"])
def test_regular_grids(method: str) -> None:
    ours, theirs = (m.RegularGridInterpolator(GRID, VALUES, method) for m in (xp.interpolate, interpolate))
    np.testing.assert_allclose(ours(PLACES), theirs(PLACES), atol=1e-6)  # SciPy solves by iterations
    np.testing.assert_array_equal(ours((PLACES[..., 0], PLACES[..., 1])), ours(PLACES))
    for fill in (None, -1.0):
        ours, theirs = (
            m.RegularGridInterpolator(GRID, VALUES, method, False, fill) for m in (xp.interpolate, interpolate)
        )
        np.testing.assert_allclose(ours(1.5 * PLACES), theirs(1.5 * PLACES), atol=1e-5)

    def f(one: Any, other: Any, values: Any, places: Any) -> Any:
        return xp.interpolate.RegularGridInterpolator((one, other), values, method)(places)

    check_grads(f, (*GRID, VALUES, PLACES), order=2, tolerance=1e-4)


_ROWS = np.array([[1.5, 2.0], [0.5, 0.2], [3.0, 2.5]])
# Places by the number of axes, among them forms that SciPy refuses.
FORMS: dict[int, list[Any]] = {
    1: [
        1.5,
        np.array(1.5),
        _ROWS[0],
        [1.5, 2.5],
        np.array([1.5]),
        [1.5],
        _ROWS[:, :1],
        (1.5,),
        (_ROWS[0],),
        _ROWS[:1],
        np.ones((2, 3, 1)),
        (1.5, 2.5),
        (np.ones((2, 3)),),
        [[1.5], [2.5]],
        np.zeros(0),
        (_ROWS[:, :1],),
    ],
    2: [
        1.5,
        np.array(1.5),
        [1.5, 2.0],
        (1.5, 2.0),
        _ROWS[0],
        _ROWS,
        _ROWS[:1],
        np.ones((2, 3, 2)),
        tuple(_ROWS.T),
        (_ROWS[:, :1], _ROWS[0]),
        (1.5, _ROWS[0]),
        [*_ROWS],
        _ROWS.tolist(),
        np.zeros((0, 2)),
        np.ones(3),
        np.ones(4),
        (1.0, 2.0, 3.0),
        (_ROWS,),
        (_ROWS[0],),
        np.zeros(0),
        ([1.5, 2.0], [0.5, 0.2]),
    ],
}


@pytest.mark.parametrize("is_named", [False, True], ids=["xp", "names"])
@pytest.mark.parametrize("method", ["linear", "cubic"])
@pytest.mark.parametrize("axes", FORMS)
def test_places_in_any_form_have_the_shapes_of_scipy(axes: int, method: str, is_named: bool) -> None:
    x = np.arange(5.0)
    for trailing in ((), (3,)):
        values = RNG.normal(size=(5,) * axes + trailing)
        theirs = interpolate.RegularGridInterpolator((x,) * axes, values, method)

        def called(values: Any, places: Any) -> Any:
            of = interpolate if is_named else xp.interpolate
            return of.RegularGridInterpolator((x,) * axes, values, method)(places)

        for places in FORMS[axes]:
            try:
                expected = theirs(places)
            except (IndexError, ValueError):
                with pytest.raises(ValueError, match=r"found places of shape .*, expected . numbers along"):
                    xp.interpolate.RegularGridInterpolator((x,) * axes, values, method)(places)
                continue
            with ox.scipy.names() if is_named else contextlib.nullcontext():
                found, pulled = ox.vjp(lambda values, places=places: called(values, places), values)
            assert found.shape == expected.shape
            np.testing.assert_allclose(found, expected, atol=1e-6)
            assert pulled(np.ones_like(found))[0].shape == values.shape


def test_refusals() -> None:
    with pytest.raises(ValueError, match="^CubicSpline: found points x that do not increase"):
        xp.interpolate.CubicSpline(X[::-1], Y)
    with pytest.raises(
        ValueError, match=r"^PchipInterpolator: found values of shape \(6, 2\), expected 7 along axis 0"
    ):
        xp.interpolate.PchipInterpolator(X, Y[1:])
    with pytest.raises(ValueError, match="^CubicSpline: bc_type is 'free'"):
        xp.interpolate.CubicSpline(X, Y, bc_type="free")
    with pytest.raises(ValueError, match="^CubicSpline: bc_type is 'periodic': expected the same first and last value"):
        xp.interpolate.CubicSpline(X, Y, bc_type="periodic")
    spline = xp.interpolate.make_interp_spline
    with pytest.raises(ValueError, match="^make_interp_spline: bc_type is 'free': expected 'not-a-knot', 'periodic'"):
        spline(X, Y, bc_type="free")
    with pytest.raises(
        ValueError, match=r"^make_interp_spline: bc_type has derivatives of orders \[4\], expected 0 to 3"
    ):
        spline(X, Y, bc_type=(None, [(4, 0.0)]))
    with pytest.raises(ValueError, match="^make_interp_spline: found 13 knots and 1 derivatives, expected 12 knots"):
        spline(X, Y, bc_type=("clamped", None))
    with pytest.raises(ValueError, match="^make_interp_spline: bc_type is 'periodic': expected the same first and"):
        spline(X, Y, bc_type="periodic")
    with pytest.raises(NotImplementedError, match="^make_interp_spline: bc_type is 'periodic': found knots"):
        spline(X, Y, t=np.arange(11.0), bc_type="periodic")
    with pytest.raises(ValueError, match="^RegularGridInterpolator: found a place outside of the grid along axis 1"):
        xp.interpolate.RegularGridInterpolator(GRID, VALUES)(np.array([1.0, 3.0]))
    with pytest.raises(NotImplementedError, match="^RegularGridInterpolator: method is 'pchip'"):
        xp.interpolate.RegularGridInterpolator(GRID, VALUES, "pchip")


MALFORMED = {
    "NaN": [0.0, np.nan, 2.0, 3.0, 4.0],
    "infinity": [0.0, 1.0, 2.0, 3.0, np.inf],
    "unsorted": [0.0, 2.0, 1.0, 3.0, 4.0],
    "duplicates": [0.0, 1.0, 1.0, 3.0, 4.0],
    "descending": [4.0, 3.0, 2.0, 1.0, 0.0],
    "a matrix": [[0.0], [1.0], [2.0], [3.0], [4.0]],
    "too few": [0.0, 1.0, 2.0],
    "complex": [0.0, 1.0j, 2.0, 3.0, 4.0],
}


@pytest.mark.parametrize("name", ["CubicSpline", "PchipInterpolator", "make_interp_spline"])
def test_malformed_points_and_values_are_refused_as_by_scipy(name: str) -> None:
    ours, theirs = getattr(xp.interpolate, name), getattr(interpolate, name)
    x, y = np.arange(5.0), np.array([0.0, 1.0, 0.0, 2.0, 1.0])
    wrong = [(np.array(points), y) for points in MALFORMED.values()]
    wrong += [(x, np.where(np.arange(5) == 2, value, y)) for value in (np.nan, np.inf)]
    for points, values in wrong:
        with pytest.raises((TypeError, ValueError)):
            theirs(points, values)
        with pytest.raises(ValueError, match=f"^{name}: found "):
            ours(points, values)
        with pytest.raises(ValueError, match=f"^{name}: found "):
            ox.grad(lambda y, points=points: xp.sum(ours(points, y)(np.array([0.5]))))(values)


@pytest.mark.parametrize("name", ["CubicSpline", "PchipInterpolator"])
def test_orders_and_extrapolations_that_scipy_does_not_have(name: str) -> None:
    spline, y = getattr(xp.interpolate, name), np.array([1.0, 3.0, 2.0, 4.0])
    x = np.arange(4.0)
    for make in (lambda: spline(x, y, extrapolate="period"), lambda: spline(x, y)(5.0, 0, "period")):
        with pytest.raises(ValueError, match="extrapolate is 'period': expected True, False, None or 'periodic'"):
            make()
    for make in (lambda: spline(x, y)(1.5, -1), lambda: spline(x, y).derivative(-1)):
        with pytest.raises(ValueError, match="nu is -1: expected a whole number, at least 0"):
            make()
