"""The work of workers in tests of engines: collective operations, messages, and malformed ones."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
import time
from collections import Counter
from typing import Any

import numpy as np
from job_faults import DEADLINE, FAULTS, die

from oxigrad import launch
from oxigrad.distributed import (
    Header,
    Refused,
    TimedOut,
    WorkerLost,
)
from oxigrad.distributed.engines import collectives

REFUSED = {
    "magic": 1,
    "version": 1,
    "job": 1,
    "generation": 1,
    "rank": 1,
    "length": 3,
}
"""Messages that `receive_from_hostile` refuses, by reason; a hub refuses them to their sender."""


# --- workers ------------------------------------------------------------------------------------------------------------


def exchange(comm: Any) -> str:
    """Every operation; returns a digest of what this worker received."""
    rng, digest = np.random.default_rng(comm.rank), hashlib.sha256()
    for size in (0, 1, 7, 1000, 100_003):
        for op in ("mean", "sum", "max"):
            a, b = rng.standard_normal(size).astype("f4"), rng.standard_normal(size + 1)
            half = rng.standard_normal(size).astype("f2")
            comm.all_reduce([a, b, half], op=op)
            for buffer in (a, b, half):
                digest.update(buffer.tobytes())
    total = np.full(100_003, comm.rank + 1.0)
    comm.all_reduce([total], op="sum", deterministic=False)
    assert np.array_equal(total, np.full(100_003, comm.size * (comm.size + 1) / 2))
    counts = np.full(5, comm.rank, "i4")
    comm.broadcast([counts, total], 1)
    assert counts.tolist() == [1] * 5
    gathered = comm.all_gather_v(np.arange(comm.rank * 3, dtype="i8"))
    assert [part.tolist() for part in gathered] == [list(range(rank * 3)) for rank in range(comm.size)]
    _scatter(comm, rng, digest)
    piece, collectives.PIECE = collectives.PIECE, 8 * 1000 * comm.size  # the same in pieces of a thousand elements
    _scatter(comm, rng, digest)
    gathered = comm.all_gather_v(np.arange(comm.rank * 5003, dtype="f8"))
    collectives.PIECE = piece
    assert [part.tolist() for part in gathered] == [list(range(rank * 5003)) for rank in range(comm.size)]
    for size in (0, 4, 5000, 300_000):
        _ring(comm, rng, size, digest)
    assert comm.recv_any([np.empty(1)], tag=9, timeout=0.01) is None
    assert comm.alive() >= {comm.rank}
    assert comm.bytes_sent > 0
    return digest.hexdigest()


def _scatter(comm: Any, rng: np.random.Generator, digest: Any) -> None:
    """The parts of reductions that workers receive, of one size and of others, are those of reductions of all."""
    for own in (0, 1, 5000):
        for counts in ([own] * comm.size, [rank * own for rank in range(comm.size)], [*(comm.size - 1) * [0], own]):
            for op in ("mean", "sum", "max"):
                given = rng.standard_normal(sum(counts))
                whole = given.copy()
                comm.all_reduce([whole], op=op)
                start = sum(counts[: comm.rank])
                found = comm.reduce_scatter(given, counts, op=op)
                assert np.shares_memory(found, given) or not found.size
                assert found.tobytes() == whole[start : start + counts[comm.rank]].tobytes()
                digest.update(found.tobytes())
    try:
        comm.reduce_scatter(np.ones(3), [3])
    except ValueError as error:
        assert f"counts are [3]: expected one for each of {comm.size} workers, 3 together" in str(error)  # noqa: PT017
    else:
        raise AssertionError("counts of one worker were taken")


def _ring(comm: Any, rng: np.random.Generator, size: int, digest: Any) -> None:
    """Sends a message to the next worker and to this one, and receives that of the last one."""
    own, other = [rng.standard_normal(size), np.full(3, comm.rank)], [np.empty(size), np.empty(3, int)]
    for dest in ((comm.rank + 1) % comm.size, comm.rank):
        comm.send(dest, Header(tag=5, step=size, digest=b"12345678"), own)
    own[0] += 1  # the message is not changed
    for source in (comm.rank, (comm.rank - 1) % comm.size):
        head = comm.recv_any(lambda head: other, tag=5, source=source)
        assert (head.rank, head.step, head.digest) == (source, size, b"12345678")
        assert other[1].tolist() == [source] * 3
        digest.update(other[0].tobytes())


def train(
    comm: Any, victims: list[int] | None = None, how: str = "kill", steps: int = 12, wanted: int = 1
) -> list[Any]:
    """Adds the mean of all workers' ones to parameters, and goes on with the survivors of a fault in step 3, once they are as
    many as wanted.

    Returns the rank, the size and the generation at the end, the sum of the parameters, and the number of steps.
    """
    state, step = np.zeros(20_000), 0
    first = comm.generation == 0
    if not first and comm.size >= wanted:
        step = _restored(comm, state, step)
    while step < steps:
        if first and comm.generation == 0 and step == 3 and comm.rank in (victims or []):
            FAULTS[how](comm)
        gradient = np.full(20_000, 1.0 if comm.rank < 100 else np.nan)
        try:
            comm.all_reduce([gradient])
        except WorkerLost:
            comm = comm.reform()
            while comm.size < wanted:
                comm = comm.reform()
            step = _restored(comm, state, step)
            continue
        state += gradient
        step += 1
    return [comm.rank, comm.size, comm.generation, float(state.sum()), step]


def _restored(comm: Any, state: np.ndarray, step: int) -> int:
    """Takes parameters and step of the worker of rank 0, which is a survivor."""
    steps = np.array([step])
    comm.broadcast([steps, state])
    return int(steps[0])


def disagree(comm: Any) -> str:
    """Another layout of buffers, and another operation, than the other workers have: refused by all of them."""
    try:
        comm.all_reduce([np.zeros(3 if comm.rank == 1 else 4)])
    except Refused as error:
        return error.reason
    return "accepted"


def divide_otherwise(comm: Any) -> str:
    """Another division of a buffer than the other workers have: refused by all of them."""
    others = [0] * (comm.size - 2)
    try:
        comm.reduce_scatter(np.zeros(4), [3, *others, 1] if comm.rank == 1 else [1, *others, 3])
    except Refused as error:
        return error.reason
    return "accepted"


def outlive(comm: Any) -> list[bool]:
    """Rank 1 dies; returns, on the others, whether threads of the engine go on that serve it."""
    if comm.rank == 1:
        die(comm)
    while 1 in comm.alive():
        time.sleep(0.01)
    for thread in comm._threads[1]:
        thread.join(DEADLINE)
    return [thread.is_alive() for thread in comm._threads[1]]


def fail_while_forming(comm: Any, stage: str) -> list[int]:
    """Rank 0 dies. While the others form the next generation of MPI, rank 2 alone is told of a death, so that it takes no part in an operation.

    Returns the size of the generation, and the sum over its workers.
    """
    from mpi4py import MPI

    from oxigrad.distributed.engines.mpi import membership

    owner: Any = membership.Membership if stage == "_states_of" else membership
    operation, failed = getattr(owner, stage), []

    def fail_once(*arguments: Any, **options: Any) -> Any:
        if not failed:
            failed.append(True)
            raise MPI.Exception(MPI.ERR_PROC_FAILED)
        return operation(*arguments, **options)

    if comm.rank == 2:
        setattr(owner, stage, fail_once)
    if comm.rank == 0:
        die(comm)
    try:
        comm.all_reduce([np.zeros(1)])
    except WorkerLost:
        comm = comm.reform()
    total = np.ones(1)
    comm.all_reduce([total], op="sum")
    return [comm.size, int(total[0])]


def torch_faults(comm: Any) -> list[Any]:
    """The death of rank 1, of which rank 0 is told, and after which it goes on alone."""
    found: list[Any] = [disagree(comm)]
    if comm.rank == 1:
        die(comm)
    try:
        comm.all_reduce([np.zeros(4)])
    except WorkerLost as error:
        found.append(f"lost {sorted(error.ranks)}")
    comm = comm.reform()
    comm.all_reduce([total := np.ones(4)])
    return [*found, comm.size, comm.generation, total.tolist()]


def late_once(comm: Any) -> str:
    """An operation that one worker calls after the other's time-out, which fails for both."""
    if comm.rank == 1:
        time.sleep(1)
    try:
        comm.all_reduce([np.zeros(4)], timeout=0.3)
    except TimedOut:
        return "timed out"
    return "completed"


def grow(comm: Any) -> list[int]:
    """Two workers wait for a third; returns rank, size, and the sum of all ones."""
    while comm.size < 3:
        try:
            comm = comm.reform(timeout=0.5)
        except TimedOut:
            continue
    total = np.ones(1, int)
    comm.all_reduce([total], op="sum")
    return [comm.rank, comm.size, int(total[0])]


def fail_alone(comm: Any) -> None:
    """One worker fails, and the other gets to know it."""
    if comm.rank == 1:
        raise ArithmeticError("the loss diverged")
    comm.all_reduce([np.zeros(1)])


def wait_for_nothing(comm: Any) -> None:
    """Prints its process, and waits for a message that nobody sends."""
    sys.stdout.write(f"pid {os.getpid()}\n")
    sys.stdout.flush()
    comm.recv_any([np.empty(1)], tag=1, timeout=600)


def send_by_threads(comm: Any) -> list[Any]:
    """Rank 1 sends messages of several sizes by four threads; returns how many rank 0 receives, and what it refuses."""

    def send(number: int) -> None:
        for step in range(100):
            comm.send(0, Header(tag=6, step=step), [np.full(step % 5 * 1000, number, np.int64)])

    if comm.rank == 1:
        threads = [threading.Thread(target=send, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return []
    count = 0
    while count < 400:
        into: list[np.ndarray] = []

        def memory(header: Header, into: list[np.ndarray] = into) -> list[np.ndarray]:
            into[:] = [np.empty(header.payload_bytes // 8, np.int64)]
            return into

        if comm.recv_any(memory, tag=6, timeout=20) is None:
            break
        assert len(set(into[0].tolist())) <= 1
        count += 1
    return [count, dict(comm.refused)]


def send_in_blocks(comm: Any) -> list[Any]:
    """All workers send rank 0 messages of more bytes than MPI counts, which are a thousand here, and one of them a longer one than it has memory for.

    Returns whose messages rank 0 receives, and what it refuses.
    """
    from oxigrad.distributed.engines.mpi import transport

    def sent(rank: int) -> list[np.ndarray]:
        rng = np.random.default_rng(rank)
        return [rng.standard_normal(5), rng.standard_normal(601).astype("f4"), rng.standard_normal(200)]

    def received() -> int:
        memory = [np.empty_like(buffer) for buffer in sent(0)]
        head = comm.recv_any(memory, tag=6)
        assert all(np.array_equal(found, given) for found, given in zip(memory, sent(head.rank), strict=True))
        return head.rank

    transport.BLOCK = 1000
    if comm.rank == 1:
        comm.send(0, Header(6), [*sent(1), np.zeros(1)])
        comm.send(0, Header(6), [np.zeros(1000 - 56, np.uint8)])  # as long as a block
    for _ in range(5):
        comm.send(0, Header(6), sent(comm.rank))
    return [] if comm.rank else [sorted(received() for _ in range(5 * comm.size)), dict(comm.refused)]


def late(comm: Any) -> str:
    """A worker that does not come: the others' time-out."""
    if comm.rank == 1:
        time.sleep(60)
    try:
        comm.all_reduce([np.zeros(4)], timeout=0.5)
    except TimedOut:
        return "timed out"
    return "completed"


def receive_from_hostile(comm: Any) -> dict[str, int] | None:
    """Rank 1 sends messages of every malformed class and good ones between them.

    Returns what rank 0 refused by reason, and what rank 1 was told to be refused.
    """
    good = [np.arange(6.0)]

    def sealed(step: int, **changes: Any) -> Header:
        given = {"job": comm.job, "generation": comm.generation, "rank": 1, **changes}
        return Header(7, step, b"12345678").sealed(good, **given)

    if comm.rank != 1:
        return _accepted(comm) if comm.rank == 0 else None
    told: Counter[str] = Counter()
    for step, (header, payload) in enumerate(_malformed(sealed, good[0].tobytes())):
        try:
            _post(comm, header, payload)
        except Refused as error:
            told[error.reason] += 1
        _post(comm, sealed(2 * step + 1).pack(), good[0].tobytes())
    assert comm.recv_any([np.empty(0)], tag=8) is not None
    comm.timeout = 1.0  # what nobody receives is not waited for
    return dict(told)


def _malformed(sealed: Any, payload: bytes) -> list[tuple[bytes, bytes]]:
    """Malformed messages: header and payload. The first is well-formed."""
    whole = sealed(2).pack()
    return [
        (sealed(0).pack(), payload),
        (b"XXXX" + whole[4:], payload),  # another protocol
        (whole[:4] + b"\x63\x00" + whole[6:], payload),  # another version
        (sealed(6, job=b"of another job  ").pack(), payload),
        (sealed(8, generation=3).pack(), payload),
        (sealed(10, rank=77).pack(), payload),
        (sealed(12).pack(), payload[:-8]),  # truncated
        (sealed(14).pack(), payload + bytes(8)),  # too long
        (sealed(16).pack(), bytes(1 << 17)),  # far too long
    ]


def _post(comm: Any, header: bytes, payload: bytes) -> None:
    """Sends bytes to rank 0 as a message, unchecked."""
    comm._post(0, np.frombuffer(header + payload, np.uint8).copy())


def _accepted(comm: Any) -> dict[str, int]:
    """Receives the good messages."""
    steps = []
    while not steps or steps[-1] != 17:
        into = np.zeros(6)
        head = comm.recv_any([into], tag=7)
        assert head is not None, (steps, comm.refused)
        assert head.digest == b"12345678"
        assert np.array_equal(into, np.arange(6.0)), into
        steps.append(head.step)
    assert steps == [0, *range(1, 18, 2)], steps
    comm.send(1, Header(tag=8), [np.empty(0)])
    return dict(comm.refused)


def listening_names(comm: Any) -> list[str]:
    """The sockets that this process listens on, after an exchange, for long enough that the launcher prints it."""
    comm.all_reduce([np.zeros(100_000)])
    time.sleep(1.5)
    return [str(entry) for entry in launch.listening(os.getpid())]


def exit_alone(comm: Any) -> int:
    """One worker ends by `SystemExit` before its first message."""
    if comm.rank == 1:
        raise SystemExit("no data set")
    return comm.rank
