"""The Array API standard: all of it is accounted for, over every array library; and NumPy's functions of variables."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
import standard
from cases import CASES, Case, apart, normal
from oxigrad import tree, xp
from oxigrad._core import Variable

X = apart(3, 4)


# --- the closed table --------------------------------------------------------------------------------------------------


def test_every_function_of_the_standard_is_differentiable_or_plain_for_a_reason(library) -> None:
    found = standard.names(library("array_api_strict"))
    assert len(found) > 150
    left = {name for name in found if name not in standard.PLAIN}
    assert {name for name in left if not standard.is_ours(name)} == set()
    assert {name for name in left if not standard.is_tested(name)} == set()
    assert set(standard.PLAIN) <= set(found)


@pytest.mark.parametrize("name", standard.PLAIN)
def test_plain_functions_give_plain_values(name: str) -> None:
    with ox.Tape() as tape:
        result = standard.PLAIN[name].call(tape.watch(X))
    parts = result if isinstance(result, (list, tuple)) else [result]
    assert not any(isinstance(part, Variable) for part in parts)


def test_signatures_are_the_standard_s(library) -> None:
    strict = library("array_api_strict")
    for name in set(standard.names(strict)) & set(vars(xp)):
        if not inspect.isfunction(getattr(xp, name)):
            continue
        theirs = inspect.signature(getattr(strict, name)).parameters
        own = inspect.signature(getattr(xp, name)).parameters
        missing = {parameter for parameter in theirs if parameter not in own and theirs[parameter].kind.value > 0}
        assert missing <= {"device", "copy"}, name


# --- over array libraries ----------------------------------------------------------------------------------------------


def loss(case: Case, asarray: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """A number that depends on every element of what the function gives."""
    total: Any = 0.0
    for at, leaf in enumerate(tree.leaves(case.function(*args))):
        weights = asarray(normal(*leaf.shape, seed=at))
        total = total + xp.sum(leaf * weights)
    return total


def gradient(case: Case, asarray: Callable[..., Any]) -> tuple[Any, ...]:
    args = tuple(asarray(arg) for arg in case.args)
    positions = tuple(range(len(args)))
    return ox.grad(lambda *args: loss(case, asarray, args), argnums=positions)(*args)


PORTABLE = [case for case in CASES if "-" not in case.name and all(isinstance(arg, np.ndarray) for arg in case.args)]


@pytest.mark.parametrize("case", PORTABLE, ids=str)
def test_gradients_over_array_libraries(case: Case, asarray) -> None:
    for own, expected in zip(gradient(case, asarray), gradient(case, np.asarray), strict=True):
        np.testing.assert_allclose(np.asarray(own), expected, rtol=1e-10, atol=1e-12)
