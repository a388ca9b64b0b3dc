"""Chains: every part composes with every part, any number of times, and is the parts applied one after the other."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import oxigrad as ox
from oxigrad import optim, xp

# Parts of all kinds: transforms of gradients, of parameters, and optimizers with slots and averages of all kinds.
PARTS: dict[str, Any] = {
    "clip": lambda: optim.ClipByValue(0.7),
    "clip norm": lambda: optim.ClipByNorm(0.9),
    "clip globally": lambda: optim.ClipByGlobalNorm(1.1),
    "clip adaptively": lambda: optim.AdaptiveGradientClip(0.5),
    "centralize": optim.Centralize,
    "maximize": optim.Maximize,
    "regularize": lambda: optim.Regularize(l1=0.01, l2=0.1),
    "noise": lambda: optim.GradientNoise(eta=0.0),
    "mars": lambda: optim.MARS(gamma=0.1, momentum=0.8),
    "cautious": optim.Cautious,
    "no dropout": lambda: optim.LearningRateDropout(0.0),
    "rows": lambda: optim.NormalizeRows(0.8),
    "shape": lambda: optim.ScaleByShape(base=0.5),
    "orthogonalize": lambda: optim.Orthogonalize(adjust="match_rms_adamw", iterations=3),
    "hyperball": optim.Hyperball,
    "cautious decay": lambda: optim.WeightDecay(0.2, cautious=True),
    "decay": lambda: optim.WeightDecay(0.2),
    "schedule-free part": lambda: optim.ScheduleFree(interpolation=0.8),
    "ema": lambda: optim.EMA(0.8),
    "ema of zeros": lambda: optim.EMA(0.6, average_from="zeros"),
    "swa": lambda: optim.SWA(start=1),
    "lookahead": lambda: optim.Lookahead(sync_period=2),
    "copy": lambda: optim.Copy("float32"),
    "sgd": lambda: optim.SGD(0.1, weight_decay=0.1),
    "momentum": lambda: optim.SGD(0.2, 0.9, nesterov=True),
    "adam": lambda: optim.Adam(0.3, amsgrad="raw"),
    "adamc": lambda: optim.AdamC(0.1, weight_decay=0.1, max_learning_rate=0.2),
    "stable adamw": lambda: optim.StableAdamW(0.1, weight_decay=0.1),
    "laprop": lambda: optim.LaProp(0.1),
    "simplified ademamix": lambda: optim.SimplifiedAdEMAMix(0.01, alpha=2.0),
    "asgd": lambda: optim.ASGD(0.1, t0=2),
    "schedule-free": lambda: optim.ScheduleFreeSGD(0.2),
    "rmsprop": lambda: optim.RMSprop(0.05, centered=True),
}
FEW = ["clip", "clip globally", "decay", "ema", "lookahead", "momentum", "asgd", "schedule-free"]
NO_OPTIMIZER = "a chain needs an optimizer"
TOO_EARLY = "changes the new parameter, and the chain has no optimizer before it"


def problem(seed: int = 0) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A model, and gradients for some steps."""
    generator = np.random.default_rng(seed)
    draw = lambda: {"a": generator.standard_normal((3, 2)), "b": generator.standard_normal(4)}  # noqa: E731
    return draw(), [draw() for _ in range(4)]


def refusal(parts: Sequence[Any]) -> str | None:
    """The reason for which a chain of these parts has no meaning."""
    kinds = [part._rule.kind for part in parts]
    if "update" not in kinds:
        return NO_OPTIMIZER
    return TOO_EARLY if "after" in kinds[: kinds.index("update")] else None


class ByHand:
    """The parts applied one after the other, each called on arrays, with slots of its own."""

    def __init__(self, parts: Sequence[Any], model: dict[str, Any]) -> None:
        self.parts, self.count = parts, 0
        self.model = {path: p.copy() for path, p in model.items()}
        self.slots = [{path: self._first(part, p) for path, p in model.items()} for part in parts]

    @staticmethod
    def _first(part: Any, p: Any) -> list[Any]:
        values, found = part.hyperparameters, []
        for slot in part._rule.slots:
            if slot.when is not None and not values[slot.when]:
                found.append(None)
            else:
                first = slot.begin if slot.is_number else slot.first(xp, p, p.dtype, values.__getitem__)
                found.append(np.array(first))
        return found

    def _values(self, number: int) -> dict[str, Any]:
        """The arguments of a part: its own hyperparameters, and the learning rate of the nearest optimizer before it; not the gradient."""
        part = self.parts[number]
        found = dict(part.hyperparameters)
        for name in part._rule.shared - {"gradient"}:
            found[name] = next(p.hyperparameters[name] for p in self.parts[number::-1] if name in p.hyperparameters)
        supplied = {"step": self.count, "noise": lambda: 0.5}
        return found | {name: value for name, value in supplied.items() if name in part._rule.supplied}

    def step(self, grads: dict[str, Any]) -> None:
        self.count += 1
        g, new = dict(grads), None
        for number, part in enumerate(self.parts):
            rule, values = part._rule, self._values(number)
            if rule.kind == "after":
                taken = new
            else:
                taken = g if new is None else {path: p - new[path] for path, p in self.model.items()}
            norm = np.sqrt(sum(np.sum(x * x) for x in taken.values()))
            found = {}
            for path, p in self.model.items():
                if isinstance(part, optim.ClipByGlobalNorm):
                    found[path] = taken[path] * min(1.0, part.max_global_norm / norm)
                    continue
                gradient = {"gradient": g[path]} if "gradient" in rule.shared else {}
                out = rule.call(xp, p, taken[path], *self.slots[number][path], **values, **gradient)
                found[path], *self.slots[number][path] = out if isinstance(out, tuple) else (out,)
            if rule.kind != "gradient":
                new = found
            elif new is None:
                g = found
            else:
                new = {path: p - found[path] for path, p in self.model.items()}
        self.model = {path: np.asarray(p) for path, p in new.items()}


def check(parts: Sequence[Any], opt: Any) -> None:
    """Steps of a chain are those by hand; parameters, and slots by their names."""
    model, grads = problem()
    expected = ByHand(parts, model)
    for g in grads:
        model = opt.update(model, g)
        with np.errstate(divide="ignore"):  # by the norm of an update that `Cautious` made zero
            expected.step(g)
    for path, p in expected.model.items():
        np.testing.assert_allclose(model[path], p, rtol=1e-9, atol=1e-12)
        for part, shown, slots in zip(parts, opt.parts, expected.slots, strict=True):
            for slot, array in zip(part._rule.slots, slots[path], strict=True):
                found = opt.slots[path].get(shown.slot_names[slot.name])
                assert (found is None) == (array is None)
                if array is not None and found.dtype == np.asarray(array).dtype:
                    np.testing.assert_allclose(found, array, rtol=1e-9, atol=1e-12)


def check_refused(parts: Sequence[Any]) -> bool:
    if reason := refusal(parts):
        with pytest.raises(ValueError, match=reason):
            optim.chain(*parts)
    return bool(reason)


@pytest.mark.parametrize("first", PARTS)
@pytest.mark.one_in(4)
def test_all_pairs_are_the_parts_one_after_the_other(first: str, tmp_path: Path) -> None:
    for second in PARTS:
        parts = [PARTS[first](), PARTS[second]()]
        if not check_refused(parts):
            check(parts, optim.chain(*parts))
            check_again(optim.chain(*parts), tmp_path / "state.safetensors")


def check_again(opt: Any, file: Path) -> None:
    """Saved, pickled, copied and reconfigured optimizers continue with the same bits."""
    model, grads = problem()
    for g in grads[:2]:
        opt.update(model, g)
    opt.save(file)
    config = json.loads(json.dumps(opt.get_config()))
    loaded = optim.from_config(config)
    loaded.load(file)
    others = [loaded, copy.deepcopy(opt), pickle.loads(pickle.dumps(opt))]  # noqa: S301
    models = [ox.tree.map(np.copy, model) for _ in others]
    opt.update(model, grads[2])
    for other, own in zip(others, models, strict=True):
        assert other.get_config() == opt.get_config()
        assert repr(other) == repr(opt)
        other.update(own, grads[2])
        for path, p in model.items():
            np.testing.assert_array_equal(own[path], p)
            assert list(other.slots[path]) == list(opt.slots[path])
            for name, slot in opt.slots[path].items():
                np.testing.assert_array_equal(other.slots[path][name], slot)


@pytest.mark.parametrize(("first", "second"), [*itertools.product(FEW, FEW)], ids=" ".join)
def test_all_triples(first: str, second: str) -> None:
    for third in FEW:
        parts = [PARTS[name]() for name in (first, second, third)]
        if not check_refused(parts):
            check(parts, optim.chain(*parts))


@settings(max_examples=40, deadline=None)
@example(["sgd", "maximize", "cautious", "clip globally"], 0, 1)
@example(["sgd", "maximize", "cautious", "clip norm"], 0, 1)
@given(st.lists(st.sampled_from([*PARTS]), max_size=6), st.integers(0, 6), st.integers(0, 6))
def test_chains_in_chains(names: list[str], start: int, length: int) -> None:
    parts = [PARTS[name]() for name in names]
    inner = parts[start : start + length]
    if not inner or refusal(inner) or check_refused(parts):
        return
    opt = optim.chain(*parts[:start], optim.chain(*inner), *parts[start + length :])
    assert repr(opt) == repr(optim.chain(*parts))
    check(parts, opt)


def test_a_chain_of_repeated_parts_is_one_kernel() -> None:
    opt = optim.chain(optim.ClipByValue(0.5), optim.ClipByValue(0.3), optim.AdamW(), optim.EMA(0.9), optim.EMA(0.99))
    assert str(opt.program).count("phase") == 1
    assert opt._rule.elementwise


# --- the namespaces of parts -------------------------------------------------------------------------------------------


def averaged_twice() -> Any:
    return optim.chain(optim.ClipByNorm(2.0), optim.SGD(1.0), optim.EMA(0.5), optim.EMA(0.9))


def test_hyperparameters_of_parts_are_attributes_of_the_parts() -> None:
    opt, model = averaged_twice(), {"w": np.zeros(1)}
    assert (opt.max_norm, opt.learning_rate, opt.parts[1].learning_rate) == (2.0, 1.0, 1.0)
    opt.parts[2].decay = 0.25
    opt.parts[1].learning_rate = 2.0
    assert (opt.parts[2].decay, opt.parts[3].decay, opt.learning_rate) == (0.25, 0.9, 2.0)
    opt.update(model, {"w": np.ones(1)})
    np.testing.assert_allclose(opt.slots["w"]["2.average"], -2.0 * 0.75)
    np.testing.assert_allclose(opt.slots["w"]["3.average"], -2.0 * 0.1)
    assert list(opt.slots["w"]) == ["2.average", "3.average"]
    assert opt.parts[3].slot_names == {"average": "3.average"}
    assert [part.name for part in opt.parts] == ["ClipByNorm", "SGD", "EMA", "EMA"]
    assert opt.parts[3]._rule is optim.EMA._rule
    assert opt.parts[3].get_config() == optim.EMA(0.9).get_config()
    assert "decay" in dir(opt.parts[2])
    assert "max_norm" in dir(opt) and "decay" not in dir(opt)
    np.testing.assert_array_equal(opt.averaged_parameters()["w"], opt.slots["w"]["3.average"])


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda opt: opt.decay, r"decay: several parts have it, parts\[2\] \(EMA\), parts\[3\] \(EMA\)"),
        (
            lambda opt: setattr(opt, "decay", 1.0),
            r"decay: several parts have it, parts\[2\] \(EMA\), parts\[3\] \(EMA\)",
        ),
        (lambda opt: opt.max_nrom, r"max_nrom \(did you mean max_norm\?\)"),
        (lambda opt: setattr(opt, "max_nrom", 1.0), r"max_nrom \(did you mean max_norm\?\)"),
        (lambda opt: opt.parts[2].decy, r"EMA has no attribute decy \(did you mean decay\?\)"),
        (lambda opt: setattr(opt.parts[2], "decy", 1.0), r"EMA has no attribute decy \(did you mean decay\?\)"),
        (lambda opt: setattr(opt.parts[2], "name", "x"), "name"),
        (lambda opt: setattr(opt, "parts", ()), "parts"),
        (lambda opt: setattr(opt, "rule", None), "Chain has no attribute rule"),
        (lambda opt: optim.SGD().learning_rte, r"SGD has no attribute learning_rte \(did you mean learning_rate\?\)"),
        (lambda opt: optim.EMA().decy, r"EMA has no attribute decy \(did you mean decay\?\)"),
    ],
)
def test_a_name_that_no_part_or_several_parts_have(act: Any, message: str) -> None:
    opt = averaged_twice()
    before = repr(opt)
    with pytest.raises(AttributeError, match=message):
        act(opt)
    assert repr(opt) == before


def test_a_wrong_value_names_the_part() -> None:
    opt = averaged_twice()
    with pytest.raises(ValueError, match=r"^parts\[3\]: 3\.decay is 2: expected a number in \[0, 1\]"):
        opt.parts[3].decay = 2
    assert opt.parts[3].decay == 0.9


def test_groups_name_the_hyperparameters_of_parts() -> None:
    groups = {"b": {"2.decay": 0.0, "learning_rate": 0.5}}
    opt = optim.chain(optim.ClipByNorm(2.0), optim.SGD(1.0), optim.EMA(0.5), optim.EMA(0.9), groups=groups)
    opt.update({"a": np.zeros(1), "b": np.zeros(1)}, {"a": np.ones(1), "b": np.ones(1)})
    assert [float(opt.slots[path]["2.average"][0]) for path in "ab"] == [-0.5, -0.5]
    again = optim.from_config(json.loads(json.dumps(opt.get_config())))
    assert again.get_config() == opt.get_config()
    with pytest.raises(TypeError, match=r"unknown hyperparameters: decay: several parts have it, parts\[2\]"):
        opt.groups = {"b": {"decay": 0.0}}


def test_schedules_with_a_memory_are_of_their_parts() -> None:
    plateau = ox.schedules.plateau
    opt = optim.chain(optim.SGD(plateau(0.1)), optim.EMA(0.5), optim.SGD(plateau(0.2)))
    state = opt.state_dict()
    assert {*state["remembered"]} <= {"0.learning_rate", "2.learning_rate"}
    optim.from_config(state["config"]).load_state_dict(state)


def test_each_weight_decay_uses_the_learning_rate_of_the_optimizer_before_it() -> None:
    p, g = np.full(2, 3.0), np.ones(2)
    opt = optim.chain(optim.SGD(0.5), optim.WeightDecay(0.1), optim.WeightDecay(0.2))
    np.testing.assert_allclose(opt.update({"w": p.copy()}, {"w": g})["w"], p - 0.5 * g - 0.5 * 0.3 * p)
    opt = optim.chain(optim.SGD(0.5), optim.SGD(0.1), optim.WeightDecay(0.2))
    np.testing.assert_allclose(opt.update({"w": p.copy()}, {"w": g})["w"], p - 0.05 * g - 0.1 * 0.2 * p)


def test_transforms_of_the_step_are_those_of_optax(library: Any) -> None:
    jax, optax = library("jax"), library("optax")
    jax.config.update("jax_enable_x64", True)
    reference = optax.chain(optax.clip(0.5), optax.adam(0.1), optax.clip_by_global_norm(0.15), optax.clip(0.09))
    opt = optim.chain(optim.ClipByValue(0.5), optim.Adam(0.1), optim.ClipByGlobalNorm(0.15), optim.ClipByValue(0.09))
    model, grads = problem()
    params = jax.tree.map(jax.numpy.asarray, model)
    state = reference.init(params)
    for g in grads:
        updates, state = reference.update(g, state, params)
        params = optax.apply_updates(params, updates)
        model = opt.update(model, g)
        for path, p in model.items():
            np.testing.assert_allclose(p, np.asarray(params[path]), rtol=1e-10)


def test_averages_around_averages() -> None:
    for first in (optim.ASGD(0.1), optim.ScheduleFreeSGD(0.1)):
        opt, model = optim.chain(first, optim.EMA(0.5)), {"w": np.ones(2)}
        opt.update(model, {"w": np.ones(2)})
        np.testing.assert_allclose(opt.averaged_parameters(model)["w"], 0.5 * (1.0 + model["w"]))
    opt = optim.chain(optim.ScheduleFreeSGD(0.1), optim.ScheduleFreeSGD(0.3))
    opt.update(model := {"w": np.ones(2)}, {"w": np.ones(2)})
    beta = opt.parts[1].beta1
    expected = (model["w"] - (1 - beta) * opt.slots["w"]["1.z"]) / beta
    np.testing.assert_allclose(opt.averaged_parameters(model)["w"], expected)


def test_two_copies() -> None:
    opt = optim.chain(optim.SGD(1.0), optim.Copy("float16"), optim.Copy("float32"))
    opt.update({"w": np.zeros(2)}, {"w": np.ones(2)})
    assert [slot.dtype.name for slot in opt.slots["w"].values()] == ["float16", "float32"]
    assert opt.copied_parameters()["w"].dtype == np.float32


def test_slots_of_numbered_parts_in_files(tmp_path: Path) -> None:
    opt = optim.chain(optim.Adam(0.1), optim.EMA(0.5), optim.EMA(0.9), slot_dtype="8bit")
    model = {"a": [np.zeros(5000)], "1.b": np.zeros(3)}
    opt.update(model, {"a": [np.ones(5000)], "1.b": np.ones(3)})
    opt.save(tmp_path / "state")
    again = optim.from_config(opt.get_config())
    again.load(tmp_path / "state")
    again.build(model)
    assert {path: {*own} for path, own in again.slots.items()} == {path: {*own} for path, own in opt.slots.items()}
    np.testing.assert_array_equal(again.slots["a.0"]["2.average"], opt.slots["a.0"]["2.average"])


@pytest.mark.parametrize(
    "options",
    [
        {"accumulate": 2},
        {"nonfinite": "skip", "loss_scale": optim.LossScale(4.0)},
        {"master": True},
        {"rounding": "kahan"},
    ],
    ids=str,
)
def test_options_around_repeated_parts(options: dict[str, Any]) -> None:
    """The options add parts and slots of their own, and leave the names of those of the chain."""
    parts = [
        optim.ClipByGlobalNorm(1.0),
        optim.ClipByGlobalNorm(0.5),
        optim.SGD(0.5, 0.9),
        optim.EMA(0.5),
        optim.EMA(0.75),
    ]
    opt, model = optim.chain(*parts, **options), {"w": np.ones(3, np.float16), "b": np.ones(2, np.float16)}
    plain, expected = optim.chain(*parts), {path: p.astype(np.float32) for path, p in model.items()}
    scale = opt.scale
    for _ in range(3):
        plain.update(expected, {path: np.ones_like(p) for path, p in expected.items()})
        for _ in range(opt.accumulate):
            opt.update(model, {path: np.full_like(p, scale) for path, p in model.items()})
    for path, own in plain.slots.items():
        assert {*own} <= {*opt.slots[path]}
        np.testing.assert_allclose(model[path], expected[path], rtol=2e-3)
        np.testing.assert_allclose(opt.slots[path]["4.average"], own["4.average"], rtol=2e-3)


Shrink = optim.transform(lambda xp, p, g, *, share=0.5: share * g, "Shrink", changes="gradient")


@pytest.mark.parametrize("made", [lambda: Shrink(0.25), lambda: optim.EMA(0.75)], ids=["of a lambda", "of the table"])
def test_a_transform_is_copied_with_its_hyperparameters_alone(made: Any) -> None:
    part, name = made(), "share" if made().get_config()["part"] == "Shrink" else "decay"
    for copied in (pickle.loads(pickle.dumps(part)), copy.deepcopy(part)):  # noqa: S301 - our own
        assert (type(copied), copied.get_config()) == (type(part), part.get_config())
        setattr(copied, name, 0.125)
        assert getattr(part, name) != 0.125


@pytest.mark.parametrize("name", PARTS)
def test_a_part_that_is_called_on_tensors_computes_in_their_dtype(name: str, library) -> None:
    """In double precision, although numbers alone have PyTorch's default dtype: the kernels of the core are the oracle."""
    torch = library("torch")
    whole = optim.transform(lambda xp, p, g: g, changes="gradient", elementwise=False)
    parts = lambda: (optim.SGD(0.2, 0.9), PARTS[name]())  # noqa: E731
    by_kernels, by_arrays = optim.chain(*parts()), optim.chain(whole(), *parts())
    expected, grads = problem()
    found = {path: torch.tensor(p) for path, p in expected.items()}
    for g in grads:
        expected = by_kernels.update(expected, g)
        found = by_arrays.update(found, {path: torch.tensor(each) for path, each in g.items()})
    for path, p in expected.items():
        np.testing.assert_allclose(found[path].numpy(), p, rtol=1e-13)


def test_a_transform_finds_out_whether_it_is_elementwise() -> None:
    def after(xp: Any, p: Any, new: Any, *, learning_rate: float) -> Any:
        return new - learning_rate * xp.sign(new)

    def summed(xp: Any, p: Any, g: Any, seen: Any, *, gradient: Any, total: Any) -> Any:
        return g + total(gradient) * seen, seen + 1.0

    accumulated = optim.transform(lambda xp, p, g: xp.cumulative_sum(g, axis=0), "Accumulated", changes="gradient")
    assert [optim.transform(rule)._rule.elementwise for rule in (after, summed)] == [True, True]
    assert not accumulated._rule.elementwise
    model = optim.chain(accumulated(), optim.SGD(1.0)).update({"w": np.zeros(3)}, {"w": np.ones(3)})
    np.testing.assert_array_equal(model["w"], [-1.0, -2.0, -3.0])
    with pytest.raises(AttributeError, match="nonsense"):
        optim.transform(lambda xp, p, g: xp.nonsense(g), changes="gradient")
    with pytest.raises(ox.RuleError, match="found 1 results"):
        optim.transform(lambda xp, p, g, seen: g, changes="gradient")
