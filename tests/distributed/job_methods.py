"""The work of workers in tests of several wrappers, one after the other."""

from __future__ import annotations

import hashlib
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
from job_faults import die

import oxigrad as ox
from oxigrad import distributed
from oxigrad.distributed import (
    Header,
    Refused,
)
from oxigrad.distributed.communicator import SingleWorker, serving
from oxigrad.distributed.coordination.service import REQUEST
from oxigrad.distributed.kfac.layers import Statistics
from oxigrad.extend import parameters


class KFAC(distributed.KFAC):
    """`KFAC` of models without layers, whose steps need no statistics."""

    def update(self, model: Any, grads: Any = None, statistics: Any = None, *, loss: Any = None) -> Any:
        return super().update(model, grads, statistics or Statistics((), (), ()), loss=loss)


def ask_with_another_tree(comm: Any) -> list[str]:
    """Rank 1 asks a coordinator, and a centre, for something that is of another tree or malformed; returns what it is told."""
    told = []
    model = {"w": np.zeros(3)}
    with distributed.SyncReplicas(ox.optim.SGD(0.1), 1, communicator=comm) as opt:
        opt.join(model)
        if comm.rank == 1:
            own = opt._connection, opt._replica
            told += _asked_wrongly(comm, own[0], lambda: opt._answered(*own))
        opt.update(model, {"w": np.ones(3)})
    comm.all_reduce([np.zeros(1)])
    elastic: Any = distributed.ElasticAverage(ox.optim.SGD(0.1), 1, communicator=comm)
    model = elastic.start(model)
    if comm.rank == 1:
        told += _asked_wrongly(comm, elastic._connection, lambda: elastic._answered(elastic._connection))
    elastic.leave(elastic.update(model, {"w": np.ones(3)}))
    return told if comm.rank == 1 else [str(dict(opt.report()[0].refused))]


def _asked_wrongly(comm: Any, connection: Any, read: Any) -> list[str]:
    """The answers to requests of another tree, and of another kind."""
    told, own = [], connection.codec.digest
    for digest, kind in ((b"another ", 1), (own, 77)):
        connection.codec.digest = digest  # of the answer too
        comm.send(0, Header(REQUEST, 0, digest), [np.array([kind, 0, 0, 0])])
        told.append(_error(read))
        connection.codec.digest = own
    return told


ASKED = [
    ["{'digest': 2, 'kind': 2}"],
    [
        "digest: rank 1 has other parameters, another configuration of the optimizer, or another training, than the coordinator",
        "kind: a request has the kind 77 and the number 0",
    ]
    * 2,
]
"""The results of `ask_with_another_tree`."""


def _error(call: Any) -> str:
    try:
        call()
    except Refused as error:
        return f"{error.reason}: {error}"
    return "accepted"


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
            for told in opt.verdicts:
                true = told.step - told.accepted - read[told.number]
                wrong += [] if true == told.staleness else [[told.staleness, true]]
        time.sleep(0.02)
        opt.save(file)
        resumed = distributed.Softsync(ox.optim.SGD(1.0), communicator=SingleWorker())
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
    model = opt.start(model)
    for _ in range(4):
        time.sleep(0.01 if rank == 2 else 0.0)
        model = opt.update(model, {"w": np.full(3, 0.5)})
        seen |= {round(value / 1000) for value in model["w"].tolist()}
    model = opt.leave(model)
    seen |= {round(value / 1000) for value in model["w"].tolist()}
    return sorted(seen)


FOLDED = [[[1], [2], [3]] * (2 if name in OVERTAKING else 1) for name in FOLDS]
"""The results of `folds` on each rank."""


def overtaken_and_folds(comm: Any, folder: str) -> list[Any]:
    """`be_overtaken` and `folds` in one job, as processes take seconds to start."""
    return [be_overtaken(comm, folder), folds(comm)]


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
    "kfac": lambda size: KFAC(ox.optim.SGD(0.1), memory="hybrid_opt", inverse_update_steps=2),
    "large_batch": lambda size: distributed.LargeBatch(ox.optim.LARS(0.1), local_batches=2),
    "data_parallel": lambda size: distributed.DataParallel(ox.optim.Adam(0.1), bucket_bytes=16),
    "shard_state": lambda size: distributed.DataParallel(
        ox.optim.chain(ox.optim.ClipByGlobalNorm(1.0), ox.optim.Adam(0.1)), shard_state=True
    ),
}


def every_method(comm: Any) -> dict[str, str]:
    """A digest of the parameters after eight steps of each method, by the worker's own data."""
    found = {}
    with serving(comm):
        for name, make in METHODS.items():
            comm.all_reduce([np.zeros(1)])  # so that no worker begins while another one ends
            parameters = b"".join(array.tobytes() for array in trained(comm, make(comm.size)))
            found[name] = hashlib.sha256(parameters).hexdigest()[:16]
    return found


def trained(comm: Any, opt: Any, asarray: Any = np.asarray, host: Any = np.asarray) -> list[np.ndarray]:
    """The parameters after eight steps by the worker's own data, as arrays of a library."""
    rng = np.random.default_rng(comm.rank)
    model: Any = {"w": asarray(np.linspace(-1, 1, 12).reshape(4, 3)), "b": asarray(np.zeros(3))}
    in_turns = isinstance(opt, distributed.Softsync | distributed.DropStale)
    with opt:
        model = opt.start(model)
        if in_turns:
            comm.all_reduce([np.zeros(1)])  # so that no worker joins after the first step
        for _ in range(8):
            x, y = asarray(rng.standard_normal((5, 4))), asarray(rng.standard_normal((5, 3)))

            def loss(model: Any, x: Any = x, y: Any = y) -> Any:
                return ox.xp.mean((x @ model["w"] + model["b"] - y) ** 2)

            for turn in range(comm.size if in_turns else 1):
                if not in_turns or turn == comm.rank:
                    opt.minimize(loss, model)
                if in_turns:
                    comm.all_reduce([np.zeros(1)])
    return [host(model["w"]), host(model["b"])]  # after the block, whose end writes the last parameters of all


def module_in_buckets(comm: Any) -> list[Any]:
    """A digest of a module of PyTorch after four steps, and whether buckets left during its last backward."""
    import torch

    draws = torch.Generator().manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(50, 40), torch.nn.Tanh(), torch.nn.Linear(40, 3))
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.randn(p.shape, generator=draws) / 10)
    with distributed.DataParallel(ox.optim.Adam(0.1), bucket_bytes=400, communicator=comm) as opt:
        opt.start(module)
        begun = 0
        for step in range(4):
            x = torch.randn(8, 50, generator=torch.Generator().manual_seed(10 * comm.rank + step))
            module.zero_grad()
            module(x).square().mean().backward()
            begun = opt._buckets.begun if opt._buckets else 0
            opt.update(module)
    found = b"".join(p.detach().numpy().tobytes() for p in module.parameters())
    return [begun > 1, hashlib.sha256(found).hexdigest()[:16]]


def model_on_device(comm: Any) -> list[list[Any]]:
    """Trainings whose gradients travel over the host, and as those of a device whose backend needs no host, which gloo plays on tensors of the CPU.

    Returns, for accumulated gradients and others, the digests of both, the gradients that were read on the host, and whether buckets left during
    the backward.
    """
    from unittest import mock

    import torch

    from oxigrad.distributed.engines.torch import tensors

    def train(*, is_direct: bool, **options: Any) -> list[Any]:
        draws = torch.Generator().manual_seed(0)
        module = torch.nn.ParameterDict(
            {
                "w": torch.randn(50, 41, generator=draws) / 10,
                "wide": (torch.randn(41, 3, generator=draws) / 10).bfloat16(),
                "scalar": torch.tensor(0.5),
                "one": torch.ones(3),
                "unused": torch.ones(2),
            }
        )
        begun = 0
        with (
            mock.patch.object(tensors, "is_direct", return_value=is_direct),
            mock.patch.object(parameters, "host_gradient", wraps=parameters.host_gradient) as fetched,
            distributed.DataParallel(ox.optim.Adam(0.1), bucket_bytes=400, communicator=comm, **options) as opt,
        ):
            opt.start(module)
            for step in range(6):
                x = torch.randn(8, 50, generator=torch.Generator().manual_seed(10 * comm.rank + step))
                module.zero_grad()
                y = torch.tanh(x @ module["w"]) @ module["wide"].float() * module["scalar"]
                loss = y.square().mean()
                (loss + module["one"].sum() if comm.rank else loss).backward()
                begun = max(begun, opt._buckets.begun if opt._buckets else 0)
                opt.update(module)
        found = b"".join(p.detach().float().numpy().tobytes() for p in module.values())
        return [hashlib.sha256(found).hexdigest()[:16], fetched.call_count, begun > 1]

    return [
        [train(is_direct=is_direct, **options) for is_direct in (False, True)]
        for options in ({}, {"local_batches": 2}, {"overlap": False})
    ]


def lose_on_device(comm: Any) -> list[Any]:
    """Rank 2 dies between two batches of a step, whose gradients are those of a device: see `model_on_device`.

    All gradients of a step are the same and of few bits. Returns whether the parameters are those of one worker, and that sums were on the device before.
    """
    from unittest import mock

    import torch

    from oxigrad.distributed.engines.torch import tensors

    def gradient(step: int) -> dict[str, Any]:
        draws = torch.Generator().manual_seed(step)
        return {"w": torch.randn(300, generator=draws).mul(8).round() / 8, "b": torch.ones(1)}

    model, alone = ({"w": torch.ones(300), "b": torch.ones(1)} for _ in range(2))
    with mock.patch.object(tensors, "is_direct", return_value=True), serving(comm):
        opt = distributed.DataParallel(ox.optim.Adam(0.1), local_batches=2, bucket_bytes=400)
        opt.start(model)
        was_direct = opt._group is not None
        for step in range(6):
            model = opt.update(model, gradient(step))
            if comm.rank == 2 and step == 3:
                die(comm)
            model = opt.update(model, gradient(step))
        opt.leave()
    one = ox.optim.Adam(0.1)
    for step in range(6):
        alone = one.update(alone, gradient(step))
    return [all(torch.equal(model[path], alone[path]) for path in alone), was_direct, opt._group is None]


def minimize_in_buckets(comm: Any) -> list[Any]:
    """A digest of a network after four steps of `minimize`, and whether buckets had left when its first layer was differentiated."""
    rng, begun = np.random.default_rng(0), 0
    shapes = {"first": (50, 40), "second": (40, 40), "third": (40, 3)}
    model = {name: rng.standard_normal(shape) / 10 for name, shape in shapes.items()}

    def watched(g: Any, y: Any, x: Any) -> Any:
        nonlocal begun
        begun = opt._buckets.begun if opt._buckets else 0
        return g

    watch = ox.custom_vjp(lambda x: x * 1.0, watched)
    with distributed.DataParallel(ox.optim.Adam(0.1), bucket_bytes=400, communicator=comm) as opt:
        opt.start(model)
        for step in range(4):
            x = np.random.default_rng([comm.rank, step]).standard_normal((8, 50))

            def loss(model: Any, x: Any = x) -> Any:
                hidden = watch(ox.xp.tanh(x @ model["first"]))
                return ox.xp.mean((ox.xp.tanh(hidden @ model["second"]) @ model["third"]) ** 2)

            opt.minimize(loss, model)
    found = b"".join(array.tobytes() for array in model.values())
    return [begun > 0, hashlib.sha256(found).hexdigest()[:16]]


def reported(comm: Any) -> list[Any]:
    """The table and the time line of a training that this worker gathers, without times, which differ."""
    rank, steps = comm.rank, 3
    model = {"w": np.ones((4, 3)), "b": np.zeros(3)}
    with distributed.DataParallel(ox.optim.SGD(0.1), communicator=comm) as opt:
        opt.record_timeline(100)
        for _ in range(steps):
            time.sleep(0.01)
            model = opt.update(model, {"w": model["w"] * (rank + 1), "b": None if rank else model["b"]})
        table, timeline = opt.report(gather=True, batch_size=8), opt.timeline()
        kinds = [sorted({span.kind for span in spans}) for spans in timeline.values()]
        assert table[rank].waited == opt._own_report().waited
        assert all(row["samples/s"] > 0 and each.waited >= 0 for row, each in zip(table.rows, table, strict=True))
        assert all(span.begin <= span.end for spans in timeline.values() for span in spans)
        assert all(timeline.seconds(each)["compute"] >= 0.01 * (steps - 1) for each in timeline)
        counts = [[each.rank, each.step, each.accepted, each.dropped, each.bytes_sent > 0] for each in table]
        alone = opt.report()
        return [
            counts,
            [*timeline],
            kinds,
            [each.rank for each in alone] == [rank],
            rank == 0 and len(repr(table).splitlines()),
        ]


def fully_sharded(comm: Any) -> list[bool]:
    """Whether steps over the DTensors of FSDP2 are, to the bit, those of one process by the mean gradient; and whether state is divided as parameters are."""
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import DTensor

    import oxigrad.torch as ours

    def module() -> Any:
        draws = torch.Generator().manual_seed(0)
        made = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))
        with torch.no_grad():
            for p in made.parameters():
                p.copy_(torch.randn(p.shape, generator=draws))
        return made

    def backward(model: Any, rank: int, step: int) -> None:
        x = torch.randn(8, 6, generator=torch.Generator().manual_seed(10 * rank + step))
        model(x).square().mean().backward()

    plain, model = module(), module()
    fully_shard(model, mesh=init_device_mesh("cpu", (comm.size,)))
    whole, divided = (ours.AdamW(each.parameters(), 0.1) for each in (plain, model))
    for step in range(4):
        whole.zero_grad()
        divided.zero_grad()
        for rank in range(comm.size):  # the sum of two is the same in any order, and half of it is exact
            backward(plain, rank, step)
        for p in plain.parameters():
            p.grad /= comm.size
        backward(model, comm.rank, step)
        whole.step()
        divided.step()
    pairs = zip(model.parameters(), plain.parameters(), strict=True)
    are_same = all(torch.equal(p.full_tensor(), q) for p, q in pairs)
    slots = [slot for own in divided.state.values() for slot in own.values() if torch.is_tensor(slot) and slot.ndim]
    are_parts = bool(slots) and all(
        isinstance(slot, DTensor) and slot.to_local().numel() < slot.numel() for slot in slots
    )
    return [are_same, are_parts]


def memory_of_gradients(comm: Any, shard_state: bool) -> list[int]:
    """The bytes of all arrays that this worker has when the sums of a step have come, but for parameters and slots, and those of one parameter of 24."""
    domain = tracemalloc.DomainFilter(inclusive=True, domain=np.lib.tracemalloc_domain)
    with serving(comm):
        model: Any = {str(at): np.eye(200) for at in range(24)}
        counted: list[int] = []

        def loss(model: Any) -> Any:
            x = ox.xp.asarray(np.ones((2, 200)))
            for w in model.values():
                x = ox.xp.tanh(x @ w)
            return ox.xp.sum(x)

        tracemalloc.start()
        sharded = {"bucket_bytes": model["0"].nbytes, "shard_state": shard_state}
        with distributed.DataParallel(ox.optim.Adam(0.1), **sharded) as opt:
            means = opt._means

            def summed(*arguments: Any) -> Any:
                found = means(*arguments)
                if opt.step >= 2:
                    traces = tracemalloc.take_snapshot().filter_traces([domain]).traces
                    slots = sum(slot.nbytes for own in opt.slots.values() for slot in own.values())
                    counted.append(sum(trace.size for trace in traces) - slots)
                return found

            opt._means = summed  # type: ignore[method-assign]
            for _ in range(4):
                opt.minimize(loss, model)
        tracemalloc.stop()
        return [max(counted), model["0"].nbytes]
