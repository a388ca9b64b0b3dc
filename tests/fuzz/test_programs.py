"""Random programs with views and assignments: NumPy's values, PyTorch's derivatives, or refused."""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from programs import Author, Program, S, W, X

import oxigrad as ox

DIRECTION = np.random.default_rng(2).standard_normal(X.shape), np.random.default_rng(3).standard_normal(W.shape), 0.6
PROGRAMS = 250


def expected(program: Program) -> tuple[Any, list[Any], list[Any]]:
    """The value, the gradients, and the product of the Hessian with a direction."""
    inputs = [torch.tensor(array, requires_grad=True, dtype=torch.float64) for array in (X, W, S)]
    value = program.simulated(*inputs) + 0.0 * sum(x.pow(3).sum() for x in inputs)  # so that it depends on each
    gradients = torch.autograd.grad(value, inputs, create_graph=True)
    slope = sum(torch.sum(g * torch.tensor(d, dtype=torch.float64)) for g, d in zip(gradients, DIRECTION, strict=True))
    products = torch.autograd.grad(slope, inputs)
    return value.item(), [g.detach().numpy() for g in gradients], [p.numpy() for p in products]


def difference(found: Any, wanted: Any) -> float:
    """The largest difference, in relation to the numbers; zero where PyTorch has none to compare with."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.shape != wanted.shape:
        return np.inf
    if not np.all(np.isfinite(wanted)):
        return 0.0
    error = np.max(np.abs(found - wanted), initial=0.0) / max(1.0, np.max(np.abs(wanted), initial=0.0))
    return float(error) if np.isfinite(error) else np.inf


def fault(program: Program) -> str | None:
    """The fault of a program: None if there is none, "refused" if a variable may not be read any more."""
    value, gradients, products = expected(program)
    if difference(program.run(X.copy(), W.copy(), S), value) > 1e-9:
        return "the simulation is wrong"
    x, w = X.copy(), W.copy()
    slope = sum(float(np.sum(g * d)) for g, d in zip(gradients, DIRECTION, strict=True))
    try:
        own, own_gradients = ox.value_and_grad(program.run, argnums=(0, 1, 2))(x, w, S)
        again = ox.grad(ox.checkpoint(program.run), argnums=(0, 1, 2))(x, w, S)
        _, tangent = ox.jvp(program.run, (x, w, S), DIRECTION)
        own_products = ox.hvp(program.run, (x, w, S), DIRECTION)
    except ox.ArrayMemoryError:
        return "refused"
    except Exception as error:  # noqa: BLE001 - any is a fault
        return f"{type(error).__name__}: {error}"
    if not (np.array_equal(x, X) and np.array_equal(w, W)):
        return "the caller's array was changed"
    pairs = {
        "value": [(own, value)],
        "gradient": list(zip(own_gradients, gradients, strict=True)),
        "gradient of a checkpoint": list(zip(again, gradients, strict=True)),
        "tangent": [(tangent, slope)],
        "product with the Hessian": list(zip(own_products, products, strict=True)),
    }
    for name, compared in pairs.items():
        for found, wanted in compared:
            if difference(found, wanted) > 1e-9:
                return f"{name}: {found} in place of {wanted}"
    return None


def shrunk(program: Program, kind: str) -> Program:
    """The program without what it takes not to be wrong."""
    for at in [-3, -2, -1, *reversed(range(len(program.statements)))] * 2:
        if at >= len(program.statements) or (at < 0 and len(program.results) == 1):
            continue
        try:
            shorter = program.without(at)
            found = fault(shorter)
        except Exception:  # noqa: BLE001, S112 - what is left cannot be run
            continue
        if found is not None and found.partition(":")[0] == kind:
            program = shorter
    return program


def seeds(seconds: float | None) -> Iterator[int]:
    """The seeds of the programs: always the same ones, or new ones for so long."""
    if seconds is None:
        yield from range(PROGRAMS)
        return
    start = time.time()
    seed = int(start)
    while time.time() - start < seconds:
        yield (seed := seed + 1)


def test_programs_have_numpy_s_values_and_pytorch_s_derivatives(request: pytest.FixtureRequest) -> None:
    outcomes: Counter[str] = Counter()
    faults = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for seed in seeds(request.config.getoption("--fuzz-seconds")):
            program = Author(seed).write()
            found = fault(program)
            outcomes[found if found in (None, "refused") else "wrong"] += 1
            if found is not None and found != "refused":
                small = shrunk(program, found.partition(":")[0])
                faults.append(f"# seed {seed}{small.snippet(fault(small) or found)}")
                if len(faults) == 5:
                    break
    sys.stdout.write(f"{dict(outcomes)}\n")
    assert not faults, "\n".join(["", *faults])
    assert outcomes["refused"] < 0.3 * outcomes.total()
