"""Steps in parts: which parameters are ahead after errors, parts that are used again, and small gradients that wait."""

from __future__ import annotations

from typing import Any

import pytest

from oxigrad import StateError, _core
from oxigrad.stepping.plan import announcements
from oxigrad.stepping.plan.announcements import Assignments, Pending, StepInParts


def make(marks: Assignments) -> None:
    """Makes the assignments of an update."""
    _core.Stepper().write(None, _core.Writes(assignments=marks))


def test_parameters_are_ahead_while_they_are_updated_and_until_the_end() -> None:
    step: StepInParts[Any] = StepInParts("step() first")
    step.check_none()
    make(step.marks({7: "b"}))
    assert step.ahead == ["b"]
    make(step.marks({3: "a", 5: "c"}))
    with pytest.raises(
        StateError,
        match=r"^b, a, c was updated in the backward of a step that is not finished: expected step\(\) first$",
    ):
        step.check_none()
    step.end()
    step.check_none()
    assert step.ahead == []


def test_a_part_is_used_again_in_steps_of_the_same_whole() -> None:
    step: StepInParts[object] = StepInParts("")
    first, second = object(), object()
    part = step.part(first, 2, (1, 2), object)
    assert step.part(first, 2, (1, 2), object) is part
    assert step.part(first, 2, (2, 1), object) is not part
    assert step.part(second, 2, (1, 2), object) is not part  # and drops those before
    assert step.part(first, 2, (1, 2), object) is not part


def test_parts_of_ever_other_parameters_are_few() -> None:
    step: StepInParts[object] = StepInParts("")
    whole, most = object(), 0
    for number in range(100):
        step.part(whole, 3, (number,), object)
        most = max(most, len(step._parts))
    assert 1 < most <= 7
    step.forget()
    assert not step._parts


def test_small_items_wait_for_others_and_large_ones_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcements, "SMALL", 10)
    monkeypatch.setattr(announcements, "BUCKET", 25)
    monkeypatch.setattr(announcements, "MOST", 4)
    pending = Pending()
    assert pending.due(1, "a", 10) == []
    assert pending.due(2, "large", 11) == ["large"]
    assert pending.due(3, "b", 10) == []
    assert pending.due(4, "c", 5) == ["a", "b", "c"]  # 25 bytes
    assert [pending.due(key, key, 1) for key in range(4)] == [[], [], [], [0, 1, 2, 3]]
    assert pending.due(9, "last", 1) == []
    assert pending.drain() == ["last"]
    assert pending.drain() == []
