"""Decoupled weight decay after every optimizer, compared with its formula and with the optimizers of other libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from optimizers import by_rules
from oxigrad import optim
from oxigrad.optim import WeightDecay, chain, partition

DECAY, STEPS = 0.1, 4
# Those that evaluate the loss take no part in chains.
NAMES = [
    name
    for name in optim.__all__
    if isinstance(kind := getattr(optim, name), type)
    and issubclass(kind, optim.RuleOptimizer)
    and kind not in (optim.RuleOptimizer, optim.Chain)
    and name != "LBFGS"
]


# Read by few rules.
LOSS = 1.5


def start() -> dict[str, np.ndarray]:
    return {"w": np.random.default_rng(0).standard_normal((4, 3))}


def gradients() -> list[dict[str, np.ndarray]]:
    return [{"w": g} for g in np.random.default_rng(1).standard_normal((STEPS, 4, 3))]


@pytest.mark.parametrize("name", NAMES)
def test_decay_after_every_optimizer(name: str) -> None:
    """The step of the optimizer, less ``learning_rate * weight_decay * p`` of the parameter before it."""
    make: Callable[[], Any] = getattr(optim, name)
    opt, rate = chain(make(), WeightDecay(DECAY)), make().learning_rate
    state = make().init(start())
    w, plain = start(), start()
    for g in gradients():
        opt.update(w, g, loss=LOSS)
        stepped, state = by_rules(make(), plain, g, state, loss=LOSS)
        plain = {"w": stepped["w"] - rate * DECAY * plain["w"]}
        np.testing.assert_allclose(w["w"], plain["w"], rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_decay_of_some_parameters_and_after_a_partition(name: str) -> None:
    make: Callable[[], Any] = getattr(optim, name)
    g, names = gradients()[0]["w"], ("weight", "bias")
    own = chain(make(), WeightDecay(DECAY)).parts[1]._names["weight_decay"]
    opt = chain(make(), WeightDecay(DECAY), groups={"bias": {own: 0.0}})
    model, other = ({each: start()["w"] for each in names} for _ in range(2))
    opt.update(model, dict.fromkeys(names, g), loss=LOSS)
    plain = make().update({each: start()["w"] for each in names}, dict.fromkeys(names, g), loss=LOSS)
    decayed = plain["weight"] - make().learning_rate * DECAY * start()["w"]
    np.testing.assert_allclose(model["weight"], decayed, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(model["bias"], plain["bias"], rtol=1e-12, atol=1e-14)
    if "total" in make()._rule.supplied:
        return  # which all optimizers of a partition must have
    parts = chain(partition({"weight": make(), "bias": optim.SGD(0.5)}), WeightDecay(DECAY))
    parts.update(other, {each: g.copy() for each in names})
    np.testing.assert_allclose(other["weight"], decayed, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(other["bias"], start()["w"] - 0.5 * g - 0.5 * DECAY * start()["w"], rtol=1e-12)


IN_TORCH: dict[str, tuple[Callable[[], Any], Callable[[Any, Any], Any]]] = {
    "Adam": (lambda: optim.Adam(0.1, compat="torch"), lambda t, p: t.AdamW(p, 0.1, weight_decay=DECAY)),
    "NAdam": (
        lambda: optim.NAdam(0.1, compat="torch"),
        lambda t, p: t.NAdam(p, 0.1, weight_decay=DECAY, decoupled_weight_decay=True),
    ),
    "RAdam": (
        lambda: optim.RAdam(0.1, compat="torch"),
        lambda t, p: t.RAdam(p, 0.1, weight_decay=DECAY, decoupled_weight_decay=True),
    ),
}


@pytest.mark.parametrize("name", IN_TORCH)
def test_as_in_torch(name: str, library: Callable[[str], Any]) -> None:
    torch = library("torch")
    make, peer = IN_TORCH[name]
    w, p = start(), torch.tensor(start()["w"], requires_grad=True)
    opt, theirs = chain(make(), WeightDecay(DECAY)), peer(torch.optim, [p])
    for g in gradients():
        opt.update(w, g)
        p.grad = torch.tensor(g["w"])
        theirs.step()
        np.testing.assert_allclose(w["w"], p.detach().numpy(), rtol=1e-6)


# Keras decays the parameter before the step, which matters to rules that read it: Lamb and Ftrl.
IN_KERAS = ["SGD", "RMSprop", "Adagrad", "Adadelta", "Adam", "Adamax", "Nadam", "Lion"]


@pytest.mark.parametrize("name", IN_KERAS)
def test_as_in_keras(name: str, keras: Any) -> None:
    peer = getattr(keras.optimizers, name)(0.1, weight_decay=DECAY)
    ours = getattr(optim, {"Nadam": "NAdam"}.get(name, name))(0.1, compat="keras")
    opt, w, variable = chain(ours, WeightDecay(DECAY)), start(), keras.Variable(start()["w"], dtype="float64")
    for g in gradients():
        peer.apply([keras.ops.convert_to_tensor(g["w"])], [variable])
        opt.update(w, g)
        np.testing.assert_allclose(w["w"], keras.ops.convert_to_numpy(variable), rtol=1e-6)


IN_OPTAX: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "sgd": (lambda: optim.SGD(0.1), lambda optax: optax.identity()),
    "rmsprop": (lambda: optim.RMSprop(0.1, compat="optax"), lambda optax: optax.scale_by_rms()),
    "adagrad": (lambda: optim.Adagrad(0.1, compat="optax"), lambda optax: optax.scale_by_rss()),
    "adabelief": (lambda: optim.AdaBelief(0.1, compat="optax"), lambda optax: optax.scale_by_belief()),
    "yogi": (lambda: optim.Yogi(0.1, compat="optax"), lambda optax: optax.scale_by_yogi()),
    "radam": (lambda: optim.RAdam(0.1, compat="optax"), lambda optax: optax.scale_by_radam()),
}


@pytest.mark.parametrize("name", IN_OPTAX)
def test_as_in_optax(name: str, library: Callable[[str], Any]) -> None:
    optax, jax = library("optax"), library("jax")
    make, scale = IN_OPTAX[name]
    opt, w = chain(make(), WeightDecay(DECAY)), start()
    with jax.enable_x64(True):
        tx = optax.chain(scale(optax), optax.add_decayed_weights(DECAY), optax.scale_by_learning_rate(0.1))
        p = jax.numpy.asarray(start()["w"])
        state = tx.init(p)
        for g in gradients():
            updates, state = tx.update(jax.numpy.asarray(g["w"]), state, p)
            p = optax.apply_updates(p, updates)
            opt.update(w, g)
            np.testing.assert_allclose(w["w"], np.asarray(p), rtol=1e-6)


def test_an_optimizer_without_weight_decay_says_what_has_it() -> None:
    with pytest.raises(TypeError, match=r"unknown: weight_decay: use optim\.chain\(optimizer, optim\.WeightDecay"):
        optim.Adam(0.1, weight_decay=0.1)
