"""Gradient and parameter transforms: regularization, noise, averages, Lookahead, loss scale."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from libraries import host
from oxigrad import optim


def steps(opt: Any, count: int, asarray: Any = np.array, seed: int = 0) -> tuple[Any, list[Any]]:
    """Takes steps with random gradients from random parameters; the model, and all parameters that it had."""
    generator = np.random.default_rng(seed)
    model = {"w": asarray(generator.standard_normal(5))}
    seen = [np.array(host(model["w"]))]
    for _ in range(count):
        model = opt.update(model, {"w": asarray(generator.standard_normal(5))})
        seen.append(np.array(host(model["w"])))
    return model, seen


def test_the_moving_average(asarray: Any) -> None:
    opt = optim.chain(optim.Adam(0.1), optim.EMA(decay=0.8))
    model, seen = steps(opt, 6, asarray)
    expected = seen[0]
    for p in seen[1:]:
        expected = 0.8 * expected + 0.2 * p
    np.testing.assert_allclose(host(opt.averaged_parameters()["w"]), expected, rtol=1e-12)
    before = np.array(host(model["w"]))
    model = opt.swap_in(model)
    np.testing.assert_array_equal(host(model["w"]), host(opt.averaged_parameters()["w"]))
    for wrong in (lambda: opt.update(model, model), lambda: opt.swap_in(model)):
        with pytest.raises(ox.StateError, match="swapped in"):
            wrong()
    model = opt.swap_out(model)
    np.testing.assert_array_equal(host(model["w"]), before)
    with pytest.raises(ox.StateError, match="not swapped in"):
        opt.swap_out(model)
    opt.update(model, {"w": asarray(np.ones(5))})
    assert opt.step == 7


@pytest.mark.parametrize(("start", "every"), [(0, 1), (3, 1), (2, 3), (0, 4)])
def test_the_stochastic_average_is_the_mean(start: int, every: int) -> None:
    for count in range(1, 12):
        opt = optim.chain(optim.SGD(0.1), optim.SWA(start=start, every=every))
        _, seen = steps(opt, count)
        taken = [seen[k] for k in range(start + every, count + 1, every)]
        expected = np.mean(taken, axis=0) if taken else seen[-1]
        np.testing.assert_allclose(opt.averaged_parameters()["w"], expected, rtol=1e-12)


# --- averages of other libraries ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("compat", "expected"),
    [
        (None, [-0.1, -0.29, -0.561]),
        ("torch", [-1.0, -1.1, -1.29]),
        ("keras", [-1.0, -1.1, -1.29]),
        ("optax", [-1.0, -0.29 / 0.19, -0.561 / 0.271]),
    ],
)
def test_where_averages_begin(compat: str | None, expected: list[float], asarray: Any) -> None:
    """Of parameters 0, -1, -2, -3: by hand."""
    opt, model = optim.chain(optim.SGD(1.0), optim.EMA(0.9, compat=compat)), {"w": asarray(np.zeros(2))}
    for average in expected:
        model = opt.update(model, {"w": asarray(np.ones(2))})
        np.testing.assert_allclose(host(opt.averaged_parameters()["w"]), average, rtol=1e-12)
    again = optim.from_config(json.loads(json.dumps(opt.get_config())))
    assert again.get_config() == opt.get_config()


def test_an_average_that_begins_as_nothing() -> None:
    with pytest.raises(ValueError, match="average_from is 'end': expected 'start', 'first_step' or 'zeros'"):
        optim.chain(optim.SGD(), optim.EMA(average_from="end")).build({"w": np.zeros(1)})
    with pytest.raises(ValueError, match="EMA: compat is 'jax': expected 'torch', 'optax', 'keras'"):
        optim.EMA(compat="jax")
    plain = optim.chain(optim.SGD(0.1), optim.EMA(1.0, compat="optax"))
    _, seen = steps(plain, 4)
    np.testing.assert_allclose(plain.averaged_parameters()["w"], np.mean(seen[1:], axis=0), rtol=1e-12)


def averaged_by_torch(torch: Any, seen: list[Any], average: Any, due: list[int]) -> Any:
    """The parameters of an ``AveragedModel`` that is updated when the model has its parameters of these steps."""
    model = torch.nn.Linear(5, 1, bias=False, dtype=torch.float64)
    averaged = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=average)
    for k in due:
        with torch.no_grad():
            model.weight.copy_(torch.tensor(seen[k])[None])
        averaged.update_parameters(model)
    return averaged.module.weight.detach().numpy()[0]


@pytest.mark.parametrize(("compat", "first"), [("torch", 1), (None, 0)])
def test_the_moving_average_of_torch(compat: str | None, first: int, library: Any) -> None:
    """Ours by default is an ``AveragedModel`` that is updated before the first step, too."""
    torch = library("torch")
    opt = optim.chain(optim.Adam(0.1), optim.EMA(0.8, compat=compat))
    _, seen = steps(opt, 7)
    expected = averaged_by_torch(torch, seen, torch.optim.swa_utils.get_ema_multi_avg_fn(0.8), list(range(first, 8)))
    np.testing.assert_allclose(opt.averaged_parameters()["w"], expected, rtol=1e-12)


@pytest.mark.parametrize(("start", "every"), [(0, 1), (3, 1), (2, 2)])
def test_the_stochastic_average_of_torch(start: int, every: int, library: Any) -> None:
    torch = library("torch")
    opt = optim.chain(optim.SGD(0.1), optim.SWA(start, every, compat="torch"))
    _, seen = steps(opt, 9)
    due = list(range(start + every, 10, every))
    for average in (None, torch.optim.swa_utils.get_swa_multi_avg_fn()):
        expected = averaged_by_torch(torch, seen, average, due)  # which divides by the count in single precision
        np.testing.assert_allclose(opt.averaged_parameters()["w"], expected, rtol=1e-5, atol=1e-6)


def test_the_moving_average_of_optax(library: Any) -> None:
    jax, optax = library("jax"), library("optax")
    jax.config.update("jax_enable_x64", True)
    opt, average = optim.chain(optim.SGD(0.1), optim.EMA(0.8, compat="optax")), optax.ema(0.8)
    _, seen = steps(opt, 7)
    state = average.init(jax.numpy.asarray(seen[0]))
    for p in seen[1:]:
        expected, state = average.update(jax.numpy.asarray(p), state)
    np.testing.assert_allclose(opt.averaged_parameters()["w"], host(expected), rtol=1e-12)


def test_no_averages() -> None:
    opt = optim.SGD(0.1)
    steps(opt, 1)
    with pytest.raises(ox.StateError, match="there are no averages"):
        opt.averaged_parameters()
    with pytest.raises(ox.StateError, match="there are no averages"):
        opt.swap_in({"w": np.zeros(5)})


# --- averages computed from slots ----------------------------------------------------------------------------------------


def schedule_free(y: np.ndarray, grads: list[np.ndarray], rate: float, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """Schedule-free SGD as the paper states it (arXiv:2405.15682, algorithm 1 with its c of 1 / t), which keeps ``x``; gives y and x."""
    x, z = y, y
    for t, g in enumerate(grads, 1):
        z = z - rate * g
        x = (1 - 1 / t) * x + 1 / t * z
        y = (1 - beta) * z + beta * x
    return y, x


@pytest.mark.parametrize("options", [{}, {"accumulate": 2}], ids=str)
def test_schedule_free_averages(options: dict[str, Any], asarray: Any) -> None:
    generator = np.random.default_rng(0)
    start, *grads = generator.standard_normal((9, 5))
    opt, model = optim.ScheduleFreeSGD(0.3, beta1=0.8, **options), {"w": asarray(start.copy())}
    opt.build(model)
    np.testing.assert_allclose(host(opt.averaged_parameters(model)["w"]), start, rtol=1e-12)
    for g in grads:
        model = opt.update(model, {"w": asarray(g)})
    taken = grads if not options else [(a + b) / 2 for a, b in zip(grads[::2], grads[1::2], strict=True)]
    y, x = schedule_free(start, taken, 0.3, 0.8)
    np.testing.assert_allclose(host(model["w"]), y, rtol=1e-12)
    np.testing.assert_allclose(host(opt.averaged_parameters(model)["w"]), x, rtol=1e-12)
    before = np.array(host(model["w"]))
    for _ in range(2):
        model = opt.swap_in(model)
        np.testing.assert_allclose(host(model["w"]), x, rtol=1e-12)
        np.testing.assert_allclose(host(opt.averaged_parameters(model)["w"]), x, rtol=1e-12)
        model = opt.swap_out(model)
        np.testing.assert_array_equal(host(model["w"]), before)


def test_computed_averages_follow_hyperparameters_and_groups() -> None:
    """Of the step that was taken last, not of the next one."""
    opt = optim.ScheduleFreeSGD(0.3, beta1=lambda step: 0.5 + 0.1 * step, groups={"b": {"beta1": 0.9}})
    model = {"a": np.ones(2), "b": np.ones(2)}
    for _ in range(2):
        opt.update(model, {"a": np.ones(2), "b": np.ones(2)})
    for path, beta in (("a", 0.6), ("b", 0.9)):
        expected = (model[path] - (1 - beta) * opt.slots[path]["z"]) / beta
        np.testing.assert_allclose(opt.averaged_parameters(model)[path], expected, rtol=1e-14)


def test_a_partition_has_averages_of_both_kinds() -> None:
    kept, computed = optim.chain(optim.SGD(0.1), optim.EMA(decay=0.5)), optim.ScheduleFreeSGD(0.1)
    opt = optim.partition({"a": kept, "b": computed, "c": optim.SGD(0.1), "d": None})
    model = {name: np.full(3, 1.0) for name in "abcd"}
    opt.update(model, {name: np.full(3, 1.0) for name in "abc"})
    found = opt.averaged_parameters(model)
    assert found.keys() == {"a", "b"}
    assert found["a"] is opt.slots["a"]["average"]
    np.testing.assert_allclose(found["b"], schedule_free(np.ones(3), [np.ones(3)], 0.1, 0.9)[1], rtol=1e-14)
    with pytest.raises(ox.StateError, match="computed from the parameters: expected a model"):
        opt.averaged_parameters()


@pytest.mark.parametrize("options", [{}, {"master": True}, {"rounding": "kahan"}], ids=str)
def test_computed_averages_of_half_precision(options: dict[str, Any]) -> None:
    """The slots that hold the missing bits of the parameter count: without them the average is off by a rounding of it."""
    generator = np.random.default_rng(0)
    start, *grads = generator.standard_normal((9, 500)).astype(np.float16)
    opt, model = optim.ScheduleFreeSGD(0.1, **options), {"w": start.copy()}
    for g in grads:
        opt.update(model, {"w": g})
    _, x = schedule_free(start.astype(float), [g.astype(float) for g in grads], 0.1, 0.9)
    found = opt.averaged_parameters(model)["w"]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, x, rtol=1e-5, atol=2e-5 if options else 5e-3)
    opt.swap_in(model)
    assert model["w"].dtype == np.float16
    np.testing.assert_array_equal(model["w"], found.astype(np.float16))


def test_a_custom_rule_with_an_average() -> None:
    def half_way(xp, p, g, m, *, learning_rate=0.1, share=0.5):
        return p - learning_rate * g, m + g

    def middle(xp, p, m, *, share, learning_rate):
        return p + share * learning_rate * m

    HalfWay = optim.define(half_way, average=middle)
    model = {"w": np.zeros(5000, np.float32)}
    opt = HalfWay(share=0.25, slot_dtype="8bit")
    for _ in range(3):
        opt.update(model, {"w": np.ones(5000, np.float32)})
    np.testing.assert_allclose(opt.averaged_parameters(model)["w"], -0.3 + 0.25 * 0.3, rtol=0.01)
    chained = optim.chain(optim.ClipByValue(1.0), HalfWay())
    model = chained.update({"w": np.zeros(2)}, {"w": np.ones(2)})
    np.testing.assert_allclose(chained.averaged_parameters(model)["w"], -0.1 + 0.05, rtol=1e-14)


def test_lookahead_against_optax(library: Any) -> None:
    jax, optax = library("jax"), library("optax")
    jax.config.update("jax_enable_x64", True)
    generator = np.random.default_rng(0)
    start = generator.standard_normal(5)
    reference = optax.lookahead(optax.adam(0.1), sync_period=3, slow_step_size=0.4)
    params = optax.LookaheadParams.init_synced(jax.numpy.asarray(start))
    state = reference.init(params)
    opt, model = optim.chain(optim.Adam(0.1), optim.Lookahead(sync_period=3, slow_step_size=0.4)), {"w": start.copy()}
    for _ in range(10):
        g = generator.standard_normal(5)
        updates, state = reference.update(jax.numpy.asarray(g), state, params)
        params = optax.apply_updates(params, updates)
        opt.update(model, {"w": g})
        np.testing.assert_allclose(opt.slots["w"]["lookahead-slow"], host(params.slow), rtol=1e-10)
        np.testing.assert_allclose(model["w"], host(params.fast), rtol=1e-10)


def test_decoupled_decay_makes_adam_adamw() -> None:
    _, ours = steps(optim.chain(optim.Adam(0.1), optim.WeightDecay(weight_decay=0.3)), 5)
    _, expected = steps(optim.AdamW(0.1, weight_decay=0.3), 5)
    np.testing.assert_allclose(ours, expected, rtol=1e-12)
    with pytest.raises(ValueError, match="needs learning_rate, which no other part has"):
        optim.chain(optim.define(lambda xp, p, g: p - g, "Plain")(), optim.WeightDecay())


def test_regularization_is_a_part_of_the_gradient() -> None:
    generator = np.random.default_rng(1)
    p, g = generator.standard_normal(4), generator.standard_normal(4)
    model = optim.chain(optim.Regularize(l1=0.1, l2=0.2), optim.SGD(0.5)).update({"w": p.copy()}, {"w": g})
    np.testing.assert_allclose(model["w"], p - 0.5 * (g + 0.1 * np.sign(p) + 0.2 * p), rtol=1e-14)


def test_gradient_noise_is_normal_and_shrinks() -> None:
    opt = optim.chain(optim.GradientNoise(eta=0.04, gamma=2.0), optim.SGD(1.0), seed=7)
    model, zeros = {"w": np.zeros(200_000)}, {"w": np.zeros(200_000)}
    for step in (1, 2):
        before = model["w"].copy()
        opt.update(model, zeros)
        noise = (model["w"] - before) * step / 0.2
        np.testing.assert_allclose([noise.mean(), noise.std()], [0.0, 1.0], atol=0.01)
        np.testing.assert_allclose((np.abs(noise) < 1.96).mean(), 0.95, atol=0.003)
        np.testing.assert_allclose((noise**4).mean(), 3.0, atol=0.06)


def test_the_loss_scale_follows_torch(library: Any) -> None:
    torch = library("torch")
    ours = optim.LossScale(initial=64.0, interval=3)
    opt, model = optim.SGD(0.1, loss_scale=ours), {"w": np.array([1.0, -2.0])}
    theirs = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=3)
    other = torch.optim.SGD([theirs], 0.1)
    generator = np.random.default_rng(0)
    for k in range(20):
        factor = np.inf if k in (4, 5, 11) else generator.standard_normal()
        value = opt.minimize(lambda model, factor=factor: ox.xp.sum(model["w"] ** 2) * factor, model)
        other.zero_grad()
        loss = (theirs**2).sum() * factor
        scaler.scale(loss).backward()
        scaler.step(other)
        scaler.update()
        assert ours.value == scaler.get_scale()
        np.testing.assert_allclose(value, loss.item())
        np.testing.assert_allclose(model["w"], theirs.detach().numpy(), rtol=1e-12)
    assert (opt.step, opt.skipped) == (17, 3)


def test_the_loss_scale_round_trips() -> None:
    opt = optim.AdamW(loss_scale=optim.LossScale(16.0, interval=2))
    again = optim.from_config(json.loads(json.dumps(opt.get_config())))
    assert again.get_config() == opt.get_config()
    for finite in (True, True, True, False):
        opt.loss_scale.observe(finite=finite)
    again.loss_scale.load_state_dict(opt.loss_scale.state_dict())
    assert (again.loss_scale.value, again.loss_scale.good) == (16.0, 0)
    with pytest.raises(ValueError, match="initial is 0.0"):
        optim.LossScale(0.0)
