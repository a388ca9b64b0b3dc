"""Optimizers against the programs of their authors, and against the algorithm as the paper states it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oxigrad import optim

AUTHORS = json.loads((Path(__file__).parents[1] / "golden" / "authors_trajectories.json").read_text())


@pytest.mark.parametrize("case", AUTHORS["cases"], ids=lambda case: f"{case['optimizer']} {case['hyperparameters']}")
def test_as_the_authors_program(case: dict[str, Any]) -> None:
    given = dict(case["hyperparameters"])
    if rates := case.get("rates"):
        given["learning_rate"] = lambda step: rates[int(step)]
    opt, model = getattr(optim, case["optimizer"])(**given), {"w": np.array(AUTHORS["start"])}
    for t, g in enumerate(AUTHORS["gradients"]):
        opt.update(model, {"w": np.array(g)})
        np.testing.assert_allclose(model["w"], case["parameters"][t], rtol=1e-12, atol=1e-13, err_msg=f"step {t + 1}")
        if "averages" in case:
            average = opt.averaged_parameters(model)["w"]
            np.testing.assert_allclose(average, case["averages"][t], rtol=1e-12, atol=1e-13, err_msg=f"step {t + 1}")


# --- Adan ----------------------------------------------------------------------------------------------------------------


def adan(theta: Any, grads: Any, eta: float, beta: Any, epsilon: float, decay: float) -> Any:
    """Algorithm 1 of arXiv:2208.06677, with the paper's betas, which are shares of the new.

    Averages begin at zero and are divided by their weights, and the first difference is zero, as the authors' program has it.
    """
    b1, b2, b3 = beta
    m = v = n = np.zeros_like(theta)
    last = grads[0]
    for k, g in enumerate(grads, 1):
        m = (1 - b1) * m + b1 * g
        v = (1 - b2) * v + b2 * (g - last)
        n = (1 - b3) * n + b3 * (g + (1 - b2) * (g - last)) ** 2
        m_hat, v_hat, n_hat = (x / (1 - (1 - b) ** k) for x, b in ((m, b1), (v, b2), (n, b3)))
        theta = (theta - eta / (np.sqrt(n_hat) + epsilon) * (m_hat + (1 - b2) * v_hat)) / (1 + decay * eta)
        last = g
    return theta


@pytest.mark.parametrize("decay", [0.0, 0.3])
@pytest.mark.parametrize("beta", [(0.02, 0.08, 0.01), (0.1, 0.3, 0.2), (0.5, 0.9, 0.4)])
def test_adan_is_the_papers_algorithm(beta: Any, decay: float) -> None:
    generator = np.random.default_rng(0)
    start, *grads = generator.standard_normal((12, 3, 4))
    betas = dict(zip(("beta1", "beta2", "beta3"), (1 - np.array(beta)).tolist(), strict=True))
    opt, model = optim.Adan(0.1, **betas, weight_decay=decay), {"w": start.copy()}
    for g in grads:
        opt.update(model, {"w": g})
    np.testing.assert_allclose(model["w"], adan(start, grads, 0.1, beta, 1e-8, decay), rtol=1e-12)


def test_adan_weighs_differences_by_beta2_and_optax_by_its_complement() -> None:
    """By hand: with no memory in the other averages, the second step shows the weight."""
    moves = {}
    for compat, weight in ((None, 0.8), ("optax", 0.2)):
        opt, model = optim.Adan(1.0, 0.0, 0.8, 0.0, compat=compat, epsilon_root=0.0), {"w": np.zeros(1)}
        for g in (1.0, 3.0):
            before = model["w"].copy()
            opt.update(model, {"w": np.array([g])})
        change = 0.2 * 2.0 / (1 - 0.8**2)
        moves[compat] = (before - model["w"])[0]
        np.testing.assert_allclose(moves[compat], (3 + weight * change) / (3 + weight * 2.0), rtol=1e-7)
    assert moves[None] != pytest.approx(moves["optax"], rel=1e-3)
    with pytest.raises(ValueError, match="change_weight is 'beta1': expected 'beta2' or '1 - beta2'"):
        optim.Adan(change_weight="beta1").update({"w": np.zeros(1)}, {"w": np.ones(1)})
