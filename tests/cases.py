"""The tables that drive the tests: a row brings every test."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

import oxigrad as ox
from oxigrad import xp


@dataclasses.dataclass(frozen=True)
class Case:
    """A differentiable function at a point away from its kinks."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]

    def __str__(self) -> str:
        return self.name


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    """Standard normal numbers of a shape, float64."""
    return np.random.default_rng(seed + 7 * len(shape)).standard_normal(shape)


def positive(*shape: int, seed: int = 0) -> np.ndarray:
    """Numbers from 0.5 to 2.5, away from zero."""
    return np.random.default_rng(seed + 100).uniform(0.5, 2.5, shape)


def apart(*shape: int, seed: int = 0) -> np.ndarray:
    """Distinct numbers, at least 0.1 from each other and from zero, in random order."""
    size = int(np.prod(shape))
    values = (np.arange(size) - size / 2 + 0.25) * 0.2
    return np.random.default_rng(seed + 200).permutation(values).reshape(shape)


_DOMAINS: dict[str, Callable[..., np.ndarray]] = {
    "log": positive,
    "log1p": positive,
    "sqrt": positive,
    "reciprocal": positive,
    "abs": apart,
}
_UNARY = "negative positive abs square sqrt reciprocal exp expm1 log log1p sin cos tan tanh".split()
_BINARY: dict[str, tuple[Callable[..., np.ndarray], Callable[..., np.ndarray]]] = {
    "add": (normal, normal),
    "subtract": (normal, normal),
    "multiply": (normal, normal),
    "divide": (normal, positive),
    "pow": (positive, normal),
    "atan2": (normal, positive),
    "maximum": (normal, lambda *shape, seed: normal(*shape, seed=seed) + 0.01),
    "minimum": (normal, lambda *shape, seed: normal(*shape, seed=seed) + 0.01),
    "remainder": (lambda *shape, seed=0: apart(*shape, seed=seed) * 3, positive),
}


def _unary(name: str) -> list[Case]:
    f, domain = getattr(xp, name), _DOMAINS.get(name, normal)
    values = domain(3, 4, seed=1)
    return [
        Case(f"{name}", f, (values,)),
        Case(f"{name}-scalar", f, (float(values[0, 1]),)),
        Case(f"{name}-0d", f, (values[0, 0].reshape(()),)),
        Case(f"{name}-empty", f, (values[:0],)),
        Case(f"{name}-strided", f, (values[::-2, ::3].T,)),
    ]


def _binary(name: str) -> list[Case]:
    f, (left, right) = getattr(xp, name), _BINARY[name]
    a, b = left(3, 4, seed=1), right(3, 4, seed=2)
    row, column = right(4, seed=3), left(3, 1, seed=4)
    x, y = float(a[1, 1]), float(b[1, 1])
    return [
        Case(f"{name}", f, (a, b)),
        Case(f"{name}-scalars", f, (x, y)),
        Case(f"{name}-broadcast-right", f, (a, row)),
        Case(f"{name}-broadcast-left", f, (column, b)),
        Case(f"{name}-broadcast-both", f, (column, row)),
        Case(f"{name}-array-scalar", f, (a, y)),
        Case(f"{name}-scalar-array", f, (x, b)),
        Case(f"{name}-constant-right", lambda u: f(u, row), (a,)),
        Case(f"{name}-constant-left", lambda u: f(a, u), (row,)),
        Case(f"{name}-number-right", lambda u: f(u, y), (a,)),
        Case(f"{name}-number-left", lambda u: f(x, u), (b,)),
    ]


X, V, M = apart(3, 4), apart(4, seed=5), normal(4, 2, seed=6)
MASK = X > 0
INDICES = np.array([2, 0, 2, 1])

ELEMENTWISE = [
    *[case for name in _UNARY for case in _unary(name)],
    *[case for name in _BINARY for case in _binary(name)],
    Case("where", lambda a, b: xp.where(MASK, a, b), (X, V)),
    Case("where-number", lambda a: xp.where(MASK, a, 2.0), (X,)),
    Case("where-scalars", lambda a, b: xp.where(a > b, a, b), (1.0, 2.0)),
    Case("pow-square", lambda a: a**2, (normal(3),)),
    Case("pow-whole", lambda a: a**3, (normal(3),)),
    Case("pow-zero", lambda a: a**0, (normal(3),)),
    Case("pow-at-zero", lambda a: a**3 + a**1, (np.zeros(3),)),
    Case("rpow", lambda a: 2.0**a, (normal(3),)),
]

STRUCTURED = [
    Case("sum", lambda a: xp.sum(a), (X,)),
    Case("sum-axis", lambda a: xp.sum(a, axis=0), (X,)),
    Case("sum-axes", lambda a: xp.sum(a, axis=(0, -1)), (normal(2, 3, 4),)),
    Case("sum-keepdims", lambda a: xp.sum(a, axis=1, keepdims=True), (X,)),
    Case("sum-0d", lambda a: xp.sum(a), (np.array(2.0),)),
    Case("mean", lambda a: xp.mean(a), (X,)),
    Case("mean-axis", lambda a: xp.mean(a, axis=-1), (X,)),
    Case("max", lambda a: xp.max(a), (X,)),
    Case("max-axis", lambda a: xp.max(a, axis=1), (X,)),
    Case("max-keepdims", lambda a: xp.max(a, axis=(0, 1), keepdims=True), (X,)),
    Case("min", lambda a: xp.min(a), (X,)),
    Case("min-axis", lambda a: xp.min(a, axis=0), (X,)),
    Case("matmul", lambda a, b: a @ b, (X, M)),
    Case("matmul-vector", lambda a, b: a @ b, (X, V)),
    Case("vector-matmul", lambda a, b: a @ b, (V, M)),
    Case("matmul-vectors", lambda a, b: a @ b, (V, normal(4))),
    Case("matmul-stack", lambda a, b: a @ b, (normal(5, 3, 4), normal(5, 4, 2))),
    Case("matmul-broadcast", lambda a, b: a @ b, (normal(5, 1, 3, 4), normal(2, 4, 2))),
    Case("matmul-stack-vector", lambda a, b: a @ b, (normal(5, 3, 4), V)),
    Case("vector-matmul-stack", lambda a, b: a @ b, (V, normal(5, 4, 2))),
    Case("matmul-constant", lambda a: X @ a, (M,)),
    Case("reshape", lambda a: xp.reshape(a, (2, -1)), (X,)),
    Case("ravel", lambda a: xp.reshape(a, -1), (X,)),
    Case("permute_dims", lambda a: xp.permute_dims(a, (2, 0, 1)), (normal(2, 3, 4),)),
    Case("transpose", lambda a: a.T, (X,)),
    Case("matrix-transpose", lambda a: a.mT, (normal(2, 3, 4),)),
    Case("expand_dims", lambda a: xp.expand_dims(a, axis=1), (X,)),
    Case("squeeze", lambda a: xp.squeeze(a, axis=0), (X[:1],)),
    Case("broadcast_to", lambda a: xp.broadcast_to(a, (2, 3, 4)), (X,)),
    Case("broadcast_to-row", lambda a: xp.broadcast_to(a, (3, 4)), (X[:1],)),
    Case("concat", lambda a, b: xp.concat([a, b], axis=0), (X, X[:2] * 2)),
    Case("concat-axis", lambda a, b: xp.concat([a, X, b], axis=-1), (X, X[:, :1])),
    Case("concat-flat", lambda a, b: xp.concat([a, b], axis=None), (X, V)),
    Case("stack", lambda a, b: xp.stack([a, b]), (X, X * 2)),
    Case("stack-last", lambda a, b: xp.stack([a, b, a], axis=-1), (X, X * 2)),
    Case("take_along_axis", lambda a: xp.take_along_axis(a, np.array([[1, 1], [0, 3], [2, 2]]), axis=1), (X,)),
    Case("index-item", lambda a: a[1, 2], (X,)),
    Case("index-row", lambda a: a[1], (X,)),
    Case("index-slice", lambda a: a[::-1, 1:3], (X,)),
    Case("index-newaxis", lambda a: a[..., None, 0], (X,)),
    Case("index-integers", lambda a: a[:, INDICES], (X,)),
    Case("index-pairs", lambda a: a[np.array([0, 0, 2]), np.array([1, 1, 3])], (X,)),
    Case("index-mask", lambda a: a[MASK], (X,)),
    Case("iterate", lambda a: sum(row * row for row in a), (X,)),
    Case("index-apart", lambda a: a[0, :, np.array([1, 1, 0])], (normal(2, 3, 4),)),
    Case("stack-many", lambda a: xp.stack([a[0] * i for i in range(40)]), (V,)),
    Case("stack-constant", lambda a: xp.stack([V, a, V * 2]), (V,)),
    Case("call", ox.checkpoint(lambda a, b: xp.sin(a) @ b), (X, M)),
    Case("unused", lambda a, b: a * 2.0, (X, V)),
    Case("twice", lambda a: a * a + a, (X,)),
]

CASES = [*ELEMENTWISE, *STRUCTURED]
