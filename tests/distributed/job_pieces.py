"""The work of workers in tests of large messages, which are sent in pieces while they are copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from job_faults import die

from oxigrad.distributed import Header, WorkerLost

TAG, GO_ON = 6, 9


def sent(rank: int) -> list[np.ndarray]:
    """Buffers of several pieces, of which some have parts of two buffers."""
    rng = np.random.default_rng(rank)
    return [rng.standard_normal(5), rng.standard_normal(600_001).astype("f4"), rng.standard_normal(200_000)]


def _after_a_piece(act: Callable[[], Any]) -> None:
    """Makes this worker call a function once, when it has sent one piece of a message."""
    from oxigrad.distributed.engines.mpi import transport

    copied, calls = transport.copied, []

    def hooked(*arguments: Any) -> int:
        calls.append(None)
        if len(calls) == 2:
            transport.copied = copied
            act()
        return copied(*arguments)

    transport.copied = hooked


def _received(comm: Any, timeout: float | None = None) -> int | None:
    """Receives a message of `sent`; returns the rank of its sender."""
    memory = [np.empty_like(buffer) for buffer in sent(0)]
    if (head := comm.recv_any(memory, tag=TAG, timeout=timeout)) is None:
        return None
    assert all(np.array_equal(found, given) for found, given in zip(memory, sent(head.rank), strict=True))
    return head.rank


def pause_between_pieces(comm: Any) -> list[Any]:
    """Rank 1 pauses between two pieces until rank 0 has received a message of rank 2; returns whose messages rank 0 receives."""
    word = np.zeros(1)

    def pause() -> None:
        comm.send(2, Header(GO_ON), [word])
        assert comm.recv_any([word], tag=GO_ON, source=0) is not None

    if comm.rank == 0:
        found = [_received(comm)]
        comm.send(1, Header(GO_ON), [word])
        return [*found, _received(comm), dict(comm.refused)]
    if comm.rank == 1:
        _after_a_piece(pause)
    else:
        assert comm.recv_any([word], tag=GO_ON, source=1) is not None
    comm.send(0, Header(TAG), sent(comm.rank))
    return []


def fail_between_pieces(comm: Any) -> list[Any]:
    """Rank 1 fails between two pieces, sends a damaged message and one for which there is no memory, and goes on.

    Returns whose messages rank 0 receives, and what it refuses.
    """
    from oxigrad.distributed.engines.mpi import transport

    if comm.rank == 0:
        return [_received(comm), _received(comm, 0.2), dict(comm.refused)]
    _after_a_piece(lambda: 1 / 0)
    try:
        comm.send(0, Header(TAG), sent(1))
    except ZeroDivisionError:
        comm.send(0, Header(TAG), [*sent(1), np.zeros(1)])
        copied = transport.copied
        transport.copied = lambda *arguments: copied(*arguments) ^ 1
        comm.send(0, Header(TAG), sent(1))
        transport.copied = copied
        comm.send(0, Header(TAG), sent(1))
    return []


def die_between_pieces(comm: Any) -> list[Any]:
    """Rank 1 dies between two pieces; returns whose messages the others receive, and what they refuse."""
    if comm.rank == 1:
        _after_a_piece(lambda: die(comm))
        comm.send(0, Header(TAG), sent(1))
    if comm.rank == 0:
        try:
            comm.recv_any(lambda head: sent(0), tag=TAG, source=1, timeout=60)
        except WorkerLost as error:
            return [sorted(error.ranks), _received(comm), dict(comm.refused)]
    comm.send(0, Header(TAG), sent(comm.rank))
    return []
