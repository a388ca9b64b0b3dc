"""Digits, learned by four workers through the example's methods that no other test trains to the end."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "distributed.py"


@pytest.mark.parametrize(
    "method",
    [
        "sync_replicas",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("softsync", "drop_stale", "kfac", "large_batch")),
    ],
)
@pytest.mark.slow
def test_four_workers_learn_digits(method: str) -> None:
    for name in ("sklearn", "matplotlib", "tqdm", "threadpoolctl"):
        pytest.importorskip(name)
    example = runpy.run_path(str(EXAMPLE))
    (results,) = example["run"]("threads", [method], 4, 1, example["EPOCHS"])
    assert results[0].accuracy >= 0.97
    assert sum(result.accepted for result in results) > 0
