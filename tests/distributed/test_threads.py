"""The engine of threads: collective operations, messages, time-outs, deaths, and workers that join and leave."""

import functools
import hashlib
import itertools
import sys
import threading
from typing import Any

import numpy as np
import pytest

from oxigrad import StructureError, distributed, optim
from oxigrad.distributed import Aborted, Header, NotSupported, Refused, TimedOut, WorkerLost
from oxigrad.distributed.communicator import SingleWorker
from oxigrad.distributed.engines.threads import ThreadCommunicator, ThreadJob
from oxigrad.distributed.messages.reduction import reduce_in_order

DEADLINE = 60.0
SIZES = [1, 100, 40_000]  # below and above the size from which workers share a reduction


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("op", ["sum", "mean", "max"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_all_reduce_is_in_the_order_of_ranks(size: int, op: Any, dtype: Any) -> None:
    given = [np.random.default_rng(rank).normal(size=size).astype(dtype) for rank in range(3)]
    expected = np.empty(size, dtype)
    reduce_in_order([buffer.copy() for buffer in given], op, expected)

    def worker(comm: Any) -> np.ndarray:
        buffer = given[comm.rank].copy()
        comm.all_reduce([buffer], op=op)
        return buffer

    for found in distributed.run(worker, workers=3):
        assert found.tobytes() == expected.tobytes()


def test_reduce_in_order_adds_one_after_the_other() -> None:
    given = [np.array([x], np.float32) for x in (1e8, 1.0, -1e8)]
    out = np.empty(1, np.float32)
    reduce_in_order(given, "sum", out)
    assert out[0] == (np.float32(1e8) + np.float32(1)) + np.float32(-1e8)
    halves = [np.array([x], np.float16) for x in (2048.0, 1.0, 1.0)]  # 2048 + 1 is 2048 in float16
    reduce_in_order(halves, "sum", halves[0])
    assert halves[0][0] == 2050.0
    rng = np.random.default_rng(0)
    for size, count, dtype in itertools.product((0, 1, 100_001), (1, 2, 4), ("f2", "f4", "f8", "c8")):
        for op, at in itertools.product(("sum", "mean", *(() if dtype == "c8" else ("max",))), range(count)):
            buffers = [rng.standard_normal(size).astype(dtype) for _ in range(count)]
            combine = np.maximum if op == "max" else np.add
            expected = functools.reduce(combine, [b.astype("f4") if dtype == "f2" else b for b in buffers])
            expected = (expected / expected.dtype.type(count) if op == "mean" else expected).astype(dtype)
            reduce_in_order(buffers, op, buffers[at])
            assert buffers[at].tobytes() == expected.tobytes()
    with pytest.raises(TypeError, match="mean of buffers of dtype int64"):
        reduce_in_order([np.ones(1, np.int64)] * 2, "mean", np.ones(1, np.int64))
    with pytest.raises(ValueError, match="expected 'sum', 'mean' or 'max'"):
        reduce_in_order([np.ones(1)], "min", np.ones(1))  # type: ignore[arg-type]


def test_broadcast_and_gather() -> None:
    def worker(comm: Any) -> Any:
        a, b = np.full(3, float(comm.rank)), np.full(2, comm.rank)
        comm.broadcast([a, b], root=2)
        gathered = comm.all_gather_v(np.arange(comm.rank))
        with pytest.raises(ValueError, match="read-only"):
            gathered[1][:] = 7
        return a.tolist(), b.tolist(), [g.tolist() for g in gathered]

    assert distributed.run(worker, workers=3) == [([2.0] * 3, [2] * 2, [[], [0], [0, 1]])] * 3


def test_many_collective_operations_leave_nothing_behind() -> None:
    def worker(comm: ThreadCommunicator) -> tuple[str, int]:
        digest, buffer = hashlib.sha256(), np.full(5000, 1.0 + comm.rank)
        for number in range(50):
            part = buffer[: 1 + 99 * number]
            comm.all_reduce([part])
            digest.update(part)
        comm.all_gather_v(buffer)
        return digest.hexdigest(), comm.bytes_sent

    job = ThreadJob(worker, 4)
    assert len({*job.wait(DEADLINE)}) == 1
    assert not job._hub._rounds


def test_messages_are_received_by_tag_and_source() -> None:
    def worker(comm: Any) -> Any:
        if comm.rank:
            buffer = np.array([float(comm.rank)])
            comm.send(0, Header(tag=1, step=comm.rank), [buffer])
            buffer[:] = -1  # the message has a copy
            comm.send(0, Header(tag=2), [buffer, np.ones(2)])
            return None
        found, three = np.zeros(1), np.zeros(3)
        from_two = comm.recv_any([found], tag=1, source=2)
        got = [(from_two.rank, from_two.step, found[0])]
        head = comm.recv_any(lambda header: [found], tag=1)
        got.append((head.rank, head.step, found[0]))
        for _ in range(2):
            comm.recv_any([three], tag=2)  # two buffers into one
        assert comm.recv_any([found], tag=3, timeout=0.01) is None
        return got, three.tolist()

    assert distributed.run(worker, workers=3)[0] == ([(2, 2, 2.0), (1, 1, 1.0)], [-1.0, 1.0, 1.0])


def test_a_message_of_another_length_is_refused_and_counted() -> None:
    def worker(comm: Any) -> Any:
        if comm.rank:
            comm.send(0, Header(tag=1), [np.ones(3)])
            comm.send(0, Header(tag=1), [np.ones(2)])
            return None
        found = np.zeros(2)
        assert comm.recv_any([found], tag=1) is not None and found.tolist() == [1.0, 1.0]
        return dict(comm.refused)

    assert distributed.run(worker, workers=2)[0] == {"length": 1}


def test_threads_of_one_worker_may_send_at_the_same_time() -> None:
    """Messages and counts are not lost between the worker and, as an example, its coordinator."""
    count, threads = 2000, 4

    def worker(comm: Any) -> Any:
        if comm.rank == 0:
            got = [comm.recv_any([np.empty(1)], tag=1) for _ in range(count * threads)]
            return [head.step for head in got], dict(comm.refused)

        def send() -> None:
            for step in range(count):
                comm.send(0, Header(tag=1, step=step), [np.ones(1)])

        senders = [threading.Thread(target=send) for _ in range(threads)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        return comm.bytes_sent

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        (steps, refused), sent = distributed.run(worker, workers=2)
    finally:
        sys.setswitchinterval(before)
    assert sorted(steps) == sorted([*range(count)] * threads) and not refused
    assert sent == 8 * count * threads


def test_a_communicator_of_a_former_generation_is_refused_at_once() -> None:
    def worker(comm: Any) -> Any:
        made = comm.reform()
        for operation in (
            lambda: comm.send(1 - comm.rank, Header(tag=1), [np.ones(1)]),
            lambda: comm.recv_any([np.empty(1)], tag=1),
            lambda: comm.all_reduce([np.ones(1)]),
        ):
            with pytest.raises(WorkerLost, match="the generation has ended"):
                operation()
        return made.generation

    assert distributed.run(worker, workers=2) == [1, 1]


# --- faults ------------------------------------------------------------------------------------------------------------


def test_a_wait_ends() -> None:
    def worker(comm: Any) -> Any:
        if comm.rank == 0:
            with pytest.raises(TimedOut, match="all_reduce of the worker of rank 0 took longer than 0.05 s"):
                comm.all_reduce([np.ones(1)], timeout=0.05)
            return None
        threading.Event().wait(0.3)
        with pytest.raises(TimedOut):  # the operation failed for all
            comm.all_reduce([np.ones(1)])
        return None

    distributed.run(worker, workers=2)


def test_workers_that_call_other_operations_are_told() -> None:
    def worker(comm: Any) -> None:
        with pytest.raises(Refused, match="workers called"):
            comm.all_reduce([np.ones(1 + comm.rank)])

    distributed.run(worker, workers=2)


@pytest.mark.parametrize("size", SIZES)
def test_survivors_of_a_death_continue(size: int) -> None:
    def worker(comm: Any) -> Any:
        buffer = np.full(size, 1.0)
        comm.all_reduce([buffer], op="sum")
        if comm.rank == 1:
            job.kill(1)
        with pytest.raises(WorkerLost, match="lost the workers of rank 1") as caught:
            comm.all_reduce([buffer], op="sum")
        assert caught.value.ranks == {1} and comm.alive() == {0, 2}
        again = comm.reform()
        again.all_reduce([buffer], op="sum")
        assert distributed.current() is again and comm is not again
        return buffer[0], again.rank, again.size, again.generation

    job = ThreadJob(worker, 3)
    assert job.wait(DEADLINE) == [(6.0, 0, 2, 1), None, (6.0, 1, 2, 1)]


def test_an_error_of_a_worker_is_raised_with_its_rank_and_ends_the_waits_of_others() -> None:
    def worker(comm: Any) -> None:
        if comm.rank == 2:
            raise ZeroDivisionError("a mistake")
        comm.all_reduce([np.ones(1)])

    with pytest.raises(ZeroDivisionError, match="a mistake") as caught:
        distributed.run(worker, workers=3)
    assert caught.value.__notes__ == ["raised by the worker of rank 2"]


def test_abort_ends_all_waits() -> None:
    def worker(comm: Any) -> None:
        if comm.rank == 0:
            comm.abort("no use")
        comm.recv_any([np.ones(1)], tag=1)

    with pytest.raises(Aborted, match="no use"):
        distributed.run(worker, workers=3)


def test_a_receiver_is_told_of_the_death_of_its_source() -> None:
    def worker(comm: Any) -> None:
        if comm.rank == 1:
            return
        with pytest.raises(WorkerLost):
            comm.recv_any([np.ones(1)], tag=1, source=1)
        with pytest.raises(WorkerLost):
            comm.send(1, Header(tag=1), [])

    distributed.run(worker, workers=2)


def test_a_worker_joins_at_the_next_generation() -> None:
    entered = threading.Event()

    def joiner(comm: Any) -> Any:
        buffer = np.ones(1)
        comm.all_reduce([buffer], op="sum")
        return comm.rank, comm.size, buffer[0]

    def worker(comm: Any) -> Any:
        if comm.rank == 0:
            job.join(joiner)
            entered.set()
        assert entered.wait(DEADLINE)
        return joiner(comm.reform())

    job = ThreadJob(worker, 2, accept_newcomers=True)
    assert job.wait(DEADLINE) == [(0, 3, 3.0), (1, 3, 3.0), (2, 3, 3.0)]


def test_a_restarted_worker_exchanges_messages_in_the_same_generation() -> None:
    def again(comm: Any) -> None:
        comm.send(0, Header(tag=1, step=2), [np.full(1, 2.0)])

    def worker(comm: Any) -> Any:
        found = np.zeros(1)
        if comm.rank == 1:
            comm.send(0, Header(tag=1, step=1), [np.full(1, 1.0)])
            return None
        steps = [comm.recv_any([found], tag=1).step]
        with pytest.raises(WorkerLost):
            comm.recv_any([found], tag=1, source=1)
        job.restart(1, again)
        steps.append(comm.recv_any([found], tag=1).step)  # its numbers of messages begin anew
        return steps

    job = ThreadJob(worker, 2)
    assert job.wait(DEADLINE)[0] == [1, 2]


def test_a_job_of_one_worker() -> None:
    alone = distributed.current()
    buffer = np.ones(2)
    alone.all_reduce([buffer]), alone.broadcast([buffer])
    assert alone.reduce_scatter(buffer, [2]).tolist() == [1.0, 1.0]
    assert alone.all_gather_v(buffer)[0] is buffer and alone.alive() == {0} and alone.size == 1
    assert isinstance(alone, distributed.Communicator)
    with pytest.raises(NotSupported):
        alone.send(0, Header(tag=1), [])
    with pytest.raises(Aborted):
        SingleWorker().abort("end")


def test_a_thread_communicator_is_a_communicator() -> None:
    assert distributed.run(lambda comm: isinstance(comm, distributed.Communicator), workers=2) == [True, True]


def test_engines_are_known_by_name() -> None:
    with pytest.raises(ValueError, match="engine is 'tcp': expected one of threads, mpi, ray, torch"):
        distributed.run(lambda comm: None, engine="tcp")
    with pytest.raises(ValueError, match="workers is 0"):
        distributed.run(lambda comm: None, workers=0)
    with pytest.raises(NotSupported, match="use oxigrad.distributed.run"):
        distributed.communicator("threads")


def test_every_method_gives_the_same_bits_again() -> None:
    import jobs

    first, *others = distributed.run(jobs.every_method, workers=3)
    assert first.keys() == jobs.METHODS.keys()
    assert [first, *others] == distributed.run(jobs.every_method, workers=3)
    for name in ("sync_replicas", "compression", "kfac", "large_batch"):
        assert {each[name] for each in others} == {first[name]}


def test_a_thread_that_cannot_start_ends_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """The workers that have started do not wait for it until they time out."""
    start, ended = threading.Thread.start, threading.Event()
    found: list[BaseException] = []

    def limited(thread: threading.Thread) -> None:
        if thread.name == "worker-2":
            raise RuntimeError("can't start new thread")
        start(thread)

    def worker(comm: Any) -> None:
        try:
            comm.all_reduce([np.ones(1)])
        except Aborted as error:
            found.append(error)
            if len(found) == 2:
                ended.set()
            raise

    monkeypatch.setattr(threading.Thread, "start", limited)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        distributed.run(worker, workers=3)
    assert ended.wait(DEADLINE)


def test_a_worker_that_reforms_ends_the_waits_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rank 0 waits for a message of rank 2, which is alive and has seen the loss of rank 1."""
    waits = threading.Event()
    wait = threading.Condition.wait

    def seen(condition: threading.Condition, timeout: float | None = None) -> bool:
        if threading.current_thread().name == "worker-0" and condition is job._hub.lock:
            waits.set()  # it holds the lock, which the others take after it has begun to wait
        return wait(condition, timeout)

    def worker(comm: Any) -> int:
        if comm.rank == 0:
            with pytest.raises(WorkerLost):
                comm.recv_any([], tag=1, source=2)
        else:
            assert waits.wait(DEADLINE)
            if comm.rank == 1:
                job.kill(1)
                comm.alive(), comm.recv_any([], tag=2)
            job._threads[1].join(DEADLINE)
        return comm.reform().size

    monkeypatch.setattr(threading.Condition, "wait", seen)
    job = ThreadJob(worker, 3, timeout=2 * DEADLINE)
    assert job.wait(DEADLINE) == [2, None, 2]


def test_a_worker_joins_only_where_the_job_accepts_newcomers() -> None:
    job = ThreadJob(lambda comm: comm.rank, 2)
    with pytest.raises(distributed.NotSupported, match="accepts no newcomers: expected accept_newcomers=True"):
        job.join()
    assert job.wait(DEADLINE) == [0, 1]
    assert distributed.run(lambda comm: comm.rank, workers=2, accept_newcomers=True) == [0, 1]


@pytest.mark.parametrize("shared", ["model", "optimizer", "module", "wrapper"])
@pytest.mark.parametrize(
    "method", [distributed.DataParallel, lambda optimizer: distributed.SyncReplicas(optimizer, 2, 2)]
)
def test_objects_that_workers_share_are_refused(shared: str, method: Any) -> None:
    model, optimizer, wrapper = {"w": np.zeros(2)}, optim.SGD(1.0), method(optim.SGD(1.0))
    module = pytest.importorskip("torch").nn.Linear(2, 1) if shared == "module" else None

    def worker(comm: Any) -> Any:
        opt = wrapper if shared == "wrapper" else method(optimizer if shared == "optimizer" else optim.SGD(1.0))
        if module is not None:
            return opt.update(module, {"weight": np.ones((1, 2), np.float32), "bias": np.ones(1, np.float32)})
        return opt.update(model if shared == "model" else {"w": np.zeros(2)}, {"w": np.full(2, comm.rank + 1.0)})

    names = {
        "model": "^w: ",
        "optimizer": "^the optimizer: ",
        "module": "^(weight|bias): ",
        "wrapper": "it trains alone",
    }
    with pytest.raises(StructureError, match=names[shared]):
        distributed.run(worker, workers=2, timeout=DEADLINE)


def test_arrays_that_no_step_writes_to_may_be_shared() -> None:
    array = np.zeros(2)
    array.flags.writeable = False

    def worker(comm: Any) -> Any:
        return distributed.DataParallel(optim.SGD(1.0)).update({"w": array}, {"w": np.full(2, comm.rank + 1.0)})

    for model in distributed.run(worker, workers=2):
        np.testing.assert_array_equal(model["w"], [-1.5, -1.5])
