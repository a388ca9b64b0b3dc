"""Copies between a device and the state in host memory: which there are, in any order, and where one fails or an interrupt comes."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import arrays
import numpy as np
import pytest
from late_event import LateEvent

from host_state import Make, assert_same_bits, drawn, follow, here, problem, state_of, there
from interrupted_waits import interrupted_waits
from oxigrad import ShapeError, optim
from oxigrad.ops.backends.generic import Adapter
from oxigrad.ops.backends.memory import transfers
from oxigrad.optim import Adam, AdamW
from oxigrad.step.device.step_counts import StepCounts
from oxigrad.step.parts import take_part
from oxigrad.step.placement import host_placement

pytestmark = pytest.mark.usefixtures("piece")


class Failing(transfers.BlockingTransfers):
    """Copies, which are counted, and fail where an error is due."""

    down, up, due = 0, 0, ""

    def copy_down(self, source: Any, target: Any) -> Any:
        self.count("down")
        return super().copy_down(source, target)

    def copy_up(self, source: Any, target: Any) -> Any:
        self.count("up")
        return super().copy_up(source, target)

    def count(self, kind: str) -> None:
        setattr(Failing, kind, getattr(Failing, kind) + 1)
        if kind == Failing.due and getattr(Failing, kind) == 2:
            raise RuntimeError("the device failed")


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Failing]]:
    """The copies of all devices."""
    monkeypatch.setattr(Adapter, "transfers", lambda self, array: Failing(self))
    Failing.down = Failing.up = 0
    yield Failing
    Failing.due = ""


def test_what_is_copied(failing: type[Failing]) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for dtype, options, expected in [
        ("float32", {}, (4, 2)),
        (ml_dtypes.bfloat16, {"master": True}, (2, 2)),
        (ml_dtypes.bfloat16, {"rounding": "kahan"}, (4, 2)),
        ("float32", {"groups": {"w": None}}, (3, 1)),
    ]:
        model = {name: x.astype(dtype) for name, x in problem().items() if name in ("w", "b")}
        opt, on_device = AdamW(0.1, **options, state_device="host"), there(model)
        opt.update(on_device, there(drawn(model)(0)))
        failing.down = failing.up = 0
        opt.update(on_device, there(drawn(model)(1)))
        assert (failing.down, failing.up) == expected


@pytest.mark.parametrize(
    "make",
    [
        lambda **named: optim.chain(optim.ClipByGlobalNorm(0.5), AdamW(0.1), **named),
        lambda **named: optim.Prodigy(**named),
        lambda **named: optim.LAMB(0.1, **named),
    ],
    ids=["clipped", "Prodigy", "LAMB"],
)
def test_totals_are_measured_before_steps_by_pieces(make: Make, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces: list[int] = []
    monkeypatch.setattr(host_placement, "take_part", lambda *args: pieces.append(len(args[2])) or take_part(*args))
    follow(make, problem(), drawn(problem()), 4)
    assert bool(pieces) == (piece == 64)
    assert all(count < len(problem()) for count in pieces)


@pytest.mark.parametrize("reads", ["update", "state_dict", "flush"])
def test_a_copy_up_that_fails_is_made_again(failing: type[Failing], reads: str) -> None:
    model = problem()
    on_device, on_host = there(model), {name: x.copy() for name, x in model.items()}
    opt, other = Adam(0.1, state_device="host"), Adam(0.1)
    failing.due = "up"
    with pytest.raises(RuntimeError, match="device failed"):
        opt.update(on_device, there(drawn(model)(0)))
    other.update(on_host, drawn(model)(0))
    failing.due = ""
    if reads == "update":
        opt.update(on_device, there(drawn(model)(1)))
        other.update(on_host, drawn(model)(1))
    elif reads == "flush":
        opt.flush(on_device)
    else:
        assert opt.state_dict()["step"] == 1
    assert_same_bits(on_device, on_host)
    assert_same_bits(state_of(opt), state_of(other))


class Late(transfers.BlockingTransfers):
    """Copies that are done when they are waited for, or were looked at often enough; `log` has what happens."""

    log: ClassVar[list[str]] = []
    looks: ClassVar[random.Random] = random.Random()

    def copy_down(self, source: Any, target: Any) -> Any:
        self.log.append("down")
        target[...] = -7  # until it is done
        return self._late(lambda: super(Late, self).copy_down(source, target))

    def copy_up(self, source: Any, target: Any) -> Any:
        self.log.append("up")
        return self._late(lambda: super(Late, self).copy_up(source, target))

    def _late(self, copy: Callable[[], Any]) -> LateEvent:
        def end() -> None:
            copy()
            self.log.append("done")

        return LateEvent(end, self.looks.randrange(4))

    def join(self) -> None:
        self.log.append("join")


@pytest.mark.parametrize("seed", range(8))
def test_copies_may_end_in_any_order(seed: int, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Adapter, "transfers", lambda self, array: Late(self))
    Late.looks.seed(seed)
    update = host_placement.take_part

    def logged(*args: Any) -> None:
        Late.log.append("update")
        update(*args)

    monkeypatch.setattr(host_placement, "take_part", logged)
    opt, _, model, _ = follow(lambda **named: AdamW(0.1, **named), problem(), drawn(problem()))
    Late.log.clear()
    opt.update(model, there(drawn(problem())(3)))
    log = Late.log
    assert log.count("down") == 2 * len(problem()) == 2 * log.count("up") == 2 * log.count("done") // 3
    assert log[-1] == "join"
    if piece == 64:
        updates = [at for at, what in enumerate(log) if what == "update"]
        assert len(updates) == 2  # of the large one, of the others
        assert log[: updates[0]].count("done") == log.count("down")
        assert log.index("up") < updates[-1]  # while others are updated
    else:
        assert "update" not in log


def test_a_copy_up_of_a_piece_that_fails_is_made_again_and_ends_no_update(failing: type[Failing]) -> None:
    model = problem()
    opt, other, on_device, on_host = follow(lambda **named: Adam(0.1, **named), model, drawn(model), steps=2)
    failing.up, failing.due = 0, "up"
    with pytest.raises(RuntimeError, match="device failed"):
        opt.update(on_device, there(drawn(model)(2)))
    failing.due = ""
    assert opt.ahead == []
    other.update(on_host, drawn(model)(2))
    assert opt.step == 3
    opt.update(on_device, there(drawn(model)(3)))
    other.update(on_host, drawn(model)(3))
    assert_same_bits(on_device, on_host)
    assert_same_bits(state_of(opt), state_of(other))


def test_a_copy_down_that_fails_changes_no_piece(failing: type[Failing]) -> None:
    model = problem()
    opt, other, on_device, on_host = follow(lambda **named: Adam(0.1, **named), model, drawn(model), steps=2)
    failing.down, failing.due = 0, "down"
    with pytest.raises(RuntimeError, match="device failed"):
        opt.update(on_device, there(drawn(model)(2)))
    failing.due = ""
    assert opt.step == 2
    assert_same_bits(on_device, on_host)
    assert_same_bits(state_of(opt), state_of(other))
    opt.update(on_device, there(drawn(model)(2)))
    other.update(on_host, drawn(model)(2))
    assert_same_bits(on_device, on_host)


def test_the_wait_for_a_copy_of_a_piece_fails(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Adapter, "transfers", lambda self, array: Late(self))
    model = problem()
    opt, other, on_device, on_host = follow(lambda **named: Adam(0.1, **named), model, drawn(model), steps=2)
    wait, calls = LateEvent.wait, [0]

    def fails(self: LateEvent) -> None:
        if self._copy is not None:
            calls[0] += 1
            if calls[0] == 2 * len(model) + 2:  # after those down
                raise RuntimeError("the device failed")
        wait(self)

    with monkeypatch.context() as patched:
        patched.setattr(LateEvent, "wait", fails)
        with pytest.raises(RuntimeError, match="device failed"):
            opt.update(on_device, there(drawn(model)(2)))
    other.update(on_host, drawn(model)(2))
    assert opt.state_dict()["step"] == 3  # which completes the copies
    assert_same_bits(on_device, on_host)


def test_an_interrupt_while_pieces_go_up_comes_at_the_end_of_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    model = problem()
    opt, other, on_device, on_host = follow(lambda **named: Adam(0.1, **named), model, drawn(model), steps=2)
    with interrupted_waits(monkeypatch), pytest.raises(KeyboardInterrupt):
        opt.update(on_device, there(drawn(model)(2)))
    other.update(on_host, drawn(model)(2))
    assert opt.step == 3
    assert_same_bits(on_device, on_host)
    assert_same_bits(state_of(opt), state_of(other))


def test_an_interrupt_after_the_update_leaves_a_whole_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(self: Any) -> None:
        raise KeyboardInterrupt

    found = []
    for make in (there, lambda model: {name: x.copy() for name, x in model.items()}):
        model = make(problem())
        opt = Adam(0.1, loss_scale=optim.LossScale(2.0), state_device="host" if make is there else None)
        with monkeypatch.context() as patched:
            patched.setattr(StepCounts, "settle", stopped)
            with pytest.raises(KeyboardInterrupt):
                opt.update(model, make(drawn(problem())(0)))
        found.append((here(model), state_of(opt)))
    assert_same_bits(found[0][0], found[1][0])
    assert_same_bits(found[0][1], found[1][1])
    assert not np.array_equal(found[0][0]["w"], problem()["w"])


def test_a_copy_down_that_fails_changes_nothing(failing: type[Failing]) -> None:
    model = problem()
    on_device, opt = there(model), Adam(0.1, state_device="host")
    failing.due = "down"
    with pytest.raises(RuntimeError, match="device failed"):
        opt.update(on_device, there(drawn(model)(0)))
    failing.due = ""
    assert_same_bits(on_device, model)
    assert opt.step == 0
    opt.update(on_device, there(drawn(model)(0)))
    assert opt.step == 1


def test_memory_of_the_host_is_that_of_the_first_step() -> None:
    model = problem()
    on_device, opt = there(model), Adam(0.1, state_device="host")
    found = []
    for number in range(3):
        opt.update(on_device, there(drawn(model)(number)))
        memory = opt._stepper.placement
        found.append([id(x) for x in (*memory._parameters.values(), *memory._gradients.values())])
        assert memory.model is None
        assert not memory.arrays
    assert len(found[0]) == 8
    assert found[0] == found[1] == found[2]


def test_arrays_on_devices_live_no_longer_than_the_user_holds_them() -> None:
    model, opt = there(problem()), Adam(0.1, accumulate=2, state_device="host")
    opt.update(model, there(drawn(problem())(0)))
    opt.flush(model)
    with pytest.raises(ShapeError):
        opt.update(model, {**there(problem()), "w": arrays.Array(np.ones(3, np.float32))})
    references = [weakref.ref(x) for x in model.values()]
    del model
    gc.collect()
    assert [reference() for reference in references] == [None] * 4
