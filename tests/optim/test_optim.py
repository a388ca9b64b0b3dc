"""Optimizers compared with independent results, executors compared with the rule, and the model around a step."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from optimizers import CASES, FOLLOWERS, OPTIMIZERS, by_rules, problem, run
from oxigrad import optim, schedules, xp

GOLDEN = Path(__file__).parents[1] / "golden"
TRAJECTORIES = json.loads((GOLDEN / "measured_trajectories.json").read_text())["trajectories"]
GOLDEN_CASES = {case["name"]: case for case in json.loads((GOLDEN / "golden_cases.json").read_text())}
GRADIENTS = [[1.0, -2.0, 0.5]] + [[0.01, 0.02, -0.5]] * 3


@pytest.mark.parametrize("name", FOLLOWERS)
def test_follows_the_trajectory_of_another_library(name: str) -> None:
    opt, model = FOLLOWERS[name](), {"x": np.array([1.0, 2.0, 3.0])}
    for g, expected in zip(GRADIENTS, TRAJECTORIES[name], strict=True):
        assert opt.update(model, {"x": np.array(g)}) is model
        # optax computes MADGRAD's root of the step in single precision.
        np.testing.assert_allclose(model["x"], expected, rtol=1e-8 if "madgrad" in name else 1e-12, atol=1e-15)
    assert opt.step == 4


@pytest.mark.parametrize("name", CASES)
def test_golden_cases(name: str) -> None:
    case = GOLDEN_CASES[name]
    inputs, opt = case["inputs"], CASES[name]()
    if "grads" in inputs:
        model = {"x": np.array(inputs["x0"], float)}
        for g, expected in zip(inputs["grads"], case["expected"], strict=True):
            opt.update(model, {"x": np.array(g)})
            np.testing.assert_allclose(model["x"], expected, rtol=case["rtol"], atol=case["atol"])
    elif inputs["grad"] == "ones":
        model = {"x": np.ones(inputs["shape"])}
        for expected in case["expected"]:
            opt.update(model, {"x": np.ones(inputs["shape"])})
            np.testing.assert_allclose(model["x"], expected, rtol=case["rtol"], atol=case["atol"])
    else:
        model = {"x": np.array(inputs["x0"], float)}
        for _ in range(inputs["steps"]):
            opt.update(model, {"x": np.array(inputs["grad"], float)})
        np.testing.assert_allclose(model["x"], case["expected"], rtol=case["rtol"], atol=case["atol"])


# --- executors against the rule ------------------------------------------------------------------------------------------


def copied(tree: Any) -> Any:
    return ox.tree.map(lambda leaf: np.array(leaf), tree)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_kernel_agrees_with_the_rule_in_float64(name: str) -> None:
    model, grads = problem(np.float64)
    opt = OPTIMIZERS[name]()
    state, expected = opt.init(model), copied(model)
    for _ in range(3):
        expected, state = by_rules(opt, expected, grads, state)
    model, opt = run(name, model, grads)
    for key, value in expected.items():
        np.testing.assert_allclose(model[key], value, rtol=1e-13, atol=1e-15)
        for slot, array in state["slots"][key].items():
            np.testing.assert_allclose(opt.slots[key][slot], array, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_float32_is_float64_rounded(name: str) -> None:
    single, grads = problem(np.float32)
    double, _ = run(name, ox.tree.map(np.float64, single), ox.tree.map(np.float64, grads))
    single, opt = run(name, single, grads)
    for key, value in double.items():
        assert single[key].dtype == np.float32
        arrays = [slot.name for slot in opt._rule.slots if not slot.is_number]
        assert all(slot.dtype == np.float32 for name, slot in opt.slots[key].items() if name in arrays)
        np.testing.assert_allclose(single[key], value, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_any_array_library_gives_the_same_numbers(name: str, asarray: Any) -> None:
    values, grads = problem(np.float64)
    expected, _ = run(name, copied(values), grads)
    model = {key: asarray(value) for key, value in values.items()}
    before, kinds = dict(model), {key: type(value) for key, value in model.items()}
    model, _ = run(name, model, {key: asarray(value) for key, value in grads.items()})
    for key, value in expected.items():
        assert type(model[key]) is kinds[key]
        np.testing.assert_allclose(host(model[key]), value, rtol=1e-12, atol=1e-14)
    if asarray.__name__ in ("_read_only", "asarray") and "jax" in type(before["p1"]).__module__:
        np.testing.assert_array_equal(host(before["p5"]), values["p5"])


SCHEDULED = [optim.AdamW, optim.ASGD, optim.NAdam, optim.RAdam, optim.LAMB, optim.Prodigy, optim.ScheduleFreeAdamW]


@pytest.mark.parametrize("made", SCHEDULED, ids=lambda made: made.__name__)
def test_under_jit(made: Any, library: Any) -> None:
    jax = library("jax")
    jax.config.update("jax_enable_x64", True)
    opt = made(learning_rate=schedules.warmup_cosine(0.1, 2, 10))
    values, grads = ({key: tree[key] for key in ("p2", "p11", "p12")} for tree in problem(np.float64))
    params, given = jax.tree.map(jax.numpy.asarray, values), jax.tree.map(jax.numpy.asarray, grads)
    state, step = opt.init(params), jax.jit(opt.apply)
    for _ in range(3):
        params, state = step(params, given, state)
        opt.update(values, grads)
    for key, value in values.items():
        np.testing.assert_allclose(np.asarray(params[key]), value, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.one_in(4)
def test_bits_do_not_depend_on_threads_or_strides(name: str, dtype: Any, threads: Any) -> None:
    generator = np.random.default_rng(5)
    shapes = [(300_000,), (100, 700), (17,)]
    start = {f"p{i}": generator.standard_normal(s).astype(dtype) for i, s in enumerate(shapes)}
    grads = {key: generator.standard_normal(value.shape).astype(dtype) for key, value in start.items()}
    results = []
    for count in (1, 2, 7):
        threads(count)
        results.append(run(name, copied(start), grads)[0])
    strided = ox.tree.map(lambda p: np.empty((*p.shape[:-1], p.shape[-1] * 2), dtype)[..., ::-2], start)
    for key, value in start.items():
        strided[key][...] = value
    results.append(run(name, strided, ox.tree.map(np.asfortranarray, grads))[0])
    for other in results[1:]:
        for key, value in results[0].items():
            np.testing.assert_array_equal(other[key], value)


def test_float32_and_float64_in_one_model() -> None:
    model = {"a": np.ones(5, np.float32), "b": np.ones(5)}
    opt = optim.Adam(0.1)
    opt.update(model, {"a": np.ones(5, np.float32), "b": np.ones(5)})
    assert (model["a"].dtype, model["b"].dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(model["a"], model["b"], rtol=1e-6)


# --- hyperparameters, slots, configuration -------------------------------------------------------------------------------


def test_a_hyperparameter_takes_effect_on_the_next_step() -> None:
    opt, model = optim.SGD(learning_rate=1.0), {"x": np.zeros(1)}
    opt.update(model, {"x": np.ones(1)})
    opt.learning_rate = 0.5
    opt.update(model, {"x": np.ones(1)})
    assert model["x"] == [-1.5]


def test_a_flag_can_change_between_steps() -> None:
    opt, model = optim.SGD(1.0, 0.5), {"x": np.zeros(1)}
    opt.update(model, {"x": np.ones(1)})
    opt.nesterov = True
    opt.update(model, {"x": np.ones(1)})
    assert model["x"] == [-1 - (1 + 0.5 * 1.5)]


def test_any_hyperparameter_may_be_a_schedule() -> None:
    seen = []
    opt = optim.SGD(
        learning_rate=lambda step: seen.append(step) or 0.1 * (step + 1), weight_decay=schedules.constant(0.0)
    )
    model = {"x": np.zeros(1)}
    for _ in range(3):
        opt.update(model, {"x": np.ones(1)})
    assert seen == [0, 1, 2]
    np.testing.assert_allclose(model["x"], -0.6)


def test_a_failing_schedule_changes_nothing() -> None:
    def schedule(step: int) -> float:
        if step == 1:
            raise RuntimeError("no rate")
        return 1.0

    opt, model = optim.SGD(learning_rate=schedule, momentum=0.9), {"x": np.zeros(2)}
    opt.update(model, {"x": np.ones(2)})
    with pytest.raises(RuntimeError, match="no rate"):
        opt.update(model, {"x": np.ones(2)})
    assert opt.step == 1
    np.testing.assert_array_equal(model["x"], -1.0)
    np.testing.assert_array_equal(opt.slots["x"]["m"], 1.0)


def test_slots_by_key_path() -> None:
    model = {"l1": {"weight": np.ones((2, 3)), "bias": np.ones(3)}, "name": "net"}
    opt = optim.Adam()
    with pytest.raises(KeyError, match="build or the first update makes them"):
        opt.slots["l1.weight"]
    opt.update(model, {"l1": {"weight": np.ones((2, 3)), "bias": np.ones(3)}, "name": "net"})
    assert list(opt.slots) == ["l1.weight", "l1.bias"]
    assert opt.slots["l1.weight"]["m"].shape == (2, 3)
    path = ox.tree.path("l1.bias", model)
    assert opt.slots[path] is opt.slots["l1.bias"]
    with pytest.raises(KeyError, match=r"l1\.weight, l1\.bias"):
        opt.slots["l2"]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_config_round_trips_through_json(name: str) -> None:
    opt = OPTIMIZERS[name]()
    config = json.loads(json.dumps(opt.get_config()))
    again = optim.from_config(config)
    assert type(again) is type(opt)
    assert again.get_config() == opt.get_config()
    assert repr(again) == repr(opt)


def test_a_schedule_round_trips_through_the_config() -> None:
    schedule = schedules.warmup_cosine(0.1, 5, 50, final=0.01)
    again = optim.from_config(json.loads(json.dumps(optim.AdamW(schedule).get_config())))
    assert again.learning_rate == schedule
    with pytest.raises(TypeError, match=r"learning_rate is .*oxigrad\.schedules"):
        optim.AdamW(lambda step: 0.1).get_config()
    with pytest.raises(ValueError, match=r"optimizer is 'Nope'"):
        optim.from_config({"optimizer": "Nope"})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: optim.Adam(lr=0.1), "unknown: lr: use learning_rate; its hyperparameters are learning_rate, beta1"),
        (lambda: optim.Adam(0.1, learning_rate=0.1), "given twice: learning_rate"),
        (lambda: optim.SGD(1, 2, True, 3, 4, True, 5), "at most 6 positional"),
        (lambda: optim.Adam(learning_rate="fast"), "expected a number or a schedule"),
        (lambda: optim.Adam(learning_rate=None), "expected a number or a schedule"),
        (lambda: optim.SGD(nesterov=0.5), "nesterov is 0.5: expected True or False"),
    ],
)
def test_wrong_hyperparameters(make: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make()


def test_the_constructor_has_the_signature_of_the_rule() -> None:
    import inspect

    assert str(inspect.signature(optim.AdamW)).startswith("(learning_rate=0.001, beta1=0.9, beta2=0.999")
    assert (optim.AdamW.__doc__ or "").startswith(inspect.cleandoc(optim.AdamW._rule.call.__doc__ or "?"))


# --- models --------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Dense:
    weight: Any
    bias: Any
    activation: Any = math.tanh
    frozen: Any = ox.field(trainable=False, default=None)


@dataclasses.dataclass(frozen=True)
class Frozen:
    scale: Any


class Pair(NamedTuple):
    a: Any
    b: Any


def test_a_nested_model_is_updated_in_place() -> None:
    model = {
        "layers": [Dense(np.zeros((2, 2)), np.zeros(2), frozen=np.zeros(2))],
        "head": (Frozen(np.zeros(1)),),
        "n": 3,
    }
    held = model["layers"][0].weight, model["head"][0].scale
    grads = ox.tree.map(lambda leaf: np.ones_like(leaf) if isinstance(leaf, np.ndarray) else leaf, model)
    opt = optim.SGD(1.0)
    assert opt.update(model, grads) is model
    assert held[0] is model["layers"][0].weight and (held[0] == -1).all()
    assert held[1] is model["head"][0].scale and (held[1] == -1).all()
    assert (model["layers"][0].frozen == 0).all()
    assert list(opt.slots) == ["layers.0.weight", "layers.0.bias", "head.0.scale"]


def test_gradients_need_arrays_only_where_there_are_parameters() -> None:
    model = Dense(np.zeros(2), np.zeros(2))
    optim.SGD(1.0).update(model, Dense(np.ones(2), np.ones(2), activation=None))
    assert (model.weight == -1).all() and (model.bias == -1).all()


def test_tied_parameters_are_updated_once_with_the_sum_of_their_gradients() -> None:
    w = np.zeros(3)
    model, opt = {"encoder": w, "decoder": w, "bias": np.zeros(1)}, optim.Adam(0.1)
    grads = {"encoder": np.ones(3), "decoder": np.full(3, 2.0), "bias": np.ones(1)}
    opt.update(model, grads)
    assert model["encoder"] is model["decoder"] is w
    assert list(opt.slots) == ["encoder", "bias"]
    np.testing.assert_allclose(opt.slots["encoder"]["m"], 0.3)
    np.testing.assert_array_equal(grads["encoder"], 1.0)


@pytest.mark.parametrize(
    "kind", [Frozen, lambda p: (p,), lambda p: Pair(p, 0.0)], ids=["frozen", "tuple", "namedtuple"]
)
def test_a_read_only_array_is_replaced_and_its_containers_rebuilt(kind: Any) -> None:
    p = np.zeros(2)
    p.setflags(write=False)
    model = kind(p)
    grads = kind(np.ones(2))
    new = optim.SGD(1.0).update(model, grads)
    assert new is not model and type(new) is type(model)
    np.testing.assert_array_equal(ox.tree.leaves(new)[0], -1.0)
    np.testing.assert_array_equal(p, 0.0)
    inside = {"part": model}
    assert optim.SGD(1.0).update(inside, {"part": grads}) is inside
    np.testing.assert_array_equal(ox.tree.leaves(inside)[0], -1.0)


def test_minimize_refuses_a_tree_that_it_would_have_to_replace() -> None:
    p = np.zeros(2)
    p.setflags(write=False)
    opt = optim.SGD(1.0)
    with pytest.raises(ox.StructureError, match="use update"):
        opt.minimize(lambda model: xp.sum((model[0] - 1.0) ** 2), (p,))
    assert opt.step == 0
    model = {"p": p}
    assert optim.SGD(0.5).minimize(lambda model: xp.sum((model["p"] - 1.0) ** 2), model) == 2.0
    np.testing.assert_array_equal(model["p"], 1.0)


def test_minimize_learns() -> None:
    model, opt = {"x": np.array([-1.2, 1.0])}, optim.Adam(learning_rate=0.05)

    def rosenbrock(model: Any) -> Any:
        x, y = model["x"][0], model["x"][1]
        return (1 - x) ** 2 + 100 * (y - x * x) ** 2

    values = [float(opt.minimize(rosenbrock, model)) for _ in range(3000)]
    assert values[-1] < 1e-5 < values[0]
    np.testing.assert_allclose(model["x"], 1.0, atol=1e-2)


def test_apply_leaves_its_arguments_unchanged() -> None:
    opt, params = optim.Adam(0.1), {"w": np.ones(3)}
    state = opt.init(params)
    new, after = opt.apply(params, {"w": np.ones(3)}, state)
    np.testing.assert_array_equal(params["w"], 1.0)
    np.testing.assert_array_equal(state["slots"]["w"]["m"], 0.0)
    assert (state["step"], after["step"], opt.step) == (0, 1, 0)
    np.testing.assert_allclose(new["w"], 0.9, rtol=1e-6)


def test_a_step_can_be_differentiated() -> None:
    opt = optim.SGD()

    def after(rate: Any) -> Any:
        tuned = optim.define(lambda xp, p, g, *, k=0.0: p - rate * g, "Tuned", elementwise=False)()
        new, _ = tuned.apply({"w": np.ones(2)}, {"w": np.full(2, 3.0)}, tuned.init({"w": np.ones(2)}))
        return xp.sum(new["w"])

    assert ox.grad(after)(0.1) == -6.0
    assert opt.step == 0


# --- rules ---------------------------------------------------------------------------------------------------------------


def test_noise_is_a_function_of_seed_and_step_only(threads: Any) -> None:
    start = {"a": np.zeros(200_000), "b": np.zeros((300, 5))}
    grads = {"a": np.ones(200_000), "b": np.ones((300, 5))}
    masks = []
    for count, seed in [(1, 0), (3, 0), (3, 1)]:
        threads(count)
        model, opt = copied(start), optim.AdamLRD(1.0, dropout_rate=0.3, seed=seed)
        opt.update(model, grads)
        masks.append(model["a"] == 0)
        assert (model["b"] == 0).mean() == pytest.approx(0.3, abs=0.05)
        again = copied(model)
        opt.update(model, grads)
        assert ((again["a"] == model["a"]) != masks[-1]).any()
    np.testing.assert_array_equal(masks[0], masks[1])
    assert (masks[0] != masks[2]).any()
    assert masks[0].mean() == pytest.approx(0.3, abs=0.005)


def test_learning_rate_dropout_leaves_the_moments_alone() -> None:
    grads = {"x": np.linspace(-1, 1, 1000)}
    plain, dropped = optim.AdamLRD(0.1), optim.AdamLRD(0.1, dropout_rate=0.5)
    for opt in (plain, dropped):
        opt.update({"x": np.zeros(1000)}, grads)
    for slot in ("m", "v"):
        np.testing.assert_array_equal(plain.slots["x"][slot], dropped.slots["x"][slot])


def test_a_whole_leaf_sum_runs_in_a_kernel() -> None:
    def normalized(xp, p, g, *, learning_rate=1.0):
        return p - learning_rate * g / xp.sqrt(xp.sum(g * g))

    Normalized = optim.define(normalized)
    model, g = {"a": np.zeros(100_000), "b": np.zeros(2)}, np.random.default_rng(0).standard_normal(100_000)
    Normalized().update(model, {"a": g, "b": np.array([3.0, 4.0])})
    np.testing.assert_allclose(model["a"], -g / np.linalg.norm(g), rtol=1e-12)
    np.testing.assert_allclose(model["b"], [-0.6, -0.8], rtol=1e-15)


def branching(xp, p, g):
    return p - g if g > 0 else p


def shaped(xp, p, g):
    return p - g / g.shape[0]


def indexed(xp, p, g):
    return p - g[0]


def matrix(xp, p, g):
    return p - xp.matmul(g, g)


def axis_sum(xp, p, g):
    return p - xp.sum(g, axis=0)


def captured(xp, p, g):
    return p - np.ones(3) * g


def converted(xp, p, g):
    return p - float(g)


def foreign(xp, p, g):
    return p - math.sin(g)


def too_few(xp, p, g, m):
    return p - g


def nothing(xp, p, g):
    return None


ON_ARRAYS = [shaped, indexed, matrix, axis_sum]
NOWHERE = [branching, captured, converted, foreign]


@pytest.mark.parametrize("rule", [*ON_ARRAYS, *NOWHERE], ids=lambda r: r.__name__)
def test_an_untraceable_rule_is_refused_as_a_kernel(rule: Any) -> None:
    with pytest.raises(ox.RuleError, match=rf"^the rule {rule.__name__}: (?!the rule).*elementwise=False"):
        optim.define(rule, elementwise=True)


@pytest.mark.parametrize("rule", ON_ARRAYS, ids=lambda r: r.__name__)
def test_a_rule_that_cannot_be_traced_is_called_on_arrays(rule: Any) -> None:
    made = optim.define(rule)
    assert made().program is None
    p, g = np.ones((2, 2)), np.array([[1.0, 2.0], [3.0, 4.0]])
    found = made().update({"w": p.copy()}, {"w": g})["w"]
    np.testing.assert_array_equal(found, rule(np, p, g))
    np.testing.assert_array_equal(found, optim.define(rule, elementwise=False)().update({"w": p.copy()}, {"w": g})["w"])


@pytest.mark.parametrize("rule", NOWHERE, ids=lambda r: r.__name__)
def test_a_rule_that_fails_on_arrays_too_is_refused_with_both_reasons(rule: Any) -> None:
    with pytest.raises(ox.RuleError, match=rf"^the rule {rule.__name__}: ") as raised:
        optim.define(rule)
    assert raised.value.__cause__ is not None


@pytest.mark.parametrize("elementwise", [None, True])
@pytest.mark.parametrize("rule", [too_few, nothing], ids=lambda r: r.__name__)
def test_a_rule_with_other_results_is_refused(rule: Any, elementwise: Any) -> None:
    with pytest.raises(
        ox.RuleError, match=rf"^the rule {rule.__name__}: found .* results?, expected|{rule.__name__}: "
    ):
        optim.define(rule, elementwise=elementwise)


def test_a_misspelt_function_in_a_rule_is_named() -> None:
    def rule(xp, p, g, *, learning_rate=0.1):
        return p - learning_rate * xp.sqr(g)

    for elementwise in (None, True):
        with pytest.raises(AttributeError, match=r"'oxigrad.xp' has no attribute 'sqr' \(did you mean sqrt\?\)"):
            optim.define(rule, elementwise=elementwise)


def test_a_rule_that_is_not_elementwise_is_called_on_arrays() -> None:
    def preconditioned(xp, p, g, h, *, learning_rate=1.0):
        h = h + xp.matmul(g, xp.matrix_transpose(g))
        return p - learning_rate * xp.matmul(h, g), h

    opt = optim.define(preconditioned, elementwise=False)(learning_rate=0.5)
    p, g = np.zeros((2, 2)), np.array([[1.0, 2.0], [3.0, 4.0]])
    model = opt.update({"p": p}, {"p": g})
    np.testing.assert_allclose(model["p"], -0.5 * (g @ g.T) @ g)
    np.testing.assert_allclose(opt.slots["p"]["h"], g @ g.T)
    assert opt.program is None


@pytest.mark.parametrize(
    "rule",
    [lambda p, g: p, lambda xp, p, *, g=1.0: p, lambda xp, p, g, *slots: p, lambda xp, p, g, *, rate: p],
    ids=["no xp", "no g", "star", "no default"],
)
def test_a_signature_that_is_no_rule_is_refused(rule: Any) -> None:
    with pytest.raises(TypeError, match="rule|default"):
        optim.define(rule)


def test_a_program_prints() -> None:
    listing = str(optim.SGD().program)
    assert "multiply" in listing and "out0 = subtract" in listing
