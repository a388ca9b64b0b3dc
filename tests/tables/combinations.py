"""Samples of the combinations of a test's parameters."""

from __future__ import annotations

import functools
import hashlib
import zlib
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# A share has one of so many combinations beyond the covering ones, and of the thorough tests.
SHARES = 8


@functools.cache
def revision() -> str:
    """A checksum of the sources of the package and its tests, which differs after every change of them."""
    digest = hashlib.sha256()
    for folder, suffix in (("python", "py"), ("rust", "rs"), ("tests", "py"), ("tests", "json")):
        for path in sorted((ROOT / folder).rglob(f"*.{suffix}")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def is_in_share(item: pytest.Item, revision: str) -> bool:
    """Whether an item is one of those, one of `SHARES`, that their names and the revision choose."""
    return zlib.crc32(f"{revision} {item.nodeid}".encode()) % SHARES == 0


def share(items: Sequence[pytest.Item], revision: str) -> list[pytest.Item]:
    """The covering items of one test, and the share of the others."""
    chosen = set(covering(items))
    return [item for item in items if item in chosen or is_in_share(item, revision)]


def covering(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The items of one test in which each value of each parameter is at least once, in their order.

    Of items alike, those come first whose names have the smaller checksum: the choice is the same on every machine.
    """
    values = {item: [*_values(item)] for item in items}
    if any(len(of_item) < 2 for of_item in values.values()):
        return list(items)
    missing = {value for of_item in values.values() for value in of_item}
    chosen = set()
    for item in sorted(items, key=lambda item: zlib.crc32(item.name.encode())):
        if not missing.isdisjoint(values[item]):
            missing.difference_update(values[item])
            chosen.add(item)
    return [item for item in items if item in chosen]


def _values(item: pytest.Item) -> Iterable[tuple[str, Hashable]]:
    """The name and the value of each parameter of an item; one that cannot be hashed by its identity."""
    spec = getattr(item, "callspec", None)
    for name, value in spec.params.items() if spec else ():
        yield name, (type(value), value) if _is_hashable(value) else id(value)


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
