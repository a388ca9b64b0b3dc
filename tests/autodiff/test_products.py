"""Linearization, Gauss-Newton products, diagonals of Hessians, elementwise gradients and vectors of trees."""

from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from oxigrad import xp

X = np.array([0.3, 0.7, 1.1])


def model() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {"w": rng.standard_normal((2, 3)), "b": 0.5, "name": "l1"}


def forward(m: Any, x: Any = X) -> Any:
    return xp.tanh(m["w"] @ x + m["b"])


class TestLinearize:
    def test_equals_jvp_for_any_tangents(self) -> None:
        calls = []

        def f(m: Any, x: Any) -> Any:
            calls.append(None)
            return {"y": forward(m, x), "n": 3, "x": x * 2.0}

        value, derivative = ox.linearize(f, model(), X)
        # NumPy adds up its product with a vector in another order.
        np.testing.assert_allclose(value["y"], forward(model()), rtol=1e-14)
        for scale in (1.0, -2.0):
            tangents = ({"w": scale * np.ones((2, 3)), "b": scale, "name": ""}, scale * X)
            expected = ox.jvp(f, (model(), X), tangents)[1]
            found = derivative(*tangents)
            np.testing.assert_array_equal(found["y"], expected["y"])
            np.testing.assert_array_equal(found["x"], expected["x"])
        assert len(calls) == 3

    def test_many_tangents_are_pushed_together(self) -> None:
        def f(m: Any, x: Any) -> Any:
            return {"y": forward(m, x), "n": 3, "x": x * m["b"], "b": m["b"] ** 2, "ones": np.ones(2)}

        _, derivative = ox.linearize(f, model(), X)
        rng = np.random.default_rng(0)
        together = (
            {"w": rng.standard_normal((4, 2, 3)), "b": rng.standard_normal(4), "name": ""},
            rng.standard_normal((4, 3)),
        )
        found = derivative(*together, together=True)
        each = [
            derivative({"w": together[0]["w"][k], "b": float(together[0]["b"][k]), "name": ""}, together[1][k])
            for k in range(4)
        ]
        for key in ("y", "n", "x", "b", "ones"):
            expected = np.stack([np.asarray(one[key]) for one in each])
            assert found[key].shape == expected.shape and found[key].dtype == np.float64
            np.testing.assert_allclose(found[key], expected, rtol=1e-14, atol=1e-14)

    def test_tangents_that_are_pushed_together_are_checked(self) -> None:
        _, derivative = ox.linearize(forward, model())
        ones = {"w": np.ones((4, 2, 3)), "b": np.ones(4), "name": ""}
        with pytest.raises(ox.ShapeError, match=r"b: the tangent: found shape \(5,\), expected \(4,\)"):
            derivative({**ones, "b": np.ones(5)}, together=True)
        with pytest.raises(ox.ShapeError, match=r"w: the tangent: found shape \(4, 3\), expected \(4, 2, 3\)"):
            derivative({**ones, "w": np.ones((4, 3))}, together=True)
        with pytest.raises(ox.ShapeError, match="expected an axis of tangents first"):
            derivative({**ones, "w": 1.0, "b": 1.0}, together=True)

    def test_the_pullback_is_that_of_vjp(self) -> None:
        def f(m: Any, x: Any) -> Any:
            return {"y": forward(m, x), "x": x * m["b"]}

        value, derivative = ox.linearize(f, model(), X)
        cotangent = ox.tree.map(np.ones_like, value)
        for one, other in zip(derivative.pullback(cotangent), ox.vjp(f, model(), X)[1](cotangent), strict=True):
            ox.tree.map(np.testing.assert_array_equal, one, other)
        _, derivative = ox.linearize(lambda x: np.tanh(x[:2] * x[2]), X)
        (rows,) = derivative.pullback(np.eye(2), together=True)
        np.testing.assert_allclose(rows, derivative(np.eye(3), together=True).T, rtol=1e-15)
        with pytest.raises(ox.ShapeError, match="the cotangent"):
            derivative.pullback(np.ones(3))

    def test_solvers_of_scipy_take_it(self) -> None:
        linalg = pytest.importorskip("scipy.sparse.linalg")
        rng = np.random.default_rng(0)
        matrix, x = 4.0 * np.eye(5) + rng.normal(size=(5, 5)) / 2, rng.normal(size=3)

        def f(m: Any, y: float) -> Any:
            return {"first": np.tanh(matrix[:, :3] @ m["x"]) + y * matrix[:, 3], "last": 2.0 * y}

        _, derivative = ox.linearize(f, {"x": x, "n": 3}, 0.5)
        operator = derivative.operator()
        slope = 1.0 - np.tanh(matrix[:, :3] @ x) ** 2
        dense = np.block([[slope[:, None] * matrix[:, :3], matrix[:, 3:4]], [np.zeros((1, 3)), 2.0]])
        assert operator.shape == (6, 4) and operator.dtype == np.float64
        np.testing.assert_allclose(operator @ np.eye(4), dense, rtol=1e-13)
        np.testing.assert_allclose(operator.T @ np.eye(6), dense.T, rtol=1e-13)
        right = rng.normal(size=6)
        expected = np.linalg.lstsq(dense, right)[0]
        np.testing.assert_allclose(linalg.lsmr(operator, right, atol=1e-14, btol=1e-14)[0], expected, rtol=1e-9)
        square = ox.linearize(lambda x: np.sin(matrix @ x), np.zeros(5))[1].operator()
        np.testing.assert_allclose(
            linalg.gmres(square, right[:5], rtol=1e-12)[0], np.linalg.solve(matrix, right[:5]), rtol=1e-9
        )
        largest = linalg.eigs(square, k=1, return_eigenvectors=False)[0]
        np.testing.assert_allclose(abs(largest), abs(np.linalg.eigvals(matrix)).max(), rtol=1e-9)

    def test_an_operator_has_rows_of_zeros_for_constants(self) -> None:
        pytest.importorskip("scipy")

        def f(x: Any) -> Any:
            return {"a": np.ones(2), "b": 3.0 * x, "c": 1.0, "n": 7}

        operator = ox.linearize(f, X)[1].operator()
        dense = np.vstack([np.zeros((2, 3)), 3.0 * np.eye(3), np.zeros((1, 3))])
        np.testing.assert_array_equal(operator @ np.eye(3), dense)
        np.testing.assert_array_equal(operator.T @ np.eye(6), dense.T)
        constant = ox.linearize(lambda x: np.ones(2), X)[1].operator()
        assert constant.shape == (2, 3)
        np.testing.assert_array_equal(constant @ X, np.zeros(2))
        np.testing.assert_array_equal(constant.T @ np.ones(2), np.zeros(3))

    def test_an_operator_multiplies_complex_vectors(self) -> None:
        linalg = pytest.importorskip("scipy.sparse.linalg")
        rng = np.random.default_rng(1)
        matrix = rng.normal(size=(5, 5)) + 5.0 * np.eye(5)
        right = rng.normal(size=5) + 1.0j * rng.normal(size=5)
        operator = ox.linearize(lambda x: np.tanh(matrix @ x), np.zeros(5))[1].operator()
        np.testing.assert_allclose(operator @ right, matrix @ right, rtol=1e-13)
        np.testing.assert_allclose(operator.H @ right, matrix.T @ right, rtol=1e-13)
        np.testing.assert_allclose(
            linalg.gmres(operator, right, rtol=1e-12)[0], np.linalg.solve(matrix, right), rtol=1e-9
        )

    def test_an_operator_of_complex_arrays_is_refused(self) -> None:
        pytest.importorskip("scipy")
        with pytest.raises(ox.DtypeError, match="found complex arrays, expected real ones"):
            ox.linearize(lambda z: z * z, 1.0 + 1.0j)[1].operator()

    def test_an_operator_of_tensors_is_refused(self, library: Any) -> None:
        pytest.importorskip("scipy")
        with pytest.raises(ox.DtypeError, match=r"found arrays of torch\.float32, expected dtypes of NumPy"):
            ox.linearize(lambda x: x * x, library("torch").ones(3))[1].operator()

    def test_tangents_are_checked(self) -> None:
        _, derivative = ox.linearize(forward, model())
        with pytest.raises(ox.StructureError, match="found 2 tangents, expected 1"):
            derivative(model(), X)
        with pytest.raises(ox.ShapeError, match="argument 0, w: the tangent"):
            derivative({**model(), "w": np.ones(3)})


def matrix(product: Any, size: int) -> np.ndarray:
    return np.stack([product(unit) for unit in np.eye(size)])


def test_gauss_newton_products() -> None:
    """Against the matrix from the Jacobian and the Hessian, for a loss that is not quadratic."""
    target = np.array([0.2, -0.4])

    def f(w: Any) -> Any:
        return xp.tanh(xp.reshape(w, (2, 3)) @ X)

    def loss(y: Any) -> Any:
        return xp.sum(xp.exp(y) - target * y) + y[0] * y[1]

    w = np.linspace(-1.0, 1.0, 6)
    jacobian, hessian = ox.jacobian(f)(w), ox.hessian(loss)(f(w))
    found = matrix(lambda v: ox.ggnvp(f, loss, (w,), (v,))[0], 6)
    np.testing.assert_allclose(found, jacobian.T @ hessian @ jacobian, rtol=1e-12)
    with pytest.raises(ox.ShapeError, match="the tangent"):
        ox.ggnvp(f, loss, (w,), (np.ones(5),))


def test_gauss_newton_products_of_trees() -> None:
    target = np.array([0.2, -0.4])
    vector, unravel = ox.tree.ravel(model())

    def loss(y: Any) -> Any:
        return 0.5 * xp.sum((y - target) ** 2)

    jacobian = ox.jacobian(lambda v: forward(unravel(v)))(vector)
    direction = np.linspace(0.1, 0.7, vector.size)
    found = ox.ggnvp(forward, loss, (model(),), (unravel(direction),))[0]
    np.testing.assert_allclose(ox.tree.ravel(found)[0], jacobian.T @ jacobian @ direction, rtol=1e-12)


class TestDiagonal:
    def test_equals_the_diagonal_of_the_hessian(self) -> None:
        def f(x: Any) -> Any:
            return xp.sum(xp.sin(x) * xp.flip(x)) * xp.prod(x)

        np.testing.assert_allclose(ox.hessian_diag(f)(X), np.diag(ox.hessian(f)(X)), rtol=1e-12)
        square = X[:, None] * np.array([1.0, 2.0])
        whole = ox.hessian(f)(square)
        np.testing.assert_allclose(ox.hessian_diag(f)(square), np.einsum("ijij->ij", whole), rtol=1e-12)

    def test_trees_numbers_and_several_arguments(self) -> None:
        def f(m: Any, x: Any, *, scale: float = 1.0) -> Any:
            return scale * xp.sum(forward(m, x) ** 2)

        vector, unravel = ox.tree.ravel(model())
        found = ox.hessian_diag(f)(model(), X, scale=2.0)
        expected = np.diag(ox.hessian(lambda v: f(unravel(v), X, scale=2.0))(vector))
        np.testing.assert_allclose(ox.tree.ravel(found)[0], expected, rtol=1e-10)
        assert found["name"] == "l1"
        of_both = ox.hessian_diag(f, (1, 0))(model(), X)
        np.testing.assert_allclose(of_both[0], np.diag(ox.hessian(f, 1)(model(), X)), rtol=1e-10)
        np.testing.assert_allclose(of_both[1]["w"], found["w"] / 2.0, rtol=1e-10)
        assert ox.hessian_diag(lambda x: x**3)(2.0) == 12.0
        assert ox.hessian_diag(xp.sum)(np.zeros(0)).shape == (0,)

    def test_is_differentiable(self) -> None:
        ox.testing.check_grads(ox.hessian_diag(lambda x: xp.sum(x**4 * xp.flip(x))), (X,), order=1)


def test_elementwise_gradients() -> None:
    np.testing.assert_allclose(ox.elementwise_grad(xp.tanh)(X), 1.0 - np.tanh(X) ** 2, rtol=1e-14)
    second = ox.elementwise_grad(ox.elementwise_grad(xp.sin))
    np.testing.assert_allclose(second(X), -np.sin(X), rtol=1e-14)
    assert ox.elementwise_grad(lambda x: x * x)(3.0) == 6.0
    both = ox.elementwise_grad(lambda x, y: {"a": x * y, "b": x}, (0, 1))(X, 2.0 * X)
    np.testing.assert_allclose(both, (2.0 * X + 1.0, X), rtol=1e-14)


def test_jacobians_of_one_mode() -> None:
    x = np.array([0.5, -1.0])
    for found in (ox.jacfwd, ox.jacrev):
        np.testing.assert_allclose(found(lambda x: x**2)(x), np.diag(2.0 * x))
    with pytest.raises(ox.DerivativeError, match="mode 'reverse'"):
        ox.jacrev(lambda x: x * 1j)(x)


class TestRavel:
    def test_round_trip(self) -> None:
        given = {
            **model(),
            "half": np.ones(2, np.float32),
            "z": np.ones(1, np.complex64),
            "k": np.arange(3),
            "none": None,
        }
        vector, unravel = ox.tree.ravel(given)
        assert (vector.dtype, vector.shape) == (np.complex128, (10,))
        found = unravel(vector.real)
        assert [str(leaf.dtype) for leaf in (found["w"], found["half"], found["z"])] == [
            "float64",
            "float32",
            "complex64",
        ]
        np.testing.assert_array_equal(found["w"], given["w"])
        assert (found["b"], found["name"], found["none"]) == (0.5, "l1", None)
        assert found["k"] is given["k"]

    def test_every_library(self, arrays: Any, asarray: Any) -> None:
        vector, unravel = ox.tree.ravel({"b": 2.0, "a": asarray(np.ones((2, 2)))})
        np.testing.assert_array_equal(host(vector), [2.0, 1.0, 1.0, 1.0, 1.0])
        assert type(unravel(vector)["a"]) is type(asarray(X))

    def test_derivatives_go_through(self) -> None:
        vector, unravel = ox.tree.ravel(model())
        by_vector = ox.grad(lambda v: xp.sum(forward(unravel(v))))(vector)
        by_tree = ox.grad(lambda m: xp.sum(forward(m)))(model())
        np.testing.assert_allclose(by_vector, ox.tree.ravel(by_tree)[0], rtol=1e-14)
        back = ox.grad(lambda m: xp.sum(ox.tree.ravel(m)[0] ** 2))(model())
        np.testing.assert_allclose(back["w"], 2.0 * model()["w"])

    def test_errors(self) -> None:
        with pytest.raises(ox.StructureError, match="no floating-point number"):
            ox.tree.ravel({"a": np.arange(3)})
        _, unravel = ox.tree.ravel(model())
        with pytest.raises(ox.ShapeError, match=r"found a vector of shape \(6,\), expected \(7,\)"):
            unravel(np.ones(6))
