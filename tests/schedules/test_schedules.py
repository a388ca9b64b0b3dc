"""Schedules: values, types of steps, composition, and configuration."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from oxigrad import optim, schedules
from oxigrad.ops.backends import is_array

# A row: a schedule, and some of its values, worked out by hand.
VALUES: dict[str, tuple[schedules.Schedule, dict[int, float]]] = {
    "constant": (schedules.constant(0.3), {0: 0.3, 100: 0.3}),
    "linear": (schedules.linear(1.0, 0.0, 4), {0: 1.0, 1: 0.75, 4: 0.0, 9: 0.0}),
    "polynomial": (schedules.polynomial(1.1, 10, 0.1, 3.0), {0: 1.1, 5: 0.225, 8: 0.108, 10: 0.1, 11: 0.1}),
    "cosine": (schedules.cosine(2.0, 10), {0: 2.0, 5: 1.0, 10: 0.0, 11: 0.0}),
    "cosine to a final value": (schedules.cosine(2.0, 10, final=1.0), {0: 2.0, 5: 1.5, 10: 1.0}),
    "cosine of a power": (schedules.cosine(2.0, 10, 1.0, power=2.0), {0: 2.0, 5: 1.25, 10: 1.0, 12: 1.0}),
    "one_minus_sqrt": (schedules.one_minus_sqrt(1.5, 16, 0.5), {0: 1.5, 4: 1.0, 9: 0.75, 16: 0.5, 20: 0.5}),
    "rex": (schedules.rex(1.0, 10), {0: 1.0, 5: 2 / 3, 8: 1 / 3, 10: 0.0, 11: 0.0}),
    "rex of a beta": (schedules.rex(1.1, 10, 0.1, beta=0.9), {0: 1.1, 5: 0.1 + 0.5 / 0.55, 10: 0.1}),
    "exponential": (schedules.exponential(0.4, 0.25, 4), {0: 0.4, 2: 0.2, 4: 0.1, 8: 0.025}),
    "inverse_power": (schedules.inverse_power(0.1, 0.5), {0: 0.1, 2: 0.05, 18: 0.01}),
    "inverse_power of a power": (schedules.inverse_power(1.0, 1.0, 0.75), {0: 1.0, 15: 16**-0.75}),
    "inverse_power from an offset": (schedules.inverse_power(1.0, 0.5, offset=2.0), {0: 0.5, 4: 0.25}),
    "inverse_time": (schedules.inverse_time(1.0, 0.5, 10), {0: 1.0, 20: 0.5, 60: 0.25}),
    "cosine_restarts": (schedules.cosine_restarts(1.0, 4, 1, 0.2, 0.5), {0: 1.0, 2: 0.6, 4: 0.6, 6: 0.4, 8: 0.4}),
    "cosine_restarts, growing": (
        schedules.cosine_restarts(1.0, 2, 2, 0.0, 0.5),
        {0: 1.0, 1: 0.5, 2: 0.5, 4: 0.25, 6: 0.25, 10: 0.125, 14: 0.125},
    ),
    "cosine_restarts, growing by half": (
        schedules.cosine_restarts(1.0, 4, 1.5),
        {0: 1.0, 2: 0.5, 4: 1.0, 7: 0.5, 10: 1.0, 19: 1.0},
    ),
    "cyclic": (schedules.cyclic(0.1, 1.1, 4, 2), {0: 0.1, 1: 0.35, 4: 1.1, 5: 0.6, 6: 0.1, 10: 1.1}),
    "cyclic, triangular2": (schedules.cyclic(0.0, 1.0, 2, 2, "triangular2"), {2: 1.0, 6: 0.5, 7: 0.25, 10: 0.25}),
    "cyclic, exp_range": (schedules.cyclic(0.0, 1.0, 2, None, "exp_range", 0.5), {1: 0.25, 2: 0.25, 4: 0.0, 5: 1 / 64}),
    "join": (schedules.join((schedules.constant(1.0), schedules.constant(2.0)), (3,)), {2: 1.0, 3: 2.0}),
    "join of numbers": (schedules.join((1.0, schedules.linear(0.5, 0.0, 2), 3), (2, 4)), {1: 1.0, 2: 0.5, 3: 0.25, 4: 3.0}),
    "staircase": (schedules.staircase(schedules.linear(1.0, 0.0, 2), 3), {0: 1.0, 2: 1.0, 3: 0.5, 5: 0.5, 6: 0.0}),
    "clip": (schedules.clip(schedules.linear(0.0, 1.0, 10), 0.2, 0.7), {0: 0.2, 2: 0.2, 5: 0.5, 9: 0.7}),
    "add": (0.5 + schedules.linear(1.0, 0.0, 4) + schedules.constant(1.0), {0: 2.5, 1: 2.25, 4: 1.5}),
    "multiply": (0.5 * schedules.linear(1.0, 0.0, 4) * schedules.constant(3.0), {0: 1.5, 1: 1.125, 4: 0.0}),
    "piecewise": (schedules.piecewise((1.0, 0.5, 0.1), (3, 5)), {0: 1.0, 2: 1.0, 3: 0.5, 4: 0.5, 5: 0.1}),
    "piecewise, linear": (schedules.piecewise((0, 1, 0.5), (4, 6), "linear"), {0: 0, 1: 0.25, 4: 1, 5: 0.75, 6: 0.5, 7: 0.5}),
    "piecewise, cosine": (schedules.piecewise((0, 1, 0.5), (4, 6), "cosine"), {0: 0, 2: 0.5, 4: 1, 5: 0.75, 6: 0.5, 7: 0.5}),
    "warmup": (schedules.warmup(schedules.linear(1.0, 0.0, 4), 2, 0.5), {0: 0.5, 1: 0.75, 2: 1.0, 3: 0.75, 6: 0.0}),
    "warmup, cosine": (schedules.warmup(1.0, 4, interpolation="cosine"), {0: 0.0, 2: 0.5, 4: 1.0, 5: 1.0}),
    "warmup_cosine": (schedules.warmup_cosine(0.1, 10, 110), {0: 0.0, 5: 0.05, 10: 0.1, 60: 0.05, 110: 0.0}),
    "cooldown": (schedules.cooldown(schedules.linear(1.0, 0.0, 8), 4, 2, 0.1), {0: 1.0, 4: 0.5, 5: 0.3, 6: 0.1, 9: 0.1}),
    "step": (schedules.step(1.0, 3, 0.5), {0: 1.0, 2: 1.0, 3: 0.5, 5: 0.5, 6: 0.25}),
    "multistep": (schedules.multistep(1.0, (2, 5, 5), 0.5), {1: 1.0, 2: 0.5, 4: 0.5, 5: 0.125}),
    "rsqrt": (schedules.rsqrt(1.0, 4), {0: 0.0, 2: 0.5, 4: 1.0, 16: 0.5}),
    "noam": (schedules.noam(4, 4), {0: 0.0625, 3: 0.25, 15: 0.125}),
    "noam without a warm-up": (schedules.noam(4, 1, 2.0), {0: 1.0, 3: 0.5}),
    "one_cycle": (schedules.one_cycle(1.0, 10, 4, initial=0.5, final=0.25), {0: 0.5, 2: 0.75, 4: 1.0, 7: 0.625, 10: 0.25}),
    "one_cycle, three phases": (
        schedules.one_cycle(1.0, 10, 2, 4, 0.5, 0.1, "linear"),
        {0: 0.5, 1: 0.75, 2: 1.0, 3: 0.75, 4: 0.5, 7: 0.3, 10: 0.1},
    ),
    "wsd": (schedules.wsd(1.0, 4, 6, 4, 0.2), {0: 0.0, 2: 0.5, 4: 1.0, 10: 1.0, 12: 0.6, 14: 0.2, 20: 0.2}),
    "wsd, sqrt": (schedules.wsd(1.0, 4, 6, 4, interpolation="sqrt"), {2: 0.5, 10: 1.0, 11: 0.5, 14: 0.0}),
    "plateau": (schedules.plateau(0.3), {0: 0.3, 100: 0.3}),
}  # fmt: skip
ROWS = pytest.mark.parametrize("name", VALUES)


@ROWS
def test_values(name: str) -> None:
    schedule, expected = VALUES[name]
    for step, value in expected.items():
        assert schedule(step) == pytest.approx(value, rel=1e-13, abs=1e-15)
        assert type(schedule(step)) in (int, float)


def test_every_schedule_has_a_row() -> None:
    functions = set(schedules.__all__) - {"Schedule", "follow", "from_config"}
    assert {name.partition(" ")[0].rstrip(",") for name in VALUES} == functions


# --- types of steps ----------------------------------------------------------------------------------------------------


def run(schedule: schedules.Schedule, steps: int = 24) -> np.ndarray:
    return np.array([schedule(step) for step in range(steps)], float)


@ROWS
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "float32", "float64"])
def test_steps_may_be_arrays(name: str, dtype: str, asarray: Callable[..., Any]) -> None:
    schedule, expected = VALUES[name][0], run(VALUES[name][0])
    found = schedule(asarray(np.arange(24, dtype=dtype)))
    single = "float32" in str(getattr(found, "dtype", ""))
    tolerance = {"rtol": 1e-5, "atol": 1e-6} if single else {"rtol": 1e-13, "atol": 1e-15}
    np.testing.assert_allclose(np.broadcast_to(host(found), (24,)), expected, **tolerance)
    if dtype == "float64" and is_array(found):
        assert not single


@ROWS
@pytest.mark.parametrize("x64", [False, True])
def test_steps_may_be_traced(name: str, x64: bool, library, precision) -> None:
    jax = library("jax")
    schedule = VALUES[name][0]
    with precision(x64):
        traced = jax.jit(schedule)
        found = [float(traced(step)) for step in range(24)]
    tolerance = {"rtol": 1e-12, "atol": 1e-15} if x64 else {"rtol": 1e-5, "atol": 1e-6}
    np.testing.assert_allclose(found, run(schedule), **tolerance)


@ROWS
def test_steps_may_be_those_of_a_rule(name: str) -> None:
    """A rule may call a schedule: it becomes a part of the kernel."""
    schedule = VALUES[name][0]

    def scheduled(xp: Any, p: Any, g: Any, *, step: Any) -> Any:
        return p - schedule(step - 1) * g

    opt, model = optim.define(scheduled)(), {"x": np.zeros(3)}
    found = [-opt.update({"x": np.zeros(3)}, {"x": np.ones(3)})["x"] for _ in range(24)]
    np.testing.assert_allclose(found, np.tile(run(schedule)[:, None], 3), rtol=1e-12, atol=1e-15)
    assert model["x"].tolist() == [0, 0, 0]


@ROWS
def test_derivatives_by_the_step(name: str) -> None:
    schedule = VALUES[name][0]
    for step in (0.3, 1.6, 2.3, 4.7, 5.6, 8.4, 13.7):
        found = ox.grad(lambda t: schedule(t) + 0.0 * t)(step)
        assert found == pytest.approx((schedule(step + 1e-6) - schedule(step - 1e-6)) / 2e-6, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize(("steps", "growth"), [(1, 2), (7, 2), (10, 3), (3, 10), (6, 1)])
def test_restarts_come_at_the_step_in_every_precision(steps: int, growth: int, library, precision) -> None:
    jax = library("jax")
    schedule, start, length = schedules.cosine_restarts(1.0, steps, growth), 0, steps
    with precision(False):
        traced = jax.jit(schedule)
        while start < 1e5 and length < 1e5 and start < 600 * steps:
            assert schedule(start) == float(traced(start)) == 1.0
            assert length == 1 or schedule(start - 1 + length) <= 0.5 + 1e-15
            start, length = start + length, length * growth
    assert schedule(2**40) <= 1.0


# --- formulas, over whole runs -----------------------------------------------------------------------------------------

FORMULAS: dict[str, tuple[schedules.Schedule, Callable[[int], float]]] = {
    "cosine": (schedules.cosine(0.5, 37, final=0.1), lambda t: 0.1 + 0.2 * (1 + math.cos(math.pi * min(t / 37, 1)))),
    "rex": (schedules.rex(0.3, 60), lambda t: 0.3 * max(0.0, 1 - t / 60) / (0.5 + 0.5 * max(0.0, 1 - t / 60))),
    "noam": (
        schedules.noam(512, 40, 2.0),
        lambda t: 2.0 * 512**-0.5 * min((t + 1) ** -0.5, (t + 1) * 40**-1.5),
    ),
    "rsqrt": (schedules.rsqrt(0.3, 25), lambda t: 0.3 * min(t / 25, math.sqrt(25 / max(t, 25)))),
    "wsd": (
        schedules.wsd(0.3, 10, 50, 20, 0.03, "cosine"),
        lambda t: 0.3 * t / 10 if t < 10
        else 0.3 if t < 60
        else 0.03 + 0.27 * (1 + math.cos(math.pi * min(1, (t - 60) / 20))) / 2,
    ),
    "wsd, sqrt": (
        schedules.wsd(0.3, 10, 50, 20, interpolation="sqrt"),
        lambda t: min(0.3 * t / 10, 0.3 * (1 - math.sqrt(min(1.0, max(0.0, (t - 60) / 20))))),
    ),
    "Keras' ExponentialDecay": (
        schedules.staircase(schedules.exponential(0.1, 0.96), 7),
        lambda t: 0.1 * 0.96 ** (t // 7),
    ),
    "Keras' InverseTimeDecay": (schedules.inverse_time(0.1, 0.5, 8), lambda t: 0.1 / (1 + 0.5 * t / 8)),
    "Keras' InverseTimeDecay, staircase": (
        schedules.staircase(schedules.inverse_time(0.1, 0.5), 8),
        lambda t: 0.1 / (1 + 0.5 * math.floor(t / 8)),
    ),
    "Keras' PolynomialDecay": (
        schedules.polynomial(0.1, 50, 0.01, 0.5),
        lambda t: (0.1 - 0.01) * (1 - min(t, 50) / 50) ** 0.5 + 0.01,
    ),
    "swift-apis' decay": (schedules.inverse_power(0.1, 0.02, offset=1), lambda t: 0.1 / (1 + 0.02 * (t + 1))),
    "Bottou's schedule": (
        schedules.inverse_power(0.1, 1e-2 * 0.1, 0.75),
        lambda t: 0.1 * (1 + 1e-2 * 0.1 * t) ** -0.75,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMULAS)
def test_agrees_with_its_formula(name: str) -> None:
    schedule, formula = FORMULAS[name]
    np.testing.assert_allclose(run(schedule, 200), [formula(t) for t in range(200)], rtol=1e-12, atol=1e-16)


def test_keras_cosine_restarts() -> None:
    """A loop that counts the waves: t_mul = 1.5 and m_mul = 0.7, down to alpha * initial."""
    schedule = schedules.cosine_restarts(0.2, 10, growth=1.5, final=0.1 * 0.2, decay=0.7)
    start, length, height = 0.0, 10.0, 1.0
    for step in range(300):
        if step >= start + length:
            start, length, height = start + length, 1.5 * length, 0.7 * height
        wave = 0.5 * height * (1 + math.cos(math.pi * (step - start) / length))
        assert schedule(step) == pytest.approx(0.2 * (0.9 * wave + 0.1), rel=1e-12)


# --- composition -------------------------------------------------------------------------------------------------------


def test_arithmetic() -> None:
    a, b = schedules.linear(1.0, 0.0, 4), schedules.constant(0.5)
    cases = {
        a + b: 1.25,
        a - b: 0.25,
        a * b: 0.375,
        -a: -0.75,
        1 - a: 0.25,
        a - 1: -0.25,
        a / 2: 0.375,
        3 * a + 1: 3.25,
    }
    for schedule, expected in cases.items():
        assert schedule(1) == pytest.approx(expected)
        assert schedules.from_config(json.loads(json.dumps(schedule.get_config()))) == schedule
    assert a + b + 1 == schedules.add((a, b, 1))
    assert 2 * a * b == schedules.multiply((2, a, b))
    for half in (np.float64(0.5), np.float32(0.5), np.array(0.5)):
        assert half * a == 0.5 * a and a * half == a * 0.5
        assert half + a == 0.5 + a and half - a == 0.5 - a
    assert (a * (lambda step: step + 1))(1) == 1.5
    with pytest.raises(TypeError, match=r"multiply: terms: found 'fast': expected a number"):
        a * "fast"
    with pytest.raises(TypeError, match="unsupported operand"):
        1 / a
    with pytest.raises(TypeError, match="expected a number"):
        a / b


def test_a_number_calls_only_the_schedule_that_it_falls_to() -> None:
    table = {0: 0.5, 1: 0.25}
    schedule = schedules.join((1.0, table.__getitem__, 0.1), (3, 5))
    assert [schedule(step) for step in range(7)] == [1.0, 1.0, 1.0, 0.5, 0.25, 0.1, 0.1]


def test_a_staircase_counts_in_whole_numbers() -> None:
    seen: list[Any] = []
    schedule = schedules.staircase(lambda epoch: seen.append(epoch) or 0.1, 3)
    assert [schedule(step) for step in range(4)] == [0.1] * 4
    assert seen == [0, 0, 0, 1]
    assert all(type(epoch) is int for epoch in seen)


@pytest.mark.parametrize("every", [7, 2.5, 1.1, 100 / 7, 1000 / 3, 1.7])
def test_a_staircase_of_numbers_is_that_of_arrays(every: float) -> None:
    schedule = schedules.staircase(schedules.linear(0.0, 1e4, 10**4), every)
    steps = np.arange(1001)
    expected = np.floor(steps / every)
    np.testing.assert_allclose([schedule(step) for step in range(1001)], expected, rtol=1e-12)
    np.testing.assert_allclose(schedule(steps), expected, rtol=1e-12)


def test_an_array_of_steps_stays_in_the_range_of_each_schedule() -> None:
    seen: dict[str, np.ndarray] = {}

    def called(name: str) -> Callable[[Any], Any]:
        return lambda step: seen.setdefault(name, step)

    schedules.join((called("first"), called("second"), called("third")), (3, 5))(np.arange(8))
    assert {name: (steps.min(), steps.max()) for name, steps in seen.items()} == {
        "first": (0, 3), "second": (0, 2), "third": (0, 2),
    }  # fmt: skip


@pytest.mark.parametrize(
    "schedule",
    [
        schedules.exponential(1e-7, 1.1),
        schedules.clip(schedules.exponential(1e-7, 1.1), maximum=0.5),
        schedules.step(1.0, every=2, factor=2.0),
        schedules.cosine_restarts(1.0, 1, decay=2.0),
        schedules.cyclic(0.0, 1.0, 3, mode="exp_range", gamma=1.5),
    ],
    ids=lambda schedule: type(schedule).__name__,
)
def test_growth_overflows_for_numbers_as_for_arrays(schedule: Any) -> None:
    step = 8001  # in the middle of a rise of the cycle
    with np.errstate(over="ignore", invalid="ignore"):
        expected = float(schedule(np.asarray(float(step))))
    assert expected == 0.5 or not math.isfinite(expected)
    np.testing.assert_array_equal([schedule(step), schedule(float(step))], expected)


def test_large_steps() -> None:
    for name, (schedule, _) in VALUES.items():
        assert math.isfinite(schedule(10**15)), name


# --- plateau -----------------------------------------------------------------------------------------------------------


def test_a_plateau_scales_another_schedule() -> None:
    plateau = schedules.plateau(1.0, factor=0.5, patience=0)
    opt, model = optim.SGD(learning_rate=schedules.linear(0.4, 0.0, 4) * plateau), {"x": np.zeros(1)}
    for loss in (3.0, 3.0, 3.0):
        opt.update(model, {"x": np.ones(1)})
        plateau.observe(loss)
    assert model["x"][0] == pytest.approx(-(0.4 + 0.3 + 0.2 * 0.5))


def test_a_plateau_accepts_a_metric_of_any_numeric_type(asarray: Callable[..., Any]) -> None:
    plateau = schedules.plateau(1.0, patience=0)
    assert plateau.observe(asarray(2.0)) == 1.0
    assert plateau.observe(asarray(2.0)) == 0.1
    for wrong in (asarray([2.0]), "2.0", None):
        with pytest.raises(TypeError, match="expected a number"):
            plateau.observe(wrong)
    assert plateau.state_dict() == {"value": 0.1, "best": 2.0, "bad": 0, "cooling": 0}


def nested() -> schedules.Schedule:
    plateaus = [schedules.plateau(1.0, 0.5, patience=1, cooldown=1), schedules.plateau(0.1, 0.3, patience=0)]
    return schedules.join(
        (0.5, schedules.clip(schedules.linear(1.0, 0.0, 50) * plateaus[0], 0.01), plateaus[1]), (2, 30)
    )


def observe(schedule: Any, metrics: Any) -> list[float]:
    first, second = schedule.schedules[1].term.terms[1], schedule.schedules[2]
    return [(first.observe(metric), second.observe(metric), schedule(7), schedule(40)) for metric in metrics]


def test_the_state_of_a_plateau_round_trips_wherever_it_is() -> None:
    metrics = np.random.default_rng(1).uniform(size=20)
    whole, begun, again = nested(), nested(), nested()
    expected = observe(whole, metrics)
    assert observe(begun, metrics[:8]) == expected[:8]
    state = json.loads(json.dumps(begun.state_dict(), allow_nan=False))
    assert set(state) == {
        f"schedules.{path}.{name}" for path in ("1.term.terms.1", "2") for name in ("value", "best", "bad", "cooling")
    }
    again.load_state_dict(state)
    assert again.state_dict() == begun.state_dict()
    assert observe(again, metrics[8:]) == expected[8:]
    fresh = nested()
    fresh.load_state_dict(json.loads(json.dumps(nested().state_dict(), allow_nan=False)))
    assert observe(fresh, metrics) == expected


def test_a_wrong_state_changes_nothing() -> None:
    schedule = nested()
    observe(schedule, [1.0, 2.0])
    before = schedule.state_dict()
    with pytest.raises(ValueError, match=r"missing \['schedules.2.best'\], unexpected \['best'\]"):
        schedule.load_state_dict({**{k: v for k, v in before.items() if k != "schedules.2.best"}, "best": 1.0})
    with pytest.raises(TypeError, match="found 'low': expected a number"):
        schedule.load_state_dict({**before, "schedules.2.best": "low"})
    assert schedule.state_dict() == before
    assert schedules.linear(1.0, 0.0, 3).state_dict() == {}
    with pytest.raises(ValueError, match=r"unexpected \['value'\]"):
        schedules.linear(1.0, 0.0, 3).load_state_dict({"value": 1.0})


def test_plateaus_do_not_share_state() -> None:
    plateau = schedules.plateau(1.0, patience=0)
    copied, read = copy.deepcopy(plateau), schedules.from_config(plateau.get_config())
    plateau.observe(1.0)
    plateau.observe(1.0)
    assert (plateau(0), copied(0), read(0)) == (0.1, 1.0, 1.0)
    assert plateau == read  # they are configured alike


# --- configuration -----------------------------------------------------------------------------------------------------


@ROWS
def test_plain_data_round_trips(name: str) -> None:
    schedule = VALUES[name][0]
    again = schedules.from_config(json.loads(json.dumps(schedule.get_config(), allow_nan=False)))
    assert again == schedule and hash(again) == hash(schedule)
    np.testing.assert_array_equal(run(again), run(schedule))
    assert eval(repr(schedule), vars(schedules).copy()) == schedule  # noqa: S307 - our own text


def test_arguments_become_plain() -> None:
    schedule = schedules.join(
        [np.float32(0.5), schedules.linear(np.float64(1.0), np.array(0.0), np.int64(4))], [np.int32(3)]
    )
    assert schedule == schedules.join((0.5, schedules.linear(1.0, 0.0, 4)), (3,))
    config = schedule.get_config()
    assert json.loads(json.dumps(config)) == config
    assert type(schedule.schedules[1].steps) is int


@dataclasses.dataclass(frozen=True)
class sawtooth(schedules.Schedule):
    """A schedule of the user's."""

    heights: tuple[float, ...]
    inner: schedules.Schedule
    period: int = 2
    falling: bool = False

    def at(self, step: Any) -> Any:
        height = self.heights[int(step) % len(self.heights)] * self.inner(step // self.period)
        return -height if self.falling else height


def test_arguments_may_be_arrays_without_dimensions(asarray: Callable[..., Any]) -> None:
    one, two, steps = (asarray(value) for value in (1.0, 0.5, 16.0))
    milestones = [asarray(milestone) for milestone in (3, 8, 8)]
    for schedule, expected in (
        (schedules.multistep(one, milestones, two), schedules.multistep(1.0, (3, 8, 8), 0.5)),
        (schedules.one_cycle(one, steps, asarray(4.0), asarray(8.0)), schedules.one_cycle(1.0, 16.0, 4.0, 8.0)),
        (schedules.one_cycle(one, steps), schedules.one_cycle(1.0, 16.0)),
        (schedules.piecewise([one, two], [steps], "linear"), schedules.piecewise([1.0, 0.5], [16.0], "linear")),
        (schedules.wsd(one, steps, steps, steps), schedules.wsd(1.0, 16.0, 16.0, 16.0)),
    ):
        for step in range(20):
            assert schedule(step) == pytest.approx(expected(step), rel=1e-6)


def test_a_schedule_of_the_users() -> None:
    schedule = sawtooth([1, 2.0], schedules.linear(1.0, 0.0, 4))
    assert [schedule(step) for step in range(5)] == [1.0, 2.0, 0.75, 1.5, 0.5]
    assert schedules.from_config(json.loads(json.dumps(schedule.get_config()))) == schedule
    assert (2 * schedule)(1) == 4.0
    assert sawtooth((1.0,), schedule, falling=True)(2) == -2.0
    with pytest.raises(TypeError, match="sawtooth: falling: found 1: expected True or False"):
        sawtooth((1.0,), schedule, falling=1)
    assert optim.from_config(optim.SGD(schedule).get_config()).learning_rate == schedule


def test_a_field_that_is_named_as_the_config_names_its_class() -> None:
    @dataclasses.dataclass(frozen=True)
    class wrapped(schedules.Schedule):
        schedule: schedules.Schedule

    with pytest.raises(TypeError, match="wrapped: found a field named schedule"):
        wrapped(schedules.constant(1.0)).get_config()


def test_a_function_cannot_be_written_down() -> None:
    with pytest.raises(TypeError, match=r"join: schedules is <function .*: expected a number or a schedule of oxigrad"):
        schedules.join((1.0, lambda step: 0.1), (3,)).get_config()


# --- invalid arguments -------------------------------------------------------------------------------------------------

MISTAKES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: schedules.linear(1.0, 0.0, 0), ValueError, "steps is 0: expected a number of steps, at least 1"),
    (lambda: schedules.linear(1.0, 0.0, math.inf), ValueError, "linear: steps: found inf: expected a finite number"),
    (lambda: schedules.linear(1.0, 0.0, math.nan), ValueError, "linear: steps: found nan: expected a number"),
    (lambda: schedules.linear("a", 0.0, 3), TypeError, "linear: initial: found 'a': expected a number"),
    (lambda: schedules.linear(True, 0.0, 3), TypeError, "initial: found True: expected a number"),
    (lambda: schedules.linear((1.0, 2.0), 0.0, 3), TypeError, "initial: found .*: expected a number"),
    (lambda: schedules.linear(lambda step: 1.0, 0.0, 3), TypeError, "initial: found .*: expected a number"),
    (lambda: schedules.constant(np.ones(1)), TypeError, r"array of shape \(1,\) and dtype float64: expected a number"),
    (lambda: schedules.constant(np.array(True)), TypeError, "dtype bool: expected a number"),
    (lambda: schedules.constant(np.array(1j)), TypeError, "found array.*: expected a number"),
    (lambda: schedules.constant(np.complex64(1j)), TypeError, "found np.complex64.*: expected a number"),
    (lambda: schedules.constant(1j), TypeError, "found 1j: expected a number"),
    (lambda: schedules.constant(None), TypeError, "found None: expected a number"),
    (lambda: schedules.polynomial(1.0, 3, power=0.0), ValueError, "power is 0.0"),
    (lambda: schedules.cosine(1.0, 3, power=-1.0), ValueError, "power is -1.0"),
    (lambda: schedules.one_minus_sqrt(1.0, -3), ValueError, "steps is -3"),
    (lambda: schedules.rex(1.0, 3, beta=1.0), ValueError, "beta is 1.0"),
    (lambda: schedules.exponential(1.0, 0.0), ValueError, "rate is 0.0"),
    (lambda: schedules.inverse_power(1.0, -1.0), ValueError, "gamma is -1.0"),
    (lambda: schedules.inverse_time(1.0, 1.0, 0), ValueError, "steps is 0"),
    (lambda: schedules.cosine_restarts(1.0, 3, growth=0.5), ValueError, "growth is 0.5: expected at least 1"),
    (lambda: schedules.cosine_restarts(1.0, 3, decay=0.0), ValueError, "decay is 0.0"),
    (lambda: schedules.cyclic(0.0, 1.0, 0), ValueError, "up is 0"),
    (lambda: schedules.cyclic(0.0, 1.0, 3, 0), ValueError, "down is 0"),
    (lambda: schedules.cyclic(0.0, 1.0, 3, mode="square"), ValueError, "mode is 'square': expected one of triangular"),
    (lambda: schedules.cyclic(0.0, 1.0, 3, mode=3), TypeError, "cyclic: mode: found 3: expected text"),
    (lambda: schedules.join((1.0,), (3,)), ValueError, "one more schedule than boundaries"),
    (lambda: schedules.join((1.0,) * 3, (3, 3)), ValueError, "ascend"),
    (lambda: schedules.join((1.0, None), (3,)), TypeError, "join: schedules: found None: expected a number"),
    (lambda: schedules.staircase(1.0, 0), ValueError, "every is 0"),
    (lambda: schedules.clip("a"), TypeError, "clip: term: found 'a'"),
    (lambda: schedules.clip(1.0, maximum="a"), TypeError, "clip: maximum: found 'a'"),
    (lambda: schedules.piecewise((1.0,), (3,)), ValueError, "found 1 values for 1 boundaries: expected one more"),
    (lambda: schedules.piecewise((1.0, 2.0), (3,), "cubic"), ValueError, "interpolation is 'cubic': expected one of"),
    (lambda: schedules.piecewise((1.0, 2.0, 3.0), (3, 2), "linear"), ValueError, "steps is -1"),
    (lambda: schedules.warmup(1.0, 0), ValueError, "steps is 0"),
    (lambda: schedules.warmup(lambda step: None, 3), TypeError, "the schedule at step 0: found None"),
    (lambda: schedules.warmup_cosine(0.1, 0, 10), ValueError, "warmup is 0"),
    (lambda: schedules.warmup_cosine(0.1, 10, 10), ValueError, "steps is 10: expected more than warmup"),
    (lambda: schedules.cooldown(1.0, 0, 3), ValueError, "start is 0"),
    (lambda: schedules.cooldown(1.0, 3, 0), ValueError, "steps is 0"),
    (lambda: schedules.step(1.0, 0), ValueError, "every is 0"),
    (lambda: schedules.multistep(1.0, (5, 3)), ValueError, r"milestones is \[5, 3\]: expected ascending steps"),
    (lambda: schedules.rsqrt(1.0, 0), ValueError, "warmup is 0"),
    (lambda: schedules.noam(512, 0.5), ValueError, "warmup is 0.5: expected a number of steps"),
    (lambda: schedules.noam(0, 5), ValueError, "width is 0"),
    (lambda: schedules.one_cycle(1.0, 10, 10), ValueError, r"end at steps \[10, 10\]: expected ascending steps"),
    (lambda: schedules.one_cycle(1.0, 10, 4, back=3), ValueError, r"end at steps \[4, 3, 10\]"),
    (lambda: schedules.wsd(1.0, 3, 0, 3), ValueError, "stable is 0"),
    (lambda: schedules.plateau(1.0, factor=1.0), ValueError, "factor is 1.0: expected less than 1"),
    (lambda: schedules.plateau(1.0, factor=0.0), ValueError, "factor is 0.0"),
    (lambda: schedules.plateau(1.0, patience=-1), ValueError, "patience is -1: expected 0 or more"),
    (lambda: schedules.plateau(1.0, rtol=math.nan), ValueError, "plateau: rtol: found nan: expected a number"),
    (lambda: schedules.plateau(1.0, mode="low"), ValueError, "mode is 'low': expected one of min, max"),
    (lambda: schedules.from_config({"schedule": "nope"}), ValueError, "schedule is 'nope': expected one of"),
    (lambda: schedules.Schedule()(0), TypeError, "Schedule does not define at"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "error", "message"), MISTAKES, ids=[message for _, _, message in MISTAKES])
def test_wrong_schedules_are_refused(make: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


# Every public schedule with arguments that hold, and its arguments that are numbers of steps.
ARGUMENTS: dict[str, tuple[dict[str, Any], str]] = {
    "constant": ({"value": 0.1}, ""),
    "cosine": ({"initial": 0.1, "steps": 100, "final": 0.0, "power": 1.0}, "steps"),
    "cosine_restarts": ({"initial": 0.1, "steps": 10, "growth": 2.0, "final": 0.0, "decay": 0.5}, "steps"),
    "cyclic": ({"low": 0.0, "high": 1.0, "up": 4, "down": 6, "gamma": 0.9}, "up down"),
    "exponential": ({"initial": 0.1, "rate": 0.9, "steps": 10}, "steps"),
    "inverse_power": ({"initial": 0.1, "gamma": 0.5, "power": 1.0, "offset": 1.0}, ""),
    "linear": ({"initial": 0.1, "final": 0.0, "steps": 10}, "steps"),
    "one_minus_sqrt": ({"initial": 0.1, "steps": 10, "final": 0.0}, "steps"),
    "polynomial": ({"initial": 0.1, "steps": 10, "final": 0.0, "power": 2.0}, "steps"),
    "rex": ({"initial": 0.1, "steps": 10, "final": 0.0, "beta": 0.5}, "steps"),
    "clip": ({"term": 0.1, "minimum": 0.0, "maximum": 1.0}, ""),
    "cooldown": ({"schedule": 0.1, "start": 10, "steps": 5, "final": 0.0}, "start steps"),
    "inverse_time": ({"initial": 0.1, "rate": 0.5, "steps": 10}, "steps"),
    "noam": ({"width": 512, "warmup": 10, "scale": 1.0}, "warmup"),
    "one_cycle": ({"peak": 0.1, "steps": 100, "warmup": 30, "back": 60, "initial": 0.01, "final": 0.0}, "steps"),
    "plateau": (
        {"initial": 0.1, "factor": 0.5, "patience": 2, "rtol": 0.1, "atol": 0.1, "cooldown": 1, "minimum": 0.0}
        | {"epsilon": 0.1},
        "",
    ),
    "rsqrt": ({"peak": 0.1, "warmup": 10}, "warmup"),
    "staircase": ({"term": 0.1, "every": 10}, "every"),
    "step": ({"initial": 0.1, "every": 10, "factor": 0.5}, "every"),
    "warmup": ({"schedule": 0.1, "steps": 10, "initial": 0.0}, "steps"),
    "warmup_cosine": (
        {"peak": 0.1, "warmup": 10, "steps": 110, "final": 0.0, "initial": 0.0, "power": 1.0},
        "warmup steps",
    ),
    "wsd": ({"peak": 0.1, "warmup": 10, "stable": 10, "decay": 10, "final": 0.0}, "warmup stable decay"),
}
# Sequences, operands and objects, tested above.
SEQUENCES = {"add", "follow", "from_config", "join", "multiply", "multistep", "piecewise", "Schedule"}
# Values that no row takes: infinity bounds and constants alone.
BOUNDS = {("constant", "value"), ("clip", "term"), ("clip", "minimum"), ("clip", "maximum"), ("staircase", "term")}
BOUNDS |= {("cooldown", "schedule"), ("warmup", "schedule")}


def test_every_schedule_has_a_row_of_arguments() -> None:
    assert ARGUMENTS.keys() | SEQUENCES == {*schedules.__all__}
    for name, (values, _) in ARGUMENTS.items():
        parameters = inspect.signature(getattr(schedules, name)).parameters
        assert values.keys() == parameters.keys() - {"interpolation", "mode"}, name
        assert math.isfinite(getattr(schedules, name)(**values)(3))


@pytest.mark.parametrize(
    ("name", "argument"), [(name, argument) for name, (values, _) in ARGUMENTS.items() for argument in values]
)
def test_wrong_arguments_are_refused(name: str, argument: str) -> None:
    """Flags, texts, NaN and infinity, and for numbers of steps less than 1: the error has the argument."""
    (values, steps), make = ARGUMENTS[name], getattr(schedules, name)
    wrong: list[Any] = [True, "1", math.nan, 1j, [1.0], np.ones(2), np.True_]
    wrong += [] if (name, argument) in BOUNDS else [math.inf, -math.inf]
    wrong += [0, -1, 0.5, -math.inf] if argument in steps.split() else []
    for value in wrong:
        with pytest.raises((TypeError, ValueError), match=rf"(?s)\b{argument}\b|the phases end"):
            make(**values | {argument: value})


def test_swapped_arguments_are_refused() -> None:
    """The number of steps in the place of the value at their begin, a rate below 1."""
    for make in (
        lambda: schedules.cosine(100, 0.1),
        lambda: schedules.polynomial(100, 0.1),
        lambda: schedules.rex(100, 0.1),
        lambda: schedules.one_minus_sqrt(100, 0.1),
        lambda: schedules.cosine_restarts(100, 0.1),
        lambda: schedules.linear(100, 0.0, 0.1),
        lambda: schedules.exponential(10, 0.9, 0.1),
        lambda: schedules.inverse_time(10, 0.9, 0.1),
        lambda: schedules.rsqrt(100, 0.1),
        lambda: schedules.step(30, 0.1),
        lambda: schedules.warmup(10, 0.1),
        lambda: schedules.warmup_cosine(10, 0.1, 100),
        lambda: schedules.one_cycle(100, 0.1),
        lambda: schedules.wsd(10, 0.1, 10, 10),
        lambda: schedules.staircase(10, 0.1),
        lambda: schedules.cyclic(0.1, 100, 0.5),
    ):
        with pytest.raises(ValueError, match="expected a number of steps, at least 1"):
            make()
    for make in (lambda: schedules.multistep((30, 80), 1.0), lambda: schedules.piecewise(1.0, (30, 80))):
        with pytest.raises(TypeError, match=r"^(milestones|values) is 1.0: expected a sequence of numbers"):
            make()


def test_numbers_of_observations_are_whole() -> None:
    for argument in ("patience", "cooldown"):
        with pytest.raises(ValueError, match=f"plateau: {argument}: found 2.5: expected a whole number"):
            schedules.plateau(0.1, **{argument: 2.5})
        assert type(getattr(schedules.plateau(0.1, **{argument: 2.0}), argument)) is int


def test_an_infinite_bound_is_a_schedule() -> None:
    limit = schedules.join((math.inf, 1.0), (2,))
    assert [limit(step) for step in (0, 2)] == [math.inf, 1.0]
    assert schedules.constant(math.inf)(3) == math.inf


# --- as hyperparameters ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_a_hyperparameter_may_be_an_array_without_dimensions(dtype: str, asarray: Callable[..., Any]) -> None:
    opt, value = optim.SGD(learning_rate=1.0), np.array(3.7, dtype)
    opt.learning_rate = asarray(value)
    assert type(opt.learning_rate) in (int, float)
    assert opt.learning_rate == float(value)
    assert optim.from_config(json.loads(json.dumps(opt.get_config()))).learning_rate == float(value)
    assert optim.SGD(learning_rate=value[()]).learning_rate == float(value)


def test_a_hyperparameter_in_bfloat16(library) -> None:
    ml_dtypes = library("ml_dtypes")
    assert optim.SGD(learning_rate=ml_dtypes.bfloat16(0.5)).learning_rate == 0.5
    assert optim.SGD(learning_rate=np.array(0.5, ml_dtypes.bfloat16)).learning_rate == 0.5


@pytest.mark.parametrize(
    "wrong", [np.ones(1), np.ones((2, 2)), np.array(True), np.array(1j), np.array("a"), [0.1]], ids=repr
)
def test_other_arrays_are_no_hyperparameters(wrong: Any) -> None:
    opt = optim.SGD(learning_rate=0.25)
    with pytest.raises(
        TypeError, match="(?s)learning_rate is .*: expected a number or a schedule, a function of the step"
    ):
        opt.learning_rate = wrong
    assert opt.learning_rate == 0.25


def test_the_value_of_a_schedule_is_converted_to_a_number(asarray: Callable[..., Any], learning_rate: Any) -> None:
    opt, model = optim.SGD(learning_rate=lambda step: asarray(0.5 + step)), {"x": np.zeros(2)}
    assert learning_rate(opt.learning_rate, 1) == 1.5
    assert type(learning_rate(opt.learning_rate, 1)) is float
    opt.update(model, {"x": np.ones(2)})
    np.testing.assert_array_equal(model["x"], -0.5)
    new, _ = opt.apply(model, {"x": np.ones(2)}, opt.init(model))
    assert type(new["x"]) is np.ndarray


@pytest.mark.parametrize("wrong", [None, "fast", np.ones(1), 1j], ids=repr)
def test_a_schedule_that_gives_no_number_changes_nothing(wrong: Any) -> None:
    opt, model = optim.SGD(learning_rate=lambda step: wrong if step else 1.0), {"x": np.zeros(2)}
    opt.update(model, {"x": np.ones(2)})
    with pytest.raises(TypeError, match="learning_rate at step 1: found .*: expected a number"):
        opt.update(model, {"x": np.ones(2)})
    assert opt.step == 1
    np.testing.assert_array_equal(model["x"], -1.0)
