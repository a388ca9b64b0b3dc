"""Elastic averaging: the decisions of the centre, and training by several workers."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oxigrad as ox
from oxigrad import SparseRows, distributed
from oxigrad.distributed.engines.threads import ThreadJob
from oxigrad.distributed.methods.elastic_average import ElasticAverage
from oxigrad.optim import LBFGS, SGD, Adam, AdamW, ClipByGlobalNorm, LossScale, chain, from_config, partition
from workers import Quadratics, Turns, accuracy, quadratics, train_digits

# --- the formulas, transcribed from the paper --------------------------------------------------------------------------

WORKERS, STEPS, RATE = 3, 20, 0.1


def easgd_synchronous(
    problem: Quadratics, period: int, alpha: float, rho: float = 0.0
) -> tuple[list[dict[str, np.ndarray]], dict[str, np.ndarray]]:
    """Equations 5 and 6 of arXiv:1412.6651, every ``period`` steps, with beta = p * alpha."""
    x = [problem.model() for _ in range(WORKERS)]
    centre = problem.model()
    for t in range(STEPS):
        gradients = [problem.gradient(i, t, x[i]) for i in range(WORKERS)]
        for k in centre:
            for i in range(WORKERS):
                gradients[i][k] = gradients[i][k] + rho * (x[i][k] - centre[k])
            moves = [np.zeros_like(centre[k])] * WORKERS
            if t and t % period == 0:
                moves = [alpha * (x[i][k] - centre[k]) for i in range(WORKERS)]
                mean = sum(x[i][k] for i in range(WORKERS)) / WORKERS
                centre[k] = centre[k] + WORKERS * alpha * (mean - centre[k])
            for i in range(WORKERS):
                x[i][k] = x[i][k] - RATE * gradients[i][k] - moves[i]
    return x, centre


def easgd_asynchronous(
    problem: Quadratics, period: int, alpha: float, momentum: float = 0.0, rho: float = 0.0
) -> tuple[list[dict[str, np.ndarray]], dict[str, np.ndarray]]:
    """Algorithms 1 and 2 of arXiv:1412.6651, where the workers take turns by rank."""
    x, centre = [problem.model() for _ in range(WORKERS)], problem.model()
    v = [{k: np.zeros_like(p) for k, p in centre.items()} for _ in range(WORKERS)]
    seen = [problem.model() for _ in range(WORKERS)]
    for t in range(STEPS):
        for i in range(WORKERS):
            here = {k: p.copy() for k, p in x[i].items()}
            g = problem.gradient(i, t, {k: here[k] + momentum * v[i][k] for k in here})
            g = {k: g[k] + rho * (here[k] - seen[i][k]) for k in g}
            for k in here:
                if t and t % period == 0:
                    move = alpha * (here[k] - centre[k])
                    seen[i][k] = centre[k].copy()
                    x[i][k] = x[i][k] - move
                    centre[k] = centre[k] + move
                v[i][k] = momentum * v[i][k] - RATE * g[k]
                x[i][k] = x[i][k] + v[i][k]
    return x, centre


def trained(
    problem: Quadratics,
    wrap: Callable[[], Any],
    steps: int = STEPS,
    workers: int = WORKERS,
    turns: Turns | None = None,
    lookahead: bool = False,
) -> list[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]]:
    """The parameters of each worker after training by threads, and the centre as it left."""

    def worker(comm: distributed.Communicator) -> Any:
        opt, model = wrap(), problem.model(str(next(iter(problem.targets.values())).dtype))
        for step in range(steps):
            if turns:
                turns.take(comm.rank)
            at = opt.lookahead(model) if lookahead else model
            model = opt.update(model, problem.gradient(comm.rank, step, at))
        own = {k: p.copy() for k, p in model.items()}
        opt.leave(model)
        return own, opt.centre()

    return distributed.run(worker, workers=workers)


def assert_close(found: dict[str, Any], expected: dict[str, Any], tolerance: float = 1e-12) -> None:
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=tolerance, atol=tolerance, err_msg=name)


def digest(models: list[Any]) -> str:
    joined = b"".join(np.ascontiguousarray(p).tobytes() for model in models for p in ox.tree.leaves(model))
    return hashlib.sha256(joined).hexdigest()


@pytest.mark.parametrize(("period", "alpha", "rho"), [(1, 0.1, 0.0), (4, 0.3, 0.0), (3, 0.2, 0.5)])
@pytest.mark.slow
def test_synchronous_steps_are_those_of_the_paper(period: int, alpha: float, rho: float) -> None:
    problem = quadratics(WORKERS, STEPS)
    found = trained(problem, lambda: ElasticAverage(SGD(RATE), period, moving_rate=alpha, rho=rho, synchronous=True))
    expected, centre = easgd_synchronous(problem, period, alpha, rho)
    for (own, its_centre), x in zip(found, expected, strict=True):
        assert_close(own, x)
        assert_close(its_centre, centre)


@pytest.mark.parametrize(("period", "alpha", "rho"), [(1, 0.1, 0.0), (4, 0.3, 0.0), (3, 0.2, 0.5)])
def test_asynchronous_steps_in_turns_are_those_of_the_paper(period: int, alpha: float, rho: float) -> None:
    problem = quadratics(WORKERS, STEPS)
    found = trained(problem, lambda: ElasticAverage(SGD(RATE), period, moving_rate=alpha, rho=rho, deterministic=True))
    expected, centre = easgd_asynchronous(problem, period, alpha, rho=rho)
    for (own, _), x in zip(found, expected, strict=True):
        assert_close(own, x)
    assert_close(found[0][1], centre)


def test_momentum_with_lookahead_is_eamsgd() -> None:
    problem = quadratics(WORKERS, STEPS)
    found = trained(
        problem,
        lambda: ElasticAverage(SGD(RATE, momentum=0.7), 3, moving_rate=0.2, deterministic=True, nesterov=True),
        lookahead=True,
    )
    expected, centre = easgd_asynchronous(problem, 3, 0.2, momentum=0.7)
    for (own, _), x in zip(found, expected, strict=True):
        assert_close(own, x)
    assert_close(found[0][1], centre)


def test_minimize_takes_the_gradient_at_the_lookahead() -> None:
    opt = ElasticAverage(SGD(0.5, momentum=0.5), nesterov=True)
    model, x, v = {"w": np.array([8.0])}, 8.0, 0.0
    for _ in range(4):
        value = opt.minimize(lambda m: ox.xp.sum(m["w"] ** 2), model)
        ahead = x + 0.5 * v
        v = 0.5 * v - 0.5 * 2 * ahead
        x = x + v
        assert (value, model["w"][0]) == (ahead**2, x)


def test_with_the_largest_rate_the_centre_is_the_mean_of_the_workers() -> None:
    # beta = size * moving_rate = 1; powers of two, so that nothing rounds.
    def worker(comm: distributed.Communicator) -> Any:
        opt, model = ElasticAverage(SGD(1.0), 1, moving_rate=0.25, synchronous=True), {"w": np.zeros(3)}
        for _ in range(2):
            before = model["w"].copy()
            model = opt.update(model, {"w": np.full(3, float(4 * comm.rank))})
        return before, opt.centre()["w"]

    results = distributed.run(worker, workers=4)
    mean = sum(before for before, _ in results) / 4
    for _, centre in results:
        np.testing.assert_array_equal(centre, mean)


def test_an_asynchronous_exchange_moves_worker_and_centre_alike() -> None:
    # Whatever the order, what workers lose the centre gains.
    def worker(comm: distributed.Communicator) -> Any:
        opt, model = ElasticAverage(SGD(1.0), 1, moving_rate=0.5), {"w": np.zeros(2)}
        model = opt.start(model)
        start = model["w"].copy()
        for _ in range(5):
            model = opt.update(model, {"w": np.full(2, float(comm.rank + 1))})
        own = model["w"].copy()
        opt.leave(model)
        return own - start, opt.centre()["w"], opt.report()[0].accepted

    results = distributed.run(worker, workers=4)
    total = sum(own for own, _, _ in results) + results[0][1]
    np.testing.assert_allclose(total, np.full(2, -5.0 * (1 + 2 + 3 + 4)), rtol=1e-12)
    assert [accepted for _, _, accepted in results] == [5] * 4


def test_the_default_rate_counts_the_workers() -> None:
    def worker(comm: distributed.Communicator) -> float:
        return ElasticAverage(SGD(), 5)._rate

    assert distributed.run(worker, workers=3) == [0.9 / 5 / 3] * 3


# --- any optimizer -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("synchronous", [False, True])
def test_any_optimizer_can_be_wrapped(synchronous: bool) -> None:
    bases = [
        lambda: chain(ClipByGlobalNorm(1.0), Adam(0.1)),
        lambda: partition({"a": SGD(0.1), "*": Adam(0.1)}),
        lambda: Adam(0.1, groups={"b": None}),
        lambda: SGD(0.1, accumulate=2, nonfinite="skip"),
        lambda: Adam(0.1, slot_dtype="8bit"),
        lambda: Adam(0.1, slot_dtype="4bit"),
    ]
    problem = quadratics(2, 8)
    for base in bases:
        own = {"synchronous": True} if synchronous else {"deterministic": True}
        found = trained(problem, lambda: ElasticAverage(base(), 2, **own), steps=8, workers=2)  # noqa: B023
        assert all(np.isfinite(p).all() for model, _ in found for p in model.values()), base


@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_sparse_gradients_are_those_of_the_optimizer(rho: float) -> None:
    def worker(comm: distributed.Communicator) -> np.ndarray:
        opt = ElasticAverage(SGD(1.0), 10, rho=rho, synchronous=True)
        model = {"table": np.zeros((3, 1))}
        for _ in range(2):
            model = opt.update(model, {"table": SparseRows([comm.rank], np.ones((1, 1)), (3, 1))})
        return model["table"][:, 0]

    for rank, found in enumerate(distributed.run(worker, workers=2)):
        expected = np.zeros(3)
        expected[rank] = -2.0 if rho == 0 else -1.5
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("synchronous", [False, True])
def test_parameters_of_half_precision_have_a_centre_in_single_precision(synchronous: bool) -> None:
    problem = quadratics(2, 8, dtype="float32")

    def worker(comm: distributed.Communicator) -> Any:
        opt, model = ElasticAverage(SGD(RATE), 2, synchronous=synchronous), problem.model("float16")
        for step in range(8):
            grads = {k: g.astype(np.float16) for k, g in problem.gradient(comm.rank, step, model).items()}
            model = opt.update(model, grads)
        model = opt.leave(model)
        return model["a"].dtype, opt.centre()["a"].dtype

    assert distributed.run(worker, workers=2) == [(np.float16, np.float32)] * 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ElasticAverage(LBFGS()), "expected an optimizer that takes a step by a gradient"),
        (lambda: ElasticAverage(ElasticAverage(SGD())), "found ElasticAverage inside"),
        (lambda: ElasticAverage(SGD(), 0), "period is 0"),
        (lambda: ElasticAverage(SGD(), moving_rate=1.5), "moving_rate is 1.5"),
        (lambda: ElasticAverage(SGD(), rho=-1.0), "rho is -1.0"),
        (lambda: ElasticAverage(SGD(loss_scale=LossScale()), rho=1.0), "rho and loss_scale"),
        (lambda: ElasticAverage(SGD(), synchronous=True, deterministic=True), "synchronous exchanges are"),
        (lambda: ElasticAverage(SGD(), lease=-1.0), "lease is -1.0"),
        (lambda: ElasticAverage(Adam(), nesterov=True), "nesterov is EAMSGD"),
        (lambda: ElasticAverage(SGD(momentum=0.9, nesterov=True), nesterov=True), "nesterov is EAMSGD"),
    ],
)
def test_what_cannot_be_combined_is_refused_by_name(make: Callable[[], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make()


def test_a_configuration_makes_the_same_wrapper() -> None:
    opt = ElasticAverage(SGD(0.1, momentum=0.9), 7, moving_rate=0.25, rho=0.1, deterministic=True, nesterov=True)
    again = from_config(json.loads(json.dumps(opt.get_config())))
    assert repr(again) == repr(opt)
    with pytest.raises(AttributeError, match="period is fixed"):
        again.period = 3


# --- checkpoints, membership and determinism ---------------------------------------------------------------------------


@pytest.mark.parametrize("stop", [0, 1, 3, 7])
@pytest.mark.parametrize("own", [{"synchronous": True}, {"deterministic": True}])
def test_a_run_resumes_to_the_bit_from_a_checkpoint(own: dict[str, bool], stop: int, tmp_path: Path) -> None:
    problem = quadratics(2, 14)

    def wrap() -> ElasticAverage:
        return ElasticAverage(Adam(0.1), 3, moving_rate=0.3, rho=0.1, **own)

    def save(comm: distributed.Communicator, run: str) -> None:
        opt, model = wrap(), problem.model()
        for step in range(stop if run == "first" else 14):
            model = opt.update(model, problem.gradient(comm.rank, step, model))
        comm.all_reduce([np.zeros(1)])  # so that the centre has all exchanges when rank 0 saves it
        opt.save(tmp_path / f"{run}-{comm.rank}.safetensors")
        np.savez(tmp_path / f"{run}-{comm.rank}.npz", **model)
        comm.all_reduce([np.zeros(1)])

    def resume(comm: distributed.Communicator) -> None:
        opt = wrap()
        opt.load(tmp_path / f"first-{comm.rank}.safetensors")
        with np.load(tmp_path / f"first-{comm.rank}.npz") as file:
            model = dict(file)
        for step in range(stop, 14):
            model = opt.update(model, problem.gradient(comm.rank, step, model))
        comm.all_reduce([np.zeros(1)])
        opt.save(tmp_path / f"second-{comm.rank}.safetensors")
        np.savez(tmp_path / f"second-{comm.rank}.npz", **model)
        comm.all_reduce([np.zeros(1)])

    distributed.run(lambda comm: save(comm, "whole"), workers=2)
    distributed.run(lambda comm: save(comm, "first"), workers=2)
    distributed.run(resume, workers=2)
    for rank in range(2):
        for kind in ("npz", "safetensors"):
            whole, parts = (tmp_path / f"{run}-{rank}.{kind}" for run in ("whole", "second"))
            assert whole.read_bytes() == parts.read_bytes(), (rank, kind)


def test_a_worker_that_comes_back_gets_the_centre_and_the_others_go_on() -> None:
    problem = quadratics(3, 12)
    died, begun, seen = threading.Event(), threading.Event(), {}

    def worker(comm: distributed.Communicator) -> Any:
        opt, model = ElasticAverage(SGD(RATE), 2, moving_rate=0.3), problem.model()
        for step in range(12):
            if comm.rank == 1 and step == 5:
                died.set()
                jobs[0].kill(1)
            model = opt.update(model, problem.gradient(comm.rank, step, model))
        own = {k: p.copy() for k, p in model.items()}
        if comm.rank == 2:
            assert died.wait(60)
            jobs[0].restart(1, again)
            assert begun.wait(60)
        opt.leave(model)
        return own, opt.centre()

    def again(comm: distributed.Communicator) -> Any:
        opt, model = (
            ElasticAverage(SGD(RATE), 2, moving_rate=0.3),
            {k: np.full_like(p, 9) for k, p in problem.model().items()},
        )
        model = opt.start(model)
        begun.set()
        seen["start"] = max(np.abs(p).max() for p in model.values())
        for step in range(5, 12):
            model = opt.update(model, problem.gradient(1, step, model))
        opt.leave(model)
        return model, opt.centre()

    jobs: list[ThreadJob] = []
    ready = threading.Event()
    jobs.append(ThreadJob(lambda comm: ready.wait(60) and worker(comm), 3))
    ready.set()
    results = jobs[0].wait(120)
    assert results[1] is None
    assert len(results) == 4
    assert seen["start"] < 5
    assert all(np.isfinite(p).all() for p in results[0][1].values())


def test_a_worker_without_its_centre_is_told() -> None:
    def worker(comm: distributed.Communicator) -> None:
        opt, model = ElasticAverage(SGD(RATE), 1, timeout=1), {"w": np.ones(2)}
        model = opt.update(model, {"w": np.ones(2)})
        comm.all_reduce([np.zeros(1)])
        if comm.rank == 0:
            return  # its centre serves for one more second
        while comm.alive() != {1}:
            model = opt.update(model, {"w": np.ones(2)})
        opt.update(model, {"w": np.ones(2)})

    with pytest.raises(distributed.WorkerLost, match="rank 0"):
        distributed.run(worker, workers=2)


@pytest.mark.parametrize("starts", [False, True])
def test_a_worker_that_joins_a_synchronous_run_takes_part(starts: bool) -> None:
    problem = quadratics(3, 12)

    def wrap() -> ElasticAverage:
        return ElasticAverage(Adam(RATE), 2, moving_rate=0.2, synchronous=True)

    def old(comm: distributed.Communicator) -> Any:
        opt, model = wrap(), problem.model()
        for step in range(12):
            model = opt.reform(model) if step == 5 else model
            model = opt.update(model, problem.gradient(comm.rank, step, model))
        return opt.centre(), opt.communicator.size, opt.report()[0].dropped

    def new(comm: distributed.Communicator) -> Any:
        opt, model = wrap(), {k: np.full_like(p, 9) for k, p in problem.model().items()}
        model = opt.start(model) if starts else model
        for step in range(5, 12):
            model = opt.update(model, problem.gradient(2, step, model))
        return opt.centre(), opt.communicator.size, opt.report()[0].dropped

    job = ThreadJob(old, 2, accept_newcomers=True)
    job.join(new)
    results = job.wait(120)
    assert len({digest([centre]) for centre, _, _ in results}) == 1
    assert [size for _, size, _ in results] == [3, 3, 3]
    assert [dropped for *_, dropped in results] == [0, 0, 0 if starts else 1]


@pytest.mark.parametrize("own", [{"synchronous": True}, {"deterministic": True}])
def test_the_same_run_gives_the_same_bits_for_any_timing(own: dict[str, bool]) -> None:
    problem = quadratics(WORKERS, STEPS)
    timings = [None, None]
    if "synchronous" in own:
        timings += [Turns(WORKERS, STEPS, seed) for seed in range(3)]
    found = set()
    for turns in timings:
        results = trained(problem, lambda: ElasticAverage(Adam(0.1), 2, **own), turns=turns)
        found.add(digest([[model for model, _ in results], results[0][1]]))
    assert len(found) == 1


# --- digits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrap",
    [
        lambda: ElasticAverage(AdamW(4e-3, weight_decay=0.1), 4, moving_rate=0.2, deterministic=True),
        lambda: ElasticAverage(AdamW(4e-3, weight_decay=0.1), 4, moving_rate=0.2, synchronous=True),
    ],
    ids=["asynchronous", "synchronous"],
)
@pytest.mark.one_in(2)
def test_four_workers_learn_digits(wrap: Callable[[], Any]) -> None:
    results = train_digits(wrap, epochs=25, finish=lambda opt, model: (opt.leave(model), opt.centre())[1])
    centre = results[0][0]
    model = {layer: {name: centre[f"{layer}.{name}"] for name in ("weight", "bias")} for layer in ("hidden", "head")}
    assert accuracy(model) >= 0.97
