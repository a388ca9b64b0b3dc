"""The coordinator apart from any transport: malformed and repeated requests."""

from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import distributed, optim
from oxigrad.distributed.coordination.coordinator import Coordinator
from oxigrad.distributed.coordination.replica import Replica
from oxigrad.distributed.coordination.service import ANY, JOIN, PUSH, REPLY_WORDS, REQUEST
from oxigrad.distributed.decisions.replicas import Replicas
from oxigrad.distributed.messages import agreement
from oxigrad.distributed.messages.message import Header, as_bytes

# --- the coordinator apart from any transport --------------------------------------------------------------------------


def request(coordinator: Coordinator, kind: int, rank: int, number: int, step: int, bufs: Any = ()) -> Any:
    description = agreement.described(coordinator.replica.arrays)
    words = [np.array([kind, number, 1, 0], np.int64), *([description] if kind == JOIN else bufs)]
    header = Header(REQUEST, step, ANY if kind == JOIN else coordinator.codec.digest).sealed(words, rank=rank)
    memory = coordinator.memory(header)
    memory[0][:] = np.concatenate([as_bytes(buffer) for buffer in words])
    return coordinator.receive(header, memory[0])


def test_requests_that_are_malformed_change_nothing() -> None:
    own = ox.tree.parameters({"w": np.zeros((4, 2))})
    coordinator = Coordinator(Replica(optim.SGD(1.0), own), Replicas(1))
    codec = coordinator.codec
    request(coordinator, JOIN, 0, 0, 0)
    good = codec.encode({"w": np.ones((4, 2))})
    rows = codec.encode({"w": ox.SparseRows([1, 3], np.ones((2, 2)), (4, 2))})
    wrong: list[Any] = [
        good[:1],
        [*good, np.zeros(1)],
        [np.array([-2]), *good[1:]],
        [np.array([5]), *rows[1:]],
        [np.array([2]), np.array([3, 1]), rows[2]],
        [np.array([2]), np.array([1, 1]), rows[2]],
        [np.array([2]), np.array([-1, 1]), rows[2]],
        [np.array([2]), np.array([1, 4]), rows[2]],
    ]
    for bufs in wrong:
        with pytest.raises(distributed.Refused):
            request(coordinator, PUSH, 0, 1, 0, bufs)
    with pytest.raises(distributed.Refused):
        request(coordinator, 9, 0, 1, 0, good)
    with pytest.raises(distributed.Refused, match="other parameters"):
        coordinator.memory(Header(REQUEST, 0, b"another ").sealed([np.zeros(4)]))
    with pytest.raises(distributed.Refused, match="bytes of payload"):
        coordinator.memory(Header(REQUEST, 0, codec.digest).sealed([np.zeros(10_000)]))
    assert coordinator.decisions.step == 0 and not coordinator.replica.arrays["w"].any()
    request(coordinator, PUSH, 0, 1, 0, rows)
    np.testing.assert_array_equal(coordinator.replica.arrays["w"], [[0, 0], [-1, -1], [0, 0], [-1, -1]])


def test_a_repeated_gradient_counts_once() -> None:
    own = ox.tree.parameters({"w": np.zeros(2)})
    coordinator = Coordinator(Replica(optim.SGD(1.0), own), Replicas(2, expected=2))
    for rank in range(2):
        request(coordinator, JOIN, rank, 0, 0)
    bufs = coordinator.codec.encode({"w": np.ones(2)})
    assert request(coordinator, PUSH, 0, 1, 0, bufs) == request(coordinator, PUSH, 0, 1, 0, bufs) == []
    assert len(request(coordinator, PUSH, 1, 1, 0, bufs)) == 2
    (again,) = request(coordinator, PUSH, 1, 1, 0, bufs)
    assert again.bufs[0].tolist()[REPLY_WORDS:][:3] == [1, 1, 0]  # the number, accepted, fresh
    assert coordinator.replica.arrays["w"].tolist() == [-1.0, -1.0] and coordinator.reports[1].accepted >= 1
