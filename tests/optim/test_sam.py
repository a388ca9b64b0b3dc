"""SAM against optax.contrib.sam and against a loop in NumPy."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from oxigrad import optim, xp

STEPS = 25


def problem(seed: int = 0) -> tuple[dict[str, Any], Any, Any]:
    """A model, a loss, and its gradient by hand."""
    generator = np.random.default_rng(seed)
    x, y = generator.standard_normal((9, 4)), generator.standard_normal((9, 3))
    model = {"b": [generator.standard_normal(3), np.array(0.5)], "w": generator.standard_normal((4, 3))}

    def loss(model: Any, xp: Any = xp, asarray: Any = np.asarray) -> Any:
        found = xp.matmul(asarray(x), model["w"]) + model["b"][0]
        return xp.mean((found * model["b"][1] - asarray(y)) ** 2)

    def gradient(model: Any) -> Any:
        w, (b, c) = model["w"], model["b"]
        found = x @ w + b
        error = 2 * (found * c - y) / y.size
        return {"b": [error.sum(0) * c, np.sum(error * found)], "w": x.T @ error * c}

    return model, loss, gradient


def sam_loop(rho: float, eta: float | None, steps: int = STEPS) -> Any:
    """The paper's algorithm around gradient descent of rate 0.1; ASAM where ``eta`` is given."""
    model, _, gradient = problem()
    for _ in range(steps):
        g = gradient(model)
        size = ox.tree.map(lambda p: 1.0 if eta is None else np.abs(p) + eta, model)
        norm = np.sqrt(sum(np.sum((t * x) ** 2) for t, x in zip(ox.tree.leaves(size), ox.tree.leaves(g), strict=True)))
        there = ox.tree.map(lambda p, x, t, norm=norm: p + rho * t * t * x / norm, model, g, size)
        model = ox.tree.map(lambda p, x: p - 0.1 * x, model, gradient(there))
    return model


def close(a: Any, b: Any, rtol: float = 1e-10) -> None:
    for x, y in zip(ox.tree.leaves(a), ox.tree.leaves(b), strict=True):
        np.testing.assert_allclose(host(x), host(y), rtol=rtol, atol=1e-14)


@pytest.mark.parametrize(("rho", "eta"), [(0.05, None), (0.5, None), (0.5, 0.01), (0.2, 0.0)])
def test_as_in_the_papers(rho: float, eta: float | None, asarray: Any) -> None:
    values, loss, _ = problem()
    options = {} if eta is None else {"adaptive": True, "eta": eta}
    opt, model = optim.SAM(optim.SGD(0.1), rho, **options), ox.tree.map(asarray, values)
    for _ in range(STEPS):
        opt.minimize(lambda model: loss(model, asarray=asarray), model)
    close(model, sam_loop(rho, eta))
    assert opt.step == STEPS


@pytest.mark.parametrize(("make", "inner"), [(optim.AdamW, "adamw"), (lambda rate: optim.SGD(rate, 0.9), "sgd")])
def test_as_optax(make: Any, inner: str, library: Any) -> None:
    jax, optax = library("jax"), library("optax")
    jax.config.update("jax_enable_x64", True)
    model, loss, _ = problem()
    outer = {"adamw": lambda: optax.adamw(0.1, weight_decay=1e-2), "sgd": lambda: optax.sgd(0.1, 0.9)}[inner]()
    reference = optax.contrib.sam(outer, optax.chain(optax.contrib.normalize(), optax.sgd(0.3)), opaque_mode=True)
    params = jax.tree.map(jax.numpy.asarray, model)
    gradient = jax.grad(lambda params: loss(params, jax.numpy, jax.numpy.asarray))
    state, opt = reference.init(params), optim.SAM(make(0.1), rho=0.3)
    for _ in range(STEPS):
        opt.minimize(loss, model)
        updates, state = reference.update(gradient(params), state, params, grad_fn=lambda p, _: gradient(p))
        params = optax.apply_updates(params, updates)
        close(model, params, rtol=1e-9)


def test_as_a_pure_function_under_jit(library: Any) -> None:
    jax = library("jax")
    jax.config.update("jax_enable_x64", True)
    model, loss, _ = problem()
    opt = optim.SAM(optim.Adam(0.1), rho=0.3)
    params, gradient = jax.tree.map(jax.numpy.asarray, model), jax.grad(lambda p: loss(p, jax.numpy, jax.numpy.asarray))

    @jax.jit
    def step(params: Any, state: Any) -> Any:
        return opt.apply(params, gradient(opt.perturbed(params, gradient(params))), state)

    state = opt.init(params)
    for _ in range(5):
        params, state = step(params, state)
        opt.minimize(loss, model)
    close(model, params)


def test_the_value_is_that_of_the_model_itself() -> None:
    model, loss, _ = problem()
    expected = loss(model)
    assert optim.SAM(optim.SGD(0.1)).minimize(loss, model) == expected


@pytest.mark.parametrize("at", [1, 2])
def test_a_loss_that_raises_changes_nothing(at: int, asarray: Any) -> None:
    values, loss, _ = problem()
    model, opt, calls = ox.tree.map(asarray, values), optim.SAM(optim.Adam(0.1), rho=0.7), 0
    opt.minimize(lambda model: loss(model, asarray=asarray), model)
    before = [host(leaf).copy() for leaf in ox.tree.leaves(model)]

    def failing(model: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == at:
            raise RuntimeError("no loss")
        return loss(model, asarray=asarray)

    with pytest.raises(RuntimeError, match="no loss"):
        opt.minimize(failing, model)
    for x, y in zip(ox.tree.leaves(model), before, strict=True):
        np.testing.assert_array_equal(host(x), y)
    assert (calls, opt.step) == (at, 1)


def test_the_gradient_is_taken_at_a_copy() -> None:
    seen = []
    model = {"a": np.array([3.0, 0.0]), "frozen": np.ones(2), "b": np.zeros(1)}
    model["tied"] = model["b"]

    def loss(m: Any) -> Any:
        seen.append({key: np.array(ox.stop_gradient(value)) for key, value in m.items()})
        return xp.sum(m["a"] * m["frozen"]) + 7 * xp.sum(m["b"]) + 7 * xp.sum(m["tied"])

    optim.SAM(optim.SGD(0.0, groups={"frozen": None}), rho=2.0).minimize(loss, model)
    norm = np.sqrt(1 + 1 + 14**2)  # the frozen leaf does not count, and the tied ones are one
    np.testing.assert_allclose(seen[1]["a"], np.array([3.0, 0.0]) + 2.0 / norm)
    np.testing.assert_allclose(seen[1]["b"], 28 / norm)
    np.testing.assert_array_equal(seen[1]["b"], seen[1]["tied"])
    np.testing.assert_array_equal(seen[1]["frozen"], 1.0)
    np.testing.assert_array_equal(model["b"], 0.0)


def test_without_a_slope_it_stays() -> None:
    model = {"x": np.zeros(3)}
    optim.SAM(optim.SGD(1.0)).minimize(lambda m: xp.sum(m["x"] ** 2), model)
    np.testing.assert_array_equal(model["x"], 0.0)


def test_around_chains_and_partitions_with_options() -> None:
    model, loss, _ = problem()
    inner = optim.partition({"w": optim.chain(optim.ClipByValue(1.0), optim.Adam(0.1)), "*": optim.SGD(0.1)})
    opt = optim.SAM(inner, accumulate=2, nonfinite="skip")
    first = opt.minimize(loss, model)
    assert opt.step == 0
    for _ in range(9):
        last = opt.minimize(loss, model)
    assert opt.step == 5 and last < first
    assert set(opt.slots["w"]) == {"m", "v", "accumulated-mean"}
    again = optim.from_config(json.loads(json.dumps(opt.get_config())))
    assert repr(again) == repr(opt) and again.get_config() == opt.get_config()
    opt.minimize(lambda m: loss(m) * np.nan, model)
    assert opt.skipped == 1


def test_hyperparameters_of_the_inner_optimizer_take_effect() -> None:
    opt, model = optim.SAM(optim.SGD(1.0), rho=0.0), {"x": np.zeros(1)}
    opt.minimize(lambda m: xp.sum(m["x"]), model)
    opt.optimizer.learning_rate = 0.5
    opt.minimize(lambda m: xp.sum(m["x"]), model)
    assert model["x"] == [-1.5]
    assert "SGD" in opt.table(model)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: optim.SAM(optim.SGD(), rho=-1.0), ValueError, "rho is -1.0"),
        (lambda: optim.SAM(optim.SGD(accumulate=2)), ValueError, "accumulate must be set on SAM"),
        (lambda: optim.SAM(optim.LBFGS()), TypeError, "expected an optimizer that takes a step by a gradient"),
        (lambda: optim.SAM(3), TypeError, "expected an optimizer that takes a step by a gradient"),
    ],
)
def test_unsupported_inner_optimizers_are_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()
