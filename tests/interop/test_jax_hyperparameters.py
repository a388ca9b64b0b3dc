"""Hyperparameters that are traced by JAX, and random numbers inside of compiled functions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from oxigrad import optim
from oxigrad.optim import SGD, Adam, AdamLRD, chain

STEPS = 4


@pytest.fixture
def jax(library: Callable[[str], Any]) -> Iterator[Any]:
    found = library("jax")
    with found.enable_x64(True):
        yield found


def start() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"b": rng.normal(size=5), "w": rng.normal(size=(40, 3))}


def gradients(step: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(step + 1)
    return {"b": rng.normal(size=5), "w": rng.normal(size=(40, 3))}


MAKE: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda rate: SGD(rate, 0.9),
    "adam": lambda rate: Adam(rate),
    "adamw": lambda rate: optim.AdamW(rate),
    "lrd": lambda rate: AdamLRD(rate, dropout_rate=0.5, seed=3),
    "noise": lambda rate: chain(optim.GradientNoise(0.1), SGD(rate)),
    "chain": lambda rate: chain(optim.ClipByGlobalNorm(0.5), Adam(rate), optim.EMA(0.9)),
    "adafactor": lambda rate: optim.Adafactor(rate),
}
CASES = [("adam", "constructor"), ("lrd", "constructor"), ("adam", "state"), *((name, "keyword") for name in MAKE)]


@pytest.mark.parametrize(("name", "way"), CASES)
def test_a_traced_learning_rate_gives_the_steps_of_the_host(name: str, way: str, jax: Any) -> None:
    make, opt = MAKE[name], MAKE[name](1.0)

    def take(params: Any, grads: Any, state: Any, rate: Any) -> Any:
        if way == "constructor":
            return make(rate).apply(params, grads, state)
        if way == "keyword":
            return opt.apply(params, grads, state, learning_rate=rate)
        return opt.apply(params, grads, {**state, "hyperparameters": {"learning_rate": rate}})

    compiled = jax.jit(take)
    params = jax.tree.map(jax.numpy.asarray, start())
    state, host, plain = opt.init(params), start(), make(0.1)
    for step in range(STEPS):
        rate = 0.1 / (1 + step)
        params, state = compiled(params, jax.tree.map(jax.numpy.asarray, gradients(step)), state, rate)
        plain.learning_rate = rate
        plain.update(host, gradients(step))
        for path, array in host.items():
            np.testing.assert_allclose(params[path], array, rtol=1e-9 if name == "adafactor" else 1e-13, atol=1e-14)
    assert compiled._cache_size() <= 2  # one program for all rates; the first state has a Python number for the step


@dataclasses.dataclass
class Net:
    weight: Any
    bias: Any


@pytest.mark.parametrize("kind", ["dict", "list", "dataclass"])
def test_the_masks_of_a_compiled_step_are_those_of_the_host(kind: str, jax: Any) -> None:
    """The place of a leaf selects its random numbers: JAX sorts the keys of dicts, and keeps the order of other containers."""
    if kind == "dataclass":
        jax.tree_util.register_dataclass(Net, ["weight", "bias"], [])

    def tree(arrays: dict[str, Any]) -> Any:
        return {"dict": arrays, "list": [arrays["w"], arrays["b"]], "dataclass": Net(arrays["w"], arrays["b"])}[kind]

    opt, host = AdamLRD(0.1, dropout_rate=0.5, seed=3), tree(start())
    params = jax.tree.map(jax.numpy.asarray, host)
    state, compiled = opt.init(params), jax.jit(opt.apply)
    for step in range(STEPS):
        given = tree(gradients(step))
        params, state = compiled(params, jax.tree.map(jax.numpy.asarray, given), state)
        opt.update(host, given)
        for ours, theirs in zip(jax.tree.leaves(host), jax.tree.leaves(params), strict=True):
            np.testing.assert_array_equal(np.asarray(theirs), ours)  # to the bit


def test_a_scan_over_rates(jax: Any) -> None:
    opt = AdamLRD(1.0, dropout_rate=0.5, seed=1)
    params = jax.tree.map(jax.numpy.asarray, start())
    given = jax.tree.map(lambda *x: jax.numpy.stack(x), *[gradients(step) for step in range(STEPS)])
    state = {**opt.init(params), "step": jax.numpy.asarray(0)}
    rates = jax.numpy.linspace(0.1, 0.4, STEPS)

    def body(carry: Any, each: Any) -> Any:
        grads, rate = each
        return opt.apply(*carry[:1], grads, carry[1], learning_rate=rate), None

    (params, _), _ = jax.lax.scan(body, (params, state), (given, rates))
    host = start()
    for step in range(STEPS):
        opt.learning_rate = float(rates[step])
        opt.update(host, gradients(step))
    for path, array in host.items():
        np.testing.assert_array_equal(np.asarray(params[path]), array)


def test_none_for_a_leaf_in_a_compiled_step(jax: Any) -> None:
    opt, other, host = Adam(0.1), Adam(0.1), start()
    params = jax.tree.map(jax.numpy.asarray, host)
    state, compiled = opt.init(params), jax.jit(opt.apply)
    for step in range(STEPS):
        given = {**gradients(step), **({"b": None} if step == 1 else {})}
        params, state = compiled(params, jax.tree.map(jax.numpy.asarray, given), state)
        other.update(host, given)
    for path, array in host.items():
        np.testing.assert_allclose(params[path], array, rtol=1e-13)
    assert int(state["missed_steps"]["b"]) == 1


def test_hyperparameters_by_keyword_are_checked() -> None:
    opt, w = Adam(0.1), start()
    state = opt.init(w)
    with pytest.raises(TypeError, match="apply: found lr, expected numeric hyperparameters: learning_rate, beta1"):
        opt.apply(w, gradients(0), state, lr=0.1)
    with pytest.raises(ValueError, match="beta1 is 2.0: expected"):
        opt.apply(w, gradients(0), state, beta1=2.0)
    with pytest.raises(TypeError, match="expected a number or an array without axes"):
        opt.apply(w, gradients(0), state, learning_rate=lambda step: 0.1)
    found, state = opt.apply(w, gradients(0), {**state, "hyperparameters": {"learning_rate": 0.5}})
    np.testing.assert_array_equal(found["w"], Adam(0.5).update(start(), gradients(0))["w"])
    assert state["hyperparameters"] == {"learning_rate": 0.5}
