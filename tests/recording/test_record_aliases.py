"""Plain arrays that share the memory of traced values: what a function writes to one, the other has."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided
from test_record import agrees, equal

import oxigrad as ox
from oxigrad import xp

ARRAYS = [np.array([4.0, 2.0, 3.0, 1.0]), np.array([-1.0, 2.5, 3.0, 0.5]), np.array([9.0, 8.0, 7.0, 6.0])]


def _writes(x: Any) -> None:
    with np.nditer(x, op_flags=[["readwrite"]]) as elements:
        for element in map(np.asarray, elements):
            np.copyto(element, 7.0)


def _copied_if_shared(x: Any) -> Any:
    y = np.asarray(x)
    if y is x:
        y = y.copy()
    y[0] = 5.0
    return y


def _copied_if_broadcast(x: Any) -> Any:
    (y,) = np.broadcast_arrays(x)
    if y is x:
        y = y.copy()
    y[0] = 5.0
    return y


def _read_after_write(x: Any) -> Any:
    y = np.asarray(x)
    x[0] = x[1] * 3.0
    return y * 1.0


def _generator() -> Any:
    return np.random.default_rng(3)


# Plain arrays of a traced one, which share its memory or not.
ALIASES: dict[str, Callable[[Any], Any]] = {
    "asarray": np.asarray,
    "asanyarray": np.asanyarray,
    "ascontiguousarray": np.ascontiguousarray,
    "asfortranarray": np.asfortranarray,
    "asarray_chkfinite": np.asarray_chkfinite,
    "require": lambda x: np.require(x, requirements="W"),
    "array without a copy": lambda x: np.array(x, copy=False),
    "array with a copy": lambda x: np.array(x, copy=True),
    "another dtype": lambda x: np.asarray(x, dtype="f4"),
    "as_strided": lambda x: as_strided(x, (2,), (8,)),
    "a masked array": lambda x: np.ma.asarray(x).data,
    "a view": lambda x: np.asarray(x)[1:],
    "the array of a view": lambda x: np.asarray(x[1:]),
    "the array of another shape": lambda x: np.asarray(x.reshape(2, 2))[0],
    "__array__": lambda x: x.__array__(),
    "operands of an iterator": lambda x: np.nditer(x, op_flags=[["readwrite"]]).operands[0],
    "ctypeslib": np.ctypeslib.as_array,
}
# Functions that write to their argument, or to its flags.
WRITES: dict[str, Callable[[Any], Any]] = {
    "an iterator": _writes,
    "a ufunc's at": lambda x: np.add.at(np.asarray(x), [0], 3.0),
    "out": lambda x: np.add(np.ones(4), 1.0, out=np.asarray(x)),
    "fill_diagonal": lambda x: np.fill_diagonal(np.asarray(x).reshape(2, 2), 3.0),
    "copyto": lambda x: np.copyto(np.asarray(x), 3.0),
    "shuffle": lambda x: _generator().shuffle(x),
    "shuffle of rows": lambda x: _generator().shuffle(x.reshape(2, 2)),
    "shuffle of a plain array": lambda x: _generator().shuffle(np.asarray(x)),
    "a write that is read before": lambda x: (np.put(np.asarray(x), [0], 9.0), x[0] * 1.0)[1],
    "a write that is read afterwards": _read_after_write,
    "a copy of what is shared": _copied_if_shared,
    "sort": lambda x: np.asarray(x).sort(),
    "a copy of what is broadcast": _copied_if_broadcast,
    "a flag": lambda x: setattr(x.flags, "writeable", False),
}


def _assigned(alias: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def assign(x: Any) -> Any:
        y = alias(x)
        y[0] = 5.0
        return y * 1.0

    return assign


@pytest.mark.parametrize("is_computed", [False, True], ids=["an input", "a result"])
@pytest.mark.parametrize(
    "write",
    [*map(_assigned, ALIASES.values()), *WRITES.values()],
    ids=[*(f"{name}, assigned to" for name in ALIASES), *WRITES],
)
def test_a_write_to_memory_that_is_shared_is_not_lost(write: Callable[[Any], Any], is_computed: bool) -> None:
    """The first call and each later one have the results of the function, and write what it writes to its argument."""

    def f(x: Any) -> Any:
        z = x * 1.0 if is_computed else x
        result = write(z)
        return z * 2.0, result

    g = ox.record(f, audit="never")
    for array in (*ARRAYS, ARRAYS[0]):
        mine, its = array.copy(), array.copy()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert equal(g(mine), f(its)), g
        assert equal(mine, its)
        assert mine.flags.writeable == its.flags.writeable


# What tells whether two arrays are one, or share memory.
IDENTITIES: dict[str, Callable[[Any], bool]] = {
    "asarray": lambda x: np.asarray(x) is x,
    "asarray, the other way": lambda x: any(each is x for each in (np.ones(1), np.asarray(x))),
    "ascontiguousarray": lambda x: np.ascontiguousarray(x) is x,
    "require": lambda x: np.require(x) is x,
    "broadcast_arrays": lambda x: np.broadcast_arrays(np.ones(1), x)[1] is x,
    "broadcast_arrays to another shape": lambda x: np.broadcast_arrays(np.ones((2, 1)), x)[1] is x,
    "atleast_1d": lambda x: np.atleast_1d(x, x * 2.0)[0] is x,
    "the real part": lambda x: x.real is x and x[0].real is not None,
    "the base of a view": lambda x: x[1:].base is x,
    "the base of an array": lambda x: x.base is None,
    "shares_memory": lambda x: np.shares_memory(x, x[1:]) and not np.shares_memory(x, x * 1.0),
    "may_share_memory": lambda x: np.may_share_memory(x, x[1:]),
    "memory of a plain array": lambda x: np.shares_memory(x, np.asarray(x)),
    "contiguous memory": lambda x: x[1:].flags.owndata,
}


@pytest.mark.parametrize("ask", IDENTITIES.values(), ids=IDENTITIES)
def test_questions_about_identity_have_the_answers_of_plain_arrays(ask: Callable[[Any], bool]) -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        return y * 2.0, ask(y), ask(x)

    g = ox.record(f, audit="never")
    for array in ARRAYS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert agrees(g, f, array), g


@pytest.mark.parametrize("number", [1.5, 3000, np.float64(1.5), np.float32(2.5), 1.0 + 2.0j])
@pytest.mark.parametrize("name", ["real", "conjugate"])
def test_a_real_number_is_its_real_part_and_its_conjugate(number: Any, name: str) -> None:
    def f(x: Any) -> Any:
        of = getattr(x, name)
        return x * 2, (of() if name == "conjugate" else of) is x

    g = ox.record(f, audit="never")
    assert agrees(g, f, number)
    assert agrees(g, f, number * 3)


def test_an_array_that_is_only_read_is_recorded() -> None:
    def f(x: Any) -> Any:
        y = np.asarray(x * 1.0)
        if type(y) is np.ndarray and y is not None:
            return x * y, y
        return x, y

    g = ox.record(f, audit="never")
    first = g(ARRAYS[0])
    assert equal(first, f(ARRAYS[0]))
    assert equal(g(ARRAYS[0]), f(ARRAYS[0]))
    assert (g.replays, g.why) == (1, None)
    g(ARRAYS[0])[1][0] = 7.0  # a copy in each call
    assert equal(g(ARRAYS[0]), first)


def _locked(x: Any) -> Any:
    x.flags.writeable = False
    return x


# Whether each is recorded: the lock of an array of its own, which is no result, changes nothing.
LOCKS: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "an array of its own": (lambda x: _locked(x * 2.0) * 3.0, True),
    "a view": (lambda x: _locked(x.view()) * 3.0, True),
    "an input": (lambda x: _locked(x) * 3.0, False),
    "a result": (lambda x: _locked(x * 2.0), False),
    "a view that is a result": (lambda x: _locked(x.view()), False),
    "an order, which transforms read from a view": (ox.grad(lambda x: xp.sum(x[np.argsort(x)] * x)), True),
    "the place of a maximum": (ox.grad(lambda x: xp.sum(x * float(np.argmax(x)))), True),
}


@pytest.mark.parametrize(("f", "is_recorded"), LOCKS.values(), ids=LOCKS)
def test_a_read_only_array_is_recorded_unless_it_is_an_input_or_a_result(
    f: Callable[[Any], Any], is_recorded: bool
) -> None:
    g = ox.record(f, audit="never")
    for array in ARRAYS:
        mine, its = g(array.copy()), f(array.copy())
        assert equal(mine, its)
        assert mine.flags.writeable == its.flags.writeable
    assert bool(g.recordings) == is_recorded, g
