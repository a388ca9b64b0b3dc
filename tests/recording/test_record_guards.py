"""What a function reads is changed in every way that Python has: inputs by name at once, constants at the next audit.

The table states changes; the oracle is the function itself, results or exception alike.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import io
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from test_record import X, agrees, equal

import oxigrad as ox
from oxigrad import xp


class Base:
    rate: Any = 2.0
    table: Any = [np.ones(5), {"more": np.array(3.0)}]  # noqa: RUF012 - changed by the tests
    offset: Any = -0.0

    def gain(self) -> Any:
        return 3.0

    def scaled(self, x: Any) -> Any:
        return x * self.rate * self.gain() + self.table[0] * self.table[1]["more"] + np.copysign(1.0, self.offset)


class Derived(Base):
    pass


def outcome(f: Callable[..., Any], *args: Any) -> Any:
    """The result of a call, or the class and text of its exception."""
    try:
        return f(*args)
    except Exception as error:  # noqa: BLE001 - compared
        return type(error).__name__, str(error)


class World:
    """A module's namespace and objects of its own, for each row of the table."""

    def __init__(self) -> None:
        self.base = type("Base", (Base,), {"table": [np.ones(5), {"more": np.array(3.0)}], "__module__": __name__})
        self.derived = type("Derived", (self.base,), {"__module__": __name__})
        self.object = self.derived()
        self.space: dict[str, Any] = {
            "np": np,
            "ox": ox,
            "xp": xp,
            "__name__": __name__,
            "object": self.object,
            "weight": np.arange(5.0),
            "rate": 0.5,
            "flag": True,
            "name": "a",
            "pair": (np.ones(5), [2.0, np.full(5, 4.0)]),
            "options": {"power": 2, "names": ["a", "b"]},
        }
        exec(_SOURCE, self.space)  # noqa: S102 - a namespace of this test's own

    def __getitem__(self, name: str) -> Any:
        return self.space[name]


_SOURCE = """
def helper(x, scale=2.0, *, shift=1.0):
    return x * scale + shift

def of_object(x):
    return object.scaled(x)

def of_globals(x):
    y = x * weight * rate
    return y if flag else -y

def of_helper(x):
    return helper(x) * abs(x).sum()

def of_trees(x):
    first, (second, third) = pair
    return (x * first * second + third) ** options["power"] * len(options["names"])

def of_text(x):
    return {"a": x, "b": -x}[name]

helper.factor = 3.0

def of_attribute(x):
    return x * helper.factor

gains = [2.0]
limits = np.full(5, 3.0)
by_rule = ox.custom_vjp(lambda x: x * x, lambda g, y, x: g * x * gains[0] * limits)
by_residuals = ox.custom_vjp(lambda x: x * x)
by_residuals.defvjp(lambda x: (x * x, x), lambda x, g: (g * x * gains[0] * limits,))
by_name = ox.define_vjp(lambda g, x: g * x * gains[0] * limits)(lambda x: x * x)
by_tangent = ox.define_jvp(lambda t, x: t * x * gains[0] * limits)(lambda x: x * x)
root = ox.implicit(lambda y, x: y * gains[0] * limits - x, lambda x: x / (gains[0] * limits))

def of_rule(x):
    return by_rule(x)

def of_residuals(x):
    return by_residuals(x)

def of_named_rule(x):
    return by_name(x)

def of_tangent(x):
    return by_tangent(x)

def of_root(x):
    return root(x)
"""

_OF_RULES = ("of_rule", "of_residuals", "of_named_rule", "of_tangent", "of_root")


def _in_class(name: str, value: Any, owner: str = "base") -> Callable[[World], None]:
    return lambda world: setattr(getattr(world, owner), name, value)


def _as_global(name: str, value: Any) -> Callable[[World], None]:
    return lambda world: world.space.__setitem__(name, value)


def _replaced_dict(world: World) -> None:
    world.object.__dict__ = {"rate": 7.0}


def _other_code(world: World) -> None:
    world["helper"].__code__ = (lambda x, scale=2.0, *, shift=1.0: x - scale + shift).__code__


@contextlib.contextmanager
def _deprecated() -> Iterator[None]:
    """A block that assigns to what NumPy 2.5 deprecates assignments to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def _other_weight_dtype(world: World) -> None:
    with _deprecated():
        world["weight"].dtype = np.int64


def _other_weight_shape(world: World) -> None:
    with _deprecated():
        world["weight"].shape = (1, 5)


class Text(str):
    __slots__ = ()

    def __hash__(self) -> int:
        return hash("b")

    def __eq__(self, other: object) -> bool:
        return other == "b"


def _added(weights: Any, other: Any) -> Any:
    return np.asarray(weights) + other


# A subclass whose products are sums.
Weights: Any = type("Weights", (np.ndarray,), {"__mul__": _added, "__rmul__": _added})


def _other_class(world: World) -> None:
    other: Any = type("Other", (world.base,), {"gain": lambda _: 9.0, "__module__": __name__})
    world.object.__class__ = other


def _other_bases(world: World) -> None:
    world.derived.__bases__ = (type("Other", (world.base,), {"gain": lambda _: 9.0, "__module__": __name__}),)


def _other_rule(world: World) -> None:
    world["by_residuals"].defvjp(lambda x: (x * x, x), lambda x, g: (7.0 * g * x,))


CHANGES: dict[str, tuple[str, Callable[[World], Any]]] = {
    "an attribute of a base class": ("of_object", _in_class("rate", 5.0)),
    "an attribute of a base class, of another type": ("of_object", _in_class("rate", np.float32(2.0))),
    "an attribute in a class below": ("of_object", _in_class("rate", 5.0, "derived")),
    "an attribute in the object": ("of_object", lambda world: setattr(world.object, "rate", 5.0)),
    "the object's namespace": ("of_object", _replaced_dict),
    "a zero of the other sign": ("of_object", _in_class("offset", 0.0)),
    "an array in an attribute of a class": ("of_object", lambda world: world.base.table[0].fill(3.0)),
    "an item of an attribute of a class": ("of_object", lambda world: world.base.table.__setitem__(0, np.full(5, 9.0))),
    "an array below an attribute of a class": ("of_object", lambda world: world.base.table[1]["more"].fill(8.0)),
    "a method": ("of_object", _in_class("gain", lambda _: 4.0)),
    "a method in a class below": ("of_object", _in_class("gain", lambda _: 4.0, "derived")),
    "a method in the object": ("of_object", lambda world: setattr(world.object, "gain", lambda: 4.0)),
    "an object of another class": ("of_object", lambda world: setattr(world.object, "__class__", world.base)),
    "an object of a class with other methods": ("of_object", _other_class),
    "other bases of a class": ("of_object", _other_bases),
    "an attribute of a function": ("of_attribute", lambda world: setattr(world["helper"], "factor", 5.0)),
    "an attribute of a function that is an array": (
        "of_attribute",
        lambda world: setattr(world["helper"], "factor", X),
    ),
    "another rule": ("of_residuals", _other_rule),
    **{f"a list that {name} reads": (name, lambda world: world["gains"].__setitem__(0, 5.0)) for name in _OF_RULES},
    **{f"an array that {name} reads": (name, lambda world: world["limits"].fill(5.0)) for name in _OF_RULES},
    "an object replaced": ("of_object", lambda world: world.space.__setitem__("object", world.base())),
    "a global deleted": ("of_globals", lambda world: world.space.__delitem__("weight")),
    "a global deleted that is guarded": ("of_globals", lambda world: world.space.__delitem__("flag")),
    "a global of a class that is no tree": ("of_globals", _as_global("weight", object())),
    "a float that is an integer": ("of_globals", _as_global("rate", 1)),
    "a float that is an array": ("of_globals", _as_global("rate", np.ones(5))),
    "a flag that equals the old one": ("of_globals", _as_global("flag", 1)),
    "a flag": ("of_globals", _as_global("flag", False)),
    "a dtype in place": ("of_globals", _other_weight_dtype),
    "a shape in place": ("of_globals", _other_weight_shape),
    "an array of a subclass": ("of_globals", _as_global("weight", np.arange(5.0).view(Weights))),
    "an array in another layout": ("of_globals", _as_global("weight", np.arange(10.0)[::2])),
    "an array of the other byte order": ("of_globals", _as_global("weight", np.arange(5.0).astype(">f8"))),
    "a list in its place": ("of_globals", _as_global("weight", [1.0, 2.0])),
    "text": ("of_text", _as_global("name", "b")),
    "text of a subclass": ("of_text", _as_global("name", Text("a"))),
    "a default": ("of_helper", lambda world: setattr(world["helper"], "__defaults__", (3.0,))),
    "no defaults": ("of_helper", lambda world: setattr(world["helper"], "__defaults__", None)),
    "a default by name": ("of_helper", lambda world: world["helper"].__kwdefaults__.update(shift=5.0)),
    "no defaults by name": ("of_helper", lambda world: setattr(world["helper"], "__kwdefaults__", None)),
    "code": ("of_helper", _other_code),
    "a function of Python's that is shadowed": ("of_helper", _as_global("abs", lambda x: -x)),
    "a helper that is no function": ("of_helper", _as_global("helper", functools.partial(np.multiply, 2.0))),
    "an item of a list in a tuple": ("of_trees", lambda world: world["pair"][1].__setitem__(0, 3.0)),
    "an item more": ("of_trees", lambda world: world["pair"][1].append(3.0)),
    "an item less": ("of_trees", lambda world: world["pair"][1].pop()),
    "an array in a list in a tuple": ("of_trees", lambda world: world["pair"][1][1].fill(-1.0)),
    "a list for a tuple": ("of_trees", lambda world: world.space.__setitem__("pair", [*world["pair"]])),
    "an integer in a dict": ("of_trees", lambda world: world["options"].update(power=3)),
    "a key of a dict": ("of_trees", lambda world: world["options"].update(more=3)),
    "a list of text in a dict": ("of_trees", lambda world: world["options"]["names"].append("c")),
    "a tree that contains itself": ("of_trees", lambda world: world["pair"][1].append(world["pair"][1])),
    "nothing": ("of_object", lambda _: None),
}


@pytest.mark.parametrize("transform", [lambda f: f, lambda f: ox.grad(lambda x: xp.sum(f(x) ** 2))], ids=["f", "grad"])
@pytest.mark.parametrize("name", CHANGES)
def test_no_change_goes_unseen(name, transform):
    function, change = CHANGES[name]
    world = World()
    f = transform(world[function])
    g = ox.record(f, audit="always", on_stale="warn")
    assert agrees(g, f, X)
    assert agrees(g, f, X + 1)
    assert g.why is None, (g.why, repr(g))
    change(world)
    for x in (X, X + 1, X):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if name in CONSTANTS else "error")
            found = outcome(g, x)
        assert equal(found, outcome(f, x)), found


# Changes of what no name of the function holds, which an audit finds.
CONSTANTS = {
    *(name for name, (function, _) in CHANGES.items() if function in ("of_attribute", *_OF_RULES)),
    "a zero of the other sign",
    *(name for name in CHANGES if " class" in name or "method" in name or name.startswith("another rule")),
    "other bases of a class",
    "code",
    "a function of Python's that is shadowed",
}


@pytest.mark.parametrize("name", sorted(CONSTANTS & CHANGES.keys()))
def test_a_change_of_a_constant_is_found_at_the_next_audited_call(name):
    function, change = CHANGES[name]
    world = World()
    f = world[function]
    g = ox.record(f)
    for at in range(5):
        assert agrees(g, f, X + at)
    change(world)
    expected = outcome(f, X)
    for _ in range(2):
        outcome(g, X)
    if not equal(outcome(g, X), expected):  # call 8
        for _ in range(2):
            assert equal(outcome(g, X), expected)


def test_why_has_the_path_and_both_values():
    world = World()
    g: Any = ox.record(world["of_globals"])
    g(X)
    world.space["flag"] = False
    g(X)
    assert tuple(g.why) == ("flag", True, False)
    world.object.rate = 6.0
    g = ox.record(world["of_object"])
    g(X)
    vars(world.object)["more"] = 1
    g(X)
    assert tuple(g.why) == ("the number of attributes of Derived", 1, 2)


# --- slots ---------------------------------------------------------------------------------------------------------------


class Slotted:
    """An object whose attributes are in slots, one of which is empty."""

    __slots__ = ("__offset", "bias", "scale", "table")

    def __init__(self) -> None:
        self.scale, self.table, self.__offset = 2.0, np.arange(5.0), 0.5

    def apply(self, x: Any) -> Any:
        return x * self.scale + self.table + self.__offset + getattr(self, "bias", 0.0)


class WithNamespace(Slotted):
    """The same with a namespace of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.more = 1.0


SLOTS: dict[str, Callable[[Any], None]] = {
    "a number": lambda held: setattr(held, "scale", 3.0),
    "a slot that was empty": lambda held: setattr(held, "bias", 3.0),
    "a slot that is empty": lambda held: delattr(held, "table"),
    "an array in place": lambda held: held.table.fill(7.0),
    "a private one": lambda held: setattr(held, "_Slotted__offset", 4.0),
}


@pytest.mark.parametrize("make", [Slotted, WithNamespace])
@pytest.mark.parametrize("name", SLOTS)
def test_what_slots_hold_is_watched(name, make):
    held = make()

    def f(x: Any) -> Any:
        return held.apply(x) * held.scale

    g = ox.record(f)
    for _ in range(2):
        assert agrees(g, f, X)
    assert g.replays == 1
    SLOTS[name](held)
    if name == "a slot that is empty":
        with pytest.raises(AttributeError, match="table"):
            g(X)
    else:
        assert agrees(g, f, X)
        assert (g.why is None) is (name != "a slot that was empty")  # attributes are inputs


def test_what_an_object_of_a_library_holds_is_a_constant():
    held = collections.deque([2.0])
    g = ox.record(lambda x: x * held[0])
    for at in range(3):
        held[0] = float(at)
        assert np.array_equal(g(X), X * at)
    assert "the same bits" in str(g.why)


POINTS = np.linspace(0.0, 1.0, 6)
# Objects that hold arrays, calls of them with a factor, and the arrays.
WITH_ARRAYS: dict[str, tuple[Any, Callable[[Any, Any], Any], Callable[[Any], Any]]] = {
    "a frozen distribution": (
        xp.stats.norm(np.linspace(0.1, 0.5, 5), 2.0),
        lambda held, x: held.logpdf(x),
        lambda held: held.parameters["loc"],
    ),
    "a frozen discrete distribution": (
        xp.stats.poisson(np.linspace(1.0, 2.0, 5)),
        lambda held, x: x * held.pmf(2.0),
        lambda held: held.parameters["mu"],
    ),
    "a frozen multivariate distribution": (
        xp.stats.multivariate_normal(np.zeros(5), np.eye(5)),
        lambda held, x: held.logpdf(x),
        lambda held: held.parameters["mean"],
    ),
    "a spline": (
        xp.interpolate.CubicSpline(POINTS, POINTS**2),
        lambda held, x: x * held(0.3),
        lambda held: held.c,
    ),
    "a B-spline": (
        xp.interpolate.make_interp_spline(POINTS, POINTS**2),
        lambda held, x: x * held(0.3),
        lambda held: held.c,
    ),
    "a function on a grid": (
        xp.interpolate.RegularGridInterpolator((POINTS,), POINTS**2),
        lambda held, x: x * held(np.array([0.3])),
        lambda held: held.values,
    ),
}


@pytest.mark.parametrize("name", WITH_ARRAYS)
def test_arrays_of_distributions_and_interpolators_are_inputs(name: str) -> None:
    held, call, array = WITH_ARRAYS[name]

    def f(x: Any) -> Any:
        return xp.sum(call(held, x))

    g = ox.record(ox.value_and_grad(f))
    for _ in range(9):
        assert agrees(g, ox.value_and_grad(f), X)
        array(held)[...] += 0.25
    assert g.why is None
    assert g.replays == 8


# --- captured values in later recordings ---------------------------------------------------------------------------------


class Holder:
    """Places of captured values: each holds a function of `x` that reads ``first`` and ``second``, and sets them."""

    def __init__(self, name: str) -> None:
        self.space: dict[str, Any] = {"functools": functools, "__name__": __name__, "first": None, "second": None}
        exec(_HOLDERS, self.space)  # noqa: S102 - a namespace of this test's own
        self.function, self.set = self.space[name]()


_HOLDERS = """
def as_globals():
    def f(x):
        return x * first + second
    def put(*values):
        global first, second
        first, second = values
    return f, put

def of_a_helper():
    def helper(x):
        return x * first
    def f(x):
        return (lambda: helper(x) + second)()
    return f, as_globals()[1]

def as_cells():
    a = b = None
    def f(x):
        return x * a + b
    def put(*values):
        nonlocal a, b
        a, b = values
    return f, put

def as_defaults():
    def f(x, a=None, *, b=None):
        return x * a + b
    def put(a, b):
        f.__defaults__, f.__kwdefaults__ = (a,), {"b": b}
    return f, put

def in_a_tree():
    held = [{"a": None}, [None]]
    def f(x):
        return x * held[0]["a"] + held[1][0]
    def put(a, b):
        held[0]["a"], held[1][0] = a, b
    return f, put

def in_trees_that_are_replaced():
    held = [None], {"b": None}
    def f(x):
        return x * held[0][0] + held[1]["b"]
    def put(a, b):
        nonlocal held
        held = [a], {"b": b}
    return f, put

def as_keywords_of_a_partial_function():
    def added(x, a, b):
        return x * a + b
    held = functools.partial(added, a=None, b=None)
    return held, lambda a, b: held.keywords.update(a=a, b=b)

def as_keywords_of_a_captured_partial_function():
    held, put = as_keywords_of_a_partial_function()
    return lambda x: held(x), put

def as_the_object_of_a_method():
    class Model(list):
        def apply(self, x):
            return x * self[0] + self[1]
    held = Model([None, None])
    return held.apply, lambda a, b: held.__setitem__(slice(None), (a, b))
"""

VALUES: dict[str, Callable[[float, tuple[int, ...]], Any]] = {
    "arrays": lambda value, shape: np.full(shape, value),
    "floats": lambda value, _: value,
    "scalars of NumPy": lambda value, _: np.float64(value),
}


@pytest.mark.parametrize("transform", [lambda f: f, lambda f: ox.grad(lambda x: xp.sum(f(x) ** 2))], ids=["f", "grad"])
@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("name", re.findall(r"^def (\w+)", _HOLDERS, re.MULTILINE))
def test_later_recordings_read_what_is_captured_at_each_call(name, kind, transform):
    holder = Holder(name)
    holder.set(VALUES[kind](2.0, (5,)), VALUES[kind](3.0, (5,)))
    f = transform(holder.function)
    g = ox.record(f)
    # Arguments of another shape or dtype, and captured values in another layout, make a second recording under the same guards.
    arguments = [X, X, np.float32(X), np.float32(X), X[::2].repeat(2)[:5], X[:, None], X[:, None]]
    for at, x in enumerate([*arguments, *arguments]):
        first, second = (VALUES[kind](at + part, (5,)) for part in (0.5, 7.5))
        holder.set(first, second)
        assert agrees(g, f, x), (at, g.why)
        assert agrees(g, f, x), (at, g.why)
        if at % 3 == 1:
            holder.set(first, first)  # one object in two places
            assert agrees(g, f, x), (at, g.why)
            assert agrees(g, f, x), (at, g.why)
    assert g.replays > 8, repr(g)


# --- states that return ----------------------------------------------------------------------------------------------------


def twice(x: Any) -> Any:
    return x + x


def thrice(x: Any) -> Any:
    return x + x + x


STATES: dict[str, list[Any]] = {
    "an integer of a range": [2, 3],
    "a text": ["tanh", "sin"],
    "a function": [np.tanh, np.sin],
    "three functions": [np.tanh, np.sin, np.cos],
    "own functions": [twice, thrice],
}


def of_state(state: Any, x: Any) -> Any:
    if isinstance(state, int):
        return sum(x**k for k in range(1, state + 1))
    return (getattr(np, state) if isinstance(state, str) else state)(x) * 2.0


@pytest.mark.parametrize("name", STATES)
@pytest.mark.filterwarnings("error")
def test_a_state_that_returns_is_replayed(name):
    states = STATES[name]
    state = states[0]

    def f(x: Any) -> Any:
        return of_state(state, x)

    g: Any = ox.record(f)
    for each in states * 20:
        state = each
        assert g(X).tobytes() == f(X).tobytes()
    assert len(g.recordings) == len(states)
    assert g.replays == 19 * len(states) and g.why is None
    file = io.BytesIO()
    g.save(file)
    file.seek(0)
    assert ox.load_recording(file)(X).tobytes() == f(X).tobytes()  # of the present state


def test_states_count_to_the_limit():
    state = "a"

    def f(x: Any) -> Any:
        return x * len(state)

    g: Any = ox.record(f, limit=2)
    assert equal(outcome(g, X), outcome(f, X))
    state = "bb"
    assert equal(outcome(g, X), outcome(f, X))
    state = "ccc"
    with pytest.warns(UserWarning, match="recorded 2 times and runs as it is where no recording fits"):
        assert equal(outcome(g, X), outcome(f, X))
    state, before = "a", g.replays
    assert equal(outcome(g, X), outcome(f, X))
    assert g.replays == before + 1
