"""Parameters that are frozen, unfrozen, added and removed between steps, and gradients of None."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from optimizers import OPTIMIZERS
from oxigrad import optim
from oxigrad.optim import SGD, Adam, AdamLRD, chain, partition
from oxigrad.step.arrays.sparse_rows import SparseRows

Tree = Any
SHAPES = {"a": (5,), "b": (3, 2), "c": (4,)}


def model(*paths: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    whole = {path: rng.normal(size=shape) for path, shape in SHAPES.items()}
    return {path: whole[path] for path in paths or SHAPES}


def gradients(step: int, *paths: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(step + 1)
    whole = {path: rng.normal(size=shape) for path, shape in SHAPES.items()}
    return {path: whole[path] for path in paths or SHAPES}


def alone(make: Callable[[], Any], path: str, steps: list[int]) -> tuple[Any, Any]:
    """The parameter after an optimizer of its own took these steps, and the slots."""
    opt, own = make(), model(path)
    for step in steps:
        opt.update(own, gradients(step, path))
    return own[path], opt.slots[path]


def same(found: Any, expected: Any) -> None:
    np.testing.assert_array_equal(host(found), host(expected))


def same_slots(found: Any, expected: Any) -> None:
    assert found.keys() == expected.keys()
    for name in found:
        same(np.asarray(found[name]), np.asarray(expected[name]))


# --- gradients of None -------------------------------------------------------------------------------------------------

# Totals over all leaves, and random numbers by the place of a leaf, tell a model of one leaf from a larger one.
OF_LEAVES = {
    name: make
    for name, make in OPTIMIZERS.items()
    if not make()._rule.supplied & {"noise", "total"} and name not in ("lookahead",)
}


@pytest.mark.parametrize("name", OF_LEAVES)
def test_a_parameter_takes_only_the_steps_that_it_has_a_gradient_in(name: str) -> None:
    make, w = OF_LEAVES[name], model()
    opt = make()
    taken = {"a": [0, 1, 2, 3, 4], "b": [0, 3, 4], "c": [2, 4]}
    for step in range(5):
        given = gradients(step)
        opt.update(w, {path: g if step in taken[path] else None for path, g in given.items()})
    assert opt.step == 5
    for path, steps in taken.items():
        p, slots = alone(make, path, steps)
        same(w[path], p)
        same_slots(opt.slots[path], slots)


@pytest.mark.parametrize("name", OF_LEAVES)
def test_the_pure_function_takes_the_same_steps(name: str) -> None:
    make, taken = OF_LEAVES[name], {"a": [0, 1, 2, 3], "b": [0, 3], "c": [1, 2]}
    opt, w = make(), model()
    state = opt.init(w)
    for step in range(4):
        given = {path: g if step in taken[path] else None for path, g in gradients(step).items()}
        w, state = opt.apply(w, given, state)
    other, expected = make(), model()
    for step in range(4):
        other.update(expected, {path: g if step in taken[path] else None for path, g in gradients(step).items()})
    for path in SHAPES:
        np.testing.assert_allclose(w[path], expected[path], rtol=1e-12, atol=1e-14)
    assert state["missed_steps"] == {"b": 2, "c": 2} and state["step"] == 4


@pytest.mark.parametrize("library", ["numpy", "read-only", "jax", "torch"])
def test_gradients_of_none_over_libraries(library: str) -> None:
    def asarray(x: np.ndarray) -> Any:
        if library == "numpy":
            return x
        if library == "read-only":
            x.setflags(write=False)
            return x
        if library == "torch":
            return pytest.importorskip("torch").asarray(x)
        jax = pytest.importorskip("jax")
        with jax.enable_x64(True):
            return jax.numpy.asarray(x.astype(np.float32))

    opt, w, expected = Adam(0.1), {p: asarray(x) for p, x in model().items()}, model()
    reference = Adam(0.1)
    if library == "jax":
        expected = {p: x.astype(np.float32) for p, x in expected.items()}
    for step, missing in enumerate(["b", "", "c", "b", ""]):
        given = {p: g.astype(expected[p].dtype) for p, g in gradients(step).items()}
        w = opt.update(w, {p: None if p == missing else asarray(g) for p, g in given.items()})
        reference.update(expected, {p: None if p == missing else g for p, g in given.items()})
    for path in SHAPES:
        np.testing.assert_allclose(host(w[path]), expected[path], rtol=1e-6, atol=1e-7)
    assert opt.state_dict()["remembered"]["presence"] == {"missed_steps": {"b": 2, "c": 1}}


def test_none_for_a_subtree_and_in_lists() -> None:
    tree = {"body": {"w": np.zeros(2), "b": [np.zeros(1), np.zeros(1)]}, "head": np.zeros(2)}
    opt = SGD(1.0, 0.9)
    opt.update(tree, {"body": None, "head": np.ones(2)})
    same(tree["head"], -1.0)
    same(tree["body"]["w"], 0.0)
    assert list(opt.slots) == ["head"]
    opt.update(tree, {"body": {"w": np.ones(2), "b": [None, np.ones(1)]}, "head": None})
    same(tree["body"]["b"][0], 0.0)
    same(tree["body"]["b"][1], -1.0)
    opt.update(tree, {"body": {"w": None, "b": None}, "head": np.ones(2)})
    same(tree["head"], -2.9)
    with pytest.raises(ox.StructureError, match=r"^body\.w: the gradient is missing: expected an array, or None"):
        opt.update(tree, {"body": {"b": None}, "head": np.ones(2)})
    with pytest.raises(ox.StructureError, match="no parameter has a gradient"):
        opt.update(tree, {"body": None, "head": None})
    assert opt.step == 3


def test_a_tied_parameter_has_the_gradients_of_the_paths_that_have_one() -> None:
    shared = np.zeros(2)
    tree = {"encoder": shared, "decoder": shared, "b": np.zeros(1)}
    opt = SGD(1.0)
    for _ in range(2):
        opt.update(tree, {"encoder": None, "decoder": np.ones(2), "b": np.ones(1)})
    same(shared, -2.0)
    opt.update(tree, {"encoder": None, "decoder": None, "b": np.ones(1)})
    same(shared, -2.0)
    opt.update(tree, {"encoder": np.ones(2), "decoder": np.ones(2), "b": None})
    same(shared, -4.0)
    same(tree["b"], -3.0)


@pytest.mark.parametrize("sparse", ["dense", "lazy", "catch_up"])
def test_rows_of_a_parameter_that_misses_steps(sparse: str) -> None:
    def rows(step: int) -> SparseRows:
        return SparseRows([step % 3], np.full((1, 2), 1.0 + step), (3, 2))

    opt, w, own = Adam(0.1, sparse=sparse), {"t": np.zeros((3, 2)), "b": np.zeros(1)}, {"t": np.zeros((3, 2))}
    reference = Adam(0.1, sparse=sparse)
    for step in range(6):
        is_given = step not in (1, 4)
        opt.update(w, {"t": rows(step) if is_given else None, "b": np.ones(1)})
        if is_given:
            reference.update(own, {"t": rows(step)})
    same(w["t"], own["t"])
    same_slots(opt.slots["t"], reference.slots["t"])


@pytest.mark.parametrize("options", [{"slot_dtype": "8bit"}, {"slot_dtype": "bfloat16"}])
def test_slots_of_low_precision_rest(options: dict[str, Any]) -> None:
    big = {"a": np.ones(5000, np.float32), "b": np.ones(5000, np.float32)}
    opt = Adam(0.1, **options)
    given = {path: np.linspace(-1, 1, 5000, dtype=np.float32) for path in big}
    opt.update(big, given)
    before = {name: np.asarray(slot).copy() for name, slot in opt.slots["b"].items()}
    opt.update(big, {**given, "b": None})
    for name, slot in before.items():
        same(np.asarray(opt.slots["b"][name]), slot)
    opt.update(big, given)
    assert opt.state_dict()["remembered"]["presence"] == {"missed_steps": {"b": 1}}


def test_accumulated_gradients_count_none_as_zeros_unless_all_are() -> None:
    opt, w = SGD(1.0, accumulate=3), {"a": np.zeros(1), "b": np.zeros(1), "c": np.zeros(1)}
    one, three = np.ones(1), np.full(1, 3.0)
    for _ in range(2):
        opt.update(w, {"a": three, "b": three, "c": None})
        opt.update(w, {"a": three, "b": None, "c": None})
        opt.update(w, {"a": three, "b": one * 0, "c": None})
    same(w["a"], -6.0)
    same(w["b"], -2.0)
    same(w["c"], 0.0)
    opt.update(w, {"a": three, "b": None, "c": None})
    again = optim.from_config(json.loads(json.dumps(opt.get_config())))
    again.load_state_dict(opt.state_dict())
    for one_of in (opt, again):
        v = copy.deepcopy(w)
        one_of.update(v, {"a": three, "b": None, "c": three})
        one_of.update(v, {"a": three, "b": None, "c": None})
        same(v["a"], -9.0)
        same(v["b"], -2.0)
        same(v["c"], -1.0)
    assert opt.state_dict()["remembered"]["presence"] == again.state_dict()["remembered"]["presence"]


def test_random_numbers_are_those_of_the_optimizers_step() -> None:
    def make() -> Any:
        return AdamLRD(0.1, dropout_rate=0.5, seed=3)

    opt, other, w, v = make(), make(), model(), model()
    state = other.init(v)
    for step in range(4):
        given = {p: None if p == "b" and step == 1 else g for p, g in gradients(step).items()}
        opt.update(w, given)
        v, state = other.apply(v, given, state)
    for path in SHAPES:
        np.testing.assert_allclose(v[path], w[path], rtol=1e-12, atol=1e-14)


def test_a_step_that_fails_misses_nothing() -> None:
    opt, w = Adam(0.1), model()
    opt.update(w, gradients(0))
    with pytest.raises(ox.ShapeError):
        opt.update(w, {"a": np.ones(9), "b": None, "c": np.ones(4)})
    opt.update(w, {**gradients(1), "b": None})
    opt.update(w, gradients(2))
    p, slots = alone(lambda: Adam(0.1), "b", [0, 2])
    same(w["b"], p)
    same_slots(opt.slots["b"], slots)


def test_states_remember_missed_steps(tmp_path: Any) -> None:
    opt, w = Adam(0.1), model()
    for step in range(3):
        opt.update(w, {**gradients(step), **({"b": None} if step else {})})
    opt.save(tmp_path / "state")
    copies = [copy.deepcopy(opt), Adam(0.1), Adam(0.1)]
    copies[1].load(tmp_path / "state")
    copies[2].load_state_dict(opt.state_dict())
    weights = [copy.deepcopy(w) for _ in copies]
    opt.update(w, gradients(3))
    for each, v in zip(copies, weights, strict=True):
        each.update(v, gradients(3))
        for path in SHAPES:
            same(v[path], w[path])
    bad = opt.state_dict()
    bad["remembered"] = {"presence": {"missed_steps": {"b": 99}}}
    with pytest.raises(ox.StateError, match="b: the state has missed_steps 99: expected at most the step, 4"):
        Adam(0.1).load_state_dict(bad)


def _restored(opt: Any, make: Callable[[], Any], how: str, tmp_path: Any, like: Tree = None) -> Any:
    """The optimizer in a copy, or in one that has loaded its state, before or after it was built for the model ``like``."""
    if how == "a copy":
        return copy.deepcopy(opt)
    again = make()
    if like is not None:
        again.build(like)
    if how == "a file":
        opt.save(tmp_path / "state")
        again.load(tmp_path / "state")
    else:
        again.load_state_dict(opt.state_dict())
    return again


@pytest.mark.parametrize("how", ["a copy", "a file", "a state", "a state of a built model"])
@pytest.mark.parametrize("why", ["gradients of None", "a group", "a chain"])
def test_a_restored_optimizer_begins_parameters_that_had_no_step_yet(why: str, how: str, tmp_path: Any) -> None:
    def make(frozen: bool = False) -> Any:
        groups = {"b": None} if frozen else {}
        return chain(optim.ClipByValue(1.0), Adam(0.1)) if why == "a chain" else Adam(0.1, groups=groups)

    opt, w = make(why == "a group"), model()
    for step in range(2):
        opt.update(w, {**gradients(step), "b": None})
    assert opt.state_dict()["remembered"]["presence"] == {"without_slots": ["b"]}
    again = _restored(opt, make, how, tmp_path, model() if how.endswith("built model") else None)
    if why == "a group":
        again = _restored(again, make, "a state", tmp_path)  # without the group
    for step in (2, 3):
        again.update(w, gradients(step))
    reference, v = make(), model()
    for step in range(4):
        reference.update(v, {**gradients(step), **({"b": None} if step < 2 else {})})
    for path in SHAPES:
        same(w[path], v[path])
        same_slots(again.slots[path], reference.slots[path])
    assert again.state_dict()["remembered"]["presence"] == {"missed_steps": {"b": 2}}


def test_a_later_state_has_slots_for_parameters_that_the_optimizer_has_not_begun() -> None:
    opt, w = Adam(0.1), model()
    for step in range(2):
        opt.update(w, gradients(step))
    state, v = opt.state_dict(), copy.deepcopy(w)
    opt.update(w, gradients(2))
    behind = Adam(0.1)
    behind.update(model(), {**gradients(0), "b": None})
    behind.load_state_dict(state)
    behind.update(v, gradients(2))
    for path in SHAPES:
        same(v[path], w[path])


@pytest.mark.parametrize("name", ["adam", "called", "muon"])
@pytest.mark.parametrize("module", ["torch", "jax.numpy"])
def test_loaded_slots_of_parameters_that_begin_later_are_of_their_library(
    name: str, module: str, tmp_path: Any
) -> None:
    library = pytest.importorskip(module)
    make = {
        "adam": lambda: Adam(0.1),
        "called": lambda: chain(optim.Centralize(), Adam(0.1)),
        "muon": lambda: optim.Muon(0.1),
    }[name]
    shapes = {"a": (2, 3), "b": (3, 2)}

    def draw(seed: int) -> Any:
        rng = np.random.default_rng(seed)
        return {path: library.asarray(rng.normal(size=shape).astype(np.float32)) for path, shape in shapes.items()}

    opt, again = make(), make()
    w = opt.update(draw(0), draw(1))
    v = again.update(draw(0), {**draw(1), "b": None})
    v["b"] = library.asarray(host(w["b"]).copy())
    opt.save(tmp_path / "state")
    again.load(tmp_path / "state")
    for grads in ({**draw(2), "b": None}, draw(3)):
        w, v = opt.update(w, grads), again.update(v, grads)
    for path in shapes:
        same(host(v[path]), host(w[path]))
        for slot, array in opt.slots[path].items():
            assert type(again.slots[path][slot]) is type(array)
            same(host(again.slots[path][slot]), host(array))


def test_a_state_that_lacks_a_parameter_of_the_model_is_refused() -> None:
    opt = Adam(0.1)
    opt.update(model("a", "b"), {**gradients(0, "a"), "b": None})
    again = Adam(0.1)
    again.load_state_dict(opt.state_dict())
    with pytest.raises(ox.StateError, match="missing: c"):
        again.update(model(), gradients(1))
    bad = opt.state_dict()
    bad["remembered"] = {"presence": {"without_slots": [3]}}
    with pytest.raises(ox.StateError, match=r"without_slots \[3\]: expected a list of key paths"):
        Adam(0.1).load_state_dict(bad)


# --- frozen and unfrozen -----------------------------------------------------------------------------------------------


def test_parameters_are_frozen_and_unfrozen_by_groups() -> None:
    opt, w = Adam(0.1, groups={"b": None}), model()
    opt.update(w, gradients(0))
    assert "b" not in opt.slots
    opt.groups = {}
    opt.update(w, gradients(1))
    opt.groups = {"a": None}
    opt.update(w, gradients(2))
    kept = {name: slot.copy() for name, slot in opt.slots["a"].items()}
    opt.update(w, gradients(3))
    same_slots(opt.slots["a"], kept)
    opt.groups = {}
    opt.update(w, gradients(4))
    for path, steps in {"a": [0, 1, 4], "b": [1, 2, 3, 4], "c": [0, 1, 2, 3, 4]}.items():
        p, slots = alone(lambda: Adam(0.1), path, steps)
        same(w[path], p)
        same_slots(opt.slots[path], slots)


# --- added and removed -------------------------------------------------------------------------------------------------

COMPOSED: dict[str, Callable[[], Any]] = {
    "adam": lambda: Adam(0.1),
    "lion": lambda: optim.Lion(0.1),
    "adafactor": lambda: optim.Adafactor(0.1),
    "groups": lambda: Adam(0.1, groups={"b": {"learning_rate": 0.5}}),
    "partition": lambda: partition({"b": SGD(0.1, 0.9), "*": Adam(0.1)}),
    "chain": lambda: chain(optim.ClipByValue(0.5), Adam(0.1), optim.EMA(0.9)),
    "8bit": lambda: Adam(0.1, slot_dtype="8bit"),
    "catch_up": lambda: Adam(0.1, sparse="catch_up"),
    "accumulate": lambda: Adam(0.1, accumulate=2),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_parameters_are_added_and_removed(name: str) -> None:
    make, opt = COMPOSED[name], COMPOSED[name]()
    repeats = 2 if name == "accumulate" else 1
    w = model("a", "b")

    def take(step: int) -> None:
        for _ in range(repeats):
            opt.update(w, gradients(step, *w))

    take(0)
    take(1)
    w["c"] = model("c")["c"]
    before = copy.deepcopy(w), opt.state_dict()
    with pytest.raises(ox.StructureError, match=r"^c: the parameter is new: .*; rebuild\(model\) begins its slots"):
        take(2)
    assert opt.step == 2
    ox.tree.map(np.testing.assert_array_equal, (w, opt.state_dict()["slots"]), (before[0], before[1]["slots"]))
    changes = opt.rebuild(w)
    assert changes.added == ["c"] and not (changes.removed or changes.kept or changes.reset or changes.frozen)
    assert not opt.rebuild(w).added
    take(2)
    removed = w.pop("a")
    with pytest.raises(
        ox.StructureError, match=r"^a: the parameter is missing.*rebuild\(model, remove=True\) drops them"
    ):
        take(3)
    assert opt.rebuild(w).kept == ["a"] and "a" in opt.slots
    take(3)
    w = {"a": removed, **w}
    take(4)  # it is back, and continues
    taken = {"a": [0, 1, 2, 4], "b": [0, 1, 2, 3, 4], "c": [2, 3, 4]}
    for path, steps in taken.items():
        other, own = make(), model(path)
        if name == "groups":
            other.groups = {path: {"learning_rate": 0.5}} if path == "b" else {}
        if name == "partition":
            other = SGD(0.1, 0.9) if path == "b" else Adam(0.1)
        for step in steps:
            for _ in range(repeats):
                other.update(own, gradients(step, path))
        same(w[path], own[path])
        same_slots(opt.slots[path], other.slots[path])
    if name in ("groups", "partition"):
        return  # whose patterns would match nothing
    del w["b"]
    assert opt.rebuild(w, remove=True).removed == ["b"]
    take(5)
    assert sorted(opt.slots) == ["a", "c"] and opt.state_dict()["slots"].keys() == {"a", "c"}


def test_a_parameter_of_another_shape_begins_anew() -> None:
    opt, w = Adam(0.1), model()
    opt.update(w, gradients(0))
    w["c"] = np.zeros(7)
    with pytest.raises(ox.ShapeError):
        opt.update(w, {**gradients(1), "c": np.ones(7)})
    changes = opt.rebuild(w)
    assert changes.reset == ["c"] and bool(changes)
    opt.update(w, {**gradients(1), "c": np.ones(7)})
    np.testing.assert_allclose(w["c"], -0.1, rtol=1e-6)  # the first step of Adam


def test_what_is_frozen_is_reported() -> None:
    opt, w = Adam(0.1), model()
    opt.update(w, gradients(0))
    opt.groups = {"b": None}
    assert opt.rebuild(w).frozen == ["b"]
    opt.update(w, gradients(1))
    opt.groups = {}
    changes = opt.rebuild(w)
    assert changes.unfrozen == ["b"] and not changes.frozen
    assert optim.Changes() == optim.Changes([], [], [], [], [], []) and not optim.Changes()


def test_a_rebuild_that_fails_changes_nothing() -> None:
    opt, w = Adam(0.1, accumulate=2), model("a", "b")
    opt.update(w, gradients(0, "a", "b"))
    with pytest.raises(ox.StateError, match=r"1 gradients are accumulated: expected flush\(model\)"):
        opt.rebuild({**w, "c": np.zeros(4)})
    opt.update(w, gradients(1, "a", "b"))
    with pytest.raises(ox.DtypeError, match="^c: the parameter has dtype complex128"):
        opt.rebuild({"a": w["a"], "c": np.zeros(4, complex)}, remove=True)
    assert sorted(opt.slots) == ["a", "b"]
    for step in (2, 3):
        opt.update(w, gradients(step, "a", "b"))
    assert opt.step == 2


def test_a_rebuild_before_the_first_step_begins_all_slots() -> None:
    opt, w = Adam(0.1), model()
    assert opt.rebuild(w).added == ["a", "b", "c"]
    opt.update(w, gradients(0))
    p, _ = alone(lambda: Adam(0.1), "b", [0])
    same(w["b"], p)


# --- a partial accumulation --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["adam", "adafactor", "chain", "partition"])
def test_a_flush_takes_the_step_of_the_mean(name: str) -> None:
    make = {
        "adam": lambda **options: Adam(0.1, **options),
        "adafactor": lambda **options: optim.Adafactor(0.1, **options),
        "chain": lambda **options: chain(optim.ClipByGlobalNorm(0.5), Adam(0.1), **options),
        "partition": lambda **options: partition({"b": SGD(0.1, 0.9), "*": Adam(0.1)}, **options),
    }[name]
    opt, w = make(accumulate=4), model()
    other, v = make(accumulate=3), model()
    for step in range(3):
        opt.update(w, gradients(step))
        other.update(v, gradients(step))
    assert opt.step == 0 and other.step == 1
    assert opt.flush(w) is w and opt.step == 1
    assert opt.flush(w) is w and opt.step == 1
    for path in SHAPES:
        np.testing.assert_allclose(w[path], v[path], rtol=1e-12)
    for step in range(4):
        opt.update(w, gradients(step))
    assert opt.step == 2


def test_a_flush_with_a_loss_scale_and_without_some_gradients() -> None:
    opt, w = SGD(1.0, accumulate=4, loss_scale=optim.LossScale(8.0)), {"a": np.zeros(1), "b": np.zeros(1)}
    opt.update(w, {"a": np.full(1, 8.0), "b": None})
    opt.update(w, {"a": np.full(1, 24.0), "b": None})
    opt.flush(w)
    same(w["a"], -2.0)
    same(w["b"], 0.0)
    assert opt.step == 1
