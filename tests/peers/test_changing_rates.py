"""Learning rates that change, beside every library: whether a rule applies the rate before its momentum or after."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from optimizers import OPTIMIZERS
from oxigrad import optim

RATES = [0.1, 0.2, 0.05, 0.3, 0.1, 0.15]
STEPS = len(RATES)


def rate(step: Any) -> float:
    return RATES[int(step)]


def start_and_gradients() -> tuple[np.ndarray, list[np.ndarray]]:
    start, *grads = np.random.default_rng(0).standard_normal((STEPS + 1, 4, 3))
    return start, grads


# --- Keras -----------------------------------------------------------------------------------------------------------------

# By Keras' class: its arguments, and our optimizer for a learning rate.
KERAS: list[tuple[str, dict[str, Any], Callable[[Any], Any]]] = [
    ("SGD", {}, lambda lr: optim.SGD(lr, compat="keras")),
    ("SGD", {"momentum": 0.9}, lambda lr: optim.SGD(lr, 0.9, compat="keras")),
    ("SGD", {"momentum": 0.9, "nesterov": True}, lambda lr: optim.SGD(lr, 0.9, nesterov=np.True_, compat="keras")),
    ("RMSprop", {}, lambda lr: optim.RMSprop(lr, compat="keras")),
    ("RMSprop", {"momentum": 0.9}, lambda lr: optim.RMSprop(lr, momentum=0.9, compat="keras")),
    (
        "RMSprop",
        {"momentum": 0.9, "centered": True},
        lambda lr: optim.RMSprop(lr, momentum=0.9, centered=True, compat="keras"),
    ),
    ("Lamb", {}, lambda lr: optim.LAMB(lr, compat="keras")),
    ("Lamb", {"weight_decay": 0.2}, lambda lr: optim.LAMB(lr, weight_decay=0.2, compat="keras")),
    *(
        (theirs, {}, lambda lr, ours=ours: getattr(optim, ours)(lr, compat="keras"))
        for theirs, ours in {
            **{name: name for name in ("Adam", "AdamW", "Adamax", "Adagrad", "Adadelta", "Lion", "ScheduleFreeAdamW")},
            "Nadam": "NAdam",
            "Ftrl": "FTRL",
        }.items()
    ),
]


@pytest.mark.parametrize(("name", "given", "ours"), KERAS, ids=lambda each: str(each) if not callable(each) else "")
def test_keras(name: str, given: dict[str, Any], ours: Any, keras: Any) -> None:
    class Schedule(keras.optimizers.schedules.LearningRateSchedule):
        def __call__(self, step: Any) -> Any:
            return keras.ops.take(keras.ops.convert_to_tensor(np.array(RATES)), step)

    start, grads = start_and_gradients()
    peer, opt, model = getattr(keras.optimizers, name)(Schedule(), **given), ours(rate), {"w": start.copy()}
    variable = keras.Variable(start, dtype="float64")
    for g in grads:
        peer.apply([keras.ops.convert_to_tensor(g)], [variable])
        opt.update(model, {"w": g})
        np.testing.assert_allclose(model["w"], keras.ops.convert_to_numpy(variable), rtol=1e-12, atol=1e-13)


# --- optax -----------------------------------------------------------------------------------------------------------------

# Those that weight steps by the rate of another one by design are not here, nor those whose rate cannot be a schedule in optax.
OPTAX: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in "adabelief adadelta adagrad adam adamax adamaxw adamw adan amsgrad fromage".split()),
    *((name, {}) for name in "lamb lars lion nadam nadamw novograd radam rmsprop sign_sgd signum yogi".split()),
    *((name, {}) for name in "ademamix simplified_ademamix adopt optimistic_gradient_descent prodigy sgd".split()),
    ("lars", {"weight_decay": 0.1, "nesterov": True}),
    ("sgd", {"momentum": 0.9}),
    ("sgd", {"momentum": 0.9, "nesterov": True}),
    ("rmsprop", {"momentum": 0.9}),
    ("rmsprop", {"momentum": 0.9, "nesterov": True, "eps_in_sqrt": False, "bias_correction": True}),
    ("rmsprop", {"momentum": 0.9, "centered": True}),
]


def test_optax(library: Any, precision: Any) -> None:
    jax, optax = library("jax"), library("optax")
    own = importlib.import_module("oxigrad.optax")
    start, grads = start_and_gradients()
    differences = {}
    with precision(True):
        rates = jax.numpy.asarray(RATES)

        def schedule(count: Any) -> Any:
            return rates[count]

        for name, given in OPTAX:
            theirs = getattr(optax, name, None) or getattr(optax.contrib, name)
            params = [jax.numpy.asarray(start)] * 2
            makers = [made(schedule, **given) for made in (theirs, getattr(own, name))]
            states = [tx.init(p) for tx, p in zip(makers, params, strict=True)]
            for g in grads:
                for at, tx in enumerate(makers):
                    updates, states[at] = tx.update(jax.numpy.asarray(g), states[at], params[at])
                    params[at] = params[at] + updates
            found = float(np.max(np.abs(params[0] - params[1])))
            if not found < 1e-12:
                differences[f"{name} {given}"] = found
    assert not differences


# --- without a schedule ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["SGD", "RMSprop"])
def test_a_constant_rate_may_come_before_or_after(name: str) -> None:
    start, grads = start_and_gradients()
    after, before = (getattr(optim, name)(0.1, momentum=0.9, rate_before_momentum=first) for first in (False, True))
    these, those = {"w": start.copy()}, {"w": start.copy()}
    for g in grads:
        after.update(these, {"w": g}), before.update(those, {"w": g})
    np.testing.assert_allclose(these["w"], those["w"], rtol=1e-12)
    before.learning_rate = after.learning_rate = 0.5
    after.update(these, {"w": g}), before.update(those, {"w": g})
    assert np.max(np.abs(these["w"] - those["w"])) > 1e-2


def test_flags_may_be_scalars_of_numpy() -> None:
    """Every flag of every optimizer, and the options; as constants, in groups and as attributes."""
    for make in [type(make()) for make in OPTIMIZERS.values()]:
        for name, default in make._rule.defaults.items():
            if not isinstance(default, bool):
                continue
            for made in (make(**{name: np.bool_(not default)}), make(groups={"*": {name: np.bool_(not default)}})):
                values = [getattr(made, name), *(group[name] for group in made.groups.values())]
                assert any(value is (not default) for value in values)
    opt = optim.Adam(
        0.1, epsilon_root=np.float32(0.5), zero_gradients=np.True_, master=np.False_, accumulate=np.int8(2)
    )
    assert (opt.epsilon_root, opt.zero_gradients, opt.master, opt.accumulate) == (0.5, True, False, 2)
    for wrong in (1, 1.0, np.float64(1.0), "True", np.array([True])):
        with pytest.raises(TypeError, match="nesterov is .*: expected True or False"):
            optim.SGD(0.1, 0.9, nesterov=wrong)
