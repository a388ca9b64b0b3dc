"""Several coordinators that have parts of each gradient decide as one does, and give the bits of one."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import jobs
import numpy as np
import pytest
from job_divided import gradient, model, train_divided

import oxigrad as ox
from oxigrad import distributed, optim
from oxigrad.distributed import Header, Refused, WorkerLost
from oxigrad.distributed.coordination import coordinator as coordination
from oxigrad.distributed.coordination import parts as parts_module
from oxigrad.distributed.coordination.coordinator import JOIN, LEAVE, PULL, PUSH, REQUEST, Coordinator
from oxigrad.distributed.coordination.parts import (
    END,
    PART_REQUEST,
    PUT,
    REDUCE,
    TAKE,
    DividedCoordinator,
    Parts,
    PartServer,
)
from oxigrad.distributed.coordination.replica import Replica
from oxigrad.distributed.coordination.service import ANY
from oxigrad.distributed.decisions.replicas import Replicas
from oxigrad.distributed.decisions.staleness import Staleness
from oxigrad.distributed.decisions.training import Training
from oxigrad.distributed.engines.threads import ThreadJob
from oxigrad.distributed.messages import agreement
from oxigrad.distributed.messages.divided import DividedCodec
from oxigrad.distributed.messages.gradients import GradientCodec, mean_of
from oxigrad.distributed.messages.message import as_bytes, size_of
from oxigrad.stepping.arrays.sparse_rows import SparseRows, as_array

DEADLINE = 60.0


def dense(gradients: Any) -> dict[str, tuple[bool, bytes]]:
    """Whether each gradient is sparse, and its bytes."""
    return {
        path: (isinstance(each, SparseRows), np.asarray(as_array(each)).tobytes()) for path, each in gradients.items()
    }


# --- messages -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_gradient_in_parts_is_the_gradient(count: int, *, is_sparse: bool) -> None:
    codec, rng = DividedCodec(model(), count), np.random.default_rng(count)
    for _ in range(20):
        own = gradient(rng, is_sparse=is_sparse)
        bufs = codec.encode(own)
        payload = np.concatenate([as_bytes(buffer) for buffer in bufs])
        assert payload.nbytes <= codec.most_bytes
        assert dense(codec.decode(payload)) == dense(own)
        parts = [np.concatenate([np.empty(0, np.uint8), *map(as_bytes, part)]) for part in codec.split(bufs)]
        decoded = [part.decode(payload) for part, payload in zip(codec.parts, parts, strict=True)]
        assert dense(codec.joined(decoded)) == dense(own)
        for cut in (payload[:-8], np.append(payload, np.zeros(8, np.uint8)), payload[:4]):
            with pytest.raises(Refused):
                codec.decode(cut)


@pytest.mark.parametrize("count", [2, 3, 8])
def test_parts_are_of_about_the_same_size(count: int) -> None:
    arrays = {"w": np.ones((1000, 3)), "b": np.ones(77, np.float32), "v": np.ones((300, 10))}
    codec = DividedCodec(arrays, count)
    sizes = [size_of(bufs) for bufs in codec.split(codec.encode(arrays))]
    assert max(sizes) - min(sizes) <= 2 * 80 + 8 * 4


@pytest.mark.parametrize("sparse_mean", ["replicas", "touches"])
@pytest.mark.parametrize("kinds", [(True, True, True), (False, True, True), (False, False, False)])
def test_the_mean_of_parts_has_the_bits_of_the_mean(sparse_mean: Any, kinds: tuple[bool, ...]) -> None:
    codec, rng = DividedCodec(model(), 3), np.random.default_rng(0)
    encoded = [codec.encode(gradient(rng, is_sparse=kind)) for kind in kinds]

    def means(codecs: Sequence[GradientCodec], parts: Sequence[Sequence[list[np.ndarray]]]) -> list[Any]:
        return [
            mean_of(
                [each.decode(np.concatenate([as_bytes(buffer) for buffer in bufs])) for bufs in of_worker],
                [1.0, 0.5, 0.25],
                sparse_mean,
            )
            for each, of_worker in zip(codecs, parts, strict=True)
        ]

    (whole,) = means([codec], [encoded])
    parts = means(codec.parts, list(zip(*map(codec.split, encoded), strict=True)))
    assert dense(codec.joined(parts)) == dense(whole)


# --- decisions ----------------------------------------------------------------------------------------------------------


class Local:
    """A communicator of one side, whose messages to the servers of parts are answered at once."""

    def __init__(self, rank: int, servers: list[PartServer]) -> None:
        self._rank, self._servers = rank, servers
        self._answers: deque[tuple[int, int, Header, np.ndarray]] = deque()

    def send(self, dest: int, head: Header, bufs: Sequence[np.ndarray]) -> None:
        sealed = head.sealed(bufs, rank=self._rank)
        payload = np.concatenate([as_bytes(buffer) for buffer in bufs])
        server = self._servers[dest]
        server.memory(sealed)
        for reply in server.receive(sealed, payload):
            data = np.concatenate([as_bytes(buffer) for buffer in reply.bufs])
            tag = server.tags[1] if reply.tag is None else reply.tag
            header = Header(tag, reply.step, reply.digest).sealed([data], rank=dest)
            self._answers.append((tag, dest, header, data))

    def recv_any(self, memory: Any, *, tag: int, source: int, timeout: float) -> Header | None:
        for at, (own, dest, header, data) in enumerate(self._answers):
            if (own, dest) == (tag, source):
                del self._answers[at]
                memory(header)[0][:] = data
                return header
        return None

    def alive(self) -> frozenset[int]:
        return frozenset(range(len(self._servers)))


METHODS: dict[str, Callable[[], Any]] = {
    "sync_replicas": lambda: Replicas(2, 3, expected=4),
    "softsync": lambda: Staleness(3, is_scaled=True, expected=4),
    "drop_stale": lambda: Staleness(limit=1, expected=4),
}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("method", METHODS)
def test_the_decisions_and_the_bits_are_those_of_one_coordinator(method: str, seed: int) -> None:
    """Both get the same requests, in the same order: pushes that are fresh, stale, late or repeated, and members that leave and come back."""

    def replica() -> Replica:
        return Replica(optim.Adam(0.1), ox.tree.parameters(model()))

    training = Training(1, 1)
    whole = Coordinator(replica(), METHODS[method](), "config", training=training)
    arrays = whole.replica.parameters()
    codec = DividedCodec(arrays, 3, json.dumps("config") + f"\n{training.code}")
    servers = [PartServer(part, 0, "replicas", training) for part in codec.parts]
    root: Any = Local(0, servers)
    divided = DividedCoordinator(
        replica=replica(),
        decisions=METHODS[method](),
        config="config",
        sparse_mean="replicas",
        training=training,
        parts=Parts(root, [0, 1, 2], codec, 1.0),
    )
    links: list[Any] = [Parts(Local(rank, servers), [0, 1, 2], codec, 1.0) for rank in range(4)]  # type: ignore[arg-type]

    def ask(rank: int, kind: int, number: int, step: int, bufs: Sequence[np.ndarray] = (), divides: Any = ()) -> None:
        words = np.array([kind, number, 7, 0])
        answers = []
        for service, payload in ((whole, bufs), (divided, divides)):
            digest = ANY if kind == JOIN else service.codec.digest
            data = np.concatenate([as_bytes(buffer) for buffer in (words, *payload)])
            header = Header(REQUEST, training.code if kind == JOIN else step, digest).sealed([data], rank=rank)
            answers.append([decoded(reply) for reply in service.receive(header, data)])
        assert answers[0] == answers[1]

    def decoded(reply: Any) -> Any:
        data = np.concatenate([as_bytes(buffer) for buffer in reply.bufs])
        words = data[:48].view(np.int64).tolist()
        return (
            reply.rank,
            words[:5] if words[1] != coordination.STATE else [*words[:4], len(data)],
            told(data, words[2]),
        )

    def told(data: np.ndarray, count: int) -> list[int]:
        return data[48 : 48 + 40 * count].view(np.int64).tolist()

    rng = np.random.default_rng([seed, len(method)])
    description = agreement.described(arrays, "config")
    for rank in range(4):
        ask(rank, JOIN, 0, 0, [description], [description])
    numbers = [0] * 4
    last: list[Any] = [None] * 4
    for _ in range(60):
        rank = int(rng.integers(4))
        if rng.random() < 0.05:
            ask(rank, PULL, numbers[rank], divided.decisions.step)
            continue
        step = max(0, divided.decisions.step - int(rng.integers(0, 3)))
        if last[rank] is None or rng.random() < 0.9:
            numbers[rank] += 1
            last[rank] = gradient(rng)
        links[rank].put(numbers[rank], 7, codec.encode(last[rank]))
        ask(rank, PUSH, numbers[rank], step, whole.codec.encode(last[rank]))
    assert divided.decisions.step == whole.decisions.step > 5
    assert divided.replica.checksum() == whole.replica.checksum()
    for path, array in whole.replica.parameters().items():
        assert array.tobytes() == divided.replica.parameters()[path].tobytes()
    for server in servers:  # dropped ones are freed with the next step
        assert len(server._gradients) <= len(divided.decisions.waiting) + len({*divided._dropped})
    assert divided.reports == whole.reports
    for rank in range(4):
        ask(rank, LEAVE, 0, divided.decisions.step)
    divided.finish()
    assert divided.is_done and all(server.is_done for server in servers)


# --- workers -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("coordinators", [2, 3, 9])
@pytest.mark.slow
def test_threads_get_the_bits_of_one_coordinator(coordinators: int) -> None:
    one = distributed.run(lambda comm: train_divided(comm, 1), workers=4)
    assert distributed.run(lambda comm: train_divided(comm, coordinators), workers=4, timeout=DEADLINE) == one
    assert len({str(bits) for bits in one}) == 1


@pytest.mark.xdist_group("processes")
@pytest.mark.parametrize("coordinators", [4, 16])
def test_sixteen_processes_get_the_bits_of_one_coordinator(coordinators: int) -> None:
    pytest.importorskip("mpi4py")
    run = jobs.launched(16, "train_divided", coordinators)
    assert run.returncode == 0, run.stderr
    assert jobs.results(run.stdout) == distributed.run(lambda comm: train_divided(comm, 1), workers=16)


def test_one_worker_has_one_coordinator() -> None:
    one, several = ({"w": np.ones(3)} for _ in range(2))
    optim.Adam(0.1).update(one, {"w": np.ones(3)})
    with distributed.SyncReplicas(optim.Adam(0.1), 1, coordinators=4) as opt:
        opt.update(several, {"w": np.ones(3)})
    assert one["w"].tobytes() == several["w"].tobytes()


def test_workers_with_other_numbers_of_coordinators_are_refused() -> None:
    def worker(comm: Any) -> str:
        try:
            with distributed.SyncReplicas(optim.SGD(0.1), 1, coordinators=1 + comm.rank) as opt:
                opt.start({"w": np.ones(3)})
        except Refused as error:
            return str(error)
        return ""

    assert "coordinators of the optimizer on rank 1 is 2" in distributed.run(worker, workers=2)[1]
    with pytest.raises(ValueError, match="coordinators"):
        distributed.SyncReplicas(optim.SGD(0.1), 1, coordinators=0)


def test_several_trainings_one_after_the_other() -> None:
    def worker(comm: Any) -> list[list[str]]:
        return [train_divided(comm, coordinators, 2) for coordinators in (2, 1, 3, 2)]

    for own in distributed.run(worker, workers=3, timeout=DEADLINE):
        assert own[0] == own[1] == own[2] == own[3]


ASYNCHRONOUS: dict[str, Callable[..., Any]] = {
    "softsync": lambda **options: distributed.Softsync(optim.Adam(0.01), 1, scaled=False, **options),
    "drop_stale": lambda **options: distributed.DropStale(optim.Adam(0.01), 2, **options),
    "backups": lambda **options: distributed.SyncReplicas(optim.Adam(0.01), 1, 3, **options),
}


@pytest.mark.parametrize("name", ASYNCHRONOUS)
def test_workers_that_overtake_each_other_take_the_same_steps(name: str) -> None:
    """All have the same gradient, so that the state after a number of steps does not depend on whose gradients were used."""

    def worker(comm: Any) -> Any:
        own: Any = {"w": np.ones((20, 5)), "b": np.ones(5, "f4")}
        told: list[Any] = []
        with ASYNCHRONOUS[name](communicator=comm, coordinators=3) as opt:
            own = opt.start(own)
            while opt.step < 30:
                own = opt.update(own, jobs.constant_gradient())
                told += opt.verdicts
                time.sleep(0.002 * comm.rank)
        return opt.step, jobs.digest(opt.state_dict()["slots"]), len({each.number for each in told}) == len(told) > 0

    for steps, digest, is_told_once in distributed.run(worker, workers=4, timeout=DEADLINE):
        assert is_told_once and digest == jobs.undisturbed(steps)


def survivors(victim: int, coordinators: int) -> list[Any]:
    """Trains by the constant gradient until a worker is killed, and on; the results of the others as `jobs.survive` has them."""

    def worker(comm: Any) -> Any:
        acknowledged, newest = [], 0
        own: Any = {"w": np.ones((20, 5)), "b": np.ones(5, "f4")}
        with distributed.SyncReplicas(optim.Adam(0.01), 3, communicator=comm, coordinators=coordinators) as opt:
            while opt.communicator.generation == 0 or opt.step < 12:
                try:
                    own = opt.join(own)
                    if comm.rank == victim and opt.communicator.generation == 0 and opt.step >= 4:
                        job.kill(victim)
                    opt.update(own, jobs.constant_gradient())
                    newest = max([newest, *(told.step for told in opt.verdicts if told.accepted)])
                except WorkerLost:
                    acknowledged.append(newest)
                    own = opt.reform(own)
                    acknowledged.append(opt.step)
        return [acknowledged, opt.communicator.size, opt.state_dict()["step"], jobs.digest(opt.state_dict()["slots"])]

    job = ThreadJob(worker, 4, timeout=DEADLINE)
    return [result for result in job.wait(DEADLINE) if result is not None]


def three_times(steps: int) -> str:
    """The digest of one worker that takes each step by the mean of three equal gradients."""
    opt, own, one = optim.Adam(0.01), {"w": np.ones((20, 5)), "b": np.ones(5, "f4")}, jobs.constant_gradient()
    for _ in range(steps):
        own = opt.update(own, {path: (g + g + g) / g.dtype.type(3) for path, g in one.items()})
    return jobs.digest(opt.state_dict()["slots"])


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_the_others_go_on_after_the_death_of_a_coordinator(victim: int) -> None:
    results = survivors(victim, 3)
    assert [size for _, size, *_ in results] == [3] * 3
    for acknowledged, _, steps, digest in results:
        assert all(after >= before for before, after in zip(acknowledged[::2], acknowledged[1::2], strict=True))
        assert digest == three_times(steps)


def test_a_worker_without_a_part_may_die() -> None:
    """Nothing of the generation is lost with it: the others need not form another one."""

    def worker(comm: Any) -> Any:
        own = {"w": np.ones((8, 2))}
        with distributed.SyncReplicas(optim.SGD(0.5), 2, 4, communicator=comm, coordinators=2) as opt:
            for step in range(20):
                if comm.rank == 3 and step == 3:
                    job.kill(3)
                own = opt.update(own, {"w": np.ones((8, 2))})
            return opt.communicator.generation, bool(np.isfinite(own["w"]).all())

    job = ThreadJob(worker, 4, timeout=DEADLINE)
    assert job.wait(DEADLINE) == [(0, True)] * 3 + [None]


def test_a_part_that_hangs_is_excluded(monkeypatch: pytest.MonkeyPatch) -> None:
    never, receive = threading.Event(), PartServer.receive

    def hang(self: PartServer, header: Header, *payload: np.ndarray) -> Any:
        if threading.current_thread() in hanging:
            never.wait(DEADLINE)
        return receive(self, header, *payload)

    def worker(comm: Any) -> Any:
        own: Any = {"w": np.ones((8, 2))}
        options = {"communicator": comm, "coordinators": 3, "timeout": 2.0, "lease": 0.3}
        with distributed.SyncReplicas(optim.Adam(0.01), 2, 3, **options) as opt:
            while opt.communicator.generation == 0 or opt.step < 8:
                try:
                    own = opt.join(own)
                    if comm.rank == 2 and opt.step >= 3:
                        hanging.extend(opt._servers)
                        never.wait(DEADLINE)
                    own = opt.update(own, {"w": np.ones((8, 2))})
                except WorkerLost:
                    own = opt.reform(own)
            return opt.communicator.size, opt.step, own["w"].tobytes()

    hanging: list[threading.Thread] = []
    monkeypatch.setattr(PartServer, "receive", hang)
    results = ThreadJob(worker, 3, timeout=DEADLINE).wait(DEADLINE)
    never.set()
    own = {"w": np.ones((8, 2))}
    opt = optim.Adam(0.01)
    for _ in range(results[0][1]):
        own = opt.update(own, {"w": np.ones((8, 2))})
    assert results == [(2, results[0][1], own["w"].tobytes())] * 2 + [None]


def test_a_worker_that_missed_steps_gets_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the last step is kept: a slow worker takes the parameters and the slots of the others."""
    monkeypatch.setattr(coordination, "_LOG_BYTES", 0)
    goes_on = threading.Event()

    def worker(comm: Any) -> str:
        own = {"w": np.ones((40, 2))}
        with distributed.SyncReplicas(optim.Adam(0.1), 2, 3, communicator=comm, coordinators=2) as opt:
            own = opt.join(own)
            comm.all_reduce([np.zeros(1)])
            if comm.rank == 2:
                goes_on.wait(DEADLINE)
            while opt.step < 10:
                own = opt.update(own, {"w": np.full((40, 2), 1.0 + opt.step)})
            goes_on.set()
            return jobs.digest({**opt.state_dict()["slots"], "model": own})

    def alone(steps: int) -> str:
        own, opt = {"w": np.ones((40, 2))}, optim.Adam(0.1)
        for step in range(steps):
            own = opt.update(own, {"w": np.full((40, 2), 1.0 + step)})
        return jobs.digest({**opt.state_dict()["slots"], "model": own})

    results = distributed.run(worker, workers=3, timeout=DEADLINE)
    assert set(results) <= {alone(steps) for steps in (10, 11, 12)}


def test_a_part_ends_with_the_coordinator() -> None:
    server = PartServer(DividedCodec({"w": np.ones(4)}, 2).parts[1], 2, "replicas", Training(1, 1))
    assert server.lost([1]) == [] and not server.is_done
    assert server.lost(iter([0, 2])) == [] and server.is_done


def test_a_step_that_is_gone_is_said_to_be() -> None:
    codec = DividedCodec({"w": np.ones(4)}, 2)
    servers = [PartServer(part, 0, "replicas", Training(1, 1)) for part in codec.parts]
    link: Any = Parts(Local(1, servers), [0, 1], codec, 1.0)  # type: ignore[arg-type]
    assert link.take(3, 4) is None


@pytest.mark.parametrize(
    ("rank", "words", "rest", "reason"),
    [
        (1, [99, 0, 0, 0], 0, "kind"),
        (1, [TAKE, 0, 5, 3], 0, "kind"),
        (1, [REDUCE, 1, 1, 0], 0, "kind"),
        (1, [END, 0, 0, 0], 0, "kind"),
        (0, [REDUCE, 1, 1, 9], 0, "length"),
        (0, [REDUCE, 1, 1, 1], 32, "gradient"),
        (1, [PUT, 0, 0, 0], 0, "length"),
        (1, [PUT, 0, 0, 0], 1 << 25, "length"),
    ],
)
def test_malformed_requests_to_a_part_are_refused(rank: int, words: list[int], rest: int, reason: str) -> None:
    codec = DividedCodec({"w": np.ones(4)}, 2)
    server = PartServer(codec.parts[0], 0, "replicas", Training(1, 1))
    data = np.concatenate([np.array(words).view(np.uint8), np.zeros(rest, np.uint8)])
    header = Header(PART_REQUEST, 0, codec.parts[0].digest).sealed([data], rank=rank)

    def ask() -> None:
        server.memory(header)
        server.receive(header, data)

    with pytest.raises(Refused) as error:
        ask()
    assert error.value.reason == reason
    assert parts_module.refusal_of(server.refusal(header, error.value).bufs[1]).reason == reason
    with pytest.raises(Refused, match="another part, other parameters or another training"):
        server.memory(Header(PART_REQUEST, 0, codec.parts[1].digest).sealed([data], rank=rank))
    assert not server._gradients and not server.is_done
