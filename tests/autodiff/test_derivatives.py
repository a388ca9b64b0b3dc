"""Every derivative of the table against central differences, to second order; the table is complete."""

import math
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from cases import CASES as ELEMENTARY
from cases import Case
from cases_linalg import CASES as LINALG
from cases_linalg import SLOW
from libraries import host
from oxigrad import _core, xp
from oxigrad.autodiff.rules.jvp_rules import FORWARD, LINEAR
from oxigrad.autodiff.rules.vjp_rules import TABLE
from oxigrad.autograd import extend
from oxigrad.testing import check_grads

CASES = [*ELEMENTARY, *LINALG]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_derivatives_agree_with_central_differences(case: Case) -> None:
    check_grads(case.function, case.args, order=2)


def leaves(tree: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in ox.tree.leaves(tree)]


def is_complex(case: Case) -> set[bool]:
    """Whether its arguments and results are complex; both, where some are."""
    return set(map(np.iscomplexobj, [*case.args, *ox.tree.leaves(case.function(*case.args))]))


def has_columns(case: Case) -> bool:
    return not any(map(np.iscomplexobj, case.args)) or is_complex(case) == {True}


def marked(case: Case) -> Any:
    return pytest.param(case, marks=pytest.mark.slow) if case.name in SLOW else case


@pytest.mark.parametrize("case", [marked(case) for case in CASES if has_columns(case)], ids=str)
@pytest.mark.one_in(8)
def test_columns_pushed_together_agree_with_columns_and_rows_one_by_one(case: Case) -> None:
    every = tuple(range(len(case.args)))
    together = ox.jacobian(case.function, every, "forward")(*case.args)
    for which, arg in enumerate(case.args):
        for at in list(np.ndindex(np.shape(arg)))[:3]:
            tangents = [np.zeros_like(other) if np.ndim(other) else 0.0 * other for other in case.args]
            tangents[which] = np.asarray(tangents[which])
            tangents[which][at] = 1.0
            tangents[which] = tangents[which] if np.ndim(arg) else tangents[which].item()
            one = leaves(ox.jvp(case.function, case.args, tangents)[1])
            columns = ox.tree.leaves(together)[which :: len(every)]
            for column, alone in zip(columns, one, strict=True):
                np.testing.assert_allclose(np.asarray(column)[(..., *at)], alone, rtol=1e-12, atol=1e-12)
    if is_complex(case) == {False}:
        rows = ox.jacobian(case.function, every, "reverse")(*case.args)
        for column, row in zip(leaves(together), leaves(rows), strict=True):
            np.testing.assert_allclose(column, row, rtol=1e-11, atol=1e-11)


def test_check_grads_finds_a_wrong_derivative() -> None:
    with pytest.raises(AssertionError, match="central difference"):
        check_grads(lambda x: x * ox.stop_gradient(x), (3.0,))


@pytest.mark.parametrize("off", [0.5, math.nan])
def test_check_grads_names_the_argument_the_element_and_the_modes(off: float) -> None:
    @ox.custom_vjp
    def f(m: Any, c: Any) -> Any:
        return c * xp.sum(m["a"] ** 2) + xp.sum(m["b"])

    def backward(residuals: Any, g: Any) -> Any:
        m, c = residuals
        wrong = np.zeros((3, 4))
        wrong[1, 2] = off
        return {"a": 2.0 * g * c * m["a"] + wrong, "b": g * np.ones(2)}, g * xp.sum(m["a"] ** 2)

    f.defvjp(lambda m, c: (f(m, c), (m, c)), backward)
    args = {"a": np.arange(12.0).reshape(3, 4), "b": np.ones(2)}, 2.0
    with pytest.raises(
        AssertionError, match=r"^argument 0, a, element \[1, 2\]: derivative .* by rev, central difference"
    ):
        check_grads(f, args, 1, ("rev",))


def test_check_grads_names_an_argument_of_one_number() -> None:
    def second(x: Any, y: Any) -> Any:
        return xp.sum(x) * ox.stop_gradient(y)

    for mode in ("fwd", "rev"):
        with pytest.raises(AssertionError, match=rf"^argument 1: derivative 0.0 by {mode}, central difference"):
            check_grads(second, (np.ones(3), 2.0), 1, (mode,))


def test_check_grads_perturbs_complex_numbers_in_complex_directions() -> None:
    check_grads(lambda t: xp.real(t["a"] ** 3 * t["b"]) + abs(t["a"]), ({"a": 1.0 + 2.0j, "b": 0.5},))
    of_real_parts = ox.custom_vjp(lambda z: z * z, lambda g, y, z: 2.0 * xp.real(g * z) + 0.0j)
    with pytest.raises(AssertionError, match=r"^argument 0: derivative .* by rev, central difference"):
        check_grads(lambda z: xp.real(of_real_parts(z)), (1.0 + 2.0j,), 1, ("rev",))


def test_every_op_has_a_derivative_or_a_reason() -> None:
    piecewise_constant = {"sign", "floor", "ceil", "trunc", "round", "floor_divide"}
    truth = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}
    truth |= {"logical_and", "logical_or", "logical_xor", "logical_not", "isnan", "isfinite", "isinf"}
    assert set(TABLE) >= set(LINEAR) | set(FORWARD)
    assert {name for name, _ in _core.ops()} == set(TABLE) | piecewise_constant | truth


def test_every_op_is_in_the_table_of_cases() -> None:
    named = {case.name.split("-")[0] for case in CASES}
    second = {"betainc_aa", "betainc_ab", "betainc_bb"}  # of which third derivatives are refused
    others = {"scatter_add", "astype", "item", "round_to_bfloat16", "round_to_float16"}
    assert set(TABLE) - named == (second | others) - named


def test_astype_gives_the_cotangent_in_the_argument_s_dtype() -> None:
    gradient = ox.grad(lambda x: xp.sum(xp.astype(x, np.float64) ** 2))(np.ones(3, np.float32))
    assert gradient.dtype == np.float32
    np.testing.assert_array_equal(gradient, 2.0)


def test_promotion_is_undone() -> None:
    a, b = np.ones(3, np.float32), np.full(3, 2.0)
    ga, gb = ox.grad(lambda a, b: xp.sum(a * b), argnums=(0, 1))(a, b)
    assert (ga.dtype, gb.dtype) == (np.float32, np.float64)


@pytest.mark.parametrize("f", [xp.max, xp.min], ids=["max", "min"])
def test_ties_share_the_gradient(f) -> None:
    np.testing.assert_array_equal(ox.grad(f)(np.array([1.0, 1.0, 1.0, 1.0])), 0.25)


@pytest.mark.parametrize("f", [xp.maximum, xp.minimum], ids=["maximum", "minimum"])
def test_equal_arguments_share_the_gradient(f) -> None:
    assert ox.grad(f, argnums=(0, 1))(2.0, 2.0) == (0.5, 0.5)


def test_power_at_zero() -> None:
    assert ox.grad(lambda x: x**0)(0.0) == 0.0
    assert ox.grad(lambda x: x**1)(0.0) == 1.0
    assert ox.grad(lambda x: x**2)(0.0) == 0.0
    assert ox.grad(lambda y: 0.0**y)(2.0) == 0.0


def test_nan_in_the_branch_not_taken_does_not_reach_the_gradient() -> None:
    x = np.array([-1.0, 4.0])
    gradient = ox.grad(lambda x: xp.sum(xp.where(x > 0, xp.sqrt(xp.where(x > 0, x, 1.0)), 0.0)))(x)
    np.testing.assert_array_equal(gradient, [0.0, 0.25])


def test_abs_at_zero_has_gradient_zero() -> None:
    assert ox.grad(abs)(0.0) == 0.0


def test_steps_have_gradient_zero() -> None:
    assert ox.grad(lambda x: xp.floor(x) * x)(2.5) == 2.0


def test_third_and_fourth_derivative() -> None:
    f = xp.sin
    for expected in (math.cos(0.7), -math.sin(0.7), -math.cos(0.7), math.sin(0.7)):
        f = ox.grad(f)
        assert f(0.7) == pytest.approx(expected, rel=1e-14)


def test_where_takes_two_numbers_with_any_library(asarray) -> None:
    chosen = xp.where(asarray(np.array([1.0, 2.0])) < 1.5, 0.0, 1.0)
    np.testing.assert_array_equal(host(chosen), [0.0, 1.0])


def test_the_sign_of_a_complex_number_is_differentiated() -> None:
    x = np.array([3.0 + 4.0j, 0.0, -2.0j])
    value, pullback = ox.vjp(xp.sign, x)
    np.testing.assert_allclose(value, np.sign(x), rtol=1e-15)
    # x / |x|, whose derivative at 0 is taken as zero: g of dL = Re(sum(g dy)) for y = x (x conj(x))**(-1/2)
    (gradient,) = pullback(np.array([1.0 + 0.0j, 1.0 + 0.0j, 1.0 + 0.0j]))
    np.testing.assert_allclose(gradient[[0, 2]], [0.128 + 0.096j, 0.5], rtol=1e-15)
    assert np.isfinite(gradient[1])
    assert ox.grad(lambda x: xp.real(xp.sign(x)))(3.0 + 4.0j) == pytest.approx(0.128 + 0.096j)
    check_grads(lambda z: xp.sign(z), (x[[0, 2]],), order=2)


def _by_passes() -> Any:
    """Sine by a forward pass and a backward pass that multiplies its cotangent in place."""
    sine = ox.custom_vjp(np.sin)
    sine.defvjp(lambda x: (np.sin(x), np.cos(x)), lambda slope, g: (np.multiply(g, slope, out=g),))
    return sine


def _primitive(define: Any, rule: Any) -> Any:
    sine = extend.primitive(lambda x: np.sin(x))
    define(sine, rule)
    return sine


@pytest.mark.parametrize(
    "sine",
    [
        _by_passes(),
        ox.custom_vjp(np.sin, lambda g, y, x: np.multiply(g, np.cos(x), out=g)),
        ox.define_vjp(lambda g, x: np.multiply(g, np.cos(x), out=g))(lambda x: np.sin(x)),
        _primitive(extend.defvjp, lambda ans, x: lambda g: np.multiply(g, np.cos(x), out=g)),
        ox.custom_vjp(
            lambda x: {"a": np.sin(x), "b": x + 0.0}, lambda g, y, x: np.multiply(g["a"], np.cos(x), out=g["a"])
        ),
    ],
    ids=["passes", "rule", "define_vjp", "primitive", "tree"],
)
def test_a_rule_cannot_change_the_cotangent_that_others_read(sine: Any) -> None:
    def loss(x: Any) -> Any:
        y = sine(x)
        return xp.sum((y["a"] if isinstance(y, dict) else y) + x)

    seed, x = np.ones(3), np.arange(3.0)
    with pytest.raises(ValueError, match="read-only"):
        ox.grad(loss)(x)
    with pytest.raises(ValueError, match="read-only"):
        ox.vjp(lambda x: sine(x)["a"] if isinstance(sine(x), dict) else sine(x), x)[1](seed)
    np.testing.assert_array_equal(seed, 1.0)


@pytest.mark.parametrize(
    "double",
    [
        ox.define_jvp(lambda t, x: np.multiply(t, 2.0, out=t))(lambda x: 2.0 * x),
        _primitive(extend.defjvp, lambda t, ans, x: np.multiply(t, 2.0, out=t)),
    ],
    ids=["define_jvp", "primitive"],
)
def test_a_rule_cannot_change_the_tangent_that_others_read(double: Any) -> None:
    tangent = np.ones(3)
    with pytest.raises(ValueError, match="read-only"):
        ox.jvp(lambda x: double(x) + x, (np.arange(3.0),), (tangent,))
    np.testing.assert_array_equal(tangent, 1.0)


@pytest.mark.parametrize("rule", [lambda g, y, x: g, lambda g, y, x: (g,)])
def test_a_cotangent_that_a_rule_returns_is_writable(rule: Any) -> None:
    straight = ox.custom_vjp(np.round, rule)
    gradient = ox.grad(lambda x: xp.sum(straight(x) * 3.0))(np.arange(3.0))
    gradient *= 2.0
    np.testing.assert_array_equal(gradient, 6.0)
