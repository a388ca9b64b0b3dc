"""The Keras example of docs/torch.md, in a separate process, because the backend of Keras is fixed at import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("keras")
PAGE = Path(__file__).parents[2] / "docs" / "torch.md"

MORE = """
import json
import torch

with torch.no_grad():
    weight = model.layers[0].kernel.value
    assert opt.state[weight]["step"] == 40, opt.state
    rate = keras.callbacks.ReduceLROnPlateau(monitor="loss", patience=1, min_delta=10)
model.fit(x, x.sum(1, keepdims=True), epochs=4, verbose=0, callbacks=[rate])
print(json.dumps({**history.history, "rate": opt.param_groups[0]["lr"], "steps": int(model.optimizer.iterations)}))
"""


def test_keras_over_torch() -> None:
    found = PAGE.read_text().partition("## Keras on PyTorch")[2].partition("```python\n")[2].partition("```")[0]
    made = "AdamW(model.parameters(), lr=0.02)"
    assert found.count(f"Stepped({made})") == 1
    program = found.replace(f"model.compile(Stepped({made})", f"opt = {made}\nmodel.compile(Stepped(opt)") + MORE
    # Keras calls NumPy without the argument copy.
    command = [sys.executable, "-W", "error", "-W", "ignore:__array__ implementation:DeprecationWarning", "-c", program]
    environment = {**os.environ, "KERAS_BACKEND": "torch"}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    history = json.loads(ran.stdout.splitlines()[-1])
    assert history["loss"][-1] < 0.5 * history["loss"][0] and history["mae"][-1] < history["mae"][0]
    assert history["steps"] == 72
    assert history["rate"] < 0.02
