"""Tests of several workers: one that fails is repeated, and reported as a rerun.

Workers run in threads and processes, whose order the operating system chooses: a test of a death or a time-out may see another
order than the one that it states.
"""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests of this folder."""
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.flaky(reruns=2))
