"""Cotangents of slices and rows, which are accumulated into elements of the sum: cost, sums, and the memory that is written."""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import _core, xp
from oxigrad.testing import check_grads

_libc = ctypes.CDLL(None)
_libc.malloc.restype = _libc.calloc.restype = _libc.realloc.restype = ctypes.c_void_p
_Malloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_Calloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
_Realloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_Free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


class _Handler(ctypes.Structure):
    """``PyDataMem_Handler`` of NumPy's C interface: what it takes the memory of arrays from."""

    _fields_ = [
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        ("malloc", _Malloc),
        ("calloc", _Calloc),
        ("realloc", _Realloc),
        ("free", _Free),
    ]


_allocated = [0]


def _count(size: int) -> None:
    _allocated[0] += size


def _malloc(_: Any, size: int) -> int:
    _count(size)
    return _libc.malloc(ctypes.c_size_t(size))


def _calloc(_: Any, count: int, size: int) -> int:
    _count(count * size)
    return _libc.calloc(ctypes.c_size_t(count), ctypes.c_size_t(size))


def _realloc(_: Any, pointer: int, size: int) -> int:
    _count(size)
    return _libc.realloc(ctypes.c_void_p(pointer), ctypes.c_size_t(size))


def _free(_: Any, pointer: int, __: int) -> None:
    _libc.free(ctypes.c_void_p(pointer))


# An array frees its memory by what it was allocated with, so that the handler stays.
_handler = _Handler(b"counting", 1, None, _Malloc(_malloc), _Calloc(_calloc), _Realloc(_realloc), _Free(_free))
_SET_HANDLER = 304  # in the table of functions of NumPy's C interface


@contextmanager
def counted_bytes() -> Iterator[Callable[[], int]]:
    """Counts the bytes that NumPy allocates for arrays."""
    multiarray: Any = np._core._multiarray_umath  # type: ignore[attr-defined]
    api = ctypes.pythonapi
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_New.restype = ctypes.py_object
    table = api.PyCapsule_GetPointer(ctypes.py_object(multiarray._ARRAY_API), None)
    functions = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))
    set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(functions[_SET_HANDLER])
    before = set_handler(api.PyCapsule_New(ctypes.byref(_handler), b"mem_handler", None))
    start = _allocated[0]
    try:
        yield lambda: _allocated[0] - start
    finally:
        set_handler(before)


WIDTH = 256


def bytes_of_gradient(f: Callable[[Any], Any], n: int) -> int:
    """The number of bytes that NumPy allocates in a replay of ``f`` on ``n`` rows too large for its cache."""
    x = np.random.default_rng(0).standard_normal((n, WIDTH))
    with ox.Tape() as tape:
        variable = tape.watch(x)
        y = f(variable)
    with counted_bytes() as count:
        (found,) = tape.gradient(y, [variable])
        assert found.shape == x.shape
        return count()


def test_the_count_of_bytes_counts() -> None:
    with counted_bytes() as count:
        np.zeros(10_000)
        assert 80_000 <= count() < 90_000


def _recurrent(x: Any) -> Any:
    h, states = np.zeros(WIDTH), []
    for at in range(x.shape[0]):
        h = xp.tanh(x[at] + 0.5 * h)
        states.append(h)
    return xp.sum(xp.stack(states))


LINEAR_TIME = {
    "items": lambda x: xp.sum(xp.stack([x[at] for at in range(x.shape[0])])),
    "iteration": lambda x: xp.sum(xp.stack(list(x))),
    "slices": lambda x: xp.sum(xp.concat([x[at : at + 1] for at in range(x.shape[0])])),
    "pairs": lambda x: xp.sum(xp.stack([x[at] * x[at - 1] for at in range(x.shape[0])])),
    "gathered rows": lambda x: xp.sum(xp.stack([x[np.array([at, 0, at])] for at in range(x.shape[0])])),
    "unstack": lambda x: xp.sum(xp.concat(xp.unstack(x))),
    "recurrent net": _recurrent,
}


@pytest.mark.parametrize("n", [20, 80, 320])
@pytest.mark.parametrize("f", LINEAR_TIME.values(), ids=LINEAR_TIME)
def test_memory_of_the_gradient_of_all_items_is_linear_in_their_number(f, n) -> None:
    assert bytes_of_gradient(f, n) <= 5 * n * WIDTH * 8


def scattered(shape: tuple[int, ...], terms: list[tuple[Any, np.ndarray]]) -> np.ndarray:
    total = np.zeros(shape)
    for key, g in terms:
        np.add.at(total, key, g)
    return total


KEYS = [
    (0,),
    (slice(1, 3),),
    (-1, slice(None, None, -2)),
    (..., 0),
    (2, 1, 1),
    (slice(None), None, 1),
    ([0, 2, 2],),
    (np.array([True, False, True]),),
    (slice(0, 0),),
    (...,),
]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("seed", range(12))
def test_terms_of_many_keys_add_up(seed, dtype) -> None:
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((3, 2, 4)).astype(dtype)
    keys = [KEYS[at] for at in generator.integers(len(KEYS), size=8)]
    weights = [generator.integers(-4, 5, np.shape(x[key])).astype(dtype) for key in keys]  # whose sums are exact
    with ox.Tape() as tape:
        variable = tape.watch(x)
        terms = [xp.sum(variable[key] * weight) for key, weight in zip(keys, weights, strict=True)]
        whole = xp.sum(variable * 2) if seed % 2 else 0.0
        y = sum(terms[:4], whole) + sum(terms[4:]) + (xp.sum(variable * 3) if seed % 3 else 0.0)
    (found,) = tape.gradient(y, [variable], np.ones((), dtype))
    assert found.dtype == dtype
    expected = scattered(x.shape, list(zip(keys, (weight.real for weight in weights), strict=True)))
    np.testing.assert_array_equal(found, expected + 2 * (seed % 2) + 3 * bool(seed % 3))


def test_second_order() -> None:
    x = np.random.default_rng(3).standard_normal((4, 3))
    check_grads(
        lambda x: xp.sum(x[0] * x[1] * x[0, 0]) + xp.sum(x[[1, 1, 3]] ** 3) + xp.sum(x[::2]) ** 2, (x,), order=2
    )


# --- the memory that is written ----------------------------------------------------------------------------------------


def test_a_cotangent_of_the_user_is_not_written() -> None:
    with ox.Tape() as tape:
        x = tape.watch(np.arange(3.0))
        first, last = x[0] * 2.0, x[1:] * 3.0
    whole = np.ones(3)
    (found,) = tape.pull([(x, whole), (first, np.float64(1.0)), (last, np.ones(2))], [x])
    np.testing.assert_array_equal(found, [3.0, 4.0, 4.0])
    np.testing.assert_array_equal(whole, 1.0)


def test_a_cotangent_that_another_entry_has_is_not_written() -> None:
    c = np.array([1.0, 2.0, 3.0])
    with ox.Tape() as tape:
        x, w = tape.watch(np.arange(3.0)), tape.watch(np.arange(3.0))
        first = x[0] * 10.0
        z = x + w
        y = xp.sum(z * c) + first
    for release in (False, True):
        gx, gw, gz = tape.gradient(y, [x, w, z], release=release)
        np.testing.assert_array_equal(gx, [11.0, 2.0, 3.0])
        np.testing.assert_array_equal(gw, c)
        np.testing.assert_array_equal(gz, c)


def test_a_view_of_a_cotangent_is_not_written() -> None:
    with ox.Tape() as tape:
        x = tape.watch(np.zeros((2, 3)))
        first = x[0, 0] * 5.0
        z = xp.reshape(x, (6,))
        y = xp.sum(z * np.arange(6.0)) + first
    gx, gz = tape.gradient(y, [x, z])
    np.testing.assert_array_equal(gx, [[5.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
    np.testing.assert_array_equal(gz, np.arange(6.0))


def test_parts_of_a_stack_that_are_the_same_entry_add_up() -> None:
    with ox.Tape() as tape:
        x = tape.watch(np.zeros(2))
        y = xp.stack([x, x, x])
        first = x[0]
    g = np.arange(6.0).reshape(3, 2)
    (found,) = tape.pull([(y, g), (first, np.float64(1.0))], [x])
    np.testing.assert_array_equal(found, [7.0, 9.0])
    np.testing.assert_array_equal(g, np.arange(6.0).reshape(3, 2))


def test_gradients_of_two_replays_are_apart() -> None:
    with ox.Tape() as tape:
        x = tape.watch(np.zeros(3))
        y = x[0] * 2.0 + x[1]
    (one,) = tape.gradient(y, [x])
    (other,) = tape.gradient(y, [x])
    one[:] = 9.0
    np.testing.assert_array_equal(other, [2.0, 1.0, 0.0])
    np.testing.assert_array_equal(tape.gradient(y, [x])[0], [2.0, 1.0, 0.0])


def test_large_sums_that_are_computed_later() -> None:
    """Cotangents of large arrays may wait to be computed: they are, before a slice is added."""
    x = np.random.default_rng(0).uniform(1.0, 2.0, 40_000)
    with ox.Tape() as tape:
        variable = tape.watch(x)
        ends = variable[:2] * 7.0
        y = xp.sum(xp.sin(variable) * variable) + xp.sum(ends) + variable[-1] * 3.0
        y = y + xp.sum(xp.cos(variable))
    (found,) = tape.gradient(y, [variable])
    expected = np.cos(x) * x + np.sin(x) - np.sin(x)
    expected[:2] += 7.0
    expected[-1] += 3.0
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def _indices(*shape: int, of: int = 4) -> np.ndarray:
    return np.random.default_rng(len(shape)).integers(-of, of, shape)


_STEPPED, _INT32 = _indices(12)[::2], _indices(6).astype(np.int32)
#: Keys of an array of shape (4, 4, 4): by the core, or by NumPy where indices are not adjacent, contiguous, int64 and of one shape.
ROW_KEYS: list[Any] = [
    _indices(6),
    _indices(2, 3),
    _indices(0),
    (_indices(6), ...),
    (_indices(6), slice(None)),
    (slice(None), _indices(6)),
    (slice(None), slice(None), _indices(2, 3)),
    (_indices(6), _indices(6)),
    (slice(None), _indices(6), _indices(6)),
    (_indices(6), _indices(6), _indices(6)),
    (_indices(6), _indices(6), _indices(6), ...),
    (..., _indices(6)),
    (_indices(6), slice(None), _indices(6)),
    (_indices(6), slice(1, 3)),
    (_indices(3, 1), _indices(1, 2)),
    (_indices(6), 2),
    (_indices(6), None),
    _STEPPED,
    _INT32,
    np.array([True, False, True, True]),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("key", ROW_KEYS, ids=range(len(ROW_KEYS)))
def test_rows_by_integers_are_added_as_numpy_adds_them(key: Any, dtype: Any) -> None:
    x = np.random.default_rng(0).standard_normal((4, 4, 4)).astype(dtype)
    g = np.random.default_rng(1).standard_normal(x[key].shape).astype(dtype)
    once, twice = np.zeros_like(x), np.zeros_like(x)
    np.add.at(once, key, g)
    for _ in range(2):
        np.add.at(twice, key, g)
    for expected, f in [(once, lambda x: x[key]), (twice, lambda x: (x[key], x[key]))]:
        pulled = ox.vjp(f, x)[1]((g, g) if expected is twice else g)
        pulled = pulled[0] if isinstance(pulled, tuple) else pulled
        assert pulled.dtype == dtype
        np.testing.assert_array_equal(pulled, expected, strict=True)


def test_an_index_out_of_bounds_is_numpys_error_before_a_write() -> None:
    total, g = np.ones((4, 4)), np.ones((2, 4))
    for index in (4, -5):
        with pytest.raises(IndexError, match="out of bounds"):
            _core.scatter_into(total, g, np.array([0, index]), (4, 4))
    np.testing.assert_array_equal(total, np.ones((4, 4)))
