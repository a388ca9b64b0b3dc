"""Tables and plots of optimizers and schedules, and the learning-rate range test."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from libraries import host
from oxigrad import optim, schedules, xp
from oxigrad.optim import EMA, SGD, Adam, chain, partition, range_test


def axes() -> Any:
    pytest.importorskip("matplotlib")
    return importlib.import_module("matplotlib.figure").Figure().subplots()


def quadratic(model: Any) -> Any:
    return xp.sum(model["w"] ** 2) + xp.sum(model["b"] ** 2)


def start() -> dict[str, np.ndarray]:
    return {"w": np.linspace(-1, 1, 6).reshape(2, 3), "b": np.ones(2)}


# --- tables ------------------------------------------------------------------------------------------------------------


def test_the_table_of_slots() -> None:
    opt = partition({"b": SGD(0.1, 0.9), "w": Adam(0.1, groups={})}, slot_dtype="float16")
    assert opt.summary().splitlines()[-1].split() == ["all", "0"]
    opt.build({name: array.astype(np.float32) for name, array in start().items()})
    lines = [line.split() for line in opt.summary().splitlines()]
    assert lines[1] == ["w", "(2,", "3)", "float32", "Adam", "m,", "v", "float16", "24"]
    assert lines[2] == ["b", "(2,)", "float32", "SGD", "m", "float16", "4"]
    assert lines[3] == ["all", "28"]


def test_bytes_of_codes_and_of_parameters_that_are_not_updated() -> None:
    opt, w = Adam(0.1, slot_dtype="8bit"), {"w": np.zeros(4096, np.float32), "b": np.zeros(3, np.float32)}
    opt.update(w, {"w": np.ones(4096, np.float32), "b": np.ones(3, np.float32)})
    slots = opt.slots["w"]
    expected = sum(slot.codes.nbytes + slot.scales.nbytes for slot in slots.values())
    assert f"{expected:,}" in opt.summary() and f"{expected + 24:,}" in opt.summary().splitlines()[-1]
    opt.update(w, {"w": None, "b": np.ones(3, np.float32)})
    assert "not updated" in next(line for line in opt.summary().splitlines() if line.startswith("w"))


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_bytes_over_libraries(name: str, library: Callable[[str], Any]) -> None:
    found = library(name)
    asarray = found.asarray if name == "torch" else found.numpy.asarray
    opt = Adam(0.1)
    opt.build({"w": asarray(np.zeros((4, 5), np.float32))})
    assert opt.summary().splitlines()[-1].split() == ["all", "160"]


def test_notebooks_show_the_table() -> None:
    opt = chain(Adam(0.1), EMA(0.9))
    assert "<td>all</td>" in opt._repr_html_()
    opt.update({"<w>": np.zeros(4)}, {"<w>": np.ones(4)})
    shown = opt._repr_html_()
    assert "<td>&quot;&lt;w&gt;&quot;</td>" in shown and "<td>m, v, average</td>" in shown
    assert "96 bytes of slots, step 1" in shown and "chain(Adam(" in shown


# --- the range test ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda: SGD(0.1, 0.9), lambda: Adam(0.1), lambda: chain(Adam(0.1), EMA(0.9))])
def test_a_range_test_changes_nothing(make: Callable[[], Any]) -> None:
    opt, model = make(), start()
    for _ in range(3):
        opt.minimize(quadratic, model)
    before, state, rate = {name: array.copy() for name, array in model.items()}, opt.state_dict(), opt.learning_rate
    found = range_test(opt, quadratic, model, initial=1e-4, final=100.0, steps=50)
    assert opt.learning_rate == rate and opt.step == 3
    for name, array in before.items():
        np.testing.assert_array_equal(model[name], array)
        for slot, kept in state["slots"][name].items():
            np.testing.assert_array_equal(opt.slots[name][slot], kept)
    assert found.rates[0] == 1e-4 and len(found.rates) == len(found.losses)
    assert found.losses[0] == float(quadratic(model))
    np.testing.assert_allclose(np.diff(np.log(found.rates)), math.log(1e6) / 49)


def test_a_range_test_ends_where_the_loss_diverges() -> None:
    found = range_test(SGD(), quadratic, start(), initial=1e-3, final=1e3, steps=60)
    assert found.has_diverged and found.losses[-1] > 4 * min(found.losses) and found.rates[-1] < 1e3
    assert 1e-2 < found.steepest < 1.0
    calm = range_test(SGD(), quadratic, start(), initial=1e-6, final=1e-5, steps=5)
    assert not calm.has_diverged and calm.rates[-1] == pytest.approx(1e-5)
    assert math.isnan(optim.RateRange([0.1], [1.0], False).steepest)
    nan = range_test(SGD(), lambda m: xp.sum(m["w"]) * math.nan, start())
    assert nan.has_diverged and len(nan.losses) == 1
    ax = axes()
    assert found.plot(ax) is ax and ax.get_xscale() == "log" and len(ax.lines[0].get_xdata()) == len(found.rates)


def test_a_range_test_over_jax(library: Callable[[str], Any]) -> None:
    jax = library("jax")
    model = {name: jax.numpy.asarray(array, dtype="float32") for name, array in start().items()}
    before = {name: host(array).copy() for name, array in model.items()}
    found = range_test(Adam(), quadratic, model, steps=20)
    assert len(found.losses) == 20 or found.has_diverged
    for name, array in before.items():
        np.testing.assert_array_equal(host(model[name]), array)


def test_arguments_of_a_range_test() -> None:
    for bad, expected in (
        ({"initial": 0.0}, r"initial is 0\.0: expected a number in \(0, inf\)"),
        ({"initial": 1.0, "final": 0.1}, "expected positive numbers, the first smaller"),
        ({"final": math.inf}, r"final is inf: expected a number in \(0, inf\)"),
    ):
        with pytest.raises(ValueError, match=expected):
            range_test(SGD(), quadratic, start(), **bad)
    with pytest.raises(ValueError, match="steps is 1: expected 2 or more"):
        range_test(SGD(), quadratic, start(), steps=1)
    with pytest.raises(AttributeError, match="learning_rate"):
        range_test(partition({"*": SGD()}), quadratic, start())


# --- schedules ---------------------------------------------------------------------------------------------------------


def test_schedules_are_plotted() -> None:
    ax, schedule = axes(), schedules.warmup_cosine(0.1, warmup=5, steps=20)
    assert schedule.plot(20, ax) is ax
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [schedule(step) for step in range(20)])
    assert ax.get_xlabel() == "step"
    (0.5 * schedules.constant(1.0)).plot(3, ax)
    assert len(ax.lines) == 2


def test_pyplot_is_imported_by_plots_without_axes(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    importlib.import_module("matplotlib").use("Agg")
    pyplot = importlib.import_module("matplotlib.pyplot")
    figure = pyplot.figure()
    try:
        assert schedules.constant(1.0).plot(2) is figure.gca()
        assert optim.RateRange([1.0, 2.0], [1.0, 0.5], False).plot() is figure.gca()
    finally:
        pyplot.close(figure)
