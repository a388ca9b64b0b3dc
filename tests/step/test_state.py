"""State by key path: it determines all further steps, and is loaded atomically."""

from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from oxigrad import optim, schedules
from oxigrad.rules.core.slots import Slot
from oxigrad.step.state import state_dict

GOLDEN = Path(__file__).parents[1] / "golden"


def model_and_gradients(seed: int = 0, dtype: Any = np.float64) -> tuple[dict[str, Any], dict[str, Any]]:
    generator = np.random.default_rng(seed)
    draw = lambda *shape: generator.standard_normal(shape).astype(dtype)  # noqa: E731
    make = lambda: {"a": draw(40, 50), "b": [draw(7), host(draw())], "c": {"1.x": draw(3)}}  # noqa: E731
    return make(), make()


def noisy(xp, p, g, m, *, step, noise, learning_rate=1e-2, beta=0.9):
    m = beta * m + (1 - beta) * g
    return p - learning_rate * xp.where(noise() < 0.5, 0.0, m), m


def averaged_norm(xp, p, g, norm=Slot.scalar(0.5), *, learning_rate=0.1, beta=0.9):
    norm = beta * norm + (1 - beta) * xp.sqrt(xp.sum(g * g))
    return p - learning_rate * g / norm, norm


Noisy, AveragedNorm = optim.define(noisy), optim.define(averaged_norm)
RATE = schedules.warmup_cosine(0.1, 3, 20)

# Optimizers that remember something of every kind; each is made anew, as another process would.
OPTIMIZERS: dict[str, Any] = {
    "sgd": lambda: optim.SGD(0.1),
    "momentum": lambda: optim.SGD(RATE, 0.9, nesterov=True),
    "adamw": lambda: optim.AdamW(RATE),
    "noise": lambda: Noisy(seed=3),
    "a slot of one number": AveragedNorm,
    "groups": lambda: optim.Adam(0.1, groups={"a": {"learning_rate": RATE}, "b.*": None}),
    "chain": lambda: optim.chain(optim.GradientNoise(), optim.ClipByGlobalNorm(1.0), optim.AdamW(), optim.EMA()),
    "lookahead": lambda: optim.chain(optim.SGD(0.1, 0.9), optim.Lookahead(sync_period=3)),
    "accumulate": lambda: optim.chain(optim.ClipByValue(), Noisy(), accumulate=3),
    "partition": lambda: optim.partition({"a": optim.AdamW(RATE), "*": Noisy()}, accumulate=2, seed=5),
    "loss scale": lambda: optim.Adam(0.1, loss_scale=ox.optim.LossScale(initial=4.0, interval=2)),
    "plateau": lambda: optim.SGD(0.5 * schedules.plateau(0.2, patience=1), 0.9, groups={"a": {"momentum": 0.5}}),
    "matrices": lambda: optim.partition({"a": optim.Muon(), "*": optim.Adam(0.1)}),
    "catching up": lambda: optim.Adam(0.1, sparse="catch_up"),
    "skip": lambda: optim.Adam(0.1, nonfinite="skip"),
}


def train(opt: Any, model: Any, first: int, last: int, convert: Any = None) -> Any:
    """Steps with gradients that depend on the number of the step; one of them is not finite."""
    for number in range(first, last):
        _, grads = model_and_gradients(number)
        if opt.nonfinite == "skip" and number == 2:
            grads["a"][0, 0] = np.inf
        model = opt.update(model, ox.tree.map(convert, grads) if convert else grads)
        if isinstance(getattr(opt, "learning_rate", None), schedules.multiply):
            opt.learning_rate.terms[1].observe(number)
    return model


def same(a: Any, b: Any) -> None:
    """The same bits, in trees of arrays of any library."""
    for x, y in zip(ox.tree.leaves(a), ox.tree.leaves(b), strict=True):
        x, y = host(x), host(y)
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


def copied(model: Any) -> Any:
    return ox.tree.map(np.copy, model)


# --- resuming ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("at", [0, 4, 5])
def test_resuming_from_a_file_gives_the_same_bits(name: str, at: int, tmp_path: Path) -> None:
    expected, whole = model_and_gradients()[0], OPTIMIZERS[name]()
    train(whole, expected, 0, 9)
    model, opt = model_and_gradients()[0], OPTIMIZERS[name]()
    opt.build(model)
    train(opt, model, 0, at)
    opt.save(tmp_path / "state")
    config = json.loads(json.dumps(opt.get_config()))
    again = optim.from_config(config)
    assert not again.load(tmp_path / "state")
    assert (again.step, again.skipped, again.scale) == (opt.step, opt.skipped, opt.scale)
    train(again, model, at, 9)
    same(model, expected)
    same(dict(again.slots), dict(whole.slots))
    assert (again.step, again.skipped, again.scale) == (whole.step, whole.skipped, whole.scale)


@pytest.mark.parametrize("name", ["adamw", "accumulate", "partition", "a slot of one number"])
def test_resuming_with_any_array_library(name: str, asarray: Any, tmp_path: Path) -> None:
    start, _ = model_and_gradients()
    convert = lambda leaf: asarray(np.copy(leaf))  # noqa: E731
    expected = train(OPTIMIZERS[name](), ox.tree.map(convert, start), 0, 8, convert)
    opt = OPTIMIZERS[name]()
    model = train(opt, ox.tree.map(convert, start), 0, 4, convert)
    opt.save(tmp_path / "state")
    kinds = {path: {name: type(slot) for name, slot in own.items()} for path, own in opt.slots.items()}
    before, after = OPTIMIZERS[name](), OPTIMIZERS[name]()
    after.build(model)
    results = []
    for again in (before, after):
        again.load(tmp_path / "state")
        results.append(train(again, ox.tree.map(lambda leaf: leaf + 0, model), 4, 8, convert))
        assert {path: {name: type(slot) for name, slot in own.items()} for path, own in again.slots.items()} == kinds
    same(results[0], expected)
    same(results[1], expected)


@pytest.mark.parametrize(
    "make",
    [
        lambda: optim.LBFGS(max_iterations=2),
        lambda: optim.SAM(optim.SGD(1e-4 * schedules.plateau(1.0), 0.9), rho=0.01),
    ],
    ids=["LBFGS", "SAM"],
)
def test_resuming_where_the_loss_is_evaluated_many_times(make: Any, tmp_path: Path) -> None:
    def rosenbrock(model: Any) -> Any:
        x, y = model["x"][0], model["x"][1]
        return 100 * (y - x**2) ** 2 + (1 - x) ** 2

    expected, whole = {"x": np.array([-1.0, 2.0])}, make()
    model, opt = copied(expected), make()
    if opt.name == "SAM":
        opt.optimizer.learning_rate.terms[1].observe(3.0)
    for _ in range(6):
        whole.minimize(rosenbrock, expected)
    for _ in range(3):
        opt.minimize(rosenbrock, model)
    opt.save(tmp_path / "state")
    again = optim.from_config(opt.get_config())
    again.load(tmp_path / "state")
    assert again.state_dict()["remembered"] == opt.state_dict()["remembered"]
    assert bool(opt.state_dict()["remembered"]) == (opt.name == "SAM")
    for _ in range(3):
        again.minimize(rosenbrock, model)
    same(model, expected)


RESUMED = """
import json, sys
import numpy as np
import oxigrad as ox
state = ox.state.read(sys.argv[1])
opt, model = ox.optim.from_config(state["config"]), {"w": np.load(sys.argv[2])}
opt.load_state_dict(state)
for number in range(3, 8):
    opt.update(model, {"w": np.sin(number + np.arange(5.0))})
print(json.dumps([x.hex() for x in model["w"]]), opt.step)
"""


def test_resuming_in_another_process(tmp_path: Path) -> None:
    opt, model = optim.chain(optim.ClipByNorm(), optim.AdamW(RATE)), {"w": np.ones(5)}
    for number in range(8):
        if number == 3:
            opt.save(tmp_path / "state")
            np.save(tmp_path / "w.npy", model["w"])
        opt.update(model, {"w": np.sin(number + np.arange(5.0))})
    command = [sys.executable, "-c", RESUMED, str(tmp_path / "state"), str(tmp_path / "w.npy")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("] ") == [json.dumps([x.hex() for x in model["w"]])[:-1], "8\n"]


def test_slots_of_a_rule_keep_their_names() -> None:
    """RMSprop has a slot ``mean`` itself, and accumulates another mean."""
    model = {"w": np.zeros(2)}
    plain, opt = (optim.RMSprop(0.1, centered=True, accumulate=n) for n in (1, 2))
    for gradient in (1.0, 3.0, -2.0, 0.0):
        opt.update(model, {"w": np.full(2, gradient)})
    expected = {"w": np.zeros(2)}
    for gradient in (2.0, -1.0):
        plain.update(expected, {"w": np.full(2, gradient)})
    np.testing.assert_allclose(model["w"], expected["w"], rtol=1e-12)
    np.testing.assert_allclose(opt.slots["w"]["mean"], plain.slots["w"]["mean"], rtol=1e-12)
    assert set(opt.slots["w"]) == {*plain.slots["w"], "accumulated-mean"}
    again = optim.RMSprop(0.1, centered=True, accumulate=2)
    again.load_state_dict(opt.state_dict())
    again.build(model)
    same(again.state_dict(), opt.state_dict())


def test_an_optimizer_without_a_step_is_taken_up_too() -> None:
    opt = optim.Adam()
    opt.load_state_dict(optim.Adam().state_dict())
    assert (opt.update({"w": np.ones(2)}, {"w": np.ones(2)})["w"] < 1.0).all()


def test_a_file_of_the_first_format_is_read() -> None:
    """Written by version 1 of the format after four steps of Adam; the fifth is computed here, as a formula."""
    found = state_dict.read(GOLDEN / "state_1.safetensors")
    opt = optim.from_config(found["config"])
    opt.load(GOLDEN / "state_1.safetensors")
    p, m, v = np.array([1.0, 2.0, 3.0]), np.zeros(3), np.zeros(3)
    gradients = [np.array([1.0, -2.0, 0.5])] + [np.array([0.01, 0.02, -0.5])] * 4
    for step, g in enumerate(gradients, 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        if step == 4:
            np.testing.assert_allclose(found["slots"]["x"]["m"], m, rtol=1e-14)
            np.testing.assert_allclose(found["slots"]["x"]["v"], v, rtol=1e-14)
            model = {"x": p - 0.1 * (m / (1 - 0.9**4)) / (np.sqrt(v / (1 - 0.999**4)) + 1e-8)}
        p = p - 0.1 * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
    opt.update(model, {"x": gradients[4]})
    np.testing.assert_allclose(model["x"], p, rtol=1e-13)
    assert opt.step == 5


# --- contents of the state -----------------------------------------------------------------------------------------------


def test_the_state_is_plain_and_its_arrays_are_copies() -> None:
    opt, model = optim.Adam(0.1, accumulate=2), {"w": np.zeros(2, np.float32)}
    for _ in range(3):
        opt.update(model, {"w": np.ones(2, np.float32)})
    found, shared = opt.state_dict(), opt.state_dict(copy=False)
    assert {name: value for name, value in found.items() if name != "slots"} == {
        "format": 1,
        "optimizer": "Adam",
        "config": opt.get_config(),
        "step": 1,
        "micro": 1,
        "skipped": 0,
        "remembered": {},
    }
    assert list(found["slots"]["w"]) == ["accumulated-mean", "m", "v"]
    for name, slot in found["slots"]["w"].items():
        assert type(slot) is np.ndarray and slot.dtype == np.float32
        assert shared["slots"]["w"][name] is opt.slots["w"][name] is not slot
        assert not np.shares_memory(slot, opt.slots["w"][name])
    again = optim.Adam(0.1, accumulate=2)
    again.load_state_dict(found)
    again.build(model)
    for slot in found["slots"]["w"].values():
        slot[:] = np.nan
    same(dict(again.slots), dict(opt.slots))


def test_arrays_are_of_the_library_of_the_parameters(asarray: Any) -> None:
    opt, model = optim.Adam(0.1), {"w": asarray(np.ones(3))}
    model = opt.update(model, {"w": asarray(np.ones(3))})
    found = opt.state_dict()
    for name, slot in found["slots"]["w"].items():
        assert type(slot) is type(opt.slots["w"][name])
        assert slot is not opt.slots["w"][name]
        same(slot, opt.slots["w"][name])


def test_a_state_goes_from_one_library_to_another(asarray: Any) -> None:
    opt, model = optim.Adam(0.1), {"w": np.ones(3)}
    opt.update(model, {"w": np.arange(3.0)})
    again, other = optim.Adam(0.1), {"w": asarray(model["w"])}
    again.load_state_dict(opt.state_dict())
    other = again.update(other, {"w": asarray(np.ones(3))})
    back = optim.Adam(0.1)
    back.load_state_dict(again.state_dict())
    opt.update(model, {"w": np.ones(3)})
    np.testing.assert_allclose(host(other["w"]), model["w"], rtol=1e-14)
    back.build(model)
    assert type(back.slots["w"]["m"]) is np.ndarray
    for name, slot in back.slots["w"].items():
        np.testing.assert_allclose(slot, opt.slots["w"][name], rtol=1e-14)


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_bfloat16_is_saved_to_the_bit(name: str, library: Any, tmp_path: Path) -> None:
    library("ml_dtypes")
    if name == "torch":
        convert = lambda values: library("torch").tensor(values, dtype=library("torch").bfloat16)  # noqa: E731
    else:
        convert = lambda values: library("jax").numpy.asarray(values, dtype="bfloat16")  # noqa: E731
    opt, model = optim.Adam(0.1, slot_dtype="bfloat16"), {"w": convert([1.0, 2.0, 3.0])}
    model = opt.update(model, {"w": convert([0.1, -0.3, 7.0])})
    opt.save(tmp_path / "state")
    again = optim.Adam(0.1, slot_dtype="bfloat16")
    again.load(tmp_path / "state")
    again.build(model)
    for name, slot in again.slots["w"].items():
        assert slot.dtype == opt.slots["w"][name].dtype
        assert bool((slot == opt.slots["w"][name]).all())
    assert state_dict.read(tmp_path / "state")["slots"]["w"]["m"].dtype.name == "bfloat16"


def test_the_states_of_schedules_and_the_loss_scale() -> None:
    class Counting:
        def __init__(self) -> None:
            self.calls = 0

        def __call__(self, step: int) -> float:
            self.calls += 1
            return 0.1 / self.calls

        def state_dict(self) -> dict[str, Any]:
            return {"calls": self.calls}

        def load_state_dict(self, remembered: dict[str, Any]) -> None:
            self.calls = int(remembered["calls"])

    def make() -> Any:
        return optim.partition(
            {"a": optim.SGD(Counting()), "*": optim.SGD(groups={"b": {"weight_decay": Counting()}})},
            loss_scale=ox.optim.LossScale(initial=8.0, interval=2),
        )

    model, grads = {"a": np.zeros(2), "b": np.zeros(2)}, {"a": np.ones(2), "b": np.ones(2)}
    opt = make()
    for _ in range(3):
        opt.update(model, grads)
    found = opt.state_dict()
    assert found["remembered"] == {
        "loss_scale": {"value": 16.0, "good": 1},
        "parts.0.learning_rate": {"calls": 3},
        "parts.1.groups.0.weight_decay": {"calls": 3},
    }
    assert found["config"] is None
    again, other = make(), copied(model)
    again.load_state_dict(found)
    for one, its in ((opt, model), (again, other)):
        for _ in range(3):
            one.update(its, grads)
    same(model, other)
    with pytest.raises(ox.StateError, match="missing: loss_scale: its state"):
        make().load_state_dict({**found, "remembered": {}})
    third = make()
    for bad in ({}, {"calls": "three"}, None):
        wrong = {**found, "remembered": {**found["remembered"], "parts.0.learning_rate": bad}}
        with pytest.raises(ox.StateError, match=r"mismatched: parts\.0\.learning_rate"):
            third.load_state_dict(wrong)
        assert third.state_dict()["remembered"] == make().state_dict()["remembered"]
        assert third.step == 0


def test_averages_that_are_swapped_in_are_no_state() -> None:
    opt, model = optim.chain(optim.SGD(0.1), optim.EMA()), {"w": np.zeros(2)}
    opt.update(model, {"w": np.ones(2)})
    found = opt.state_dict()
    opt.swap_in(model)
    for use in (opt.state_dict, lambda: opt.load_state_dict(found)):
        with pytest.raises(ox.StateError, match="swap_out brings the parameters back"):
            use()
    opt.swap_out(model)
    opt.load_state_dict(found)


# --- mismatched states ---------------------------------------------------------------------------------------------------


def trained(model: Any) -> Any:
    opt = optim.Adam(0.1)
    opt.update(model, ox.tree.map(np.ones_like, model))
    return opt


def other_model() -> dict[str, Any]:
    return {"a": np.zeros(3), "b": np.zeros(2, np.float32), "new": np.zeros(1)}


DIFFERENCES = [
    "missing: new",
    "unexpected: old",
    "mismatched: a: slot m has shape (2,) and dtype float64, expected shape (3,) and dtype float64",
    "mismatched: b: slot v has shape (2,) and dtype float64, expected shape (2,) and dtype float32",
]


@pytest.mark.parametrize("seen", [True, False])
def test_a_state_that_does_not_fit_is_refused_with_a_list(seen: bool) -> None:
    found = trained({"a": np.zeros(2), "b": np.zeros(2), "old": np.zeros(1)}).state_dict()
    model = other_model()
    opt = trained(model) if seen else optim.Adam(0.1)
    before, slots = copied(model), copied(dict(opt.slots))
    with pytest.raises(ox.StateError) as error:  # noqa: PT012 - in one of two places
        opt.load_state_dict(found)
        assert not seen
        opt.update(model, ox.tree.map(np.ones_like, model))
    for line in DIFFERENCES:
        assert line in str(error.value)
    same(model, before)
    if seen:
        same(dict(opt.slots), slots)
        assert opt.step == 1
    else:  # the state waits for a model that it fits
        fitting = {"a": np.zeros(2), "b": np.zeros(2), "old": np.zeros(1)}
        opt.update(fitting, ox.tree.map(np.ones_like, fitting))
        assert opt.step == 2


@pytest.mark.parametrize("seen", [True, False])
def test_matching_entries_are_loaded_without_strict(seen: bool) -> None:
    old = {"a": np.zeros(2), "b": np.zeros(2, np.float32), "old": np.zeros(1)}
    found = trained(old).state_dict()
    model = other_model()
    opt = trained(model) if seen else optim.Adam(0.1)
    own = copied(dict(opt.slots)) if seen else optim.Adam().init(model)["slots"]
    report = opt.load_state_dict(found, strict=False)
    assert bool(report) is seen
    opt.build(model)
    assert (report.missing, report.unexpected) == (["new"], ["old"])
    assert [line[:11] for line in report.mismatched] == ["a: slot m h", "a: slot v h"]
    same(opt.slots["b"], found["slots"]["b"])
    same({name: opt.slots[name] for name in ("a", "new")}, {name: own[name] for name in ("a", "new")})
    assert opt.step == 1
    opt.update(model, ox.tree.map(np.ones_like, model))
    assert opt.step == 2


def test_a_mean_of_gradients_that_does_not_fit_is_dropped_with_their_count() -> None:
    opt, model = optim.SGD(1.0, accumulate=3), {"w": np.zeros(2)}
    opt.update(model, {"w": np.full(2, 9.0)})
    found = opt.state_dict()
    for other in ({"w": np.zeros(3)}, {"w": np.zeros(2), "new": np.zeros(2)}):
        again = optim.SGD(1.0, accumulate=3)
        again.load_state_dict(found, strict=False)
        for k in range(3):
            assert again.step == 0
            again.update(other, ox.tree.map(lambda leaf, k=k: np.full_like(leaf, k), other))
        assert again.step == 1
        np.testing.assert_allclose(np.concatenate(ox.tree.leaves(other)), -1.0)


def test_another_optimizer_is_told() -> None:
    found = trained({"w": np.zeros(2)}).state_dict()
    opt = optim.AdamW(0.1)
    with pytest.raises(ox.StateError, match="the optimizer is AdamW, the state is of Adam"):
        opt.load_state_dict(found)
    assert opt.load_state_dict(found, strict=False).mismatched
    assert opt.step == 1
    with pytest.raises(ox.StateError, match=r"unexpected: w: slot v"):
        trained_momentum().load_state_dict({**found, "optimizer": "SGD"})
    with pytest.raises(ox.StateError, match="the optimizer accumulates 2, the state has 2 already"):
        optim.Adam(accumulate=2).load_state_dict({**found, "micro": 2})


def trained_momentum() -> Any:
    opt = optim.SGD(momentum=0.9)
    opt.build({"w": np.zeros(2)})
    return opt


def test_at_most_twenty_lines() -> None:
    found = trained({f"p{i}": np.zeros(1) for i in range(30)}).state_dict()
    with pytest.raises(ox.StateError) as error:
        trained({"w": np.zeros(1)}).load_state_dict(found)
    assert str(error.value).count("\n") == 21
    assert str(error.value).endswith("and 11 more")


GOOD = {
    "format": 1,
    "optimizer": "SGD",
    "config": None,
    "step": 3,
    "micro": 0,
    "skipped": 0,
    "remembered": {},
    "slots": {},
}
WRONG: dict[str, tuple[Any, str]] = {
    "no dict": (3, "the state is int"),
    "of torch": (
        {"state": {}, "param_groups": []},
        "an optimizer of PyTorch: .* oxigrad.torch.load_state_dict converts it",
    ),
    "a later format": ({**GOOD, "format": 2}, "the format 2: expected 1"),
    "a format of another kind": ({**GOOD, "format": "1"}, "the format '1'"),
    "a part too many": ({**GOOD, "extra": 1}, "the state has unexpected keys: extra: expected"),
    "a part too few": ({k: v for k, v in GOOD.items() if k != "micro"}, "the state lacks micro: expected"),
    "a step that is no number": ({**GOOD, "step": "3"}, "step '3': expected int"),
    "a flag as a step": ({**GOOD, "step": True}, "step True"),
    "a fraction": ({**GOOD, "step": 3.0}, "step 3.0"),
    "less than none": ({**GOOD, "skipped": -1}, "skipped -1: expected a number of steps"),
    "too many": ({**GOOD, "step": 2**63}, "step 9223372036854775808"),
    "a config of another kind": ({**GOOD, "config": []}, r"config \[\]"),
    "slots of another kind": ({**GOOD, "slots": []}, r"slots \[\]"),
    "slots that are arrays": ({**GOOD, "slots": {"w": np.ones(2)}}, "w: the state has ndarray: expected slots"),
    "slots that are numbers": ({**GOOD, "slots": {"w": {"m": 1.0}}}, "w: the state has dict: expected slots"),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_invalid_state_is_refused(name: str) -> None:
    given, message = WRONG[name]
    for opt in (optim.SGD(), trained({"w": np.zeros(2)})):
        before = opt.state_dict()
        for strict in (True, False):
            with pytest.raises(ox.StateError, match=message):
                opt.load_state_dict(given, strict)
        assert str(opt.state_dict()) == str(before)
    optim.SGD().load_state_dict(GOOD)


# --- copies --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("way", [copy.deepcopy, copy.copy, lambda opt: pickle.loads(pickle.dumps(opt))])  # noqa: S301
def test_a_copy_goes_on_by_itself(name: str, way: Any) -> None:
    opt, model = OPTIMIZERS[name](), model_and_gradients()[0]
    train(opt, model, 0, 4)
    again, other = way(opt), copied(model)
    train(opt, model, 4, 9)
    train(again, other, 4, 9)
    same(model, other)
    assert (again.step, again.scale, repr(again)) == (opt.step, opt.scale, repr(opt))
    for path, own in opt.slots.items():
        assert not any(np.shares_memory(own[name], again.slots[path][name]) for name in own)


def test_a_deep_copy_keeps_functions_and_pickle_refuses_them() -> None:
    opt = optim.SGD(lambda step: 1.0 / (step + 1), groups={lambda path, array: path == "b": None})
    model = {"a": np.zeros(1), "b": np.zeros(1)}
    opt.update(model, {"a": np.ones(1)})
    again = copy.deepcopy(opt)
    again.learning_rate = 5.0
    opt.update(model, {"a": np.ones(1)})
    np.testing.assert_array_equal(model["a"], -1.5)
    again.update(model, {"a": np.ones(1)})
    np.testing.assert_array_equal(model["a"], -6.5)
    with pytest.raises(TypeError, match=r"learning_rate is <function .*expected a number or a schedule"):
        pickle.dumps(opt)


def test_a_copy_while_averages_are_swapped_in() -> None:
    opt, model = optim.chain(optim.SGD(1.0), optim.EMA(decay=0.5)), {"w": np.zeros(1)}
    opt.update(model, {"w": np.ones(1)})
    opt.swap_in(model)
    again, other = copy.deepcopy(opt), copied(model)
    again.swap_out(other)
    np.testing.assert_array_equal(other["w"], -1.0)
    np.testing.assert_array_equal(model["w"], -0.5)


def test_a_deep_copy_of_a_model_and_its_optimizer_together() -> None:
    schedule = ox.optim.LossScale(initial=2.0)
    together = {"opt": optim.Adam(loss_scale=schedule), "scale": schedule, "model": {"w": np.zeros(2)}}
    again = copy.deepcopy(together)
    assert again["opt"].loss_scale is again["scale"] is not schedule
    assert again["opt"]._stepper is not together["opt"]._stepper
