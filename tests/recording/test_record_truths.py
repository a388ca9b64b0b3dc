"""Truth values in the runs of recordings: comparisons, logic, masks and choices by them, with the bits of the functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_record import agrees, equal
from test_record_runs import at_random, run_of

import oxigrad as ox
from oxigrad import xp
from oxigrad.recording import bits as verification

SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan])
LIMIT = 0.5
MASK = np.arange(4200) % 3 == 0
SINGLE = np.float32(0.1)


def specials(dtype: str, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).choice(SPECIAL, 4200).astype(dtype)


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "x < y": lambda x, y: x < y,
    "x <= y": lambda x, y: x <= y,
    "x > y": lambda x, y: x > y,
    "x >= y": lambda x, y: x >= y,
    "x == y": lambda x, y: x == y,
    "x != y": lambda x, y: x != y,
    "x > 0": lambda x, _: x > 0,
    "x == -1": lambda x, _: x == -1,
    "x < 0.1": lambda x, _: x < 0.1,
    "x >= captured": lambda x, _: x >= LIMIT,
    "xp.less": lambda x, y: xp.less(x, y),
    "xp.isnan": lambda x, _: xp.isnan(x),
    "xp.isinf": lambda x, _: xp.isinf(x),
    "xp.isfinite": lambda x, _: xp.isfinite(x),
    "np.greater": lambda x, y: np.greater(x, y),
    "and": lambda x, y: (x > y) & (y > 0),
    "or": lambda x, y: (x > y) | (y != 1.0),
    "xor": lambda x, y: (x > y) ^ (y >= 0.5),
    "not": lambda x, _: ~(x > 0),
    "logical_and": lambda x, y: xp.logical_and(x > y, xp.logical_not(y > x)),
    "of a mask": lambda x, _: (x > 0) & MASK,
    "alike": lambda x, y: (x > 0) == (y > 0),
}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", COMPARISONS)
def test_truth_values_of_runs_are_those_of_numpy(name, dtype):
    compare = COMPARISONS[name]

    def f(x: Any, y: Any) -> Any:
        is_so = compare(x, y)
        return is_so, xp.where(is_so, x * 2.0, y), is_so * y

    g, x, y = ox.record(f), specials(dtype), specials(dtype, 4)
    with np.errstate(invalid="ignore"):
        for seed in (5, 5, 6):
            assert agrees(g, f, x, specials(dtype, seed))
        is_so, chosen, _ = g(x, y)
        by_numpy = np.asarray(compare(x, y))
    assert g.why is None
    assert run_of(g, "where")
    assert is_so.dtype == bool
    np.testing.assert_array_equal(is_so, by_numpy)
    np.testing.assert_array_equal(chosen, np.where(by_numpy, x * 2, y))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_masks_among_the_arguments_are_read_by_runs_in_any_layout(dtype):
    def f(x: Any, mask: Any) -> Any:
        return xp.sum(xp.where(mask, xp.exp(x) * x, 0.0)) + xp.sum(mask * x), xp.where(mask, x, -x)

    x, mask = at_random(60, 70, dtype=dtype), at_random(70) > 0
    whole = np.broadcast_to(mask, (60, 70))
    strange = np.ascontiguousarray(whole).view(np.uint8) * 3  # any byte but zero is true
    for each in (
        mask,
        whole,
        np.ascontiguousarray(whole),
        np.asfortranarray(whole),
        np.repeat(whole, 2, 1)[:, ::2],
        strange.view(bool),
    ):
        for function in (f, lambda x, mask: ox.grad(lambda x: f(x, mask)[0])(x)):
            g = ox.record(function)
            for scale in (1.0, 1.0, -2.0):
                assert agrees(g, function, x * scale, each)
            assert g.why is None
    g = ox.record(f)
    for _ in range(2):
        g(x, mask)
    assert run_of(g, "where")


LOSSES: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], np.ndarray]]] = {
    "leaky": (lambda x: xp.where(x > 0, x * 2, x * 0.1) ** 2 / 2, lambda x: np.where(x > 0, 4 * x, 0.01 * x)),
    "huber": (
        lambda x: xp.where(abs(x) <= 1, 0.5 * x * x, xp.abs(x) - 0.5),
        lambda x: np.where(np.abs(x) <= 1, x, np.sign(x)),
    ),
    "inside": (lambda x: xp.where((x > -1) & (x < 1), x * x, 0.0), lambda x: np.where(np.abs(x) < 1, 2 * x, 0)),
    "relu": (lambda x: xp.square(xp.maximum(x * 0.5, 0.0)), lambda x: np.where(x > 0, 0.5 * x, 0)),
    "elu": (lambda x: xp.where(x > 0, x, xp.exp(xp.minimum(x, 0.0)) - 1.0), lambda x: np.where(x > 0, 1, np.exp(x))),
}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", LOSSES)
def test_losses_with_choices_are_one_run_with_their_derivative(name, dtype):
    loss, derivative = LOSSES[name]

    def total(x: Any) -> Any:
        return xp.sum(loss(x))

    function = ox.value_and_grad(total)
    g, x = ox.record(function), at_random(80, 60, dtype=dtype)
    for scale in (1.0, 1.0, -2.0):
        assert agrees(g, function, x * scale)
    assert g.why is None
    np.testing.assert_allclose(g(x)[1], derivative(x), rtol=1e-5, atol=1e-6)
    assert len(g.recordings[-1].runs()) == 1


def test_truth_values_of_sums_counts_and_indices_stay_those_of_numpy():
    def f(x: Any) -> Any:
        is_large = x > 0.5
        return (
            xp.sum(is_large),
            xp.mean(is_large),
            xp.sum(is_large, axis=1),
            xp.any(is_large),
            xp.astype(is_large, xp.float32),
            x * 3,
        )

    g, x = ox.record(f), at_random(80, 60)
    for scale in (1.0, 1.0, -2.0):
        assert agrees(g, f, x * scale)
    assert g.why is None
    assert int(g(x)[0]) == int((x > 0.5).sum())


def test_scalars_of_another_precision_are_compared_in_it():
    def f(x: Any) -> Any:
        return xp.where(x > np.float64(0.1), x * 2.0, x), xp.where(x > SINGLE, x * 2.0, x)

    x = np.full((40, 50), SINGLE)  # more than 0.1 in float64
    g = ox.record(f)
    for _ in range(3):
        assert agrees(g, f, x)
    assert g(x)[0][0, 0] == SINGLE * 2
    assert g(x)[1][0, 0] == SINGLE


def test_a_run_reads_whole_numbers_of_python():
    def f(x: Any) -> Any:
        return xp.sum(2 * x + 3) - x / 7, xp.where(x > 1, x - 2, -1)

    g, x = ox.record(f), at_random(64, 80)
    for scale in (1.0, 1.0, -2.0):
        assert agrees(g, f, x * scale)
    assert run_of(g, "where")


@pytest.mark.parametrize("op", ["maximum", "minimum"])
def test_maxima_are_in_runs_where_numpy_gives_the_bits_of_the_core(op, monkeypatch):
    def f(x: Any) -> Any:
        return getattr(xp, op)(x * 2.0, 0.0) + 1.0

    bits = verification.has_bits_of_core
    assert agrees(g := ox.record(f), f, x := specials("f8").reshape(42, 100))
    assert agrees(g, f, x)
    assert run_of(g, op) == bits(op)
    with monkeypatch.context() as patch:
        by_numpy = getattr(np, op)
        patch.setattr(np, op, lambda a, b: np.where(np.equal(a, b), a, by_numpy(a, b)))
        assert not bits.__wrapped__(op)  # of zeros of both signs, the first
    monkeypatch.setattr("oxigrad.recording.program.replay.has_bits_of_core", lambda _: False)
    assert agrees(g := ox.record(f), f, x)
    assert agrees(g, f, x)
    assert not run_of(g, op)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(20, 30), (3, 20, 30)])
def test_constant_masks_are_read_by_runs(shape, dtype):
    def f(x: Any) -> Any:
        is_later = np.triu(np.ones((20, 30), bool), 1)
        scores = xp.where(is_later, -np.inf, x * 0.5)
        return xp.sum(xp.where(is_later, 0.0, xp.exp(scores) * x))

    for function in (f, ox.value_and_grad(f)):
        g = ox.record(function)
        for scale in (1.0, 1.0, -2.0):
            assert agrees(g, function, at_random(*shape, dtype=dtype) * scale)
        assert g.why is None
        assert run_of(g, "where")
    by_hand = np.where(
        np.triu(np.ones((20, 30), bool), 1), 0.0, (1 + 0.5 * at_random(*shape)) * np.exp(0.5 * at_random(*shape))
    )
    np.testing.assert_allclose(g(at_random(*shape, dtype=dtype))[1], by_hand, rtol=1e-5, atol=1e-6)


def test_masks_that_others_read_keep_their_dtype():
    def f(x: Any) -> Any:
        mask = np.arange(600).reshape(20, 30) % 3 == 0
        double = xp.astype(x, xp.float64)
        return (
            mask,
            xp.where(mask, x, 2.0 * x),
            xp.where(mask, double, -double),
            xp.sum(xp.where(~mask, x, 0.0), axis=0),
        )

    x = at_random(20, 30, dtype="f4")
    g = ox.record(f)
    for scale in (1.0, 1.0, -2.0):
        for found, expected in zip(g((x * scale).astype("f4")), f((x * scale).astype("f4")), strict=True):
            assert equal(found, expected)
            assert found.dtype == expected.dtype
    assert g.why is None
