"""The GPU of each worker."""

from __future__ import annotations

import uuid
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oxigrad import distributed
from oxigrad.cuda import driver as drivers
from oxigrad.cuda.bindings import Driver
from oxigrad.distributed.engines.devices import assigned


def seen(*uuids: str, host: str = "n") -> dict[str, Any]:
    """The message of a worker about its host."""
    return {"host": host, "devices": [[each, "H100"] for each in uuids], "why": "there is no CUDA driver"}


SEEN: dict[str, tuple[list[Any], list[tuple[int, str]]]] = {
    "all of a host": ([seen("a", "b"), seen("a", "b")], [(0, "a"), (1, "b")]),
    "one each": ([seen("b"), seen("a")], [(0, "b"), (0, "a")]),
    "two hosts": ([seen("a"), seen("b", host="m")], [(0, "a"), (0, "b")]),
    "in another order": ([seen("a", "b"), seen("b", "a")], [(0, "a"), (0, "b")]),
    "the first gives up its own": ([seen("a", "b"), seen("a")], [(1, "b"), (0, "a")]),
    "a chain": ([seen("a", "b"), seen("a", "c"), seen("a")], [(1, "b"), (1, "c"), (0, "a")]),
}


@pytest.mark.parametrize("name", SEEN)
def test_workers_have_different_gpus(name: str) -> None:
    workers, expected = SEEN[name]
    assert [(each.device, each.uuid) for each in assigned(workers)] == expected


@given(st.lists(st.lists(st.sampled_from("abcd"), unique=True), max_size=5))
def test_there_is_an_assignment_unless_some_workers_see_too_few(lists: list[list[str]]) -> None:
    """By Hall's theorem."""
    workers = [seen(*each) for each in lists]
    subsets = [[each for at, each in enumerate(lists) if mask >> at & 1] for mask in range(1 << len(lists))]
    if all(len({uuid for each in some for uuid in each}) >= len(some) for some in subsets):
        found = assigned(workers)
        assert len({each.uuid for each in found}) == len(lists)
        assert [own[each.device] for own, each in zip(lists, found, strict=True)] == [each.uuid for each in found]
    else:
        with pytest.raises(ValueError, match="has no GPU"):
            assigned(workers)


def test_a_gpu_is_not_shared_by_accident() -> None:
    workers = [seen("a"), seen("a"), seen("b", "a")]
    with pytest.raises(
        ValueError, match="the worker of rank 1 on n has no GPU of its own: it sees a of rank 0; expected as many GPUs"
    ):
        assigned(workers)
    assert [each.uuid for each in assigned(workers, shared=True)] == ["a", "a", "b"]
    assert [each.uuid for each in assigned([seen("a", "b")] * 4, shared=True)] == ["a", "b", "a", "b"]
    with pytest.raises(ValueError, match="rank 1 on m has no GPU: there is no CUDA driver"):
        assigned([seen("a"), seen(host="m")], shared=True)


class Api:
    """A driver with two devices; of CUDA 12, where two functions give UUIDs, or of 13."""

    def __init__(self, is_older: bool) -> None:
        if is_older:
            self.cuDeviceGetUuid_v2 = self.cuDeviceGetUuid
            self.cuDeviceGetUuid = lambda device: (0, SimpleNamespace(bytes=bytes(16)))

    def cuDeviceGetCount(self) -> tuple[int, int]:
        return 0, 2

    def cuDeviceGetName(self, size: int, device: int) -> tuple[int, bytes]:
        return 0, b"Device\0   "

    def cuDeviceGetUuid(self, device: int) -> tuple[int, Any]:
        return 0, SimpleNamespace(bytes=bytes([device + 1] * 16))


@pytest.mark.parametrize("is_older", [False, True])
def test_all_workers_get_the_list(is_older: bool) -> None:
    with drivers.replaced(Driver(Api(is_older))):
        first, second = distributed.run(lambda comm: distributed.devices(comm), workers=2)
        assert first == second and [(each.rank, each.device) for each in first] == [(0, 0), (1, 1)]
        assert first[1].uuid == f"GPU-{uuid.UUID(bytes=bytes([2] * 16))}"
        assert str(first[1]) == f"rank 1: cuda:1 on {first[1].host}, Device ({first[1].uuid})"
        with pytest.raises(ValueError, match="rank 2 .* has no GPU of its own"):
            distributed.run(lambda comm: distributed.devices(comm), workers=3)
