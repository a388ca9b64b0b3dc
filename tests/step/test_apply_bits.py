"""`Optimizer.apply` and `Optimizer.update` give the same bits: parameters, slots and counts, over several steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from optimizers import OPTIMIZERS
from oxigrad import optim
from oxigrad.optim import SGD, Adam, AdamW, chain

SHAPES = {"a": (7,), "b": (3, 5), "scalar": (), "empty": (2, 0), "long": (1500,)}
STEPS = 4
Make = Callable[[], Any]
Draw = Callable[[int], dict[str, Any]]


def drawn(dtype: Any = np.float64, shapes: Any = SHAPES) -> Draw:
    """A function that draws arrays: the model for 0, gradients for the numbers of steps."""

    def draw(number: int) -> dict[str, Any]:
        generator = np.random.default_rng(number)
        return {name: np.asarray(generator.standard_normal(shape)).astype(dtype) for name, shape in shapes.items()}

    return draw


def differences(make: Make, draw: Draw, steps: int = STEPS) -> list[str]:
    """The differences between steps of `update` and of `apply`."""
    updated, applied = make(), make()
    model, params = draw(0), draw(0)
    state, found = applied.init(params), []
    for number in range(1, steps + 1):
        model = updated.update(model, draw(number))
        before = {path: {name: np.asarray(own[name]).copy() for name in own} for path, own in state["slots"].items()}
        kept, given = state["slots"], draw(number)
        params, state = applied.apply(params, given, state)
        found += [f"{number}: {path}" for path in model if not same(model[path], params[path])]
        for path, own in state["slots"].items():
            slots = updated.slots[path]
            found += [f"{number}: {path} {name}" for name in own if not same(slots[name], own[name])]
            found += [
                f"{number}: {path} {name} was changed" for name in own if not same(before[path][name], kept[path][name])
            ]
        if int(state["step"]) != updated.step:
            found.append(f"{number}: step {state['step']} and {updated.step}")
    assert applied.step == 0
    return found


def same(a: Any, b: Any) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_optimizer(dtype: str) -> None:
    found = {name: differences(make, drawn(dtype)) for name, make in OPTIMIZERS.items()}
    assert not {name: lines[:3] for name, lines in found.items() if lines}


MATRICES: dict[str, Make] = {
    "adafactor": lambda: optim.Adafactor(),
    "sm3": lambda: optim.SM3(0.1),
    "muon": lambda: optim.Muon(0.1),
    "shampoo": lambda: optim.Shampoo(0.1),
    "soap": lambda: optim.SOAP(0.1),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_optimizers_of_whole_matrices(dtype: str) -> None:
    shapes = {"a": (4, 3), "b": (3, 3)}
    found = {name: differences(make, drawn(dtype, shapes)) for name, make in MATRICES.items()}
    assert not {name: lines[:3] for name, lines in found.items() if lines}


RATE = ox.schedules.linear(0.3, 0.05, 5)
COMPOSED: dict[str, Make] = {
    "schedule": lambda: AdamW(RATE, beta1=lambda step: 0.9 - 0.01 * step),
    "groups": lambda: AdamW(0.1, groups={"b": {"learning_rate": 0.01, "beta2": 0.9}, "a": None}),
    "accumulate": lambda: AdamW(0.1, accumulate=2),
    "clip": lambda: chain(optim.ClipByGlobalNorm(0.5), AdamW(0.1)),
    "clips": lambda: chain(optim.ClipByValue(1.0), optim.ClipByNorm(2.0), optim.ClipByGlobalNorm(0.5), optim.LAMB(0.1)),
    "before": lambda: chain(
        optim.Maximize(), optim.Regularize(l1=0.1, l2=0.1), optim.GradientNoise(0.1), Adam(0.1), seed=3
    ),
    "after": lambda: chain(SGD(0.1, 0.9), optim.WeightDecay(0.1), optim.EMA(0.9), optim.SWA(), optim.Lookahead()),
    "averages": lambda: chain(optim.MADGRAD(0.1), optim.EMA(0.9, compat="optax")),
    "layers": lambda: chain(optim.AdaptiveGradientClip(), optim.Centralize(), optim.Fromage(0.1)),
    "layers, skip": lambda: chain(optim.AdaptiveGradientClip(), Adam(0.1), nonfinite="skip"),
    "layers, accumulate": lambda: chain(optim.AdaptiveGradientClip(), Adam(0.1), nonfinite="skip", accumulate=2),
    "partition": lambda: optim.partition({"a": optim.FTRL(0.1), "*": optim.LAMB(0.1)}),
    "chained partition": lambda: chain(
        optim.ClipByGlobalNorm(0.5), optim.partition({"a": optim.MADGRAD(0.1), "*": optim.ScheduleFreeSGD(0.1)})
    ),
    "skip": lambda: chain(optim.ClipByGlobalNorm(1.0), Adam(0.1), nonfinite="skip"),
    "norms": lambda: Adam(0.1, record_norms=("gradient", "update", "parameter")),
    "noise": lambda: optim.AdamLRD(0.1, dropout_rate=0.5, seed=7, accumulate=2),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_chains_and_options(dtype: str) -> None:
    found = {name: differences(make, drawn(dtype)) for name, make in COMPOSED.items()}
    assert not {name: lines[:3] for name, lines in found.items() if lines}


def test_a_step_that_a_guard_stops() -> None:
    draw = drawn()

    def with_nan(number: int) -> dict[str, Any]:
        return {**draw(number), **({"a": np.full(7, np.nan)} if number == 2 else {})}

    assert not differences(COMPOSED["skip"], with_nan)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision(dtype: str) -> None:
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    made = bfloat16 if dtype == "bfloat16" else dtype
    rows: dict[str, Make] = {
        "plain": lambda: AdamW(0.1),
        "master": lambda: AdamW(0.1, master=True),
        "kahan": lambda: SGD(0.1, 0.9, rounding="kahan"),
        "stochastic": lambda: AdamW(0.1, rounding="stochastic", seed=5),
        "slots": lambda: AdamW(0.1, slot_dtype="float16"),
        "lamb": lambda: optim.LAMB(0.1, slot_dtype="bfloat16"),
    }
    found = {name: differences(make, drawn(made)) for name, make in rows.items()}
    assert not {name: lines[:3] for name, lines in found.items() if lines}


@pytest.mark.parametrize("sparse", ["dense", "lazy", "catch_up"])
def test_sparse_gradients(sparse: str) -> None:
    model = drawn(np.float32, {"table": (6, 3), "b": (4,)})

    def draw(number: int) -> dict[str, Any]:
        values = model(number)
        if not number:
            return values
        rows = np.array([[0, 2], [2, 2], [5, 1], [0, 4]][number - 1])
        return {**values, "table": ox.SparseRows(rows, values["table"][:2], (6, 3))}

    found = {
        type(make()).__name__: differences(make, draw)
        for make in (
            lambda: SGD(0.1, 0.9, sparse=sparse),
            lambda: Adam(0.1, sparse=sparse),
            lambda: optim.Adagrad(0.1, sparse=sparse),
        )
    }
    assert not {name: lines[:3] for name, lines in found.items() if lines}


def test_parameters_that_miss_steps_and_arrays_in_any_order() -> None:
    plain = drawn(np.float32, {"a": (4, 6), "b": (5,)})

    def draw(number: int) -> dict[str, Any]:
        values = plain(number)
        if number == 2:
            return {"a": values["a"].T.copy(), "b": None}
        return {"a": values["a"].T, "b": values["b"] if number else values["b"][::-1]}

    for make in (lambda: Adam(0.1), lambda: optim.AdamLRD(0.1, dropout_rate=0.5), lambda: optim.LAMB(0.1)):
        assert not differences(make, draw)


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_rules_called_on_arrays_in_any_order(library: str) -> None:
    """A library sums in the order of the memory, which is that of the parameter in `update`, and not in `apply`."""
    plain = drawn(np.float32, {"a": (64, 70), "b": (130, 9, 3), "c": (300,)})

    def draw(number: int) -> dict[str, Any]:
        values = plain(number)
        if not number:
            values |= {"a": values["a"].T.copy().T, "b": np.moveaxis(np.moveaxis(values["b"], 0, -1).copy(), -1, 0)}
        if library == "torch":
            return {name: pytest.importorskip("torch").from_numpy(array) for name, array in values.items()}
        room = np.zeros(301 * 4, np.uint8)[1:1201].view(np.float32)  # misaligned
        room[...] = values["c"]
        return {**values, "c": room if number else room[::-1]}

    makes = {
        "layers": lambda: chain(optim.AdaptiveGradientClip(), Adam(0.1), nonfinite="skip"),
        "fromage": lambda: chain(optim.Centralize(), optim.Fromage(0.1), optim.EMA(0.9)),
        "adafactor": lambda: optim.Adafactor(),
        "sm3": lambda: optim.SM3(0.1),
    }
    found = {name: differences(make, draw) for name, make in makes.items()}
    assert not {name: lines[:3] for name, lines in found.items() if lines}


def test_tensors_of_torch() -> None:
    """Tensors in host memory too, with or without ``requires_grad``; a gradient with a graph is differentiated instead."""
    torch = pytest.importorskip("torch")

    def draw(number: int) -> dict[str, Any]:
        return {name: torch.from_numpy(array) for name, array in drawn(np.float32)(number).items()}

    def same_tensors(make: Make) -> bool:
        updated, applied, model, params = make(), make(), draw(0), draw(0)
        state = applied.init(params)
        for number in range(1, STEPS + 1):
            model = updated.update(model, draw(number))
            params, state = applied.apply(params, draw(number), state)
            if not all(torch.equal(model[name], params[name]) for name in model):
                return False
        return True

    assert not [name for name, make in OPTIMIZERS.items() if not same_tensors(make)]
    params, g = draw(0), {name: array.requires_grad_() for name, array in draw(1).items()}
    new, _ = Adam(0.1).apply(params, g, Adam(0.1).init(params))
    assert all(array.requires_grad for array in new.values())
