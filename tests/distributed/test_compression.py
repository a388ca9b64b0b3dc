"""Deep gradient compression: the selection, the memory, the messages, and training by several workers."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oxigrad as ox
from oxigrad import NonFiniteError, SparseRows, StateError, distributed
from oxigrad.distributed.methods import top_k
from oxigrad.distributed.methods.compression import DeepGradientCompression
from oxigrad.distributed.engines.threads import ThreadJob
from oxigrad.distributed.errors import Refused
from oxigrad.optim import (
    EMA,
    LBFGS,
    SGD,
    Adam,
    AdamW,
    ClipByGlobalNorm,
    LossScale,
    WeightDecay,
    chain,
    from_config,
    partition,
)
from workers import Quadratics, Turns, accuracy, cross_entropy, digits, network, quadratics, train_digits, trained

# --- selection and messages --------------------------------------------------------------------------------------------


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=40), st.integers(0, 40))
@settings(deadline=None, max_examples=200)
def test_largest_selects_as_a_stable_sort_does(numbers: list[int], count: int) -> None:
    values = np.array(numbers, np.float32)
    order = np.argsort(-np.abs(values), kind="stable")[:count]
    expected = np.sort(order[values[order] != 0])
    np.testing.assert_array_equal(top_k.largest(values, min(count, values.size)), expected)


def test_largest_counts_nan_as_larger_than_infinity() -> None:
    values = np.array([1.0, np.nan, -np.inf, 5.0])
    np.testing.assert_array_equal(top_k.largest(values, 2), [1, 2])
    np.testing.assert_array_equal(values, [1.0, np.nan, -np.inf, 5.0])


def test_density_follows_the_warm_up_of_the_paper() -> None:
    shares = [top_k.density(0.001, 4, step) for step in range(6)]
    assert shares == [0.25, 0.0625, 0.015625, 0.00390625, 0.001, 0.001]
    assert [top_k.density(0.1, 4, step) for step in range(3)] == [0.25, 0.1, 0.1]
    assert top_k.density(1.0, 4, 0) == 1.0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [0, 1, 30])
def test_messages_return_their_indices_and_values(count: int, dtype: str) -> None:
    generator = np.random.default_rng(count)
    indices = np.sort(generator.permutation(100)[:count])
    values = generator.standard_normal(count).astype(dtype)
    message = top_k.pack(indices, values)
    assert message.nbytes == count * (4 + np.dtype(dtype).itemsize)
    found, sent = top_k.unpack(message, 100, np.dtype(dtype))
    np.testing.assert_array_equal(found, indices)
    assert sent.tobytes() == values.tobytes()


@pytest.mark.parametrize(
    "message",
    [
        top_k.pack(np.array([3, 4]), np.ones(2, np.float32))[:-1],
        top_k.pack(np.array([3, 10]), np.ones(2, np.float32)),
        top_k.pack(np.array([4, 3]), np.ones(2, np.float32)),
        top_k.pack(np.array([3, 3]), np.ones(2, np.float32)),
    ],
    ids=["truncated", "out of range", "not increasing", "repeated"],
)
def test_a_malformed_message_is_refused_before_it_is_added(message: np.ndarray) -> None:
    good = top_k.pack(np.array([0]), np.ones(1, np.float32))
    with pytest.raises(Refused, match="a message of sparse values"):
        top_k.mean([good, message], 10, np.dtype(np.float32))


def test_clip_factor_is_that_of_the_global_norm_over_the_square_root_of_workers() -> None:
    gradients = [np.array([3.0, 0.0]), np.array([4.0])]
    assert top_k.clip_factor(gradients, 5.0, 1) == 1.0
    assert math.isclose(top_k.clip_factor(gradients, 5.0, 4), 0.5)
    assert top_k.clip_factor([np.array([np.nan])], 1.0, 4) == 1.0


# --- the formulas, transcribed from the paper --------------------------------------------------------------------------

WORKERS, STEPS, RATE = 3, 20, 0.05


def dgc(
    problem: Quadratics,
    ratio: Callable[[int], float],
    momentum: float | None = None,
    nesterov: bool = False,
    decay: float = 0.0,
    clip: float | None = None,
    dense: tuple[str, ...] = (),
) -> dict[str, np.ndarray]:
    """Algorithms 1 and 4 of arXiv:1712.01887 with local clipping and factor masking; element by element."""
    w = problem.model()
    u = [{k: np.zeros(v.size) for k, v in w.items()} for _ in range(WORKERS)]
    v = [{k: np.zeros(p.size) for k, p in w.items()} for _ in range(WORKERS)]
    own = {k: np.zeros(p.size) for k, p in w.items()}  # the velocity of dense parameters, or of the weight decay
    for t in range(STEPS):
        gradients = [{k: g.reshape(-1) for k, g in problem.gradient(n, t, w).items()} for n in range(WORKERS)]
        if clip is not None:
            for n, g in enumerate(gradients):
                norm = math.sqrt(sum(float(x) ** 2 for part in g.values() for x in part))
                limit = clip * WORKERS**-0.5
                gradients[n] = {k: part * (limit / norm if norm > limit else 1.0) for k, part in g.items()}
        for k in w:
            size = w[k].size
            total = np.zeros(size)
            for n in range(WORKERS):
                if k in dense:
                    total += gradients[n][k]
                    continue
                if momentum is None:
                    v[n][k] = v[n][k] + gradients[n][k]
                elif nesterov:
                    u[n][k] = momentum * (u[n][k] + gradients[n][k])
                    v[n][k] = v[n][k] + u[n][k] + gradients[n][k]
                else:
                    u[n][k] = momentum * u[n][k] + gradients[n][k]
                    v[n][k] = v[n][k] + u[n][k]
                count = math.ceil(ratio(t) * size)
                for i in sorted(range(size), key=lambda i: -abs(v[n][k][i]))[:count]:
                    total[i] += v[n][k][i]
                    u[n][k][i] = v[n][k][i] = 0.0
            step = total / WORKERS
            if momentum is not None:
                pulled = decay * w[k].reshape(-1) + (step if k in dense else 0.0)
                own[k] = momentum * own[k] + pulled
                ahead = pulled + momentum * own[k] if nesterov else own[k]
                step = ahead if k in dense else step + ahead
            w[k] = w[k] - RATE * step.reshape(w[k].shape)
    return w


def digest(models: list[Any]) -> str:
    joined = b"".join(np.ascontiguousarray(p).tobytes() for model in models for p in ox.tree.leaves(model))
    return hashlib.sha256(joined).hexdigest()


@pytest.mark.parametrize(
    ("sgd", "expected"),
    [
        ({}, {}),
        ({"momentum": 0.9}, {"momentum": 0.9}),
        ({"momentum": 0.9, "nesterov": True}, {"momentum": 0.9, "nesterov": True}),
        ({"momentum": 0.9, "weight_decay": 0.1}, {"momentum": 0.9, "decay": 0.1}),
        (
            {"momentum": 0.8, "weight_decay": 0.1, "nesterov": True},
            {"momentum": 0.8, "decay": 0.1, "nesterov": True},
        ),
    ],
    ids=["no momentum", "momentum", "nesterov", "decay", "nesterov and decay"],
)
@pytest.mark.parametrize("ratio", [0.1, 0.4])
def test_steps_are_those_of_the_paper(sgd: dict[str, Any], expected: dict[str, Any], ratio: float) -> None:
    problem = quadratics(WORKERS, STEPS)
    found = trained(problem, lambda: DeepGradientCompression(SGD(RATE, **sgd), ratio, min_size=6))
    reference = dgc(problem, lambda t: ratio, dense=("b",), **({"momentum": None} | expected))
    assert digest(found[:1]) == digest(found[1:2]) == digest(found[2:])
    for name, value in reference.items():
        np.testing.assert_allclose(found[0][name], value, rtol=1e-11, atol=1e-13, err_msg=name)


def test_clipping_and_warm_up_are_those_of_the_paper() -> None:
    problem = quadratics(WORKERS, STEPS)
    found = trained(
        problem,
        lambda: DeepGradientCompression(SGD(RATE, momentum=0.9), 0.05, warmup=12, clip_norm=1.5, min_size=1),
    )
    reference = dgc(problem, lambda t: max(0.05, 0.25 ** (1 + t // 3)) if t < 12 else 0.05, momentum=0.9, clip=1.5)
    for name, value in reference.items():
        np.testing.assert_allclose(found[0][name], value, rtol=1e-11, atol=1e-13, err_msg=name)


@pytest.mark.parametrize(
    "base",
    [
        lambda: SGD(RATE, momentum=0.9, nesterov=True, weight_decay=0.1),
        lambda: chain(ClipByGlobalNorm(0.5), Adam(RATE), EMA(0.9)),
        lambda: AdamW(RATE, accumulate=2),
    ],
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_ratio_one_is_a_plain_all_reduce_to_the_bit(base: Callable[[], Any], dtype: str) -> None:
    problem = quadratics(WORKERS, STEPS, dtype=dtype)

    def plain(comm: distributed.Communicator) -> dict[str, np.ndarray]:
        opt, model = base(), problem.model(dtype)
        for step in range(STEPS):
            grads = problem.gradient(comm.rank, step, model)
            flat = [g.reshape(-1).copy() for g in grads.values()]
            comm.all_reduce(flat, op="mean")
            reduced = {k: each.reshape(g.shape) for (k, g), each in zip(grads.items(), flat, strict=True)}
            model = opt.update(model, reduced)
        return model

    expected = distributed.run(plain, workers=WORKERS)
    assert digest(trained(problem, lambda: DeepGradientCompression(base(), ratio=1))) == digest(expected)


def test_what_is_not_sent_is_sent_later() -> None:
    # Without momentum, the sum of all steps and residuals is that of all gradients: nothing is lost.
    problem, sums = quadratics(WORKERS, STEPS), []

    def worker(comm: distributed.Communicator) -> dict[str, np.ndarray]:
        opt, model = DeepGradientCompression(SGD(1.0), 0.1, min_size=1), problem.model()
        start, total = problem.model(), {k: np.zeros_like(v) for k, v in model.items()}
        for step in range(STEPS):
            grads = {k: problem.targets[k][comm.rank, step] for k in model}
            total = {k: total[k] + grads[k] for k in model}
            model = opt.update(model, grads)
        residuals = {k: opt.state_dict()["slots"][k]["compression-residual"].reshape(v.shape) for k, v in start.items()}
        return {k: start[k] - model[k] for k in model}, {k: total[k] - residuals[k] for k in model}

    results = distributed.run(worker, workers=WORKERS)
    for name in problem.targets:
        sums = sum(sent[name] for _, sent in results) / WORKERS
        np.testing.assert_allclose(results[0][0][name], sums, rtol=1e-12, atol=1e-14)


def test_small_parameters_with_momentum_are_updated_as_by_sgd() -> None:
    problem = quadratics(WORKERS, STEPS)
    base = {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}
    found = trained(problem, lambda: DeepGradientCompression(SGD(RATE, **base), 0.01))
    expected = trained(problem, lambda: DeepGradientCompression(SGD(RATE, **base), 1))
    for name in problem.targets:
        np.testing.assert_allclose(found[0][name], expected[0][name], rtol=1e-13)


# --- any optimizer -----------------------------------------------------------------------------------------------------


def test_optimizers_that_can_be_wrapped() -> None:
    bases = [
        lambda: Adam(RATE),
        lambda: chain(ClipByGlobalNorm(1.0), SGD(RATE), WeightDecay(0.01), EMA(0.9)),
        lambda: partition({"a": SGD(RATE), "*": Adam(RATE)}),
        lambda: Adam(RATE, groups={"b": None}),
        lambda: SGD(RATE, momentum=0.9, groups={"b": {"learning_rate": 0.5}}),
        lambda: Adam(RATE, slot_dtype="8bit"),
    ]
    problem = quadratics(2, STEPS)
    for base in bases:
        found = trained(problem, lambda: DeepGradientCompression(base(), 0.2, min_size=1), workers=2)  # noqa: B023
        assert digest(found[:1]) == digest(found[1:]), base
        assert all(np.isfinite(p).all() for p in found[0].values())


def test_a_chain_has_momentum_before_its_parts() -> None:
    problem = quadratics(WORKERS, STEPS)
    one = trained(problem, lambda: DeepGradientCompression(SGD(RATE, momentum=0.9), 0.2, min_size=6))
    two = trained(problem, lambda: DeepGradientCompression(chain(SGD(RATE), EMA(0.9)), 0.2, momentum=0.9, min_size=6))
    assert digest(one) == digest(two)


def test_sparse_gradients_are_exchanged_as_arrays() -> None:
    def worker(comm: distributed.Communicator) -> np.ndarray:
        opt, model = DeepGradientCompression(SGD(1.0), 0.5, min_size=1), {"table": np.zeros((4, 1))}
        for _ in range(2):
            rows = SparseRows([comm.rank, comm.rank], np.array([[1.0], [1.0]]), (4, 1))
            model = opt.update(model, {"table": rows})
        return model["table"]

    for found in distributed.run(worker, workers=2):
        np.testing.assert_array_equal(found[:, 0], [-2.0, -2.0, 0.0, 0.0])


def test_parameters_of_half_precision_are_compressed_in_single_precision() -> None:
    problem = quadratics(2, STEPS, dtype="float32")

    def worker(comm: distributed.Communicator) -> Any:
        opt = DeepGradientCompression(SGD(RATE, momentum=0.9), 0.2, min_size=6)
        model = problem.model("float16")
        for step in range(STEPS):
            grads = {k: g.astype(np.float16) for k, g in problem.gradient(comm.rank, step, model).items()}
            model = opt.update(model, grads)
        return model, opt.state_dict()["slots"]["a"]["compression-residual"].dtype

    (one, dtype), (two, _) = distributed.run(worker, workers=2)
    assert digest([one]) == digest([two])
    assert dtype == np.float32
    assert all(p.dtype == np.float16 and np.isfinite(p).all() for p in one.values())


def test_models_of_torch_and_jax_are_updated() -> None:
    torch, jnp = pytest.importorskip("torch"), pytest.importorskip("jax.numpy")

    def worker(comm: distributed.Communicator) -> Any:
        found = []
        for asarray in (np.asarray, torch.asarray, jnp.asarray):
            opt = DeepGradientCompression(SGD(0.5, momentum=0.5), 0.5, min_size=2)
            model = {"w": asarray(np.arange(4, dtype=np.float32)), "b": asarray(np.ones(1, np.float32))}
            for _ in range(3):
                grads = {"w": asarray(np.arange(4, dtype=np.float32)), "b": asarray(np.ones(1, np.float32))}
                model = opt.update(model, grads)
            assert type(model["w"]) is type(grads["w"])
            found.append({k: np.asarray(v) for k, v in model.items()})
        return found

    for found in distributed.run(worker, workers=2):
        assert digest(found[:1]) == digest(found[1:2]) == digest(found[2:])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda wrap: wrap(LBFGS()), "expected an optimizer that takes a step by a gradient"),
        (lambda wrap: wrap(wrap(SGD())), "found DeepGradientCompression inside"),
        (lambda wrap: wrap(SGD(), ratio=0), "ratio is 0: expected a share above 0"),
        (lambda wrap: wrap(SGD(), clip_norm=-1.0), "clip_norm is -1.0"),
        (lambda wrap: wrap(SGD(), warmup=-1), "warmup is -1"),
        (lambda wrap: wrap(SGD(momentum=0.9, dampening=0.5)), "dampening is 0.5"),
        (lambda wrap: wrap(SGD(momentum=0.9), momentum=0.8), "momentum: set on SGD or on"),
        (lambda wrap: wrap(SGD(momentum=0.9, groups={"b": {"momentum": 0.1}})), "the group 'b' has momentum"),
        (lambda wrap: wrap(SGD(groups={"b": {"momentum": 0.1}})), "is SGD with momentum"),
        (lambda wrap: wrap(SGD(momentum=lambda step: 0.9)), "momentum is .* defined for a constant"),
        (
            lambda wrap: wrap(chain(SGD(momentum=0.9), EMA(0.9))),
            r"parts\[0\] of",
        ),
        (lambda wrap: wrap(partition({"*": SGD(momentum=0.9)})), "the optimizer of the pattern"),
        (lambda wrap: wrap(Adam(), momentum=0.9), "momentum is 0.9: its correction is defined for SGD"),
        (lambda wrap: wrap(SGD(), nesterov=True), "nesterov and weight_decay belong to"),
        (lambda wrap: wrap(SGD(accumulate=2)), "accumulate cannot be combined"),
        (lambda wrap: wrap(SGD(loss_scale=LossScale())), "loss_scale cannot be combined"),
        (lambda wrap: wrap(SGD(sparse="lazy")), "sparse cannot be combined"),
        (lambda wrap: wrap(SGD(zero_gradients=True)), "zero_gradients cannot be combined"),
        (lambda wrap: wrap(SGD(), ratio=1, warmup=3), "turns compression off"),
    ],
)
def test_what_cannot_be_combined_is_refused_by_name(make: Callable[[Any], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make(DeepGradientCompression)


def test_a_configuration_makes_the_same_wrapper() -> None:
    opt = DeepGradientCompression(
        SGD(0.1, momentum=0.9, nesterov=True, weight_decay=0.1), 0.01, warmup=8, clip_norm=2.0
    )
    assert (opt.momentum, opt.nesterov, opt.weight_decay, opt.optimizer.momentum) == (0.9, True, 0.1, 0.0)
    again = from_config(json.loads(json.dumps(opt.get_config())))
    assert repr(again) == repr(opt)
    again.learning_rate = 0.5
    assert again.optimizer.learning_rate == 0.5
    with pytest.raises(AttributeError, match="momentum is fixed"):
        again.momentum = 0.5


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

    job = ThreadJob(old, 2)
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


# --- digits ------------------------------------------------------------------------------------------------------------


def test_a_thousandth_of_the_elements_is_below_a_hundredth_of_the_bytes() -> None:
    images, labels, _, _ = digits()

    def worker(comm: distributed.Communicator) -> tuple[int, int]:
        model = network(512)
        opt = DeepGradientCompression(SGD(0.1, momentum=0.9), 0.001, min_size=1)
        model = opt.start(model)
        before = comm.bytes_sent
        for _ in range(3):
            _, grads = ox.value_and_grad(cross_entropy)(model, images[:32], labels[:32])
            model = opt.update(model, grads)
        return comm.bytes_sent - before, 3 * sum(p.nbytes for p in ox.tree.leaves(model))

    for sent, dense in distributed.run(worker, workers=2):
        assert 0 < sent < 0.01 * dense


@pytest.mark.parametrize("base", [lambda: SGD(0.05, momentum=0.9), lambda: AdamW(4e-3, weight_decay=0.1)])
def test_four_workers_learn_digits(base: Callable[[], Any]) -> None:
    results = train_digits(lambda: DeepGradientCompression(base(), 0.01, warmup=40, min_size=1))
    assert min(accuracy(model) for model, _ in results) >= 0.97
    assert len({digest([model]) for model, _ in results}) == 1


def test_a_thousandth_of_the_elements_reaches_the_same_loss_over_five_seeds() -> None:
    images, labels, _, _ = digits()

    def final(seed: int, ratio: float) -> float:
        more = {} if ratio == 1 else {"warmup": 240, "min_size": 1}
        results = train_digits(
            lambda: DeepGradientCompression(SGD(0.05, momentum=0.9), ratio, **more),
            workers=2,
            epochs=25,
            seed=seed,
            hidden=64,
        )
        return math.log(float(cross_entropy(results[0][0], images, labels)))

    dense, compressed = ([final(seed, ratio) for seed in range(5)] for ratio in (1, 0.001))
    noise = math.sqrt(np.var(dense, ddof=1) + np.var(compressed, ddof=1))
    assert np.mean(compressed) - np.mean(dense) <= 2 * noise
