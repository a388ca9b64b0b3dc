"""State in host memory of optimizers of `oxigrad.optim`, ``state_device="host"``: the bits of steps over NumPy's arrays, for every option."""

from __future__ import annotations

import copy
import gc
import pickle
import random
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import arrays
import numpy as np
import pytest
from late_event import LateEvent

import libraries
import optimizers
from oxigrad import (
    AliasError,
    ArrayMemoryError,
    NonFiniteError,
    ShapeError,
    SparseRows,
    StateError,
    StructureError,
    optim,
    schedules,
    xp,
)
from oxigrad.ops.backends.generic import Adapter
from oxigrad.ops.backends.memory import transfers
from oxigrad.optim import Adam, AdamW, chain
from oxigrad.stepping.device import host_stepper
from oxigrad.stepping.device.piece_run import PieceRun
from oxigrad.stepping.stepper import Stepper

Model = dict[str, Any]
Make = Callable[..., Any]
MAKES = {**optimizers.OPTIMIZERS, **optimizers.WHOLE}


@pytest.fixture(autouse=True, params=[1 << 25, 64], ids=["one piece", "pieces"])
def piece(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The bytes of a piece: of all parameters, or of few numbers."""
    monkeypatch.setattr(host_stepper, "PIECE", request.param)
    return request.param


def there(model: Model) -> Model:
    """The arrays of a model on a device."""
    return {name: arrays.Array(np.array(x)) for name, x in model.items()}


def here(model: Model) -> Model:
    """Copies of the arrays in host memory."""
    return {name: arrays.host(x) for name, x in model.items()}


def assert_same_bits(found: Model, expected: Model) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        a, b = arrays.host(found[name]), np.asarray(value)
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert a.tobytes() == b.tobytes(), name


def state_of(opt: Any) -> Model:
    """The arrays of the slots by path and name, all of which are in host memory."""
    found = {}
    for path, own in opt.slots.items():
        for name, slot in own.items():
            parts = slot.arrays if isinstance(slot, optim.Quantized) else {"": slot}
            found |= {f"{path} {name} {part}": array for part, array in parts.items()}
    assert all(isinstance(array, np.ndarray) for array in found.values())
    return found


def follow(make: Make, model: Model, gradients: Any, steps: int = 3) -> tuple[Any, Any, Model, Model]:
    """Steps of a model on a device and of one in host memory, which are compared after each; ``gradients`` are by the number of the step."""
    on_device, on_host = there(model), {name: np.array(x) for name, x in model.items()}
    opt, other = make(state_device="host"), make()
    for number in range(steps):
        g = gradients(number)
        is_given = {name: x is not None for name, x in g.items()}
        moved = {name: arrays.Array(x) if isinstance(x, np.ndarray) else x for name, x in g.items()}
        assert opt.update(on_device, moved) is on_device
        other.update(on_host, {name: x for name, x in g.items() if is_given[name]} if all(is_given.values()) else g)
        assert_same_bits(here(on_device), on_host)
        assert_same_bits(state_of(opt), state_of(other))
    assert (opt.step, opt.skipped) == (other.step, other.skipped)
    return opt, other, on_device, on_host


def drawn(model: Model) -> Callable[[int], Model]:
    """Normal gradients of a model, by the number of the step."""

    def gradients(number: int) -> Model:
        generator = np.random.default_rng(100 + number)
        return {n: np.asarray(generator.standard_normal(x.shape)).astype(x.dtype) for n, x in model.items()}

    return gradients


def problem(dtype: Any = "float32") -> Model:
    """Leaves of several shapes, one of them with as many numbers as a state of 8 bits asks for."""
    generator = np.random.default_rng(0)
    shapes = {"w": (70, 64), "b": (3,), "none": (2, 0), "one": ()}
    return {name: np.asarray(generator.standard_normal(shape)).astype(dtype) for name, shape in shapes.items()}


@pytest.mark.parametrize("name", sorted(MAKES))
def test_every_optimizer_has_the_bits_of_the_host(name: str) -> None:
    model = {"w": problem()["w"], "v": problem()["w"][:40, :9].copy()} if name in optimizers.WHOLE else problem()
    follow(MAKES[name], model, drawn(model))


HALF: list[dict[str, Any]] = [
    {},
    {"master": True},
    {"master": True, "slot_dtype": "8bit"},
    {"rounding": "kahan"},
    {"rounding": "stochastic", "seed": 3, "slot_dtype": "4bit"},
]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("options", HALF)
def test_every_precision_has_the_same_bits(options: dict[str, Any], dtype: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    model = problem(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    follow(lambda **named: AdamW(0.1, **options, **named), model, drawn(model))


COMPOSED: dict[str, Make] = {
    "clipped": lambda **named: chain(optim.ClipByGlobalNorm(0.5), AdamW(0.1), **named),
    "scheduled": lambda **named: AdamW(schedules.exponential(0.1, 0.9), **named),
    "grouped": lambda **named: AdamW(0.1, groups={"b": {"learning_rate": 0.5}, "w": None}, **named),
    "parts": lambda **named: optim.partition({"w": optim.Muon(0.1), "*": Adam(0.1)}, **named),
    "accumulated": lambda **named: Adam(0.1, accumulate=2, **named),
    "norms": lambda **named: Adam(0.1, record_norms=("gradient", "update", "parameter"), **named),
    "averaged": lambda **named: chain(Adam(0.1), optim.EMA(0.9), **named),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_compositions_and_options(name: str) -> None:
    model = problem()
    opt, other, *_ = follow(COMPOSED[name], model, drawn(model), 5)
    if name == "norms":
        for kind in ("gradient", "update", "parameter"):
            assert opt.recorded_norms[kind] == other.recorded_norms[kind]


def test_gradients_that_are_missing_or_rows() -> None:
    model = problem()
    rows = SparseRows(np.array([3, 7]), np.ones((2, 64), np.float32), (70, 64))

    def gradients(number: int) -> Model:
        found = drawn(model)(number)
        return {**found, "b": None} if number == 1 else {**found, "w": rows}

    for mode in ("dense", "lazy", "catch_up"):
        follow(lambda mode=mode, **named: Adam(0.1, sparse=mode, **named), model, gradients, 4)


@pytest.mark.parametrize("nonfinite", ["skip", "raise"])
def test_gradients_that_are_not_finite_change_nothing(nonfinite: str) -> None:
    model, opt = there(problem()), Adam(0.1, nonfinite=nonfinite, state_device="host")
    opt.update(model, there(drawn(problem())(0)))
    before, state = here(model), here(state_of(opt))
    bad = there({**drawn(problem())(1), "b": np.full(3, np.nan, np.float32)})
    if nonfinite == "raise":
        with pytest.raises(NonFiniteError, match=r"b: the gradient has"):
            opt.update(model, bad)
    else:
        opt.update(model, bad)
        assert (opt.step, opt.skipped) == (1, 1)
    assert_same_bits(model, before)
    assert_same_bits(state_of(opt), state)


def test_minimize_with_a_loss_scale_has_the_same_bits() -> None:
    found = []
    for on_device in (True, False):
        model = {"w": np.linspace(-1, 1, 5, dtype=np.float32)}
        model = there(model) if on_device else model
        opt = Adam(0.1, loss_scale=optim.LossScale(2.0**10), state_device="host" if on_device else None)
        for _ in range(3):
            opt.minimize(lambda model: xp.sum(model["w"] * model["w"]), model)
        found.append((here(model), state_of(opt)))
    assert_same_bits(found[0][0], found[1][0])
    assert_same_bits(found[0][1], found[1][1])


def test_steps_at_perturbed_parameters_have_the_same_bits() -> None:
    asarray, found = libraries.named("device").asarray, []
    for state_device, make in (("host", asarray), (None, np.array)):
        model = {"w": make(np.linspace(-1, 1, 5, dtype=np.float32))}
        opt = optim.SAM(Adam(0.1), rho=0.125, state_device=state_device)
        for _ in range(3):
            opt.minimize(lambda model: xp.sum(model["w"] * model["w"]), model)
        found.append(({"w": libraries.host(model["w"])}, state_of(opt)))
    assert_same_bits(found[0][0], found[1][0])
    assert_same_bits(found[0][1], found[1][1])


def test_accumulated_gradients_are_in_host_memory_and_are_flushed() -> None:
    model, g = problem(), drawn(problem())
    on_device, on_host = there(model), {name: x.copy() for name, x in model.items()}
    opt, other = Adam(0.1, accumulate=4, state_device="host"), Adam(0.1, accumulate=4)
    for number in range(2):
        opt.update(on_device, there(g(number)))
        other.update(on_host, g(number))
    assert_same_bits(on_device, model)
    assert isinstance(opt.slots["w"]["accumulated-mean"], np.ndarray)
    assert opt.flush(on_device) is on_device
    other.flush(on_host)
    assert_same_bits(on_device, on_host)
    assert opt.step == 1
    assert opt.flush(on_device) is on_device


def test_averages_are_swapped_on_the_device() -> None:
    model = problem()
    opt, other, on_device, on_host = follow(COMPOSED["averaged"], model, drawn(model))
    before = here(on_device)
    assert_same_bits(opt.averaged_parameters(on_device), other.averaged_parameters(on_host))
    opt.swap_in(on_device)
    other.swap_in(on_host)
    assert_same_bits(on_device, on_host)
    with pytest.raises(StateError, match="swapped in"):
        opt.update(on_device, there(drawn(model)(9)))
    opt.swap_out(on_device)
    assert_same_bits(on_device, before)


def test_parameters_that_others_change_are_read_in_each_step() -> None:
    model = problem()
    opt, other, on_device, on_host = follow(lambda **named: Adam(0.1, **named), model, drawn(model))
    on_device["b"][...] = arrays.Array(np.ones(3, np.float32))
    on_host["b"][...] = 1.0
    on_device["w"] = arrays.Array(np.ones((70, 64), np.float32))
    on_host["w"] = np.ones((70, 64), np.float32)
    opt.update(on_device, there(drawn(model)(5)))
    other.update(on_host, drawn(model)(5))
    assert_same_bits(on_device, on_host)


def test_tied_and_new_parameters() -> None:
    shared, other_shared = arrays.Array(np.ones(3, np.float32)), np.ones(3, np.float32)
    on_device, on_host = {"a": shared, "b": shared}, {"a": other_shared, "b": other_shared}
    opt, other = Adam(0.1, state_device="host"), Adam(0.1)
    for number in range(2):
        g = {name: np.full(3, number + k, np.float32) for k, name in enumerate("ab")}
        opt.update(on_device, there(g))
        other.update(on_host, g)
        assert_same_bits(on_device, on_host)
        assert on_device["a"] is on_device["b"] is shared
    for tree, of in ((on_device, there), (on_host, dict)):
        tree.update(of({"c": np.ones(2, np.float32)}))
    with pytest.raises(StructureError, match="c: the parameter is new"):
        opt.update(on_device, there({**g, "c": np.ones(2, np.float32)}))
    assert opt.rebuild(on_device).added == other.rebuild(on_host).added == ["c"]
    g["c"] = np.ones(2, np.float32)
    opt.update(on_device, there(g))
    other.update(on_host, g)
    assert_same_bits(on_device, on_host)


# --- state ---------------------------------------------------------------------------------------------------------------------


def test_states_are_those_of_the_optimizer_without_it(tmp_path: Path) -> None:
    model, make = problem(), lambda **named: AdamW(0.1, slot_dtype="8bit", **named)
    opt, other, on_device, on_host = follow(make, model, drawn(model))
    for source, name in ((opt, "there"), (other, "here")):
        source.save(tmp_path / f"{name}.safetensors")
    resumed, other_resumed = make(state_device="host"), make()
    resumed.load(tmp_path / "here.safetensors")
    other_resumed.load(tmp_path / "there.safetensors")
    for each in (resumed, copy.deepcopy(opt), pickle.loads(pickle.dumps(opt))):  # noqa: S301 - our own
        assert each.state_device == "host"
        moved = there(here(on_device))
        each.update(moved, there(drawn(model)(7)))
        expected = {name: x.copy() for name, x in on_host.items()}
        copy.deepcopy(other).update(expected, drawn(model)(7))
        assert_same_bits(moved, expected)
    expected = {name: x.copy() for name, x in on_host.items()}
    other_resumed.update(expected, drawn(model)(7))
    moved = there(here(on_device))
    opt.update(moved, there(drawn(model)(7)))
    assert_same_bits(moved, expected)
    assert optim.from_config(opt.get_config()).state_device == "host"
    assert "state_device='host'" in repr(opt)


# --- copies --------------------------------------------------------------------------------------------------------------------


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
    update = Stepper.take_part

    def logged(*args: Any) -> None:
        Late.log.append("update")
        update(*args)

    monkeypatch.setattr(Stepper, "take_part", logged)
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


def test_an_interrupt_between_pieces_comes_at_the_end_of_the_step(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if piece != 64:
        pytest.skip("a step in one piece is one call of the core")
    model = problem()
    opt, other, on_device, on_host = follow(lambda **named: Adam(0.1, **named), model, drawn(model), steps=2)
    join, calls = PieceRun.join, [0]

    def stopped(self: PieceRun, **keywords: Any) -> None:
        calls[0] += 1
        if calls[0] in (3, 4):  # those before come before the thread
            raise KeyboardInterrupt
        join(self, **keywords)

    monkeypatch.setattr(PieceRun, "join", stopped)
    with pytest.raises(KeyboardInterrupt):
        opt.update(on_device, there(drawn(model)(2)))
    assert calls[0] == 5
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
            patched.setattr(Stepper, "_settle", stopped)
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
        memory = opt._stepper._host
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


# --- what is refused -------------------------------------------------------------------------------------------------------------


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="state_device is 'cpu': expected"):
        Adam(0.1, state_device="cpu")
    with pytest.raises(ValueError, match="zero_gradients=True excludes state_device='host'"):
        Adam(0.1, zero_gradients=True, state_device="host")
    opt = Adam(0.1, state_device="host")
    with pytest.raises(ValueError, match="zero_gradients=True excludes"):
        opt.zero_gradients = True
    with pytest.raises(AttributeError, match="state_device"):
        opt.state_device = None
    with pytest.raises(ValueError, match="state_device must be set on the chain instead"):
        chain(optim.ClipByValue(0.5), Adam(0.1, state_device="host"))
    model = there(problem())
    with pytest.raises(ValueError, match="in_backward"):
        opt.minimize(lambda model: xp.sum(model["w"] * model["w"]), model, in_backward=True)
    for call in (lambda: opt.init(model), lambda: opt.apply(model, model, {})):
        with pytest.raises(ValueError, match="is for update and minimize"):
            call()
    with pytest.raises(ValueError, match="LBFGS: state_device cannot be set"):
        optim.LBFGS(state_device="host").minimize(lambda model: xp.sum(model["w"] * model["w"]), model)
    whole = np.ones(6, np.float32)
    overlapping = {"a": arrays.Array(whole[:4]), "b": arrays.Array(whole[2:])}
    with pytest.raises(AliasError, match="a and b share memory"):
        opt.update(overlapping, there({"a": np.ones(4, np.float32), "b": np.ones(4, np.float32)}))
    fixed = np.ones(3, np.float32)
    fixed.flags.writeable = False
    with pytest.raises(ArrayMemoryError, match="b: the parameter cannot be written"):
        opt.update({**model, "b": fixed}, there(drawn(problem())(0)))
    with pytest.raises(ShapeError, match="w: gradient has shape"):
        opt.update(model, {**there(drawn(problem())(0)), "w": arrays.Array(np.ones(3, np.float32))})
    assert_same_bits(model, problem())
    assert opt.step == 0


def test_arrays_in_host_memory_are_updated_where_they_are() -> None:
    model = problem()
    on_host, mixed = ({name: x.copy() for name, x in model.items()} for _ in range(2))
    mixed["w"] = arrays.Array(mixed["w"])
    opt, other = Adam(0.1, state_device="host"), Adam(0.1)
    kept = mixed["b"]
    for number in range(2):
        g = drawn(model)(number)
        opt.update(mixed, {**g, "w": arrays.Array(g["w"])})
        other.update(on_host, g)
    assert mixed["b"] is kept
    assert_same_bits(mixed, on_host)


@pytest.mark.parametrize("library", [libraries.named("device"), *libraries.GPU], ids=lambda library: library.name)
def test_other_libraries_with_devices(library: libraries.Library) -> None:
    if not library.is_there():
        pytest.skip(f"{library.name} is not installed, or finds no GPU")
    asarray = library.asarray
    model = {key: x for key, x in problem().items() if key in ("w", "b")}
    on_device, on_host = {key: asarray(x) for key, x in model.items()}, {key: x.copy() for key, x in model.items()}
    opt, other = Adam(0.1, state_device="host"), Adam(0.1)
    for number in range(3):
        g = drawn(model)(number)
        assert opt.update(on_device, {key: asarray(x) for key, x in g.items()}) is on_device
        other.update(on_host, g)
    assert_same_bits({key: libraries.host(x) for key, x in on_device.items()}, on_host)
