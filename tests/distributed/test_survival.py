"""The state that survives: after the loss of any worker, the others continue with parameters and slots of the same bits."""

from __future__ import annotations

import copy
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import job_methods
import jobs
import numpy as np
import pytest

import oxigrad as ox
from oxigrad import distributed, optim, schedules
from oxigrad.distributed import Header, Refused, SyncReplicas, WorkerLost
from oxigrad.distributed.engines.hub import Hub
from oxigrad.distributed.engines.threads import ThreadJob
from oxigrad.distributed.messages import agreement

DEADLINE = 60.0
OPTIMIZERS: dict[str, Any] = {
    "adam": lambda: optim.Adam(schedules.linear(0.1, 0.0, 20)),
    "chain": lambda: optim.chain(optim.ClipByGlobalNorm(1.0), optim.AdamW(0.01), optim.EMA(0.9)),
    "8 bit": lambda: optim.Adam(0.01, slot_dtype="8bit"),
    "4 bit": lambda: optim.Adam(0.01, slot_dtype="4bit"),
    "accumulate": lambda: optim.SGD(0.1, momentum=0.9, accumulate=2),
    "partition": lambda: optim.partition({"b": optim.SGD(1.0, momentum=0.5), "*": optim.Adam(0.1)}),
}


def check(results: list[Any], make: Any = None) -> None:
    """Nothing that a worker was told is lost, and all slots are those of one worker without a fault."""
    for acknowledged, _, steps, digest in results:
        assert all(after >= before for before, after in zip(acknowledged[::2], acknowledged[1::2], strict=True))
        assert digest == jobs.undisturbed(steps, make), steps


@pytest.mark.parametrize("method", jobs.SURVIVING)
def test_threads_continue_with_the_slots_of_a_killed_coordinator(method: str) -> None:
    results = survivors(method, None)
    assert len(results) == 2
    check(results)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_state_of_every_optimizer_survives(name: str) -> None:
    results = survivors("sync_replicas", OPTIMIZERS[name], 24 if name == "accumulate" else 12)
    if name == "accumulate":  # the state counts the steps that were taken, two gradients each
        assert all(steps >= 12 and digest for _, _, steps, digest in results)
        assert len({digest for *_, digest in results}) == 1
        return
    check(results, OPTIMIZERS[name])


def survivors(method: str, make: Any, steps: int = 12) -> list[Any]:
    """The results of the two workers that survive the death of the first one."""

    def kill(comm: Any) -> None:
        job.kill(0)
        comm.alive(), comm.recv_any([np.empty(0)], tag=99)

    job = ThreadJob(lambda comm: jobs.survive(comm, method, "thread", 1, make, steps), 3, timeout=DEADLINE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(jobs.FAULTS, "thread", kill)
        return [result for result in job.wait(DEADLINE) if result is not None]


@pytest.mark.xdist_group("processes")
@pytest.mark.parametrize("method", jobs.SURVIVING)
def test_processes_continue_with_the_slots_of_a_killed_coordinator(method: str) -> None:
    pytest.importorskip("mpi4py")
    run = jobs.launched(3, "survive", f'"{method}"')
    results = jobs.results(run.stdout)
    assert len(results) == 2, run.stderr
    check(results)


@pytest.mark.xdist_group("processes")
def test_a_spare_process_takes_the_place_of_a_killed_coordinator() -> None:
    pytest.importorskip("mpi4py")
    run = jobs.launched(3, "survive", '"sync_replicas"', '"kill"', "3", options=("--spares", "1"))
    results = jobs.results(run.stdout)
    assert [size for _, size, *_ in results] == [3] * 3, run.stderr
    assert {digest for *_, steps, digest in results if digest == jobs.undisturbed(steps)} == {r[3] for r in results}


def test_the_state_is_whole_on_every_worker() -> None:
    def worker(comm: Any) -> Any:
        own = {"w": np.ones((3, 2))}
        with SyncReplicas(optim.chain(optim.Adam(0.1), optim.EMA(0.9)), 3) as opt:
            for step in range(5):
                own = opt.update(own, {"w": np.full((3, 2), 1.0 + comm.rank + step)})
            assert opt.optimizer.step == 5
            return jobs.digest(opt.state_dict()["slots"]), opt.averaged_parameters()["w"].tolist()

    assert len({str(found) for found in distributed.run(worker, workers=3)}) == 1


def test_the_loss_scale_is_the_same_on_every_worker() -> None:
    def worker(comm: Any) -> Any:
        own = {"w": np.ones(3, np.float32)}
        with SyncReplicas(optim.SGD(0.1, loss_scale=optim.LossScale(1024.0, interval=1)), 2) as opt:
            for step in range(3):
                bad = np.inf if comm.rank == 0 and step == 1 else 1.0
                own = opt.update(own, {"w": np.full(3, bad * opt.scale, np.float32)})
            return opt.scale, opt.skipped, own["w"].tolist()

    first, second = distributed.run(worker, workers=2)
    assert first == second and first[1] == 1


def test_a_replica_that_differs_is_brought_up_to_date() -> None:
    """A learning rate that one worker alone sets, and that the coordinator does not have."""

    def worker(comm: Any) -> Any:
        own = {"w": np.ones(3)}
        with SyncReplicas(optim.Adam(0.1), 2) as opt:
            opt.join(own)
            if comm.rank == 1:
                opt.learning_rate = 0.5
            for _ in range(4):
                own = opt.update(own, {"w": np.array([1.0, -2.0, 3.0])})
            return own["w"].tolist(), jobs.digest(opt.state_dict()["slots"])

    first, second = distributed.run(worker, workers=2)
    expected, opt = {"w": np.ones(3)}, optim.Adam(0.1)
    for _ in range(4):
        expected = opt.update(expected, {"w": np.array([1.0, -2.0, 3.0])})
    assert first == second == (expected["w"].tolist(), jobs.digest(opt.state_dict()["slots"]))


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_worker_that_missed_steps_gets_them_or_the_state(size: int) -> None:
    others_are_done, all_have_joined = threading.Event(), threading.Barrier(2)

    def worker(comm: Any) -> Any:
        own = {"w": np.zeros(size)}
        with SyncReplicas(optim.Adam(0.1), 1, 2) as opt:
            opt.join(own)
            all_have_joined.wait(DEADLINE)
            if comm.rank == 1:
                assert others_are_done.wait(DEADLINE)
                opt.update(own, {"w": np.full(size, 100.0)})
                assert not opt.verdicts[0].accepted and opt.verdicts[0].staleness == 5
            else:
                for _ in range(5):
                    opt.update(own, {"w": np.ones(size)})
            kept = own["w"].copy(), jobs.digest(opt.state_dict()["slots"])
            others_are_done.set()
            return kept

    (w, slots), (late, late_slots) = distributed.run(worker, workers=2)
    assert np.array_equal(w, late) and slots == late_slots


def test_gradients_of_rows_reach_the_replicas_as_rows() -> None:
    def worker(comm: Any) -> Any:
        own = {"table": np.zeros((10_000, 8)), "b": np.zeros(3)}
        with SyncReplicas(optim.Adam(0.1, sparse="lazy"), 2) as opt:
            opt.join(own)
            before = comm.bytes_sent
            for step in range(3):
                rows = ox.SparseRows([comm.rank, 5 + step], np.ones((2, 8)), (10_000, 8))
                opt.update(own, {"table": rows, "b": np.ones(3)})
            sent = comm.bytes_sent - before
            return own["table"].tobytes(), jobs.digest(opt.state_dict()["slots"]), sent

    first, second = distributed.run(worker, workers=2)
    assert first[:2] == second[:2]
    assert second[2] < 2000


def test_a_worker_joins_while_the_coordinator_lives() -> None:
    """All workers call `reform`, and the new one gets parameters and slots before its first step."""
    is_joined = threading.Event()

    def train(opt: Any, own: Any) -> Any:
        while opt.step < 12:
            try:
                own = opt.update(own, jobs.constant_gradient())
            except WorkerLost:
                own = opt.reform(own)
        return opt.communicator.size, jobs.digest(opt.state_dict()["slots"]), opt.state_dict()["step"]

    def worker(comm: Any) -> Any:
        own = {"w": np.ones((20, 5)), "b": np.ones(5, "f4")}
        with SyncReplicas(optim.Adam(0.01), 2) as opt:
            for _ in range(5):
                opt.update(own, jobs.constant_gradient())
            if comm.rank == 0:
                job.join(newcomer)
                is_joined.set()
            assert is_joined.wait(DEADLINE)
            return train(opt, opt.reform(own))

    def newcomer(comm: Any) -> Any:
        assert comm.generation == 1
        own: Any = {"w": np.zeros((20, 5)), "b": np.zeros(5, "f4")}
        with SyncReplicas(optim.Adam(0.01), 2) as opt:
            own = opt.join(own)
            assert opt.step >= 5
            return train(opt, own)

    job = ThreadJob(worker, 2, timeout=DEADLINE, accept_newcomers=True)
    results = job.wait(DEADLINE)
    assert len(results) == 3
    for size, digest, steps in results:
        assert size == 3 and digest == jobs.undisturbed(steps)


MISSING = {
    "SyncReplicas": lambda: SyncReplicas(optim.SGD(0.1), 1),
    "Softsync": lambda: distributed.Softsync(optim.SGD(0.1)),
    "KFAC": lambda: job_methods.KFAC(optim.SGD(0.1)),
    "DeepGradientCompression": lambda: distributed.DeepGradientCompression(optim.SGD(0.1), 0.5),
    "plain": lambda: distributed.DeepGradientCompression(optim.SGD(0.1), 1.0),
}


@pytest.mark.parametrize("name", MISSING)
def test_a_missing_gradient_is_named_before_anything_is_sent(library: Any, name: str) -> None:
    torch, drawing = library("torch"), threading.Lock()

    def worker(comm: Any) -> Any:
        with drawing:  # all threads draw from one generator
            torch.manual_seed(0)
            net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1), torch.nn.Linear(1, 1))
        net[2].requires_grad_(False)
        before = net[0].weight.detach().clone()
        opt = MISSING[name]()
        net(torch.ones(4, 3)).sum().backward()
        net[1].bias.grad = None
        with pytest.raises(ox.StructureError, match=r"1.bias: the gradient is missing: expected one of each parameter"):
            opt.update(net)
        assert comm.bytes_sent == 0
        assert torch.equal(before, net[0].weight)
        net[1].bias.grad = torch.ones(1)
        opt.update(net)
        if isinstance(opt, SyncReplicas | distributed.Softsync):
            opt.leave()
        return net[0].weight.detach().numpy().tobytes() != before.numpy().tobytes()

    assert distributed.run(worker, workers=2) == [True, True]


def test_a_copy_has_a_state_of_its_own() -> None:
    own, opt = {"w": np.ones(2)}, SyncReplicas(optim.Adam(0.1), 1)
    opt.update(own, {"w": np.ones(2)})
    other = copy.deepcopy(opt)
    opt.update(own, {"w": np.ones(2)})
    assert (opt.optimizer.step, other.optimizer.step) == (2, 1)


def test_the_centre_of_elastic_averaging_survives_the_worker_that_keeps_it() -> None:
    def kill(comm: Any) -> None:
        job.kill(0)
        comm.alive(), comm.recv_any([np.empty(0)], tag=98)

    job = ThreadJob(lambda comm: jobs.pulled(comm, "thread"), 2, timeout=DEADLINE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(jobs.FAULTS, "thread", kill)
        _, found = job.wait(DEADLINE)
    assert found == distributed.run(lambda comm: jobs.pulled(comm, ""), workers=2)[1]


@pytest.mark.xdist_group("processes")
def test_the_centre_survives_a_killed_process() -> None:
    pytest.importorskip("mpi4py")
    run = jobs.launched(2, "pulled")
    assert jobs.results(run.stdout) == [distributed.run(lambda comm: jobs.pulled(comm, ""), workers=2)[1]], run.stderr


# --- workers that differ ------------------------------------------------------------------------------------------------


def disagreeing(make: Any, model: Any, workers: int = 2) -> list[str]:
    """The message to each worker where rank 1 has another model or configuration; the others take two steps."""

    def worker(comm: Any) -> str:
        own = model(comm.rank)
        try:
            with make(comm.rank) as opt:
                own = opt.join(own)
                for _ in range(2):
                    own = opt.update(own, ox.tree.map(np.ones_like, own))
        except Refused as error:
            return f"{error.reason}: {error}"
        return str(dict(comm.refused))

    return ThreadJob(worker, workers, timeout=DEADLINE).wait(DEADLINE)


def test_another_configuration_is_named() -> None:
    found = disagreeing(lambda rank: SyncReplicas(optim.SGD(1.0), 1, 1 + rank), lambda rank: {"w": np.zeros(2)})
    assert found[0] == "{'config': 1}"
    assert found[1] == "config: total_replicas of the optimizer on rank 1 is 2: expected 1"


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"a": np.zeros(2)}, "tree: w: missing on rank 1: expected shape (3,)"),
        ({"a": np.zeros(2), "w": np.zeros(3, "f4")}, "tree: w: dtype float32 on rank 1: expected float64"),
        (
            {"a": np.zeros(2), "v": np.zeros(1), "w": np.zeros(3)},
            "tree: v: on rank 1 only: expected the parameters a, w",
        ),
        ({"w": np.zeros(3), "a": np.zeros(2)}, "order: the parameters on rank 1 are in another order"),
    ],
)
def test_another_model_is_named(other: Any, message: str) -> None:
    given = {"a": np.zeros(2), "w": np.zeros(3)}
    found = disagreeing(lambda rank: SyncReplicas(optim.SGD(1.0), 1), lambda rank: other if rank else given)
    assert found[1].startswith(message)
    assert found[0] == str({message.partition(":")[0]: 1})


def test_another_model_of_an_elastic_worker_is_named() -> None:
    def worker(comm: Any) -> Any:
        opt, own = distributed.ElasticAverage(optim.SGD(0.1), 1), {"w": np.ones(2 + comm.rank)}
        try:
            own = opt.start(own)
        except Refused as error:
            return str(error)
        while not comm.refused:
            own = opt.update(own, {"w": np.ones(2)})
        opt.leave(own)
        return dict(comm.refused)

    assert distributed.run(worker, workers=2) == [{"tree": 1}, "w: shape (3,) on rank 1: expected (2,)"]


def test_another_version_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    own = agreement.described({"w": np.zeros(2)})
    monkeypatch.setattr(ox, "__version__", "0.0.1")
    error = agreement.difference(own, agreement.described({"w": np.zeros(2)}), "rank 3")
    assert error is not None and error.reason == "version"
    assert str(error).startswith("rank 3 runs oxigrad 0.0.1, the others ")
    damaged = agreement.difference(own, np.frombuffer(b"[1]", np.uint8), "rank 3")
    assert damaged is not None and damaged.reason == "description"


VERSIONS = f"version: rank 1 runs oxigrad 0.0.1, rank 0 {ox.__version__}: expected one version on every worker"


@pytest.mark.xdist_group("processes")
def test_another_version_is_refused_by_all_processes_of_mpi() -> None:
    pytest.importorskip("mpi4py")
    run = jobs.launched(2, "other_version")
    assert jobs.results(run.stdout) == [VERSIONS] * 2, run.stderr


@pytest.mark.xdist_group("processes")
def test_another_version_is_refused_by_all_processes_of_torch() -> None:
    pytest.importorskip("torch")
    from test_torch_engine import launched

    found = [result for _, output, _ in launched(2, "other_version") for result in jobs.results(output)]
    assert found == [VERSIONS] * 2


def test_a_call_that_a_later_one_has_overtaken_does_not_lose_a_process() -> None:
    """Ray may change the order of calls: the second says that a new process has taken the place of the first."""

    hub = Hub(["a", "b"], b"1" * 16, "1.0")
    hub.supervise(["b", "c"], 2)
    hub.supervise(["a", "b"], 1)
    with ThreadPoolExecutor() as pool:
        places = [*pool.map(lambda name: hub.enter(name, b"1" * 16, "1.0", DEADLINE), "bc")]
    assert places == [(0, 2, 0), (1, 2, 0)]
    assert [hub.was_admitted(name) for name in "abc"] == [False, True, True]


def test_a_message_that_is_not_of_a_worker_of_the_job_is_refused_where_it_is_posted() -> None:
    hub, answers = Hub(["a"], b"1" * 16, "1.0"), []
    hub.enter("a", b"1" * 16, "1.0", DEADLINE)
    heads = [
        Header(5).sealed([], **{"job": b"1" * 16, **given}).pack()
        for given in ({}, {"job": b"2" * 16}, {"generation": 5}, {"rank": 1})
    ]
    for each in (*heads, b"XXXX" + heads[0][4:]):
        try:
            answers.append(hub.post("a", 0, 0, np.frombuffer(each, np.uint8)))
        except Refused as error:
            answers.append(error.reason)
    assert answers == [None, "job", "generation", "rank", "magic"]


def test_a_process_of_another_version_or_job_does_not_enter() -> None:
    hub, text = (
        Hub(["a"], b"1" * 16, "1.0"),
        "a worker runs oxigrad 0.9, the program 1.0: expected one version on every worker",
    )
    with pytest.raises(Refused, match=f"^{text}$") as of_version:
        hub.enter("a", b"1" * 16, "0.9", DEADLINE)
    with pytest.raises(Refused) as of_job:
        hub.enter("a", b"2" * 16, "1.0", DEADLINE)
    assert (of_version.value.reason, of_job.value.reason) == ("version", "job")
    assert hub.enter("a", b"1" * 16, "1.0", DEADLINE) == (0, 1, 0)
