"""Chains with a partition among their parts: steps, hyperparameters, configuration, state and refusals."""

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import optim

Tree = dict[str, Any]


def model() -> Tree:
    rng = np.random.default_rng(0)
    return {"a": rng.standard_normal((3, 2)), "b": rng.standard_normal(5), "c": rng.standard_normal(4)}


def gradients(step: int) -> Tree:
    rng = np.random.default_rng(100 + step)
    return {"a": rng.standard_normal((3, 2)), "b": rng.standard_normal(5), "c": rng.standard_normal(4)}


def made(**options: Any) -> Any:
    parts = {"a": optim.Adam(0.1), "c": None, "*": optim.chain(optim.Maximize(), optim.SGD(0.2, momentum=0.9))}
    return optim.chain(optim.ClipByGlobalNorm(1.0), optim.partition(parts), optim.EMA(0.9), **options)


def trained(opt: Any, steps: int = 3, first: int = 0) -> Tree:
    found = model()
    for step in range(first, first + steps):
        found = opt.update(found, gradients(step))
    return found


def assert_equal(found: Tree, expected: Tree) -> None:
    assert found.keys() == expected.keys()
    for name, array in found.items():
        np.testing.assert_array_equal(array, expected[name])


OWN: dict[str, Callable[[], Any]] = {
    "sgd": lambda: optim.SGD(0.1, momentum=0.9),
    "adam": lambda: optim.Adam(0.1),
    "chain": lambda: optim.chain(optim.ClipByValue(0.3), optim.AdamW(0.1)),
    "called": lambda: optim.Adafactor(0.1),
}
AROUND: dict[str, Callable[[], tuple[list[Any], list[Any]]]] = {
    "nothing": lambda: ([], []),
    "before": lambda: ([optim.ClipByNorm(0.5), optim.Regularize(l2=0.1)], []),
    "after": lambda: ([], [optim.WeightDecay(0.1), optim.EMA(0.9)]),
    "step": lambda: ([optim.Centralize()], [optim.ClipByValue(0.05), optim.Lookahead()]),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("own", OWN)
def test_each_pattern_steps_as_a_separate_chain(own: str, around: str) -> None:
    before, after = AROUND[around]()
    opt = optim.chain(*before, optim.partition({"a": OWN[own](), "*": optim.SGD(0.5)}), *after)
    found = trained(opt, 7)
    for name, part in (("a", OWN[own]()), ("b", optim.SGD(0.5))):
        before, after = AROUND[around]()
        single = optim.chain(*before, part, *after)
        expected = model()
        for step in range(7):
            expected = single.update({name: expected[name]}, {name: gradients(step)[name]}) | expected
        np.testing.assert_array_equal(found[name], expected[name])
        assert opt.slots[name].keys() == single.slots[name].keys()


@pytest.mark.parametrize("own", OWN)
def test_the_global_norm_is_that_of_all_patterns(own: str) -> None:
    grads = gradients(0)
    norm = np.sqrt(sum(np.sum(g * g) for g in grads.values()))
    opt = optim.chain(optim.ClipByGlobalNorm(1.0), optim.partition({"a": OWN[own](), "*": optim.SGD(0.5)}))
    found = opt.update(model(), grads)
    np.testing.assert_allclose(found["b"], model()["b"] - 0.5 * grads["b"] / norm, rtol=1e-12)
    expected = OWN[own]().update({"a": model()["a"]}, {"a": grads["a"] / norm})["a"]
    np.testing.assert_allclose(found["a"], expected, rtol=1e-12)


def test_it_steps_as_optax_does() -> None:
    jax, optax = pytest.importorskip("jax"), pytest.importorskip("optax")
    opt = optim.chain(optim.ClipByGlobalNorm(1.0), optim.partition({"a": optim.Adam(0.1), "*": optim.SGD(0.2)}))
    labels = {"a": "adam", "b": "sgd", "c": "sgd"}
    peer = optax.chain(
        optax.clip_by_global_norm(1.0), optax.multi_transform({"adam": optax.adam(0.1), "sgd": optax.sgd(0.2)}, labels)
    )
    with jax.enable_x64(True):
        params = jax.tree.map(jax.numpy.asarray, model())
        state = peer.init(params)
        for step in range(3):
            updates, state = peer.update(jax.tree.map(jax.numpy.asarray, gradients(step)), state, params)
            params = optax.apply_updates(params, updates)
        found = trained(opt)
        for name, array in found.items():
            np.testing.assert_allclose(array, np.asarray(params[name]), rtol=1e-9)


def test_a_frozen_parameter_keeps_its_value_and_has_no_slots() -> None:
    opt = made()
    np.testing.assert_array_equal(trained(opt)["c"], model()["c"])
    assert sorted(opt.slots) == ["a", "b"]
    assert opt.averaged_parameters().keys() == {"a", "b"}


def test_the_pure_function_takes_the_same_step() -> None:
    opt = made()
    params, state = model(), opt.init(model())
    for step in range(3):
        params, state = opt.apply(params, gradients(step), state)
    assert_equal(params, trained(made()))


def test_options_belong_to_the_chain() -> None:
    opt = made(accumulate=2, nonfinite="skip")
    found = opt.update(model(), gradients(0))
    assert_equal(found, model())
    opt.update(found, gradients(1))
    assert opt.step == 1
    opt.update(found, {**gradients(2), "a": np.full((3, 2), np.nan)})
    opt.update(found, gradients(3))
    assert (opt.step, opt.skipped) == (1, 1)


# --- hyperparameters -----------------------------------------------------------------------------------------------------


def test_a_common_hyperparameter_is_set_for_all_patterns() -> None:
    opt, expected = made(), made()
    opt.max_global_norm = 0.5
    opt.parts[2].decay = 0.5
    assert (opt.max_global_norm, opt.decay, opt.parts[0].max_global_norm) == (0.5, 0.5, 0.5)
    assert [chain.max_global_norm for chain in opt.optimizers.values() if chain] == [0.5, 0.5]
    for chain in filter(None, expected.optimizers.values()):
        chain.max_global_norm, chain.decay = 0.5, 0.5
    assert_equal(trained(opt), trained(expected))
    assert {"max_global_norm", "decay"} <= {*dir(opt)}


def test_a_hyperparameter_of_one_pattern() -> None:
    opt, before = made(), trained(made())
    opt.parts[1].optimizers["a"][0].learning_rate = 0.2
    found = trained(opt)
    assert not np.array_equal(found["a"], before["a"])
    np.testing.assert_array_equal(found["b"], before["b"])
    assert opt.optimizers["a"].learning_rate == 0.2


def test_a_name_of_several_parts_is_set_on_a_part() -> None:
    opt = optim.chain(optim.partition({"*": optim.SGD()}), optim.EMA(0.9), optim.EMA(0.99))
    with pytest.raises(AttributeError, match=r"several parts have it, parts\[1\] \(EMA\), parts\[2\] \(EMA\)"):
        opt.decay  # noqa: B018
    opt.parts[2].decay = 0.5
    assert [part.decay for part in opt.parts[1:]] == [0.9, 0.5]


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("max_global_nrm", 1.0, AttributeError, "did you mean max_global_norm"),
        ("learning_rate", 1.0, AttributeError, r"set it on one of its optimizers, optimizers\[pattern\]"),
        ("max_global_norm", -1.0, ValueError, r"parts\[0\]: max_global_norm is -1.0: expected a number in"),
    ],
)
def test_an_assignment_is_checked(name: str, value: float, error: type[Exception], message: str) -> None:
    opt = made()
    with pytest.raises(error, match=message):
        setattr(opt, name, value)
    assert repr(opt) == repr(made())


# --- configuration and state -----------------------------------------------------------------------------------------------


def test_it_is_restored_from_its_configuration() -> None:
    opt = made(seed=3)
    opt.max_global_norm = 0.5
    again = optim.from_config(json.loads(json.dumps(opt.get_config())))
    assert repr(again) == repr(opt)
    assert_equal(trained(again), trained(opt))


@pytest.mark.parametrize(
    "again",
    [
        lambda opt: pickle.loads(pickle.dumps(opt)),  # noqa: S301 - our own
        copy.deepcopy,
        lambda opt: ((new := made()).load_state_dict(opt.state_dict()) and None) or new,
    ],
    ids=["pickle", "deepcopy", "state"],
)
def test_it_resumes(again: Callable[[Any], Any]) -> None:
    opt = made()
    found = trained(opt)
    restored = again(opt)
    other = restored.update(ox.tree.map(np.copy, found), gradients(3))
    assert_equal(other, opt.update(found, gradients(3)))


def test_a_nested_chain_is_flattened() -> None:
    opt = optim.chain(optim.Regularize(l2=0.1), made(), optim.SWA())
    assert [part.name for part in opt.parts] == ["Regularize", "ClipByGlobalNorm", "partition", "EMA", "SWA"]
    inside = made().parts[1].optimizers
    parts = {key: own and optim.chain(*(part._copy() for part in own)) for key, own in inside.items()}
    flat = optim.chain(
        optim.Regularize(l2=0.1), optim.ClipByGlobalNorm(1.0), optim.partition(parts), optim.EMA(0.9), optim.SWA()
    )
    assert_equal(trained(opt), trained(flat))


# --- refusals --------------------------------------------------------------------------------------------------------------

ONE = {"*": optim.SGD()}


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: optim.chain(optim.partition(ONE), optim.partition(ONE)), TypeError, "chain: found 2 partitions"),
        (lambda: optim.chain(optim.partition({"*": None})), ValueError, "freezes all parameters"),
        (lambda: optim.chain(optim.partition(ONE, accumulate=2)), ValueError, "accumulate must be set on the chain"),
        (lambda: optim.chain(optim.partition(ONE), groups={"a": None}), TypeError, "found groups with a partition"),
        (lambda: optim.chain(optim.partition(ONE), sead=3), TypeError, "unknown options: sead .did you mean seed"),
        (lambda: optim.chain(optim.EMA(), optim.partition(ONE)), ValueError, r"the pattern '\*': EMA changes the new"),
        (
            lambda: optim.chain(optim.partition({"a": optim.SGD(groups={"a": None})})),
            ValueError,
            "the pattern 'a': SGD: groups must be set on the chain",
        ),
        (
            lambda: optim.chain(optim.partition({"*": optim.LBFGS()})),
            TypeError,
            "found LBFGS, which evaluates the loss",
        ),
        (lambda: optim.chain(optim.LBFGS()), TypeError, "found LBFGS, which evaluates the loss"),
        (lambda: optim.chain(optim.SAM(optim.SGD())), TypeError, "found SAM.*expected optimizers of one rule"),
        (lambda: optim.SAM(optim.LBFGS()), TypeError, "SAM: found LBFGS"),
        (lambda: optim.partition({"*": optim.SAM(optim.SGD())}), TypeError, "found SAM.*expected an optimizer"),
    ],
)
def test_a_composition_without_meaning_is_refused(
    make: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make()
