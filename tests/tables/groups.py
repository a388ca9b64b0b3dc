"""The names of tests that run in one process, for ``--dist=loadgroup``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def name_groups(items: Iterable[pytest.Item]) -> None:
    """Adds the group of each item to its name, by which pytest-xdist distributes it: 3.8 sets a name that pytest 9.2 does not read."""
    for item in items:
        mark, identifier = item.get_closest_marker("xdist_group"), getattr(item, "_id", None)
        if mark is not None and identifier is not None:
            named: Any = item
            named._id = type(identifier).parse(f"{identifier}@{mark.args[0]}")
