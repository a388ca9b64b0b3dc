"""Model averaging: the steps of exchanges, their precision, and training by several workers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oxigrad.distributed.decisions.averaging import Averaging, Merge, Send, strided

# --- decisions ---------------------------------------------------------------------------------------------------------


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 11), st.integers(0, 40))
@settings(deadline=None, max_examples=200)
def test_every_fragment_is_sent_once_an_interval_and_merged_after_the_delay(
    interval: int, fragments: int, delay: int, stop: int
) -> None:
    fragments, delay = min(fragments, interval), min(delay, interval - 1)
    machine, sent, merged = Averaging(interval, fragments, delay), {}, {}
    for step in range(1, 61):
        for action in machine.stepped():
            (sent if isinstance(action, Send) else merged).setdefault(action.fragment, []).append(step)
        if step == stop:  # a run that continues from here takes the same actions
            machine = Averaging(interval, fragments, delay).resumed(machine.step, machine.sent)
    for fragment in range(fragments):
        first = sent[fragment][0]
        assert 1 <= first <= interval
        assert sent[fragment] == list(range(first, 61, interval))
        assert merged[fragment] == [step + delay for step in sent[fragment] if step + delay <= 60]
    assert sent[fragments - 1][0] == interval


def test_one_fragment_is_sent_before_it_is_merged() -> None:
    machine = Averaging(2)
    assert [machine.stepped() for _ in range(2)] == [(), (Send(0), Merge(0))]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "interval is 0"),
        ((2, 3), "fragments is 3: expected 1 to 2"),
        ((2, 1, 2), "delay is 2: expected 0 to 1"),
    ],
)
def test_impossible_schedules_are_refused(arguments: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Averaging(*arguments)


def test_fragments_take_every_nth_parameter() -> None:
    assert strided(7, 3) == [[0, 3, 6], [1, 4], [2, 5]]
