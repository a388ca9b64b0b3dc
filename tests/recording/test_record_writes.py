"""Functions that write to lists, dictionaries and objects: the recorded function has the results and the effects of the function."""

from __future__ import annotations

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
