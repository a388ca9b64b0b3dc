"""Samples of the combinations of a test's parameters, chosen before items are made of them: these are most of the work of a collection."""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar


class Call(Protocol):
    """Protocol of the parameters of one item of a test, as pytest has them."""

    params: Mapping[str, Any]
    id: str


AnyCall = TypeVar("AnyCall", bound=Call)


def is_one_in(count: int, name: str) -> bool:
    """Whether a name is one of those, one in so many, that have a checksum which this number divides."""
    return zlib.crc32(name.encode()) % count == 0


def covering(calls: Sequence[AnyCall], nodeid: str) -> list[AnyCall]:
    """The calls of the test of this name in which each value of each parameter is at least once, in their order.

    Of calls alike, those come first whose names have the smaller checksum: the choice is the same on every machine.
    """
    values = [[*_values(call)] for call in calls]
    if any(len(of_call) < 2 for of_call in values):
        return list(calls)
    missing = {value for of_call in values for value in of_call}
    name, chosen = nodeid.rpartition("::")[2], set[int]()
    for at in sorted(range(len(calls)), key=lambda at: zlib.crc32(f"{name}[{calls[at].id}]".encode())):
        if not missing.isdisjoint(values[at]):
            missing.difference_update(values[at])
            chosen.add(at)
    return [call for at, call in enumerate(calls) if at in chosen]


def _values(call: Call) -> Iterable[tuple[str, Hashable]]:
    """The name and the value of each parameter of a call; one that cannot be hashed by its identity."""
    for name, value in call.params.items():
        yield name, (type(value), value) if _is_hashable(value) else id(value)


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
