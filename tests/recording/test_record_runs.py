"""Runs of recordings: sums at their ends, and cotangents of slices, with the bits of the functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_record import agrees, equal

import oxigrad as ox
from oxigrad import xp


def at_random(*shape: int, dtype: str = "f8") -> np.ndarray:
    return np.random.default_rng(7).normal(size=shape).astype(dtype)


def rosenbrock(x: Any) -> Any:
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def run_of(g: Any, name: str) -> bool:
    """Whether a call of this name is in a run of the last recording."""
    program = g.recordings[-1]
    lines = program.printed(True).splitlines()
    return any(f"= {name}(" in lines[at] for run in program.runs() for at in run)


# Lengths around chunks of 4,096 elements; a last chunk of fewer than 64 is added up in another order, outside of runs.
@pytest.mark.parametrize(
    ("length", "is_in_run"), [(4095, False), (4096, True), (4159, False), (4160, True), (50_000, True)]
)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_sums_of_runs_have_the_bits_of_sums(length, is_in_run, dtype, name):
    def f(x: Any) -> Any:
        return getattr(xp, name)(xp.exp(x) * x + 1.0)

    x = at_random(length, dtype=dtype)
    for function in (f, ox.value_and_grad(f)):
        g = ox.record(function)
        for scale in (1.0, 1.0, 1e-3, -3.0):
            assert agrees(g, function, (x * scale).astype(dtype))
        assert g.why is None
        assert run_of(g, name) == is_in_run


def test_totals_beside_sums_along_axes_leave_the_run_to_these():
    def f(x: Any) -> Any:
        y = x * 0.5 + 1.0
        return xp.sum(xp.square(y)), xp.sum(y * y, axis=1), xp.mean(y)

    g, x = ox.record(f), at_random(80, 100)
    for scale in (1.0, 1.0, -2.0):
        assert agrees(g, f, x * scale)
    assert g.why is None
    (run,) = g.recordings[-1].runs()
    lines = g.recordings[-1].printed(True).splitlines()
    assert [lines[at].partition("= ")[2].partition("(")[0] for at in run].count("sum") == 1


def test_what_reads_a_sum_is_in_another_run():
    def f(x: Any) -> Any:
        powers = xp.exp(x * 0.5)
        share = powers / xp.sum(powers) + x
        return share, xp.sum(share * share), xp.mean(powers * 2.0)

    g, x = ox.record(f), at_random(80, 100)
    for scale in (1.0, 1.0, -2.0):
        assert agrees(g, f, x * scale)
    assert g.why is None
    assert run_of(g, "sum")


SCALARS = {
    "elements": (lambda x, y: (x * y[0] + y[1]) * y[2] - x / y[0], 8),
    "a maximum": (lambda x, y: xp.exp((x - xp.max(x)) * 2.0) * xp.sum(y), 4),
    "arrays without dimensions": (lambda x, y: (x * xp.reshape(y[:1], ()) + y[1]) * 3.0, 3),
    "of another dtype": (lambda x, y: (x * xp.astype(y, xp.float16)[0] + 1.0) * 2.0, 2),
    "of a function that is not exact": (lambda x, y: xp.hypot(x * y[0], y[1]), 2),  # the elements
}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", SCALARS)
def test_scalars_are_read_by_runs(name, dtype):
    f, count = SCALARS[name]
    for function in (f, ox.value_and_grad(lambda *args: xp.sum(f(*args)), argnums=(0, 1))):
        g, y = ox.record(function), at_random(3, dtype=dtype)
        for scale in (1.0, 1.0, -2.0, 1e-3):
            assert agrees(g, function, at_random(5000, dtype=dtype), (y * scale).astype(dtype))
        assert g.why is None
        if function is f:
            assert sum(map(len, g.recordings[0].runs())) == count


@pytest.mark.parametrize("make", [lambda x: x.T, lambda x: x[:, ::2], lambda x: x[::-1]], ids=["T", "step", "back"])
def test_sums_of_arrays_that_lie_otherwise(make):
    def f(x: Any) -> Any:
        return xp.sum(xp.tanh(x) * x), xp.mean(x * 2.0 + 1.0)

    g, x = ox.record(f), make(at_random(90, 200))
    for scale in (1.0, 1.0, -2.0):
        assert agrees(g, f, x * scale)
        assert agrees(g, f, make(at_random(90, 200) * scale))


SLICES = {
    "Rosenbrock": rosenbrock,
    "one slice twice": lambda x: xp.sum(x[1:] * 2.0) + xp.sum(x[1:] ** 3),
    "three slices": lambda x: xp.sum(xp.sin(x[2:]) * x[1:-1] * xp.exp(x[:-2])),
    "steps": lambda x: xp.sum(x[::2] ** 2) + xp.sum(x[1::2] ** 3) * xp.sum(x[::2]),
    "elements": lambda x: x[0] * x[1] + x[0] ** 3 + xp.sum(x[:5]),
    "repeated indices": lambda x: xp.sum(x[np.array([0, 0, 1])] ** 2) * xp.sum(x[np.array([0, 2, 1])] ** 3),
    "negative zeros": lambda x: xp.sum(x[1:] * -0.0) + xp.sum(x[:-1] * -0.0),
}


@pytest.mark.parametrize("name", SLICES)
@pytest.mark.parametrize("length", [9, 5000])
def test_cotangents_of_slices_have_the_bits_of_the_derivative(name, length):
    f = ox.value_and_grad(SLICES[name])
    g, x = ox.record(f), at_random(length)
    for scale in (1.0, 1.0, -2.0):
        assert agrees(g, f, x * scale)
    assert g.why is None


def test_a_sum_of_cotangents_that_is_a_result_too_is_not_written_to():
    """Gradients of one call stay as they are in the next one, and the inner derivative as it was when it was returned."""

    def f(x: Any) -> Any:
        inner = ox.grad(rosenbrock)(x)
        return inner, xp.sum(inner * x)

    function = ox.value_and_grad(lambda x: f(x)[::-1], has_aux=True)
    g, x = ox.record(function), at_random(6)
    results = [g(x * scale) for scale in (1.0, 1.0, -2.0)]
    for scale, result in zip((1.0, 1.0, -2.0), results, strict=True):
        assert equal(result, function(x * scale))


def test_what_one_later_run_alone_reads_is_computed_there():
    def f(x: Any, w: Any) -> Any:
        return xp.sum(xp.maximum(x @ w, 0.0) @ w)

    g, args = ox.record(ox.grad(f, argnums=(0, 1))), (at_random(200, 80), at_random(80, 80))
    for scale in (1.0, 1.0, -2.0):
        assert agrees(g, ox.grad(f, argnums=(0, 1)), args[0] * scale, args[1])
    program = g.recordings[-1]
    lines = program.printed(True).splitlines()
    (run,) = [run for run in program.runs() if any("rule.greater" in lines[at] for at in run)]
    assert any("rule.where" in lines[at] for at in run)
