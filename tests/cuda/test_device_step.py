"""Steps of every optimizer on CUDA devices, through `update` and a mock driver: the bits of a step over NumPy's arrays."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from typing import Any, cast

import arrays
import executor
import numpy as np
import pytest
from mock_driver import FLAGS, MockDriver

import optimizers
import oxigrad as ox
from oxigrad import cuda, optim, schedules
from oxigrad.optim import SGD, Adam, AdamW, chain
from oxigrad.step.device import sources

Model = dict[str, Any]

#: Those that run in float64, too; tests of bits compare the texts of all.
IN_DOUBLE = ("adamw", "lamb", "prodigy", "adam-lrd", "nadam")
PER_FILE = 8  # texts that are compiled together


@pytest.fixture(scope="module")
def compiled(request: pytest.FixtureRequest) -> None:
    """Compiles the texts of the tests that are run, some at a time, which takes less time than one at a time."""
    if executor.COMPILER is None:
        pytest.skip("g++ is missing")
    texts, items = [], cast("list[Any]", request.session.items)
    for item in items:
        if item.path == request.path and "compiled" in item.fixturenames:
            name, dtype = item.callspec.params["name"], item.callspec.params.get("dtype", "float32")
            opt = optimizers.OPTIMIZERS[name]()
            texts += sources.texts(opt._step_options, {"w": np.zeros(3, dtype)})
    for start in range(0, len(texts), PER_FILE):
        executor.compile_texts(texts[start : start + PER_FILE], *FLAGS)


def on_device(model: Model, device: int = 0) -> Model:
    return {name: arrays.Array(np.array(x), device) for name, x in model.items()}


def assert_same_bits(found: Model, expected: Model) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        a, b = arrays.host(found[name]), np.asarray(value)
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes(), name


def slots_of(opt: Any) -> Model:
    """The arrays of the slots by name: codes and scales of those of eight bits."""
    found = {}
    for path, own in opt.slots.items():
        for name, slot in own.items():
            is_coded = isinstance(slot, optim.Quantized)
            parts = {"codes": slot.codes, "scales": slot.scales} if is_coded else {"": slot}
            found |= {f"{path} {name} {part}": array for part, array in parts.items()}
    return found


def follow(
    make: Callable[[], Any],
    model: Model,
    grads: Model,
    steps: int = 3,
    change: Callable[[Any, int], None] | None = None,
) -> tuple[Any, Any]:
    """Steps over NumPy's arrays and on a device, compared after each."""
    there, given = on_device(model), on_device(grads)
    here = {name: np.array(x) for name, x in model.items()}
    a, b = make(), make()
    for number in range(steps):
        for opt in (a, b):
            if change:
                change(opt, number)
        assert a.update(there, given) is there
        b.update(here, grads)
        assert_same_bits(there, here)
        assert_same_bits(slots_of(a), slots_of(b))
    assert (a.step, a.skipped) == (b.step, b.skipped)
    return a, b


@pytest.mark.parametrize(
    ("name", "dtype"),
    [*((name, "float32") for name in optimizers.OPTIMIZERS), *((name, "float64") for name in IN_DOUBLE)],
)
@pytest.mark.one_in(10)
def test_every_optimizer_gives_the_bits_of_the_host(name: str, dtype: str, mock: MockDriver, compiled: None) -> None:
    model, grads = optimizers.problem(dtype)
    follow(optimizers.OPTIMIZERS[name], model, grads)
    assert len(mock.launches()) >= 3, "the rule was called on arrays"
    assert "wait" not in mock.counts()


@pytest.mark.parametrize("name", ["sgd", "momentum", "lion", "adam", "adamw", "amsgrad", "rmsprop-all"])
def test_a_plain_rule_is_one_launch(name: str, mock: MockDriver, compiled: None) -> None:
    model, grads = optimizers.problem("float32")
    follow(optimizers.OPTIMIZERS[name], model, grads)
    assert len(mock.launches()) == 3


# --- precision ---------------------------------------------------------------------------------------------------------

PRECISIONS: dict[str, dict[str, Any]] = {
    "nearest": {},
    "master": {"master": True},
    "kahan": {"rounding": "kahan"},
    "stochastic": {"rounding": "stochastic", "seed": 5},
    "slots of bfloat16": {"slot_dtype": "bfloat16"},
    "slots of float16": {"slot_dtype": "float16", "rounding": "stochastic"},
}


@pytest.mark.parametrize("options", PRECISIONS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.one_in(4)
def test_options_of_precision(dtype: str, options: str, mock: MockDriver) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    model, grads = optimizers.problem("float32")
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    half = {name: x.astype(kind) for name, x in model.items()}
    follow(lambda: AdamW(0.1, **PRECISIONS[options]), half, {name: g.astype(kind) for name, g in grads.items()})
    assert len(mock.launches()) == 3


def test_gradients_of_float32_for_halves(mock: MockDriver) -> None:
    model, grads = optimizers.problem("float32")
    follow(lambda: AdamW(0.1), {name: x.astype(np.float16) for name, x in model.items()}, grads)
    assert len(mock.launches()) == 3


# --- chains, groups, options -------------------------------------------------------------------------------------------

CHAINS: dict[str, Callable[[], Any]] = {
    "clipped": lambda: chain(optim.ClipByValue(0.5), AdamW(0.1)),
    "averaged": lambda: chain(AdamW(0.1), optim.EMA(0.9)),
    "lookahead": lambda: chain(SGD(0.1), optim.Lookahead()),
    "schedule": lambda: AdamW(schedules.exponential(0.1, 0.9)),
    "frozen": lambda: AdamW(0.1, groups={"p3": None, "p5": {"learning_rate": 0.01}}),
    "accumulated": lambda: AdamW(0.1, accumulate=2),
    "by norm": lambda: chain(optim.ClipByNorm(0.5), AdamW(0.1)),
    "by global norm": lambda: chain(optim.ClipByGlobalNorm(0.5), AdamW(0.1)),
    "by global norm, lamb": lambda: chain(optim.ClipByGlobalNorm(0.5), optim.LAMB(0.1)),
    "noise": lambda: chain(optim.ClipByValue(0.5), optim.AdamLRD(0.1, dropout_rate=0.5), seed=7),
    "checked": lambda: AdamW(0.1, nonfinite="skip"),
    "raising": lambda: AdamW(0.1, nonfinite="raise"),
    "scaled": lambda: AdamW(0.1, loss_scale=optim.LossScale(8.0)),
    "accumulated and checked": lambda: AdamW(0.1, accumulate=3, nonfinite="skip"),
    "accumulated and scaled": lambda: AdamW(0.1, accumulate=2, loss_scale=optim.LossScale(8.0, interval=2)),
    "checked and clipped": lambda: chain(optim.ClipByGlobalNorm(0.5), AdamW(0.1), nonfinite="skip"),
}


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.one_in(4)
def test_chains_and_options(name: str, mock: MockDriver) -> None:
    model, grads = optimizers.problem("float32")
    follow(CHAINS[name], model, grads, steps=4)
    assert len(mock.launches()) >= 4, "the rule was called on arrays"


def test_two_programs_share_a_global_norm(mock: MockDriver) -> None:
    model, grads = optimizers.problem("float32")
    mixed = {name: x.astype(np.float64) if number % 3 else x for number, (name, x) in enumerate(model.items())}
    given = {name: grads[name].astype(x.dtype) for name, x in mixed.items()}
    groups = {"p1*": {"nesterov": True}}
    make = lambda: chain(optim.ClipByGlobalNorm(0.5), SGD(0.1, momentum=0.9), groups=groups)  # noqa: E731
    follow(make, mixed, given)
    assert mock.launches()


def test_zero_gradients(mock: MockDriver) -> None:
    model, grads = optimizers.problem("float32")
    there, given = on_device(model), on_device(grads)
    AdamW(0.1, zero_gradients=True).update(there, given)
    assert all(not arrays.host(g).any() for g in given.values()) and mock.launches()


def test_tied_parameters_are_one(mock: MockDriver) -> None:
    model, grads = optimizers.problem("float32")
    p, g, other = model["p7"], grads["p7"], grads["p7"] * 3
    there = arrays.Array(p.copy())
    here = p.copy()
    AdamW(0.1).update({"a": there, "b": there}, {"a": arrays.Array(g), "b": arrays.Array(other)})
    AdamW(0.1).update({"a": here, "b": here}, {"a": g, "b": other})
    assert_same_bits({"a": there}, {"a": here})
    assert len(mock.launches()) == 1


def test_sparse_rows_are_updated_by_the_rule_and_others_by_a_kernel(mock: MockDriver) -> None:
    model, grads = optimizers.problem("float32")
    there, given = on_device(model), on_device(grads)
    rows = ox.SparseRows(arrays.Array(np.array([0, 2])), arrays.Array(np.ones((2, 5), np.float32)), (3, 5))
    host_rows = ox.SparseRows(np.array([0, 2]), np.ones((2, 5), np.float32), (3, 5))
    table = next(name for name, x in model.items() if x.shape == (3, 5))
    a, b = SGD(0.1, sparse="lazy"), SGD(0.1, sparse="lazy")
    for _ in range(2):
        there = a.update(there, {**given, table: rows})
        b.update(model, {**grads, table: host_rows})
    assert len(mock.launches()) == 2
    np.testing.assert_allclose(arrays.host(there[table]), model[table], rtol=1e-6)
    del there[table], model[table]
    assert_same_bits(there, model)


def test_sparse_rows_after_dense_gradients_are_as_the_dense_ones(mock: MockDriver) -> None:
    """Momentum moves the other rows from the first sparse gradient on."""
    there, here = arrays.Array(np.ones((3, 5), np.float32)), np.ones((3, 5), np.float32)
    g, indices, values = np.ones((3, 5), np.float32), np.array([0, 2]), np.ones((2, 5), np.float32)
    a, b = SGD(0.1, 0.9), SGD(0.1, 0.9)
    rows = ox.SparseRows(arrays.Array(indices), arrays.Array(values), (3, 5))
    for sparse in (False, True, False, True):
        a.update({"w": there}, {"w": rows if sparse else arrays.Array(g)})
        b.update({"w": here}, {"w": ox.SparseRows(indices, values, (3, 5)) if sparse else g})
        np.testing.assert_array_equal(arrays.host(there), here)
    assert len(mock.launches()) == 4


def test_gradients_that_are_not_contiguous(mock: MockDriver) -> None:
    wide = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)
    there, here = arrays.Array(np.ones((6, 4), np.float32)), np.ones((6, 4), np.float32)
    a, b = AdamW(0.1), AdamW(0.1)
    for g in (arrays.Array(wide)[:, ::2], arrays.Array(wide)[:, ::2], arrays.Array(wide[:, ::2].copy())):
        a.update({"w": there}, {"w": g})
        b.update({"w": here}, {"w": wide[:, ::2]})
        assert_same_bits({"w": there}, {"w": here})
    assert len(mock.launches()) == 3


def test_gradients_that_are_not_contiguous_are_zeroed(mock: MockDriver) -> None:
    wide = arrays.Array(np.ones((6, 8), np.float32))
    there, opt = {"w": arrays.Array(np.ones((6, 4), np.float32))}, AdamW(0.1, zero_gradients=True)
    opt.update(there, {"w": wide[:, ::2]})
    assert len(mock.launches()) == 1
    assert not arrays.host(wide)[:, ::2].any() and arrays.host(wide)[:, 1::2].all()
    fixed = np.ones((6, 4), np.float32)
    fixed.setflags(write=False)
    before = arrays.host(there["w"])
    with pytest.raises(ox.ArrayMemoryError, match="^w: the gradient, where zero_gradients .* is read-only"):
        opt.update(there, {"w": arrays.Array(fixed)})
    assert_same_bits(there, {"w": before})
    assert opt.step == 1


# --- mixed models ------------------------------------------------------------------------------------------------------


def test_a_model_of_several_libraries_takes_one_step(mock: MockDriver, library: Any) -> None:
    torch = library("torch")
    values = {name: np.random.default_rng(5).standard_normal(50).astype(np.float32) for name in "abc"}
    model = {"a": values["a"].copy(), "b": torch.tensor(values["b"]), "c": arrays.Array(values["c"].copy())}
    grads = {"a": values["b"], "b": torch.tensor(values["c"]), "c": arrays.Array(values["a"])}
    here = {name: x.copy() for name, x in values.items()}
    a, b = AdamW(0.1), AdamW(0.1)
    for _ in range(3):
        assert a.update(model, grads) is model
        b.update(here, {"a": values["b"], "b": values["c"], "c": values["a"]})
    assert_same_bits(model, here)
    assert a.step == 3 and len(mock.launches()) == 3


def test_a_mixed_step_is_whole_or_not_at_all(mock: MockDriver) -> None:
    model = {"a": np.ones(3, np.float32), "b": arrays.Array(np.ones(3, np.float32))}
    opt = AdamW(0.1)
    good = {"a": np.ones(3, np.float32), "b": arrays.Array(np.ones(3, np.float32))}
    opt.update(model, good)
    before = {name: arrays.host(x) for name, x in model.items()}
    with pytest.raises(ox.ShapeError, match="^a: gradient"):
        opt.update(model, {**good, "a": np.ones(4, np.float32)})
    with pytest.raises(ox.ShapeError, match="^b: gradient"):
        opt.update(model, {**good, "b": arrays.Array(np.ones(4, np.float32))})
    mock.failures["launch"] = 0, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"
    with pytest.raises(cuda.DeviceError):
        opt.update(model, good)
    assert_same_bits(model, before)
    assert opt.step == 1
    mock.failures.clear()
    opt.update(model, good)
    assert opt.step == 2


def test_a_total_over_a_mixed_model_is_computed_by_rules(mock: MockDriver) -> None:
    values = {name: np.random.default_rng(5).standard_normal(50) for name in "ab"}
    model = {"a": values["a"].copy(), "b": arrays.Array(values["b"].copy())}
    here = {name: x.copy() for name, x in values.items()}
    make = lambda: chain(optim.ClipByGlobalNorm(0.5), SGD(0.1))  # noqa: E731
    found = make().update(model, {"a": values["b"], "b": arrays.Array(values["a"])})
    make().update(here, {"a": values["b"], "b": values["a"]})
    assert not mock.launches()
    for name, value in here.items():
        np.testing.assert_allclose(arrays.host(found[name]), value)


# --- guards ------------------------------------------------------------------------------------------------------------


def poisoned(grads: Model) -> Model:
    found = {name: np.array(g) for name, g in grads.items()}
    found["p9"][3] = np.inf
    return found


def test_a_skipped_step_changes_nothing_and_is_counted_later(mock: MockDriver) -> None:
    model, grads = optimizers.problem("float32")
    there, here = on_device(model), {name: np.array(x) for name, x in model.items()}
    good, bad = on_device(grads), on_device(poisoned(grads))
    a, b = AdamW(0.1, nonfinite="skip"), AdamW(0.1, nonfinite="skip")
    mock.immediate = False
    for given, host in [(good, grads), (bad, poisoned(grads)), (good, grads), (bad, poisoned(grads)), (good, grads)]:
        a.update(there, given)
        b.update(here, host)
    assert "wait" not in mock.counts()
    assert_same_bits(there, here)
    assert (a.step, a.skipped) == (b.step, b.skipped) == (3, 2)
    assert "wait" in mock.counts()


def test_a_skipped_step_is_learned_without_waiting(mock: MockDriver) -> None:
    model, grads = optimizers.problem("float32")
    there, opt = on_device(model), AdamW(0.1, nonfinite="skip")
    for given in (grads, poisoned(grads), grads):
        opt.update(there, on_device(given))
    assert (opt.step, opt.skipped) == (2, 1) and "wait" not in mock.counts()


def test_a_state_is_saved_after_skipped_steps(mock: MockDriver) -> None:
    model, grads = optimizers.problem("float32")
    there, opt = on_device(model), AdamW(0.1, nonfinite="skip")
    mock.immediate = False
    for given in (grads, poisoned(grads), grads):
        opt.update(there, on_device(given))
    state = opt.state_dict()
    other = AdamW(0.1, nonfinite="skip")
    other.load_state_dict(state)
    host = {name: arrays.host(x) for name, x in there.items()}
    again = on_device(host)
    opt.update(there, on_device(grads))
    other.update(again, on_device(grads))
    assert_same_bits(again, {name: arrays.host(x) for name, x in there.items()})
    assert (other.step, other.skipped) == (opt.step, opt.skipped) == (3, 1)


def test_raising_names_the_parameter(mock: MockDriver) -> None:
    model, grads = optimizers.problem("float32")
    there, opt = on_device(model), AdamW(0.1, nonfinite="raise")
    opt.update(there, on_device(grads))
    before = {name: arrays.host(x) for name, x in there.items()}
    with pytest.raises(ox.NonFiniteError, match="^p9: the gradient has infinities"):
        opt.update(there, on_device(poisoned(grads)))
    assert_same_bits(there, before)
    assert opt.step == 1
    opt.update(there, on_device(grads))
    assert opt.step == 2


@pytest.mark.parametrize("options", [{"nonfinite": "skip"}, {"loss_scale": 8.0}, {"nonfinite": "raise"}], ids=str)
def test_gradients_that_are_accumulated_and_skipped(options: dict[str, Any], mock: MockDriver) -> None:
    model, grads = optimizers.problem("float32")
    scales = [{"loss_scale": optim.LossScale(8.0, interval=2)} if "loss_scale" in options else {} for _ in "ab"]
    a, b = (AdamW(0.1, accumulate=3, **{**options, **scale}) for scale in scales)
    there, here = on_device(model), {name: np.array(x) for name, x in model.items()}
    for number in range(12):
        given = poisoned(grads) if number in (1, 5, 6, 8) else {name: g * (1 + number) for name, g in grads.items()}
        for opt, of, g in ((a, there, on_device(given)), (b, here, given)):
            raises = options.get("nonfinite") == "raise" and number in (1, 5, 6, 8)
            with pytest.raises(ox.NonFiniteError, match="^p9") if raises else contextlib.nullcontext():
                opt.update(of, g)
        assert_same_bits(there, here)
        assert_same_bits(slots_of(a), slots_of(b))
        assert (a.step, a.skipped, a.scale) == (b.step, b.skipped, b.scale)
        assert a.state_dict()["micro"] == b.state_dict()["micro"]
    assert mock.launches()


def test_a_loss_scale_follows_skipped_steps(mock: MockDriver) -> None:
    model, grads = optimizers.problem("float32")
    scaled = [optim.LossScale(8.0, interval=2), optim.LossScale(8.0, interval=2)]
    a, b = (AdamW(0.1, loss_scale=scale) for scale in scaled)
    there, here = on_device(model), {name: np.array(x) for name, x in model.items()}
    for given in (grads, poisoned(grads), grads, grads, grads):
        a.update(there, on_device(given))
        b.update(here, given)
        assert scaled[0].state_dict() == scaled[1].state_dict()
    assert_same_bits(there, here)


# --- graphs ------------------------------------------------------------------------------------------------------------

CAPTURED: dict[str, Callable[[], Any]] = {
    "plain": lambda: AdamW(0.1),
    "noise": lambda: optim.AdamLRD(0.1, dropout_rate=0.5, seed=3),
    "global norm": lambda: chain(optim.ClipByGlobalNorm(0.5), AdamW(0.1)),
    "checked": lambda: AdamW(0.1, nonfinite="skip"),
    "layerwise": lambda: optim.LAMB(0.1),
}


@pytest.mark.parametrize("name", CAPTURED)
def test_replays_of_a_captured_step_are_steps(name: str, mock: MockDriver) -> None:
    model, grads = optimizers.problem("float32")
    there, given = on_device(model), on_device(grads)
    here = {key: np.array(x) for key, x in model.items()}
    a, b = CAPTURED[name](), CAPTURED[name]()
    a.update(there, given)
    b.update(here, grads)
    mock.forget()
    with mock.capture(arrays.LEGACY_STREAM):
        a.update(there, given)
    assert not {"allocate", "load", "upload", "wait"} & mock.counts().keys()
    assert_same_bits(there, here)  # a capture computes nothing
    for _ in range(3):
        mock.replay()
        b.update(here, grads)
        assert_same_bits(there, here)
    assert a.step == b.step == 4
    a.update(there, given)  # a step outside of the graph
    b.update(here, grads)
    mock.replay()
    b.update(here, grads)
    assert_same_bits(there, here)
    assert a.step == b.step == 6


def test_a_step_outside_of_a_graph_leaves_its_tables(mock: MockDriver) -> None:
    model, grads = optimizers.problem("float32")
    there, given = on_device(model), on_device(grads)
    here = {key: np.array(x) for key, x in model.items()}
    a, b = AdamW(0.1), AdamW(0.1)
    a.update(there, given)
    b.update(here, grads)
    with mock.capture(arrays.LEGACY_STREAM):
        a.update(there, given)
    other = {key: 2 * g for key, g in grads.items()}
    a.update(there, on_device(other))  # other gradients, at other addresses
    b.update(here, other)
    mock.replay()
    b.update(here, grads)
    assert_same_bits(there, here)
    assert a.step == b.step == 3


def test_the_count_cannot_be_read_during_a_capture(mock: MockDriver) -> None:
    model, grads = optimizers.problem("float32")
    there, given, opt = on_device(model), on_device(grads), AdamW(0.1)
    opt.update(there, given)
    with mock.capture(arrays.LEGACY_STREAM):
        opt.update(there, given)
        with pytest.raises(cuda.CaptureError, match="after the capture"):
            _ = opt.step
    assert opt.step == 1


# --- copies and states -------------------------------------------------------------------------------------------------


def test_a_state_goes_from_a_device_to_the_host_and_back(mock: MockDriver) -> None:
    model, grads = optimizers.problem("float32")
    there, opt = on_device(model), Adam(0.1)
    opt.update(there, on_device(grads))
    here = {name: arrays.host(x) for name, x in there.items()}
    other = Adam(0.1)
    other.load_state_dict(opt.state_dict())
    other.update(here, grads)
    opt.update(there, on_device(grads))
    assert_same_bits(there, here)
    back = Adam(0.1)
    back.load_state_dict(other.state_dict())
    opt.update(there, on_device(grads))
    again = on_device(here)
    back.update(again, on_device(grads))
    assert_same_bits(there, {name: arrays.host(x) for name, x in again.items()})


def test_a_copy_of_an_optimizer_has_memory_of_its_own(mock: MockDriver) -> None:
    model, grads = optimizers.problem("float32")
    there, opt = on_device(model), AdamW(0.1, nonfinite="skip")
    opt.update(there, on_device(grads))
    again = {name: arrays.Array(arrays.host(x)) for name, x in there.items()}
    copied = copy.deepcopy(opt)
    for _ in range(2):
        opt.update(there, on_device(grads))
    copied.update(again, on_device(grads))
    copied.update(again, on_device(grads))
    assert_same_bits(there, {name: arrays.host(x) for name, x in again.items()})
    assert copied.step == opt.step == 3
