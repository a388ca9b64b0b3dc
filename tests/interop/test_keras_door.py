"""Optimizers for models of Keras, over both backends, each in a process of its own: the backend of Keras is fixed at import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("keras")
PAGE = Path(__file__).parents[2] / "docs" / "torch.md"
EXAMPLE = PAGE.read_text().partition("## Keras on PyTorch")[2].partition("```python\n")[2].partition("```")[0]

SETUP = """
import json, sys
import keras
import numpy as np
import oxigrad.keras
from oxigrad import schedules

x = np.random.default_rng(0).standard_normal((64, 4)).astype("float32")
y = x.sum(1, keepdims=True)

def fresh(optimizer):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8, activation="tanh"), keras.layers.Dense(1)])
    model.compile(optimizer, loss="mse")
    return model

def train(model, epochs):
    model.fit(x, y, epochs=epochs, batch_size=32, verbose=0, shuffle=False)
    return model

def weights(model):
    return np.concatenate([w.ravel() for w in model.get_weights()])
"""

# How far the weights after four epochs are from those of Keras' own optimizer.
NUMBERS = """
k, ours = keras.optimizers, oxigrad.keras
plain = k.AdamW(k.schedules.CosineDecay(0.02, 20), weight_decay=0.1, clipnorm=1.0)
plain.exclude_from_weight_decay(var_names=["bias"])

def without_bias(optimizer):
    optimizer.exclude_from_weight_decay(var_names=["bias"])
    return optimizer

pairs = {
    "AdamW": (k.AdamW(0.02), ours.AdamW(0.02)),
    "decay": (plain, ours.AdamW(schedules.cosine(0.02, 20), weight_decay=0.1, clipnorm=1.0, no_weight_decay="bias")),
    "excluded": tuple(without_bias(each.AdamW(0.02, weight_decay=0.3)) for each in (k, ours)),
    "excluded of SGD": tuple(without_bias(each.SGD(0.02, weight_decay=0.3)) for each in (k, ours)),
    "SGD": (k.SGD(0.02, momentum=0.9, weight_decay=0.01), ours.SGD(0.02, momentum=0.9, weight_decay=0.01)),
    "RMSprop": (k.RMSprop(0.01), ours.RMSprop(0.01)),
    "Lion": (k.Lion(0.002), ours.Lion(0.002)),
    "Muon": (
        k.Muon(k.schedules.CosineDecay(0.02, 20), weight_decay=0.1, adam_weight_decay=0.05, exclude_layers=["dense_1"]),
        ours.Muon(schedules.cosine(0.02, 20), weight_decay=0.1, excluded="dense_1", adamw={"weight_decay": 0.05}),
    ),
    "accumulate": (k.Adam(0.02, gradient_accumulation_steps=2, use_ema=True), ours.Adam(0.02, gradient_accumulation_steps=2, use_ema=True)),
}
print(json.dumps({name: float(np.abs(weights(train(fresh(a), 4)) - weights(train(fresh(b), 4))).max()) for name, (a, b) in pairs.items()}))
"""

# How far the weights, and the sums over all variables, are from a training by `oxigrad.optim` in float64.
TOGETHER = """
from oxigrad import optim

def expected(model, opt):
    params = [w.astype("float64") for w in model.get_weights()]
    for epoch in range(4):
        for at in (0, 32):
            h = np.tanh(x[at : at + 32] @ params[0] + params[1])
            e = 2 * (h @ params[2] + params[3] - y[at : at + 32]) / 32
            d = e @ params[2].T * (1 - h * h)
            opt.update(params, [x[at : at + 32].T @ d, d.sum(0), h.T @ e, e.sum(0)])
    return np.concatenate([w.ravel() for w in params])

distances = {}
for name, settings in {
    "Prodigy": {"d0": 1e-3},
    "DAdaptAdamW": {"d0": 1e-3},
    "DoG": {"initial_value": 0.1},
    "StableAdamW": {"learning_rate": 0.02},
    "AdamC": {"learning_rate": schedules.linear(0.05, 0.0, 8), "weight_decay": 0.5},
}.items():
    whole = expected(fresh(oxigrad.keras.Adam()), getattr(optim, name)(**settings))
    model = train(fresh(getattr(oxigrad.keras, name)(**settings)), 4)
    distances[name] = float(np.abs(weights(model) - whole).max())
    moved = float(np.abs(weights(model) - weights(fresh("sgd"))).max())
    assert moved > 0.01, (name, moved)
print(json.dumps(distances))
"""

# Saves a model of each optimizer after some steps, and trains it and the one that is loaded on.
SAVED = """
folder, part, same = sys.argv[1], int(sys.argv[2]), {}
for name in oxigrad.keras.__all__[part::4]:
    rate = schedules.exponential(0.01, 0.9) if name in ("Adam", "AdamC", "Muon", "Prodigy") else None
    make = lambda: getattr(oxigrad.keras, name)(rate, no_weight_decay=["bias"])
    model = train(fresh(make()), 2)
    model.save(f"{folder}/model.keras")
    again = keras.saving.load_model(f"{folder}/model.keras")
    assert type(again.optimizer) is type(model.optimizer)
    assert again.optimizer.get_config() == model.optimizer.get_config(), name
    moved = not np.array_equal(weights(model), weights(fresh(make())))
    whole, ends = weights(train(fresh(make()), 4)), [weights(train(each, 2)) for each in (model, again)]
    is_same = np.allclose if name == "SOAP" else np.array_equal  # LAPACK's bits depend on where a matrix lies
    same[name] = [moved, *(bool(is_same(whole, end)) for end in ends)]
print(json.dumps(same))
"""

REFUSED = """
errors = []
for call in (
    lambda: oxigrad.keras.Adam(beta_1=0.8),
    lambda: oxigrad.keras.MoMo,
    lambda: oxigrad.keras.Muon(beta1=0.8),
    lambda: oxigrad.keras.Muon(adamw={"learning_rate": 0.1}),
    lambda: oxigrad.keras.Muon(adamw={"momentum": 0.1}),
):
    try:
        call()
    except (TypeError, AttributeError) as error:
        errors.append(str(error))
print(json.dumps(errors))
"""


def run(backend: str, program: str, *arguments: str) -> Any:
    # Keras calls NumPy without the argument copy.
    pytest.importorskip(backend)
    command = [sys.executable, "-W", "error", "-W", "ignore:__array__ implementation:DeprecationWarning", "-c", program]
    environment = {**os.environ, "KERAS_BACKEND": backend}
    ran = subprocess.run([*command, *arguments], env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_the_example_trains(backend: str) -> None:
    history = run(backend, EXAMPLE + "\nimport json\nprint(json.dumps(history.history))")
    assert history["loss"][-1] < 0.5 * history["loss"][0] and history["mae"][-1] < history["mae"][0]


@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_numbers_are_those_of_keras(backend: str) -> None:
    distances = run(backend, SETUP + NUMBERS)
    assert len(distances) == 9
    assert {name: distance for name, distance in distances.items() if not distance < 2e-5} == {}


@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_variables_are_stepped_together(backend: str) -> None:
    distances = run(backend, SETUP + TOGETHER)
    assert {name: distance for name, distance in distances.items() if not distance < 1e-4} == {}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))  # of the optimizers: with JAX, each is compiled five times
@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_training_continues_from_a_model_that_was_saved(backend: str, part: int, tmp_path: Path) -> None:
    """To the bits of a training without a pause, also from a file."""
    same = run(backend, SETUP + SAVED, str(tmp_path), str(part))
    assert len(same) > 8
    assert {name: each for name, each in same.items() if not all(each)} == {}


def test_unknown_arguments_and_names_are_refused() -> None:
    argument, name, of_muon, rate, of_adamw = run("jax", SETUP + REFUSED)
    assert argument.startswith(
        "Adam: unknown: beta_1: use beta1; its arguments are learning_rate, beta1, beta2, epsilon"
    )
    assert name.startswith("module 'oxigrad.keras' has no attribute 'MoMo'")
    assert of_muon.startswith("Muon: unknown: beta1; its arguments are learning_rate, momentum, weight_decay")
    assert rate == "Muon: found learning_rate in adamw: expected it as the learning rate of both optimizers"
    assert of_adamw.startswith("AdamW: unknown: momentum")


CHANGED = """
def loss(optimizer, change=None):
    model = fresh(optimizer)
    if change:
        setattr(model.optimizer, *change)
    return model.fit(x, y, epochs=3, batch_size=32, verbose=0, shuffle=False).history["loss"][-1]

ours = oxigrad.keras
changes = {
    "SGD": [{"momentum": 0.1}, ("momentum", 0.95), {"momentum": 0.95}],
    "Adam": [{}, ("beta1", 0.2), {"beta1": 0.2}],
    "AdamW": [{"weight_decay": 0.0}, ("weight_decay", 3.0), {"weight_decay": 3.0}],
    "Lion": [{}, ("beta2", 0.2), {"beta2": 0.2}],
    "Muon": [{}, ("momentum", 0.2), {"momentum": 0.2}],
    "RMSprop": [{}, ("clipnorm", 1e-3), {"clipnorm": 1e-3}],
}
same = {}
for name, (before, change, after) in changes.items():
    make = getattr(ours, name)
    changed, made = loss(make(0.01, **before), change), loss(make(0.01, **after))
    optimizer = make(0.01, **before)
    setattr(optimizer, *change)
    copy = make.from_config(optimizer.get_config())
    same[name] = changed == made != loss(make(0.01, **before)) and getattr(copy, change[0]) == change[1]

model = train(fresh(ours.SGD(0.01, momentum=0.1)), 1)
model.optimizer.momentum = 0.9
model.compile(model.optimizer, loss="mse")
other = train(fresh(ours.SGD(0.01, momentum=0.1)), 1)
same["compiled again"] = not np.array_equal(weights(train(model, 1)), weights(train(other, 1)))

errors = []
adam, sgd = ours.Adam(0.01), train(fresh(ours.SGD(0.01)), 1).optimizer
for optimizer, name, value in (
    (adam, "beta_1", 0.3), (adam, "beta1", 2.0), (adam, "learning_rat", 0.1), (sgd, "momentum", 0.9),
    (ours.Muon(0.1), "excluded", ()), (adam, "no_weight_decay", 3),
):
    try:
        setattr(optimizer, name, value)
    except Exception as error:
        errors.append(f"{type(error).__name__}: {error}")
same["unchanged"] = (adam.beta1, sgd.momentum) == (0.9, 0.0) and not hasattr(adam, "beta_1")
print(json.dumps([same, errors]))
"""


@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_hyperparameters_are_attributes(backend: str) -> None:
    same, errors = run(backend, SETUP + CHANGED)
    assert len(same) == 8 and all(same.values()), same
    assert errors == [
        "AttributeError: Adam has no attribute beta_1: use beta1",
        "ValueError: beta1 is 2.0: expected a number in [0, 1)",
        "AttributeError: Adam has no attribute learning_rat (did you mean learning_rate?)",
        "AttributeError: SGD: momentum=0.9 has another state than the one that is built: make a new optimizer",
        "AttributeError: Muon: excluded is fixed at construction: make a new optimizer",
        "TypeError: no_weight_decay is 3: expected regular expressions",
    ]


OTHER_SHAPES = """
def state(optimizer, shape):
    variable = keras.Variable(np.ones(shape, "float32"))
    optimizer.build([variable])
    optimizer.apply([np.ones(shape, "float32")], [variable])
    store = {}
    optimizer.save_own_variables(store)
    return store

errors = {}
for name in ("Shampoo", "SOAP", "AdamW", "Muon", "Adafactor"):
    make = getattr(oxigrad.keras, name)
    optimizer = make(0.1)
    before, errors[name] = state(optimizer, (2, 4)), None
    try:
        optimizer.load_own_variables(state(make(0.1), (4, 2)))
    except Exception as error:
        errors[name] = f"{type(error).__name__}: {error}"
    after = {}
    optimizer.save_own_variables(after)
    assert all(np.array_equal(before[key], after[key]) for key in before), name
    optimizer.load_own_variables(before)
print(json.dumps(errors))
"""


def test_a_state_of_another_shape_is_refused() -> None:
    errors = run("jax", SETUP + OTHER_SHAPES)
    assert len(errors) == 5
    for error in errors.values():
        assert error is not None and error.startswith("StateError: ") and 'slots."0".' in error, error
    assert errors["AdamW"].endswith('(slots."0".m): the state has shape (4, 2): expected (2, 4)')
