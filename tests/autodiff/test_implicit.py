"""Derivatives of solutions of equations, against closed forms and differences of the solver."""

from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp
from python_frames import frames

A = np.array([[3.0, 0.5, 0.2], [0.1, 2.0, -0.4], [0.3, -0.2, 2.5]])
B = np.array([1.0, -0.5, 0.7])


def residual(x: Any, a: Any, b: Any) -> Any:
    return a @ x + 0.1 * xp.sin(x) * x - b


def newton(a: Any, b: Any) -> Any:
    x = np.zeros(3)
    for _ in range(50):
        x = x - np.linalg.solve(a + np.diag(0.1 * (np.cos(x) * x + np.sin(x))), residual(x, a, b))
    return x


def gmres(product: Any, b: Any) -> Any:
    """A solver that sees nothing but products."""
    linalg = pytest.importorskip("scipy.sparse.linalg")
    operator = linalg.LinearOperator((b.size, b.size), matvec=product)
    found, info = linalg.gmres(operator, b, rtol=1e-14, atol=1e-14)
    assert info == 0
    return found


@pytest.mark.parametrize("solve", [None, gmres], ids=["direct", "gmres"])
def test_both_modes_and_orders(solve: Any) -> None:
    solved = ox.implicit(residual, newton, solve)
    np.testing.assert_allclose(residual(solved(A, B), A, B), 0.0, atol=1e-13)
    ox.testing.check_grads(lambda a, b: xp.sum(solved(a, b) ** 2 * B), (A, B), order=2)


def test_the_solver_is_called_once_with_plain_values() -> None:
    calls = []

    def solver(a: Any) -> Any:
        calls.append(type(a))
        return np.sqrt(a)

    solved = ox.implicit(lambda x, a: x * x - a, solver)
    np.testing.assert_allclose(ox.grad(lambda a: xp.sum(solved(a)))(B**2), 0.5 / np.abs(B), rtol=1e-12)
    assert calls == [np.ndarray]


def test_trees_and_arguments_without_derivative() -> None:
    def of_tree(x: Any, p: Any, n: int, text: str) -> Any:
        assert text == "square"
        return {"a": x["a"] ** n - p["s"] * x["b"], "b": x["b"] - xp.exp(p["t"])}

    def solver(p: Any, n: int, _: str) -> Any:
        b = np.exp(p["t"])
        return {"a": (p["s"] * b) ** (1.0 / n), "b": b}

    solved = ox.implicit(of_tree, solver)
    p = {"s": np.array([2.0, 3.0]), "t": np.array([0.1, -0.2])}
    found = ox.grad(lambda p: xp.sum(solved(p, 3, "square")["a"]))(p)
    a = solver(p, 3, "")["a"]
    np.testing.assert_allclose(found["s"], a / 3.0 / p["s"], rtol=1e-12)
    np.testing.assert_allclose(found["t"], a / 3.0, rtol=1e-12)


@pytest.mark.parametrize("kind", [float, np.float64])
def test_numbers(kind: type[float]) -> None:
    root = ox.implicit(lambda x, a: x**3 - a, lambda a: kind(np.cbrt(a)))
    derivative, second, eight = ox.grad(root), ox.grad(ox.grad(root)), kind(8.0)
    assert root(eight) == 2.0 and type(derivative(eight)) is type(second(eight)) is kind
    np.testing.assert_allclose([derivative(eight), second(eight)], [1.0 / 12.0, -1.0 / 144.0], rtol=1e-12)
    np.testing.assert_allclose(ox.jvp(root, (eight,), (kind(6.0),))[1], 0.5, rtol=1e-12)
    assert not [name for name in frames(lambda: derivative(eight)) if name.endswith(".solved")]


ROOTS = np.array([0.5, 2.0, 3.0])


@pytest.mark.parametrize("x", [ROOTS, ROOTS.astype(np.float32), np.outer(ROOTS, B**2), np.array(2.0), np.zeros(0)])
def test_elementwise_residuals_need_no_matrix(x: Any) -> None:
    root = ox.implicit(lambda y, a, w: xp.exp(y) * y**3 - w * a, lambda a, w: newton_of_elements(w * a))
    of_sum = lambda a, w: xp.sum(root(a, w) ** 2)  # noqa: E731
    tolerance = 1e-5 if x.dtype == np.float32 else 1e-10
    for w in (np.full(x.shape[-1:], 1.5, x.dtype), 1.5):
        y = newton_of_elements(w * x)
        slope = 2.0 * y / (np.exp(y) * (y**3 + 3.0 * y**2))
        by_a, by_w = ox.grad(of_sum, (0, 1))(x, w)
        np.testing.assert_allclose(by_a, slope * w, rtol=tolerance)
        np.testing.assert_allclose(np.sum(by_w), np.sum(slope * x), rtol=tolerance)
        assert by_a.dtype == x.dtype and np.shape(by_w) == np.shape(w)
    if x.dtype == np.float64 and x.size:
        ox.testing.check_grads(of_sum, (x, np.full(x.shape[-1:], 1.5)), order=2)
        np.testing.assert_array_equal(ox.record(ox.grad(of_sum))(x, 1.5), ox.grad(of_sum)(x, 1.5))
    assert not [name for name in frames(lambda: ox.grad(of_sum)(x, 1.5)) if name.endswith((".solved", ".jacobian"))]


def newton_of_elements(b: Any) -> Any:
    """The root of ``exp(y) y**3 = b``."""
    y = np.ones_like(b)
    for _ in range(60):
        y = y - (y - b * np.exp(-y) / y**2) / (3.0 + y)
    return y


def test_a_residual_that_mixes_elements_has_the_whole_matrix() -> None:
    mixed: list[Any] = [
        lambda x: xp.cumulative_sum(x),
        lambda x: x - 0.1 * xp.sum(x),
        lambda x: x + 0.1 * xp.flip(x),
        lambda x: x + 0.1 * x[1],
        lambda x: xp.where(xp.sum(x) > 1e9, 0.0, A @ x),
        lambda x: xp.concat([x[:1], x[1:] - x[:-1]]),
        lambda x: ox.checkpoint(lambda x: A @ x)(x),
        lambda x: ox.define_vjp(lambda g: A.T @ g)(lambda x: A @ x)(x),
        lambda x: xp.astype(A.astype(np.float32) @ xp.astype(x, np.float32), np.float64),
    ]
    for product in mixed:
        matrix = ox.jacobian(product)(B)
        solved = ox.implicit(
            lambda x, a, product=product: product(x) - a**3, lambda a, m=matrix: np.linalg.solve(m, a**3)
        )
        expected = np.linalg.solve(matrix, np.diag(3.0 * B**2))
        np.testing.assert_allclose(ox.jacobian(solved, mode="reverse")(B), expected, rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(ox.jacobian(solved, mode="forward")(B), expected, rtol=1e-6, atol=1e-12)


def test_complex_solutions() -> None:
    root = ox.implicit(lambda x, a: x * x - a, np.sqrt)
    z = np.array([1.0 + 2.0j, -3.0 + 0.5j])
    slope = 0.5 / np.sqrt(z)
    np.testing.assert_allclose(ox.jacobian(root, holomorphic=True)(z), np.diag(slope), rtol=1e-12)


def test_where_the_residual_is_flat_the_derivative_is_infinite_at_that_element() -> None:
    root = ox.implicit(lambda x, a: x * x - a, np.sqrt)
    with np.errstate(divide="ignore"):
        slopes = ox.grad(lambda a: xp.sum(root(a)))(np.array([4.0, 0.0, 1.0]))
        assert ox.grad(root)(0.0) == np.inf
    assert slopes.tolist() == [0.25, np.inf, 0.5]


def test_a_minimizer_is_the_root_of_a_gradient() -> None:
    """Ridge regression: the derivative of the solution with respect to the penalty, against the closed form."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((20, 3)), rng.standard_normal(20)

    def loss(w: Any, penalty: Any) -> Any:
        return xp.sum((x @ w - y) ** 2) + penalty * xp.sum(w * w)

    def closed(penalty: Any) -> Any:
        return np.linalg.solve(x.T @ x + penalty * np.eye(3), x.T @ y)

    solved = ox.implicit(ox.grad(loss), closed)
    found = ox.jacobian(solved)(2.0)
    np.testing.assert_allclose(found, -np.linalg.solve(x.T @ x + 2.0 * np.eye(3), closed(2.0)), rtol=1e-10)


def test_errors() -> None:
    with pytest.raises(TypeError, match="implicit, solver"):
        ox.implicit(residual, 3)  # type: ignore[arg-type]
    with pytest.raises(ox.StructureError, match="the residual differs from the solution"):
        ox.grad(lambda a: xp.sum(ox.implicit(lambda x, a: {"a": x - a}, np.copy)(a)))(B)
    with pytest.raises(ox.ShapeError, match=r"the residual has shape \(\), the solution \(3,\)"):
        ox.grad(lambda a: xp.sum(ox.implicit(lambda x, a: xp.sum(x - a), np.copy)(a)))(B)
