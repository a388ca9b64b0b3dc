"""Muon with AdamW for other parameters, in one call, beside their formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oxigrad import optim, schedules

SHAPES = {"embedding": (5, 3), "hidden": (4, 6), "filters": (4, 3, 2), "bias": (4,), "lm_head": (3, 5)}


def tree(seed: int) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    return {name: generator.standard_normal(shape) for name, shape in SHAPES.items()}


def orthogonalized(x: np.ndarray) -> np.ndarray:
    if x.shape[0] > x.shape[1]:
        return orthogonalized(x.T).T
    x = x / max(np.linalg.norm(x), 1e-7)
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x


def expected(steps: int, matrices: set[str], rates: Any, adamw_rates: Any, decay: float) -> dict[str, np.ndarray]:
    """The formulas of Moonlight's Muon and of AdamW."""
    model, m, v = tree(0), dict.fromkeys(SHAPES, 0.0), dict.fromkeys(SHAPES, 0.0)
    for t in range(1, steps + 1):
        for name, g in tree(t).items():
            w = model[name]
            if name in matrices:
                m[name] = 0.95 * m[name] + 0.05 * g
                flat = (0.95 * m[name] + 0.05 * g).reshape(len(w), -1)
                move = 0.2 * np.sqrt(max(flat.shape)) * orthogonalized(flat).reshape(w.shape)
                model[name] = (1 - rates(t) * decay) * w - rates(t) * move
            else:
                m[name], v[name] = 0.9 * m[name] + 0.1 * g, 0.999 * v[name] + 0.001 * g * g
                move = m[name] / (1 - 0.9**t) / (np.sqrt(v[name] / (1 - 0.999**t)) + 1e-8)
                model[name] = (1 - adamw_rates(t) * decay) * w - adamw_rates(t) * move
    return model


@pytest.mark.parametrize(
    ("options", "matrices", "rates"),
    [
        ({}, {"hidden"}, (0.1, 0.1)),
        ({"muon": {"matrices": "filters"}, "adamw": {"learning_rate": 0.01}}, {"hidden", "filters"}, (0.1, 0.01)),
        ({"excluded": "lm_*"}, {"hidden", "embedding"}, (0.1, 0.1)),
        ({"excluded": ()}, {"hidden", "embedding", "lm_head"}, (0.1, 0.1)),
    ],
    ids=["defaults", "filters", "excluded head", "excluded none"],
)
def test_each_parameter_has_the_formula_of_its_optimizer(options: Any, matrices: set[str], rates: Any) -> None:
    opt, model = optim.muon_with_adamw(0.1, 0.2, **options), tree(0)
    for t in range(1, 6):
        opt.update(model, tree(t))
    for name, value in expected(5, matrices, lambda t: rates[0], lambda t: rates[1], 0.2).items():
        np.testing.assert_allclose(model[name], value, rtol=1e-10, err_msg=name)
    assert {name for name in SHAPES if "v" not in opt.slots[name]} == matrices


def test_a_schedule_serves_both_optimizers() -> None:
    schedule = schedules.linear(0.1, 0.01, 10)
    opt, model = optim.muon_with_adamw(schedule, 0.2), tree(0)
    for t in range(1, 6):
        opt.update(model, tree(t))
    rates = lambda t: 0.1 + (0.01 - 0.1) * (t - 1) / 10  # noqa: E731
    for name, value in expected(5, {"hidden"}, rates, rates, 0.2).items():
        np.testing.assert_allclose(model[name], value, rtol=1e-10, err_msg=name)


def test_a_configuration_makes_the_same_optimizer() -> None:
    opt = optim.muon_with_adamw(0.1, excluded=["*head"], muon={"matrices": "last"}, accumulate=2)
    again = optim.from_config(opt.get_config())
    assert again.get_config() == opt.get_config() and again.accumulate == 2
    models = [tree(0), tree(0)]
    for each, model in zip((opt, again), models, strict=True):
        for t in range(1, 5):
            each.update(model, tree(t))
    for name in SHAPES:
        np.testing.assert_array_equal(*(model[name] for model in models))
    assert "v" not in again.slots["filters"] and "v" in again.slots["lm_head"]


def test_unknown_hyperparameters_are_refused() -> None:
    with pytest.raises(TypeError, match="Muon: unknown: beta1"):
        optim.muon_with_adamw(0.1, muon={"beta1": 0.9})
    with pytest.raises(ValueError, match="the pattern .*: accumulate must be set on the partition instead"):
        optim.muon_with_adamw(0.1, adamw={"accumulate": 2})
