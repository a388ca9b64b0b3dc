"""The tests that run in one process, for ``--dist=loadgroup``: a group, or a file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def name_groups(items: Iterable[pytest.Item]) -> None:
    """Adds the group of each item to its name, by which pytest-xdist distributes it: 3.8 sets a name that pytest 9.2 does not read.

    A test without a group belongs to the group of its file, since a message to a process takes longer than a short test.
    """
    for item in items:
        mark, identifier = item.get_closest_marker("xdist_group"), getattr(item, "_id", None)
        if identifier is not None:
            group = item.path.stem if mark is None else mark.args[0]
            named: Any = item
            named._id = type(identifier).parse(f"{identifier}@{group}")
