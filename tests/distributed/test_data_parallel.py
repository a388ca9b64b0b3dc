"""Data-parallel training: the steps are those of one worker by the mean gradient, whatever the buckets and the order of arrival."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jobs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oxigrad as ox
from oxigrad import distributed, optim
from oxigrad.distributed import DataParallel, LargeBatch, Refused

DTYPES = ("f4", "f8", "f2")
Model = dict[str, Any]


def new_model() -> Model:
    """Parameters of three dtypes, one without axes, one without elements."""
    rng = np.random.default_rng(0)
    shapes = {"a": (40, 3), "b": (7,), "c": (), "d": (0, 2), "e": (5, 5), "f": (2000,)}
    return {name: rng.standard_normal(shape).astype(DTYPES[at % 3]) for at, (name, shape) in enumerate(shapes.items())}


def gradient(rank: int, step: int) -> Model:
    rng = np.random.default_rng([rank, step, 7])
    return {name: rng.standard_normal(array.shape).astype(array.dtype) for name, array in new_model().items()}


def mean(gradients: list[Any]) -> Any:
    """The mean in the order of ranks, None for None on all workers."""
    found = [g for g in gradients if g is not None]
    if not found:
        return None
    wide = [np.zeros_like(found[0]) if g is None else g for g in gradients]
    wide = [g.astype(np.float32) if g.dtype == np.float16 else g for g in wide]
    total = wide[0].copy()
    for g in wide[1:]:
        total = total + g
    return total / total.dtype.type(len(gradients))


def means(gradients: list[Model]) -> Model:
    return {name: mean([g[name] for g in gradients]) for name in gradients[0]}


def assert_same(found: Any, expected: Any) -> None:
    for (path, a), b in zip(ox.tree.parameters(found).items(), ox.tree.parameters(expected).values(), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b), err_msg=str(path))


OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: optim.SGD(0.1, momentum=0.9),
    "chain": lambda: optim.chain(optim.ClipByGlobalNorm(1.0), optim.AdamW(0.01), optim.EMA(0.9)),
    "groups": lambda: optim.Adam(0.01, groups={"[ab]": {"learning_rate": 0.1}, "e": None}),
    "partition": lambda: optim.partition({"[abc]": optim.SGD(1.0), "*": optim.LAMB(0.1)}),
    "schedule": lambda: optim.SGD(ox.schedules.linear(0.1, 0.0, 10)),
    "accumulate": lambda: optim.Adam(0.01, accumulate=2),
}


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_is_that_of_one_worker_by_the_mean(name: str, workers: int) -> None:
    def worker(comm: Any) -> Any:
        model = new_model()
        with DataParallel(OPTIMIZERS[name](), bucket_bytes=300) as opt:
            model = opt.start(model)
            for step in range(4):
                model = opt.update(model, gradient(comm.rank, step))
        return model, opt.state_dict()

    expected, opt = new_model(), OPTIMIZERS[name]()
    for step in range(4):
        expected = opt.update(expected, means([gradient(rank, step) for rank in range(workers)]))
    for model, state in distributed.run(worker, workers=workers):
        assert_same(model, expected)
        assert state["step"] == opt.step


@pytest.mark.slow
@settings(deadline=None)
@given(limit=st.integers(1, 20_000), local_batches=st.integers(1, 3), workers=st.integers(2, 3))
def test_bits_do_not_depend_on_buckets(limit: int, local_batches: int, workers: int) -> None:
    def trained(make: Callable[[], Any]) -> list[Model]:
        def worker(comm: Any) -> Model:
            model = new_model()
            with make() as opt:
                for step in range(2 * local_batches):
                    model = opt.update(model, gradient(comm.rank, step))
            return model

        return distributed.run(worker, workers=workers)

    found = trained(lambda: DataParallel(optim.Adam(0.1), bucket_bytes=limit, local_batches=local_batches))
    expected = trained(lambda: LargeBatch(optim.Adam(0.1), local_batches))
    for model in found:
        assert_same(model, expected[0])


PRESENT = {
    "one worker": [{"a", "b"}, {"a"}],
    "another in each": [{"a", "b"}, {"c"}],
    "none on all": [{"a"}, {"a"}],
    "all": [{"a", "b", "c"}, {"a", "b", "c"}],
}


@pytest.mark.parametrize("present", PRESENT.values(), ids=PRESENT)
def test_a_gradient_that_is_none_counts_as_zeros_unless_all_are(present: list[set[str]]) -> None:
    def given_on(rank: int, step: int) -> Model:
        g = gradient(rank, step)
        return {name: g[name] if name in present[rank] or step == 0 else None for name in "abc"}

    def start() -> Model:
        return {name: array for name, array in new_model().items() if name in "abc"}

    def worker(comm: Any) -> Any:
        model = start()
        with DataParallel(optim.Adam(0.1), bucket_bytes=64) as opt:
            for step in range(3):
                model = opt.update(model, given_on(comm.rank, step))
        return model

    expected, opt = start(), optim.Adam(0.1)
    for step in range(3):
        expected = opt.update(expected, means([given_on(rank, step) for rank in range(2)]))
    for model in distributed.run(worker, workers=2):
        assert_same(model, expected)


def test_gradients_that_are_none_on_all_workers_are_refused_by_all() -> None:
    def worker(comm: Any) -> str:
        with pytest.raises(ox.StructureError) as error:
            DataParallel(optim.SGD(0.1)).update({"w": np.ones(2)}, {"w": None})
        return str(error.value)

    assert set(distributed.run(worker, workers=2)) == {
        "no parameter has a gradient: expected one at least that is not None, as after loss.backward()"
    }


@pytest.mark.parametrize("kinds", [("rows", "rows"), ("rows", "array"), ("rows", "none"), ("array", "none")])
@pytest.mark.parametrize("sparse", ["dense", "lazy"])
def test_rows_are_gathered_unless_a_worker_has_an_array(kinds: tuple[str, str], sparse: Any) -> None:
    rows = [
        ox.SparseRows([2, 0, 2], [[1.0, 2.0], [4.0, 4.0], [3.0, 3.0]], (6, 2)),
        ox.SparseRows([5, 2], [[8.0, 2.0], [2.0, 2.0]], (6, 2)),
    ]

    def given_on(rank: int) -> Any:
        return {"rows": rows[rank], "array": rows[rank].todense(), "none": None}[kinds[rank]]

    def worker(comm: Any) -> Any:
        model = {"table": np.ones((6, 2)), "w": np.zeros(1)}
        opt = DataParallel(optim.Adam(0.1, sparse=sparse), bucket_bytes=8)
        for _ in range(2):
            opt.update(model, {"table": given_on(comm.rank), "w": np.ones(1)})
        return model

    both = [given_on(rank) for rank in range(2)]
    is_rows = "array" not in kinds
    total: Any = sum((g if is_rows or isinstance(g, np.ndarray) else g.todense() for g in both if g is not None), 0)
    half = ox.SparseRows(total.indices, total.values / 2, total.shape) if is_rows else total / 2
    expected, opt = {"table": np.ones((6, 2)), "w": np.zeros(1)}, optim.Adam(0.1, sparse=sparse)
    for _ in range(2):
        opt.update(expected, {"table": half, "w": np.ones(1)})
    for model in distributed.run(worker, workers=2):
        assert_same(model, expected)


def test_gradients_of_tied_parameters_are_added_up() -> None:
    def trained(step: Callable[[Any, Any], Any], grads: Model) -> Model:
        shared = np.ones(3)
        return step({"a": shared, "b": {"c": shared}, "d": np.ones(2)}, grads)

    def given_on(rank: int) -> Model:
        return {"a": np.full(3, 1.0 + rank), "b": {"c": None if rank else np.full(3, 8.0)}, "d": np.ones(2)}

    def worker(comm: Any) -> Model:
        return trained(DataParallel(optim.SGD(1.0)).update, given_on(comm.rank))

    total = np.full(3, (1.0 + 8.0 + 2.0) / 2)
    for model in distributed.run(worker, workers=2):
        np.testing.assert_array_equal(model["a"], 1.0 - total)
        np.testing.assert_array_equal(model["d"], 0.0)
        assert model["a"] is model["b"]["c"]


# A change of rank 1, and what all workers are told.
DIFFERENT: dict[str, tuple[Model, dict[str, Any], str]] = {
    "shape": ({"b": np.zeros(4)}, {}, r"b: shape \(4,\) on rank 1: expected \(3,\)"),
    "dtype": ({"w": np.zeros(2, np.float32)}, {}, "w: dtype float32 on rank 1: expected float64"),
    "structure": ({"v": np.zeros(1)}, {}, "v: on rank 1 only"),
    "buckets": ({}, {"bucket_bytes": 8}, "bucket_bytes of the optimizer on rank 1 is 8: expected 26214400"),
    "batches": ({}, {"local_batches": 2}, "local_batches of the optimizer on rank 1 is 2: expected 1"),
}


@pytest.mark.parametrize(("change", "options", "message"), DIFFERENT.values(), ids=DIFFERENT)
def test_workers_that_differ_are_refused_before_anything_changes(change: Model, options: Any, message: str) -> None:
    def worker(comm: Any) -> None:
        model = {"w": np.ones(2), "b": np.ones(3)} | (change if comm.rank else {})
        before = {name: array.copy() for name, array in model.items()}
        opt = DataParallel(optim.SGD(1.0), **(options if comm.rank else {}))
        with pytest.raises(Refused, match=message):
            opt.update(model, {name: np.ones_like(array) for name, array in model.items()})
        assert_same(model, before)

    distributed.run(worker, workers=2)


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="bucket_bytes is 0"):
        DataParallel(optim.SGD(), bucket_bytes=0)
    with pytest.raises(TypeError, match="found LargeBatch inside"):
        DataParallel(LargeBatch(optim.SGD()))
    opt = DataParallel(optim.Adam(0.1), bucket_bytes=100, local_batches=2)
    again: Any = optim.from_config(opt.get_config())
    assert (again.bucket_bytes, again.local_batches, again.overlap) == (100, 2, True)


def test_many_buckets_send_no_more_bytes_than_one() -> None:
    """But for the numbers beside the gradients, which have the dtype of the last bucket."""

    def sent(limit: int) -> int:
        def worker(comm: Any) -> int:
            opt, model = DataParallel(optim.SGD(0.1), bucket_bytes=limit), new_model()
            model = opt.update(model, gradient(comm.rank, 0))
            before = comm.bytes_sent
            opt.update(model, gradient(comm.rank, 1))
            return comm.bytes_sent - before

        return distributed.run(worker, workers=2, timeout=jobs.DEADLINE)[0]

    assert abs(sent(1) - sent(1 << 20)) <= 4 * (1 + 2 * len(new_model()))


def test_a_steady_step_calls_one_collective_operation_for_each_bucket() -> None:
    """The last bucket carries the kinds of gradients too."""

    def worker(comm: Any) -> list[int]:
        calls, all_gather_v, all_reduce = [0, 0], comm.all_gather_v, comm.all_reduce

        def counted(at: int, operation: Any) -> Any:
            def call(*args: Any, **named: Any) -> Any:
                calls[at] += 1
                return operation(*args, **named)

            return call

        comm.all_gather_v, comm.all_reduce = counted(0, all_gather_v), counted(1, all_reduce)
        opt, model = DataParallel(optim.SGD(0.1), bucket_bytes=1 << 20, communicator=comm), new_model()
        for step in range(3):
            calls[:] = 0, 0
            model = opt.update(model, gradient(comm.rank, step))
        return calls

    assert distributed.run(worker, workers=3, timeout=jobs.DEADLINE) == [[0, 2]] * 3  # of two dtypes


@pytest.mark.parametrize("make", [LargeBatch, DataParallel])
def test_a_step_that_refuses_its_mean_ends_the_sum(make: Any) -> None:
    """The next one is of other batches: an infinity stayed in the sum, and each step after it was refused too."""

    def worker(comm: Any) -> Any:
        opt, model = make(optim.SGD(1.0, nonfinite="raise"), local_batches=2), {"w": np.zeros(2)}
        for value in (np.inf if comm.rank else 1.0, 1.0):
            if opt.pending:
                with pytest.raises(ox.NonFiniteError, match="^w: "):
                    opt.update(model, {"w": np.full(2, value)})
            else:
                model = opt.update(model, {"w": np.full(2, value)})
        assert (opt.pending, opt.step) == (0, 0)
        np.testing.assert_array_equal(model["w"], 0.0)
        for value in (1.0, 3.0):
            model = opt.update(model, {"w": np.full(2, value)})
        return model["w"].tolist(), opt.step

    assert distributed.run(worker, workers=2) == [([-2.0, -2.0], 1)] * 2


@pytest.mark.parametrize("shard_state", [False, True])
def test_another_model_on_one_worker_after_the_start_is_refused_on_all(shard_state: bool) -> None:
    def worker(comm: Any) -> None:
        opt, model = DataParallel(optim.SGD(1.0), shard_state=shard_state), {"w": np.zeros(2)}
        model = opt.update(model, model)
        model |= {"more": np.zeros(3)} if comm.rank else {}
        with pytest.raises(Refused):
            opt.update(model, model)

    distributed.run(worker, workers=2)
