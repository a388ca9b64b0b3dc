"""The protocol that all wrappers have: start, steps, leave, and blocks of ``with``."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import jobs
import numpy as np
import pytest

import oxigrad as ox
from oxigrad import distributed
from oxigrad.distributed import Refused, WorkerLost
from oxigrad.distributed.communicator import results_of
from oxigrad.distributed.engines.threads import ThreadJob
from oxigrad.step.arrays.sparse_rows import SparseRows

SERVERS = {"coordinator"}
COORDINATED = {"sync_replicas", "softsync", "drop_stale"}

pytestmark = pytest.mark.parametrize("name", jobs.METHODS)


def loss(model: Any) -> Any:
    return ox.xp.sum((model["w"] - 1.0) ** 2) + ox.xp.sum(model["b"] ** 2)


def new_model() -> dict[str, np.ndarray]:
    return {"w": np.zeros((4, 3)), "b": np.ones(3)}


def test_every_wrapper_is_used_in_the_same_way(name: str) -> None:
    """The end of a block leaves, so that the next training can begin; leaving again does nothing."""

    def worker(comm: Any) -> Any:
        models = []
        for _ in range(2):
            model = new_model()
            with jobs.METHODS[name](comm.size) as opt:
                model = opt.start(model)
                for _ in range(3):
                    opt.minimize(loss, model)
            assert opt.leave() is None
            assert opt.leave(model) is model
            models.append(model)
        return [float(loss(model)) for model in models]

    initial = float(loss(new_model()))
    for losses in distributed.run(worker, workers=2):
        assert all(value < initial for value in losses)


def test_a_block_that_fails_waits_for_nobody_and_serves_no_more(name: str) -> None:
    before, lost = set(threading.enumerate()), []

    def worker(comm: Any) -> None:
        with jobs.METHODS[name](comm.size) as opt:
            opt.start(new_model())
            comm.all_reduce([np.zeros(1)])
            if comm.rank == 0:
                raise ZeroDivisionError("a mistake")
            try:
                comm.recv_any([], tag=99, source=0)
            except WorkerLost:
                lost.append(comm.rank)
                raise

    with pytest.raises(ZeroDivisionError, match="a mistake"):
        ThreadJob(worker, 2, timeout=20.0).wait(jobs.DEADLINE)
    assert lost == [1]
    for thread in set(threading.enumerate()) - before:
        if thread.name in SERVERS:
            thread.join(jobs.DEADLINE)
            assert not thread.is_alive()


def test_a_block_returns_the_optimizer_itself(name: str) -> None:
    opt = jobs.METHODS[name](1)
    with opt as entered:
        assert entered is opt
    assert opt.leave("any model") == "any model"


# Those whose workers update the same parameters in each step, without a coordinator that does.
REPLICAS = {"compression", "data_parallel", "kfac", "large_batch", "shard_state"}


def test_workers_with_other_hyperparameters_are_refused_before_the_first_step(name: str) -> None:
    """All of them where they call the same operations, and else the one that differs from the worker that serves the others."""

    def worker(comm: Any) -> None:
        opt, model = jobs.METHODS[name](comm.size), new_model()
        if comm.rank:
            opt.optimizer.learning_rate = 7.0
        if comm.rank or name not in {*COORDINATED, "elastic"}:
            with pytest.raises(Refused, match="learning_rate of the optimizer on rank 1 is 7.0: expected"):
                opt.start(model)
        else:
            opt.leave(opt.start(model))

    distributed.run(worker, workers=2)


@pytest.mark.parametrize("rate", [0.1, 7.0])
def test_a_replica_that_joins_with_other_hyperparameters_warns(name: str, rate: float) -> None:
    if name not in REPLICAS - {"shard_state"}:
        pytest.skip("no worker joins, or workers may have their own hyperparameters")

    def made(size: int) -> Any:
        opt = jobs.METHODS[name](size)
        opt.optimizer.learning_rate = 0.1
        return opt

    def old(comm: Any) -> None:
        opt, model = made(comm.size), new_model()
        model = opt.start(model)
        while opt.communicator.size < 2:
            model = opt.reform(model)

    def new(comm: Any) -> None:
        opt = made(comm.size)
        opt.optimizer.learning_rate = rate
        opt.start(new_model())

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        job = ThreadJob(old, 1, accept_newcomers=True)
        job.join(new)
        job.wait(jobs.DEADLINE)
    found = [str(each.message) for each in caught if each.category is RuntimeWarning]
    expected = f"learning_rate of the optimizer on this worker, which joins, is {rate}: expected 0.1, as on the others"
    assert found == ([] if rate == 0.1 else [expected])


# Those whose result depends on which worker comes first.
TIMED = {"softsync", "drop_stale"}


def test_what_groups_freeze_stays_and_changes_nothing_else(name: str) -> None:
    """The oracle is the training of a model without the frozen array."""

    def trained(comm: Any, frozen: Any) -> Any:
        model = {**new_model(), **frozen}
        opt = jobs.METHODS[name](comm.size)
        opt.optimizer.groups = (
            {"fixed.*": None, "w": {"learning_rate": 0.05}} if frozen else {"w": {"learning_rate": 0.05}}
        )
        with opt:
            model = opt.start(model)
            for _ in range(4):
                opt.minimize(lambda model: loss(model) + sum(ox.xp.sum(each) for each in frozen.values()), model)
            return model, opt.state_dict()["slots"].keys()

    for frozen in ({"fixed.bias": np.arange(3.0)}, {"fixed.bias": np.ones(2, np.float32), "fixed.w": np.ones(())}):
        before = {path: array.copy() for path, array in frozen.items()}
        workers = 1 if name in TIMED else 2
        found = distributed.run(lambda comm, frozen=frozen: trained(comm, frozen), workers=workers)
        expected = distributed.run(lambda comm: trained(comm, {}), workers=workers)
        for (model, slots), (other, names) in zip(found, expected, strict=True):
            assert slots == names
            for path, array in {**other, **before}.items():
                np.testing.assert_array_equal(model[path], array, err_msg=path)


# Those that go on with other parameters; the others refuse them, since they have something for each, which workers must have alike.
CHANGEABLE = {"compression", "data_parallel", "kfac", "large_batch", "model_average"}


@pytest.mark.parametrize(
    ("first", "later", "path"), [({"b": None}, {}, "b"), ({}, {"w": None}, "w")], ids=["thaw", "freeze"]
)
def test_parameters_that_are_frozen_or_thawed_between_steps(name: str, first: Any, later: Any, path: str) -> None:
    """They were left out without a word, or raised `KeyError`."""

    def worker(comm: Any) -> Any:
        model = {**new_model(), "third": np.ones(2)}
        opt = jobs.METHODS[name](comm.size)
        opt.optimizer.groups = first
        grads = {key: np.full_like(value, 1.0 + comm.rank) for key, value in model.items()}
        with opt:
            model = opt.start(model)
            for _ in range(6):
                model = opt.update(model, grads)
            before = {key: value.copy() for key, value in model.items()}
            opt.optimizer.groups = later
            if name not in CHANGEABLE:
                with pytest.raises(ox.StructureError, match=f"^{path}: the parameter was added, removed or frozen"):
                    opt.update(model, grads)
            else:
                for _ in range(6):
                    model = opt.update(model, grads)
        return {key for key in model if (model[key] != before[key]).any()}

    trained = set() if name not in CHANGEABLE else {"third", "w", "b"} - later.keys()
    assert distributed.run(worker, workers=1 if name in TIMED else 2, timeout=20.0) == [trained] * (
        1 if name in TIMED else 2
    )


def test_sums_of_gradients_of_half_precision_do_not_overflow(name: str) -> None:
    def worker(comm: Any) -> Any:
        model = {"w": np.ones((4, 3), np.float16), "b": np.ones(3, np.float16)}
        grads = {key: np.full_like(value, 40_000.0) for key, value in model.items()}
        with jobs.METHODS[name](comm.size) as opt:
            model = opt.start(model)
            for _ in range(2):
                model = opt.update(model, grads)
        return np.concatenate([model["w"].ravel(), model["b"]])

    for values in distributed.run(worker, workers=1 if name in TIMED else 3):
        assert values.dtype == np.float16
        assert np.isfinite(values).all()
        assert (values <= 1).all()


def test_a_step_of_late_workers_alone_changes_nothing(name: str) -> None:
    """Their first gradients are of other parameters, and whoever had one of these has died: parameters became NaN."""
    if name not in REPLICAS - {"shard_state"}:
        pytest.skip("no worker joins, or each takes steps by its own gradients")
    started, waiting = threading.Event(), threading.Event()

    def old(comm: Any) -> None:
        opt, model = jobs.METHODS[name](comm.size), new_model()
        for _ in range(4):
            model = opt.update(model, {"w": np.ones((4, 3)), "b": np.ones(3)})
        started.set()
        waiting.wait(jobs.DEADLINE)
        admitted.update({key: value.copy() for key, value in opt.reform(model).items()})
        raise ZeroDivisionError("a mistake")

    def new(comm: Any) -> None:
        opt, model = jobs.METHODS[name](comm.size), new_model()
        for step in range(2 * getattr(opt, "local_batches", 1)):
            if step == getattr(opt, "local_batches", 1):
                joined.append({key: value.copy() for key, value in model.items()})
            model = opt.update(model, {"w": np.ones((4, 3)), "b": np.ones(3)})
        later.append(model)

    for count in (1, 2):
        admitted: dict[str, np.ndarray] = {}
        joined: list[Any] = []
        later: list[Any] = []
        started.clear()
        waiting.clear()
        job = ThreadJob(old, 1, timeout=20.0, accept_newcomers=True)
        job.start()
        started.wait(jobs.DEADLINE)
        for _ in range(count):
            job.join(new)
        waiting.set()
        with pytest.raises(ZeroDivisionError):
            job.wait(jobs.DEADLINE)
        assert len(later) == count
        for model in later:
            assert any((model[key] < admitted[key]).any() for key in admitted)
        if name != "large_batch":  # of whose batches the second one was used
            for model in joined:
                for key, value in admitted.items():
                    np.testing.assert_array_equal(model[key], value)


def test_gradients_that_are_rows_on_some_workers_alone_are_averaged_or_refused(name: str) -> None:
    """Two tables of one shape, of which each worker has rows of another one: their sums were mixed, and replicas differed."""
    if name not in REPLICAS | {"sync_replicas"}:
        pytest.skip("each worker takes steps by its own gradients")

    def worker(comm: Any) -> Any:
        model = {path: np.ones((5, 2)) for path in "ab"}
        rows = SparseRows(np.array([1]), np.full((1, 2), 2.0), (5, 2))
        dense = np.zeros((5, 2))
        dense[0] = 4.0
        opt = jobs.METHODS[name](comm.size)
        with opt:
            model = opt.start(model)
            try:
                for _ in range(getattr(opt, "local_batches", 1)):
                    model = opt.update(model, {"a": rows, "b": dense} if comm.rank else {"a": dense, "b": rows})
            except Refused as error:
                return str(error)
        return {path: (array < 1).any() for path, array in model.items()}, {
            path: a.tobytes() for path, a in model.items()
        }

    found = distributed.run(worker, workers=2)
    assert found[0] == found[1]
    if name == "kfac":
        assert found[0] == "a: the gradient is SparseRows on some workers alone: expected one kind on all"
    else:
        assert found[0][0] == {"a": True, "b": True}


def test_a_mean_that_is_not_finite_is_an_error_on_every_worker_and_the_training_goes_on(name: str) -> None:
    """Around an optimizer with ``nonfinite="raise"``: workers of a coordinator were told that the job had ended."""
    if name not in REPLICAS - {"shard_state"} | COORDINATED:
        pytest.skip("each worker takes steps by its own gradients, or refuses the option")

    def worker(comm: Any) -> Any:
        model, errors = new_model(), []
        with jobs.METHODS[name](comm.size) as opt:
            opt.nonfinite = "raise"
            model = opt.start(model)
            for step in range(8):
                grads = {"w": np.ones((4, 3)), "b": np.full(3, np.nan if step == 2 and comm.rank else 1.0)}
                try:
                    model = opt.update(model, grads)
                except ox.NonFiniteError as error:
                    errors.append(str(error))
        return model, errors

    found = distributed.run(worker, workers=2)
    for model, errors in found:
        assert all(np.isfinite(value).all() for value in model.values())
        assert (model["b"] < 1).all()
        assert all("b: " in error for error in errors) or name == "compression"
    if name in {"softsync", "drop_stale"}:  # whose workers end at any step, and drop gradients by chance
        return
    assert [len(errors) for _, errors in found] == [1, 1]
    np.testing.assert_array_equal(found[0][0]["b"], found[1][0]["b"])


def test_frozen_arrays_are_those_of_rank_0_at_the_start(name: str) -> None:
    """They stayed those of each worker, so that gradients were of different models, and thawed parameters differed."""

    def worker(comm: Any) -> Any:
        opt, here = jobs.METHODS[name](comm.size), float(comm.rank)
        opt.groups = {"f*": None}
        model = {**new_model(), "f": np.full(2, here), "frozen": [np.full((2, 2), here, np.float32), "name"]}
        before = model["f"]
        try:
            with opt:
                model = opt.start(model)
                assert model["f"] is before
                return model["f"].tolist(), model["frozen"][0].tolist()
        except Refused as error:
            return str(error)

    found = distributed.run(worker, workers=2)
    assert found[0] == ([0.0, 0.0], [[0.0, 0.0], [0.0, 0.0]])
    if name == "elastic":  # whose workers may join at any time
        assert found[1] == "f (not trained): other values on rank 1: expected the same ones on every worker"
    else:
        assert found[1] == found[0]


def test_parameters_and_buffers_of_a_module_that_are_not_trained_are_those_of_rank_0(name: str) -> None:
    """As `torch.nn.parallel.DistributedDataParallel` has it."""
    torch = pytest.importorskip("torch")
    if name == "elastic":
        pytest.skip("whose workers may join at any time")

    def worker(comm: Any) -> Any:
        module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 2))
        module[0].weight.requires_grad_(False)
        with torch.no_grad():
            for tensor in module.state_dict().values():
                tensor.fill_(comm.rank + 1)
        with jobs.METHODS[name](comm.size) as opt:
            opt.groups = {"2.bias": None}
            opt.start(module)
        return {key: tensor.tolist() for key, tensor in module.state_dict().items() if "tracked" not in key}

    found = distributed.run(worker, workers=2)
    assert found[0] == found[1]
    assert found[0]["1.running_var"] == [1.0, 1.0]


def test_workers_that_return_before_they_have_left_do_not_delay_the_next_work(name: str) -> None:
    """As by two calls of `distributed.run` under MPI: a worker that served nothing did not leave, and rank 0 waited for it."""

    def work(comm: Any) -> Any:
        model = new_model()
        opt = jobs.METHODS[name](comm.size)
        model = opt.start(model)
        for _ in range(2 + 2 * comm.rank if name in COORDINATED else 2):
            model = opt.update(model, {"w": np.ones((4, 3)), "b": np.ones(3)})

    def worker(comm: Any) -> None:
        for _ in range(2):
            results_of(work, comm)
        with jobs.METHODS["elastic"](comm.size) as opt:
            opt.start(new_model())

    job = ThreadJob(worker, 2, timeout=10.0)
    job.start()
    job.wait(jobs.DEADLINE)


def test_an_interrupt_after_an_exchange_leaves_replicas_alike(name: str) -> None:
    """The other workers take the step by the gradients of all: so does the one that is interrupted, before it raises."""
    if not getattr(jobs.METHODS[name](2), "_are_replicas", False):
        pytest.skip("workers have parameters of their own, or a coordinator")

    def worker(comm: Any) -> Any:
        opt, model, interrupts = jobs.METHODS[name](comm.size), new_model(), 0
        with opt:
            model = opt.start(model)
            stepper = opt.optimizer._stepper
            update, calls = stepper.update, iter(range(99))

            def interrupted(*args: Any, **named: Any) -> Any:
                if comm.rank and next(calls) == 1:
                    raise KeyboardInterrupt
                return update(*args, **named)

            stepper.update = interrupted
            for _ in range(6):
                try:
                    opt.minimize(loss, model)
                except KeyboardInterrupt:
                    interrupts += 1
            del stepper.update
        return interrupts, opt.step, opt.report()[0].accepted, {path: array.tobytes() for path, array in model.items()}

    first, second = distributed.run(worker, workers=2, timeout=30.0)
    assert (first[0], second[0]) == (0, 1) and first[1:] == second[1:]


def test_gradients_are_zeros_after_a_step_that_is_to_leave_them_so(name: str) -> None:
    if name in ("compression", "kfac"):
        pytest.skip("it refuses the option, or needs statistics")

    def train(comm: Any) -> bool:
        with jobs.METHODS[name](comm.size) as opt:
            opt.optimizer.zero_gradients = True
            model = opt.start({"w": np.ones(5), "b": np.ones(2)})
            grads = {"w": np.arange(1.0, 6.0), "b": np.ones(2)}
            model = opt.update(model, grads)
            read_only = {"w": np.ones(5), "b": np.ones(2)}
            read_only["w"].flags.writeable = False
            with pytest.raises(ox.ArrayMemoryError, match="w: the gradient, .* is read-only"):
                opt.update(model, read_only)
            return not (grads["w"].any() or grads["b"].any())

    assert distributed.run(train, workers=2) == [True, True]
