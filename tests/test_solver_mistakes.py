"""Mistakes of newcomers with solvers, rules and recordings: the error names the argument, what was found, and what to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp

PACKAGE: Any = ox
DEFINE: Any = ox.define_vjp
TEXT: Any = "1e-3"
X = np.ones(2)


def distance(x: Any) -> Any:
    return xp.sum((x - 1.0) ** 2)


def minimize(**named: Any) -> Any:
    return ox.scipy.minimize(distance, X, **named)


def on_a_tape(sources: Any) -> Any:
    with ox.Tape() as tape:
        x = tape.watch(2.0)
        y = x * x
    return tape.gradient(y, sources)


MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a solver before the residual": (
        lambda: ox.implicit(np.cbrt, lambda x, a: x**3 - a),
        TypeError,
        "implicit: the solver takes at least 2 arguments and the residual at most 2: expected implicit(residual, solver)",
    ),
    "a pullback without a cotangent": (
        lambda: ox.vjp(lambda x: x * x, 2.0)[1](),  # pyright: ignore[reportCallIssue]
        TypeError,
        "pullback() missing 1 required positional argument: 'cotangent'",
    ),
    "a limit as a text": (
        lambda: ox.record(distance, limit=TEXT),
        ValueError,
        "record: limit is '1e-3', expected an integer, at least 1",
    ),
    "the gradient by a number": (
        lambda: on_a_tape(2.0),
        TypeError,
        "sources: expected a list or a tuple, found float, or a variable",
    ),
    "a constraint without a function": (
        lambda: minimize(constraints={"type": "eq"}),
        TypeError,
        'constraints has {\'type\': \'eq\'}: expected {"type": "eq" or "ineq", "fun": function}',
    ),
    "a constraint without a type": (
        lambda: minimize(constraints=[{"fun": distance}]),
        TypeError,
        "constraints has {'fun': ",
    ),
    "a constraint of another type": (
        lambda: minimize(constraints=[{"type": "equal", "fun": distance}]),
        TypeError,
        "constraints has {'type': 'equal', ",
    ),
    "a tolerance as a text": (
        lambda: minimize(tol=TEXT),
        TypeError,
        "minimize: tol is '1e-3': expected a number, or None",
    ),
    "a tolerance of roots as a text": (
        lambda: ox.scipy.root(distance, X, tol=TEXT),
        TypeError,
        "root: tol is '1e-3': expected a number, or None",
    ),
    "a tolerance of a fit as a text": (
        lambda: ox.scipy.least_squares(distance, X, xtol=TEXT),
        TypeError,
        "least_squares: xtol is '1e-3': expected a number, or None",
    ),
    "a decorator without its rule": (
        lambda: DEFINE(distance),
        TypeError,
        "define_vjp: the rule of argument 0, distance, does not read g: expected one that is linear in g",
    ),
    "a gradient by NumPy's name": (lambda: PACKAGE.gradient, AttributeError, "'gradient': use oxigrad.grad; "),
    "a derivative": (lambda: PACKAGE.derivative, AttributeError, "'derivative': use oxigrad.grad"),
    "a function that saves": (lambda: PACKAGE.save, AttributeError, "'save': an optimizer has a method save"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_the_error_says_what_to_write(name: str) -> None:
    call, kind, text = MISTAKES[name]
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value)


@pytest.mark.parametrize("solver", ["minimize", "root", "least_squares"])
def test_an_error_over_a_list_of_numbers_has_a_note(solver: str) -> None:
    solve = getattr(ox.scipy, solver)
    for x0 in ([1.0, 2.0], (1.0, 2)):
        with pytest.raises(TypeError) as caught:
            solve(lambda x: (x - 1.0) ** 2, x0)
        (note,) = caught.value.__notes__
        assert note.startswith(f"{solver}: x0 is a {type(x0).__name__} of numbers") and f"np.array({x0!r})" in note
    with pytest.raises(TypeError) as caught:
        solve(lambda x: x + "a", X)
    assert not getattr(caught.value, "__notes__", [])


def test_a_list_of_numbers_is_a_tree() -> None:
    found = ox.scipy.minimize(lambda x: (x[0] - 1.0) ** 2 + (x[1] - 2.0) ** 2, [0, 0.5])
    np.testing.assert_allclose(found.x, [1.0, 2.0], atol=1e-6)


@pytest.mark.parametrize("solver", [lambda a: a, lambda *args: args[0], np.cbrt, lambda a, b=0.0: a])
def test_solvers_whose_arguments_may_fit_are_taken(solver: Any) -> None:
    assert callable(ox.implicit(lambda x, a: x - a, solver))
    assert callable(ox.implicit(lambda x, *args: x - args[0], solver))
