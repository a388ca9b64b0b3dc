"""Optimizers of Keras, and the hyperparameters that reproduce their numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oxigrad import optim

STEPS = 6


def start_and_gradients() -> tuple[np.ndarray, list[np.ndarray]]:
    start, *grads = np.random.default_rng(0).standard_normal((STEPS + 1, 4, 3))
    return start, grads


def follow(keras: Any, peer: Any, opt: Any, rtol: float = 1e-12) -> tuple[Any, Any]:
    """Takes the same steps with both; our model, and Keras' variable."""
    start, grads = start_and_gradients()
    variable, model = keras.Variable(start, dtype="float64"), {"w": start.copy()}
    for g in grads:
        peer.apply([keras.ops.convert_to_tensor(g)], [variable])
        opt.update(model, {"w": g})
        np.testing.assert_allclose(model["w"], keras.ops.convert_to_numpy(variable), rtol=rtol, atol=rtol)
    return model, variable


@pytest.mark.parametrize("limit", [0.7, 1.3, 100.0])
def test_the_norm_of_a_gradient_is_clipped_in_double_precision_over_jax(limit: float, keras: Any) -> None:
    """Over torch, Keras takes the larger of norm and limit in float32, and differs in the eighth digit."""
    opt = optim.chain(optim.ClipByNorm(limit), optim.Adam(0.1, compat="keras"))
    follow(keras, keras.optimizers.Adam(0.1, clipnorm=limit), opt)


@pytest.mark.parametrize("relative_step", [True, False])
def test_keras_adafactor_ignores_relative_step(relative_step: bool, keras: Any) -> None:
    peer = keras.optimizers.Adafactor(0.9, relative_step=relative_step)
    follow(keras, peer, optim.Adafactor(0.9, compat="keras"), rtol=1e-6)  # Keras' means are single
    start, grads = start_and_gradients()
    model, unbounded = {"w": start.copy()}, optim.Adafactor(0.9, compat="keras", relative_step=False)
    variable = keras.Variable(start, dtype="float64")
    peer = keras.optimizers.Adafactor(0.9, relative_step=relative_step)
    for g in grads[:3]:
        unbounded.update(model, {"w": g})
        peer.apply([keras.ops.convert_to_tensor(g)], [variable])
    assert np.max(np.abs(model["w"] - keras.ops.convert_to_numpy(variable))) > 1e-3


def test_schedule_free_adamw_with_a_warmup(keras: Any) -> None:
    peer = keras.optimizers.ScheduleFreeAdamW(0.1, warmup_steps=4)
    opt = optim.ScheduleFreeAdamW(lambda step: 0.1 * min(1.0, (step + 1) / 4), compat="keras")
    follow(keras, peer, opt)


def test_schedule_free_adamw_decays_the_parameter(keras: Any) -> None:
    opt = optim.ScheduleFreeAdamW(0.1, weight_decay=0.2, compat="keras")
    follow(keras, keras.optimizers.ScheduleFreeAdamW(0.1, weight_decay=0.2), opt)


@pytest.mark.parametrize("decay", [0.0, 0.9, 1.0])
def test_the_average_of_use_ema(decay: float, keras: Any) -> None:
    peer = keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=decay)
    opt = optim.chain(optim.SGD(0.1), optim.EMA(decay, compat="keras"))
    follow(keras, peer, opt)
    found = keras.ops.convert_to_numpy(peer._model_variables_moving_average[0])
    np.testing.assert_allclose(opt.averaged_parameters()["w"], found, rtol=1e-12)


def test_muon(keras: Any) -> None:
    follow(keras, keras.optimizers.Muon(0.1), optim.Muon(0.1, compat="keras"), rtol=1e-6)
