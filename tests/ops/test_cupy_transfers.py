"""Copies of CuPy's arrays: on streams that are late, into page-locked memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from late_cupy import Array, CuPy

from oxigrad.ops.backends.cupy import CuPyAdapter
from oxigrad.ops.backends.memory.cupy_transfers import CuPyTransfers


class Adapter(CuPyAdapter):
    """CuPy's adapter, over its emulation."""

    def __init__(self, cupy: CuPy) -> None:
        self.cupy = cupy

    def to_host(self, array: Any) -> np.ndarray:
        return array.array.copy()

    def from_host(self, array: np.ndarray, like: Any) -> Any:
        return Array(array.copy())

    def assign(self, target: Any, value: Any) -> None:
        target.array[...] = value.array


@pytest.fixture
def cupy() -> CuPy:
    return CuPy()


def numbers(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


LAYOUTS = [
    numbers((3, 4)),
    numbers((3, 4)).T,
    numbers((2, 5, 3, 4)).transpose(0, 2, 3, 1),  # channels last
    numbers(()),
    numbers((1, 7), np.float64),
]


@pytest.mark.parametrize("array", LAYOUTS, ids=lambda array: f"{array.shape} {array.strides}")
def test_copies_are_done_when_they_are_waited_for(array: np.ndarray, cupy: CuPy) -> None:
    there, expected = Array(array.copy(order="K")), array.copy(order="K")
    copies: CuPyTransfers = Adapter(cupy).transfers(there)
    here = copies.like(there)
    assert (here.shape, here.dtype, here.strides) == (there.shape, there.dtype, there.strides)
    assert cupy.pinned == [array.nbytes]
    here[...] = 7
    end = copies.copy_down(there, here)
    assert not end.is_done()
    assert np.all(here == 7)
    end.wait()
    assert end.is_done()
    assert np.array_equal(here, expected)
    here += 1
    end = copies.copy_up(here, there)
    assert np.array_equal(there.array, expected)
    end.wait()
    assert np.array_equal(there.array, here)
    assert not any(stream.is_blocking for stream in cupy.streams)


def test_copies_follow_the_work_before_the_mark_and_precede_that_after_the_join(cupy: CuPy) -> None:
    there = Array(numbers((5,)), 1)
    copies = Adapter(cupy).transfers(there)
    here = copies.like(there)
    current = cupy.current[1]
    current.work.append(lambda: there.array.fill(3))
    copies.mark()
    copies.copy_down(there, here).wait()
    assert np.all(here == 3)
    here.fill(4)
    copies.copy_up(here, there)
    copies.join()
    current.work.append(lambda: there.array.__imul__(2))
    assert np.all(there.array == 3)
    current.record().synchronize()
    assert np.all(there.array == 8)
    assert cupy.entered == []


def test_the_directions_overlap(cupy: CuPy) -> None:
    one, other = Array(numbers((5,))), Array(numbers((5,)))
    copies = Adapter(cupy).transfers(one)
    here, there = copies.like(one), copies.like(other)
    there.fill(2)
    down, up = copies.copy_down(one, here), copies.copy_up(there, other)
    up.wait()
    assert np.all(other.array == 2)
    assert not down.is_done()
    down.wait()


def test_arrays_with_gaps_and_empty_ones_are_copied_at_once(cupy: CuPy) -> None:
    for array in (numbers((6, 4))[::2], numbers((4,))[::-1], numbers((0, 3))):
        there, expected = Array(array), array.copy()
        copies = Adapter(cupy).transfers(there)
        here = copies.like(there)
        assert copies.copy_down(there, here).is_done()
        assert np.array_equal(here, expected)
        assert copies.copy_up(here + 1, there).is_done()
        assert np.array_equal(there.array, expected + 1)
        assert all(stream.finished == len(stream.work) == 0 for stream in cupy.streams)
