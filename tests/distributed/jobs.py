"""The work of the workers in tests, and a program that does it in a process of MPI or torch: ``python jobs.py mpi exchange 3``.

A program prints one line of JSON for the result of its worker; see `results`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import oxigrad as ox
from oxigrad import distributed, launch
from oxigrad.distributed import (
    Excluded,
    Header,
    Layout,
    NotSupported,
    Refused,
    TimedOut,
    WorkerLost,
)
from oxigrad.distributed.communicator import Alone, serving
from oxigrad.distributed.coordination import elastic_centre
from oxigrad.distributed.coordination.coordinator import REQUEST
from oxigrad.distributed.messages import agreement

DEADLINE = 240
"""Seconds after which a test counts as hanging."""


REFUSED = {
    "magic": 1,
    "version": 1,
    "job": 1,
    "generation": 1,
    "rank": 1,
    "length": 3,
    "checksum": 2,
    "sequence": 1,
}
"""Messages that `receive_from_hostile` refuses, by reason."""

STRAGGLED = [[0, 10, []], [1, 10, []], [2, 0, ["stale"]]]
"""The results of `straggle`."""


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
    for size in (0, 4, 5000, 300_000):
        _ring(comm, rng, size, digest)
    assert comm.recv_any([np.empty(1)], tag=9, timeout=0.01) is None
    assert comm.alive() >= {comm.rank}
    assert comm.bytes_sent > 0
    return digest.hexdigest()


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


def _die(comm: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _leave(comm: Any) -> None:
    comm.leave()
    raise SystemExit


def _fail(comm: Any) -> None:
    raise ArithmeticError("the loss diverged")


def _stop_and_continue(comm: Any) -> None:
    """Stops this process; another one, which it has started, continues it after a second."""
    resume = f"import os, time; time.sleep(1); os.kill({os.getpid()}, {int(signal.SIGCONT)})"
    with subprocess.Popen([sys.executable, "-c", resume]):
        os.kill(os.getpid(), signal.SIGSTOP)


def _stop(comm: Any) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _stop_until(goes_on: Path) -> None:
    """Stops this process; another one, which it has started, continues it as soon as a file exists."""
    resume = (
        f"import os, time\nwhile not os.path.exists({str(goes_on)!r}):\n    time.sleep(0.01)\n"
        f"os.kill({os.getpid()}, {int(signal.SIGCONT)})"
    )
    with subprocess.Popen([sys.executable, "-c", resume]):
        os.kill(os.getpid(), signal.SIGSTOP)


def _kill_coordinator(comm: Any) -> None:
    import ray

    os.kill(ray.get(comm._coordinator.pid.remote()), signal.SIGKILL)


FAULTS = {
    "coordinator": _kill_coordinator,
    "kill": _die,
    "leave": _leave,
    "fail": _fail,
    "continue": _stop_and_continue,
    "stop": _stop,
    "fence": _stop_until,
}


def disagree(comm: Any) -> str:
    """Another layout of buffers, and another operation, than the other workers have: refused by all of them."""
    try:
        comm.all_reduce([np.zeros(3 if comm.rank == 1 else 4)])
    except Refused as error:
        return error.reason
    return "accepted"


def torch_faults(comm: Any) -> list[str]:
    """The death of rank 1, of which a group of torch tells the others, and which it does not survive."""
    found = [disagree(comm)]
    if comm.rank == 1:
        _die(comm)
    try:
        comm.all_reduce([np.zeros(4)])
    except WorkerLost as error:
        found.append(f"lost {sorted(error.ranks)}")
    try:
        comm.reform()
    except NotSupported:
        found.append("not supported")
    return found


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


def late(comm: Any) -> str:
    """A worker that does not come: the others' time-out."""
    if comm.rank == 1:
        time.sleep(60)
    try:
        comm.all_reduce([np.zeros(4)], timeout=0.5)
    except TimedOut:
        return "timed out"
    return "completed"


TOLD = {name: REFUSED[name] for name in ("magic", "version", "job", "generation", "rank")}
"""The malformed messages that Ray's actor refuses to their sender."""


def receive_from_hostile(comm: Any) -> dict[str, int] | None:
    """Rank 1 sends messages of every malformed class and good ones between them.

    Returns what rank 0 refused by reason, and what rank 1 was told to be refused.
    """
    good = [np.arange(6.0)]

    def sealed(step: int, **changes: Any) -> Header:
        given = {"job": comm.job, "generation": comm.generation, "rank": 1, "sequence": 100 + step, **changes}
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


def ask_with_another_tree(comm: Any) -> list[str]:
    """Rank 1 asks a coordinator, and a centre, for something that is of another tree or malformed; returns what it is told."""
    told = []
    model = {"w": np.zeros(3)}
    with distributed.SyncReplicas(ox.optim.SGD(0.1), 1, communicator=comm) as opt:
        opt.join(model)
        for digest, words in ((b"another ", [1, 0, 0, 0]), (opt._codec.digest, [77, 0, 0, 0])):
            if comm.rank == 1:
                own, opt._codec.digest = opt._codec.digest, digest  # of the answer too
                comm.send(0, Header(REQUEST, 0, digest), [np.array(words)])
                told.append(_error(opt._answered))
                opt._codec.digest = own
        opt.update(model, {"w": np.ones(3)})
    comm.all_reduce([np.zeros(1)])
    elastic: Any = distributed.ElasticAverage(ox.optim.SGD(0.1), 1, communicator=comm)
    model = elastic.start(model)
    layout, other = elastic._layout, Layout({"v": np.zeros(3)})
    if comm.rank == 1:
        told.append(_error(lambda: elastic_centre.request(comm, other, elastic_centre.PUSH, 1, [np.zeros(3)], 60.0)))
        told.append(_error(lambda: elastic_centre.request(comm, layout, 77, 1, [], 60.0)))
    elastic.leave(elastic.update(model, {"w": np.ones(3)}))
    return told if comm.rank == 1 else [str(dict(opt.report()[0].refused))]


ASKED = [
    ["{'digest': 2, 'kind': 2}"],
    [
        "digest: rank 1 has other parameters, another configuration of the optimizer, or another training, than the coordinator",
        "kind: a request has the kind 77 and the number 0",
        "digest: rank 1 has other parameters than the centre",
        "kind: a request has the kind 77 and 0 buffers",
    ],
]
"""The results of `ask_with_another_tree`."""


def _error(call: Any) -> str:
    try:
        call()
    except Refused as error:
        return f"{error.reason}: {error}"
    return "accepted"


def _malformed(sealed: Any, payload: bytes) -> list[tuple[bytes, bytes]]:
    """Malformed messages: header and payload. The first is well-formed, and is replayed at the end."""
    whole, first = sealed(2).pack(), sealed(0).pack()
    return [
        (first, payload),
        (b"XXXX" + whole[4:], payload),  # another protocol
        (whole[:4] + b"\x63\x00" + whole[6:], payload),  # another version
        (sealed(6, job=b"of another job  ").pack(), payload),
        (sealed(8, generation=3).pack(), payload),
        (sealed(10, rank=77).pack(), payload),
        (sealed(12).pack(), payload[:-8]),  # truncated
        (sealed(14).pack(), payload + bytes(8)),  # too long
        (sealed(16).pack(), payload[:-8] + bytes(8)),  # damaged
        (sealed(18).pack()[:-1] + bytes([sealed(18).pack()[-1] ^ 1]), payload),  # with a damaged header
        (first, payload),  # replayed
        (sealed(22).pack(), bytes(1 << 17)),  # far too long
    ]


def _post(comm: Any, header: bytes, payload: bytes) -> None:
    """Sends bytes to rank 0 as a message, unchecked."""
    comm._post(0, np.frombuffer(header + payload, np.uint8).copy())


def _accepted(comm: Any) -> dict[str, int]:
    """Receives the good messages."""
    steps = []
    while not steps or steps[-1] != 23:
        into = np.zeros(6)
        head = comm.recv_any([into], tag=7)
        assert head is not None, (steps, comm.refused)
        assert head.digest == b"12345678"
        assert np.array_equal(into, np.arange(6.0)), into
        steps.append(head.step)
    assert steps == [0, *range(1, 24, 2)], steps
    comm.send(1, Header(tag=8), [np.empty(0)])
    return dict(comm.refused)


def run_out(comm: Any) -> list[list[int]]:
    """Workers with data for 9, 3 and 6 gradients, which leave; returns the accepted gradients of each worker."""
    model = {"w": np.zeros(10)}
    with distributed.SyncReplicas(ox.optim.SGD(0.1), 1, 3, communicator=comm) as opt:
        opt.join(model)
        used = 0
        while used < (9, 3, 6)[comm.rank]:
            opt.update(model, {"w": np.ones(10)})
            used += sum(told.accepted for told in opt.told)
    assert np.isfinite(model["w"]).all()
    return [[report.rank, report.accepted] for report in opt.report()] if comm.rank == 0 else []


def replicas(comm: Any, victim: int) -> Any:
    """Two of three gradients a step, with one worker killed; returns the rank and the number of accepted gradients."""
    model, accepted = {"w": np.zeros(30_000)}, 0
    steps = 0
    try:
        with distributed.SyncReplicas(ox.optim.SGD(0.1), 1, 3, communicator=comm) as opt:
            opt.join(model)
            while accepted < 10 or victim == 0:
                opt.update(model, {"w": np.ones(30_000)})
                accepted += sum(told.accepted for told in opt.told)
                steps += 1
                if comm.rank == victim and steps == 3:
                    _die(comm)
    except WorkerLost as error:
        return f"lost {sorted(error.ranks)}"
    return [comm.rank, accepted]


SURVIVING = {
    "sync_replicas": lambda opt, comm: distributed.SyncReplicas(opt, 2, 3, communicator=comm),
    "softsync": lambda opt, comm: distributed.Softsync(opt, 1, scaled=False, communicator=comm),
    "drop_stale": lambda opt, comm: distributed.DropStale(opt, 3, communicator=comm),
}


def constant_gradient() -> dict[str, np.ndarray]:
    """A gradient that all workers have in every step, so that the steps do not depend on whose gradients they are by."""
    rng = np.random.default_rng(3)
    return {"w": rng.standard_normal((20, 5)), "b": rng.standard_normal(5).astype("f4")}


def survive(
    comm: Any, method: str = "sync_replicas", how: str = "kill", wanted: int = 1, make: Any = None, steps: int = 12
) -> Any:
    """Trains while a fault of rank 0 ends the generation; returns the steps told before and after, and digests of the state.

    The digests, of the parameters and of the slots, are by the number of steps that they are of. A fault leaves as many as wanted.
    """
    opt = SURVIVING[method](ox.optim.Adam(0.01) if make is None else make(), comm)
    model, acknowledged, is_first = {"w": np.ones((20, 5)), "b": np.ones(5, "f4")}, [], comm.generation == 0
    newest = 0
    with opt:
        while True:
            try:
                model = opt.join(model)
                if opt.communicator.size < wanted:
                    raise WorkerLost(())
                if is_first and comm.rank == 0 and opt.communicator.generation == 0 and opt.told and opt.step >= 4:
                    FAULTS[how](comm)
                if opt.communicator.generation > 0 and opt.step >= steps:
                    break
                opt.update(model, constant_gradient())
                newest = max([newest, *(told.step for told in opt.told if told.accepted)])
            except WorkerLost:
                acknowledged.append(newest)
                model = opt.reform(model)
                acknowledged.append(opt.step)
    return [acknowledged, opt.communicator.size, opt.state_dict()["step"], digest(opt.state_dict()["slots"])]


def pulled(comm: Any, how: str = "kill", steps: int = 6) -> list[Any]:
    """Elastic averaging of rank 1, whose centre is lost after half of the steps; returns its parameters, and the centre.

    Rank 0 keeps the centre at first, and takes no step. Without a fault (an empty text) the centre stays there.
    """
    opt: Any = distributed.ElasticAverage(ox.optim.Adam(0.1), 1, moving_rate=0.3, communicator=comm)
    model = opt.start({"w": np.ones(5)})
    if comm.rank == 0:
        comm.recv_any([np.empty(0)], tag=99)
        if how:
            FAULTS[how](comm)
        opt.leave(model)
        return []
    for step in range(steps):
        if step == steps // 2:
            comm.send(0, Header(tag=99), [np.empty(0)])
            while how and 0 in comm.alive():
                time.sleep(0.001)
        gradient = {"w": np.arange(5.0) - step}
        try:
            model = opt.update(model, gradient)
        except WorkerLost:
            model = opt.update(opt.reform(model), gradient)
    found = model["w"].tolist()
    opt.leave(model)
    return [found, opt.centre()["w"].tolist()]


OVERTAKING: dict[str, Any] = {
    "sync_replicas": lambda comm: distributed.SyncReplicas(ox.optim.SGD(1.0), 2, 3, communicator=comm),
    "softsync": lambda comm: distributed.Softsync(ox.optim.SGD(1.0), 1, scaled=False, communicator=comm),
    "drop_stale": lambda comm: distributed.DropStale(ox.optim.SGD(1.0), 2, communicator=comm),
}
"""Methods in which workers overtake each other. By gradients of ones, all parameters are minus the number of steps."""


def be_overtaken(comm: Any, folder: str) -> list[Any]:
    """Every worker pauses before its updates, rank 0 the longest, while the others train.

    Returns, of each method: the updates whose parameters were of several steps, the staleness told and the true one where they differ, and
    the states that were of another step than the parameters.
    """
    return [[comm.rank, name, *_overtaken(make(comm), comm.rank, folder)] for name, make in OVERTAKING.items()]


def _overtaken(opt: Any, rank: int, folder: str) -> list[Any]:
    model = {name: np.zeros(100_000) for name in "abcd"}
    file = Path(folder) / f"{rank}.safetensors"
    torn, wrong, apart, read, number = 0, [], 0, {}, 0
    with opt:
        opt.join(model)
        for _ in range(12):
            time.sleep(0.004 if rank == 0 else 0.001)
            steps = sorted({-float(bound) for array in model.values() for bound in (array.min(), array.max())})
            torn += len(steps) > 1
            apart += int(opt.state_dict()["step"] != steps[0])
            number += 1
            read[number] = steps[0]
            opt.update(model, {name: np.ones(100_000) for name in model})
            for told in opt.told:
                true = told.step - told.accepted - read[told.number]
                wrong += [] if true == told.staleness else [[told.staleness, true]]
        time.sleep(0.02)
        opt.save(file)
        resumed = distributed.Softsync(ox.optim.SGD(1.0), communicator=Alone())
        resumed.load(file, strict=False)
        apart += int(resumed.step != -model["a"][0])
    return [torn, wrong, apart]


def check_overtaken(results: list[Any], workers: int) -> None:
    """No worker saw parameters of several steps, a wrong staleness, or a state apart from the parameters."""
    assert sorted(results) == [[[rank, name, 0, [], 0] for name in OVERTAKING] for rank in range(workers)]


FOLDS: dict[str, Any] = {
    **OVERTAKING,
    "elastic": lambda comm: distributed.ElasticAverage(ox.optim.SGD(1.0), 1, moving_rate=0.5, communicator=comm),
}


def folds(comm: Any) -> list[Any]:
    """Three trainings of each method one after the other, with parameters near 1000, 2000 and 3000, by a slow worker and fast ones.

    Each training is of a new wrapper; then three more are of one wrapper. Returns the nearest thousands of all parameters seen, and
    the messages that were refused.
    """
    found = []
    for name, make in FOLDS.items():
        wrappers = [*(make(comm) for _ in range(3)), *([make(comm)] * 3 if name in OVERTAKING else [])]
        found.append([_fold(opt, comm.rank, at % 3 + 1) for at, opt in enumerate(wrappers)])
    return [comm.rank, found, dict(comm.refused)]


def _fold(opt: Any, rank: int, number: int) -> list[int]:
    model, seen = {"w": np.full(3, 1000.0 * number)}, set()
    is_elastic = isinstance(opt, distributed.ElasticAverage)
    model = opt.start(model) if is_elastic else opt.join(model)
    for _ in range(4):
        time.sleep(0.01 if rank == 2 else 0.0)
        model = opt.update(model, {"w": np.full(3, 0.5)})
        seen |= {round(value / 1000) for value in model["w"].tolist()}
    if is_elastic:
        model = opt.leave(model)
        seen |= {round(value / 1000) for value in model["w"].tolist()}
    else:
        opt.leave()
    return sorted(seen)


FOLDED = [[[1], [2], [3]] * (2 if name in OVERTAKING else 1) for name in FOLDS]
"""The results of `folds` on each rank."""


def overtaken_and_folds(comm: Any, folder: str) -> list[Any]:
    """`be_overtaken` and `folds` in one job, as processes take seconds to start."""
    return [be_overtaken(comm, folder), folds(comm)]


def fence(comm: Any, folder: str, method: str = "sync_replicas", how: str = "fence", make: Any = None) -> Any:
    """The process, or the thread, of the coordinator is stopped for longer than the time-out, and goes on when the others have ended.

    Returns what `survive` does, or the name of the error of rank 0. Where the engine cannot form a new generation, returns the loss.
    """
    goes_on, has_ended = Path(folder) / "goes on", Path(folder) / "has ended"
    opt = SURVIVING[method](ox.optim.Adam(0.01) if make is None else make(), comm)
    opt.timeout = 2.0
    model, acknowledged, newest = {"w": np.ones((20, 5)), "b": np.ones(5, "f4")}, [], 0
    try:
        with opt:
            while opt.communicator.generation == 0 or opt.step < 12:
                try:
                    model = opt.join(model)
                    if comm.rank == 0 and opt.communicator.generation == 0 and opt.step >= 4:
                        FAULTS[how](goes_on)
                    opt.update(model, constant_gradient())
                    newest = max([newest, *(told.step for told in opt.told if told.accepted)])
                except WorkerLost:
                    acknowledged.append(newest)
                    model = opt.reform(model)
                    acknowledged.append(opt.step)
            _await_the_end(goes_on, has_ended)
    except NotSupported:
        _await_the_end(goes_on, has_ended)
        return "lost"
    except Excluded as error:
        try:
            opt.update(model, constant_gradient())
        except (Excluded, ox.StateError) as again:
            has_ended.touch()
            return [str(error), type(again).__name__]
    return [acknowledged, opt.communicator.size, opt.state_dict()["step"], digest(opt.state_dict()["slots"])]


def _await_the_end(goes_on: Path, has_ended: Path) -> None:
    goes_on.touch()
    end = time.monotonic() + DEADLINE
    while not has_ended.exists() and time.monotonic() < end:
        time.sleep(0.01)


def check_fenced(results: list[Any]) -> None:
    """The stopped worker has the named error, and the two others the slots of one worker without a fault."""
    fenced = [result for result in results if isinstance(result[0], str)]
    others = [result for result in results if not isinstance(result[0], str)]
    assert len(fenced) == 1 and "the others have excluded it" in fenced[0][0], results
    assert fenced[0][1] in ("Excluded", "StateError")
    assert [size for _, size, *_ in others] == [2, 2], results
    for acknowledged, _, steps, found in others:
        assert acknowledged[1] >= acknowledged[0] and len(acknowledged) == 2
        assert found == undisturbed(steps)


NESTEROV = {"momentum": 0.9, "nesterov": True}
METHODS: dict[str, Any] = {
    "sync_replicas": lambda size: distributed.SyncReplicas(ox.optim.Adam(0.1), size),
    "softsync": lambda size: distributed.Softsync(ox.optim.SGD(0.1, momentum=0.9), 2),
    "drop_stale": lambda size: distributed.DropStale(ox.optim.Adam(0.1), 1),
    "model_average": lambda size: distributed.ModelAverage(ox.optim.Adam(0.1), 3, average_slots=True),
    "block_momentum": lambda size: distributed.ModelAverage(ox.optim.Adam(0.1), 2, block_momentum=0.5),
    "diloco": lambda size: distributed.ModelAverage(ox.optim.Adam(0.1), 3, outer=ox.optim.SGD(0.7, **NESTEROV)),
    "streaming_diloco": lambda size: distributed.ModelAverage(
        ox.optim.Adam(0.1), 4, outer=ox.optim.SGD(0.7, **NESTEROV), fragments=2, delay=3, exchange="8bit"
    ),
    "elastic": lambda size: distributed.ElasticAverage(ox.optim.Adam(0.1), 2, moving_rate=0.2, deterministic=True),
    "elastic_sync": lambda size: distributed.ElasticAverage(ox.optim.SGD(0.1), 2, moving_rate=0.2, synchronous=True),
    "compression": lambda size: distributed.DeepGradientCompression(
        ox.optim.SGD(0.1), 0.25, momentum=0.9, clip_norm=1.0, min_size=1
    ),
    "kfac": lambda size: distributed.KFAC(ox.optim.SGD(0.1), memory="hybrid_opt", inverse_update_steps=2),
    "large_batch": lambda size: distributed.LargeBatch(ox.optim.LARS(0.1), local_batches=2),
}


def every_method(comm: Any) -> dict[str, str]:
    """A digest of the parameters after eight steps of each method, by the worker's own data."""
    found = {}
    with serving(comm):
        for name, make in METHODS.items():
            comm.all_reduce([np.zeros(1)])  # so that no worker begins while another one ends
            found[name] = _trained(comm, make(comm.size))
    return found


def _trained(comm: Any, opt: Any) -> str:
    rng = np.random.default_rng(comm.rank)
    model: Any = {"w": np.linspace(-1, 1, 12).reshape(4, 3), "b": np.zeros(3)}
    in_turns = isinstance(opt, distributed.Softsync | distributed.DropStale)
    with opt if hasattr(type(opt), "__exit__") else contextlib.nullcontext():
        model = opt.join(model) if hasattr(opt, "join") else opt.start(model)
        if in_turns:
            comm.all_reduce([np.zeros(1)])  # so that no worker joins after the first step
        for _ in range(8):
            x, y = rng.standard_normal((5, 4)), rng.standard_normal((5, 3))

            def loss(model: Any, x: Any = x, y: Any = y) -> Any:
                return ox.xp.mean((x @ model["w"] + model["b"] - y) ** 2)

            for turn in range(comm.size if in_turns else 1):
                if not in_turns or turn == comm.rank:
                    opt.minimize(loss, model)
                if in_turns:
                    comm.all_reduce([np.zeros(1)])
        found = hashlib.sha256(model["w"].tobytes() + model["b"].tobytes()).hexdigest()[:16]
        if isinstance(opt, distributed.ElasticAverage):
            opt.leave(model)
    return found


def digest(slots: Any) -> str:
    """A digest of slots by key path and name."""
    found = hashlib.sha256()
    for path in sorted(slots):
        for name in sorted(slots[path]):
            found.update(f"{path} {name} {np.asarray(slots[path][name]).tobytes().hex()}".encode())
    return found.hexdigest()


def undisturbed(steps: int, make: Any = None) -> str:
    """The digest of the slots of one worker after so many steps by the gradient of `survive`."""
    opt: Any = ox.optim.Adam(0.01) if make is None else make()
    model = {"w": np.ones((20, 5)), "b": np.ones(5, "f4")}
    for _ in range(steps):
        model = opt.update(model, constant_gradient())
    return digest(opt.state_dict()["slots"])


def save_on_a_full_disk(comm: Any, folder: str) -> list[Any]:
    """Rank 0 saves, and saves again with a limit on the size of files; the training goes on.

    Returns the error, whether the first file is kept, the names of the files, and whether the kept file continues to the same bits.
    """
    file, model, found = Path(folder) / "state.safetensors", {"w": np.zeros(50_000)}, []
    with distributed.SyncReplicas(ox.optim.Adam(0.1), 2, communicator=comm) as opt:
        for step in range(4):
            if comm.rank == 0 and step == 2:
                opt.save(file)
                whole, kept = file.read_bytes(), model["w"].copy()
            if comm.rank == 0 and step == 3:
                found = [_error_of_save(opt, file), file.read_bytes() == whole, os.listdir(folder)]
            opt.update(model, {"w": np.full(50_000, 1.0 + step)})
    if comm.rank == 0:
        resumed, own = distributed.SyncReplicas(ox.optim.Adam(0.1), 1, communicator=Alone()), {"w": kept}
        resumed.load(file)
        for step in (2, 3):
            resumed.update(own, {"w": np.full(50_000, 1.0 + step)})
        found.append(own["w"].tobytes() == model["w"].tobytes())
    return [comm.rank, *found]


FULL_DISK = [[0, "OSError: File too large", True, ["state.safetensors"], True], [1]]
"""The results of `save_on_a_full_disk`."""


def _error_of_save(opt: Any, file: Path) -> str:
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        opt.save(file)
    except OSError as error:
        return f"OSError: {'File too large' if 'File too large' in str(error) else error}"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    return "saved"


def straggle(comm: Any) -> list[Any]:
    """Rank 2 computes one gradient while the others take ten steps, by two gradients each, without it.

    Returns the accepted gradients of this worker, and the reasons for which others were dropped.
    """
    model, accepted, reasons = {"w": np.zeros(10)}, 0, []
    with distributed.SyncReplicas(ox.optim.SGD(0.1), 2, 3, communicator=comm) as opt:
        opt.join(model)
        comm.all_reduce([np.zeros(1)])  # so that no worker joins after the last step
        if comm.rank == 2:
            assert comm.recv_any([np.empty(1)], tag=9) is not None
        while accepted < 10 and not reasons:
            opt.update(model, {"w": np.ones(10)})
            accepted += sum(told.accepted for told in opt.told)
            reasons += [told.reason for told in opt.told if not told.accepted]
        if comm.rank == 0:
            comm.send(2, Header(tag=9), [np.zeros(1)])
    return [comm.rank, accepted, reasons]


def stopped_coordinator(comm: Any) -> list[int]:
    """The process of the coordinator is stopped in training, and continued; returns rank and accepted gradients."""
    model, accepted = {"w": np.zeros(30_000)}, 0
    with distributed.SyncReplicas(ox.optim.SGD(0.1), 3, 3, communicator=comm) as opt:
        opt.join(model)
        for step in range(6):
            if comm.rank == 0 and step == 3:
                _stop_and_continue(comm)
            opt.update(model, {"w": np.ones(30_000)})
            accepted += sum(told.accepted for told in opt.told)
    assert np.allclose(model["w"], -0.6)
    return [comm.rank, accepted]


def listening_names(comm: Any) -> list[str]:
    """The sockets that this process listens on, after an exchange, for long enough that the launcher prints it."""
    comm.all_reduce([np.zeros(100_000)])
    time.sleep(1.5)
    return [str(entry) for entry in launch.listening(os.getpid())]


# --- programs -----------------------------------------------------------------------------------------------------------


def launched(
    count: int, *job: Any, options: tuple[str, ...] = (), timeout: float = DEADLINE
) -> subprocess.CompletedProcess[str]:
    """Runs a program under MPI, whose wheel the launcher finds."""
    line = [sys.executable, "-m", "oxigrad.launch", "--quiet", "-n", str(count), *options, __file__, "mpi", *job]
    return completed([str(part) for part in line], timeout)


def completed(line: list[str], timeout: float = DEADLINE) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end; after the time-out, it and all that it has started are killed."""
    with subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            output, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired as error:
            for pid in launch.descendants(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            output, errors = process.communicate()
            raise AssertionError(f"the program hangs\n{output}\n{errors}") from error
        return subprocess.CompletedProcess(line, process.returncode, output, errors)


def results(output: str) -> list[Any]:
    """The results that the programs have printed, in any order."""
    lines = [line for line in output.splitlines() if line.startswith("result ")]
    return sorted((json.loads(line.removeprefix("result ")) for line in lines), key=str)


def other_version(engine: str) -> str:
    """The error of a job in which rank 1 runs another version of the package."""
    if "1" in (os.environ.get("OMPI_COMM_WORLD_RANK"), os.environ.get("PMI_RANK"), os.environ.get("RANK")):
        agreement._core.__version__ = "0.0.1"
    try:
        distributed.communicator(engine, timeout=30.0)
    except Refused as error:
        return f"{error.reason}: {error}"
    return "accepted"


def killed_before_start(engine: str) -> str:
    """The error of a job in which the process of rank 1 dies before it makes its communicator."""
    if "1" in (os.environ.get("OMPI_COMM_WORLD_RANK"), os.environ.get("PMI_RANK"), os.environ.get("RANK")):
        _die(None)
    try:
        distributed.communicator(engine, timeout=2.0)
    except TimedOut as error:
        return str(error)
    return "accepted"


class FailsAtStart:
    """A worker function that the first process which receives it cannot load: it raises an error, exits or dies instead."""

    def __init__(self, folder: str, how: str) -> None:
        self.folder, self.how = folder, how

    def __reduce__(self) -> tuple[Any, ...]:
        return _loaded, (self.folder, self.how)

    def __call__(self, comm: Any) -> int:
        return comm.size


def _loaded(folder: str, how: str) -> FailsAtStart:
    try:
        os.mkdir(folder)  # by one process alone
    except FileExistsError:
        return FailsAtStart(folder, how)
    if how == "raise":
        raise ModuleNotFoundError("No module named 'data_of_this_worker'")
    if how == "exit":
        raise SystemExit("no data set")
    os._exit(3)


def exit_alone(comm: Any) -> int:
    """One worker ends by `SystemExit` before its first message."""
    if comm.rank == 1:
        raise SystemExit("no data set")
    return comm.rank


PROGRAMS = {"other_version": other_version, "killed_before_start": killed_before_start}


def main(engine: str, name: str, *arguments: str) -> None:
    given = [json.loads(argument) for argument in arguments]
    if name in PROGRAMS:
        sys.stdout.write(f"result {json.dumps(PROGRAMS[name](engine))}\n")
        sys.stdout.flush()
        return
    comm = distributed.communicator(engine, timeout=float(os.environ.get("JOB_TIMEOUT", "60")))
    result = globals()[name](comm, *given)
    sys.stdout.write(f"result {json.dumps(result)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    if sys.argv[1] == "torch":
        import torch.distributed

        torch.distributed.init_process_group("gloo")
    main(*sys.argv[1:])
