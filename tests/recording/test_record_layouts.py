"""Random functions of arrays in every layout: a replay has the bits of the function, in whatever memory its arguments lie.

Sums depend on the order in which numbers lie in memory. Each call draws the layout of each argument anew, so that most replays are of
other layouts than the recording.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_record import agrees

import oxigrad as ox
from oxigrad import xp

SEEDS = 24
ROUNDS = 6


def _within(x: Any) -> Any:
    """A part of a larger array."""
    larger = np.zeros([extent + 3 for extent in x.shape], x.dtype)
    part = larger[tuple(slice(1, extent + 1) for extent in x.shape)]
    part[...] = x
    return part


def _strided(x: Any, step: int = 2) -> Any:
    """Every second element of a larger array, along each axis; with a negative step, backwards."""
    larger = np.zeros([extent * 2 for extent in x.shape], x.dtype)
    part = larger[(slice(None, None, step),) * x.ndim]
    part[...] = x
    return part


def _unaligned(x: Any) -> Any:
    memory = np.zeros(x.nbytes + 1, np.uint8)
    array = memory[1:].view(x.dtype).reshape(x.shape)
    array[...] = x
    return array


def _read_only(x: Any) -> Any:
    array = x.copy()
    array.flags.writeable = False
    return array


def _permuted(x: Any, axes: tuple[int, ...]) -> Any:
    """The array in the order in memory of these axes."""
    inverse = tuple(np.argsort(axes))
    return np.ascontiguousarray(x.transpose(axes)).transpose(inverse)


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "in order": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "a transposed view": lambda x: np.array(x.T).T,
    "the last axes swapped": lambda x: _permuted(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)[: x.ndim]),
    "the axes rolled": lambda x: _permuted(x, (*range(1, x.ndim), 0)),
    "backwards": lambda x: np.array(np.flip(x))[(slice(None, None, -1),) * x.ndim],
    "the first axis backwards": lambda x: np.array(x[::-1])[::-1],
    "Fortran and the last axis backwards": lambda x: np.array(x[..., ::-1], order="F")[..., ::-1],
    "a part": _within,
    "a part of Fortran order": lambda x: _within(x.T).T,
    "every second element": _strided,
    "every second element, backwards": lambda x: _strided(x, -2),
    "one row, repeated": lambda x: np.broadcast_to(x[:1], x.shape),
    "one column, repeated": lambda x: np.broadcast_to(x[..., :1], x.shape),
    "one number, repeated": lambda x: np.broadcast_to(x[(slice(1),) * x.ndim], x.shape),
    "not aligned": _unaligned,
    "read only": _read_only,
}
OF_OTHER_BYTES = {"of the other byte order": lambda x: x.astype(x.dtype.newbyteorder("S"))}
SHAPES = [(80, 70), (3, 5), (18, 17, 16), (3, 4, 2), (4100,), (7,), (1, 6), (5, 1), (1, 1), (0, 4), (3, 0), (2, 1, 3)]


def source(seed: int, shape: tuple[int, ...]) -> str:
    """The lines of a function of two arrays of one shape, a vector and a number, over the functions of `xp` and of NumPy."""
    draw = random.Random(seed)
    lines, arrays, columns, numbers = ["def f(x, y, v, s):"], ["x", "y"], [], ["s"]
    names, ndim = (f"t{at}" for at in itertools.count()), len(shape)
    axes, letters = list(range(ndim)), "ijk"[:ndim]
    reductions = "sum mean max".split() if 0 not in shape else ["sum"]
    for _ in range(draw.randrange(3, 12)):
        a, b, n = draw.choice(arrays), draw.choice([*arrays, *columns, "v"]), draw.choice(numbers)
        turn = draw.sample(axes, ndim)
        back = tuple(sorted(axes, key=turn.__getitem__))
        order, axis = draw.choice("CFAK"), draw.choice(axes)
        mixed = "".join(draw.sample(letters, ndim))
        into = tuple(map(mixed.index, letters))
        makes = {
            "array": [
                f"xp.{draw.choice('sin tanh exp square negative abs'.split())}({a} * 0.5)",
                f"np.{draw.choice('sin tanh exp square negative abs'.split())}({a})",
                f"{a} {draw.choice('+-*')} {b}",
                f"{a} / ({b} * {b} + 1.0)",
                f"{a} * {n} + 0.5",
                f"xp.maximum({a}, {b})",
                f"xp.where({a} > {b}, {a}, {n})",
                f"xp.reshape({a}, {a}.shape)",
                f"xp.permute_dims(xp.permute_dims({a}, {tuple(turn)}) * {n}, {back})",
                f"xp.permute_dims(xp.sin(xp.permute_dims({a}, {tuple(turn)})), {back})",
                f"({a}.T * 2.0).T",
                f"({a}.T + xp.broadcast_to({b}, {a}.shape).T).T",
                f"xp.broadcast_to({b}, {a}.shape)",
                f"xp.broadcast_to({b}, {a}.shape) * {a}",
                f"xp.flip({a}, axis={axis})",
                f"{a}[::-1] * {n}",
                f"xp.concat([{a}[1:], {a}[:1] * {n}])",
                f"xp.zeros_like({a}) + {b}",
                f"xp.ones_like({a}) * {a}",
                f"xp.zeros_like({a}.T).T + {a}",
                f"xp.roll({a}, 1, axis={axis})",
                f"np.copy({a}, order={order!r})",
                f"{a}.copy(order={order!r}) * {n}",
                f"xp.reshape(xp.ravel({a}, order={order!r}), {a}.shape)",
                f"np.ravel({a}, order={order!r}).reshape({a}.shape)",
                f"{a}.flatten({order!r}).reshape({a}.shape, order='F')",
                f"xp.asarray({a}) * {n}",
                f"xp.cumulative_sum({a}, axis={axis}) * 0.1",
                f"xp.reshape(xp.reshape({a}, (-1,)) * {n}, {a}.shape)",
                f"xp.permute_dims(xp.einsum('{letters}->{mixed}', {a}), {into})",
                f"np.transpose(np.einsum('{letters}->{mixed}', {a}), {into})",
                f"xp.stack([{a}, {a} * 0.5], axis={axis})[{':, ' * axis}1]",
            ],
            "column": [
                f"xp.{draw.choice(reductions)}({a} * {b}, axis={axis}, keepdims=True)",
                f"xp.{draw.choice(reductions)}({a}, axis={axis}, keepdims=True)",
            ],
            "number": [
                f"xp.{draw.choice(reductions)}({a} * {b})",
                f"xp.sum({a}) * 0.01",
                f"xp.sum({a}.T * {n}) * 0.01",
                f"xp.sum(xp.reshape({a}, (-1,))[:5])",
                f"xp.vecdot(xp.reshape({a}, (-1,)), xp.reshape({b} * xp.ones_like({a}), (-1,))) * 0.01",
                f"xp.einsum('{letters},{letters}->', {a}, {a}) * 0.01",
                f"xp.sin({n}) * {draw.choice(numbers)}",
            ],
        }
        kind = draw.choice(["array", "array", "array", "column", "number"])
        name = next(names)
        lines.append(f"    {name} = {draw.choice(makes[kind])}")
        {"array": arrays, "column": columns, "number": numbers}[kind].append(name)
    total = " + ".join(f"xp.sum({name})" for name in (*arrays[-3:], *columns[-2:])) + f" + {numbers[-1]}"
    last = f", {arrays[-1]}" if seed % 2 else ""
    return "\n".join([*lines, f"    return {total}{last}"])


def recorded_with_its_bits(seed: int, transform: Callable[[Any], Any], layouts: dict[str, Callable[[Any], Any]]) -> Any:
    """The recording of a transformed random function, which has its bits in all calls."""
    draw = random.Random(seed)
    shape, dtype = SHAPES[seed % len(SHAPES)], draw.choice(["f4", "f8"])
    number = draw.choice([float, np.float64, np.array, np.dtype(dtype).type])
    text = source(seed, shape)
    space: dict[str, Any] = {"xp": xp, "np": np}
    exec(text, space)  # noqa: S102 - of this test's own
    f, rng = transform(space["f"]), np.random.default_rng(seed)
    g = ox.record(f, limit=100)
    for round_ in range(ROUNDS):
        names = [draw.choice([*layouts]) for _ in range(3)]
        x, y, v = (
            layouts[name](rng.normal(size=size).astype(dtype))
            for name, size in zip(names, (shape, shape, shape[-1:]), strict=True)
        )
        with np.errstate(all="ignore"):
            assert agrees(g, f, x, y, v, number(0.3 + 0.2 * round_)), (names, shape, dtype, text)
    return g


def _first(f: Any) -> Any:
    """The number among the results."""

    def first(*args: Any) -> Any:
        result = f(*args)
        return result[0] if isinstance(result, tuple) else result

    return first


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "the function": lambda f: f,
    "gradients": lambda f: ox.grad(_first(f), argnums=(0, 1, 2, 3)),
    "value and gradients": lambda f: ox.value_and_grad(_first(f), argnums=(0, 1, 2)),
    "derivatives of gradients": lambda f: (
        lambda x, y, v, s: ox.jvp(ox.grad(_first(f), argnums=(0, 3)), (x, y, v, s), (x, y, v, s))
    ),
    "examples": lambda f: (
        lambda x, y, v, s: ox.vmap(lambda a, b: _first(f)(a, b, v, s))(xp.stack([x, y * 0.5]), xp.stack([y, x * 0.5]))
    ),
}
REFUSAL = "the function depends on the order in memory of an array that is not contiguous"


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_replays_of_arrays_in_other_layouts_have_the_bits_of_the_function(seed, transform):
    g = recorded_with_its_bits(seed, TRANSFORMS[transform], LAYOUTS)
    assert all(reason.startswith(REFUSAL) for reason in g._refused.values()), g


@pytest.mark.parametrize("seed", range(SEEDS, 2 * SEEDS))
def test_replays_of_arrays_in_the_other_byte_order_have_the_bits_of_the_function(seed):
    g = recorded_with_its_bits(seed, TRANSFORMS["the function"], {**LAYOUTS, **OF_OTHER_BYTES})
    assert all(reason.startswith(REFUSAL) for reason in g._refused.values()), g


# --- what the search has found ------------------------------------------------------------------------------------------------

FOUND: dict[str, Callable[..., Any]] = {
    "zeros like an array": lambda x, y, s: xp.sum(xp.zeros_like(x.T).T + y),
    "ones like a result": lambda x, y, s: xp.sum(xp.ones_like(x * s) * y),
    "filled like an array": lambda x, y, s: xp.sum(xp.full_like(x, 0.1) + y),
    "repeated to the same shape": lambda x, y, s: xp.sum((x.T + xp.broadcast_to(y, x.shape).T).T),
    "sums of permuted arrays of three axes": lambda x, y, s: xp.sum(xp.zeros_like(xp.sum(x, axis=0)) + y[0] * s),
    "the order of memory": lambda x, y, s: xp.ravel(x, order="K") * xp.ravel(y, order="A") * s,
    "the order of memory of results": lambda x, y, s: xp.ravel(xp.sin(x * s), order="K") + xp.ravel(y.T, order="A"),
}


@pytest.mark.parametrize("shape", [(3, 5), (80, 70), (5, 4, 3)])
@pytest.mark.parametrize("name", FOUND)
@pytest.mark.one_in(4)
def test_layouts_that_a_replay_could_take_for_another(name, shape):
    f, rng = FOUND[name], np.random.default_rng(0)
    for (_, first), (_, second) in itertools.product(LAYOUTS.items(), repeat=2):
        g = ox.record(f, limit=20)
        for layout in (first, second, first):
            x, y = (rng.normal(size=shape).astype("f4") for _ in range(2))
            assert agrees(g, f, layout(x), first(y), 0.3)
            assert agrees(g, f, first(x), layout(y), 0.3)


def test_an_order_in_memory_that_each_replay_has_is_recorded():
    def f(x: Any) -> Any:
        return xp.ravel(xp.exp(x), order="K") * xp.ravel(x, order="A")

    g = ox.record(f)
    x = np.arange(12.0).reshape(3, 4)
    for _ in range(2):
        assert agrees(g, f, x)
    assert g.why is None
    assert agrees(g, f, x.T)
    assert REFUSAL in str(g.why)


def _mixed(x: Any, w: Any) -> Any:
    """A block of attention and a norm: values in other orders, and in order again."""
    split = xp.permute_dims(xp.reshape(x @ w, (*x.shape[:2], 2, -1)), (0, 2, 1, 3))
    shares = xp.exp(split @ xp.matrix_transpose(split) / 4.0)
    shares = shares / xp.sum(shares, axis=-1, keepdims=True)
    mixed = xp.reshape(xp.permute_dims(shares @ split, (0, 2, 1, 3)), x.shape)
    y = x + mixed @ w - xp.mean(mixed, axis=-1, keepdims=True)
    return xp.sum(xp.broadcast_to(xp.mean(y * y, axis=-1, keepdims=True), x.shape) * y)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(3, 5, 8), (4, 33, 16), (1, 64, 128), (2, 1, 4)])
def test_values_in_order_again_are_computed_in_runs(shape, dtype):
    f, rng = ox.value_and_grad(_mixed, argnums=(0, 1)), np.random.default_rng(0)
    g = ox.record(f)
    for layout in (np.ascontiguousarray, np.ascontiguousarray, np.asfortranarray, lambda x: _permuted(x, (1, 0, 2))):
        x, w = (rng.normal(size=size).astype(dtype) for size in (shape, (shape[-1],) * 2))
        assert agrees(g, f, layout(x), w)
    in_runs = {at for run in g.recordings[0].runs() for at in run}
    lines = g.recordings[0].printed(True).splitlines()
    calls = [at for at, line in enumerate(lines) if re.search(r"= (rule\.)?(divide|multiply|add|subtract)\(", line)]
    assert len(in_runs.intersection(calls)) > len(calls) / 2, g.recordings[0].printed(True)


NUMBERS = [0.3, np.float64(0.3), np.float32(0.3), np.array(0.3), np.array(0.3, np.float32)]
OF_NUMBERS: dict[str, Callable[[Any, Any], Any]] = {
    "unused": lambda x, s: xp.sum(x * x),
    "alone": lambda x, s: xp.real(s),
    "added": lambda x, s: xp.sum(x) + xp.real(s),
    "a factor": lambda x, s: xp.sum(x) * xp.real(s),
    "in a branch": lambda x, s: xp.sum(x) * (2.0 if xp.real(s) > 0 else 1.0),
}


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: f"{type(number).__name__}-{number}")
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_derivatives_of_numbers_are_recorded_in_their_classes(name, number):
    """Zeros of a number that is not used are a number, and the first cotangent of a scalar of NumPy is one."""
    for argnums in (1, (0, 1)):
        f = ox.grad(OF_NUMBERS[name], argnums=argnums)
        g = ox.record(f)
        for at in range(3):
            assert agrees(g, f, np.arange(3.0) + at, number)
        assert g.why is None, g


@pytest.mark.parametrize("layout", ["in order", "Fortran", "every second element", "backwards"])
def test_a_loaded_recording_has_the_bits_of_its_constants_and_of_contiguous_arguments(layout, tmp_path):
    weight = LAYOUTS[layout](np.random.default_rng(1).normal(size=(40, 30)))
    f = ox.grad(lambda x, s: xp.sum(xp.tanh(x @ weight) * s) + xp.sum(xp.permute_dims(x, (1, 0)) * s), argnums=(0, 1))
    g, rng = ox.record(f), np.random.default_rng(0)
    g(rng.normal(size=(60, 40)), 0.5)
    g.save(tmp_path / "file")
    loaded = ox.load_recording(tmp_path / "file")
    for of in LAYOUTS.values():
        x = of(rng.normal(size=(60, 40)))
        assert agrees(loaded, f, np.ascontiguousarray(x), 0.7)
        assert agrees(lambda *args: loaded(*args), lambda x, s: f(np.ascontiguousarray(x), s), x, 0.7)


SINGLES = [np.float32(0.35), np.array(0.35, "f4"), np.linspace(0.1, 1.7, 70, dtype="f4")]
OF_SINGLES = {
    "power": lambda x, c: x**c,
    "power of a float": lambda x, c: c**x,
    "atan2": lambda x, c: xp.atan2(c, x),
    "hypot": lambda x, c: xp.hypot(x, c),
    "quotient": lambda x, c: c / x,
}


@pytest.mark.parametrize("argnums", [0, 1])
@pytest.mark.parametrize("x", SINGLES, ids=["scalar", "no dimensions", "array"])
@pytest.mark.parametrize("name", OF_SINGLES)
def test_floats_beside_float32_have_their_bits_in_derivatives(name, x, argnums):
    """A rule is computed in the precision of all of its operands: differences of floats alone, too."""
    f = OF_SINGLES[name]
    h = ox.grad(lambda x, c: xp.sum(f(x, c)), argnums=argnums)
    for first in (2.6, 0.3, 1.7, -1.3, 1e-3, 3.1):
        g = ox.record(h, audit="never")
        for c in (first, first + 0.1, first * 0.7):
            with np.errstate(all="ignore"):
                # A NaN may have another sign.
                one, other = (
                    np.where(np.isnan(y), np.nan, y).astype(y.dtype) for y in map(np.asarray, (g(x, c), h(x, c)))
                )
            assert one.dtype == other.dtype
            assert one.tobytes() == other.tobytes()
