"""The contract of a recording: inputs by name are read at each call, writes are refused, and audits find that a constant has changed."""

from __future__ import annotations

import dataclasses
import functools
import random
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import tree, xp
from oxigrad.recording.bits import is_same

X = np.linspace(0.1, 0.9, 5)


def equal(a: Any, b: Any) -> bool:
    """Whether two trees have the same structure, types and bits."""
    (one, its), (other, their) = tree.flatten(a), tree.flatten(b)
    return its == their and all(map(is_same, one, other))


def agrees(g: Any, f: Callable[..., Any], *args: Any) -> bool:
    """Whether a recorded function gives the result of the function."""
    return equal(g(*args), f(*args))


# --- what is captured --------------------------------------------------------------------------------------------------

WEIGHT = np.arange(5.0)
RATE = 0.5
COUNT = 2
LAYERS = [np.ones(5), np.full(5, 2.0)]
TABLE = {"scale": np.array(2.0), "names": ["a"]}


def helper(x: Any) -> Any:
    return x * WEIGHT


def other_helper(x: Any) -> Any:
    return x + WEIGHT


@dataclasses.dataclass
class Model:
    weight: Any
    bias: float = 1.0

    def __call__(self, x: Any) -> Any:
        return x * self.weight * RATE + self.bias


class Plain:
    """An object that is no tree."""

    def __init__(self) -> None:
        self.scale = np.array(3.0)

    def apply(self, x: Any) -> Any:
        return x * self.scale


MODEL = Model(np.arange(5.0))
PLAIN = Plain()


def reads_layers(x: Any) -> Any:
    for layer in LAYERS:
        x = xp.tanh(x * layer)
    return x


def closure() -> tuple[Callable[[Any], Any], Callable[[Any], None]]:
    captured = np.ones(5)

    def f(x: Any) -> Any:
        return x * captured

    def rebind(value: Any) -> None:
        nonlocal captured
        captured = value

    return f, rebind


def _set(name: str, value: Any) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda patch: patch.setitem(globals(), name, value)


def _write(read: Callable[[], Any], value: float) -> Callable[[pytest.MonkeyPatch], None]:
    def change(patch: pytest.MonkeyPatch) -> None:
        array = read()
        patch.setitem(_KEPT, id(array), array.copy())
        array[...] = value

    return change


_KEPT: dict[int, Any] = {}

CHANGES: dict[str, tuple[Callable[..., Any], Callable[[pytest.MonkeyPatch], None]]] = {
    "a global array in place": (lambda x: x * WEIGHT, _write(lambda: WEIGHT, 3.0)),
    "a global array rebound": (lambda x: x * WEIGHT, _set("WEIGHT", np.full(5, 7.0))),
    "a global array of another shape": (lambda x: xp.sum(x) * xp.sum(WEIGHT), _set("WEIGHT", np.ones(3))),
    "a global array computed with": (lambda x: x * np.exp(WEIGHT * 2).sum(), _write(lambda: WEIGHT, 0.25)),
    "a view of a global array": (lambda x: x * WEIGHT[::-1], _write(lambda: WEIGHT, 0.75)),
    "a global float": (lambda x: x * RATE, _set("RATE", 0.75)),
    "a global integer": (lambda x: x * COUNT, _set("COUNT", 5)),
    "a global integer as a loop": (lambda x: functools.reduce(lambda y, _: y * x, range(COUNT), x), _set("COUNT", 4)),
    "a global flag": (lambda x: x if COUNT > 2 else -x, _set("COUNT", 3)),
    "a helper's global": (lambda x: helper(x), _write(lambda: WEIGHT, 2.0)),
    "a helper rebound": (lambda x: helper(x), _set("helper", other_helper)),
    "a list's array in place": (reads_layers, _write(lambda: LAYERS[1], 0.5)),
    "a list rebound": (reads_layers, _set("LAYERS", [np.ones(5)])),
    "a list's item": (reads_layers, lambda patch: patch.setitem(globals(), "LAYERS", [*LAYERS, np.full(5, 0.3)])),
    "a dict's array": (lambda x: x * TABLE["scale"], _write(lambda: TABLE["scale"], 5.0)),
    "a dict's key": (lambda x: x * len(TABLE), lambda patch: patch.setitem(TABLE, "more", 1.0)),
    "a model's array": (lambda x: MODEL(x), _write(lambda: MODEL.weight, 5.0)),
    "a model's float": (lambda x: MODEL(x), lambda patch: patch.setattr(MODEL, "bias", 2.0)),
    "a model that is called": (MODEL, _write(lambda: MODEL.weight, 6.0)),
    "an object's array": (lambda x: PLAIN.apply(x), _write(lambda: PLAIN.scale, 5.0)),
    "an object's attribute": (lambda x: PLAIN.apply(x), lambda patch: patch.setattr(PLAIN, "scale", 2.5)),
    "a bound method": (PLAIN.apply, lambda patch: patch.setattr(PLAIN, "scale", 1.5)),
    "a partial's array": (functools.partial(lambda w, x: w * x, WEIGHT), _write(lambda: WEIGHT, 9.0)),
    "a default": (lambda x, w=WEIGHT: x * w, _write(lambda: WEIGHT, 8.0)),
}


@pytest.fixture
def restored() -> Any:
    """Writes of the test to arrays of this module are undone."""
    arrays = [WEIGHT, *LAYERS, TABLE["scale"], MODEL.weight, PLAIN.scale]
    kept = [array.copy() for array in arrays]
    yield
    for array, values in zip(arrays, kept, strict=True):
        array[...] = values


@pytest.mark.parametrize("transform", [lambda f: f, lambda f: ox.grad(lambda x: xp.sum(f(x) ** 2))], ids=["f", "grad"])
@pytest.mark.parametrize("name", CHANGES)
def test_what_a_function_reads_by_name_is_an_input(name, transform, monkeypatch, restored):
    function, change = CHANGES[name]
    f = transform(function)
    g = ox.record(f)
    assert agrees(g, f, X)
    assert agrees(g, f, X + 1)
    assert g.why is None, g.why
    change(monkeypatch)
    assert agrees(g, f, X)
    assert agrees(g, f, X + 1)
    monkeypatch.undo()
    assert agrees(g, f, X)


CONSTANTS = {
    "a method's global": (lambda x: MODEL(x), _set("RATE", 0.125)),
    "a method": (lambda x: MODEL(x), lambda patch: patch.setattr(Model, "__call__", lambda self, x: x + self.weight)),
}


@pytest.mark.parametrize("transform", [lambda f: f, lambda f: ox.grad(lambda x: xp.sum(f(x) ** 2))], ids=["f", "grad"])
@pytest.mark.parametrize("name", CONSTANTS)
def test_a_change_of_a_constant_is_found_at_the_next_audit(name, transform, monkeypatch):
    function, change = CONSTANTS[name]
    f = transform(function)
    g = ox.record(f)
    for at in range(2):
        assert agrees(g, f, X + at)
    change(monkeypatch)
    g(X)  # call 3
    with pytest.raises(ox.StaleRecordingError) as caught:
        g(X)
    assert (caught.value.last_good, caught.value.call) == (2, 4)
    for _ in range(3):
        assert agrees(g, f, X)
    assert len(g.recordings) == 1


def test_a_captured_array_is_an_input():
    """A change in place, or another array of its kind, makes no further recording."""
    f, rebind = closure()
    g = ox.record(f)
    for value in (2.0, 3.0):
        assert agrees(g, f, X)
        rebind(np.full(5, value))
    assert agrees(g, f, X)
    assert len(g.recordings) == 1
    assert g.why is None


# --- what differs from call to call --------------------------------------------------------------------------------------


def draws(x: Any) -> Any:
    return x * np.random.default_rng().random()


def reads_the_clock(x: Any) -> Any:
    return x + time.perf_counter()


def draws_by_python(x: Any) -> Any:
    return x * random.random()


def prints(x: Any) -> Any:
    print("called")  # noqa: T201
    return x * 2


_CALLS: list[int] = []


def appends(x: Any) -> Any:
    _CALLS.append(1)
    return x * len(_CALLS)


def writes(x: Any) -> Any:
    x[0] = 1.0
    return x * 2


_TOTAL = 0.0


def counts(x: Any) -> Any:
    global _TOTAL  # noqa: PLW0603
    _TOTAL += 1.0
    return x * _TOTAL


def writes_a_global(x: Any) -> Any:
    LAYERS[0][1] += 1.0
    return x * LAYERS[0]


REFUSED = {
    "draws": (draws, "the same bits"),
    "draws_by_python": (draws_by_python, "the same bits"),
    "reads_the_clock": (reads_the_clock, "the same bits"),
    "appends": (appends, "_CALLS"),
    "writes": (writes, "array"),
    "counts": (counts, "_TOTAL"),
    "writes_a_global": (writes_a_global, "array"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_function_with_effects_runs_as_it_is(name, restored):
    function, word = REFUSED[name]
    g, before = ox.record(function), len(_CALLS)
    results = [g(X.copy()) for _ in range(3)]
    assert word in str(g.why)
    assert g.recordings == []
    assert "not recorded" in repr(g)
    if name == "appends":
        assert len(_CALLS) == before + 3
    if name.startswith("draws"):
        assert not equal(results[0], results[1])


def test_effects_without_a_trace_happen_at_audits_alone(capsys):
    g, printed = ox.record(prints), []
    for at in range(10):
        assert agrees(g, lambda x: x * 2, X + at)
        printed.append(bool(capsys.readouterr().out))
    assert [at for at, is_printed in enumerate(printed, 1) if is_printed] == [1, 2, 4, 8]


# --- branches ----------------------------------------------------------------------------------------------------------


def branches(x: Any) -> Any:
    return x * 2 if xp.sum(x) > 0 else x - 1


def by_float(x: Any) -> Any:
    return x * float(ox.stop_gradient(x)[0])


def by_index(x: Any) -> Any:
    return x[int(xp.argmax(x))] * x


def by_shape(x: Any) -> Any:
    return xp.sum(x[x > 0.5]) * x[x > 0.5].shape[0]


def by_loop(x: Any) -> Any:
    while float(ox.stop_gradient(xp.sum(x))) < 100:
        x = x * 2
    return x


BRANCHES = [branches, by_float, by_index, by_shape, by_loop]


@pytest.mark.parametrize("f", BRANCHES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("transform", [lambda f: f, lambda f: ox.grad(lambda x: xp.sum(f(x)))], ids=["f", "grad"])
def test_a_branch_on_data_is_checked(f, transform):
    f = transform(f)
    g = ox.record(f, limit=4)
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(12):
            assert agrees(g, f, rng.normal(size=5) + 0.5)


def test_both_sides_of_a_branch_are_recorded_once():
    g = ox.record(branches)
    for _ in range(4):
        assert agrees(g, branches, X)
        assert agrees(g, branches, -X)
    assert len(g.recordings) == 2
    assert g.why is None


def test_why_names_the_line_and_the_values():
    g = ox.record(branches)
    g(X)
    g(-X)
    assert g.why is not None
    path, old, new = g.why
    assert path.startswith(f"{__file__}:")
    assert (old, new) == (True, False)


def test_beyond_the_limit_the_function_runs_as_it_is_and_warns_once():
    g = ox.record(by_float, limit=2)
    assert agrees(g, by_float, X)
    assert agrees(g, by_float, X + 1)
    with pytest.warns(UserWarning, match=rf"recorded 2 times .*{__file__}:\d+: .* -> ") as caught:
        g(X + 2)
    assert len(caught) == 1
    assert agrees(g, by_float, X + 3)
    assert agrees(g, by_float, X)


# --- arguments -----------------------------------------------------------------------------------------------------------

ARGUMENTS = {
    "shape": ((X,), (X[:3],)),
    "dtype": ((X,), (X.astype(np.float32),)),
    "layout": ((np.ones((3, 4)),), (np.ones((4, 3)).T,)),
    "a number": ((2.0,), (np.float64(2.0),)),
    "an integer": ((2,), (2.0,)),
    "a flag": ((True,), (False,)),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_another_kind_of_argument_is_recorded_anew(name):
    def f(x: Any) -> Any:
        return (x * 3 + 1) * (x if x is not True else 7)

    first, second = ARGUMENTS[name]
    g = ox.record(f)
    for _ in range(2):
        assert agrees(g, f, *first)
        assert agrees(g, f, *second)
    assert len(g.recordings) == 2


def test_numbers_are_inputs_unless_python_sees_them():
    def f(x: Any, rate: float, step: int, power: int) -> Any:
        return sum((x * rate / step for _ in range(power)), x)

    g = ox.record(f)
    for step in range(1, 6):
        assert agrees(g, f, X, 0.1 * step, step, 2)
    assert len(g.recordings) == 1
    assert agrees(g, f, X, 0.1, 3, 4)
    assert len(g.recordings) == 2


def test_trees_keywords_and_the_argument_itself():
    def f(model: Any, *, c: float) -> Any:
        return {"same": model["w"], "sum": (model["w"] * c, model["layers"][0].weight)}

    model = {"w": X, "layers": [Model(np.ones(3))]}
    g = ox.record(f)
    for c in (1.0, 2.0):
        result = g(model, c=c)
        assert equal(result, f(model, c=c))
        assert result["same"] is X
    assert g.why is None


def test_constants_are_returned_as_copies():
    g = ox.record(lambda x: (np.ones(3), x))
    for _ in range(3):
        ones, _x = g(X)
        assert np.array_equal(ones, np.ones(3))
        ones[...] = 5.0


def test_equal_results_stay_apart():
    g = ox.record(lambda x: (xp.exp(x), xp.exp(x), (x * 2).reshape(5, 1), (x * 2).reshape(5, 1)))
    for _ in range(3):
        leaves = g(X)
        leaves[0][...] = 0.0
        leaves[2][...] = 0.0
        assert np.array_equal(leaves[1], np.exp(X), equal_nan=True) or np.allclose(leaves[1], np.exp(X))
        assert np.array_equal(leaves[3], (X * 2).reshape(5, 1))
