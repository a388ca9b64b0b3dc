"""Random programs: views, writes to arrays of their own, branches, plain results, mixed dtypes, and derivatives inside of them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np

import oxigrad as ox
from oxigrad import xp

SHAPES = [(3, 4), (4, 4), (80, 70)]
ONE = "sin cos tanh exp square negative abs floor sign".split()


def _expressions(
    draw: random.Random, arrays: list[str], vectors: list[str], numbers: list[str]
) -> dict[str, list[str]]:
    """Expressions that give an array, a vector or a number."""
    a, b, v, w = draw.choice(arrays), draw.choice(arrays), draw.choice(vectors), draw.choice(vectors)
    n, m, c = (
        draw.choice(numbers),
        draw.choice(numbers),
        draw.choice("0.5 -1.25 3 1e-3 np.float32(0.3) np.float64(0.7)".split()),
    )
    op = draw.choice("+ - *".split())
    return {
        "array": [
            f"xp.{draw.choice(ONE)}({a} * {c})",
            f"np.{draw.choice(ONE)}({a} * 0.5)",
            f"{a} {op} {b}",
            f"{a} {op} {draw.choice([v, n, c])}",
            f"{draw.choice([v, n, c])} {op} {a}",
            f"{a} / ({b} * {b} + 1.0)",
            f"xp.where({a} > {draw.choice([b, n])}, {a}, {draw.choice([b, n, c])})",
            f"np.where({a} <= {b}, {a}, {b})",
            f"xp.maximum({a}, {draw.choice([b, n])})",
            f"np.minimum({a}, {draw.choice([b, n])})",
            f"xp.astype({a}, xp.{draw.choice(['float32', 'float64'])})",
            f"({a} > {n}) * {b}",
            f"xp.zeros_like({a}) + {b}",
            f"np.ones_like({a}) * {n}",
            f"np.full({a}.shape, 0.25) * {b}",
            f"{a} * np.arange({a}.shape[1]) + len({a})",
            f"{a}[::-1] * {n}",
            f"{a}[:, ::-1] + {a}",
            f"({a}.T * {n}).T",
            f"xp.permute_dims(xp.permute_dims({a}, (1, 0)) * {c}, (1, 0))",
            f"xp.reshape(xp.reshape({a}, (-1,)) * {n}, {a}.shape)",
            f"xp.concat([{a}[1:], {b}[:1]])",
            f"np.stack([{a}[0]] * {a}.shape[0]) + {b}",
            f"np.cumsum({a}, axis={draw.choice([0, 1])}) * 0.1",
            f"{a} - xp.mean({a}, axis={draw.choice([0, 1])}, keepdims=True)",
            f"{a} @ xp.permute_dims({a}, (1, 0)) @ {b} * 1e-3",
            f"np.dot({a}, {b}.T) @ {a} * 1e-3",
            f"np.einsum('ij,ij->ij', {a}, {b}) + np.linalg.norm({a}, axis=0)",
            f"np.outer({v}, {w})[:1] + {a}",
            f"np.sort({a}, axis={draw.choice([0, 1])}) * {c}",
            f"np.prod({a}[:2] * 0.5, axis=0) + {b}",
            f"_scaled({a}, {n})",
            f"_accumulated({a}, {b})",
            f"_turned({a}, {n})",
            f"_filled({a}, {n})",
            f"_updated({a}, {b})",
            f"_through_view({a}, {n})",
            f"ox.grad(lambda z: xp.sum(xp.sin(z) * {b}) + xp.sum(z * z) * {c})({a})",
            f"ox.vmap(lambda r: r * xp.sum(r) + {v})({a})",
            f"ox.vmap(ox.grad(lambda r: xp.sum(xp.tanh(r) * {v})))({a})",
            f"ox.jvp(lambda z: xp.sin(z) * {n}, ({a},), ({b},))[1]",
            f"ox.grad(lambda z: xp.sum(ox.grad(lambda u: xp.sum(xp.sin(u) * u))(z) * {b}))({a})",
        ],
        "vector": [
            f"xp.{draw.choice(['sum', 'mean', 'max'])}({a}, axis=0)",
            f"{a}[{draw.choice([0, 1, -1])}] * {draw.choice([n, c])}",
            f"np.sum({a} * {b}, axis=0)",
            f"{v} * {w} + {c}",
            f"xp.{draw.choice(ONE)}({v})",
            f"np.array([1.0] * {v}.shape[0]) * {v}",
            f"{v}[np.argsort({v})]",
            f"xp.flip({v}) - {w}",
            f"ox.grad(lambda z: xp.sum({a} @ z) ** 2 * 1e-2)({v})",
            f"ox.jacobian(lambda z: z * xp.sum(z))({v})[0]",
            f"_halves({v})",
            f"xp.vecdot({a}.T, {b}.T)",
            f"np.{draw.choice(['std', 'var', 'median', 'prod'])}({a}, axis=0)",
            f"_in_place({v}, {n})",
        ],
        "number": [
            f"xp.mean({a} * {b})",
            f"xp.sum({a}[0] * {a}[1]) * 0.1",
            f"np.max({a}) * {c}",
            f"{n} * {draw.choice([m, c])} + 0.125",
            f"{n} / ({m} * {m} + 1.0)",
            f"xp.sin({n}) * {m}",
            f"{v}[{draw.choice([0, 2, -1])}] * {n}",
            f"({n} if {m} > 0.1 else -{n})",
            f"({n} if xp.sum({a}) > 0.0 else {n} * 2)",
            f"xp.vecdot({v}, {w}) * 0.1",
            f"np.{draw.choice(['vdot', 'inner', 'dot'])}({v}, {w}) * 0.1",
            f"np.{draw.choice(['std', 'var', 'median', 'ptp'])}({a}) * {n}",
            f"np.linalg.norm({a}) * 0.1",
            f"_total({v}) * 0.1",
            f"float(np.argmax({v})) + {n}",
            f"int(xp.sum({v}) > 0) * {n}",
            f"ox.grad(lambda z: xp.sum({v} * z) * z)({n})",
            f"ox.value_and_grad(lambda z: xp.sum(xp.exp(-z * z)))({v} * 0.1)[0]",
            f"min({n}, {m}) * 0.5",
            f"abs({n}) + len({v})",
        ],
    }


def source(seed: int) -> str:
    """The lines of a function of two arrays of one shape, a vector and a number."""
    draw = random.Random(seed)
    lines = ["def f(x, y, v, s):"]
    names: dict[str, list[str]] = {"array": ["x", "y"], "vector": ["v"], "number": ["s"]}
    fresh = (f"t{at}" for at in itertools.count())
    for _ in range(draw.randrange(3, 12)):
        kind = draw.choice(["array", "array", "vector", "number"])
        name = next(fresh)
        lines.append(f"    {name} = {draw.choice(_expressions(draw, *names.values())[kind])}")
        names[kind].append(name)
        if kind == "array" and draw.random() < 0.3:
            n, w = draw.choice(names["number"]), draw.choice(names["vector"])
            lines += [
                f"    {name} = {name} * 1.0",
                f"    {draw.choice([f'{name}[0] = {w}', f'{name} += {n}', f'{name}[:, 1] *= {n}', f'{name}[1:] = {name}[:-1] * 0.5', f'{name}[{name} < 0] = 0.25', f'{name}[::2, 1:] -= 0.5'])}",
            ]
        if draw.random() < 0.15:
            n, its = draw.choice(names["number"]), draw.choice(names["number"])
            lines += [f"    for at in range({draw.randrange(2, 6)}):", f"        {n} = {n} * 0.5 + at * {its}"]
    a, v, n = (each[-1] for each in names.values())
    results = [
        f"{a}, {v}, {n}",
        f"{{'a': {a}, 'n': [{n}, {v}.shape]}}",
        f"xp.mean({a}) + xp.sum({v}) + {n}",
        f"xp.mean({a}) + xp.sum({v}) * {n}",
    ]
    return "\n".join([*lines, f"    return {results[seed % 4]}"])


def _scaled(a: Any, n: Any) -> Any:
    return xp.stack([row * n for row in a])


def _filled(a: Any, n: Any) -> Any:
    new = xp.zeros_like(a)
    for at in range(2):
        new[at] = a[at] * n
    return new


def _updated(a: Any, b: Any) -> Any:
    new = xp.empty(a.shape, dtype=a.dtype)
    new[...] = a
    new[:, :2] += b[:, :2]
    return new


def _through_view(a: Any, n: Any) -> Any:
    new = a * 1.0
    row, turned = new[0], new.T
    row *= 0.5
    new[0, 0] = n
    return turned.T + row


def _accumulated(a: Any, b: Any) -> Any:
    total = xp.zeros_like(a)
    for at in range(3):
        total += a * b
        total[at % 2, :2] -= b[0, :2]
    return total


def _turned(a: Any, n: Any) -> Any:
    new = xp.zeros_like(a.T)
    new[...] = a.T * n
    new[0] += 1.0
    return new.T


def _in_place(v: Any, n: Any) -> Any:
    new = xp.zeros(v.shape, dtype=v.dtype)
    new[...] = v
    new *= 0.5
    new[1:3] = n
    return new


def _halves(v: Any) -> Any:
    one, other = v[:2], v[2:]
    return xp.concat([other, one])


def _total(v: Any) -> Any:
    total = v[0]
    for at in range(1, v.shape[0] if v.shape[0] < 9 else 9):
        total += v[at]
    return total


def function(seed: int) -> Callable[..., Any]:
    """The function; one of four programs that give a number is its derivative."""
    space: dict[str, Any] = {**globals(), "np": np, "ox": ox, "xp": xp}
    exec(source(seed), space)  # noqa: S102 - of this file
    return ox.value_and_grad(space["f"], argnums=(0, 1, 2, 3)) if seed % 4 == 3 else space["f"]


def arguments(seed: int) -> list[tuple[Any, ...]]:
    """Arguments of four calls, of one kind."""
    rng, draw = np.random.default_rng(seed), random.Random(seed)
    shape, dtype = draw.choice(SHAPES[: 3 if seed % 5 == 0 else 2]), draw.choice("f4 f8 f8".split())
    number = draw.choice([float, np.float64, np.array, np.dtype(dtype).type, np.float32])
    layout = draw.choice([np.asarray, np.asfortranarray, lambda x: np.repeat(x, 2, axis=1)[:, ::2]])
    other = draw.choice("f4 f8".split()) if seed % 7 == 0 else dtype
    return [
        (
            *(layout(rng.normal(size=shape).astype(each)) for each in (dtype, other)),
            rng.normal(size=shape[1]).astype(dtype),
            number(0.3 + 0.2 * round_),
        )
        for round_ in range(4)
    ]
