"""Names of arguments in PyTorch, Keras and optax: each is ours, or the error says what takes its place."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from oxigrad import optim
from oxigrad.optim.settings.attributes import hint
from oxigrad.optim.table.row import TABLE

IN_TORCH = {"SparseAdam": "Adam"}
IN_KERAS = {"Nadam": "NAdam", "Ftrl": "FTRL", "Lamb": "LAMB"}
IN_OPTAX = {alias: name for name, row in TABLE.items() for alias in row.optax} | {
    "noisy_sgd": "SGD",
    "optimistic_adam": "OptimisticAdam",
}
TRANSFORMS = {
    "adaptive_grad_clip": "AdaptiveGradientClip",
    "add_decayed_weights": "WeightDecay",
    "add_noise": "GradientNoise",
    "centralize": "Centralize",
    "clip": "ClipByValue",
    "clip_by_global_norm": "ClipByGlobalNorm",
    "ema": "EMA",
    "lookahead": "Lookahead",
}
# Theirs without a counterpart here, with the reason.
LEFT_OUT = {
    "LossScaleOptimizer": "the option loss_scale",
    "MultiOptimizer": "optim.partition",
    "scale_by_learning_rate": "a part of every optimizer",
    "scale_by_madgrad": "MADGRAD",
    "scale_by_rprop": "Rprop",
    "_deprecated_dpsgd": "deprecated",
    "schedule_free": "ScheduleFreeSGD, ScheduleFreeAdamW, and ScheduleFree after any optimizer",
    **dict.fromkeys(
        "acprop dpsgd galore momo momo_adam".split(),
        "not implemented: optim.define makes it of its rule",
    ),
}


def names(function: Any) -> list[str]:
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    found = inspect.signature(function).parameters.items()
    return [name for name, parameter in found if parameter.kind not in kinds and name != "self"]


def check(theirs: str, ours: str, given: list[str]) -> None:
    kind = getattr(optim, ours)
    known = [*kind._declared, *kind._options_of_class, "compat"]
    for name in given:
        if name in known:
            continue
        assert hint(name, known).startswith(": "), f"{theirs}: {name}: expected a counterpart in {ours}, or advice"
        with pytest.raises(TypeError, match=f"unknown: {name}: "):
            kind(**{name: 1})


def classes(module: Any, base: type) -> Iterator[tuple[str, Any]]:
    for name in dir(module):
        found = getattr(module, name)
        if inspect.isclass(found) and issubclass(found, base) and found is not base:
            yield name, found.__init__


def functions(module: Any) -> Iterator[tuple[str, Any]]:
    for name in dir(module):
        found = getattr(module, name)
        if inspect.isfunction(found) and "learning_rate" in inspect.signature(found).parameters:
            yield name, found


def walk(found: Iterator[tuple[str, Any]], ours: dict[str, str]) -> int:
    by_name = {name.lower(): name for name in optim.__all__}
    count = 0
    for name, function in found:
        if name in LEFT_OUT:
            continue
        own = ours.get(name) or by_name.get(name.lower().replace("_", ""))
        assert own, f"{name}: expected an optimizer, or a reason in LEFT_OUT"
        check(name, own, names(function))
        count += 1
    return count


def test_the_names_of_torch(library: Callable[[str], Any]) -> None:
    torch = library("torch")
    assert walk(classes(torch.optim, torch.optim.Optimizer), IN_TORCH) >= 14


def test_the_names_of_keras(keras: Any) -> None:
    assert walk(classes(keras.optimizers, keras.optimizers.Optimizer), IN_KERAS) >= 14


def test_the_names_of_optax(library: Callable[[str], Any]) -> None:
    optax = library("optax")
    assert walk(functions(optax), IN_OPTAX) + walk(functions(optax.contrib), IN_OPTAX) >= 30
    for theirs, ours in TRANSFORMS.items():
        check(theirs, ours, names(getattr(optax, theirs)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: optim.SGD(lr=0.1), "SGD: unknown: lr: use learning_rate"),
        (lambda: optim.Adam(betas=(0.9, 0.99)), "Adam: unknown: betas: use beta1 and beta2"),
        (lambda: optim.Adafactor(eps=1e-8), "use epsilon1 and epsilon2"),
        (lambda: optim.Rprop(etas=(0.5, 1.2)), "use eta_minus and eta_plus"),
        (lambda: optim.LBFGS(history_size=3), "use history"),
        (lambda: optim.Muon(ns_steps=3), "use iterations"),
        (lambda: optim.Adam(nesterov=True), "use optim.NAdam"),
        (lambda: optim.ClipByGlobalNorm(max_norm=1.0), "use max_global_norm"),
    ],
)
def test_errors_name_the_counterpart(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make()
