"""The decisions of the centre of elastic averaging, in any order of pushes, joins and losses."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from oxigrad.distributed.decisions.elastic import Apply, Centre, Give, Refuse, Repeat, moving_rate

# --- decisions ---------------------------------------------------------------------------------------------------------


class CentreMachine(RuleBasedStateMachine):
    """Workers that push, repeat, overtake, leave and come back, against the centre with and without order."""

    ordered = False

    def __init__(self) -> None:
        super().__init__()
        self.centre = Centre(range(3), ordered=self.ordered)
        self.members = dict.fromkeys(range(3), 0)  # the last number that each worker has pushed
        self.applied: list[tuple[int, int]] = []
        self.counts = dict.fromkeys(range(3), 0)

    def see(self, actions: tuple[object, ...]) -> None:
        for action in actions:
            if isinstance(action, Apply):
                self.applied.append((action.worker, action.number))
                self.counts[action.worker] += 1
                assert action.number == self.counts[action.worker], (
                    "each push is applied once, in the order of its worker"
                )

    @rule(worker=st.integers(0, 4))
    def push(self, worker: int) -> None:
        if worker not in self.members:
            (refused,) = self.centre.push(worker, 1)
            assert isinstance(refused, Refuse)
        elif self.members[worker] == self.counts[worker]:
            self.members[worker] += 1
            self.see(self.centre.push(worker, self.members[worker]))

    @rule(worker=st.integers(0, 4))
    def repeat(self, worker: int) -> None:
        if worker in self.members and (number := self.members[worker]):
            before = len(self.applied)
            actions = self.centre.push(worker, number)
            waits = self.counts[worker] < number
            assert actions == (() if waits else (Repeat(worker, number),))
            assert len(self.applied) == before

    @rule(worker=st.integers(0, 2), ahead=st.sampled_from([-1, 2, 5]))
    def push_another_number(self, worker: int, ahead: int) -> None:
        if worker in self.members and self.members[worker] == self.counts[worker]:
            (refused,) = self.centre.push(worker, self.counts[worker] + ahead)
            assert isinstance(refused, Refuse)

    @rule(worker=st.integers(0, 4))
    def join(self, worker: int) -> None:
        self.members[worker], self.counts[worker] = 0, 0
        first, *rest = self.centre.join(worker)
        assert first == Give(worker, 0)
        self.see(tuple(rest))

    @rule(worker=st.integers(0, 4))
    @precondition(lambda self: len(self.members) > 1)
    def leave(self, worker: int) -> None:
        actions = self.centre.leave(worker)
        self.members.pop(worker, None)
        self.counts.pop(worker, None)
        self.see(actions)

    @invariant()
    def somebody_can_go_on(self) -> None:
        waiting = [w for w, number in self.members.items() if number > self.counts[w]]
        assert len(waiting) < len(self.members), "all members wait for each other"


class OrderedCentreMachine(CentreMachine):
    ordered = True


TestCentre = CentreMachine.TestCase
TestOrderedCentre = OrderedCentreMachine.TestCase
TestCentre.settings = TestOrderedCentre.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


def test_an_ordered_centre_awaits_the_first_members() -> None:
    centre = Centre((), ordered=True, awaited=range(3))
    assert centre.join(0) == (Give(0, 0),)
    assert centre.push(0, 1) == ()
    assert centre.join(1) == (Give(1, 0),)
    assert centre.leave(2) == (Apply(0, 1),)
    assert centre.push(1, 1) == (Apply(1, 1),)


def test_a_member_that_joins_keeps_its_place_in_the_round() -> None:
    centre = Centre(range(2), ordered=True)
    assert centre.join(0) == (Give(0, 0),)
    assert centre.push(1, 1) == ()
    assert centre.push(0, 1) == (Apply(0, 1), Apply(1, 1))


@given(st.permutations([w for w in range(3) for _ in range(4)]))
@settings(deadline=None, max_examples=50)
def test_an_ordered_centre_applies_pushes_by_rank_for_any_arrival(arrivals: list[int]) -> None:
    centre, waiting, numbers, applied = Centre(range(3), ordered=True), list(arrivals), dict.fromkeys(range(3), 0), []
    held: set[int] = set()
    while waiting:
        worker = next(w for w in waiting if w not in held)
        waiting.remove(worker)
        numbers[worker] += 1
        held.add(worker)
        for action in centre.push(worker, numbers[worker]):
            applied.append((action.number, action.worker))
            held.discard(action.worker)
    assert applied == [(number, worker) for number in range(1, 5) for worker in range(3)]


def test_a_worker_whose_lease_has_ended_holds_nobody_up() -> None:
    centre = Centre(range(2), ordered=True, lease=5.0)
    assert centre.push(1, 1, now=1.0) == ()
    assert centre.clock(4.0) == ()
    assert centre.clock(6.0) == (Apply(1, 1),)
    (refused,) = centre.push(0, 1, now=7.0)
    assert isinstance(refused, Refuse)
    assert "lease" in refused.reason


def test_the_default_moving_rate_is_that_of_tensorflow() -> None:
    assert moving_rate(10, 4) == 0.9 / 10 / 4


def test_a_lease_must_be_positive() -> None:
    with pytest.raises(ValueError, match="lease is 0"):
        Centre([0], lease=0)
