"""Transforms: arguments, results, trees, nesting, and refusals."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from oxigrad import xp


@dataclasses.dataclass(frozen=True)
class Layer:
    weight: Any
    bias: Any
    activation: Any = None
    width: int = 3
    frozen: Any = ox.field(trainable=False, default=None)


def test_value_and_grad_of_a_number() -> None:
    assert ox.value_and_grad(lambda x: x * x)(3.0) == (9.0, 6.0)
    assert ox.grad(lambda x: x**3)(2) == 12.0


def test_argnums() -> None:
    def f(x: Any, y: Any, z: Any) -> Any:
        return x * y + y * z * z

    assert ox.grad(f, argnums=1)(2.0, 3.0, 4.0) == 18.0
    assert ox.grad(f, argnums=(0, 2))(2.0, 3.0, 4.0) == (3.0, 24.0)
    assert ox.grad(f, argnums=-1)(2.0, 3.0, 4.0) == 24.0
    with pytest.raises(TypeError, match="argnums is 3: expected positions among 2 positional"):
        ox.grad(f, argnums=3)(2.0, 3.0, z=4.0)
    with pytest.raises(TypeError, match=r"argnums is \(0, -3\): expected each argument once"):
        ox.grad(f, argnums=(0, -3))(2.0, 3.0, 4.0)
    with pytest.raises(TypeError, match="has_aux=True: found a result of type"):
        ox.grad(f, has_aux=True)(2.0, 3.0, 4.0)


def test_keywords_are_passed_on() -> None:
    assert ox.grad(lambda x, *, k: k * x * x)(3.0, k=2.0) == 12.0


def test_has_aux() -> None:
    def f(x: Any) -> Any:
        y = x * x
        return y, {"y": y, "name": "square"}

    (value, aux), gradient = ox.value_and_grad(f, has_aux=True)(3.0)
    assert (value, aux, gradient) == (9.0, {"y": 9.0, "name": "square"}, 6.0)
    assert ox.grad(f, has_aux=True)(3.0) == (6.0, {"y": 9.0, "name": "square"})
    value, pullback, aux = ox.vjp(f, 3.0, has_aux=True)
    assert (value, pullback(1.0), aux["y"]) == (9.0, (6.0,), 9.0)


def test_a_tree_argument_gives_a_gradient_of_its_structure() -> None:
    model = {"layers": [Layer(np.ones((2, 3)), np.zeros(3), math.tanh, frozen=np.ones(2))], "scale": 2.0, "none": None}
    x = np.array([1.0, 2.0])

    def loss(model: Any) -> Any:
        layer = model["layers"][0]
        assert layer.activation is math.tanh
        assert isinstance(layer.frozen, np.ndarray)
        return model["scale"] * xp.sum((x * layer.frozen) @ layer.weight + layer.bias)

    value, gradient = ox.value_and_grad(loss)(model)
    assert value == 18.0
    assert type(gradient["layers"][0]) is Layer
    np.testing.assert_array_equal(gradient["layers"][0].weight, [[2.0] * 3, [4.0] * 3])
    np.testing.assert_array_equal(gradient["layers"][0].bias, [2.0] * 3)
    assert gradient["scale"] == 9.0
    assert gradient["none"] is None
    assert (gradient["layers"][0].activation, gradient["layers"][0].width) == (math.tanh, 3)
    assert model["layers"][0].weight is not gradient["layers"][0].weight


def test_the_same_array_at_two_paths_gets_a_gradient_at_each() -> None:
    w = np.ones(2)
    gradient = ox.grad(lambda m: xp.sum(m["a"] * 2.0) + xp.sum(m["b"] * 3.0))({"a": w, "b": w})
    np.testing.assert_array_equal(gradient["a"], 2.0)
    np.testing.assert_array_equal(gradient["b"], 3.0)


def test_a_result_that_does_not_depend_on_the_argument() -> None:
    assert ox.value_and_grad(lambda x: 5.0)(1.0) == (5.0, 0.0)
    np.testing.assert_array_equal(ox.grad(lambda x: np.float64(2.0))(np.ones(3)), np.zeros(3))


def test_vjp_of_a_tree_result() -> None:
    value, pullback = ox.vjp(lambda x, y: {"sum": x + y, "product": [x * y, "label"]}, 2.0, np.array([3.0, 4.0]))
    np.testing.assert_array_equal(value["product"][0], [6.0, 8.0])
    gx, gy = pullback({"sum": np.array([1.0, 0.0]), "product": [np.array([0.0, 1.0]), "label"]})
    assert gx == 5.0
    np.testing.assert_array_equal(gy, [1.0, 2.0])
    gx, _ = pullback({"sum": np.zeros(2), "product": [np.ones(2), "label"]})
    assert gx == 7.0
    with pytest.raises(ox.StructureError, match="cotangent"):
        pullback([1.0])
    with pytest.raises(ox.ShapeError, match=r"cotangent: found shape \(3,\), expected \(2,\)"):
        pullback({"sum": np.zeros(3), "product": [np.ones(2), "label"]})


def test_a_value_that_is_no_scalar_is_refused() -> None:
    with pytest.raises(ox.ShapeError, match=r"found shape \(2,\), expected a scalar: use vjp"):
        ox.grad(lambda x: x * 2.0)(np.ones(2))
    with pytest.raises(ox.ShapeError, match="found list, expected a scalar"):
        ox.grad(lambda x: [x])(1.0)


@pytest.mark.parametrize("value", [np.array([True]), "text", None, True, [1, 2], {}], ids=repr)
def test_an_argument_with_nothing_to_differentiate_is_refused(value: Any) -> None:
    with pytest.raises(ox.DtypeError, match="argument 0 has nothing to differentiate: expected a float"):
        ox.grad(lambda x: 1.0)(value)


TURN = 1.0 + 0.2j


@pytest.mark.parametrize("x", [1.0, np.array(1.0), 1.0 + 2.0j, np.array(1.0 + 2.0j), np.float32(1.0)], ids=repr)
def test_a_complex_value_has_no_gradient(x: Any) -> None:
    for transform in (ox.grad, ox.value_and_grad, ox.hessian):
        with pytest.raises(ox.DtypeError, match="is complex, and only a real value has a gradient"):
            transform(lambda x: x * x * TURN)(x)
        with pytest.raises(ox.DtypeError, match="is complex, and only a real value has a gradient"):
            transform(lambda x: TURN)(x)
    with pytest.raises(ox.DtypeError, match="is complex"):
        ox.hvp(lambda x: x * x * TURN, (x,), (x,))
    with ox.Tape() as tape:
        watched = tape.watch(x)
        target = watched * TURN
    with pytest.raises(ox.DtypeError, match="the target is complex"):
        tape.gradient(target, [watched])
    with pytest.raises(ox.DtypeError, match="is complex"):
        ox.optim.SGD(0.1).minimize(lambda model: xp.sum(model["w"] * TURN), {"w": np.ones(2)})


def test_a_complex_value_has_a_jacobian_and_a_pullback() -> None:
    assert ox.jacobian(lambda x: x * x * TURN)(np.array(3.0)) == pytest.approx(6.0 * TURN)
    assert ox.jacobian(lambda z: z * z)(1.0 + 2.0j) == pytest.approx(2.0 + 4.0j)
    value, pullback = ox.vjp(lambda x: x * TURN, 2.0)
    assert value == 2.0 * TURN
    assert pullback(1.0) == (1.0,)
    assert pullback(1.0j) == (pytest.approx(-0.2),)


def test_complex_numbers_in_trees_are_differentiated() -> None:
    gradient = ox.grad(lambda model: xp.real(model["a"] * model["b"]))(
        {"a": 1.0 + 2.0j, "b": 2.0, "n": 3, "flag": True}
    )
    assert gradient == {"a": 2.0, "b": 1.0, "n": 3, "flag": True}
    assert isinstance(gradient["a"], complex)
    z = 1.0 + 2.0j
    assert ox.grad(lambda z: xp.abs(z))(z) == pytest.approx(z.conjugate() / abs(z))
    assert ox.grad(lambda z: xp.abs(z))(np.array(z)) == pytest.approx(z.conjugate() / abs(z))
    assert ox.jvp(lambda z: z * z, (z,), (1.0j,))[1] == 2.0j * z


def test_a_complex_tangent_of_a_real_argument_is_refused() -> None:
    for x in (1.0, np.array(1.0), np.float32(1.0)):
        for tangent in (1.0j, np.complex128(1.0j)):
            with pytest.raises(ox.DtypeError, match="complex"):
                ox.jvp(lambda x: x * x, (x,), (tangent,))
            with pytest.raises(ox.DtypeError, match="complex"):
                ox.vjp(lambda x: x * x, x)[1](tangent)


def test_a_whole_number_has_derivative_zero() -> None:
    assert ox.grad(lambda x: 3)(1.0) == 0.0
    assert ox.jvp(lambda x: 3, (1.0,), (1.0,)) == (3, 0.0)
    assert ox.jacobian(lambda x: 3)(1.0) == 0.0
    assert ox.jvp(lambda x: [3, True, "label"], (1.0,), (1.0,))[1] == [0.0, 0.0, "label"]


def test_nested_gradients_of_arrays() -> None:
    x = np.array([0.3, 0.7])

    def laplacian(x: Any) -> Any:
        gradient = ox.grad(lambda x: xp.sum(xp.sin(x) * x))
        return xp.sum(ox.vjp(gradient, x)[1](np.ones(2))[0])

    np.testing.assert_allclose(laplacian(x), np.sum(2 * np.cos(x) - x * np.sin(x)), rtol=1e-14)
    third = ox.grad(laplacian)(x)
    np.testing.assert_allclose(third, -3 * np.sin(x) - x * np.cos(x), rtol=1e-13)


def test_differentiation_through_an_inner_minimum() -> None:
    def inner(target: Any) -> Any:
        x = 0.0
        for _ in range(50):
            x = x - 0.25 * ox.grad(lambda x: (x - target) ** 2)(x)
        return x

    assert ox.grad(lambda target: inner(target) ** 2)(3.0) == pytest.approx(6.0)


def test_stop_gradient() -> None:
    assert ox.grad(lambda x: x * ox.stop_gradient(x))(3.0) == 3.0
    assert ox.grad(ox.grad(lambda x: x * ox.stop_gradient(x * x)))(3.0) == 0.0
    gradient = ox.grad(lambda t: t["a"] * ox.stop_gradient(t)["a"])({"a": 2.0})
    assert gradient == {"a": 2.0}


def test_control_flow_on_values() -> None:
    def f(x: Any) -> Any:
        while x < 100.0:
            x = x * x
        return x

    assert ox.grad(f)(3.0) == 8 * 3.0**7


class Sub(np.ndarray):
    """A subclass: the replay leaves it to the Python rules."""


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "name", ["tanh", "exp", "sin", "cos", "sqrt", "abs", "square", "reciprocal", "log1p", "expm1", "tan"]
)
def test_kernels_in_the_replay_agree_with_the_rules_in_python(name: str, dtype: Any) -> None:
    f = getattr(xp, name)
    x = np.random.default_rng(0).uniform(0.2, 1.4, (40, 1000)).astype(dtype)[::2, ::-3]
    g = np.random.default_rng(1).standard_normal(x.shape).astype(dtype)
    (by_kernel,) = ox.vjp(f, x)[1](g)
    (by_rule,) = ox.vjp(f, x.view(Sub))[1](g.view(Sub))
    assert by_kernel.dtype == dtype and type(by_rule) is Sub
    np.testing.assert_allclose(by_kernel, by_rule, rtol=32 * np.finfo(dtype).eps)


def test_gradients_do_not_depend_on_threads(threads: Any) -> None:
    x = np.random.default_rng(0).standard_normal(200_000)
    results = []
    for count in (1, 2, 7):
        threads(count)
        results.append(ox.grad(lambda x: xp.sum(xp.tanh(x) * xp.sin(x)))(x))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


class TestArgumentsAsUsersGiveThem:
    def test_values_of_one_element_of_any_shape(self) -> None:
        x = np.array([1.0, 2.0])
        for shape in ((1,), (1, 1)):
            value, gradient = ox.value_and_grad(lambda x, shape=shape: xp.reshape(xp.sum(x * x), shape))(x)
            np.testing.assert_array_equal(value, np.full(shape, 5.0))
            np.testing.assert_array_equal(gradient, 2.0 * x)
        np.testing.assert_array_equal(ox.hessian(lambda x: xp.sum(x**3, keepdims=True))(x), np.diag(6.0 * x))
        with pytest.raises(ox.ShapeError, match=r"found shape \(0,\), expected a scalar"):
            ox.grad(lambda x: x[:0])(x)

    def test_integer_arrays_are_floats(self, arrays: Any, asarray: Any) -> None:
        if not hasattr(plain := asarray(np.array([1, 2, 3])), "dtype") or "int" not in str(plain.dtype):
            pytest.skip("makes arrays of floats only")
        found = ox.grad(lambda x: xp.sum(x * x))(plain)
        np.testing.assert_allclose(host(found), [2.0, 4.0, 6.0])
        assert "float" in str(found.dtype)

    def test_integers_inside_trees_are_no_parameters(self) -> None:
        found = ox.grad(lambda m: xp.sum(m["w"][m["index"]]))({"w": np.ones(3), "index": np.array([0, 0, 2])})
        np.testing.assert_array_equal(found["w"], [2.0, 0.0, 1.0])
        np.testing.assert_array_equal(found["index"], [0, 0, 2])

    def test_arguments_by_name(self) -> None:
        def f(x: Any, y: Any, *, scale: float = 1.0) -> Any:
            return scale * x * x * y

        assert ox.grad(f)(x=3.0, y=2.0) == 12.0
        assert ox.grad(f, 1)(3.0, y=2.0, scale=2.0) == 18.0
        assert ox.grad(f, argnames="y")(3.0, 2.0) == 9.0
        assert ox.value_and_grad(f, argnames=("y", "x"))(y=2.0, x=3.0) == (18.0, (9.0, 12.0))
        assert float(ox.hessian(f, argnames="x")(3.0, y=2.0)) == 4.0
        assert float(ox.jacobian(f, argnames="x")(x=3.0, y=2.0)) == 12.0
        with pytest.raises(TypeError, match="argnames: found 'z', expected parameters of the function: x, y, scale"):
            ox.grad(f, argnames="z")
        with pytest.raises(TypeError, match="expected positions among 0 positional arguments"):
            ox.grad(f)(y=2.0)

    def test_keyword_only_arguments_by_name(self) -> None:
        def f(x: Any, y: Any = 2.0, *, scale: Any = 1.0, shift: Any = 0.0) -> Any:
            return scale * scale * x * x * y + shift

        for transform in (ox.grad, ox.jacobian):
            assert transform(f, argnames="scale")(3.0, scale=2.0) == 72.0
            assert transform(f, argnames=("shift", "x", "scale"))(x=3.0, shift=1.0, scale=2.0) == (1.0, 48.0, 72.0)
            assert transform(f, 1, argnames=["scale"])(3.0, 5.0, scale=2.0) == (36.0, 180.0)
        assert ox.value_and_grad(f, argnames="scale")(3.0, scale=2.0) == (72.0, 72.0)
        assert float(ox.hessian(f, argnames="scale")(3.0, scale=2.0)) == 36.0
        assert ox.vmap(ox.grad(f, argnames="scale"))(np.array([3.0, 1.0]), scale=np.array([2.0, 1.0])).tolist() == [
            72.0,
            4.0,
        ]
        with pytest.raises(ValueError, match="found an argument in both"):
            ox.grad(f, 0, argnames=("x", "scale"))
