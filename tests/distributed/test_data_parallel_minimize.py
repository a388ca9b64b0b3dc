"""Gradients of `minimize` leave while derivatives are replayed, with the bits of an exchange after it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

import jobs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oxigrad as ox
from oxigrad import distributed, optim, xp
from oxigrad.distributed import DataParallel, LargeBatch
from oxigrad.distributed.engines.threads import ThreadJob

Model = dict[str, Any]
ROWS = np.array([4, 1, 1])


def new_model() -> Model:
    """A network of two dtypes, whose last layer is that of another key path too, with a table, and a parameter that no loss uses."""
    rng = np.random.default_rng(0)

    def drawn(*shape: int, dtype: str = "f8") -> np.ndarray:
        return rng.standard_normal(shape).astype(dtype)

    tied = drawn(4, 4)
    return {
        "table": drawn(6, 5),
        "layers": [
            {"w": drawn(5, 4), "b": drawn(4)},
            {"w": tied, "b": drawn(4, dtype="f4")},
            {"w": drawn(4, 4, dtype="f4"), "b": drawn(4)},
        ],
        "last": tied,
        "scale": drawn(dtype="f4"),
        "unused": drawn(3),
    }


def loss_of(rank: int, step: int, watch: Callable[[Any], Any] = lambda hidden: hidden) -> Callable[[Model], Any]:
    """The loss on data of a worker: every other worker leaves out a layer in every other step."""
    noise = np.random.default_rng([rank, step]).standard_normal((3, 5))

    def loss(model: Model) -> Any:
        first, second, third = model["layers"]
        hidden = watch(xp.tanh((model["table"][ROWS] + noise) @ first["w"] + first["b"]))
        hidden = xp.tanh(hidden @ second["w"] + second["b"])
        if (rank + step) % 2:
            hidden = xp.tanh(hidden @ third["w"] + third["b"])
        return xp.mean((hidden @ model["last"]) ** 2) * model["scale"]

    return loss


def parts(model: Model) -> dict[str, bytes]:
    return {str(path): np.asarray(leaf).tobytes() for path, leaf in ox.tree.parameters(model).items()}


def trained(make: Callable[[], Any], workers: int = 2, steps: int = 4) -> list[Any]:
    """The parameters of each worker, and the buckets that had begun when the derivative of the first layer was computed."""

    def worker(comm: Any) -> Any:
        model, begun = new_model(), 0

        def pulled(g: Any, y: Any, x: Any) -> Any:
            nonlocal begun
            begun = max(begun, getattr(getattr(opt, "_buckets", None), "begun", 0))
            return g

        watched = ox.custom_vjp(lambda x: x * 1.0, pulled)
        with make() as opt:
            for step in range(steps):
                opt.minimize(loss_of(comm.rank, step, watched), model)
        return parts(model), begun

    return distributed.run(worker, workers=workers, timeout=jobs.DEADLINE)


OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "adam": lambda: optim.Adam(0.1),
    "clip": lambda: optim.chain(optim.ClipByGlobalNorm(0.1), optim.AdamW(0.1)),
    "frozen": lambda: optim.SGD(0.1, momentum=0.9, groups={"layers.2.*": None, "scale": {"learning_rate": 1.0}}),
    "accumulate": lambda: optim.SGD(0.1, accumulate=2),
    "scaled": lambda: optim.SGD(0.1, loss_scale=optim.LossScale(8.0)),
}


@pytest.mark.parametrize("limit", [1, 100, 1 << 20])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_overlap_changes_no_bits(name: str, limit: int) -> None:
    make = OPTIMIZERS[name]
    found = trained(lambda: DataParallel(make(), bucket_bytes=limit))
    without = trained(lambda: DataParallel(make(), bucket_bytes=limit, overlap=False))
    assert found[0][0] == found[1][0] == without[0][0] == without[1][0]
    assert without[0][1] == without[1][1] == 0
    assert max(found[0][1], found[1][1]) >= (3 if limit == 1 else 1)


@settings(max_examples=20, deadline=None)
@given(limit=st.integers(1, 1000), local_batches=st.integers(1, 3), workers=st.integers(2, 3), shards=st.booleans())
def test_bits_do_not_depend_on_buckets(limit: int, local_batches: int, workers: int, shards: bool) -> None:
    found = trained(
        lambda: DataParallel(optim.Adam(0.1), bucket_bytes=limit, local_batches=local_batches, shard_state=shards),
        workers,
        steps=3 * local_batches,
    )
    expected = trained(
        lambda: DataParallel(optim.Adam(0.1), overlap=False, local_batches=local_batches), workers, 3 * local_batches
    )
    assert [each[0] for each in found] == [each[0] for each in expected]


@pytest.mark.parametrize("shards", [False, True])
def test_rows_are_gathered(shards: bool) -> None:
    """A gradient that is rows in some steps alone: its bucket is summed as well, and not used."""

    def train(make: Callable[[], Any]) -> list[Any]:
        def worker(comm: Any) -> Any:
            model = {"table": np.ones((6, 2)), "w": np.ones((2, 2)), "v": np.ones((2, 2))}
            with make() as opt:
                for step in range(4):
                    ids = np.array([comm.rank, 3, 3])

                    def loss(m: Model, ids: Any = ids, step: int = step) -> Any:
                        table = xp.take(m["table"], ids, axis=0) if step % 2 else m["table"]
                        return xp.sum((xp.tanh(table @ m["w"]) @ m["v"]) ** 2)

                    opt.minimize(loss, model)
            return parts(model)

        return distributed.run(worker, workers=2, timeout=jobs.DEADLINE)

    found = train(lambda: DataParallel(optim.Adam(0.1), bucket_bytes=8, shard_state=shards))
    assert found == train(lambda: LargeBatch(optim.Adam(0.1)))


def failing(at: int, rank: int, error: type[BaseException] = FloatingPointError) -> Callable[[int, int], Any]:
    """Watches the first layer of a worker: its derivative fails in step ``at``."""

    def watch(own: int, step: int) -> Any:
        def pulled(g: Any, y: Any, x: Any) -> Any:
            if (own, step) == (rank, at):
                raise error("the first layer")
            return g

        return ox.custom_vjp(lambda x: x * 1.0, pulled)

    return watch


def refused(call: Callable[..., Any], *args: Any, **named: Any) -> str:
    with pytest.raises(RuntimeError, match="an error has ended the step before") as error:
        call(*args, **named)
    return str(error.value)


def test_no_step_follows_one_that_has_ended_while_gradients_were_under_way() -> None:
    """The worker forms another generation with the others instead, which take the step without its gradient or with its next one."""
    ready, told = threading.Event(), []

    def worker(comm: Any) -> Any:
        assert ready.wait(jobs.DEADLINE)
        watch, rank, model, step, fails = failing(3, 1), comm.rank, new_model(), 0, True
        with DataParallel(optim.Adam(0.1), bucket_bytes=1) as opt:
            while step < 6:
                try:
                    opt.minimize(loss_of(rank, step, watch(rank, step if fails else 0)), model)
                except FloatingPointError:
                    fails, before = False, parts(model)
                    assert opt._buckets is not None and opt._buckets.begun
                    told.append(refused(opt.minimize, loss_of(rank, 3), model))
                    told.append(refused(opt.minimize, loss_of(rank, 3), model, record=True))
                    told.append(refused(opt.update, model, model))
                    assert parts(model) == before
                    model = opt.reform(model)
                    continue
                step += 1
        return parts(model)

    job = ThreadJob(worker, 3, timeout=20.0)
    ready.set()
    first, *others = job.wait(jobs.DEADLINE)
    assert all(other == first for other in others) and len(told) == 3


def test_an_error_before_anything_has_left_changes_nothing() -> None:
    def train(fails: bool) -> list[Any]:
        def worker(comm: Any) -> Any:
            model = new_model()
            with DataParallel(optim.Adam(0.1), bucket_bytes=100) as opt:
                for step in range(5):
                    if fails and comm.rank == 1 and step in (0, 3):
                        with pytest.raises(ZeroDivisionError):
                            opt.minimize(lambda model: model["scale"] / 0 if 1 // 0 else 0.0, model)
                    opt.minimize(loss_of(comm.rank, step), model)
            return parts(model)

        return distributed.run(worker, workers=2, timeout=jobs.DEADLINE)

    assert train(True) == train(False)


def test_survivors_go_on_after_a_death_in_the_replay() -> None:
    ready = threading.Event()

    def worker(comm: Any) -> Any:
        assert ready.wait(jobs.DEADLINE)
        model, opt, rank = new_model(), DataParallel(optim.Adam(0.1), bucket_bytes=1), comm.rank

        def pulled(g: Any, y: Any, x: Any) -> Any:
            if (rank, int(opt.step)) == (1, 3):
                job.kill(1)
            return g

        watched = ox.custom_vjp(lambda x: x * 1.0, pulled)
        for step in range(6):
            opt.minimize(loss_of(rank, step, watched), model)
        return parts(model), opt.step, opt.communicator.size

    job = ThreadJob(worker, 3, timeout=20.0)
    ready.set()
    first, lost, last = job.wait(jobs.DEADLINE)
    assert lost is None and first == last and first[1:] == (6, 2)


@pytest.mark.parametrize("name", ["sam", "recorded", "one bucket", "own gradients"])
def test_gradients_that_are_not_announced_leave_together(name: str) -> None:
    class Own(DataParallel):
        def compute_gradients(self, loss: Any, model: Any) -> Any:
            value, grads = super().compute_gradients(loss, model)
            return value, ox.tree.map(lambda g: 2 * g, grads)

    def train(overlap: bool) -> list[Any]:
        def worker(comm: Any) -> Any:
            model = new_model()
            inner = optim.SAM(optim.SGD(0.1)) if name == "sam" else optim.SGD(0.1)
            kind = Own if name == "own gradients" else DataParallel
            with kind(inner, bucket_bytes=1 << 20 if name == "one bucket" else 1, overlap=overlap) as opt:
                for step in range(3):
                    opt.minimize(loss_of(comm.rank, step), model, record=name == "recorded")
                assert opt._overlaps == (overlap and name == "one bucket")
            return parts(model)

        return distributed.run(worker, workers=2, timeout=jobs.DEADLINE)

    assert train(True) == train(False)


@pytest.mark.parametrize("name", ["DataParallel", "SyncReplicas", "ElasticAverage", "ModelAverage"])
def test_a_gradient_is_refused_around_sam_and_nothing_changes(name: str) -> None:
    def worker(comm: Any) -> Any:
        period = {"ModelAverage": {"interval": 1}, "SyncReplicas": {"replicas_to_aggregate": 2}}.get(name, {})
        with getattr(distributed, name)(optim.SAM(optim.SGD(0.1)), **period) as opt:
            model = opt.start(new_model())
            before = parts(model)
            with pytest.raises(ox.RuleError, match=r"SAM takes the gradient at perturbed parameters.*minimize"):
                opt.update(model, model)
            assert (parts(model), opt.step) == (before, 0)
            comm.all_reduce([np.zeros(1)])  # then the first step of any worker
            opt.minimize(loss_of(comm.rank, 0), model)
            return parts(model) != before

    assert all(distributed.run(worker, workers=2, timeout=jobs.DEADLINE))


@pytest.mark.parametrize("library", ["torch", "jax.numpy"])
def test_models_of_other_libraries(library: str) -> None:
    module = pytest.importorskip(library)

    def train(overlap: bool) -> list[Any]:
        def worker(comm: Any) -> Any:
            model: Model = {name: module.asarray(np.linspace(-1, 1, 9).reshape(3, 3)) for name in "abc"}
            x = module.asarray(np.full((2, 3), 1.0 + comm.rank))
            with DataParallel(optim.Adam(0.1), bucket_bytes=1, overlap=overlap) as opt:
                for _ in range(3):
                    opt.minimize(lambda m: xp.sum(xp.tanh(xp.tanh(x @ m["a"]) @ m["b"]) @ m["c"]), model)
            return parts(model)

        return distributed.run(worker, workers=2, timeout=jobs.DEADLINE)

    assert train(True) == train(False)


@pytest.mark.parametrize("shards", [False, True])
def test_gradients_in_shards_are_given_back_during_the_replay(shards: bool) -> None:
    def worker(comm: Any) -> tuple[float, int]:
        model: Model = {str(at): np.eye(40) for at in range(10)}
        most, whole = 0.0, sum(array.nbytes for array in model.values())

        def loss(m: Model) -> Any:
            x = xp.asarray(np.ones((2, 40)))
            for w in m.values():
                x = xp.tanh(x @ w)
            return xp.sum(x)

        with DataParallel(optim.Adam(0.1), bucket_bytes=12_000, shard_state=shards) as opt:
            opt.minimize(loss, model)
            alive: list[tuple[weakref.ref[Any], int]] = []
            add = opt._replayed._add

            def counted(path: str, gradient: Any) -> None:
                nonlocal most
                alive.append((weakref.ref(gradient), gradient.nbytes))
                add(path, gradient)
                bytes_of_gradients = sum(size for gradient, size in alive if gradient() is not None)
                most = max(most, bytes_of_gradients + opt._buckets.nbytes)

            opt._replayed._add = counted
            opt.minimize(loss, model)
        assert len(alive) == len(model)
        return most, whole

    for most, whole in distributed.run(worker, workers=2, timeout=jobs.DEADLINE):
        assert most < 0.45 * whole if shards else most >= 2 * whole


def chained(model: Any, names: str) -> Any:
    x: Any = np.ones((2, 4))
    for name in names:
        x = ox.xp.tanh(x @ model[name])
    return ox.xp.sum(x)


def leaving(comm: Any, first: str, later: str, *, overlap: bool = True, steps: int = 40) -> list[Any]:
    """A training whose first step is of other gradients than the later ones; returns how many buckets left early in each step, and the parameters."""
    model = {name: np.full((4, 4), 0.1 + 0.1 * at) for at, name in enumerate("abcd")}
    left: list[int] = []
    with DataParallel(optim.SGD(0.1), bucket_bytes=1, overlap=overlap) as opt:
        opt.start(model)
        means = opt._means

        def counted(*arguments: Any) -> Any:
            left.append(opt._buckets.begun if opt._buckets else 0)
            return means(*arguments)

        opt._means = counted  # type: ignore[method-assign]
        for step in range(steps):
            if not step and not first:
                model = opt.update(model, {name: np.ones((4, 4)) for name in model})
            else:
                names = later if step else first
                opt.minimize(lambda model, names=names: chained(model, names), model)
    return [left[-1], b"".join(array.tobytes() for array in model.values())]


@pytest.mark.parametrize(
    ("first", "later", "expected"),
    [("abcd", "abcd", 4), ("", "abcd", 4), ("acd", "abcd", 4), ("abcd", "abc", 3), ("dcba", "abcd", 4)],
    ids=["same", "gradients", "one more", "one less", "reversed"],
)
def test_gradients_leave_early_whatever_the_first_step_was(first: str, later: str, expected: int) -> None:
    """In the end, all buckets that can: those behind a parameter without a gradient do not wait for it."""
    found = distributed.run(lambda comm: leaving(comm, first, later), workers=2)
    without = distributed.run(lambda comm: leaving(comm, first, later, overlap=False), workers=2)
    assert [each[1] for each in found] == [each[1] for each in without]
    assert all(each[0] == expected for each in found), found
