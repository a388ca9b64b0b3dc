"""Masked branches: a cotangent that `where`, a mask or an assignment makes zero stays zero behind infinite derivatives, as forwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from oxigrad import xp

special = xp.special
BAD, GOOD = 0.0, np.array([0.25, 0.5])

# Functions of infinite or undefined derivatives at zero.
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sqrt": xp.sqrt,
    "log": xp.log,
    "log2": xp.log2,
    "log1p": lambda x: xp.log1p(x - 1.0),
    "power": lambda x: x**0.5,
    "reciprocal": xp.reciprocal,
    "negative power": lambda x: x**-1.5,
    "power of itself": lambda x: x**x,
    "quotient": lambda x: (1.0 + x) / x,
    "zero by zero": lambda x: xp.sin(x) / x,
    "entropy": lambda x: x * xp.log(x),
    "asin": lambda x: xp.asin(1.0 - x),
    "acos": lambda x: xp.acos(1.0 - x),
    "acosh": lambda x: xp.acosh(1.0 + x),
    "atanh": lambda x: xp.atanh(1.0 - x),
    "hypot": lambda x: xp.sqrt(xp.hypot(x, 0.0 * x)),
    "chain": lambda x: xp.exp(-(xp.log(xp.sqrt(x)) ** 2.0)),
    "used twice": lambda x: xp.sqrt(x) * xp.sin(xp.sqrt(x)) + xp.sqrt(x),
    "gammaln": special.gammaln,
    "digamma": special.digamma,
    "erfinv": lambda x: special.erfinv(1.0 - x),
    "logit": special.logit,
    "cbrt": special.cbrt,
    "sum of squares": lambda x: xp.sqrt(xp.sum(xp.stack([x, x]) ** 2.0, axis=0)),
    "through axes": lambda x: xp.sum(xp.broadcast_to(xp.log(x)[:, None], (3, 2)), axis=1),
    "reshaped": lambda x: xp.reshape(xp.flip(xp.sqrt(xp.flip(xp.reshape(x, (3, 1)), axis=0)), axis=0), (3,)),
}


def assigned(f: Callable[[Any], Any], x: Any, mask: Any) -> Any:
    y = f(x)
    y[~mask] = 0.0
    return y


# What takes ``f(x)`` where the mask holds, and something smooth elsewhere.
FORMS: dict[str, Callable[[Callable[[Any], Any], Any, Any], Any]] = {
    "where": lambda f, x, mask: xp.where(mask, f(x), 0.0 * x),
    "where of a number": lambda f, x, mask: xp.where(mask, f(x), 0.0),
    "other branch": lambda f, x, mask: xp.where(~mask, x, f(x)),
    "nested": lambda f, x, mask: xp.where(mask, xp.where(x < 0.3, f(x), f(x) ** 2.0), 3.0 * x),
    "scaled": lambda f, x, mask: 2.0 * xp.where(mask, -3.0 * f(x) / 4.0, 1.0),
    "squared": lambda f, x, mask: xp.where(mask, f(x), x) ** 2.0,
}
OF_NUMPY: dict[str, Callable[[Callable[[Any], Any], Any, Any], Any]] = {
    "select": lambda f, x, mask: np.select([mask, ~mask], [f(x), x]),
    "where=": lambda f, x, mask: np.multiply(f(x), 2.0, where=mask, out=0.0 * x),
    "assignment": assigned,
    "at": lambda f, x, mask: xp.add(0.0, f(x)).at[~mask].set(x[~mask]),
    "index": lambda f, x, mask: (0.0 * x).at[mask].set(f(x)[mask]),
    "putmask": lambda f, x, mask: (y := 1.0 * f(x), np.putmask(y, ~mask, 0.0))[0],
}


def point() -> np.ndarray:
    return np.array([GOOD[0], BAD, GOOD[1]])


def check(form: Callable[[Any, Any], Any], f: Callable[[Any], Any], asarray: Callable[..., Any]) -> None:
    """Compares reverse with forward mode in both orders, and the elements that are not masked with `f` alone."""
    mask = asarray(point() > 0.0)
    ones, x = asarray(np.ones(3)), asarray(point())
    g = lambda x: form(f, x, mask)  # noqa: E731
    first = ox.grad(lambda x: xp.sum(g(x)))
    with np.errstate(all="ignore"):
        forward = ox.jvp(g, (x,), (ones,))[1]
        np.testing.assert_allclose(host(first(x)), host(forward), rtol=1e-9)
        second = ox.jvp(lambda x: ox.jvp(g, (x,), (ones,))[1], (x,), (ones,))[1]
        assert np.isfinite(host(second)).all()
        for other in (
            ox.grad(lambda x: xp.sum(first(x)))(x),
            ox.jvp(first, (x,), (ones,))[1],
            ox.grad(lambda x: xp.sum(ox.jvp(g, (x,), (ones,))[1]))(x),
        ):
            np.testing.assert_allclose(host(other), host(second), rtol=1e-7)
        np.testing.assert_allclose(
            host(ox.jacobian(g, mode="reverse")(x)), np.diag(host(forward)), rtol=1e-9, atol=1e-300
        )


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("form", {**FORMS, **OF_NUMPY})
def test_a_masked_branch_has_the_derivatives_of_forward_mode(form, name):
    check({**FORMS, **OF_NUMPY}[form], FUNCTIONS[name], np.asarray)


@pytest.mark.parametrize("name", ["sqrt", "entropy", "zero by zero", "used twice", "through axes"])
@pytest.mark.parametrize("form", FORMS)
def test_masked_branches_over_array_libraries(form, name, arrays):
    check(FORMS[form], FUNCTIONS[name], arrays.asarray)


@pytest.mark.parametrize("kind", [float, np.float64, np.float32, np.array])
@pytest.mark.parametrize("form", ["where", "where of a number", "squared"])
@pytest.mark.parametrize("name", ["sqrt", "log", "quotient", "entropy", "used twice"])
def test_masked_numbers(kind, form, name):
    with np.errstate(all="ignore"):
        g = lambda x: FORMS[form](FUNCTIONS[name], x, x > 0.0)  # noqa: E731
        for x in (kind(0.0), kind(0.25)):
            assert ox.grad(g)(x) == pytest.approx(ox.jvp(g, (x,), (1.0,))[1], rel=1e-6)
            second = ox.jvp(lambda x: ox.jvp(g, (x,), (1.0,))[1], (x,), (1.0,))[1]
            assert ox.grad(ox.grad(g))(x) == pytest.approx(second, rel=1e-5)


@pytest.mark.parametrize("name", ["sqrt", "entropy", "used twice", "chain"])
def test_large_arrays(name):
    """Their cotangents are deferred and computed by one kernel."""
    x = np.zeros(100_000)
    x[::3] = 0.25
    g = lambda x: xp.where(x > 0.0, FUNCTIONS[name](x), x * x)  # noqa: E731
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(ox.grad(lambda x: xp.sum(g(x)))(x), ox.jvp(g, (x,), (np.ones_like(x),))[1])


BOUNDED: dict[str, Callable[[Any], Any]] = {
    "maximum": lambda x: xp.maximum(xp.log(x), -3.0),
    "minimum": lambda x: np.minimum(1.0 / x, 5.0),
    "clip": lambda x: np.clip(xp.log(x), -3.0, -0.1),
    "bound": lambda x: xp.maximum(-3.0, xp.log(x)),
    "largest": lambda x: xp.max(xp.stack([xp.log(x), 0.0 * x - 3.0]), axis=0),
    "smallest": lambda x: xp.min(xp.stack([1.0 / x, 0.0 * x + 5.0]), axis=0),
    "largest and smallest": lambda x: xp.min(xp.stack([xp.max(xp.stack([xp.log(x), x - 3.0]), axis=0), x]), axis=0),
}


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("x", [point(), 0.0, 0.25, np.float32(0.0), np.array(0.0)], ids=repr)
def test_what_a_maximum_does_not_select(name, x):
    with np.errstate(all="ignore"):
        forward = ox.jvp(BOUNDED[name], (x,), (np.ones_like(x) if np.ndim(x) else 1.0,))[1]
        assert np.isfinite(forward).all()
        np.testing.assert_allclose(ox.grad(lambda x: xp.sum(BOUNDED[name](x)))(x), forward, rtol=1e-6)


def test_masked_branches_under_transforms_and_recordings():
    g = lambda x: xp.where(x > 0.0, xp.sqrt(x) * xp.log(x), 2.0 * x)  # noqa: E731
    with np.errstate(all="ignore"):
        expected = ox.jvp(g, (point(),), (np.ones(3),))[1]
        np.testing.assert_allclose(ox.vmap(ox.grad(g))(point()), expected)
        total = lambda x: xp.sum(g(x))  # noqa: E731
        np.testing.assert_allclose(ox.grad(lambda x: xp.sum(ox.vmap(g)(x)))(point()), expected)
        np.testing.assert_allclose(ox.grad(lambda x: xp.sum(ox.vmap(total)(x[None])))(point()), expected)
        recorded = ox.record(ox.grad(total))
        for scale in (1.0, 2.0):
            np.testing.assert_allclose(
                recorded(scale * point()), ox.jvp(g, (scale * point(),), (np.ones(3),))[1], rtol=1e-12
            )


def test_a_branch_of_another_shape():
    mask = np.array([[True, False], [True, False]])
    p = np.array([0.25, 0.0])
    with np.errstate(all="ignore"):
        gradient = ox.grad(
            lambda p: xp.sum(xp.where(mask, xp.ones((2, 1)) * 2.0, xp.sum(p)) + xp.where(mask, xp.log(p), 1.0))
        )
        np.testing.assert_allclose(gradient(p), [2 + 8.0, 2.0])


MATRIX = np.array([[1.0, 2.0, -1.0], [0.5, -3.0, 2.0], [1.5, 0.25, -2.0]])

# What takes some elements of ``f(x)``, without the first and the last one, between structured ops.
SELECTIONS: dict[str, Callable[[Any], Any]] = {
    "slice": lambda y: y[1:-1],
    "integer": lambda y: y[1] * y[2],
    "steps": lambda y: y[1:3][::-1],
    "integers": lambda y: y[np.array([2, 1, 1])],
    "truth values": lambda y: y[np.array([False, True, True, False])],
    "two slices": lambda y: y[1:2] * y[2:3],
    "ellipsis": lambda y: y[None, ..., 1:-1],
    "take": lambda y: xp.take(y, np.array([1, 2])),
    "take_along_axis": lambda y: xp.take_along_axis(y, np.array([2, 1]), axis=0),
    "reshape": lambda y: xp.reshape(y, (2, 2))[0, 1] * xp.reshape(y, (2, 2))[1, 0],
    "transpose": lambda y: xp.reshape(y, (2, 2)).T[np.array([0, 1]), np.array([1, 0])],
    "concat": lambda y: xp.concat([y, 2.0 * y])[np.array([1, 2, 5, 6])],
    "stack": lambda y: xp.stack([y, y * y])[:, 1:3],
    "pad": lambda y: np.pad(y, 2)[3:5],
    "roll": lambda y: xp.roll(y, 1)[2:],
    "flip": lambda y: xp.flip(y)[1:-1],
    "diff": lambda y: xp.diff(y)[1:2],
    "repeat": lambda y: xp.repeat(y, 2)[2:6],
    "broadcast": lambda y: xp.sum((y[:, None] * np.ones((4, 3)))[1:3], axis=1),
    "partial sums": lambda y: xp.cumulative_sum(y[1:3]),
    "scatter": lambda y: xp.at(np.zeros(6))[1:3].set(y[1:3]),
    "sort": lambda y: xp.sort(y[1:3]),
    "trace": lambda y: xp.linalg.trace(xp.reshape(y[np.array([1, 2, 1, 2])], (2, 2))),
    "rows of a product": lambda y: (xp.reshape(y[np.array([0, 3, 1, 2])], (2, 2)) @ MATRIX[:2])[1],
    "columns of a product": lambda y: (MATRIX[:2].T @ xp.reshape(y[np.array([0, 1, 3, 2])], (2, 2)))[:, 1],
    "rows of a stack of products": lambda y: (
        (xp.reshape(y[np.array([0, 3, 1, 2])], (2, 1, 2)) * np.ones((2, 3, 2))) @ MATRIX[:2]
    )[1],
    "product with a vector": lambda y: (xp.reshape(y[np.array([0, 3, 1, 2])], (2, 2)) @ MATRIX[0, :2])[1:],
    "largest of rows": lambda y: xp.max(xp.reshape(y[np.array([0, 3, 1, 2])], (2, 2)), axis=1)[1],
    "inverse of each": lambda y: xp.linalg.inv(
        xp.reshape(y[np.array([0, 3, 1, 2])], (2, 1, 2)) * np.ones((2, 2, 1)) + 4.0 * np.eye(2)
    )[1],
    "where of a slice": lambda y: xp.where(np.array([True, False]), y[1:3], 0.5),
    "slice of a where": lambda y: xp.where(np.array([False, True, True, False]), y, 0.5)[1:3],
    "broadcast scalar": lambda y: y[1] * np.arange(3.0),
}


def check_selection(name: str, f: Callable[[Any], Any], asarray: Callable[..., Any]) -> None:
    """Compares derivatives with those at finite elements in place of the ones that are not selected, which have none."""
    x, like = asarray(np.array([BAD, 0.25, 0.5, BAD])), asarray(np.array([0.3, 0.25, 0.5, 0.3]))
    is_selected, ones = np.array([0.0, 1.0, 1.0, 0.0]), asarray(np.ones(4))
    g = lambda x: xp.sum(SELECTIONS[name](f(x)))  # noqa: E731
    first = ox.grad(g)
    second = ox.grad(lambda x: xp.sum(first(x)))
    with np.errstate(all="ignore"):
        expected = host(first(like)) * is_selected
        np.testing.assert_allclose(host(first(x)), expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(host(ox.jvp(g, (x,), (ones,))[1]), np.sum(expected), rtol=1e-9)
        expected = host(second(like)) * is_selected
        forward = ox.grad(lambda x: ox.jvp(g, (x,), (ones,))[1])
        for other in (second, lambda x: ox.jvp(first, (x,), (ones,))[1], forward):
            np.testing.assert_allclose(host(other(x)), expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", SELECTIONS)
@pytest.mark.parametrize("of", ["sqrt", "entropy", "zero by zero", "used twice"])
def test_what_an_op_does_not_select_has_no_derivative(of, name):
    check_selection(name, FUNCTIONS[of], np.asarray)


@pytest.mark.parametrize("name", ["slice", "two slices", "ellipsis", "reshape", "stack", "flip"])
def test_selections_over_array_libraries(name, arrays):
    check_selection(name, FUNCTIONS["sqrt"], arrays.asarray)


@pytest.mark.parametrize("name", ["slice", "integers", "concat", "rows of a product", "where of a slice"])
def test_selections_under_transforms_and_recordings(name):
    g = lambda x: xp.sum(SELECTIONS[name](xp.sqrt(x)))  # noqa: E731
    points = np.array([[0.0, 0.25, 0.5, 0.0], [0.0, 1.0, 2.0, 3.0]])
    with np.errstate(all="ignore"):
        expected = [ox.grad(g)(x) for x in points]
        assert np.isfinite(expected).all()
        np.testing.assert_allclose(ox.vmap(ox.grad(g))(points), expected)
        np.testing.assert_allclose(ox.grad(lambda x: xp.sum(ox.vmap(g)(x)))(points), expected)
        recorded = ox.record(ox.grad(g))
        for x, gradient in zip(points, expected, strict=True):
            np.testing.assert_allclose(recorded(x), gradient, rtol=1e-12)
            np.testing.assert_allclose(ox.grad(ox.record(g))(x), gradient, rtol=1e-12)


def test_elements_of_a_loop():
    """A mask of many keys: the elements that no key names have no derivative."""
    x = np.zeros(50)
    x[10:40] = np.linspace(0.1, 1.0, 30)

    def f(x: Any) -> Any:
        y = xp.sqrt(x)
        return sum((y[i] * y[i + 1] for i in range(10, 39)), start=0.0)

    with np.errstate(all="ignore"):
        gradient = ox.grad(f)(x)
    assert (gradient[:10] == 0.0).all() and (gradient[40:] == 0.0).all()
    np.testing.assert_allclose(gradient[10:40], ox.grad(f)(np.maximum(x, 0.05))[10:40])


def test_the_determinant_of_each_matrix_has_the_first_derivative():
    def f(x: Any) -> Any:
        y = xp.reshape(xp.sqrt(x), (2, 1, 2)) * np.ones((2, 2, 1))
        return xp.linalg.det(y + 4.0 * np.eye(2))[1]

    with np.errstate(all="ignore"):
        gradient = ox.grad(f)(np.array([0.0, 0.0, 0.25, 0.5]))
    np.testing.assert_allclose(gradient, ox.grad(f)(np.array([1.0, 1.0, 0.25, 0.5])))


def test_masks_of_long_loops_end():
    """A description of a mask has a bound: no recursion, and no memory that grows with the loop."""

    def f(x: Any) -> Any:
        y = xp.sin(x)
        for _ in range(2000):
            y = xp.reshape(xp.concat([y[1:], y[:1]]) * 1.0, (3,))
        return xp.sqrt(xp.sum(y[1:] ** 2.0))

    x = np.array([0.1, 0.2, 0.3])
    gradient = ox.grad(f)(x)
    step = lambda e: (f(x + 1e-6 * e) - f(x - 1e-6 * e)) / 2e-6  # noqa: E731
    np.testing.assert_allclose(gradient, [step(e) for e in np.eye(3)], atol=1e-8)
    assert np.isfinite(ox.hessian(f)(x)).all()


def test_an_overflow_that_is_not_selected_has_no_derivative():
    with np.errstate(all="ignore"):
        assert ox.grad(lambda x: xp.exp(x)[1])(np.array([1e4, 0.0])).tolist() == [0.0, 1.0]


def test_zeros_that_are_computed_stay_visible():
    """A zero cotangent that depends on the value is no mask, and NaN in the data is NaN."""
    x = np.array([0.0, 1.0])
    np.testing.assert_allclose(ox.hessian(lambda x: xp.sum(x * x * x - x) ** 2.0)(np.array([0.0, 1.0]))[0, 0], 2.0)
    loss = lambda x: xp.sum(xp.where(x > 0.5, xp.sin(x - 1.0), x) ** 2.0)  # noqa: E731
    np.testing.assert_allclose(ox.hessian(loss)(x), np.diag([2.0, 2.0]))
    data = np.array([np.nan, 1.0])
    assert np.isnan(ox.grad(lambda x: xp.sum(0.0 * x * data))(x)[0])
    assert np.isnan(ox.grad(lambda x: xp.sum(xp.where(x < 0.5, x * data, x)))(x)[0])
    with np.errstate(all="ignore"):
        assert np.isnan(ox.grad(lambda x: xp.sum(0.0 * xp.sqrt(x)))(x)[0])


@pytest.mark.parametrize("u", [0.3, np.float64(0.3)])
def test_scalars_that_are_assigned_have_gradients_of_their_own_precision(u):
    """A cotangent of a sum of scalars is masked where the sum was assigned: it has the precision of each of them."""
    x = np.linspace(0.5, 2.0, 12).reshape(3, 4)

    def f(u, s):
        rows = x * u
        rows[:, 1] *= u + s
        return xp.mean(rows)

    s = np.float32(0.7)
    du, ds = ox.grad(f, argnums=(0, 1))(u, s)
    assert (type(du), type(ds)) == (type(u), np.float32)
    # In float32 where u is a float of Python: beside s, it has no precision of its own.
    factor = np.where(np.arange(4) == 1, 2.0 * u + float(s), 1.0)
    np.testing.assert_allclose(du, np.mean(x * factor), rtol=1e-6)
    np.testing.assert_allclose(ds, np.sum(x[:, 1]) * u / 12, rtol=1e-6)
