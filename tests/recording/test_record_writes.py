"""Functions that write to lists, dictionaries and objects: the recorded function has the results and the effects of the function."""

from __future__ import annotations

import array
import collections
import copy
import dataclasses
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_record import X, equal

import oxigrad as ox
from oxigrad import xp
from oxigrad.recording.traced import Traced


@dataclasses.dataclass
class Counted:
    weight: Any
    count: float = 0.0


class Held:
    pass


class WithSlots:
    __slots__ = ("last",)


def a_number(state: Any, x: Any) -> Any:
    state["count"] = state["count"] + 1.0
    return x * state["count"]


def an_array(state: Any, x: Any) -> Any:
    state["velocity"] = 0.5 * state["velocity"] + x
    return xp.sum(state["velocity"])


def a_product(state: Any, x: Any) -> Any:
    state["last"] = x * 2.0
    return x + 1.0


def an_argument(state: Any, x: Any) -> Any:
    state["last"] = x
    return x + 1.0


def a_constant(state: Any, x: Any) -> Any:
    state["count"] = 1.0
    return x + 1.0


def a_flag(state: Any, x: Any) -> Any:
    state["flag"] = True
    return x + 1.0


def an_item_less(state: Any, x: Any) -> Any:
    return x * state.pop("count", 5.0)


def a_list(state: Any, x: Any) -> Any:
    state["history"].append(x * 1.0)
    return x * len(state["history"])


def an_order(state: Any, x: Any) -> Any:
    state["history"].reverse()
    return x * state["history"][0]


def below(state: Any, x: Any) -> Any:
    state["below"]["last"] = x * 2.0
    return x + 1.0


def an_attribute(state: Any, x: Any) -> Any:
    state["counted"].count = state["counted"].count + 1.0
    return x * state["counted"].count


WRITES = (
    a_number,
    an_array,
    a_product,
    an_argument,
    a_constant,
    a_flag,
    an_item_less,
    a_list,
    an_order,
    below,
    an_attribute,
)


def a_state() -> dict[str, Any]:
    return {
        "count": 0.0,
        "velocity": np.ones(5),
        "last": X * 2.0,
        "flag": False,
        "history": [1.0, 2.0],
        "below": {"last": X * 2.0},
        "counted": Counted(np.ones(5)),
    }


# A function of the state, and the call of it by the array alone; the recorded function has the state as argument, capture, or attribute.
def _of_argument(write: Callable[..., Any], state: Any, transform: Callable[..., Any]) -> Callable[..., Any]:
    f = transform(write)
    return lambda x: f(state, x)


def _of_capture(write: Callable[..., Any], state: Any, transform: Callable[..., Any]) -> Callable[..., Any]:
    return transform(lambda x: write(state, x))


def _of_object(write: Callable[..., Any], state: Any, transform: Callable[..., Any]) -> Callable[..., Any]:
    held = types.SimpleNamespace(state=state)
    return transform(lambda x: write(held.state, x))


def _of_attributes(write: Callable[..., Any], state: Any, transform: Callable[..., Any]) -> Callable[..., Any]:
    held = Held()
    held.__dict__ = state
    return transform(lambda x: write(held.__dict__, x))


PLACES = (_of_argument, _of_capture, _of_object, _of_attributes)


def _plain(state: Any) -> bool:
    return not any(isinstance(leaf, Traced) for leaf in ox.tree.leaves({**state, "counted": vars(state["counted"])}))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("write", WRITES)
def test_writes_have_their_effects_at_each_call(write: Callable[..., Any], place: Callable[..., Any]) -> None:
    own, other = a_state(), a_state()
    f, g = place(write, own, lambda f: f), place(write, other, ox.record)
    y = X + 1.0
    for x in (X, X, X, y, y, X):
        assert equal(g(x), f(x))
        assert _plain(other)
        assert equal({**other, "counted": vars(other["counted"])}, {**own, "counted": vars(own["counted"])})
        for state in (own, other):  # what the function sets is set back
            state["flag"] = False
            state["count"] = 0.0 if x is y else state.get("count", 3.0)


def test_a_slot_that_is_written_holds_no_traced_value() -> None:
    held = WithSlots()
    held.last = X * 2.0

    def f(x: Any) -> Any:
        held.last = x * 2.0
        return x + 1.0

    g = ox.record(f)
    for x in (X, X, X + 1.0, X):
        g(x)
        assert type(held.last) is np.ndarray
        assert equal(held.last, x * 2.0)


def test_what_a_function_makes_itself_is_recorded() -> None:
    def f(state: Any, x: Any) -> Any:
        made, counted = dict(copy.copy(state)), Counted(x)
        made["last"] = x * 2.0
        counted.count += 1.0
        history = [made["last"]]
        history.append(x)
        return made["last"] + history[1] * counted.count

    g, state = ox.record(f), {"last": X}
    for x in (X, X + 1.0, X):
        assert equal(g(state, x), f(state, x))
    assert g.why is None


class Registry(set[Any]):
    """A class below one of Python's own containers."""


HOLDERS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "a Counter": (collections.Counter, lambda holder: holder.update("a")),
    "a defaultdict": (lambda: collections.defaultdict(list), lambda holder: holder["a"].append(1)),
    "an OrderedDict": (collections.OrderedDict, lambda holder: holder.update({len(holder): 1})),
    "a UserDict": (collections.UserDict, lambda holder: holder.update({len(holder): 1})),
    "a UserList": (collections.UserList, lambda holder: holder.append(1)),
    "a deque": (collections.deque, lambda holder: holder.append(1)),
    "a set": (set, lambda holder: holder.add(len(holder))),
    "a class below set": (Registry, lambda holder: holder.add(len(holder))),
    "a bytearray": (bytearray, lambda holder: holder.append(1)),
    "an array of Python's": (lambda: array.array("d"), lambda holder: holder.append(1.0)),
}


@pytest.mark.parametrize("name", HOLDERS)
def test_what_grows_in_containers_of_the_standard_library_is_not_lost(name: str) -> None:
    make, write = HOLDERS[name]
    holder, expected = make(), make()

    def f(x: Any) -> Any:
        write(holder)
        return x * 2

    g = ox.record(f)
    for at in range(9):
        write(expected)
        assert equal(g(X + at), (X + at) * 2)
        assert holder == expected
    assert "changes" in str(g.why)


@pytest.mark.parametrize("kind", [collections.OrderedDict, collections.Counter, collections.UserDict])
def test_arrays_in_containers_of_the_standard_library_are_inputs(kind: Callable[..., Any]) -> None:
    holder = kind({"b": np.ones(5), "a": np.full(5, 2.0)})

    def f(x: Any) -> Any:
        return [x * each for each in holder.values()]

    g = ox.record(f, audit="never")
    for at in range(3):
        assert equal(g(X + at), f(X + at))
    holder["a"][0] = 7.0
    assert equal(g(X), f(X))
    holder["b"] = np.full(5, 3.0)
    assert equal(g(X), f(X))
    assert g.why is None


def test_attributes_of_functions_are_inputs_and_writes_to_them_are_not_lost() -> None:
    def f(x: Any) -> Any:
        return x * f.scale  # type: ignore[attr-defined]

    f.scale = np.ones(5)  # type: ignore[attr-defined]
    g = ox.record(f, audit="never")
    for at in range(3):
        assert equal(g(X + at), f(X + at))
    f.scale[0] = 4.0  # type: ignore[attr-defined]
    assert equal(g(X), f(X))
    assert g.why is None

    def counted(x: Any) -> Any:
        counted.calls = getattr(counted, "calls", 0) + 1  # type: ignore[attr-defined]
        return x * 2

    g = ox.record(counted)
    for _ in range(9):
        g(X)
    assert counted.calls == 9  # type: ignore[attr-defined]
    assert "calls" in str(g.why)


def test_a_cache_that_was_empty_holds_plain_values() -> None:
    cache: dict[str, Any] = {}

    def f(x: Any) -> Any:
        if "sum" not in cache:
            cache["sum"] = np.sum(x)
        return x * cache["sum"]

    g = ox.record(f)
    for at in range(4):
        assert equal(g(X + at), (X + at) * np.sum(X))
        assert type(cache["sum"]) is np.float64
