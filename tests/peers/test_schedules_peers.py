"""Schedules compared with those of PyTorch and optax at every step, and schedules of both as hyperparameters."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import optim, schedules

LR = 0.05
TIGHT = {"rtol": 1e-12, "atol": 1e-17}


@pytest.fixture
def torch(library) -> ModuleType:
    return library("torch")


@pytest.fixture
def optax(library) -> ModuleType:
    library("jax").config.update("jax_enable_x64", True)
    return library("optax")


class TorchRun:
    """A torch optimizer of one parameter, whose scheduler is stepped after each of its steps."""

    def __init__(self, torch: ModuleType, make: Callable[[Any, Any], Any], lr: float = LR) -> None:
        self.optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr, momentum=0.5)
        self.scheduler = make(torch.optim.lr_scheduler, self.optimizer)

    def values(self, steps: int, name: str = "lr") -> list[float]:
        seen = []
        for _ in range(steps):
            seen.append(float(self.optimizer.param_groups[0][name]))
            self.optimizer.step()
            self.scheduler.step()
        return seen


def ours(schedule: Any, steps: int) -> list[float]:
    return [schedule(step) for step in range(steps)]


def factor_of(epoch: int) -> float:
    return 1.0 - 0.5 / (epoch + 1)


# --- PyTorch -----------------------------------------------------------------------------------------------------------

# A row: torch's scheduler, ours, and how many steps are compared.
TORCH: dict[str, tuple[Callable[[Any, Any], Any], Any, int]] = {
    "LambdaLR": (
        lambda lr, opt: lr.LambdaLR(opt, factor_of),
        LR * schedules.constant(1.0) * factor_of,
        40,
    ),
    "MultiplicativeLR": (
        lambda lr, opt: lr.MultiplicativeLR(opt, lambda epoch: 0.95),
        schedules.exponential(LR, 0.95),
        100,
    ),
    "MultiplicativeLR, by a function": (
        lambda lr, opt: lr.MultiplicativeLR(opt, factor_of),
        schedules.piecewise(
            list(itertools.accumulate(range(1, 30), lambda value, epoch: value * factor_of(epoch), initial=LR)),
            range(1, 30),
        ),
        30,
    ),
    "StepLR": (lambda lr, opt: lr.StepLR(opt, 7, 0.3), schedules.step(LR, 7, 0.3), 60),
    "MultiStepLR": (
        lambda lr, opt: lr.MultiStepLR(opt, [3, 8, 8, 20], 0.3),
        schedules.multistep(LR, [3, 8, 8, 20], 0.3),
        30,
    ),
    "ConstantLR": (lambda lr, opt: lr.ConstantLR(opt, 0.3, 6), schedules.join((0.3 * LR, LR), (6,)), 20),
    "LinearLR": (lambda lr, opt: lr.LinearLR(opt, 0.25, 0.8, 9), schedules.linear(0.25 * LR, 0.8 * LR, 9), 20),
    "ExponentialLR": (lambda lr, opt: lr.ExponentialLR(opt, 0.9), schedules.exponential(LR, 0.9), 200),
    "PolynomialLR": (lambda lr, opt: lr.PolynomialLR(opt, 12, 1.7), schedules.polynomial(LR, 12, power=1.7), 20),
    "CosineAnnealingLR": (
        lambda lr, opt: lr.CosineAnnealingLR(opt, 13, 0.002),
        schedules.cosine(LR, 13, final=0.002),
        14,
    ),
    "CosineAnnealingLR, and back": (
        lambda lr, opt: lr.CosineAnnealingLR(opt, 13, 0.002),
        schedules.join((schedules.cosine(LR, 13, 0.002), schedules.cosine(0.002, 13, LR)), (13,)),
        27,
    ),
    "CosineAnnealingWarmRestarts": (
        lambda lr, opt: lr.CosineAnnealingWarmRestarts(opt, 7, 1, 0.002),
        schedules.cosine_restarts(LR, 7, final=0.002),
        50,
    ),
    "CosineAnnealingWarmRestarts, twice as long": (
        lambda lr, opt: lr.CosineAnnealingWarmRestarts(opt, 5, 2),
        schedules.cosine_restarts(LR, 5, growth=2),
        700,
    ),
    "CosineAnnealingWarmRestarts, three times": (
        lambda lr, opt: lr.CosineAnnealingWarmRestarts(opt, 1, 3, 0.002),
        schedules.cosine_restarts(LR, 1, growth=3, final=0.002),
        1200,
    ),
    "OneCycleLR": (
        lambda lr, opt: lr.OneCycleLR(opt, LR, total_steps=50),
        schedules.one_cycle(LR, 49, warmup=0.3 * 50 - 1),
        50,
    ),
    "OneCycleLR, three phases": (
        lambda lr, opt: lr.OneCycleLR(opt, LR, total_steps=50, pct_start=0.33, three_phase=True),
        schedules.one_cycle(LR, 49, warmup=0.33 * 50 - 1, back=2 * (0.33 * 50 - 1)),
        50,
    ),
    "OneCycleLR, linear": (
        lambda lr, opt: lr.OneCycleLR(
            opt, LR, total_steps=41, anneal_strategy="linear", div_factor=10, final_div_factor=100
        ),
        schedules.one_cycle(LR, 40, warmup=0.3 * 41 - 1, initial=LR / 10, final=LR / 1000, interpolation="linear"),
        41,
    ),
    "OneCycleLR, linear, three phases": (
        lambda lr, opt: lr.OneCycleLR(opt, LR, total_steps=41, anneal_strategy="linear", three_phase=True),
        schedules.one_cycle(LR, 40, warmup=0.3 * 41 - 1, back=2 * (0.3 * 41 - 1), interpolation="linear"),
        41,
    ),
    "CyclicLR": (lambda lr, opt: lr.CyclicLR(opt, 0.01, LR, 4), schedules.cyclic(0.01, LR, 4), 50),
    "CyclicLR, triangular2": (
        lambda lr, opt: lr.CyclicLR(opt, 0.01, LR, 4, 7, mode="triangular2"),
        schedules.cyclic(0.01, LR, 4, 7, "triangular2"),
        100,
    ),
    "CyclicLR, exp_range": (
        lambda lr, opt: lr.CyclicLR(opt, 0.01, LR, 5, 3, mode="exp_range", gamma=0.97),
        schedules.cyclic(0.01, LR, 5, 3, "exp_range", 0.97),
        100,
    ),
    "CyclicLR, scaled by a function": (
        lambda lr, opt: lr.CyclicLR(opt, 0.01, LR, 5, scale_fn=factor_of, scale_mode="iterations"),
        0.01 + schedules.cyclic(0.0, LR - 0.01, 5) * factor_of,
        50,
    ),
    "SequentialLR": (
        lambda lr, opt: lr.SequentialLR(
            opt, [lr.LinearLR(opt, 0.1, 1.0, 5), lr.ConstantLR(opt, 1.0), lr.ExponentialLR(opt, 0.9)], [5, 12]
        ),
        schedules.join((schedules.linear(0.1 * LR, LR, 5), LR, schedules.exponential(LR, 0.9)), (5, 12)),
        40,
    ),
    "ChainedScheduler": (
        lambda lr, opt: lr.ChainedScheduler([lr.ConstantLR(opt, 0.1, 20), lr.ExponentialLR(opt, 0.9)]),
        LR * schedules.join((0.1, 1.0), (20,)) * schedules.exponential(1.0, 0.9),
        40,
    ),
    "ChainedScheduler of three": (
        lambda lr, opt: lr.ChainedScheduler(
            [lr.LinearLR(opt, 0.1, 1.0, 10), lr.StepLR(opt, 5, 0.7), lr.MultiStepLR(opt, [3, 9], 0.5)]
        ),
        LR * schedules.linear(0.1, 1.0, 10) * schedules.step(1.0, 5, 0.7) * schedules.multistep(1.0, [3, 9], 0.5),
        30,
    ),
}


@pytest.mark.parametrize("name", TORCH)
def test_torch(name: str, torch: ModuleType) -> None:
    make, schedule, steps = TORCH[name]
    np.testing.assert_allclose(ours(schedule, steps), TorchRun(torch, make).values(steps), **TIGHT)


@pytest.mark.parametrize("name", [name for name, (_, _, steps) in TORCH.items() if steps <= 100])
def test_torch_as_an_array_of_steps(name: str, torch: ModuleType) -> None:
    make, schedule, steps = TORCH[name]
    np.testing.assert_allclose(schedule(np.arange(steps)), TorchRun(torch, make).values(steps), **TIGHT)


def test_every_scheduler_of_torch_has_a_row(torch: ModuleType) -> None:
    rows = {name.partition(",")[0].partition(" ")[0] for name in TORCH} | {"ReduceLROnPlateau", "LRScheduler"}
    assert rows >= set(torch.optim.lr_scheduler.__all__)


def test_the_page_names_them_all(torch: ModuleType, optax: ModuleType) -> None:
    page = (Path(__file__).parents[2] / "docs" / "schedules.md").read_text()
    missing = set(torch.optim.lr_scheduler.__all__) - {"LRScheduler"} | optax_names(optax)
    missing |= set(schedules.__all__) - {"Schedule", "from_config"}
    assert [name for name in sorted(missing) if f"`{name}`" not in page] == []


def test_torch_cycles_the_momentum_the_other_way(torch: ModuleType) -> None:
    run = TorchRun(torch, lambda lr, opt: lr.OneCycleLR(opt, LR, total_steps=50))
    momentum = schedules.one_cycle(0.85, 49, 0.3 * 50 - 1, initial=0.95, final=0.95)
    np.testing.assert_allclose(ours(momentum, 50), run.values(50, "momentum"), **TIGHT)
    run = TorchRun(torch, lambda lr, opt: lr.CyclicLR(opt, 0.01, LR, 4, 6, base_momentum=0.8, max_momentum=0.9))
    np.testing.assert_allclose(ours(schedules.cyclic(0.9, 0.8, 4, 6), 50), run.values(50, "momentum"), **TIGHT)


@pytest.mark.parametrize(("strategy", "interpolation"), [("cos", "cosine"), ("linear", "linear")])
def test_torch_swalr(torch: ModuleType, strategy: str, interpolation: str) -> None:
    run = TorchRun(
        torch, lambda lr, opt: torch.optim.swa_utils.SWALR(opt, 0.01, anneal_epochs=8, anneal_strategy=strategy)
    )
    schedule = schedules.piecewise((LR, 0.01), (8,), interpolation)
    np.testing.assert_allclose(ours(schedule, 20), run.values(20), **TIGHT)


def test_torch_swalr_takes_over(torch: ModuleType) -> None:
    """As in torch's example: one scheduler up to a step, SWALR from there on. Its first step already anneals."""
    swa = torch.optim.swa_utils.SWALR
    run = TorchRun(torch, lambda lr, opt: (lr.ExponentialLR(opt, 0.9), swa(opt, 0.01, anneal_epochs=8)))
    exponential, annealing = run.scheduler
    run.scheduler = exponential
    values = run.values(10)
    run.scheduler = annealing
    values += run.values(15)
    schedule = schedules.cooldown(schedules.exponential(LR, 0.9), 10, 8, 0.01, "cosine")
    np.testing.assert_allclose(ours(schedule, 25), values, **TIGHT)


def test_torch_asgd_has_the_inverse_power(torch: ModuleType) -> None:
    """torch keeps that rate in float32."""
    parameter = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimizer = torch.optim.ASGD([parameter], lr=LR, lambd=0.3, alpha=0.75)
    schedule = schedules.inverse_power(LR, gamma=0.3 * LR, power=0.75)
    for step in range(30):
        before = parameter.item()
        parameter.grad = torch.ones_like(parameter)
        optimizer.step()
        taken = before * (1 - 0.3 * schedule(step)) - parameter.item()
        assert taken == pytest.approx(schedule(step), rel=1e-6)


METRICS = np.random.default_rng(0).uniform(0.5, 1.5, 200) * 0.98 ** np.arange(200)


@pytest.mark.parametrize(
    ("theirs", "named"),
    [
        ({}, {}),
        ({"factor": 0.5, "patience": 2}, {"factor": 0.5, "patience": 2}),
        ({"factor": 0.7, "patience": 0, "cooldown": 3}, {"factor": 0.7, "patience": 0, "cooldown": 3}),
        ({"mode": "max", "patience": 4, "min_lr": 1e-3}, {"mode": "max", "patience": 4, "minimum": 1e-3}),
        (
            {"threshold": 0.05, "threshold_mode": "abs", "patience": 1},
            {"rtol": 0.0, "atol": 0.05, "patience": 1},
        ),
        (
            {"mode": "max", "threshold": 0.05, "threshold_mode": "abs", "patience": 1, "eps": 1e-4},
            {"mode": "max", "rtol": 0.0, "atol": 0.05, "patience": 1, "epsilon": 1e-4},
        ),
        ({"threshold": 0.1, "patience": 3, "cooldown": 1}, {"rtol": 0.1, "patience": 3, "cooldown": 1}),
    ],
    ids=str,
)
def test_torch_plateau(torch: ModuleType, theirs: dict[str, Any], named: dict[str, Any]) -> None:
    run = TorchRun(torch, lambda lr, opt: lr.ReduceLROnPlateau(opt, **theirs))
    schedule = schedules.plateau(LR, **named)
    for step, metric in enumerate([math.nan, *METRICS, math.nan, math.inf]):
        run.scheduler.step(metric)
        observed = schedule.observe(metric)
        assert observed == schedule(step)
        assert observed == pytest.approx(run.scheduler.get_last_lr()[0], rel=1e-12)
    assert schedule(0) < LR


def test_plateau_of_a_negative_metric_differs_from_torch(torch: ModuleType) -> None:
    """torch takes -0.99995 for an improvement on -1, by its threshold of a part of the best value."""
    run = TorchRun(torch, lambda lr, opt: lr.ReduceLROnPlateau(opt, patience=0))
    schedule = schedules.plateau(LR, patience=0)
    for metric in (-1.0, -0.99995):
        run.scheduler.step(metric)
        schedule.observe(metric)
    assert run.scheduler.get_last_lr() == [LR]
    assert schedule(0) == pytest.approx(0.1 * LR)


# --- optax -------------------------------------------------------------------------------------------------------------

OPTAX: dict[str, tuple[Callable[[Any], Any], Any, int]] = {
    "constant_schedule": (lambda optax: optax.constant_schedule(0.3), schedules.constant(0.3), 5),
    "linear_schedule": (lambda optax: optax.linear_schedule(0.1, 0.7, 9), schedules.linear(0.1, 0.7, 9), 15),
    "linear_schedule, later": (
        lambda optax: optax.linear_schedule(0.1, 0.7, 9, transition_begin=4),
        schedules.join((0.1, schedules.linear(0.1, 0.7, 9)), (4,)),
        20,
    ),
    "polynomial_schedule": (
        lambda optax: optax.polynomial_schedule(0.7, 0.1, 2.5, 9),
        schedules.polynomial(0.7, 9, 0.1, 2.5),
        15,
    ),
    "exponential_decay": (
        lambda optax: optax.exponential_decay(0.7, 9, 0.4),
        schedules.exponential(0.7, 0.4, 9),
        50,
    ),
    "exponential_decay, in steps": (
        lambda optax: optax.exponential_decay(0.7, 9, 0.4, staircase=True, end_value=0.02),
        schedules.clip(schedules.staircase(schedules.exponential(0.7, 0.4), 9), minimum=0.02),
        60,
    ),
    "exponential_decay, growing": (
        lambda optax: optax.exponential_decay(0.7, 9, 1.4, end_value=2.0),
        schedules.clip(schedules.exponential(0.7, 1.4, 9), maximum=2.0),
        60,
    ),
    "cosine_decay_schedule": (
        lambda optax: optax.cosine_decay_schedule(0.7, 9, 0.1, 1.5),
        schedules.cosine(0.7, 9, 0.07, 1.5),
        15,
    ),
    "piecewise_constant_schedule": (
        lambda optax: optax.piecewise_constant_schedule(0.7, {4: 0.5, 9: 0.1}),
        schedules.piecewise((0.7, 0.35, 0.035), (4, 9)),
        15,
    ),
    "piecewise_interpolate_schedule": (
        lambda optax: optax.piecewise_interpolate_schedule("linear", 0.7, {4: 0.5, 9: 3.0}),
        schedules.piecewise((0.7, 0.35, 1.05), (4, 9), "linear"),
        15,
    ),
    "piecewise_interpolate_schedule, cosine": (
        lambda optax: optax.piecewise_interpolate_schedule("cosine", 0.7, {4: 0.5, 9: 3.0}),
        schedules.piecewise((0.7, 0.35, 1.05), (4, 9), "cosine"),
        15,
    ),
    "linear_onecycle_schedule": (
        lambda optax: optax.linear_onecycle_schedule(53, 0.7),
        schedules.one_cycle(0.7, 53, int(0.3 * 53), back=int(0.85 * 53), interpolation="linear"),
        60,
    ),
    "cosine_onecycle_schedule": (
        lambda optax: optax.cosine_onecycle_schedule(53, 0.7),
        schedules.one_cycle(0.7, 53, int(0.3 * 53)),
        60,
    ),
    "warmup_constant_schedule": (
        lambda optax: optax.warmup_constant_schedule(0.1, 0.7, 6),
        schedules.warmup(0.7, 6, initial=0.1),
        15,
    ),
    "warmup_cosine_decay_schedule": (
        lambda optax: optax.warmup_cosine_decay_schedule(0.1, 0.7, 6, 20, 0.05, 1.5),
        schedules.warmup_cosine(0.7, 6, 20, 0.05, 0.1, 1.5),
        30,
    ),
    "warmup_exponential_decay_schedule": (
        lambda optax: optax.warmup_exponential_decay_schedule(0.1, 0.7, 6, 9, 0.4),
        schedules.warmup(schedules.exponential(0.7, 0.4, 9), 6, initial=0.1),
        50,
    ),
    "sgdr_schedule": (
        lambda optax: optax.sgdr_schedule(
            [
                {"init_value": 0.0, "peak_value": 0.7, "warmup_steps": 3, "decay_steps": 10},
                {"init_value": 0.1, "peak_value": 0.4, "warmup_steps": 2, "decay_steps": 20, "end_value": 0.05},
            ]
        ),
        schedules.join((schedules.warmup_cosine(0.7, 3, 10), schedules.warmup_cosine(0.4, 2, 20, 0.05, 0.1)), (10,)),
        35,
    ),
    "join_schedules": (
        lambda optax: optax.join_schedules([optax.linear_schedule(0.0, 1.0, 5), lambda count: 1 / (20 + count)], [5]),
        schedules.join((schedules.linear(0.0, 1.0, 5), schedules.inverse_time(0.05, 1.0, 20)), (5,)),
        20,
    ),
}


@pytest.mark.parametrize("name", OPTAX)
def test_optax(name: str, optax: ModuleType) -> None:
    make, schedule, steps = OPTAX[name]
    theirs = make(optax)
    np.testing.assert_allclose(ours(schedule, steps), [float(theirs(step)) for step in range(steps)], **TIGHT)


@pytest.mark.parametrize("name", OPTAX)
def test_optax_traced(name: str, optax: ModuleType, library) -> None:
    jax = library("jax")
    make, schedule, steps = OPTAX[name]
    theirs, traced = make(optax), jax.jit(schedule)
    for step in range(0, steps, 3):
        np.testing.assert_allclose(float(traced(step)), float(theirs(step)), **TIGHT)


def optax_names(optax: ModuleType) -> set[str]:
    return {
        name for name in dir(optax.schedules) if name.endswith(("_schedule", "_schedules", "_decay")) and name[0] != "_"
    }


def test_every_schedule_of_optax_has_a_row(optax: ModuleType) -> None:
    assert {name.partition(",")[0] for name in OPTAX} == optax_names(optax)


@pytest.mark.parametrize(
    "named", [{"patience": 3}, {"patience": 2, "cooldown": 2, "rtol": 0.05, "atol": 0.01}, {"min_scale": 0.2}], ids=str
)
def test_optax_plateau(optax: ModuleType, library, named: dict[str, Any]) -> None:
    jax = library("jax")
    named = {"patience": 5, "factor": 0.5, **named}
    transform = optax.contrib.reduce_on_plateau(**named)
    params = jax.numpy.zeros(1, jax.numpy.float64)
    state, update = transform.init(params), jax.jit(transform.update)
    named["patience"] -= 1
    schedule = schedules.plateau(1.0, minimum=named.pop("min_scale", 0.0), epsilon=0.0, **named)
    for metric in METRICS:
        _, state = update(params, state, value=metric)
        assert schedule.observe(metric) == pytest.approx(float(state.scale), rel=1e-12)
    assert schedule(0) < 1


# --- as hyperparameters ------------------------------------------------------------------------------------------------


def model() -> dict[str, np.ndarray]:
    return {"x": np.linspace(1.0, 2.0, 5)}


def trained(opt: Any, steps: int = 8, between: Callable[[], Any] = lambda: None) -> np.ndarray:
    params = model()
    for _ in range(steps):
        opt.update(params, {"x": params["x"] ** 2})
        between()
    return params["x"]


def test_an_optax_schedule_is_a_hyperparameter(optax: ModuleType, learning_rate: Any) -> None:
    make, schedule, _ = OPTAX["warmup_cosine_decay_schedule"]
    opt = optim.Adam(learning_rate=make(optax))
    numbers = [learning_rate(opt.learning_rate, step) for step in range(8)]
    assert all(type(value) is float for value in numbers)
    np.testing.assert_allclose(numbers, ours(schedule, 8), **TIGHT)
    np.testing.assert_allclose(trained(opt), trained(optim.Adam(learning_rate=schedule)), rtol=1e-12)


def test_an_optax_schedule_in_float32_becomes_the_float_that_it_is(
    optax: ModuleType, precision, learning_rate: Any
) -> None:
    theirs = optax.cosine_decay_schedule(0.1, 10)
    with precision(False):
        value = theirs(3)
        assert value.dtype == np.float32
        opt, params = optim.SGD(learning_rate=theirs), model()
        read = learning_rate(theirs, 3)
        assert type(read) is float and read == float(np.float32(value))
        new, state = opt.apply(params, params, {**opt.init(params), "step": 3})
        opt.update(params, {"x": np.ones(5)})
    assert (type(new["x"]), new["x"].dtype, state["step"]) == (np.ndarray, np.float64, 4)
    np.testing.assert_array_equal(new["x"], model()["x"] - read * model()["x"])
    assert params["x"].dtype == np.float64


@pytest.mark.parametrize("x64", [False, True])
def test_an_optax_schedule_under_jit(optax: ModuleType, library, precision, x64: bool) -> None:
    jax = library("jax")
    make, schedule, _ = OPTAX["warmup_cosine_decay_schedule"]
    with precision(x64):
        params = jax.tree.map(jax.numpy.asarray, model())
        opt = optim.Adam(learning_rate=make(optax))
        state, step = opt.init(params), jax.jit(opt.apply)
        for _ in range(8):
            params, state = step(params, {"x": params["x"] ** 2}, state)
    expected = trained(optim.Adam(learning_rate=schedule))
    np.testing.assert_allclose(np.asarray(params["x"]), expected, rtol=1e-12 if x64 else 1e-4)


@pytest.mark.parametrize("name", ["CosineAnnealingWarmRestarts", "OneCycleLR", "ChainedScheduler", "SequentialLR"])
def test_a_torch_scheduler_is_followed(name: str, torch: ModuleType) -> None:
    make, schedule, _ = TORCH[name]
    run = TorchRun(torch, make)
    opt = optim.Adam(learning_rate=run.scheduler)
    assert opt.learning_rate == schedules.follow(run.scheduler)
    run.optimizer.step()  # or torch warns that its scheduler is stepped before its optimizer
    found = trained(opt, between=run.scheduler.step)
    np.testing.assert_allclose(found, trained(optim.Adam(learning_rate=schedule)), rtol=1e-12)


def test_a_torch_scheduler_is_read_not_advanced(torch: ModuleType, learning_rate: Any) -> None:
    run = TorchRun(torch, TORCH["ExponentialLR"][0])
    opt = optim.SGD(learning_rate=run.scheduler)
    run.optimizer.step()
    np.testing.assert_array_equal(trained(opt), trained(optim.SGD(learning_rate=LR)))
    run.scheduler.step()
    found = learning_rate(run.scheduler, 0)
    assert found == learning_rate(run.scheduler, 7) == pytest.approx(0.9 * LR)
    assert 2.0 * opt.learning_rate(0) == (2.0 * opt.learning_rate)(0)


def test_a_torch_plateau_and_a_learning_rate_that_is_a_tensor_are_followed(
    torch: ModuleType, learning_rate: Any
) -> None:
    run = TorchRun(torch, lambda lr, opt: lr.ReduceLROnPlateau(opt, patience=0))
    schedule = schedules.follow(run.scheduler)
    run.scheduler.step(1.0)
    run.scheduler.step(2.0)
    assert schedule(0) == pytest.approx(0.1 * LR)
    run = TorchRun(torch, TORCH["ExponentialLR"][0], lr=torch.tensor(LR, dtype=torch.float64))
    assert learning_rate(run.scheduler, 0) == LR


def test_the_group_of_a_torch_scheduler(torch: ModuleType) -> None:
    groups = [{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": lr} for lr in (0.1, 0.2)]
    scheduler = torch.optim.lr_scheduler.ExponentialLR(torch.optim.SGD(groups), 0.9)
    assert schedules.follow(scheduler, group=1)(0) == 0.2
    with pytest.raises(ValueError, match="2 groups: expected an index"):
        optim.SGD(learning_rate=scheduler)
    with pytest.raises(ValueError, match="group is 2: expected an index below 2"):
        schedules.follow(scheduler, group=2)
    with pytest.raises(TypeError, match="scheduler is 0.1: expected an object with a method get_last_lr"):
        schedules.follow(0.1)


def test_a_followed_scheduler_cannot_be_written_down(torch: ModuleType) -> None:
    opt = optim.SGD(learning_rate=TorchRun(torch, TORCH["ExponentialLR"][0]).scheduler)
    with pytest.raises(TypeError, match=r"follow: scheduler is .*expected a number or a schedule"):
        opt.get_config()


def test_a_gradient_through_a_hyperparameter() -> None:
    """A schedule may give a variable, and `apply` is differentiable in it."""

    def loss(rate: Any) -> Any:
        opt = optim.SGD(learning_rate=lambda step: rate)
        params = {"x": np.array([1.0, 2.0])}
        new, _ = opt.apply(params, {"x": np.array([3.0, 4.0])}, opt.init(params))
        return ox.xp.sum(new["x"])

    assert ox.grad(loss)(0.1) == pytest.approx(-7.0)
    with pytest.raises(
        TypeError, match=r"learning_rate is .*: expected a number or a schedule, a function of the step"
    ):
        ox.grad(lambda rate: optim.SGD(learning_rate=rate) and rate)(0.1)
