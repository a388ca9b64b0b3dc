"""Calls of other kinds, the settings of a thread, lifetimes of what a recording holds, calls in calls, and threads."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from test_record import X, agrees

import oxigrad as ox
from oxigrad import _core
from oxigrad.recording.bits import is_same


class Text(str):
    """Text of another class."""

    __slots__ = ()


class Weights(np.ndarray):
    """An array of another class."""


# --- arguments -----------------------------------------------------------------------------------------------------------

A, B = np.arange(4.0), np.arange(4.0)
LEAVES = [
    A,
    A.copy(),
    A.astype(np.float32),
    A.astype(">f8"),
    A.astype(int),
    A.reshape(2, 2),
    A.reshape(2, 2).T,
    np.arange(8.0)[::2],
    A.view(Weights),
    np.array(1.0),
    np.float64(1.0),
    np.float32(1.0),
    np.int64(1),
    np.datetime64("2020-01-01"),
    np.timedelta64(1, "s"),
    np.timedelta64(1, "ms"),
    np.str_("a"),
    1,
    1.0,
    -0.0,
    True,
    False,
    1j,
    "a",
    b"a",
    Text("a"),
    len,
    np.float64,
    X.dtype,
    range(3),
]


def _reference(leaf: Any) -> Any:
    """The kind of a leaf, by which recordings tell calls apart, written in Python."""
    if type(leaf) is np.ndarray:
        return leaf.shape, leaf.dtype.str, leaf.flags.c_contiguous
    if isinstance(leaf, np.generic):
        return type(leaf), leaf.dtype.str
    if isinstance(leaf, np.ndarray) or type(leaf) in (int, float, complex):
        return type(leaf)
    return type(leaf), repr(leaf) if isinstance(leaf, (bool, str, bytes)) else id(leaf)


@pytest.mark.parametrize("at", range(len(LEAVES)))
def test_kinds_of_leaves(at):
    kind = _core.LeafKind(LEAVES[at], with_ints=True)
    for other in LEAVES:
        is_same_kind = _reference(other) == _reference(LEAVES[at])
        assert (kind == _core.LeafKind(other, with_ints=True)) is is_same_kind
        if is_same_kind:
            assert hash(kind) == hash(_core.LeafKind(other, with_ints=True))
    assert kind != LEAVES[at]


def test_integers_are_inputs_or_values():
    one, two = (_core.LeafKind(value, with_ints=True) for value in (1, 2))
    assert one == two
    assert one.is_input
    one, two = (_core.LeafKind(value, with_ints=False) for value in (1, 2))
    assert one != two
    assert not one.is_input
    assert one == _core.LeafKind(1, with_ints=False)


ARGUMENTS: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "one array twice": ((A, A), (A, B)),
    "two arrays": ((A, B), (A, A)),
    "a list for a tuple": (((A, 1.0), B), ([A, 1.0], B)),
    "keys in another order": (({"a": A, "b": B}, B), ({"b": B, "a": A}, B)),
    "a key more": (({"a": A}, B), ({"a": A, "b": B}, B)),
    "None": (({"a": A, "b": None}, B), ({"a": A, "b": B}, B)),
    "a flag": ((A, True), (A, 1)),
    "text": (({"a": A, "b": "one"}, B), ({"a": A, "b": "two"}, B)),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_of_another_kind_are_told_apart(name):
    def f(tree: Any, last: Any) -> Any:
        leaves = ox.tree.leaves(tree)
        total = sum(leaf * (at + 1.0) for at, leaf in enumerate(leaves) if not isinstance(leaf, str)) + last
        return (
            total * (2 if leaves[0] is last else 1) * (3 if "one" in map(str, leaves[1:]) else 1) * (last is not True)
        )

    g = ox.record(f)
    for _ in range(2):
        for args in ARGUMENTS[name]:
            assert agrees(g, f, *args)


def test_many_arrays_that_are_the_same_or_not():
    def f(arrays: Any) -> Any:
        return sum(array * len({id(each) for each in arrays}) for array in arrays)

    arrays = [np.full(2, float(at)) for at in range(40)]
    g = ox.record(f)
    for given in (arrays, [*arrays[:39], arrays[0]], arrays, arrays[:1] * 40):
        assert agrees(g, f, given)


# --- the settings of a thread ----------------------------------------------------------------------------------------------


def test_floating_errors_are_those_of_the_context():
    found: list[bool] = []

    def work() -> None:
        with np.errstate(over="raise"):
            found.append(_core.is_watched())
        found.append(_core.is_watched())

    assert not _core.is_watched()
    with np.errstate(divide="raise"):
        assert _core.is_watched()
        with np.errstate(divide="ignore"):
            assert not _core.is_watched()
        assert _core.is_watched()
        threading.Thread(target=work).start()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found[-2:] == [True, False]
    before = np.seterr(invalid="raise")
    try:
        assert _core.is_watched()
    finally:
        np.seterr(**before)
    with ox.debug_nans():
        assert _core.is_watched()
    assert not _core.is_watched()


# --- lifetimes -------------------------------------------------------------------------------------------------------------


class Held:
    """An object that a weak reference may follow, and a cycle runs through."""

    def __init__(self) -> None:
        self.weight, self.other = np.arange(5.0), None

    def apply(self, x: Any) -> Any:
        return x * self.weight


def _through_itself() -> tuple[Any, list[Any]]:
    held = Held()
    cell: list[Any] = []

    def f(x: Any) -> Any:
        return held.apply(x) * len(cell)

    g = ox.record(f)
    cell.append(g)
    return g, [weakref.ref(held), weakref.ref(f), weakref.ref(held.weight)]


def _through_an_argument() -> tuple[Any, list[Any]]:
    held = Held()
    g = ox.record(lambda x, t=held.weight: x * t)
    return g, [weakref.ref(held.weight)]


@pytest.mark.parametrize("make", [_through_itself, _through_an_argument], ids=lambda make: make.__name__)
def test_what_a_recording_holds_is_freed_with_it(make):
    g, followed = make()
    for _ in range(3):
        g(X)
    gc.collect()
    assert all(each() is not None for each in followed)
    followed.append(weakref.ref(g))
    del g
    gc.collect()
    assert [each() for each in followed] == [None] * len(followed)


def test_recordings_that_are_replaced_are_freed():
    namespace: dict[str, Any] = {"__name__": __name__}
    exec("def f(x):\n    return helper(x) * 2", namespace)  # noqa: S102 - a namespace of its own
    g, f, followed = ox.record(namespace["f"], limit=100), namespace["f"], []
    for at in range(5):
        namespace["helper"] = lambda x, at=at: x + at
        followed.append(weakref.ref(namespace["helper"]))
        for _ in range(2):
            assert agrees(g, f, X)
        assert g.why is None
    gc.collect()
    assert [each() is not None for each in followed] == [False] * 4 + [True]


# --- calls in calls, and threads ----------------------------------------------------------------------------------------------


def test_a_call_during_a_replay():
    world: dict[str, Any] = {}

    def f(x: Any, n: int) -> Any:
        return x + 1.0 if n == 0 else world["g"](x, n - 1) * n

    world["g"] = g = ox.record(f)
    for _ in range(3):
        assert np.array_equal(g(X, 3), (X + 1) * 6)


def test_threads_that_change_what_others_read():
    """A call sees the variable as it was when the call began or later, never a mixture of kinds, and nothing raises."""
    namespace: dict[str, Any] = {"weight": np.full(5, 1.0), "flag": 0, "__name__": __name__}
    exec("def f(x):\n    return x * weight + flag * 0", namespace)  # noqa: S102 - a namespace of its own
    g = ox.record(namespace["f"], limit=10_000)
    failed: list[Any] = []
    stop = threading.Event()

    def change() -> None:
        at = 0
        while not stop.is_set():
            at += 1
            namespace["weight"] = np.full(5, float(at % 7)) if at % 3 else np.full(5, float(at % 7), np.float32)
            namespace["flag"] = at % 2

    def call() -> None:
        for _ in range(150):
            try:
                result = g(np.ones(5))
            except Exception as error:  # noqa: BLE001 - shown by the test
                failed.append(error)
                return
            if not (len(set(result.tolist())) == 1 and 0 <= result[0] < 7):
                failed.append(result)

    changes, calls = threading.Thread(target=change), [threading.Thread(target=call) for _ in range(3)]
    for thread in (changes, *calls):
        thread.start()
    for thread in calls:
        thread.join()
    stop.set()
    changes.join()
    assert failed == []


def test_an_exception_in_a_guard_leaves_the_recording_whole():
    fails: list[int] = []

    def attributes(_: Any) -> dict[str, Any]:
        if fails:
            raise MemoryError("of the test")
        return {"rate": 2.0}

    holder: Any = type("Failing", (), {"__dict__": property(attributes), "__module__": __name__})()
    g = ox.record(lambda x: x * (1.0 if holder is not None else 2.0))
    before = g(X)
    fails.append(1)
    with pytest.raises(MemoryError):
        g(X)
    fails.clear()
    for _ in range(2):
        assert is_same(g(X), before)
    assert g.why is None
