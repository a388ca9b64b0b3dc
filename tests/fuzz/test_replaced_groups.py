"""Random changes between steps of optimizers for PyTorch: each step is that of PyTorch's class after the same changes.

The test goes through a fixed number of seeds, or with ``--fuzz-seconds=N`` through new ones for N seconds.
``PYTHONPATH=tests/tables python tests/fuzz/test_replaced_groups.py SEED`` runs one seed.
"""

from __future__ import annotations

import itertools
import random
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import oxigrad.torch as ours  # noqa: E402
from torch_changes import CHANGES, CLASSES, made, results, take  # noqa: E402

SEEDS = 40
STEPS = 8
WAYS: list[dict[str, Any]] = [{}, {}, {"in_backward": True}, {"state_device": "host"}]


def trained(module: Any, seed: int, log: list[str]) -> list[Any]:
    """The results of steps with the changes of a seed between them."""
    draw = random.Random(seed)
    name, way = draw.choice([*CLASSES]), draw.choice(WAYS)
    opt = made(module, name, **(way if module is ours else {}))
    log.append(f"{name} {way}")
    # Hooks of a step are called after the updates of a backward.
    changes = [change for change in CHANGES if not (way.get("in_backward") and change == "hook")]
    for step in range(STEPS):
        for _ in range(draw.choice([0, 0, 1, 1, 2])):
            change = draw.choice(changes)
            log.append(change)
            CHANGES[change](opt, draw)
        without = draw.choice([None, None, None, draw.randrange(5)])
        log.append(f"step without {without}")
        take(opt, step, without)
    return results(opt)


def fault(seed: int) -> str | None:
    """The fault of the steps of a seed: None if there is none."""
    log: list[str] = []
    try:
        expected = trained(torch.optim, seed, [])
    except (KeyError, RuntimeError):  # PyTorch's class cannot take these steps, as with a moment of another dtype
        return None
    try:
        # PyTorch's loading gives the product of NAdam, a number of single precision, the dtype of the parameter.
        torch.testing.assert_close(trained(ours, seed, log), expected, rtol=1e-7, atol=1e-8, equal_nan=True)
    except Exception as error:  # noqa: BLE001 - any is a fault
        return f"PYTHONPATH=tests/tables python tests/fuzz/test_replaced_groups.py {seed}: {error}\n  {', '.join(log)}"
    return None


def test_random_changes(request: pytest.FixtureRequest) -> None:
    seconds = request.config.getoption("--fuzz-seconds")
    seeds: Iterator[int] = iter(range(SEEDS))
    end = float("inf")
    if seconds:
        seeds, end = itertools.count(time.time_ns() // 1000), time.monotonic() + seconds
    found = []
    while time.monotonic() < end and (seed := next(seeds, None)) is not None:
        found += [text] if (text := fault(seed)) else []
    assert not found, "\n".join(found[:20])


if __name__ == "__main__":
    sys.exit(fault(int(sys.argv[1])))
