"""Sums along axes at the ends of runs, and arrays that runs read repeated, with the bits of the functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_record import agrees
from test_record_runs import at_random, run_of

import oxigrad as ox
from oxigrad import xp

# Shapes, axes, and whether the sums are in a run: of few elements, or along neighbouring axes other than the first.
SUMS: list[tuple[tuple[int, ...], Any, bool]] = [
    ((64, 128), 1, True),
    ((64, 128), -1, True),
    ((64, 128), 0, False),
    ((4096, 1), 1, False),
    ((3, 5000), 1, True),
    ((1, 9000), 1, False),
    ((5, 4097), -1, True),
    ((3, 70_000), 1, False),
    ((1000, 7), 1, True),
    ((100, 7), 1, True),
    ((25, 200, 10), 2, True),
    ((25, 200, 10), 1, True),
    ((25, 200, 10), (1, 2), True),
    ((25, 200, 10), (-1, -2), True),
    ((25, 200, 10), (0, 1), False),
    ((25, 200, 10), (0, 2), False),
    ((7, 11, 13, 17), (1, 2), True),
    ((7, 11, 13, 17), 3, True),
    ((7, 11, 13, 17), (1, 3), False),
    ((600, 300), 1, True),
]


@pytest.mark.parametrize(("shape", "axis", "is_in_run"), SUMS)
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_sums_along_axes_have_the_bits_of_sums(shape, axis, is_in_run, kept, dtype, name):
    # Axes are literals, since numbers in a captured tuple are inputs.
    source = f"(xp.{name}(z * x, axis={axis}, keepdims={kept}), xp.{name}(z, axis={axis}), z[0] * 2.0)"
    f = eval(f"lambda x, y: (lambda z: {source})(xp.exp(x) * y + 1.0)", {"xp": xp})  # noqa: S307 - of this test's own
    g, x, y = ox.record(f), at_random(*shape, dtype=dtype), at_random(shape[-1], dtype=dtype)
    for scale in (1.0, 1.0, 1e-3, -3.0):
        assert agrees(g, f, (x * scale).astype(dtype), y)
    assert g.why is None
    assert run_of(g, name) == is_in_run


@pytest.mark.parametrize(("shape", "axis"), [((9000,), 0), ((9000,), (-1,)), ((64, 128), (0, 1)), ((64, 128), (1, -2))])
@pytest.mark.parametrize("kept", [False, True])
def test_a_sum_along_all_axes_is_in_the_run_unless_it_keeps_them(shape, axis, kept):
    source = f"xp.sum(xp.exp(x) + 1.0, axis={axis}, keepdims={kept})"
    f = eval(f"lambda x: {source}", {"xp": xp})  # noqa: S307 - as above
    g, x = ox.record(f), at_random(*shape, dtype="f8")
    for scale in (1.0, 1.0, 1e-3, -3.0):
        assert agrees(g, f, x * scale)
        np.testing.assert_allclose(g(x * scale), np.sum(np.exp(x * scale) + 1.0, keepdims=kept), rtol=1e-13)
    assert g.why is None
    assert run_of(g, "sum") == (not kept)


def norm(x: Any) -> Any:
    x = x - xp.mean(x, axis=-1, keepdims=True)
    return x / xp.sqrt(xp.mean(x * x, axis=-1, keepdims=True) + 1e-5)


FUNCTIONS = {
    "norm": lambda x: xp.sum(norm(x * 2.0) ** 3),
    "softmax": lambda x: xp.sum(xp.special.softmax(x * x, axis=-1) * x),
    "log of sums": lambda x: xp.sum(xp.log(xp.sum(xp.exp(x), axis=1)) * 2.0),
    "cubes of sums": lambda x: xp.sum(xp.sum(x * xp.sin(x), axis=2) ** 3),
    "sums of sums": lambda x: xp.sum(xp.sum(x * x, axis=(1, 2)) * xp.sum(x * x * x, axis=(1, 2))),
    "two at once": lambda x: xp.sum(xp.sum(x * x, axis=2) * xp.mean(x + 1.0, axis=1)[:, :1]),
    "of all beside": lambda x: xp.sum(x * x) * xp.sum(xp.sum(x * x, axis=2)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("threads", [1, 3])
def test_derivatives_with_sums_along_axes_have_the_bits_of_the_function(name, dtype, threads):
    before = ox.get_num_threads()
    ox.set_num_threads(threads)
    try:
        f, x = FUNCTIONS[name], at_random(24, 50, 40, dtype=dtype)
        for function in (f, ox.value_and_grad(f)):
            g = ox.record(function)
            for scale in (1.0, 1.0, 1e-3, -1.5):
                assert agrees(g, function, (x * scale).astype(dtype))
            assert g.why is None
    finally:
        ox.set_num_threads(before)


VIEWS = {
    "rows": lambda x: np.broadcast_to(x[0], x.shape),
    "columns": lambda x: np.broadcast_to(x[:, :1], x.shape),
    "one": lambda x: np.broadcast_to(x[:1, :1], x.shape),
    "steps": lambda x: x[:, ::-1],
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "a part": lambda x: np.concatenate([x, x], axis=1)[:, : x.shape[1]],
    "not aligned": lambda x: np.frombuffer(b" " + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape),
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_runs_read_arrays_of_any_layout(name, dtype):
    def f(x: Any, view: Any) -> Any:
        y = xp.exp(view * 0.5) * x
        return y + view, xp.sum(y - view, axis=1), xp.sum(y * view)

    x = at_random(80, 70, dtype=dtype)
    for function in (f, lambda x, view: f(x, view)[1:], ox.grad(lambda x, view: xp.sum(f(x, view)[1] ** 2))):
        g = ox.record(function)
        for scale in (1.0, 1.0, -2.0):
            assert agrees(g, function, (x * scale).astype(dtype), VIEWS[name](x))


def test_sums_of_empty_and_not_finite_arrays():
    def f(x: Any) -> Any:
        return xp.sum(x * 2.0, axis=1), xp.mean(x * 2.0, axis=1)

    g, x = ox.record(f), at_random(64, 128)
    x[3, 5], x[7] = np.inf, np.nan
    with np.errstate(invalid="ignore"):
        for _ in range(3):
            assert agrees(g, f, x)
    h, empty = ox.record(lambda x: xp.sum(x * 2.0, axis=1)), np.zeros((64, 0))
    for _ in range(3):
        assert agrees(h, lambda x: xp.sum(x * 2.0, axis=1), empty)
