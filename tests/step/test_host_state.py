"""State in host memory of optimizers of `oxigrad.optim`, ``state_device="host"``: the bits of steps over NumPy's arrays, for every option."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import arrays
import numpy as np
import pytest

import libraries
import optimizers
from host_state import Make, Model, assert_same_bits, drawn, follow, here, problem, state_of, there
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
from oxigrad.optim import Adam, AdamW, chain

MAKES = {**optimizers.OPTIMIZERS, **optimizers.WHOLE}

pytestmark = pytest.mark.usefixtures("piece")


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
    "orthogonalized": lambda **named: chain(Adam(0.1), optim.Orthogonalize(), optim.NormalizeRows(), **named),
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


@pytest.mark.parametrize("options", [{}, {"accumulate": 2}, {"nonfinite": "skip"}], ids=str)
def test_gradients_are_zeros_after_a_step_that_counts_them(options: dict[str, Any]) -> None:
    opt, other = (Adam(0.1, **options, **more) for more in ({"zero_gradients": True, "state_device": "host"}, {}))
    on_device, expected = there(problem()), problem()
    for number in range(4):
        grads = drawn(expected)(number)
        of_device = there(grads)
        opt.update(on_device, of_device)
        other.update(expected, grads)
        assert all(not np.any(g) for g in here(of_device).values())
    assert_same_bits(here(on_device), expected)
    assert_same_bits(here(state_of(opt)), here(state_of(other)))


def test_gradients_stay_where_a_step_is_skipped() -> None:
    opt = Adam(0.1, zero_gradients=True, nonfinite="skip", state_device="host")
    grads = there({**drawn(problem())(0), "b": np.full(3, np.nan, np.float32)})
    before = here(grads)
    opt.update(there(problem()), grads)
    assert_same_bits(here(grads), before)


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


# --- what is refused -------------------------------------------------------------------------------------------------------------


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="state_device is 'cpu': expected"):
        Adam(0.1, state_device="cpu")
    opt = Adam(0.1, state_device="host")
    with pytest.raises(AttributeError, match="state_device"):
        opt.state_device = None
    with pytest.raises(ValueError, match="state_device must be set on the chain instead"):
        chain(optim.ClipByValue(0.5), Adam(0.1, state_device="host"))
    model = there(problem())
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
