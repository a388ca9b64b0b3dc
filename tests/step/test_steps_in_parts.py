"""Open steps: which parameters are ahead after errors, parts that are used again, and small gradients that wait."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import StateError, _core, xp
from oxigrad.step import parts
from oxigrad.step.plan import announcements
from oxigrad.step.plan.announcements import Assignments, OpenStep
from oxigrad.step.stepper import Stepper


def make(marks: Assignments) -> None:
    """Makes the assignments of an update."""
    _core.Stepper().write(None, _core.Writes(assignments=marks))


def test_parameters_are_ahead_while_they_are_updated_and_until_the_end() -> None:
    step: OpenStep = OpenStep("step() first")
    step.check_none()
    make(step.marks({7: "b"}))
    assert step.ahead == ["b"]
    make(step.marks({3: "a", 5: "c"}))
    with pytest.raises(
        StateError,
        match=r"^b, a, c were updated in the backward of a step that is not finished: expected step\(\) first$",
    ):
        step.check_none()
    step.end()
    step.check_none()
    assert step.ahead == []


def parts_of_steps(backwards: int, monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], Stepper]:
    """The sizes of the resolved parts after each step in a backward, and their stepper; each part has one parameter."""
    monkeypatch.setattr(announcements, "SMALL", 0)
    opt, model, sizes = ox.optim.Adam(0.1), {name: np.ones(3) for name in "abc"}, list[int]()
    for _ in range(backwards):
        opt.minimize(lambda m: sum(xp.sum(m[name] ** 2) for name in "abc"), model, in_backward=True)
        sizes.append(len(opt._stepper.resolved[False].parts))
    return sizes, opt._stepper


def test_parts_are_used_again_in_steps_of_the_same_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, stepper = parts_of_steps(3, monkeypatch)
    assert sizes == [3, 3, 3]
    step = stepper.resolved[False]
    assert step.parts.keys() == {(0,), (1,), (2,)}


def test_parts_of_ever_other_parameters_are_few() -> None:
    opt, model = ox.optim.Adam(0.1), {str(number): np.ones(2) for number in range(4)}
    opt.update(model, {name: np.ones(2) for name in model})
    step, leaves = parts.resolve_whole(opt._stepper, model, None)
    most = 0
    for chosen in itertools.permutations(step.plan.parameters, 3):
        parts.take_part(opt._stepper, step, chosen, model, leaves, [np.ones(2) for _ in range(4)])
        most = max(most, len(step.parts))
    assert 1 < most <= 9


def test_small_items_wait_for_others_and_large_ones_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcements, "SMALL", 10)
    monkeypatch.setattr(announcements, "BUCKET", 25)
    monkeypatch.setattr(announcements, "MOST", 4)
    pending = OpenStep("")
    assert pending.due(1, "a", 10) == []
    assert pending.due(2, "large", 11) == ["large"]
    assert pending.due(3, "b", 10) == []
    assert pending.due(4, "c", 5) == ["a", "b", "c"]  # 25 bytes
    assert [pending.due(key, key, 1) for key in range(4)] == [[], [], [], [0, 1, 2, 3]]
    assert pending.due(9, "last", 1) == []
    assert pending.drain() == ["last"]
    assert pending.drain() == []
