"""Functions of NumPy arrays that the core computes: results equal NumPy's, in new memory."""

import gc
import math
import threading
import tracemalloc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import xp

DTYPES = [np.float32, np.float64]


def numbers(shape: Any, dtype: Any = np.float64, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.5, 2.0, shape).astype(dtype)


# --- values ------------------------------------------------------------------------------------------------------------

SHAPES = [
    ((7,), (7,)),
    ((4, 5), (5,)),
    ((4, 5), (4, 1)),
    ((3, 1, 4), (2, 1)),
    ((1,), (6,)),
    ((0, 3), (3,)),
    ((5, 1, 6), (1, 300, 6)),
    ((20_000,), (20_000,)),
    ((300, 200), (200,)),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shapes", SHAPES, ids=repr)
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide"])
def test_arithmetic_gives_the_bits_of_numpy(name: str, shapes: Any, dtype: Any) -> None:
    a, b = numbers(shapes[0], dtype), numbers(shapes[1], dtype, 1)
    ours, theirs = getattr(xp, name), getattr(np, name)
    for x1, x2 in ((a, b), (b, a), (a, 0.3), (3, b), (a, True)):
        expected = theirs(x1, x2)
        for found in (ours(x1, x2), recorded(ours, x1, x2)):
            assert type(found) is np.ndarray and found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


def recorded(function: Callable[..., Any], *args: Any) -> Any:
    """The value of a function of variables."""
    with ox.Tape() as tape:
        return function(*(tape.watch(x) if isinstance(x, np.ndarray) else x for x in args)).value


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["negative", "square", "sqrt", "reciprocal"])
def test_functions_that_round_correctly_give_the_bits_of_numpy(name: str, dtype: Any) -> None:
    for x in (numbers(9, dtype), numbers((40, 50), dtype)[::2, 1::3], numbers((6, 7), dtype).T):
        np.testing.assert_array_equal(recorded(getattr(xp, name), x), getattr(np, name)(x))


def test_dtypes_and_scalars_are_those_of_numpy() -> None:
    single, double = numbers(3, np.float32), numbers(3)
    for x1, x2 in ((single, double), (single, np.float64(2.0)), (single, np.float32(2.0)), (single, 2.0), (single, 2)):
        assert recorded(xp.multiply, x1, x2).dtype == np.multiply(x1, x2).dtype
    for x in (np.float64(2.0), np.float32(2.0), np.array(2.0)):
        with ox.Tape() as tape:
            v = tape.watch(x)
            for y, expected in ((v * v, x * x), (xp.exp(v), np.exp(x)), (1.0 / v, 1.0 / x), (v * 3, x * 3)):
                assert y.value == pytest.approx(expected, rel=1e-6)
                assert (y.shape, y.dtype) == ((), x.dtype)
            total = xp.log(v) * v + 2.0 / v
        (gradient,) = tape.gradient(total, [v])
        assert gradient == pytest.approx(math.log(2.0) + 1.0 - 0.5, rel=1e-6)
        assert gradient.dtype == x.dtype


def test_python_numbers_stay_pythons() -> None:
    with ox.Tape() as tape:
        x, y = tape.watch(2.0), tape.watch(5.0)
        z = xp.exp(xp.log(x) + y * x) / xp.multiply(x, 3) - xp.sin(y)
    assert type(z.value) is float
    assert [type(g) for g in tape.gradient(z, [x, y])] == [float, float]
    assert type(ox.grad(ox.grad(xp.sin))(1.0)) is float


def test_a_square_by_any_name() -> None:
    x = numbers(5)
    for square in (lambda x: x**2, lambda x: x**2.0, xp.square, lambda x: xp.pow(x, 2), np.square):
        with ox.Tape() as tape:
            v = tape.watch(x)
            y = square(v)
        np.testing.assert_array_equal(y.value, x * x)
        np.testing.assert_array_equal(tape.gradient(y, [v], np.ones(5))[0], 2 * x)
    assert str(tape) == "v1 = square(x1)"


def test_a_ufunc_of_an_array_and_a_variable_is_recorded() -> None:
    a, x = numbers((2, 3)), numbers((3, 2), seed=1)
    with ox.Tape() as tape:
        v = tape.watch(x)
        y = xp.sum(a @ v) + xp.sum(a.T * v) + xp.sum(np.true_divide(a.T, v)) + xp.sum(np.maximum(a.T, v))
    assert [line.split("(")[0] for line in str(tape).splitlines()[:2]] == ["v1 = matmul", "v2 = sum"]
    expected = np.ones((2, 2)).T @ a, a, -a / (x * x).T, (a < x.T).astype(float)
    np.testing.assert_allclose(tape.gradient(y, [v])[0], sum(e.T for e in expected), rtol=1e-14)
    with ox.Tape() as tape:
        v = tape.watch(x)
        assert type(v > a.T) is np.ndarray
        with pytest.raises(ox.DerivativeError, match="does not take where"):
            np.add(a.T, v, where=a.T > 1)


AXES = [
    ((14,), None),
    ((32, 16), 0),
    ((32, 16), -1),
    ((32, 16), (0, 1)),
    ((3, 1, 5), (0, 2)),
    ((3, 4, 5), (0, 2)),
    ((3, 4, 5), (1, 2)),
    ((3, 4, 5), ()),
    ((0, 4), 0),
    ((7, 9001), 1),
    ((9001, 70), 0),
    ((25, 100, 10), 2),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "axis"), AXES, ids=repr)
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_sums_and_means_are_those_of_numpy(name: str, shape: Any, axis: Any, dtype: Any) -> None:
    x = numbers(shape, dtype)
    if name == "mean" and x.size == 0:
        return
    for array in (x, x.T.copy().T, x[..., ::-1]):
        for keepdims in (False, True):
            found = getattr(xp, name)(array, axis=axis, keepdims=keepdims)
            like = getattr(np, name)(array, axis=axis, keepdims=keepdims)
            exact = getattr(np, name)(array.astype(np.float64), axis=axis, keepdims=keepdims)
            assert type(found) is type(like) and found.dtype == dtype and found.shape == like.shape
            by_numpy = array.strides != x.strides  # in single precision, as it does
            np.testing.assert_allclose(
                found, exact, rtol=(1e-5 if by_numpy else 3e-7) if dtype == np.float32 else 1e-13
            )


def test_an_axis_that_is_not_there_is_the_error_of_numpy() -> None:
    for axis in (2, -3, (0, 0)):
        with pytest.raises(ValueError, match="axis"):
            xp.sum(np.ones((2, 3)), axis=axis)


PRODUCTS = [
    ((4, 3), (3, 5)),
    ((6, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 1)),
    ((5, 1, 2, 3), (4, 3, 2)),
    ((700, 40), (40, 90)),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shapes", PRODUCTS, ids=repr)
def test_products_are_those_of_numpy(shapes: Any, dtype: Any) -> None:
    a, b = numbers(shapes[0], dtype), numbers(shapes[1], dtype, 1)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    for left in (a, a.mT.copy().mT, np.flip(np.flip(a, -1).copy(), -1)):
        for right in (b, b.mT.copy().mT):
            found = xp.matmul(left, right)
            assert found.dtype == dtype and found.flags.c_contiguous
            np.testing.assert_allclose(found, exact, rtol=1e-5 if dtype == np.float32 else 1e-13)
    with pytest.raises(ox.ShapeError, match="matmul: found shapes"):
        xp.matmul(a, b[..., :1, :] if b.shape[-2] > 1 else b)


def test_no_bit_depends_on_the_number_of_threads(threads: Callable[[int], None]) -> None:
    x, w = numbers((40, 500, 10)), numbers((40, 10, 10), seed=1)

    def loss(x: Any, w: Any) -> Any:
        return xp.sum(xp.log(xp.sum(xp.exp(xp.sin(x) @ w) * x, axis=2))) + xp.mean(x - x[:, :1, :])

    results = []
    for count in (1, 2, 3):
        threads(count)
        results.append(ox.value_and_grad(loss, argnums=(0, 1))(x, w))
    for value, gradients in results[1:]:
        assert value == results[0][0]
        for found, expected in zip(gradients, results[0][1], strict=True):
            np.testing.assert_array_equal(found, expected)


# --- memory ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [10, 1000, 50_000])
def test_a_referenced_array_is_never_written(size: int) -> None:
    x = numbers(size)
    with ox.Tape() as tape:
        v = tape.watch(x)
        held, views, exports, expected = [], [], [], []
        for i in range(20):
            y = v * float(i) + 1.0
            held.append(y.value)
            views.append((v + float(i)).value[::2])
            exports.append(memoryview((v - float(i)).value))
            expected.append((x * i + 1.0, (x + i)[::2], x - i))
            del y
        total = xp.sum(xp.exp(v) * xp.sin(v) * v)
    (gradient,) = tape.gradient(total, [v], release=True)
    again = ox.grad(lambda v: xp.sum(xp.exp(v) * xp.sin(v) * v))(x)
    np.testing.assert_array_equal(gradient, again)
    assert gradient is not again
    for found, wanted in zip(zip(held, views, exports, strict=True), expected, strict=True):
        for array, right in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(np.asarray(array), right)


def test_an_array_with_a_weak_reference_is_not_used_again() -> None:
    with ox.Tape() as tape:
        v = tape.watch(np.ones(100))
        y = v + 1.0
        kept = weakref.ref(y.value)
        del y
        assert kept() is None


def test_spare_memory_is_bounded() -> None:
    x = numbers(1_000_000)

    def f(x: Any) -> Any:
        for _ in range(20):
            x = xp.tanh(x)
        return xp.sum(x)

    tracemalloc.start()
    ox.grad(f)(x)
    gc.collect()
    left, highest = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert highest > 150e6
    assert left <= 64 << 20


# --- deferred cotangents -----------------------------------------------------------------------------------------------

LARGE = 1 << 14


def by_slices(f: Callable[..., Any], *args: np.ndarray) -> list[np.ndarray]:
    """The gradients of a sum of elementwise functions, some elements at a time, so few that nothing waits."""
    ends = range(0, args[0].shape[0], 1000)
    parts = [ox.grad(f, tuple(range(len(args))))(*(x[i : i + 1000] for x in args)) for i in ends]
    return [np.concatenate(gradients) for gradients in zip(*parts, strict=True)]


def branches(x: Any, y: Any) -> Any:
    u = xp.exp(-x * x) * xp.sin(y)
    v = u + x / y
    w = xp.where(u > 0.3, v * v, xp.tanh(v) - y)
    return xp.sum(w * u + xp.sqrt(y) + (x - y) ** 3 + 2.0 * x)


def deep(x: Any, y: Any) -> Any:
    """Longer than one kernel."""
    z = x
    for _ in range(150):
        z = xp.sin(z) * y + x
    return xp.sum(z)


def wide(x: Any, y: Any) -> Any:
    """Reads more arrays than one kernel."""
    z = x
    for i in range(60):
        z = z + y * numbers(x.shape[0], seed=i) * xp.cos(x * (1.0 + i))
    return xp.sum(z)


@pytest.mark.parametrize("f", [branches, deep])
@pytest.mark.parametrize("size", [LARGE, 3 * LARGE + 5])
def test_a_large_gradient_has_the_bits_of_small_ones(f: Callable[..., Any], size: int) -> None:
    x, y = numbers(size), numbers(size, seed=1)
    for found, expected in zip(ox.grad(f, (0, 1))(x, y), by_slices(f, x, y), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_a_program_that_reads_many_arrays() -> None:
    x, y = numbers(LARGE), numbers(LARGE, seed=1)
    dx, dy = ox.grad(wide, (0, 1))(x, y)
    constants = [(numbers(LARGE, seed=i), 1.0 + i) for i in range(60)]
    np.testing.assert_allclose(dx, 1.0 - sum(y * c * k * np.sin(x * k) for c, k in constants), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(dy, sum(c * np.cos(x * k) for c, k in constants), rtol=1e-10, atol=1e-10)


def test_single_precision_waits_in_single_precision() -> None:
    x, y = numbers(LARGE, np.float32), numbers(LARGE, np.float32, 1)
    exact = ox.grad(branches, (0, 1))(x.astype(np.float64), y.astype(np.float64))
    for found, expected in zip(ox.grad(branches, (0, 1))(x, y), exact, strict=True):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


def test_large_arrays_of_several_shapes_and_structured_ops_between() -> None:
    x, w, b = numbers((200, 100)), numbers((100, 90), seed=1), numbers(90, seed=2)

    def loss(lib: Any, x: Any, w: Any, b: Any) -> Any:
        h = lib.tanh(x * 0.01 @ w + b)
        h = lib.exp(-h * h) * lib.sin(h) + h[:, ::-1]
        return lib.sum(h * lib.sum(h, axis=1)[:, None]) + lib.sum(lib.sqrt(x) * lib.cos(x))

    gradients = ox.grad(lambda *args: loss(xp, *args), (0, 1, 2))(x, w, b)
    rng = np.random.default_rng(3)
    along = [rng.standard_normal(a.shape) for a in (x, w, b)]
    step = 1e-6
    ahead, behind = (loss(np, *(a + s * step * d for a, d in zip((x, w, b), along, strict=True))) for s in (1, -1))
    slope = sum(float(np.sum(g * d)) for g, d in zip(gradients, along, strict=True))
    assert slope == pytest.approx((ahead - behind) / (2 * step), rel=1e-6)


def test_gradients_of_intermediates_that_waited() -> None:
    x = numbers(LARGE)
    with ox.Tape() as tape:
        v = tape.watch(x)
        u = xp.sin(v)
        w = u * u
        y = xp.sum(w * v)
    for _ in range(2):
        of_w, of_u, of_v, of_y = tape.gradient(y, [w, u, v, y])
        np.testing.assert_array_equal(of_w, x)
        np.testing.assert_array_equal(of_u, x * np.asarray(u.value) + x * np.asarray(u.value))
        np.testing.assert_allclose(of_v, 2 * x * np.sin(x) * np.cos(x) + np.sin(x) ** 2, rtol=1e-14, atol=1e-15)
        assert of_y == 1.0


def test_a_large_cotangent_of_ones_own() -> None:
    x, cotangent = numbers((200, 100)), numbers((100, 200), seed=1).T
    with ox.Tape() as tape:
        v = tape.watch(x)
        y = xp.exp(v) / v
    before = cotangent.copy()
    (found,) = tape.gradient(y, [v], cotangent)
    np.testing.assert_allclose(found, cotangent * np.exp(x) * (x - 1) / x**2, rtol=1e-13, atol=1e-14)
    np.testing.assert_array_equal(cotangent, before)


def test_a_custom_rule_sees_a_cotangent_that_waited() -> None:
    seen = []

    def pull(g: Any, y: Any, x: Any) -> Any:
        seen.append(np.array(g))
        return g * 3.0

    f = ox.custom_vjp(lambda x: 3.0 * x, pull)
    x = numbers(LARGE)
    found = ox.grad(lambda x: xp.sum(xp.sin(f(x)) * x))(x)
    np.testing.assert_allclose(seen[0], np.cos(3 * x) * x, rtol=1e-14)
    np.testing.assert_allclose(found, 3 * np.cos(3 * x) * x + np.sin(3 * x), rtol=1e-13, atol=1e-14)


def test_large_second_derivatives_and_tangents() -> None:
    x, t = numbers(LARGE), numbers(LARGE, seed=1)

    def f(x: Any) -> Any:
        return xp.sum(xp.sin(x) * xp.exp(-x))

    (product,) = ox.hvp(f, (x,), (t,))
    np.testing.assert_allclose(product, -2 * np.cos(x) * np.exp(-x) * t, rtol=1e-12, atol=1e-15)
    _, tangent = ox.jvp(lambda x: xp.sin(x) * xp.exp(-x), (x,), (t,))
    np.testing.assert_allclose(tangent, (np.cos(x) - np.sin(x)) * np.exp(-x) * t, rtol=1e-13, atol=1e-15)


def test_deferred_cotangents_take_no_memory() -> None:
    """A chain of elementwise ops keeps its values, and the gradient is the only other array."""
    x = numbers(200_000)

    def f(x: Any) -> Any:
        for _ in range(30):
            x = xp.sin(x)
        return xp.sum(x)

    tracemalloc.start()
    ox.grad(f)(x)
    highest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert highest <= 33 * x.nbytes


def test_other_threads_run_while_a_large_array_is_computed() -> None:
    x, turns, done = numbers(4_000_000), [0], threading.Event()

    def count() -> None:
        while not done.is_set():
            turns[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    try:
        before = turns[0]
        ox.grad(lambda x: xp.sum(xp.exp(xp.sin(x))))(x)
        assert turns[0] > before
    finally:
        done.set()
        thread.join()
