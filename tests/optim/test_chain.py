"""Chains, groups, partitions, accumulation and non-finite gradients."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from oxigrad import optim
from oxigrad.ops.backends import is_array
from oxigrad.rules.core.slots import Slot

BAD = (np.nan, np.inf, -np.inf)


def model_and_gradients(seed: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    generator = np.random.default_rng(seed)
    draw = lambda: {"a": generator.standard_normal((40, 50)), "b": [generator.standard_normal(7), np.array(0.5)]}  # noqa: E731
    return draw(), draw()


def converted(tree: Any, asarray: Any) -> Any:
    return ox.tree.map(asarray, tree)


def close(a: Any, b: Any, rtol: float = 1e-12) -> None:
    for x, y in zip(ox.tree.leaves(a), ox.tree.leaves(b), strict=True):
        np.testing.assert_allclose(host(x), host(y), rtol=rtol, atol=1e-15)


def unchanged(a: Any, b: Any) -> None:
    for x, y in zip(ox.tree.leaves(a), ox.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(host(x), host(y))


# --- chains --------------------------------------------------------------------------------------------------------------


def clip_globally(grads: Any, limit: float) -> Any:
    norm = np.sqrt(sum(float(np.sum(g * g)) for g in ox.tree.leaves(grads)))
    return ox.tree.map(lambda g: g * min(1.0, limit / norm), grads)


CLIPS = {
    "value": (lambda: optim.ClipByValue(0.5), lambda grads: ox.tree.map(lambda g: np.clip(g, -0.5, 0.5), grads)),
    "norm": (
        lambda: optim.ClipByNorm(2.0),
        lambda grads: ox.tree.map(lambda g: g * min(1.0, 2.0 / max(1e-300, np.sqrt(np.sum(g * g)))), grads),
    ),
    "global norm": (lambda: optim.ClipByGlobalNorm(3.0), lambda grads: clip_globally(grads, 3.0)),
    "global norm not reached": (lambda: optim.ClipByGlobalNorm(1e9), lambda grads: grads),
}


@pytest.mark.parametrize("name", CLIPS)
def test_clipping_in_a_chain_is_clipping_before_the_step(name: str, asarray: Any) -> None:
    make, clipped = CLIPS[name]
    model, grads = model_and_gradients()
    expected, plain = ox.tree.map(np.copy, model), optim.AdamW(0.1)
    for _ in range(3):
        plain.update(expected, clipped(grads))
    model, given = converted(model, asarray), converted(grads, asarray)
    opt = optim.chain(make(), optim.AdamW(0.1))
    for _ in range(3):
        model = opt.update(model, given)
    close(model, expected)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_norm_that_is_not_finite_scales_all_that_it_is_of(bad: float, asarray: Any) -> None:
    """As of PyTorch, optax and Keras: all are NaN beside NaN, and zero beside an infinity."""
    grads = {"a": np.array([[bad, 5.0], [40.0, 1.0]]), "b": np.array([50.0, 1.0])}
    a, b = np.array([[bad, 5.0], [40.0, 1.0]]), np.array([50.0, 1.0])
    nothing, all_of = (np.nan if np.isnan(bad) else 0.0), np.full_like
    of_norm, of_units = all_of(a, nothing), np.column_stack([all_of(a[:, 0], nothing), 0.1 * a[:, 1] / np.sqrt(26.0)])
    of_norm[0, 0] = of_units[0, 0] = np.nan
    cases = [
        (optim.ClipByGlobalNorm(1.0), of_norm, all_of(b, nothing)),
        (optim.ClipByNorm(1.0), of_norm, b / np.sqrt(2501.0)),
        (optim.AdaptiveGradientClip(0.1, 1.0), of_units, 0.1 * b / np.sqrt(2501.0)),
    ]
    for clip, *expected in cases:
        model = converted({"a": np.zeros((2, 2)), "b": np.zeros(2)}, asarray)
        model = optim.chain(clip, optim.SGD(1.0)).update(model, converted(grads, asarray))
        close([model["a"], model["b"]], [-each for each in expected])


@pytest.mark.parametrize("name", CLIPS)
def test_a_chain_as_a_pure_function(name: str) -> None:
    model, grads = model_and_gradients()
    opt = optim.chain(CLIPS[name][0](), optim.Adam(0.1))
    state, expected = opt.init(model), model
    for _ in range(3):
        expected, state = opt.apply(expected, grads, state)
        opt.update(model := ox.tree.map(np.copy, model) if opt.step == 0 else model, grads)
    close(model, expected)


def test_a_chain_is_one_pass() -> None:
    assert str(optim.chain(optim.ClipByValue(), optim.AdamW()).program).count("phase") == 1
    assert str(optim.chain(optim.ClipByGlobalNorm(), optim.AdamW()).program).count("phase") == 2


def test_hyperparameters_of_all_parts_are_attributes() -> None:
    opt = optim.chain(optim.ClipByGlobalNorm(1.0), optim.SGD(1.0))
    opt.max_global_norm, opt.learning_rate = 10.0, 2.0
    model = opt.update({"a": np.zeros(1)}, {"a": np.array([100.0])})
    np.testing.assert_allclose(model["a"], -20.0)
    again = optim.from_config(json.loads(json.dumps(opt.get_config())))
    assert repr(again) == repr(opt)
    assert again.max_global_norm == 10.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: optim.chain(), "a chain needs an optimizer: found nothing"),
        (lambda: optim.chain(optim.ClipByValue()), "a chain needs an optimizer: found ClipByValue"),
        (
            lambda: optim.chain(optim.EMA(), optim.SGD()),
            "EMA changes the new parameter, and the chain has no optimizer before it: expected it after SGD",
        ),
        (lambda: optim.chain(optim.ClipByValue(), optim.SGD(seed=1)), "SGD: seed must be set on the chain"),
        (lambda: optim.chain(optim.chain(optim.SGD(), seed=1), optim.EMA()), "chain: seed must be set on the chain"),
        (lambda: optim.chain(optim.SGD(groups={"*": {}})), "SGD: groups must be set on the chain"),
        (lambda: optim.chain(optim.SAM(optim.SGD())), "chain: found SAM.* expected optimizers of one rule"),
        (lambda: optim.chain(optim.LBFGS()), "chain: found LBFGS, which evaluates the loss"),
        (lambda: optim.chain(optim.SGD(), sead=1), r"unknown options: sead \(did you mean seed\?\)"),
    ],
)
def test_invalid_parts_are_refused(make: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make()


def test_a_slot_that_is_one_number(asarray: Any) -> None:
    def averaged_norm(xp, p, g, norm=Slot.scalar(0.5), *, step, learning_rate=0.1, beta=0.9):
        norm = beta * norm + (1 - beta) * xp.sqrt(xp.sum(g * g))
        return p - learning_rate * g / norm, norm

    model, grads = model_and_gradients()
    expected, norms = ox.tree.map(np.copy, model), [0.5] * 3
    for _ in range(3):
        for i, (p, g) in enumerate(zip(ox.tree.leaves(expected), ox.tree.leaves(grads), strict=True)):
            norms[i] = 0.9 * norms[i] + 0.1 * np.sqrt(np.sum(g * g))
            p -= 0.1 * g / norms[i]
    opt = optim.define(averaged_norm)()
    model, given = converted(model, asarray), converted(grads, asarray)
    for _ in range(3):
        model = opt.update(model, given)
    close(model, expected)
    np.testing.assert_allclose([float(host(opt.slots[path]["norm"])) for path in opt.slots], norms)


# --- groups --------------------------------------------------------------------------------------------------------------


def test_groups_by_glob_expression_and_predicate() -> None:
    names = {"l.weight": (2, 2), "l.bias": (2,), "head": (3,), "rest": (3,)}
    model = {"l": {"weight": np.zeros((2, 2)), "bias": np.zeros(2)}, "head": np.zeros(3), "rest": np.zeros(3)}
    opt = optim.SGD(
        1.0,
        groups={
            "*.bias": {"learning_rate": lambda step: 2.0 + step},
            re.compile("he.d"): {"learning_rate": 3.0},
            lambda path, array: array.ndim == 2: None,
        },
    )
    for _ in range(2):
        opt.update(model, ox.tree.map(np.ones_like, model))
    found = {str(path): float(array.flat[0]) for path, array in ox.tree.parameters(model).items()}
    assert found == {"l.weight": 0.0, "l.bias": -5.0, "head": -6.0, "rest": -2.0}
    assert list(opt.slots) == [name for name in names if name != "l.weight"]
    table = opt.table(model)
    assert re.search(r"l\.weight +\(2, 2\) +float64 +frozen", table)
    assert re.search(r"head +\(3,\) +float64 +SGD +learning_rate=3\.0", table)


def test_groups_change_at_run_time_and_round_trip() -> None:
    opt, model = optim.SGD(1.0, 0.9, groups={"a": {"nesterov": True}}), {"a": np.zeros(1), "b": np.zeros(1)}
    opt.update(model, {"a": np.ones(1), "b": np.ones(1)})
    assert (model["a"], model["b"]) == (-1.9, -1.0)
    opt.groups = {re.compile("b"): {"learning_rate": 0.0}}
    opt.update(model, {"a": np.ones(1), "b": np.ones(1)})
    np.testing.assert_allclose([model["a"][0], model["b"][0]], [-1.9 - 1.9, -1.0])
    again = optim.from_config(json.loads(json.dumps(opt.get_config())))
    assert again.get_config() == opt.get_config()
    assert again.groups == opt.groups
    with pytest.raises(TypeError, match="expected a glob or regular expression"):
        optim.SGD(groups={lambda path, array: True: None}).get_config()


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (
            {"*": {"lr": 1.0}},
            r"the group '\*': unknown hyperparameters: lr: use learning_rate; there are learning_rate",
        ),
        ({"*": {"learning_rate": "fast"}}, "learning_rate is 'fast'"),
        ([("*", None)], "expected a dict from patterns"),
        ({3: None}, "the pattern 3: expected a glob"),
    ],
)
def test_wrong_groups(groups: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        optim.SGD(groups=groups)


def test_a_frozen_leaf_has_nothing_and_needs_nothing() -> None:
    model = {"w": np.ones(2), "frozen": np.ones(2)}
    opt = optim.AdamW(0.1, weight_decay=1.0, groups={"frozen": None})
    opt.update(model, {"w": np.ones(2)})
    opt.update(model, {"w": np.ones(2), "frozen": np.full(2, np.nan)})
    np.testing.assert_array_equal(model["frozen"], 1.0)
    assert list(opt.slots) == ["w"]
    with pytest.raises(ox.StructureError, match="somewhere that is not frozen"):
        optim.SGD(groups={"*": None}).update(model, model)


def test_parameters_of_one_dtype_only() -> None:
    model = {"a": np.zeros(2, np.float32), "b": np.zeros(2)}
    grads = {"a": np.ones(2, np.float32), "b": np.ones(2)}
    optim.SGD(1.0, dtype="float32").update(model, grads)
    np.testing.assert_array_equal(model["a"], -1.0)
    np.testing.assert_array_equal(model["b"], 0.0)


def test_a_total_is_over_all_groups() -> None:
    model, grads = {"a": np.zeros(1), "b": np.zeros(1)}, {"a": np.array([3.0]), "b": np.array([4.0])}
    opt = optim.chain(
        optim.ClipByGlobalNorm(1.0), optim.SGD(1.0, 0.9), groups={"b": {"nesterov": True, "momentum": 0.5}}
    )
    opt.update(model, grads)
    np.testing.assert_allclose([model["a"][0], model["b"][0]], [-0.6, -0.8 * 1.5])


# --- partitions ----------------------------------------------------------------------------------------------------------


def test_a_partition_is_each_optimizer_on_its_own(asarray: Any) -> None:
    model, grads = model_and_gradients()
    whole = optim.partition({"a": optim.AdamW(0.1), "b.*": optim.SGD(0.2, 0.9, groups={"b.1": {"momentum": 0.0}})})
    alone = optim.AdamW(0.1), optim.SGD(0.2, 0.9, groups={"b.1": {"momentum": 0.0}})
    a, b = {"a": model["a"].copy()}, {"b": [np.copy(leaf) for leaf in model["b"]]}
    given, found = converted(grads, asarray), converted(model, asarray)
    for _ in range(3):
        found = whole.update(found, given)
        alone[0].update(a, {"a": grads["a"]})
        alone[1].update(b, {"b": grads["b"]})
    close(found, {**a, **b})
    assert set(whole.slots["a"]) == {"m", "v"} and set(whole.slots["b.0"]) == {"m"}
    again = optim.from_config(json.loads(json.dumps(whole.get_config())))
    assert again.get_config() == whole.get_config()


def test_wrong_partitions() -> None:
    with pytest.raises(ox.StructureError, match="b: no pattern of the partition matches"):
        optim.partition({"a": optim.SGD()}).update({"a": np.zeros(1), "b": np.zeros(1)}, {})
    with pytest.raises(ValueError, match="accumulate must be set on the partition"):
        optim.partition({"a": optim.SGD(accumulate=2)})
    with pytest.raises(TypeError, match="expected an optimizer, or None"):
        optim.partition({"a": 3})


def test_a_step_of_a_partition_is_atomic() -> None:
    model = {"a": np.zeros(2), "b": np.zeros(2)}
    opt = optim.partition({"a": optim.SGD(1.0), "b": optim.Adam(1.0)})
    with pytest.raises(ox.ShapeError, match="b: gradient has shape"):
        opt.update(model, {"a": np.ones(2), "b": np.ones(3)})
    np.testing.assert_array_equal(model["a"], 0.0)
    assert opt.step == 0


# --- accumulation --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("every", [2, 3])
def test_accumulation_is_a_step_with_the_mean(every: int, asarray: Any) -> None:
    model, _ = model_and_gradients()
    parts = [model_and_gradients(seed)[1] for seed in range(2 * every)]
    expected, plain = ox.tree.map(np.copy, model), optim.chain(optim.ClipByGlobalNorm(2.0), optim.Adam(0.1))
    for first in (0, every):
        plain.update(expected, ox.tree.map(lambda *g: sum(g) / every, *parts[first : first + every]))
    opt = optim.chain(optim.ClipByGlobalNorm(2.0), optim.Adam(0.1), accumulate=every)
    found = converted(model, asarray)
    before = ox.tree.map(np.copy, model)
    for k, grads in enumerate(parts):
        found = opt.update(found, converted(grads, asarray))
        if k == every - 2:
            unchanged(found, before)
            assert opt.step == 0
    close(found, expected)
    assert opt.step == 2


def test_accumulation_as_a_pure_function(library: Any) -> None:
    jax = library("jax")
    jax.config.update("jax_enable_x64", True)
    model, grads = model_and_gradients()
    opt = optim.AdamW(0.1, accumulate=3, nonfinite="skip")
    params = jax.tree.map(jax.numpy.asarray, model)
    state, step = opt.init(params), jax.jit(opt.apply)
    for k in range(8):
        factor = np.nan if k == 4 else k + 1.0
        given = ox.tree.map(lambda g, factor=factor: factor * g, grads)
        params, state = step(params, jax.tree.map(jax.numpy.asarray, given), state)
        opt.update(model, given)
    close(params, model)
    assert int(state["step"]) == opt.step == 2
    assert int(state["micro"]) == 1


@pytest.mark.parametrize("value", [0, 1.5, -1, True])
def test_wrong_accumulation(value: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="accumulate is"):
        optim.SGD(accumulate=value)


# --- non-finite gradients ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("make", [optim.AdamW, lambda **o: optim.chain(optim.ClipByGlobalNorm(), optim.Adam(), **o)])
def test_a_step_that_is_skipped_changes_nothing(bad: float, make: Any, asarray: Any) -> None:
    model, grads = model_and_gradients()
    opt = make(nonfinite="skip")
    found = opt.update(converted(model, asarray), converted(grads, asarray))
    before = ox.tree.map(lambda leaf: host(leaf).copy(), found)
    slots = {path: {name: host(slot).copy() for name, slot in own.items()} for path, own in opt.slots.items()}
    grads["b"][0][3] = bad
    found = opt.update(found, converted(grads, asarray))
    unchanged(found, before)
    for path, own in slots.items():
        for name, slot in own.items():
            np.testing.assert_array_equal(host(opt.slots[path][name]), slot)
    assert (opt.step, opt.skipped) == (1, 1)
    grads["b"][0][3] = 0.0
    opt.update(found, converted(grads, asarray))
    assert (opt.step, opt.skipped) == (2, 1)


def test_a_step_that_raises_names_the_leaves(asarray: Any) -> None:
    model, grads = model_and_gradients()
    grads["a"][3, 4], grads["b"][1] = np.nan, np.array(np.inf)
    opt, given = optim.Adam(nonfinite="raise"), converted(model, asarray)
    with pytest.raises(ox.NonFiniteError, match=r"^a, b\.1: the gradient has infinities or NaN; nothing was changed"):
        opt.update(given, converted(grads, asarray))
    unchanged(given, model)
    assert (opt.step, opt.skipped) == (0, 0)


def test_a_total_of_a_custom_rule(asarray: Any) -> None:
    def normalised(xp, p, g, *, total, learning_rate=1.0):
        return p - learning_rate * g / xp.sqrt(total(g * g))

    model, grads = {"a": np.zeros(2), "b": np.zeros(())}, {"a": np.array([2.0, 3.0]), "b": np.array(6.0)}
    model = optim.define(normalised)().update(converted(model, asarray), converted(grads, asarray))
    close(model, {"a": np.array([-2 / 7, -3 / 7]), "b": np.array(-6 / 7)})


def test_wrong_policies() -> None:
    with pytest.raises(ValueError, match="nonfinite is 'ignore': expected 'propagate', 'skip' or 'raise'"):
        optim.SGD(nonfinite="ignore")


def test_an_after_part_sees_the_old_and_the_new_parameter() -> None:
    halved = optim.transform(lambda xp, p, new, *, share=0.5: p + share * (new - p), "Halved")
    model = optim.chain(optim.SGD(1.0), halved(0.25)).update({"a": np.ones(3)}, {"a": np.ones(3)})
    np.testing.assert_array_equal(model["a"], 0.75)


def test_a_rule_that_is_not_elementwise_is_written_into_place(asarray: Any) -> None:
    def by_rows(xp, p, g, total, *, learning_rate=1.0):
        total = total + xp.mean(g, axis=-1, keepdims=True) * xp.ones_like(g)
        return p - learning_rate * total, total

    rows = optim.define(by_rows, elementwise=False)
    start, g = np.zeros((2, 3)), np.arange(6.0).reshape(2, 3)
    p = asarray(start)
    model = rows(1.0).update({"p": p}, {"p": asarray(g)})
    np.testing.assert_array_equal(host(model["p"]), [[-1.0] * 3, [-4.0] * 3])
    if isinstance(p, np.ndarray) and p.flags.writeable:
        assert model["p"] is p
    assert is_array(p)


# --- gradients set to zero -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("accumulate", [1, 2])
def test_gradients_are_left_zero(accumulate: int) -> None:
    model, grads = model_and_gradients()
    expected, plain = ox.tree.map(np.copy, model), optim.AdamW(0.1, accumulate=accumulate)
    opt = optim.AdamW(0.1, zero_gradients=True, accumulate=accumulate)
    for _ in range(4):
        plain.update(expected, grads)
        given = ox.tree.map(np.copy, grads)
        opt.update(model, given)
        assert all(not g.any() for g in ox.tree.leaves(given))
    unchanged(model, expected)
    assert optim.from_config(opt.get_config()).zero_gradients


def test_gradients_of_tied_and_called_rules_are_left_zero() -> None:
    shared = np.zeros(2)
    model, grads = {"a": shared, "b": shared, "c": np.zeros(1)}, {"a": np.ones(2), "b": np.ones(2), "c": np.ones(1)}
    optim.SGD(1.0, zero_gradients=True).update(model, grads)
    np.testing.assert_array_equal(shared, -2.0)
    assert all(not g.any() for g in grads.values())
    whole, g = optim.define(lambda xp, p, g: p - xp.mean(g), "Whole", elementwise=False), np.arange(3.0)
    model = whole(zero_gradients=True).update({"a": np.zeros(3)}, {"a": g})
    np.testing.assert_array_equal(model["a"], -1.0)
    assert not g.any()


def test_gradients_that_cannot_be_zeroed() -> None:
    g = np.ones(3)
    g.setflags(write=False)
    model, opt = {"a": np.zeros(3)}, optim.SGD(1.0, zero_gradients=True)
    with pytest.raises(ox.ArrayMemoryError, match="a: the gradient is read-only"):
        opt.update(model, {"a": g})
    base = np.ones(4)
    with pytest.raises(ox.AliasError, match="the gradient of a and the gradient of b share memory"):
        optim.SGD(1.0, zero_gradients=True).update({"a": np.zeros(3), "b": np.zeros(3)}, {"a": base[:3], "b": base[1:]})
    np.testing.assert_array_equal(model["a"], 0.0)
    np.testing.assert_array_equal(base, 1.0)
