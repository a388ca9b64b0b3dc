"""The decisions of the centre of elastic averaging, in any order of pushes, joins and losses."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from oxigrad.distributed.decisions.elastic import Elastic, moving_rate
from oxigrad.distributed.decisions.events import Clock, Join, Leave, Push, Step, Token, Verdict

# --- decisions ---------------------------------------------------------------------------------------------------------


def steps(actions: list[Any]) -> list[tuple[Any, int]]:
    """The pushes that are applied, by worker and number."""
    return [gradient for action in actions if isinstance(action, Step) for gradient in action.gradients]


def joined(workers: int, **options: Any) -> Elastic:
    centre = Elastic(expected=workers, **options)
    for worker in range(workers):
        assert [action for action in centre.handle(Join((worker, 0))) if isinstance(action, Token)]
    return centre


class ElasticMachine(RuleBasedStateMachine):
    """Workers that push, repeat, leave and come back, against the centre with and without order."""

    ordered = False

    def __init__(self) -> None:
        super().__init__()
        self.centre = joined(3, ordered=self.ordered)
        self.incarnations = 0
        self.members = {worker: (worker, 0) for worker in range(3)}
        self.pushed = dict.fromkeys(self.members.values(), 0)
        self.applied = dict.fromkeys(self.members.values(), 0)
        self.tokens = {*self.members.values()}

    def see(self, actions: list[Any]) -> None:
        for action in actions:
            if isinstance(action, Step):
                ((worker, number),) = action.gradients
                assert action.step == sum(self.applied.values()) + 1
                assert number == self.applied[worker] + 1 == self.pushed[worker], "each push is applied once"
                self.applied[worker] = number
            elif isinstance(action, Token):
                assert self.applied[action.worker] == self.pushed[action.worker], "a worker whose push waits goes on"
                self.tokens.add(action.worker)
            else:
                assert action.accepted == (action.number == self.applied[action.worker])

    @rule(worker=st.integers(0, 4))
    def push(self, worker: int) -> None:
        if (own := self.members.get(worker)) in self.tokens:
            self.tokens.discard(own)
            self.pushed[own] += 1
            self.see(self.centre.handle(Push(own, self.pushed[own], 0)))

    @rule(worker=st.integers(0, 4))
    def repeat(self, worker: int) -> None:
        own = self.members.get(worker)
        if own is not None and self.pushed[own]:
            actions = self.centre.handle(Push(own, self.pushed[own], 0))
            waits = self.applied[own] < self.pushed[own]
            assert not steps(actions)
            assert [type(each) for each in actions if each.worker == own] == ([] if waits else [Verdict, Token])

    @rule(worker=st.integers(0, 4))
    def join(self, worker: int) -> None:
        self.leave_as(worker)
        self.incarnations += 1
        own = self.members[worker] = worker, self.incarnations
        self.pushed[own] = self.applied[own] = 0
        self.see(self.centre.handle(Join(own)))
        assert own in self.tokens

    @rule(worker=st.integers(0, 4))
    @precondition(lambda self: len(self.members) > 1)
    def leave(self, worker: int) -> None:
        self.leave_as(worker)

    def leave_as(self, worker: int) -> None:
        if (own := self.members.pop(worker, None)) is not None:
            self.pushed[own] = self.applied[own]
            self.tokens.discard(own)
            self.see(self.centre.handle(Leave(own)))
            (told,) = self.centre.handle(Push(own, 99, 0))
            assert (told.accepted, told.reason) == (False, "unknown")

    @invariant()
    def somebody_can_go_on(self) -> None:
        assert not self.members or self.tokens & {*self.members.values()}, "all members wait for each other"


class OrderedElasticMachine(ElasticMachine):
    ordered = True


TestElastic = ElasticMachine.TestCase
TestOrderedElastic = OrderedElasticMachine.TestCase
TestElastic.settings = TestOrderedElastic.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


def test_an_ordered_centre_awaits_the_first_members() -> None:
    centre = Elastic(ordered=True, expected=3)
    assert centre.handle(Join(0)) == [Token(0, 0)]
    assert centre.handle(Push(0, 1, 0)) == []
    assert centre.handle(Join(1)) == [Token(1, 0)]
    assert steps(centre.handle(Leave(2))) == [(0, 1)]
    assert steps(centre.handle(Push(1, 1, 0))) == [(1, 1)]


@given(st.permutations([w for w in range(3) for _ in range(4)]))
@settings(deadline=None, max_examples=50)
def test_an_ordered_centre_applies_pushes_by_rank_for_any_arrival(arrivals: list[int]) -> None:
    centre, waiting, numbers, applied = joined(3, ordered=True), list(arrivals), dict.fromkeys(range(3), 0), []
    held: set[int] = set()
    while waiting:
        worker = next(w for w in waiting if w not in held)
        waiting.remove(worker)
        numbers[worker] += 1
        held.add(worker)
        for (rank, _), number in steps(centre.handle(Push((worker, 0), numbers[worker], 0))):
            applied.append((number, rank))
            held.discard(rank)
    assert applied == [(number, worker) for number in range(1, 5) for worker in range(3)]


def test_a_worker_whose_lease_has_ended_holds_nobody_up() -> None:
    centre = joined(2, ordered=True, lease=5.0)
    assert centre.handle(Clock(1.0)) == centre.handle(Push((1, 0), 1, 0)) == centre.handle(Clock(4.0)) == []
    assert steps(centre.handle(Clock(6.0))) == [((1, 0), 1)]
    (refused,) = centre.handle(Push((0, 0), 1, 0))
    assert isinstance(refused, Verdict) and refused.reason == "unknown"


def test_the_default_moving_rate_is_that_of_tensorflow() -> None:
    assert moving_rate(10, 4) == 0.9 / 10 / 4


def test_a_lease_must_be_positive() -> None:
    with pytest.raises(ValueError, match="lease is 0"):
        Elastic(lease=0)
