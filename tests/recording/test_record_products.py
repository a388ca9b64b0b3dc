"""Products of small matrices and vectors in recordings: NumPy's bits in the function, the core's with `reassociate=True`; and joined arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_record import agrees, equal
from test_record_runs import at_random

import oxigrad as ox
from oxigrad import xp

EXTENTS = [1, 2, 3, 4, 7, 8, 14, 31]


def chained(a: Any, b: Any, v: Any) -> Any:
    """Products of factors that this computes, of n x n, n x m and n."""
    a, b, v = a * 1.5, b + 0.25, v - 0.5
    w = b.T @ (a @ v) + v @ b
    m = a.T @ b + np.matmul(a, b)
    return (m @ w) @ v, (b @ m.T)[::2] @ v, m.T @ m[:, 0], a[:, ::2] @ b[::2], a[1:, 1:] @ b[1:, 0], b @ b.T, b.T @ b


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("m", EXTENTS)
@pytest.mark.parametrize("n", EXTENTS)
def test_products_have_the_bits_of_numpy_and_are_one_run(n, m, dtype):
    args = [at_random(*shape, dtype=dtype) for shape in ((n, n), (n, m), (n,))]
    g = ox.record(chained)
    for scale in (1.0, 1.0, -0.3, 1e3):
        assert agrees(g, chained, *((arg * scale).astype(dtype) for arg in args))
    assert g.why is None
    if n > 1:  # where no slice is empty
        assert len(g.recordings[-1].runs()) == 1


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    "lay", [lambda x: x, np.asfortranarray, lambda x: np.repeat(x, 2, axis=-1)[..., ::2], lambda x: x[::-1]]
)
def test_arguments_that_lie_otherwise(lay, dtype):
    f = ox.value_and_grad(lambda a, b, v: xp.sum(chained(a, b, v)[0]), argnums=(0, 1, 2))
    args = [at_random(*shape, dtype=dtype) for shape in ((9, 9), (9, 5), (9,))]

    def direct(a: Any, b: Any, v: Any) -> Any:
        return a @ b, b.T @ a, v @ b, a @ v

    g, h = ox.record(f), ox.record(direct)
    for scale in (1.0, 1.0, -2.0):
        laid = [lay((arg * scale).astype(dtype)) for arg in args]
        assert agrees(g, f, *laid)
        assert agrees(h, direct, *laid)


@pytest.mark.parametrize("multiply", [lambda a, b: a @ b, np.matmul])
@pytest.mark.parametrize(
    "extents", [((5, 6), (6, 3)), ((6,), (6, 3)), ((5, 6), (6,)), ((6,), (6,)), ((2, 5, 6), (6, 3))]
)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_products_of_variables_have_the_bits_of_numpy(multiply, extents, dtype):
    a, b = (at_random(*shape, dtype=dtype) for shape in extents)
    expected = multiply(a, b)
    for argnums in (0, 1, (0, 1)):
        value, _ = ox.vjp(lambda *args: multiply(args[0], args[1]), a, b)
        assert equal(value, expected)
        seen: list[Any] = []

        def f(a: Any, b: Any, seen: Any = seen) -> Any:
            product = multiply(a, b)
            seen.append(getattr(product, "value", product))
            return xp.sum(product)

        ox.grad(f, argnums=argnums)(a, b)
        assert equal(np.asarray(seen[0]), np.asarray(expected))
    with pytest.raises(ValueError, match="shape"):
        ox.grad(lambda a: xp.sum(multiply(a, at_random(4, 3, dtype=dtype))))(a)


def test_arguments_that_are_one_array():
    def f(x: Any, y: Any) -> Any:
        return x @ y.T, (x * 2.0).T @ (y * 2.0), x.T @ y

    g = ox.record(f)
    for seed in range(4):
        x, y = np.random.default_rng(seed).normal(size=(2, 13, 13))
        for args in ((x, y), (x, x), (y, y), (y, x)):
            assert agrees(g, f, *args)


def test_factors_that_are_repeated_or_at_an_index():
    def f(x: Any, i: int) -> Any:
        y = x * 2.0
        column, row = y[:, i], y.T[i]
        products = column @ y, y @ y[i], y[0] @ y[2], row @ y[i], column @ row, y[1] @ y.T[2]
        return xp.broadcast_to(y[0], (5, 5)) @ y, *products, np.matmul(y, xp.reshape(y.T, (25,))[:5])

    g = ox.record(f)
    for i in (0, 1, -1, 4):
        assert agrees(g, f, at_random(5, 5), i)


def multiplied(product: Any, m: Any, v: Any) -> Any:
    for _ in range(5):
        v = xp.tanh(product(m, v)) + v / 3.0
        m = 0.5 * product(m, m) + m
    return xp.sum(product(m, v) * v)


PRODUCTS = {"operator": lambda a, b: a @ b, "matmul": np.matmul, "dot": np.dot, "method": lambda a, b: a.dot(b)}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_reassociated_products_are_those_of_the_core_in_one_run(name, dtype):
    def f(m: Any, v: Any) -> Any:
        return multiplied(PRODUCTS[name], m, v)

    g, core = ox.record(f, reassociate=True, audit="always"), lambda m, v: multiplied(xp.matmul, m, v)
    m, v = 0.3 * at_random(11, 11, dtype=dtype), at_random(11, dtype=dtype)
    assert equal(g(m, v), f(m, v))  # the call that is recorded
    for scale in (1.0, 0.5, -0.3):
        args = [(each * scale).astype(dtype) for each in (m, v)]
        assert equal(g(*args), core(*args))
        np.testing.assert_allclose(g(*args), f(*args), rtol=1e-4 if dtype == "f4" else 1e-12)
        assert g.why is None
    assert len(g.recordings[-1].runs()) == 1


def test_reassociated_derivatives():
    def f(m: Any, v: Any) -> Any:
        return multiplied(lambda a, b: a @ b, m, v)

    m, v = 0.3 * at_random(6, 6), at_random(6)
    gradient = ox.value_and_grad(f, argnums=(0, 1))
    g = ox.record(gradient, reassociate=True)
    for _ in range(3):
        value, slopes = g(m, v)
        expected, others = gradient(m, v)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        for one, other in zip(slopes, others, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)
    assert g.why is None


class Constants:
    matrix = np.eye(7)


@pytest.mark.parametrize("on_stale", ["raise", "warn"])
def test_audits_of_reassociated_products_find_constants_that_change(on_stale):
    def f(x: Any) -> Any:
        return x @ (Constants.matrix + 0.1) @ x

    Constants.matrix = np.eye(7)
    g, x = ox.record(f, reassociate=True, audit="always", on_stale=on_stale), at_random(7)
    for scale in (1.0, 2.0, -0.7):
        np.testing.assert_allclose(g(x * scale), f(x * scale), rtol=1e-13)
    Constants.matrix = 1.001 * np.eye(7)
    if on_stale == "raise":
        with pytest.raises(ox.StaleRecordingError):
            g(x)
    else:
        with pytest.warns(UserWarning, match="stale"):
            assert equal(g(x), f(x))


def test_a_file_has_the_products_of_the_function(tmp_path):
    def f(x: Any) -> Any:
        return x @ x @ x[0]

    g, x = ox.record(f, reassociate=True), at_random(7, 7)
    g(x)
    g.save(tmp_path / "f.safetensors")
    assert equal(ox.load_recording(tmp_path / "f.safetensors")(x * 0.5), f(x * 0.5))


# --- joined arrays ----------------------------------------------------------------------------------------------------


def joined(x: Any, v: Any) -> Any:
    v = v * 1.5
    z = x
    for _ in range(3):
        y = xp.concat([x * 2.0, xp.expand_dims(v, axis=0), -x], axis=0)
        z = xp.stack([v, y[0] * 0.5, y[1]], axis=1)
        v = xp.concat([z[:2, 0], v[2:] * xp.sum(z * z)], axis=-1) + xp.stack([xp.sum(v), v[0], *v[2:]])
        x = xp.concat([x[:1] / 3.0, y[2 : x.shape[0] + 1]]) - 0.0 * xp.stack([v, v], axis=-1)[:, 1]
    return xp.sum(x * v) + xp.sum(z[::-1] * z)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_joined_arrays_have_the_bits_of_their_functions_and_are_one_run(n, dtype):
    x, v = 0.1 * at_random(n, n, dtype=dtype), at_random(n, dtype=dtype)
    for f in (
        joined,
        ox.value_and_grad(joined, argnums=(0, 1)),
        lambda x, v: xp.concat([x, -0.0 * x, -x.T, (x * v).T], axis=1),
        lambda x, v: xp.stack([(x * v).T, (2.0 * x).T], axis=0),
    ):
        g = ox.record(f)
        for scale in (1.0, 1.0, -0.5):
            assert agrees(g, f, *((each * scale).astype(dtype) for each in (x, v)))
        assert g.why is None
        if f is joined and n > 2:  # where no slice is empty
            assert len(g.recordings[-1].runs()) == 1


def test_joined_arrays_without_elements_or_of_several_dtypes():
    def f(x: Any, y: Any) -> Any:
        z = x * 2.0
        return xp.concat([z[:0], z]), xp.concat([z, y]), xp.stack([z, y]), xp.concat([z.T, z.T]) if x.ndim > 1 else z

    g = ox.record(f)
    for x in (at_random(4), at_random(3, 3)):
        for y in (x, x.astype("f4"), x > 0):
            for _ in range(3):
                assert agrees(g, f, x, y)
