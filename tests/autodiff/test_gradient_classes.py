"""Classes of gradients by numbers: they follow from the classes of the arguments, whatever their values are."""

from __future__ import annotations

import functools
import inspect
import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import _core, tree, xp

KINDS: dict[str, Callable[[float], Any]] = {
    "float": float,
    "float64": np.float64,
    "float32": np.float32,
    "an array of float64": np.array,
    "an array of float32": lambda x: np.array(x, dtype="f4"),
}
# Values at ties, at kinks, on either side of a branch, and where functions are not finite.
VALUES = [(0.3, 1.7), (0.3, 0.3), (2.0, 1.5), (-1.1, 0.1), (0.0, 0.0), (1.0, 0.0), (0.7, np.inf), (np.nan, 1.0)]
BRANCHES: dict[str, Callable[..., Any]] = {
    "where": lambda a, b: xp.where(a > b, a, b),
    "where, of a constant": lambda a: xp.where(a > 0.5, a, 1.0),
    "where, of infinite slopes": lambda a: xp.where(a > 0.0, xp.sqrt(a), 0.0),
    "where, of two functions": lambda a, b: xp.where(a > b, xp.log(a), xp.sqrt(b)) * a,
    "where, twice": lambda a, b: xp.where(a > 0.5, xp.where(b > 0.5, xp.exp(a) * b, b), xp.log(a)),
    "np.where": lambda a, b: np.where(a > b, a, b),
    "np.maximum": lambda a, b: np.maximum(a, b),
    "a clip": lambda a: xp.clip(a, -0.5, 0.5),
    "np.clip": lambda a, b: np.clip(a, b, 2.0),
    "a part that is positive": lambda a: xp.maximum(0, a),
    "both extrema": lambda a, b: xp.maximum(a, b) + xp.minimum(a, 1.0) * b,
    "masks": lambda a, b: (a > b) * a + (a <= b) * b,
    "elements of an array": lambda a: xp.sum(xp.where(np.arange(3.0) > a, a, 1.0)),
    "the largest of two": lambda a, b: xp.max(xp.stack([xp.asarray(a), xp.asarray(b)])),
    "a gradient inside": lambda a, b: ox.grad(lambda x: xp.maximum(x * x, b))(a) * b,
    "a special function": lambda a, b: xp.special.rel_entr(a, b),
    "a loss": lambda a, b: xp.special.pseudo_huber(a, b),
    "a density": lambda a, b: xp.stats.norm.logpdf(a, loc=b),
    "nothing": lambda a, b: b * 2.0,
}
ARITIES = dict(_core.ops())
FUNCTIONS: dict[str, Callable[..., Any]] = BRANCHES | {
    each.__name__: each for each in _core.elementwise_functions() if ARITIES[each.__name__] in (1, 2)
}


def arity(name: str) -> int:
    return len(inspect.signature(BRANCHES[name]).parameters) if name in BRANCHES else int(ARITIES[name] or 0)


@functools.cache
def classes(name: str, kinds: tuple[str, ...]) -> dict[Any, list[Any]]:
    """The classes of gradients, with the values that give them."""
    gradient, found = ox.grad(FUNCTIONS[name], argnums=tuple(range(len(kinds)))), dict[Any, list[Any]]()
    for values in VALUES:
        args = [KINDS[kind](value) for kind, value in zip(kinds, values, strict=False)]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                leaves = tree.leaves(gradient(*args))
            except (OverflowError, ZeroDivisionError, ValueError, TypeError, ox.DerivativeError):
                continue  # of Python's numbers, or without a derivative
        found.setdefault(tuple((type(each), getattr(each, "dtype", None)) for each in leaves), []).append(values)
    return found


CALLS = [(name, kinds) for name in FUNCTIONS for kinds in itertools.product(KINDS, repeat=arity(name))]


@pytest.mark.parametrize(("name", "kinds"), CALLS, ids=str)
def test_the_class_of_a_gradient_depends_on_no_value(name: str, kinds: tuple[str, ...]) -> None:
    assert len(classes(name, kinds)) <= 1, classes(name, kinds)


@pytest.mark.parametrize(("name", "kinds"), CALLS, ids=str)
def test_the_gradient_by_a_scalar_is_a_scalar(name: str, kinds: tuple[str, ...]) -> None:
    for each in classes(name, kinds):
        for kind, (cls, dtype) in zip(kinds, each, strict=True):
            expected = {"float": float, "float64": np.float64, "float32": np.float32}.get(kind, cls)
            assert cls is expected
            assert kind == "float" or dtype == np.dtype(kind.rpartition(" ")[2])


def has_bits(one: Any, other: Any) -> bool:
    return type(one) is type(other) and np.array_equal(np.asarray(one), np.asarray(other), equal_nan=True)


@pytest.mark.parametrize(("name", "kinds"), [call for call in CALLS if len({*call[1]}) == 1], ids=str)
def test_recordings_give_the_classes_and_bits_of_gradients(name: str, kinds: tuple[str, ...]) -> None:
    f = ox.value_and_grad(FUNCTIONS[name], argnums=tuple(range(len(kinds))))
    g: Any = ox.record(f, limit=20)
    for values in VALUES:
        args = [KINDS[kind](value) for kind, value in zip(kinds, values, strict=False)]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                expected = tree.leaves(f(*args))
            except (OverflowError, ZeroDivisionError, ValueError, TypeError, ox.DerivativeError):
                continue
            for _ in range(2):
                assert all(map(has_bits, tree.leaves(g(*args)), expected)), (values, g)
    assert not any("same bits" in reason for reason in g._refused.values()), g
