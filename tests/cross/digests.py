"""Digests of kernels, steps and derivatives, for the comparison of machines: ``python tests/cross/digests.py`` prints one a line.

Every kernel has the bits of the scalar meaning of its ops, on any processor, so that two machines print the same lines. What may differ is
left out: the sign and payload of NaN, which are the processor's, and what NumPy computes with code of its own for each
processor, namely matrix products and, on arrays outside of kernels, the functions of ``OF_NUMPY``.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tables"))

import numpy as np

import oxigrad as ox
from optimizers import OPTIMIZERS
from oxigrad import _core, optim, xp

ELEMENTWISE = {function.__name__ for function in _core.elementwise_functions()}
ARITY = {name: arity for name, arity in _core.ops() if name in ELEMENTWISE}
OF_NUMPY = {*"acos acosh asin asinh atan2 atanh cbrt hypot log10 pow".split()}
SIZES = (1, 7, 256, 3000)
CLIPPED: dict[str, Any] = {}
OPTIONS: dict[str, dict[str, Any]] = {
    "clipped": CLIPPED,
    "plain": {},
    "master": {"master": True},
    "stochastic": {"rounding": "stochastic", "seed": 3},
    "kahan": {"rounding": "kahan"},
    "8bit": {"slot_dtype": "8bit"},
    "16 bits": {"slot_dtype": "float16"},
}


def digest(*arrays: Any) -> str:
    """Of the bytes of arrays, in order."""
    found = hashlib.sha256()
    for each in arrays:
        array = np.ascontiguousarray(each)
        if array.dtype.kind == "f":
            array = np.where(np.isnan(array), array.dtype.type(np.nan), array)
        found.update(array.tobytes())
    return found.hexdigest()[:16]


def steps(name: str, dtype: str, options: dict[str, Any]) -> str:
    """Of the parameters and the state after four steps by normal gradients."""
    rng = np.random.default_rng(0)
    opt = (
        optim.chain(optim.ClipByGlobalNorm(5.0), OPTIMIZERS[name]())
        if options is CLIPPED
        else OPTIMIZERS[name](**options)
    )
    model = {str(size): rng.standard_normal(size).astype(dtype) for size in SIZES}
    for _ in range(4):
        grads = {path: rng.standard_normal(array.shape).astype(dtype) for path, array in model.items()}
        model = opt.update(model, grads)
    slots = [slot for path in model for slot in opt.slots[path].values()]
    parts = [part for slot in slots for part in ([slot.codes, slot.scales] if hasattr(slot, "codes") else [slot])]
    return digest(*model.values(), *parts)


def kernel(name: str, dtype: str) -> str:
    """Of an elementwise function in a kernel, of numbers of its domain and others."""
    function = getattr(xp, name)
    arguments = {1: lambda p, g: (g,), 2: lambda p, g: (p, g), 3: lambda p, g: (p, g, xp.abs(g))}[ARITY[name] or 1]
    rule = optim.define(lambda xp, p, g: function(*arguments(p, g)), name="Function")
    rng = np.random.default_rng(2)
    model = {str(k): np.floor(4 * rng.random(1001)).astype(dtype) for k in range(3)}
    grads = {str(k): (10.0**k * rng.standard_normal(1001)).astype(dtype) for k in range(3)}
    return digest(*rule().update(model, grads).values())


def derivatives(name: str, dtype: str) -> str:
    """Of value and gradient of the sum of an elementwise function: by all arguments, by the last one, or by none."""
    function = getattr(xp, name)
    rng = np.random.default_rng(1)
    arrays = [rng.uniform(0.05, 0.95, 1001).astype(dtype) for _ in range(ARITY[name])]
    orders = [*(np.floor(3 * array + 1) for array in arrays[:-1]), arrays[-1]]
    every = tuple(range(len(arrays)))
    for argnums, arguments in ((every, arrays), (every[-1:], orders), ((), orders)):
        try:
            with np.errstate(all="ignore"):
                value, gradients = ox.value_and_grad(lambda *args: xp.sum(function(*args)), argnums=argnums)(*arguments)
        except ox.DerivativeError:
            continue
        return digest(value, *gradients)
    raise AssertionError(f"{name}: a value without derivatives raises")


def lines() -> Iterator[str]:
    """All digests, by name."""
    for name in OPTIMIZERS:
        for dtype in ("float32", "float64", "float16"):
            for kind, options in OPTIONS.items():
                try:
                    found = steps(name, dtype, options)
                except (TypeError, ValueError) as error:
                    found = type(error).__name__  # an option that the rule, or the dtype, does not take
                yield f"{name} {dtype} {kind}: {found}"
    functions = sorted(name for name in ARITY if hasattr(xp, name))
    for name in functions:
        for dtype in ("float32", "float64"):
            yield f"kernel of {name} {dtype}: {kernel(name, dtype)}"
    for name in sorted({*functions} - OF_NUMPY):
        for dtype in ("float32", "float64"):
            yield f"{name} {dtype}: {derivatives(name, dtype)}"


if __name__ == "__main__":
    for line in lines():
        sys.stdout.write(f"{line}\n")
