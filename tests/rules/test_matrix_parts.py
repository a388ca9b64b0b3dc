"""Parts of chains that see whole matrices, and Muon of stacks and filters, compared with formulas of the papers in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import optim


def test_rows_are_normalized_as_in_the_paper_of_normuon() -> None:
    """NorMuon, algorithm 1, of orthogonal directions and with a learning rate that changes: a formula in float64."""
    rng, rates, decay = np.random.default_rng(0), [0.1, 0.3, 0.05, 0.2], 0.7
    opt = optim.chain(optim.SGD(1.0), optim.NormalizeRows(decay, epsilon=1e-8))
    model, w, v = {"w": np.zeros((6, 4)), "b": np.zeros(3)}, np.zeros((6, 4)), np.zeros((6, 1))
    for rate in rates:
        o = np.linalg.qr(rng.normal(size=(6, 4)))[0]
        opt.learning_rate = rate
        model = opt.update(model, {"w": o, "b": np.ones(3)})
        v = decay * v + (1 - decay) * np.mean(o * o, axis=1, keepdims=True)
        hat = o / (np.sqrt(v) + 1e-8)
        w = w - rate * np.linalg.norm(o) / np.linalg.norm(hat) * hat
    np.testing.assert_allclose(model["w"], w, rtol=1e-12)
    np.testing.assert_allclose(model["b"], -sum(rates), rtol=1e-15)


def test_each_matrix_of_a_stack_is_normalized() -> None:
    g = np.random.default_rng(0).normal(size=(3, 5, 2))
    stack, each = (optim.chain(optim.SGD(0.1), optim.NormalizeRows()) for _ in range(2))
    whole = stack.update({"w": np.zeros(g.shape)}, {"w": g})["w"]
    parts = each.update([np.zeros((5, 2)) for _ in g], [*g])
    np.testing.assert_allclose(whole, np.stack(parts), rtol=1e-13)
    zero = optim.chain(optim.SGD(0.1), optim.NormalizeRows()).update([np.ones((2, 2))], [np.zeros((2, 2))])
    np.testing.assert_array_equal(zero[0], np.ones((2, 2)))


def test_hyperball_keeps_the_norm() -> None:
    rng, rate = np.random.default_rng(0), 0.1
    w, b = rng.normal(size=(4, 3)), np.ones(2)
    opt = optim.chain(optim.Adam(rate), optim.Hyperball())
    plain = optim.Adam(rate)
    model, radius, expected = {"w": w.copy(), "b": b.copy(), "zero": np.zeros((2, 2))}, np.linalg.norm(w), w.copy()
    state = plain.init({"w": w})
    for _ in range(5):
        g = rng.normal(size=(4, 3))
        stepped, state = plain.apply({"w": expected}, {"w": g}, state)
        update = expected - stepped["w"]
        expected = expected - rate * radius * update / np.linalg.norm(update)
        expected = expected * radius / np.linalg.norm(expected)
        model = opt.update(model, {"w": g, "b": b, "zero": np.ones((2, 2))})
        np.testing.assert_allclose(model["w"], expected, rtol=1e-11)
    np.testing.assert_allclose(np.linalg.norm(model["w"]), radius, rtol=1e-14)
    alone = optim.Adam(rate)
    other = {"b": b.copy(), "zero": np.zeros((2, 2))}
    for _ in range(5):
        other = alone.update(other, {"b": b, "zero": np.ones((2, 2))})
    np.testing.assert_allclose(model["b"], other["b"], rtol=1e-15)
    np.testing.assert_allclose(model["zero"], other["zero"], rtol=1e-13)


@pytest.mark.parametrize(
    ("options", "shape", "factor"),
    [
        ({}, (8, 32), 1 / 32),
        ({"base": 16.0}, (8, 32), 0.5),
        ({"base": 16.0, "outputs": "last"}, (32, 8), 0.5),
        ({"factor": "spectral"}, (8, 32), 0.5),
        ({"factor": "spectral", "outputs": "last"}, (8, 32), 2.0),
        ({}, (4, 3, 2, 2), 1 / 12),
        ({}, (7,), 1.0),
    ],
)
def test_steps_are_scaled_by_shape(options: dict[str, Any], shape: tuple[int, ...], factor: float) -> None:
    opt = optim.chain(optim.SGD(1.0), optim.ScaleByShape(**options))
    np.testing.assert_allclose(opt.update([np.zeros(shape)], [np.ones(shape)])[0], np.full(shape, -factor), rtol=1e-15)


def test_cautious_weight_decay_is_that_of_the_paper() -> None:
    """Algorithm 1 of arXiv:2510.12402: ``x - rate * (u + decay * (u * x >= 0) * x)``."""
    rng, rate, decay = np.random.default_rng(0), 0.1, 0.3
    x = rng.normal(size=12)
    opt, model = optim.chain(optim.SGD(rate), optim.WeightDecay(decay, cautious=True)), {"x": x.copy()}
    for _ in range(4):
        u = rng.normal(size=12) * (rng.random(12) > 0.2)
        x = x - rate * (u + decay * (u * x >= 0) * x)
        model = opt.update(model, {"x": u})
        np.testing.assert_allclose(model["x"], x, rtol=1e-14)


def unit_singular_values(x: np.ndarray) -> np.ndarray:
    """``U V^T`` of the decomposition of each matrix of a stack."""
    u, _, vh = np.linalg.svd(x, full_matrices=False)
    return u @ vh


# Of the cubic iteration of Newton and Schulz, which converges to the orthogonal factor.
CUBIC = {"a": 1.5, "b": -0.5, "c": 0.0, "iterations": 40, "adjust": None}


@pytest.mark.parametrize(
    ("make", "direction"),
    [
        (lambda: optim.SGD(0.1), lambda g: g),
        (lambda: optim.SGD(ox.schedules.constant(0.1), 0.9), lambda g: g),
        (lambda: optim.Adam(0.1, epsilon=0.0), np.sign),
        (lambda: optim.Lion(0.1), np.sign),
    ],
    ids=["SGD", "momentum", "Adam", "Lion"],
)
@pytest.mark.parametrize(
    ("shape", "matrices", "flat"),
    [
        ((5, 3), None, (5, 3)),
        ((3, 5), "last", (3, 5)),
        ((2, 4, 3), "last", (2, 4, 3)),
        ((2, 3, 2, 5), "last", (2, 3, 2, 5)),
        ((4, 3, 2, 2), "filters", (4, 12)),
    ],
)
def test_the_step_of_any_optimizer_is_orthogonalized(
    make: Any, direction: Any, shape: Any, matrices: Any, flat: Any
) -> None:
    """Beside the singular value decomposition in float64; a vector has the step of the optimizer."""
    rng = np.random.default_rng(3)
    g = {"w": rng.normal(size=shape), "b": rng.normal(size=4)}
    start = {name: rng.normal(size=each.shape) for name, each in g.items()}
    opt = optim.chain(make(), optim.Orthogonalize(matrices, **CUBIC))
    model = opt.update(ox.tree.map(np.copy, start), g)
    expected = start["w"] - 0.1 * unit_singular_values(direction(g["w"]).reshape(flat)).reshape(shape)
    np.testing.assert_allclose(model["w"], expected, rtol=1e-9)
    np.testing.assert_allclose(model["b"], start["b"] - 0.1 * direction(g["b"]), rtol=1e-12)


@pytest.mark.parametrize("options", [{}, {"coefficients": "dion"}, {"adjust": "match_rms_adamw", "iterations": 3}])
def test_orthogonalized_momentum_is_muon(options: dict[str, Any]) -> None:
    """Nesterov's momentum, then the part, then a weight decay, with a schedule; `test_matrix` compares with torch."""
    rng, rates = np.random.default_rng(0), ox.schedules.linear(0.1, 0.01, 5)
    start = {"tall": rng.normal(size=(6, 4)), "wide": rng.normal(size=(3, 5))}
    opt = optim.chain(optim.SGD(rates, 0.95, nesterov=True), optim.Orthogonalize(**options), optim.WeightDecay(0.2))
    muon = optim.Muon(rates, 0.95, 0.2, epsilon=1e-30, **options)
    model, expected = (ox.tree.map(np.copy, start) for _ in range(2))
    for _ in range(5):
        gs = {name: rng.normal(size=each.shape) for name, each in start.items()}
        model, expected = opt.update(model, gs), muon.update(expected, gs)
    for name, value in expected.items():
        np.testing.assert_allclose(model[name], value, rtol=1e-11)


def test_steps_of_zeros_and_of_no_elements_stay() -> None:
    model = {"w": np.ones((2, 3)), "empty": np.ones((0, 3)), "filters": np.ones((0, 2, 3))}
    opt = optim.chain(optim.SGD(0.1, 0.9), optim.Orthogonalize("filters"))
    model = opt.update(model, ox.tree.map(np.zeros_like, model))
    np.testing.assert_array_equal(model["w"], 1.0)
    assert model["empty"].shape == (0, 3) and model["filters"].shape == (0, 2, 3)


def test_the_matrices_of_more_axes_must_be_named() -> None:
    model = {"w": np.ones((2, 2)), "head": {"filters": np.ones((4, 3, 2, 2))}}
    opt = optim.chain(optim.Adam(0.1), optim.Orthogonalize())
    with pytest.raises(
        ox.ShapeError, match=r"^head\.filters: Orthogonalize: found shape \(4, 3, 2, 2\), expected .* matrices='last'"
    ):
        opt.update(model, ox.tree.map(np.copy, model))
    assert opt.step == 0
    np.testing.assert_array_equal(model["w"], 1.0)
    with pytest.raises(ValueError, match="expected it after SGD"):
        optim.chain(optim.Orthogonalize(), optim.SGD(0.1))


@pytest.mark.parametrize("shape", [(3, 4, 2), (2, 3, 2, 5)])
def test_muon_of_stacks_and_of_filters(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    start, gs = rng.normal(size=shape), rng.normal(size=(3, *shape))
    stack, each = optim.Muon(0.1, matrices="last"), optim.Muon(0.1)
    filters, flat = optim.Muon(0.1, matrices="filters"), optim.Muon(0.1)
    model, parts = [start.copy()], [*start.reshape(-1, *shape[-2:]).copy()]
    convolution, matrix = [start.copy()], [start.reshape(shape[0], -1).copy()]
    for g in gs:
        model, parts = stack.update(model, [g]), each.update(parts, [*g.reshape(-1, *shape[-2:])])
        convolution, matrix = filters.update(convolution, [g]), flat.update(matrix, [g.reshape(shape[0], -1)])
    np.testing.assert_allclose(model[0].reshape(-1, *shape[-2:]), np.stack(parts), rtol=1e-12)
    np.testing.assert_allclose(convolution[0].reshape(shape[0], -1), matrix[0], rtol=1e-12)
    for matrices in (None, "last"):
        with pytest.raises(ox.ShapeError, match="expected a matrix"):
            optim.Muon(0.1, matrices=matrices).update(
                [np.ones((3,) if matrices else shape)], [np.ones((3,) if matrices else shape)]
            )
