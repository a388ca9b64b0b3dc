"""Model averaging: the steps of exchanges, their precision, and training by several workers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oxigrad as ox
from oxigrad import SparseRows, StateError, distributed
from oxigrad.distributed.decisions.averaging import Averaging, Merge, Send, strided
from oxigrad.distributed.methods.model_average import ModelAverage
from oxigrad.optim import EMA, LBFGS, SGD, Adam, ClipByGlobalNorm, chain, from_config, partition
from workers import Quadratics, quadratics, trained

# --- decisions ---------------------------------------------------------------------------------------------------------


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 11), st.integers(0, 40))
@settings(deadline=None, max_examples=200)
def test_every_fragment_is_sent_once_an_interval_and_merged_after_the_delay(
    interval: int, fragments: int, delay: int, stop: int
) -> None:
    fragments, delay = min(fragments, interval), min(delay, interval - 1)
    machine, sent, merged = Averaging(interval, fragments, delay), {}, {}
    for step in range(1, 61):
        for action in machine.stepped():
            (sent if isinstance(action, Send) else merged).setdefault(action.fragment, []).append(step)
        if step == stop:  # a run that continues from here takes the same actions
            machine = Averaging(interval, fragments, delay).resumed(machine.step, machine.sent)
    for fragment in range(fragments):
        first = sent[fragment][0]
        assert 1 <= first <= interval
        assert sent[fragment] == list(range(first, 61, interval))
        assert merged[fragment] == [step + delay for step in sent[fragment] if step + delay <= 60]
    assert sent[fragments - 1][0] == interval


def test_one_fragment_is_sent_before_it_is_merged() -> None:
    machine = Averaging(2)
    assert [machine.stepped() for _ in range(2)] == [(), (Send(0), Merge(0))]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "interval is 0"),
        ((2, 3), "fragments is 3: expected 1 to 2"),
        ((2, 1, 2), "delay is 2: expected 0 to 1"),
    ],
)
def test_impossible_schedules_are_refused(arguments: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Averaging(*arguments)


def test_fragments_take_every_nth_parameter() -> None:
    assert [strided(range(7), fragment, 3) for fragment in range(3)] == [[0, 3, 6], [1, 4], [2, 5]]


# --- the formulas, transcribed from the papers -------------------------------------------------------------------------

WORKERS, STEPS, RATE = 3, 23, 0.1


def streaming_diloco(
    problem: Quadratics,
    interval: int,
    fragments: list[list[str]],
    delay: int,
    alpha: float,
    outer_rate: float,
    outer_momentum: float,
) -> list[dict[str, np.ndarray]]:
    """Algorithm 2 of arXiv:2501.18512 with SGD as inner and SGD with Nesterov momentum as outer optimizer."""
    theta = problem.model()
    local = [problem.model() for _ in range(WORKERS)]
    velocity = {k: np.zeros_like(v) for k, v in theta.items()}
    flying: dict[int, dict[str, np.ndarray]] = {}
    for t in range(1, STEPS + 1):
        for m in range(WORKERS):
            g = problem.gradient(m, t - 1, local[m])
            local[m] = {k: local[m][k] - RATE * g[k] for k in g}
        for p, names in enumerate(fragments):
            first = (p + 1) * interval // len(fragments)
            if t >= first and (t - first) % interval == 0:
                flying[p] = {k: sum(theta[k] - local[m][k] for m in range(WORKERS)) / WORKERS for k in names}
            if t - delay >= first and (t - delay - first) % interval == 0:
                for k, outer_gradient in flying.pop(p).items():
                    velocity[k] = outer_momentum * velocity[k] + outer_gradient
                    theta[k] = theta[k] - outer_rate * (outer_gradient + outer_momentum * velocity[k])
                    for m in range(WORKERS):
                        local[m][k] = alpha * local[m][k] + (1 - alpha) * theta[k]
    return local


def bmuf(problem: Quadratics, interval: int, momentum: float, rate: float, nesterov: bool) -> dict[str, np.ndarray]:
    """Blockwise model-update filtering (Chen and Huo 2016, equations 2 to 7); the parameters after a whole number of blocks."""
    names = [*problem.targets]
    w = problem.model()  # W(t)
    start = problem.model()  # W_g(t), from which the next block starts
    filtered = {k: np.zeros_like(v) for k, v in w.items()}
    for block in range(STEPS // interval):
        ends = []
        for m in range(WORKERS):
            x = {k: start[k].copy() for k in names}
            for t in range(block * interval, (block + 1) * interval):
                g = problem.gradient(m, t, x)
                x = {k: x[k] - RATE * g[k] for k in names}
            ends.append(x)
        for k in names:
            update = sum(x[k] for x in ends) / WORKERS - start[k]  # G(t)
            filtered[k] = momentum * filtered[k] + rate * update
            w[k] = w[k] + filtered[k]
            start[k] = w[k] + momentum * filtered[k] if nesterov else w[k]
    return start


def assert_close(found: list[Any], expected: list[Any], tolerance: float = 1e-12) -> None:
    for one, other in zip(found, expected, strict=True):
        for name in other:
            np.testing.assert_allclose(one[name], other[name], rtol=tolerance, atol=tolerance, err_msg=name)


def digest(models: list[Any]) -> str:
    joined = b"".join(np.ascontiguousarray(p).tobytes() for model in models for p in ox.tree.leaves(model))
    return hashlib.sha256(joined).hexdigest()


@pytest.mark.parametrize(
    ("interval", "fragments", "delay", "alpha"), [(4, 1, 0, 0.0), (6, 3, 0, 0.0), (6, 2, 2, 0.5), (5, 3, 4, 0.25)]
)
@pytest.mark.parametrize("outer", [(0.7, 0.9), (1.0, 0.0)])
def test_outer_optimizer_fragments_and_delay_are_those_of_streaming_diloco(
    interval: int, fragments: int, delay: int, alpha: float, outer: tuple[float, float]
) -> None:
    problem = quadratics(WORKERS, STEPS)
    names = [[*problem.targets][p::fragments] for p in range(fragments)]
    found = trained(
        problem,
        lambda: ModelAverage(
            SGD(RATE),
            interval,
            outer=SGD(outer[0], momentum=outer[1], nesterov=True),
            fragments=fragments,
            delay=delay,
            alpha=alpha,
        ),
    )
    assert_close(found, streaming_diloco(problem, interval, names, delay, alpha, *outer))


@pytest.mark.parametrize("delay", [0, 2])
def test_the_plain_average_is_that_of_an_outer_step_of_length_one(delay: int) -> None:
    problem = quadratics(WORKERS, STEPS)
    found = trained(problem, lambda: ModelAverage(SGD(RATE), 4, delay=delay, alpha=0.0))
    assert_close(found, streaming_diloco(problem, 4, [["a", "b", "c"]], delay, 0.0, 1.0, 0.0))


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("rate", [1.0, 0.8])
def test_block_momentum_is_that_of_bmuf(nesterov: bool, rate: float) -> None:
    problem = quadratics(WORKERS, STEPS)
    steps = STEPS // 4 * 4
    found = trained(
        problem,
        lambda: ModelAverage(SGD(RATE), 4, block_momentum=0.6, block_learning_rate=rate, nesterov=nesterov),
        steps=steps,
    )
    assert_close(found, [bmuf(problem, 4, 0.6, rate, nesterov)] * WORKERS)


def test_with_interval_one_sgd_averages_gradients() -> None:
    # Small integers, so that no operation rounds.
    def worker(comm: distributed.Communicator) -> np.ndarray:
        opt, model = ModelAverage(SGD(0.5), interval=1), {"w": np.arange(4.0)}
        for step in range(5):
            model = opt.update(model, {"w": np.full(4, 2.0 * (comm.rank + step))})
        return model["w"]

    expected = np.arange(4.0) - 0.5 * sum(2.0 * (np.mean([0, 1, 2, 3]) + step) for step in range(5))
    for found in distributed.run(worker, workers=4):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "options",
    [{}, {"delay": 1}, {"fragments": 2}, {"outer": SGD(0.7, momentum=0.9)}, {"exchange": "float16"}],
    ids=["plain", "delay", "fragments", "outer", "float16"],
)
@pytest.mark.parametrize("refused", [[0], [1], [1, 2, 3], [5]], ids=str)
def test_an_update_that_refuses_its_gradient_counts(refused: list[int], options: dict[str, Any]) -> None:
    """A worker that went on after `NonFiniteError` had every further average a step late, and the last one with another of the others."""

    def worker(comm: distributed.Communicator) -> Any:
        opt = ModelAverage(SGD(1.0, nonfinite="raise"), interval=2, timeout=20, **options)
        model, errors = {"w": np.zeros(2), "b": np.zeros(1)}, 0
        for step in range(6):
            size = np.nan if comm.rank == 1 and step in refused else 1.0 + comm.rank
            try:
                model = opt.update(model, {"w": np.full(2, size), "b": np.ones(1)})
            except ox.NonFiniteError:
                errors += 1
        model = opt.average(model)
        return {path: array.tolist() for path, array in model.items()}, errors, opt.step

    (first, *counts), (second, *others) = distributed.run(worker, workers=2)
    assert first == second
    assert counts == [0, 6]
    assert others == [len(refused), 6 - len(refused)]
    if not options:
        assert first["w"] == [-9.0 + len(refused)] * 2  # the mean over the workers of the sums of their own steps


def test_all_workers_start_from_the_parameters_of_rank_0() -> None:
    def worker(comm: distributed.Communicator) -> np.ndarray:
        opt, model = ModelAverage(SGD(1.0), interval=10), {"w": np.full(3, float(comm.rank))}
        model = opt.start(model)
        return opt.update(model, {"w": np.full(3, 0.5)})["w"]

    for found in distributed.run(worker, workers=3):
        np.testing.assert_array_equal(found, np.full(3, -0.5))


# --- slots and precision -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", [False, True, ("m",)])
def test_the_slots_that_are_chosen_are_averaged(which: Any) -> None:
    problem = quadratics(WORKERS, 4)

    def worker(comm: distributed.Communicator) -> tuple[Any, Any]:
        opt, model = ModelAverage(Adam(0.1), 4, average_slots=which), problem.model()
        own = Adam(0.1)
        mine = problem.model()
        for step in range(4):
            model = opt.update(model, problem.gradient(comm.rank, step, model))
            mine = own.update(mine, problem.gradient(comm.rank, step, mine))
        return [{path: {n: np.array(a) for n, a in s.items()} for path, s in o.slots.items()} for o in (opt, own)]

    results = distributed.run(worker, workers=WORKERS)
    for path in problem.targets:
        for name in ("m", "v"):
            alone = [own[path][name] for _, own in results]
            averaged = which is True or (which and name in which)
            for rank, (found, _) in enumerate(results):
                expected = sum(alone) / WORKERS if averaged else alone[rank]
                np.testing.assert_allclose(found[path][name], expected, rtol=1e-12)


@pytest.mark.parametrize(("exchange", "error", "share"), [("float16", 2**-11, 0.5), ("8bit", 0.016, 0.26)])
def test_a_quantized_exchange_has_bounded_errors_and_sends_fewer_bytes(
    exchange: str, error: float, share: float
) -> None:
    shapes = {"w": (64, 64)}
    problem = quadratics(2, 3, dtype="float32", **shapes)

    def worker(comm: distributed.Communicator) -> tuple[np.ndarray, int, float]:
        opt, model = ModelAverage(SGD(RATE), 3, exchange=exchange), problem.model("float32")
        first = opt.start(model)["w"].copy()
        before = comm.bytes_sent
        own = SGD(RATE)
        mine = {"w": first.copy()}
        for step in range(3):
            model = opt.update(model, problem.gradient(comm.rank, step, model))
            mine = own.update(mine, problem.gradient(comm.rank, step, mine))
        return model["w"], comm.bytes_sent - before, mine["w"], first

    (one, sent, first_own, start), (two, _, second_own, _) = distributed.run(worker, workers=2)
    assert one.tobytes() == two.tobytes()
    exact = (first_own + second_own) / 2
    largest = max(np.abs(start - own).max() for own in (first_own, second_own))
    assert 0 < np.abs(one - exact).max() <= error * largest
    assert sent <= share * start.nbytes


@pytest.mark.parametrize("base", [lambda: SGD(0.05, momentum=0.9), lambda: Adam(0.01, master=True)])
def test_parameters_of_half_precision_are_averaged_in_single_precision(base: Callable[[], Any]) -> None:
    problem = quadratics(2, 6, dtype="float32")

    def worker(comm: distributed.Communicator) -> Any:
        opt = ModelAverage(base(), 2, outer=SGD(0.7, momentum=0.9, nesterov=True))
        model = problem.model("float16")
        for step in range(6):
            grads = {k: g.astype(np.float16) for k, g in problem.gradient(comm.rank, step, model).items()}
            model = opt.update(model, grads)
        return model

    one, two = distributed.run(worker, workers=2)
    assert digest([one]) == digest([two])
    assert all(p.dtype == np.float16 and np.isfinite(p).all() for p in one.values())


# --- any optimizer -----------------------------------------------------------------------------------------------------


def test_any_optimizer_can_be_wrapped() -> None:
    bases = [
        lambda: chain(ClipByGlobalNorm(1.0), Adam(0.1), EMA(0.9)),
        lambda: partition({"a": SGD(0.1), "*": Adam(0.1)}),
        lambda: Adam(0.1, groups={"b": None}),
        lambda: SGD(0.1, accumulate=2, nonfinite="skip"),
    ]
    problem = quadratics(2, 6)
    for base in bases:
        found = trained(problem, lambda: ModelAverage(base(), 2), steps=6, workers=2)  # noqa: B023 - called at once
        assert digest(found[:1]) == digest(found[1:]), base


def test_sparse_gradients_are_those_of_the_optimizer() -> None:
    def worker(comm: distributed.Communicator) -> np.ndarray:
        opt, model = ModelAverage(Adam(0.1, sparse="lazy"), 2), {"table": np.zeros((6, 2))}
        for _ in range(2):
            model = opt.update(model, {"table": SparseRows([comm.rank], np.ones((1, 2)), (6, 2))})
        return model["table"]

    one, two = distributed.run(worker, workers=2)
    np.testing.assert_array_equal(one, two)
    np.testing.assert_allclose(one[:3, 0], [-0.1, -0.1, 0.0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ModelAverage(LBFGS()), "expected an optimizer that takes a step by a gradient"),
        (lambda: ModelAverage(ModelAverage(SGD())), "found ModelAverage inside"),
        (lambda: ModelAverage(SGD(), outer=LBFGS()), "outer is .* evaluates the loss"),
        (lambda: ModelAverage(SGD(), outer=ModelAverage(SGD())), "outer is"),
        (lambda: ModelAverage(SGD(), outer=SGD(accumulate=2)), "accumulate cannot be set on an outer"),
        (lambda: ModelAverage(SGD(), outer=SGD(), block_momentum=0.5), "mutually exclusive"),
        (lambda: ModelAverage(SGD(), alpha=1.5), "alpha is 1.5: expected None or a number in"),
        (lambda: ModelAverage(SGD(), exchange="4bit"), "exchange is '4bit': expected 'full', 'float16' or '8bit'"),
        (lambda: ModelAverage(SGD(), 4, delay=1, average_slots=True), "average_slots and delay"),
        (lambda: ModelAverage(Adam(slot_dtype="8bit"), average_slots=True), "average_slots and slot_dtype='8bit'"),
        (lambda: ModelAverage(Adam(slot_dtype="4bit"), average_slots=True), "average_slots and slot_dtype='4bit'"),
        (lambda: ModelAverage(SGD(), interval=0), "interval is 0"),
    ],
)
def test_what_cannot_be_combined_is_refused_by_name(make: Callable[[], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make()


def test_more_fragments_than_parameters_are_refused_at_the_start() -> None:
    with pytest.raises(ValueError, match="fragments is 3: expected at most 1, the number of parameters"):
        ModelAverage(SGD(), fragments=3).update({"w": np.ones(2)}, {"w": np.ones(2)})


def test_an_unknown_slot_to_average_is_named() -> None:
    opt = ModelAverage(SGD(0.1, momentum=0.9), 1, average_slots=("v",))
    with pytest.raises(StateError, match="w: average_slots has 'v': expected one of m"):
        opt.update({"w": np.ones(2)}, {"w": np.ones(2)})


def test_a_configuration_makes_the_same_wrapper() -> None:
    outer = SGD(0.7, momentum=0.9, nesterov=True)
    opt = ModelAverage(Adam(0.1), 6, outer=outer, fragments=2, delay=1, exchange="8bit")
    again = from_config(json.loads(json.dumps(opt.get_config())))
    assert repr(again) == repr(opt)
    assert again.get_config() == opt.get_config()
    with pytest.raises(AttributeError, match="interval is fixed"):
        again.interval = 3
    again.learning_rate = 0.5
    assert again.optimizer.learning_rate == 0.5
