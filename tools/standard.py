"""Prints the differentiable functions of the Array API standard, by array library: ``make standard``.

Each row is a function, each column a library that is installed: the highest order to which derivatives, in both modes,
agree with central differences (over NumPy) or with NumPy's (over any other library), in every case that tests have of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import libraries
from libraries import TABLE, Library
from oxigrad import xp

STEP = "a step function: its derivative is zero wherever it exists"
ROUNDING = "moves its argument by a rounding error: refused, as in JAX and PyTorch"
TRUTH = "gives truth values"
WHOLE = "gives whole numbers"
BITS = "takes truth values or whole numbers"
FORM = "reads shapes and dtypes only"
MADE = "creates a new array"


@dataclasses.dataclass(frozen=True)
class Plain:
    """A function of the standard that gives plain values, why it does, and a call on an array of floats."""

    reason: str
    call: Callable[..., Any]


PLAIN: dict[str, Plain] = {
    "ceil": Plain(STEP, lambda x: xp.ceil(x)),
    "floor": Plain(STEP, lambda x: xp.floor(x)),
    "floor_divide": Plain(STEP, lambda x: xp.floor_divide(x, 2.0)),
    "nextafter": Plain(ROUNDING, lambda x: xp.nextafter(x.value, x.value + 1.0)),
    "round": Plain(STEP, lambda x: xp.round(x)),
    "sign": Plain(STEP, lambda x: xp.sign(x)),
    "trunc": Plain(STEP, lambda x: xp.trunc(x)),
    "all": Plain(TRUTH, lambda x: xp.all(x > 0.0, axis=0)),
    "any": Plain(TRUTH, lambda x: xp.any(x > 0.0, axis=0)),
    "equal": Plain(TRUTH, lambda x: xp.equal(x, 1.0)),
    "greater": Plain(TRUTH, lambda x: xp.greater(x, 1.0)),
    "greater_equal": Plain(TRUTH, lambda x: xp.greater_equal(x, 1.0)),
    "isfinite": Plain(TRUTH, lambda x: xp.isfinite(x)),
    "isin": Plain(TRUTH, lambda x: xp.isin(x, x[:1, ...])),
    "isinf": Plain(TRUTH, lambda x: xp.isinf(x)),
    "isnan": Plain(TRUTH, lambda x: xp.isnan(x)),
    "less": Plain(TRUTH, lambda x: xp.less(x, 1.0)),
    "less_equal": Plain(TRUTH, lambda x: xp.less_equal(x, 1.0)),
    "logical_and": Plain(TRUTH, lambda x: xp.logical_and(x > 0.0, x < 1.0)),
    "logical_not": Plain(TRUTH, lambda x: xp.logical_not(x > 0.0)),
    "logical_or": Plain(TRUTH, lambda x: xp.logical_or(x > 0.0, x < 1.0)),
    "logical_xor": Plain(TRUTH, lambda x: xp.logical_xor(x > 0.0, x < 1.0)),
    "not_equal": Plain(TRUTH, lambda x: xp.not_equal(x, 1.0)),
    "signbit": Plain(TRUTH, lambda x: xp.signbit(x)),
    "argmax": Plain(WHOLE, lambda x: xp.argmax(x, axis=0)),
    "argmin": Plain(WHOLE, lambda x: xp.argmin(x, axis=0)),
    "argsort": Plain(WHOLE, lambda x: xp.argsort(x, axis=0, descending=True)),
    "count_nonzero": Plain(WHOLE, lambda x: xp.count_nonzero(x, axis=0)),
    "nonzero": Plain(WHOLE, lambda x: xp.nonzero(x)),
    "searchsorted": Plain(WHOLE, lambda x: xp.searchsorted(xp.sort(x[0, ...]), x[1, ...])),
    "bitwise_and": Plain(BITS, lambda x: xp.bitwise_and(x > 0.0, x < 1.0)),
    "bitwise_invert": Plain(BITS, lambda x: xp.bitwise_invert(x > 0.0)),
    "bitwise_left_shift": Plain(BITS, lambda x: xp.bitwise_left_shift(xp.argsort(x), 1)),
    "bitwise_or": Plain(BITS, lambda x: xp.bitwise_or(x > 0.0, x < 1.0)),
    "bitwise_right_shift": Plain(BITS, lambda x: xp.bitwise_right_shift(xp.argsort(x), 1)),
    "bitwise_xor": Plain(BITS, lambda x: xp.bitwise_xor(x > 0.0, x < 1.0)),
    "__array_namespace_info__": Plain(FORM, lambda x: xp.__array_namespace_info__()),
    "broadcast_shapes": Plain(FORM, lambda x: xp.broadcast_shapes(tuple(x.shape), (1, 1))),
    "can_cast": Plain(FORM, lambda x: xp.can_cast(x, x.dtype)),
    "finfo": Plain(FORM, lambda x: xp.finfo(x.dtype).max),
    "iinfo": Plain(FORM, lambda x: xp.iinfo(xp.argsort(x).dtype).max),
    "isdtype": Plain(FORM, lambda x: xp.isdtype(x.dtype, "real floating")),
    "result_type": Plain(FORM, lambda x: xp.result_type(x, x.dtype)),
    "arange": Plain(MADE, lambda x: xp.arange(3)),
    "empty": Plain(MADE, lambda x: xp.empty((2, 3))),
    "empty_like": Plain(MADE, lambda x: xp.empty_like(x)),
    "eye": Plain(MADE, lambda x: xp.eye(3)),
    "from_dlpack": Plain(MADE, lambda x: xp.from_dlpack(np.ones(3))),
    "ones": Plain(MADE, lambda x: xp.ones((2, 3))),
    "ones_like": Plain(MADE, lambda x: xp.ones_like(x)),
    "zeros": Plain(MADE, lambda x: xp.zeros((2, 3))),
    "zeros_like": Plain(MADE, lambda x: xp.zeros_like(x)),
    "linalg.matrix_rank": Plain(WHOLE, lambda x: xp.linalg.matrix_rank(x)),
    "fft.fftfreq": Plain(MADE, lambda x: xp.fft.fftfreq(3)),
    "fft.rfftfreq": Plain(MADE, lambda x: xp.fft.rfftfreq(3)),
}


def names(strict: Any) -> list[str]:
    """Every function of the standard, by the listing of ``array_api_strict``; extensions with their own name in front."""
    own = {"ArrayAPIStrictFlags", "Device", *(name for name in strict.__all__ if name.endswith("_strict_flags"))}
    found = [name for name in strict.__all__ if callable(getattr(strict, name)) and name not in own]
    found = [name for name in found if not isinstance(getattr(strict, name), type) and _is_function(strict, name)]
    for part in ("linalg", "fft"):
        module = getattr(strict, part)
        listed = [name for name in module.__all__ if not isinstance(getattr(module, name), type)]
        found += [f"{part}.{name}" for name in listed]
    return found


def _is_function(strict: Any, name: str) -> bool:
    return type(getattr(strict, name)).__name__ != "DType" and hasattr(getattr(strict, name), "__name__")


def cases_of(name: str, known: Iterable[str] = TABLE) -> list[str]:
    """The cases of a function among those that are known."""
    return [case for case in known if libraries.function_of(case) == name.rpartition(".")[2]]


def is_ours(name: str) -> bool:
    """Whether ``xp`` itself has the function, rather than passing it on."""
    *part, own = name.split(".")
    return own in vars(getattr(xp, part[0]) if part else xp)


def order(name: str, library: Library) -> int:
    """The highest order to which derivatives of a function are right over a library; 0 where that lacks the function."""
    tested = cases_of(name, libraries.cases(library))
    try:
        for case in tested:
            libraries.check(case, library)
    except NotImplementedError:
        return 0
    return 2 if tested else 0


def orders(strict: Any, tested: Iterable[Library]) -> dict[str, dict[str, int]]:
    """Of each differentiable function of the standard, the highest order over each library."""
    differentiable = [name for name in names(strict) if name not in PLAIN and is_ours(name)]
    return {name: {library.name: order(name, library) for library in tested} for name in differentiable}


def table(rows: dict[str, dict[str, int]]) -> list[str]:
    """The orders as text, a line a function."""
    columns = list(next(iter(rows.values())))
    head = f"{'':20}" + "".join(f"{column:>18}" for column in columns)
    return [
        head,
        *(f"{name:20}" + "".join(f"{of[column] or '-':>18}" for column in columns) for name, of in rows.items()),
    ]


def summary(rows: dict[str, dict[str, int]], count: int) -> list[str]:
    """Table of the number of differentiable functions, by library and order, as text."""
    lines = [f"{count} functions of the standard: {len(rows)} differentiable, {len(PLAIN)} give plain values"]
    for column in next(iter(rows.values())):
        reached = [of[column] for of in rows.values()]
        first, second = (sum(order >= least for order in reached) for least in (1, 2))
        lines.append(f"{column:18} first order {first:3}, second order {second:3}")
    return lines


def main() -> None:
    """Prints every function of the standard, and how many there are of each sort."""
    import array_api_strict

    installed = [library for library in (*libraries.LIBRARIES, *libraries.GPU) if library.is_there()]
    rows = orders(array_api_strict, installed)
    for name, plain in PLAIN.items():
        print(f"{name:26}plain: {plain.reason}")
    print("\n".join(["", *table(rows), "", *summary(rows, len(names(array_api_strict)))]))


if __name__ == "__main__":
    main()
