"""Values of a recording that are not computed: their shapes and dtypes are those of the values, which are computed where they are looked at."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_record import agrees

import oxigrad as ox
from oxigrad import xp
from oxigrad.recording.deferred import _SHAPED, Deferred, deferred
from oxigrad.recording.targets import Target, function_of

LARGE = np.random.default_rng(0).normal(size=(96, 64))
COLUMN = LARGE[:, :1].copy()
ROW = LARGE[0].copy()

# The arguments of functions of a name; all others take arrays.
ARGUMENTS: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "sum": [((LARGE,), {"axis": axis, "keepdims": kept}) for axis in (None, 0, -1, (0, 1)) for kept in (False, True)],
    "matmul": [((LARGE, LARGE.T.copy()), {})],
    "reshape": [((LARGE,), {"shape": (64, 96)})],
    "broadcast_to": [((LARGE,), {"shape": (2, 96, 64)})],
    "permute_dims": [((LARGE,), {"axes": (1, 0)})],
    "getitem": [
        ((LARGE, key), {}) for key in (slice(1, None), (slice(None), 3), (Ellipsis, None), (slice(4, 90, 2), 0))
    ],
    "T": [((LARGE,), {})],
    "scatter_into": [((None, LARGE[1:], slice(1, None), LARGE.shape), {}), ((LARGE, ROW, 3, LARGE.shape), {})],
}
ARGUMENTS["mean"] = ARGUMENTS["sum"]
ONE = "negative sqrt square reciprocal exp expm1 log log1p sin cos tan tanh expit abs neg".split()


def arguments(name: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Arguments of a function that may be deferred."""
    if name in ARGUMENTS:
        return ARGUMENTS[name]
    if name in ONE:
        return [((np.abs(LARGE),), {})]
    return [((LARGE, other), {}) for other in (LARGE, COLUMN, ROW, 2.0, np.float64(2.0))]


@pytest.mark.parametrize("target", _SHAPED, ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_shapes_and_dtypes_are_those_of_the_values(target, dtype):
    function = function_of(Target(*target))
    for args, named in arguments(target.name):
        given = tuple(arg.astype(dtype) if isinstance(arg, (np.ndarray, np.generic)) else arg for arg in args)
        found = deferred(target, function, given, named)
        expected = function(*given, **named)
        if found is None:
            assert expected.size < LARGE.size, (target, args)  # left to the function
            continue
        assert (found.like.shape, found.like.dtype) == (expected.shape, expected.dtype)
        assert isinstance(found.like, np.generic) == isinstance(expected, np.generic)
        np.testing.assert_array_equal(found.value(), expected)


@pytest.mark.parametrize(
    "given",
    [
        (LARGE, LARGE.astype("f4")),
        (LARGE, np.arange(64)),
        (LARGE, np.int64(3)),
        (LARGE, 1j),
        (LARGE.astype(complex), LARGE.astype(complex)),
        (ROW, ROW),
        (1.0, 2.0),
    ],
)
def test_what_promotes_and_what_is_small_is_computed_at_once(given):
    target = Target("op", "add")
    assert deferred(target, function_of(target), given, {}) is None


def test_a_long_chain_is_computed_without_recursion():
    target = Target("op", "add")

    class Holder:
        def __init__(self, held: Any) -> None:
            self.held = held

    value = Holder(deferred(target, function_of(target), (LARGE, 1.0), {}))
    for _ in range(10_000):
        value = Holder(deferred(target, function_of(target), (value, 1.0), {}))
    assert isinstance(value.held, Deferred)
    expected = LARGE + 1.0
    for _ in range(10_000):
        expected = expected + 1.0
    np.testing.assert_array_equal(value.held.value(), expected)


LOOKS = {
    "a branch": lambda x: xp.exp(x) * 2 if xp.sum(x * 2) > 0 else x - 1,
    "a number": lambda x: x * float(ox.stop_gradient(xp.mean(x * x))),
    "an index": lambda x: (x * 2)[int(ox.stop_gradient(abs(xp.sum(x)))) % 5],
    "a small part": lambda x: x * xp.max((x * 2)[0]),
    "NumPy": lambda x: np.sort(np.exp(x) * x.T[0, 0], axis=0),
    "zeros like it": lambda x: xp.zeros_like(x * 2) + xp.ones_like(xp.sum(x * 3)),
    "length and iteration": lambda x: sum(xp.sum(row) for row in (x * 2)[: len(x * 3) // 48]),
    "rows in place": lambda x: xp.concat([x * 2, x[1:] * 3]).sum(axis=0),
}


@pytest.mark.parametrize("name", LOOKS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_value_is_computed_where_it_is_looked_at(name, dtype):
    f = LOOKS[name]
    for function in (f, ox.value_and_grad(lambda x: xp.sum(xp.sin(f(x))))):
        g, x = ox.record(function), LARGE.astype(dtype)
        for scale in (1.0, 1.0, -0.5, 1.0):
            assert agrees(g, function, (x * scale).astype(dtype))
        assert g.why is None
        assert not g._refused


def test_slices_and_their_derivatives_are_not_computed(monkeypatch):
    def f(x: Any) -> Any:
        return xp.sum((x[1:] - x[:-1] ** 2) ** 2 * xp.exp(x[1:, :1]) + xp.mean(x))

    monkeypatch.setattr(Deferred, "_compute", lambda self: pytest.fail("a value was computed"))
    g = ox.record(ox.value_and_grad(f))
    for scale in (1.0, 1.0, 2.0):
        assert agrees(g, ox.value_and_grad(f), LARGE * scale)
    assert g.why is None


def test_a_program_is_made_at_the_second_call_or_where_it_is_asked_for():
    g = ox.record(lambda x: xp.sum(xp.exp(x)))
    g(LARGE)
    (case,) = next(iter(g._cases.values()))
    assert "replay" not in vars(case)
    assert (g.replays, len(g.recordings)) == (0, 1)
    assert g(LARGE) == g(LARGE)
    assert (g.replays, g.why) == (2, None)
