"""Checks for derivatives and rules, for our own tests and for users'."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oxigrad import tree, xp
from oxigrad._core import is_inexact
from oxigrad.autodiff.transforms import jvp, vjp
from oxigrad.ops.backends import device_of, is_array, is_complex, namespace

__all__ = ["check_grads"]


def __dir__() -> list[str]:
    return list(__all__)


def _random_like(values: Any, generator: "np.random.Generator") -> Any:
    def draw(leaf: Any) -> Any:
        if is_inexact(leaf):
            library = namespace(leaf)
            noise = generator.standard_normal(tuple(leaf.shape))
            if is_complex(leaf):
                noise = noise + 1j * generator.standard_normal(tuple(leaf.shape))
            return library.astype(library.asarray(noise, device=device_of(leaf)), leaf.dtype)
        return float(generator.standard_normal()) if isinstance(leaf, float) else leaf

    return tree.map(draw, values)


def _shifted(values: Any, direction: Any, by: float) -> Any:
    def shift(leaf: Any, along: Any) -> Any:
        return leaf + by * along if is_inexact(leaf) or isinstance(leaf, float) else leaf

    return tree.map(shift, values, direction)


def _inner(a: Any, b: Any) -> float:
    """The sum of products; its real part, where they are complex."""

    def product(x: Any, y: Any) -> float:
        if not (is_inexact(x) or isinstance(x, float)):
            return 0.0
        total = xp.sum(x * y) if is_array(x) else x * y
        return float(xp.real(total) if is_complex(total) else total)

    return sum(product(x, y) for x, y in zip(tree.leaves(a), tree.leaves(b), strict=True))


# How each mode gives a derivative as a function again, for the next order.
_MODES: dict[str, Callable[..., Any]] = {
    "fwd": lambda f, direction, cotangent: lambda *primals: jvp(f, primals, direction)[1],
    "rev": lambda f, direction, cotangent: lambda *primals: vjp(f, *primals)[1](cotangent),
}


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int = 2,
    modes: Sequence[str] = ("fwd", "rev"),
    *,
    step: float = 1e-5,
    tolerance: float = 1e-6,
    seed: int = 0,
) -> None:
    """Compares the derivatives of ``f`` at ``args`` with central differences, along random directions, up to ``order``.

    Both modes are compared, and each order goes on from both: forward over reverse, reverse over forward, and so on.
    ``args`` are floats, float64 or complex128 arrays, or trees of them; complex ones move in complex directions. Raises
    `AssertionError` with both numbers where they differ by
    more than ``tolerance`` relative to the larger of them and 1. The point must not lie within ``step`` of a kink.

    >>> check_grads(lambda x: x**3, (2.0,))
    """
    if isinstance(modes, str) or not modes or set(modes) - set(_MODES):
        raise ValueError(f"modes is {modes!r}: expected a tuple of 'fwd' and 'rev'")
    if isinstance(order, bool) or order not in range(1, 1000):
        raise ValueError(f"order is {order!r}: expected a whole number, at least 1")
    if not (0 < step < math.inf and 0 <= tolerance < math.inf):
        raise ValueError(f"step is {step!r}, tolerance {tolerance!r}: expected positive numbers")
    _check(f, tuple(args), order, tuple(modes), (), (step, tolerance, seed))


def _check(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    order: int,
    modes: tuple[str, ...],
    taken: tuple[str, ...],
    settings: tuple[float, float, int],
) -> None:
    step, tolerance, seed = settings
    generator = np.random.default_rng(seed)
    cotangent, direction = _random_like(vjp(f, *args)[0], generator), _random_like(args, generator)
    ahead, behind = f(*_shifted(args, direction, step)), f(*_shifted(args, direction, -step))
    numeric = (_inner(cotangent, ahead) - _inner(cotangent, behind)) / (2 * step)
    for mode in modes:
        derivative, path = _MODES[mode](f, direction, cotangent), " over ".join((mode, *taken))
        found = derivative(*args)
        analytic = _inner(cotangent, found) if mode == "fwd" else _inner(found, direction)
        if not abs(numeric - analytic) <= tolerance * max(1.0, abs(numeric), abs(analytic)):
            raise AssertionError(f"derivative {analytic!r} by {path}, central difference {numeric!r}")
        if order > 1:
            _check(derivative, args, order - 1, modes, (mode, *taken), (step, tolerance * 10, seed + 1))
