"""Workers with other arguments than the others are refused, whatever the wrapper and the argument; later changes are found."""

from __future__ import annotations

import inspect
import json
import re
import threading
from typing import Any, NamedTuple

import job_methods
import numpy as np
import pytest

from oxigrad import distributed, optim, schedules
from oxigrad.distributed import Refused, WorkerLost, Wrapper
from oxigrad.distributed.messages import agreement
from oxigrad.distributed.messages.configuration import plain

# Arguments in which workers may differ: each has its own optimizer and communicator, and waits as long as it likes.
LOCAL = {"optimizer", "communicator", "timeout"}


class Case(NamedTuple):
    """A wrapper: how it is made, its class, the arguments of all workers, and other values of each argument."""

    kind: type[Wrapper]
    arguments: dict[str, Any]
    others: dict[str, Any]


#: Arguments of the class that a class stands on, which it sets itself.
SET_BY_CLASS: dict[type[Wrapper], set[str]] = {
    distributed.DropStale: {"gradients_per_step", "scaled", "limit"},
    distributed.LargeBatch: {"bucket_bytes", "overlap", "shard_state"},
}
OF_COORDINATED = {"sparse_mean": "touches", "lease": 7.0}
CASES = {
    "sync_replicas": Case(
        distributed.SyncReplicas,
        {"replicas_to_aggregate": 2, "total_replicas": 3},
        {"replicas_to_aggregate": 1, "total_replicas": 4, **OF_COORDINATED},
    ),
    "softsync": Case(
        distributed.Softsync, {}, {"gradients_per_step": 2, "scaled": False, "limit": 3, **OF_COORDINATED}
    ),
    "drop_stale": Case(distributed.DropStale, {"staleness": 1}, {"staleness": 2, **OF_COORDINATED}),
    "model_average": Case(
        distributed.ModelAverage,
        {"interval": 4},
        {
            "interval": 5,
            "outer": optim.SGD(0.7),
            "block_momentum": 0.5,
            "block_learning_rate": 0.5,
            "nesterov": False,
            "fragments": 2,
            "delay": 1,
            "alpha": 0.25,
            "exchange": "8bit",
            "average_slots": True,
        },
    ),
    "diloco": Case(distributed.ModelAverage, {"interval": 4, "outer": optim.SGD(0.7)}, {"outer": optim.SGD(0.6)}),
    "elastic": Case(
        distributed.ElasticAverage,
        {"period": 2},
        {"period": 3, "moving_rate": 0.3, "rho": 0.1, "synchronous": True, "deterministic": True, "lease": 7.0},
    ),
    "elastic_sync": Case(
        distributed.ElasticAverage,
        {"period": 2, "synchronous": True},
        {"period": 3, "moving_rate": 0.3, "rho": 0.1, "synchronous": False},
    ),
    "eamsgd": Case(distributed.ElasticAverage, {"synchronous": True}, {"nesterov": True}),
    "compression": Case(
        distributed.DeepGradientCompression,
        {"ratio": 0.5, "momentum": 0.9},
        {
            "ratio": 0.25,
            "warmup": 2,
            "momentum": 0.8,
            "nesterov": True,
            "weight_decay": 0.1,
            "clip_norm": 1.0,
            "min_size": 2,
        },
    ),
    "kfac": Case(
        job_methods.KFAC,
        {},
        {
            "damping": 0.1,
            "factor_decay": 0.5,
            "kl_clip": 0.1,
            "kl_learning_rate": 0.5,
            "method": "inverse",
            "split_damping": True,
            "factor_update_steps": 2,
            "inverse_update_steps": 2,
            "memory": "mem_opt",
            "gradient_workers": 0.25,
            "mean": False,
        },
    ),
    "large_batch": Case(distributed.LargeBatch, {}, {"local_batches": 2}),
    "data_parallel": Case(
        distributed.DataParallel,
        {},
        {"bucket_bytes": 8, "overlap": False, "local_batches": 2, "shard_state": True},
    ),
}
EACH_ARGUMENT = [(name, argument) for name, case in CASES.items() for argument in case.others]


def new_optimizer(**hyperparameters: Any) -> Any:
    return optim.SGD(**{"learning_rate": 0.5, **hyperparameters})


def disagreeing(make: Any, timeout: float = 30.0, workers: int = 2) -> list[str]:
    """What the workers that start together are told: the text of `Refused`, or nothing."""

    def worker(comm: Any) -> str:
        opt = make(comm.rank)
        try:
            with opt:
                opt.start({"w": np.ones((2, 3)), "b": np.zeros(3)})
                if not isinstance(opt, distributed.ElasticAverage):
                    return ""
        except Refused as error:
            return str(error)
        return ""

    return distributed.run(worker, workers=workers, timeout=timeout)


@pytest.mark.parametrize(
    "kind", sorted({case.kind for case in CASES.values()}, key=str), ids=lambda kind: kind.__name__
)
def test_every_argument_has_another_value_here(kind: Any) -> None:
    arguments = {
        name
        for each in kind.__mro__
        if issubclass(each, Wrapper) and "__init__" in vars(each)
        for name, p in inspect.signature(vars(each)["__init__"]).parameters.items()
        if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL) and name != "self"
    }
    tested = {name for case in CASES.values() if case.kind is kind for name in case.others}
    assert tested == arguments - LOCAL - SET_BY_CLASS.get(kind, set())


@pytest.mark.parametrize(("name", "argument"), EACH_ARGUMENT)
def test_another_value_of_any_argument_is_refused_with_both_values(name: str, argument: str) -> None:
    kind, arguments, others = CASES[name]
    hyperparameters = {"momentum": 0.9} if name == "eamsgd" else {}

    def make(rank: int) -> Any:
        return kind(new_optimizer(**hyperparameters), **(arguments | ({argument: others[argument]} if rank else {})))

    attribute = "_lease" if argument == "lease" and name != "elastic" else argument
    values = [plain(getattr(make(rank), attribute)) for rank in (1, 0)]
    if argument == "outer":
        values = [value and value["learning_rate"] for value in values]
    found = disagreeing(make)[1]
    assert re.search(f"{argument}.* of the optimizer on rank 1 is ", found)
    assert all(json.dumps(value) in found for value in values)


@pytest.mark.parametrize("other", range(3))
def test_all_workers_of_synchronous_exchanges_are_told(other: int) -> None:
    def make(rank: int) -> Any:
        return distributed.ElasticAverage(new_optimizer(), 2, synchronous=rank != other)

    found = disagreeing(make, workers=3)
    told = [text for rank, text in enumerate(found) if rank or other]
    values = (other, "false", "true") if other else (1, "true", "false")
    expected = "synchronous of the optimizer on rank {} is {}: expected {}".format(*values)
    if not other:  # the others differ from the one that keeps a centre, which goes on without them
        assert re.sub("rank 2", "rank 1", told[1]) == told[0] == expected and found[0] == ""
    else:
        assert told == [expected] * 3


def test_workers_that_begin_another_method_in_a_later_generation_are_refused() -> None:
    makes = [lambda: distributed.LargeBatch(new_optimizer()), lambda: distributed.ElasticAverage(new_optimizer(), 2)]

    def worker(comm: Any) -> str:
        opt = makes[comm.rank % 2]()
        vars(opt)["communicator"] = comm.reform()
        try:
            opt.start({"w": np.ones(3)})
        except Refused as error:
            return str(error)
        return ""

    for rank, found in enumerate(distributed.run(worker, workers=2, timeout=30.0)):
        assert found.startswith(f"rank {1 - rank} begins another method: expected one wrapper")


OPTIMIZERS: dict[str, tuple[Any, Any, str]] = {
    "rate": (
        lambda: optim.SGD(0.5),
        lambda: optim.SGD(0.25),
        "learning_rate of the optimizer on rank 1 is 0.25: expected 0.5",
    ),
    "option": (
        lambda: optim.SGD(0.5),
        lambda: optim.SGD(0.5, nonfinite="skip"),
        'nonfinite of the optimizer on rank 1 is "skip": expected "propagate"',
    ),
    "schedule": (
        lambda: optim.SGD(schedules.linear(0.5, 0.1, 9)),
        lambda: optim.SGD(schedules.linear(0.5, 0.2, 9)),
        "learning_rate.* of the optimizer on rank 1 is 0.2: expected 0.1",
    ),
    "beside a function": (
        lambda: optim.Adam(lambda step: 0.5, beta1=0.9),
        lambda: optim.Adam(lambda step: 0.5, beta1=0.8),
        "beta1 of the optimizer on rank 1 is 0.8: expected 0.9",
    ),
    "part": (
        lambda: optim.chain(optim.ClipByGlobalNorm(1.0), optim.Adam(0.1)),
        lambda: optim.chain(optim.ClipByGlobalNorm(2.0), optim.Adam(0.1)),
        "max_global_norm of the optimizer on rank 1 is 2.0: expected 1.0",
    ),
    "group": (
        lambda: optim.SGD(0.5, groups={"b": {"learning_rate": 0.1}}),
        lambda: optim.SGD(0.5, groups={"b": {"learning_rate": 0.2}}),
        "learning_rate of the optimizer on rank 1 is 0.2: expected 0.1",
    ),
}
# Arguments with which every optimizer above can be wrapped.
PLAIN = {name: case for name, case in CASES.items() if name not in ("eamsgd", "compression", "diloco", "elastic_sync")}


@pytest.mark.parametrize("change", OPTIMIZERS)
@pytest.mark.parametrize("name", PLAIN)
def test_another_hyperparameter_of_the_optimizer_is_refused(name: str, change: str) -> None:
    kind, arguments, _ = CASES[name]
    ours, theirs, expected = OPTIMIZERS[change]
    arguments = arguments | ({"kl_clip": None} if name == "kfac" else {})
    found = disagreeing(lambda rank: kind((theirs if rank else ours)(), **arguments))[1]
    assert re.search(expected, found), found


def test_functions_of_outer_optimizers_are_told_apart_by_their_first_values() -> None:
    rates = [lambda step: 0.1 / (1 + step), lambda step: 0.2 / (1 + step)]
    told = disagreeing(lambda rank: distributed.ModelAverage(new_optimizer(), 2, outer=optim.SGD(rates[rank])))
    assert told == ["outer.learning_rate of the optimizer on rank 1 is 0.2: expected 0.1"] * 2


# --- changes after the start -------------------------------------------------------------------------------------------

CHANGES = {
    "large_batch": ("large_batch", "learning_rate"),
    "data_parallel": ("data_parallel", "learning_rate"),
    "compression": ("compression", "learning_rate"),
    "kfac": ("kfac", "learning_rate"),
    "damping": ("kfac", "damping"),
    "sync_replicas": ("sync_replicas", "learning_rate"),
    "softsync": ("softsync", "learning_rate"),
}


def changing(case: str, ranks: set[int], steps: int) -> list[str]:
    """What the workers are told in so many steps after some of them have halved a hyperparameter."""
    name, hyperparameter = CHANGES[case]
    kind, arguments, _ = CASES[name]
    arguments = arguments | ({"replicas_to_aggregate": 1} if name == "sync_replicas" else {})
    rounds = threading.Barrier(2, timeout=30.0)  # in each of them both workers step: none is many steps ahead

    def worker(comm: Any) -> str:
        model = {"w": np.ones((2, 3)), "b": np.zeros(3)}
        opt = kind(new_optimizer(), **arguments)
        try:
            with opt:
                opt.start(model)
                for step in range(steps):
                    if len(ranks) == 2:
                        rounds.wait()
                    if step == 2 and comm.rank in ranks:
                        target = opt if hyperparameter == "damping" else opt.optimizer
                        setattr(target, hyperparameter, getattr(target, hyperparameter) / 2)
                    opt.update(model, {path: np.ones_like(array) for path, array in model.items()})
                    if opt.communicator.size < comm.size:
                        break
        except Refused as error:
            return str(error)
        except WorkerLost:
            return "the other one has left"
        return ""

    return distributed.run(worker, workers=2, timeout=10.0)


@pytest.mark.parametrize("case", CHANGES)
def test_a_hyperparameter_that_one_worker_changes_is_found(case: str) -> None:
    expected = f"{CHANGES[case][1]} of the optimizer on rank 1 is [0-9.]+: expected [0-9.]+"
    found = changing(case, {1}, 3 * agreement.ROUNDS)
    assert re.search(expected, found[1]), found


@pytest.mark.parametrize("case", CHANGES)
def test_a_hyperparameter_that_all_workers_change_is_theirs(case: str) -> None:
    assert changing(case, {0, 1}, 2 * agreement.ROUNDS) == ["", ""]


@pytest.mark.parametrize("case", ["large_batch", "data_parallel", "compression", "kfac"])
def test_a_parameter_that_alone_differs_between_workers_is_found(case: str) -> None:
    kind, arguments, _ = CASES[case]

    def worker(comm: Any) -> str:
        model = {"w": np.ones((2, 3)), "b": np.zeros(3)}
        with kind(new_optimizer(), **arguments) as opt:
            opt.start(model)
            try:
                for step in range(2 * agreement.ROUNDS):
                    if step == 2 and comm.rank == 1:
                        model["b"][1] += 2.0**-40
                    opt.update(model, {path: np.ones_like(array) for path, array in model.items()})
            except Refused as error:
                return f"{opt.step}: {error}"
        return "not found"

    expected = "16: b: other values on rank 1: expected the same ones on every worker"
    assert distributed.run(worker, workers=2, timeout=30.0) == [expected] * 2


RATES = [lambda step: 0.1 / (1 + step), lambda step: 0.2 / (1 + step)]


@pytest.mark.parametrize(
    "of",
    [optim.SGD, lambda rate: optim.chain(optim.ClipByValue(1.0), optim.SGD(rate)), optim.AdamW],
    ids=["SGD", "chain", "AdamW"],
)
def test_functions_of_one_name_are_told_apart_by_their_values(of: Any) -> None:
    def worker(comm: Any) -> str:
        opt, model = distributed.DataParallel(of(RATES[comm.rank])), {"w": np.ones(2)}
        try:
            opt.start(model)
            for _ in range(2 * agreement.ROUNDS):
                opt.update(model, {"w": np.ones(2)})
        except Refused as error:
            return f"{opt.step}: {error}"
        return "not found"

    apart = r"16: .*learning_rate of the optimizer on rank 1 is 0\.01176.*: expected 0\.00588"
    assert all(re.search(apart, each) for each in distributed.run(worker, workers=2))


def in_turns(make: Any) -> list[str]:
    """What two workers of a coordinator are told in steps that they take by turns, by one optimizer each of `make`."""
    rounds = threading.Barrier(2, timeout=30.0)

    def worker(comm: Any) -> str:
        model = {"w": np.ones((2, 3)), "b": np.zeros(3)}
        try:
            with distributed.SyncReplicas(make(comm.rank), 2, 2) as opt:
                opt.start(model)
                for _ in range(3 * agreement.ROUNDS):
                    rounds.wait()
                    opt.update(model, {path: np.ones_like(array) for path, array in model.items()})
        except Refused as error:
            rounds.abort()
            return str(error)
        except (threading.BrokenBarrierError, WorkerLost):
            pass
        return ""

    return distributed.run(worker, workers=2, timeout=10.0)


@pytest.mark.parametrize(
    "of",
    [
        optim.SGD,
        lambda rate: optim.SGD(schedules.join((rate, rate), (9,))),
        lambda rate: optim.SGD(0.5, groups={"b": {"learning_rate": rate}}),
        lambda rate: optim.chain(optim.ClipByGlobalNorm(rate), optim.SGD(0.5)),
    ],
    ids=["SGD", "schedule", "group", "chain"],
)
def test_a_coordinator_tells_functions_of_one_name_apart(of: Any) -> None:
    found = in_turns(lambda rank: of(RATES[rank]))
    assert re.search(r"of the optimizer on rank 1 is 0\.\d+: expected 0\.\d+, as of the coordinator", found[1]), found


def test_a_coordinator_logs_that_it_sends_its_state_for_another_rule(caplog: pytest.LogCaptureFixture) -> None:
    def optimizer(rank: int) -> Any:
        def descent(xp: Any, p: Any, g: Any, *, rate: float = 0.1) -> Any:
            return p - rate * (1 + rank) * g

        return optim.define(descent)()

    assert in_turns(optimizer) == ["", ""]
    (text,) = [each.getMessage() for each in caplog.records if each.name == "oxigrad.distributed"]
    assert text.startswith("rank 1 has other parameters than the coordinator after each of 16 steps")
    assert text.endswith("expected the same rule on every worker")


@pytest.mark.parametrize("name", ["model_average", "elastic", "elastic_sync"])
def test_workers_that_train_alone_may_change_their_own_rates(name: str) -> None:
    kind, arguments, _ = CASES[name]

    def worker(comm: Any) -> int:
        model = {"w": np.ones((2, 3)), "b": np.zeros(3)}
        with kind(new_optimizer(), **arguments) as opt:
            opt.start(model)
            opt.learning_rate = 0.1 * (1 + comm.rank)
            for _ in range(2 * agreement.ROUNDS):
                opt.update(model, {path: np.ones_like(array) for path, array in model.items()})
            return opt.step

    assert distributed.run(worker, workers=2) == [2 * agreement.ROUNDS] * 2
