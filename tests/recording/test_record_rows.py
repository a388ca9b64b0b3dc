"""Recorded functions of rows: maxima, softmax, norms and their derivatives, with the bits of the functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from test_record import agrees

import oxigrad as ox
from oxigrad import tree, xp
from oxigrad.recording.bits import difference, is_alike

LENGTHS = [1, 2, 7, 8, 9, 16, 17, 31, 33, 64, 65, 128, 129, 1000]
NANS = {"f4": np.array([0x7FC00123, 0xFFC00001], "u4"), "f8": np.array([0x7FF8000000000123, 0xFFF8000000000001], "u8")}


def with_special(shape: tuple[int, ...], dtype: str, seed: int, nans: int = 2) -> Any:
    """An array with zeros of both signs, infinities, and two kinds of NaN in some rows."""
    rng = np.random.default_rng(seed)
    x = rng.choice(np.array([0.0, -0.0, -1.0, -np.inf, -2.5]), shape).astype(dtype)
    x[..., : shape[-1] // 2] = np.minimum(x[..., : shape[-1] // 2], 0.0)
    for at in range(nans):
        flat = x.reshape(-1)
        flat[rng.integers(0, flat.size, 1 + flat.size // 200)] = NANS[dtype].view(dtype)[at]
    x.reshape(-1)[rng.integers(0, x.size, 1 + x.size // 400)] = np.inf
    return x


SHAPES = [(length,) for length in LENGTHS] + [(3, length) for length in LENGTHS] + [(40, 129), (129, 40), (6, 7, 129)]
SHAPES += [(2, 3, 8), (5, 1, 9), (1, 1, 1), (3, 5000), (70, 2, 33)]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_extrema_have_the_bits_of_numpy(shape, dtype):
    axes: list[Any] = [None, *range(-len(shape), 0)] + ([(0, 1), (-2, -1)] if len(shape) > 1 else [])
    for axis in axes:
        for keepdims in (False, True):
            named = {"axis": axis, "keepdims": keepdims}

            def f(x: Any, named: dict[str, Any] = named) -> Any:
                y = xp.multiply(x, 1.0)
                return xp.max(x, **named), xp.min(y, **named), np.max(y, **named) + 0.0, np.min(x, **named)

            g = ox.record(f)
            for seed, nans in ((0, 0), (1, 0), (2, 0), (3, 1), (4, 2)):
                x = with_special(shape, dtype, seed, nans)
                with np.errstate(all="ignore"):
                    expected = [np.max(x, **named), np.min(x, **named)]
                    found = g(x)
                    assert agrees(g, f, x)
                for one, other in zip(found, [*expected, expected[0] + 0.0, expected[1]], strict=True):
                    assert one.dtype == other.dtype
                    np.testing.assert_array_equal(one, other)
            assert g.why is None


def norm(x: Any) -> Any:
    x = x - xp.mean(x, axis=-1, keepdims=True)
    return x / xp.sqrt(xp.mean(x * x, axis=-1, keepdims=True) + 1e-5)


OF_ROWS = {
    "softmax": lambda x: xp.special.softmax(x, axis=-1),
    "the logarithm of softmax": lambda x: xp.special.log_softmax(x, axis=-1),
    "logsumexp": lambda x: xp.special.logsumexp(x, axis=-1, keepdims=True),
    "norm": norm,
    "masked softmax": lambda x: xp.special.softmax(xp.where(np.arange(x.shape[-1]) % 3 > 1, -np.inf, x), axis=-1),
    "maxima": lambda x: x - xp.max(x, axis=-1, keepdims=True),
    "columns": lambda x: xp.special.softmax(x, axis=0),
}
OF_SHAPES = [(4, length) for length in (1, 7, 8, 9, 128, 129)] + [(33, 65), (3, 4, 9), (48, 128), (3, 41, 70)]


@pytest.fixture(params=[1, 2])
def _threads(request: pytest.FixtureRequest) -> Iterator[None]:
    before = ox.get_num_threads()
    ox.set_num_threads(request.param)
    yield
    ox.set_num_threads(before)


@pytest.mark.usefixtures("_threads")
@pytest.mark.parametrize("shape", OF_SHAPES, ids=str)
@pytest.mark.parametrize("name", OF_ROWS)
def test_functions_of_rows_have_the_bits_of_the_function(name, shape):
    of_rows = OF_ROWS[name]

    def loss(x: Any, w: Any) -> Any:
        return xp.sum(of_rows(x * w) * w)

    f, rng = ox.value_and_grad(loss, argnums=(0, 1)), np.random.default_rng(0)
    for dtype in ("f4", "f8"):
        g = ox.record(f)
        with np.errstate(all="ignore"):
            for scale in (1.0, 1.0, -3.0, 100.0, 0.0, -0.0):
                x, w = (rng.normal(size=shape).astype(dtype) for _ in range(2))
                assert agrees(g, f, x * np.asarray(scale, dtype), w)
            x[0, ..., 0] = np.inf
            assert agrees(g, f, x, np.abs(w))
            x[..., -1] = NANS[dtype].view(dtype)[0]
            if name != "maxima":  # whose derivative beside NaN is not the same in a recording
                assert difference(g(x, w), f(x, w)) is None


def test_softmax_is_the_formula():
    x = np.random.default_rng(0).normal(size=(5, 9))
    g = ox.record(ox.value_and_grad(lambda x: xp.sum(xp.special.softmax(x, axis=-1) ** 2)))
    for _ in range(2):
        value, slope = g(x)
    shares = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    np.testing.assert_allclose(value, (shares**2).sum(), rtol=1e-12)
    expected = 2 * shares * (shares - (shares**2).sum(1, keepdims=True))
    np.testing.assert_allclose(slope, expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("shape", [(0, 5), (4, 0, 3), (0,)])
def test_empty_arrays(shape):
    f = ox.value_and_grad(lambda x: xp.sum(xp.special.softmax(x * 2.0, axis=-1)))
    g = ox.record(f)
    if shape == (0,):
        with pytest.raises(ValueError, match="zero-size"):
            g(np.zeros(shape))
        return
    for _ in range(3):
        assert agrees(g, f, np.zeros(shape))


def test_a_small_softmax_is_one_run():
    g = ox.record(ox.value_and_grad(lambda x, w: xp.sum(xp.special.softmax(x, axis=-1) * w)))
    x, w = np.random.default_rng(0).normal(size=(2, 8, 64))
    for _ in range(2):
        g(x, w)
    (run,) = g.recordings[0].runs()
    lines = g.recordings[0].printed(True).splitlines()
    names = {lines[at].split("= ")[1].split("(")[0].removeprefix("numpy.") for at in run}
    assert {"max", "isfinite", "where", "exp"} <= names


def mirrored(x: Any, y: Any) -> Any:
    z = x + xp.permute_dims(x, (1, 0)) * 0.5
    return xp.sum(xp.tanh(z @ y) * xp.permute_dims(z, (1, 0))) + xp.sum(xp.exp(xp.permute_dims(x * y, (1, 0)) - y))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("size", [1, 3, 8, 33, 60])
def test_views_in_another_order_are_read_in_runs(size, dtype):
    f, rng = ox.value_and_grad(mirrored, argnums=(0, 1)), np.random.default_rng(0)
    g = ox.record(f)
    for order in ("C", "C", "F", "C"):
        x, y = (np.asarray(rng.normal(size=(size, size)), dtype, order=order) for _ in range(2))
        assert agrees(g, f, x, np.ascontiguousarray(y))


def test_a_cholesky_factor_and_its_derivative_are_one_run():
    def f(a: Any, b: Any) -> Any:
        factor = xp.linalg.cholesky(a)
        z = xp.linalg.solve(factor, b)
        return xp.sum(z * z) + 2 * xp.sum(xp.log(xp.linalg.diagonal(factor)))

    both, rng = ox.value_and_grad(f, argnums=(0, 1)), np.random.default_rng(0)
    g = ox.record(both)
    for _ in range(3):
        x, b = rng.normal(size=(5, 5)), rng.normal(size=5)
        a = x @ x.T + np.eye(5)
        assert agrees(g, both, a, b)
        value, (of_a, of_b) = g(a, b)
        solution = np.linalg.solve(a, b)
        np.testing.assert_allclose(value, b @ solution + np.linalg.slogdet(a)[1], rtol=1e-9)
        np.testing.assert_allclose(of_b, 2 * solution, rtol=1e-8)
        np.testing.assert_allclose(of_a, np.linalg.inv(a) - np.outer(solution, solution), rtol=1e-7, atol=1e-9)
    assert len(g.recordings[0].runs()) == 1


NAN = np.nan
WITH_NAN = np.array([[0.5, 2.0, -1.0], [3.0, NAN, 4.0], [NAN, NAN, NAN], [2.0, -1.0, 0.25]])
WEIGHTS = np.array([1.0, -2.0, 3.0])
# Functions of one row, with NumPy's results, and the derivatives by the elements of the two rows with NaN. The maximum
# of such a row is NaN, which no element equals: each gets zero of zero shares. A sort moves NaN, a median replaces it.
ALL_NAN = [[NAN] * 3, [NAN] * 3]
SELECTED: dict[str, tuple[Any, ...]] = {
    "xp.max": (lambda x: xp.max(x, axis=-1, keepdims=True), lambda x: np.max(x, axis=-1, keepdims=True), ALL_NAN),
    "xp.min": (lambda x: xp.min(x, axis=-1, keepdims=True), lambda x: np.min(x, axis=-1, keepdims=True), ALL_NAN),
    "np.amax": (lambda x: np.amax(x, axis=-1, keepdims=True),) * 2 + (ALL_NAN,),
    "np.amin": (lambda x: np.amin(x, axis=-1, keepdims=True),) * 2 + (ALL_NAN,),
    "maximum.reduce": (lambda x: np.maximum.reduce(x, axis=-1, keepdims=True),) * 2 + (ALL_NAN,),
    "minimum.reduce": (lambda x: np.minimum.reduce(x, axis=-1, keepdims=True),) * 2 + (ALL_NAN,),
    "ptp": (lambda x: np.ptp(x, axis=-1, keepdims=True),) * 2 + (ALL_NAN,),
    "logsumexp": (
        lambda x: xp.special.logsumexp(x, axis=-1, keepdims=True),
        lambda x: np.log(np.sum(np.exp(x), axis=-1, keepdims=True)),
        ALL_NAN,
    ),
    "softmax": (
        lambda x: xp.special.softmax(x, axis=-1),
        lambda x: np.exp(x) / np.sum(np.exp(x), axis=-1, keepdims=True),
        ALL_NAN,
    ),
    "largest modulus": (
        lambda x: xp.linalg.vector_norm(x, axis=-1, keepdims=True, ord=np.inf),
        lambda x: np.max(np.abs(x), axis=-1, keepdims=True),
        ALL_NAN,
    ),
    # By the element in the first place, the last place and the place between them.
    "sort": (lambda x: xp.sort(x, axis=-1), lambda x: np.sort(x, axis=-1), [[1.0, 3.0, -2.0], WEIGHTS]),
    "median": (lambda x: np.median(x, axis=-1, keepdims=True),) * 2 + ([[0.0] * 3] * 2,),
    "maximum": (lambda x: np.maximum(x, 3.5),) * 2 + ([[0.0, 0.0, 3.0], [0.0] * 3],),
}


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("scale", [1.0, WEIGHTS], ids=["of an input", "behind a product"])
@pytest.mark.parametrize("copies", [1, 6000], ids=["small", "large"])
@pytest.mark.parametrize("name", SELECTED)
def test_derivatives_of_rows_with_nan_agree(name: str, copies: int, scale: Any):
    f, of_numpy, by_nan = SELECTED[name]

    def alone(x: Any) -> Any:
        return xp.sum(f(x * scale / scale) * WEIGHTS)

    def less(x: Any) -> Any:
        y = x * scale
        return xp.sum((y - f(y)) * WEIGHTS)

    rows = np.tile(WITH_NAN, (copies, 1))
    finite, step = WITH_NAN[[0, 3]], 1e-6
    of_weights = np.stack(
        [
            np.sum((of_numpy(finite + d) - of_numpy(finite - d)) * WEIGHTS, axis=-1) / (2 * step)
            for d in step * np.eye(3)
        ]
    )
    gradient = ox.grad(alone)(rows)
    np.testing.assert_allclose(gradient[[1, 2]], by_nan)
    np.testing.assert_allclose(gradient[[0, 3]], of_weights.T, atol=1e-7)
    for function in (ox.grad(alone), ox.grad(less), ox.value_and_grad(less)):
        g = ox.record(function, audit="always")
        for x in (rows, rows[::-1].copy(), np.nan_to_num(rows), rows):
            for found, expected in zip(tree.leaves(g(x)), tree.leaves(function(x)), strict=True):
                assert is_alike(found, expected), g.why
        assert g.replays > 0 or (name, copies) == ("median", 6000), g  # which looks at its values
    np.testing.assert_allclose(ox.grad(less)(rows)[[1, 2]], WEIGHTS * scale - scale * np.array(by_nan))
