"""The Keras example of docs/torch.md, in a separate process, because the backend of Keras is fixed at import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("keras")
PAGE = Path(__file__).parents[2] / "docs" / "torch.md"
PROGRAM = PAGE.read_text().partition("## Keras on PyTorch")[2].partition("```python\n")[2].partition("```")[0]

MORE = """
import json

opt = model.optimizer.opt
weight = model.layers[0].kernel.value
assert opt.state[weight]["step"] == 40, opt.state
rate = keras.callbacks.ReduceLROnPlateau(monitor="loss", patience=1, min_delta=10)
model.fit(x, x.sum(1, keepdims=True), epochs=4, verbose=0, callbacks=[rate])
print(json.dumps({**history.history, "rate": opt.param_groups[0]["lr"], "steps": int(model.optimizer.iterations)}))
"""

# Saves a model of each optimizer after some steps, and trains it and the one that is loaded on.
SAVED = """
import json, sys

def fresh(optimizer, arguments, rate):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8, activation="tanh"), keras.layers.Dense(1)])
    model.compile(Stepped(optimizer, arguments, learning_rate=rate), loss="mse")
    return model

def train(model, epochs):
    model.fit(x[:64], x[:64].sum(1, keepdims=True), epochs=epochs, verbose=0, shuffle=False)
    return model

folder, found = sys.argv[1], {}
schedule = keras.optimizers.schedules.ExponentialDecay(0.02, 3, 0.9)
for optimizer, arguments, rate in (
    ("AdamW", {"weight_decay": 0.1}, 0.02), ("Adam", {"amsgrad": True}, schedule), ("SGD", {"momentum": 0.9}, 0.02),
    ("SGD", {}, 0.02), ("Lion", {}, 0.002), ("Adafactor", {}, 0.02), ("RAdam", {}, 0.02),
):
    model = train(fresh(optimizer, arguments, rate), 2)
    model.save(f"{folder}/model.keras")
    again = keras.saving.load_model(f"{folder}/model.keras")
    assert type(again.optimizer) is Stepped and again.optimizer.get_config() == model.optimizer.get_config()
    assert int(again.optimizer.iterations) == int(model.optimizer.iterations) == 4
    whole = train(fresh(optimizer, arguments, rate), 4)
    other = fresh(optimizer, arguments, rate)  # with weights, but without the state of its optimizer
    other.set_weights(model.get_weights())
    for each in (model, again, other):
        train(each, 2)
    ends = [np.concatenate([w.ravel() for w in m.get_weights()]) for m in (whole, model, again, other)]
    found[f"{optimizer} {sorted(arguments)}"] = [bool(np.array_equal(ends[0], end)) for end in ends[1:]]
print(json.dumps(found))
"""


def run(program: str, *arguments: str) -> dict[str, Any]:
    # Keras calls NumPy without the argument copy.
    command = [sys.executable, "-W", "error", "-W", "ignore:__array__ implementation:DeprecationWarning", "-c", program]
    environment = {**os.environ, "KERAS_BACKEND": "torch"}
    ran = subprocess.run([*command, *arguments], env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def test_keras_over_torch() -> None:
    history = run(PROGRAM + MORE)
    assert history["loss"][-1] < 0.5 * history["loss"][0] and history["mae"][-1] < history["mae"][0]
    assert history["steps"] == 72
    assert history["rate"] < 0.02


def test_training_continues_from_a_model_of_keras_that_was_saved(tmp_path: Path) -> None:
    """To the bits of a training without a pause, also from a file; not by the weights alone, but for plain SGD, which has no state."""
    found = run(PROGRAM + SAVED, str(tmp_path))
    assert len(found) == 7
    for name, (on, loaded, without_state) in found.items():
        assert on and loaded, name
        assert without_state == (name == "SGD []"), name
