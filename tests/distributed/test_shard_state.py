"""Slots that are divided among workers: the bits and the state are those of workers that have all of them."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jobs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oxigrad as ox
from oxigrad import distributed, optim
from oxigrad.distributed import DataParallel, NotSupported, WorkerLost
from oxigrad.distributed.data_parallel.division import Extent, divided
from oxigrad.distributed.engines.threads import ThreadJob

Model = dict[str, Any]
SHAPES = {"a": (30, 31), "b": (7,), "c": (), "d": (0, 2), "e": (130, 70), "f": (12_000,), "g": (3, 4)}


def new_model(dtypes: str = "fffffff") -> Model:
    rng = np.random.default_rng(0)
    return {
        name: rng.standard_normal(shape).astype(dtype)
        for (name, shape), dtype in zip(SHAPES.items(), dtypes, strict=True)
    }


def gradient(rank: int, step: int, dtypes: str = "fffffff", absent: str = "") -> Model:
    rng = np.random.default_rng([rank, step, 7])
    found = {
        name: rng.standard_normal(shape).astype(dtype)
        for (name, shape), dtype in zip(SHAPES.items(), dtypes, strict=True)
    }
    return {name: None if name in absent else g for name, g in found.items()}


OPTIMIZERS: dict[str, tuple[Callable[[], Any], str]] = {
    "sgd": (lambda: optim.SGD(0.1), "ddddddd"),
    "momentum": (lambda: optim.SGD(0.1, momentum=0.9), "fdfdfdf"),
    "adam": (lambda: optim.Adam(0.01), "fffffff"),
    "clip": (lambda: optim.chain(optim.ClipByGlobalNorm(1.0), optim.AdamW(0.01), optim.EMA(0.9)), "fdffdff"),
    "clip in a partition": (
        lambda: optim.chain(
            optim.ClipByGlobalNorm(0.5), optim.partition({"[ae]": optim.Adam(0.1), "*": optim.SGD(0.1)})
        ),
        "fffffff",
    ),
    "lamb": (lambda: optim.LAMB(0.1), "fffffff"),
    "novograd": (lambda: optim.NovoGrad(0.1), "fffffff"),
    "muon": (lambda: optim.partition({"[aeg]": optim.Muon(0.1), "*": optim.Adam(0.1)}), "fffffff"),
    "orthogonalized": (
        lambda: optim.chain(optim.Adam(0.1), optim.Orthogonalize(), optim.WeightDecay(0.1, cautious=True)),
        "fdffdff",
    ),
    "rows and norms": (
        lambda: optim.chain(optim.Adam(0.1), optim.NormalizeRows(0.8), optim.ScaleByShape(), optim.Hyperball()),
        "fdffdff",
    ),
    "adafactor": (lambda: optim.partition({"[aeg]": optim.Adafactor(0.1), "*": optim.Adam(0.1)}), "fffffff"),
    "8 bit": (lambda: optim.Adam(0.01, slot_dtype="8bit"), "fffffff"),
    "4 bit": (lambda: optim.Adam(0.01, slot_dtype="4bit"), "fffffff"),
    "master": (lambda: optim.Adam(0.01, master=True), "eeefeee"),
    "kahan": (lambda: optim.chain(optim.ClipByGlobalNorm(1.0), optim.Adam(0.01), rounding="kahan"), "eeefeee"),
    "schedule": (lambda: optim.SGD(ox.schedules.linear(0.1, 0.0, 10), momentum=0.5), "fffffff"),
    "groups": (lambda: optim.Adam(0.01, groups={"a": {"learning_rate": 0.1}, "e": None}), "fffffff"),
    "by shape": (
        lambda: optim.Adam(0.01, groups={_is_matrix: {"learning_rate": 0.1}}),
        "fffffff",
    ),
    "norms": (lambda: optim.Adam(0.01, record_norms=("gradient", "update")), "fffffff"),
    "norms, called": (
        lambda: optim.partition({"[aeg]": optim.Muon(0.1), "*": optim.Adam(0.1)}, record_norms=("gradient", "update")),
        "fffffff",
    ),
    "schedule-free": (lambda: optim.ScheduleFreeAdamW(0.01), "fffffff"),
    "noise": (lambda: optim.AdamLRD(0.01, dropout_rate=0.5, seed=3), "fdfffff"),
    "stochastic": (lambda: optim.Adam(0.01, rounding="stochastic", seed=5), "eefeeee"),
    "accumulate": (lambda: optim.Adam(0.01, accumulate=3), "fffffff"),
    "loss scale": (lambda: optim.Adam(0.01, loss_scale=optim.LossScale(8.0, interval=2)), "fffffff"),
    "zero gradients": (lambda: optim.Adam(0.01, zero_gradients=True), "fffffff"),
    "lazy": (lambda: optim.Adam(0.01, sparse="lazy"), "fffffff"),
    "catch up": (lambda: optim.Adam(0.01, sparse="catch_up"), "fffffff"),
    "late clip": (
        lambda: optim.chain(optim.ClipByValue(1.0), optim.ClipByGlobalNorm(1.0), optim.LAMB(0.1)),
        "ffdffff",
    ),
    "dog": (lambda: optim.DoG(1.0), "fffffff"),
    "prodigy": (lambda: optim.Prodigy(), "fffffff"),
    "clip before called": (
        lambda: optim.chain(
            optim.ClipByGlobalNorm(0.5), optim.partition({"[aeg]": optim.Muon(0.1), "*": optim.Adam(0.1)})
        ),
        "fffffff",
    ),
    "clip before called in half": (
        lambda: optim.chain(
            optim.ClipByGlobalNorm(0.5), optim.partition({"[aeg]": optim.Muon(0.1), "*": optim.Adam(0.1)}), master=True
        ),
        "eefeede",
    ),
    "clip, 8 bit": (
        lambda: optim.chain(optim.ClipByGlobalNorm(1.0), optim.Adam(0.01), slot_dtype="8bit"),
        "fffffff",
    ),
    "norms, clipped": (
        lambda: optim.chain(optim.ClipByGlobalNorm(1.0), optim.Adam(0.01), record_norms=("gradient", "update")),
        "fffffff",
    ),
}


def _is_matrix(path: Any, array: Any) -> bool:
    return array.ndim == 2


def trained(
    name: str, workers: int, *, shard: bool, steps: int = 4, absent: tuple[str, ...] = (), start: Any = None
) -> list[tuple[Model, dict[str, Any]]]:
    """The model and the state of each worker; ``absent`` are the parameters without a gradient in each step."""
    make, dtypes = OPTIMIZERS[name]

    def worker(comm: Any) -> Any:
        model = new_model(dtypes)
        with DataParallel(make(), bucket_bytes=3000, shard_state=shard) as opt:
            if start is not None:
                model = copy.deepcopy(start[0])
                opt.load(start[1])
            model = opt.start(model)
            for step in range(opt.step, opt.step + steps):
                left = absent[step] if step < len(absent) else ""
                model = opt.update(model, gradient(comm.rank, step, dtypes, left))
            return model, opt.state_dict()

    return distributed.run(worker, workers=workers, timeout=jobs.DEADLINE)


def assert_same(found: tuple[Model, Any], expected: tuple[Model, Any]) -> None:
    for path, array in expected[0].items():
        assert found[0][path].tobytes() == array.tobytes(), path
    for key in ("step", "micro", "skipped", "optimizer"):
        assert found[1][key] == expected[1][key]
    assert found[1]["remembered"].get("presence") == expected[1]["remembered"].get("presence")
    slots, wanted = found[1]["slots"], expected[1]["slots"]
    assert [*slots] == [*wanted]
    for path, own in wanted.items():
        assert slots[path].keys() == own.keys(), path
        for name, array in own.items():
            np.testing.assert_array_equal(np.asarray(slots[path][name]), np.asarray(array), err_msg=f"{path} {name}")
            assert slots[path][name].dtype == array.dtype and tuple(slots[path][name].shape) == tuple(array.shape)


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.one_in(4)
def test_bits_and_states_are_those_of_workers_with_all_slots(name: str, workers: int) -> None:
    expected = trained(name, workers, shard=False)[0]
    for found in trained(name, workers, shard=True):
        assert_same(found, expected)


@pytest.mark.parametrize("name", ["adam", "clip", "lamb"])
def test_parameters_without_gradients_keep_their_slots(name: str) -> None:
    """In some steps a worker has none of the parameters that are updated."""
    absent = ("", "f", "abcdeg", "", "bcdefg")
    expected = trained(name, 3, shard=False, steps=6, absent=absent)[0]
    for found in trained(name, 3, shard=True, steps=6, absent=absent):
        assert_same(found, expected)


@pytest.mark.parametrize("name", ["momentum", "clip", "muon", "8 bit", "4 bit", "master"])
def test_a_state_is_loaded_by_any_number_of_workers(name: str, tmp_path: Path) -> None:
    make, dtypes = OPTIMIZERS[name]
    file = tmp_path / "state.safetensors"

    def begin(comm: Any) -> Model:
        model = new_model(dtypes)
        opt = DataParallel(make(), shard_state=True)
        for step in range(2):
            model = opt.update(model, gradient(0, step, dtypes))
        opt.save(file)
        return model

    def go_on(model: Model, opt: Any) -> tuple[Model, Any]:
        model = copy.deepcopy(model)
        opt.load(file)
        assert opt.step == 2
        for step in range(2, 4):
            model = opt.update(model, gradient(0, step, dtypes))
        return model, opt.state_dict()

    model = distributed.run(begin, workers=3)[0]
    expected = go_on(model, DataParallel(make()))
    for workers in (1, 2, 4):
        for found in distributed.run(
            lambda comm: go_on(model, DataParallel(make(), shard_state=True)), workers=workers
        ):
            assert_same(found, expected)


def test_files_of_the_optimizer_alone_are_exchanged(tmp_path: Path) -> None:
    make, file, shared = OPTIMIZERS["adam"][0], tmp_path / "alone.safetensors", tmp_path / "shared.safetensors"
    opt, begun = make(), new_model()
    begun = opt.update(begun, gradient(0, 0))
    opt.save(file)
    expected = opt.update(copy.deepcopy(begun), gradient(0, 1))

    def worker(comm: Any) -> Model:
        sharded = DataParallel(make(), shard_state=True)
        sharded.load(file, strict=False)
        model = sharded.update(copy.deepcopy(begun), gradient(0, 1))
        sharded.save(shared)
        return model

    again = make()
    for model in distributed.run(worker, workers=2):
        assert all(model[path].tobytes() == array.tobytes() for path, array in expected.items())
    again.load(shared, strict=False)
    found = again.update(copy.deepcopy(expected), gradient(0, 2))
    wanted = opt.update(expected, gradient(0, 2))
    assert all(found[path].tobytes() == array.tobytes() for path, array in wanted.items())


def test_hyperparameters_may_change() -> None:
    def worker(comm: Any, *, shard: bool) -> tuple[Model, Any]:
        model, opt = new_model(), DataParallel(OPTIMIZERS["clip"][0](), shard_state=shard)
        for step in range(4):
            if step == 2:
                opt.parts[0].max_global_norm, opt.learning_rate = 0.25, 0.5
            model = opt.update(model, gradient(comm.rank, step))
        return model, opt.state_dict()

    expected = distributed.run(lambda comm: worker(comm, shard=False), workers=2)[0]
    for found in distributed.run(lambda comm: worker(comm, shard=True), workers=2):
        assert_same(found, expected)


@pytest.mark.parametrize("clips", [False, True])
def test_rows_and_arrays_are_divided(clips: bool) -> None:
    """A gradient of a table is rows on all workers, or on some, or an array; a clipped step reads those of all parameters."""

    def given_on(rank: int, step: int) -> Model:
        rows = ox.SparseRows([step, 3 + rank], np.full((2, 2), 1.0 + rank), (6, 2))
        return {"table": rows.todense() if rank < step else rows, "w": np.full(5, 2.0 + rank)}

    def worker(comm: Any, *, shard: bool) -> tuple[Model, Any]:
        model, parts = {"table": np.ones((6, 2)), "w": np.zeros(5)}, [optim.ClipByGlobalNorm(1.0)] if clips else []
        opt = DataParallel(optim.chain(*parts, optim.Adam(0.1)), shard_state=shard)
        for step in range(4):
            model = opt.update(model, given_on(comm.rank, step))
        return model, opt.state_dict()

    expected = distributed.run(lambda comm: worker(comm, shard=False), workers=3)[0]
    for found in distributed.run(lambda comm: worker(comm, shard=True), workers=3):
        assert_same(found, expected)


def test_a_state_that_does_not_match_is_refused_by_all_workers() -> None:
    make = OPTIMIZERS["adam"][0]
    opt = make()
    opt.update({"a": np.ones(5), "b": np.ones(4)}, {"a": np.ones(5), "b": np.ones(4)})
    state = opt.state_dict()

    def worker(comm: Any) -> None:
        sharded = DataParallel(make(), shard_state=True)
        sharded.load_state_dict(DataParallel(make()).state_dict() | {"slots": state["slots"], "step": 1})
        with pytest.raises(ox.StateError):
            sharded.start({"a": np.ones(6), "c": np.ones(3)})

    distributed.run(worker, workers=2)


def test_each_worker_has_its_share_of_the_bytes() -> None:
    workers = 4

    def worker(comm: Any) -> int:
        rng = np.random.default_rng(0)
        model = {name: rng.standard_normal(shape).astype("f4") for name, shape in (("w", (300, 400)), ("v", (70_001,)))}
        opt = DataParallel(optim.Adam(0.1), shard_state=comm.size > 1)
        model = opt.update(model, {name: np.ones_like(array) for name, array in model.items()})
        return sum(slot.nbytes for own in opt.slots.values() for slot in own.values())

    (whole,) = distributed.run(worker, workers=1)
    shares = distributed.run(worker, workers=workers)
    assert sum(shares) == whole
    assert max(shares) <= whole / workers * 1.01


@given(
    sizes=st.lists(st.integers(0, 20_000), min_size=1, max_size=6),
    units=st.lists(st.sampled_from([0, 1, 4096]), min_size=6, max_size=6),
    workers=st.integers(1, 9),
)
def test_slices_are_disjoint_and_complete(sizes: list[int], units: list[int], workers: int) -> None:
    extents = {str(at): Extent((size,), 4, units[at]) for at, size in enumerate(sizes)}
    parts = divided(extents, workers)
    assert len(parts) == workers
    flat = [(int(each.path), each.first, each.stop) for own in parts for each in own]
    assert flat == sorted(flat)
    for at, size in enumerate(sizes):
        own = [(start, stop) for path, start, stop in flat if path == at]
        assert [0, *(stop for _, stop in own)] == [*(start for start, _ in own), size]
        for start, stop in own if len(own) > 1 else ():
            assert units[at] and stop - start >= units[at] and start % units[at] == 0
    most = max([1, *(size if units[at] == 0 else 2 * units[at] for at, size in enumerate(sizes))])
    assert max(sum(each.count for each in own) for own in parts) <= sum(sizes) / workers + 2 * most


@pytest.mark.parametrize("policy", ["skip", "raise"])
@pytest.mark.parametrize("name", ["adam", "muon"])
def test_a_gradient_that_is_not_finite_ends_the_step_of_all_workers(policy: str, name: str) -> None:
    """The first and the last parameter of one worker have one such number; nothing changes on any worker."""
    make = OPTIMIZERS[name][0]

    def worker(comm: Any, *, shard: bool) -> Any:
        inner = make()
        inner.nonfinite = policy
        model, opt, errors = new_model(), DataParallel(inner, shard_state=shard), []
        for step in range(3):
            grads = gradient(comm.rank, step)
            if step == 1 and comm.rank == 1:
                grads["f"][-1], grads["a"][0, 0] = np.inf, np.nan
            before = copy.deepcopy(model)
            try:
                model = opt.update(model, grads)
            except ox.NonFiniteError as error:
                errors.append(str(error).split("\n")[0])
            if step == 1:
                assert all(model[path].tobytes() == array.tobytes() for path, array in before.items())
        return model, opt.state_dict(), errors

    end, state, errors = distributed.run(lambda comm: worker(comm, shard=False), workers=3)[0]
    assert (state["skipped"], len(errors)) == ((1, 0) if policy == "skip" else (0, 1))
    for *found, told in distributed.run(lambda comm: worker(comm, shard=True), workers=3):
        assert_same((found[0], found[1]), (end, state))
        assert told == errors and all(each.startswith("a, f: the gradient has infinities or NaN") for each in told)


def test_accumulated_gradients_are_flushed_by_all_workers() -> None:
    def worker(comm: Any, *, shard: bool) -> tuple[Model, Any]:
        model, opt = new_model(), DataParallel(optim.Adam(0.01, accumulate=3), shard_state=shard)
        for step in range(5):
            model = opt.update(model, gradient(comm.rank, step))
        assert (opt.step, opt.state_dict()["micro"]) == (1, 2)
        model = opt.flush(opt.flush(model))
        return model, opt.state_dict()

    expected = distributed.run(lambda comm: worker(comm, shard=False), workers=2)[0]
    assert (expected[1]["step"], expected[1]["micro"]) == (2, 0)
    for found in distributed.run(lambda comm: worker(comm, shard=True), workers=2):
        assert_same(found, expected)


def test_a_closure_that_reads_perturbed_gradients_has_the_same_bits() -> None:
    def worker(comm: Any, *, shard: bool) -> tuple[Model, Any]:
        model = {"w": np.linspace(-1, 1, 50), "v": np.ones((3, 4))}
        opt = DataParallel(optim.SAM(optim.Adam(0.1)), shard_state=shard)
        for step in range(3):
            factor = comm.rank + step + 1.0
            opt.minimize(lambda m, factor=factor: ox.xp.sum(m["w"] ** 2) * factor + ox.xp.sum(m["v"] ** 4), model)
        return model, opt.state_dict()

    expected = distributed.run(lambda comm: worker(comm, shard=False), workers=2)[0]
    for found in distributed.run(lambda comm: worker(comm, shard=True), workers=2):
        assert_same(found, expected)


@pytest.mark.parametrize("name", ["norms", "norms, called"])
def test_norms_are_those_of_whole_parameters(name: str) -> None:
    def worker(comm: Any, *, shard: bool) -> Any:
        model, opt = new_model(), DataParallel(OPTIMIZERS[name][0](), shard_state=shard)
        for step in range(2):
            model = opt.update(model, gradient(comm.rank, step))
        return opt.recorded_norms, opt.global_norm("update")

    expected = distributed.run(lambda comm: worker(comm, shard=False), workers=3)[0]
    assert distributed.run(lambda comm: worker(comm, shard=True), workers=3) == [expected] * 3


def test_a_wrapper_inside_is_refused() -> None:
    with pytest.raises(TypeError, match="expected an optimizer that is not a wrapper"):
        DataParallel(distributed.ModelAverage(optim.SGD(0.1), interval=2), shard_state=True)


def test_the_loss_of_a_worker_ends_the_training() -> None:
    ready, both = threading.Event(), threading.Barrier(2)

    def worker(comm: Any) -> str:
        assert ready.wait(jobs.DEADLINE)
        model, opt = {"w": np.ones(8), "v": np.ones(4)}, DataParallel(optim.Adam(0.1), shard_state=True)
        model = opt.update(model, model)
        if comm.rank == 1:
            job.kill(1)
        text = r"the slots of w\[4:8\].* of rank 1 are lost, .* expected a new DataParallel on communicator.reform\(\), with .* of a file"
        with pytest.raises(WorkerLost, match=text):
            opt.update(model, model)
        both.wait(jobs.DEADLINE)  # before one of them ends, which is a loss too
        with pytest.raises(NotSupported, match="the slots of a lost worker are lost"):
            opt.reform(model)
        return "told"

    job = ThreadJob(worker, 3, timeout=20.0)
    ready.set()
    assert job.wait(jobs.DEADLINE) == ["told", None, "told"]


def test_what_needs_all_slots_is_refused() -> None:
    def worker(comm: Any) -> None:
        opt = DataParallel(optim.chain(optim.SGD(0.1), optim.EMA(0.9)), shard_state=True)
        model = opt.update({"w": np.ones(8)}, {"w": np.ones(8)})
        for call in (
            lambda: opt.averaged_parameters(),
            lambda: opt.swap_in(model),
            lambda: opt.rebuild(model),
            lambda: copy.deepcopy(opt),
        ):
            with pytest.raises(NotSupported, match="shard_state=True"):
                call()
        assert opt.step == 1 and opt.slots["w"]["average"].shape == (4,)

    distributed.run(worker, workers=2)


def test_survivors_go_on_from_a_file(tmp_path: Path) -> None:
    """They have the bits of as many workers that begin with the same file."""
    ready, file, steps = threading.Event(), tmp_path / "state.safetensors", 5
    saved: Model = {}

    def gradient(rank: int, step: int) -> Model:
        rng = np.random.default_rng([rank, step])
        return {name: rng.standard_normal(array.shape) for name, array in saved.items()}

    def resumed(comm: Any) -> dict[str, bytes]:
        model = {name: array.copy() for name, array in saved.items()}
        opt = DataParallel(optim.Adam(0.1), shard_state=True, communicator=comm)
        opt.load(file)
        while opt.step < steps:
            model = opt.update(model, gradient(comm.rank, int(opt.step)))
        return {name: array.tobytes() for name, array in model.items()}

    def worker(comm: Any) -> Any:
        assert ready.wait(jobs.DEADLINE)
        model = {"w": np.linspace(-1, 1, 50), "v": np.ones((3, 4))}
        opt = DataParallel(optim.Adam(0.1), shard_state=True)
        for _ in range(2):
            model = opt.update(model, {name: array + comm.rank for name, array in model.items()})
        opt.save(file)
        if comm.rank == 0:
            saved.update({name: array.copy() for name, array in model.items()})
        model = opt.update(model, model)
        if comm.rank == 1:
            job.kill(1)
        with pytest.raises(WorkerLost):
            opt.update(model, model)
        return resumed(comm.reform())

    job = ThreadJob(worker, 3, timeout=20.0)
    ready.set()
    first, lost, last = job.wait(jobs.DEADLINE)
    assert lost is None and first == last == distributed.run(resumed, workers=2)[0]
