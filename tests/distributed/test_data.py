"""Shards of data: disjoint, complete, the same rows in each step for any number of workers, and continued in the middle of an epoch."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_agreement import CASES, disagreeing, new_optimizer

import libraries
from oxigrad import distributed, optim, xp
from oxigrad._core import ShapeError, StateError, StructureError
from oxigrad.distributed import Refused, shard
from oxigrad.distributed.data import permutation
from oxigrad.distributed.messages import agreement


@dataclasses.dataclass
class Worker:
    """A communicator, as far as a shard reads it."""

    rank: int
    size: int


def shards(size: int, data: Any, **arguments: Any) -> list[Any]:
    return [shard(data, Worker(rank, size), **arguments) for rank in range(size)]


def steps(workers: list[Any]) -> list[list[np.ndarray]]:
    """The batches of the rest of an epoch, by step and worker."""
    return [list(step) for step in zip(*workers, strict=True)]


@given(
    rows=st.integers(1, 60),
    size=st.integers(1, 5),
    batch=st.integers(1, 20),
    shuffle=st.booleans(),
    drop_last=st.booleans(),
    seed=st.integers(0, 2**64 - 1),
)
def test_batches_are_disjoint_complete_balanced_and_those_of_one_worker(
    rows: int, size: int, batch: int, shuffle: bool, drop_last: bool, seed: int
) -> None:
    arguments = {"batch_size": batch, "shuffle": shuffle, "drop_last": drop_last, "seed": seed}
    last = rows % batch
    if (drop_last and rows < batch) or (batch if drop_last or not last else last) < size:
        with pytest.raises(ValueError, match="an epoch has no batch|rows for .* workers: expected one for each"):
            shards(size, rows, **arguments)
        return
    workers, (alone,) = shards(size, rows, **arguments), shards(1, rows, **arguments)
    for epoch in range(2):
        parts, whole = steps(workers), [*alone]
        assert len(parts) == len(workers[0]) == len(whole)
        for step, expected in zip(parts, whole, strict=True):
            np.testing.assert_array_equal(np.concatenate(step), expected)
            counts = [len(part) for part in step]
            assert max(counts) - min(counts) <= 1
        used = np.concatenate(whole)
        assert len({*used.tolist()}) == len(used) == rows - (last if drop_last else 0)
        assert [worker.epoch for worker in workers] == [epoch + 1] * size


@given(
    rows=st.integers(8, 50),
    before=st.integers(1, 4),
    after=st.integers(1, 4),
    given_batches=st.integers(0, 12),
    seed=st.integers(0, 9),
)
def test_another_number_of_workers_goes_on_in_the_middle_of_an_epoch(
    rows: int, before: int, after: int, given_batches: int, seed: int
) -> None:
    arguments = {"batch_size": 4, "seed": seed, "drop_last": True}
    old, new, (alone,) = (shards(size, rows, **arguments) for size in (before, after, 1))
    expected = np.concatenate([batch for _ in range(10) for batch in alone])
    used = []

    def take(workers: list[Any], count: int) -> None:
        while count > 0:
            for step in zip(*workers, strict=True):
                used.append(np.concatenate(step))
                count -= 1
                if count == 0:
                    break

    take(old, given_batches)
    states = [worker.state_dict() for worker in old]
    assert all(state == states[0] for state in states)
    for worker in new:
        worker.load_state_dict(states[0])
    take(new, 5)
    found = np.concatenate(used)
    np.testing.assert_array_equal(found, expected[: len(found)])


def test_weights_make_the_mean_over_workers_that_of_the_batch() -> None:
    values = np.random.default_rng(0).normal(size=23)
    workers = shards(3, values, batch_size=10)
    for step in steps_with_weights(workers):
        mean = np.mean([weight * part.mean() for part, weight in step])
        np.testing.assert_allclose(mean, np.concatenate([part for part, _ in step]).mean(), rtol=1e-14)


def steps_with_weights(workers: list[Any]) -> list[list[tuple[np.ndarray, float]]]:
    iterators = [iter(worker) for worker in workers]
    count = len(workers[0])
    return [[(next(it), worker.weight) for it, worker in zip(iterators, workers, strict=True)] for _ in range(count)]


def test_permutations_differ_by_seed_and_epoch_and_are_uniform() -> None:
    orders = {tuple(permutation(20, seed, epoch).tolist()) for seed in range(5) for epoch in range(5)}
    assert len(orders) == 25
    first = np.bincount([permutation(6, seed, 3)[0] for seed in range(6000)], minlength=6)
    assert ((first - 1000.0) ** 2 / 1000.0).sum() < 20.5  # the 0.999 quantile of chi-squared with 5 degrees of freedom
    # Another program must give the same permutation: the keys are the raw words of the counter-based generator.
    keys = np.random.Philox(key=np.array([7, 2], np.uint64)).random_raw(100)
    assert permutation(100, 7, 2).tolist() == sorted(range(100), key=lambda i: keys[i])


def test_rows_of_trees_are_taken_in_their_library(arrays: Any, asarray: Callable[[Any], Any]) -> None:
    data = {"x": asarray(np.arange(12.0).reshape(6, 2)), "y": [asarray(np.arange(6.0))]}
    batches = [*shard(data, Worker(1, 2), batch_size=4, shuffle=False)]
    assert [libraries.host(batch["y"][0]).tolist() for batch in batches] == [[2.0, 3.0], [5.0]]
    assert [libraries.host(batch["x"]).tolist() for batch in batches] == [[[4.0, 5.0], [6.0, 7.0]], [[10.0, 11.0]]]
    assert type(batches[0]["x"]) is type(asarray(np.ones(2)))


def test_training_is_that_of_one_worker() -> None:
    generator = np.random.default_rng(1)
    data = {"x": generator.normal(size=(51, 3)), "y": generator.normal(size=51)}

    def worker(comm: Any) -> np.ndarray:
        model, batches = {"w": np.zeros(3)}, shard(data, comm, batch_size=12, seed=4)
        opt = distributed.LargeBatch(optim.Adam(0.1))
        for _ in range(2):
            for batch in batches:
                opt.minimize(
                    lambda m, b=batch: batches.weight * xp.mean((b["x"] @ m["w"] - b["y"]) ** 2),
                    model,
                )
        return model["w"]

    alone = distributed.run(worker, workers=1)[0]
    for size in (2, 3):
        for found in distributed.run(worker, workers=size):
            np.testing.assert_allclose(found, alone, rtol=1e-10)


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ({}, StructureError, "the data has no arrays"),
        ({"x": np.ones(3), "y": "label"}, StructureError, "y: found str, expected an array"),
        ({"x": np.ones(3), "y": np.ones(())}, ShapeError, "y: the array has no axes"),
        ({"x": np.ones(3), "y": [np.ones((4, 3))]}, ShapeError, "y.0: the array has 4 rows, x has 3"),
        (0, ValueError, "the number of rows is 0: expected an integer from 1"),
        (np.ones((0, 2)), ValueError, "an epoch has no batch: there are 0 rows"),
    ],
)
def test_data_that_have_no_rows_in_common_are_refused(data: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        shard(data, Worker(0, 1))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"batch_size": 0}, ValueError, "batch_size is 0: expected an integer from 1"),
        ({"batch_size": 2.0}, TypeError, "batch_size is 2.0: expected an integer"),
        ({"seed": -1}, ValueError, "seed is -1: expected an integer from 0"),
        ({"batch_size": 11, "drop_last": True}, ValueError, "there are 10 rows, and batch_size is 11"),
    ],
)
def test_numbers_out_of_range_are_refused(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        shard(10, Worker(0, 1), **arguments)


def test_more_workers_than_rows_are_refused_when_they_join() -> None:
    worker = Worker(0, 2)
    batches = shard(6, worker, batch_size=2)
    worker.size = 3
    with pytest.raises(ValueError, match="a batch has 2 rows for 3 workers"):
        next(iter(batches))
    assert batches.position == 0


def test_states_of_other_data_and_malformed_ones_are_refused() -> None:
    batches = shard(10, Worker(0, 1), batch_size=4)
    state = batches.state_dict()
    for change, message in (
        ({"format": 2}, "a state of a shard in format 1"),
        ({"rows": 11}, "the state has rows 11, this shard 10"),
        ({"seed": 1}, "the state has seed 1, this shard 0"),
        ({"position": 11}, "position 11: expected integers, the position at most 10"),
        ({"position": True}, "position True: expected integers"),
        ({"epoch": -1}, "epoch -1"),
    ):
        with pytest.raises(StateError, match=message):
            batches.load_state_dict({**state, **change})
    with pytest.raises(StateError, match="a state of a shard in format 1"):
        batches.load_state_dict(None)  # pyright: ignore[reportArgumentType]
    assert batches.state_dict() == state


def test_an_iteration_continues_where_another_one_stopped() -> None:
    batches = distributed.shard(6, batch_size=2, shuffle=False)
    for batch in batches:
        assert batch.tolist() == [0, 1]
        break
    assert [batch.tolist() for batch in batches] == [[2, 3], [4, 5]]
    assert [[a.tolist(), b.tolist()] for a, b in zip(batches, batches, strict=False)] == [[[0, 1], [2, 3]]]


# --- other shards on other workers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_other_shards_of_data_are_refused_by_every_wrapper(name: str) -> None:
    kind, arguments, _ = CASES[name]
    hyperparameters = {"momentum": 0.9} if name == "eamsgd" else {}

    def make(rank: int, seeds: tuple[int, int]) -> Any:
        for seed in (0, seeds[rank]):
            distributed.shard(12, batch_size=4, seed=seed)
        return kind(new_optimizer(**hyperparameters), **arguments)

    assert disagreeing(lambda rank: make(rank, (3, 3))) == ["", ""]
    text = "shards[1].seed is 4 on rank 1, 3 on rank 0: expected the same shards on every worker"
    assert text in disagreeing(lambda rank: make(rank, (3, 4)))[1]


@pytest.mark.parametrize("argument", ["rows", "seed", "shuffle", "batch_size", "drop_last"])
def test_shards_are_compared_in_later_steps_before_a_parameter_is_changed(argument: str) -> None:
    others = {"rows": 16, "seed": 1, "shuffle": False, "batch_size": 6, "drop_last": True}

    def worker(comm: Any) -> tuple[str, int]:
        opt, model = distributed.DataParallel(optim.SGD(0.5)), {"w": np.zeros(1)}
        opt.start(model)
        other = {argument: others[argument]} if comm.rank else {}
        batches = distributed.shard(other.pop("rows", 24), **{"batch_size": 8, **other})
        try:
            while True:
                for _ in batches:
                    opt.update(model, {"w": np.ones(1)})
        except Refused as error:
            assert model["w"] == -0.5 * opt.step
            return str(error), opt.step

    usual = {"rows": 24, "seed": 0, "shuffle": True, "batch_size": 8, "drop_last": False}[argument]
    values = f"{json.dumps(others[argument])} on rank 1, {json.dumps(usual)} on rank 0"
    expected = f"shards[0].{argument} is {values}: expected the same shards on every worker"
    assert distributed.run(worker, workers=2) == [(expected, agreement.ROUNDS)] * 2


def test_shards_of_workers_that_join_are_not_compared() -> None:
    def worker(comm: Any) -> float:
        distributed.shard(24, seed=comm.rank)
        opt, model = distributed.DataParallel(optim.SGD(0.5), communicator=comm.reform()), {"w": np.zeros(1)}
        opt.update(model, {"w": np.ones(1)})
        return float(model["w"][0])

    assert distributed.run(worker, workers=2) == [-0.5, -0.5]
