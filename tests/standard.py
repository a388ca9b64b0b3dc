"""What of the Array API standard is differentiable: the closed table, printed by ``python tests/standard.py``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from cases import CASES
from cases_linalg import CASES as LINALG
from oxigrad import xp

STEP = "a step: its derivative is zero wherever it has one"
TRUTH = "gives truth values"
WHOLE = "gives whole numbers"
BITS = "takes truth values or whole numbers"
FORM = "reads shapes and dtypes only"
MADE = "makes an array of no other's elements"


@dataclasses.dataclass(frozen=True)
class Plain:
    """A function of the standard that gives plain values, why it does, and a call on an array of floats."""

    reason: str
    call: Callable[..., Any]


PLAIN: dict[str, Plain] = {
    "ceil": Plain(STEP, lambda x: xp.ceil(x)),
    "floor": Plain(STEP, lambda x: xp.floor(x)),
    "floor_divide": Plain(STEP, lambda x: xp.floor_divide(x, 2.0)),
    "nextafter": Plain(STEP, lambda x: xp.nextafter(x, x + 1.0)),
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

CASE_NAMES = {case.name.split("-")[0] for case in (*CASES, *LINALG)}


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


def is_tested(name: str) -> bool:
    """Whether the derivatives of the function are in the table of cases."""
    return name.rpartition(".")[2] in CASE_NAMES


def is_ours(name: str) -> bool:
    """Whether ``xp`` itself has the function, rather than passing it on."""
    *part, own = name.split(".")
    return own in vars(getattr(xp, part[0]) if part else xp)


def main() -> None:
    """Prints a line for each function of the standard, and how many there are of each sort."""
    import array_api_strict

    found = names(array_api_strict)
    for name in found:
        plain = PLAIN.get(name)
        state = (
            f"plain: {plain.reason}" if plain else "differentiable" if is_ours(name) and is_tested(name) else "MISSING"
        )
        print(f"{name:28} {state}")
    plain = [name for name in found if name in PLAIN]
    missing = [name for name in found if name not in PLAIN and not (is_ours(name) and is_tested(name))]
    tested = len(found) - len(plain) - len(missing)
    print(
        f"{len(found)} functions: {tested} differentiable and tested, {len(plain)} plain values, {len(missing)} missing"
    )


if __name__ == "__main__":
    main()
