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
@pytest.mark.parametrize("lay", [np.ascontiguousarray, np.asfortranarray, lambda x: x[::-1, ::-1]])
def test_products_and_derivatives_by_constants_that_lie_otherwise(lay, dtype):
    data = lay(at_random(7, 3, dtype=dtype))
    function = ox.value_and_grad(lambda w, v: xp.mean(xp.tanh(xp.asarray(data) @ w) @ v), argnums=(0, 1))
    g, w, v = ox.record(function), at_random(3, 5, dtype=dtype), at_random(5, 2, dtype=dtype)
    for scale in (1.0, 1.0, -0.5, 30.0):
        assert agrees(g, function, (w * scale).astype(dtype), v)
    assert g.why is None


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


def transposed(a: Any, b: Any) -> Any:
    m = xp.permute_dims(a, (1, 0))
    for _ in range(4):
        m = 0.1 * (b @ a).T @ (b @ m.T).T + m
    return xp.sum(m * m) + xp.sum(xp.broadcast_to(xp.sum(b), (3, 2)) * m[:3, :2])


def stepped(x: Any, w: Any) -> Any:
    total = 0.0
    for k in range(6):
        row = x[k]
        total = total + row @ w[:, k] + row[-1] * w[k, ::-1][0]
    return total + xp.sum(x[1:4, None, 2] * w[::2, -1])


def shifted(x: Any, w: Any) -> Any:
    for _ in range(2):
        x = 0.5 * (x[1:] * w[1 : x.shape[0]] + x[:-1]) ** 2
    return xp.sum(x[..., :2]) + x[0]


PROGRAMS |= {
    "transposed factors": (transposed, ((4, 4), (4, 4))),
    "elements of steps": (stepped, ((6, 6), (6, 6))),
    "shifted slices": (shifted, ((9,), (9,))),
}


@pytest.mark.parametrize("name", ["transposed factors", "elements of steps", "shifted slices", "an equation"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_programs_with_views_have_the_bits_of_their_functions_and_are_few_runs(name, dtype):
    f, extents = PROGRAMS[name]
    args = [at_random(*shape, dtype=dtype) for shape in extents]
    for function in (f, ox.value_and_grad(f, argnums=(0, 1)), ox.grad(lambda *args: xp.sum(ox.grad(f)(*args)))):
        g = ox.record(function)
        for scale in (1.0, 1.0, -0.5, 1e-3):
            assert agrees(g, function, *((arg * scale).astype(dtype) for arg in args))
        assert g.why is None
    runs = g.recordings[-1].runs()
    assert len(runs) <= 8, list(map(len, runs))


@pytest.mark.parametrize("lay", [np.asfortranarray, lambda x: x[::-1], lambda x: np.repeat(x, 2, axis=0)[::2]])
@pytest.mark.parametrize("name", ["transposed factors", "elements of steps"])
def test_views_of_arrays_that_lie_otherwise(name, lay):
    f, extents = PROGRAMS[name]
    g = ox.record(ox.value_and_grad(f, argnums=(0, 1)))
    for scale in (1.0, 1.0, -2.0):
        args = [at_random(*shape) * scale for shape in extents]
        assert agrees(g, ox.value_and_grad(f, argnums=(0, 1)), *map(lay, args))
        assert agrees(g, ox.value_and_grad(f, argnums=(0, 1)), *args)


def test_indices_that_are_arguments():
    def f(x: Any, i: int, j: int) -> Any:
        y = x * 2.0
        return y[i] * y[:, j] + y[j, i]

    g, gradient = ox.record(f), ox.record(ox.grad(lambda x, i, j: xp.sum(f(x, i, j) ** 2)))
    x = at_random(5, 5)
    for i, j in [(0, 1), (0, 1), (4, -1), (-5, 2), (3, 3)]:
        assert agrees(g, f, x, i, j)
        assert agrees(gradient, ox.grad(lambda x, i, j: xp.sum(f(x, i, j) ** 2)), x, i, j)
    assert len(g.recordings) == 1
    for i, j in [(5, 0), (0, -6)]:
        with pytest.raises(IndexError):
            g(x, i, j)


def test_views_that_leave_a_recording_are_those_of_the_function():
    def f(x: Any) -> Any:
        y = x * 2.0 + 1.0
        z = y.T * 3.0
        return y[1], y.T, z, xp.sum(y.T @ y, axis=0), y[:, 0] * 2.0

    g, x = ox.record(f), at_random(4, 4)
    for _ in range(3):
        found, expected = g(x), f(x)
        assert equal(found, expected)
        for one, other in zip(found, expected, strict=True):
            assert one.flags.c_contiguous == other.flags.c_contiguous
        assert np.shares_memory(found[0], found[1])
        found[1][:] = 0.0  # which no later call sees


def test_sums_of_views_have_the_order_of_the_function():
    def f(x: Any, y: Any) -> Any:
        z = x * y
        return np.sum(z.T, axis=0) + np.sum(z[:, ::-1], axis=1), np.sum(z.T.copy()), np.mean(z[::2, 1])

    g = ox.record(f)
    for _ in range(3):
        assert agrees(g, f, at_random(24, 24), at_random(24, 24))


def test_arrays_without_elements_in_slices():
    def f(x: Any) -> Any:
        y = x * 2.0
        return xp.sum(y[:0]), y[2:2] + 1.0, xp.sum(y.T)

    g = ox.record(f)
    for _ in range(3):
        assert agrees(g, f, at_random(3, 2))
        assert agrees(g, f, at_random(0, 2))


def kalman_filter(noise: Any, error: Any) -> Any:
    motion, look = xp.asarray(np.eye(4) + 0.1 * np.eye(4, k=2)), xp.asarray(np.eye(2, 4))
    seen = xp.asarray(at_random(6, 2))
    state, spread = xp.asarray(np.zeros(4)), xp.asarray(np.eye(4))
    likelihood = 0.0
    for step in range(6):
        state, spread = motion @ state, motion @ spread @ motion.T + noise @ noise.T
        of_seen, surprise = look @ spread @ look.T + error @ error.T, seen[step] - look @ state
        gain = spread @ look.T @ xp.linalg.inv(of_seen)
        likelihood = likelihood - 0.5 * (surprise @ xp.linalg.solve(of_seen, surprise) + xp.log(xp.linalg.det(of_seen)))
        state, spread = state + gain @ surprise, spread - gain @ look @ spread
    return likelihood


def of_matrices(a: Any, b: Any) -> Any:
    m = a @ a.T + xp.asarray(np.eye(3))
    factor = xp.linalg.cholesky(m)
    total = xp.sum(xp.linalg.solve(m, b) * b) + xp.linalg.det(factor) + xp.sum(xp.linalg.inv(m.T + a))
    return total + xp.sum(xp.linalg.solve(factor, b[:, 1]) * xp.linalg.solve(a.T + m, b[0, :3]))


MATRICES: dict[str, tuple[Any, tuple[np.ndarray, ...]]] = {
    "a filter": (kalman_filter, (0.3 * np.eye(4), 0.7 * np.eye(2))),
    "functions of matrices": (of_matrices, (0.2 * at_random(3, 3), at_random(3, 4))),
}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", MATRICES)
def test_functions_of_small_matrices_have_the_bits_of_numpy(name, dtype):
    f, args = MATRICES[name]
    for function in (f, ox.value_and_grad(f, argnums=(0, 1))):
        g = ox.record(function)
        for scale in (1.0, 1.0, 0.5, 3.0):
            assert agrees(g, function, *((arg * scale).astype(dtype) for arg in args))
        assert g.why is None
    _, slopes = g(*args)
    along = [np.cos(np.arange(arg.size)).reshape(arg.shape) for arg in args]
    ahead, behind = (f(*(arg + step * way for arg, way in zip(args, along, strict=True))) for step in (1e-6, -1e-6))
    slope = sum(float(np.sum(each * way)) for each, way in zip(slopes, along, strict=True))
    np.testing.assert_allclose(slope, (ahead - behind) / 2e-6, rtol=1e-5)


def test_functions_of_matrices_are_those_of_numpy_at_every_matrix():
    def f(a: Any, b: Any) -> Any:
        a = a * 1.0
        return xp.linalg.det(a), xp.linalg.solve(a, b) * 2.0, xp.linalg.inv(a) + 1.0

    g, a, b = ox.record(f), at_random(5, 5), at_random(5)
    for seed in range(40):
        a = np.random.default_rng(seed).normal(size=(5, 5)) * 10.0 ** (seed % 7 - 3)
        assert agrees(g, f, a, b)
    a[1] = a[0]
    a[:, 2] = 0.0
    for call in (f, g):
        with pytest.raises(np.linalg.LinAlgError, match="Singular"):
            call(a, b)


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_derivatives_of_determinants_of_any_rank(rank):
    gradient = ox.grad(lambda a: xp.linalg.det(a * 2.0))
    g, a = ox.record(gradient), at_random(3, 3)
    for _ in range(3):
        assert agrees(g, gradient, a)
    u, s, vh = np.linalg.svd(a)
    singular = (u[:, :rank] * s[:rank]) @ vh[:rank]
    assert agrees(g, gradient, singular)
    minors = [[np.delete(np.delete(2.0 * singular, i, 0), j, 1) for j in range(3)] for i in range(3)]
    signs = (-1.0) ** np.add.outer(np.arange(3), np.arange(3))
    np.testing.assert_allclose(g(singular), 2.0 * signs * np.linalg.det(minors), atol=1e-12)
