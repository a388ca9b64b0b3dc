"""Forward mode, Jacobians, Hessians, checkpoints and custom rules: values, trees, nesting, and refusals."""

from __future__ import annotations

import dataclasses
import math
import tracemalloc
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from oxigrad import xp
from oxigrad.testing import check_grads

X = np.array([0.3, 0.7, 1.1])


KINDS: dict[str, Any] = {
    "float": 1.7,
    "float64": np.float64(1.7),
    "0-d": np.array(1.7),
    "vector": np.array([0.6, 1.3, 0.9, 2.1]),
    "row": np.array([[0.5, 1.1, 0.7, 1.9]]),
    "column": np.array([[0.4], [1.2], [2.2]]),
    "matrix": np.linspace(0.3, 2.4, 12).reshape(3, 4),
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "power": lambda x, y: x**y,
    "maximum": xp.maximum,
    "minimum": np.minimum,
    "where": lambda x, y: xp.where(np.array([True, False, True, True]), x, y),
    "clip": lambda x, y: np.clip(x, y, 9.0),
    "hypot": np.hypot,
    "logaddexp": xp.logaddexp,
    "atan2": xp.atan2,
    "remainder": lambda x, y: x % y,
    "copysign": xp.copysign,
    "of a result": lambda x, y: (2.0 * x + 1.0) - (y * 3.0),
    "negated": lambda x, y: -(x + y) - x,
}


@pytest.mark.parametrize("op", BINARY)
@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", KINDS)
def test_both_modes_broadcast_numbers_and_arrays(op: str, first: str, second: str) -> None:
    x, y = KINDS[first] + 0.05, KINDS[second]
    f = BINARY[op]
    for by, args in ((lambda x: f(x, y), (x,)), (lambda y: f(x, y), (y,)), (f, (x, y))):
        value, tangent = ox.jvp(by, args, args)
        assert np.shape(tangent) == np.shape(value)
        check_grads(by, args, order=2, tolerance=1e-5)
        check_grads(lambda *args, by=by: xp.sum(xp.sin(by(*args))), args, order=1, tolerance=1e-5)
    np.testing.assert_allclose(
        ox.jacobian(lambda x: f(x, y), mode="forward")(x), ox.jacobian(lambda x: f(x, y), mode="reverse")(x)
    )
    np.testing.assert_allclose(ox.linearize(lambda x: f(x, y), x)[1](x), ox.jvp(lambda x: f(x, y), (x,), (x,))[1])


@dataclasses.dataclass
class Layer:
    weight: Any
    bias: Any
    name: str = "layer"


def model() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {"a": Layer(rng.standard_normal((3, 2)), rng.standard_normal(2)), "scale": 1.5}


def forward(model: Any, x: Any = X) -> Any:
    layer = model["a"]
    return {
        "y": xp.tanh(x @ layer.weight + layer.bias) * model["scale"],
        "name": layer.name,
        "norm": xp.sum(layer.bias**2),
    }


def everything(tree: Any) -> np.ndarray:
    """All numbers of a tree, one after the other."""
    leaves = [leaf for leaf in ox.tree.leaves(tree) if not isinstance(leaf, str)]
    return np.concatenate([np.ravel(leaf) for leaf in leaves])


class TestJvp:
    def test_numbers_stay_numbers(self) -> None:
        assert ox.jvp(lambda x, y: x * y + xp.sin(x), (2.0, 5.0), (1.0, 10.0)) == (
            10.0 + math.sin(2.0),
            25.0 + math.cos(2.0),
        )

    def test_trees(self) -> None:
        tangents = ox.tree.map(lambda leaf: leaf if isinstance(leaf, str) else 0.1 * leaf, model())
        value, tangent = ox.jvp(forward, (model(),), (tangents,))
        step = 1e-6
        shifted = ox.tree.map(lambda leaf, t: leaf if isinstance(leaf, str) else leaf + step * t, model(), tangents)
        np.testing.assert_allclose(
            everything(tangent), (everything(forward(shifted)) - everything(value)) / step, rtol=1e-4
        )
        assert tangent["name"] == "layer"

    def test_a_result_that_depends_on_nothing_has_tangent_zero(self) -> None:
        value, tangent = ox.jvp(lambda x: (2.0, np.ones(2), "text", x), (1.0,), (3.0,))
        assert tangent[0] == 0.0 and tangent[2:] == ("text", 3.0)
        np.testing.assert_array_equal(tangent[1], np.zeros(2))
        assert value[3] == 1.0

    def test_a_repeated_result(self) -> None:
        assert ox.jvp(lambda x: (x * x, x, x), (3.0,), (1.0,))[1] == (6.0, 1.0, 1.0)

        def pair(x: Any) -> Any:
            y = x * x
            return y, y

        assert ox.jvp(pair, (3.0,), (1.0,))[1] == (6.0, 6.0)

    def test_has_aux(self) -> None:
        assert ox.jvp(lambda x: (x * x, {"x": x}), (3.0,), (1.0,), has_aux=True) == (9.0, 6.0, {"x": 3.0})

    def test_a_narrow_argument_keeps_the_result_s_shape_and_dtype(self) -> None:
        row = np.ones(4, np.float32)
        value, tangent = ox.jvp(lambda x: x + np.ones((3, 4)), (row,), (row,))
        assert (tangent.shape, tangent.dtype) == (value.shape, value.dtype) == ((3, 4), np.float64)

    def test_a_model_of_no_array_library_in_particular(self, asarray: Callable[..., Any]) -> None:
        x = asarray([0.5, 1.0])
        value, tangent = ox.jvp(lambda x: xp.sum(xp.stack([x * 2.0, xp.exp(x)]) ** 2), (x,), (asarray([1.0, 0.0]),))
        assert host(tangent) == pytest.approx(4.0 + 2 * math.e)
        assert type(value) is type(tangent)

    @pytest.mark.parametrize(
        ("tangent", "error", "message"),
        [
            ({"a": np.ones(2)}, ox.StructureError, "the tangent of argument 1: "),
            (
                {"a": [np.ones(3), 1.0]},
                ox.ShapeError,
                r"argument 1, a.0: the tangent: found shape \(3,\), expected \(2,\)",
            ),
            ({"a": [np.ones(2, np.float32), 1.0]}, ox.DtypeError, "argument 1, a.0: the tangent: found dtype float32"),
            ({"a": [np.ones(2, int), 1.0]}, ox.DtypeError, "a.0: the tangent: found ndarray of dtype int64"),
            ({"a": [np.ones(2), "x"]}, ox.DtypeError, "a.1: the tangent: found str"),
        ],
    )
    def test_a_mismatched_tangent_is_refused(self, tangent: Any, error: Any, message: str) -> None:
        with pytest.raises(error, match=message):
            ox.jvp(lambda x, t: x * t["a"][1], (1.0, {"a": [np.ones(2), 1.0]}), (1.0, tangent))

    def test_as_many_tangents_as_primals(self) -> None:
        with pytest.raises(ox.StructureError, match="found 1 tangents, expected 2"):
            ox.jvp(lambda x, y: x * y, (1.0, 2.0), (1.0,))

    def test_a_chain_of_many_entries(self) -> None:
        def chain(x: Any) -> Any:
            y = x
            for _ in range(200_000):
                y = y + x
            return y

        assert ox.jvp(chain, (1.0,), (2.0,)) == (200_001.0, 400_002.0)


class TestNesting:
    def test_modes_over_modes_agree(self) -> None:
        def f(x: Any) -> Any:
            return xp.sum(xp.sin(x) * x * xp.exp(-x))

        u, v = np.array([1.0, 0.5, -1.0]), np.array([0.2, -0.3, 0.4])
        by_fwd = lambda f, t: lambda x: ox.jvp(f, (x,), (t,))[1]  # noqa: E731
        by_rev = lambda f, t: lambda x: xp.sum(ox.grad(f)(x) * t)  # noqa: E731
        found = [one(two(f, u), v)(X) for one in (by_fwd, by_rev) for two in (by_fwd, by_rev)]
        np.testing.assert_allclose(found, found[0], rtol=1e-13)
        third = [a(b(c(f, u), v), u)(X) for a in (by_fwd, by_rev) for b in (by_fwd, by_rev) for c in (by_fwd, by_rev)]
        np.testing.assert_allclose(third, third[0], rtol=1e-12)

    def test_fifth_derivative_of_a_number(self) -> None:
        def nth(n: int, x: Any) -> Any:
            return ox.jvp(lambda x: nth(n - 1, x), (x,), (1.0,))[1] if n else xp.sin(x)

        assert nth(5, 0.7) == pytest.approx(math.cos(0.7), rel=1e-14)

    def test_perturbations_are_not_confused(self) -> None:
        inner = lambda x: ox.jvp(lambda y: x + y, (1.0,), (1.0,))[1]  # noqa: E731
        assert ox.jvp(lambda x: x * inner(x), (1.0,), (1.0,))[1] == 1.0
        assert ox.grad(lambda x: x * inner(x))(1.0) == 1.0

    def test_jacobian_of_a_jacobian(self) -> None:
        f = lambda x: xp.stack([x[0] ** 2 * x[1], xp.sin(x[1])])  # noqa: E731
        x = np.array([1.5, 0.4])
        expected = np.array([[[2 * x[1], 2 * x[0]], [2 * x[0], 0]], [[0, 0], [0, -math.sin(x[1])]]])
        for outer in ("forward", "reverse"):
            for inner in ("forward", "reverse"):
                found = ox.jacobian(ox.jacobian(f, mode=inner), mode=outer)(x)  # type: ignore[arg-type]
                np.testing.assert_allclose(found, expected, atol=1e-14)

    def test_an_exception_inside_leaves_nothing_behind(self) -> None:
        def failing(x: Any) -> Any:
            _ = x * x
            raise RuntimeError("in the middle")

        for transform in (ox.jacobian(failing), ox.hessian(failing), lambda x: ox.jvp(failing, (x,), (x,))):
            with pytest.raises(RuntimeError, match="in the middle"):
                transform(1.0)
        assert ox.jvp(lambda x: x * x, (3.0,), (1.0,)) == (9.0, 6.0)


class TestJacobian:
    def test_trees_of_trees(self) -> None:
        for mode in ("forward", "reverse", None):
            found = ox.jacobian(forward, mode=mode)(model())  # type: ignore[arg-type]
            assert found["name"] == "layer" and type(found["y"]["a"]) is Layer
            assert found["y"]["a"].weight.shape == (2, 3, 2)
            assert found["norm"]["a"].weight.shape == (3, 2)
            np.testing.assert_allclose(found["norm"]["a"].bias, 2 * model()["a"].bias)
            np.testing.assert_array_equal(found["norm"]["scale"], 0.0)
            np.testing.assert_allclose(found["y"]["scale"], forward(model())["y"] / 1.5)

    def test_argnums_and_numbers(self) -> None:
        f = lambda x, y: (x * y, y * y)  # noqa: E731
        assert ox.jacobian(f, argnums=-1)(2.0, 3.0) == (2.0, 6.0)
        assert ox.jacobian(f, argnums=(0, 1))(2.0, 3.0) == ((3.0, 2.0), (0.0, 6.0))
        assert ox.jacobian(f, argnums=(0, 1), mode="reverse")(2.0, 3.0) == ((3.0, 2.0), (0.0, 6.0))
        assert ox.jacobian(lambda x: 5.0)(1.0) == 0.0
        assert type(ox.jacobian(f)(2.0, 3.0)[0]) is float

    def test_has_aux(self) -> None:
        found, aux = ox.jacobian(lambda x: (x * x, "aux"), has_aux=True)(X)
        np.testing.assert_array_equal(found, np.diag(2 * X))
        assert aux == "aux"

    def test_the_function_is_called_once(self) -> None:
        calls = []
        for mode in ("forward", "reverse"):
            ox.jacobian(lambda x: calls.append(1) or x * x, mode=mode)(np.ones(5))  # type: ignore[arg-type]
        assert len(calls) == 2

    def test_more_columns_than_go_together(self) -> None:
        x = np.linspace(-1, 1, 600)
        np.testing.assert_allclose(ox.jacobian(xp.sin, mode="forward")(x), np.diag(np.cos(x)))

    def test_dtypes_are_kept(self) -> None:
        for mode in ("forward", "reverse"):
            found = ox.jacobian(lambda x: x * x, mode=mode)(X.astype(np.float32))  # type: ignore[arg-type]
            assert found.dtype == np.float32

    def test_every_library(self, asarray: Callable[..., Any]) -> None:
        x = asarray(X)
        found = ox.jacobian(lambda x: xp.concat([xp.exp(x), xp.reshape(xp.sum(x * 2.0), (1,))]))(x)
        np.testing.assert_allclose(host(found), np.vstack([np.diag(np.exp(X)), [2.0] * 3]))

    def test_complex_numbers(self) -> None:
        z = np.array([1.0 + 2.0j, 0.5 - 1.0j])
        for mode in ("forward", "reverse", None):
            np.testing.assert_allclose(ox.jacobian(lambda z: z * z, mode=mode)(z), np.diag(2 * z))  # type: ignore[arg-type]
        np.testing.assert_allclose(ox.jacobian(lambda x: xp.exp(x * 1j))(X), np.diag(1j * np.exp(1j * X)))
        np.testing.assert_allclose(ox.jacobian(lambda z: xp.real(z * z))(z), np.diag(2 * z))
        with pytest.raises(ox.DerivativeError, match="arguments are real and results complex"):
            ox.jacobian(lambda x: xp.exp(x * 1j), mode="reverse")(X)
        with pytest.raises(ox.DerivativeError, match="arguments are complex and results real"):
            ox.jacobian(lambda z: xp.real(z * z), mode="forward")(z)
        _, tangent = ox.jvp(lambda z: (xp.abs(z), xp.real(z), xp.imag(z)), (z,), (1j * z,))
        np.testing.assert_allclose(tangent, [[0.0, 0.0], -z.imag, z.real], atol=1e-15)

    def test_unknown_mode(self) -> None:
        with pytest.raises(ValueError, match="mode is 'backward': expected 'forward', 'reverse' or None"):
            ox.jacobian(xp.sin, mode="backward")  # type: ignore[arg-type]

    def test_jax_agrees(self, library: Callable[[str], Any]) -> None:
        jax = library("jax")
        jax.config.update("jax_enable_x64", True)
        rng = np.random.default_rng(0)
        w, x = rng.standard_normal((4, 3)), rng.standard_normal(3)

        def f(xp: Any, w: Any, x: Any) -> Any:
            hidden = xp.tanh(w @ x)
            return {"h": hidden, "outer": xp.reshape(hidden, (4, 1)) * x, "top": xp.max(hidden)}

        found = ox.jacobian(lambda w, x: f(xp, w, x), argnums=(0, 1))(w, x)
        expected = jax.jacfwd(lambda w, x: f(jax.numpy, w, x), argnums=(0, 1))(w, x)
        for key in ("h", "outer", "top"):
            for ours, theirs in zip(found[key], expected[key], strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14)
        loss = lambda xp, w, x: xp.sum(xp.tanh(w @ x) ** 2)  # noqa: E731
        found = ox.hessian(lambda w, x: loss(xp, w, x), argnums=(0, 1))(w, x)
        expected = jax.hessian(lambda w, x: loss(jax.numpy, w, x), argnums=(0, 1))(w, x)
        for ours, theirs in zip(found, expected, strict=True):
            for mine, its in zip(ours, theirs, strict=True):
                np.testing.assert_allclose(mine, its, rtol=1e-11, atol=1e-13)


class TestHessian:
    def test_numbers_and_trees(self) -> None:
        assert ox.hessian(lambda x: x**3)(2.0) == 12.0
        found = ox.hessian(lambda p: p["x"] ** 2 * xp.sum(p["y"]))({"x": 2.0, "y": np.ones(3)})
        assert found["x"]["x"] == 6.0
        np.testing.assert_array_equal(found["x"]["y"], [4.0] * 3)
        np.testing.assert_array_equal(found["y"]["x"], [4.0] * 3)
        np.testing.assert_array_equal(found["y"]["y"], np.zeros((3, 3)))

    def test_hvp_is_the_hessian_times_the_tangents(self) -> None:
        f = lambda m: xp.sum(forward(m)["y"] ** 2) + forward(m)["norm"]  # noqa: E731
        product = ox.hvp(f, (model(),), (model(),))
        assert isinstance(product, tuple) and product[0]["a"].name == "layer"
        hessian = ox.hessian(f)(model())
        for path in ("scale", "a.weight", "a.bias"):
            row = ox.tree.path(path, hessian)(hessian)
            row = row["a"].weight, row["a"].bias, row["scale"]
            own = model()["a"].weight, model()["a"].bias, model()["scale"]
            expected = sum(np.tensordot(r, o, np.ndim(o)) for r, o in zip(row, own, strict=True))
            np.testing.assert_allclose(ox.tree.path(path, product[0])(product[0]), expected, rtol=1e-12)

    def test_hvp_of_numbers(self) -> None:
        assert ox.hvp(lambda x, y: x * x * y, (2.0, 5.0), (1.0, 0.0)) == (10.0, 4.0)


class TestCheckpoint:
    def test_value_and_derivatives_are_those_of_the_function(self) -> None:
        f = lambda a, b: {"sum": xp.sum(xp.sin(a) @ b), "a": a * 2.0}  # noqa: E731
        check_grads(ox.checkpoint(f), (np.ones((2, 3)) * 0.3, np.arange(3.0)), order=2)
        assert ox.checkpoint(f)(np.ones((2, 3)), np.ones(3))["sum"] == f(np.ones((2, 3)), np.ones(3))["sum"]

    def test_trees_keywords_and_results_that_are_no_arrays(self) -> None:
        def f(m: Any, *, power: int, x: Any) -> Any:
            return {**forward(m, x), "power": power, "loss": xp.sum(forward(m, x)["y"] ** power)}

        plain = ox.grad(lambda m: f(m, power=2, x=X)["loss"])(model())
        through = ox.grad(lambda m: ox.checkpoint(f)(m, power=2, x=X)["loss"])(model())
        np.testing.assert_array_equal(everything(plain), everything(through))

    def test_it_is_called_again(self) -> None:
        calls = []
        assert ox.grad(ox.checkpoint(lambda x: calls.append(1) or x**3))(2.0) == 12.0
        assert len(calls) == 2

    def test_nested_and_of_higher_order(self) -> None:
        f = ox.checkpoint(lambda x: ox.checkpoint(xp.sin)(x) * x)
        expected = 2 * math.cos(0.7) - 0.7 * math.sin(0.7)
        assert ox.grad(ox.grad(f))(0.7) == pytest.approx(expected, rel=1e-14)
        assert ox.hessian(f)(0.7) == pytest.approx(expected, rel=1e-14)
        third = -3 * math.sin(0.7) - 0.7 * math.cos(0.7)
        assert ox.grad(ox.grad(ox.grad(f)))(0.7) == pytest.approx(third, rel=1e-13)

    def test_memory_falls(self) -> None:
        """Ten layers of ten arrays each: kept are ten arguments and one layer, not a hundred arrays."""

        def layer(x: Any) -> Any:
            for _ in range(10):
                x = xp.tanh(x)
            return x

        def peak(layer: Callable[..., Any]) -> float:
            def chain(x: Any) -> Any:
                for _ in range(10):
                    x = layer(x)
                return xp.sum(x)

            x = np.full(100_000, 0.5)
            tracemalloc.start()
            ox.grad(chain)(x)
            highest = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            return highest / x.nbytes

        assert peak(layer) > 100
        assert peak(ox.checkpoint(layer)) < 27

    def test_a_variable_that_is_no_argument_is_refused(self) -> None:
        with pytest.raises(ox.DerivativeError, match="found a variable that is not among its arguments"):
            ox.grad(lambda x, w: ox.checkpoint(lambda x: x * w)(x), argnums=(0, 1))(2.0, 3.0)
        with pytest.raises(ox.DerivativeError, match="pass it as an argument"):
            ox.grad(lambda w: ox.grad(ox.checkpoint(lambda x: x * w))(2.0))(3.0)
        assert ox.grad(lambda w: ox.checkpoint(lambda x: x * ox.stop_gradient(w))(w))(3.0) == 3.0

    def test_an_exception_inside(self) -> None:
        def failing(x: Any) -> Any:
            raise RuntimeError("in the middle")

        with pytest.raises(RuntimeError, match="in the middle"):
            ox.grad(ox.checkpoint(failing))(1.0)


class TestArgumentsThatAreNotUsed:
    """No cotangent or tangent of zeros, whose product with an infinite derivative of what came before or comes after is NaN."""

    REVERSE: ClassVar[dict[str, Any]] = {
        "checkpoint": ox.checkpoint,
        "checkpoints": lambda f: ox.checkpoint(ox.checkpoint(f)),
        "define_jvp": ox.define_jvp(None, lambda t: 2.0 * t),
        "define_vjp": ox.define_vjp(None, lambda g: 2.0 * g),
        "custom_vjp": lambda f: ox.custom_vjp(f, lambda g, y, a, b: (None, 2.0 * g)),
    }
    FORWARD: ClassVar[dict[str, Any]] = {
        "checkpoint": ox.checkpoint,
        "custom_vjp": lambda f: ox.custom_vjp(f, lambda g, y, a, b: (0.0 * g[0], 2.0 * g[1])),
    }

    @pytest.mark.parametrize("kind", REVERSE)
    def test_reverse_mode(self, kind: str) -> None:
        f = self.REVERSE[kind](lambda a, b: 2.0 * b)

        def loss(x: Any) -> Any:
            return xp.sum(f(xp.sqrt(0.0 * x), x))

        assert ox.grad(loss)(X).tolist() == [2.0] * 3
        assert ox.vmap(ox.grad(loss))(np.stack([X, X])).tolist() == [[2.0] * 3] * 2
        assert ox.grad(lambda x: xp.sum(x * ox.grad(loss)(x)))(X).tolist() == [2.0] * 3

    @pytest.mark.parametrize("kind", FORWARD)
    def test_forward_mode(self, kind: str) -> None:
        f = self.FORWARD[kind](lambda a, b: (0.0 * a, 2.0 * b))

        def loss(b: Any) -> Any:
            y, z = f(X, b)
            return xp.sum(xp.sqrt(y) + z)

        assert ox.jvp(loss, (X,), (np.ones(3),))[1] == 6.0
        assert ox.jacfwd(loss)(X).tolist() == [2.0] * 3


class TestCustomVjp:
    def test_the_rule_is_the_derivative(self) -> None:
        f = ox.custom_vjp(lambda x, y: x * y, lambda g, z, x, y: (10.0 * g * y, None))
        assert ox.grad(f, argnums=(0, 1))(2.0, 3.0) == (30.0, 0.0)
        assert ox.jvp(f, (2.0, 3.0), (1.0, 1.0)) == (6.0, 30.0)
        assert f(2.0, 3.0) == 6.0

    def test_any_code_may_compute_the_value(self) -> None:
        @ox.define_vjp(lambda g, x: g * 2.0 / math.sqrt(math.pi) * xp.exp(-x * x))
        def erf(x: Any) -> Any:
            return np.vectorize(math.erf)(x)

        check_grads(erf, (X,), order=3)
        check_grads(lambda x: xp.sum(erf(x * x) ** 2), (X,), order=2)
        np.testing.assert_allclose(ox.jacobian(erf)(X), np.diag(2 / math.sqrt(math.pi) * np.exp(-(X**2))))

    def test_trees(self) -> None:
        def rule(g: Any, y: Any, m: Any) -> Any:
            return {"w": g["sum"] * xp.ones_like(m["w"]) + 2.0 * m["w"] * g["norm"], "name": m["name"]}

        f = ox.custom_vjp(lambda m: {"sum": np.sum(m["w"]), "norm": np.sum(m["w"] ** 2), "name": m["name"]}, rule)
        loss = lambda m: f(m)["sum"] * 3.0 + f(m)["norm"]  # noqa: E731
        np.testing.assert_allclose(ox.grad(loss)({"w": X, "name": "m"})["w"], 3.0 + 2 * X)
        check_grads(lambda w: loss({"w": w, "name": "m"}), (X,), order=2)

    def test_cotangents_are_unbroadcast(self) -> None:
        f = ox.custom_vjp(lambda x, b, s: x + b + s, lambda g, y, x, b, s: (g, g, g))
        gx, gb, gs = ox.grad(lambda *args: xp.sum(f(*args)), argnums=(0, 1, 2))(np.ones((2, 3)), np.ones((1, 3)), 1.0)
        assert (gx.shape, gb.shape, gs) == ((2, 3), (1, 3), 6.0)

    def test_the_result_of_a_rule_is_checked(self) -> None:
        with pytest.raises(ox.DerivativeError, match="the rule: found a tuple of 1, expected a tuple of 2"):
            ox.grad(ox.custom_vjp(lambda x, y: x, lambda g, z, x, y: (g,)))(1.0, 2.0)
        with pytest.raises(ox.ShapeError, match=r"argument 0: found a cotangent of shape \(2,\), expected \(3,\)"):
            ox.grad(ox.custom_vjp(np.sum, lambda g, z, x: np.ones(2)))(X)
        with pytest.raises(TypeError, match="f: found a rule with parameters z, expected g, y or arguments by name"):

            @ox.define_vjp(lambda g, z: g)
            def f(x: Any) -> Any:
                return x

    def test_a_variable_that_is_no_argument_is_refused(self) -> None:
        with pytest.raises(ox.DerivativeError, match="not among its arguments"):
            ox.grad(lambda w: ox.custom_vjp(lambda x: x * w, lambda g, y, x: g)(w * 2.0))(3.0)


class TestDefvjp:
    """The contract of ``jax.custom_vjp``."""

    @staticmethod
    def scaled_sine() -> tuple[Any, list[str]]:
        calls: list[str] = []

        @ox.custom_vjp
        def f(x: Any, y: Any) -> Any:
            calls.append("f")
            return xp.sin(x) * y

        def fwd(x: Any, y: Any) -> Any:
            calls.append("fwd")
            return xp.sin(x) * y, {"cos": xp.cos(x), "sin": xp.sin(x), "y": y}

        def bwd(residuals: Any, g: Any) -> Any:
            calls.append("bwd")
            return g * residuals["cos"] * residuals["y"], g * residuals["sin"]

        f.defvjp(fwd, bwd)
        return f, calls

    def test_value_and_gradient(self) -> None:
        f, calls = self.scaled_sine()
        assert f(0.5, 2.0) == 2.0 * math.sin(0.5)
        assert calls == ["f"]
        assert ox.grad(f, argnums=(0, 1))(0.5, 2.0) == (math.cos(0.5) * 2.0, math.sin(0.5))
        assert calls == ["f", "fwd", "bwd"]

    def test_both_modes_and_higher_orders(self) -> None:
        f, _ = self.scaled_sine()
        check_grads(f, (X, np.array([1.5, 0.5, 2.0])), order=3)
        np.testing.assert_allclose(ox.jvp(f, (0.5, 2.0), (1.0, 1.0))[1], math.cos(0.5) * 2.0 + math.sin(0.5))
        np.testing.assert_allclose(ox.grad(ox.grad(f))(0.5, 2.0), -math.sin(0.5) * 2.0)
        np.testing.assert_allclose(ox.hessian(f)(0.5, 2.0), -math.sin(0.5) * 2.0)

    def test_one_argument_none_and_keywords(self) -> None:
        f = ox.custom_vjp(lambda x, *, scale=1.0: x * scale)
        f.defvjp(lambda x, *, scale=1.0: (x * scale, scale), lambda scale, g: 10.0 * scale * g)
        assert ox.grad(lambda x: f(x, scale=3.0))(2.0) == 30.0
        zero = ox.custom_vjp(lambda x: x)
        zero.defvjp(lambda x: (x, None), lambda _, g: (None,))
        assert ox.grad(zero)(2.0) == 0.0

    def test_as_a_method(self) -> None:
        class Model:
            @ox.custom_vjp
            def call(self, x: Any) -> Any:
                return x

        Model.call.defvjp(lambda self, x: (x, None), lambda _, g: (None, 7.0 * g))
        assert ox.grad(lambda x: Model().call(x))(2.0) == 7.0

    def test_refusals(self) -> None:
        f = ox.custom_vjp(lambda x: x)
        assert f(2.0) == 2.0
        with pytest.raises(ox.DerivativeError, match=r"no derivative is defined for .*<lambda>: expected .*defvjp"):
            ox.grad(f)(2.0)
        with pytest.raises(TypeError, match="defvjp, bwd: found 3, expected a function"):
            f.defvjp(lambda x: (x, None), 3)
        f.defvjp(lambda x: x, lambda _, g: g)
        with pytest.raises(TypeError, match=r"fwd: found a result of type float, expected a pair \(value, residuals\)"):
            ox.grad(f)(2.0)


class TestTape:
    def test_push_by_hand(self) -> None:
        with ox.Tape(forward=True) as tape:
            x, z = tape.watch(3.0), tape.watch(X)
            y = x * x
            w = xp.sum(z * x)
        assert tape.push([(x, 1.0)], [y, w, x]) == [6.0, X.sum(), 1.0]
        assert tape.push([(y, 1.0)], [y, x]) == [1.0, 0.0]
        np.testing.assert_array_equal(tape.push([(x, 1.0)], [z])[0], np.zeros(3))
        np.testing.assert_allclose(tape.push([(x, np.array([1.0, 2.0]))], [y, w], 2), [[6, 12], [X.sum(), 2 * X.sum()]])
        assert tape.gradient(y, [x, x]) == [6.0, 6.0]

    def test_push_requires_a_forward_tape(self) -> None:
        with ox.Tape() as tape:
            x = tape.watch(3.0)
            y = x * x
        with pytest.raises(TypeError, match="forward=True"):
            tape.push([(x, 1.0)], [y])

    def test_an_array_changed_in_place_is_detected_with_check(self) -> None:
        x, w = np.ones(3), np.full(3, 2.0)
        with ox.Tape(check=True) as tape:
            variable = tape.watch(x)
            y = xp.sum(xp.sin(variable) * w)
        tape.gradient(y, [variable])
        w[0] = 5.0
        with pytest.raises(
            ox.ArrayMemoryError, match=r"v2 = multiply\(...\) reads ndarray\(float64, \(3,\)\), which was"
        ):
            tape.gradient(y, [variable])
        w[0], x[1] = 2.0, 7.0
        with pytest.raises(ox.ArrayMemoryError, match=r"v1 = sin\(...\)"):
            tape.gradient(y, [variable])
        x[1] = 1.0
        np.testing.assert_allclose(tape.gradient(y, [variable])[0], 2 * np.cos(1.0))


@pytest.mark.parametrize("chunk_size", [1, 2, 7, 100, None])
def test_columns_in_chunks_are_the_same(chunk_size: Any) -> None:
    def f(x: Any, s: Any) -> Any:
        return {"a": xp.sin(x) * x[0] * s, "b": xp.sum(x * x)}

    x = np.linspace(0.1, 1.0, 7)
    found = ox.jacobian(f, (0, 1), "forward", chunk_size=chunk_size)(x, 2.0)
    expected = ox.jacobian(f, (0, 1), "reverse")(x, 2.0)
    for own, other in zip(ox.tree.leaves(found), ox.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("chunk_size", [0, -1, 2.0, True])
def test_chunk_sizes_are_checked(chunk_size: Any) -> None:
    with pytest.raises(ValueError, match="expected a positive int or None"):
        ox.jacobian(np.sin, chunk_size=chunk_size)
