"""KFAC against dense linear algebra, a transcription of the formulas, and itself on several workers."""

import copy
import itertools
import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kfac_networks import (
    DEADLINE,
    MODES,
    WORKERS,
    Model,
    X,
    Y,
    assert_close,
    assert_same_bits,
    data,
    kfac,
    kron_solve,
    network,
    network_loss,
    own_batches,
    parameters,
)

import oxigrad as ox
from oxigrad import distributed, optim, xp
from oxigrad.distributed import KFAC

# --- against dense linear algebra --------------------------------------------------------------------------------------


def test_the_exact_fisher_block_of_a_linear_layer_with_gaussian_noise() -> None:
    # Of y ~ N(x W + b, I) it is E[a a^T] (x) I, with a = (x, 1). Residuals sqrt(m) e_k, one k for each copy of the data,
    # have the second moments of the noise.
    model = {"w": data(0, 5, 3), "b": data(1, 3)}
    residuals = np.repeat(math.sqrt(3) * np.eye(3), len(X), axis=0)
    copies = np.tile(X, (3, 1))

    def sampled(m: Model) -> Any:
        y = copies @ m["w"] + m["b"]
        return xp.sum((y - ox.stop_gradient(y) - residuals) ** 2) / (2 * len(copies))

    def loss(m: Model) -> Any:
        return xp.sum((X @ m["w"] + m["b"] - Y) ** 2) / (2 * len(X))

    gradient = ox.grad(loss)(model)
    extended = np.c_[X, np.ones(len(X))]
    fisher = np.kron(extended.T @ extended / len(X), np.eye(3))
    joined = np.concatenate([gradient["w"], gradient["b"][None]])
    step = np.linalg.solve(fisher + 0.01 * np.eye(len(fisher)), joined.reshape(-1)).reshape(joined.shape)
    expected = {"w": model["w"] - 0.1 * step[:-1], "b": model["b"] - 0.1 * step[-1]}
    opt = kfac(damping=0.01, kl_clip=None)
    before = float(loss(model))
    assert float(opt.minimize(loss, model, sampled=sampled)) == before
    a, g = opt.factors("w")
    np.testing.assert_allclose(a, extended.T @ extended / len(X), atol=1e-12)
    np.testing.assert_allclose(g, np.eye(3), atol=1e-12)
    assert_close(model, expected)


def transcription(
    model: Model, steps: int, *, damping: float, decay: float, kl_clip: float | None, rate: float, split: bool = False
) -> Model:
    """K-FAC of `network` in NumPy, by the formulas of the papers, with dense Fisher blocks."""
    model = copy.deepcopy(model)
    averages: dict[str, np.ndarray] = {}
    n = len(X)
    for step in range(1, steps + 1):
        w1, b1, w2, scale = model["l1"]["w"], model["l1"]["b"], model["l2"]["w"], model["scale"]
        hidden = np.tanh(X @ w1 + b1)
        residual = (hidden @ w2) * scale - Y
        g2 = residual * scale
        g1 = (g2 @ w2.T) * (1 - hidden**2)
        ones = np.c_[X, np.ones(n)]
        moments = {
            "a1": ones.T @ ones / n,
            "g1": g1.T @ g1 / n,
            "a2": hidden.T @ hidden / n,
            "g2": g2.T @ g2 / n,
        }
        keep = min(1 - 1 / step, decay)
        for name, moment in moments.items():
            averages[name] = keep * averages.get(name, 0.0) + (1 - keep) * moment
        gradients = [ones.T @ g1 / n, hidden.T @ g2 / n]
        found = []
        for k, gradient in enumerate(gradients, 1):
            a, g = averages[f"a{k}"], averages[f"g{k}"]
            if split:
                pi = math.sqrt((np.trace(a) / len(a)) / (np.trace(g) / len(g)))
                a = a + pi * math.sqrt(damping) * np.eye(len(a))
                g = g + math.sqrt(damping) / pi * np.eye(len(g))
                found.append(np.linalg.inv(a) @ gradient @ np.linalg.inv(g))
            else:
                found.append(kron_solve(a, g, damping, gradient))
        factor = 1.0
        if kl_clip is not None:
            change = sum(float(np.sum(v * u)) for v, u in zip(gradients, found, strict=True)) * rate**2
            factor = min(1.0, math.sqrt(kl_clip / abs(change)))
        scale_gradient = np.sum(residual * (hidden @ w2), axis=0) / n
        model["l1"]["w"] = w1 - rate * factor * found[0][:-1]
        model["l1"]["b"] = b1 - rate * factor * found[0][-1]
        model["l2"]["w"] = w2 - rate * factor * found[1]
        model["scale"] = scale - rate * scale_gradient
    return model


@pytest.mark.parametrize("kl_clip", [None, 1e-3])
@pytest.mark.parametrize(("method", "split"), [("eigen", False), ("eigen", True), ("inverse", True)])
def test_a_network_is_trained_as_by_the_formulas(method: str, split: bool, kl_clip: float | None) -> None:
    model = network()
    expected = transcription(model, 7, damping=0.03, decay=0.6, kl_clip=kl_clip, rate=0.1, split=split)
    opt = kfac(damping=0.03, factor_decay=0.6, kl_clip=kl_clip, method=method, split_damping=split)
    for _ in range(7):
        opt.minimize(lambda m: network_loss(m, X, Y), model)
    assert_close(model, expected)
    assert {path: (layer.inputs, layer.outputs, layer.bias) for path, layer in opt.layers.items()} == {
        "l1.w": (6, 4, "l1.b"),
        "l2.w": (4, 3, None),
    }


def test_plain_damping_of_inverses_is_added_to_each_factor() -> None:
    model = {"w": data(0, 5, 3)}
    gradient = ox.grad(lambda m: xp.sum((X @ m["w"] - Y) ** 2) / (2 * len(X)))(model)["w"]
    residual = X @ model["w"] - Y
    a, g = X.T @ X / len(X) + 0.1 * np.eye(5), residual.T @ residual / len(X) + 0.1 * np.eye(3)
    expected = {"w": model["w"] - 0.1 * np.linalg.inv(a) @ gradient @ np.linalg.inv(g)}
    kfac(damping=0.1, method="inverse", kl_clip=None).minimize(
        lambda m: xp.sum((X @ m["w"] - Y) ** 2) / (2 * len(X)), model
    )
    assert_close(model, expected)


def test_one_step_of_the_natural_gradient_solves_least_squares() -> None:
    x, w = X * np.array([1.0, 0.3, 0.1, 0.03, 0.01]), data(3, 5, 1)

    def loss(m: Model) -> Any:
        return xp.mean((x @ (m["w"] - w))[:, 0] ** 2) / 2

    def sampled(m: Model) -> Any:
        y = (x @ m["w"])[:, 0]
        return xp.mean((y - ox.stop_gradient(y) - 1.0) ** 2) / 2

    model, opt = {"w": np.zeros((5, 1))}, KFAC(optim.SGD(1.0), damping=1e-12, kl_clip=None)
    opt.minimize(loss, model, sampled=sampled)
    np.testing.assert_allclose(model["w"], w, atol=1e-5)


def test_python_floats_are_no_parameters() -> None:
    for every in (1, 2):
        opt, model = kfac(factor_update_steps=every), {"w": np.zeros((5, 1)), "scale": 2.0}
        with pytest.warns(UserWarning, match="^scale: the gradient is of Python floats"):
            opt.minimize(lambda m: xp.mean((X @ m["w"] * m["scale"] - 1.0) ** 2 + m["scale"] ** 2), model)
        assert model["scale"] == 2.0


def test_a_step_needs_statistics_of_some_batch() -> None:
    """Without them it would be the step of the optimizer alone."""
    opt, model = kfac(), network()
    before = {path: np.array(array) for path, array in ox.tree.parameters(model).items()}
    grads = ox.grad(lambda m: network_loss(m, X, Y))(model)
    with pytest.raises(ox.StateError, match=r"KFAC: update has no statistics .*opt.compute_statistics\(loss, model\)"):
        opt.update(model, grads)
    for path, array in ox.tree.parameters(model).items():
        np.testing.assert_array_equal(array, before[path])
    assert opt.step == 0
    opt.minimize(lambda m: network_loss(m, X, Y), model)
    opt.update(model, grads)
    assert opt.step == 2


# --- options, state and other libraries --------------------------------------------------------------------------------


def test_factors_and_decompositions_have_intervals() -> None:
    opt, model = kfac(factor_update_steps=3, inverse_update_steps=6), network()
    seen = []
    for _ in range(7):
        opt.minimize(lambda m: network_loss(m, X, Y), model)
        seen.append((opt.factors("l2.w")[0].tobytes(), opt.state_dict()["slots"]["l2.w"]["inputs-inverse"].tobytes()))
    factors, inverses = zip(*seen, strict=True)
    assert [a == b for a, b in itertools.pairwise(factors)] == [True, True, False, True, True, False]
    assert [a == b for a, b in itertools.pairwise(inverses)] == [True, True, True, True, True, False]


@pytest.mark.parametrize("method", ["eigen", "inverse"])
def test_a_run_resumes_to_the_bit(method: str, tmp_path: Any) -> None:
    def new() -> KFAC:
        return KFAC(optim.Adam(0.01), method=method, factor_update_steps=2, inverse_update_steps=3)

    def run(opt: KFAC, model: Model, steps: int) -> None:
        for _ in range(steps):
            opt.minimize(lambda m: network_loss(m, X, Y), model)

    opt, model = new(), network()
    run(opt, model, 4)
    opt.save(tmp_path / "state.safetensors")
    others = [
        new(),
        new(),
        ox.optim.from_config(json.loads(json.dumps(opt.get_config()))),
        copy.deepcopy(opt),
        pickle.loads(pickle.dumps(opt)),  # noqa: S301
    ]
    others[0].load(tmp_path / "state.safetensors")
    others[1].load_state_dict(opt.state_dict())
    others[2].load_state_dict(opt.state_dict())
    copies = [copy.deepcopy(model) for _ in others]
    run(opt, model, 5)
    for other, own in zip(others, copies, strict=True):
        run(other, own, 5)
        for path, array in parameters(own).items():
            np.testing.assert_array_equal(array, parameters(model)[path])


@pytest.mark.parametrize("method", ["eigen", "inverse"])
@pytest.mark.parametrize("mode", MODES)
def test_the_state_of_any_worker_continues_on_all_to_the_bit(mode: str, method: str, tmp_path: Path) -> None:
    def new() -> KFAC:
        damping = ox.schedules.linear(0.1, 0.01, 9)
        intervals = {"factor_update_steps": 2, "inverse_update_steps": 3}
        return KFAC(optim.Adam(0.01), damping, method=method, **intervals, **MODES[mode])

    def first(comm: Any) -> tuple[Model, Model]:
        opt = new()
        model = own_batches(opt, network(), comm.rank, range(5))
        opt.save(tmp_path / str(comm.rank))
        return copy.deepcopy(model), own_batches(opt, model, comm.rank, range(5, 9))

    def resumed(rank: int, file: int) -> Model:
        opt = new()
        opt.load(tmp_path / str(file))
        return own_batches(opt, copy.deepcopy(saved), rank, range(5, 9))

    (saved, expected), *_ = distributed.run(first, workers=WORKERS, timeout=DEADLINE)
    alone = resumed(0, 0)
    for file in range(WORKERS):
        assert_same_bits(distributed.run(lambda comm, f=file: resumed(comm.rank, f), workers=WORKERS), expected)
        assert_same_bits([resumed(0, file)], alone)
    mixed = distributed.run(lambda comm: resumed(comm.rank, (comm.rank + 1) % WORKERS), workers=WORKERS)
    assert_same_bits(mixed, expected)


def test_a_state_without_inverses_or_of_other_shapes() -> None:
    opt, model = kfac(inverse_update_steps=100), network()
    opt.minimize(lambda m: network_loss(m, X, Y), model)
    state = opt.state_dict()
    for own in state["slots"].values():
        for name in ("inputs-inverse", "outputs-inverse"):
            own.pop(name, None)
    other, expected = kfac(inverse_update_steps=100), copy.deepcopy(model)
    other.load_state_dict(state)
    opt.inverse_update_steps = 1
    opt.minimize(lambda m: network_loss(m, X, Y), model)
    other.minimize(lambda m: network_loss(m, X, Y), expected)
    assert_close(model, expected, 0.0)
    state["slots"]["l1.w"]["inputs-factor"] = np.ones((2, 2))
    with pytest.raises(ox.StateError, match=r"l1.w: inputs-factor: found shape \(2, 2\), expected shape \(6, 6\)"):
        kfac().load_state_dict(state)
    del state["remembered"]["KFAC"]["count"]
    with pytest.raises(ox.StateError, match="expected count, ignored and layers"):
        kfac().load_state_dict(state)


def test_moments_that_are_not_finite_leave_the_factors() -> None:
    opt, model = KFAC(optim.SGD(0.1, nonfinite="skip")), network()
    opt.minimize(lambda m: network_loss(m, X, Y), model)
    before, factors = copy.deepcopy(model), opt.factors("l1.w")
    with np.errstate(invalid="ignore"):  # of NumPy's products
        opt.minimize(lambda m: network_loss(m, X * np.inf, Y), model)
    assert opt.ignored == 1 and opt.skipped == 1
    assert_close(model, before, 0.0)
    for one, other in zip(opt.factors("l1.w"), factors, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_loss_scale_changes_nothing() -> None:
    def run(opt: KFAC) -> Model:
        model = network()
        for _ in range(3):
            opt.minimize(lambda m: network_loss(m, X, Y), model)
        return model

    scaled = KFAC(optim.SGD(0.1, loss_scale=ox.optim.LossScale(initial=1024.0)), kl_clip=1e-4)
    assert_close(run(scaled), run(kfac(kl_clip=1e-4)), 1e-12)


def test_schedules_of_damping_and_learning_rate() -> None:
    damping = ox.schedules.linear(0.1, 0.01, 4)
    opt = KFAC(optim.SGD(ox.schedules.linear(0.1, 0.05, 4)), damping)
    model, expected = network(), network()
    other = KFAC(optim.SGD(0.1), 0.1)
    for step in range(3):
        other.damping, other.learning_rate = damping(step), ox.schedules.linear(0.1, 0.05, 4)(step)
        opt.minimize(lambda m: network_loss(m, X, Y), model)
        other.minimize(lambda m: network_loss(m, X, Y), expected)
    assert_close(model, expected, 1e-14)
    assert repr(ox.optim.from_config(opt.get_config())) == repr(opt)


def test_statistics_of_a_loop_of_ones_own() -> None:
    model, expected, opt, other = network(), network(), kfac(), kfac()
    for _ in range(3):
        _, grads, found = opt.compute_statistics(lambda m: network_loss(m, X, Y), model)
        opt.update(model, grads, found)
        other.minimize(lambda m: network_loss(m, X, Y), expected)
    assert_close(model, expected, 0.0)
    opt.update(model, ox.grad(lambda m: network_loss(m, X, Y))(model))  # with the factors that there are
    assert opt.step == 4


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"damping": 0.0}, ValueError, r"damping"),
        ({"factor_decay": 1.0}, ValueError, r"factor_decay"),
        ({"kl_clip": -1.0}, ValueError, r"kl_clip"),
        ({"memory": "none"}, ValueError, r"memory"),
        ({"gradient_workers": 0.0}, ValueError, r"gradient_workers"),
        ({"inverse_update_steps": 1.5}, (TypeError, ValueError), r"inverse_update_steps"),
        ({"method": "svd"}, ValueError, r"method"),
    ],
)
def test_wrong_options(options: dict[str, Any], error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        kfac(**options)


def test_an_optimizer_without_one_learning_rate_needs_another_clip() -> None:
    chain = optim.chain(optim.SGD(0.1), optim.SGD(0.2))
    with pytest.raises(TypeError, match="kl_learning_rate"):
        KFAC(chain)
    KFAC(chain, kl_clip=None)
    KFAC(chain, kl_learning_rate=0.1)


@pytest.mark.parametrize("name", ["torch", "jax.numpy"])
def test_models_of_other_libraries(name: str) -> None:
    library = pytest.importorskip(name)
    dtype = np.float32

    def converted(array: np.ndarray) -> Any:
        return library.asarray(array.astype(dtype))

    model, expected = ox.tree.map(converted, network()), ox.tree.map(lambda a: a.astype(dtype), network())
    opt, other = kfac(), kfac()
    x, y = converted(X), converted(Y)
    for _ in range(3):
        opt.minimize(lambda m: network_loss(m, x, y), model)
        other.minimize(lambda m: network_loss(m, X.astype(dtype), Y.astype(dtype)), expected)
    assert type(model["l1"]["w"]) is type(x)
    assert_close(model, expected, 2e-4)
