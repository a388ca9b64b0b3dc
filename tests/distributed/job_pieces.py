"""The work of workers in tests of large messages, which MPI transfers in pieces."""

from __future__ import annotations

from typing import Any

import numpy as np
from job_faults import die

from oxigrad.distributed import Header, WorkerLost

TAG = 6


def sent(rank: int) -> list[np.ndarray]:
    """Buffers of several pieces, of which some have parts of two buffers."""
    rng = np.random.default_rng(rank)
    return [rng.standard_normal(5), rng.standard_normal(601).astype("f4"), rng.standard_normal(200)]


def _in_pieces() -> None:
    """Makes pieces of a thousand bytes."""
    from oxigrad.distributed.engines.mpi import transport

    transport.PIECE = 1000


def _received(comm: Any, timeout: float | None = None) -> int | None:
    """Receives a message of `sent`; returns the rank of its sender."""
    memory = [np.empty_like(buffer) for buffer in sent(0)]
    if (head := comm.recv_any(memory, tag=TAG, timeout=timeout)) is None:
        return None
    assert all(np.array_equal(found, given) for found, given in zip(memory, sent(head.rank), strict=True))
    return head.rank


def send_in_pieces(comm: Any) -> list[Any]:
    """Rank 0 receives messages of all workers, and one for which it has no memory; returns whose they are, and what it refuses."""
    _in_pieces()
    comm.all_reduce([np.zeros(1)])
    if comm.rank == 1:
        comm.send(0, Header(TAG), [*sent(1), np.zeros(1)])
        comm.send(0, Header(TAG), [np.zeros(1000 - 56, np.uint8)])  # as long as a piece
    for _ in range(5):
        comm.send(0, Header(TAG), sent(comm.rank))
    if comm.rank:
        return []
    return [sorted(_received(comm) or 0 for _ in range(5 * comm.size)), dict(comm.refused)]


def die_between_pieces(comm: Any) -> list[Any]:
    """Rank 1 dies between two pieces; returns whose messages the others receive, and what they refuse."""
    _in_pieces()
    comm.all_reduce([np.zeros(1)])
    if comm.rank == 1:
        first = comm._messages.Isend
        message = np.frombuffer(_whole(comm), np.uint8)[:1000].copy()
        first([message, 1000], 0).Wait()
        comm.recv_any([np.empty(1)], tag=9)
        die(comm)
    if comm.rank == 0:
        assert comm.recv_any([np.empty(1)], tag=TAG, source=1, timeout=0.1) is None
        comm.send(1, Header(9), [np.zeros(1)])
        try:
            comm.recv_any(lambda head: sent(0), tag=TAG, source=1, timeout=60)
        except WorkerLost as error:
            return [sorted(error.ranks), _received(comm)]
    comm.send(0, Header(TAG), sent(comm.rank))
    return []


def _whole(comm: Any) -> bytes:
    """The bytes of a message of rank 1."""
    header = Header(TAG).sealed(sent(1), job=comm.job, rank=1)
    return header.pack() + b"".join(buffer.tobytes() for buffer in sent(1))
