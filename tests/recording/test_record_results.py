"""Results that are no trees of arrays, and what a function leaves behind: a first call gives plain values everywhere."""

from __future__ import annotations

import collections
import dataclasses
import functools
import pickle
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_record import equal

import oxigrad as ox
from oxigrad import tree, xp

X = np.arange(1.0, 4.0)
SCALE = np.full(3, 2.0)
LEFT: list[Any] = []
BY_NUMBER: dict[Any, Any] = {}


@dataclasses.dataclass
class Pair:
    one: Any
    other: Any = 2.0


def _with_attribute(x: Any) -> Pair:
    pair = Pair(x * 1.0)
    pair.extra = x * 2.0  # type: ignore[attr-defined]
    return pair


def _object_array(x: Any, s: Any) -> np.ndarray:
    array = np.empty(2, object)
    array[0], array[1] = x * 2.0, s
    return array


# Functions of an array, a float and an integer, with what a result is compared by.
RESULTS: dict[str, tuple[Callable[..., Any], Callable[[Any], Any]]] = {
    "a key that is an integer": (lambda x, s, n: {n: x}, lambda r: [*r.items()]),
    "a key that is a float": (lambda x, s, n: {s: x}, lambda r: [*r.items()]),
    "a key that is a truth value": (lambda x, s, n: {s > 0.0: x}, lambda r: [*r.items()]),
    "a key that is a tuple": (lambda x, s, n: [{(n, "a"): x}], lambda r: [*r[0].items()]),
    "a set": (lambda x, s, n: {s}, list),
    "a frozen set": (lambda x, s, n: [frozenset([s])], lambda r: [*r[0]]),
    "a slice": (lambda x, s, n: (slice(1, 2), x), lambda r: [r[0].start, r[0].stop, r[1]]),
    "a slice of inputs": (lambda x, s, n: slice(n, None), lambda r: [r.start, r.stop]),
    "a deque": (lambda x, s, n: collections.deque([x, s]), list),
    "a closure": (lambda x, s, n: lambda: x, lambda r: r()),
    "a partial function": (lambda x, s, n: functools.partial(np.add, x), lambda r: [r(1.0), *r.args]),
    "a generator": (lambda x, s, n: (v for v in (x, s)), list),
    "an iterator": (lambda x, s, n: zip([x], [s], strict=True), list),
    "an exception": (lambda x, s, n: ValueError(x, s), lambda r: [*r.args]),
    "an extra attribute": (lambda x, s, n: _with_attribute(x), lambda r: [r.one, r.other, r.extra]),
    "an array of objects": (lambda x, s, n: _object_array(x, s), list),
    "an object": (lambda x, s, n: types.SimpleNamespace(x=x, s=[s]), lambda r: [r.x, r.s]),
    "a class of the module": (lambda x, s, n: type("Made", (), {}), lambda r: [r.__module__, r.__name__]),
    "a pickle": (lambda x, s, n: pickle.dumps([s, n, s > 0.0, x]), lambda r: r),
}


def _types(part: Any) -> Any:
    return [*map(_types, part)] if type(part) in (list, tuple) else type(part)


@pytest.mark.filterwarnings("ignore:.*cannot be recorded")
@pytest.mark.parametrize("audit", ["powers", "always"])
@pytest.mark.parametrize("name", RESULTS)
def test_results_hold_plain_values(name: str, audit: Any) -> None:
    f, parts = RESULTS[name]
    g = ox.record(f, audit=audit)
    for k in range(5):
        args = X + k, 0.5 * k - 1.0, k
        result, expected = parts(g(*args)), parts(f(*args))
        assert _types(result) == _types(expected)
        assert equal(result, expected)
    assert g.why is not None


def _kept(x: Any) -> Any:
    LEFT.append({x[0]})
    LEFT.append(lambda: x)
    BY_NUMBER[x.size * 0.5] = [x]
    return x * 2.0


@pytest.mark.filterwarnings("ignore:.*cannot be recorded")
def test_what_a_function_leaves_in_containers_is_plain() -> None:
    g = ox.record(_kept)
    for k in range(4):
        LEFT.clear()
        BY_NUMBER.clear()
        assert equal(g(X + k), (X + k) * 2.0)
        numbers, closure = LEFT
        assert [type(number) for number in numbers] == [np.float64]
        assert type(closure()) is np.ndarray
        assert equal([*BY_NUMBER.values()], [[X + k]])


def test_a_closure_reads_the_present_values_of_globals() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scaled = ox.record(lambda x: lambda: x * SCALE)(X)
    SCALE[0] = 5.0
    try:
        assert equal(scaled(), X * SCALE)
    finally:
        SCALE[0] = 2.0


# --- truth values by identity -----------------------------------------------------------------------------------------


def _is_true(value: Any) -> float:
    return 1.0 if value is True else 2.0


class Flags:
    """Methods that compare truth values by identity."""

    @staticmethod
    def of(value: Any) -> float:
        return 1.0 if value is False else 2.0


def _matched(s: Any) -> float:
    match s > 0.0:
        case True:
            return 1.0
        case False:
            return 2.0


TRUTHS: dict[str, Callable[[Any, Any], Any]] = {
    "is": lambda x, s: x if (s > 0.0) is True else -x,
    "is not": lambda x, s: x if (s > 0.0) is not False else -x,
    "match": lambda x, s: x * _matched(s),
    "a helper": lambda x, s: x * _is_true(s > 0.0),
    "a method": lambda x, s: x * Flags.of(s > 0.0),
    "a list": lambda x, s: [value is True for value in (s > 0.0, s > 1.0)],
    "an item": lambda x, s: (x > 2.0)[0].item() is True,
    "where": lambda x, s: (xp.where(s > 0.0, x, -x), (s > 0.0) is True),
}


@pytest.mark.parametrize("audit", ["powers", "always"])
@pytest.mark.parametrize("name", TRUTHS)
def test_truth_values_are_those_of_python(name: str, audit: Any) -> None:
    f, g = TRUTHS[name], ox.record(TRUTHS[name], audit=audit)
    for k, s in enumerate([-1.0, 0.5, 2.0, -2.0, 0.25, 3.0]):
        assert equal(g(X + k, s), f(X + k, s))
    assert g.why is None


def test_a_function_without_identity_records_comparisons() -> None:
    g = ox.record(lambda x, s: xp.where(s > 0.0, x, -x))
    for s in (1.0, -1.0, 2.0):
        assert equal(g(X, s), X if s > 0.0 else -X)
    assert len(g.recordings) == 1


@pytest.mark.parametrize("value", [X, 2.0, 3], ids=["array", "float", "integer"])
def test_type_answers_in_namespaces_that_are_no_modules(value: Any) -> None:
    def ask(value: Any) -> Any:
        return type(value), type(value * 2)

    f = types.FunctionType(ask.__code__, {"__name__": "generated"})
    assert ox.record(f)(value) == f(value)


@pytest.mark.parametrize("ask", [hash, lambda x: setattr(x, "attribute", 1), lambda x: x @ "text"])
def test_errors_name_the_class_of_the_plain_value(ask: Callable[[Any], Any]) -> None:
    def f(x: Any) -> str:
        try:
            ask(x)
        except (TypeError, AttributeError, ValueError) as error:
            return str(error)
        return ""

    assert ox.record(f)(X) == f(X)


VIEWS: dict[str, Callable[[Any], Any]] = {
    "broadcast arrays": lambda x: np.broadcast_arrays(x * 2.0, np.ones((2, 6))),
    "broadcast columns": lambda x: np.broadcast_arrays(np.ones((2, 1)), x[:, :1] + 1.0),
    "broadcast": lambda x: (np.broadcast_to(x, (3, 2, 6)), xp.broadcast_to(x * 2.0, (3, 2, 6))),
    "a broadcast constant": lambda x: (x * 1.0, np.broadcast_to(np.ones((2, 6)), (3, 2, 6))[0]),
    "windows": lambda x: np.lib.stride_tricks.sliding_window_view(x * 2.0, 3, axis=1),
    "a diagonal": lambda x: (np.diagonal(x * 2.0), x.diagonal(), xp.linalg.diagonal(x * 2.0)),
    "parts": lambda x: ((x * 1j).real, (x * 1j).imag, (x * 2.0).real, np.imag(x * 2.0)),
    "indices": lambda x: ((x * 2.0)[::-1], x[:, ::2], (x * 2.0)[None]),
    "orders": lambda x: ((x * 2.0).T, np.moveaxis(x, 0, 1), np.asfortranarray(x * 2.0)),
    "shapes": lambda x: ((x * 2.0).ravel(), x.reshape(3, 4), x.flatten(), np.atleast_3d(x)),
    "pieces": lambda x: (np.split(x * 2.0, 2, axis=1), xp.unstack(x), np.meshgrid(x[0], x[1], copy=False)),
    "constants": lambda x: (x * 1.0, np.ones((2, 3)).T, np.arange(6.0)[1:3]),
    "complex constants": lambda x: (x * 1.0, np.zeros_like(x, complex), np.array(["a", "b"])),
    "itself": lambda x: (x, x[0], x.T),
}


@pytest.mark.parametrize("is_writable", [True, False])
@pytest.mark.parametrize("f", VIEWS.values(), ids=VIEWS)
def test_results_are_views_that_are_written_to_as_those_of_the_function(f, is_writable):
    g = ox.record(f, audit="never")
    for at in range(3):
        x = np.arange(12.0).reshape(2, 6) + at
        x.flags.writeable = is_writable or not at
        assert _memory(g(x), x) == _memory(f(x), x)
    assert g.replays == 2 or f in (VIEWS["windows"], VIEWS["orders"]), g


def _memory(result: Any, x: np.ndarray) -> list[Any]:
    """What tells of the memory of the arrays of a result."""
    arrays = tree.leaves(result)
    flags = [(each.flags.num & 0x0503, each.strides) for each in arrays]
    return [flags, *([np.may_share_memory(each, other) for other in (x, *arrays)] for each in arrays)]
