"""Callers that are no workers of a job: those of the hub, which threads share and Ray's actor is; see `test_torch_membership` for the store."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from oxigrad import distributed
from oxigrad.distributed.engines.hub import Hub
from oxigrad.distributed.messages.message import Header

JOB = b"1" * 16


def of_both(call: Callable[[str, int], Any]) -> Iterable[Any]:
    """The results of a call of each of two workers, by name and rank, at the same time."""
    with ThreadPoolExecutor() as pool:
        return [*pool.map(call, "ab", range(2))]


def two_members() -> Hub:
    """A hub whose first generation has two members."""
    hub = Hub(["a", "b"], JOB, "1.0")
    of_both(lambda uid, rank: hub.enter(uid, JOB, "1.0", 5.0))
    return hub


def message(rank: int, job: bytes = JOB, generation: int = 0) -> np.ndarray:
    head = Header(7).sealed([], job=job, generation=generation, rank=rank)
    return np.frombuffer(head.pack(), np.uint8).copy()


KIND = ("all_gather_v", "<f8")
CALLS: dict[str, tuple[Callable[[Hub], Any], str]] = {
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
    hub, (call, reason) = two_members(), CALLS[name]
    with pytest.raises(distributed.Refused, match="expected") as refusal:
        call(hub)
    assert refusal.value.reason == reason
    first, _ = of_both(lambda uid, rank: hub.collect(uid, 0, 1, KIND, [np.full(1, float(rank))], 5.0))
    gathered, received = [float(each[0]) for each in first], hub.take("a", 0, 7, None, 0.01)
    formed = of_both(lambda uid, rank: hub.reform(uid, rank, 0, 5.0))
    assert gathered == [0.0, 1.0] and received is None
    assert formed == [(0, 2, 1), (1, 2, 1)]


@pytest.mark.parametrize("rank", [-1, 2])
def test_a_rank_that_nobody_has_is_not_excluded(rank: int) -> None:
    hub = two_members()
    hub.exclude("a", 0, rank)
    assert hub.alive("a", 0) == [0, 1]

    def worker(comm: Any) -> None:
        with pytest.raises(ValueError, match=f"the rank is {rank}: expected 0 to 1"):
            comm.exclude(rank)
        with pytest.raises(ValueError, match=f"the rank is {comm.rank}, this worker's own: expected another worker's"):
            comm.exclude(comm.rank)

    distributed.run(worker, workers=2)
