"""Random functions of arrays and numbers: a replay has the bits of the function, whatever is fused, deferred or dropped."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest
from test_record import agrees

import oxigrad as ox
from oxigrad import xp

SHAPES = [(80, 70), (3, 5)]
PROGRAMS = 60


def source(seed: int) -> str:
    """The lines of a function of two arrays of one shape, a vector and a number."""
    draw = random.Random(seed)
    lines, arrays, columns, numbers = ["def f(x, y, v, s):"], ["x", "y"], [], ["s"]
    names = (f"t{at}" for at in itertools.count())
    one = "sin cos tanh exp square negative abs".split()
    for _ in range(draw.randrange(4, 16)):
        a, b, n = draw.choice(arrays), draw.choice([*arrays, *columns, "v"]), draw.choice(numbers)
        makes = {
            "array": [
                f"xp.{draw.choice(one)}({a} * 0.5)",
                f"{a} {draw.choice('+-*')} {b}",
                f"{a} / ({b} * {b} + 1.0)",
                f"{a} * {n} + {draw.choice(['0.5', n])}",
                f"xp.maximum({a}, {b})",
                f"xp.where({a} > {b}, {a}, {n})",
                f"xp.reshape({a}, {a}.shape)",
                f"xp.permute_dims(xp.permute_dims({a}, (1, 0)) * {n}, (1, 0))",
                f"xp.broadcast_to({b}, {a}.shape) * {a}",
                f"xp.concat([{a}[1:], {a}[:1] * {n}])",
                f"xp.matmul({a}, xp.matmul(xp.permute_dims({a}, (1, 0)), {a})) * 1e-3",
            ],
            "column": [
                f"xp.{draw.choice(['sum', 'mean'])}({a} * {b}, axis={draw.choice([1, -1])}, keepdims=True)",
                f"{a}[:, :1] * {n}",
                f"xp.max({a}, axis=1, keepdims=True)",
            ],
            "number": [
                f"xp.mean({a} * {b})",
                f"xp.sin({n}) * {draw.choice(numbers)}",
                f"xp.sum({a}[0] * {a}[1]) * 0.1",
                f"{n} * {n} - 0.25 / ({n} * {n} + 1.0)",
                f"({n} if {n} > 0.1 else -{n})",
            ],
        }
        kind = draw.choice(["array", "array", "column", "number"])
        name = next(names)
        lines.append(f"    {name} = {draw.choice(makes[kind])}")
        {"array": arrays, "column": columns, "number": numbers}[kind].append(name)
    total = " + ".join(f"xp.mean({name})" for name in (*arrays[-3:], *columns[-2:])) + f" + {numbers[-1]}"
    return "\n".join([*lines, f"    return {total}"])


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_functions_have_their_bits_in_replays(seed):
    g = recorded_with_its_bits(seed, seed, lambda f: f)
    assert not g._refused, (g, source(seed))


def recorded_with_its_bits(seed, kinds, transform):
    """The recording of a transformed random function, which has its bits in four calls; ``kinds`` are those of shapes and dtypes."""
    space: dict[str, Any] = {"xp": xp}
    exec(source(seed), space)  # noqa: S102 - of this test's own
    f, rng = transform(space["f"]), np.random.default_rng(seed)
    shape, dtype = SHAPES[kinds % 2], "f4 f8".split()[kinds // 2 % 2]
    number = [float, np.float64, np.array, np.dtype(dtype).type][kinds // 4 % 4]
    g = ox.record(f, limit=20)
    for round_ in range(4):
        x, y, v = (rng.normal(size=size).astype(dtype) for size in (shape, shape, shape[-1:]))
        with np.errstate(all="ignore"):
            assert agrees(g, f, x, y, v, number(0.3 + 0.2 * round_)), source(seed)
    return g


def turned(x):
    return xp.permute_dims(x, (1, 0))


LAYOUTS = [
    lambda x, y, s: xp.mean(turned(turned(x) * s)),
    lambda x, y, s: xp.mean(turned(turned(turned(turned(x) * 0.3)) * s)),
    lambda x, y, s: xp.mean(turned(turned(turned(turned(x) * s)) * s)),
    lambda x, y, s: xp.mean(turned(turned(x) * s) * y),
    lambda x, y, s: xp.sum(x * s * y),
    lambda x, y, s: xp.sum(turned(turned(x) * turned(y) * s) * y),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("number", [float, np.float64, np.array])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("f", LAYOUTS)
def test_derivatives_that_sum_arrays_of_other_order_or_dtype_have_their_bits(f, shape, number, dtype):
    """Orders in memory of products and their dtypes, in which they are summed, are those of the kernels of rules."""
    rng, h = np.random.default_rng(0), ox.grad(f, argnums=2)
    g = ox.record(h)
    for round_ in range(4):
        x, y = (rng.normal(size=shape).astype(dtype) for _ in range(2))
        assert agrees(g, h, x, y, number(0.3 + 0.2 * round_))
    assert not g.why, g.why


@pytest.mark.parametrize("seed", range(0, PROGRAMS, 2))
def test_derivatives_of_random_functions_have_their_bits_or_are_refused(seed):
    recorded_with_its_bits(seed, seed // 2, lambda f: ox.grad(f, argnums=(0, 1, 2, 3)))
