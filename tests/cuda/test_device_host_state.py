"""Optimizers whose state is moved between a device and host memory: no bit of the training changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import arrays
import numpy as np
import pytest
from mock_driver import MockDriver

import optimizers
from oxigrad import optim
from oxigrad.optim import AdamW, chain

Make = Callable[..., Any]
MAKES: dict[str, Make] = {
    "adamw": lambda **named: AdamW(0.1, **named),
    "codes": lambda **named: AdamW(0.1, slot_dtype="8bit", **named),
    "clipped": lambda **named: chain(optim.ClipByGlobalNorm(0.5), AdamW(0.1), **named),
    "averaged": lambda **named: chain(AdamW(0.1), optim.EMA(0.9), **named),
}


def on_device(model: dict[str, Any]) -> dict[str, Any]:
    return {name: arrays.Array(np.array(x)) for name, x in model.items()}


@pytest.mark.parametrize("name", MAKES)
def test_a_training_goes_on_where_its_state_was_moved(name: str, mock: MockDriver) -> None:
    make = MAKES[name]
    values, grads = optimizers.problem("float32")
    model, opt = on_device(values), make()
    moved, other = on_device(values), make(state_device="host")
    for number in range(6):
        if number % 2 == 0 and number:  # to the other memory, and back
            before = other
            other = make() if number == 2 else make(state_device="host")
            other.load_state_dict(before.state_dict())
        opt.update(model, on_device(grads))
        launches = len(mock.launches())
        other.update(moved, on_device(grads))
        assert (len(mock.launches()) > launches) is (other.state_device is None)
        for key, value in model.items():
            assert arrays.host(moved[key]).tobytes() == arrays.host(value).tobytes(), key
    assert other.step == opt.step == 6
