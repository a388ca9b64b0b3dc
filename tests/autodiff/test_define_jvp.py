"""`define_jvp`: rules for tangents, in both modes, to all orders; and the arguments by which functions are differentiated."""

import functools
import math
import sys
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp
from oxigrad.autograd.extend import defjvp, defvjp, primitive
from oxigrad.testing import check_grads
from python_frames import frames

SLOPE = 2.0 / math.sqrt(math.pi)
A, W = np.array([[0.3, 0.4, 0.5], [1.0, 2.0, 3.0]]), np.array([2.0, 3.0, 0.5])


@ox.define_jvp(lambda t, x, w: t * w * xp.cos(x), lambda t, y, w: t * y / w)
def wave(x: Any, w: Any) -> Any:
    return np.sin(x) * w


@ox.define_jvp(lambda t, p, k: {"product": t[0] * p[1] + p[0] * t[1], "sum": xp.sum(t[0] * k), "name": "m"}, None)
def of_pair(p: Any, k: Any) -> Any:
    return {"product": p[0] * p[1], "sum": np.sum(p[0] * k), "name": "m"}


def test_rules_are_derivatives_in_both_modes_to_all_orders() -> None:
    check_grads(wave, (A, W), order=3)
    check_grads(wave, (0.3, 0.7))
    check_grads(lambda x: wave(x, 2.0), (A,))
    check_grads(lambda w: wave(0.3, w), (W,))
    check_grads(lambda x: xp.sum(wave(x * x, W) ** 2), (A,))
    np.testing.assert_allclose(ox.jacobian(lambda x: wave(x, W))(W), np.diag(W * np.cos(W)))


def test_trees_and_arguments_without_a_rule() -> None:
    check_grads(lambda p, q: [of_pair((p, q), W)[name] for name in ("product", "sum")], (A, A + 1.0))
    assert not ox.grad(lambda w: of_pair((A, A), w)["sum"])(W).any()


@pytest.mark.parametrize("x", [2, True, np.int32(2), np.array([1, 2, 3]), np.array([True, False, True])])
def test_integers_and_truth_values_have_zero_tangents(x: Any) -> None:
    product = ox.define_jvp(lambda t, w: t * w, lambda t, x: t * x)(lambda x, w: x * w)
    check_grads(lambda w: product(x, w), (W,))
    check_grads(lambda w: of_pair((x, w), W)["product"], (W,))


def test_under_vmap_each_example_has_its_derivative() -> None:
    expected = W * np.cos(A)
    for mapped in (
        ox.vmap(ox.grad(lambda x: xp.sum(wave(x, W)))),
        ox.grad(lambda x: xp.sum(ox.vmap(lambda row: wave(row, W))(x))),
    ):
        np.testing.assert_allclose(mapped(A), expected)


def test_any_code_and_keywords_that_are_not_differentiated() -> None:
    @ox.define_jvp(lambda t, x: t * 2.0 * x)
    def square(x: Any, *, scale: float = 1.0) -> Any:
        return float(x) ** 2 * scale

    assert ox.jvp(square, (3.0,), (1.0,)) == (9.0, 6.0)
    assert square(3.0, scale=2.0) == 18.0
    assert ox.grad(lambda x: square(x, scale=5.0))(3.0) == 6.0


@pytest.mark.parametrize("x", [0.5, np.float64(0.5), np.array([0.5, 0.7])])
def test_calls_on_numbers_and_arrays_run_the_functions_of_the_user_alone(x: Any) -> None:
    names = np.vectorize(math.erf) if isinstance(x, np.ndarray) else math.erf
    with_residuals = ox.custom_vjp(names)
    with_residuals.defvjp(lambda x: (names(x), np.exp(-x * x)), lambda density, g: g * SLOPE * density)
    of_primitive = primitive(names)
    defvjp(of_primitive, lambda y, x: lambda g: g * SLOPE * np.exp(-x * x))
    for f in (
        ox.custom_vjp(names, lambda g, y, x: g * SLOPE * np.exp(-x * x)),
        ox.define_vjp(lambda g, x: g * SLOPE * np.exp(-x * x))(lambda x: names(x)),
        with_residuals,
        of_primitive,
    ):
        value, pullback = ox.vjp(lambda x, f=f: f(f(x)), x)
        inner = names(x)
        np.testing.assert_allclose(value, names(inner), rtol=1e-15)
        expected = SLOPE**2 * np.exp(-x * x) * np.exp(-inner * inner)
        np.testing.assert_allclose(pullback(np.ones_like(x)[()])[0], expected, rtol=1e-14)
        assert type(pullback(np.ones_like(x)[()])[0]) is type(x)
        run = frames(lambda f=f: ox.vjp(lambda x: f(f(x)), x)[1](np.ones_like(x)[()]))
        general = {
            name for name in run if ".RuledCall" in name or name.endswith((".call_by_rule", ".flatten", ".outputs"))
        }
        assert not general


def test_a_function_of_several_kinds_of_arguments() -> None:
    calls = []

    @ox.custom_vjp
    def scaled(x: Any, power: Any, name: Any = None, *, by: float = 1.0) -> Any:
        calls.append((type(x), type(power), name, by))
        return x**power * by

    scaled.defvjp(
        lambda x, power, name=None, *, by=1.0: (scaled(x, power, name, by=by), (x, power, by)),
        lambda saved, g: (g * saved[1] * saved[0] ** (saved[1] - 1) * saved[2], None, None)[: 3 if name_given else 2],
    )
    name_given = True
    assert ox.grad(lambda x: scaled(x, 3, "cube", by=2.0))(2.0) == 24.0
    assert ox.grad(ox.grad(lambda x: scaled(x, 3, "cube", by=2.0)))(2.0) == 24.0
    assert ox.jvp(lambda x: scaled(x, 3, "cube"), (2.0,), (1.0,)) == (8.0, 12.0)
    name_given = False
    np.testing.assert_array_equal(ox.grad(lambda x: xp.sum(scaled(x, 2)))(W), 2.0 * W)
    np.testing.assert_array_equal(ox.vmap(ox.grad(lambda x: scaled(x, 2)))(W), 2.0 * W)
    assert calls[0] == (float, int, "cube", 2.0)


def test_results_of_any_kind_follow_the_call_on_leaves() -> None:
    count = []

    def f(x: Any) -> Any:
        count.append(1)
        return {"double": 2.0 * x, "name": "f"}

    rule = lambda g, y, x: g["double"] * 2.0  # noqa: E731
    assert ox.grad(lambda x: ox.custom_vjp(f, rule)(x)["double"])(3.0) == 2.0
    assert len(count) == 1
    assert ox.grad(lambda x: x * ox.custom_vjp(lambda x: 7, lambda g, y, x: g)(x))(3.0) == 7.0
    wrong = ox.custom_vjp(lambda x: x)
    wrong.defvjp(lambda x: x, lambda residuals, g: g)
    with pytest.raises(TypeError, match=r"fwd: found a result of type float, expected a pair \(value, residuals\)"):
        ox.grad(wrong)(1.0)
    assert ox.grad(ox.custom_vjp(lambda x: np.sum(x), lambda g, y, x: g * np.ones_like(x)))(W).tolist() == [1.0] * 3


def test_wrong_rules_are_refused() -> None:
    with pytest.raises(TypeError, match="found a rule with parameters g, expected t, y or arguments by name"):
        ox.define_jvp(lambda t, g: t)(math.sin)
    wide = ox.define_jvp(lambda t, x: np.ones(2) * t)(lambda x: math.sin(x))
    with pytest.raises(ox.ShapeError, match=r"found a tangent of shape \(2,\), expected \(\)"):
        ox.grad(wide)(1.0)
    with pytest.raises(TypeError, match="wave: found 3 arguments, expected at most 2, one for each rule"):
        wave(1.0, 2.0, 3.0)  # type: ignore[call-arg]


# --- argnums and argnames ------------------------------------------------------------------------------------------------


def f(x: Any, y: Any, k: Any) -> Any:
    return x * y * k * k


def test_argnums_and_argnames_together_are_a_tuple_of_both() -> None:
    for transform in (
        ox.grad,
        ox.jacobian,
        lambda *args, **named: lambda *at: ox.value_and_grad(*args, **named)(*at)[1],
    ):
        assert transform(f, 1, argnames="k")(2.0, 3.0, 4.0) == (32.0, 48.0)
        assert transform(f, (1, 0), argnames=["k"])(2.0, 3.0, 4.0) == (32.0, 48.0, 48.0)
        assert transform(f, argnames="k")(2.0, 3.0, 4.0) == 48.0
        assert transform(f, argnames=("k",))(2.0, 3.0, 4.0) == (48.0,)
    assert ox.hessian(f, 0, argnames="k")(2.0, 3.0, 4.0) == ((0.0, 24.0), (24.0, 12.0))
    with pytest.raises(ValueError, match="argnums is 0 and argnames 'x': found an argument in both"):
        ox.grad(f, 0, argnames="x")


def test_argnames_of_parameters_without_a_position() -> None:
    def g(*, x: Any, k: Any = 2.0) -> Any:
        return x * x * k

    assert ox.grad(g, argnames="x")(x=3.0) == 12.0
    assert ox.grad(g, argnames=("x", "k"))(x=3.0, k=1.0) == (6.0, 9.0)
    assert ox.value_and_grad(g, argnames="x")(x=3.0) == (18.0, 12.0)
    assert ox.hessian(g, argnames="x")(x=3.0) == 4.0


@pytest.mark.parametrize("argnums", ["k", 1.5, True, (0, "k")])
def test_argnums_are_whole_numbers(argnums: Any) -> None:
    for transform in (ox.grad, ox.value_and_grad, ox.jacobian, ox.hessian):
        with pytest.raises(TypeError, match=r"argnums is .*: expected an int, or a tuple of them"):
            transform(f, argnums)(1.0, 2.0, k=3.0)
    with pytest.raises(TypeError, match="argnames='k' names a parameter"):
        ox.grad(f, "k")  # type: ignore[arg-type]


@pytest.mark.parametrize("x", [2.0, np.array([1.0, 2.0])], ids=["number", "array"])
@pytest.mark.parametrize(
    ("wrong", "kind", "text"),
    [
        ("text", ox.DtypeError, "'text', expected an array or a number"),
        (np.array(["a", "b"]), ox.DtypeError, "expected an array or a number"),
        (None, ox.DerivativeError, "rule of argument 0 returned None"),
        ([1.0, 2.0], ox.StructureError, "found a tangent of type list"),
        ({"a": 1.0}, ox.StructureError, "found a tangent of type dict"),
    ],
    ids=["text", "texts", "None", "list", "dict"],
)
def test_tangents_of_another_kind(wrong: Any, kind: Any, text: str, x: Any) -> None:
    square = ox.define_jvp(lambda t: wrong)(lambda x: x * x)
    with pytest.raises(kind, match=text):
        ox.jvp(square, (x,), (x,))
    with pytest.raises(kind, match=text):
        ox.grad(lambda x: xp.sum(square(x)))(x)


@pytest.mark.parametrize("x", [2.0, np.array([1.0, 2.0])], ids=["number", "array"])
@pytest.mark.parametrize("wrong", ["text", np.array(["a", "b"]), object()], ids=["text", "texts", "object"])
def test_cotangents_of_another_kind(wrong: Any, x: Any) -> None:
    rules: list[Any] = [ox.define_vjp(lambda g: wrong)(np.square), ox.custom_vjp(np.square, lambda g, y, x: wrong)]
    for square in rules:
        with pytest.raises(ox.DtypeError, match=r"argument 0: found a cotangent .*, expected an array or a number"):
            ox.grad(lambda x, square=square: xp.sum(square(x)))(x)


@pytest.mark.parametrize("x", [2.0, np.array([1.0, 2.0])], ids=["number", "array"])
def test_complex_derivatives_of_real_values_are_refused(x: Any) -> None:
    scaled = ox.custom_vjp(lambda a, x: a * x)
    scaled.defvjp(lambda a, x: (a * x, a), lambda a, g: (None, g * a * 1j))
    rules: list[Any] = [
        functools.partial(scaled, 3.0),
        ox.custom_vjp(lambda x: 3.0 * x, lambda g, y, x: g * 1j),
        ox.define_vjp(lambda g: g * 1j)(lambda x: 3.0 * x),
    ]
    for f in rules:
        loss = lambda x, f=f: xp.sum(f(x))  # noqa: E731
        for derivative in (ox.grad(loss), ox.record(ox.grad(loss)), lambda x, f=f: ox.jvp(f, (x,), (x,))):
            with pytest.raises(
                ox.DtypeError, match=r"argument [01]: found a cotangent that is complex, expected a real"
            ):
                derivative(x)
    f = ox.define_jvp(lambda t: t * 1j)(lambda x: 3.0 * np.asarray(x))
    for derivative in (ox.grad(lambda x: xp.sum(f(x))), lambda x: ox.jvp(f, (x,), (x,))):
        with pytest.raises(ox.DtypeError, match="found a tangent that is complex, expected a real one"):
            derivative(x)
    rotated = ox.define_jvp(lambda t: t * 1j)(lambda x: x * 1j)
    np.testing.assert_array_equal(ox.grad(lambda x: xp.sum(rotated(x).imag))(x), np.ones_like(x))


@pytest.mark.parametrize("x", [2.0, np.float32(2.0), W, W.astype(np.float32)], ids=lambda x: type(x).__name__)
def test_rules_of_leaves_are_transposed_by_the_core(x: Any) -> None:
    product = ox.define_jvp(lambda t, x, w: t * w, lambda t, y, w: t * y / w, None)(lambda x, w, k: x * w * k)
    scaled = lambda x, w: xp.sum(product(x, w, 1.0) * x)  # noqa: E731
    for w in (x, 2.0):
        by_x, by_w = ox.grad(scaled, (0, 1))(x, w)
        np.testing.assert_allclose(by_x, 2.0 * x * w, rtol=1e-6)
        np.testing.assert_allclose(by_w, x * x if np.shape(w) else np.sum(x * x), rtol=1e-6)
        assert type(by_x) is type(x) and getattr(by_x, "dtype", None) == getattr(x, "dtype", None)
    assert not [name for name in frames(lambda: ox.grad(scaled)(x, x)) if name.endswith(".of_leaves")]


def test_a_rule_without_its_tangent_is_refused_in_reverse_mode() -> None:
    forgotten = ox.define_jvp(lambda t, x: 2.0 * x)(lambda x: x * x)
    for x in (2.0, np.float32(2.0), W):
        with pytest.raises(ox.DerivativeError, match="does not depend on t, expected one that is linear in t"):
            ox.grad(lambda x: xp.sum(forgotten(x)))(x)
    for program in (lambda x: xp.sum(forgotten(x)), lambda x: xp.sum(ox.vmap(forgotten)(x))):
        with pytest.raises(ox.DerivativeError, match="does not depend on t"):
            ox.jacobian(ox.grad(program))(W)
    steps = ox.define_jvp(lambda t, x: xp.zeros_like(x))(np.floor)
    assert ox.grad(lambda x: xp.sum(steps(x) * x))(W).tolist() == np.floor(W).tolist()


# --- checkpoints inside of checkpoints -----------------------------------------------------------------------------------


def nested(depth: int) -> Any:
    function = xp.sin
    for _ in range(depth):
        function = ox.checkpoint(lambda x, inner=function: inner(x) * 1.0)
    return function


@pytest.mark.slow
def test_checkpoints_nested_300_deep_by_the_limit_of_python() -> None:
    assert sys.getrecursionlimit() <= 1000
    function = nested(300)
    assert ox.grad(function)(0.5) == math.cos(0.5)
    assert ox.jvp(function, (0.5,), (1.0,))[1] == math.cos(0.5)
    two = ox.checkpoint(lambda x, w: x * w)
    for _ in range(300):
        two = ox.checkpoint(lambda x, w, inner=two: inner(x, w) * 1.0)
    assert ox.grad(two, (0, 1))(0.5, 2.0) == (2.0, 0.5)


def test_checkpoints_nested_too_deep_say_so_once() -> None:
    for differentiate in (lambda g: ox.grad(g)(0.5), lambda g: ox.jvp(g, (0.5,), (1.0,))):
        with pytest.raises(
            RecursionError, match="checkpoints inside of checkpoints .* raise sys.setrecursionlimit"
        ) as found:
            differentiate(nested(1200))
        assert str(found.value).count("checkpoints inside of checkpoints") == 1
    assert ox.grad(nested(20))(0.5) == math.cos(0.5)


def test_rules_that_do_not_read_the_cotangent_or_tangent_are_refused() -> None:
    for decorator, name in ((ox.define_vjp, "g"), (ox.define_jvp, "t")):
        with pytest.raises(TypeError, match=f"{decorator.__name__}: the rule of argument 0, .* does not read {name}: "):
            decorator(lambda x: 3.0 * x**2)
        with pytest.raises(TypeError, match="the rule of argument 0, cube, does not read"):
            decorator(cube)  # as without rules
        with pytest.raises(TypeError, match=f"{decorator.__name__}, rule: found 3.0, expected a function"):
            decorator(3.0)


def cube(x: Any) -> Any:
    return x**3


@pytest.mark.parametrize("x", [0.7, np.array([0.7, 0.3])])
def test_rules_that_ignore_the_cotangent_are_refused_in_forward_mode_by_name(x: Any) -> None:
    residuals, of_primitive = ox.custom_vjp(cube), primitive(cube)
    residuals.defvjp(lambda x: (x**3, 3.0 * x**2), lambda slope, g: slope)
    defvjp(of_primitive, lambda y, x: lambda g: 3.0 * x**2)
    one = np.ones_like(x)[()]
    for f in (
        ox.custom_vjp(cube, lambda g, y, x: 3.0 * x**2),
        ox.define_vjp(lambda g, x: 3.0 * x**2)(cube),
        residuals,
        of_primitive,
    ):
        pushed = lambda x, f=f: ox.jvp(f, (x,), (one,))[1]  # noqa: E731
        for derivative in (
            pushed,
            ox.jacobian(f, mode="forward"),
            lambda x, f=f: ox.linearize(f, x)[1](one),
            lambda x, pushed=pushed: ox.jvp(pushed, (x,), (one,)),
            lambda x, f=f: ox.jvp(ox.vmap(f), (np.stack([x, x]),), (np.ones((2, *np.shape(x))),)),
            ox.record(pushed),
        ):
            with pytest.raises(ox.DerivativeError, match="cube: found a cotangent that does not depend on g, expected"):
                derivative(x)
    constant = ox.custom_vjp(cube, lambda g, y, x: 0.0 * x)
    np.testing.assert_array_equal(ox.jvp(constant, (x,), (one,))[1], 0.0 * x)


@pytest.mark.parametrize("x", [3.0, np.array([1.0, 2.0])])
@pytest.mark.parametrize("form", ["fwd, bwd", "rule", "define_vjp", "define_jvp", "primitive"])
def test_rules_without_a_return_statement_are_refused(form: str, x: Any) -> None:
    f, of_primitive = ox.custom_vjp(lambda x: x * x), primitive(lambda x: x * x)
    f.defvjp(lambda x: (x * x, x), lambda residuals, g: None)
    defvjp(of_primitive, lambda y, x: lambda g: None)
    defjvp(of_primitive, lambda t, y, x: None)
    functions: dict[str, Any] = {
        "fwd, bwd": f,
        "rule": ox.custom_vjp(lambda x: x * x, lambda g, y, x: None),
        "define_vjp": ox.define_vjp(lambda g, x: None)(lambda x: x * x),
        "define_jvp": ox.define_jvp(lambda t, x: None)(lambda x: x * x),
        "primitive": of_primitive,
    }
    with pytest.raises(ox.DerivativeError, match="returned None: expected"):
        ox.grad(lambda x: xp.sum(functions[form](x)))(x)
    with pytest.raises(ox.DerivativeError, match="returned None: expected"):
        ox.jvp(functions[form], (x,), (x,))


@pytest.mark.parametrize("x", [3.0, W], ids=["number", "array"])
@pytest.mark.parametrize("define", [ox.define_vjp, ox.define_jvp])
def test_rules_read_arguments_that_are_given_by_name_or_by_default(define: Any, x: Any) -> None:
    rule = (lambda g, a, k: g * 2.0 * a * k) if define is ox.define_vjp else lambda t, a, k: t * 2.0 * a * k
    square = define(rule)(lambda a, k=2.0: a * a * k)
    for named, k in (({}, 2.0), ({"k": 5.0}, 5.0)):
        of_sum = lambda a, named=named: xp.sum(square(a, **named))  # noqa: E731
        np.testing.assert_allclose(ox.grad(of_sum)(x), 2.0 * k * x)
        np.testing.assert_allclose(ox.jvp(of_sum, (x,), (x,))[1], np.sum(2.0 * k * x * x))
        np.testing.assert_allclose(ox.elementwise_grad(ox.elementwise_grad(of_sum))(x), 2.0 * k * np.ones_like(x))
        np.testing.assert_allclose(ox.record(ox.grad(of_sum))(x), 2.0 * k * x)


@pytest.mark.parametrize("define", [ox.define_vjp, ox.define_jvp])
def test_more_rules_than_arguments_are_refused(define: Any) -> None:
    rule = (lambda g: g) if define is ox.define_vjp else lambda t: t
    with pytest.raises(TypeError, match="found 2 rules, expected at most 1, one for each argument"):
        define(rule, rule)(lambda x: x)
    assert ox.grad(define(rule, rule)(lambda x, y=0.0: x + y))(1.0) == 1.0
