"""Integrals of samples: values against SciPy's for every number of points, derivatives by samples and points, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from oxigrad import xp
from oxigrad.testing import check_grads

scipy = pytest.importorskip("scipy")
pytest.importorskip("scipy.integrate")

RULES = ["cumulative_simpson", "cumulative_trapezoid", "simpson", "trapezoid"]
RNG = np.random.default_rng(0)


def shape(count: int, axis: int) -> tuple[int, ...]:
    return (2, count, 3) if axis == 1 else (count, 2) if axis == 0 else (2, count)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("name", RULES)
def test_every_number_of_points(name: str, count: int, axis: int) -> None:
    ours, theirs = getattr(xp.integrate, name), getattr(scipy.integrate, name)
    y = RNG.standard_normal(shape(count, axis))
    widths = RNG.uniform(0.5, 1.0, y.shape)
    points = [np.cumsum(widths, axis=axis), np.cumsum(RNG.uniform(0.5, 1.0, count))]
    first: list[dict[str, Any]] = [{}, {"initial": 0}] if name.startswith("cumulative") else [{}]
    first += [{"initial": 1.5}] if name == "cumulative_simpson" else []
    for where in ({}, {"dx": 0.3}, *({"x": x} for x in points)):
        for initial in first:
            found, expected = (f(y, axis=axis, **where, **initial) for f in (ours, theirs))
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13, err_msg=str((where, initial)))
    if count > 1:
        for x in points:
            check_grads(lambda y, x: ours(y, x=x, axis=axis), (y, x))
    check_grads(lambda y, dx: ours(y, dx=dx, axis=axis), (y, 0.3))


def test_simpson_is_exact_for_parabolas() -> None:
    x = np.array([0.0, 0.3, 1.0, 1.2, 2.0, 2.7])
    for count in (3, 4, 5, 6):
        found = xp.integrate.cumulative_simpson(3.0 * x[:count] ** 2, x=x[:count], initial=0.0)
        np.testing.assert_allclose(found, x[:count] ** 3, rtol=1e-13, atol=1e-15)
        assert xp.integrate.simpson(3.0 * x[:count] ** 2, x[:count]) == pytest.approx(x[count - 1] ** 3)
    end = ox.grad(lambda c: xp.integrate.simpson(3.0 * (c * x) ** 2, c * x))(2.0)
    assert end == pytest.approx(3.0 * 2.0**2 * x[-1] ** 3)


def test_points_that_coincide_have_scipy_s_value_and_finite_derivatives() -> None:
    y = RNG.standard_normal(6)
    for x in ([0.0, 0.0, 1.0, 2.0, 3.0, 3.0], [0.0, 1.0, 1.0, 2.0, 2.0, 3.0]):
        at = np.array(x)
        np.testing.assert_allclose(xp.integrate.simpson(y, at), scipy.integrate.simpson(y, x=at), rtol=1e-13)
        check_grads(lambda y, at=at: xp.integrate.simpson(y, at), (y,))


@pytest.mark.parametrize("name", RULES)
def test_samples_of_every_library(name: str, arrays: Any) -> None:
    y = RNG.standard_normal((2, 6))
    f = lambda y: xp.sum(getattr(xp.integrate, name)(y, dx=0.5) ** 2)  # noqa: E731
    np.testing.assert_allclose(host(ox.grad(f)(arrays.asarray(y))), ox.grad(f)(y), rtol=1e-10)


def test_refusals() -> None:
    y = np.ones((2, 4))
    with pytest.raises(ox.ShapeError, match=r"^simpson: found points of shape \(3,\), expected \(4,\) or \(2, 4\)"):
        xp.integrate.simpson(y, np.arange(3.0))
    with pytest.raises(ValueError, match="^cumulative_simpson: x does not increase"):
        xp.integrate.cumulative_simpson(y, x=np.zeros(4))
    with pytest.raises(ValueError, match="^cumulative_trapezoid: initial is 1: expected None or 0"):
        xp.integrate.cumulative_trapezoid(y, initial=1)
    with pytest.raises(ValueError, match="^simpson: found no sample along the axis"):
        xp.integrate.simpson(y[:0], axis=0)


@pytest.mark.parametrize("initial", [np.ones((1, 1)), np.ones(3), np.ones((3, 2))], ids=np.shape)
def test_initial_values_of_another_shape(initial: Any) -> None:
    for lib in (xp, scipy):
        with pytest.raises(ValueError, match="initial"):
            lib.integrate.cumulative_simpson(np.ones((3, 4)), initial=initial)


def test_integrands_and_limits_that_are_no_numbers() -> None:
    def integral(f: Any, a: Any = 0.0) -> Any:
        return xp.integrate.quad(f, a, 1.0)[0]

    wrong: list[tuple[Any, str]] = [
        (lambda c: integral(lambda x: np.array([x, 1.0])), r"func returns an array of shape \(2,\).*xp.stack"),
        (lambda c: integral(lambda x: xp.stack([c * x, x])), r"func returns an array of shape \(2,\)"),
        (lambda c: integral(lambda x: "text"), "func returns str: expected a number"),
        (lambda c: integral(lambda x: None), "func returns NoneType: expected a number"),
        (lambda c: integral(lambda x: 1j * x), "func returns a complex number: expected a real one, or complex_func"),
        (lambda c: integral(lambda x: c * x, np.zeros(2)), r"quad: a is array\(\[0., 0.\]\): expected a number"),
        (lambda c: integral(lambda x: c * x, "0"), "quad: a is '0': expected a number"),
    ]
    for f, text in wrong:
        with pytest.raises(TypeError, match=text):
            f(2.0)
        with pytest.raises(TypeError, match=text):
            ox.grad(f)(2.0)
    stacked = ox.jacobian(
        lambda c: xp.stack([integral(lambda x, i=i: xp.stack([c * x, c * x * x])[i]) for i in (0, 1)])
    )
    np.testing.assert_allclose(stacked(2.0), [0.5, 1 / 3], rtol=1e-12)
