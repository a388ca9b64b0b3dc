"""Callers that are no workers of a job: those of the hub, which threads share and Ray's actor is; see `test_torch_membership` for the store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np
import pytest

from oxigrad import distributed
from oxigrad.distributed.engines.hub import Hub
from oxigrad.distributed.messages.message import Header

JOB = b"1" * 16


async def two_members() -> Hub:
    """A hub whose first generation has two members."""
    hub = Hub(["a", "b"], job=JOB, version="1.0")
    await asyncio.gather(*(hub.enter(uid, JOB, "1.0", 5.0) for uid in "ab"))
    return hub


def message(rank: int, job: bytes = JOB, generation: int = 0) -> np.ndarray:
    head = Header(7).sealed([], job=job, generation=generation, rank=rank)
    return np.frombuffer(head.pack(), np.uint8).copy()


KIND = ("all_gather_v", "<f8")
CALLS: dict[str, tuple[Callable[[Hub], Coroutine[Any, Any, Any]], str]] = {
    "enters with another job": (lambda hub: hub.enter("x", b"2" * 16, "1.0", 0.1), "job"),
    "enters with another version": (lambda hub: hub.enter("x", JOB, "2.0", 0.1), "version"),
    "forms a generation": (lambda hub: hub.reform("x", 0, 0, 0.1), "member"),
    "takes part in an operation": (lambda hub: hub.collect("x", 0, 1, KIND, [np.ones(1)], 0.1), "member"),
    "takes a message": (lambda hub: hub.take("x", 0, 7, None, 0.1), "member"),
    "sends": (lambda hub: hub.post("x", 0, 0, message(1)), "member"),
    "sends as another rank": (lambda hub: hub.post("b", 0, 0, message(0)), "rank"),
    "sends with another job": (lambda hub: hub.post("b", 0, 0, message(1, b"2" * 16)), "job"),
    "sends with another generation": (lambda hub: hub.post("b", 0, 0, message(1, generation=1)), "generation"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_stranger_is_refused_by_name_and_changes_nothing(name: str) -> None:
    async def scenario() -> Any:
        hub = await two_members()
        call, _ = CALLS[name]
        with pytest.raises(distributed.Refused, match="expected") as refusal:
            await call(hub)
        gathered = await asyncio.gather(
            *(hub.collect(uid, 0, 1, KIND, [np.full(1, float(rank))], 5.0) for rank, uid in enumerate("ab"))
        )
        received = await hub.take("a", 0, 7, None, 0.01)
        formed = await asyncio.gather(*(hub.reform(uid, rank, 0, 5.0) for rank, uid in enumerate("ab")))
        return refusal.value.reason, [float(each[0]) for each in gathered[0]], received, formed

    reason, gathered, received, formed = asyncio.run(scenario())
    assert reason == CALLS[name][1]
    assert gathered == [0.0, 1.0] and received is None
    assert formed == [(0, 2, 1), (1, 2, 1)]


@pytest.mark.parametrize("rank", [-1, 2])
def test_a_rank_that_nobody_has_is_not_excluded(rank: int) -> None:
    async def scenario() -> Any:
        hub = await two_members()
        await hub.exclude("a", 0, rank)
        return await hub.alive("a", 0)

    assert asyncio.run(scenario()) == [0, 1]

    def worker(comm: Any) -> None:
        with pytest.raises(ValueError, match=f"the rank is {rank}: expected 0 to 1"):
            comm.exclude(rank)
        with pytest.raises(ValueError, match=f"the rank is {comm.rank}, this worker's own: expected another worker's"):
            comm.exclude(comm.rank)

    distributed.run(worker, workers=2)
