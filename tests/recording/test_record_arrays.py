"""Arrays that a recorded function makes and writes to: the function's bits at the first call and in replays, through views too."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_record import agrees, equal

import oxigrad as ox
from cases import CASES
from oxigrad import tree, xp

X = np.random.default_rng(0).normal(size=(3, 4))
SHIFT = np.arange(4.0)


def filled_in(x: Any) -> Any:
    """A copy that the function makes of an array; anything else as it is."""
    return xp.zeros_like(x) + x if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x


@pytest.mark.parametrize("case", CASES, ids=str)
def test_functions_of_arrays_that_the_function_makes_have_their_bits(case):
    """NumPy computes what it computes without a recording: no composition of ops with other last bits."""

    def f(*args: Any) -> Any:
        return case.function(*tree.map(filled_in, args))

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        g = ox.record(f)
        for _ in range(3):
            assert agrees(g, f, *case.args)


def rows(x: Any) -> Any:
    new = xp.zeros_like(x)
    for at in range(3):
        new[at] = x[at] * 2.0
    return new


def columns(x: Any) -> Any:
    new = xp.empty(x.shape)
    new[...] = x
    new[:, 1:] *= x[:, :-1]
    new[:, 0] += 1.0
    return new


def view_before_a_write(x: Any) -> Any:
    new = x * 2.0
    row = new[1]
    new[1, 2] = x[0, 0]
    return row * 1.5, new


def write_to_a_view(x: Any) -> Any:
    new = x * 2.0
    row = new[1]
    row[1:] = x[0, 1:]
    row += x[2]
    return new, row


def views_of_views(x: Any) -> Any:
    new = xp.exp(x)
    part = new[1:][:, 1:]
    part[0] = 3.0
    new[2] = x[0]
    part *= x[1:, 1:]
    return new, part + 0.0


def transposed_view(x: Any) -> Any:
    new = x + 1.0
    turned, flat = new.T, xp.reshape(new, (-1,))
    new[0] = x[1] * 0.5
    return turned * 2.0, flat + 0.0


def write_to_other_shapes(x: Any) -> Any:
    new = x * 2.0
    flat, column = new.reshape(-1), np.expand_dims(new[0], 1)
    flat[1:3] = x[1, :2]
    column[2] = 3.0
    new.ravel()[...] += x[2, 0]
    np.squeeze(new[None])[0, 0] = x[2, 1]
    return new, flat + 0.0, column * 2.0


def in_other_dtypes(x: Any) -> Any:
    new = xp.astype(x, xp.float32)
    new += x
    new[1] = x[0]
    return new


def overlapping(x: Any) -> Any:
    new = x * 1.0
    new[1:] = new[:-1]
    new[:, 1:] = new[:, :-1] * 0.5
    return new


def elements(x: Any) -> Any:
    new, order = x * 1.0, np.argsort(x[0])
    new[0, order] = x[1]
    new[new < 0.0] = 0.25
    return new


def sum_in_place(x: Any) -> Any:
    total = xp.zeros(4)
    for row in x:
        total += row * row
        total *= 0.5
    return total


def gradient_in_place(x: Any) -> Any:
    w = x * 1.0
    for _ in range(3):
        gradient = ox.grad(lambda w: xp.sum((w - x[0]) ** 2))(w)
        gradient += 0.1 * w
        w -= 0.1 * gradient
    return w


def through_numpy(x: Any) -> Any:
    new = np.zeros_like(x)
    new[0] = np.cumsum(x[0])
    return np.vdot(new, x), np.add.reduce(new), np.median(new + x, axis=0)


def two_names(x: Any) -> Any:
    new = x * 1.0
    other = new
    other -= 1.0
    copied = new.copy()
    new[0] = 0.0
    return new, copied


def reshaped(x: Any) -> Any:
    """Writes through views in other shapes, also of views, with values that are cast and repeated."""
    new = xp.zeros((12, 1)).reshape(3, 4)
    new[...] = x
    flat = new.reshape(-1)
    flat[3:9] *= 2.0
    flat.reshape(2, 6)[1] += x[0, 0]
    part = np.reshape(new[1:], (4, 2))
    part[...] = 1
    part[0] = x[0, :2]
    new[2, 3] = x[1, 1]
    single = xp.astype(new, xp.float32)
    single.reshape(12)[...] = x.reshape(12) * 0.1
    return new, flat * 1.0, part + 0.0, single


WRITES = [
    rows,
    reshaped,
    columns,
    view_before_a_write,
    write_to_a_view,
    views_of_views,
    transposed_view,
    write_to_other_shapes,
    in_other_dtypes,
    overlapping,
    elements,
    sum_in_place,
    gradient_in_place,
    through_numpy,
    two_names,
]


@pytest.mark.parametrize("layout", [np.array, np.asfortranarray])
@pytest.mark.parametrize("f", WRITES, ids=lambda f: f.__name__)
def test_writes_to_arrays_of_the_function_are_recorded(f: Callable[..., Any], layout: Any) -> None:
    g, h = ox.record(f, audit="never"), ox.record(f, audit="always")
    for scale in (1.0, -0.5, 2.0):
        x = layout(X * scale)
        before = x.copy()
        assert agrees(g, f, x)
        assert equal(h(x), f(x))
        assert np.array_equal(x, before)
    assert g.why is None or "check" in str(g) or layout is np.asfortranarray, g
    assert g.recordings, g


@pytest.mark.parametrize("f", WRITES, ids=lambda f: f.__name__)
def test_saved_recordings_repeat_writes(f: Callable[..., Any], tmp_path: Any) -> None:
    g = ox.record(f)
    g(X)
    g.save(tmp_path / "file")
    assert equal(ox.load_recording(tmp_path / "file")(X), f(X))


@pytest.mark.parametrize("f", [rows, columns, write_to_a_view, sum_in_place], ids=lambda f: f.__name__)
def test_derivatives_of_loaded_recordings_go_through_writes(f: Callable[..., Any], tmp_path: Any) -> None:
    def total(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x: sum(xp.sum(leaf * leaf) for leaf in tree.leaves(function(x)))

    g = ox.record(f)
    g(X)
    g.save(tmp_path / "file")
    loaded = ox.load_recording(tmp_path / "file")
    expected = np.zeros_like(X)
    for at in np.ndindex(X.shape):
        step = np.zeros_like(X)
        step[at] = 1e-6
        expected[at] = (total(f)(X + step) - total(f)(X - step)) / 2e-6
    assert np.allclose(ox.grad(total(loaded))(X), expected, rtol=1e-6, atol=1e-7)


def of_argument(x: Any) -> Any:
    x[0] = 1.0
    return x * 2.0


def of_view_of_argument(x: Any) -> Any:
    row = x[0]
    row += 1.0
    return x * 2.0


def of_captured(x: Any) -> Any:
    SHIFT[0] += 1.0
    return x * SHIFT


@pytest.mark.parametrize("f", [of_argument, of_view_of_argument, of_captured], ids=lambda f: f.__name__)
def test_writes_to_inputs_are_not_recorded_and_reach_the_callers_array(f: Callable[..., Any]) -> None:
    g = ox.record(f)
    for _ in range(4):
        mine, its, shift = X.copy(), X.copy(), SHIFT.copy()
        result = g(mine)
        after, SHIFT[...] = SHIFT.copy(), shift
        assert equal(result, f(its))
        assert equal(after, SHIFT.copy())
        assert np.array_equal(mine, its)
    assert not g.recordings
    assert "write" in str(g) or "changes" in str(g)


def test_a_write_that_numpy_refuses_raises_its_error() -> None:
    def f(x: Any) -> Any:
        new = x * 1.0
        try:
            new[0] = np.ones(7) * x[0, 0]
        except ValueError as error:
            return new, str(error)
        return new, ""

    g = ox.record(f)
    for _ in range(3):
        assert g(X)[1] == f(X)[1] != ""
        assert equal(g(X)[0], f(X)[0])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_zeros_keep_their_signs_in_sums_of_slice_cotangents(sign: float) -> None:
    """A plain cotangent of a slice is added to its elements alone, also where the sum so far depends on inputs."""
    zeros = np.zeros((3, 2))
    functions = [
        lambda x: xp.sum(x[0]) + xp.sum(zeros * x) * sign,
        lambda x: xp.sum(zeros * x) * sign + xp.sum(x[0]),
        lambda x: xp.sum(x[:1]) + xp.sum(x[0] * x[1]) + xp.sum(zeros * x) * sign,
        lambda x: xp.sum(x[0]) + xp.sum(x[0]) + xp.sum(zeros * x * x) * sign,
        lambda x: xp.sum(x[[0, 2]]) + xp.sum(zeros * x * x) * sign,
    ]
    for function in functions:
        f = ox.grad(function)
        g = ox.record(f)
        for x in (X[:, :2], X[:, :2] + 1.0, X[:, :2]):
            assert agrees(g, f, x.copy())
        assert g.why is None


def write_to_rows(x: Any) -> Any:
    new = x * 1.0
    rows = [new[at] for at in range(len(x))]
    for row in rows:
        row[0] = row[1] * 2.0
    return new


def test_entries_of_writes_are_as_many_as_the_writes() -> None:
    """Views that are alive are not read again at each write, but where they are used."""
    counts = []
    for size in (20, 40, 80):
        x = np.random.default_rng(size).normal(size=(size, 3))
        g = ox.record(write_to_rows, audit="never")
        assert agrees(g, write_to_rows, x)
        assert agrees(g, write_to_rows, x * 2.0)
        counts.append(g.recordings[0].sizes()[0])
    assert counts[2] - counts[1] == 2 * (counts[1] - counts[0])


def test_parts_that_share_memory_with_a_view_are_not_stale() -> None:
    """A write to one view changes the parts of another call, which no entry reads again."""

    def f(x: Any) -> Any:
        new = x * 1.0
        view, parts = new[0, 1:], np.split(new[0], 2)
        view[0] = x[1, 1] * 5.0
        return parts[0] * 1.0, new

    g = ox.record(f, audit="never")
    for scale in (1.0, -0.5, 2.0):
        assert agrees(g, f, X * scale)
