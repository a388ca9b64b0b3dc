"""Deep gradient compression: gradients that are not finite, checkpoints, deaths, and workers that join."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_compression import RATE, STEPS, WORKERS, digest

from oxigrad import NonFiniteError, StateError, distributed
from oxigrad.distributed.engines.threads import ThreadJob
from oxigrad.distributed.methods.compression import DeepGradientCompression
from oxigrad.optim import (
    SGD,
    Adam,
)
from workers import Turns, quadratics, trained

# --- gradients that are not finite -------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["skip", "raise", "propagate"])
@pytest.mark.parametrize("ratio", [0.3, 1])
def test_all_workers_treat_a_gradient_that_is_not_finite_alike(policy: str, ratio: float) -> None:
    problem = quadratics(WORKERS, 6)

    def worker(comm: distributed.Communicator) -> Any:
        opt, model = DeepGradientCompression(SGD(RATE, nonfinite=policy), ratio, min_size=6), problem.model()
        for step in range(6):
            grads = problem.gradient(comm.rank, step, model)
            if comm.rank == 1 and step == 2:
                grads["a"][0, 0] = np.nan
                if policy == "raise":
                    with pytest.raises(NonFiniteError, match=r"^a: "):
                        opt.update(model, grads)
                    continue
            elif step == 2 and policy == "raise":
                before, state = {k: v.copy() for k, v in model.items()}, opt.state_dict()["slots"]
                with pytest.raises(NonFiniteError):
                    opt.update(model, grads)
                assert digest([before]) == digest([model])
                assert digest([opt.state_dict()["slots"]]) == digest([state])
                continue
            model = opt.update(model, grads)
        return model, opt.skipped

    results = distributed.run(worker, workers=WORKERS)
    models = [model for model, _ in results]
    assert digest(models[:1]) == digest(models[1:2]) == digest(models[2:])
    assert [skipped for _, skipped in results] == [int(policy == "skip")] * WORKERS
    assert np.isnan(models[0]["a"]).any() == (policy == "propagate")


@pytest.mark.parametrize("options", [{"ratio": 1}, {"ratio": 0.5, "min_size": 100}], ids=["off", "small"])
def test_means_of_half_precision_are_not_rounded_before_the_step(options: Any) -> None:
    """The steps are those of data-parallel training, to the bit: so small a mean was rounded to half precision."""

    def worker(comm: distributed.Communicator) -> Any:
        models = []
        for opt in (DeepGradientCompression(Adam(RATE), **options), distributed.DataParallel(Adam(RATE))):
            model = {"w": np.linspace(-1, 1, 9).astype(np.float16)}
            for step in range(5):
                gradient = np.random.default_rng([comm.rank, step]).standard_normal(9) * 1e-5
                model = opt.update(model, {"w": gradient.astype(np.float16)})
            models.append((model["w"], opt.slots["w"]["m"]))
        return models

    for compressed, parallel in distributed.run(worker, workers=WORKERS):
        for found, expected in zip(compressed, parallel, strict=True):
            np.testing.assert_array_equal(found, expected)


# --- checkpoints, membership and determinism ---------------------------------------------------------------------------


def compressed() -> DeepGradientCompression:
    return DeepGradientCompression(SGD(RATE, momentum=0.9, weight_decay=0.01), 0.1, warmup=8, clip_norm=2.0, min_size=6)


@pytest.mark.parametrize("stop", [0, 1, 5, 11])
@pytest.mark.parametrize("ratio", [0.1, 1])
def test_a_run_resumes_to_the_bit_from_a_checkpoint(stop: int, ratio: float, tmp_path: Path) -> None:
    problem = quadratics(2, 14)

    def make() -> DeepGradientCompression:
        return compressed() if ratio < 1 else DeepGradientCompression(Adam(RATE), 1)

    def run(comm: distributed.Communicator, stops: bool) -> Any:
        opt, model = make(), problem.model()
        for step in range(14):
            if stops and step == stop:
                opt.save(tmp_path / f"{comm.rank}.safetensors")
                opt, model = make(), {k: v.copy() for k, v in model.items()}
                opt.load(tmp_path / f"{comm.rank}.safetensors")
            model = opt.update(model, problem.gradient(comm.rank, step, model))
        return [model, opt.state_dict()["slots"]]

    whole = distributed.run(lambda comm: run(comm, False), workers=2)
    parts = distributed.run(lambda comm: run(comm, True), workers=2)
    assert digest(whole) == digest(parts)


def test_a_state_of_another_momentum_is_refused() -> None:
    one = compressed()
    one.update({"a": np.ones(8)}, {"a": np.ones(8)})
    with pytest.raises(StateError, match="it has residuals of another momentum than 0"):
        DeepGradientCompression(SGD(RATE), 0.1, min_size=6).load_state_dict(one.state_dict())
    with pytest.raises(StateError, match="it has residuals, but ratio is 1"):
        DeepGradientCompression(SGD(RATE), 1).load_state_dict(one.state_dict())


@pytest.mark.parametrize("starts", [False, True])
@pytest.mark.parametrize("ratio", [0.1, 1])
def test_a_worker_that_joins_takes_the_same_steps(starts: bool, ratio: float) -> None:
    problem = quadratics(3, 12)

    def make() -> DeepGradientCompression:
        return compressed() if ratio < 1 else DeepGradientCompression(Adam(RATE), 1)

    def old(comm: distributed.Communicator) -> Any:
        opt, model = make(), problem.model()
        for step in range(12):
            if step == 5:
                model = opt.reform(model)
                assert opt.communicator.size == 3
            model = opt.update(model, problem.gradient(comm.rank, step, model))
        return model, opt.report()[0]

    def new(comm: distributed.Communicator) -> Any:
        opt, model = make(), {k: np.full_like(v, 9.0) for k, v in problem.model().items()}
        if starts:
            model = opt.start(model)
        for step in range(5, 12):
            grads = problem.gradient(2, step, model)
            if not starts and step == 5:
                grads = {k: np.full_like(g, 1e6) for k, g in grads.items()}
            model = opt.update(model, grads)
        return model, opt.report()[0]

    job = ThreadJob(old, 2, accept_newcomers=True)
    job.join(new)
    results = job.wait(120)
    models = [model for model, _ in results]
    assert digest(models[:1]) == digest(models[1:2]) == digest(models[2:])
    assert max(np.abs(p).max() for p in models[0].values()) < 10
    assert (results[2][1].dropped, results[2][1].accepted) == ((0, 7) if starts else (1, 6))
    assert (results[0][1].dropped, results[0][1].accepted) == (0, 12)


def test_the_others_go_on_without_a_worker_that_has_died() -> None:
    problem = quadratics(3, 10)

    def worker(comm: distributed.Communicator) -> Any:
        opt, model, rank = compressed(), problem.model(), comm.rank
        for step in range(10):
            if rank == 1 and step == 4:
                jobs[0].kill(1)
            model = opt.update(model, problem.gradient(rank, step, model))
        return model, opt.communicator.size

    jobs: list[ThreadJob] = []
    jobs.append(ThreadJob(lambda comm: worker(comm), 3))
    (first, size), dead, (last, _) = jobs[0].wait(120)
    assert dead is None
    assert size == 2
    assert digest([first]) == digest([last])


def test_the_same_run_gives_the_same_bits_for_any_timing() -> None:
    problem = quadratics(WORKERS, STEPS)
    timings = (None, None, *(Turns(WORKERS, STEPS, seed) for seed in range(3)))
    assert len({digest(trained(problem, compressed, turns=turns)) for turns in timings}) == 1


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_residuals_of_a_file_are_neither_lost_nor_doubled(momentum: float, workers: int, tmp_path: Path) -> None:
    """The parameters, and the mean of what is not sent yet, are those of the mean gradients, for another number of workers too."""
    file, size, saved = tmp_path / "state.safetensors", 3, {}

    def make() -> Any:
        return DeepGradientCompression(SGD(1.0, momentum=momentum), 0.25, min_size=1)

    def gradient(rank: int, step: int) -> np.ndarray:
        return np.random.default_rng([rank, step]).standard_normal(12)

    def first(comm: Any) -> Any:
        model, opt = {"w": np.zeros(12)}, make()
        for step in range(3):
            model = opt.update(model, {"w": gradient(comm.rank, step)})
        opt.save(file, gather=True)
        state = opt.state_dict(gather=True)["slots"]["w"]
        own = opt.state_dict()["slots"]["w"]
        if comm.rank == 0:
            saved["w"] = model["w"].copy()
        return state["compression-residual"].ravel(), own["compression-residual"].ravel()

    def second(comm: Any) -> Any:
        model, opt = {"w": saved["w"].copy()}, make()
        assert not opt.load(file).missing
        for step in range(3, 6):
            model = opt.update(model, {"w": gradient(comm.rank, step)})
        return model["w"], opt.state_dict()["slots"]["w"]["compression-residual"].ravel()

    gathered, own = zip(*distributed.run(first, workers=size), strict=True)
    for each in gathered:
        np.testing.assert_allclose(each, np.mean(own, axis=0), rtol=1e-12, atol=1e-15)
    models, residuals = zip(*distributed.run(second, workers=workers), strict=True)
    if momentum:  # masking clears velocities where elements are sent, so that no sum of gradients is kept
        assert all(np.array_equal(model, models[0]) and np.isfinite(model).all() for model in models)
        return
    steps = [(step, size if step < 3 else workers) for step in range(6)]
    total = sum(np.mean([gradient(rank, step) for rank in range(count)], axis=0) for step, count in steps)
    np.testing.assert_allclose(-models[0] + np.mean(residuals, axis=0), total, rtol=1e-12, atol=1e-12)


def test_what_was_not_sent_of_a_parameter_is_kept_while_it_is_frozen() -> None:
    """All that the gradients were is in the steps in the end: the residual was dropped."""

    def worker(comm: Any) -> Any:
        opt, model = DeepGradientCompression(SGD(1.0), 0.5, min_size=1), {"w": np.zeros(2), "other": np.zeros(2)}
        sent = {"w": np.array([2.0, 1.0]), "other": np.ones(2)}
        model = opt.update(model, sent)
        opt.groups = {"w": None}
        for _ in range(2):
            model = opt.update(model, sent)
        opt.groups = {}
        return opt.update(model, {**sent, "w": np.zeros(2)})["w"].tolist()

    assert distributed.run(worker, workers=2) == [[-2.0, -1.0]] * 2
