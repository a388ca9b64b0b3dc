"""Functions of users with an own rule, and `stop_gradient`, cannot write the arrays of the caller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp
from oxigrad.autograd.extend import defvjp, primitive


def in_place(x: Any) -> Any:
    x *= x
    return x


def rule_in_place(g: Any, x: Any) -> Any:
    x *= g
    return x


def result_in_place(g: Any, y: Any) -> Any:
    y *= g
    return y


def square(x: Any) -> Any:
    return x * x


def tree_in_place(x: Any) -> Any:
    x["w"] *= x["w"]
    return x


def with_residuals(fwd: Callable[..., Any], bwd: Callable[..., Any]) -> Callable[..., Any]:
    f = ox.custom_vjp(square)
    f.defvjp(fwd, bwd)
    return f


def of_autograd(f: Callable[..., Any], vjp: Callable[..., Any]) -> Callable[..., Any]:
    called = primitive(f)
    defvjp(called, vjp)
    return called


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "define_vjp": ox.define_vjp(lambda g, x: g * 2.0 * x)(in_place),
    "define_vjp, rule": ox.define_vjp(rule_in_place)(square),
    "define_vjp, result": ox.define_vjp(result_in_place)(square),
    "define_jvp": ox.define_jvp(lambda t, x: t * 2.0 * x)(in_place),
    "define_jvp, rule": ox.define_jvp(lambda t, x: t * 2.0 * in_place(x))(square),
    "custom_vjp": ox.custom_vjp(in_place, lambda g, y, x: g * 2.0 * x),
    "defvjp, fwd": with_residuals(lambda x: (in_place(x), x), lambda x, g: (g * 2.0 * x,)),
    "defvjp, bwd": with_residuals(lambda x: (square(x), x), lambda x, g: (rule_in_place(g, x),)),
    "autograd": of_autograd(in_place, lambda ans, x: lambda g: g * 2.0 * x),
    "autograd, rule": of_autograd(square, lambda ans, x: lambda g: rule_in_place(g, x)),
    "implicit": ox.implicit(lambda y, x: y - x * x, in_place),
    "stop_gradient": lambda x: in_place(ox.stop_gradient(x)) + x,
    "a tree": lambda x: ox.define_vjp(lambda g, x: {"w": g["w"] * 2.0 * x["w"]})(tree_in_place)({"w": x})["w"],
}
# In derivatives of higher order, rules are called with variables, to which an assignment is an entry of the tape.
CALLS = [(1, name) for name in FUNCTIONS] + [(2, name) for name in FUNCTIONS if ", " not in name or "fwd" in name]


@pytest.mark.parametrize(("order", "name"), CALLS)
def test_a_function_that_writes_its_argument_is_refused(order: int, name: str) -> None:
    x, f = np.array([3.0, 2.0]), FUNCTIONS[name]
    derivative = ox.grad(lambda x: xp.sum(f(x)))
    if order == 2:
        derivative = ox.grad(lambda x, inner=derivative: xp.sum(inner(x)))
    with pytest.raises(ValueError, match="read-only"):
        derivative(x)
    assert x.tolist() == [3.0, 2.0]


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - {"stop_gradient"}))
def test_examples_of_a_batch_are_read_only(name: str) -> None:
    x, f = np.array([[3.0, 2.0], [1.0, 4.0]]), FUNCTIONS[name]
    before = x.copy()
    with pytest.raises(ValueError, match="read-only"):
        ox.vmap(ox.grad(lambda x: xp.sum(f(x))))(x)
    assert np.array_equal(x, before)


@pytest.mark.parametrize("name", ["define_jvp", "define_jvp, rule"])
def test_forward_mode_is_refused_too(name: str) -> None:
    x = np.array([3.0, 2.0])
    with pytest.raises(ValueError, match="read-only"):
        ox.jvp(FUNCTIONS[name], (x,), (np.ones(2),))
    assert x.tolist() == [3.0, 2.0]


def test_a_copy_can_be_written() -> None:
    x = np.array([3.0, 2.0])
    f = ox.define_vjp(lambda g, x: g * 2.0 * x)(lambda x: in_place(x.copy()))
    assert ox.grad(lambda x: xp.sum(f(x)))(x).tolist() == [6.0, 4.0]
    assert ox.grad(lambda x: xp.sum(in_place(ox.stop_gradient(x).copy()) * x))(x).tolist() == [9.0, 4.0]
    assert x.tolist() == [3.0, 2.0]


def test_arrays_outside_of_derivatives_stay_writable() -> None:
    x = np.array([3.0, 2.0])
    assert ox.stop_gradient(x) is x
    assert ox.define_vjp(lambda g, x: g)(lambda x: x)(x) is x
