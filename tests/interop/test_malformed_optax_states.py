"""Malformed states of `oxigrad.optax` and of `Optimizer.apply`: a named error for each fault of each field."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import optim

MODEL = {"w": np.arange(1.0, 4.0), "b": np.array([[0.5, -0.5]])}
GRADS = {"w": np.ones(3), "b": np.full((1, 2), 2.0)}


@pytest.mark.parametrize("name", ["adamw", "adagrad", "lamb", "prodigy", "schedule_free_sgd", "radam"])
def test_optax(name: str, library: Any) -> None:
    jax, own = library("jax"), (library("optax"), importlib.import_module("oxigrad.optax"))[1]
    tx = getattr(own, name)(0.1)
    params = jax.tree.map(lambda x: jax.numpy.asarray(x, "float32"), MODEL)
    state = tx.init(params)
    counts = (-1, math.nan, 1.0, "one", None, jax.numpy.ones(2, "int32"), jax.numpy.float32(1.0), jax.numpy.int32(-3))
    wrong = [(state._replace(count=count), "count|state is") for count in counts]
    wrong += [(None, "the state is NoneType"), ((), "the state is tuple"), ({}, "the state is dict")]
    wrong += [(state._replace(slots=slots), "slot|state is") for slots in (None, [], {})]
    for slot, tree in state.slots.items():
        wrong.append((state._replace(slots={k: v for k, v in state.slots.items() if k != slot}), f"no slot {slot}"))
        for bad in ("text", 1.0, jax.numpy.ones((7, 7)), jax.numpy.ones(np.shape(tree["w"]), "int32"), None):
            wrong.append((state._replace(slots={**state.slots, slot: {**tree, "w": bad}}), f"slot {slot}|slots {slot}"))
        wrong.append((state._replace(slots={**state.slots, slot: {"w": tree["w"]}}), f"slots {slot}"))
    for given, text in wrong:
        for take in (tx.update, tx.apply):
            with pytest.raises((ox.StateError, ox.StructureError), match=text):
                take(params, given, params)
    for take in (tx.update, jax.jit(tx.update)):
        take(params, state, params)


@pytest.mark.parametrize("name", ["Adam", "LAMB", "Prodigy", "SGD"])
def test_apply(name: str) -> None:
    opt = getattr(optim, name)()
    state = opt.init(MODEL)
    expected = opt.apply(MODEL, GRADS, state)[0]
    wrong: list[tuple[Any, str]] = [(given, "the state") for given in (None, [], "state", 3, {})]
    wrong += [({"slots": state["slots"]}, "no step"), ({"step": 0}, "no slots")]
    wrong.append(
        ({**state, "learning_rate": 5.0}, "has learning_rate: expected step, slots, .*under 'hyperparameters'")
    )
    for step in (-1, math.nan, math.inf, 0.5, "one", None, True, np.float64(np.nan), np.array(-2)):
        wrong.append(({**state, "step": step}, "has step"))
    wrong += [({**state, "slots": slots}, "slots") for slots in (None, [], {}, {"w": None, "b": {}})]
    for slot in state["slots"]["w"]:
        for bad in ("text", None, 1.0, [1.0]):
            own = {**state["slots"]["w"], slot: bad}
            wrong.append(({**state, "slots": {**state["slots"], "w": own}}, f"w: the slot {slot}"))
    for given, text in wrong:
        with pytest.raises((ox.StateError, ox.StructureError), match=text):
            opt.apply(MODEL, GRADS, given)
    held = optim.SGD(accumulate=2)
    with pytest.raises(ox.StateError, match="no micro"):
        held.apply(MODEL, GRADS, {"step": 0, "slots": {"w": {}, "b": {}}})
    for path, array in opt.apply(MODEL, GRADS, state)[0].items():
        np.testing.assert_array_equal(array, expected[path])


@pytest.mark.parametrize("name", ["adam", "sgd", "lamb"])
def test_a_gradient_of_none_is_refused_as_by_optax(name: str, library: Any) -> None:
    jax, optax = library("jax"), library("optax")
    module = importlib.import_module("oxigrad.optax")
    params = jax.tree.map(jax.numpy.asarray, MODEL)
    grads = {**jax.tree.map(jax.numpy.asarray, GRADS), "b": None}
    with pytest.raises(ValueError, match="structure"):
        optax.adam(0.1).update(grads, optax.adam(0.1).init(params), params)
    tx = getattr(module, name)(0.1)
    state = tx.init(params)
    for take in (tx.update, jax.jit(tx.update), tx.apply):
        with pytest.raises(ox.StructureError, match="b: the gradient is None: expected an array"):
            take(grads, state, params)
    # Of a frozen parameter, or of integers, it may be None.
    frozen = module.transformation(optim.Adam(0.1, groups={"b": None}))
    counted = {**params, "n": jax.numpy.arange(2)}
    updates, _ = frozen.update({**grads, "n": None}, frozen.init(counted), counted)
    assert not updates["b"].any()
    assert not updates["n"].any()
    np.testing.assert_allclose(updates["w"], -0.1, rtol=1e-6)
