"""Recordings of programs over small arrays, whose values are in memory of the core, with the bits of the functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_record import agrees, equal
from test_record_runs import at_random

import oxigrad as ox
from oxigrad import xp


def recurrence(h: Any, w: Any) -> Any:
    for _ in range(12):
        h = xp.tanh(h * w + 0.1) + h / 3.0
    return xp.sum(h * h)


def runge_kutta(m: Any, y: Any) -> Any:
    def slope(y: Any) -> Any:
        return xp.tanh(m @ y) - y / 10

    for _ in range(4):
        k = slope(y + 0.025 * slope(y))
        y = y + 0.05 * k
    return xp.sum(y * y)


def rows(x: Any, w: Any) -> Any:
    shares = xp.exp(x - xp.mean(x, axis=1, keepdims=True))
    shares = shares / xp.sum(shares, axis=-1, keepdims=True)
    return xp.mean(shares @ w) + xp.sum(xp.where(x > 0.1, shares, -x))


def vectors(x: Any, y: Any) -> Any:
    m = x[:, None] * y
    return (x @ m) @ y + xp.log1p(xp.sum(m * m)) * (x @ x)


def shapes(x: Any, y: Any) -> Any:
    z = xp.reshape(x * 2.0, (2, 3)) + xp.expand_dims(y, axis=0)
    return xp.sum(xp.squeeze(z[:1] * z, axis=()) ** 2) * xp.sum(y)


PROGRAMS: dict[str, tuple[Any, tuple[tuple[int, ...], ...]]] = {
    "a recurrence": (recurrence, ((14,), (14,))),
    "a recurrence of one number": (recurrence, ((1,), (1,))),
    "rows and a row": (recurrence, ((3, 5), (5,))),
    "an equation": (runge_kutta, ((10, 10), (10,))),
    "rows": (rows, ((6, 9), (9, 4))),
    "vectors": (vectors, ((5,), (5,))),
    "shapes": (shapes, ((6,), (3,))),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_small_programs_have_the_bits_of_their_functions(name, dtype):
    f, extents = PROGRAMS[name]
    args = [at_random(*shape, dtype=dtype) for shape in extents]
    for function in (f, ox.value_and_grad(f, argnums=(0, 1))):
        g = ox.record(function)
        for scale in (1.0, 1.0, -0.5, 1e-3, 30.0):
            assert agrees(g, function, *((arg * scale).astype(dtype) for arg in args))
        assert g.why is None


@pytest.mark.parametrize("name", ["a recurrence", "an equation"])
def test_values_and_gradients_are_those_of_central_differences(name):
    f, extents = PROGRAMS[name]
    args = [at_random(*shape) for shape in extents]
    g = ox.record(ox.value_and_grad(f, argnums=(0, 1)))
    g(*args)
    value, gradients = g(*args)
    along = [np.cos(np.arange(arg.size)).reshape(arg.shape) for arg in args]
    ahead, behind = (f(*(arg + step * way for arg, way in zip(args, along, strict=True))) for step in (1e-6, -1e-6))
    slope = sum(float(np.sum(each * way)) for each, way in zip(gradients, along, strict=True))
    np.testing.assert_allclose(value, f(*args), rtol=1e-12)
    np.testing.assert_allclose(slope, (ahead - behind) / 2e-6, rtol=1e-6)


def test_a_long_program_is_one_run():
    def f(w: Any) -> Any:
        h = w
        for _ in range(100):
            h = xp.tanh(h * w + 0.1)
        return xp.sum(h)

    g, w = ox.record(ox.value_and_grad(f)), at_random(14)
    for _ in range(2):
        g(w)
    assert len(g.recordings[-1].runs()) == 1


def test_results_are_new_arrays_and_views_of_them_stay_views():
    def f(x: Any) -> Any:
        y = x * 2.0 + 1.0
        return y, xp.reshape(y, (2, 3)), xp.sum(xp.reshape(y, (3, 2)), axis=1)

    g, x = ox.record(f), at_random(6)
    for _ in range(3):
        y, view, sums = g(x)
        assert equal((y, view, sums), f(x))
        assert np.shares_memory(y, view) == np.shares_memory(*f(x)[:2])
        assert not np.shares_memory(y, x)
        y[:] = 0.0  # which no later call sees


@pytest.mark.parametrize("make", [lambda x: x.T, lambda x: x[::2], lambda x: x[::-1], np.asfortranarray])
def test_arrays_that_lie_otherwise(make):
    def f(x: Any, y: Any) -> Any:
        return xp.sum(xp.tanh(x * y) @ xp.expand_dims(y, axis=1)), xp.squeeze(x * 1.5)

    x = make(at_random(8, 8))
    g = ox.record(f)
    for scale in (1.0, 1.0, -2.0):
        assert agrees(g, f, x * scale, at_random(x.shape[-1]))
        assert agrees(g, f, make(at_random(8, 8) * scale), at_random(x.shape[-1]))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    "extents", [((3, 4), (4,)), ((4,), (4, 5)), ((7,), (7,)), ((1,), (1,)), ((16, 64), (64,)), ((2, 3, 4), (4,))]
)
def test_products_of_vectors(extents, dtype):
    a, b = (at_random(*shape, dtype=dtype) for shape in extents)
    found, expected = xp.matmul(a, b), np.matmul(a.astype("f8"), b.astype("f8"))
    assert type(found) is type(np.matmul(a, b))
    assert (found.dtype, found.shape) == (np.dtype(dtype), expected.shape)
    np.testing.assert_allclose(
        found, expected, rtol=1e-5 if dtype == "f4" else 1e-13, atol=1e-6 if dtype == "f4" else 0
    )
    value, pullback = ox.vjp(xp.matmul, a[..., ::-1], b[::-1])
    np.testing.assert_allclose(value, expected, rtol=1e-4, atol=1e-5)
    grads = pullback(np.ones_like(value))
    assert [each.shape for each in grads] == [a.shape, b.shape]
