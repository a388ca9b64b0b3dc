"""Parameters with master weights that are written outside of a step: `rebuild` takes what was written for the masters."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from oxigrad import optim


def arrays(library: str) -> Any:
    pytest.importorskip(library)
    return importlib.import_module(library)


@pytest.mark.parametrize("rounding", ["nearest", "stochastic"])
@pytest.mark.parametrize("library", ["numpy", "torch", "jax.numpy"])
def test_rebuild_reads_master_weights_anew_where_parameters_were_written(library: str, rounding: Any) -> None:
    module = arrays(library)
    opt = optim.SGD(1e-4, master=True, rounding=rounding)
    grads = {"w": module.ones(6, dtype=module.float16)}
    model = {"w": module.ones(6, dtype=module.float16)}
    for _ in range(3):
        model = opt.update(model, grads)
    before = np.asarray(opt.slots["w"]["master-weights"])
    assert not np.array_equal(before, np.asarray(model["w"], np.float32))
    opt.rebuild(model)
    np.testing.assert_array_equal(np.asarray(opt.slots["w"]["master-weights"]), before)
    values = np.array(np.asarray(model["w"]))
    values[2:4] = 5.0
    model["w"] = module.asarray(values)
    assert not opt.rebuild(model).reset
    expected = np.where(np.arange(6) // 2 == 1, np.float32(5.0), before)
    np.testing.assert_array_equal(np.asarray(opt.slots["w"]["master-weights"]), expected)
    model = opt.update(model, grads)
    np.testing.assert_allclose(np.asarray(model["w"], np.float64)[2:4], 5.0, atol=0.005)
    master = np.asarray(opt.slots["w"]["master-weights"])
    np.testing.assert_allclose(master, expected - 1e-4, rtol=0, atol=1e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0, -0.0, 65504.0])
@pytest.mark.parametrize("rounding", ["nearest", "stochastic"])
def test_every_value_can_be_written(value: float, rounding: Any) -> None:
    opt, model = optim.SGD(1e-4, master=True, rounding=rounding), {"w": np.ones(3, np.float16)}
    opt.update(model, {"w": np.ones(3, np.float16)})
    model["w"][1] = value
    opt.rebuild(model)
    assert opt.slots["w"]["master-weights"][1] == np.float32(value) or np.isnan(value)
    assert np.isnan(opt.slots["w"]["master-weights"][1]) == np.isnan(value)


def test_master_weights_on_the_host_follow_too() -> None:
    torch = pytest.importorskip("torch")
    opt = optim.chain(optim.SGD(1e-4), master=True, state_device="host")
    model = {"w": torch.ones(4, dtype=torch.float16)}
    opt.update(model, {"w": torch.ones(4, dtype=torch.float16)})
    model["w"][0] = 2.0
    opt.rebuild(model)
    assert opt.slots["w"]["master-weights"].tolist()[0] == 2.0


@pytest.mark.parametrize("rounding", ["nearest", "stochastic"])
def test_a_rounding_of_each_master_weight_is_known(rounding: Any) -> None:
    """By the rounding of a step: of numbers of all sizes, also subnormal and near the largest."""
    rng = np.random.default_rng(0)
    weights = (rng.standard_normal(4096) * 10.0 ** rng.uniform(-8, 5, 4096)).clip(-65000, 65000).astype(np.float16)
    opt, model = optim.SGD(1e-4, master=True, rounding=rounding), {"w": weights}
    for _ in range(4):
        opt.update(model, {"w": (weights * rng.uniform(-1, 1, 4096)).astype(np.float16)})
    before = opt.slots["w"]["master-weights"].copy()
    opt.rebuild(model)
    np.testing.assert_array_equal(opt.slots["w"]["master-weights"], before)
