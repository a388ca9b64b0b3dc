"""Tests of processes: one that fails is repeated, and reported as a rerun.

The processes are started by MPI, Ray or torch, and the operating system chooses how long that takes and what it kills first: a test
of a death or a time-out may see another order than the one that it states. Tests of threads are not repeated.
"""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests of this folder that start processes."""
    for item in items:
        if item.get_closest_marker("xdist_group") is not None and FOLDER in item.path.parents:
            item.add_marker(pytest.mark.flaky(reruns=2))
