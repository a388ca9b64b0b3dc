"""Optimizers against the programs of their authors, and against the algorithm as the paper states it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oxigrad import optim

AUTHORS = json.loads((Path(__file__).parents[1] / "golden" / "authors_trajectories.json").read_text())


def made(case: dict[str, Any]) -> Any:
    """The optimizer of a case, or the chain of its parts."""
    if "parts" in case:
        return optim.chain(*(getattr(optim, name)(**given) for name, given in case["parts"]))
    given = dict(case["hyperparameters"])
    if rates := case.get("rates"):
        given["learning_rate"] = lambda step: rates[int(step)]
    return getattr(optim, case["optimizer"])(**given)


def title(case: dict[str, Any]) -> str:
    shape = f" {np.shape(case['start'])}" if "start" in case else ""
    return str(case["parts"]) if "parts" in case else f"{case['optimizer']} {case['hyperparameters']}{shape}"


@pytest.mark.parametrize("case", AUTHORS["cases"], ids=title)
def test_as_the_authors_program(case: dict[str, Any]) -> None:
    opt, model = made(case), {"w": np.array(case.get("start", AUTHORS["start"]))}
    for t, g in enumerate(case.get("gradients", AUTHORS["gradients"])):
        opt.update(model, {"w": np.array(g)}, loss=case["losses"][t] if "losses" in case else None)
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


# --- learning rates from distances ---------------------------------------------------------------------------------------


def dowg(x: Any, grads: Any, distance: float) -> Any:
    """Algorithm 1 of arXiv:2305.16284, with its initial distance."""
    x0, r, v = x, distance, 0.0
    for g in grads:
        r = max(r, np.linalg.norm(x - x0))
        v += r**2 * np.linalg.norm(g) ** 2
        x = x - r**2 / np.sqrt(v) * g
    return x


@pytest.mark.parametrize("distance", [0.01, 0.5])
def test_dowg_is_the_papers_algorithm(distance: float) -> None:
    start, *grads = np.random.default_rng(0).standard_normal((12, 7))
    opt, model = optim.DoWG(initial_distance=distance**2, epsilon=1e-300), {"w": start.copy()}
    for g in grads:
        opt.update(model, {"w": g})
    np.testing.assert_allclose(model["w"], dowg(start, grads, distance), rtol=1e-12)


def cocob(w1: Any, grads: Any, alpha: float) -> Any:
    """Algorithm 2 of arXiv:1705.07795 (COCOB-Backprop) of one coordinate, where gradients are those, not their negatives."""
    w, largest, sum_of_sizes, reward, theta = w1, 0.0, 0.0, 0.0, 0.0
    for g in (-each for each in grads):
        largest = max(largest, abs(g))
        sum_of_sizes += abs(g)
        reward = max(reward + (w - w1) * g, 0.0)
        theta += g
        w = w1 + theta / (largest * max(sum_of_sizes + largest, alpha * largest)) * (largest + reward)
    return w


@pytest.mark.parametrize("alpha", [1.0, 100.0])
def test_cocob_is_the_papers_algorithm(alpha: float) -> None:
    start, *grads = np.random.default_rng(0).standard_normal((12, 7))
    opt, model = optim.COCOB(alpha=alpha, epsilon=1e-300), {"w": start.copy()}
    for g in grads:
        opt.update(model, {"w": g})
    expected = [cocob(w, [g[k] for g in grads], alpha) for k, w in enumerate(start)]
    np.testing.assert_allclose(model["w"], expected, rtol=1e-12)


# --- parts of chains -----------------------------------------------------------------------------------------------------


def test_a_cautious_step_has_the_sign_of_the_gradient() -> None:
    """Algorithm 1 of arXiv:2411.16085 around SGD with momentum; a mask of no element counts as one of a thousandth."""
    start, *grads = np.random.default_rng(0).standard_normal((9, 50))
    model, m, p = {"w": start.copy(), "opposite": np.ones(2)}, np.zeros(50), start.copy()
    opt = optim.chain(optim.SGD(0.1, momentum=0.9), optim.Cautious())
    for t, g in enumerate(grads):
        m = 0.9 * m + g
        agrees = m * g > 0
        p = p - 0.1 * m * agrees / max(agrees.mean(), 1e-3)
        opt.update(model, {"w": g, "opposite": np.full(2, 1.0 if t == 0 else -1e-3)})
        np.testing.assert_allclose(model["w"], p, rtol=1e-11)
        np.testing.assert_allclose(model["opposite"], 0.9)


def test_the_gradient_of_a_cautious_step_is_that_of_the_optimizer() -> None:
    """After the transforms before the optimizer: a negated gradient is that of `Maximize`."""
    found, expected = (
        optim.chain(*before, optim.Adam(0.1), optim.Cautious()).update({"w": np.ones(3)}, {"w": sign * np.ones(3)})
        for before, sign in (([optim.Maximize()], -1.0), ([], 1.0))
    )
    np.testing.assert_array_equal(found["w"], expected["w"])
    assert np.all(found["w"] < 1.0)


def test_learning_rate_dropout_after_adam_is_adam_lrd() -> None:
    start, *grads = np.random.default_rng(0).standard_normal((9, 50))
    model, expected = {"w": start.copy()}, {"w": start.copy()}
    opt = optim.chain(optim.Adam(0.1), optim.LearningRateDropout(0.3), seed=5)
    reference = optim.AdamLRD(0.1, dropout_rate=0.3, seed=5)
    for g in grads:
        before = model["w"].copy()
        opt.update(model, {"w": g})
        reference.update(expected, {"w": g})
        np.testing.assert_allclose(model["w"], expected["w"], rtol=1e-12)
        assert 0 < np.sum(model["w"] == before) < 50
