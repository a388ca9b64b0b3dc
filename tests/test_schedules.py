"""Schedules: their values, their composition, and as plain data."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from oxigrad import schedules

VALUES = [
    (schedules.constant(0.3), {0: 0.3, 100: 0.3}),
    (schedules.linear(1.0, 0.0, 4), {0: 1.0, 1: 0.75, 4: 0.0, 9: 0.0}),
    (schedules.cosine(2.0, 10), {0: 2.0, 5: 1.0, 10: 0.0, 11: 0.0}),
    (schedules.cosine(2.0, 10, final=1.0), {0: 2.0, 5: 1.5, 10: 1.0}),
    (schedules.inverse_power(0.1, 0.5), {0: 0.1, 2: 0.05, 18: 0.01}),
    (schedules.inverse_power(1.0, 1.0, 0.75), {0: 1.0, 15: 16**-0.75}),
    (schedules.join((schedules.constant(1.0), schedules.constant(2.0)), (3,)), {2: 1.0, 3: 2.0}),
    (schedules.warmup_cosine(0.1, 10, 110), {0: 0.0, 5: 0.05, 10: 0.1, 60: 0.05, 110: 0.0}),
]


@pytest.mark.parametrize(("schedule", "expected"), VALUES, ids=lambda value: str(value)[:40])
def test_values(schedule: schedules.Schedule, expected: dict[int, float]) -> None:
    for step, value in expected.items():
        assert schedule(step) == pytest.approx(value, abs=1e-15)
        assert isinstance(schedule(step), float)


@pytest.mark.parametrize(("schedule", "expected"), VALUES, ids=lambda value: str(value)[:40])
def test_steps_may_be_arrays(schedule: schedules.Schedule, expected: dict[int, float]) -> None:
    steps = np.array(list(expected), float)
    np.testing.assert_allclose(np.broadcast_to(schedule(steps), steps.shape), list(expected.values()), atol=1e-15)


@pytest.mark.parametrize(("schedule", "expected"), VALUES, ids=lambda value: str(value)[:40])
def test_plain_data_round_trips(schedule: schedules.Schedule, expected: dict[int, float]) -> None:
    again = schedules.from_config(json.loads(json.dumps(schedule.get_config())))
    assert again == schedule
    assert all(again(step) == schedule(step) for step in expected)


def test_the_cosine_agrees_with_its_formula() -> None:
    schedule = schedules.cosine(0.5, 7, final=0.1)
    for step in range(8):
        assert schedule(step) == pytest.approx(0.1 + 0.2 * (1 + math.cos(math.pi * step / 7)))


def test_wrong_schedules_are_refused() -> None:
    with pytest.raises(ValueError, match="steps is 0"):
        schedules.linear(1.0, 0.0, 0)
    with pytest.raises(ValueError, match="warmup is 0"):
        schedules.warmup_cosine(0.1, 0, 10)
    with pytest.raises(ValueError, match="one more schedule than boundaries"):
        schedules.join((schedules.constant(1.0),), (3,))
    with pytest.raises(ValueError, match="ascend"):
        schedules.join((schedules.constant(1.0),) * 3, (3, 3))
    with pytest.raises(ValueError, match="schedule is 'nope'"):
        schedules.from_config({"schedule": "nope"})
