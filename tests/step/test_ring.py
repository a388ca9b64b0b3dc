"""Pieces on their way through a ring of host memory, over a simulated device: all orders of ends of few pieces, and failures of each action."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oxigrad.ops.backends.memory.transfers import Event
from oxigrad.step.placement.ring import Piece, Ring, packed, piece_size

FAILURES = ("memory", "down", "down ends", "land", "measure", "fold", "use", "up", "up ends")


class Memory:
    """The memory of a place, which knows what was written to it last."""

    def __init__(self, size: int) -> None:
        self.size, self.content = size, ("", -1)

    def numel(self) -> int:
        return self.size


class Device:
    """A device whose copies end when they are waited for, or as ``decisions`` say when they are looked at."""

    def __init__(self, decisions: Iterator[bool], failure: str = "", at: int = 0) -> None:
        self.decisions, self.failure, self.at = decisions, failure, at
        self.log: list[tuple[str, int]] = []
        self.places: list[Memory] = []

    def act(self, what: str, piece: int) -> None:
        """Takes note of an action, which fails if that is due."""
        if what == self.failure:
            self.at -= 1
            if self.at < 0:
                self.failure = ""
                raise ArithmeticError(f"{what} failed")
        self.log.append((what, piece))

    def memory(self, count: int) -> Memory:
        self.act("memory", -1)
        self.places.append(Memory(count))
        return self.places[-1]

    def mark(self) -> None:
        pass

    def join(self) -> None:
        pass

    def copied(self, what: str, piece: int, end: Callable[[], Any]) -> Event:
        """A copy that has begun."""
        self.act(what, piece)
        is_done = [False]

        def wait() -> None:
            if not is_done[0]:
                self.act(f"{what} ends", piece)
                is_done[0] = True
                end()

        def look() -> bool:
            if not is_done[0] and next(self.decisions, True):
                wait()
            return is_done[0]

        return Event(look, wait)


class SimulatedPiece(Piece):
    """A piece whose stages check what is in its place."""

    device = "device"

    def __init__(self, number: int, size: int = 8) -> None:
        super().__init__([f"p{number}"])
        self.number, self.size = number, size

    def down(self, copies: Any, memory: Any) -> list[Event]:
        assert memory.content[0] in ("", "sent") or memory.content == ("coming", self.number)
        memory.content = "coming", self.number
        return [copies.copied("down", self.number, lambda: self.write(memory, "gradient"))]

    def write(self, memory: Any, content: str) -> None:
        memory.content = content, self.number

    def land(self, memory: Any) -> None:
        assert memory.content == ("gradient", self.number)
        self.device_of_test.act("land", self.number)

    def measure(self, memory: Any) -> None:
        assert memory.content == ("gradient", self.number), "a gradient is measured before it is there"
        self.device_of_test.act("measure", self.number)
        self.write(memory, "sent")

    def use(self, memory: Any) -> None:
        assert memory.content == ("gradient", self.number), "a gradient is read before it is there"
        self.device_of_test.act("use", self.number)
        self.write(memory, "weights")

    def up(self, copies: Any, memory: Any) -> list[Event]:
        assert memory.content == ("weights", self.number), "weights are copied before they are there"
        return [copies.copied("up", self.number, lambda: self.write(memory, "sent"))]

    device_of_test: Device


def run(
    count: int, places: int | None, device: Device, added: tuple[int, ...] = (), *, phases: int = 0
) -> Ring[SimulatedPiece]:
    """Lets pieces go through a ring, which are added before calls of ``advance``, and continues after failures.

    All of them are measured in each of the ``phases`` before any is used.
    """
    ring: Ring[SimulatedPiece] = Ring(lambda _: device)
    folded = 0

    def fold() -> bool:
        nonlocal folded
        device.act("fold", folded)
        folded += 1
        assert [piece for what, piece in device.log if what == "measure"] == [*range(count)] * folded
        return folded < phases

    ring.begin(places, fold=fold if phases else None)
    pieces = [SimulatedPiece(number) for number in range(count)]
    for piece in pieces:
        piece.device_of_test = device
    stops = [*sorted(added), count]
    for first, last in itertools.pairwise([0, *stops]):
        ring.add(pieces[first:last])
        advance(ring)
        if phases:
            assert not [what for what, _ in device.log if what == "use"], "an update before all gradients are measured"
    ring.close()
    advance(ring)
    ends = {what: [piece for kind, piece in device.log if kind == what] for what in ("use", "up ends")}
    assert ring.is_finished and ring.is_used
    assert ends["use"] == sorted(ends["up ends"]) == [*range(count)]
    assert {*ring.ahead} == {f"p{number}" for number in range(count)}
    assert len(device.places) <= (count if places is None else places)
    return ring


def advance(ring: Ring[Any]) -> None:
    """Advances, again after a failure, which there is one of."""
    try:
        ring.advance()
    except ArithmeticError:
        ring.advance()


@pytest.mark.parametrize("phases", [0, 1, 2])
@pytest.mark.parametrize("places", [1, 2, None])
@pytest.mark.parametrize("count", range(4))
def test_all_orders_of_ends_end_well(count: int, places: int | None, phases: int) -> None:
    for decisions in itertools.product([False, True], repeat=min(2 * count, 5)):
        for added in itertools.chain.from_iterable(itertools.combinations(range(1, count), k) for k in range(count)):
            run(count, places, Device(iter(decisions)), added, phases=phases)


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("places", [1, 2, None])
def test_a_failure_is_raised_and_loses_nothing(places: int | None, failure: str) -> None:
    failed = 0
    for decisions in itertools.product([False, True], repeat=3):
        for at in range(4):
            for phases in (0, 2):
                device = Device(iter(decisions), failure, at)
                run(3, places, device, phases=phases)
                failed += device.failure == ""
    assert failed >= 8


@settings(max_examples=150, deadline=None)
@given(st.data())
@pytest.mark.slow
def test_many_pieces_in_random_orders_end_well(data: st.DataObject) -> None:
    places, count = data.draw(st.sampled_from([1, 2, 3, 5, None])), data.draw(st.integers(0, 12))
    decisions = data.draw(st.lists(st.booleans(), max_size=40))
    added = tuple(data.draw(st.lists(st.integers(0, count), max_size=4)))
    failure, at = data.draw(st.sampled_from(FAILURES)), data.draw(st.integers(0, 14))
    run(count, places, Device(iter(decisions), failure, at), added, phases=data.draw(st.integers(0, 3)))


def test_the_copy_down_of_a_piece_overlaps_the_update_of_another_and_the_copy_up_of_a_third() -> None:
    device = Device(itertools.repeat(False))
    run(4, 3, device)
    log = device.log
    assert log.index(("down", 2)) < log.index(("use", 0))
    assert log.index(("up", 0)) < log.index(("use", 1)) < log.index(("up ends", 0))


def test_an_error_of_a_copy_up_ends_no_update() -> None:
    device, ring = Device(itertools.repeat(True), "up ends", 0), Ring[SimulatedPiece](lambda _: device)
    ring.begin(None)
    pieces = [SimulatedPiece(number) for number in range(3)]
    for piece in pieces:
        piece.device_of_test = device
    ring.add(pieces)
    ring.close()
    with pytest.raises(ArithmeticError):
        ring.advance()
    assert ring.is_used and not ring.is_finished
    assert ring.failed == [pieces[0]]
    ring.advance()
    assert ring.is_finished and not ring.failed


@pytest.mark.parametrize("failure", ["down", "use", "up"])
def test_a_stop_in_an_action_ends_the_step_for_good(failure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    device, ring = Device(itertools.repeat(True)), Ring[SimulatedPiece](lambda _: device)
    piece = SimulatedPiece(0)
    piece.device_of_test = device
    ring.add([piece])

    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(SimulatedPiece, failure, stopped)
        with pytest.raises(KeyboardInterrupt):
            ring.advance()
    with pytest.raises(RuntimeError, match="p0 was interrupted"):
        ring.advance()
    assert ring.ahead == ([] if failure == "down" else ["p0"])


def test_items_are_packed_by_size_and_device_in_their_order() -> None:
    items = [(("a", 0), 3), (("b", 0), 3), (("c", 0), 9), (("d", 1), 1), (("e", 1), 5), (("f", 0), 0)]
    together = [*packed(items, 6, lambda item: item[1])]
    assert [[name for name, _ in each] for each in together] == [["a", "b"], ["c"], ["d", "e"], ["f"]]
    assert piece_size(1 << 40) // piece_size(0) == 4
