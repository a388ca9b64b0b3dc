"""Calls of functions with a user's own rule: `benches/counts.py` counts the instructions of each call under callgrind.

    python benches/rule_calls.py

Each row is a chain of calls on a number, or on an array of four elements, with its derivative in reverse mode. The
system call `getppid`, which nothing else makes, marks the begin and the end of what is counted.
"""

import gc
import json
import math
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import oxigrad as ox
from oxigrad.autograd.extend import defvjp, primitive

TURNS = 50
SLOPE = 2.0 / math.sqrt(math.pi)


def by_primitive() -> Callable[[Any], Any]:
    """A function by the names of HIPS autograd."""
    square = primitive(lambda x: x * x)
    defvjp(square, lambda y, x: lambda g: g * 2.0 * x)
    return square


ROWS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "custom_vjp": (ox.custom_vjp(math.erf, lambda g, y, x: g * SLOPE * math.exp(-x * x)), 0.5),
    "custom_vjp, array": (ox.custom_vjp(lambda x: x * x, lambda g, y, x: g * 2.0 * x), np.full(4, 0.5)),
    "define_vjp": (ox.define_vjp(lambda g, x: g * SLOPE * math.exp(-x * x))(lambda x: math.erf(x)), 0.5),
    "define_vjp, array": (ox.define_vjp(lambda g, x: g * 2.0 * x)(lambda x: x * x), np.full(4, 0.5)),
    "define_jvp, array": (ox.define_jvp(lambda t, x: t * 2.0 * x)(lambda x: x * x), np.full(4, 0.5)),
    "define_jvp": (ox.define_jvp(lambda t, x: t * 2.0 * x)(lambda x: x * x), 0.5),
    "implicit, array": (ox.implicit(lambda x, a: x * x - a, np.sqrt), np.full(4, 0.5)),
    "implicit": (ox.implicit(lambda x, a: x * x - a, math.sqrt), 0.5),
    "primitive": (by_primitive(), 0.5),
    "primitive, array": (by_primitive(), np.full(4, 0.5)),
}


def chain(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The sum of ``TURNS`` calls of a function, each of the value of the call before."""

    def composed(x: Any) -> Any:
        for _ in range(TURNS):
            x = f(x)
        return x if isinstance(x, float) or not np.ndim(x) else x.sum()

    return composed


def main() -> None:
    """Calls each row, and prints their names in order."""
    for f, x in ROWS.values():
        both = ox.value_and_grad(chain(f))
        both(x)
        both(x)
        gc.collect()
        gc.disable()
        os.getppid()
        both(x)
        os.getppid()
        gc.enable()
    json.dump({"rows": [*ROWS], "turns": TURNS}, sys.stdout)


if __name__ == "__main__":
    main()
