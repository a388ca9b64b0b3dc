"""The schedule of copies and updates, over a simulated device whose copies end late and out of order: all orders of few pieces, some of many."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import offload_picture
from oxigrad.stepping.device.transfers import Action, Schedule

Event = tuple[str, Any]


class Simulation:
    """A device with pieces of gradients, a ring of host memory, and a host. Each memory knows what was written to it last.

    An action reads and writes its memory from its begin to its end: two of them may not be in flight over one place.
    """

    def __init__(self, pieces: int, places: int | None, failures: int = 0, **modes: bool) -> None:
        self.schedule = Schedule(places, **modes)
        self.pieces, self.places, self.modes = pieces, places, modes
        self.added = 0
        self.is_released = not modes.get("holds")
        self.failures = failures
        self.flying: list[Action] = []
        self.memory: dict[int, tuple[str, int]] = {}
        self.measured: list[int] = []
        self.updated: list[int] = []
        self.device: list[int] = []

    def events(self) -> Iterator[Event]:
        """The events that may come next: a gradient that is final, the end of any action in flight, good or bad."""
        if self.added < self.pieces:
            yield "add", None
        elif not self.schedule.is_closed:
            yield "close", None
        elif not self.is_released and len(self.updated) == self.pieces:
            yield "release", None
        for action in self.flying:
            yield "finish", action
            if self.failures:
                yield "fail", action
        if self.schedule.is_halted:
            yield "resume", None

    def happen(self, event: Event) -> None:
        """Lets an event happen, and begins what the schedule says."""
        name, action = event
        if name == "add":
            assert self.schedule.add() == self.added
            self.added += 1
        elif name == "release":
            self.is_released = True
            self.schedule.release()
        elif action is None:
            getattr(self.schedule, name)()
        else:
            self.flying.remove(action)
            self.failures -= name == "fail"
            self.end(action, failed=name == "fail")
            getattr(self.schedule, name)(action)
        for begun in self.schedule.begin():
            assert not self.schedule.is_halted
            self.start(begun)
        self.check()

    def start(self, action: Action) -> None:
        kind, piece, place = action.kind, action.piece, action.place
        assert place not in [other.place for other in self.flying]
        found = self.memory.get(place)
        if kind == "down":
            assert found is None, "a place is overwritten before its weights are up"
            assert piece < self.added, "a gradient is copied that is not final"
            self.memory[place] = ("being copied", piece)
        elif kind == "measure":
            assert found == ("gradient", piece), "a gradient is read before it is there"
        elif kind == "update":
            assert found == ("gradient", piece), "a gradient is read before it is there"
            assert "update" not in [other.kind for other in self.flying]
            if self.modes.get("measures"):
                assert self.schedule.is_closed
                assert sorted(self.measured) == [*range(self.added)], "an update before the norm is known"
        else:
            assert found == ("weights", piece), "weights are copied before they are there"
            assert self.is_released
        self.flying.append(action)

    def end(self, action: Action, *, failed: bool) -> None:
        kind, piece, place = action.kind, action.piece, action.place
        if failed:
            if kind == "down":
                del self.memory[place]
        elif kind == "down":
            self.memory[place] = ("gradient", piece)
        elif kind == "measure":
            self.measured.append(piece)
        elif kind == "update":
            self.updated.append(piece)
            self.memory[place] = ("weights", piece)
        else:
            self.device.append(piece)
            del self.memory[place]

    def check(self) -> None:
        """Checks what holds after each event."""
        places = range(self.pieces) if self.places is None else range(self.places)
        assert {*self.memory} <= {*places}
        free = self.schedule._free
        assert free is None or {*free} == {*places} - {*self.memory}
        assert len({*self.updated}) == len(self.updated)
        assert {*self.device} <= {*self.updated}
        begun = {action.piece for action in self.flying if action.kind == "update"}
        assert {*self.schedule.ahead} == {*self.updated} | begun
        assert self.schedule.is_finished is (self.schedule.is_closed and len(self.device) == self.pieces)

    def key(self) -> Any:
        """The state, for states that were seen before."""
        done = tuple(self.schedule._done)
        flags = (self.schedule.is_closed, self.schedule.is_halted, self.is_released, self.failures)
        queues = tuple(tuple(queue) for queue in self.schedule._ready.values())
        free = None if self.schedule._free is None else tuple(self.schedule._free)
        return done, flags, queues, free, tuple(self.flying)


def check_end(simulation: Simulation) -> None:
    """Nothing is lost: a state without further events is one in which each piece was updated once, and is on the device."""
    assert simulation.schedule.is_finished
    assert sorted(simulation.device) == sorted(simulation.updated) == [*range(simulation.pieces)]
    assert not simulation.memory
    assert not simulation.flying


MODES: list[dict[str, bool]] = [{}, {"measures": True}, {"holds": True}, {"measures": True, "holds": True}]
SMALL = [(pieces, places, {}) for pieces in range(4) for places in (1, 2)]
SMALL += [(pieces, None, modes) for pieces in range(4) for modes in MODES]


@pytest.mark.parametrize("failures", [0, 1])
@pytest.mark.parametrize(("pieces", "places", "modes"), SMALL)
def test_all_orders_of_events_end_well(pieces: int, places: int | None, modes: dict[str, bool], failures: int) -> None:
    """Whatever comes first, each state has a next event until all is done: no order stalls."""
    if modes and pieces == 3 and failures:
        pieces = 2
    left, seen, ends = [Simulation(pieces, places, failures, **modes)], set(), 0
    while left:
        found = left.pop()
        events = [*found.events()]
        if not events:
            check_end(found)
            ends += 1
        for event in events:
            after = copy.deepcopy(found)
            after.happen(event)
            if after.key() not in seen:
                seen.add(after.key())
                left.append(after)
    assert ends


@settings(max_examples=150, deadline=None)
@given(st.data())
@pytest.mark.slow
def test_many_pieces_in_random_orders_end_well(data: st.DataObject) -> None:
    places = data.draw(st.sampled_from([1, 2, 3, 5, None]))
    modes = data.draw(st.sampled_from(MODES)) if places is None else {}
    simulation = Simulation(data.draw(st.integers(0, 12)), places, data.draw(st.integers(0, 4)), **modes)
    while events := [*simulation.events()]:
        simulation.happen(data.draw(st.sampled_from(events)))
    check_end(simulation)


def run_in_order(simulation: Simulation, choose: Callable[[list[Event]], Event]) -> list[tuple[str, int]]:
    """The updates and copies in the order in which they began."""
    while events := [*simulation.events()]:
        simulation.happen(choose(events))
    return [("update", piece) for piece in simulation.updated]


def test_updates_are_in_the_order_in_which_copies_end() -> None:
    simulation = Simulation(4, 4)
    for _ in range(4):
        simulation.happen(("add", None))
    simulation.happen(("close", None))
    for piece in (2, 0, 3, 1):
        simulation.happen(("finish", next(a for a in simulation.flying if a.piece == piece)))
    run_in_order(simulation, lambda events: events[0])
    assert simulation.updated == [2, 0, 3, 1]


def test_the_copy_down_of_a_piece_overlaps_the_update_of_another_and_the_copy_up_of_a_third() -> None:
    simulation = Simulation(3, 3)
    simulation.happen(("add", None))
    simulation.happen(("finish", Action("down", 0, 0)))
    simulation.happen(("finish", Action("update", 0, 0)))
    simulation.happen(("add", None))
    simulation.happen(("finish", Action("down", 1, 1)))
    simulation.happen(("add", None))
    assert {action.kind for action in simulation.flying} == {"up", "update", "down"}


def test_a_failed_update_begins_again_after_resume_and_no_other_action_before() -> None:
    schedule = Schedule(2)
    schedule.add()
    schedule.add()
    first, second = schedule.begin()
    schedule.finish(first)
    (update,) = schedule.begin()
    schedule.fail(update)
    schedule.finish(second)
    assert schedule.begin() == []
    assert schedule.ahead == []
    schedule.resume()
    assert schedule.begin() == [update]
    assert schedule.ahead == [0]
    schedule.finish(update)
    assert schedule.ahead == [0]


@pytest.mark.parametrize(
    "modes", [{"places": 0}, {"places": 2, "measures": True}, {"places": 2, "holds": True}], ids=str
)
def test_rings_that_would_stall_are_refused(modes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="places is"):
        Schedule(**modes)


def test_events_that_cannot_be_are_refused() -> None:
    schedule = Schedule(1)
    schedule.add()
    (down,) = schedule.begin()
    schedule.finish(down)
    for event in (schedule.finish, schedule.fail):
        with pytest.raises(RuntimeError, match="not in flight"):
            event(down)
    schedule.close()
    with pytest.raises(RuntimeError, match="after the last"):
        schedule.add()


# --- the picture of the documentation ----------------------------------------------------------------------------------------


def test_the_picture_is_that_of_the_schedule() -> None:
    picture = offload_picture.drawn(offload_picture.Machine())
    assert picture == offload_picture.PATH.read_text(encoding="utf-8"), "python tools/offload_picture.py draws it anew"


def test_time_lines_overlap_copies_and_updates_and_nothing_comes_before_its_cause() -> None:
    machine = offload_picture.Machine()
    for title, line in offload_picture.panels(machine):
        for lane in offload_picture.LANES:
            bars = [bar for bar in line.bars if bar.lane == lane]
            assert all(one.stop <= other.start + 1e-9 for one, other in itertools.pairwise(bars)), title
        ends = {(bar.kind, bar.layer): bar.stop for bar in line.bars}
        starts = {(bar.kind, bar.layer): bar.start for bar in line.bars}
        for layer in range(offload_picture.LAYERS):
            order = ["down", "measure", "update", "up"] if line.clips else ["down", "update", "up"]
            assert all(ends[one, layer] <= starts[other, layer] + 1e-9 for one, other in itertools.pairwise(order)), (
                title
            )
        last = max(line.bars, key=lambda bar: bar.stop)
        assert last.kind == "up"


def test_a_bus_that_is_the_limit_hides_the_updates() -> None:
    machine = offload_picture.Machine(bus=1e9)
    _, line = next(offload_picture.panels(machine))
    copies = offload_picture.LAYERS * machine.cost("down")
    begin = offload_picture.LAYERS * (machine.cost("forward") + machine.cost("backward"))
    assert line.bars[-1].stop == pytest.approx(begin + copies + machine.cost("update") + machine.cost("up"))
